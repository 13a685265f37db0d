"""Lists: what was recommended, best first, as top-k lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule, TieOrder
from recometer.arrays import Array, Bool, Int64, UInt32
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex, both_have_ids
from recometer.errors import InputError, warn
from recometer.protocol import Protocol
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _top
from recometer.sources._align import align
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import assemble, best_first
from recometer.sources._list_candidates import catalogue_size, has_list, only_candidates
from recometer.sources._list_repeats import Repeats
from recometer.sources._list_runs import take_apart
from recometer.sources._list_table import ListTable, judged_scores, read_lists
from recometer.sources._top import Best, Rule, Shelf
from recometer.sources.base import Request, Source
from recometer.sources.candidates import Items, SampledCandidates
from recometer.tasks import Ticker, run_tasks

USERS_PER_TASK = 4096


class Lists(Source):
    """Lists of recommended items, a list per user.

    An item that is in no list of its user is a miss, and so is every item of a user without
    a list. Items of the user's train are removed and the rest moves up; an item that is
    repeated counts once, at its first place.

    How many items could have been recommended is unknown unless `evaluate` is told
    (``catalogue=``): rules that need the number of candidates do not apply then, and
    metrics of the whole ranking are refused.

    Data are read when this is made, on all processors of the process; a Parquet file piece by
    piece.

    Parameters
    ----------
    recommendations
        * a data frame of any library, in any order: a column of users, one of items, and
          one of ranks (1 is best) or scores (the highest is best); with neither, the order
          of a user's rows is the ranking (and if there is another column of numbers, a
          `DataWarning` says so, unless ``score=False``);
        * a dict ``{user: [items]}``, best first, or ``{user: {item: score}}``;
        * an integer array or tensor [n_users, k] of item indices, best first, padded with
          -1; row u is that of user u of test, unless `user_ids` are given;
        * the path of a file: .parquet, .csv, .tsv, .csv.gz, .tsv.gz, or a TREC run (also
          .gz), whose topics and documents are strings, ranked by score. trec_eval orders
          equal scores by falling document id: ``ties="item_desc"``.
    user, item, rank, score
        Columns of a frame or file; by default those with common names, and the rank where
        there is a score, too. ``rank=False``, ``score=False``: none. Equal scores, and
        equal ranks, are tied.
    user_ids, item_ids
        For an array: whose row and which item's index it is.
    depth
        Only so many places of each list count, as if what follows were not there; None:
        all. Of items that tie for the last of them, under a rule for ties that knows no
        order, those with lower ids stay.

    Raises
    ------
    InputError
        Missing ids or ranks, indices that do not exist, options that do not apply.
    InputTypeError
        Data of a kind that is not understood.
    ColumnError
        See `recometer.data.columns.find_columns`.
    FileError
        A file that cannot be read.

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

    has_input_order = True

    def __init__(
        self,
        recommendations: object,
        *,
        user: str | None = None,
        item: str | None = None,
        rank: str | bool | None = None,
        score: str | bool | None = None,
        user_ids: object = None,
        item_ids: object = None,
        depth: int | None = None,
    ) -> None:
        whole = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
        if depth is not None and (not whole or depth < 1):
            raise InputError(f"depth={depth!r} must be a whole number, at least 1, or None.")
        self._depth = None if depth is None else int(depth)
        self._table = read_lists(
            recommendations,
            user=user,
            item=item,
            rank=rank,
            score=score,
            user_ids=user_ids,
            item_ids=item_ids,
        )

        if not self._table.n_lists:
            raise InputError(
                "There is no list: the recommendations are empty. Hint: what did the model return?"
            )

    @classmethod
    def each(cls, recommendations: object, by: str, **options: Any) -> dict[Any, Lists]:
        """Read the lists of several runs from one table.

        Parameters
        ----------
        recommendations
            A data frame, or the path of a Parquet, CSV or TSV file.
        by
            The column that says whose list a row belongs to: ``"algorithm"``.
        **options
            As for `Lists`.

        Returns
        -------
        dict
            The `Lists` of each value of the column, in the order in which they come.

        Raises
        ------
        ColumnError
            No such column.
        InputError
            An entry of it is missing.
        InputTypeError
            Data without columns.

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

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        lengths = np.diff(self._table.indptr)
        n, entries = np.count_nonzero(lengths), len(self._table.items)
        cut = "" if self._depth is None else f", cut at {self._depth:,}"
        longest = lengths.max(initial=0)
        order = ", in the order of the rows" if self._table.by_rows else ""
        return f"Lists: {n:,} lists, {entries:,} entries, up to {longest:,} each{cut}{order}"

    def removes_train(self, protocol: Protocol) -> bool:
        """Tell whether a user's items of train leave the lists and test, as the rule says."""
        return protocol.train_in_lists == "removed"

    def listed_users(self) -> Array:
        """Return the ids (or positions) of the users with a list."""
        listed = np.flatnonzero(np.diff(self._table.indptr))
        return listed if self._table.user_ids is None else self._table.user_ids[listed]

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the ranking depends on, by name."""
        names = ("indptr", "items", "scores", "user_ids", "item_ids")
        depth = None if self._depth is None else np.array(self._depth)
        return {**{name: getattr(self._table, name) for name in names}, "depth": depth}

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        table, request = _with_all_items(self._table, _as_listed(request))
        repeats = None if request.protocol.duplicates == "removed" else Repeats.of(table)
        if repeats is not None:
            table, request = repeats.table, repeats.added_to(request)
        work, catalogue = self._prepare(table, request, None)
        work.run_all(request)
        if self._depth is not None:
            work.cut(self._depth, falling=request.protocol.ties == "item_desc")
        ranks = work.ranks(catalogue, request.threads)
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
        table, request = _with_all_items(self._table, _as_listed(request))
        work, catalogue = self._prepare(table, request, rule)
        work.places(k if self._depth is None else min(k, self._depth), rule)
        work.run_all(request)
        return work.lists(k, catalogue)

    def _prepare(
        self, table: ListTable, request: Request, rule: Rule | None
    ) -> tuple[_Work, _Catalogue]:
        catalogue = _catalogue(table, request)
        index = SourceIndex("Lists", table.n_lists, table.n_items, table.user_ids, table.item_ids)
        aligned = align(index, request, catalogue.inside)
        if rule is not None and rule.unjudged_only:
            aligned = _top.only_unjudged(aligned)
        work = _Work.of(table, aligned, request)
        if request.candidates is not None or request.exclude is not None:
            work = work.among_candidates()
            n_items = catalogue_size(catalogue.n_items, catalogue.inside, aligned, request)
            inside = catalogue.inside
            if inside is not None and aligned.numbers is not None:
                inside = inside[aligned.numbers >= 0]
            if isinstance(request.candidates, Items):
                inside = None
            catalogue = catalogue._replace(n_items=n_items, inside=inside)
        return work, catalogue


@dataclasses.dataclass
class _Work:
    """What the tasks of one call share; each writes the part of its users."""

    table: ListTable
    aligned: Aligned
    begin: Int64
    end: Int64
    input_order: bool
    nan_rule: NanRule
    judged: dict[str, Int64]
    flags: UInt32
    users: dict[str, Int64]
    user_ids: Array | None
    whole: ListTable  # before candidates were chosen
    shelf: Shelf
    order: TieOrder = TieOrder.ITEM
    dropped: int = 0  # entries that are no candidates

    @classmethod
    def of(cls, table: ListTable, aligned: Aligned, request: Request) -> _Work:
        rows = np.where(aligned.rows < 0, 0, aligned.rows)
        begin, end = table.indptr[rows], table.indptr[rows + 1]
        n = len(aligned.ranked_items)
        judged = {"above": np.empty(n, np.int64)}
        for name in ("tied", "before"):
            # Without scores nothing is tied, and to say so takes no memory.
            none = np.broadcast_to(np.int64(0), n)
            judged[name] = none if table.scores is None else np.empty(n, np.int64)
        return cls(
            table,
            aligned,
            begin,
            np.where(aligned.rows < 0, begin, end),
            request.protocol.ties == "input",
            NanRule[request.protocol.nan_scores.upper()],
            judged,
            np.zeros(aligned.n_users, np.uint32),
            {
                name: np.empty(aligned.n_users, np.int64)
                for name in ("given", "listed", "removed", "repeated")
            },
            request.test.user_ids,
            table,
            Shelf.of(np.zeros(aligned.n_users, np.uint64), 0, np.float64),
        )

    def places(self, k: int, rule: Rule) -> None:
        """Have the first places of the lists written down, too."""
        longest = int((self.end - self.begin).max(initial=0))
        self.shelf = Shelf.of(rule.keys, min(k, longest), np.float64)
        self.order = rule.order

    def run_all(self, request: Request) -> None:
        """Read the lists of all users, on several threads."""
        n_users = self.aligned.n_users
        starts = range(0, n_users, USERS_PER_TASK)
        run_tasks(
            self.run,
            [slice(start, min(start + USERS_PER_TASK, n_users)) for start in starts],
            threads=request.threads,
            progress=request.progress,
            label="Ranking",
        )

    def among_candidates(self) -> _Work:
        """Leave only candidates in the lists."""
        table, dropped = only_candidates(self.table, self.aligned)
        rows = np.maximum(self.aligned.rows, 0)
        begin = table.indptr[rows]
        end = np.where(self.aligned.rows < 0, begin, table.indptr[rows + 1])
        return dataclasses.replace(self, table=table, begin=begin, end=end, dropped=dropped)

    def run(self, users: slice, ticker: Ticker) -> None:
        """Find the judged items of some users in their lists."""
        ticker.advance()
        table, aligned = self.table, self.aligned
        above, tied, before = self.judged.values()
        scored = table.scores is not None
        offsets = slice(users.start, users.stop + 1)
        _kernel.rank_lists(
            items=table.items,
            scores=table.scores,
            begin=self.begin[users],
            end=self.end[users],
            n_items=table.n_items,
            excluded_indptr=aligned.excluded_indptr[offsets],
            excluded=aligned.excluded,
            judged_indptr=aligned.ranked_indptr[offsets],
            judged=aligned.ranked_items,
            input_order=self.input_order,
            nan_rule=self.nan_rule,
            above=above,
            tied=tied if scored else None,
            before=before if scored else None,
            flags=self.flags[users],
            given=self.users["given"][users],
            listed=self.users["listed"][users],
            removed=self.users["removed"][users],
            repeated=self.users["repeated"][users],
            order=self.order,
            keys=self.shelf.keys[users],
            top=self.shelf.items[users],
            left=self.shelf.left[users],
        )

    def cut(self, depth: int, falling: bool) -> None:
        """Forget what lies beyond the first places; `falling`: the higher ids tie first."""
        above, tied, before = self.judged.values()
        np.minimum(self.users["listed"], depth, out=self.users["listed"])
        if self.table.scores is None:
            above[above >= depth] = -1
            return
        gone = (above >= 0) & (above + (tied - before if falling else before) >= depth)
        left = np.minimum(tied, depth - 1 - above)
        if falling:
            before -= tied - left
        np.copyto(tied, left)
        above[gone], tied[gone], before[gone] = -1, 0, 0

    def known(self) -> Bool:
        """Flag the users, and return who has a list."""
        known = self.users["given"] > 0
        if self.whole is not self.table:
            known = has_list(self.whole, self.aligned)
        self.aligned.flags[:] |= self.flags
        self.aligned.flags[~known] &= ~np.uint32(UserFlag.KNOWN)
        return known

    def lists(self, k: int, catalogue: _Catalogue) -> TopLists:
        """Put the first places of all users together."""
        known = self.known()
        best = Best(self.shelf.items, self.shelf.left)
        counts = self._counts(known, catalogue)
        return _top.finished(
            self.aligned, best, k, known=known, counts=counts, n_catalogue=catalogue.n_items
        )

    def ranks(self, catalogue: _Catalogue, threads: int) -> Ranks:
        """Put the users together."""
        aligned = self.aligned
        known = self.known()
        n_excluded = np.diff(aligned.excluded_indptr)
        if catalogue.inside is not None:
            inside = ragged.indptr_of(catalogue.inside[aligned.excluded])
            n_excluded = np.diff(inside[aligned.excluded_indptr])
        if aligned.candidate_indptr is not None:
            n_candidates = np.diff(aligned.candidate_indptr)
        elif catalogue.n_items is None:
            n_candidates = np.full(aligned.n_users, -1)
        else:
            n_candidates = catalogue.n_items - n_excluded
            self._check(n_candidates)
        above, tied, before = self.judged.values()
        if aligned.ranked is not None:
            above, tied, before = (np.zeros(len(aligned.judged), np.int64) for _ in range(3))
            above[:] = -1
            for column, found in zip((above, tied, before), self.judged.values(), strict=True):
                column[aligned.ranked] = found
        ties = None if self.table.scores is None else before
        order = best_first(aligned.judged_indptr, above, ties, threads)
        no_candidates = aligned.n_items - np.diff(aligned.excluded_indptr) - n_candidates
        ranks = assemble(aligned, above, tied, before, order, no_candidates, None)
        return dataclasses.replace(
            ranks,
            depth=self.users["listed"],
            n_excluded=n_excluded,
            counts=self._counts(known, catalogue),
            # The lists do not say how many others there are that could have been drawn.
            pool=None if aligned.pool is None else np.full(aligned.n_users, -1),
        )

    def _check(self, n_candidates: Int64) -> None:
        """Check that the catalogue holds what was listed."""
        listed = self.users["listed"]
        if (listed > n_candidates).any():
            user = int(np.argmax(listed > n_candidates))
            raise InputError(
                f"catalogue= leaves {n_candidates[user]:,} items to recommend to user "
                f"{self._user(user)} (the items of train are not recommended), but the list has "
                f"{listed[user]:,}. Hint: the catalogue is all that could have been recommended."
            )

    def _counts(self, known: Bool, catalogue: _Catalogue) -> dict[str, int]:
        """Count what the rules settled, and warn of items that are repeated."""
        table, aligned = self.whole, self.aligned
        ignored = np.ones(table.n_lists, bool)
        ignored[aligned.rows[aligned.rows >= 0]] = False
        counts = {
            **aligned.counts,
            "users_unknown": int(np.count_nonzero(~known)),
            "list_users_ignored": table.not_empty(np.flatnonzero(ignored)),
            "list_train_items": int(self.users["removed"].sum()),
            "list_duplicates": int(self.users["repeated"].sum()),
            "list_items_uncatalogued": catalogue.n_added,
            "list_not_candidates": self.dropped,
        }
        if catalogue.inside is not None:
            strange = (aligned.judged >= 0) & ~catalogue.inside[aligned.judged]
            counts["items_unknown"] = len(np.unique(aligned.judged[strange]))
            counts["relevant_unranked"] = int(np.count_nonzero(strange & aligned.relevant))
        if counts["list_duplicates"]:
            self._warn_of_duplicates()
        return {name: count for name, count in sorted(counts.items()) if count}

    def _warn_of_duplicates(self) -> None:
        repeated = self.users["repeated"]
        user = int(np.argmax(repeated > 0))
        items = self.table.items[self.begin[user] : self.end[user]]
        again: Array = np.delete(items, np.unique(items, return_index=True)[1])
        item = int(again[again >= 0][0])
        ids_of_items = self.table.item_ids
        warn(
            f"{repeated.sum():,} entries in {np.count_nonzero(repeated):,} lists repeat an item "
            f"(the first: user {self._user(user)}, item "
            f"{item if ids_of_items is None else ids.show(ids_of_items, item)}); it counts once, "
            "at its first place, and the rest moves up."
        )

    def _user(self, user: int) -> str:
        return str(user) if self.user_ids is None else ids.show(self.user_ids, user)


class _Catalogue(NamedTuple):
    """What could have been recommended."""

    n_items: int | None  # None: unknown
    inside: Bool | None  # which of the items; None: unknown
    n_added: int  # listed items that it lacked, and that count as part of it


def _catalogue(table: ListTable, request: Request) -> _Catalogue:
    catalogue = request.catalogue
    if catalogue is None or isinstance(catalogue, int):
        return _Catalogue(catalogue, None, 0)
    inside, listed = np.zeros(table.n_items, bool), np.zeros(table.n_items + 1, bool)
    listed[table.items] = True  # the last is padding
    positions = catalogue
    if table.item_ids is not None:
        positions = ids.match(catalogue, table.item_ids, "item ids of the catalogue")
    inside[positions] = True
    n_given = np.count_nonzero(inside)
    inside |= listed[:-1]
    n_items = int(np.count_nonzero(inside))
    return _Catalogue(n_items, inside, n_items - int(n_given))


def _as_listed(request: Request) -> Request:
    """Forget train where its items stay in lists."""
    if request.protocol.train_in_lists == "removed":
        return request
    return dataclasses.replace(request, train=None)


def _with_all_items(table: ListTable, request: Request) -> tuple[ListTable, Request]:
    """Give lists, test and train the same items, whoever names them."""
    test, train, catalogue = request.test, request.train, request.catalogue
    sets = request.candidates if isinstance(request.candidates, Interactions) else None
    chosen = sets.item_ids if sets is not None else None
    if isinstance(request.candidates, Items):
        chosen = request.candidates.ids
    never = request.exclude
    if isinstance(request.candidates, SampledCandidates) and (
        catalogue is None or (isinstance(catalogue, int) and table.item_ids is not None)
    ):
        raise InputError(
            f"{request.candidates} needs to know the items to draw from, and lists do not name "
            "those that nobody was recommended. Hint: catalogue= takes the ids of all items."
        )
    if table.item_ids is not None:
        given = {"test": test.item_ids, "train": None if train is None else train.item_ids}
        given["the catalogue"] = None if isinstance(catalogue, int) else catalogue
        given |= {"candidates": chosen, "exclude": None if never is None else never.ids}
        return table.with_items({w: more for w, more in given.items() if more is not None}), request
    n_items = max(
        table.n_items,
        test.n_items,
        0 if train is None else train.n_items,
        0 if sets is None else sets.n_items,
        *(
            int(items.ids.max(initial=-1)) + 1
            for items in (request.candidates, never)
            if isinstance(items, Items) and items.ids.dtype == np.int64
        ),
    )
    if isinstance(request.candidates, SampledCandidates) and isinstance(catalogue, int):
        n_items = max(n_items, catalogue)
    if catalogue is not None and not isinstance(catalogue, int):
        if catalogue.dtype != np.int64 or catalogue.min(initial=0) < 0:
            both_have_ids("item", "the catalogue", catalogue, "Lists", None)
        n_items = max(n_items, int(catalogue.max(initial=-1)) + 1)
    return (
        dataclasses.replace(table, n_items=n_items),
        dataclasses.replace(
            request,
            test=_widened(test, n_items),
            train=None if train is None else _widened(train, n_items),
            candidates=request.candidates if sets is None else _widened(sets, n_items),
        ),
    )


def _widened(data: Interactions, n_items: int) -> Interactions:
    if data.item_ids is not None or data.n_items == n_items:
        return data
    return dataclasses.replace(data, n_items=n_items)
