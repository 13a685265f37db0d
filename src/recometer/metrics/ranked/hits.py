"""How many relevant items of a tie group lie within the cut-off that parts it.

In a random order of ``size`` tied items, ``relevant`` of them relevant, the first ``places``
hold x relevant ones with the hypergeometric chance
C(relevant, x) C(size - relevant, places - x) / C(size, places).
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.sums import hits_within, step_by_step
from recometer.ties import Groups


def hits_squared(groups: Groups, cutoff: int) -> Float64:
    """Return the (expected) square of the hits within the cut-off: float64 [n_users]."""
    rows, within = groups.within(cutoff)
    size, rate = groups.size[rows], groups.relevant[rows] / groups.size[rows]
    # Where the cut-off splits a group, its number of hits varies.
    left = (size - within) / np.maximum(size - 1, 1)
    hits = hits_within(groups, np.array([cutoff]))[:, 0]
    return hits**2 + groups.total(rows, within * rate * (1 - rate) * left)


def expand(size: Int64, relevant: Int64, places: Int64) -> tuple[Int64, Int64, Float64]:
    """List every number of hits that is possible, group by group, with its chance.

    Returns the group, the relevant items found within its places (rising within a group), and the
    chance; with ``1 <= places <= size``.
    """
    least = np.maximum(relevant + places - size, 0)
    most = np.minimum(relevant, places)
    count = most - least + 1
    group = np.repeat(np.arange(len(size)), count)
    offset = np.zeros(len(size) + 1, np.int64)
    np.cumsum(count, out=offset[1:])
    found = np.arange(len(group)) - offset[group] + least[group]

    # Relative to the likeliest number, outwards from it: nothing overflows, and what
    # underflows does not count.
    mode = np.clip((relevant + 1) * (places + 1) // (size + 2), least, most)
    chance = np.ones(len(group))
    for sign, steps in ((1, most - mode), (-1, mode - least)):
        order = np.argsort(-steps, kind="stable")
        for step, rows in step_by_step(steps[order]):
            active = order[rows]
            x = mode[active] + sign * step
            n, r, s = size[active], relevant[active], places[active]
            if sign == 1:
                factor = (r - x) / (x + 1) * ((s - x) / (n - r - s + x + 1))
            else:
                factor = x / (r - x + 1) * ((n - r - s + x) / (s - x + 1))
            row = offset[active] + x - least[active]
            chance[row + sign] = chance[row] * factor
    total = np.bincount(group, weights=chance, minlength=len(size))
    return group, found, chance / total[group]
