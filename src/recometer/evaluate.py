"""evaluate: from model output and test to an Evaluation."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Int64, UInt32
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.fingerprints import Fingerprinting
from recometer.data.matching import in_train, relevant_rows
from recometer.errors import InputError
from recometer.evaluating.checks import (
    check_correction,
    check_cutoffs,
    check_defined,
    check_length,
    check_overlaps,
    check_users,
)
from recometer.evaluating.folds import evaluate_made, is_made
from recometer.evaluating.inputs import Inputs, read_inputs
from recometer.evaluating.lists import FoundLists, find_lists, measure_lists
from recometer.measuring import compute
from recometer.measuring.settling import leave_out
from recometer.measuring.side_data import needed_by, ranks_with
from recometer.metrics.conventions import asked_of_source
from recometer.metrics.registry import METRICS, Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings
from recometer.results.evaluation import Evaluation
from recometer.results.profiles import profiles
from recometer.sources.base import Request, Source
from recometer.version import __version__

if TYPE_CHECKING:
    from recometer.results.folds import FoldedEvaluation
    from recometer.split.result import Folds, Split

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
RANKED = ("ranks", "ratings")  # the records that come from a ranking


@overload
def evaluate(
    source: Callable[[Split], Source] | Sequence[Source],
    test: Folds | Sequence[Split],
    **options: Any,
) -> FoldedEvaluation: ...


@overload
def evaluate(
    source: Source,
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    **rules: Any,
) -> Evaluation: ...


def evaluate(
    source: Source | Callable[[Split], Source] | Sequence[Source],
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    **rules: Any,
) -> Evaluation:
    """Measure how well model output finds what users went on to choose.

    The whole catalogue is ranked for each user, less the user's items in train (and what
    `candidates` and `exclude` leave out). The formulas are in `Evaluation.definitions` and in
    the documentation.

    Parameters
    ----------
    source
        What is evaluated, for instance ``rm.Factors(user_factors, item_factors)``. For folds: a
        function that fits a model to ``split.train`` (and ``split.remainder``) and returns a
        source, or a list of sources, one per fold.
    test
        What should have been recommended: an `Interactions`, or what `Interactions.of`
        takes (a SciPy sparse matrix, a data frame, a file, ...). None where the truth comes
        with the source: ``rm.Pairs(frame, ...)``. A `Split` brings train along; of `Folds`, or a
        list of `Split`, the result has the evaluation of each in ``.folds``, and all of them
        pooled.
    train
        What must not be recommended again, likewise; None: nothing.
    candidates
        What may be recommended; None: the whole catalogue. A list of items (ids, or positions
        where the source has no ids; also the only column of a data frame) is for all users; an
        `Interactions`, or what `Interactions.of` takes, holds a set for each user (values do not
        matter), as does an array of positions [n_users, n], padded with -1; `Negatives` adds the
        items of test to such sets, and `SampledCandidates` draws others. A relevant item that is
        no candidate is a miss, and counted. Where sets per user are a sample, the values are not
        those of the whole catalogue, which the result says; see the rule `correction`.
    exclude
        A list of items that must not be recommended to anybody.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``. Under a
        convention also as its library writes them: ``"LinkPredMAP@10"``.
    protocol
        The rules that the numbers depend on; ``other.protocol`` repeats an evaluation. The name
        of a convention, such as ``"trec_eval"``, takes another library's rules and its names of
        metrics, see `recometer.conventions`.
    catalogue
        What is known of the items: a `Catalogue`, or what makes one: their number, their ids, a
        data frame, a file. Metrics of lists read their categories, features and propensities.
        Lists learn from it how many items could have been recommended: rules that need the
        number of candidates apply only where it is known. Sources that score every item know
        that, and do not read it here.
    baseline
        Lists to compare with, for metrics that do (unexpectedness@k, overlap@k, rbo@k,
        serendipity@k): another source, or an evaluation that has `lists`.
    seed
        Of whatever is random: ``ties="random"`` and ``interval="bootstrap"``.
    threads
        At most so many; None: as many as this process has processors. The result does not
        depend on it.
    progress
        Whether to show a progress bar on standard error; None: only on a terminal, and
        when the work takes a while.
    **rules
        Single rules that replace those of the protocol, for instance ``ties="random"``.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        Data that do not fit, an empty test, a cut-off below 1, users of test none of whom
        is known, scores none of which can be ranked because they are NaN or infinite, or
        metrics that the source cannot give (of the whole ranking, where lists end early; of
        ratings, where there are none), or whose side data are missing (categories, a
        baseline, ...): the message names the metric and the argument.
    InputTypeError
        An object of a kind that is not understood, or ids that cannot be matched.
    UnknownNameError
        A metric, protocol or rule that does not exist.

    Examples
    --------
    Ann already has the book and went on to choose the song; Bob has the song and chose
    the game.

    >>> import recometer as rm
    >>> source = rm.Factors(
    ...     [[1.0, 0.0], [0.0, 1.0]],
    ...     [[0.9, 0.1], [0.8, 0.2], [0.4, 0.3], [0.7, 0.4]],
    ...     user_ids=["ann", "bob"],
    ...     item_ids=["book", "film", "game", "song"],
    ... )
    >>> train = {"ann": ["book"], "bob": ["song"]}
    >>> test = {"ann": ["song"], "bob": ["game"]}
    >>> result = rm.evaluate(source, test, train=train, metrics="ndcg@2 rr")
    >>> result["rr"]
    array([0.5, 1. ])
    >>> result.mean()["rr"]
    0.75
    """
    options: dict[str, Any] = {
        "train": train,
        "candidates": candidates,
        "exclude": exclude,
        "metrics": metrics,
        "protocol": protocol,
        "catalogue": catalogue,
        "baseline": baseline,
        "seed": seed,
        "threads": threads,
        "progress": progress,
    }
    if is_made(test):
        return evaluate_made(evaluate, source, test, {**options, **rules})
    begin = time.perf_counter()
    given = read_inputs(source, test, **options, rules=rules, parameters=[*options])
    read = time.perf_counter()
    records = _rank(given)
    ranked = time.perf_counter()
    with Fingerprinting(given.arrays(), given.threads) as fingerprinting:
        measured = _measure(given, records)
        metrics_end = time.perf_counter()
        fingerprints = fingerprinting.result()
    check_defined(measured["values"], measured["reasons"])
    return Evaluation(
        **measured,
        **records.users._asdict(),
        user_ids=given.test.user_ids,
        metrics=given.metrics,
        protocol=given.stated,
        seed=given.seed,
        counts={**records.counts, **given.duplicates()},
        definitions=_definitions(given.metrics),
        timings={
            "reading": read - begin,
            "ranking": ranked - read,
            "metrics": metrics_end - ranked,
            "total": time.perf_counter() - begin,
        },
        versions=_versions(),
        inputs=given.described(fingerprints),
        inputs_kept=given.kept(),
        negative_gains=given.test.values is not None and bool((given.test.values < 0).any()),
    )


class _Records(NamedTuple):
    """What the source was asked for: only what the metrics read."""

    ranks: Ranks | None
    ratings: Ratings | None
    lists: FoundLists | None
    users: _Users
    counts: dict[str, int]
    request: Request


def _rank(given: Inputs) -> _Records:
    """Ask the source for what the metrics read, and check it."""
    rules, of_ranks, of_lists = given.protocol, given.reading(*RANKED), given.reading("lists")
    forgets = rules.unranked != "misses" or rules.unknown_items != "misses"
    catalogue = given.catalogue
    request = Request(
        given.test,
        given.train,
        asked_of_source(of_ranks, rules),
        _numbered(catalogue),
        None if rules.correction != "none" or forgets else _depth(of_ranks),
        given.threads,
        given.progress,
        given.candidates,
        given.exclude,
        given.seed,
    )
    source, test = given.source, given.test
    ratings = _ratings(source, request, given.metrics)
    ranks = None if ratings is None else ratings.ranks
    if ranks is None and (of_ranks or given.brings_truth):
        ranks = source.rank(request)
    lists = find_lists(source, given.baseline, request, of_lists) if of_lists else None
    if ranks is not None:
        ranks = leave_out(ranks, rules)
    users = _Users.of(ranks, lists, request)
    check_users(users.flags, users.n_relevant, source, test)
    counts = {} if lists is None else dict(lists.lists.counts)
    if ranks is not None:
        check_overlaps(ranks.counts, users.n_relevant, given)
        check_length(ranks, of_ranks, test)
        counts |= {**ranks.counts, **check_cutoffs(ranks, source, of_ranks)}
        check_correction(ranks, source, rules)
        ranks = ranks_with(
            ranks, needed_by(of_ranks), test=test, train=given.train, catalogue=catalogue
        )
    return _Records(ranks, ratings, lists, users, counts, request)


def _measure(given: Inputs, records: _Records) -> dict[str, Any]:
    """Compute all metrics: the fields of an `Evaluation` that hold values."""
    ranks, ratings, lists, test = records.ranks, records.ratings, records.lists, given.test
    values: dict[str, Any] = {}
    reasons: dict[str, Any] = {}
    found: dict[str, Any] = {}
    of_ranks, rules = given.reading(*RANKED), given.protocol
    if ranks is not None and of_ranks:
        keys = ids.user_keys(test.user_ids, test.n_users) if rules.ties == "random" else None
        values, reasons = compute.compute(
            ranks, of_ranks, rules, given.seed, keys, ratings, given.threads
        )
    if ratings is not None:
        found["over_rows"] = compute.compute_over_rows(ratings, given.metrics, rules)
    if lists is not None:
        truth = ranks if given.brings_truth else None
        of_lists = given.reading("lists")
        measured = measure_lists(lists, of_lists, records.request, given.catalogue, truth)
        values |= measured.values
        reasons |= measured.reasons
        found |= {"over_users": measured.over_users, "list_data": measured.data}
        found["lists"] = lists.lists
    if given.train is not None:
        found["activity"], found["popularity"] = profiles(test, given.train)
    # In the order asked for.
    names = list(map(str, given.metrics))
    found["values"] = {name: values[name] for name in names if name in values}
    found["reasons"] = {name: reasons[name] for name in names}
    return found


class _Users(NamedTuple):
    """What an Evaluation says of each user."""

    n_relevant: Int64
    n_candidates: Int64
    n_excluded: Int64
    depth: Int64
    flags: UInt32

    @classmethod
    def of(cls, ranks: Ranks | None, lists: FoundLists | None, request: Request) -> _Users:
        if ranks is not None:
            return cls(
                ranks.n_relevant, ranks.n_candidates, ranks.n_excluded, ranks.depth, ranks.flags
            )
        assert lists is not None
        test, train = request.test, request.train
        relevant = relevant_rows(test, request.protocol.relevant_from)
        if train is not None and lists.removes_train:
            relevant &= ~in_train(test, train)
        unknown = np.full(test.n_users, -1)
        n_relevant = np.diff(ragged.offsets(relevant, test.indptr))
        return cls(n_relevant, unknown, unknown, unknown, lists.lists.flags)


def _numbered(catalogue: Catalogue | None) -> int | Array | None:
    """Return what sources read of a catalogue: the ids of its items, or their number."""
    if catalogue is None:
        return None
    return catalogue.n_items if catalogue.item_ids is None else catalogue.item_ids


def _ratings(source: Source, request: Request, metrics: Iterable[Metric]) -> Ratings | None:
    """Ask for ratings where a metric reads them."""
    wanted = [metric for metric in metrics if metric.definition.record == "ratings"]
    if not wanted:
        return None
    ratings = source.ratings(request)
    if ratings is None:
        raise InputError(
            f"The metric {str(wanted[0])!r} reads predicted and true ratings, which the source "
            f"({source.describe()}) does not give. Hint: rm.Pairs(frame, score=..., rating=...)."
        )
    for metric in wanted:
        if metric.definition.reads == "relevance" and ratings.threshold is None:
            raise InputError(
                f"The metric {str(metric)!r} needs to know from which rating on an item is "
                f"relevant, and the source ({source.describe()}) does not say. Hint: "
                "rm.Pairs(..., threshold=3.5)."
            )
    return ratings


def _depth(metrics: Iterable[Metric]) -> int | None:
    depths = [metric.depth for metric in metrics]
    known = [depth for depth in depths if depth is not None]
    return max(known) if known and len(known) == len(depths) else None


def _definitions(metrics: Iterable[Metric]) -> dict[str, dict[str, str]]:
    parts = ("title", "formula", "source")
    found = {}
    for metric in metrics:
        definition = METRICS[metric.name]
        found[metric.variant] = {part: getattr(definition, part) for part in parts}
        found[metric.variant] |= metric.meanings
    return found


def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
        "instruction_set": _kernel.instruction_set(),
    }
