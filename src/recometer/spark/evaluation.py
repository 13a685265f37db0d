"""evaluate on Spark: from DataFrames to a SparkEvaluation."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import pickle
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recometer import errors
from recometer.data.catalogue import Catalogue
from recometer.data.numbers import flag
from recometer.draws import seed_of
from recometer.errors import InputError, InputTypeError, warn
from recometer.evaluating import checks, finish
from recometer.evaluating.arguments import DEFAULT_METRICS, protocol_of, settled, truth_beside
from recometer.evaluating.checks import BlockFacts
from recometer.evaluating.folds import check_no_train, each_fold
from recometer.evaluating.sides import definitions_of, is_uniform, warn_of_zeros, warning_of
from recometer.evaluating.unused_rules import given_by_hand, warn_without_effect
from recometer.evaluation import FoldedEvaluation
from recometer.measuring import corrections
from recometer.measuring.side_data import check_side_data, needed_by, warn_of_propensity
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics
from recometer.metrics.registry import Metric, left_to_test, with_largest_gain
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.removed import without
from recometer.results.folds import pool
from recometer.sources.candidates import (
    Items,
    Negatives,
    SampledCandidates,
    check_sets,
    read_items,
)
from recometer.spark import population
from recometer.spark.block import CELLS, Job, Output
from recometer.spark.carrying import carried
from recometer.spark.result import SparkEvaluation
from recometer.spark.sources import Given, Interactions, read_source
from recometer.spark.sources import read_items as read_item_factors
from recometer.spark.splitting import SparkSplit
from recometer.spark.tables import (
    RUNNING,
    IdKinds,
    Table,
    acted,
    check_partitions,
    gathered,
    is_frame,
    kinds_of,
    need_frame,
    persisted,
    refusing,
    without_sessions,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules

Found = dict[str, dict[str, Any]]  # see `block.Job._note`
# Where a user is much work, however few the bytes: scores, and users, of a partition.
SCORES, USERS = 5 * 10**9, 2**16


@refusing(RUNNING)
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
    keep: bool = True,
    **rules: Unpack[Rules],
) -> SparkEvaluation:
    """Measure on Spark how well the output of a model finds the items that users chose.

    Arguments, metrics, conventions and values are those of `recometer.evaluate`: every user's
    values are the same to the last bit. Up to several million users, ``recometer.evaluate`` of what
    ``frame.toArrow()`` returns is faster on the same cores.

    Parameters
    ----------
    source
        `Factors`, `Lists` or `Pairs` of `recometer.spark`, or an ``ALSModel``.
    test, train
        DataFrames with a column of users, a column of items, and optionally one of values; or
        `recometer.spark.Interactions`, which names the columns. Or test is a `SparkSplit`, which
        brings its train; or a list of them, as `folds` returns it: `source` is then a list with
        one for each, or a function that is called with each split and returns a source, and the
        result is a `FoldedEvaluation` of one machine, in which the folds are pooled.
    candidates
        A list of items for all users; a DataFrame with a set for each user, optionally wrapped in
        `recometer.Negatives`; or `recometer.SampledCandidates`, which for lists needs a catalogue
        with the ids of all items.
    exclude
        A list of items that must not be recommended to any user.
    baseline
        Another source, as `source`, for metrics that compare lists with those of another model.
    metrics, protocol, catalogue, seed, chance, **rules
        As in `recometer.evaluate`. The catalogue is on this machine, and is sent to the executors.
    lists
        Whether one task evaluates all users, and the driver gets their lists and rows. Errors of
        ratings, such as rmse, need it. Without, coverage and others with one value for all users
        are added up by item, and have no intervals.
    shared
        A folder that the driver and all executors see, for what is large: the factors of all items.
        By default Spark copies the file to each executor, whose tasks map it.
    partitions
        The number of partitions of the users. None makes as many as there are data for.
    keep
        Whether Spark keeps the values of the users (``persist``) until `SparkEvaluation.unpersist`,
        so that they are computed only once. Serverless Spark cannot, and computes them again.

    Raises
    ------
    InputError, InputTypeError, ColumnError, UnknownNameError
        As for `recometer.evaluate`, and if something cannot be computed on Spark.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> result = rs.evaluate(model, test, train=train, metrics="ndcg@10")  # doctest: +SKIP
    >>> result.mean()  # doctest: +SKIP
    {'ndcg@10': 0.31}
    >>> result.per_user().write.parquet("values.parquet")  # doctest: +SKIP
    """
    if isinstance(test, list | tuple):
        given = {"candidates": candidates, "exclude": exclude, "metrics": metrics}
        given |= {"protocol": protocol, "catalogue": catalogue, "baseline": baseline, "seed": seed}
        given |= {"chance": chance, "lists": lists, "shared": shared, "partitions": partitions}
        given = {**given, "keep": keep, **rules}
        return _evaluate_folds(source, test, train, given)  # type: ignore[no-any-return]
    if isinstance(test, SparkSplit):
        test, train = _tables_of_split(test, train)
    begin = time.perf_counter()
    check_partitions(partitions)
    keep, lists = flag("keep", keep), flag("lists", lists)
    stated = protocol_of(protocol, rules, [*inspect.signature(evaluate).parameters])
    found, requested = read_source(source), parse_under(metrics, stated)
    trained = train is not None
    warn_without_effect(found.like, requested, stated, given_by_hand(stated), trained=trained)
    plan = Plan(
        source=found,
        baseline=None if baseline is None else read_source(baseline, "baseline="),
        tables=_tables_of(found, test, train, candidates),
        protocol=settled(found.like, stated, trained=trained),
        stated=stated,
        metrics=tuple(requested),
        catalogue=catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        candidates=candidates,
        exclude=None if exclude is None else read_items(exclude, "exclude"),
        seed=seed_of(seed),
        chance=flag("chance", chance),
        lists=lists,
    )
    plan.check()
    job = plan.job()
    cells = {name: plan.cells(name) for name in job.names}
    frame = gathered(cells, partitions or plan.partitions(job))
    if job.lists:
        frame = frame.coalesce(1)
    rows = frame.mapInArrow(carried(job, frame, shared), ", ".join(f"{c} binary" for c in CELLS))
    kept = keep and persisted(rows)
    notes = acted(rows.where("note IS NOT NULL").select("note").toArrow, cells)
    found_by = _together(notes["note"].to_pylist())
    facts = BlockFacts.merge(found_by["facts"]["facts"])
    plan.check_facts(found_by, facts)
    whole: Any = found_by.get("lists") or {"totals": found_by["totals"]}
    if job.over_users and not job.lists:
        whole["n_catalogue"] = plan.n_catalogue(found_by["most"])
    return SparkEvaluation(
        metrics=job.metrics,
        protocol=stated,
        seed=plan.seed,
        n_users=facts.n_users,
        counts=plan.counts(found_by["counts"]),
        definitions=definitions_of(job.metrics),
        inputs=plan.described(facts),
        timings={"total": time.perf_counter() - begin},
        kept=kept,
        negative_gains=found_by["sums"]["negative"] > 0,
        binary_gains=not found_by["sums"].get("not binary"),
        user=str(plan.of_users.columns["user"]),
        session=plan.of_users.columns.get("session"),
        rows=rows,
        job=job,
        whole=whole,
    )


@refusing(RUNNING)
class Evaluator:
    """An evaluation that is stated once, for many models, as `recometer.Evaluator`.

    ``rs.Evaluator(test, ...)(source)`` returns the same as ``rs.evaluate(source, test, ...)``. Test
    may be a `SparkSplit`, which brings its train. Nothing is read before the evaluator is called.

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
                "An evaluator has one test, found several splits. Hint: rs.evaluate(sources, "
                "folds)."
            )
        self.test, self.options = test, options

    @without("until")
    def __call__(self, source: object) -> SparkEvaluation:
        """Evaluate a source."""
        return evaluate(source, self.test, **self.options)

    def __repr__(self) -> str:
        return f"<Evaluator on Spark: {self.options.get('metrics', DEFAULT_METRICS)}>"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """What is evaluated, read from the arguments."""

    source: Given
    baseline: Given | None
    tables: Mapping[str, Table]
    protocol: Protocol  # with what the source replaces
    stated: Protocol
    metrics: tuple[Metric, ...]
    catalogue: Catalogue | None
    candidates: object
    exclude: Items | None
    seed: int
    chance: bool
    lists: bool

    @property
    def outputs(self) -> dict[str, Given]:
        """The source, and the baseline where a metric reads it."""
        reads = self.baseline is not None and "baseline" in needed_by(self.metrics)
        given: dict[str, Any] = {"source": self.source, "baseline": self.baseline}
        return given if reads else {"source": self.source}

    @property
    def of_users(self) -> Table:
        """The table that says who is evaluated."""
        return self.tables.get("test", self.source.table)

    @property
    def over_users(self) -> list[Metric]:
        """The metrics that have one value for all users."""
        return [metric for metric in self.metrics if metric.definition.over_users]

    @property
    def of_all(self) -> list[Metric]:
        """The metrics that have a value for all users, or for the rows of all of them."""
        of_rows = [metric for metric in self.metrics if metric.definition.over_rows is not None]
        return self.over_users + of_rows

    @cached_property
    def chosen(self) -> Any:
        """What candidates travel with the job."""
        given = self.candidates
        if given is None or isinstance(given, SampledCandidates):
            return given
        if "candidates" in self.tables:
            return given if isinstance(given, Negatives) else None
        return read_items(given, "candidates")

    @cached_property
    def kinds(self) -> IdKinds:
        """As what users and items are read, alike in all tables."""
        columns = [one for table in self.tables.values() for one in table.of_ids()]
        for name, one in self.outputs.items():
            prefix = "" if name == "source" else "baseline: "
            for table in filter(None, (one.table, one.items)):
                columns += dataclasses.replace(table, what=f"{prefix}{table.what}").of_ids()
        return kinds_of(columns)

    def check(self) -> None:
        """Refuse arguments that Spark does not support, and those that one machine refuses."""
        uniform = True if "candidates" in self.tables else is_uniform(self.chosen)
        corrections.check(self.metrics, self.protocol, uniform)
        train: Any = self.tables.get("train")
        sides = {"train": train, "baseline": self.baseline, "catalogue": self.catalogue}
        check_side_data(needed_by(self.metrics), **sides)
        warn_of_propensity(self.metrics, self.catalogue)
        for metric in self.of_all:
            if metric.definition.adds_up is None and not self.lists:
                raise InputError(
                    f"The metric {str(metric)!r} is of all users together, and does not add up "
                    "from parts of them. Hint: lists=True brings their rows together."
                )
        if self.lists and not self.of_all:
            warn("lists=True changes nothing: no metric has one value for all users.")

    def cells(self, name: str) -> Any:
        """Return what is read of the rows of a table; see `Table.cells`."""
        kinds = self.kinds
        if name in self.outputs:
            return self.outputs[name].cells(kinds)
        table = self.tables[name]
        fields = {"i": f"CAST({table['item']} AS {kinds.item})"}
        if table.has("value"):
            fields["x"] = table.number("value")
        return table.cells(kinds, **fields)

    def job(self) -> Job:
        """Return what runs on the executors."""
        kinds, metrics = self.kinds, self.metrics
        if any(map(left_to_test, metrics)):
            value = "value" if "test" in self.tables else str(self.source.options["truth"])
            largest = population.largest_gain(self.of_users, value, metrics, self.protocol, kinds)
            metrics = tuple(with_largest_gain(metrics, largest))
        drawn = isinstance(self.candidates, SampledCandidates) and self.candidates.by != "uniform"
        reads = "train" in self.tables and (drawn or "train" in needed_by(self.metrics))
        tables = {**self.tables, **{name: one.table for name, one in self.outputs.items()}}
        sessions = {name for name, one in tables.items() if one.has("session")}
        if "test" not in tables and "source" in sessions:
            sessions.add("test")
        if sessions and "test" not in sessions:
            raise without_sessions(tables[min(sessions)].what)
        return Job(
            outputs={name: self._output(one) for name, one in self.outputs.items()},
            kinds=kinds,
            names={
                name: "baseline" if name == "baseline" else t.what for name, t in tables.items()
            },
            sessions=frozenset(sessions),
            valued={n: t.called("value", "x") for n, t in self.tables.items() if t.has("value")},
            every=self.metrics,
            lists=self.lists and bool(self.of_all),
            settled=self.protocol,
            candidates=self.chosen,
            given={
                "metrics": metrics,
                "protocol": self.stated,
                "seed": self.seed,
                "chance": self.chance,
                "exclude": self.exclude,
                "catalogue": self.catalogue,
                "popularity": population.popularity(self.tables["train"], kinds) if reads else None,
            },
        )

    def _output(self, found: Given) -> Output:
        """Return what is made of a source where the users are."""
        items = every = None
        called = {name: found.table.called(of, name) for name, of in found.numbers.items()}
        if found.items is not None:
            items = read_item_factors(found, self.kinds)
        else:
            # What is drawn depends on all items: candidates of pairs (those of lists are drawn from
            # the catalogue), and the places of tied items that test does not judge.
            drawn = found.kind == "pairs" and isinstance(self.candidates, SampledCandidates)
            listed = any(one.definition.record == "lists" for one in self.metrics)
            if drawn or (listed and self.protocol.ties == "random"):
                others = [] if found.kind == "pairs" else [*self.tables.values()]
                every = population.every_item([found.table, *others], self.kinds)
        return Output(found.kind, found.options, called, items, every)

    def partitions(self, job: Job) -> int | None:
        """Return the number of partitions where a user is much work; None lets Spark decide."""
        items = job.outputs["source"].items
        if items is None:
            return None
        n_users = int(acted(self.source.table.frame.count))
        return max(1, -(-n_users // USERS), n_users * len(items[0]) // SCORES)

    def n_catalogue(self, most: Mapping[str, int]) -> int | None:
        """Return how many items could have been recommended, where a metric reads it."""
        if "catalogue" not in needed_by(self.over_users):
            return None
        if most["catalogue"] != -most["less catalogue"]:
            raise InputError(
                "How many items could have been recommended does not follow from blocks of users, "
                "since these have items of their own. Hint: lists=True evaluates all together."
            )
        return most["catalogue"]

    def check_facts(self, found: Found, facts: BlockFacts) -> None:
        """Refuse and warn of what the blocks found, as on one machine."""
        like, kinds, rules = self.source.like, self.kinds, self.protocol
        checks.check_not_empty(facts.n_users, facts.n_rows)
        population.check_positions(self.source, self.tables, kinds, self.stated, found["least"])
        if self.candidates is not None:
            check_sets(found["counts"].get("users_without_candidates", 0), facts.n_known)
        warn_of_zeros(found["counts"].get("train_zeros", 0), rules)
        has_values = "not binary" in found["sums"]
        finish.check_facts(
            facts,
            found["counts"],
            source=like,
            baseline="" if facts.n_compared else self.outputs["baseline"].like.describe(),
            metrics=self.metrics,
            rules=rules,
            stated=self.stated,
            candidates=self.candidates,
            examples=sorted(found["users"]["few"])[:3],
            value_range=(0.0, found["most"]["value"]) if has_values else None,
            find=lambda kind: population.find_unknown(self.source, self.of_users, kinds, kind),
        )

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return what the rules settled; what is not a sum over users is counted here."""
        found = dict(counts)
        if found.get("items_unknown"):
            removes = self.source.like.facts.removes_train(self.protocol)
            train = self.tables.get("train") if removes else None
            how = self.source, self.of_users, train, self.kinds
            found["items_unknown"] = population.n_unknown_items(*how)
        return {name: n for name, n in found.items() if n}

    def described(self, facts: BlockFacts) -> dict[str, dict[str, Any]]:
        """Return a description of each argument."""
        rows = f"{facts.n_users:,} users, {facts.n_rows:,} interactions"
        texts = {"source": self.source.like.describe(), "test": f"DataFrame of Spark, {rows}"}
        for name in ("train", "candidates"):
            if name in self.tables:
                columns = filter(None, self.tables[name].columns.values())
                texts[name] = f"DataFrame of Spark, columns {', '.join(columns)}"
        given = {"candidates": self.chosen, "exclude": self.exclude, "catalogue": self.catalogue}
        for name, one in {"baseline": self.baseline and self.baseline.like, **given}.items():
            if one is not None:
                texts.setdefault(name, one.describe() if hasattr(one, "describe") else repr(one))
        found: dict[str, Any] = {
            name: {"description": text, "fingerprints": {}} for name, text in texts.items()
        }
        drawn = self.candidates if isinstance(self.candidates, SampledCandidates) else None
        if "candidates" in self.tables or drawn is not None:
            found["candidates"]["warning"] = warning_of(drawn, self.protocol)
        return found


def _together(notes: list[bytes]) -> Found:
    """Combine the notes of all blocks, by kind and name; see `Job`.

    Raises
    ------
    RecometerError
        What was wrong in a block.
    """
    how = {"most": max, "least": min}
    found: Found = {name: {} for name in ("facts", "sums", "counts", "most", "least", "totals")}
    found["facts"]["facts"] = []
    for note in sorted(notes):
        for kind, numbers in pickle.loads(note).items():  # noqa: S301  # of our own
            if kind == "error":
                ((name, message),) = numbers.items()
                raise getattr(errors, name, errors.InternalError)(message)
            known = found.setdefault(kind, {})
            for name, n in numbers.items():
                known[name] = how.get(kind, operator.add)(known[name], n) if name in known else n
    return found


def _tables_of(found: Given, test: object, train: object, candidates: object) -> dict[str, Table]:
    """Return the tables of test, train and candidates that there are."""
    truth_beside(found.like, given=test is not None)
    tables = {}
    for name, data in (("test", test), ("train", train)):
        if data is not None:
            tables[name] = Interactions.read(data, name)
    sets = candidates.items if isinstance(candidates, Negatives) else candidates
    if isinstance(sets, Interactions) or is_frame(sets):
        tables["candidates"] = Interactions.read(sets, "candidates")
    elif isinstance(candidates, Negatives):
        raise InputTypeError("Negatives on Spark take a DataFrame with a set for each user.")
    return tables


def _evaluate_folds(source: object, made: Sequence[Any], train: object, options: Any) -> Any:
    """Evaluate on each fold, as `folds` returns them, and pool the results."""
    if not made or not all(isinstance(one, SparkSplit) for one in made):
        need_frame(made, "test")
    check_no_train(made, train)
    found = []
    for own, one in each_fold(source, made):
        result = evaluate(own, one, **options)
        found.append(result.collect())
        result.unpersist()
    return pool(found, FoldedEvaluation)


def _tables_of_split(made: SparkSplit, train: object) -> tuple[Interactions, Interactions]:
    """Return test and train of a split; InputError: a `train` was given, too."""
    check_no_train(made, train)
    columns = made.columns
    test, own = (
        Interactions(frame, columns.user, columns.item, columns.value or False)
        for frame in (made.test, made.train)
    )
    return test, own
