"""Lists in a table: where judged items landed in them, and their first places."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, all_of
from recometer.data.matching import SourceIndex
from recometer.protocol import Protocol
from recometer.ranks import Ranks, TopLists
from recometer.sources import _top
from recometer.sources._align import align
from recometer.sources._infinite import ranked_in_lists
from recometer.sources._list_candidates import catalogue_size
from recometer.sources._list_catalogue import ListCatalogue, catalogue_of, with_all_items
from recometer.sources._list_reading import read_lists
from recometer.sources._list_repeats import Repeats
from recometer.sources._list_table import ListTable, joined, judged_scores
from recometer.sources._list_work import ListWork
from recometer.sources._top import Rule
from recometer.sources.base import Request, Source
from recometer.sources.candidates import Items

if TYPE_CHECKING:
    from typing_extensions import Self


NOTHING = dict.fromkeys(("user", "item", "rank", "score", "user_ids", "item_ids"))


class TableLists(Source):
    """Lists whose entries stand in a `ListTable`."""

    has_input_order = True

    def _fill(self, table: ListTable, depth: int | None) -> None:
        self._table, self._depth = table, None if depth is None else int(depth)

    @classmethod
    def of_some_users(
        cls,
        recommendations: object,
        *,
        depth: int | None = None,
        every_item: Array | None = None,
        **options: Any,
    ) -> Self:
        """Read the lists of some users, perhaps of none: others are read elsewhere.

        `options` are columns and ids, by the parameters of `recometer.Lists`. `every_item` are the
        ids of the items of all users, so that items have the numbers that they have among these;
        None numbers those that are found.
        """
        table = read_lists(recommendations, **{**NOTHING, **options})
        if every_item is not None:
            table = table.with_items({"all users": every_item})
        return cls.of_table(table, depth)

    @classmethod
    def of_table(cls, table: ListTable, depth: int | None) -> Self:
        """Return the lists in a table."""
        lists = cls.__new__(cls)
        lists._fill(table, depth)
        return lists

    @classmethod
    def of_batches(cls, batches: Sequence[TableLists]) -> Self:
        """Return the lists of several batches, all of one `kind` and of different users."""
        return cls.of_table(joined([batch._table for batch in batches]), batches[0]._depth)

    @property
    def n_lists(self) -> int:
        """Number of lists, empty ones included."""
        return self._table.n_lists

    @property
    def n_positions(self) -> int:
        """More than the largest position of a listed item; 0 where items have ids."""
        return self._table.n_items if self._table.item_ids is None else 0

    @property
    def n_entries(self) -> int:
        """Number of entries of all lists, padding included."""
        return len(self._table.items)

    @property
    def kind(self) -> tuple[object, ...]:
        """What batches have in common that `of_batches` takes together."""
        return (*self._table.kind, self._depth)

    @property
    def index(self) -> SourceIndex:
        """Which users and items it has."""
        return self._table.index

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        lengths = np.diff(self._table.indptr)
        n, entries = np.count_nonzero(lengths), len(self._table.items)
        cut = "" if self._depth is None else f", cut at {self._depth:,}"
        longest = lengths.max(initial=0)
        order = ", in the order of the rows" if self._table.by_rows else ""
        return f"Lists: {n:,} lists, {entries:,} entries, up to {longest:,} each{cut}{order}"

    def unread_rules(self, *, listed: bool) -> Mapping[str, str]:
        """Return the rules that change nothing of where items landed, or of lists, and why."""
        return {"constant_scores": "lists are read as they were given"} if listed else {}

    def removes_train(self, protocol: Protocol) -> bool:
        """Tell whether a user's items of train leave the lists and test, as the rule says."""
        return protocol.seen == "removed"

    def listed_users(self) -> Array:
        """Return the ids (or positions) of the users with a list."""
        has, user_ids = self._table.hold_items(), self._table.user_ids
        if user_ids is None:
            return has.nonzero()[0]
        return user_ids if all_of(has) else user_ids[has]

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the ranking depends on, by name."""
        names = ("indptr", "items", "scores", "user_ids", "item_ids")
        depth = None if self._depth is None else np.array(self._depth)
        return {**{name: getattr(self._table, name) for name in names}, "depth": depth}

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        table, request = with_all_items(self._table, _as_listed(request))
        work, catalogue = self._prepare(table, request, None)
        repeats, without_repeats = None, None
        if request.protocol.duplicates != "removed":
            repeats = Repeats.of(table, work.aligned.numbers)
        if repeats is not None:
            work.run_all(request)
            without_repeats = work.facts(catalogue, work.known())
            table, request = repeats.table, repeats.added_to(request)
            work, catalogue = self._prepare(table, request, None)
        work.run_all(request)
        if self._depth is not None:
            work.cut(self._depth, falling=request.protocol.ties == "item_desc")
        ranks = work.ranks(catalogue, request.threads, without_repeats)
        if table.scores is not None and table.given is None:
            ranks = dataclasses.replace(ranks, by_rank=True)
        if request.protocol.score_above is not None and table.given is not None:
            scores = judged_scores(table, work.aligned.rows, ranks)
            ranks = dataclasses.replace(ranks, score=scores)
        elif request.protocol.score_above is not None and request.protocol.version:
            # Under a convention, lists without scores have no low ones.
            ranks = dataclasses.replace(ranks, score=np.full(len(ranks.above), np.inf))
        if repeats is None:
            return ranks
        return repeats.taken_back(ranks, work.aligned.rows, request.protocol.ties)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list, without repetitions; see `TopLists`."""
        protocol = dataclasses.replace(request.protocol, duplicates="removed")
        request = dataclasses.replace(request, protocol=protocol)
        if self._depth is not None and request.protocol.ties == "random":
            return _top.cut_at_random(self, request, k, self._depth, self._best)
        return _top.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        table, request = with_all_items(self._table, _as_listed(request))
        work, catalogue = self._prepare(table, request, rule)
        work.places(k if self._depth is None else min(k, self._depth), rule)
        work.run_all(request)
        return work.lists(k, catalogue)

    def _prepare(
        self, table: ListTable, request: Request, rule: Rule | None
    ) -> tuple[ListWork, ListCatalogue]:
        catalogue = catalogue_of(table, request)
        aligned = align(table.index, request, catalogue.inside)
        table = ranked_in_lists(table, request.protocol)
        if rule is not None and rule.unjudged_only:
            aligned = _top.only_unjudged(aligned)
        work = ListWork(table, aligned, request)
        if request.candidates is not None or request.exclude is not None:
            work.leave_candidates()
            n_items = catalogue_size(catalogue.n_items, catalogue.inside, aligned, request)
            inside = catalogue.inside
            if inside is not None and aligned.numbers is not None:
                inside = inside[aligned.numbers >= 0]
            if isinstance(request.candidates, Items):
                inside = None
            catalogue = catalogue._replace(n_items=n_items, inside=inside)
        return work, catalogue


def _as_listed(request: Request) -> Request:
    """Let items of train stay where they stay in lists."""
    if request.protocol.seen != "kept_in_lists":
        return request
    return dataclasses.replace(request, protocol=request.protocol.replace(seen="kept"))
