"""The arguments on Spark: DataFrames, and the meanings of their columns."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Any, Literal

from recometer.data.columns import ColumnPair, choose_columns
from recometer.errors import ColumnError, InputError, InputTypeError, brief
from recometer.spark import _frames
from recometer.spark._elsewhere import IDS, refusing
from recometer.spark._frames import Frame, Table

NAMED = dict.fromkeys(("user_ids", "item_ids"), IDS)
OF_LISTS = {**NAMED, "item_offset": IDS}
OF_INTERACTIONS = {
    **OF_LISTS,
    **dict.fromkeys(("n_users", "n_items"), IDS),
    "time": "evaluations read no times. Hint: rs.split and rs.audit take time=",
}
OF_FACTORS = {
    **NAMED,
    "allow_tf32": "executors rank on their processors. Hint: leave it out",
}


@refusing(OF_INTERACTIONS)
@dataclasses.dataclass(frozen=True, eq=False)
class Interactions:
    """A DataFrame of interactions whose columns do not have common names.

    Parameters
    ----------
    frame
        A row per interaction.
    user, item, value
        Columns; by default those with common names. ``value=False`` says that there are no values.
        ``user=["user", "session"]`` evaluates the sessions of users separately, as in
        `recometer.Interactions.of`.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> held_out = rs.Interactions(frame, user="customer", item="sku")  # doctest: +SKIP
    >>> rs.evaluate(source, held_out)  # doctest: +SKIP
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    value: str | Literal[False] | None = None

    def table(self, what: str) -> Table:
        """Return the columns that are read."""
        columns: dict[str, Any] = {"user": self.user, "item": self.item, "value": self.value}
        return _table(self.frame, what, columns)


@refusing(OF_FACTORS)
@dataclasses.dataclass(frozen=True, eq=False)
class Factors:
    """A model whose score of a user and an item is a dot product; see `recometer.Factors`.

    Parameters
    ----------
    user_factors, item_factors
        DataFrames with a row per user, and with a row per item, like `ALSModel.userFactors` and
        `ALSModel.itemFactors`.
    id
        The column of ids in both.
    vector
        The column of arrays of numbers in both; all arrays have the same length.
    user_bias, item_bias
        Columns of biases. None means that there are none.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> rs.Factors(model.userFactors, model.itemFactors)  # doctest: +SKIP
    """

    user_factors: Frame
    item_factors: Frame
    id: str = "id"
    vector: str = "features"
    user_bias: str | None = None
    item_bias: str | None = None

    def tables(self) -> tuple[Table, Table]:
        """Return the columns of users and of items that are read."""
        found = []
        for what, frame, bias in (
            ("user_factors", self.user_factors, self.user_bias),
            ("item_factors", self.item_factors, self.item_bias),
        ):
            frame = _frames.need_frame(frame, what)
            option = "user" if what == "user_factors" else "item"
            columns = {option: self.id, "vector": self.vector, "bias": bias}
            table = Table(what, frame, columns)
            _check_there(table)
            element = _frames.check_array(
                _frames.type_of(table, "vector"), f"Column {self.vector!r} of {what}"
            )
            if element.typeName() not in ("float", "double"):
                raise ColumnError(
                    f"Column {self.vector!r} of {what} holds {element.simpleString()}, expected "
                    "float or double."
                )
            found.append(table)
        return found[0], found[1]

    def is_single(self) -> bool:
        """Return whether all factors have single precision."""
        return all(
            _frames.type_of(table, "vector").elementType.typeName() == "float"
            for table in self.tables()
        )


@refusing(OF_LISTS)
@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """Lists of recommended items, a list per user; see `recometer.Lists`.

    Parameters
    ----------
    frame
        Either a row per user and item, with a column of ranks (1 is best) or of scores (the highest
        is best); or a row per user, whose column of items contains arrays, best first. The arrays
        are of items, or of structs of an item and a score, as ``ALSModel.recommendForAllUsers``
        returns them.
    user, item, rank, score
        Columns, by default those with common names (for arrays also ``recommendations``). For
        structs, `item` is the column and `score` the field. With ``score=False``, the order of an
        array is the ranking, and scores are ignored. ``user=["user", "session"]``: a list per
        session.
    depth
        Number of places of each list that count. None uses all places.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    rank: str | Literal[False] | None = None
    score: str | Literal[False] | None = None
    depth: int | None = None

    def table(self) -> Table:
        """Return the columns that are read: ``entry`` for arrays, and otherwise ``item``."""
        frame = _frames.need_frame(self.frame, "The frame of Lists")
        arrays = [f.name for f in frame.schema.fields if f.dataType.typeName() == "array"]
        named = self.item if self.item in arrays else None
        if named is None and self.item is None and len(arrays) == 1:
            named = arrays[0]
        if named is not None:
            return self._of_arrays(frame, named)
        wanted = {"user": self.user, "item": self.item, "rank": self.rank, "score": self.score}
        if isinstance(self.score, str):
            if isinstance(self.rank, str):
                raise InputError("rank= and score= were both given. Hint: name the one to rank by.")
            wanted["rank"] = False
        columns = _columns(frame, "Lists", wanted)
        if columns["rank"] is None and columns["score"] is None:
            raise ColumnError(
                "The frame of Lists has no column with a common name for ranks or scores, and "
                f"rows on Spark have no order. Hint: rank= or score= names one of "
                f"{', '.join(frame.columns)}."
            )
        return Table("Lists", frame, columns)

    def _of_arrays(self, frame: Frame, entry: str) -> Table:
        others = [name for name in frame.columns if name != entry]
        wanted = {"user": self.user}
        columns = dict(_columns(frame.select(*map(_frames.quoted, others)), "Lists", wanted))
        element = frame.schema[entry].dataType.elementType
        columns |= {"entry": entry, "item": None, "score": None}
        if isinstance(self.rank, str):
            raise InputError("rank= does not apply to arrays. Hint: they are read best first.")
        if element.typeName() == "struct":
            fields = [field.name for field in element.fields]
            own = {"item": None, "score": self.score}
            inner = choose_columns(fields, own, required=("item",))
            columns |= {"item": inner["item"], "score": inner["score"]}
        elif isinstance(self.score, str):
            raise InputError(
                f"score={self.score!r} names a field, but column {entry!r} holds no structs. Hint: "
                "leave score= out; arrays of items are read best first."
            )
        return Table("Lists", frame, columns)


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Scored pairs of a user and an item, which also contain the truth; see `recometer.Pairs`.

    Parameters
    ----------
    frame
        A row per pair.
    user, item, score, relevance, rating
        Columns, by default those with common names. ``relevance=False, rating=False`` says that
        there is no truth, and that you pass test to `evaluate`. ``user=["user", "session"]``
        ranks the pairs of each session.
    threshold
        A number, ``"user_mean"`` or None; see `recometer.Pairs`.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    score: str | None = None
    relevance: str | Literal[False] | None = None
    rating: str | Literal[False] | None = None
    threshold: Any = None

    def table(self) -> Table:
        """Return the columns that are read."""
        known = self.threshold is None or self.threshold == "user_mean"
        number = isinstance(self.threshold, numbers.Real) and not isinstance(self.threshold, bool)
        if not known and not number:
            raise InputTypeError(
                f"threshold={brief(self.threshold)} must be a number, 'user_mean' or None on Spark."
            )
        truths = {"relevance": self.relevance, "rating": self.rating}
        named = [name for name, given in truths.items() if isinstance(given, str)]
        if len(named) == 1:
            truths = {name: truths[name] if name in named else False for name in truths}
        wanted = {"user": self.user, "item": self.item, "score": self.score, **truths}
        columns = _columns(
            self.frame, "Pairs", wanted, required=("user", "item", "score"), strict=("score",)
        )
        if columns["relevance"] is not None and columns["rating"] is not None:
            raise InputError(
                f"relevance={columns['relevance']!r} and rating={columns['rating']!r} are two "
                "truths. Hint: name the one that counts."
            )
        return Table("Pairs", self.frame, columns)


def with_columns(data: object, **columns: Any) -> Interactions:
    """Return data with the columns that are named beside them.

    Raises
    ------
    InputError
        If `Interactions` name columns themselves.
    """
    if not isinstance(data, Interactions):
        return Interactions(data, **columns)
    for option, name in columns.items():
        if name is not None:
            raise InputError(
                f"{option}={name!r} was given beside recometer.spark.Interactions, which names "
                f"columns itself. Hint: rs.Interactions(frame, {option}={name!r})."
            )
    return data


def read(data: object, what: str) -> Table:
    """Return the columns of test, train or candidates."""
    given = data if isinstance(data, Interactions) else Interactions(data)
    return given.table(what)


def _table(frame: object, what: str, wanted: dict[str, Any]) -> Table:
    found = _frames.need_frame(frame, what)
    return Table(what, found, _columns(found, what, wanted))


def _columns(
    frame: object, what: str, wanted: dict[str, Any], **options: Any
) -> dict[str, str | None]:
    found = _frames.need_frame(frame, what)
    try:
        columns = choose_columns(found.columns, wanted, **options)
    except ColumnError as error:
        error.args = (f"{what}: {error}",)
        raise
    user = columns["user"]
    if isinstance(user, ColumnPair):
        columns["user"], columns["session"] = user.parts
    return columns


def _check_there(table: Table) -> None:
    """Refuse columns that do not exist."""
    for option, name in table.columns.items():
        if name is not None and name not in table.frame.columns:
            raise ColumnError(
                f"{table.what} has no column {name!r} ({option}). Hint: it has "
                f"{', '.join(table.frame.columns)}."
            )
