"""The checks of an audit: leakage, users and items that cannot be evaluated, and shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing.facts import Counts, Facts
from recometer.auditing.findings import Finding, Level, counted, unchecked
from recometer.errors import argument_text

UNDEFINED = "their metrics are undefined, and they are not in the mean"


def overlap(facts: Facts) -> Finding:
    """Pairs of user and item that are in both test and train."""
    effect = (
        "The model has learnt them. Counted as hits they flatter it; left out, as evaluate does "
        f"with {argument_text('train')}, they make test smaller."
    )
    statistics: dict[str, float] = {}
    if not facts.untimed:
        statistics["same_time"] = facts.counts["same_time"]
        effect += f" {facts.counts['same_time']:,} of them have the same time on both sides."
    return _finding(
        facts,
        "overlap",
        "interactions of test that are also in train",
        "leakage",
        effect,
        "No pair of user and item is on both sides.",
        statistics=statistics,
    )


def older_than_own_training(facts: Facts) -> Finding:
    """Interactions of test that precede an interaction of the same user in train."""
    return _finding(
        facts,
        "older_than_own_training",
        "interactions of test older than the user's newest in train",
        "leakage",
        "The model knows what these users did later, and guesses the past from the future: the "
        "result is better than it will be in use.",
        "No user's test is older than the user's newest interaction in train.",
    )


def older_than_training(facts: Facts) -> Finding:
    """Interactions of test that precede an interaction of any user in train."""
    newer = facts.counts.get("training_newer", 0)
    return _finding(
        facts,
        "older_than_training",
        "interactions of test older than anyone's newest in train",
        "leakage",
        "The model knows tastes and items of a later time than it is tested on: "
        f"{newer:,} interactions of train ({newer / facts.counts['train']:.1%}) are newer than the "
        "oldest of test. A split at one time for all users avoids it.",
        "Nothing in test is older than the newest interaction of train.",
        statistics={"training_newer": newer},
    )


def same_time(facts: Facts) -> Finding:
    """Interactions of test at the same time as the user's newest interaction in train."""
    return _finding(
        facts,
        "same_time",
        "interactions of test at the time of the user's newest in train",
        "fact",
        "Time does not say which came first: a rule decided which of them are tested.",
        "Time alone says what came first.",
    )


def train_duplicates(facts: Facts) -> Finding:
    """Rows of train that repeat a pair of user and item."""
    return _duplicates(facts, "train")


def test_duplicates(facts: Facts) -> Finding:
    """Rows of test that repeat a pair of user and item."""
    return _duplicates(facts, "test")


def unseen_users(facts: Facts) -> Finding:
    """Users of test without an interaction in train."""
    effect = (
        "Nothing is known of them (cold start): they get the same list as any unknown user, or "
        "none, and lower the mean, unless the rule cold_start leaves them out."
    )
    if facts.found["unseen_users"].n == facts.counts["tested"]:
        effect += f" That is everyone: {_ask_about(facts, 'user')}"
    return _of_tested_users(
        facts,
        "unseen_users",
        "without an interaction in train",
        effect,
        "Every user of test has interactions in train.",
    )


def unseen_items(facts: Facts) -> Finding:
    """Items of test without an interaction in train."""
    effect = "No model that learns only from interactions can tell which users they suit."
    total = _total(facts.items, 1)
    if facts.found["unseen_items"].n == total:
        effect += f" That is all of them: {_ask_about(facts, 'item')}"
    return _finding(
        facts,
        "unseen_items",
        "items of test without an interaction in train",
        "warning",
        effect,
        "Every item of test has interactions in train.",
        total=total,
    )


def unreachable(facts: Facts) -> Finding:
    """Relevant interactions with items that train does not have."""
    total = facts.counts["relevant"]
    best = 1 - facts.found["unreachable"].n / max(total, 1)
    return _finding(
        facts,
        "unreachable",
        "relevant interactions of test with such items",
        "warning",
        "A model that lists only items of train misses them all: it finds at most "
        f"{best:.1%} of what is relevant.",
        "Everything relevant in test could be found by a model of train's items.",
        total=total,
    )


def users_without_relevant(facts: Facts) -> Finding:
    """Users of test without a relevant interaction."""
    return _of_tested_users(
        facts,
        "users_without_relevant",
        "without a relevant interaction",
        f"They have nothing that could be found: {UNDEFINED}.",
        "Every user of test has something relevant there.",
    )


def users_emptied(facts: Facts) -> Finding:
    """Users of test whose relevant interactions are all in train as well."""
    return _of_tested_users(
        facts,
        "users_emptied",
        "whose relevant interactions are all in train",
        f"Once what is in train is left out, nothing can be found: {UNDEFINED}.",
        "No user of test loses everything relevant to train.",
    )


def users_without_candidates(facts: Facts) -> Finding:
    """Users of test with too few candidates."""
    least = facts.rules.min_candidates
    return _of_tested_users(
        facts,
        "users_without_candidates",
        f"with fewer than {least:,} items left to rank",
        f"They have nearly every item in train already: {UNDEFINED} (the rule min_candidates).",
        "Everyone else has enough items to rank.",
    )


def users_few_relevant(facts: Facts) -> Finding:
    """Users of test with relevant interactions, but fewer than the rule requires."""
    least = facts.rules.min_positives
    return _of_tested_users(
        facts,
        "users_few_relevant",
        f"with fewer than {least:,} relevant interactions left",
        f"Too little to go by: {UNDEFINED} (the rule min_positives).",
        "Everyone else has enough that is relevant.",
    )


def untested_users(facts: Facts) -> Finding:
    """Users of train without an interaction in test."""
    return _finding(
        facts,
        "untested_users",
        "users of train without an interaction in test",
        "fact",
        "The result says nothing about them: it is that of the users of test.",
        "Every user of train is tested.",
        total=_total(facts.users, 0),
    )


def _duplicates(facts: Facts, side: str) -> Finding:
    settled = "added up" if side in facts.valued else "counted once"
    name = f"{side}_duplicates"
    return _finding(
        facts,
        name,
        f"rows of {side} that repeat a pair of user and item",
        "warning",
        f"Here they were {settled}. If they are kept, they weigh "
        f"{'in training' if side == 'train' else 'in the metrics'} as often as they occur.",
        f"No pair of user and item is in {side} twice.",
        total=facts.counts[side] + facts.found[name].n,
    )


def popularity_shift(facts: Facts) -> Finding:
    """How differently the interactions of train and test are distributed over items."""
    effect = "The larger the distance, the less popularity in train says about test."
    return _shift("items", "popular", facts.items, effect)


def activity_shift(facts: Facts) -> Finding:
    """How differently the interactions of train and test are distributed over users."""
    effect = (
        "A user of test has {training_per_tested_user:.1f} interactions in train on average, a "
        "user of train {training_per_user:.1f}; means over users weigh each the same."
    )
    return _shift("users", "active", facts.users, effect)


def _shift(what: str, how: str, counts: Counts, effect: str) -> Finding:
    """Return the finding from the counts in train and test of all items, or of all users."""
    first, second = np.array(sorted(counts)).T
    times = np.array([counts[pair] for pair in sorted(counts)])
    chosen = head(first, times)
    of_train, of_test = first * times, second * times
    total, count = int(of_test.sum()), int(of_test[chosen].sum())
    numbers: dict[str, Any] = {
        "total_variation": total_variation(first, second, times),
        "expected_total_variation": expected_variation(first, second, times),
        f"head_{what}": int(times[chosen].sum()),
        "head_share_train": float(of_train[chosen].sum() / of_train.sum()),
        "head_share_test": count / total,
    }
    if what == "users":
        tested, trained = second > 0, first > 0
        numbers["training_per_tested_user"] = float(of_train[tested].sum() / times[tested].sum())
        numbers["training_per_user"] = float(of_train.sum() / times[trained].sum())
        numbers["test_per_tested_user"] = float(total / times[tested].sum())
    text = (
        "The {head:,} most {how} {what} of train have {head_share_train:.1%} of train and "
        "{head_share_test:.1%} of test. Total variation distance {total_variation:.3f} (by chance "
        "{expected_total_variation:.3f}). " + effect
    ).format(head=numbers[f"head_{what}"], how=how, what=what, **numbers)
    described = f"interactions of test with the most {how} {what} of train (80% of train)"
    return counted(count, total, (), described, "fact", text, text, numbers)


def total_variation(first: Int64, second: Int64, times: Int64 | int = 1) -> float:
    """Return the total variation distance of two distributions, given as counts.

    It is half the sum of |p_i - q_i|. This is the share of the interactions that would have to move
    to other items (or users) to turn one distribution into the other. 0 means equal shares, and 1
    means nothing in common. Neither distribution may be all zero. Entry i counts `times[i]` times.
    """
    differences = first / int((first * times).sum()) - second / int((second * times).sum())
    # Rounded once, so that the order of the entries does not matter.
    return math.fsum((times * np.abs(differences)).tolist()) / 2


def expected_variation(first: Int64, second: Int64, times: Int64 | int = 1) -> float:
    """Return the expected total variation distance if the same rows were split at random.

    If each of the c_i rows of an item goes to the second side with probability
    f = n_2 / (n_1 + n_2), their number T_i is binomial, and the distance is expected to be
    (1/n_1 + 1/n_2) / 2 times the sum of E|T_i - c_i f|, where
    E|T - c f| = 2 v C(c, v) f^v (1 - f)^(c - v + 1) with v = floor(c f) + 1
    (De Moivre 1730; Diaconis & Zabell 1991, Closed form summation for classical distributions,
    Statistical Science 6(3)). Neither distribution may be all zero. Entry i counts `times[i]`
    times.
    """
    from scipy.special import gammaln

    n_first, n_second = int((first * times).sum()), int((second * times).sum())
    counts, where = np.unique(first + second, return_inverse=True)
    times = np.bincount(where, np.broadcast_to(times, len(where)))
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


def head(counts: Int64, times: Int64 | int = 1) -> Bool:
    """Return the head: the smallest set of items (or users) with 80% of the interactions.

    It includes all items as frequent as its last item, as in the metric tail_share. Entry i counts
    `times[i]` times.
    """
    order = np.argsort(-counts)
    falling = (counts * times)[order]
    # Compute with integers, so that 80% is exact.
    needed = 5 * (np.cumsum(falling) - falling) < 4 * falling.sum()
    chosen: Bool = counts >= counts[order][needed].min()
    return chosen


def _ask_about(facts: Facts, kind: str) -> str:
    """Return a question to the user: whether both sides write ids in the same way."""
    of_test, of_train = facts.first("test", kind), facts.first("train", kind)
    if of_test is None or of_train is None:
        return "do the positions of both sides mean the same?"
    return (
        f"are ids written the same way? Those of test are such as {of_test}, those of train such "
        f"as {of_train}."
    )


def _finding(
    facts: Facts,
    name: str,
    what: str,
    level: Level,
    found: str,
    clear: str,
    *,
    total: int | None = None,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return the finding of a check, as a part of `total` (by default, the test rows).

    If the check was not possible, the finding says which sides have no times.
    """
    total = facts.counts["test"] if total is None else total
    if name in facts.found:
        n, examples = facts.found[name]
        return counted(n, total, examples, what, level, found, clear, statistics)
    have = "have" if len(facts.untimed) > 1 else "has"
    return unchecked(what, f"{' and '.join(facts.untimed)} {have} no times.", total)


def _of_tested_users(facts: Facts, name: str, which: str, found: str, clear: str) -> Finding:
    """Return the finding of a check on test users. Such a finding is a warning."""
    total = facts.counts["tested"]
    return _finding(facts, name, f"users of test {which}", "warning", found, clear, total=total)


def _total(counts: Counts, side: int) -> int:
    """Return how many items or users have interactions in train (0) or in test (1)."""
    return sum(times for pair, times in counts.items() if pair[side])
