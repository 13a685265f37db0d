"""Compute tail probabilities of sums of independent terms, and find roots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.tasks import check_cancelled

NEAR_THE_MEAN = 1e-4  # for smaller |w|, skewness / 6 replaces log(u / w) / w
PRECISION = 1e-9  # `increasing_root` stops when the function is this close to its target
STEPS = 200  # the maximum number of steps of `increasing_root`
FAR = 1e18  # `increasing_root` gives up beyond this multiple of the first guess
MOST_MULTIPLES = 10_000  # the largest size is at most this multiple of the common unit
MOST_SIZES = 64  # `multiples_of_unit` does not look for a unit if there are more sizes than this
SAME = 1e-9  # sizes may differ from multiples of the unit by up to this share of the largest size
MOST_WORK = 2**21  # maximum number of terms of the characteristic function
TILT_PRECISION = 1e-11  # `tilt` stops when t increases by at most this share
DEVIATIONS = 40.0  # width of the window of sums, in standard deviations of the tilted sum
ROUNDING = 1e-12  # numbers count as equal if they differ by at most this share of the largest one


def normal_quantile_of(w: float, u: float, skewness: float = 0.0) -> float:
    """Return r for which Φ(r) is a tail probability, by Barndorff-Nielsen's saddlepoint formula.

    The formula is r = w + log(u / w) / w. Let t be the saddlepoint and K the cumulant generating
    function. Then w is the signed root of twice the exponent at t, and u = t · √K''(t). At the
    mean, where w and u are 0, the Edgeworth expansion gives Φ(r) = 1/2 + κ3 / (6 √(2π)) with the
    skewness κ3, so r ≈ κ3 / 6. Barndorff-Nielsen, "Approximate interval probabilities", Journal of
    the Royal Statistical Society B 52, 1990; Reid, "Saddlepoint methods and statistical inference",
    Statistical Science 3, 1988.
    """
    ratio = u / w if abs(w) > NEAR_THE_MEAN else 0.0
    return w + (float(np.log(ratio)) / w if ratio > 0 else skewness / 6)


def increasing_root(
    function: Callable[[float], float], target: float, start: float
) -> float | None:
    """Return the x > 0 at which an increasing function reaches `target` > 0, or None.

    The function must be close to 0 at 0 and nearly proportional to x; it may jump, and be infinite
    or NaN for large x. `start` is a first guess at x. The search takes secant steps within a
    bracket. (SciPy's root finders work just as well if the root lies in a known range, but
    importing them takes longer than computing all intervals of an evaluation.)
    """
    x, below, above = start, 0.0, np.inf
    last_x = last_value = 0.0
    for _ in range(STEPS):
        check_cancelled()
        value = function(x)
        if not np.isfinite(value):
            value = np.inf
        missing = target - value
        if abs(missing) <= PRECISION:
            return x
        below, above = (x, above) if missing > 0 else (below, x)
        slope = (value - last_value) / (x - last_x)
        nearer = min(x + missing / slope, 8 * x) if slope else np.nan
        if not below < nearer < above:  # also true if the slope is negative or infinite
            nearer = min((below + above) / 2, 4 * x)
        if nearer in (below, above):
            return nearer
        if nearer > FAR * start:
            return None
        last_x, last_value, x = x, value, nearer
    return x


def tilt(mean: float, sizes: Float64 | Int64, times: Float64) -> tuple[float, float, float]:
    """Tilt random signs so that Σ ±size has a given mean, between 0 and the sum of all sizes.

    Return t, t·mean - K(t) and K''(t), where t is the tilt, which makes the odds of a plus
    e^(2·t·size), and K(t) = Σ log cosh(t·size). Newton's method solves K'(t) = mean for t. K' is
    concave for t above 0, so its tangents reach the mean before K' does, and no step goes beyond
    the root.
    """
    t = mean / float(times @ sizes**2)
    while True:
        e = np.exp(-2 * t * sizes)
        shares = sizes / (1 + e)
        slope, variance = float(times @ (shares * (1 - e))), float(times @ (4 * e * shares**2))
        step = (mean - slope) / variance
        if step <= TILT_PRECISION * t:
            break
        t += step
    k = float(times @ (t * sizes + np.log1p(e) - np.log(2)))
    return t, t * mean - k, variance


def enumerated(sizes: Float64, least: float) -> float:
    """Return the share of all assignments of signs for which Σ ±size is at least `least`.

    The function combines the sums of two halves of the sizes, so n sizes take 2 · 2^(n/2) sums
    instead of 2^n. Horowitz & Sahni, Journal of the ACM 21, 1974.
    """
    first, second = (all_sums(half) for half in np.array_split(sizes, 2))
    second.sort()
    enough = len(second) - np.searchsorted(second, least - first, side="left")
    return float(enough.sum()) / (len(first) * len(second))


def all_sums(sizes: Float64) -> Float64:
    """Return Σ ±size for all assignments of signs, as float64 [2^n]."""
    sums = np.array([0.0])
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def multiples_of_unit(sizes: Float64) -> Int64 | None:
    """Return ascending sizes as multiples of their common unit, or None if it is too small."""
    if len(sizes) > MOST_SIZES:
        return None
    off = SAME * sizes[-1]
    unit = float(sizes[0])
    for size in sizes[1:].tolist():
        larger, smaller = size, unit
        while smaller > off:
            larger, smaller = smaller, abs(larger - round(larger / smaller) * smaller)
        unit = larger
        if unit * MOST_MULTIPLES < sizes[-1]:
            return None
    multiples = np.rint(sizes / unit)
    # Computing the unit from the largest size gives the smallest rounding error.
    unit = float(sizes[-1] / multiples[-1])
    if (np.abs(sizes - multiples * unit) > off).any():
        return None
    return multiples.astype(np.int64)


def of_multiples(multiples: Int64, times: Float64, total: float) -> float | None:
    """Return the probability that Σ ±multiple is at least `total`, by convolution.

    The signs are tilted so that the mean of the sum is `total`. Even a far tail is then a sum of
    probabilities that are not small, and a single Fourier transform gives all of them. `total` must
    be a possible sum above 0. The result is None if the convolution would take too much work.
    """
    largest = float(multiples @ times)
    # All sums have the same parity as the largest one.
    total = largest - 2 * round((largest - total) / 2)
    n = float(times.sum())
    if total >= largest:
        return float(2.0**-n)

    t, exponent, variance = tilt(total, multiples, times)
    deviation = np.sqrt(variance) / 2  # of the sum of the sizes with a plus sign
    window = DEVIATIONS * (deviation + float(multiples[-1])) + 64
    length = int(min(largest + 1, window))
    if length * len(multiples) > MOST_WORK:
        return None
    from scipy.fft import next_fast_len

    length = next_fast_len(length, real=True)
    # After tilting, each multiple has a plus sign with probability `plus`. This determines the
    # characteristic function of the sum of all multiples with a plus sign, minus the observed sum.
    # All angles are multiples of 2π / length.
    plus = 1 / (1 + np.exp(-2 * t * multiples))
    turns = np.exp(-2j * np.pi * np.arange(length) / length)
    steps = np.arange(length // 2 + 1)
    function = turns[steps * -int((total + largest) / 2 % length) % length]
    for multiple, chance, count in zip(multiples.tolist(), plus, times, strict=True):
        function *= (1 - chance + chance * turns[steps * multiple % length]) ** count
    chances = np.fft.irfft(function, length)
    # Add up the chances of the observed sum and all larger ones; lower sums are at the end of the
    # window.
    upwards = int((largest - total) / 2 + 1)
    if length <= largest:
        upwards = min(upwards, (length + 1) // 2)
    tail = float(chances[:upwards] @ np.exp(-2 * t * np.arange(upwards)))
    return float(np.exp(-exponent)) * tail


def quantile_of(sizes: Float64, counts: Float64, total: float) -> float:
    """Return r with P(Σ ±size ≥ total) = 1 - Φ(r), by saddlepoint approximation.

    The approximation uses K(t) = Σ log cosh(t·size), the t with K'(t) = total, w = √(2 (t·total -
    K(t))) and u = t √K''(t).
    """
    sign, total = float(np.sign(total)), abs(total)
    if total >= float(counts @ sizes) * (1 - ROUNDING):
        # Only the assignment with all signs equal reaches this sum, so the probability is 2^-n.
        from scipy.special import ndtri_exp

        return -sign * float(ndtri_exp(-float(counts[sizes > 0].sum()) * np.log(2)))
    t, exponent, variance = tilt(total, sizes, counts)
    w = float(np.sqrt(max(0.0, 2 * exponent)))
    return sign * normal_quantile_of(w, t * float(np.sqrt(variance)))


def of_each_size(sizes: Float64, times: Float64) -> tuple[Float64, Float64]:
    """Sort sizes, merge those that differ only by rounding, and add up their counts."""
    order = np.argsort(sizes, kind="stable")
    sizes, times = sizes[order], times[order]
    starts = np.flatnonzero(np.diff(sizes, prepend=-np.inf) > ROUNDING * sizes[-1])
    return sizes[starts], np.add.reduceat(times, starts)
