"""Splits and audits on Spark, based on the single-machine functions."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recometer.arrays import Array
from recometer.auditing.check import Audit, audit_of, check_not_empty
from recometer.auditing.facts import Facts, Matches, SplitFacts, ends_of, facts_of_block, locate
from recometer.auditing.findings import EXAMPLES
from recometer.data.columns import Columns
from recometer.data.frames import times as times_of
from recometer.data.interactions import Interactions as InteractionsHere
from recometer.data.numbers import seed_of
from recometer.data.times import sample_rows
from recometer.errors import InputError, InputTypeError, brief
from recometer.protocol import Protocol, RelevantFrom
from recometer.spark import tables
from recometer.spark.block import blocks, merged, row, run_job
from recometer.spark.sources import Interactions
from recometer.spark.tables import Frame, IdKinds, Table, acted
from recometer.split import splitting
from recometer.split.checks import NoTestUsersError, check_whole
from recometer.split.choices import (
    After,
    AllUsers,
    ColdItems,
    Folding,
    UserFolds,
    What,
    Who,
)
from recometer.split.result import SplitProtocol
from recometer.split.splitting import check_kind, check_one_split, check_untested

PART = "recometer part"
# Classes of recometer.split that are not available on Spark, and what to use instead.
UNAVAILABLE = {
    "ColdItems with items": "frame.where(frame[item].isin(items)) is test, and the rest train",
    "GivenUsers": "rs.split splits these users' rows, and train.unionByName(...) adds the rest",
    "UsersNumber": "UsersFraction draws a share of the users",
}


@dataclasses.dataclass(frozen=True, eq=False)
class SparkSplit:
    """Training and test data as DataFrames, and how they were made.

    Attributes
    ----------
    train, test
        DataFrames with all columns of the data.
    remainder
        A DataFrame with the interactions of users who are not tested, if ``untested="apart"``
        separates them. None if they are part of the training data.
    protocol : recometer.split.SplitProtocol
    columns
        The names of the columns that the split read.
    """

    train: Frame
    test: Frame
    remainder: Frame | None
    protocol: SplitProtocol
    columns: Columns
    rows: Frame = dataclasses.field(repr=False)
    kept: bool = False

    def interactions(self) -> tuple[Interactions, Interactions]:
        """Return the test and the training data as interactions with named columns."""
        columns: tuple[Any, ...] = self.columns.user, self.columns.item, self.columns.value or False
        return Interactions(self.test, *columns), Interactions(self.train, *columns)

    def __repr__(self) -> str:
        counts = self.protocol.counts
        parts = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n)
        return f"SparkSplit({parts}; {self.protocol})"

    def unpersist(self) -> None:
        """Release the rows of all parts; Spark recomputes them if needed."""
        if self.kept:
            self.rows.unpersist()


def split(
    data: object,
    what: What,
    *,
    who: Who = AllUsers(),  # noqa: B008  # frozen
    untested: Literal["train", "apart"] = "train",
    min_train: int = 0,
    min_test: int = 1,
    seed: int = 0,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: str | Literal[False] | None = None,
    time: str | Literal[False] | None = None,
    partitions: int | None = None,
) -> SparkSplit:
    """Split a DataFrame into train and test by holding out interactions of the tested users.

    Every row is in the same part as with `recometer.split`, because draws depend only on the seed,
    the user's id and the item's id.

    Parameters
    ----------
    data
        A DataFrame, or `recometer.spark.Interactions`, which names its columns.
    what, who, untested, min_train, min_test, seed
        As in `recometer.split`, but without ``GivenUsers``, ``UsersNumber``, and the option `items`
        of ``ColdItems``. There are no filters; filter the DataFrame before you split it. For
        several splits, use `folds`.
    user, item, value, time
        The names of the columns. By default, columns with common names are used. With
        ``user=["user", "session"]``, every session counts as a user.
    partitions
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
    return _Splitter(**locals()).split(None)


def folds(
    data: object,
    what: What | Folding,
    *,
    who: Who | UserFolds = AllUsers(),  # noqa: B008  # frozen
    time: str | Literal[False] | None = None,
    partitions: int | None = None,
    **options: Any,
) -> list[SparkSplit]:
    """Split a DataFrame several times, for cross-validation or for successive time windows.

    In each fold, every row is in the same part as with `recometer.split.folds`. Either `what`
    (`KFold` or `Windows`) or `who` (`UserFolds`) defines the folds. All other options are the same
    as for `split`.

    Examples
    --------
    >>> import recometer as rm, recometer.spark as rs
    >>> for made in rs.folds(ratings, rm.split.KFold(5)):  # doctest: +SKIP
    ...     rs.evaluate(fitted(made.train), made.test, train=made.train)
    """
    arguments = {"time": time, "partitions": partitions, **options}
    bound = inspect.signature(split).bind(data, what, who=who, **arguments)
    bound.apply_defaults()
    n, work = splitting.number_of_folds(what, who), _Splitter(**bound.arguments)
    return [work.split(fold) for fold in range(n)]


class _Splitter:
    """The data and settings that all folds share."""

    def __init__(
        self, data: object, what: Any, who: Any, *, untested: Any, seed: int, **options: Any
    ) -> None:
        check_kind(what, (What, Folding), "what")
        check_kind(who, (Who, UserFolds), "who")
        check_untested(untested)
        self.partitions = options.pop("partitions")
        tables.check_partitions(self.partitions)
        for part in (what, who):
            kind = type(part).__name__
            kind += " with items" * (isinstance(part, ColdItems) and part.items is not None)
            if kind in UNAVAILABLE:
                raise InputError(
                    f"{kind} is not available on Spark: {UNAVAILABLE[kind]}. Hint: for up to "
                    "several million users, use recometer.split on frame.toArrow()."
                )
        least = {name: check_whole(name, options.pop(name)) for name in ("min_train", "min_test")}
        self.table = Interactions.read(data, "data", **options)
        tables.kinds_of([self.table])
        self.frame, self.n_rows = self.table.frame, int(acted(self.table.frame.count))
        self.who, self.what = who, self._settled(what)
        self.how: dict[str, Any] = {"untested": untested, **least, "seed": seed_of(seed)}
        self.protocol = SplitProtocol(who=repr(who), what=repr(what), filters=(), **self.how)

    def split(self, fold: int | None) -> SparkSplit:
        """Return the only split, or the split of one fold."""
        user = tables.quoted(str(self.table.columns["user"]))
        cells = {"rows": self.frame.selectExpr(f"{user} AS u", "struct(*) AS c")}
        rows = self._assigned(tables.gathered(cells, self.partitions), fold)
        persisted = tables.persisted(rows)
        rows_of_parts = acted(rows.groupBy(PART).count().collect)
        n_rows = {int(part): int(n) for part, n in rows_of_parts}
        sets_apart = self.protocol.untested == "apart"
        names = {"train": splitting.TRAIN, "test": splitting.TEST, "remainder": splitting.REMAINDER}
        counts = {name: n_rows.get(part, 0) for name, part in names.items()}
        counts["remainder"] *= sets_apart
        counts["left_out"] = self.n_rows - sum(counts.values())
        protocol = dataclasses.replace(self.protocol, fold=fold, counts=counts)
        prefix = "" if fold is None else f"Fold {fold}: "
        if not counts["test"]:
            raise NoTestUsersError(
                f"{prefix}no user can be tested: none of the {self.n_rows:,} interactions is held "
                f"out for testing by {protocol}. Hint: loosen one of these rules."
            )
        if not counts["train"] + counts["remainder"]:
            splitting.warn_of_no_train(prefix, protocol, self.n_rows)
        parts = {
            name: rows.where(f"{tables.quoted(PART)} = {part}").drop(PART)
            for name, part in names.items()
        }
        parts["remainder"] = parts["remainder"] if sets_apart else None
        columns = {option: name or None for option, name in self.table.options.items()}
        column_names = Columns.from_dict(columns)
        return SparkSplit(
            **parts, protocol=protocol, columns=column_names, rows=rows, kept=persisted
        )

    def _assigned(self, users: Frame, fold: int | None) -> Frame:
        """Return all rows, with an additional column for the part that each row belongs to."""
        from pyspark.sql.types import ByteType, StructField, StructType

        what, order = self.what, [*filter(None, self.table.columns.values())]
        how: Any = {**self.how, "who": self.who, "fold": fold, "columns": self.table.options}

        def run(batches: Any) -> Any:
            import pyarrow as pa

            for block in blocks(batches):
                rows = block["rows"].combine_chunks().flatten()
                names = [field.name for field in rows.type]
                table = pa.table(dict(zip(names, rows.flatten(), strict=True)))
                table = table.sort_by([(name, "ascending") for name in order])
                parts = splitting.parts_of_some_users(table.select(order), what, **how)
                column = pa.array(parts.astype("int8"))
                yield from table.append_column(PART, column).to_batches()

        schema = StructType([*self.frame.schema.fields, StructField(PART, ByteType())])
        return users.mapInArrow(run, schema)

    def _settled(self, what: What | Folding) -> What | Folding:
        """Return `what`, with a share of the rows (``After(share=...)``) replaced by a time."""
        if not isinstance(what, After) or what.share is None:
            return what
        if not self.table.has_column("time") or not self.n_rows:
            raise InputError(
                f"{what!r} reads times, but the data have none. Hint: name their column with time=."
            )
        column = tables.quoted(str(self.table.columns["time"]))
        times = self.frame.selectExpr(f"{column} AS t").orderBy("t")
        place = min(int(what.share * self.n_rows + 1e-9), self.n_rows - 1)
        # Arrow keeps the time zone, which Row loses.
        first, time = (
            acted(times.offset(rows).limit(1).toArrow)["t"][0].as_py() for rows in (0, place)
        )
        if time == first:
            raise InputError(
                f"{what!r}: so many interactions have the first time, {first}, that none is before "
                "the split. Hint: use a larger share, or pass a time."
            )
        return After(time, until=what.until, since=what.since)


def audit(
    train: object,
    test: object = None,
    *,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: str | bool | None = None,
    time: str | bool | None = None,
    relevant_from: RelevantFrom = None,
    min_positives: int = 1,
    min_candidates: int = 2,
) -> Audit:
    """Look for leakage and other faults in a split into train and test, like `recometer.audit`.

    Spark gathers the rows of each user, and executors check them. The driver receives only counts
    and examples, which it combines.

    Parameters
    ----------
    train, test
        DataFrames, or `recometer.spark.Interactions`, which name their columns. Instead of both,
        you can pass a `SparkSplit` as `train`; its remainder counts as training data.
    user, item, value, time, relevant_from, min_positives, min_candidates
        As in `recometer.audit`. Omit the column names for a `SparkSplit`, which knows its columns.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        As for `recometer.audit`. An InputError is also raised if a user has more than 10 million
        rows.
    """
    columns: dict[str, Any] = {"user": user, "item": item, "value": value, "time": time}
    frames = {"train": train, "test": test}
    if test is None:
        frames, columns = _of_split(train, columns)
    minimums: Any = {"min_positives": min_positives, "min_candidates": min_candidates}
    rules = Protocol(relevant_from=relevant_from, **minimums)
    sides = {name: Interactions.read(data, name, **columns) for name, data in frames.items()}
    if sides["train"].has_column("session") > sides["test"].has_column("session"):
        raise tables.without_sessions("train")
    return audit_of(_facts(sides, rules), *(table.description for table in sides.values()))


def _facts(sides: Mapping[str, Table], rules: Protocol) -> Facts:
    """Return the facts about both sides; Spark counts items, and executors check users."""
    kinds = tables.kinds_of(sides.values())
    pairs = (table.select(IdKinds._fields, kinds).distinct() for table in sides.values())
    of_train, of_test = (rows.groupBy("i").count() for rows in pairs)
    per_item = of_train.toDF("i", "n").join(of_test.toDF("i", "m"), "i", "full_outer").fillna(0)
    persisted = tables.persisted(per_item)
    items = {(n, m): k for n, m, k in acted(per_item.groupBy("n", "m").count().collect)}
    for side, name in enumerate(sides):
        check_not_empty(name, sum(pair[side] for pair in items))
    unseen = per_item.where("n = 0").select("i")
    few = acted(unseen.orderBy("i").limit(EXAMPLES).toArrow)["i"].to_pylist()
    times = {
        name: _times(table, kinds) for name, table in sides.items() if table.has_column("time")
    }
    ends = ends_of(**times) if len(times) == len(sides) else None
    whole = SplitFacts(rules, sum(items.values()), ends)
    cells = {name: table.cells(kinds) for name, table in sides.items()}
    if few:
        rows = sides["test"].select(("user", "item"), kinds).join(unseen, "i", "left_semi")
        cells["unseen"] = rows.select("u", "i").toDF("u", "c")
    on_executors = {name: dataclasses.replace(t, frame=None) for name, t in sides.items()}

    def run(batches: Any) -> Any:
        for block in blocks(batches):
            train, test = (
                InteractionsHere.of(table.rows(block, name), **table.options)
                for name, table in on_executors.items()
            )
            is_seen = np.ones(test.n_items, bool)
            if "unseen" in block.column_names:
                unseen_ids = tables.ids(block["unseen"].combine_chunks().flatten())
                is_seen = ~np.isin(np.asarray(test.item_ids), unseen_ids)
            users, items = locate(train, test)
            facts: Any = facts_of_block(train, test, users, items, is_seen, whole)
            yield row(facts)

    notes = acted(run_job(run, tables.gathered(cells, None)).select("note").toArrow)
    if persisted:
        per_item.unpersist()

    def first(side: str, kind: str) -> str:
        ids = sides[side].select(("user", "session") if kind == "user" else ("item",), kinds)
        [[least]] = acted(ids.selectExpr("min(struct(*))").collect)
        return brief(tuple(least) if len(least) > 1 else least[0])

    n_unseen = sum(k for (n, _), k in items.items() if not n)
    of_users: dict[str, Any] = merged(notes["note"].to_pylist())
    n_tested = sum(k for (_, m), k in items.items() if m)
    return Facts(
        matches={**of_users["matches"], "unseen_items": Matches(n_unseen, tuple(few))},
        counts={**of_users["counts"], "items_tested": n_tested},
        rules=rules,
        first=first,
        untimed=tuple(name for name in sides if name not in times),
        valued=tuple(name for name, table in sides.items() if table.has_column("value")),
    )


def _times(table: Table, kinds: IdKinds) -> Array:
    """Find each pair's latest time, and return some of these, including the extremes."""
    import polars as pl
    from pyspark.sql import functions

    name = str(table.columns["time"])
    label, latest = f"times (column {name!r})", "max(t)"
    if table.type_of("time").simpleString() == "string":
        latest = "max(struct(try_cast(t AS double), t)).t"
    rows = table.select((*IdKinds._fields, "time"), kinds)
    pairs = rows.groupBy(*(c for c in rows.columns if c != "t"))
    frame = pairs.agg(functions.expr(latest).alias("t")).select("t")

    def run(batches: Any) -> Any:
        for batch in filter(len, batches):
            yield batch.take(sample_rows(times_of(pl.Series(batch.column(0)), label)[0]))

    return times_of(pl.Series(acted(frame.mapInArrow(run, frame.schema).toArrow)["t"]), label)[0]


def _of_split(split: object, columns: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(split, SparkSplit):
        raise InputTypeError(
            f"An audit needs train and test, or a SparkSplit, found only {type(split).__name__}. "
            "Hint: rs.audit(train, test)."
        )
    passed = next((option for option, name in columns.items() if name is not None), None)
    if passed is not None:
        raise InputError(
            f"{passed}= was passed, but a SparkSplit already names its columns. Hint: omit it."
        )
    remainder = split.remainder
    train = split.train if remainder is None else split.train.unionByName(remainder)
    columns = {option: name or False for option, name in split.columns._asdict().items()}
    return {"train": train, "test": split.test}, columns
