"""Filters of a split on Spark: users and items are counted by Spark, pairs settled by users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recometer.data.columns import Columns
from recometer.errors import InputError, InputTypeError
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._frames import Frame, quoted
from recometer.spark._ids import names_of, parts_of
from recometer.split.filters import (
    Duplicates,
    Filter,
    KCore,
    MinCounts,
    SeenInTrain,
    ValuesFrom,
)
from recometer.split.splitting import (
    LEFT_OUT,
    REMAINDER,
    TEST,
    TRAIN,
    kept_of_some_users,
)

SEEN = "recometer seen"


class SparkFilters:
    """What filters leave of a frame.

    Attributes
    ----------
    frame
        The rows that are left before the split.
    n_all, n_left
        Rows of the data, and of `frame`.
    removed
        Rows that each filter left out.
    """

    def __init__(
        self,
        frame: Frame,
        columns: Columns,
        filters: Sequence[Filter | SeenInTrain],
        partitions: int | None,
    ) -> None:
        self.columns, self.partitions = columns, partitions
        self.frame, self.after = frame, [one for one in filters if isinstance(one, SeenInTrain)]
        self.n_all = self.n_left = int(frame.count())
        self.removed: dict[str, int] = {}
        for one in filters:
            if isinstance(one, Filter):
                self._leave_out(one)

    def unseen(self, rows: Frame, part: str) -> Frame:
        """Leave test rows out whose user or item is not in train."""
        for one in self.after:
            for wanted, column, parts in (
                (one.users, self.columns.user, (TRAIN,)),
                (one.items, self.columns.item, (TRAIN, REMAINDER)),
            ):
                if wanted:
                    rows = self._unseen_by(rows, part, column, parts)
        return rows

    def _unseen_by(self, rows: Frame, part: str, column: str, parts: tuple[int, ...]) -> Frame:
        where, by = ", ".join(map(str, parts)), parts_of(column)
        seen = rows.where(f"{quoted(part)} IN ({where})").select(*map(quoted, by)).distinct()
        joined = rows.join(seen.selectExpr("*", f"true AS {quoted(SEEN)}"), by, "left")
        gone = f"{quoted(part)} = {TEST} AND {quoted(SEEN)} IS NULL"
        new = f"CAST(IF({gone}, {LEFT_OUT}, {quoted(part)}) AS tinyint) AS {quoted(part)}"
        return joined.selectExpr(*(new if name == part else quoted(name) for name in rows.columns))

    def _leave_out(self, one: Filter) -> None:
        if isinstance(one, ValuesFrom):
            self.frame = self._values(one)
        elif isinstance(one, MinCounts):
            self.frame = self._with_counts(self.frame, one.user, one.item, at_once=True)
        elif isinstance(one, KCore):
            self.frame = self._core(one)
        elif isinstance(one, Duplicates):
            self.frame = self._without_duplicates(one)
        else:
            raise InputTypeError(f"The filter {one!r} is not known on Spark.")
        before, self.n_left = self.n_left, int(self.frame.count())
        self.removed[repr(one)] = self.removed.get(repr(one), 0) + before - self.n_left

    def _values(self, one: ValuesFrom) -> Frame:
        if self.columns.value is None:
            raise InputError(
                f"{one!r} reads values, and the data have none. Hint: name their column with "
                "value=."
            )
        number = f"CAST({quoted(self.columns.value)} AS double)"
        least = f"CAST('{float(one.threshold)!r}' AS double)"
        return self.frame.where(f"{number} >= {least} AND NOT isnan({number})")

    def _with_counts(self, rows: Frame, user: int, item: int, *, at_once: bool) -> Frame:
        """Return the rows whose user and item each have enough rows, counted at once or in turn."""
        start = rows
        for column, least in ((self.columns.user, user), (self.columns.item, item)):
            if least > 1:
                by = parts_of(column)
                counted = (start if at_once else rows).groupBy(*map(quoted, by)).count()
                enough = counted.where(f"count >= {least}").select(*map(quoted, by))
                rows = rows.join(enough, by, "left_semi")
        return rows.select(*map(quoted, start.columns))

    def _core(self, one: KCore) -> Frame:
        rows, n = self.frame, self.n_left
        while n:
            rows = self._with_counts(rows, one.user, one.item, at_once=False)
            _frames.persisted(rows)
            before, n = n, int(rows.count())
            if n == before:
                break
        return rows

    def _without_duplicates(self, one: Duplicates) -> Frame:
        columns = self.columns
        n = _frames.partitions_of(self.frame, self.partitions)
        by = [*map(quoted, parts_of(columns.user))]
        spread = self.frame.repartition(*by) if n is None else self.frame.repartition(n, *by)
        user = parts_of(columns.user)[0]

        def run(batches: Any) -> Any:
            for table in blocks(batches, user=user):
                kept = kept_of_some_users(table, one, columns._asdict())
                yield from kept.cast(table.schema).to_batches()

        ordered = spread.sortWithinPartitions(*map(quoted, names_of(columns)))
        return ordered.mapInArrow(run, self.frame.schema)
