"""The checks of an audit: leakage, users and items that cannot be evaluated, and shifts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing._sides import Sides, newest
from recometer.auditing.findings import (
    EXAMPLES,
    Finding,
    Level,
    among,
    counted,
    examples_at,
    unchecked,
)
from recometer.data import ids
from recometer.data.ids import are_pairs, clusters_of
from recometer.data.interactions import Interactions
from recometer.errors import argument_text

UNDEFINED = "their metrics are undefined, and they are not in the mean"


def overlap(sides: Sides) -> Finding:
    """Pairs of user and item that are in both test and train."""
    train, test = sides.train, sides.test
    both = sides.twin >= 0
    effect = (
        "The model has learnt them. Counted as hits they flatter it; left out, as evaluate does "
        f"with {argument_text('train')}, they make test smaller."
    )
    statistics: dict[str, float] = {}
    if train.times is not None and test.times is not None:
        same = int(np.count_nonzero(train.times[sides.twin[both]] == test.times[both]))
        statistics["same_time"] = same
        effect += f" {same:,} of them have the same time on both sides."
    return _of_rows(
        sides,
        both,
        "interactions of test that are also in train",
        "leakage",
        effect,
        "No pair of user and item is on both sides.",
        statistics=statistics,
    )


def older_than_own_training(sides: Sides) -> Finding:
    """Interactions of test that precede an interaction of the same user in train."""
    return _against_own(
        sides,
        np.less,
        "interactions of test older than the user's newest in train",
        "leakage",
        "The model knows what these users did later, and guesses the past from the future: the "
        "result is better than it will be in use.",
        "No user's test is older than the user's newest interaction in train.",
    )


def older_than_training(sides: Sides) -> Finding:
    """Interactions of test that precede an interaction of any user in train."""
    train, test = sides.train, sides.test
    what = "interactions of test older than anyone's newest in train"
    if train.times is None or test.times is None:
        return _without_times(sides, what)
    newer = int(np.count_nonzero(train.times > test.times.min()))
    return _of_rows(
        sides,
        test.times < train.times.max(),
        what,
        "leakage",
        "The model knows tastes and items of a later time than it is tested on: "
        f"{newer:,} interactions of train ({newer / max(len(train), 1):.1%}) are newer than the "
        "oldest of test. A split at one time for all users avoids it.",
        "Nothing in test is older than the newest interaction of train.",
        statistics={"training_newer": newer},
    )


def same_time(sides: Sides) -> Finding:
    """Interactions of test at the same time as the user's newest interaction in train."""
    return _against_own(
        sides,
        np.equal,
        "interactions of test at the time of the user's newest in train",
        "fact",
        "Time does not say which came first: a rule decided which of them are tested.",
        "Time alone says what came first.",
    )


def train_duplicates(sides: Sides) -> Finding:
    """Rows of train that repeat a pair of user and item."""
    return _duplicates("train", sides.train)


def test_duplicates(sides: Sides) -> Finding:
    """Rows of test that repeat a pair of user and item."""
    return _duplicates("test", sides.test)


def unseen_users(sides: Sides) -> Finding:
    """Users of test without an interaction in train."""
    chosen = sides.tested & (sides.trained == 0)
    effect = (
        "Nothing is known of them (cold start): they get the same list as any unknown user, or "
        "none, and lower the mean, unless the rule cold_start leaves them out."
    )
    if len(sides.train) and chosen.any() and chosen.sum() == sides.tested.sum():
        effect += f" That is everyone: {_ask_about(sides.test.user_ids, sides.train.user_ids)}"
    return _of_users(
        sides,
        chosen,
        "users of test without an interaction in train",
        "warning",
        effect,
        "Every user of test has interactions in train.",
    )


def unseen_items(sides: Sides) -> Finding:
    """Items of test without an interaction in train."""
    effect = "No model that learns only from interactions can tell which users they suit."
    if not sides.seen.any():
        effect += f" That is all of them: {_ask_about(sides.test.item_ids, sides.train.item_ids)}"
    return among(
        (sides.item_counts_of_test > 0) & ~sides.item_seen,
        sides.test.item_ids,
        "items of test without an interaction in train",
        "warning",
        effect,
        "Every item of test has interactions in train.",
        int(np.count_nonzero(sides.item_counts_of_test)),
    )


def unreachable(sides: Sides) -> Finding:
    """Relevant interactions with items that train does not have."""
    chosen = sides.relevant & ~sides.seen
    total = int(np.count_nonzero(sides.relevant))
    best = 1 - int(np.count_nonzero(chosen)) / max(total, 1)
    return _of_rows(
        sides,
        chosen,
        "relevant interactions of test with such items",
        "warning",
        "A model that lists only items of train misses them all: it finds at most "
        f"{best:.1%} of what is relevant.",
        "Everything relevant in test could be found by a model of train's items.",
        total=total,
    )


def users_without_relevant(sides: Sides) -> Finding:
    """Users of test without a relevant interaction."""
    return _of_users(
        sides,
        sides.tested & (sides.count_users(sides.relevant) == 0),
        "users of test without a relevant interaction",
        "warning",
        f"They have nothing that could be found: {UNDEFINED}.",
        "Every user of test has something relevant there.",
    )


def users_emptied(sides: Sides) -> Finding:
    """Users of test whose relevant interactions are all in train as well."""
    return _of_users(
        sides,
        (sides.count_users(sides.relevant) > 0) & (sides.left == 0),
        "users of test whose relevant interactions are all in train",
        "warning",
        f"Once what is in train is left out, nothing can be found: {UNDEFINED}.",
        "No user of test loses everything relevant to train.",
    )


def users_without_candidates(sides: Sides) -> Finding:
    """Users of test with too few candidates."""
    least = sides.rules.min_candidates
    return _of_users(
        sides,
        (sides.left > 0) & (sides.candidates < least),
        f"users of test with fewer than {least:,} items left to rank",
        "warning",
        f"They have nearly every item in train already: {UNDEFINED} (the rule min_candidates).",
        "Everyone else has enough items to rank.",
    )


def users_few_relevant(sides: Sides) -> Finding:
    """Users of test with relevant interactions, but fewer than the rule requires."""
    least = sides.rules.min_positives
    enough = sides.candidates >= sides.rules.min_candidates
    return _of_users(
        sides,
        (sides.left > 0) & (sides.left < least) & enough,
        f"users of test with fewer than {least:,} relevant interactions left",
        "warning",
        f"Too little to go by: {UNDEFINED} (the rule min_positives).",
        "Everyone else has enough that is relevant.",
    )


def untested_users(sides: Sides) -> Finding:
    """Users of train without an interaction in test."""
    chosen = np.diff(sides.train.indptr) > 0
    total = int(np.count_nonzero(chosen))
    chosen[sides.users[sides.tested & (sides.users >= 0)]] = False
    return among(
        chosen,
        sides.train.user_ids,
        "users of train without an interaction in test",
        "fact",
        "The result says nothing about them: it is that of the users of test.",
        "Every user of train is tested.",
        total,
    )


def _duplicates(side: str, data: Interactions) -> Finding:
    settled = "counted once" if data.values is None else "added up"
    return counted(
        data.duplicates,
        len(data) + data.duplicates,
        data.repeated,
        f"rows of {side} that repeat a pair of user and item",
        "warning",
        f"Here they were {settled}. If they are kept, they weigh "
        f"{'in training' if side == 'train' else 'in the metrics'} as often as they occur.",
        f"No pair of user and item is in {side} twice.",
    )


def popularity_shift(sides: Sides) -> Finding:
    """How differently the interactions of train and test are distributed over items."""
    counts = _matched(sides.item_counts, sides.item_counts_of_test, sides.items)
    effect = "The larger the distance, the less popularity in train says about test."
    return _shift("items", "popular", *counts, effect, {})


def activity_shift(sides: Sides) -> Finding:
    """How differently the interactions of train and test are distributed over users."""
    of_train, of_test = np.diff(sides.train.indptr), np.diff(sides.test.indptr)
    users = sides.users
    whose = clusters_of(sides.test.user_ids)
    if whose is not None and not are_pairs(sides.train.user_ids):
        # Train has no sessions, so add up the sessions of each user in test.
        of_test = np.bincount(whose, of_test).astype(np.int64)
        users = users[np.unique(whose, return_index=True)[1]]
    first, second = _matched(of_train, of_test, users)
    statistics = {
        "training_per_tested_user": float(first[second > 0].mean()),
        "training_per_user": float(first[first > 0].mean()),
        "test_per_tested_user": float(second[second > 0].mean()),
    }
    effect = (
        "A user of test has {training_per_tested_user:.1f} interactions in train on average, a "
        "user of train {training_per_user:.1f}; means over users weigh each the same."
    )
    return _shift("users", "active", first, second, effect, statistics)


def _matched(of_train: Int64, of_test: Int64, matched: Int64) -> tuple[Int64, Int64]:
    """Return the counts of both sides in the same order: first those in train, then the others."""
    others = matched < 0
    first = np.concatenate([of_train, np.zeros(np.count_nonzero(others), np.int64)])
    second = np.zeros_like(first)
    second[len(of_train) :] = of_test[others]
    second[matched[~others]] = of_test[~others]
    return first, second


def _shift(
    what: str,
    how: str,
    first: Int64,
    second: Int64,
    effect: str,
    statistics: Mapping[str, float],
) -> Finding:
    """Return the finding from the counts in train and test of each item, or of each user."""
    chosen = head(first)
    total, count = int(second.sum()), int(second[chosen].sum())
    numbers: dict[str, Any] = {
        "total_variation": total_variation(first, second),
        "expected_total_variation": expected_variation(first, second),
        f"head_{what}": int(np.count_nonzero(chosen)),
        "head_share_train": float(first[chosen].sum() / first.sum()),
        "head_share_test": count / total,
        **statistics,
    }
    text = (
        "The {head:,} most {how} {what} of train have {head_share_train:.1%} of train and "
        "{head_share_test:.1%} of test. Total variation distance {total_variation:.3f} (by chance "
        "{expected_total_variation:.3f}). " + effect
    ).format(head=numbers[f"head_{what}"], how=how, what=what, **numbers)
    described = f"interactions of test with the most {how} {what} of train (80% of train)"
    return counted(count, total, (), described, "fact", text, text, numbers)


def total_variation(first: Int64, second: Int64) -> float:
    """Return the total variation distance of two distributions, given as counts.

    It is half the sum of |p_i - q_i|. This is the share of the interactions that would have to move
    to other items (or users) to turn one distribution into the other. 0 means equal shares, and 1
    means nothing in common. Neither distribution may be all zero.
    """
    return float(np.abs(first / int(first.sum()) - second / int(second.sum())).sum() / 2)


def expected_variation(first: Int64, second: Int64) -> float:
    """Return the expected total variation distance if the same rows were split at random.

    If each of the c_i rows of an item goes to the second side with probability
    f = n_2 / (n_1 + n_2), their number T_i is binomial, and the distance is expected to be
    (1/n_1 + 1/n_2) / 2 times the sum of E|T_i - c_i f|, where
    E|T - c f| = 2 v C(c, v) f^v (1 - f)^(c - v + 1) with v = floor(c f) + 1
    (De Moivre 1730; Diaconis & Zabell 1991, Closed form summation for classical distributions,
    Statistical Science 6(3)). Neither distribution may be all zero.
    """
    from scipy.special import gammaln

    n_first, n_second = int(first.sum()), int(second.sum())
    counts, times = np.unique(first + second, return_counts=True)
    share = n_second / (n_first + n_second)
    successes = np.floor(counts * share) + 1
    # C(c, v) is 0 if v exceeds c, which only happens if c is 0.
    counts, times, successes = counts[counts > 0], times[counts > 0], successes[counts > 0]
    logarithm = (
        gammaln(counts + 1)
        - gammaln(successes + 1)
        - gammaln(counts - successes + 1)
        + successes * np.log(share)
        + (counts - successes + 1) * np.log1p(-share)
    )
    deviation = 2 * successes * np.exp(logarithm)
    return float((1 / n_first + 1 / n_second) / 2 * (times * deviation).sum())


def head(counts: Int64) -> Bool:
    """Return the head: the smallest set of items (or users) with 80% of the interactions.

    It includes all items as frequent as its last item, as in the metric tail_share.
    """
    falling = np.sort(counts)[::-1]
    # Compute with integers, so that 80% is exact.
    needed = 5 * (np.cumsum(falling) - falling) < 4 * falling.sum()
    chosen: Bool = counts >= falling[needed].min()
    return chosen


def _ask_about(of_test: ids.Ids | None, of_train: ids.Ids | None) -> str:
    """Return the question for the user whether both sides write ids in the same way."""
    if of_test is None or of_train is None:
        return "do the positions of both sides mean the same?"
    return (
        f"are ids written the same way? Those of test are such as {ids.show(of_test, 0)}, those of "
        f"train such as {ids.show(of_train, 0)}."
    )


def _against_own(
    sides: Sides, compare: np.ufunc, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return a finding that compares times in test with each user's newest time in train."""
    if sides.train.times is None or sides.test.times is None:
        return _without_times(sides, what)
    last, known = newest(sides.train)
    trained = (sides.users >= 0) & known[sides.users]
    chosen = trained[sides.user] & compare(sides.test.times, last[sides.users][sides.user])
    return _of_rows(sides, chosen, what, level, found, clear)


def _without_times(sides: Sides, what: str) -> Finding:
    """Say which sides have no times."""
    both = (("train", sides.train), ("test", sides.test))
    missing = [name for name, data in both if data.times is None]
    have = "have" if len(missing) > 1 else "has"
    return unchecked(what, f"{' and '.join(missing)} {have} no times.", len(sides.test))


def _of_rows(
    sides: Sides,
    chosen: Bool,
    what: str,
    level: Level,
    found: str,
    clear: str,
    total: int | None = None,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return the finding of some rows of test, bool [len(test)], out of `total` or all rows."""
    rows = np.flatnonzero(chosen)
    few = rows[:EXAMPLES]
    users = examples_at(sides.user[few], sides.test.user_ids)
    examples = zip(users, examples_at(sides.test.items[few], sides.test.item_ids), strict=True)
    n = len(chosen) if total is None else total
    return counted(len(rows), n, tuple(examples), what, level, found, clear, statistics)


def _of_users(
    sides: Sides, chosen: Bool, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return the finding of some users of test, bool [test.n_users], out of all tested users."""
    total = int(np.count_nonzero(sides.tested))
    return among(chosen, sides.test.user_ids, what, level, found, clear, total)
