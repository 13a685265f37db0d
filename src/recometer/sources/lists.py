"""The source `Lists`, which consists of top-k lists of recommended items, best first."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule, TieOrder
from recometer.arrays import Array, Bool, Int32, Int64, UInt8, slices
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids
from recometer.data.rows import MAX_NUMBER
from recometer.errors import InputError, argument_text, rule_text, warn
from recometer.protocol import Protocol
from recometer.ranks import KEPT_REPEAT, REMOVED_REPEAT, Ranks, TopLists, UserFlag
from recometer.remembered import cached_property
from recometer.sources import _top_lists
from recometer.sources._generated_lists import read_answers
from recometer.sources._list_reading import read_lists, split_runs
from recometer.sources._list_table import (
    ListCatalogue,
    ListTable,
    catalogue_of,
    judged_scores,
    with_all_items,
)
from recometer.sources._top_lists import Best, Rule
from recometer.sources.alignment import Aligned, align, assemble, best_first, spread
from recometer.sources.base import Facts, Request, Source, comparable_scores, rounded
from recometer.sources.candidates import Items, SampledCandidates
from recometer.tasks import BRIEF, Ticker, run_tasks

if TYPE_CHECKING:
    import polars
    from typing_extensions import Self


def read_depth(depth: int | None) -> int | None:
    """Return the argument `depth`, or raise an error if it is invalid."""
    is_integer = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
    if depth is not None and not (is_integer and 1 <= depth <= MAX_NUMBER):
        raise InputError(
            f"{argument_text('depth', depth)} must be a whole number from 1 to {MAX_NUMBER:,}."
        )
    return None if depth is None else int(depth)


class Lists(Source):
    """Lists of recommended items, one list per user.

    A relevant item that is not in the user's list is a miss, and so is every relevant item of a
    user without a list. A user's training items are removed, and later items move up. Only the
    first occurrence of a repeated item counts.

    The lists do not show how many items could have been recommended. If you do not pass this number
    to `evaluate` (``catalogue=``), rules that need the number of candidates do not apply, and
    metrics of the whole ranking are refused.

    The data are read when you create the object, on all available processors. Parquet files are
    read piece by piece.

    Parameters
    ----------
    recommendations
        * a data frame from any library, with rows in any order, a column of users, one of items,
          and one of ranks (1 is best) or scores (the highest is best). Without ranks and
          scores, the order of a user's rows is the ranking (and a `DataWarning` says so if another
          column contains numbers, unless ``score=False``). Alternatively, each row may contain the
          whole list of a user: the column of items then contains lists, best first, and so does
          the column of ranks or scores, if there is one;
        * a dict ``{user: [items]}``, best first, or ``{user: {item: score}}``;
        * an array of item indices from any library, integers [n_users, k], best first, padded
          with -1. Row u belongs to user u of test, unless you pass `user_ids`. A row that is all
          padding means that the user has no list, and so does ``{user: []}``;
        * the path of a file: .parquet, .csv, .tsv, .csv.gz, .tsv.gz, or a TREC run (also
          .gz). A run's topics and documents are read as strings, and its documents are ranked by
          score. Use ``ties="item_desc"`` to order equal scores like trec_eval, by descending
          document id.
    user, item, rank, score
        Columns of a frame or file. By default, columns with common names are used, and ranks are
        preferred over scores. Pass ``rank=False`` if there is no column of ranks, and
        ``score=False`` if there is no column of scores. Equal scores, and equal ranks, are ties.
        ``user=["user", "session"]`` reads a list for each session of a user, as in
        `Interactions.of`; lists without sessions apply to all sessions of a user.
    user_ids, item_ids
        For an array, the id of each row's user, and the id of the item at each index.
    item_offset
        For an array, the index of the first item, if other things are numbered before the items.
        For instance, PyTorch Geometric models recommend graph nodes, whose numbering starts with
        the users and continues with the items.
    depth
        Number of places of each list that count; all others are ignored. By default, all places
        count. If items tie for the last of these places, and the rule for ties does not order them,
        items with lower ids stay.
    separator
        The separator of the items in a cell, for a table with one row per user and lists that are
        strings: a character, such as ``";"`` in ``"46;93;5"``, or ``"json"`` for ``"[46, 93, 5]"``.
        Without a separator, such cells are refused. Pass False if each cell is a single id.

    Raises
    ------
    InputError
        If ids or ranks are missing, indices are out of range, or options do not apply.
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

    # Set by `from_text`.
    invalid: polars.DataFrame | None = None
    columns: Mapping[str, Any] = MappingProxyType({})

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
        depth = read_depth(depth)
        columns = {"user": user, "item": item, "rank": rank, "score": score}
        positions = {"user_ids": user_ids, "item_ids": item_ids, "item_offset": item_offset or None}
        # The lists in full, although only the first `depth` places of each count.
        self.table = read_lists(recommendations, columns, positions, separator)
        self.depth = depth
        if not self.table.n_lists:
            raise InputError(
                "There are no lists: the recommendations are empty. Hint: check what the model "
                "returned."
            )

    @classmethod
    def each(cls, recommendations: object, by: str, **options: Any) -> dict[Any, Lists]:
        """Read the lists of several runs from one table.

        Parameters
        ----------
        recommendations
            A data frame, or the path of a Parquet, CSV or TSV file.
        by
            The column that identifies the run of each row, such as ``"algorithm"``.
        **options
            Further parameters of `Lists`.

        Returns
        -------
        dict
            The `Lists` for each value of the column, in the order of first occurrence.

        Raises
        ------
        ColumnError
            If the column does not exist.
        InputError
            If an entry of the column is missing.
        InputTypeError
            If the data have no columns.

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
        runs = split_runs(recommendations, by, columns)
        return {run: cls(part, user="user", item="item", **options) for run, part in runs.items()}

    @classmethod
    def from_text(
        cls,
        answers: object,
        catalogue: object,
        *,
        user: str | Sequence[str] | None = None,
        answer: str | None = None,
        depth: int | None = None,
    ) -> Lists:
        r"""Read lists that a model wrote as text, such as the answers of a language model.

        An answer is a JSON list of titles or of objects with a ``title`` (the list may be inside an
        object), a numbered or bulleted list, or a title per line. Text before and after JSON is
        ignored, and so are other lines around numbered and bulleted items, a first line that ends
        with a colon, and what a model writes in ``<think>`` tags. Titles in one line, separated by
        commas, are not split, because titles may contain commas.

        A title refers to the item in the catalogue that has the same title, except for case,
        blanks, punctuation and the Unicode form (NFKC). A year is part of the title. All other
        entries count as misses and keep their places. These are titles that are not in the
        catalogue, titles that several items in the catalogue share, and items that are already in
        the list. Measure them with ``unknown_items@k``, ``repeated_items@k`` and ``valid@k``;
        `recometer.check` shows examples of each kind.

        Parameters
        ----------
        answers
            A dict ``{user: text}``, a data frame from any library with a column of users and one of
            answers, or the path of a Parquet, CSV or TSV file. Instead of a string, an answer can
            be a list of titles.
        catalogue
            A `Catalogue` with ids and titles, or anything that one can be made from.
        user, answer
            Columns of a frame or file. By default, columns with common names are used, such as
            ``user_id`` and ``response``.
        depth
            As for `Lists`.

        Returns
        -------
        Lists
            Its attribute `invalid` is a Polars frame with a row for each place that is not valid:
            user, place (from 1), kind (``"unknown"``, ``"shared"`` or ``"repeated"``) and text. A
            row without a place concerns the whole answer: ``"empty"``, or ``"unreadable"`` (broken
            JSON). Unless the answers are a dict, the attribute `columns` maps ``"user"`` and
            ``"answer"`` to the names of their columns.

        Raises
        ------
        InputError
            If the catalogue has no titles or no ids, a user has several answers, or most answers
            seem to have several titles on one line.
        InputTypeError
            If the type of the answers is not supported.
        ColumnError, FileError
            As for `Lists`.

        Examples
        --------
        >>> import recometer as rm
        >>> catalogue = rm.Catalogue({"item": [1, 2, 3], "title": ["Heat (1995)", "Up", "Alien"]})
        >>> answers = {"ann": "1. **Alien**\n2. Heat (1995)", "bob": '["UP", "Alien 9", "Up"]'}
        >>> lists = rm.Lists.from_text(answers, catalogue)
        >>> test = {"ann": [1], "bob": [2]}
        >>> metrics = "rr valid@3"
        >>> rm.evaluate(lists, test, metrics=metrics, catalogue=catalogue)["valid@3"].round(2)
        array([0.67, 0.33])
        >>> lists.invalid.rows()
        [('bob', 2, 'unknown', 'Alien 9'), ('bob', 3, 'repeated', 'Up')]
        """
        table, invalid, columns = read_answers(answers, catalogue, user=user, answer=answer)
        lists = cls.of_table(table, read_depth(depth))
        lists.invalid, lists.columns = invalid, columns
        return lists

    @classmethod
    def of_some_users(
        cls,
        recommendations: object,
        *,
        depth: int | None = None,
        every_item: Array | None = None,
        **options: Any,
    ) -> Self:
        """Read the lists for some users (or none); other users' lists are read elsewhere.

        `options` are columns and ids, named like the parameters of `recometer.Lists`. Items are
        numbered by their position in `every_item`, which contains the ids of all users' items. If
        it is None, they are numbered by their position among the items of these lists.
        """
        separator = options.pop("separator", None)
        columns = {name: options.pop(name, None) for name in ("user", "item", "rank", "score")}
        table = read_lists(recommendations, columns, options, separator)
        if every_item is not None:
            table = table.with_items({"all users": every_item})
        return cls.of_table(table, depth)

    @classmethod
    def of_table(cls, table: ListTable, depth: int | None) -> Self:
        """Make a source from a table of lists."""
        lists = cls.__new__(cls)
        lists.table, lists.depth = table, depth
        return lists

    def cut_at(self, depth: int) -> Lists:
        """Return the same lists, but count only the first `depth` places of each."""
        read_depth(depth)
        cut = copy.copy(self)
        cut.depth = depth if self.depth is None else min(depth, self.depth)
        return cut

    def describe(self) -> str:
        """Return one line that describes the lists."""
        lengths = np.diff(self.table.indptr)
        n, entries = np.count_nonzero(lengths), len(self.table.items)
        cut = "" if self.depth is None else f", cut at {self.depth:,}"
        longest = lengths.max(initial=0)
        order = ", in the order of the rows" if self.table.by_rows else ""
        return f"Lists: {n:,} lists, {entries:,} entries, up to {longest:,} each{cut}{order}"

    @cached_property
    def facts(self) -> Facts:
        """The entries of all lists, their ids, and the users with a list."""
        table, names = self.table, ("indptr", "items", "scores", "user_ids", "item_ids")
        arrays = {name: getattr(table, name) for name in names}
        arrays["depth"] = None if self.depth is None else np.array(self.depth)
        known, listed, repeats = table.known_ids, table.listed_users, not table.generated
        return Facts(arrays, None, known, listed, input_order=True, repeats_items=repeats)

    def check(self, request: Request) -> None:
        """Raise any error that occurs when the lists are matched with a request."""
        table, request = with_all_items(self.table, request)
        align(table.index, request, catalogue_of(table, request).inside)

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of each user of test; see `Ranks`."""
        table, request = with_all_items(self.table, request)
        work, catalogue = self._prepare(table, request, None)
        repeats, without_repeats = None, None
        # With sampled candidates, it is undefined whether repeats are candidates, so remove them.
        drawn = isinstance(request.candidates, SampledCandidates)
        if request.protocol.duplicates != "removed" or (table.generated and not drawn):
            repeats = Repeats.of(table, work.aligned.numbers)
        if repeats is not None:
            work.run_all(request)
            without_repeats = work.facts(catalogue, work.flag_known())
            table, request = repeats.table, repeats.add_to(request)
            work, catalogue = self._prepare(table, request, None)
        work.run_all(request)
        if self.depth is not None:
            work.cut(self.depth, request.protocol.ties)
        ranks = work.ranks(catalogue, request.threads, without_repeats)
        if table.scores is not None and table.given is None:
            ranks = dataclasses.replace(ranks, by_rank=True)
        if request.protocol.score_above is not None:
            ranks = _with_scores(ranks, table, work.aligned.rows, request.protocol)
        if repeats is None:
            return ranks
        ranks = repeats.restore_items(ranks, work.aligned.rows, request.protocol.ties)
        if table.generated:
            assert ranks.repeated is not None
            assert without_repeats is not None
            unrepeated = ranks.rows(~ranks.repeated)
            ranks = dataclasses.replace(unrepeated, repeated=None, counts=without_repeats.counts)
        return ranks

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list, without repeats; see `TopLists`."""
        protocol = dataclasses.replace(request.protocol, duplicates="removed")
        request = dataclasses.replace(request, protocol=protocol)
        if self.depth is not None and request.protocol.ties == "random":
            return _top_lists.cut_at_random(self, request, k, self.depth, self._best)
        return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        table, request = with_all_items(self.table, request)
        work, catalogue = self._prepare(table, request, rule)
        work.keep_places(k, rule, self.depth)
        work.run_all(request)
        lists = work.lists(k, catalogue)
        if table.generated and self.depth is not None:
            # Some of the places are occupied by repeats.
            repeats = lists.repeats[:, : self.depth]
            n_left = self.depth - np.count_nonzero(repeats, axis=1)
            items = np.where(np.arange(lists.depth) < n_left[:, np.newaxis], lists.items, -1)
            lists = dataclasses.replace(lists, items=items, repeats=repeats)
        return lists

    def _prepare(
        self, table: ListTable, request: Request, rule: Rule | None
    ) -> tuple[ListWork, ListCatalogue]:
        catalogue = catalogue_of(table, request)
        aligned = align(table.index, request, catalogue.inside)
        if rule is not None:
            aligned = rule.apply_to(aligned)
        table = with_comparable_scores(table, request.protocol)
        work = ListWork(table, aligned, request)
        if request.candidates is not None or request.exclude is not None:
            work.keep_candidates()
            (n_items, inside, _), numbers = catalogue, aligned.numbers
            if isinstance(request.candidates, Items):  # the list of candidates is the catalogue
                catalogue = ListCatalogue(aligned.n_items)
            elif numbers is not None and inside is not None:
                inside = inside[numbers >= 0]
                catalogue = catalogue._replace(n_items=int(np.count_nonzero(inside)), inside=inside)
            elif numbers is not None and n_items is not None:
                n_items -= int(np.count_nonzero(numbers < 0))
                catalogue = catalogue._replace(n_items=n_items)
        return work, catalogue


def _with_scores(ranks: Ranks, table: ListTable, lists: Int64, protocol: Protocol) -> Ranks:
    """Add the score of each judged item, if the lists have scores or a convention is used."""
    if table.given is not None:
        return dataclasses.replace(ranks, score=judged_scores(table, lists, ranks))
    if protocol.version:  # items of lists without scores never count as scored too low
        return dataclasses.replace(ranks, score=np.full(len(ranks.above), np.inf))
    return ranks


USERS_PER_TASK = 4096
COUNTED = ("given", "listed", "removed", "repeated")  # counts per user, from the kernel


class ListFacts(NamedTuple):
    """Facts about the test users that do not depend on the order of lists."""

    n_excluded: Int64
    n_candidates: Int64  # -1 if unknown
    counts: Mapping[str, int]


class ListWork:
    """The state shared by the tasks of a call; each task writes only its own users' entries."""

    dropped = 0  # number of entries that are not candidates
    n_cut_in_ties = 0  # number of users with a test item in a tie that was cut
    order, widths = TieOrder.ITEM, (0, 0)

    def __init__(self, table: ListTable, aligned: Aligned, request: Request) -> None:
        self.full_table = table  # before dropping entries that are not candidates
        self.aligned = aligned
        ties = request.protocol.ties
        has_scores = table.given is not None
        self.input_order = ties == "input" or (ties == "as_ranked" and has_scores)
        self.nan_rule = NanRule[request.protocol.nan_scores.upper()]
        self.user_ids, self.some_users = request.test.user_ids, request.some_users
        n_users, n = aligned.n_users, len(aligned.ranked_items)
        # Without scores, nothing is tied: use read-only zeros that take no memory.
        none = np.broadcast_to(np.int64(0), (2, n))
        tied, before = none if table.scores is None else np.empty((2, n), np.int64)
        self.judged = {"above": np.empty(n, np.int64), "tied": tied, "before": before}
        # Columns with an entry per user, for the kernel. The first places of a list are in "top",
        # and the number of further candidates that tie with the last of them is in "left".
        counts = np.empty((len(COUNTED), n_users), np.int64)
        self.users: dict[str, Any] = dict(zip(COUNTED, counts, strict=True))
        self._read(table)
        kinds = {"flags": np.uint32, "keys": np.uint64, "left": np.int64}
        self.users |= {name: np.zeros(n_users, kind) for name, kind in kinds.items()}
        # `_flag_constant` reads how many candidates tie with the first place.
        candidates_known = request.catalogue is not None or request.candidates is not None
        first = int(table.scores is not None and candidates_known)
        self.users["top"] = np.full((n_users, first), -1, np.int32)

    def _read(self, table: ListTable) -> None:
        """Store a table of lists, and where each user's list begins and ends."""
        self.table = table
        rows = np.maximum(self.aligned.rows, 0)
        self.users["begin"] = table.indptr[rows]
        self.users["end"] = self.users["begin"] + ragged.lengths(table.indptr, self.aligned.rows)

    def keep_places(self, k: int, rule: Rule, depth: int | None) -> None:
        """Make `run` also keep the first places of the lists."""
        longest = int((self.users["end"] - self.users["begin"]).max(initial=0))
        k = min(k, longest)
        depth = k if depth is None else depth
        self.users["keys"] = rule.keys
        self.users["top"] = np.full((len(self.users["keys"]), min(k, depth)), -1, np.int32)
        # In generated lists, repeats beyond place k also use up places within the depth.
        width = max(k, min(depth, longest)) if self.table.generated else k
        self.order, self.widths = rule.order, (width, depth)

    def run_all(self, request: Request) -> None:
        """Read all users' lists, on several threads."""
        n_users = self.aligned.n_users
        blocks = slices(n_users, USERS_PER_TASK)
        brief = n_users + int((self.users["end"] - self.users["begin"]).sum()) <= BRIEF
        run_tasks(self.run, blocks, label="Ranking", brief=brief, **request.pace)

    def keep_candidates(self) -> None:
        """Drop all items that are not candidates from the lists."""
        table, self.dropped = only_candidates(self.table, self.aligned)
        self._read(table)

    def run(self, users: slice, ticker: Ticker) -> None:
        """Find the judged items of the given users in their lists."""
        ticker.advance()
        table, aligned = self.table, self.aligned
        unscored = {"tied": None, "before": None} if table.scores is None else {}
        offsets = slice(users.start, users.stop + 1)
        _kernel.rank_lists(
            items=table.items,
            scores=table.scores,
            n_items=table.n_items,
            excluded_indptr=aligned.excluded_indptr[offsets],
            excluded=aligned.excluded,
            judged_indptr=aligned.ranked_indptr[offsets],
            judged=aligned.ranked_items,
            input_order=self.input_order,
            nan_rule=self.nan_rule,
            order=self.order,
            **{**self.judged, **unscored},
            **{name: column[users] for name, column in self.users.items()},
        )

    def cut(self, depth: int, ties: str) -> None:
        """Drop items beyond the first `depth` places; count the users for whom this cuts a tie."""
        above, tied, before = self.judged.values()
        np.minimum(self.users["listed"], depth, out=self.users["listed"])
        if self.table.scores is None:
            above[above >= depth] = -1
            return
        falling = ties == "item_desc"
        is_cut = (above >= 0) & (above + (tied - before if falling else before) >= depth)
        n_tied = np.minimum(tied, depth - 1 - above)
        if ties not in ("item", "item_desc", "input", "as_ranked"):
            split = (n_tied < tied) & (above >= 0) & ~is_cut
            self.n_cut_in_ties = len(np.unique(ragged.users_of(self.aligned.ranked_indptr)[split]))
        if falling:
            before -= tied - n_tied
        np.copyto(tied, n_tied)
        above[is_cut], tied[is_cut], before[is_cut] = -1, 0, 0

    def flag_known(self) -> Bool:
        """Set the users' flags, and return a mask of users who have a list."""
        known: Bool = self.users["given"] > 0
        if self.full_table is not self.table:
            known = self.full_table.hold_items(self.aligned.rows)
        self.aligned.flags[:] |= self.users["flags"]
        self.aligned.flags[~known] &= ~np.uint32(UserFlag.KNOWN)
        return known

    def lists(self, k: int, catalogue: ListCatalogue) -> TopLists:
        """Return the first places of all users' rankings."""
        known = self.flag_known()
        best = Best(self.users["top"], self.users["left"])
        counts = self._counts(known, catalogue, self._outside_catalogue(catalogue))
        self._warn_of_duplicates(counts)
        lists = _top_lists.make_lists(
            self.aligned, best, k, known=known, counts=counts, n_catalogue=catalogue.n_items
        )
        repeats = self._repeats(lists.lengths > 0)
        return dataclasses.replace(lists, uncatalogued=catalogue.lacking, repeats=repeats)

    def _repeats(self, listed: Bool) -> UInt8:
        """Return which of the places in `keep_places` are repeats; see `TopLists.repeats`."""
        aligned, (width, depth) = self.aligned, self.widths
        if not self.users["repeated"].any():
            return np.zeros((aligned.n_users, 0), np.uint8)
        # The lists for the users marked in `listed`, without excluded items and padding.
        indptr, entries = ragged.take(self.table.indptr, np.where(listed, aligned.rows, -1))
        items, n_items = self.table.items[entries], self.table.n_items
        excluded = ragged.numbered(aligned.excluded_indptr, aligned.excluded, n_items)
        keep = (items >= 0) & ~ragged.among(ragged.numbered(indptr, items, n_items), excluded)
        user, items = ragged.users_of(indptr)[keep], items[keep]
        if self.table.scores is not None:
            scores = self.table.scores[entries][keep]
            last = np.isnan(scores) != (self.nan_rule == NanRule.FIRST)
            tied: Array = -items if self.order == TieOrder.ITEM_DESCENDING else items
            if self.input_order:
                tied = np.arange(len(items))
            items = items[np.lexsort((tied, -scores, last, user))]
        is_repeat = np.ones(len(items), bool)
        is_repeat[np.unique(ragged.pairs(user, items, n_items), return_index=True)[1]] = False
        place = np.arange(len(items)) - np.searchsorted(user, user)
        shown = is_repeat & (place < width)
        kinds = np.zeros((aligned.n_users, width), np.uint8)
        kind = KEPT_REPEAT if self.full_table.generated else REMOVED_REPEAT
        kinds[user[shown], place[shown]] = kind
        if not self.full_table.generated:
            removed = kinds > 0
            kinds[np.cumsum(~removed, axis=1) + removed > depth] = 0
        return kinds

    def facts(self, catalogue: ListCatalogue, known: Bool) -> ListFacts:
        """Return facts that do not depend on the order of lists; `known` is from `flag_known()`."""
        aligned = self.aligned
        n_excluded, uncatalogued = aligned.n_excluded, self._outside_catalogue(catalogue)
        if catalogue.inside is not None:
            inside = ragged.indptr_of(catalogue.inside[aligned.excluded])
            n_excluded = np.diff(inside[aligned.excluded_indptr])
        if aligned.candidates is not None:
            n_candidates = np.diff(aligned.candidates[0])
        elif catalogue.n_items is None:
            n_candidates = np.full(aligned.n_users, -1)
        else:
            # Items outside the catalogue are candidates only for users whose lists contain them.
            n_outside = np.bincount(uncatalogued // self.table.n_items, minlength=aligned.n_users)
            n_candidates = catalogue.n_items - n_excluded + n_outside
            self._check(n_candidates)
        return ListFacts(n_excluded, n_candidates, self._counts(known, catalogue, uncatalogued))

    def ranks(
        self, catalogue: ListCatalogue, threads: int, without_repeats: ListFacts | None = None
    ) -> Ranks:
        """Return the ranks of all users.

        `without_repeats` is the result of `facts` for lists without repeats.
        """
        aligned = self.aligned
        known = self.flag_known()
        facts = without_repeats
        if facts is None:
            facts = self.facts(catalogue, known)
            self._warn_of_duplicates(facts.counts)
        above, tied, before = self.judged.values()
        if without_repeats is None and self.table.scores is not None:
            self._flag_constant(above, facts.n_candidates)
        if aligned.ranked is not None:
            above, tied, before = spread(aligned.ranked, len(aligned.judged), above, tied, before)
        ties = None if self.table.scores is None else before
        order = best_first(aligned.judged_indptr, above, ties, threads)
        aligned = aligned.copy_with(n_excluded=facts.n_excluded, counts=facts.counts)
        counts = above, tied, before, order, facts.n_candidates
        return assemble(aligned, *counts, None, self.users["listed"])

    def _flag_constant(self, above: Int64, n_candidates: Int64) -> None:
        """Flag users without ranked judged items if all their candidates have the same score.

        This requires a list of all candidates, as unlisted candidates rank below the listed ones.
        """
        aligned, shown = self.aligned, np.zeros(self.aligned.n_users, bool)
        shown[ragged.users_of(aligned.ranked_indptr)[above >= 0]] = True
        complete = (self.users["listed"] == n_candidates) & (n_candidates > 1)
        constant = complete & ~shown & (self.users["left"] == n_candidates - 1)
        aligned.flags[constant] |= np.uint32(UserFlag.CONSTANT_SCORES)

    def _outside_catalogue(self, catalogue: ListCatalogue) -> Int64:
        """Return the ascending pairs of a user and a listed item that is not in the catalogue.

        Items that were removed from lists do not count.
        """
        aligned, inside, n_items = self.aligned, catalogue.inside, self.table.n_items
        if inside is None or catalogue.lacking is None or not len(catalogue.lacking):
            return np.zeros(0, np.int64)
        outside = np.append(~inside, False)  # the last entry is for padding
        indptr, entries = ragged.take(self.table.indptr, aligned.rows)
        user, items = ragged.users_of(indptr), self.table.items[entries]
        is_outside = outside[items]
        outside_pairs = np.unique(ragged.pairs(user[is_outside], items[is_outside], n_items))
        removed = ragged.numbered(aligned.excluded_indptr, aligned.excluded, n_items)
        uncatalogued: Int64 = outside_pairs[~ragged.among(outside_pairs, removed)]
        return uncatalogued

    def _check(self, n_candidates: Int64) -> None:
        """Refuse lists that are longer than the catalogue."""
        listed = self.users["listed"]
        if (listed > n_candidates).any():
            user = int(np.argmax(listed > n_candidates))
            raise InputError(
                f"{argument_text('catalogue')} leaves {n_candidates[user]:,} items to recommend to "
                f"user {self._user(user)} (training items are not recommended), but the list has "
                f"{listed[user]:,}. Hint: the catalogue must hold all items that could have been "
                "recommended."
            )

    def _counts(self, known: Bool, catalogue: ListCatalogue, uncatalogued: Int64) -> dict[str, int]:
        """Return the numbers of users, items and entries that rules affected."""
        table, aligned = self.full_table, self.aligned
        ignored = np.ones(table.n_lists, bool)
        ignored[aligned.rows[aligned.rows >= 0]] = False
        repeated = "list_repeats" if table.generated else "list_duplicates"
        counts = {
            **aligned.counts,
            "users_unknown": int(np.count_nonzero(~known)),
            "list_users_ignored": int(np.count_nonzero(table.hold_items(np.flatnonzero(ignored)))),
            "list_train_items": int(self.users["removed"].sum()),
            repeated: int(self.users["repeated"].sum()),
            "list_items_uncatalogued": len(uncatalogued),
            "list_not_candidates": self.dropped,
            "cut_in_ties": self.n_cut_in_ties,
        }
        if catalogue.inside is not None:
            is_outside = (aligned.judged >= 0) & ~catalogue.inside[aligned.judged]
            counts["items_unknown"] = len(np.unique(aligned.judged[is_outside]))
            rows = np.flatnonzero(is_outside & aligned.relevant)
            users = ragged.users_of(aligned.judged_indptr)[rows]
            pairs = ragged.pairs(users, aligned.judged[rows], table.n_items)
            # Do not count relevant items that are in the user's list, though not in the catalogue.
            counts["relevant_unranked"] = int(np.count_nonzero(~ragged.among(pairs, uncatalogued)))
        return {name: count for name, count in counts.items() if count}

    def _warn_of_duplicates(self, counts: Mapping[str, int]) -> None:
        if "list_duplicates" not in counts or self.some_users:
            return
        repeated = self.users["repeated"]
        user = int(np.argmax(repeated > 0))
        items = self.table.items[self.users["begin"][user] : self.users["end"][user]]
        repeats: Array = np.delete(items, np.unique(items, return_index=True)[1])
        item = int(repeats[repeats >= 0][0])
        ids_of_items = self.table.item_ids
        warn(
            f"{repeated.sum():,} entries in {np.count_nonzero(repeated):,} lists repeat an item "
            f"(the first: user {self._user(user)}, item "
            f"{item if ids_of_items is None else ids.show(ids_of_items, item)}); of a "
            "repeated item, only the first occurrence counts, and later items move up."
        )

    def _user(self, user: int) -> str:
        return str(user) if self.user_ids is None else ids.show(self.user_ids, user)


@dataclasses.dataclass(frozen=True)
class Repeats:
    """The repeated items in some lists."""

    table: ListTable  # the lists, with items as positions, and a new item for every repeat
    item_ids: Array | None  # of the original items
    user: Int64  # the list of each repeat
    item: Int64  # the repeated item
    new_item: Int64  # the item that replaces it
    first_new: int  # the first item that replaces a repeat

    @classmethod
    def of(cls, table: ListTable, numbers: Int32 | None) -> Repeats | None:
        """Find repeats of items that may be recommended; None if there are none.

        `numbers` come from `Aligned`: -1 means that the item is not a candidate of any user.
        """
        user = ragged.users_of(table.indptr)
        key = ragged.pairs(user, table.items, table.n_items)
        order = np.argsort(key, kind="stable")
        is_repeat = np.zeros(len(key), bool)
        is_repeat[order[1:]] = np.diff(key[order]) == 0
        is_repeat &= table.items >= 0
        if numbers is not None:
            is_repeat &= numbers[table.items] >= 0
        rows = np.flatnonzero(is_repeat)
        if not len(rows):
            return None
        number = np.arange(len(rows)) - np.searchsorted(user[rows], user[rows])
        items = table.items.copy()
        items[rows] = table.n_items + number
        n_items = table.n_items + int(number.max()) + 1
        changed = dataclasses.replace(table, items=items, n_items=n_items, item_ids=None)
        repeated = table.items[rows].astype(np.int64)
        new_item = table.n_items + number
        return cls(changed, table.item_ids, user[rows], repeated, new_item, table.n_items)

    def add_to(self, request: Request) -> Request:
        """Add the repeats to test, train and candidates, wherever these contain the repeated item.

        Sampled candidates are refused. Warnings are issued only once, for the request without
        repeats.
        """
        train, candidates = request.train, request.candidates
        if isinstance(candidates, SampledCandidates):
            raise InputError(
                f"{rule_text('duplicates', request.protocol.duplicates)} keeps the places of "
                f"repeated items, but {candidates} does not define whether a repeated item is "
                "drawn. Hint: pass lists without repeated items, or "
                f"{rule_text('duplicates', 'removed')}."
            )
        if isinstance(candidates, Interactions):
            candidates = self._add_to_data(candidates, "candidates")
        elif isinstance(candidates, Items):
            later = np.arange(self.first_new, self.table.n_items)
            positions = np.concatenate([self._positions(candidates.ids), later])
            candidates = dataclasses.replace(candidates, ids=positions)
        catalogue, exclude = request.catalogue, request.exclude
        if isinstance(catalogue, np.ndarray):
            catalogue = self._positions(catalogue)
        if exclude is not None:
            exclude = dataclasses.replace(exclude, ids=self._positions(exclude.ids))
        return dataclasses.replace(
            request,
            catalogue=catalogue,
            exclude=exclude,
            test=self._add_to_data(request.test, "test"),
            train=None if train is None else self._add_to_data(train, "train"),
            candidates=candidates,
            some_users=True,
        )

    def _positions(self, items: Array) -> Array:
        """Convert item ids to positions; if the lists have no ids, the items are positions."""
        return items if self.item_ids is None else ids.match(items, self.item_ids, "item ids")

    def _add_to_data(self, data: Interactions, side: str) -> Interactions:
        table = self.table
        items: Int64 = data.items.astype(np.int64)
        if data.item_ids is not None:
            items = self._positions(data.item_ids)[items]
        lists = np.arange(data.n_users)
        if both_have_ids("user", "Lists", table.user_ids, side, data.user_ids):
            assert data.user_ids is not None
            lists = ids.match(data.user_ids, table.user_ids, "user ids")
        user = ragged.users_of(data.indptr)
        # Pairs of a list and an item, each with its row in the data.
        key = ragged.pairs(lists[user], items, table.n_items)
        order = np.argsort(key, kind="stable")
        repeats = ragged.pairs(self.user, self.item, table.n_items)
        places = np.minimum(np.searchsorted(key[order], repeats), max(len(key) - 1, 0))
        in_data = key[order[places]] == repeats if len(key) else np.zeros(len(repeats), bool)
        row = order[places[in_data]]
        every_user = np.concatenate([user, user[row]])
        every_item = np.concatenate([items, self.new_item[in_data]])
        sorted_rows = np.lexsort((every_item, every_user))
        indptr = ragged.indptr_of(np.bincount(every_user, minlength=data.n_users))
        values = None
        if data.values is not None:
            values = np.concatenate([data.values, data.values[row]])[sorted_rows]
        return dataclasses.replace(
            data,
            indptr=indptr,
            items=every_item[sorted_rows].astype(np.int32),
            n_items=table.n_items,
            values=values,
            times=None,
            copies=None,
            largest=None,
            item_ids=None,
        )

    def restore_items(self, ranks: Ranks, lists: Int64, ties: str) -> Ranks:
        """Turn repeats back into the original items, and count each relevant item only once.

        If an item has several rows, the one that ranks first counts, and all others are repeats. If
        the rule for ties does not order the rows, the one that is first in the list counts. `lists`
        holds the position of each user's list, or -1.
        """
        user, item = ranks.user, ranks.item.copy()
        rows = np.flatnonzero(item >= self.first_new)
        n_items = self.table.n_items
        repeats = ragged.pairs(self.user, self.new_item, n_items)
        order = np.argsort(repeats)
        new_items = ragged.pairs(lists[user[rows]], item[rows], n_items)
        places = np.searchsorted(repeats[order], new_items)
        item[rows] = self.item[order[places]]
        place = ranks.above + (ranks.tied - ranks.before if ties == "item_desc" else ranks.before)
        place[ranks.above < 0] = np.iinfo(np.int64).max
        order = np.lexsort((ranks.item, place, item, user))
        repeated = np.zeros(len(item), bool)
        repeated[order[1:]] = (np.diff(user[order]) == 0) & (np.diff(item[order]) == 0)
        repeated &= item >= 0  # rows of unknown items cannot repeat an item
        n_repeated = np.bincount(user[repeated & ranks.relevant], minlength=ranks.n_users)
        counts = {**ranks.counts, "list_repeats": len(self.new_item)}
        counts.pop("list_duplicates", None)  # here, repeats keep their places
        return dataclasses.replace(
            ranks,
            item=item,
            repeated=repeated,
            n_relevant=ranks.n_relevant - n_repeated,
            counts=counts,
            item_ids=self.item_ids,
        )


def only_candidates(table: ListTable, aligned: Aligned) -> tuple[ListTable, int]:
    """Drop the entries that are not candidates; later entries move up.

    Returns the table, with items numbered as in `aligned.judged`, and the number of dropped entries
    of test users.
    """
    users = np.full(table.n_lists, -1)
    known_users = np.flatnonzero(aligned.rows >= 0)
    users[aligned.rows[known_users]] = known_users
    user = users[ragged.users_of(table.indptr)]
    items = aligned.locate(np.maximum(user, 0), table.items)
    dropped = int(np.count_nonzero((items < 0) & (table.items >= 0) & (user >= 0)))
    item_ids = table.item_ids
    if aligned.numbers is not None:
        positions = np.flatnonzero(aligned.numbers >= 0)
        item_ids = positions if item_ids is None else item_ids[positions]
    keep = items >= 0
    narrowed = dataclasses.replace(
        table,
        indptr=ragged.offsets(keep, table.indptr),
        items=items[keep].astype(np.int32),
        scores=None if table.scores is None else table.scores[keep],
        n_items=aligned.n_items,
        item_ids=item_ids,
    )
    return narrowed, dropped


def with_comparable_scores(table: ListTable, protocol: Protocol) -> ListTable:
    """Return the lists with the scores that are actually compared; ranks are not rounded."""
    scores = table.scores
    if protocol.single_precision and table.given is not None:
        # Rounding may make strictly descending scores equal.
        scores = rounded(table.given, protocol)
    if scores is not None:
        scores = comparable_scores(scores, protocol.replace(single_precision=False), lowest=True)
    return table if scores is table.scores else dataclasses.replace(table, scores=scores)
