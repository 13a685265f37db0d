"""Where the first relevant item of a tie group falls.

In a random order of ``size`` tied items, ``relevant`` of them relevant, let I be the place
within the group, from 1 on, of the first relevant one:

    P(I = i) = C(size - i, relevant - 1) / C(size, relevant)

`chance` is P(I <= places); `reciprocal` the expected 1 / (start + I), which counts 0 beyond
the cut-off. Only the first group with a relevant item matters for either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.metrics._sums import harmonic, log1p_of

__all__ = ["chance", "reciprocal"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


def chance(size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the chance of a relevant item within the first `places` of a group.

    One minus the hypergeometric C(size - relevant, places) / C(size, places), summed up
    from positive terms, so that a small chance is as accurate as a large one.
    """
    # The number of relevant items and that of places may be exchanged: take fewer steps.
    steps, others = np.minimum(relevant, places), np.maximum(relevant, places)
    order = np.argsort(-steps, kind="stable")
    size, steps, others = size[order], steps[order], others[order]
    missed = -steps  # in rising order
    total = np.zeros(len(size))
    for step in range(int(steps.max(initial=0))):
        active = slice(0, int(np.searchsorted(missed, -step)))
        # Beyond 1 it was certain one step before, and nothing is left to be added.
        total[active] += (1 - total[active]) * (others[active] / (size[active] - step))
    return _unsorted(total, order)


def reciprocal(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the expected 1 / (start + I), counted as 0 where I is beyond `places`.

    For a whole group with r relevant items of n after t others, S(r) obeys

        S(r) = r / ((r - 1)(n - r + 1)) * ((n + t - r + 2) S(r - 1) - 1)
        S(1) = (H(t + n) - H(t)) / n,    S(n) = 1 / (t + 1)

    Downwards, from any r beyond, it forgets an error of its start and adds no new ones;
    upwards it takes r steps. Whichever is shorter is accurate, see `_whole`.
    """
    value = np.empty(len(size))
    last = size - relevant + 1  # the last place where the first relevant item can be
    whole, alone = places >= last, relevant == 1
    value[whole] = _whole(start[whole], size[whole], relevant[whole])
    rows = ~whole & alone
    value[rows] = harmonic(start[rows], places[rows]) / size[rows]
    rows = ~whole & ~alone
    value[rows] = _part(start[rows], size[rows], relevant[rows], places[rows])
    return value


def _part(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Add P(I = i) / (start + i) up, place by place."""
    # P(I > i) <= exp(-relevant * i / size): from here on less than 1e-18 is left.
    places = np.minimum(places, 42 * size // relevant + 1)
    order = np.argsort(-places, kind="stable")
    start, size, relevant = start[order], size[order], relevant[order]
    missed = -places[order]
    probability = relevant / size
    total = np.zeros(len(size))
    for i in range(1, int(places.max(initial=0)) + 1):
        active = slice(0, int(np.searchsorted(missed, -i, side="right")))
        total[active] += probability[active] / (start[active] + i)
        probability[active] *= (size[active] - i - relevant[active] + 1) / (size[active] - i)
    return _unsorted(total, order)


def _whole(start: Int64, size: Int64, relevant: Int64) -> Float64:
    """Return S(relevant) of the recurrence in `reciprocal`."""
    # A step down shrinks an error by a factor 1 + (t + 1) / (n - r + 1) or more, so e^-40 of
    # it is left after `away` steps. Where these are more than 14 r, the r steps up magnify
    # rounding errors by the same factor each: by e^(40 / 14) at most.
    away = 40 / log1p_of((start + 1) / (size - relevant + 1))
    top = np.minimum(size, relevant + np.ceil(away).astype(np.int64))
    up = top - relevant > 14 * relevant
    value = np.empty(len(size))
    value[up] = _upwards(start[up], size[up], relevant[up])
    down = ~up
    value[down] = _downwards(start[down], size[down], relevant[down], top[down])
    return value


def _upwards(start: Int64, size: Int64, relevant: Int64) -> Float64:
    order = np.argsort(-relevant, kind="stable")
    start, size = start[order], size[order]
    missed = -relevant[order]
    value = harmonic(start, size) / size
    for r in range(2, int(relevant.max(initial=0)) + 1):
        active = slice(0, int(np.searchsorted(missed, -r, side="right")))
        n, t = size[active], start[active]
        value[active] = r / ((r - 1) * (n - r + 1)) * ((n + t - r + 2) * value[active] - 1)
    return _unsorted(value, order)


def _downwards(start: Int64, size: Int64, relevant: Int64, top: Int64) -> Float64:
    steps = top - relevant
    order = np.argsort(-steps, kind="stable")
    start, size, top = start[order], size[order], top[order]
    missed = -steps[order]
    # 1 / (t + the mean of I): exact where top is the size, else soon forgotten.
    value = 1 / (start + 1 + (size - top) / (top + 1))
    for step in range(int(steps.max(initial=0))):
        active = slice(0, int(np.searchsorted(missed, -step)))
        n, t, r = size[active], start[active], top[active] - step
        value[active] = (1 + value[active] * (r - 1) * (n - r + 1) / r) / (n + t - r + 2)
    return _unsorted(value, order)


def _unsorted(values: Float64, order: Int64) -> Float64:
    result = np.empty_like(values)
    result[order] = values
    return result
