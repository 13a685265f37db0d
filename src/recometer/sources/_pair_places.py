"""The rows of pairs for the users of test: what each of them is, and where it lands."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Bool, Float64, Int64, UInt32, begins
from recometer.data.matching import is_relevant
from recometer.protocol import Protocol, RelevantFrom
from recometer.ranks import UserFlag
from recometer.sources._align_result import Aligned
from recometer.sources._pair_rows import PairRows


class Judged(NamedTuple):
    """What is judged, user by user; `at` is the place among the candidate rows, or -1."""

    indptr: Int64
    item: npt.NDArray[np.integer[Any]]
    gain: Float64
    relevant: Bool
    at: Int64


@dataclasses.dataclass(frozen=True)
class Entries:
    """The rows of the users of test, in the order of users and items."""

    user: Int64  # of test
    item: Int64  # positions in the order of the (sorted) item ids
    n_items: int
    judged: Bool  # whether test has the pair, and train has not
    excluded: Bool  # whether it is in train
    candidate: Bool
    n_without: int = 0  # rows that would be candidates, and are marked as none

    def without(self, marked: Bool) -> Entries:
        """Return the same, in which rows that are marked are no candidates."""
        gone = marked & self.candidate
        n_without = int(np.count_nonzero(gone))
        if not n_without:
            return self
        return dataclasses.replace(self, candidate=self.candidate & ~gone, n_without=n_without)

    @classmethod
    def of(cls, aligned: Aligned, user: Int64, item: Int64, n_items: int) -> Entries:
        """Determine what each row is."""
        known = aligned.item >= 0
        in_test = ragged.numbered(aligned.judged_indptr, aligned.item, n_items)[known]
        # Items of train are numbered among those that anybody may be recommended.
        number = item if aligned.numbers is None else aligned.numbers[item]
        in_train = ragged.numbered(aligned.excluded_indptr, aligned.excluded, aligned.n_items)
        excluded = ragged.among(ragged.pairs(user, number, aligned.n_items), in_train)
        excluded &= number >= 0
        return cls(
            user,
            item,
            n_items,
            judged=ragged.among(ragged.pairs(user, item, n_items), in_test),
            excluded=excluded,
            candidate=(aligned.locate(user, item) >= 0) & ~excluded,
        )

    def with_truth(
        self,
        rows: Int64,
        table: PairRows,
        threshold: Float64 | None,
        relevant_from: RelevantFrom,
        n_users: int,
    ) -> tuple[Judged, Int64]:
        """Return the rows themselves, all judged unless they are in train; and which they are.

        The rule `relevant_from` holds where users have no threshold.
        """
        assert table.truth is not None
        stays = self.judged
        at = np.where(self.candidate, np.cumsum(self.candidate) - 1, -1)[stays]
        rows, user = rows[stays], self.user[stays]
        gain = table.truth[rows]
        relevant = (
            is_relevant(gain, relevant_from) if threshold is None else gain >= threshold[user]
        )
        indptr = ragged.indptr_of(np.bincount(user, minlength=n_users))
        return Judged(indptr, self.item[stays], gain, relevant, at), rows

    def in_test(self, aligned: Aligned) -> Judged:
        """Return the judged items of a test of its own, found among the rows."""
        indptr, item = aligned.judged_indptr, aligned.item
        keys = ragged.pairs(self.user, self.item, self.n_items)[self.candidate]
        wanted = ragged.numbered(indptr, item, self.n_items)
        found = ragged.among(wanted, keys) & (item >= 0)
        at = np.where(found, np.searchsorted(keys, wanted), -1)
        return Judged(indptr, item, aligned.gain, aligned.relevant, at)

    def pool(self, aligned: Aligned) -> Int64 | None:
        """Return `Ranks.pool`: a user's catalogue are its rows."""
        if aligned.pool is None:
            return None
        free = ~self.judged & ~self.excluded
        if aligned.numbers is not None:
            free &= aligned.numbers[self.item] >= 0
        return np.bincount(self.user[free], minlength=aligned.n_users)


@dataclasses.dataclass(frozen=True)
class Places:
    """Where each row lands among those of its user, in the order of the rows; see `Ranks`."""

    above: Int64
    tied: Int64
    before: Int64
    n_candidates: Int64
    flags: UInt32

    @classmethod
    def of(cls, user: Int64, score: Float64, n_users: int, protocol: Protocol) -> Places:
        n_candidates = np.bincount(user, minlength=n_users)
        nan = np.isnan(score)
        distinct, code = np.unique(score, return_inverse=True)
        fall = len(distinct) - code  # the highest score first; NaN is the highest of all here
        if protocol.nan_scores != "first":
            fall[nan] = len(distinct) + 1
        key = user * (len(distinct) + 2) + fall
        order = np.argsort(key, kind="stable")  # tied rows stay in the order of the items
        new = begins(key[order])
        first = np.flatnonzero(new)
        group = np.cumsum(new) - 1
        above, tied, before = (np.empty(len(user), np.int64) for _ in range(3))
        above[order] = first[group] - ragged.indptr_of(n_candidates)[user[order]]
        tied[order] = np.diff(first, append=len(user))[group] - 1
        before[order] = np.arange(len(user)) - first[group]
        flags = np.zeros(len(n_candidates), np.uint32)
        if protocol.nan_scores == "undefined":
            flags[user[nan]] |= np.uint32(UserFlag.NAN_SCORE)
        if protocol.infinite_scores == "undefined":
            flags[user[np.isposinf(score)]] |= np.uint32(UserFlag.INFINITE_SCORE)
        constant = (tied > 0) & (tied == n_candidates[user] - 1)
        flags[user[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
        return cls(above, tied, before, n_candidates, flags)
