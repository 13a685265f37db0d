"""As many users as a question needs, in the order in which one machine reads them.

Each user has a number, drawn by the seed and the id. Spark evaluates users in growing shares of
these numbers, by the metric in question alone; their values reach the driver with the numbers, and
are followed there as on one machine. The users who were followed are then evaluated by all metrics.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.errors import DataWarning, InputError
from recometer.evaluating.parts import check_bounded, has_relevant
from recometer.evaluating.reading import (
    check_of_one,
    check_rules,
    exact_intervals,
    intervals_read,
    need_relevant,
    nobody_to_read,
    read_until,
    reading_keys,
)
from recometer.evaluating.records import request_of
from recometer.evaluating.until import Until, bounds_of, check_bounds
from recometer.measuring.reasons import entering
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.results.users_read import UsersRead
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._frames import Frame
from recometer.spark._job import Job
from recometer.spark._plan import Plan
from recometer.spark.result import SparkEvaluation
from recometer.stats import ConfidenceSequence

LEAST = 2**14  # users of a share: to evaluate fewer takes Spark as long
BYTES_PER_USER = 32  # on the driver: a number, a value and a reason, and their order
LOWEST, HIGHEST = -(2**63), 2**63 - 1

RowsOf = Callable[[Plan, Job], Frame]
Evaluated = Callable[[Plan, Job], SparkEvaluation]


def check_until(plan: Plan, until: Until) -> None:
    """Refuse what cannot be followed, as on one machine."""
    check_of_one(until)
    check_rules(plan.metrics, plan.stated, has_sessions=plan.of_users.has("session"))
    check_bounded(until.metric_of(plan.metrics, plan.stated), plan.protocol, plan.source.like)


def evaluate_until(
    plan: Plan, job: Job, until: Until, rows_of: RowsOf, evaluated: Evaluated
) -> SparkEvaluation:
    """Evaluate users in random order, until the mean of a metric is known well enough.

    `rows_of` and `evaluated` are what Spark does with a job, for the users of a plan.
    """
    order = Order.of(plan, job)
    try:
        return _evaluated_in(order, plan, job, until, rows_of, evaluated)
    finally:
        order.unpersist()


def _evaluated_in(
    order: Order, plan: Plan, job: Job, until: Until, rows_of: RowsOf, evaluated: Evaluated
) -> SparkEvaluation:
    """Evaluate users in their order; see `evaluate_until`."""
    metrics, rules = job.given["metrics"], plan.protocol
    metric = until.metric_of(metrics, plan.stated)
    sequence = ConfidenceSequence(
        check_bounds(metric, order.range_of(metric, rules)),
        rules.confidence,
        order.n_users,
        aim=until.width,
        relative=until.relative,
        some_undefined=True,
    )
    values = _Values(plan, job, order, metric, rows_of)
    n_read, reached = read_until(sequence, until, values.between)
    if n_read == order.n_users or not reached:
        n_read, reached, read = order.n_users, False, order.users(HIGHEST)
    else:
        read = order.users(int(values.keys[n_read - 1]))
    result = evaluated(plan.only(read.select("u")), job)
    if n_read == order.n_users:
        counted = {row.metric: row.counted for row in result.summary()}
        intervals = exact_intervals(result.mean(), counted, rules.confidence)
    else:
        ranges = {one: order.range_of(one, plan.stated) for one in metrics}
        at_once = max(1, plan.closure // (BYTES_PER_USER * n_read))
        found = _InOrder(result, read, at_once)
        known = {str(metric): sequence}
        intervals = intervals_read(ranges, plan.stated, order.n_users, known, found.values)
    gains = {"negative": int(order.negative), "not_binary": int(not order.binary)}
    sums = dataclasses.replace(result.sums, facts={**result.sums.facts, **gains})
    users_read = UsersRead(until.text, n_read, order.n_users, reached, intervals)
    return dataclasses.replace(result, sums=sums, users_read=users_read)


@dataclasses.dataclass(frozen=True, eq=False)
class Order:
    """The users of test who may count, each with the number by which it is read.

    Attributes
    ----------
    frame
        A row per user: u, key, and whether the user ``counts``.
    n_users
        How many count.
    negative, binary
        Whether a value of test is below 0, and whether all are 0 or 1.
    kept
        Whether Spark keeps the rows.
    """

    frame: Frame
    n_users: int
    negative: bool
    binary: bool
    kept: bool

    @classmethod
    def of(cls, plan: Plan, job: Job) -> Order:
        """Let Spark find it; InputError: nobody counts."""
        relevant = not job.brings_truth and need_relevant(job.given["metrics"], plan.protocol)

        def run(batches: Any) -> Any:
            return _keys(job, relevant, batches)

        frame = _frames.partitioned(_frames.together(plan.readers()), None)
        schema = f"u {job.options['user']}, key bigint, counts int, negative int, other int"
        found = frame.mapInArrow(run, schema)
        kept = _frames.persisted(found)
        names = ("counts", "negative", "other")
        sums = [f"coalesce(sum({name}), 0) AS {name}" for name in names]
        row = _frames.collected(found.selectExpr("count(*) AS n", *sums))[0]
        if not row["n"]:
            raise InputError(
                "test is empty: no users, no interactions. Hint: check the split, and the column "
                "of users."
            )
        if not row["counts"]:
            raise nobody_to_read()
        return cls(found, int(row["counts"]), row["negative"] > 0, row["other"] == 0, kept)

    def users(self, last: int, after: int | None = None) -> Frame:
        """Return the users up to a number, and after another one: u and key."""
        found = self.frame.where(f"counts = 1 AND key <= {_bigint(last)}")
        if after is not None:
            found = found.where(f"key > {_bigint(after)}")
        return found.select("u", "key")

    def range_of(self, metric: Metric, protocol: Protocol) -> tuple[float, float] | None:
        """Return the range of a metric under test and the rules, or None if it is unknown."""
        return bounds_of(metric, protocol, negative=self.negative, binary=self.binary)

    def unpersist(self) -> None:
        """Let Spark forget the rows."""
        if self.kept:
            self.frame.unpersist()


def _keys(job: Job, relevant: bool, batches: Any) -> Iterator[Any]:
    """Return, for the users of a partition, the numbers by which they are read."""
    import pyarrow as pa

    for table in blocks(batches):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the whole may be otherwise
            given = job.inputs(table)
            test = given.truth.test
            counts = np.ones(test.n_users, bool)
            if relevant and test.n_users:
                counts = has_relevant(given, request_of(given))
        numbers = reading_keys(test, job.given["seed"]) ^ np.uint64(2**63)
        facts = given.truth.negative_gains, not given.truth.binary_gains
        columns = [
            pa.array(test.user_ids, {"bigint": pa.int64()}.get(job.options["user"], pa.string())),
            numbers.view(np.int64),
            counts.astype(np.int32),
            *(np.full(test.n_users, int(one), np.int32) for one in facts),
        ]
        arrays = [pa.array(one) for one in columns]
        yield pa.RecordBatch.from_arrays(arrays, ["u", "key", "counts", "negative", "other"])


class _Values:
    """The values of users in their order, as far as Spark has evaluated them."""

    def __init__(self, plan: Plan, job: Job, order: Order, metric: Metric, rows_of: RowsOf) -> None:
        self._plan, self._order, self._rows_of = plan, order, rows_of
        alone = {**job.given, "metrics": (metric,), "chance": False}
        self._job = dataclasses.replace(job, given=alone)
        self._rules = rules_of(metric, plan.protocol)
        self._last: int | None = None
        self.keys: Int64 = np.zeros(0, np.int64)
        self._values: Float64 = np.zeros(0)

    def between(self, start: int, stop: int) -> Float64:
        """Return the values from one place in the order to another."""
        while len(self.keys) < stop and self._last != HIGHEST:
            self._evaluate(stop)
        return self._values[start:stop]

    def _evaluate(self, stop: int) -> None:
        """Evaluate a further share of the users, so that probably as many are known."""
        n_users, begin = self._order.n_users, self._last
        wanted = max(stop + stop // 16, 2 * len(self.keys), LEAST)
        last = HIGHEST if wanted >= n_users else LOWEST + 2**64 * wanted // n_users
        if begin is not None and last <= begin:
            last = HIGHEST
        if BYTES_PER_USER * min(wanted, n_users) > self._plan.closure:
            raise InputError(
                f"until= follows the values of about {min(wanted, n_users):,} users on the driver, "
                f"which takes more than closure={self._plan.closure / 1e6:,.1f} MB. Hint: a larger "
                "closure=; or an interval that may be wider."
            )
        users = self._order.users(last, begin)
        rows = self._rows_of(self._plan.only(users.select("u")), self._job)
        chosen = rows.where("sums IS NULL").select("u", "m0", "r0", "error")
        found = _frames.table_of(chosen.join(users, "u", "left").drop("u"))
        for error in found["error"].drop_null().to_pylist():
            _frames.raise_named(error)
        keys = found["key"].to_numpy()
        reasons = found["r0"].to_numpy().astype(np.uint8)
        values = entering(_column(found["m0"]), reasons, self._rules)
        by_key = np.argsort(keys, kind="stable")
        self.keys = np.concatenate([self.keys, keys[by_key]])
        self._values = np.concatenate([self._values, values[by_key]])
        self._last = last


class _InOrder:
    """The values of a result in the order in which users were read, of some metrics at once."""

    def __init__(self, result: SparkEvaluation, read: Frame, at_once: int) -> None:
        self._result, self._read, self._at_once = result, read, at_once
        self._found: dict[str, Float64] = {}

    def values(self, name: str) -> Float64:
        """Return those of a metric that count in its mean."""
        if name not in self._found:
            place = [str(one) for one in self._result.metrics].index(name)
            self._collect(range(place, min(place + self._at_once, len(self._result.metrics))))
        return self._found[name]

    def _collect(self, numbers: range) -> None:
        columns = [f"{letter}{number}" for number in numbers for letter in "mr"]
        rows = self._result.values().select("u", *columns).join(self._read, "u")
        table, self._found = _frames.table_of(rows.drop("u")), {}
        order = np.argsort(table["key"].to_numpy(), kind="stable")
        for number in numbers:
            metric = self._result.metrics[number]
            rules = rules_of(metric, self._result.protocol)
            reasons = table[f"r{number}"].to_numpy().astype(np.uint8)
            found = entering(_column(table[f"m{number}"]), reasons, rules)
            self._found[str(metric)] = found[order]


def _column(column: Any) -> Float64:
    found: Float64 = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


def _bigint(number: int) -> str:
    return f"CAST('{number}' AS bigint)"
