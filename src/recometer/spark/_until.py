"""As many users as a question needs, in the order in which one machine reads them.

Each user has a number, drawn by the seed and the id. Spark evaluates users in growing shares of
these numbers, by the metric in question alone; their values reach the driver with the numbers, and
are followed there as on one machine. The users who were followed are then evaluated by all metrics.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.errors import DataWarning, InputError
from recometer.evaluating.checks import check_not_empty
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
from recometer.protocol import Protocol as Rules
from recometer.results.users_read import UsersRead
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._frames import Frame
from recometer.spark._job import Job
from recometer.spark._plan import Plan
from recometer.spark.result import SparkEvaluation
from recometer.stats import ConfidenceSequence

LEAST = 2**14  # users of a share: to evaluate fewer takes Spark as long
BYTES_PER_VALUE = 32  # on the driver: a value and a reason, and of each user a number
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Ready(Protocol):
    """An evaluation whose arguments are read."""

    @property
    def plan(self) -> Plan:
        """What is evaluated."""

    def job(self) -> Job:
        """Return what runs on the executors."""

    def rows(self, plan: Plan, job: Job) -> Frame:
        """Return the rows of the users of a plan."""

    def evaluated(self, plan: Plan, job: Job) -> SparkEvaluation:
        """Return the result for the users of a plan."""


def check_until(plan: Plan, until: Until) -> None:
    """Refuse what cannot be followed, as on one machine."""
    check_of_one(until)
    check_rules(plan.metrics, plan.stated, has_sessions=plan.of_users.has("session"))
    check_bounded(until.metric_of(plan.metrics, plan.stated), plan.protocol, plan.source.like)


def evaluate_until(ready: Ready, until: Until) -> SparkEvaluation:
    """Evaluate users in random order, until the mean of a metric is known well enough."""
    job = ready.job()
    order = Order.of(ready.plan, job)
    try:
        return _evaluated_in(order, ready, job, until)
    finally:
        order.unpersist()


def _evaluated_in(order: Order, ready: Ready, job: Job, until: Until) -> SparkEvaluation:
    """Evaluate users in their order; see `evaluate_until`."""
    plan = ready.plan
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
    values = Values(ready, job, order, [metric])
    n_read, reached = read_until(
        sequence, until, lambda start, stop: values.between(start, stop)[str(metric)]
    )
    if n_read == order.n_users or not reached:
        n_read, reached, read = order.n_users, False, order.users(HIGHEST)
    else:
        read = order.users(values.number(n_read))
    result = order.told(ready.evaluated(plan.only(read.select("u")), job))
    if n_read == order.n_users:
        counted = {row.metric: row.counted for row in result.summary()}
        intervals = exact_intervals(result.mean(), counted, rules.confidence)
    else:
        ranges = {one: order.range_of(one, plan.stated) for one in metrics}
        at_once = max(1, plan.closure // (BYTES_PER_VALUE * n_read))
        found = _InOrder(result, read, at_once)
        known = {str(metric): sequence}
        intervals = intervals_read(ranges, plan.stated, order.n_users, known, found.values)
    users_read = UsersRead(until.text, n_read, order.n_users, reached, intervals)
    return dataclasses.replace(result, users_read=users_read)


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
        job = dataclasses.replace(job, baseline=None)  # on which no order depends
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
        if not row["counts"] and kept:
            found.unpersist()
        check_not_empty(row["n"], row["n"])
        if not row["counts"]:
            raise nobody_to_read()
        return cls(found, int(row["counts"]), row["negative"] > 0, row["other"] == 0, kept)

    def users(self, last: int, after: int | None = None) -> Frame:
        """Return the users up to a number, and after another one: u and key."""
        found = self.frame.where(f"counts = 1 AND key <= {_bigint(last)}")
        if after is not None:
            found = found.where(f"key > {_bigint(after)}")
        return found.select("u", "key")

    def told(self, result: SparkEvaluation) -> SparkEvaluation:
        """Return the result of some users with what is known of the values of all of them."""
        gains = {"negative": int(self.negative), "not_binary": int(not self.binary)}
        sums = dataclasses.replace(result.sums, facts={**result.sums.facts, **gains})
        return dataclasses.replace(result, sums=sums)

    def range_of(self, metric: Metric, protocol: Rules) -> tuple[float, float] | None:
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
        numbers = reading_keys(test.user_ids, test.n_users, job.given["seed"]) ^ np.uint64(2**63)
        facts = given.truth.negative_gains, not given.truth.binary_gains
        columns = [
            pa.array(test.user_ids, {"bigint": pa.int64()}.get(job.options["user"], pa.string())),
            numbers.view(np.int64),
            counts.astype(np.int32),
            *(np.full(test.n_users, int(one), np.int32) for one in facts),
        ]
        arrays = [pa.array(one) for one in columns]
        yield pa.RecordBatch.from_arrays(arrays, ["u", "key", "counts", "negative", "other"])


class Values:
    """The values of users in their order, by some metrics, as far as Spark has evaluated them."""

    def __init__(self, ready: Ready, job: Job, order: Order, metrics: Sequence[Metric]) -> None:
        self._ready, self._order = ready, order
        self._job = job.of_metrics([str(one) for one in metrics])
        self._metrics = self._job.given["metrics"]  # in the order of their columns
        self._last: int | None = None
        self._keys: Int64 = np.zeros(0, np.int64)
        self._values: dict[str, Float64] = {str(one): np.zeros(0) for one in metrics}

    def number(self, n_read: int) -> int:
        """Return the number of the last of some users."""
        return int(self._keys[n_read - 1])

    def between(self, start: int, stop: int) -> dict[str, Float64]:
        """Return the values, by metric, from one place in the order to another."""
        while len(self._keys) < stop and self._last != HIGHEST:
            self._evaluate(stop)
        return {name: column[start:stop] for name, column in self._values.items()}

    def _evaluate(self, stop: int) -> None:
        """Evaluate a further share of the users, so that probably as many are known."""
        n_users, begin, plan = self._order.n_users, self._last, self._ready.plan
        wanted = max(stop + stop // 16, 2 * len(self._keys), LEAST)
        last = HIGHEST if wanted >= n_users else LOWEST + 2**64 * wanted // n_users
        if begin is not None and last <= begin:
            last = HIGHEST
        n_known = min(wanted, n_users)
        check_values(len(self._metrics), n_known, plan.closure)
        users = self._order.users(last, begin)
        rows = self._ready.rows(plan.only(users.select("u")), self._job)
        columns = [f"{letter}{number}" for number in range(len(self._metrics)) for letter in "mr"]
        chosen = rows.where("sums IS NULL").select("u", *columns, "error")
        found = _frames.table_of(chosen.join(users, "u", "left").drop("u"))
        for error in found["error"].drop_null().to_pylist():
            _frames.raise_named(error)
        keys = found["key"].to_numpy()
        order = np.argsort(keys, kind="stable")
        self._keys = np.concatenate([self._keys, keys[order]])
        own = _entering(found, list(enumerate(self._metrics)), plan.protocol)
        for name, column in own.items():
            self._values[name] = np.concatenate([self._values[name], column[order]])
        self._last = last


def check_values(n_columns: int, n_users: int, closure: int) -> None:
    """Refuse more values of users on the driver than `closure` has bytes for."""
    if BYTES_PER_VALUE * n_columns * n_users > closure:
        raise InputError(
            f"until= follows the values of about {n_users:,} users on the driver, which takes more "
            f"than closure={closure / 1e6:,.1f} MB. Hint: a larger closure=; or an interval that "
            "may be wider."
        )


def _entering(
    table: Any, metrics: Sequence[tuple[int, Metric]], protocol: Rules
) -> dict[str, Float64]:
    """Return the values that count in means, by metric; `metrics` have their numbers."""
    found = {}
    for number, metric in metrics:
        reasons = table[f"r{number}"].to_numpy().astype(np.uint8)
        values = table[f"m{number}"].to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        found[str(metric)] = entering(values, reasons, rules_of(metric, protocol))
    return found


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
        table = _frames.table_of(rows.drop("u"))
        order = np.argsort(table["key"].to_numpy(), kind="stable")
        metrics = [(number, self._result.metrics[number]) for number in numbers]
        found = _entering(table, metrics, self._result.protocol)
        self._found = {name: column[order] for name, column in found.items()}


def _bigint(number: int) -> str:
    return f"CAST('{number}' AS bigint)"
