"""Facts: numbers of blocks of users, from which follows what is true of all users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Int64


class Facts(NamedTuple):
    """Numbers of some users that decide what is refused and warned of."""

    n_users: int
    n_rows: int  # of test
    n_relevant: int
    n_known: int  # users whom the source has a ranking for
    n_judged: int  # of these, those with a relevant item
    n_unusable: int  # of these, those with a NaN or infinite score
    n_unknown: int  # users who should be known and are not
    n_early: int  # users whose lists end early
    n_any_cutoff: int  # blocks in which candidates were given one by one
    n_compared: int  # users with a list of the baseline; all of them without a baseline
    depth: int  # the most known places of a user
    n_candidates: int  # the most candidates of a user
    n_listed: int  # the most places of a list
    undefined: Mapping[str, Int64]  # how often each `Reason` holds, of metrics without a value

    @classmethod
    def merge(cls, parts: Sequence[Facts]) -> Facts:
        """Return the facts of all users, given those of blocks of different users."""
        each = [part for part in parts if part.n_users]
        first = each[0].undefined if each else {}
        names = [name for name in first if all(name in part.undefined for part in each)]
        numbers: dict[str, int] = {
            name: (max if name in MOST else sum)([getattr(part, name) for part in each] or [0])
            for name in cls._fields[:-1]
        }
        together = {name: np.sum([part.undefined[name] for part in each], axis=0) for name in names}
        return cls(**numbers, undefined=together)


MOST = ("depth", "n_candidates", "n_listed")  # of which the largest counts; others add up
