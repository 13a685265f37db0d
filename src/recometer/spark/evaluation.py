"""evaluate on Spark: from DataFrames to a SparkEvaluation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import errors
from recometer.data.catalogue import Catalogue
from recometer.draws import seed_of
from recometer.errors import InputError, InternalError, warn
from recometer.evaluating.arguments import protocol_of, with_order
from recometer.evaluating.checks import (
    check_cutoffs,
    check_known,
    check_lists,
    check_overlaps,
    warn_beyond_lists,
)
from recometer.evaluating.effects import warn_without_effect
from recometer.evaluating.inputs import is_uniform, warning_of
from recometer.evaluation import DEFAULT_METRICS, definitions_of
from recometer.measuring import corrections
from recometer.measuring.reasons import Reason
from recometer.measuring.side_data import Popularity, check_side_data, needed_by
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics
from recometer.metrics.registry import METRICS, Metric, rules_of, with_largest_gain
from recometer.protocol import Protocol
from recometer.sources.candidates import Items, Negatives, SampledCandidates, read_items
from recometer.spark import _frames
from recometer.spark import given as given_module
from recometer.spark._frames import Frame, IdKinds, Table
from recometer.spark._job import CANDIDATES, TEST, TRAIN, Job, ids
from recometer.spark._sources import CLOSURE, Given, bytes_of, item_bytes, read_source
from recometer.spark._sources import read_items as read_item_factors
from recometer.spark._sums import Sums
from recometer.spark.result import SparkEvaluation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules


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
    seed: int = 0,
    chance: bool = False,
    closure: str | int = CLOSURE,
    partitions: int | None = None,
    keep: bool = True,
    **rules: Unpack[Rules],
) -> SparkEvaluation:
    """Measure on Spark how well model output finds what users went on to choose.

    Arguments, metrics, conventions and values are those of `recometer.evaluate`, with DataFrames in
    the place of data. Users are spread over the partitions; on each, blocks of them go through the
    same functions as on one machine.

    Parameters
    ----------
    source
        `Factors`, `Lists` or `Pairs` of `recometer.spark`, or an ``ALSModel``.
    test, train
        DataFrames with a column of users and one of items, and perhaps one of values; or
        `recometer.spark.Interactions`, which names the columns.
    candidates
        A list of items for all users; a DataFrame with a set for each user, perhaps in
        `recometer.Negatives`; or, of factors, `recometer.SampledCandidates`.
    exclude
        A list of items that must not be recommended to anybody.
    metrics, protocol, catalogue, seed, chance, **rules
        As in `recometer.evaluate`. The catalogue is on this machine, and travels to the executors.
    closure
        What may travel to every executor with the function that runs there: the factors of all
        items (4 or 8 bytes a number, and their ids) are read by the driver once where they take at
        most so much. Each task holds them once. On Spark Connect, a message may have 128 MB.
    partitions
        Into how many partitions users are spread. None: ``spark.sql.shuffle.partitions``.
    keep
        Let Spark keep the users' values (``persist``) until `SparkEvaluation.unpersist`, so that
        they are computed once. Where Spark cannot (serverless), they are computed again for
        whatever reads them.

    Returns
    -------
    SparkEvaluation

    Raises
    ------
    InputError, InputTypeError, ColumnError, UnknownNameError
        As `recometer.evaluate`; and for what is not computed on Spark, which is said.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> result = rs.evaluate(model, test, train=train, metrics="ndcg@10")  # doctest: +SKIP
    >>> result.mean()  # doctest: +SKIP
    {'ndcg@10': 0.31}
    >>> result.per_user().write.parquet("values.parquet")  # doctest: +SKIP
    """
    parameters = [name for name in locals() if name not in ("source", "test", "rules")]
    begin = time.perf_counter()
    stated = protocol_of(protocol, rules, parameters)
    found = read_source(source)
    requested = parse_under(metrics, stated)
    warn_without_effect(found.like, requested, stated, trained=train is not None)
    plan = _Plan(
        found,
        _tables(found, test, train, candidates),
        with_order(found.like, stated),
        stated,
        requested,
        catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        candidates,
        None if exclude is None else read_items(exclude, "exclude"),
        bytes_of(closure, "closure"),
    )
    plan.check()
    job = plan.job(seed_of(seed), bool(chance))
    rows = _rows(plan, job, partitions)
    kept = keep and _persisted(rows)
    sums = _collected(rows)
    plan = dataclasses.replace(plan, metrics=list(job.given["metrics"]))
    plan.check_sums(sums)
    return SparkEvaluation(
        metrics=job.given["metrics"],
        protocol=stated,
        seed=job.given["seed"],
        sums=sums,
        rows=rows,
        counts={name: n for name, n in plan.counts(sums).items() if n},
        definitions=definitions_of(job.given["metrics"]),
        inputs=plan.described(sums),
        timings={"total": time.perf_counter() - begin},
        kept=kept,
        chance=bool(chance),
        user=str(plan.of_users.columns["user"]),
    )


def _tables(found: Given, test: object, train: object, candidates: object) -> dict[str, Table]:
    """Return the tables of test, train and candidates that there are."""
    tables = {}
    if test is not None:
        tables["test"] = given_module.read(test, "test")
    elif found.options.get("truth") is None:
        raise InputError(
            f"There is no test, and the source ({found.like.describe()}) has no truth of its own. "
            "Hint: evaluate(source, test)."
        )
    if test is not None and found.options.get("truth") is not None:
        raise InputError(
            f"test was given, but the source ({found.like.describe()}) brings the truth itself. "
            "Hint: leave test out, or give Pairs relevance=False, rating=False."
        )
    if train is not None:
        tables["train"] = given_module.read(train, "train")
    sets = candidates.items if isinstance(candidates, Negatives) else candidates
    if isinstance(sets, given_module.Interactions) or _frames.is_frame(sets):
        tables["candidates"] = given_module.read(sets, "candidates")
    elif isinstance(candidates, Negatives):
        raise errors.InputTypeError("Negatives on Spark take a DataFrame with a set for each user.")
    return tables


@dataclasses.dataclass(frozen=True, eq=False)
class _Plan:
    """What is evaluated, read from the arguments."""

    source: Given
    tables: Mapping[str, Table]
    protocol: Protocol
    stated: Protocol
    metrics: list[Metric]
    catalogue: Catalogue | None
    candidates: object
    exclude: Items | None
    closure: int

    @property
    def of_users(self) -> Table:
        """The table that says who is evaluated."""
        return self.tables.get("test", self.source.table)

    @property
    def chosen(self) -> object:
        """What candidates travel with the job."""
        given = self.candidates
        if given is None or isinstance(given, SampledCandidates):
            return given
        if "candidates" in self.tables:
            return given if isinstance(given, Negatives) else None
        return read_items(given, "candidates")

    def check(self) -> None:
        """Refuse what cannot be computed here."""
        uniform = True if "candidates" in self.tables else is_uniform(self.chosen)  # type: ignore[arg-type]
        corrections.check(self.metrics, self.protocol, uniform)
        check_side_data(
            needed_by(self.metrics),
            train=self.tables.get("train"),
            baseline=None,
            catalogue=self.catalogue,
        )
        for metric in self.metrics:
            rules = rules_of(metric, self.protocol)
            if metric.definition.over_users or metric.definition.record == "ratings":
                what = "users" if metric.definition.over_users else "rows of all users"
                raise InputError(
                    f"The metric {str(metric)!r} has one value for all {what}, which is not "
                    "computed on Spark. Hint: collect the lists or pairs, or a sample of them, for "
                    "recometer.evaluate."
                )
            if rules.short_lists == "previous_user":
                raise InputError(
                    "short_lists='previous_user' reads the user before, and on Spark no user "
                    "stands before another. Hint: leave it out (or defects=True, which sets it)."
                )
        drawn = isinstance(self.candidates, SampledCandidates)
        if drawn and self.source.kind != "factors":
            raise InputError(
                f"{self.candidates} on Spark needs factors, which name all items. Hint: "
                "candidates= takes a DataFrame with a set for each user."
            )
        if drawn and self.candidates.by != "uniform":  # type: ignore[attr-defined]
            raise InputError(
                f"{self.candidates} counts interactions of all users, which is not computed on "
                "Spark. Hint: by='uniform'."
            )
        if self.source.kind == "pairs" and self.protocol.correction != "none":
            raise InputError("correction= on Spark needs factors or lists, found Pairs.")

    def kinds(self) -> IdKinds:
        """Return as what users and items are read, alike in all tables."""
        users = {name: _frames.kind_of(table, "user") for name, table in self.tables.items()}
        items = {name: _frames.kind_of(table, "item") for name, table in self.tables.items()}
        users |= self.source.id_kinds("user")
        items |= self.source.id_kinds("item")
        return IdKinds(_frames.same_kind(users, "user"), _frames.same_kind(items, "item"))

    def job(self, seed: int, chance: bool) -> Job:
        """Return what runs on the executors."""
        kinds, found = self.kinds(), self.source
        items = None
        if found.items is not None:
            n_items, size = item_bytes(found.items)
            if size > self.closure:
                raise InputError(
                    f"The factors of {n_items:,} items take {size / 1e6:,.1f} MB, more than "
                    f"closure={self.closure / 1e6:,.1f} MB may travel to the executors. Hint: "
                    "closure='1GB', if they have the memory."
                )
            items = read_item_factors(found.items, kinds.item, found.options["array"])
        truth = found.options.get("truth")
        metrics = with_largest_gain(self.metrics, self._largest_gain(kinds))
        given = {
            "metrics": tuple(metrics),
            "protocol": self.protocol,
            "stated": self.stated,
            "seed": seed,
            "chance": chance,
            "exclude": self.exclude,
            "catalogue": self._whole_catalogue(kinds),
            "candidates": self.chosen,
            "popularity": self._popularity(kinds),
        }
        values = {name: table.has("value") for name, table in self.tables.items()}
        options = {**found.options, "user": kinds.user}
        return Job(found.kind, options, items, values, truth is not None, given)

    def rows(self, kinds: IdKinds) -> list[Frame]:
        """Return the rows of all tables in one form."""
        found = [self.source.rows(kinds)]
        array = self.source.options.get("array", "array<float>")
        for name, number in (("test", TEST), ("train", TRAIN), ("candidates", CANDIDATES)):
            table = self.tables.get(name)
            if table is not None:
                columns = {"i": table["item"], "f_type": array}
                if table.has("value"):
                    columns["x"] = table["value"]
                found.append(_frames.rows(table, number, kinds, **columns))
        return found

    def _largest_gain(self, kinds: IdKinds) -> float:
        """Return the largest value of test where a metric is about it; 1 otherwise."""
        of_test = [
            metric
            for metric in self.metrics
            for parameter in METRICS[metric.name].parameters.values()
            if parameter.from_test and parameter.name not in dict(metric.parameters)
        ]
        if not of_test:
            return 1.0
        table, value = self.of_users, "value"
        if "test" not in self.tables:
            value = str(self.source.options["truth"])
        if not table.has(value):
            return 1.0
        each = any(rules_of(one, self.protocol).repeated_test != "once" for one in self.metrics)
        how = "max" if "test" not in self.tables else "avg" if each else "sum"
        rows = table.frame.selectExpr(
            f"{table['user']} AS u", f"{table['item']} AS i", f"CAST({table[value]} AS double) AS x"
        )
        per_pair = rows.where("x IS NOT NULL").groupBy("u", "i").agg({"x": how})
        finite = per_pair.toDF("u", "i", "x").where("abs(x) < double('infinity')")
        largest = finite.agg({"x": "max"}).collect()[0][0]
        return float(largest or 0.0) if largest and largest > 0 else 1.0

    def _popularity(self, kinds: IdKinds) -> Popularity | None:
        """Return how many users of train have each item, where a metric reads it."""
        if "train" not in needed_by(self.metrics) or "train" not in self.tables:
            return None
        table = self.tables["train"]
        rows = table.frame.selectExpr(
            f"CAST({table['user']} AS {kinds.user}) AS u",
            f"CAST({table['item']} AS {kinds.item}) AS i",
        ).distinct()
        found = rows.groupBy("i").count()
        self._check_travels(found, "The popularity of")
        counted = found.toArrow()
        named = ids(counted["i"])
        order = np.argsort(named, kind="stable")
        users = counted["count"].to_numpy()[order]
        n_users = rows.select("u").distinct().count()
        return Popularity(named[order], users, int(n_users), int(users.sum()))

    def _check_travels(self, frame: Frame, what: str) -> None:
        """Refuse to bring a row per item here where there are too many."""
        n_items = frame.count()
        if 32 * n_items > self.closure:
            raise InputError(
                f"{what} {n_items:,} items takes more than closure={self.closure / 1e6:,.1f} MB. "
                "Hint: a larger closure=, or metrics without it."
            )

    def _whole_catalogue(self, kinds: IdKinds) -> Catalogue | None:
        """Return the catalogue with the listed items that it lacks."""
        return self.catalogue

    def check_sums(self, sums: Sums) -> None:
        """Refuse and warn of what shows when all is added up, as on one machine."""
        like, facts, largest = self.source.like, sums.facts, sums.largest
        if not sums.n_users or not sums.n_rows:
            raise InputError(
                f"test is empty: {sums.n_users} users, {sums.n_rows} interactions. "
                "Hint: is the split right, and the column of users?"
            )
        check_known(sums.known_users(), like)
        of_ranks = [one for one in self.metrics if one.definition.record != "lists"]
        of_lists = [one for one in self.metrics if one.definition.record == "lists"]
        check_overlaps(sums.counts, facts["relevant"], sums.n_rows, self.candidates)
        if facts.get("early"):
            warn_beyond_lists(int(largest["depth"]), of_ranks)
        if facts.get("any_cutoff"):
            check_cutoffs(int(largest["n_candidates"]), like, of_ranks)
        if of_lists:
            check_lists(int(largest["listed"]), of_lists)
        _check_defined(sums)

    def counts(self, sums: Sums) -> dict[str, int]:
        """Return what the rules settled; what is no sum over users is counted here."""
        found = dict(sums.counts)
        if found.get("items_unknown"):
            found["items_unknown"] = self._unknown_items()
        return found

    def _unknown_items(self) -> int:
        """Count the items of test that the source does not know."""
        kinds, table = self.kinds(), self.of_users
        known = self.source.items if self.source.items is not None else self.source.table

        def pairs(of: Table) -> Frame:
            return of.frame.selectExpr(
                f"CAST({of['user']} AS {kinds.user}) AS u",
                f"CAST({of['item']} AS {kinds.item}) AS i",
            )

        rows = pairs(table)
        if "train" in self.tables and self.source.like.removes_train(self.protocol):
            rows = rows.join(pairs(self.tables["train"]), ["u", "i"], "left_anti")
        there = known.frame.selectExpr(f"CAST({known['item']} AS {kinds.item}) AS i")
        return int(rows.select("i").distinct().join(there, "i", "left_anti").count())

    def described(self, sums: Sums) -> dict[str, dict[str, Any]]:
        """Return a description of each argument."""
        found: dict[str, dict[str, Any]] = {"source": {"description": self.source.like.describe()}}
        rows = f"{sums.n_users:,} users, {sums.n_rows:,} interactions"
        found["test"] = {"description": f"DataFrame of Spark, {rows}"}
        for name in ("train", "candidates"):
            if name in self.tables:
                columns = filter(None, self.tables[name].columns.values())
                found[name] = {"description": f"DataFrame of Spark, columns {', '.join(columns)}"}
        if self.chosen is not None and "candidates" not in found:
            found["candidates"] = {"description": repr(self.chosen)}
        if "candidates" in self.tables or isinstance(self.candidates, SampledCandidates):
            of_sets = self.candidates if isinstance(self.candidates, SampledCandidates) else None
            found["candidates"]["warning"] = warning_of(of_sets, self.protocol)
        if self.exclude is not None:
            found["exclude"] = {"description": repr(self.exclude)}
        if self.catalogue is not None:
            found["catalogue"] = {"description": self.catalogue.describe()}
        return found


def _rows(plan: _Plan, job: Job, partitions: int | None) -> Frame:
    """Return the rows of all users, and one of sums per partition."""
    frame = _frames.together(plan.rows(plan.kinds()))
    spread = _frames.partitioned(frame, _frames.partitions_of(frame, partitions))

    def run(batches: Any) -> Any:
        return job.run(batches)

    return spread.mapInArrow(run, job.schema())


def _persisted(rows: Frame) -> bool:
    """Let Spark keep the rows, if it can."""
    from pyspark.errors import PySparkException

    try:
        rows.persist()
    except PySparkException:  # serverless has no cache
        return False
    return True


def _collected(rows: Frame) -> Sums:
    """Return the sums of all partitions, in their order; raise what was wrong in one of them."""
    found = rows.where("sums IS NOT NULL OR error IS NOT NULL").select("sums", "error").collect()
    for row in found:
        if row["error"] is not None:
            name, _, message = row["error"].partition(":")
            kind = getattr(errors, name, InternalError)
            raise kind(message)
    parts = [Sums.from_bytes(bytes(row["sums"])) for row in found]
    if not parts:
        raise InputError(
            "test is empty: no users, no interactions. Hint: is the split right, and the column of "
            "users?"
        )
    return Sums.together(parts)


def _check_defined(sums: Sums) -> None:
    """Warn of metrics that no user has a value for, and say why."""
    alike: dict[str, list[str]] = {}
    for name, one in sums.metrics.items():
        counts = one.reasons[1:]
        if one.reasons[0] or one.cells.n:
            continue
        sentences = {reason.value: reason.sentence for reason in Reason}
        codes = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)] + 1
        why = [sentences[code] for code in codes.tolist()]
        alike.setdefault("; or ".join(why), []).append(name)
    for reason, names in alike.items():
        warn(f"{', '.join(names)}: undefined for all {sums.n_users:,} users: {reason}.")
