"""evaluate on Spark: from DataFrames to a SparkEvaluation."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from recometer.data.catalogue import Catalogue
from recometer.data.numbers import flag
from recometer.data.sizes import bytes_of
from recometer.draws import seed_of
from recometer.evaluating.arguments import protocol_of, settled
from recometer.evaluating.asked import DEFAULT_METRICS
from recometer.evaluating.checks import check_not_empty
from recometer.evaluating.effects import given_by_hand, warn_without_effect
from recometer.evaluating.truth import definitions_of
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.sources.candidates import read_items
from recometer.spark import _across, _frames, _whole
from recometer.spark._columns import ids
from recometer.spark._elsewhere import RUNNING, refusing
from recometer.spark._frames import Frame, Spread
from recometer.spark._job import Job
from recometer.spark._packing import fewer
from recometer.spark._plan import Plan, tables_of
from recometer.spark._resampling import Again
from recometer.spark._sources import CLOSURE, read_source
from recometer.spark._sums import Sums, joined
from recometer.spark.pooling import evaluate_made, is_made
from recometer.spark.result import SparkEvaluation

# Where a user is much work, however few the bytes of its rows: Spark must not put small partitions
# together, as it does for all others.

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules


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
    closure: str | int = CLOSURE,
    partitions: int | None = None,
    keep: bool = True,
    **rules: Unpack[Rules],
) -> SparkEvaluation:
    """Measure on Spark how well the output of a model finds the items that users chose.

    Arguments, metrics, conventions and values are those of `recometer.evaluate`, with DataFrames as
    data. The users are distributed over the partitions. On each partition, the same functions as on
    one machine process blocks of users.

    Parameters
    ----------
    source
        `Factors`, `Lists` or `Pairs` of `recometer.spark`, or an ``ALSModel``.
    test, train
        DataFrames with a column of users, a column of items, and optionally one of values; or
        `recometer.spark.Interactions`, which names the columns. Or test is a `SparkSplit`, which
        brings its train; or a list of them, as `folds` returns it: `source` is then a list with
        one for each, or a function that is called with each split and returns a source, and the
        result is a `SparkFoldedEvaluation`, in which the folds are pooled.
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
    closure
        Limits the data that are sent to every executor with the function that runs there. The
        driver reads the factors of all items (4 or 8 bytes a number, and their ids) once, and each
        task holds one copy: 4 million items with 64 factors in float32 are 1 GB. Larger factors
        are refused. A message of Spark Connect has at most 128 MB.
    partitions
        The number of partitions of the users. None takes ``spark.sql.shuffle.partitions``; where
        lists or pairs are small, Spark may put partitions together.
    keep
        Whether Spark keeps the values of the users (``persist``) until `SparkEvaluation.unpersist`,
        so that they are computed only once. If Spark cannot keep them (serverless), they are
        computed again whenever they are read.

    Returns
    -------
    SparkEvaluation

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
    given = {name: one for name, one in locals().items() if name not in ("source", "test", "rules")}
    if is_made(test):
        return evaluate_made(evaluate, source, test, {**given, **rules})
    begin = time.perf_counter()
    _frames.check_partitions(partitions)
    with_chance, kept = flag("chance", chance), flag("keep", keep)
    stated = protocol_of(protocol, rules, [*given])
    found = read_source(source)
    requested = parse_under(metrics, stated)
    by_hand = given_by_hand(stated)
    warn_without_effect(found.like, requested, stated, by_hand, trained=train is not None)
    plan = Plan(
        found,
        tables_of(found, test, train, candidates),
        settled(found.like, stated, trained=train is not None),
        stated,
        requested,
        catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        candidates,
        None if exclude is None else read_items(exclude, "exclude"),
        bytes_of(closure, "closure"),
        None if baseline is None else read_source(baseline, "baseline="),
    )
    plan.check()
    job = plan.job(seed_of(seed), with_chance)
    return _evaluated(plan, job, partitions, kept, begin)


def _evaluated(
    plan: Plan, job: Job, partitions: int | None, keep: bool, begin: float
) -> SparkEvaluation:
    """Run the job, and put its result together; `begin` is when the call began."""
    spread = _spread(plan, job, partitions)
    rows = spread.mapped(job.run, job.schema())
    kept = keep and _frames.persisted(rows)
    n_parts = _frames.partitions_of(plan.of_users.frame, partitions)
    sums, of_items = _collected(rows, job, plan.closure, n_parts)
    sums = _across.with_pairs(sums, job.given["metrics"], rows)
    plan = dataclasses.replace(plan, metrics=list(job.given["metrics"]))
    plan.check_sums(sums)
    again = _again(plan, job, spread, sums)
    return SparkEvaluation(
        metrics=job.given["metrics"],
        protocol=plan.stated,
        seed=job.given["seed"],
        sums=sums,
        over_users=_over_users(plan, sums, of_items, again.known),
        again=again,
        rows=rows,
        counts={name: n for name, n in plan.counts(sums).items() if n},
        definitions=definitions_of(job.given["metrics"]),
        inputs=plan.described(sums),
        timings={"total": time.perf_counter() - begin},
        kept=kept,
        chance=job.given["chance"],
        user=str(plan.of_users.columns["user"]),
        session=plan.of_users.columns.get("session"),
    )


def _spread(plan: Plan, job: Job, partitions: int | None) -> Spread:
    """Return the rows of all tables, and how they are brought together by user."""
    kinds, users = plan.kinds(), plan.of_users.frame
    if partitions is None and job.output.kind == "factors":
        partitions = _frames.partitions_of(users, None)
    frame = _frames.together(plan.rows(kinds))
    # The places of lists; where these are equal, the order of the ids.
    kinds_of = {one.kind for one in (job.output, job.baseline) if one is not None}
    within = ("p", "i") if "lists" in kinds_of else ()
    return Spread(frame, partitions, within)


def _again(plan: Plan, job: Job, spread: Spread, sums: Sums) -> Again:
    """Return what the evaluation is made of, for values over resampled users."""
    n_catalogue = plan.n_offered()
    if n_catalogue is None and _whole.over_users(plan.metrics):
        n_catalogue = _whole.n_catalogue(sums)
    known = _whole.KnownItems(n_catalogue, job.given["popularity"])
    return Again(job, spread, known, {name: one.rows for name, one in sums.metrics.items()})


def _over_users(
    plan: Plan, sums: Sums, of_items: Any, known: _whole.KnownItems
) -> dict[str, float]:
    """Return the values of the metrics with one value for all users, by name."""
    if of_items is None:
        return {}
    columns = of_items["k"].to_numpy(), ids(of_items["i"]), of_items["x"].to_numpy()
    totals = {name: one.whole for name, one in sums.metrics.items()}
    return _whole.values(plan.metrics, plan.protocol, known, columns, totals)


def _collected(rows: Frame, job: Job, closure: int, n_parts: int | None) -> tuple[Sums, Any]:
    """Return the sums of all partitions, and a table of sums by item where metrics need some.

    What was wrong in a partition is raised. `n_parts` is the number of partitions, if it is known.
    """
    of_items = None
    if _whole.over_users(job.given["metrics"]):
        ends, of_items = _whole.collected(rows, max(1, closure // _whole.BYTES_PER_ROW))
        found = sorted(ends.select(["sums", "error"]).to_pylist(), key=str)
    else:
        ends = rows.where("sums IS NOT NULL OR error IS NOT NULL").select("sums", "error")
        found = _frames.collected(fewer(ends, joined, n_parts))
    for row in found:
        if row["error"] is not None:
            _frames.raise_named(row["error"])
    check_not_empty(len(found), len(found))
    return Sums.of_bytes(row["sums"] for row in found), of_items
