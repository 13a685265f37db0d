"""Columns of any data frame: found by name, read as arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer.errors import ColumnError, InputTypeError, did_you_mean
from recometer.ids import missing

__all__ = [
    "Columns",
    "Table",
    "choose_columns",
    "common_names",
    "find_columns",
    "is_frame",
    "numbers",
    "open_frame",
    "read_frame",
    "times",
]

# Compared in lower case and without punctuation: "user_id", "userId" and "USER ID" are one.
COMMON_NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        *("user", "userid", "uid", "u", "users", "useridx", "userindex", "username"),
        *("visitor", "visitorid", "customer", "customerid", "member", "memberid"),
        *("client", "clientid", "reviewer", "reviewerid"),
    ),
    "item": (
        *("item", "itemid", "iid", "i", "items", "itemidx", "itemindex"),
        *("movie", "movieid", "product", "productid", "book", "bookid", "isbn", "asin"),
        *("article", "articleid", "news", "newsid", "artist", "artistid", "track", "trackid"),
        *("song", "songid", "game", "gameid", "business", "businessid", "page", "pageid"),
    ),
    "value": (
        *("value", "rating", "ratings", "score", "weight", "count", "counts", "stars"),
        *("plays", "playcount", "listens", "relevance", "confidence", "gain", "preference"),
    ),
    "time": (
        *("time", "timestamp", "date", "datetime", "ts", "t"),
        *("unixtime", "unixreviewtime", "createdat", "eventtime"),
    ),
    "rank": ("rank", "ranks", "ranking", "position", "place", "pos"),
    "score": (
        *("score", "scores", "prediction", "predictions", "predicted", "pred", "est"),
        *("similarity", "sim", "relevance", "rating", "weight", "value", "probability", "prob"),
    ),
}
WHAT = {
    "user": "users",
    "item": "items",
    "value": "values",
    "time": "times",
    "rank": "ranks",
    "score": "scores",
}
REQUIRED = ("user", "item")


class Columns(NamedTuple):
    """The names of the columns that hold users, items, values and times."""

    user: str
    item: str
    value: str | None
    time: str | None


class Table(NamedTuple):
    """The columns themselves; users and items as the frame's library gives them."""

    names: Columns
    users: Any
    items: Any
    values: npt.NDArray[np.float64] | None
    times: npt.NDArray[Any] | None


def find_columns(
    names: Iterable[str],
    *,
    user: object = None,
    item: object = None,
    value: object = None,
    time: object = None,
) -> Columns:
    """Find the columns of users, items, values and times among the names of a table's columns.

    Parameters
    ----------
    names
        The columns that exist.
    user, item, value, time : str or None or False
        The column that was asked for by name; None: the only one with a common name, such
        as ``user_id``, ``movieId``, ``rating`` or ``timestamp`` (in any case and punctuation).
        ``value=False`` and ``time=False``: none, whatever the names.

    Returns
    -------
    Columns
        `value` and `time` are None where there is no such column.

    Raises
    ------
    ColumnError
        A column that does not exist (the message lists those that do), no column with a
        common name for users or items, several for one of the four, or one column for two.
    InputTypeError
        An option that is not a name.
    """
    found = choose_columns(names, {"user": user, "item": item, "value": value, "time": time})
    assert found["user"] is not None
    assert found["item"] is not None
    return Columns(found["user"], found["item"], found["value"], found["time"])


def choose_columns(names: Iterable[str], wanted: Mapping[str, object]) -> dict[str, str | None]:
    """Find columns by what they hold, as `find_columns` does.

    Parameters
    ----------
    names
        The columns that exist.
    wanted
        What each column holds (one of `COMMON_NAMES`) and, as there, what was asked for:
        a name, None, or False for none.
    """
    names = [str(name) for name in names]
    found = dict(wanted)
    for option, name in found.items():
        if name is None or (name is False and option not in REQUIRED):
            continue
        if not isinstance(name, str):
            raise InputTypeError(
                f"{option}= must be the name of a column, found {type(name).__name__}."
            )
        if name not in names:
            raise ColumnError(f"There is no column {name!r}. {did_you_mean(name, names)}")
    for option, name in found.items():
        if name is None:
            free = [candidate for candidate in names if candidate not in found.values()]
            found[option] = _guess(option, free)
    chosen = [name for name in found.values() if isinstance(name, str)]
    for name in chosen:
        if names.count(name) > 1:
            raise ColumnError(f"There are {names.count(name)} columns {name!r}. Hint: rename one.")
        if chosen.count(name) > 1:
            uses = [f"{option}=" for option, other in found.items() if other == name]
            raise ColumnError(f"The column {name!r} is named by {' and '.join(uses)} at once.")
    return {option: name if isinstance(name, str) else None for option, name in found.items()}


def is_frame(data: object) -> bool:
    """Tell whether `read_frame` understands an object."""
    polars = sys.modules.get("polars")
    return (
        (polars is not None and isinstance(data, polars.LazyFrame))
        or hasattr(data, "__arrow_c_stream__")
        or (hasattr(data, "columns") and hasattr(data, "__getitem__"))
        or _is_arrow_table(data)
    )


def read_frame(
    data: Any,
    *,
    user: object = None,
    item: object = None,
    value: object = None,
    time: object = None,
) -> Table:
    """Read the columns of users, items, values and times of a data frame.

    Parameters
    ----------
    data
        A Polars (lazy) frame, a pandas frame, a pyarrow table or record batch, anything with
        ``__arrow_c_stream__``, or with ``columns`` and ``[]``.
    user, item, value, time
        As in `find_columns`.

    Raises
    ------
    ColumnError
        See `find_columns`.
    InputTypeError
        Values that are not numbers, or times that are neither numbers nor dates.
    InputError
        A missing time.
    """
    names, fetch = open_frame(data)
    columns = find_columns(names, user=user, item=item, value=value, time=time)
    wanted = [name for name in columns if name is not None]
    series = dict(zip(wanted, fetch(wanted), strict=True))
    ratings = moments = None
    if columns.value is not None:
        ratings = numbers(_plain(series[columns.value]), f"values (column {columns.value!r})")
    if columns.time is not None:
        moments = times(series[columns.time], f"times (column {columns.time!r})")
    return Table(columns, series[columns.user], series[columns.item], ratings, moments)


def numbers(array: npt.ArrayLike, what: str) -> npt.NDArray[np.float64] | None:
    """Return numbers as float64; None where all are True, which says nothing beyond the row.

    Raises
    ------
    InputTypeError
        Something that is not a number.
    """
    array = np.asarray(array)
    if array.dtype.kind == "b" and array.all():
        return None
    if array.dtype.kind in "biuf" or not array.size:
        return array.astype(np.float64, copy=False)
    values = array.ravel().tolist()
    # None is a missing value here: it becomes NaN, which `Interactions` names by its ids.
    wrong = [v for v in values if v is not None and not hasattr(v, "__float__")]
    if array.dtype != object or wrong:
        example = (wrong or values)[0]
        raise InputTypeError(
            f"The {what} must be numbers, found {type(example).__name__} "
            f"(for instance {example!r}). Hint: convert them, or leave them out."
        )
    return array.astype(np.float64)


def times(column: Any, what: str) -> npt.NDArray[Any]:
    """Return times as int64 or float64: numbers as they are, dates in microseconds since 1970.

    Raises
    ------
    InputTypeError
        Something that is neither a number nor a date.
    InputError
        A missing time; its row is named.
    """
    import polars as pl

    hint = "drop such rows, or pass time=False"
    if not isinstance(column, pl.Series):
        if column.dtype.kind == "M":
            column = column.astype("datetime64[us]")
        try:
            column = pl.Series(column.tolist() if column.dtype == object else column)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise InputTypeError(f"The {what} are of several types: {error}.") from None
    if column.dtype.is_float():
        column = column.fill_nan(None)
    if column.null_count():
        missing(what, int(column.is_null().arg_true()[0]), hint)
    if column.dtype in (pl.Date, pl.Datetime):
        column = column.dt.epoch("us")
    if len(column) and not (column.dtype.is_integer() or column.dtype.is_float()):
        raise InputTypeError(
            f"The {what} must be numbers or dates, found {column.dtype} "
            f"(for instance {column[0]!r}). Hint: convert them, or pass time=False."
        )
    array: npt.NDArray[Any] = column.cast(
        pl.Float64 if column.dtype.is_float() else pl.Int64
    ).to_numpy()
    return array


def common_names(option: str, names: Iterable[str]) -> list[str]:
    """Return which columns have a common name for ``"user"``, ``"item"``, ``"value"``, ..."""
    return [
        name for name in names if "".join(filter(str.isalnum, name.lower())) in COMMON_NAMES[option]
    ]


def _guess(option: str, names: list[str]) -> str | None:
    near = common_names(option, names)
    if len(near) == 1:
        return near[0]
    optional = option not in REQUIRED
    if near:
        raise ColumnError(
            f"Several columns could hold the {WHAT[option]}: {', '.join(map(repr, near))}. "
            f"Hint: pass {option}= with the name of one"
            + (f", or {option}=False for none." if optional else ".")
        )
    if optional:
        return None
    raise ColumnError(
        f"No column has a common name for {WHAT[option]}. Hint: pass {option}= with its name. "
        f"Columns: {', '.join(names) or 'none'}."
    )


def _is_arrow_table(data: object) -> bool:
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(data, arrow.Table | arrow.RecordBatch)


def open_frame(data: Any) -> tuple[list[str], Callable[[list[str]], list[Any]]]:
    """Return the names of the columns, and a function that reads the wanted ones."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = [str(name) for name in data.columns]
        return names, lambda wanted: [
            _from_pandas(data.iloc[:, names.index(name)]) for name in wanted
        ]
    if _is_arrow_table(data):
        return data.schema.names, lambda wanted: [_from_arrow(data.column(n)) for n in wanted]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.LazyFrame):
        return (
            data.collect_schema().names(),
            lambda wanted: data.select(wanted).collect().get_columns(),
        )
    if hasattr(data, "__arrow_c_stream__"):
        import polars as pl

        frame = data if isinstance(data, pl.DataFrame) else pl.DataFrame(data)
        return frame.columns, lambda wanted: frame.select(wanted).get_columns()
    keys = {str(name): name for name in data.columns}
    return list(keys), lambda wanted: [np.asarray(data[keys[name]]) for name in wanted]


def _from_pandas(series: Any) -> Any:
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if series.dtype.kind not in "OU" or hasattr(series.dtype, "categories"):
        array = np.asarray(series)
        if array.dtype != object:
            return array
    # Missing entries are NaN, NA, NaT or None in pandas, depending on its version: all None here.
    return series.to_numpy(dtype=object, na_value=None)


def _from_arrow(column: Any) -> Any:
    import polars as pl

    # Polars would read an extension type (arrow.uuid) as the bytes that it is stored as.
    if hasattr(column.type, "extension_name"):
        return pl.Series(column.to_pylist(), dtype=pl.Object)
    return pl.Series(column)


def _plain(column: Any) -> npt.NDArray[Any]:
    """Return a column as a NumPy array; nulls become NaN or None."""
    polars = sys.modules.get("polars")
    is_series = polars is not None and isinstance(column, polars.Series)
    return column.to_numpy() if is_series else np.asarray(column)
