"""Checks of how far test is from train."""

from __future__ import annotations

from typing import Any

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing._sides import Sides
from recometer.auditing.findings import Finding, counted
from recometer.data.sessions import are_pairs, clusters_of


def total_variation(first: Int64, second: Int64, times: Int64 | int = 1) -> float:
    """Return the total variation distance of two distributions, given as counts.

    It is half the sum of |p_i - q_i|, which is the share of the interactions of one distribution
    that would have to move to other items (or users) to give the other. 0 means equal shares, and
    1 means nothing in common. Neither distribution may be all zero. `times` says how many items
    (or users) have each pair of counts.
    """
    n_first, n_second = (int((counts * times).sum()) for counts in (first, second))
    return float((times * np.abs(first / n_first - second / n_second)).sum() / 2)


def expected_variation(first: Int64, second: Int64, repeated: Int64 | int = 1) -> float:
    """Return the expected total variation distance if the same rows had been split at random.

    If each of the c_i rows of an item goes to the second side with probability
    f = n_2 / (n_1 + n_2), their number T_i is binomial, and the distance is expected to be
    (1/n_1 + 1/n_2) / 2 times the sum of E|T_i - c_i f|, where
    E|T - c f| = 2 v C(c, v) f^v (1 - f)^(c - v + 1) with v = floor(c f) + 1
    (De Moivre 1730; Diaconis & Zabell 1991, Closed form summation for classical distributions,
    Statistical Science 6(3)). Neither distribution may be all zero. `repeated` is `times` of
    `total_variation`.
    """
    from scipy.special import gammaln

    n_first, n_second = (int((counts * repeated).sum()) for counts in (first, second))
    counts, at = np.unique(first + second, return_inverse=True)
    times = np.bincount(at, np.broadcast_to(repeated, len(at))).astype(np.int64)
    share = n_second / (n_first + n_second)
    successes = np.floor(counts * share) + 1
    # C(c, v) is 0 where v exceeds c, which is only where c is 0.
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

    Items that are as frequent as the last of them belong to it as well, as in the metric
    tail_share. `times` says how many items have each count.
    """
    order = np.argsort(-counts, kind="stable")
    falling = (counts * times)[order]
    # In whole numbers, so that 80% is exact.
    needed = 5 * (np.cumsum(falling) - falling) < 4 * falling.sum()
    chosen: Bool = counts >= counts[order][needed].min()
    return chosen


def popularity_shift(sides: Sides) -> Finding:
    """How differently the interactions of train and test spread over the items."""
    return of_items(*_beside(sides.item_counts, sides.item_counts_of_test, sides.items))


def of_items(first: Int64, second: Int64, times: Int64 | int = 1) -> Finding:
    """Return the finding for items from counts in train and test; `times` items have each."""
    effect = "The further apart they are, the less popularity in train says about test."
    return _shift("items", "popular", first, second, times, effect, {})


def activity_shift(sides: Sides) -> Finding:
    """How differently the interactions of train and test spread over the users."""
    of_train, of_test = np.diff(sides.train.indptr), np.diff(sides.test.indptr)
    users = sides.users
    whose = clusters_of(sides.test.user_ids)
    if whose is not None and not are_pairs(sides.train.user_ids):
        # Train is of users, to whom all of their sessions in test belong.
        of_test = np.bincount(whose, of_test).astype(np.int64)
        users = users[np.unique(whose, return_index=True)[1]]
    return of_users(*_beside(of_train, of_test, users))


def of_users(first: Int64, second: Int64, times: Int64 | int = 1) -> Finding:
    """Return the finding for users from counts in train and test; `times` users have each."""

    def mean(counts: Int64, chosen: Bool) -> float:
        each = np.broadcast_to(times, len(counts))[chosen]
        return float((counts[chosen] * each).sum() / each.sum())

    tested, active = second > 0, first > 0
    statistics = {
        "training_per_tested_user": mean(first, tested),
        "training_per_user": mean(first, active),
        "test_per_tested_user": mean(second, tested),
    }
    effect = (
        "A user of test has {training_per_tested_user:.1f} interactions in train on average, a "
        "user of train {training_per_user:.1f}; means over users weigh each the same."
    )
    return _shift("users", "active", first, second, times, effect, statistics)


def _beside(of_train: Int64, of_test: Int64, matched: Int64) -> tuple[Int64, Int64]:
    """Return the counts of both sides in the same order: those of train, then the others."""
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
    times: Int64 | int,
    effect: str,
    statistics: dict[str, float],
) -> Finding:
    chosen, each = head(first, times), np.broadcast_to(times, len(first))
    all_first, all_second = first * each, second * each
    total = int(all_second.sum())
    count = int(all_second[chosen].sum())
    numbers: dict[str, Any] = {
        "total_variation": total_variation(first, second, times),
        "expected_total_variation": expected_variation(first, second, times),
        f"head_{what}": int(each[chosen].sum()),
        "head_share_train": float(all_first[chosen].sum() / all_first.sum()),
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
