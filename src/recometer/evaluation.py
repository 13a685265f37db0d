"""evaluate: from model output and test to an Evaluation."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from recometer import _kernel
from recometer.data.fingerprints import Fingerprinting
from recometer.data.interactions import Interactions
from recometer.evaluating.chance import chance_of
from recometer.evaluating.checks import check_defined
from recometer.evaluating.folds import evaluate_made, is_made
from recometer.evaluating.inputs import Inputs, read_inputs
from recometer.evaluating.records import (
    RANKED,
    Records,
    data_of_result,
    find_records,
    measured_by,
)
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.measured import Measured
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.measuring.side_data import needed_by
from recometer.metrics.names import Metrics
from recometer.metrics.registry import METRICS, Metric
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.results.profiles import (
    USUAL_CUTOFF,
    found_by_popularity,
    profiles,
    users_of_items,
)
from recometer.sources.base import Source
from recometer.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules
    from recometer.results.folds import FoldedEvaluation
    from recometer.sources.models import Recommender
    from recometer.split.result import Folds, Split

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"


@overload
def evaluate(
    source: Callable[[Split[Any]], Source | Recommender] | Sequence[Source],
    test: Folds | Sequence[Split[Any]],
    *,
    train: None = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    **rules: Unpack[Rules],
) -> FoldedEvaluation: ...


@overload
def evaluate(
    source: Source | Recommender,
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    **rules: Unpack[Rules],
) -> Evaluation: ...


def evaluate(
    source: Source | Recommender | Callable[[Split[Any]], Source | Recommender] | Sequence[Source],
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    **rules: Unpack[Rules],
) -> Evaluation:
    """Measure how well model output finds what users went on to choose.

    The whole catalogue is ranked for each user, less the user's items in train (and what
    `candidates` and `exclude` leave out). The formulas are in `Evaluation.definitions` and in
    the documentation.

    Parameters
    ----------
    source
        What is evaluated, for instance ``rm.Factors(user_factors, item_factors)``; or a fitted
        model that `from_model` knows without more being said, such as one with a method
        ``recommend(users, k)``, which is asked for the lists of the users of test. For folds: a
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
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``, or a
        dict: ``{"ndcg": [5, 10], "recall": range(1, 11), "roc_auc": None}``. Other names of a
        metric are known: ``"MRR@10"`` is rr@10. Under a convention also as its library writes
        them: ``"LinkPredMAP@10"``.
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
    chance
        Also give the exact expected value of each metric under a random order of the same
        candidates (``result.chance``, and a column of the table): 0.91 may be no better than that.
        All candidates have to be ranked.
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

    Warns
    -----
    DataWarning
        Among others, a rule that was given and changes nothing of what is asked for, such as
        ``duplicates`` of `Factors`; those that a convention brings along are not mentioned.

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
    options = {**locals()}  # all parameters, by their names
    for name in ("source", "test", "rules"):
        del options[name]
    if is_made(test):
        return evaluate_made(evaluate, source, test, {**options, **rules})
    begin = time.perf_counter()
    given = read_inputs(source, test, **options, rules=rules, parameters=[*options])
    return _evaluated(given, begin)


def _evaluated(given: Inputs, begin: float) -> Evaluation:
    """Evaluate what was read; `begin` is when that began."""
    read = time.perf_counter()
    records = find_records(given)
    ranked = time.perf_counter()
    with Fingerprinting(given.arrays(), given.threads) as fingerprinting:
        measured = _measure(given, records)
        metrics_end = time.perf_counter()
        fingerprints = fingerprinting.result()
    check_defined(measured["values"], measured["reasons"])
    gains = given.test.values
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
        negative_gains=gains is not None and bool((gains < 0).any()),
        binary_gains=gains is None or bool(((gains == 0) | (gains == 1)).all()),
    )


def _measure(given: Inputs, records: Records) -> dict[str, Any]:
    """Compute all metrics: the fields of an `Evaluation` that hold values."""
    measured, rules = measured_by(given, records), given.protocol
    values, reasons = compute(measured.values(), given.metrics, rules, given.threads)
    found: dict[str, Any] = {"values": values, "reasons": reasons}
    if given.chance:
        found["chance"] = chance_of(records.ranks, given.metrics, rules, given.threads)
    if "ratings" in measured:
        over_rows = [metric for metric in given.metrics if metric.definition.over_rows]
        rated = measured["ratings"]
        assert isinstance(rated, RatedUsers)
        found["rated"] = together = rated.together(reasons)
        found["over_rows"] = compute_for_all(together, over_rows, rules)
    listed = measured.get("lists")
    if isinstance(listed, ListedUsers):
        over_users = [metric for metric in given.metrics if metric.definition.over_users]
        found["over_users"] = compute_for_all(listed, over_users, rules)
        found["list_data"] = data_of_result(listed.data, needed_by(over_users))
        found["lists"] = records.lists
    if given.train is not None:
        found |= _beside_train(given, given.train, measured.get("ranks"))
    return found


def _beside_train(given: Inputs, train: Interactions, ranked: Measured | None) -> dict[str, Any]:
    """Return what train says of the users, and of the items that were found."""
    users_of_item = users_of_items(train)
    activity, popularity = profiles(given.test, train, users_of_item)
    found: dict[str, Any] = {"activity": activity, "popularity": popularity}
    if isinstance(ranked, RankedUsers):
        cutoffs = (metric.cutoff or 0 for metric in given.reading(*RANKED))
        cutoff = max(cutoffs, default=0) or USUAL_CUTOFF
        how = given.protocol.ties, ranked.seed, ranked.user_keys
        found["by_popularity"] = found_by_popularity(
            ranked.ranks, given.test, train, users_of_item, cutoff, *how
        )
    return found


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
