"""Lists: recommended items, best first, as top-k lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recometer.arrays import Array
from recometer.data.matching import SourceIndex
from recometer.data.rows import MAX_NUMBER
from recometer.errors import InputError, brief
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.removed import without
from recometer.sources import _top_lists
from recometer.sources._list_catalogue import ListCatalogue, catalogue_of, with_all_items
from recometer.sources._list_ranking import ListWork, Repeats, catalogue_size
from recometer.sources._list_reading import read_lists
from recometer.sources._list_runs import take_apart
from recometer.sources._list_table import ListTable, joined, judged_scores
from recometer.sources._score_rules import compared_in_lists
from recometer.sources._top_lists import Rule
from recometer.sources.alignment import align
from recometer.sources.base import Facts, Request, Source
from recometer.sources.candidates import Items

if TYPE_CHECKING:
    from typing_extensions import Self


NOTHING = dict.fromkeys(("user", "item", "rank", "score", "user_ids", "item_ids"))


class Lists(Source):
    """Lists of recommended items, one list per user.

    An item that is not in the list of its user is a miss, and so is every item of a user without
    a list. Items of the user's train are removed and the rest moves up. A repeated item counts
    once, at its first place.

    The lists do not tell how many items could have been recommended. If `evaluate` does not get
    this number either (``catalogue=``), rules that need the number of candidates do not apply, and
    metrics of the whole ranking are refused.

    The data are read when you create the object, by all available processors; a Parquet file is
    read piece by piece.

    Parameters
    ----------
    recommendations
        * a data frame of any library, in any order, with a column of users, a column of items,
          and a column of ranks (1 is best) or scores (the highest is best). Without the latter,
          the order of a user's rows is the ranking (and if there is another column of numbers, a
          `DataWarning` says so, unless ``score=False``). The column of items may hold lists, best
          first, with a row per user, and so may that of ranks or scores;
        * a dict ``{user: [items]}``, best first, or ``{user: {item: score}}``;
        * an integer array of any library [n_users, k] of item indices, best first, padded with
          -1; row u is that of user u of test, unless `user_ids` are given; a row of padding alone
          is an empty list, as ``{user: []}`` is: its user has none;
        * the path of a file: .parquet, .csv, .tsv, .csv.gz, .tsv.gz, or a TREC run (also
          .gz), whose topics and documents are strings, ranked by score. Use
          ``ties="item_desc"`` to order equal scores like trec_eval, by descending document id.
    user, item, rank, score
        Columns of a frame or file. By default, those with common names are used, and the rank if
        there is also a score. ``rank=False`` and ``score=False`` say that there is none. Equal
        scores, and equal ranks, are ties. ``user=["user", "session"]`` reads a list for each
        session of a user, as in `Interactions.of`; lists without sessions apply to all sessions
        of a user.
    user_ids, item_ids
        For an array, the user of each row, and the item of each index.
    item_offset
        For an array, the index of the first item, if items are numbered after something else, such
        as the users of a graph, whose nodes the models of PyTorch Geometric recommend.
    depth
        Number of places of each list that count; the rest is ignored. None uses all places. If
        items tie for the last of these places, and the rule for ties does not order them, those
        with lower ids stay.
    separator
        The separator of the items in a cell of a table with a row per user, if each cell is a
        string: a character, such as ``";"`` in ``"46;93;5"``, or ``"json"`` for ``"[46, 93, 5]"``.
        Such cells are refused if it is not given. False says that each cell is a single id.

    Raises
    ------
    InputError
        If ids or ranks are missing, indices do not exist, or options do not apply.
    InputTypeError
        If the type of the data is not supported.
    ColumnError
        See `recometer.data.columns.find_columns`.
    FileError
        If a file cannot be read.

    Examples
    --------
    >>> import recometer as rm
    >>> lists = rm.Lists({"ann": ["film", "song"], "bob": ["game"]})
    >>> lists.describe()
    'Lists: 2 lists, 3 entries, up to 2 each'
    >>> test = {"ann": ["song"], "bob": ["book", "game"]}
    >>> rm.evaluate(lists, test, metrics="rr recall@1").mean()
    {'rr': 0.75, 'recall@1': 0.25}
    """

    @without("memory")
    def __init__(
        self,
        recommendations: object,
        *,
        user: str | Sequence[str] | None = None,
        item: str | None = None,
        rank: str | bool | None = None,
        score: str | bool | None = None,
        user_ids: object = None,
        item_ids: object = None,
        item_offset: int = 0,
        depth: int | None = None,
        separator: str | Literal[False] | None = None,
    ) -> None:
        whole = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
        if depth is not None and not (whole and 1 <= depth <= MAX_NUMBER):
            raise InputError(
                f"depth={brief(depth)} must be a whole number from 1 to {MAX_NUMBER:,}, or None."
            )
        columns: dict[str, Any] = {"user": user, "item": item, "rank": rank, "score": score}
        given_ids: dict[str, Any] = {"user_ids": user_ids, "item_ids": item_ids}
        table = read_lists(
            recommendations,
            **columns,
            **given_ids,
            item_offset=item_offset,
            separator=separator,
        )
        self._fill(table, depth)
        if not table.n_lists:
            raise InputError(
                "There is no list: the recommendations are empty. Hint: what did the model return?"
            )

    def _fill(self, table: ListTable, depth: int | None) -> None:
        self._table, self._depth = table, None if depth is None else int(depth)

    @classmethod
    def each(cls, recommendations: object, by: str, **options: Any) -> dict[Any, Lists]:
        """Read the lists of several runs from one table.

        Parameters
        ----------
        recommendations
            A data frame, or the path of a Parquet, CSV or TSV file.
        by
            The column that tells which run a row belongs to, such as ``"algorithm"``.
        **options
            As for `Lists`.

        Returns
        -------
        dict
            The `Lists` of each value of the column, in the order of their first rows.

        Raises
        ------
        ColumnError
            If the column does not exist.
        InputError
            If an entry of the column is missing.
        InputTypeError
            If the data do not have columns.

        Examples
        --------
        >>> import polars as pl, recometer as rm
        >>> columns = {"user": [1, 1], "item": [7, 8], "rank": [1, 1], "algorithm": ["als", "bpr"]}
        >>> test = {1: [8]}
        >>> runs = rm.Lists.each(pl.DataFrame(columns), by="algorithm")
        >>> {name: rm.evaluate(lists, test, metrics="rr").mean() for name, lists in runs.items()}
        {'als': {'rr': 0.0}, 'bpr': {'rr': 1.0}}
        """
        columns = {name: options.pop(name, None) for name in ("user", "item", "rank", "score")}
        if isinstance(columns["score"], str):
            columns["rank"] = False
        runs = take_apart(recommendations, by, columns)
        return {run: cls(part, user="user", item="item", **options) for run, part in runs.items()}

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
        ids of the items of all users; items are numbered among them. None numbers the items that
        these lists contain.
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
    def of_batches(cls, batches: Sequence[Lists]) -> Self:
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
        """The properties in which batches must agree to be joined by `of_batches`."""
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

    @cached_property
    def facts(self) -> Facts:
        """The entries of all lists and their ids; and who has a list."""
        names = ("indptr", "items", "scores", "user_ids", "item_ids")
        depth = None if self._depth is None else np.array(self._depth)
        return Facts(
            {**{name: getattr(self._table, name) for name in names}, "depth": depth},
            known=self._table.known_ids,
            listed=self._table.listed_users,
            input_order=True,
            repeats_items=True,
        )

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
            # Under a convention, no item of a list without scores counts as scored too low.
            ranks = dataclasses.replace(ranks, score=np.full(len(ranks.above), np.inf))
        if repeats is None:
            return ranks
        return repeats.taken_back(ranks, work.aligned.rows, request.protocol.ties)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list, without repetitions; see `TopLists`."""
        protocol = dataclasses.replace(request.protocol, duplicates="removed")
        request = dataclasses.replace(request, protocol=protocol)
        if self._depth is not None and request.protocol.ties == "random":
            return _top_lists.cut_at_random(self, request, k, self._depth, self._best)
        return _top_lists.lists(self, request, k, self._best)

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
        if rule is not None:
            aligned = rule.applied(aligned)
        table = compared_in_lists(table, request.protocol)
        work = ListWork(table, aligned, request)
        if request.candidates is not None or request.exclude is not None:
            work.leave_candidates()
            n_items = catalogue_size(catalogue.n_items, catalogue.inside, aligned, request)
            inside = catalogue.inside
            if inside is not None and aligned.numbers is not None:
                inside = inside[aligned.numbers >= 0]
            catalogue = catalogue._replace(n_items=n_items, inside=inside)
            if isinstance(request.candidates, Items):
                catalogue = ListCatalogue(n_items)  # all others have left the lists
        return work, catalogue


def _as_listed(request: Request) -> Request:
    """Keep items of train in the ranking if the rule `seen` keeps them in lists."""
    if request.protocol.seen != "kept_in_lists":
        return request
    return dataclasses.replace(request, protocol=request.protocol.replace(seen="kept"))
