"""BlockFacts: numbers of a block of users that the checks of all users need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Int64


class BlockFacts(NamedTuple):
    """Numbers of a block of users, for the checks in `finish.check_facts`."""

    n_users: int
    n_rows: int  # rows of test
    n_relevant: int
    n_known: int  # users with a ranking in the source
    n_judged: int  # of these, those with a relevant item
    n_unusable: int  # of these, those with a NaN or infinite score
    n_unknown: int  # unknown users, except for those whom a rule leaves out
    n_early: int  # users whose lists end early
    n_any_cutoff: int  # blocks whose candidates came as rows, as in `Pairs`
    n_compared: int  # users with a list of the baseline; `n_users` without a baseline
    depth: int  # the longest known ranking of a user
    n_candidates: int  # the largest number of candidates of a user
    n_listed: int  # the longest list
    undefined: Mapping[str, Int64]  # users per `Reason`, for metrics without any value

    @classmethod
    def merge(cls, parts: Sequence[BlockFacts]) -> BlockFacts:
        """Return the facts of all users, from those of blocks of different users."""
        each = [part for part in parts if part.n_users]
        first = each[0].undefined if each else {}
        names = [name for name in first if all(name in part.undefined for part in each)]
        numbers: dict[str, int] = {
            name: (max if name in MOST else sum)([getattr(part, name) for part in each] or [0])
            for name in cls._fields[:-1]
        }
        together = {name: np.sum([part.undefined[name] for part in each], axis=0) for name in names}
        return cls(**numbers, undefined=together)


MOST = ("depth", "n_candidates", "n_listed")  # merged by their maximum, the others by their sum
