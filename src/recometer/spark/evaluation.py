"""`evaluate` on Spark, which takes DataFrames and returns a `SparkEvaluation`."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array
from recometer.data.catalogue import Catalogue
from recometer.data.numbers import flag, seed_of
from recometer.errors import InputError, InputTypeError, warn
from recometer.evaluating import arguments as reading
from recometer.evaluating import checks
from recometer.evaluating.arguments import Arguments, check_no_train, each_fold
from recometer.evaluating.checks import BlockFacts
from recometer.evaluating.requirements import definitions_of, requirements_of
from recometer.evaluating.sides import keeps_rows, warn_of_zeros, warning_of
from recometer.evaluating.unused_rules import changed_rules, warn_without_effect
from recometer.evaluation import FoldedEvaluation
from recometer.measuring import side_data
from recometer.measuring.settling import COUNT_EACH
from recometer.measuring.side_data import Popularity, needed_by
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import DEFAULT_METRICS, Metrics
from recometer.metrics.registry import Metric, parameters_from_test, rules_of, with_largest_gain
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.results.folds import pool
from recometer.sources.base import Kind
from recometer.sources.candidates import Negatives, SampledCandidates, check_sets, read_items
from recometer.spark import tables
from recometer.spark.block import Job, Note, merged, run_job, unpacked
from recometer.spark.result import SparkEvaluation
from recometer.spark.sources import TRUTHS, Interactions, Output, read_output
from recometer.spark.splitting import SparkSplit
from recometer.spark.tables import IdKinds, Table, acted, ids

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules

# The approximate maximum numbers of scores and of users per partition of factors. The size of such
# a partition in bytes does not reflect the amount of work.
SCORES, USERS = 5 * 10**9, 2**16
MOST_KNOWN = 2**20  # hints search for similar spellings among at most this many ids
# The values of the first block of each partition (in its second row) are sent to the driver along
# with the notes, if they are small. Together, they take at most 64 MB.
EARLY = (
    "IF(spark_partition_id() < 64 AND monotonically_increasing_id() % 8589934592 < 2 AND "
    f"octet_length(users) <= {2**20}, users, NULL) AS users"
)


def evaluate(
    source: object,
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: object = None,
    seed: int = 0,
    chance: bool = False,
    lists: bool = False,
    shared: str | None = None,
    partitions: int | None = None,
    **rules: Unpack[Rules],
) -> SparkEvaluation:
    """Measure on Spark how well the output of a model finds the items that users chose.

    Arguments, metrics and conventions are the same as for `recometer.evaluate`, and every user's
    values are identical to the last bit. For up to several million users, ``recometer.evaluate``
    with ``frame.toArrow()`` is faster on the same cores.

    Parameters
    ----------
    source
        `Factors`, `Lists` or `Pairs` from `recometer.spark`, or an ``ALSModel``.
    test, train
        DataFrames with columns for users, items and, optionally, values, or
        `recometer.spark.Interactions`, which names the columns. `test` may also be a `SparkSplit`,
        which includes the training data, or a list of splits from `folds`. For a list, `source` is
        a list with a source per split, or a function that takes a split and returns a source; the
        result is an ordinary `FoldedEvaluation`, in which the folds are pooled.
    candidates
        A list of items for all users, a DataFrame with a set of items for each user (which may be
        wrapped in `recometer.Negatives`), or `recometer.SampledCandidates`. To sample candidates
        for lists, pass a catalogue with the ids of all items.
    exclude
        A list of items that must not be recommended to any user.
    baseline
        The source of another model, for metrics that compare the lists of two models.
    metrics, protocol, catalogue, seed, chance, **rules
        As in `recometer.evaluate`. The catalogue is read on the driver and sent to the executors.
    lists
        Whether one task evaluates all users and sends their lists and rows to the driver. Rating
        errors such as rmse need this. Otherwise, coverage and other metrics with one value for all
        users are computed from sums per item, and have no intervals.
    shared
        A folder that the driver and all executors can access, for the factors of all items. By
        default, Spark copies the factors to each executor as a file, which tasks map into memory.
    partitions
        The number of partitions for the users. None means a number suited to the size of the data.

    Raises
    ------
    InputError, InputTypeError, ColumnError, UnknownNameError
        As for `recometer.evaluate`, or if a feature is not available on Spark.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> result = rs.evaluate(model, test, train=train, metrics="ndcg@10")  # doctest: +SKIP
    >>> result.mean()  # doctest: +SKIP
    {'ndcg@10': 0.31}
    >>> result.per_user().write.parquet("values.parquet")  # doctest: +SKIP
    """
    options = {**locals(), **rules}
    if isinstance(test, list | tuple):
        return _evaluate_folds(**options)  # type: ignore[no-any-return]
    if isinstance(test, SparkSplit):
        check_no_train(test, train)
        test, train = test.interactions()
    begin = time.perf_counter()
    tables.check_partitions(partitions)
    lists, trained = flag("lists", lists), train is not None
    output = read_output(source)
    outputs = {"source": output}
    stated = reading.protocol_of(protocol, rules, [*inspect.signature(evaluate).parameters])
    arguments = Arguments(
        metrics=tuple(parse_under(metrics, stated)),
        protocol=stated,
        train=None,
        exclude=None if exclude is None else read_items(exclude, "exclude"),
        catalogue=catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        baseline=None,
        seed=seed_of(seed),
        threads=1,
        progress=False,
        chance=flag("chance", chance),
        as_passed={},
        user_rules=changed_rules(stated),
        some_users=True,
    )
    if baseline is not None:
        other = read_output(baseline, "baseline=")
        if "baseline" in needed_by(arguments.metrics):
            table = dataclasses.replace(other.table, label=f"baseline: {other.table.label}")
            outputs["baseline"] = dataclasses.replace(other, table=table)
    warn_without_effect(
        output.like, arguments.metrics, stated, arguments.user_rules, trained=trained
    )
    plan = Plan(
        outputs=outputs,
        sides=_sides(output, test, train, candidates),
        arguments=arguments,
        settled=reading.adapt_protocol(output.like, stated, trained=trained),
        candidates=candidates,
        lists=lists,
    )
    plan.check()
    job = plan.job()
    cells = {name: table.cells(plan.kinds) for name, table in plan.tables.items()}
    frame = tables.gathered(cells, partitions or plan.partitions(job))
    if job.lists:
        frame = frame.coalesce(1)
    rows = run_job(job, frame, shared)
    persisted = tables.persisted(rows)
    notes = acted(rows.selectExpr("note", EARLY).toArrow)
    totals = merged(notes["note"].drop_null().to_pylist())
    facts = BlockFacts.merge(totals["facts"]["facts"])
    plan.check_totals(totals, facts)
    by_item = {"totals": totals["totals"], "n_catalogue": plan.n_catalogue(totals["most"])}
    early = [*unpacked(notes["users"].drop_null())]
    complete = sum(table.num_rows for table in early) == facts.n_users
    return SparkEvaluation(
        metrics=job.metrics,
        protocol=stated,
        seed=job.arguments.seed,
        n_users=facts.n_users,
        counts=plan.counts(totals["counts"]),
        definitions=definitions_of(job.metrics),
        inputs=plan.described(facts),
        timings={"total": time.perf_counter() - begin},
        kept=persisted,
        negative_gains=totals["sums"]["negative"] > 0,
        binary_gains=not totals["sums"].get("not binary"),
        user=[*filter(None, map(plan.test.columns.get, ("user", "session")))],
        rows=rows,
        job=job,
        all_users=totals["lists"] if job.lists else by_item,
        early=early if complete else [],
    )


class Evaluator:
    """An evaluation with fixed arguments for many models, like `recometer.Evaluator`.

    ``rs.Evaluator(test, ...)(source)`` returns the same as ``rs.evaluate(source, test, ...)``.
    `test` may be a `SparkSplit`, which includes the training data. No data are read until you call
    the evaluator.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> evaluator = rs.Evaluator(test, train=train, metrics="ndcg@10")  # doctest: +SKIP
    >>> evaluator(model).mean()  # doctest: +SKIP
    {'ndcg@10': 0.31}
    """

    def __init__(self, test: object = None, **options: Any) -> None:
        if isinstance(test, list | tuple):
            raise InputTypeError(
                "An evaluator takes one test, found several. Hint: rs.evaluate(sources, folds)."
            )
        self.test, self.options = test, options

    def __call__(self, source: object) -> SparkEvaluation:
        """Evaluate the output of a model."""
        return evaluate(source, self.test, **self.options)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """An evaluation that is ready to run, made from the arguments of `evaluate`."""

    outputs: Mapping[str, Output]  # "source", and "baseline" if a metric reads it
    sides: Mapping[str, Table]  # "test", and "train" and "candidates" if there are any
    arguments: Arguments  # without `train` and `baseline`, which are DataFrames
    settled: Protocol  # the rules, adapted to the source
    candidates: object
    lists: bool

    @property
    def source(self) -> Output:
        """The output of the model."""
        return self.outputs["source"]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """All tables that contain users' rows, keyed by name."""
        return {**self.sides, **{name: output.table for name, output in self.outputs.items()}}

    @property
    def test(self) -> Table:
        """The table of test interactions, or the source's own table if it contains them."""
        return self.sides.get("test", self.source.table)

    @property
    def of_all(self) -> list[Metric]:
        """The metrics with a single value for all users, or for the rows of all users."""
        metrics = self.arguments.metrics
        return [m for m in metrics if m.definition.over_users or m.definition.over_rows is not None]

    @cached_property
    def candidate_argument(self) -> Any:
        """The argument `candidates`, unless it is a DataFrame."""
        if "candidates" in self.sides:
            return self.candidates if isinstance(self.candidates, Negatives) else None
        if self.candidates is None or isinstance(self.candidates, SampledCandidates):
            return self.candidates
        return read_items(self.candidates, "candidates")

    @cached_property
    def kinds(self) -> IdKinds:
        """The kinds of user and item ids."""
        items = [output.items for output in self.outputs.values() if output.items is not None]
        return tables.kinds_of([*self.tables.values(), *items])

    def check(self) -> None:
        """Raise an error for arguments that Spark or `recometer.evaluate` does not support."""
        metrics, catalogue = self.arguments.metrics, self.arguments.catalogue
        train: Any = self.sides.get("train")
        baseline = self.outputs.get("baseline")
        side_data.check_side_data(metrics, train=train, baseline=baseline, catalogue=catalogue)
        side_data.warn_of_propensity(metrics, catalogue)
        for metric in self.of_all:
            if metric.definition.adds_up is None and not self.lists:
                raise InputError(
                    f"The metric {str(metric)!r} has one value for all users, which cannot be "
                    "computed from blocks of users. Hint: lists=True evaluates all users in one "
                    "task."
                )
        if self.lists and not self.of_all:
            warn("lists=True has no effect: no metric has one value for all users.")
        for table in self.tables.values():
            if table.has_column("session") and not self.test.has_column("session"):
                raise tables.without_sessions(table.label)

    def job(self) -> Job:
        """Return the job for the executors."""
        arguments, metrics = self.arguments, self.arguments.metrics
        if any(map(parameters_from_test, metrics)):
            metrics = tuple(with_largest_gain(metrics, self._largest_gain()))
        is_sampled = isinstance(self.candidates, SampledCandidates)
        if "train" in self.sides and "train" in needed_by(metrics):
            arguments = dataclasses.replace(arguments, popularity=self._popularity())
        listed = any(metric.definition.record == "lists" for metric in metrics)
        tied = listed and arguments.protocol.ties == "random"
        outputs = {}
        for name, output in self.outputs.items():
            # These random draws depend on all items: candidates for pairs (candidates for lists are
            # drawn from the catalogue), and the places of tied items that are not test items.
            all_ids = None
            if output.items is None and (tied or (is_sampled and output.kind == "pairs")):
                other_tables = [] if output.kind == "pairs" else self.sides.values()
                arrays = [self._sorted(table, "item") for table in (output.table, *other_tables)]
                all_ids = np.unique(np.concatenate(arrays))
            outputs[name] = output.for_executors(self.kinds, all_ids)
        return Job(
            outputs=outputs,
            tables={name: dataclasses.replace(t, frame=None) for name, t in self.sides.items()},
            kinds=self.kinds,
            arguments=arguments,
            metrics=metrics,
            settled=self.settled,
            candidates=self.candidate_argument,
            lists=self.lists and bool(self.of_all),
        )

    def partitions(self, job: Job) -> int | None:
        """Return the number of partitions for factors; otherwise return None, so Spark decides."""
        items = job.outputs["source"].item_factors
        if items is None:
            return None
        n_users = int(acted(self.source.table.frame.count))
        return max(1, -(-n_users // USERS), n_users * len(items[0]) // SCORES)

    def check_totals(self, totals: Note, facts: BlockFacts) -> None:
        """Raise the errors and warnings that depend on all users, as `recometer.evaluate` does."""
        checks.check_not_empty(facts.n_users, facts.n_rows)
        self._check_positions(totals["least"])
        if self.candidates is not None:
            check_sets(totals["counts"].get("users_without_candidates", 0), facts.n_known)
        warn_of_zeros(totals["counts"].get("train_zeros", 0), self.settled)
        checks.check_facts(
            facts,
            totals["counts"],
            requirements_of(self.arguments.metrics, self.settled),
            self.arguments.protocol,
            lambda: self._inputs(totals),
        )

    def _inputs(self, totals: Note) -> checks.Inputs:
        return checks.Inputs(
            self.source.like,
            self.outputs["baseline"].like if "baseline" in self.outputs else None,
            self.candidates,
            sorted(totals["users"]["few"])[:3],
            (0.0, totals["most"]["value"]) if "not binary" in totals["sums"] else None,
            self._find_unknown,
        )

    def n_catalogue(self, maxima: Mapping[str, int]) -> int | None:
        """Return the number of items that could be recommended, if a metric needs this number."""
        over_users = [m for m in self.of_all if m.definition.over_users]
        if self.lists or "catalogue" not in needed_by(over_users):
            return None
        if maxima["catalogue"] != -maxima["less catalogue"]:
            raise InputError(
                "The number of items that could have been recommended cannot be derived from "
                "blocks of users, because each block has its own items. Hint: lists=True evaluates "
                "all users together."
            )
        return maxima["catalogue"]

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return how many rows and users each rule affected; count unknown items across blocks."""
        affected = {name: n for name, n in counts.items() if n}
        if "items_unknown" in affected:
            rows = self.test.select(IdKinds._fields, self.kinds)
            if "train" in self.sides and self.source.like.facts.removes_train(self.settled):
                pairs = self.sides["train"].select(IdKinds._fields, self.kinds)
                columns = [name for name in pairs.columns if name in rows.columns]
                rows = rows.join(pairs.select(*columns), columns, "left_anti")
            items = self.source.of_items.ids("item", self.kinds).toDF("i")
            lost = rows.select("i").distinct().join(items, "i", "left_anti")
            affected["items_unknown"] = int(acted(lost.count))
        return affected

    def described(self, facts: BlockFacts) -> dict[str, dict[str, Any]]:
        """Return a description of each argument."""
        texts = {name: output.like.describe() for name, output in self.outputs.items()}
        texts |= {name: table.description for name, table in self.sides.items()}
        rows = f"{facts.n_users:,} users, {facts.n_rows:,} interactions"
        texts["test"] = f"Spark DataFrame, {rows}"
        if self.arguments.catalogue is not None:
            texts["catalogue"] = self.arguments.catalogue.describe()
        sets = {"candidates": self.candidate_argument, "exclude": self.arguments.exclude}
        for name, argument in sets.items():
            if argument is not None:
                texts.setdefault(name, repr(argument))
        descriptions: dict[str, Any] = {
            name: {"description": text, "fingerprints": {}} for name, text in texts.items()
        }
        sampled = self.candidates if isinstance(self.candidates, SampledCandidates) else None
        if "candidates" in self.sides or sampled is not None:
            descriptions["candidates"]["warning"] = warning_of(sampled)
        return descriptions

    def _popularity(self) -> Popularity:
        """Return how many training users each item has."""
        rows = self.sides["train"].select(IdKinds._fields, self.kinds).distinct()
        counts = acted(rows.groupBy("i").count().toArrow)
        item_ids = ids(counts["i"])
        order = np.argsort(item_ids, kind="stable")
        users = counts["count"].to_numpy()[order]
        n_users = acted(rows.drop("i").distinct().count)
        return Popularity(item_ids[order], users, int(n_users), int(users.sum()))

    def _largest_gain(self) -> float:
        """Return the largest value in the test data, or 1 if they have no values."""
        table, protocol, metrics = self.test, self.arguments.protocol, self.arguments.metrics
        value = next(filter(table.has_column, ("value", *TRUTHS)), None)
        if value is None:
            return 1.0
        per_row = any(rules_of(metric, protocol).repeated_test in COUNT_EACH for metric in metrics)
        aggregate = "avg" if per_row else "sum"
        keeps = "test" not in self.sides and keeps_rows(metrics, protocol)
        if keeps or protocol.repeated_test == "largest":
            aggregate = "max"
        rows = table.select(
            IdKinds._fields, self.kinds, f"CAST({table.sql(value, self.kinds)} AS double) AS x"
        )
        rows = rows.where("x IS NOT NULL")
        per_pair = rows.groupBy(*rows.columns[:-1]).agg({"x": aggregate}).toDF(*rows.columns)
        finite = per_pair.where("abs(x) < double('infinity')").agg({"x": "max"})
        largest = acted(finite.collect)[0][0]
        return float(largest) if largest and largest > 0 else 1.0

    def _find_unknown(self, kind: Kind) -> checks.Unknown:
        """Return examples of test ids that the source does not know, and of ids that it knows."""
        table = self.source.of_items if kind == "item" else self.source.table
        known_ids = table.ids(kind, self.kinds)
        unknown_ids = self.test.ids(kind, self.kinds).join(known_ids, "id", "left_anti")
        examples, spellings = (
            sorted(acted(rows.toArrow)["id"].to_pylist())
            for rows in (unknown_ids.limit(checks.MAX_TRIED), known_ids.limit(MOST_KNOWN))
        )
        return checks.Unknown(examples, spellings)

    def _check_positions(self, least: Mapping[str, int]) -> None:
        """Raise an error for ids that look like positions, as `recometer.evaluate` does.

        `least` contains the smallest id of each side; see `block._least`. The ids of all users and
        items are only sent to the driver if the ids of one side start at 0 and those of the other
        do not.
        """
        protocol, user_rules = self.arguments.protocol, self.arguments.user_rules
        data = [self.sides[name] for name in ("test", "train") if name in self.sides]

        def differ(kind: Kind) -> bool:
            ours, theirs = least.get(f"data {kind}"), least.get(f"source {kind}")
            return (theirs == 0 and ours != 0) or (ours == 0 and theirs == 1)

        if not data or self.kinds.session is not None or not any(map(differ, checks.KINDS)):
            checks.check_shifted(self.source.like, [], protocol, user_rules)
            return
        sides: list[Any] = []
        for table in data:
            users, items = (self._sorted(table, kind) for kind in checks.KINDS)
            sides.append(SimpleNamespace(user_ids=users, item_ids=items, n_users=len(users)))
        id_tables = {"user": self.source.table, "item": self.source.of_items}
        arrays = {f"{kind}_ids": self._sorted(table, kind) for kind, table in id_tables.items()}
        like = self.source.like
        like.facts = dataclasses.replace(like.facts, arrays=arrays, known=None)
        checks.check_shifted(like, sides, protocol, user_rules)

    def _sorted(self, table: Table, kind: str) -> Array:
        """Return all user ids or item ids of a table in ascending order."""
        return np.sort(ids(acted(table.ids(kind, self.kinds).toArrow)["id"]))


def _sides(source: Output, test: object, train: object, candidates: object) -> dict[str, Table]:
    """Return the tables of test data, training data and candidates, if there are any."""
    reading.included_test(source.like, test_passed=test is not None)
    sets = candidates.items if isinstance(candidates, Negatives) else candidates
    on_spark = isinstance(sets, Interactions) or tables.is_frame(sets)
    if isinstance(candidates, Negatives) and not on_spark:
        raise InputTypeError(
            "Negatives on Spark must be a DataFrame with a set of items for each user."
        )
    data = {"test": test, "train": train, "candidates": sets if on_spark else None}
    return {
        name: Interactions.read(frame, name) for name, frame in data.items() if frame is not None
    }


def _evaluate_folds(
    source: object, test: Sequence[Any], train: object, rules: object, **options: Any
) -> Any:
    """Evaluate each fold and pool the results."""
    if not test or not all(isinstance(fold, SparkSplit) for fold in test):
        tables.need_frame(test, "test")
    check_no_train(test, train)
    results = []
    for fold_source, split in each_fold(source, test):
        result = evaluate(fold_source, split, **options)
        results.append(result.collect())
        result.unpersist()
    return pool(results, FoldedEvaluation)
