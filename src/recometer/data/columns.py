"""Which column holds what: found by the names that are common for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any, NamedTuple

from recometer.errors import ColumnError, InputTypeError, did_you_mean

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


def refuse_columns(data: Mapping[Any, Any]) -> None:
    """Raise if a dict holds the columns of a table: it would be read as one of users.

    Raises
    ------
    InputTypeError
        Keys that are common names of users and items, with values of one length.
    """
    # Users may well be called "u" and "i".
    keys = [key for key in data if isinstance(key, str) and len(key) > 1]
    if len(keys) < len(data) or not (common_names("user", keys) and common_names("item", keys)):
        return
    columns = list(data.values())
    if any(isinstance(column, Mapping) or not isinstance(column, Sized) for column in columns):
        return
    if len({len(column) for column in columns}) == 1:
        raise InputTypeError(
            f"A dict with the keys {', '.join(map(repr, keys))} seems to hold the columns of a "
            "table; a dict is read as {user: items}. Hint: pass polars.DataFrame(data) or "
            "pandas.DataFrame(data)."
        )
