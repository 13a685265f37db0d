"""Finds the user, item, value and other columns of a table by their common names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from recometer.errors import (
    ColumnError,
    InputTypeError,
    argument_text,
    did_you_mean,
    python_or_command,
    warn,
)


class Kind(NamedTuple):
    """A meaning that a column can have, and the common names for it.

    Names are written in lower case and without punctuation, so ``"user_id"``, ``"userId"`` and
    ``"USER ID"`` count as the same name. Names that usually mean something else are used only if
    no column has a better name: for example, sessions serve as users if there is no user column.
    """

    plural: str  # what messages call the entries of such a column
    names: tuple[str, ...]
    fallback: tuple[str, ...] = ()  # names that usually mean something else


def _ids(*words: str) -> tuple[str, ...]:
    return tuple(word + end for word in words for end in ("", "id"))


RELEVANCE = (
    *("relevance", "relevances", "relevant", "isrelevant", "rel", "qrel", "grade", "grades"),
    *("label", "labels", "target", "targets", "y", "ytrue", "truth", "groundtruth"),
    *("click", "clicked", "isclick", "isclicked", "purchase", "purchased", "ispurchased"),
    *("bought", "liked", "isliked", "converted"),
)
RATING = ("rating", "ratings", "stars", "rui", "truerating", "actual", "actualrating")
# The meanings that recometer reads, with their common names.
KINDS: dict[str, Kind] = {
    "user": Kind(
        "users",
        (
            *("user", "userid", "uid", "u", "users", "useridx", "userindex", "username"),
            *_ids("visitor", "customer", "member", "client", "reviewer"),
            *_ids("query", "queries"),
            "qid",
        ),
        # If there is also a user column, topics describe items, and sessions belong to users.
        _ids("topic", "session", "playlist", "basket", "account", "viewer", "buyer"),
    ),
    "item": Kind(
        "items",
        (
            *("item", "itemid", "iid", "i", "items", "itemidx", "itemindex"),
            *_ids("movie", "product", "book", "article", "news", "artist", "track", "song"),
            *_ids("game", "business", "page", "doc", "document", "sku"),
            *("isbn", "asin", "docno"),
        ),
        (
            *_ids("video", "anime", "show", "album", "passage", "paper", "recipe", "course"),
            *_ids("poi", "venue", "hotel", "restaurant", "post", "app", "job", "listing", "corpus"),
        ),
    ),
    "value": Kind(
        "values",
        (
            *RELEVANCE,
            *RATING,
            *("value", "values", "weight", "count", "counts", "plays", "playcount", "listens"),
            *("confidence", "gain", "gains", "preference", "feedback"),
        ),
        ("score", "scores"),
    ),
    "time": Kind(
        "times",
        (
            *("time", "timestamp", "date", "datetime", "ts", "t", "createdat"),
            *("unixtime", "unixtimestamp", "unixreviewtime", "eventtime", "eventtimestamp"),
        ),
    ),
    "rank": Kind("ranks", ("rank", "ranks", "ranking", "position", "place", "pos")),
    "score": Kind(
        "scores",
        (
            *("score", "scores", "est", "estimate", "estimated", "pred", "preds", "predicted"),
            *("prediction", "predictions", "predictedrating", "predictedscore", "yhat", "ypred"),
            *("yscore", "similarity", "sim", "probability", "prob", "proba", "logit", "logits"),
        ),
        ("relevance", "rating", "weight", "value"),
    ),
    "run": Kind(
        "runs",
        (
            *("algorithm", "algorithmname", "algo", "model", "modelname", "modelid", "system"),
            *("systemid", "run", "runid", "runname", "recommender", "method", "experiment"),
            *("variant", "approach"),
        ),
    ),
    "relevance": Kind("relevances", RELEVANCE),
    "rating": Kind("ratings", RATING),
    "answer": Kind(
        "answers",
        (
            *("answer", "answers", "response", "responses", "completion", "completions"),
            *("output", "outputs", "generation", "generated", "generatedtext", "recommendations"),
        ),
        ("text", "content", "message"),
    ),
    "title": Kind("titles", ("title", "titles", "name", "itemname", "itemtitle")),
    "categories": Kind("categories", ("categories", "category", "genres", "genre", "tags")),
}
REQUIRED = ("user", "item")
BEIR_ITEM = "corpus-id"  # the item column of BEIR's qrels, whose label column is called "score"
PAIRED = ("user",)  # meanings for which a pair of columns may be passed
# A column name that ends in one of these words suggests ranks rather than scores.
PLACES = {
    *("order", "slot", "index", "idx", "no", "nr", "number", "row", "n", "seq", "sequence"),
    *("ordinal", "position", "pos", "place", "rank", "ranking", "rnk", "rang"),
}
# A column whose name ends in one of these words, such as "item_price", does not hold ratings.
NO_VALUES = {
    *("id", "ids", "idx", "index", "no", "nr", "number", "row", "code", "key", "hash", "fold"),
    *("split", "train", "test", "group", "cluster", "level", "0"),
    *("rank", "position", "slot", "order"),
    *("time", "timestamp", "date", "year", "month", "week", "weekday", "day", "hour", "ts", "ms"),
    *("age", "gender", "sex", "zip", "zipcode", "postcode", "lat", "lon", "lng"),
    *("latitude", "longitude", "price", "cost", "length", "duration", "size"),
}


class ColumnPair(str):  # noqa: SLOT000  # it stores the parts
    """Two columns whose combinations serve as users, such as user and session.

    As a string, the pair is ``"user, session"``, which also names the column that combines the two.
    """

    parts: tuple[str, str]

    def __new__(cls, first: str, second: str) -> ColumnPair:
        """Make a pair from the names of two columns."""
        pair = super().__new__(cls, f"{first}, {second}")
        pair.parts = (first, second)
        return pair

    def __str__(self) -> str:
        """Return the pair itself, so that ``str(pair)`` keeps the parts."""
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Return the arguments that recreate the pair when it is copied or unpickled."""
        return self.parts

    @classmethod
    def of(cls, names: object) -> object:
        """Convert two names to a pair; return anything else unchanged."""
        if isinstance(names, Sequence) and not isinstance(names, str) and len(names) == 2:
            first, second = names
            if isinstance(first, str) and isinstance(second, str):
                return cls(first, second)
        return names


class Names(list[str]):
    """Column names, with a `hint` for error messages about missing columns."""

    hint = ""


def single_names(names: Iterable[object]) -> list[str]:
    """Return the column names, with pairs split into their parts; ignore all other objects."""
    strings = [name for name in names if isinstance(name, str)]
    return [
        part
        for name in strings
        for part in (name.parts if isinstance(name, ColumnPair) else [name])
    ]


class Columns(NamedTuple):
    """The names of the user, item, value and time columns."""

    user: str
    item: str
    value: str | None
    time: str | None

    def to_dict(self) -> dict[str, str | list[str] | None]:
        """Return the names as JSON-compatible Python objects."""
        user = list(self.user.parts) if isinstance(self.user, ColumnPair) else self.user
        return {**self._asdict(), "user": user}

    @classmethod
    def from_dict(cls, names: Mapping[str, Any]) -> Columns:
        """Recreate the object from the result of `to_dict`."""
        return cls(**{**names, "user": ColumnPair.of(names["user"])})


def find_columns(
    names: Iterable[str],
    *,
    user: object = None,
    item: object = None,
    value: object = None,
    time: object = None,
) -> Columns:
    """Find the user, item, value and time columns among the column names of a table.

    Each option is a name, or None for the only column with a common name, such as ``user_id``,
    ``movieId``, ``rating`` or ``timestamp`` (whatever the case and punctuation). ``value=False``
    and ``time=False`` select no column, whatever the names are. `user` may also be two names:
    ``["user", "session"]``. For the errors, see `choose_columns`.
    """
    columns = choose_columns(names, {"user": user, "item": item, "value": value, "time": time})
    return Columns(**columns)  # type: ignore[arg-type]  # users and items are required


def choose_columns(
    names: Iterable[str],
    options: Mapping[str, object],
    *,
    required: Collection[str] = REQUIRED,
    strict: Collection[str] = (),
) -> dict[str, str | None]:
    """Find columns by meaning or by name.

    Parameters
    ----------
    names
        The names of all columns.
    options
        For each meaning (a key of `KINDS`), the option that the user passed: a name, None for the
        only column with a common name, or False for no column.
    required
        The meanings that need a column; their options cannot be False.
    strict
        The meanings for which `Kind.fallback` is not used.

    Raises
    ------
    ColumnError
        If a column does not exist (the message lists the columns), no column has a common name for
        a required meaning, several columns are possible, or a column would be used twice.
    InputTypeError
        If an option is not the name of a column.
    """
    hint = getattr(names, "hint", "")
    names = Names(str(name) for name in names)
    names.hint = hint
    choices = {option: ColumnPair.of(n) if option in PAIRED else n for option, n in options.items()}
    for option, name in choices.items():
        if name is None or (name is False and option not in required):
            continue
        check_column(option, name, names)
    for option, name in choices.items():
        if name is None:
            used = single_names(choices.values())
            unused = [candidate for candidate in names if candidate not in used]
            candidates = common_names(option, unused, fallback=option not in strict)
            choices[option] = _pick(option, candidates, names, option in required)
    # Treat a pair as a single column if there is a column of that name.
    chosen = single_names(
        n[:] if isinstance(n, str) and n in names else n for n in choices.values()
    )
    for name in chosen:
        check_unique(name, names)
        if chosen.count(name) > 1:
            uses = [
                argument_text(option)
                for option, choice in choices.items()
                if name in single_names([choice])
            ]
            if len(uses) == 1:
                raise ColumnError(f"{uses[0]} names the column {name!r} twice. Hint: name another.")
            raise ColumnError(
                f"{' and '.join(uses)} {'both' if len(uses) == 2 else 'all'} name the column "
                f"{name!r}. Hint: choose a different column for each."
            )
    return {option: name if isinstance(name, str) else None for option, name in choices.items()}


def check_unique(name: str, names: Sequence[str]) -> None:
    """Raise ColumnError if several columns have this name."""
    if names.count(name) > 1:
        raise ColumnError(
            f"There are {names.count(name)} columns named {name!r}. Hint: rename one."
        )


def columns_of_groups(
    names: Sequence[str], kind: str, ids: str | None, groups: str | None
) -> tuple[str, str]:
    """Return the user or item column and the group column (by default, the only other column)."""
    chosen = choose_columns(names, {kind: ids})[kind]
    assert chosen is not None
    other_names = [name for name in names if name != chosen]
    if groups is None and len(other_names) != 1:
        hint = python_or_command("column=...", "name it before the file, as in COLUMN=FILE.")
        raise ColumnError(
            f"Which column holds the groups? Apart from the {kind} column ({chosen!r}), the "
            f"columns are: {', '.join(map(repr, other_names)) or 'none'}. Hint: {hint}"
        )
    groups = other_names[0] if groups is None else groups
    check_column("column", groups, other_names)
    return chosen, groups


def check_column(option: str, name: object, names: Collection[str]) -> None:
    """Raise an error unless an option names an existing column (or, for users, a pair)."""
    if not isinstance(name, str):
        also = ", or of two (the user's and the session's)" if option in PAIRED else ""
        raise InputTypeError(
            f"{option}= must be the name of a column{also}, found {type(name).__name__}."
        )
    for part in [name] if name in names else single_names([name]):
        if part not in names:
            hint = getattr(names, "hint", "")
            raise ColumnError(f"There is no column {part!r}. {did_you_mean(part, names)}{hint}")


def common_names(option: str, names: Iterable[str], *, fallback: bool = True) -> list[str]:
    """Return the columns with a common name for one of `KINDS`; better names take precedence."""
    plain = {name: "".join(filter(str.isalnum, name.lower())) for name in names}
    kind = KINDS[option]
    matches = [name for name, word in plain.items() if word in kind.names]
    if matches or not fallback:
        return matches
    return [name for name, word in plain.items() if word in kind.fallback]


def _pick(option: str, candidates: list[str], names: list[str], required: bool) -> str | None:
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise ColumnError(
            f"Several columns could hold the {KINDS[option].plural}: "
            f"{', '.join(map(repr, candidates))}. Hint: pass {argument_text(option)} with the name "
            "of one" + ("." if required else f", or {argument_text(option, False)} for none.")
        )
    if not required:
        return None
    raise ColumnError(
        f"No column has a common name for {KINDS[option].plural}. Hint: pass "
        f"{argument_text(option)} with its name. Columns: {', '.join(names) or 'none'}."
        f"{getattr(names, 'hint', '')}"
    )


def value_candidates(names: Iterable[str]) -> list[str]:
    """Return the numeric columns that could hold values despite their uncommon names.

    Columns of ids, times, places, prices and measurements are excluded.
    """
    return [
        name
        for name in names
        if not NO_VALUES.intersection(_last_words(name))
        and not any(common_names(option, [name]) for option in ("user", "item", "time"))
    ]


def rank_candidates(names: Iterable[str]) -> list[str]:
    """Return the numeric columns that could hold ranks despite their uncommon names."""
    return [name for name in names if PLACES.intersection(_last_words(name))]


def _last_words(name: str) -> set[str]:
    """Return the last word of a name (``"id"`` for ``"itemId"``), and all its words joined."""
    spaced = "".join(
        f" {letter}" if letter.isupper() and not before.isupper() else letter
        for before, letter in zip(" " + name, name, strict=False)
    )
    words = "".join(letter if letter.isalnum() else " " for letter in spaced.lower()).split()
    return {*words[-1:], "".join(words)}


def warn_of_values(columns: Columns, numeric: Callable[[], list[str]], argument: str) -> None:
    """Warn if a column that might hold values is not read, or if scores are read as values.

    `numeric` returns the names of the numeric and Boolean columns. `argument` is the name of the
    argument that holds the table, or "" if the user's call has options for columns.
    """
    value = columns.value
    if value is None:
        used = single_names(columns)
        unread = value_candidates(name for name in numeric() if name not in used)
        if unread:
            warn(
                "No column has a common name for values, so all rows count as equally relevant: "
                f"{', '.join(map(repr, unread))} {'is' if len(unread) == 1 else 'are'} not read. "
                f"Hint: {_call(argument, unread[0])} reads that column; "
                f"{_call(argument, False)} treats all rows as equally relevant."
            )
    elif columns.item != BEIR_ITEM and not common_names("value", [value], fallback=False):
        warn(
            f"The column {value!r} was read as the relevance of items; a model's scores are not "
            f"ground truth. Hint: {_call(argument, value)} confirms that this is intended; "
            f"{_call(argument, False)} treats all rows as equally relevant."
        )


def _call(argument: str, value: str | bool) -> str:
    named = argument_text("value", value)
    call = f"rm.Interactions.of({argument}, value={value!r})" if argument else named
    return python_or_command(call, named)


def refuse_columns(data: Mapping[Any, Any]) -> None:
    """Refuse a dict of columns, which would be read as a dict from users to items.

    Raises
    ------
    InputTypeError
        If the keys include common names of user and item columns, and all values have the same
        length.
    """
    if not isinstance(next(iter(data), None), str):
        return
    # Ignore "u" and "i", which may be user ids.
    keys = [key for key in data if isinstance(key, str) and len(key) > 1]
    if len(keys) < len(data) or not (common_names("user", keys) and common_names("item", keys)):
        return
    columns = list(data.values())
    if any(isinstance(column, Mapping) or not isinstance(column, Sized) for column in columns):
        return
    if len({len(column) for column in columns}) == 1:
        raise InputTypeError(
            f"A dict with the keys {', '.join(map(repr, keys))} seems to hold the columns of a "
            "table, but a dict is read as {user: items}. Hint: pass polars.DataFrame(data) or "
            "pandas.DataFrame(data)."
        )
