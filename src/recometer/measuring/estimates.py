"""Estimates of a function of an item's rank from its rank among sampled candidates.

The item has X of N others above it, x of the m that were drawn, and the rank ``head + X``. These
estimate ``f(head + X)`` by a function g of x (Krichene & Rendle 2020):

plug_in
    ``f(head + N x / m)``: N x / m is the unbiased estimate of X.
unbiased
    The g that minimises the sum over X of ``(E[g(x) | X] - f(head + X))²``: the least
    bias, with equal weights of all X. Its variance can be enormous.
cv
    The g that minimises the sum over X of ``(E[g(x) | X] - f(head + X))² + gamma Var[g(x) | X]``.

In matrices, with ``A[X, x] = P(x | X) / sqrt(N + 1)``, ``b[X] = f(head + X) / sqrt(N + 1)`` and
``c[x] = 1 / (m + 1)``, the last is ``((1 - gamma) A'A + gamma diag(c))⁻¹ A'b``, and "unbiased"
the same for gamma = 0. The m items are distinct, so P(x | X) is the hypergeometric distribution
(the paper draws with replacement: binomial, the same if m is much smaller than N). Its singular
vectors are the discrete Chebyshev (Gram) polynomials u_d on 0 .. N and v_d on 0 .. m:

    A = sum over d of sqrt(lambda_d / (m + 1)) u_d v_d'
    lambda_d = product over i < d of (m - i) (N + 2 + i) / ((N - i) (m + 2 + i))

so that nothing needs to be inverted:

    g(x) = sqrt((m + 1) / (N + 1)) * sum over d of
           sqrt(lambda_d) / ((1 - gamma) lambda_d + gamma) * (sum over X of u_d(X) f(X)) * v_d(x)

For "unbiased", components with lambda_d < 1e-12 are left out: the sample hardly shows them, and
they would be rounding errors magnified.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.sums import ratio

# Components of the estimate below this are noise: magnified by 1 / sqrt(lambda), or by
# sqrt(lambda) / gamma, which is less than 1e-17.
LEAST_UNBIASED = 1e-12
LEAST_CV = 1e-36


def estimates(
    sampled_before: Int64,
    drawn: Int64,
    others: Int64,
    head: Int64,
    limit: Int64,
    of_rank: Callable[[Float64], Float64],
    correction: str,
    gamma: float,
) -> Float64:
    """Estimate ``of_rank(head + X)``, 0 beyond `limit`, from x of m drawn items; see above.

    `sampled_before`, `drawn` and `others` are x, m and N. The rule ``"unbiased"`` is ``"cv"`` with
    gamma 0.
    """
    if correction == "plug_in":
        rank = head + others * sampled_before / np.maximum(drawn, 1)
        return np.where(rank <= limit, of_rank(rank), 0.0)
    gamma = gamma if correction == "cv" else 0.0
    result = np.zeros(len(head))
    for m in np.unique(drawn).tolist():
        rows = np.flatnonzero((drawn == m) & (head <= limit))
        if len(rows):
            result[rows] = _least_squares(
                sampled_before[rows], m, others[rows], head[rows], limit[rows], of_rank, gamma
            )
    return result


def _least_squares(
    sampled_before: Int64,
    drawn: int,
    others: Int64,
    head: Int64,
    limit: Int64,
    of_rank: Callable[[Float64], Float64],
    gamma: float,
) -> Float64:
    catalogues, which = np.unique(others, return_inverse=True)
    cases, case = np.unique(np.stack([which, head, limit]), axis=1, return_inverse=True)
    case = case.ravel()
    shrunk = _eigenvalues(drawn, catalogues, LEAST_CV if gamma else LEAST_UNBIASED)
    weight = np.sqrt((drawn + 1) / (catalogues + 1))[:, np.newaxis] * np.sqrt(shrunk)
    weight = ratio(weight, (1 - gamma) * shrunk + gamma)
    projected = _project(catalogues, cases, shrunk.shape[1], of_rank) * weight[cases[0]]
    table = _polynomials(drawn, shrunk.shape[1])
    value = np.zeros(len(sampled_before))
    for degree in range(shrunk.shape[1]):
        value += table[sampled_before, degree] * projected[case, degree]
    return value


def _eigenvalues(drawn: int, catalogues: Int64, least: float) -> Float64:
    """Return lambda_d for each N: float64 [n_catalogues, n_degrees], 0 where it is below."""
    columns = [np.ones(len(catalogues))]
    for i in range(drawn):
        step = (drawn - i) * (catalogues + 2 + i) / ((catalogues - i) * (drawn + 2 + i))
        column = columns[-1] * step
        if not (column >= least).any():
            break
        columns.append(column)
    values = np.stack(columns, axis=1)
    return np.where(values >= least, values, 0.0)


def _project(
    catalogues: Int64, cases: Int64, n_degrees: int, of_rank: Callable[[Float64], Float64]
) -> Float64:
    """Return the sum over X of u_d(X) f(head + X): float64 [n_cases, n_degrees].

    `cases` are which catalogue, head and limit. X and N - X are taken together, because u_d is
    even or odd; X ascends from the end where u_d grows, so that its recurrence is stable.
    """
    which, head, limit = cases
    last = np.minimum(catalogues[which], limit - head)
    half = np.minimum(last, catalogues[which] // 2)
    order = np.argsort(-half, kind="stable")
    which, head, last, half = which[order], head[order], last[order], half[order]
    n = catalogues[which]
    sign = (-1.0) ** np.arange(n_degrees)
    total = np.zeros((len(which), n_degrees))
    steps = _Steps(catalogues, n_degrees)
    reach = np.cumsum(np.bincount(half)[::-1])[::-1]  # how many cases reach each place
    for place, n_active in enumerate(reach.tolist()):
        active = slice(n_active)
        value = of_rank((head[active] + place).astype(np.float64))[:, np.newaxis]
        other = n[active] - place
        mirrored = (other > place) & (other <= last[active])
        if mirrored.any():
            beyond = of_rank((head[active] + other).astype(np.float64)) * mirrored
            value = value + sign * beyond[:, np.newaxis]
        total[active] += steps.current[which[active]] * value
        steps.forward()
    result = np.empty_like(total)
    result[order] = total
    return result


class _Steps:
    """Orthonormal discrete Chebyshev polynomials on 0 .. N, place by place up to the middle.

    Their difference equation: with ``a(x) = x (N + 1 - x)``,
    ``a(x + 1) u(x + 1) = (a(x) + a(x + 1) - d (d + 1)) u(x) - a(x) u(x - 1)``.
    """

    def __init__(self, sizes: Int64, n_degrees: int) -> None:
        self.sizes = sizes.astype(np.float64)[:, np.newaxis]
        degree = np.arange(n_degrees, dtype=np.float64)
        self.eigenvalue = degree * (degree + 1)
        square = [1 / (self.sizes[:, 0] + 1)]
        for d in range(1, n_degrees):
            step = (2 * d + 1) / (2 * d - 1) * (self.sizes[:, 0] + 1 - d)
            square.append(square[-1] * step / (self.sizes[:, 0] + 1 + d))
        self.current = np.sqrt(np.stack(square, axis=1))
        self.earlier = np.zeros_like(self.current)
        self.place = 0

    def forward(self) -> None:
        """Go on to the next place."""
        x = self.place
        here, there = x * (self.sizes + 1 - x), (x + 1) * (self.sizes - x)
        following = (here + there - self.eigenvalue) * self.current - here * self.earlier
        self.earlier, self.current = self.current, ratio(following, there)
        self.place += 1


@functools.lru_cache(maxsize=64)
def _polynomials(size: int, n_degrees: int) -> Float64:
    """Return v_d(x) for x = 0 .. size: float64 [size + 1, n_degrees]."""
    steps = _Steps(np.array([size]), n_degrees)
    table = np.empty((size + 1, n_degrees))
    sign = (-1.0) ** np.arange(n_degrees)
    for place in range(size // 2 + 1):
        table[size - place] = sign * steps.current[0]
        table[place] = steps.current[0]
        steps.forward()
    return table
