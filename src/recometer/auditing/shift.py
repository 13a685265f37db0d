"""The distance of two distributions of interactions, and its expected value by chance."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Bool, Int64


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
