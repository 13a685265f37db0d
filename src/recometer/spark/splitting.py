"""split on Spark: who x what, with the same draws as on one machine."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from recometer.data.columns import Columns, find_columns
from recometer.data.numbers import flag
from recometer.draws import seed_of
from recometer.errors import InputError, warn
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._elsewhere import RUNNING, refusing
from recometer.spark._filtering import SparkFilters
from recometer.spark._frames import Frame, quoted
from recometer.spark._ids import among, check_ids, check_known, distinct, names_of, parts_of
from recometer.spark.given import Interactions, with_columns
from recometer.split.checks import NoTestUsersError, check_whole
from recometer.split.draws import draw_users
from recometer.split.filters import Filter, SeenInTrain
from recometer.split.result import SplitProtocol
from recometer.split.splitting import (
    LEFT_OUT,
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
from recometer.split.who import AllUsers, GivenUsers, UserFolds, UsersNumber, Who

PART, CHOSEN, DRAW = "recometer part", "recometer chosen", "recometer draw"
ELSEWHERE = {"threads": RUNNING["threads"]}


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
    filters: Filter | SeenInTrain | Iterable[Filter | SeenInTrain] = (),
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

    Returns
    -------
    SparkSplit

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
    _check_kinds(what, who, untested)
    named = with_columns(data, user=user, item=item, value=value)
    (made,) = _Given.of(
        named, what, who, filters, untested, min_train, min_test, seed, time, partitions
    ).splits([None], keep)
    return made


@refusing(ELSEWHERE)
def folds(
    data: object,
    what: What | Folding,
    *,
    who: Who | UserFolds = AllUsers(),  # noqa: B008  # frozen
    filters: Filter | SeenInTrain | Iterable[Filter | SeenInTrain] = (),
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
) -> list[SparkSplit]:
    """Split a DataFrame several times: cross-validation, or one window of time after another.

    Every row is on the same side in each fold as with `recometer.split.folds`.

    Parameters
    ----------
    what
        `KFold` or `Windows`; or anything that `split` takes, if `who` makes the folds.
    who
        `UserFolds`; or anything that `split` takes, if `what` makes the folds.
    filters, untested, min_train, min_test, seed, user, item, value, time, partitions, keep
        As in `split`.

    Returns
    -------
    list of SparkSplit

    Raises
    ------
    NoTestUsersError, InputError, InputTypeError, ColumnError
        As for `recometer.split.folds`.

    Examples
    --------
    >>> import recometer as rm, recometer.spark as rs
    >>> for made in rs.folds(ratings, rm.split.KFold(5)):  # doctest: +SKIP
    ...     rs.evaluate(fitted(made.train), made.test, train=made.train)
    """
    n = number_of_folds(what, who)
    _check_kinds(what, who, untested)
    named = with_columns(data, user=user, item=item, value=value)
    given = _Given.of(
        named, what, who, filters, untested, min_train, min_test, seed, time, partitions
    )
    return given.splits(range(n), keep)


@dataclasses.dataclass(frozen=True, eq=False)
class _Given:
    """The data after the filters, and how they are split."""

    left: SparkFilters
    how: _Splitting
    protocol: SplitProtocol

    @classmethod
    def of(
        cls,
        given: Interactions,
        what: What | Folding,
        who: Who | UserFolds,
        filters: Filter | SeenInTrain | Iterable[Filter | SeenInTrain],
        untested: Literal["train", "apart"],
        min_train: int,
        min_test: int,
        seed: int,
        time: str | Literal[False] | None,
        partitions: int | None,
    ) -> _Given:
        """Read the arguments of `split` and of `folds`, and apply the filters."""
        _frames.check_partitions(partitions)
        frame = _frames.need_frame(given.frame, "data")
        wanted: dict[str, Any] = {"user": given.user, "item": given.item, "value": given.value}
        columns = find_columns(frame.columns, **wanted, time=time)
        check_ids(frame, columns)
        several = listed_filters(filters)
        left = SparkFilters(frame, columns, several, partitions)
        how = _Splitting(
            columns,
            _settled_what(what, left.frame, columns),
            _settled_who(who, left.frame, columns),
            untested,
            check_whole("min_train", min_train),
            check_whole("min_test", min_test),
            seed_of(seed),
            partitions,
        )
        protocol = SplitProtocol(
            who=repr(who),
            what=repr(what),
            filters=tuple(map(repr, several)),
            untested=untested,
            min_train=min_train,
            min_test=min_test,
            seed=seed,
            counts={},
            removed={},
        )
        return cls(left, how, protocol)

    def splits(self, numbers: Iterable[int | None], keep: bool) -> list[SparkSplit]:
        """Return a split for each number of a fold; the number is None if there are no folds."""
        kept = flag("keep", keep)
        return [self._split(number, kept) for number in numbers]

    def _split(self, fold: int | None, keep: bool) -> SparkSplit:
        left, untested = self.left, self.protocol.untested
        assigned = dataclasses.replace(self.how, fold=fold).rows(left.frame)
        kept = keep and _frames.persisted(assigned)
        rows, found = assigned, _by_part(assigned)
        removed = dict(left.removed)
        if left.after:
            rows, n_before = left.unseen(assigned, PART), found.get(LEFT_OUT, 0)
            found = _by_part(rows)
            n_gone = found.get(LEFT_OUT, 0) - n_before
            removed |= {repr(one): n_gone for one in left.after}
        counts = _counts(found, left.n_all, untested)
        protocol = dataclasses.replace(self.protocol, fold=fold, counts=counts, removed=removed)
        _check(protocol, left.n_left)

        def part(number: int) -> Frame:
            return rows.where(f"{quoted(PART)} = {number}").drop(PART)

        remainder = part(REMAINDER) if untested == "apart" else None
        of_columns = self.how.columns
        return SparkSplit(part(TRAIN), part(TEST), remainder, protocol, of_columns, assigned, kept)


@dataclasses.dataclass(frozen=True, eq=False)
class _Splitting:
    """The part of a split that runs on the executors."""

    columns: Columns
    what: What | Folding
    who: Who | UserFolds
    untested: Literal["train", "apart"]
    min_train: int
    min_test: int
    seed: int
    partitions: int | None
    fold: int | None = None

    def rows(self, frame: Frame) -> Frame:
        """Return all rows with the part of each."""
        if isinstance(self.who, UsersNumber):
            chosen = self._drawn(frame).selectExpr("*", f"true AS {quoted(CHOSEN)}")
            read = frame.columns
            frame = frame.join(chosen, parts_of(self.columns.user), "left")
            frame = frame.select(*map(quoted, read), CHOSEN)
        return self._mapped(frame, self._parts, {PART: "tinyint"}).drop(CHOSEN)

    def _drawn(self, frame: Frame) -> Frame:
        """Return the users with the lowest draws, of those who could be tested."""
        assert isinstance(self.who, UsersNumber)
        users = [*map(quoted, parts_of(self.columns.user))]
        drawn = self._mapped(frame, self._draws, {PART: "tinyint", DRAW: "bigint"})
        able = drawn.where(f"{quoted(DRAW)} IS NOT NULL").select(*users, quoted(DRAW)).distinct()
        found = able.orderBy(quoted(DRAW), *users).limit(self.who.number).select(*users)
        _frames.persisted(found)
        n_found = int(found.count())
        if n_found < self.who.number:
            warn(f"{self.who!r}: only {n_found:,} users can be tested, and all of them are.")
        return found

    def _mapped(self, frame: Frame, function: Any, more: Mapping[str, str]) -> Frame:
        n = _frames.partitions_of(frame, self.partitions)
        by = [*map(quoted, parts_of(self.columns.user))]
        spread = frame.repartition(*by) if n is None else frame.repartition(n, *by)
        ordered = spread.sortWithinPartitions(*map(quoted, names_of(self.columns)))
        user = parts_of(self.columns.user)[0]

        def run(batches: Any) -> Any:
            for table in blocks(batches, user=user):
                yield from function(table).to_batches()

        return ordered.mapInArrow(run, _frames.schema_with(frame, more))

    def _parts(self, table: Any) -> Any:
        """Return the rows of some users with the part of each."""
        import pyarrow as pa

        who = self.who
        if isinstance(who, UsersNumber):
            chosen = table.filter(table[CHOSEN].is_valid())
            who = GivenUsers(distinct(chosen, self.columns.user))
        elif isinstance(who, GivenUsers):
            who = GivenUsers(among(who.users, table, self.columns.user))
        return table.append_column(PART, pa.array(self._assigned(table, who).astype("int8")))

    def _draws(self, table: Any) -> Any:
        """Return the rows of some users with the users' draws, where they could be tested."""
        import numpy as np
        import polars as pl
        import pyarrow as pa

        from recometer.data import ids

        part = self._assigned(table, AllUsers())
        parts = table.select(parts_of(self.columns.user))
        named = pl.DataFrame(parts)
        column = named.to_struct() if parts.num_columns > 1 else named.to_series()
        codes, users = ids.encode(column, "user ids")
        n = len(users)
        n_test = np.bincount(codes[part == TEST], minlength=n)
        n_train = np.bincount(codes[part == TRAIN], minlength=n)
        able = (n_test >= self.min_test) & (n_train >= self.min_train)
        keys = ids.user_keys(users, n)
        draws = draw_users(keys, self.seed) ^ np.uint64(1 << 63)  # in the order of signed numbers
        of_rows = pa.array(draws.view(np.int64)[codes], mask=~able[codes])
        found = table.append_column(PART, pa.array(part.astype("int8")))
        return found.append_column(DRAW, of_rows)

    def _assigned(self, table: Any, who: Who | UserFolds) -> Any:
        what = self.what
        if isinstance(what, ColdItems) and what.items is not None:
            what = ColdItems(items=among(what.items, table, self.columns.item))
        user, item, value, time = self.columns
        columns = {"user": user, "item": item, "value": value or False, "time": time or False}
        return parts_of_some_users(
            table.select(names_of(self.columns)),
            what,
            who=who,
            untested=self.untested,
            min_train=self.min_train,
            min_test=self.min_test,
            seed=self.seed,
            columns=columns,
            fold=self.fold,
        )


def _check_kinds(what: object, who: object, untested: str) -> None:
    check_kind(what, (What, Folding), "what")
    check_kind(who, (Who, UserFolds), "who")
    check_untested(untested)


def _settled_what(what: What | Folding, frame: Frame, columns: Columns) -> What | Folding:
    """Return what is held out, with what only all rows together tell."""
    if isinstance(what, After) and what.share is not None:
        time = quoted(_time(columns, what))
        n = frame.count()
        if not n:
            raise InputError(f"{what!r}: there are no interactions.")
        place = min(int(what.share * n + 1e-9), n - 1)
        times = frame.selectExpr(f"{time} AS t").orderBy("t")
        found, first = _moment(times.offset(place).limit(1)), _moment(times.limit(1))
        if found == first:
            raise InputError(
                f"{what!r}: too many interactions have the first time, {first}: none is "
                "before the split. Hint: use a larger share, or give a time."
            )
        return After(found, until=what.until, since=what.since)
    if isinstance(what, ColdItems) and what.items is not None:
        check_known(what.items, frame, columns.item, "items")
    return what


def _moment(times: Frame) -> Any:
    """Return the time in the first row, in UTC whatever the time zone of this machine."""
    if times.schema["t"].dataType.simpleString() != "timestamp":
        return times.collect()[0][0]
    since = datetime.timedelta(microseconds=times.selectExpr("unix_micros(t)").collect()[0][0])
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + since


def _settled_who(who: Who | UserFolds, frame: Frame, columns: Columns) -> Who | UserFolds:
    if isinstance(who, GivenUsers):
        check_known(who.users, frame, columns.user, "users")
    return who


def _time(columns: Columns, what: What) -> str:
    if columns.time is None:
        raise InputError(
            f"{what!r} reads times, and the data have none. Hint: name their column with time=."
        )
    return columns.time


def _by_part(rows: Frame) -> dict[int, int]:
    """Count the rows of each part."""
    return {int(row[0]): int(row[1]) for row in _frames.collected(rows.groupBy(PART).count())}


def _counts(found: Mapping[int, int], n_all: int, untested: str) -> dict[str, int]:
    """Name the numbers of rows of each part; what filters left out is `left_out`."""
    counts = {name: found.get(part, 0) for part, name in enumerate(("train", "test", "remainder"))}
    if untested != "apart":
        counts["remainder"] = 0
    return {**counts, "left_out": n_all - sum(counts.values())}


def _check(protocol: SplitProtocol, n_left: int) -> None:
    counts, where = protocol.counts, ""
    if protocol.fold is not None:
        where = f"Fold {protocol.fold}: "
    if not counts["test"]:
        raise NoTestUsersError(
            f"{where}no user can be tested: of {n_left:,} interactions that the filters leave, "
            f"none of them is held out for test by {protocol}. Hint: loosen one of them."
        )
    if not counts["train"] + counts["remainder"]:
        warn(
            f"{where}train is empty: none of {n_left:,} interactions is left there by {protocol}. "
            "Hint: hold out less; a split by time takes a later one."
        )
