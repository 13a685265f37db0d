"""split on Spark: Spark counts, and the functions of one machine split blocks of whole users."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recometer.data import ids
from recometer.data.columns import Columns, find_columns, single_names
from recometer.data.ids import as_ids
from recometer.data.numbers import flag
from recometer.draws import seed_of
from recometer.errors import InputError, InputTypeError, warn
from recometer.spark.block import blocks
from recometer.spark.sources import with_columns
from recometer.spark.tables import (
    RUNNING,
    Frame,
    acted,
    check_partitions,
    need_frame,
    persisted,
    quoted,
    refusing,
)
from recometer.split.checks import NoTestUsersError, check_whole
from recometer.split.draws import draw_users
from recometer.split.filters import (
    Duplicates,
    Filter,
    KCore,
    MinCounts,
    SeenInTrain,
    ValuesFrom,
)
from recometer.split.result import SplitProtocol
from recometer.split.splitting import (
    LEFT_OUT,
    REMAINDER,
    TEST,
    TRAIN,
    check_kind,
    check_one_split,
    check_untested,
    kept_of_some_users,
    listed_filters,
    number_of_folds,
    parts_of_some_users,
)
from recometer.split.what import After, ColdItems, Folding, What
from recometer.split.who import AllUsers, GivenUsers, UserFolds, UsersNumber, Who

PART, CHOSEN, DRAW, SEEN = (f"recometer {name}" for name in ("part", "chosen", "draw", "seen"))
ELSEWHERE = {"threads": RUNNING["threads"]}
Filters = Filter | SeenInTrain | Iterable[Filter | SeenInTrain]


@dataclasses.dataclass(frozen=True, eq=False)
class SparkSplit:
    """Train and test as DataFrames, and how they were made.

    Attributes
    ----------
    train, test
        DataFrames with all columns of the data.
    remainder
        A DataFrame of the interactions of the users who are not tested, if ``untested="apart"``
        separates them; None if they are in train.
    protocol : recometer.split.SplitProtocol
    columns
        The names of the columns that were read.
    """

    train: Frame
    test: Frame
    remainder: Frame | None
    protocol: SplitProtocol
    columns: Columns
    rows: Frame = dataclasses.field(repr=False)
    kept: bool = False

    def __repr__(self) -> str:
        counts = self.protocol.counts
        found = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n)
        return f"SparkSplit({found}; {self.protocol})"

    def unpersist(self) -> None:
        """Make Spark forget the parts of the rows, which are computed again if needed."""
        if self.kept:
            self.rows.unpersist()


@refusing(ELSEWHERE)
def split(
    data: object,
    what: What,
    *,
    who: Who = AllUsers(),  # noqa: B008  # frozen
    filters: Filters = (),
    untested: Literal["train", "apart"] = "train",
    min_train: int = 0,
    min_test: int = 1,
    seed: int = 0,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: str | Literal[False] | None = None,
    time: str | Literal[False] | None = None,
    partitions: int | None = None,
    keep: bool = True,
) -> SparkSplit:
    """Split a DataFrame into train and test, by holding out interactions of the tested users.

    Every row is on the same side as with `recometer.split`, because draws depend only on the seed
    and on the ids of the user and the item.

    Parameters
    ----------
    data
        A DataFrame, or `recometer.spark.Interactions`, which names its columns.
    what, who, filters, untested, min_train, min_test, seed
        As in `recometer.split`; `folds` makes several splits.
    user, item, value, time
        Columns; by default those with common names. With ``user=["user", "session"]`` every
        session counts as a user.
    partitions, keep
        As in `recometer.spark.evaluate`.

    Raises
    ------
    NoTestUsersError, InputError, InputTypeError, ColumnError
        As for `recometer.split`.

    Examples
    --------
    >>> import recometer as rm, recometer.spark as rs
    >>> made = rs.split(ratings, rm.split.Last(1))  # doctest: +SKIP
    >>> rs.evaluate(model, made.test, train=made.train)  # doctest: +SKIP
    """
    given = {**locals()}
    check_one_split(what, who, "recometer.spark.folds")
    return _Work(**given).split(None)


@refusing(ELSEWHERE)
def folds(
    data: object,
    what: What | Folding,
    *,
    who: Who | UserFolds = AllUsers(),  # noqa: B008  # frozen
    **options: Any,
) -> list[SparkSplit]:
    """Split a DataFrame several times: cross-validation, or one window of time after another.

    Every row is on the same side in each fold as with `recometer.split.folds`. Either `what` makes
    the folds (`KFold` or `Windows`), or `who` (`UserFolds`). `options` are those of `split`.

    Examples
    --------
    >>> import recometer as rm, recometer.spark as rs
    >>> for made in rs.folds(ratings, rm.split.KFold(5)):  # doctest: +SKIP
    ...     rs.evaluate(fitted(made.train), made.test, train=made.train)
    """
    n, work = number_of_folds(what, who), _Work(data, what, who, **options)
    return [work.split(fold) for fold in range(n)]


class _Work:
    """The data after the filters, and how they are split, which all folds share."""

    def __init__(
        self,
        data: object,
        what: Any,
        who: Any,
        *,
        filters: Filters = (),
        untested: Any = "train",
        min_train: int = 0,
        min_test: int = 1,
        seed: int = 0,
        time: Any = None,
        partitions: int | None = None,
        keep: bool = True,
        **columns: Any,
    ) -> None:
        check_kind(what, (What, Folding), "what")
        check_kind(who, (Who, UserFolds), "who")
        check_untested(untested)
        check_partitions(partitions)
        given, self.keep = with_columns(data, **columns), flag("keep", keep)
        frame = self.frame = need_frame(given.frame, "data")
        wanted: dict[str, Any] = {"user": given.user, "item": given.item, "value": given.value}
        of = self.columns = find_columns(frame.columns, **wanted, time=time)
        self.users, self.partitions = single_names([of.user]), partitions
        _check_ids(frame, of)
        several = listed_filters(filters)
        self.after = [one for one in several if isinstance(one, SeenInTrain)]
        self.n_all = self.n_left = int(acted(frame.count))
        self.removed: dict[str, int] = {}
        for one in several:
            if isinstance(one, Filter):
                self.frame = self._left_by(one)
                before, self.n_left = self.n_left, int(acted(self.frame.count))
                self.removed[repr(one)] = self.removed.get(repr(one), 0) + before - self.n_left
        self.who, self.what = who, _settled(what, self.frame, of)
        if isinstance(who, GivenUsers):
            _check_there(who.users, self.frame, of.user, "users")
        self.how: dict[str, Any] = {
            "untested": untested,
            "min_train": check_whole("min_train", min_train),
            "min_test": check_whole("min_test", min_test),
            "seed": seed_of(seed),
        }
        texts: dict[str, Any] = {
            "who": repr(who),
            "what": repr(what),
            "filters": tuple(map(repr, several)),
        }
        self.protocol = SplitProtocol(**texts, **{**self.how, "seed": seed})

    def split(self, fold: int | None) -> SparkSplit:
        """Return the split, or that of a fold."""
        assigned = self._assigned(fold)
        kept = self.keep and persisted(assigned)
        rows, found, removed = assigned, _by_part(assigned), dict(self.removed)
        for one in self.after:
            before, rows = found.get(LEFT_OUT, 0), self._unseen(rows, one)
            found = _by_part(rows)
            removed[repr(one)] = found.get(LEFT_OUT, 0) - before
        apart = self.protocol.untested == "apart"
        counts = {
            name: found.get(part, 0)
            for name, part in (("train", TRAIN), ("test", TEST), ("remainder", REMAINDER))
        }
        counts["remainder"] *= apart
        counts["left_out"] = self.n_all - sum(counts.values())
        protocol = dataclasses.replace(self.protocol, fold=fold, counts=counts, removed=removed)
        where = "" if fold is None else f"Fold {fold}: "
        if not counts["test"]:
            raise NoTestUsersError(
                f"{where}no user can be tested: of {self.n_left:,} interactions that the filters "
                f"leave, none of them is held out for test by {protocol}. Hint: loosen one of them."
            )
        if not counts["train"] + counts["remainder"]:
            warn(
                f"{where}train is empty: none of {self.n_left:,} interactions is left there by "
                f"{protocol}. Hint: hold out less; a split by time takes a later one."
            )
        train, test, remainder = (
            rows.where(f"{quoted(PART)} = {part}").drop(PART) for part in (TRAIN, TEST, REMAINDER)
        )
        rest = remainder if apart else None
        return SparkSplit(train, test, rest, protocol, self.columns, assigned, kept)

    def _assigned(self, fold: int | None) -> Frame:
        """Return all rows with the part of each."""
        frame, columns, what, who = self.frame, self.columns, self.what, self.who
        how = {**self.how, "fold": fold}
        if isinstance(who, UsersNumber):
            chosen = self._drawn(who.number, how).selectExpr("*", f"true AS {quoted(CHOSEN)}")
            frame = frame.join(chosen, self.users, "left")
            frame = frame.select(*map(quoted, self.frame.columns), quoted(CHOSEN))

        def parts(table: Any) -> Any:
            own = who
            if isinstance(who, UsersNumber):
                drawn = table.filter(table[CHOSEN].is_valid())
                own = GivenUsers(_distinct(drawn, columns.user))
            elif isinstance(who, GivenUsers):
                own = GivenUsers(_among(who.users, table, columns.user))
            return _with_column(table, PART, _parts(table, columns, what, own, how))

        return self._mapped(frame, parts, {PART: "tinyint"}).drop(CHOSEN)

    def _drawn(self, number: int, how: dict[str, Any]) -> Frame:
        """Return the users with the lowest draws, of those who could be tested."""
        columns, what, by = self.columns, self.what, [*map(quoted, self.users)]

        def draws(table: Any) -> Any:
            return _with_column(table, DRAW, *_draws(table, columns, what, how))

        drawn = self._mapped(self.frame, draws, {DRAW: "bigint"})
        able = drawn.where(f"{quoted(DRAW)} IS NOT NULL").select(*by, quoted(DRAW)).distinct()
        found = able.orderBy(quoted(DRAW), *by).limit(number).select(*by)
        persisted(found)
        n_found = int(acted(found.count))
        if n_found < number:
            warn(f"{self.who!r}: only {n_found:,} users can be tested, and all of them are.")
        return found

    def _mapped(self, frame: Frame, function: Any, more: Mapping[str, str]) -> Frame:
        """Return what a function makes of tables with all rows of some users, and more columns."""
        from pyspark.sql.types import ByteType, LongType, StructField, StructType

        by = [*map(quoted, self.users)]
        spread = frame if self.partitions is None else frame.repartition(self.partitions, *by)
        cells = spread.selectExpr(*by, "struct(*) AS c").groupBy(*by).agg({"c": "collect_list"})
        order = [(name, "ascending") for name in single_names(self.columns)]

        def run(batches: Any) -> Any:
            import pyarrow as pa

            for block in blocks(batches):
                rows = block.columns[-1].combine_chunks().flatten()
                names = [field.name for field in rows.type]
                table = pa.table(dict(zip(names, rows.flatten(), strict=True)))
                yield from function(table.sort_by(order)).to_batches()

        types = {"tinyint": ByteType, "bigint": LongType}
        added = [StructField(name, types[kind]()) for name, kind in more.items()]
        return cells.mapInArrow(run, StructType([*frame.schema.fields, *added]))

    def _unseen(self, rows: Frame, one: SeenInTrain) -> Frame:
        """Leave test rows out whose user or item is not in train."""
        for wanted, column, parts in (
            (one.users, self.columns.user, f"{TRAIN}"),
            (one.items, self.columns.item, f"{TRAIN}, {REMAINDER}"),
        ):
            if wanted:
                by, part = single_names([column]), quoted(PART)
                seen = rows.where(f"{part} IN ({parts})").select(*map(quoted, by)).distinct()
                joined = rows.join(seen.selectExpr("*", f"true AS {quoted(SEEN)}"), by, "left")
                gone = f"{part} = {TEST} AND {quoted(SEEN)} IS NULL"
                new = f"CAST(IF({gone}, {LEFT_OUT}, {part}) AS tinyint) AS {part}"
                columns = [new if name == PART else quoted(name) for name in rows.columns]
                rows = joined.selectExpr(*columns)
        return rows

    def _left_by(self, one: Filter) -> Frame:
        if isinstance(one, ValuesFrom):
            if self.columns.value is None:
                raise InputError(
                    f"{one!r} reads values, and the data have none. Hint: name their column with "
                    "value=."
                )
            number = f"CAST({quoted(self.columns.value)} AS double)"
            least = f"CAST('{float(one.threshold)!r}' AS double)"
            return self.frame.where(f"{number} >= {least} AND NOT isnan({number})")
        if isinstance(one, MinCounts):
            return self._with_counts(self.frame, one, at_once=True)
        if isinstance(one, KCore):
            rows, n, before = self.frame, self.n_left, -1
            while n and n != before:
                rows = self._with_counts(rows, one, at_once=False)
                persisted(rows)
                before, n = n, int(acted(rows.count))
            return rows
        if isinstance(one, Duplicates):
            columns = self.columns._asdict()
            return self._mapped(
                self.frame,
                lambda table: kept_of_some_users(table, one, columns).cast(table.schema),
                {},
            )
        raise InputTypeError(f"The filter {one!r} is not known on Spark.")

    def _with_counts(self, rows: Frame, one: MinCounts | KCore, *, at_once: bool) -> Frame:
        """Return the rows whose user and item each have enough rows, counted at once or in turn."""
        start = rows
        for column, least in ((self.columns.user, one.user), (self.columns.item, one.item)):
            if least > 1:
                by = single_names([column])
                counted = (start if at_once else rows).groupBy(*map(quoted, by)).count()
                enough = counted.where(f"count >= {least}").select(*map(quoted, by))
                rows = rows.join(enough, by, "left_semi")
        return rows.select(*map(quoted, start.columns))


def _parts(table: Any, columns: Columns, what: Any, who: Any, how: dict[str, Any]) -> Any:
    """Return the part of each row of some users."""
    if isinstance(what, ColdItems) and what.items is not None:
        what = ColdItems(items=_among(what.items, table, columns.item))
    named = {name: one or False for name, one in columns._asdict().items()}
    read = table.select(single_names(columns))
    return parts_of_some_users(read, what, who=who, columns=named, **how).astype("int8")


def _draws(table: Any, columns: Columns, what: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """Return the draw of each row's user, and whether the user could not be tested."""
    import polars as pl

    part = _parts(table, columns, what, AllUsers(), how)
    named = pl.DataFrame(table.select(single_names([columns.user])))
    column = named.to_struct() if named.width > 1 else named.to_series()
    codes, users = ids.encode(column, "user ids")
    n_test, n_train = (
        np.bincount(codes[part == one], minlength=len(users)) for one in (TEST, TRAIN)
    )
    able = (n_test >= how["min_test"]) & (n_train >= how["min_train"])
    draws = draw_users(ids.user_keys(users, len(users)), how["seed"])
    draws ^= np.uint64(1 << 63)  # in the order of signed numbers
    return draws.view(np.int64)[codes], ~able[codes]


def _with_column(table: Any, name: str, column: Any, mask: Any = None) -> Any:
    import pyarrow as pa

    return table.append_column(name, pa.array(column, mask=mask))


def _settled(what: What | Folding, frame: Frame, columns: Columns) -> What | Folding:
    """Return what is held out, with what only all rows together tell."""
    if isinstance(what, ColdItems) and what.items is not None:
        _check_there(what.items, frame, columns.item, "items")
    if not isinstance(what, After) or what.share is None:
        return what
    if columns.time is None:
        raise InputError(
            f"{what!r} reads times, and the data have none. Hint: name their column with time=."
        )
    n = int(acted(frame.count))
    if not n:
        raise InputError(f"{what!r}: there are no interactions.")
    times = frame.selectExpr(f"{quoted(columns.time)} AS t").orderBy("t")
    place = min(int(what.share * n + 1e-9), n - 1)
    found, first = _moment(times.offset(place).limit(1)), _moment(times.limit(1))
    if found == first:
        raise InputError(
            f"{what!r}: too many interactions have the first time, {first}: none is before the "
            "split. Hint: use a larger share, or give a time."
        )
    return After(found, until=what.until, since=what.since)


def _moment(times: Frame) -> Any:
    """Return the time in the first row, in UTC whatever the time zone of this machine."""
    if times.schema["t"].dataType.simpleString() != "timestamp":
        return acted(times.collect)[0][0]
    micros = acted(times.selectExpr("unix_micros(t)").collect)[0][0]
    begin = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return begin + datetime.timedelta(microseconds=micros)


def _by_part(rows: Frame) -> dict[int, int]:
    """Count the rows of each part."""
    return {int(row[0]): int(row[1]) for row in acted(rows.groupBy(PART).count().collect)}


def _check_ids(frame: Frame, columns: Columns) -> None:
    """Refuse columns of users and items whose entries cannot be ids."""
    for name in single_names([columns.user, columns.item]):
        kind = frame.schema[name].dataType
        # Whether floating-point numbers count as integers depends on all rows.
        if kind.typeName() in ("float", "double", "struct", "array", "map"):
            raise InputTypeError(
                f"Column {name!r} holds {kind.simpleString()}, of which no ids are made. Hint: "
                f"cast it to bigint or to string: frame.withColumn({name!r}, "
                f'frame[{name!r}].cast("bigint")).'
            )


def _distinct(table: Any, column: str) -> list[Any]:
    """Return the ids, or the pairs of ids, that an Arrow table holds, each once."""
    parts = single_names([column])
    pairs = table.select(parts).group_by(parts).aggregate([])
    each = [pairs[part].to_pylist() for part in parts]
    return each[0] if len(each) == 1 else list(zip(*each, strict=True))


def _among(wanted: Any, table: Any, column: str) -> list[Any]:
    """Return the wanted ids that an Arrow table holds."""
    there = set(_distinct(table, column))
    return [one for one in as_ids(wanted, "given ids").tolist() if one in there]


def _check_there(wanted: Any, frame: Frame, column: str, what: str) -> None:
    """Refuse ids that are not in the data, or pairs of them that are not of two columns."""
    listed, parts = as_ids(wanted, f"given {what}").tolist(), single_names([column])
    if not listed:
        return
    pairs = isinstance(listed[0], tuple)
    if pairs != (len(parts) == 2):
        both = " and ".join(map(repr, parts))
        said = f"The given {what}, for instance {listed[0]!r}, are"
        if pairs:
            raise InputTypeError(f"{said} pairs, but {both} names each of them. Hint: give ids.")
        raise InputTypeError(
            f"{said} no pairs, but {both} name each of them. Hint: give pairs, such as ('ann', 3)."
        )
    names = [f"wanted {number}" for number in range(len(parts))]
    rows = listed if pairs else [(one,) for one in listed]
    given = frame.sparkSession.createDataFrame(rows, names)
    own = [f"{quoted(part)} AS {quoted(name)}" for part, name in zip(parts, names, strict=True)]
    known = frame.selectExpr(*own).distinct()
    missing = acted(given.join(known, names, "left_anti").limit(1).collect)
    if missing:
        first = tuple(missing[0]) if pairs else missing[0][0]
        raise InputError(
            f"The data have no {what[:-1]} {first!r}. Hint: leave it out of {what}, or look how "
            "ids are written."
        )
