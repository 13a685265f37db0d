"""Lists: recommended items, best first, as top-k lists."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data.file_parts import parquet_path
from recometer.data.rows import MAX_NUMBER
from recometer.data.sizes import bytes_of
from recometer.errors import InputError, brief
from recometer.ranks import Ranks, TopLists
from recometer.sources._list_files import ListFiles, warn_of_duplicates
from recometer.sources._list_reading import read_lists, refuse
from recometer.sources._list_runs import take_apart
from recometer.sources._list_source import TableLists
from recometer.sources.base import Apart, Request


class Lists(TableLists):
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
        * an integer array or tensor [n_users, k] of item indices, best first, padded with
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
    memory : str or int, optional
        For Parquet files, the memory that reading them may use at a time, such as ``"2GB"``, or a
        number of bytes. The files are then read when they are evaluated, as often as necessary,
        each time for some of the users. Only the places of the items of test in each list are kept
        (and the first places, if a metric of lists was requested). The results do not change.
        Polars needs memory for some row groups of the files in addition. Sets of candidates for
        each user, and lists with items that are not in the catalogue, are refused. None holds the
        lists in memory as a whole.

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

    _files: ListFiles | None = None

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
        memory: str | int | None = None,
    ) -> None:
        whole = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
        if depth is not None and not (whole and 1 <= depth <= MAX_NUMBER):
            raise InputError(
                f"depth={brief(depth)} must be a whole number from 1 to {MAX_NUMBER:,}, or None."
            )
        columns: dict[str, Any] = {"user": user, "item": item, "rank": rank, "score": score}
        given_ids: dict[str, Any] = {"user_ids": user_ids, "item_ids": item_ids}
        if memory is None:
            table = read_lists(recommendations, **columns, **given_ids, item_offset=item_offset)
            self._fill(table, depth)
            n = table.n_lists
        else:
            budget = bytes_of(memory, "memory", 1)
            path = parquet_path(recommendations, "lists")
            refuse({**given_ids, "item_offset": item_offset or None}, "a file, which has ids")
            self._files = ListFiles(path, columns, depth, budget)
            n = self._files.n_rows
        if not n:
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

    @property
    def in_files(self) -> bool:
        """Whether they are read part by part when they are evaluated."""
        return self._files is not None

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return super().describe() if self._files is None else self._files.describe()

    def listed_users(self) -> Array:
        """Return the ids (or positions) of the users with a list."""
        return super().listed_users() if self._files is None else self._files.listed_users()

    def held_bytes(self) -> int | None:
        """Return the memory that the lists take, or None where they are in files."""
        return super().held_bytes() if self._files is None else None

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the ranking depends on, by name."""
        return super().arrays() if self._files is None else self._files.arrays()

    def apart(self, request: Request, blocks: Sequence[slice]) -> Sequence[Apart] | None:
        """Return the users of each part of the files, and the lists of this part."""
        if self._files is None:
            return None
        found = []
        for users, files in self._files.apart(request, len(blocks)):
            part = copy.copy(self)
            part._files = files
            found.append(Apart(users, part))
        return found

    def warn_of_parts(self, counts: Mapping[str, int]) -> None:
        """Warn of lists that repeat an item, of which the parts of files were ranked apart."""
        warn_of_duplicates(counts)

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item of each user of test is ranked; see `Ranks`."""
        return super().rank(request) if self._files is None else self._files.rank(request)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list, without repetitions; see `TopLists`."""
        return super().top(request, k) if self._files is None else self._files.top(request, k)
