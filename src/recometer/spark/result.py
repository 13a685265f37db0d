"""`SparkEvaluation`: the values of users as a DataFrame, which the driver can collect."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from recometer import rendering
from recometer.arrays import Array, Float64
from recometer.comparing.models import entries_by_name
from recometer.comparison import Comparison
from recometer.comparison import compare as compare_here
from recometer.data.numbers import size_in_words
from recometer.errors import InputError
from recometer.evaluating.case import versions
from recometer.evaluation import Evaluation
from recometer.measuring.compute import compute_for_all
from recometer.measuring.reasons import Reason
from recometer.metrics.adding_up import Summed
from recometer.metrics.listed.whole import value_of
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.results import summary
from recometer.results.evaluation import notes_on
from recometer.results.summary import SummaryRow
from recometer.spark.block import OF_ALL, USERS, Job, unpacked
from recometer.spark.tables import LIMIT, Frame, acted, ids, is_frame, quoted
from recometer.stats import Interval
from recometer.tasks import memory

SHARE = 0.25  # maximum share of the driver's memory for values; collecting them needs twice as much
BY_ITEM = (
    "Values computed from sums per item have no interval. Hint: rs.evaluate(..., lists=True) "
    "brings the lists to the driver."
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SparkEvaluation(rendering.Printed):
    """The result of an evaluation on Spark, with every metric for every user in a DataFrame.

    `collect` converts it to an ordinary `Evaluation`, with means, intervals, tables and
    comparisons. If there are more values than the driver can collect, means and normal intervals
    are computed from moments on Spark; the means are exact up to rounding errors in a sum.

    Attributes
    ----------
    metrics, protocol, seed, n_users, counts, definitions, inputs, timings
        As in `Evaluation`, except that data on Spark have no fingerprints.
    kept : bool
        Whether Spark keeps the values of the users (``persist``), so that they are only computed
        once; see `unpersist`. Serverless Spark cannot keep them.
    """

    metrics: tuple[Metric, ...]
    protocol: Protocol
    seed: int
    n_users: int
    counts: Mapping[str, int]
    definitions: Mapping[str, Mapping[str, str]]
    inputs: Mapping[str, Mapping[str, Any]]
    timings: Mapping[str, float]
    kept: bool
    negative_gains: bool
    binary_gains: bool
    user: Sequence[str]  # names of the user column and, if there is one, the session column
    rows: Frame = dataclasses.field(repr=False)  # has the columns `CELLS`; see `Job`
    job: Job = dataclasses.field(repr=False)
    all_users: Mapping[str, Any] = dataclasses.field(repr=False)  # data for metrics over all users
    early: list[Any] = dataclasses.field(repr=False)  # the values, if they were sent with the notes

    def __len__(self) -> int:
        """Return the number of users."""
        return self.n_users

    def per_user(self, *, reasons: bool = False) -> Frame:
        """Return a DataFrame with a row per user and a column per metric; NaN means undefined.

        If the test data have sessions, there is a row per session instead, and an additional
        session column.

        Parameters
        ----------
        reasons
            Whether to add facts about each user, and a column such as ``"ndcg@10 reason"`` for each
            metric. Such a column contains the code of the `Reason` for each undefined value, and 0
            for other values.
        """
        columns = [f"{x} AS {quoted(name)}" for x, name in zip("us", self.user, strict=False)]
        for number, metric in self.job.of_users.items():
            columns.append(f"m{number} AS {quoted(str(metric))}")
            if reasons:
                columns.append(f"r{number} AS {quoted(f'{metric} reason')}")
        return self._unpacked("users").selectExpr(*columns, *(USERS if reasons else ()))

    def collect(self, limit: int | None = None) -> Evaluation:
        """Collect all users' values on the driver, and return them as an ordinary `Evaluation`.

        You can save the result, compare it, and make reports. Unlike an ordinary evaluation, it
        lacks `activity` and the fingerprints of the inputs.

        Parameters
        ----------
        limit
            The maximum number of values to collect. The default is 200 million, or less if these
            would take more than a quarter of the driver's memory. Once the values have been
            collected, the limit has no effect.

        Raises
        ------
        InputError
            If there are more values than the limit.
        """
        if not self._fits(limit):
            largest = int(min(limit or LIMIT, SHARE * memory() / 8))
            raise InputError(
                f"{self._n_values:,} values ({self.n_users:,} users) take "
                f"{size_in_words(8 * self._n_values)} on the driver, more than "
                f"{size_in_words(8 * largest)}. Hint: request fewer metrics; evaluate a sample of "
                "the users; moments() returns the means with normal intervals; or "
                "collect(limit=...) on a larger driver."
            )
        return self._collected

    def mean(self, weights: Any = None) -> dict[str, float]:
        """Return the mean of each metric over the users for whom it is defined; see `Evaluation`.

        If there are more values than the driver can collect, means are exact up to rounding errors
        in a sum.
        """
        if weights is not None or self._fits():
            return self.collect().mean(weights)
        return {row.metric: row.mean for row in self.moments()}

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the `Evaluation` that `collect` returns."""
        fields = {field.name for field in dataclasses.fields(Evaluation)}
        if name.startswith("_") or not (name in fields or hasattr(Evaluation, name)):
            raise AttributeError(f"A SparkEvaluation has no {name!r}.")
        return getattr(self.collect(), name)

    def moments(self) -> list[SummaryRow]:
        """Return a summary row per metric, computed from moments on Spark for any number of users.

        Means are exact up to rounding errors in a sum, and intervals are normal. For 10 million
        users, the intervals differ from those on a single machine by less than a millionth of their
        width.

        Raises
        ------
        InputError
            If the rules require a mean or an interval that cannot be computed from moments.
        """
        columns, of_users = ["count(u)"], self.job.of_users
        for number, metric in of_users.items():
            rules = rules_of(metric, self.protocol)
            if rules.average not in ("users", "usual") or len(self.user) > 1:
                raise InputError(
                    f"The mean of {str(metric)!r} (average={rules.average!r}"
                    f"{', sessions of users' if len(self.user) > 1 else ''}) cannot be derived "
                    "from moments. Hint: use collect(), perhaps for a sample of the users."
                )
            undefined = {"skip": "NULL", "nan": "double('NaN')"}.get(rules.missing, "0D")
            value = f"CASE WHEN isnan(m{number}) THEN {undefined} ELSE m{number} END"
            value = f"CASE WHEN r{number} != {int(Reason.NOT_COUNTED)} THEN {value} END"
            columns += [f"{name}({value})" for name in ("count", "avg", "stddev_samp")]
        columns += [f"count_if(r{n} = 0)" for n in self.job.over_users]
        n_users, *moments = acted(self._unpacked("users").selectExpr(*columns).collect)[0]
        z = statistics.NormalDist().inv_cdf((1 + self.protocol.confidence) / 2)
        rows: list[SummaryRow] = []
        for position, metric in enumerate(of_users.values()):
            n, *mean_and_deviation = moments[3 * position : 3 * position + 3]
            mean, deviation = (
                np.nan if number is None else float(number) for number in mean_and_deviation
            )
            low, high = metric.bounds(negative=self.negative_gains, binary=self.binary_gains)
            half = z * deviation / np.sqrt(max(n, 1))
            ends = max(low, mean - half), min(high, mean + half)
            note = "A normal interval, from Spark's own moments."
            note += " The mean is over users." * (metric.definition.over_rows is not None)
            skipped = n_users - n
            rows.append(SummaryRow(str(metric), mean, *ends, n, skipped, {}, "t", note, np.nan))
        counts = moments[3 * len(rows) :]
        for (name, mean), n in zip(self.over_users.items(), counts, strict=False):
            ends, skipped = (np.nan, np.nan), n_users - n
            rows.append(SummaryRow(name, mean, *ends, n, skipped, {}, "none", BY_ITEM, np.nan))
        return rows

    @cached_property
    def over_users(self) -> Mapping[str, float]:
        """The values of metrics with one value for all users, such as ``coverage@10``."""
        metrics = self.job.over_users
        if not metrics or self.job.lists:
            result: Mapping[str, float] = self.all_users.get("over_users", {})
            return result
        by_item = self._unpacked("items")
        sums = by_item.groupBy("k", "i").agg({"x": "sum"})
        table = acted(sums.toDF("k", "i", "x").toArrow)
        numbers, listed, x = table["k"].to_numpy(), ids(table["i"]), table["x"].to_numpy()
        popularity: Any = self.job.arguments.popularity
        id_arrays = [listed] if popularity is None else [listed, popularity.item_ids]
        all_ids = np.unique(
            np.concatenate([item_ids for item_ids in id_arrays if len(item_ids)] or id_arrays)
        )

        def spread(items: Array, values: Array) -> Array:
            result = np.zeros(len(all_ids), values.dtype)
            result[np.searchsorted(all_ids, items)] = values
            return result

        users = None if popularity is None else spread(popularity.item_ids, popularity.users)
        facts: Any = SimpleNamespace(n_catalogue=self.all_users["n_catalogue"], item_users=users)
        added = {}
        for number, metric in metrics.items():
            selected, totals = numbers == number, self.all_users["totals"][str(metric)]
            added[metric] = Summed(spread(listed[selected], x[selected]), totals)

        def for_all(selected: Sequence[Metric], *_: object) -> Float64:
            return np.array([value_of(metric, facts, added[metric]) for metric in selected])

        together: Any = SimpleNamespace(for_all=for_all)
        return compute_for_all(together, list(metrics.values()), self.job.settled)

    def unpersist(self) -> None:
        """Release the users' values; Spark recomputes them if needed."""
        if self.kept:
            self.rows.unpersist()

    def table(self) -> rendering.Table:
        """Return the table that ``print`` shows, which can be converted to other formats."""
        if self._fits():
            return self.collect().table()
        notes = notes_on(self.inputs, self.counts, self.protocol)
        return summary.table(self.moments(), self.protocol, notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-compatible Python objects, without individual users' values."""
        return self.collect().to_dict()

    def __repr__(self) -> str:
        return f"<SparkEvaluation of {self.n_users} users: {', '.join(map(str, self.metrics))}>"

    @property
    def _n_values(self) -> int:
        return self.n_users * (len(self.job.of_users) + len(self.job.by_chance))

    def _fits(self, limit: int | None = None) -> bool:
        collected = "_collected" in vars(self)
        return collected or self._n_values <= min(limit or LIMIT, SHARE * memory() / 8)

    def _unpacked(self, cells: str) -> Frame:
        """Return the tables in a column of cells as a single DataFrame."""

        def run(batches: Any) -> Any:
            for batch in batches:
                for table in unpacked(batch.column(0)):
                    yield from table.to_batches()

        types = self.job.columns if cells == "users" else self.job.columns_of_items
        schema = ", ".join(f"{name} {kind}" for name, kind in types.items())
        return self._cells(cells).mapInArrow(run, schema)

    def _cells(self, name: str) -> Frame:
        return self.rows.where(f"{name} IS NOT NULL").select(name)

    @cached_property
    def _collected(self) -> Evaluation:
        import pyarrow as pa

        tables = self.early or unpacked(acted(self._cells("users").toArrow)["users"])
        table = pa.concat_tables(tables)
        user_ids = ids(table["u"])
        if len(self.user) > 1:
            pairs = zip(user_ids.tolist(), ids(table["s"]).tolist(), strict=True)
            user_ids = np.fromiter(pairs, object, len(user_ids))
        order = np.argsort(user_ids, kind="stable")

        def column(name: str, kind: Any = np.float64) -> Any:
            return table[name].to_numpy().astype(kind, copy=False)[order]

        of_all = {name: self.all_users[name] for name in OF_ALL if name in self.all_users}
        of_all["over_users"] = self.over_users
        shared_fields = (
            "metrics protocol seed counts definitions timings inputs negative_gains binary_gains"
        )
        result = Evaluation(
            values={str(metric): column(f"m{n}") for n, metric in self.job.of_users.items()},
            reasons={str(m): column(f"r{n}", np.uint8) for n, m in enumerate(self.metrics)},
            chance={str(metric): column(f"c{n}") for n, metric in self.job.by_chance.items()},
            user_ids=user_ids[order],
            **{name: column(name, np.uint32 if name == "flags" else np.int64) for name in USERS},
            **{name: getattr(self, name) for name in shared_fields.split()},
            versions=versions(),
            lists=None if of_all.get("list_data") is None else of_all["list_data"].lists,
            **of_all,
        )
        if not self.job.lists:
            unknown = Interval.unknown(self.protocol.confidence, self.n_users, BY_ITEM)
            result._intervals.update(dict.fromkeys(result.over_users, unknown))
        return result


def compare(
    models: Mapping[str, Any] | Sequence[Any], *, cluster: object = None, **options: Any
) -> Comparison:
    """Test whether models differ, and estimate by how much, based on each user's values.

    The driver collects the values of all models (with the limit of `SparkEvaluation.collect`) and
    passes them to `recometer.compare`.

    Parameters
    ----------
    models
        A dict from model names to results of `evaluate` on the same test data, a list of
        results, or anything else that `recometer.compare` takes. Data on Spark have no
        fingerprints, so nothing checks that models were evaluated on the same data.
    cluster
        As in `recometer.compare`, or a Spark DataFrame with the users and their clusters.
    **options
        As in `recometer.compare`.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> print(rs.compare({"als": first, "bpr": second}, baseline="als"))  # doctest: +SKIP
    """
    hint = "Hint: rs.compare({'als': first, 'bpr': second})."
    results = entries_by_name(models, "Models are compared by their results", lambda: hint)
    collected = {name: _collected(result) for name, result in results.items()}
    clusters: Any = acted(cluster.toArrow) if is_frame(cluster) else cluster  # type: ignore[attr-defined]
    return compare_here(collected, cluster=clusters, **options)


def _collected(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [*map(_collected, result)]
    return result.collect() if isinstance(result, SparkEvaluation) else result
