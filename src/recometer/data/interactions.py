"""Interactions of users with items."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Float64, Int32, Int64, laid_out
from recometer.data.columns import Columns
from recometer.data.ids import are_pairs, as_ids, kinds, match, merge_ids, show
from recometer.data.numbers import extent
from recometer.data.rows import (
    MAX_NUMBER,
    OPTIONS,
    Options,
    Rows,
    ascending,
    read_rows,
    user_positions,
)
from recometer.data.times import times_in_words, values_in_words
from recometer.errors import ColumnError, InputError, InputTypeError, RecometerError, brief, warn
from recometer.remembered import cached_property
from recometer.tasks import ROWS_PER_TASK, any_in_blocks, on_all_threads

if TYPE_CHECKING:
    import scipy.sparse

MAX_REPEATED = 5  # number of pairs that `repeated` keeps
# The fields that are arrays, with their dtypes; all but the first two may be None.
DTYPES = {
    "indptr": ("int64",),
    "items": ("int32",),
    "values": ("float64",),
    "times": ("int64", "float64"),
    "copies": ("int64",),
    "largest": ("float64",),
    "user_ids": ("int64", "uint64", "object"),
    "item_ids": ("int64", "uint64", "object"),
}
OPTIONAL = (*DTYPES,)[2:]
# More positions than this are refused if the data use hardly any of them, because ids were probably
# passed as positions. Fewer are always accepted, because an array over them takes at most 2 GiB.
MANY_POSITIONS = 2**28
POSITIONS_PER_ENTRY = 1000


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Interactions:
    """Interactions of users with items: a ragged table in CSR layout.

    The items of user ``u`` are in the rows ``indptr[u]:indptr[u + 1]``. `Interactions.of` reads
    almost anything; the constructor only checks its arguments. Arrays may share memory with the
    original data, so do not change them.

    Attributes
    ----------
    indptr : int64 [n_users + 1]
    items : int32 [n]
        Item positions, in ascending order and without duplicates for each user.
    n_items : int
    values : float64 [n] or None
        Ratings, counts, confidence, ... None means that all values are 1. Infinity is
        allowed, but NaN is not.
    times : int64 or float64 [n] or None
        Numbers are unchanged; dates are converted to microseconds since 1970 (UTC).
    user_ids : int64, uint64 or object [n_users], or None
        Sorted and distinct. None if users are positions.
    item_ids : int64, uint64 or object [n_items], or None
        Like `user_ids`, but for items.
    duplicates : int
        The number of rows that were merged because they repeat a user-item pair.
    copies : int64 [n] or None
        How many rows of the data were merged into each interaction. None means one row
        each. The rule `repeated_test` uses it.
    largest : float64 [n] or None
        The largest value among the merged rows, if values were added up. The rule `repeated_test`
        uses it, too.
    repeated : tuple
        The first few repeated pairs (user, item), as ids, or as positions if there are no ids.
    columns : Columns or None
        The names of the columns that were read from a frame or file.

    Raises
    ------
    InputError
        If arrays are inconsistent, or a value is NaN (the message names its user and item).
    """

    indptr: Int64
    items: Int32
    n_items: int
    values: Float64 | None = None
    times: Array | None = None
    user_ids: Array | None = None
    item_ids: Array | None = None
    duplicates: int = 0
    repeated: tuple[tuple[Any, Any], ...] = ()
    columns: Columns | None = None
    copies: Int64 | None = None
    largest: Float64 | None = None

    def __post_init__(self) -> None:
        _check_types(self)
        self._lay_out()
        _check_rows(self)
        self._check_values()

    @classmethod
    def _in_order(
        cls,
        rows: Rows,
        indptr: Int64,
        items: Array,
        values: Float64 | None,
        times: Array | None,
        merged: Mapping[str, Any],
    ) -> Interactions:
        """Make interactions from sorted columns and facts about merged rows; check only for NaN."""
        interactions = object.__new__(cls)
        named = {
            name: getattr(rows, name) for name in ("n_items", "user_ids", "item_ids", "columns")
        }
        columns = {"items": items.astype(np.int32, copy=False), "values": values, "times": times}
        vars(interactions).update(indptr=indptr, **columns, **named, **merged)
        if rows.value_range is not None and not merged:
            vars(interactions)["value_range"] = rows.value_range
        interactions._lay_out()
        interactions._check_values()
        return interactions

    def _lay_out(self) -> None:
        """Lay out the arrays for the kernel."""
        for name in ("indptr", "items", "values", "times"):
            array = getattr(self, name)
            # Convert to native byte order.
            if array is not None:
                vars(self)[name] = laid_out(array, array.dtype.newbyteorder("="))

    def _check_values(self) -> None:
        """Refuse NaN values."""
        values = self.values
        if values is not None and math.isnan(self.value_range[0]):
            row = int(np.isnan(values).argmax())
            user = int(np.searchsorted(self.indptr, row, side="right")) - 1
            pair = _pair(user, int(self.items[row]), self.user_ids, self.item_ids)
            raise InputError(
                f"The value of {pair} is NaN. Hint: drop missing values, or use 0 for an item that "
                "was judged not relevant."
            )

    @classmethod
    def of(
        cls,
        data: object,
        *,
        user: str | Sequence[str] | None = None,
        item: str | None = None,
        value: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
        n_users: int | None = None,
        n_items: int | None = None,
        item_offset: int = 0,
        user_ids: object = None,
        item_ids: object = None,
        separator: str | Literal[False] | None = None,
    ) -> Interactions:
        """Read interactions from almost anything.

        In a frame, a file or a dict, users and items are ids, unless you pass `n_users` and
        `n_items`, which makes them positions. In a matrix or an edge_index, users and items are
        positions; pass `user_ids` and `item_ids` to give them ids. The data are not changed.

        If rows repeat a user-item pair, their values are added up and the latest time is kept. A
        `DataWarning` says how many rows are repeats.

        Parameters
        ----------
        data
            * an Interactions, which is returned unchanged;
            * a SciPy sparse matrix or array in any format, or a sparse torch tensor. Stored zeros
              are kept and mean "judged but not relevant" (except in bsr and dia, where zeros are
              padding);
            * a NumPy, torch or JAX array of shape [n_users, n_items], or anything with
              ``__dlpack__`` or ``__array__``, whose nonzero entries are the interactions;
            * an integer array or tensor of shape [2, n_edges] together with `n_users` and
              `n_items`: an edge_index with users in the first row and items in the second (without
              these arguments, it is read as a matrix of two users, with a warning if it does not
              look like one);
            * a dict ``{user: {item: value}}`` or ``{user: [items]}``; users without items
              are kept. A dict of columns is refused;
            * a data frame: Polars (also lazy), pandas, pyarrow, DuckDB (``duckdb.sql(...)``), a
              structured NumPy array, or anything that exports an Arrow stream or has columns. The
              item column may hold lists, with one row per user; the value and time columns may
              then hold lists as well;
            * the path of a file: .parquet (also a folder of these, or a pattern such as
              ``"part-*.parquet"``), .csv, .tsv, .csv.gz or .tsv.gz; .npz from
              ``scipy.sparse.save_npz``; or TREC qrels (also .gz). Topics and documents of qrels are
              strings, and documents with a negative relevance count as unjudged.
        user, item, value, time
            Columns of a frame or file. By default, columns with common names are used (see
            `find_columns`); the attribute `columns` lists them. If there is no column of values, a
            `DataWarning` names numeric and Boolean columns that might hold them. A column of scores
            is used only as a last resort, also with a `DataWarning`. Pass
            ``value=False`` or ``time=False`` if there is no such column.

            ``user=["user", "session"]`` evaluates sessions (or events, days, ...) separately, as if
            each were a user. User ids are then tuples (user, session). Training data, factors
            and lists without sessions apply to all sessions of a user, and confidence intervals
            are computed over users.

            For an edge_index, `value` and `time` are arrays [n_edges].
        n_users, n_items
            The numbers of users and items, if these are positions.
        item_offset
            The number to subtract from item positions, for graphs that number the users first and
            then the items.
        user_ids, item_ids : [n_users], [n_items]
            Ids for data without ids, in any order; the rows are sorted by these ids.
        separator
            What separates several items in one cell of a table: a character, such as ``";"``
            in ``"46;93;5"``, or ``"json"`` for ``"[46, 93, 5]"``. Without a separator, such cells
            are refused. False means that each cell is a single id.

        Raises
        ------
        InputError
            If ids are missing, values are NaN, indices are negative or too large, lengths do not
            match, or options do not apply. The message describes the problem.
        InputTypeError
            If the type of the data is not supported, or ids have several types.
        ColumnError
            See `find_columns`.
        FileError
            If a file cannot be read. The message says why.
        """
        options = Options(
            user, item, value, time, n_users, n_items, item_offset, user_ids, item_ids, separator
        )
        return _read(data, options)

    @property
    def n_users(self) -> int:
        """Number of users, including users without interactions."""
        return len(self.indptr) - 1

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest value; both are 1 if there are no values."""
        return (1.0, 1.0) if self.values is None else extent(self.values)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        columns = Columns("", "", None, None) if self.columns is None else self.columns
        sessions = self.user_ids is not None and are_pairs(self.user_ids)
        parts = [
            f"{n:,} {name} ({'positions' if ids is None else kinds(ids) + ' ids'}{_suffix(column)})"
            for n, name, ids, column in (
                (self.n_users, "sessions" if sessions else "users", self.user_ids, columns.user),
                (self.n_items, "items", self.item_ids, columns.item),
            )
        ]
        parts.append(f"{len(self):,} interactions")
        if self.values is not None and len(self):
            parts.append(f"{values_in_words(*self.value_range)}{_suffix(columns.value)}")
        if self.times is not None and len(self):
            parts.append(f"{times_in_words(self.times)}{_suffix(columns.time)}")
        return f"Interactions({', '.join(parts)})"

    def to_csr(self) -> scipy.sparse.csr_array:
        """Copy the values into a SciPy sparse array [n_users, n_items]."""
        import scipy.sparse

        shape = (self.n_users, self.n_items)
        matrix = scipy.sparse.csr_array((gains(self), self.items, self.indptr), shape, copy=True)
        matrix.has_canonical_format = True
        return matrix

    def select_users(self, positions: npt.ArrayLike) -> Interactions:
        """Return the interactions of the given users; the number of items stays the same.

        Parameters
        ----------
        positions : integers [m], or bool [n_users]
            Positions of users, or a mask. If users have ids, positions must be in ascending order.

        Raises
        ------
        InputError
            If positions do not exist, or are not in ascending order although users have ids.
        InputTypeError
            If the argument is neither positions nor a mask.
        """
        chosen = user_positions(positions, self.n_users)
        if self.user_ids is not None and (chosen[1:] <= chosen[:-1]).any():
            raise InputError(
                "Positions of users with ids must be in ascending order. Hint: pass "
                "numpy.unique(positions)."
            )
        indptr, rows = ragged.take(self.indptr, chosen)
        user_ids = None if self.user_ids is None else self.user_ids[chosen]
        return self.with_rows(indptr, rows, user_ids=user_ids)

    def with_users(self, users: Array) -> Interactions:
        """Return the same interactions with additional users, who have no interactions.

        Parameters
        ----------
        users
            Ids if users have ids, otherwise positions. Users who are already present do not change.
        """
        if self.user_ids is None:
            n_users = max(self.n_users, int(users.max(initial=-1)) + 1)
            added = np.full(n_users - self.n_users, self.indptr[-1])
            return dataclasses.replace(self, indptr=np.concatenate([self.indptr, added]))
        is_known = match(users, self.user_ids, "user ids of the lists", "user ids of test") >= 0
        if is_known.all():
            return self
        all_ids = np.concatenate([self.user_ids, as_ids(users, "user ids of the lists")[~is_known]])
        order = np.argsort(all_ids, kind="stable")
        # The additional users have no rows, so the rows stay where they are.
        chosen = np.where(order < self.n_users, order, -1)
        indptr = ragged.indptr_of(ragged.lengths(self.indptr, chosen))
        return dataclasses.replace(self, indptr=indptr, user_ids=all_ids[order])

    def with_rows(self, indptr: Int64, rows: Array, **changes: Any) -> Interactions:
        """Return interactions with only the given rows (positions or a mask) and a new indptr.

        `changes` has new values for further fields.
        """
        for name in ("items", "values", "times", "copies", "largest"):
            array = getattr(self, name)
            if name not in changes and array is not None:
                changes[name] = array[rows]
        return dataclasses.replace(self, indptr=indptr, **changes)


def gains(data: Interactions) -> Float64:
    """Return the values as float64 [n], or ones if there are no values."""
    return np.ones(len(data)) if data.values is None else data.values


def _read(data: object, options: Options) -> Interactions:
    if isinstance(data, Interactions):
        options.refuse("Interactions", *OPTIONS)
        return data
    return build(read_rows(data, options), warn_sums=options.warn_sums)


def build(rows: Rows, *, warn_sums: bool = True) -> Interactions:
    """Sort rows, merge repeated pairs, and build `Interactions` from them."""
    check_count(rows.n_users, "users")
    check_count(rows.n_items, "items")
    items, values, times, indptr = rows.items, rows.values, rows.times, rows.indptr
    for name, column in (("values", values), ("times", times)):
        if column is not None:
            _check_array(name, column)
    merged: dict[str, Any] = {}  # facts about repeated pairs, if any
    if indptr is None:
        assert rows.users is not None
        if rows.user_ids is None:
            check_positions(rows.n_users, len(items), "The users", "entries")
        users = rows.users.astype(np.int64, copy=False)
        order = order_of_pairs(users, items, rows.n_users, rows.n_items)
        if order is not None:
            users, items = users[order], items[order]
            values = None if values is None else values[order]
            times = None if times is None else times[order]
            is_first = np.ones(len(users), dtype=bool)
            is_first[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
            starts = np.flatnonzero(is_first)
            if len(starts) < len(users):
                repeats = starts[np.diff(starts, append=len(users)) > 1][:MAX_REPEATED]
                twice_u, twice_i = users[repeats], items[repeats]
                named = _named(twice_u, rows.user_ids), _named(twice_i, rows.item_ids)
                pair = _pair(int(twice_u[0]), int(twice_i[0]), rows.user_ids, rows.item_ids)
                duplicates = len(users) - len(starts)
                merged["repeated"] = tuple(zip(*named, strict=True))
                merged["duplicates"] = duplicates
                merged["copies"] = np.diff(starts, append=len(users))
                effect = "count once (in test, unless the rule repeated_test says otherwise)"
                if values is None or warn_sums:
                    note = f"they {effect}." if values is None else "their values were summed."
                    warn(
                        f"{duplicates:,} of {len(users):,} interactions repeat a user-item pair "
                        f"(the first: {pair}); {note}"
                    )
                if values is not None:
                    # Add the smallest values first, so that the sum does not depend on row order.
                    values = values[np.lexsort((values, items, users))]
                    merged["largest"] = np.maximum.reduceat(values, starts)
                    with np.errstate(invalid="ignore", over="ignore"):
                        values = np.add.reduceat(values, starts)
                times = None if times is None else np.maximum.reduceat(times, starts)
                users, items = users[starts], items[starts]
        indptr = ragged.indptr_of(np.bincount(users, minlength=rows.n_users))
    return Interactions._in_order(rows, indptr, items, values, times, merged)


def read_interactions(
    data: Any, name: str, *, warns: bool = True, warn_sums: bool = True, **columns: Any
) -> Interactions:
    """Read interactions as `Interactions.of` does; errors start with the name of the argument.

    Without any `columns` (options of `Interactions.of`), messages assume that the user cannot name
    columns in this call. `warns` says whether to warn if a column that might hold values is not
    read. `warn_sums` says whether to warn that the values of repeated pairs were summed, which is
    unnecessary if a rule settles repeated pairs later.
    """
    try:
        argument = (name if not columns else "") if warns else None
        return _read(data, Options(**columns, argument=argument, warn_sums=warn_sums))
    except RecometerError as error:
        message = f"{name}: {error}"
        if isinstance(error, ColumnError) and not columns:
            message += f" Name columns in rm.Interactions.of({name}, ...)."
        error.args = (message,)
        raise


def _suffix(column: str | None) -> str:
    return f" of column {column!r}" if column else ""


def _named(positions: npt.NDArray[np.integer], ids: Array | None) -> list[Any]:
    """Return the ids at some positions, or the positions if there are no ids."""
    return list((positions if ids is None else ids[positions]).tolist())


def _pair(user: int, item: int, user_ids: Array | None, item_ids: Array | None) -> str:
    first = f"row {user}" if user_ids is None else f"user {show(user_ids, user)}"
    second = f"column {item}" if item_ids is None else f"item {show(item_ids, item)}"
    return f"{first} and {second}"


def _check_types(data: Interactions) -> None:
    """Raise an error unless every field has the right type."""
    check_count(data.n_items, "items")
    if not isinstance(data.columns, Columns | None):
        raise InputTypeError(
            f"columns must be a Columns, or None, found {type(data.columns).__name__}. Hint: leave "
            "it out."
        )
    for name, dtypes in DTYPES.items():
        array = getattr(data, name)
        if array is None and name in OPTIONAL:
            continue
        if not isinstance(array, np.ndarray):
            raise InputTypeError(
                f"{name} must be a NumPy array of {' or '.join(dtypes)}, found "
                f"{type(array).__name__}. Hint: rm.Interactions.of(data) reads almost anything."
            )
        _check_array(name, array)


def _check_rows(data: Interactions) -> None:
    """Raise an error unless the items of each user are sorted and all array lengths match."""
    indptr, items, times = data.indptr, data.items, data.times
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(items):
        raise InputError(f"indptr must begin with 0 and end with {len(items)}.")
    if (indptr[1:] < indptr[:-1]).any():
        raise InputError("indptr must not decrease.")
    if not ascending(indptr, items, data.n_items):
        if items.min() < 0 or items.max() >= data.n_items:
            raise InputError(f"items must lie between 0 and n_items - 1 = {data.n_items - 1}.")
        raise InputError("A user's items must be in ascending order, without duplicates.")
    lengths = {"user_ids": data.n_users, "item_ids": data.n_items}
    for name in OPTIONAL:
        array = getattr(data, name)
        if array is not None:
            _check_array(name, array, lengths.get(name, len(items)))
            if name in lengths:
                _check_ids(name, array)
    of_floats = times is not None and times.dtype.kind == "f"
    if times is not None and of_floats and any_in_blocks(len(times), lambda b: np.isnan(times[b])):
        raise InputError("times must not be NaN.")


def check_count(n: object, noun: str) -> None:
    """Raise an error unless this is a valid number of users or items."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise InputTypeError(f"The number of {noun} must be a whole number, found {brief(n)}.")
    if not 0 <= n <= MAX_NUMBER:
        raise InputError(f"There are {n:,} {noun}, but at most {MAX_NUMBER:,} are possible.")


def check_positions(
    n: int, n_entries: int, noun: str, entries: str = "entries in all inputs"
) -> None:
    """Refuse implausibly many positions, before memory is allocated for all of them."""
    if n > MANY_POSITIONS and n > POSITIONS_PER_ENTRY * n_entries:
        raise InputError(
            f"{noun} are the positions 0 to {n - 1:,}, but there are only {n_entries:,} "
            f"{entries}. Hint: if these numbers are ids, use a form that has ids, such as a frame "
            "with the columns user and item, or a dict from user to items."
        )


def _check_array(name: str, array: Array, n: int | None = None) -> None:
    fits = array.dtype.name in DTYPES[name] and array.ndim == 1
    if not fits or (n is not None and len(array) != n):
        raise InputError(
            f"{name} must be {' or '.join(DTYPES[name])} [{'any' if n is None else n}], "
            f"found {array.dtype.name} {list(array.shape)}."
        )


def _check_ids(name: str, ids: Array) -> None:
    """Raise an error unless ids are sorted and distinct, and none is missing."""
    try:
        with np.errstate(invalid="ignore"):  # `as_ids` reports the row of a NaN
            fit = bool((ids[1:] > ids[:-1]).all())
        hash(ids[0] if len(ids) and ids.dtype == object else None)
    except (TypeError, ValueError):
        fit = False
    if not fit or len(ids) == 1:
        as_ids(ids, name)  # raises an error that names the row of a missing id, or the types
    if not fit:
        raise InputError(
            f"{name} must be sorted and distinct, of a type that can be compared and hashed."
        )


def concatenate(first: Interactions, second: Interactions) -> Interactions:
    """Combine the interactions of two parts of the same data, without their values."""
    rows = _all_rows(first, second)
    if first.times is not None and second.times is not None:
        rows.times = np.concatenate([first.times, second.times])
    return build(rows)


def union(first: Interactions, second: Interactions) -> Interactions:
    """Return the user-item pairs that occur in either data set, without values and times."""
    for name in ("user", "item"):
        has_ids = [getattr(side, f"{name}_ids") is not None for side in (first, second)]
        if has_ids[0] != has_ids[1]:
            raise InputError(
                f"Only one of test and candidates has {name} ids. Hint: pass {name} ids for both, "
                "or for neither."
            )
        numbers = [getattr(side, f"n_{name}s") for side in (first, second)]
        if not has_ids[0] and numbers[0] != numbers[1]:
            raise InputError(
                f"The sets of candidates have {numbers[0]:,} {name}s, but test has {numbers[1]:,}. "
                f"Hint: without ids, both must have the same {name}s; an array of positions "
                "[n_users, n] holds whole numbers, and a matrix has a column for every item."
            )
    rows = _all_rows(first, second)
    assert rows.users is not None
    # Keep each pair only once, to avoid a warning about repeated pairs.
    keys = np.unique(ragged.pairs(rows.users, rows.items, rows.n_items))
    rows.users, rows.items = np.divmod(keys, max(rows.n_items, 1))
    return build(rows)


def _all_rows(*sides: Interactions) -> Rows:
    """Concatenate the rows of both sides, with users and items numbered in their union."""
    users, user_ids, n_users = merge_ids("user", [(side.user_ids, side.n_users) for side in sides])
    items, item_ids, n_items = merge_ids("item", [(side.item_ids, side.n_items) for side in sides])
    numbered = list(zip(users, items, sides, strict=True))
    row_users = np.concatenate([codes[ragged.users_of(side.indptr)] for codes, _, side in numbered])
    row_items = np.concatenate([codes[side.items] for _, codes, side in numbered])
    return Rows(row_users, row_items, n_users, n_items, user_ids=user_ids, item_ids=item_ids)


MOST_PARTS = 2**16  # part numbers are 16-bit integers


def order_of_pairs(
    users: Int64, items: Array, n_users: int, n_items: int
) -> npt.NDArray[np.intp] | None:
    """Return the stable order by user, then by item; None if the pairs are already sorted."""
    same = users[1:] == users[:-1]
    if ((users[1:] > users[:-1]) | (same & (items[1:] > items[:-1]))).all():
        return None
    n_parts = min(-(-len(users) // ROWS_PER_TASK), MOST_PARTS, n_users)
    if n_parts == 1:
        return _order(users, items, n_items, n_users)
    # Sort in parts, so that several threads share the work and Ctrl-C takes effect promptly. Use
    # 16-bit part numbers, because NumPy sorts these in one pass per byte.
    part = (users * n_parts // n_users).astype(np.uint16)
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=n_parts)).tolist()

    def sort(bounds: tuple[int, int]) -> None:
        rows = order[slice(*bounds)]
        rows[:] = rows[_order(users[rows], items[rows], n_items, n_users)]

    on_all_threads(sort, list(itertools.pairwise([0, *ends])))
    return order


def _order(users: Int64, items: Array, n_items: int, n_users: int) -> npt.NDArray[np.intp]:
    # Sorting by a single key is faster than sorting by two, but it must fit into int64.
    if n_users * n_items < 2**63:
        return np.argsort(users * np.int64(n_items) + items, kind="stable")
    return np.lexsort((items, users))
