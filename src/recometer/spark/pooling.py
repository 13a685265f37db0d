"""Splits as the test of an evaluation on Spark: train comes with it, and folds are pooled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np

from recometer.data.sessions import are_pairs, split_pairs
from recometer.evaluating.folds import check_no_train, each_fold
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.results.folds import (
    ONE_EACH,
    FoldedEvaluation,
    means_of,
    per_fold,
    pool,
    put_together,
)
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._frames import Frame
from recometer.spark._job import BESIDE, OF_ALL, USERS
from recometer.spark._local import evaluation
from recometer.spark._packing import fewer
from recometer.spark._sums import Sums, joined, metric_sums
from recometer.spark.given import Interactions
from recometer.spark.result import SparkEvaluation
from recometer.spark.splitting import SparkSplit

if TYPE_CHECKING:
    import polars as pl

FOLD = "recometer fold"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SparkFoldedEvaluation(SparkEvaluation):
    """Several folds pooled: the value of a user is the mean over the folds that define it.

    What is said of `recometer.results.folds.FoldedEvaluation` holds here: every user counts once,
    and intervals are over users.

    Attributes
    ----------
    folds : tuple of SparkEvaluation
        The evaluation of each fold.
    """

    folds: tuple[SparkEvaluation, ...] = ()
    without_interval: ClassVar[str] = ONE_EACH

    def per_fold(self) -> pl.DataFrame:
        """Return a Polars frame: the columns ``fold`` and ``users``, and each metric's mean.

        ``users`` is the number of users with a relevant item, whom Spark counts.
        """
        users = [int(one.values().where("n_relevant <> 0").count()) for one in self.folds]
        return per_fold([one.mean() for one in self.folds], users)

    def collect(self) -> FoldedEvaluation:
        """Collect the values of all users in all folds, as `recometer.evaluate` returns them."""
        return pool([one.collect() for one in self.folds])

    def values(self) -> Frame:
        """Return the rows of users with columns by number: ``u``, ``m0``, ``r0``, ..."""
        return self.rows.where("sums IS NULL")

    def unpersist(self) -> None:
        """Make Spark forget the values of the users, in each fold and pooled."""
        super().unpersist()
        for one in self.folds:
            one.unpersist()

    @property
    def over_rows(self) -> dict[str, float]:
        """Means over the folds of metrics of ratings over the rows of all users together."""
        return means_of([one.over_rows for one in self.folds])


def is_made(test: object) -> TypeGuard[SparkSplit | Sequence[SparkSplit]]:
    """Return whether test is a `SparkSplit`, or a list of them as `folds` returns it."""
    if isinstance(test, list | tuple):
        return bool(test) and all(isinstance(one, SparkSplit) for one in test)
    return isinstance(test, SparkSplit)


def evaluate_made(
    evaluate: Callable[..., SparkEvaluation],
    source: object,
    made: SparkSplit | Sequence[SparkSplit],
    options: dict[str, Any],
) -> SparkEvaluation:
    """Evaluate on a split, or on each fold and pooled, with the options of `evaluate`.

    For folds, `source` is a function from `SparkSplit` to a source, or a list with a source for
    each.
    """
    if isinstance(made, SparkSplit):
        test, train = tables_of_split(made, options["train"])
        return evaluate(source, test, **{**options, "train": train})
    check_no_train(made, options["train"])
    found = [
        evaluate_made(evaluate, of_fold, one, options) for of_fold, one in each_fold(source, made)
    ]
    return _pooled(found, options["keep"])


def tables_of_split(made: SparkSplit, train: object) -> tuple[Interactions, Interactions]:
    """Return test and train of a split; InputError: a `train` was given, too."""
    check_no_train(made, train)
    columns = made.columns
    test, own = (
        Interactions(frame, columns.user, columns.item, columns.value or False)
        for frame in (made.test, made.train)
    )
    return test, own


def _pooled(folds: Sequence[SparkEvaluation], keep: bool) -> SparkFoldedEvaluation:
    """Return the evaluation of all folds together."""
    first = folds[0]
    rows = _rows(folds)
    kept = keep and _frames.persisted(rows)
    sums = _sums_of(rows)
    facts = dict(sums.facts)
    for name in ("negative", "not_binary"):
        facts[name] = sum(one.sums.facts.get(name, 0) for one in folds)
    given = {field.name: getattr(first, field.name) for field in dataclasses.fields(first)}
    del given["_ratios"], given["_wholes"]
    given |= put_together(folds)
    given |= {
        "rows": rows,
        "kept": kept,
        "sums": dataclasses.replace(sums, facts=facts, counts=given["counts"]),
    }
    return SparkFoldedEvaluation(**given)


def _rows(folds: Sequence[SparkEvaluation]) -> Frame:
    """Return a row per user, pooled, and one of sums for each partition."""
    first = folds[0]
    frames = [
        one.values().drop(*BESIDE, *OF_ALL).selectExpr("*", f"{at} AS `{FOLD}`")
        for at, one in enumerate(folds)
    ]
    whole = _frames.together(frames)
    fields = [one for one in whole.schema.fields if one.name != FOLD]
    pooling = _Pooling(
        first.metrics,
        first.protocol,
        first.seed,
        dict(first.over_users),
        first.chance,
        [one.name for one in fields],
    )

    def run(batches: Any) -> Any:
        return pooling.run(batches)

    within = [name for name in ("u", "s") if name in pooling.names]
    spread = whole.repartition("u").sortWithinPartitions(*within, f"`{FOLD}`")
    types = [f"{one.name} {one.dataType.simpleString()}" for one in fields]
    return spread.mapInArrow(run, ", ".join([*types, "sums binary"]))


@dataclasses.dataclass(frozen=True, eq=False)
class _Pooling:
    """The part that runs on the executors; `names` are the columns of the rows of users."""

    metrics: tuple[Metric, ...]
    protocol: Protocol
    seed: int
    over_users: dict[str, float]
    chance: bool
    names: Sequence[str]

    def run(self, batches: Any) -> Iterator[Any]:
        """Yield the rows of users, and a row of sums."""
        import pyarrow as pa

        sums: list[Sums] = []
        schema = None
        for table in blocks(batches):
            pooled = pool(list(self._folds(table)))
            users = self._columns(pooled)
            kinds = [table.schema.field(name).type for name in self.names]
            schema = pa.schema([*zip(self.names, kinds, strict=True), ("sums", pa.binary())])
            arrays = [
                pa.array(users[name], kind) for name, kind in zip(self.names, kinds, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(
                [*arrays, pa.nulls(pooled.n_users, pa.binary())], schema=schema
            )
            sums.append(self._sums(pooled))
        if schema is not None:
            content = Sums.together(sums).to_bytes()
            empty = [pa.nulls(1, schema.field(name).type) for name in self.names]
            yield pa.RecordBatch.from_arrays(
                [*empty, pa.array([content], pa.binary())], schema=schema
            )

    def _folds(self, table: Any) -> Iterator[Evaluation]:
        """Yield the users of each fold that has some."""
        import pyarrow.compute as pc

        for number in sorted(table[FOLD].unique().to_pylist()):
            yield evaluation(
                table.filter(pc.equal(table[FOLD], number)),
                metrics=self.metrics,
                over_users=self.over_users,
                protocol=self.protocol,
                seed=self.seed,
                chance=self.chance,
            )

    def _columns(self, pooled: Evaluation) -> dict[str, Any]:
        """Return the columns of users by their names in rows."""
        ids = pooled.user_ids
        assert ids is not None
        found: dict[str, Any] = {name: getattr(pooled, name) for name in USERS}
        found |= (
            dict(zip(("u", "s"), split_pairs(ids), strict=True)) if are_pairs(ids) else {"u": ids}
        )
        for number, metric in enumerate(map(str, self.metrics)):
            unknown = np.full(pooled.n_users, np.nan)
            found[f"m{number}"] = pooled.values.get(metric, unknown)
            found[f"c{number}"] = pooled.chance.get(metric, unknown)
            found[f"r{number}"] = pooled.reasons[metric]
        return found

    def _sums(self, pooled: Evaluation) -> Sums:
        users = {name: getattr(pooled, name) for name in USERS}
        ids = pooled.user_ids
        facts = {"people": len(np.unique(split_pairs(ids)[0]))} if are_pairs(ids) else {}
        metrics = {
            name: metric_sums(
                metric,
                self.protocol,
                pooled.values.get(name),
                pooled.reasons[name],
                pooled.chance.get(name),
                users,
                None,
                np.zeros(0),
            )
            for name, metric in zip(map(str, self.metrics), self.metrics, strict=True)
        }
        return Sums(pooled.n_users, 0, facts, {}, {}, [], metrics)


def _sums_of(rows: Frame) -> Sums:
    """Return the sums of all partitions."""
    ends = rows.where("sums IS NOT NULL").selectExpr("sums", "CAST(NULL AS string) AS error")
    found = _frames.collected(fewer(ends, joined, _frames.partitions_of(rows, None)))
    return Sums.of_bytes(row["sums"] for row in found)
