"""The checks of an audit: leakage, users and items that cannot be evaluated, and shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing.facts import Counts, Facts
from recometer.auditing.findings import Finding, Level, counted, unchecked
from recometer.errors import argument_text

UNDEFINED = "their metrics are undefined, and they are not in the mean"


class Check(NamedTuple):
    """A check that counts rows, users or items of `Facts.found`.

    `what` and `found` (the sentence if something is found) are templates for `_numbers`; `clear` is
    the sentence otherwise. The count is part of the number `of`, and `statistics` names further
    numbers of the finding.
    """

    name: str
    what: str
    level: Level
    found: str
    clear: str
    of: str = "test"
    statistics: tuple[str, ...] = ()

    def finding(self, facts: Facts, numbers: Mapping[str, Any]) -> Finding:
        """Return the finding, or say which sides lack the times for it."""
        what, total = self.what.format_map(numbers), numbers[self.of]
        if self.name not in facts.found:
            have = "have" if len(facts.untimed) > 1 else "has"
            why = f"{' and '.join(facts.untimed)} {have} no times."
            return unchecked(what, why, total, name=self.name)
        n, examples = facts.found[self.name]
        statistics = {name: numbers[name] for name in self.statistics if name in numbers}
        found = self.found.format_map(numbers)
        return counted(
            n, total, examples, what, self.level, found, self.clear, statistics, name=self.name
        )


# Findings have this order, followed by the shifts.
CHECKS = (
    Check(
        "overlap",
        "interactions of test that are also in train",
        "leakage",
        "The model has seen them. Counted as hits, they flatter it; left out, as evaluate does "
        "with {train_argument}, they make test smaller.{with_same_time}",
        "No pair of user and item is on both sides.",
        statistics=("same_time",),
    ),
    Check(
        "older_than_own_training",
        "interactions of test older than the user's newest in train",
        "leakage",
        "The model knows what these users did later, and predicts the past from the future: the "
        "result is better than it will be in use.",
        "No user's test is older than the user's newest interaction in train.",
    ),
    Check(
        "older_than_training",
        "interactions of test older than anyone's newest in train",
        "leakage",
        "The model knows tastes and items of a later time than it is tested on: "
        "{training_newer:,} interactions of train ({newer_share:.1%}) are newer than the oldest of "
        "test. A split at one time for all users avoids it.",
        "Nothing in test is older than the newest interaction of train.",
        statistics=("training_newer",),
    ),
    Check(
        "same_time",
        "interactions of test at the time of the user's newest in train",
        "fact",
        "Time does not say which came first: a rule decided which of them are tested.",
        "The times say what came first.",
    ),
    *(
        Check(
            f"{side}_duplicates",
            f"rows of {side} that repeat a pair of user and item",
            "warning",
            f"Here they were {{{side}_settled}}. If they are kept, they weigh {where} as often as "
            "they occur.",
            f"No pair of user and item is in {side} twice.",
            of=f"{side}_rows",
        )
        for side, where in (("train", "in training"), ("test", "in the metrics"))
    ),
    Check(
        "unseen_users",
        "test users without an interaction in train",
        "warning",
        "Nothing is known about them (cold start): they get the same list as any unknown user, or "
        "none, and lower the mean, unless the rule cold_start leaves them out.{if_all_users}",
        "Every user of test has interactions in train.",
        of="tested",
    ),
    Check(
        "unseen_items",
        "items of test without an interaction in train",
        "warning",
        "No model that learns only from interactions can tell which users they suit.{if_all_items}",
        "Every item of test has interactions in train.",
        of="items_tested",
    ),
    Check(
        "unreachable",
        "relevant interactions of test with such items",
        "warning",
        "A model that lists only training items misses them all: it finds at most {best:.1%} of "
        "what is relevant.",
        "A model that lists only training items can find everything relevant in test.",
        of="relevant",
    ),
    Check(
        "users_without_relevant",
        "test users without a relevant interaction",
        "warning",
        f"They have nothing that could be found: {UNDEFINED}.",
        "Every test user has a relevant interaction.",
        of="tested",
    ),
    Check(
        "users_emptied",
        "test users whose relevant interactions are all in train",
        "warning",
        f"Once what is in train is left out, nothing can be found: {UNDEFINED}.",
        "No test user has all relevant interactions in train as well.",
        of="tested",
    ),
    Check(
        "users_without_candidates",
        "test users with fewer than {min_candidates:,} items left to rank",
        "warning",
        f"They have nearly every item in train already: {UNDEFINED} (the rule min_candidates).",
        "Everyone else has enough items to rank.",
        of="tested",
    ),
    Check(
        "users_few_relevant",
        "test users with fewer than {min_positives:,} relevant interactions left",
        "warning",
        f"Too little to go by: {UNDEFINED} (the rule min_positives).",
        "Everyone else has enough relevant interactions.",
        of="tested",
    ),
    Check(
        "untested_users",
        "users of train without an interaction in test",
        "fact",
        "The result says nothing about them: it only covers the test users.",
        "Every user of train is tested.",
        of="users_trained",
    ),
)
LEAKAGE = tuple(check.name for check in CHECKS if check.level == "leakage")
"""The names of the findings that can be leakage."""


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of all checks, and the shifts of popularity and activity."""
    numbers = _numbers(facts)
    return (
        *(check.finding(facts, numbers) for check in CHECKS),
        _shift(
            "popularity_shift",
            "items",
            "popular",
            facts.items,
            "The larger the distance, the less popularity in train says about test.",
        ),
        _shift(
            "activity_shift",
            "users",
            "active",
            facts.users,
            "A user of test has {training_per_tested_user:.1f} interactions in train on average, a "
            "user of train {training_per_user:.1f}; means over users weigh each the same.",
        ),
    )


def _numbers(facts: Facts) -> dict[str, Any]:
    """Return the numbers and parts of sentences for the templates of `Check`, by name."""
    counts, n_found = facts.counts, {name: some.n for name, some in facts.found.items()}
    items_tested = _total(facts.items, 1)
    numbers: dict[str, Any] = {
        **counts,
        "train_argument": argument_text("train"),
        "with_same_time": "",
        "newer_share": counts.get("training_newer", 0) / counts["train"],
        "items_tested": items_tested,
        "users_trained": _total(facts.users, 0),
        "if_all_users": "",
        "if_all_items": "",
        "best": 1 - n_found["unreachable"] / max(counts["relevant"], 1),
        "min_candidates": facts.rules.min_candidates,
        "min_positives": facts.rules.min_positives,
    }
    if "same_time" in counts:
        same = f" {counts['same_time']:,} of them have the same time on both sides."
        numbers["with_same_time"] = same
    if n_found["unseen_users"] == counts["tested"]:
        numbers["if_all_users"] = f" That is everyone: {_ask_about(facts, 'user')}"
    if n_found["unseen_items"] == items_tested:
        numbers["if_all_items"] = f" That is all of them: {_ask_about(facts, 'item')}"
    for side in ("train", "test"):
        numbers[f"{side}_rows"] = counts[side] + n_found[f"{side}_duplicates"]
        numbers[f"{side}_settled"] = "added up" if side in facts.valued else "counted once"
    return numbers


def _shift(name: str, what: str, how: str, counts: Counts, effect: str) -> Finding:
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
    return counted(count, total, (), described, "fact", text, text, numbers, name=name)


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


def _total(counts: Counts, side: int) -> int:
    """Return how many items or users have interactions in train (0) or in test (1)."""
    return sum(times for pair, times in counts.items() if pair[side])
