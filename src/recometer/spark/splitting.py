"""split on Spark: Spark counts, and the functions of one machine split blocks of whole users."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from recometer.data.columns import Columns, find_columns, single_names
from recometer.data.numbers import flag
from recometer.draws import seed_of
from recometer.errors import InputError, InputTypeError, warn
from recometer.spark.block import blocks
from recometer.spark.sources import with_columns
from recometer.spark.tables import (
    RUNNING,
    Frame,
    acted,
    check_ids,
    check_partitions,
    gathered,
    need_frame,
    persisted,
    quoted,
    refusing,
)
from recometer.split.checks import NoTestUsersError, check_whole
from recometer.split.filters import Filter, MinCounts, ValuesFrom
from recometer.split.result import SplitProtocol
from recometer.split.splitting import (
    REMAINDER,
    TEST,
    TRAIN,
    check_kind,
    check_one_split,
    check_untested,
    listed_filters,
    number_of_folds,
    parts_of_some_users,
)
from recometer.split.what import After, ColdItems, Folding, What
from recometer.split.who import AllUsers, UserFolds, Who

PART = "recometer part"
ELSEWHERE = {"threads": RUNNING["threads"]}
# Parts of recometer.split that are not here, and what Spark does instead.
GONE = {
    "ColdItems with items": "frame.where(frame[item].isin(items)) is test, and the rest train",
    "Duplicates": "frame.dropDuplicates([user, item]) or a groupBy leaves one row of each pair",
    "GivenUsers": "rs.split splits the rows of these users, and train.unionByName(...) adds others",
    "KCore": "several MinCounts, one after the other, leave the core once nothing changes",
    "SeenInTrain": "test.join(train.select(user).distinct(), user, 'left_semi') keeps known users",
    "UsersNumber": "UsersFraction draws a share of the users",
}
Filters = Filter | Iterable[Filter]


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
        As in `recometer.split`, without ``GivenUsers``, ``UsersNumber``, ``KCore``, ``Duplicates``,
        ``SeenInTrain`` and given items of ``ColdItems``. `folds` makes several splits.
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
    check_one_split(what, who, "recometer.spark.folds")
    columns: Any = {"user": user, "item": item, "value": value, "time": time}
    how: Any = {"untested": untested, "min_train": min_train, "min_test": min_test, "seed": seed}
    work = _Work(data, what, who, filters, partitions=partitions, keep=keep, **columns, **how)
    return work.split(None)


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
        filters: Filters = (),
        *,
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
        self.partitions = partitions
        check_ids(frame, of)
        several = listed_filters(filters)
        for one in (what, who, *several):
            kind = type(one).__name__
            kind += " with items" * (isinstance(one, ColdItems) and one.items is not None)
            if kind in GONE:
                raise InputError(
                    f"{kind} is not for Spark: {GONE[kind]}. Hint: recometer.split of "
                    "frame.toArrow() has it, for several million users."
                )
        self.n_all = self.n_left = int(acted(frame.count))
        self.removed: dict[str, int] = {}
        for one in several:
            self.frame = self._left_by(one)
            before, self.n_left = self.n_left, int(acted(self.frame.count))
            self.removed[repr(one)] = self.removed.get(repr(one), 0) + before - self.n_left
        self.who, self.what = who, _settled(what, self.frame, of)
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
        user = quoted(single_names(self.columns)[0])
        cells = {"rows": self.frame.selectExpr(f"{user} AS u", "struct(*) AS c")}
        rows = self._assigned(gathered(cells, self.partitions), fold)
        kept = self.keep and persisted(rows)
        counted = acted(rows.groupBy(PART).count().collect, cells)
        found = {int(part): int(n) for part, n in counted}
        apart = self.protocol.untested == "apart"
        counts = {
            name: found.get(part, 0)
            for name, part in (("train", TRAIN), ("test", TEST), ("remainder", REMAINDER))
        }
        counts["remainder"] *= apart
        counts["left_out"] = self.n_all - sum(counts.values())
        more: Any = {"fold": fold, "counts": counts, "removed": self.removed}
        protocol = dataclasses.replace(self.protocol, **more)
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
        return SparkSplit(train, test, rest, protocol, self.columns, rows, kept)

    def _assigned(self, users: Frame, fold: int | None) -> Frame:
        """Return all rows with the part of each."""
        from pyspark.sql.types import ByteType, StructField, StructType

        columns, what, who, order = self.columns, self.what, self.who, single_names(self.columns)
        named = {name: one or False for name, one in columns._asdict().items()}
        how: Any = {**self.how, "who": who, "fold": fold, "columns": named}

        def run(batches: Any) -> Any:
            import pyarrow as pa

            for block in blocks(batches):
                rows = block["rows"].combine_chunks().flatten()
                names = [field.name for field in rows.type]
                table = pa.table(dict(zip(names, rows.flatten(), strict=True)))
                table = table.sort_by([(name, "ascending") for name in order])
                parts = parts_of_some_users(table.select(order), what, **how).astype("int8")
                yield from table.append_column(PART, pa.array(parts)).to_batches()

        schema = StructType([*self.frame.schema.fields, StructField(PART, ByteType())])
        return users.mapInArrow(run, schema)

    def _left_by(self, one: Any) -> Frame:
        if isinstance(one, ValuesFrom):
            if self.columns.value is None:
                raise InputError(
                    f"{one!r} reads values, and the data have none. Hint: name their column with "
                    "value=."
                )
            number = f"CAST({quoted(self.columns.value)} AS double)"
            limit = f"CAST('{float(one.threshold)!r}' AS double)"
            return self.frame.where(f"{number} >= {limit} AND NOT isnan({number})")
        if not isinstance(one, MinCounts):
            raise InputTypeError(f"The filter {one!r} is not known on Spark.")
        rows = self.frame
        for column, least in ((self.columns.user, one.user), (self.columns.item, one.item)):
            if least > 1:
                by = single_names([column])
                counted = self.frame.groupBy(*map(quoted, by)).count()
                enough = counted.where(f"count >= {least}").select(*map(quoted, by))
                rows = rows.join(enough, by, "left_semi")
        return rows.select(*map(quoted, self.frame.columns))


def _settled(what: What | Folding, frame: Frame, columns: Columns) -> What | Folding:
    """Return what is held out, with what only all rows together tell."""
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
