"""Scores of all items that come batch by batch: what is counted of them, and no score."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer._kernel import TieOrder
from recometer.arrays import Array, Bool, Int64
from recometer.data.matching import SourceIndex
from recometer.errors import InputError
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _top_lists, _torch
from recometer.sources._score_batches import Batches, RankWork, TopWork
from recometer.sources._top_lists import Rule
from recometer.sources.alignment import Aligned, align
from recometer.sources.base import Facts, Kind, Request, Source
from recometer.sources.kept import NO_BATCH, Strangers
from recometer.sources.scores import MATRIX_BYTES, Scores

Work = RankWork | TopWork


class StreamedScores(Source):
    """What was counted of scores that came batch by batch.

    Test and train are matched with the items once. A batch is counted right into the place of its
    users, so that neither the order of the batches nor their sizes change anything.

    Parameters
    ----------
    index
        Its items; its users are those of test.
    request
        What will be asked for; see `rank` and `top`.
    ranked
        Whether `rank` will be asked.
    k
        The number of places that `top` will be asked for. None means that it will not be called.
    """

    def __init__(self, index: SourceIndex, request: Request, ranked: bool, k: int | None) -> None:
        self._index, self._request = index, dataclasses.replace(request, progress=False)
        self._kind = ""  # of the scores, for `describe`
        test = request.test
        self._aligned = align(index, request)
        self._came = np.zeros(test.n_users, bool)
        self.strangers = Strangers()
        self._ranked: dict[int | None, RankWork] = {}
        self._listed: dict[TieOrder, TopWork] = {}
        if k is not None:
            rules = _top_lists.rules(request)
            for rule in rules:
                aligned = (
                    _top_lists.only_unjudged(self._aligned) if rule.unjudged_only else self._aligned
                )
                self._listed[rule.order] = TopWork(_copied(aligned), request, k, rule)
            if len(rules) > 1:
                self._add_ranked(k)
        if ranked:
            self._add_ranked(request.depth)

    def _add_ranked(self, depth: int | None) -> None:
        request = dataclasses.replace(self._request, depth=depth)
        self._ranked[depth] = RankWork(_copied(self._aligned), request)

    @property
    def came(self) -> Bool:
        """Whose scores came: bool [n_users], of the users of test."""
        return self._came

    def add(self, batch: Scores, rows: Int64, users: Int64) -> None:
        """Count the scores in some rows of a batch, which are those of these users of test."""
        n_columns, item_ids = batch.index.n_items, batch.index.item_ids
        own = self._index.item_ids
        if item_ids is not None and (own is None or not np.array_equal(item_ids, own)):
            raise InputError(
                "This batch has other item_ids than those before, or than the stream. Hint: all "
                "batches have the same columns."
            )
        if n_columns != self._index.n_items:
            raise InputError(
                f"This batch has scores of {n_columns:,} items, those before had "
                f"{self._index.n_items:,}. Hint: a batch has a column for every item."
            )
        request, size = self._request, MATRIX_BYTES
        if batch.on_device:
            request, size = _torch.one_at_a_time(request), _torch.BLOCK_BYTES
        batches = Batches(
            lambda at: batch.batch(rows[at]),
            request,
            n_columns=n_columns,
            bytes_per_batch=size,
            ahead=False,
        )
        for work in self._works():
            _count(work, users, batches)
        self._came[users] = True
        self._kind = batch.kind

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item landed, of users who came; see `Ranks`."""
        work = copy.copy(self._ranked[request.depth])
        # What is beyond the depth is forgotten in place, and more batches may come.
        for name in ("above", "tied", "before"):
            setattr(work, name, getattr(work, name).copy())
        work.aligned = self._as_came(work.aligned)
        return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user who came; see `TopLists`."""
        return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        work = self._listed[rule.order]
        aligned = self._as_came(work.aligned)
        return _top_lists.finished(aligned, work.best, k, n_catalogue=aligned.n_items)

    def _as_came(self, aligned: Aligned) -> Aligned:
        """Return what was aligned as if the source knew the users who came, and no others."""
        came = self._came
        if came.all():
            return _copied(aligned)
        test = self._request.test
        if test.user_ids is not None:
            known = np.flatnonzero(came)
            index = dataclasses.replace(
                self._index, n_users=len(known), user_ids=test.user_ids[known]
            )
            narrow = align(index, self._request)
            aligned = dataclasses.replace(
                aligned, rows=narrow.rows, counts=narrow.counts, n_offered=narrow.n_offered
            )
        else:
            counts = aligned.counts | {"users_unknown": int(np.count_nonzero(~came))}
            rows = np.where(came, aligned.rows, -1)
            aligned = dataclasses.replace(aligned, rows=rows, counts=dict(sorted(counts.items())))
        aligned = _copied(aligned)
        aligned.flags[~came] &= ~np.uint32(UserFlag.KNOWN)
        return aligned

    def _known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of the users who came, in test or not, or of the items; None without."""
        user_ids = self._request.test.user_ids
        if kind == "item":
            return self._index.item_ids
        return None if user_ids is None else self.strangers.beside(user_ids[self._came])

    def _works(self) -> list[Work]:
        return [*self._ranked.values(), *self._listed.values()]

    def state(self) -> dict[str, Any]:
        """Return what was counted of the users who came, as arrays and numbers."""
        return {
            "kind": self._kind,
            "users": np.flatnonzero(self._came),
            "strangers": self.strangers.state(),
            "counted": [_state(work, self._came) for work in self._works()],
        }

    @property
    def index_of_items(self) -> tuple[int, Array | None]:
        """The number of items, and their ids."""
        return self._index.n_items, self._index.item_ids

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids (or positions) of users who came to another one, too."""
        both: Array = state["users"][self._came[state["users"]]]
        user_ids = self._request.test.user_ids
        return both if user_ids is None else user_ids[both]

    def take(self, state: Mapping[str, Any]) -> None:
        """Add what `state` of another one returned; of users in both, ours stays."""
        users = state["users"]
        new = ~self._came[users]
        for work, counted in zip(self._works(), state["counted"], strict=True):
            _take(work, users, new, counted)
        self._came[users] = True
        for part in state["strangers"]:
            self.strangers.add(part)
        self._kind = state["kind"] or self._kind

    @property
    def nbytes(self) -> int:
        """The memory of what was counted."""
        kept = [array.nbytes for work in self._works() for array in _counted(work).values()]
        return int(sum(kept)) + self._came.nbytes

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        n = int(np.count_nonzero(self._came))
        return f"Scores, streamed: {n:,} users x {self._index.n_items:,} items{self._kind}"

    @property
    def facts(self) -> Facts:
        """What was counted so far."""
        names = {f"counted_{n}": _counted(work) for n, work in enumerate(self._works())}
        every = {f"{n}_{name}": column for n, of in names.items() for name, column in of.items()}
        arrays = {"users": np.flatnonzero(self._came), **every, "item_ids": self._index.item_ids}
        return Facts(arrays, known=self._known_ids, sized=False, of_unknown=NO_BATCH)


def unscored(index: SourceIndex) -> Scores:
    """Return scores of nobody, which answer what the checks of a source ask."""
    return Scores(_none, n_users=0, n_items=index.n_items, item_ids=index.item_ids)


def _none(rows: Int64) -> None:
    """Return no scores."""


def _count(work: Work, users: Int64, batches: Batches) -> None:
    """Count the scores of some users, who are asked for by their numbers among these."""
    numbers = np.arange(len(users))
    if 0 < len(users) <= batches.most_users:
        work.count(users, batches.ask(numbers))
        return
    pieces = batches.cut(numbers)
    if batches.request.threads > 1 and len(pieces) > 1:
        batches.each(numbers, lambda at, scores: work.count(users[at], scores), "Counting")
        return
    # To start a thread would take longer, and Ctrl-C waits for a piece only.
    for piece in pieces:
        work.count(users[piece], batches.ask(piece))


def _copied(aligned: Aligned) -> Aligned:
    """Return a copy, in which the arrays that counting writes to are copied, too."""
    pool = None if aligned.pool is None else aligned.pool.copy()
    return dataclasses.replace(aligned, flags=aligned.flags.copy(), pool=pool)


def _counted(work: Work) -> dict[str, Any]:
    """Return what a batch writes to, with an entry per user or per judged item."""
    found: dict[str, Any] = {"flags": work.aligned.flags}
    if work.aligned.pool is not None:
        found["pool"] = work.aligned.pool
    if isinstance(work, TopWork):
        return found | {"items": work.best.items, "left": work.best.left}
    found |= {"above": work.above, "tied": work.tied, "before": work.before}
    found["no_candidates"] = work.no_candidates
    return found if work.score is None else found | {"score": work.score}


PER_ROW = ("above", "tied", "before", "score")


def _state(work: Work, came: Bool) -> dict[str, Any]:
    of_rows = np.repeat(came, np.diff(work.aligned.judged_indptr))
    return {
        name: column[of_rows if name in PER_ROW else came]
        for name, column in _counted(work).items()
    }


def _take(work: Work, users: Int64, new: Bool, counted: Mapping[str, Any]) -> None:
    lengths = np.diff(work.aligned.judged_indptr)
    taken = np.zeros(len(lengths), bool)
    taken[users[new]] = True
    new_rows, taken_rows = np.repeat(new, lengths[users]), np.repeat(taken, lengths)
    for name, column in _counted(work).items():
        if name in PER_ROW:
            column[taken_rows] = counted[name][new_rows]
        else:
            column[taken] = counted[name][new]
