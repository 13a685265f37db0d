"""Reads, sorts and matches the ids of users, sessions and items."""

from __future__ import annotations

import datetime
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np
import numpy.typing as npt

from recometer import _kernel
from recometer.arrays import Array, Int64, UInt32, UInt64
from recometer.data.columns import ColumnPair
from recometer.data.forks import check_threads
from recometer.data.numbers import as_array, check_whole
from recometer.data.tensors import is_a
from recometer.errors import InputError, InputTypeError, brief
from recometer.tasks import each_block, even_parts, on_all_threads

if TYPE_CHECKING:
    import polars as pl

Ids = Array

# The first match counts, so bool precedes its base class int, and datetime precedes date.
KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "bool"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str,), "str"),
    ((datetime.datetime,), "datetime"),
    ((datetime.date,), "date"),
)
STRINGS_PER_THREAD = 2**18  # minimum number of strings per thread
MANY_STRINGS = 2**14
# The types of missing entries, by name, because pandas (NA, NaT) may not be installed.
MISSING_TYPES = ("NoneType", "NAType", "NaTType")
POLARS_KINDS = ("str", "bool", "float", "date", "datetime")  # object ids that Polars can store


def as_ids(ids: object, noun: str) -> Ids:
    """Return ids as an array of a single kind, in their original order: int64, uint64 or object.

    The ids are integers, strings, UUIDs, dates, or any other values that are hashable and ordered;
    or pairs of these (a user and one of the user's sessions), as tuples or as a Polars struct.
    `noun` names them in messages: ``"user ids of test"``. The result is uint64 only if an
    integer exceeds int64. Floats become integers if all of them are whole numbers, because pandas
    converts integer columns with missing values to floats.

    Raises
    ------
    InputError
        If an id is missing (the message names its row), if the array is not one-dimensional, or if
        ids are floats that may stand for several whole numbers (see `check_whole`).
    InputTypeError
        If the ids are of several kinds.
    """
    if type(ids) is np.ndarray and ids.dtype.kind in "iu" and ids.ndim == 1:
        return _from_integers(ids)
    if _is_polars_series(ids):
        if _is_pair(ids):
            codes, distinct = _encode_pairs(ids, noun)
            return distinct[codes]
        if ids.dtype.is_decimal() and getattr(ids.dtype, "scale", None) == 0:
            import polars as pl

            ids = ids.cast(pl.Int128)  # databases return their widest integers as decimals
        exact = ids.dtype.is_float() or (
            ids.dtype.is_integer() and not str(ids.dtype).endswith("128")
        )
        ids = ids.to_numpy() if exact else ids.to_list()
    # NumPy would turn the list [1, "a"] into two strings.
    if isinstance(ids, list | tuple):
        return _from_objects(ids, noun)
    array = as_array(ids, f"The {noun}")
    if np.ma.is_masked(array):
        missing(noun, int(np.ma.getmaskarray(array).argmax()))
    array = np.asarray(array)
    if array.ndim != 1:
        raise InputError(
            f"The {noun} must be a sequence or an array of one dimension, "
            f"found {type(ids).__name__} of shape {array.shape}."
        )
    if array.dtype.kind in "iu":
        return _from_integers(array)
    if array.dtype.kind == "f":
        return _from_floats(array, noun)
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            missing(noun, int(np.isnat(array).argmax()))
        days = np.datetime_data(array.dtype)[0] in ("Y", "M", "W", "D")
        array = array.astype("datetime64[D]" if days else "datetime64[us]")
    return _from_objects(array.tolist(), noun)


def encode(ids: object, noun: str, dtype: npt.DTypeLike = np.int64) -> tuple[Any, Ids]:
    """Replace each id with its position among the sorted distinct ids.

    `ids` and `noun` are as in `as_ids`. Ids that cannot be sorted, and strings that are not
    Unicode, are refused. For many ids, codes of dtype int32 save memory.

    Returns
    -------
    codes : `dtype` [n]
    distinct : int64, uint64 or object [n_distinct]
        Sorted; ``distinct[codes]`` are the ids.
    """
    ids = many_strings(ids)
    if _is_polars_series(ids) and _is_pair(ids):
        codes, distinct = _encode_pairs(ids, noun)
        return codes.astype(dtype, copy=False), distinct
    if _is_polars_series(ids) and str(ids.dtype).startswith(("String", "Categorical", "Enum")):
        return _encode_strings(ids, noun, dtype)
    array = as_ids(ids, noun)
    if array.dtype != object:
        codes, distinct = _encode_integers(array)
        return codes.astype(dtype, copy=False), distinct
    if _ascend(array):
        return np.arange(len(array), dtype=dtype), array
    values = array.tolist()
    if kind(array) == "str":
        check_threads()
        import polars as pl

        try:
            return _encode_strings(pl.Series(values, dtype=pl.String), noun, dtype)
        except UnicodeEncodeError as error:
            raise InputError(
                f"The {noun} hold {brief(error.object)}, which is not Unicode. Hint: decode "
                "it correctly, or pass ids that are bytes or integers."
            ) from None
    try:
        ordered = sorted(set(values))
    except TypeError as error:
        raise InputTypeError(
            f"The {noun} of type {kind(array)} (for instance {values[0]!r}) cannot be compared: "
            f"{error}. Hint: convert them to strings or integers."
        ) from None
    index = {value: code for code, value in enumerate(ordered)}
    codes = np.fromiter(map(index.__getitem__, values), dtype, len(values))
    return codes, np.fromiter(ordered, object, len(ordered))


def encode_distinct(ids: object, n: int, name: str, side: str = "") -> tuple[Int64, Ids]:
    """Encode the ids of all `n` users or items, which must be distinct.

    `name` is ``"user"`` or ``"item"``. `side` names the object that has the ids:
    ``"Factors"``.
    """
    of = f" of {side}" if side else ""
    codes, distinct = encode(ids, f"{name} ids{of}")
    if len(codes) != n:
        raise InputError(
            f"{f'{side} has' if side else 'There are'} {n:,} {name}s, but {len(codes):,} "
            f"{name}_ids. Hint: {name}_ids names the {name} of each row, in the same order."
        )
    if len(distinct) < n:
        repeated = show(distinct, int(np.argmax(np.bincount(codes) > 1)))
        raise InputError(f"The {name}_ids{of} must be distinct, but {repeated} occurs twice.")
    return codes, distinct


def many_strings(ids: Any) -> Any:
    """Convert strings to a Polars series if there are many; return other ids unchanged.

    Missing ids and entries of other types are left for `as_ids` to report. For a few strings,
    importing Polars would take longer than it saves.
    """
    objects = isinstance(ids, np.ndarray) and ids.dtype == object and ids.ndim == 1
    if not (objects or isinstance(ids, list)) or len(ids) < MANY_STRINGS:
        return ids
    if not isinstance(ids[0], str):
        return ids
    check_threads()
    import polars as pl

    try:
        strings = pl.Series(list(ids), dtype=pl.String, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return ids
    return ids if strings.null_count() else strings


def match(
    ids: object, targets: object, noun: str, target_noun: str = "ids they are matched with"
) -> Int64:
    """Return each id's position in `targets` as int64 [n], or -1 if `targets` lacks the id.

    `targets` are distinct, in any order (ascending order is fastest). Both sides must have ids of
    the same kind. Messages call them `noun` and `target_noun`, for instance ``"user ids of test"``.
    """
    left, right = as_ids(ids, noun), as_ids(targets, target_noun)
    if len(left) and len(right) and kind(left) != kind(right):
        raise InputTypeError(
            f"The {noun} are of type {kind(left)} (for instance {show(left, 0)}), but the "
            f"{target_noun} are of type {kind(right)} (for instance {show(right, 0)}). "
            "Hint: convert one side, for instance cast its column to the other's type."
        )
    if left.dtype != object and right.dtype != object:
        return _match_integers(left, right, target_noun)
    if len(left) == len(right) and _ascend(right) and (left == right).all():
        return np.arange(len(left))
    values = right.tolist()
    index = {value: position for position, value in enumerate(values)}
    if len(index) < len(values):
        repeated = next(v for position, v in enumerate(values) if index[v] != position)
        raise InputError(f"The {target_noun} must be distinct, but {repeated!r} occurs twice.")
    return np.fromiter(map(index.get, left.tolist(), itertools.repeat(-1)), np.int64, len(left))


def user_keys(ids: Ids | None, n: int) -> UInt64:
    """Return a number per user that depends only on the user's id.

    It seeds the user's random draws, and is the same on every platform and in every process. For an
    integer id, it is the id itself (modulo 2**64); without ids, it is the user's position;
    otherwise, it is the BLAKE2b hash (8 bytes, little-endian) of the id as UTF-8 text.
    """
    if ids is None:
        return np.arange(n, dtype=np.uint64)
    if len(ids) != n:
        raise InputError(f"There are {n} users, but {len(ids)} user ids.")
    if ids.dtype != object:
        return ids.astype(np.uint64)
    if kind(ids) == "int":
        return np.fromiter((value % 2**64 for value in ids.tolist()), np.uint64, n)
    digests = (
        hashlib.blake2b(str(value).encode(), digest_size=8).digest() for value in ids.tolist()
    )
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def as_column(ids: Array) -> Any:
    """Return ids in a form that Polars can store; ids such as UUIDs become strings."""
    if ids.dtype != object:
        return ids
    return ids.tolist() if kind(ids) in POLARS_KINDS else list(map(str, ids.tolist()))


def kind(ids: Ids) -> str:
    """Return the type of ids that `as_ids` returned: ``"int"``, ``"str"``, ``"UUID"``, ..."""
    return "int" if ids.dtype != object or not len(ids) else _kind_of(type(ids[0]))


def show(ids: Ids, position: int) -> str:
    """Return the id at a position as users would write it: ``'a'``, not ``np.str_('a')``."""
    return brief(ids[position : position + 1].tolist()[0])


def missing(noun: str, row: int, hint: str = "drop rows without one") -> NoReturn:
    """Raise the error for a missing entry of `noun`; `row` is counted from 0."""
    raise InputError(f"The {noun} have no value in row {row} (counted from 0). Hint: {hint}.")


def _is_polars_series(values: object) -> TypeGuard[pl.Series]:
    return is_a(values, "polars", "Series")


def _kind_of(cls: type) -> str:
    return next((name for classes, name in KINDS if issubclass(cls, classes)), cls.__name__)


def _from_integers(array: Array) -> Ids:
    fits = array.dtype != np.uint64 or not len(array) or array.max() <= np.iinfo(np.int64).max
    return array.astype(np.int64, copy=False) if fits else array


def _from_floats(array: Array, noun: str, dtype: np.dtype[Any] | None = None) -> Ids:
    if np.isnan(array).any():
        missing(noun, int(np.isnan(array).argmax()))
    check_whole(array, noun, dtype)
    if ((np.floor(array) == array) & np.isfinite(array)).all():
        return array.astype(np.int64)
    return array.astype(object)


def _is_pair(series: pl.Series) -> bool:
    return series.dtype.is_nested() and len(getattr(series.dtype, "fields", ())) == 2


def _encode_pairs(series: pl.Series, noun: str) -> tuple[Int64, Ids]:
    """Encode a struct of two fields; the distinct pairs are sorted tuples."""
    (users, first), (sessions, second) = (
        encode(series.struct.field(name), f"entries of {name!r} in the {noun}")
        for name in series.struct.fields
    )
    codes, distinct = _encode_integers(users * max(len(second), 1) + sessions)
    user, session = np.divmod(distinct, max(len(second), 1))
    pairs = zip(first[user].tolist(), second[session].tolist(), strict=True)
    return codes, np.fromiter(pairs, object, len(distinct))


def _from_pairs(values: Sequence[Any], noun: str) -> Ids:
    sides = [as_ids(list(side), noun).tolist() for side in zip(*values, strict=True)]
    return np.fromiter(zip(*sides, strict=True), object, len(values))


def _from_objects(values: Sequence[Any], noun: str) -> Ids:
    types = set(map(type, values))
    if types == {tuple} and set(map(len, values)) == {2}:
        return _from_pairs(values, noun)
    kinds = ["int"] if types == {int} else _checked_kinds(types, values, noun)
    if not kinds or kinds == ["int"]:
        low, high = min(values, default=0), max(values, default=0)
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return np.array(values, dtype=dtype)
    elif "float" in kinds:
        narrow = [cls for cls in types if issubclass(cls, np.floating)]
        narrowest = min(map(np.dtype, narrow), key=lambda dtype: dtype.itemsize, default=None)
        return _from_floats(np.array(values, dtype=np.float64), noun, narrowest)
    return np.fromiter(values, object, len(values))


def _checked_kinds(types: set[type], values: Sequence[Any], noun: str) -> list[str]:
    """Return the sorted kinds of ids; refuse missing ids, and kinds that cannot be mixed."""
    if any(cls.__name__ in MISSING_TYPES for cls in types):
        missing(noun, next(r for r, v in enumerate(values) if type(v).__name__ in MISSING_TYPES))
    kinds = sorted({_kind_of(cls) for cls in types})
    # pandas uses NaN for a missing string in an object column.
    if "float" in kinds:
        not_a_number = next((r for r, v in enumerate(values) if v != v), None)
        if not_a_number is not None:
            missing(noun, not_a_number)
    if len(kinds) > 1 and kinds != ["float", "int"]:
        examples = (next(v for v in values if _kind_of(type(v)) == name) for name in kinds)
        parts = " and ".join(
            f"{name} (for instance {brief(example)})"
            for name, example in zip(kinds, examples, strict=True)
        )
        raise InputTypeError(
            f"The {noun} mix {parts}. Hint: convert them to one type, for instance all to strings."
        )
    return kinds


def _ascend(objects: Ids) -> bool:
    """Return whether ids are sorted, distinct strings."""
    if not len(objects) or kind(objects) != "str":
        return False
    try:
        "".join(objects.tolist()).encode()
    except UnicodeEncodeError:
        return False
    return bool((objects[1:] > objects[:-1]).all())


def _encode_strings(series: pl.Series, noun: str, dtype: npt.DTypeLike) -> tuple[Any, Ids]:
    import polars as pl

    series = series.cast(pl.String)
    if series.null_count():
        missing(noun, int(series.is_null().arg_true()[0]))
    # Each thread numbers the strings of one part; then the distinct strings of all parts are
    # numbered together.
    rows = even_parts(len(series), STRINGS_PER_THREAD)
    codes = np.empty(len(series), dtype)
    numbers = codes.view(np.uint32) if codes.itemsize == 4 else np.empty(len(series), np.uint32)
    parts = on_all_threads(lambda part: number_strings(series[part], numbers[part]), rows)
    together = pl.concat(parts)
    distinct = (
        parts[0]
        if len(parts) == 1
        else number_strings(together, np.empty(len(together), np.uint32))
    )
    # UTF-8 bytes have the same order as code points, so Polars sorts strings as Python does.
    distinct = distinct.sort(multithreaded=len(distinct) > STRINGS_PER_THREAD)
    # Number the sorted strings first, so that each string's number is its position among them. An
    # argsort would take far longer.
    places = np.empty(len(distinct) + len(together), np.uint32)
    number_strings(pl.concat([distinct, together]), places)
    ends = np.cumsum([len(distinct), *map(len, parts)])
    for part, table in zip(rows, np.split(places, ends[:-1])[1:], strict=True):
        _look_up(table, numbers[part], codes[part])
    texts = distinct.to_list()
    return codes, np.fromiter(texts, object, len(texts))


def number_strings(series: pl.Series, numbers: UInt32) -> pl.Series:
    """Write a number for each string to `numbers`; return the distinct strings.

    Strings are numbered in the order of first occurrence. No string may be missing.
    """
    rows = np.empty(len(series), np.int64)
    # Drop the name, because Polars aborts the process when it exports a name with a NUL.
    n_distinct = _kernel.number_strings(series.alias(""), numbers, rows)
    return series.gather(rows[:n_distinct])


def _look_up(table: Any, numbers: UInt32, out: Any) -> None:
    def look_up(block: slice) -> None:
        out[block] = table[numbers[block]]

    each_block(len(numbers), look_up)


def _encode_integers(values: Ids) -> tuple[Int64, Ids]:
    if not len(values):
        return np.zeros(0, np.int64), values
    low, high = int(values.min()), int(values.max())
    # For dense ids, a lookup table over their range is several times faster than sorting.
    if high - low < 4 * len(values) + 1024:
        offset = (values - values.dtype.type(low)).astype(np.int64)
        is_used = np.zeros(high - low + 1, dtype=bool)
        is_used[offset] = True
        codes = (np.cumsum(is_used, dtype=np.int64) - 1)[offset]
        return codes, np.flatnonzero(is_used).astype(values.dtype) + values.dtype.type(low)
    distinct, inverse = np.unique(values, return_inverse=True)
    return inverse.astype(np.int64, copy=False), distinct


def _match_integers(ids: Ids, targets: Ids, target_noun: str) -> Int64:
    if not len(ids) or not len(targets):
        return np.full(len(ids), -1, dtype=np.int64)
    comparable = np.ones(len(ids), dtype=bool)
    if ids.dtype != targets.dtype:
        comparable = ids >= 0 if targets.dtype == np.uint64 else ids <= np.iinfo(np.int64).max
        ids = ids.astype(targets.dtype)
    order = None
    if not (targets[1:] > targets[:-1]).all():
        order = np.argsort(targets, kind="stable")
        targets = targets[order]
        repeated = targets[1:] == targets[:-1]
        if repeated.any():
            twice = targets[repeated.argmax()]
            raise InputError(f"The {target_noun} must be distinct, but {twice} occurs twice.")
    places = np.minimum(np.searchsorted(targets, ids), len(targets) - 1)
    matches = (targets[places] == ids) & comparable
    return np.where(matches, places if order is None else order[places], -1)


def merge_ids(
    kind: str, sides: list[tuple[Array | None, int]]
) -> tuple[list[Int64], Array | None, int]:
    """Return both sides' users or items as codes in their union, and the union's ids and size."""
    (ids, n), (other_ids, other_n) = sides
    if ids is None or other_ids is None:
        n_union = max(n, other_n)
        return [np.arange(n_union)] * 2, None, n_union
    parts = [part for part in (ids, other_ids) if len(part)]
    codes, distinct = encode([value for part in parts for value in part.tolist()], f"{kind} ids")
    return [codes[:n], codes[n:]], distinct, len(distinct)


def as_pairs(name: str, columns: Mapping[str, Any]) -> pl.Series:
    """Combine two columns into a single column of pairs, a Polars struct."""
    import polars as pl

    series = []
    for part, column in columns.items():
        values = column
        if isinstance(column, np.ndarray) and column.dtype == object:
            values = column.tolist()
        try:
            series.append(pl.Series(part, values, strict=True))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise InputTypeError(
                f"The entries of column {part!r} are of several types: {error}. Hint: convert them "
                "to one type, for instance all to strings."
            ) from None
        if series[-1].dtype == pl.Object:
            raise InputTypeError(
                f"The entries of column {part!r} are of type {type(values[0]).__name__}, which "
                "cannot be paired with another column. Hint: convert them to strings."
            )
    return pl.DataFrame(series).to_struct(name)


def column_expr(table: pl.LazyFrame, name: str) -> pl.Expr:
    """Return the expression that selects a column, or a pair of columns as a single column."""
    import polars as pl

    if isinstance(name, ColumnPair) and name not in table.collect_schema():
        return pl.struct(*name.parts).alias(name[:])
    return pl.col(name)


def are_pairs(ids: Array | None) -> TypeGuard[Array]:
    """Return whether ids are pairs of a user and one of the user's sessions."""
    return (
        ids is not None
        and ids.dtype == object
        and len(ids) > 0
        and isinstance(ids[0], tuple)
        and len(ids[0]) == 2
    )


def split_pairs(ids: Array) -> tuple[Array, Array]:
    """Split an array of pairs into its users and its sessions."""
    users, sessions = zip(*ids.tolist(), strict=True)
    return as_ids(users, "users of the sessions"), as_ids(sessions, "sessions")


def clusters_of(ids: Array | None) -> Int64 | None:
    """Return, for each session, an integer that identifies its user; None without sessions."""
    if not are_pairs(ids):
        return None
    codes: Int64 = encode(split_pairs(ids)[0], "users of the sessions")[0]
    return codes


def drop_sessions(ids: Array, other: Array) -> Array:
    """Drop the sessions from user ids if the other side has no sessions."""
    return split_pairs(ids)[0] if are_pairs(ids) and len(other) and not are_pairs(other) else ids


def id_columns(ids: Array) -> dict[str, Any]:
    """Return ids as columns for a Polars frame: user and, if the ids have sessions, session."""
    if not are_pairs(ids):
        return {"user": as_column(ids)}
    users, sessions = split_pairs(ids)
    return {"user": as_column(users), "session": as_column(sessions)}


def kinds(ids: Array) -> str:
    """Return the kind of ids; for pairs, the kinds of both parts: ``"str and int"``."""
    return " and ".join(map(kind, split_pairs(ids))) if are_pairs(ids) else kind(ids)
