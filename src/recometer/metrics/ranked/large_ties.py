"""Expected reciprocal rank (ERR) of large tied groups, computed as an integral."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64

Complex128 = npt.NDArray[np.complex128]

STEP = 0.25  # step width of both integrals; their error is at most about exp(-9.8 / STEP)
END = 42.0  # upper limit of both integrals; exp(-END) is smaller than a rounding error
FEW = 64  # `_few` keeps up to this many distinct probabilities as they are
NODES = 14  # number of nodes of the polynomials that `_few` uses
ANGLES = np.arange(66)  # `_angles` returns these multiples of an angle
HALVINGS = 40


def of_large_tie(start: int, size: int, places: int, content: Float64) -> float:
    """Return what a group's first places add to ERR if no item above the group satisfied the user.

    Let every item of the group arrive at a random time in (0, 1). The probability that no item
    that arrived before time c satisfies the user is ``S(c)``: the mean over all sets of `places`
    items of the product of ``1 - c q``. Write ``1 / rank`` as the integral of ``x^(rank - 1)``. The
    sum over the places is then the integral over c of ``-S'(c) K(c)``, where
    ``K(c) = c^start * integral over v of v^(places + start) / (1 - (1 - c) v)^(start + 1)``. Both
    integrals run from 0 to 1. Neither integrand changes sign, so no digits cancel. The work does
    not depend on the size of the group.

    Parameters
    ----------
    start, size, places
        How many places are above the group, how many items are in it, and how many of its places
        count.
    content
        For each judged item, the probability q, in [0, 1], that it satisfies the user. For all
        other items, q is 0.
    """
    q, count = _few(content)
    if not len(q):
        return 0.0
    # Use the trapezoidal rule in the logit of c; the integrand varies over a width of about 1.
    logit = np.arange(-END - np.log(places), END, STEP)
    c, complement = _logistic(logit), _logistic(-logit)
    if places == size:
        unsatisfied = complement[:, np.newaxis] + c[:, np.newaxis] * (1 - q)  # equals 1 - c q
        slope = np.exp(_log_of_product(c, q, unsatisfied) @ count) * ((q / unsatisfied) @ count)
    else:
        slope = _slope_of_sets(size, places, c, complement, q, count)
    return float(STEP * np.sum(c * complement * slope * _kernel(start, places, logit)))


def _logistic(x: Float64) -> Float64:
    result: Float64 = np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))
    return result


def _log_of_product(c: Float64, q: Float64, unsatisfied: Float64) -> Float64:
    """Return log(1 - c q): [n_c, n_q]."""
    product = c[:, np.newaxis] * q
    with np.errstate(divide="ignore"):  # np.where discards these entries
        result: Float64 = np.where(product < 0.5, np.log1p(-product), np.log(unsatisfied))
    return result


def _kernel(start: int, places: int, logit: Float64) -> Float64:
    """Return K(c), as defined in `of_large_tie`, for each c."""
    c, complement = _logistic(logit)[:, np.newaxis], _logistic(-logit)[:, np.newaxis]
    # Substitute v = 1 - e, and use the trapezoidal rule in the logit of e.
    inner = np.arange(logit[0] - END - np.log1p(start), END, STEP)
    logarithm = -np.logaddexp(0, -inner) - (places + start + 1) * np.logaddexp(0, inner)
    # c / (1 - (1 - c) v) = 1 / (1 + e (1 - c) / c)
    ratio = np.log1p(_logistic(inner) * (complement / c))
    values: Float64 = np.exp(logarithm - (start + 1) * ratio).sum(axis=1)
    return STEP * values / c[:, 0]


def _slope_of_sets(
    size: int, places: int, c: Float64, complement: Float64, q: Float64, count: Float64
) -> Float64:
    """Return -S'(c) for a group of which only some places count.

    The mean over sets of k of n items is the coefficient of z^k in ``prod (1 + (1 - c q) z)``,
    divided by the coefficient of z^k in ``(1 + z)^n``. Cauchy's integral gives both coefficients.
    The circles of integration are chosen so that each integrand is largest at real z.
    """
    share = places / size
    unsatisfied = complement[:, np.newaxis] + c[:, np.newaxis] * (1 - q)
    n_zero = size - count.sum()

    def chances(growth: Float64) -> tuple[Float64, Float64]:
        """Return the probability of being in the set for items with q = 0, and for each other q."""
        z = share * np.exp(growth)[:, np.newaxis]
        return (z / (1 - share + z))[:, 0], z * unsatisfied / (1 - share + z * unsatisfied)

    # The radius is exp(growth) times the radius for (1 + z)^n.
    low, high = np.zeros(len(c)), -np.log(unsatisfied.min(axis=1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        chance, of_q = chances(middle)
        below = n_zero * chance + of_q @ count < places
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    chance, of_q = chances(low)
    variance = n_zero * chance * (1 - chance) + (of_q * (1 - of_q)) @ count

    def over_sets(growth: Float64, variance: Float64, weighted: bool) -> Float64:
        angle, weight = _angles(np.sqrt(variance))
        turn = 2j * np.sin(angle / 2) * np.exp(0.5j * angle)  # equals exp(i angle) - 1
        more = np.expm1(growth)[:, np.newaxis]
        larger = more + (1 + more) * turn
        logarithm = size * _log1p(share * larger) - places * (growth[:, np.newaxis] + 1j * angle)
        sum_of_q: Complex128 | float = 1.0
        if weighted:
            part = share * (1 + larger) / (1 + share * larger)  # equals z / (1 + z)
            sum_of_q = np.zeros(angle.shape, np.complex128)
            for probability, n in zip(q.tolist(), count.tolist(), strict=True):
                product = part * (probability * c[:, np.newaxis])
                logarithm += n * _log1p(-product)
                sum_of_q += n * probability * part / (1 - product)
        integral: Float64 = (weight * np.exp(logarithm) * sum_of_q).real.sum(axis=1)
        return integral

    of_all = over_sets(np.zeros(1), np.array([places * (1 - share)]), weighted=False)
    return over_sets(low, variance, weighted=True) / of_all


def _log1p(x: Complex128) -> Complex128:
    """Return log(1 + x); NumPy's complex log1p loses precision if x is small."""
    real = np.log1p(x.real * (2 + x.real) + x.imag**2) / 2
    result: Complex128 = real + 1j * np.arctan2(x.imag, 1 + x.real)
    return result


def _angles(deviation: Float64) -> tuple[Float64, Float64]:
    """Return angles from 0 to where the integrand vanishes, and their weights in the integral."""
    n = np.ceil(14 * deviation + 64)[:, np.newaxis]
    angle = ANGLES * (2 * np.pi / n)
    weight = np.where(ANGLES == 0, 1.0, 2.0) / n
    weight = np.where(n == 2 * ANGLES, 1 / n, weight)
    return np.minimum(angle, np.pi), np.where(n < 2 * ANGLES, 0.0, weight)


def _few(content: Float64) -> tuple[Float64, Float64]:
    """Return a few weighted probabilities that replace all q in the sum of a smooth function.

    If there are many distinct q, those whose 1 - q differ by less than a factor of 2 are replaced
    by the nodes of a polynomial that interpolates the function divided by q.
    """
    q, times = np.unique(content[content > 0], return_counts=True)
    if len(q) <= FEW:
        return q, times.astype(np.float64)
    nodes, weights = [], []
    power = np.frexp(1 - q)[1]
    for exponent in np.unique(power):
        values, often = q[power == exponent], times[power == exponent]
        low, high = values[0], values[-1]
        if len(values) <= NODES:
            nodes.append(values)
            weights.append(often.astype(np.float64))
            continue
        place = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
        node = (low + high) / 2 + (high - low) / 2 * place
        basis = _basis((values - low) / (high - low) * 2 - 1, place)
        nodes.append(node)
        weights.append((often * values) @ basis / node)
    return np.concatenate(nodes), np.concatenate(weights)


def _basis(x: Float64, node: Float64) -> Float64:
    """Return the Lagrange polynomials of Chebyshev nodes, evaluated at x: [len(x), n_nodes]."""
    order = np.arange(len(node))
    of_x = np.cos(order * np.arccos(np.clip(x, -1, 1))[:, np.newaxis])
    of_node = np.cos(order[:, np.newaxis] * np.arccos(node))
    result: Float64 = of_x @ (of_node * np.where(order == 0, 1, 2)[:, np.newaxis]) / len(node)
    return result
