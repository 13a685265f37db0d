"""evaluate: from model output and test to an Evaluation."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ids, ragged
from recometer.arguments import (
    baseline_of,
    catalogue_of,
    check_source,
    protocol_of,
    seed_of,
    test_of,
    with_order,
)
from recometer.catalogue import Catalogue
from recometer.checks import (
    check_correction,
    check_cutoffs,
    check_defined,
    check_length,
    check_users,
)
from recometer.errors import InputError
from recometer.evaluate_lists import ListValues, find_lists, measure_lists
from recometer.evaluation import Evaluation
from recometer.fingerprints import Fingerprinting
from recometer.interactions import Interactions
from recometer.metrics import corrections, undefined
from recometer.metrics.conventions import asked_of_source, parse_under
from recometer.metrics.registry import METRICS, Metric, with_largest_gain
from recometer.metrics.settling import leave_out
from recometer.metrics.undefined import rules_of
from recometer.profiles import profiles
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, TopLists
from recometer.side_data import check_side_data, in_train, needed_by, ranks_with
from recometer.sources._align import relevant_rows
from recometer.sources.base import Request, Source
from recometer.sources.candidates import (
    Candidates,
    Items,
    SampledCandidates,
    read_candidates,
    read_items,
)
from recometer.tasks import resolve_threads
from recometer.version import __version__

__all__ = ["evaluate"]

KEPT_BYTES = 2**28  # of inputs that a result holds on to
DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"


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
) -> Evaluation:
    """Measure how well model output finds what users went on to choose.

    The whole catalogue is ranked for each user, less the user's items in train (and what
    `candidates` and `exclude` leave out). The formulas are in `Evaluation.definitions` and in
    the documentation.

    Parameters
    ----------
    source
        What is evaluated, for instance ``rm.Factors(user_factors, item_factors)``.
    test
        What should have been recommended: an `Interactions`, or what `Interactions.of`
        takes (a SciPy sparse matrix, a data frame, a file, ...). None where the truth comes
        with the source: ``rm.Pairs(frame, ...)``.
    train
        What must not be recommended again, likewise; None: nothing.
    candidates
        What may be recommended; None: the whole catalogue. A list of items (ids, or positions
        where the source has no ids; also the only column of a data frame) is for all users; an
        `Interactions`, or what `Interactions.of` takes, holds a set for each user (values do not
        matter); and `SampledCandidates` draws one. A relevant item that is no candidate is a
        miss, and counted. Where sets per user are a sample, the values are not those of the
        whole catalogue, which the result says; see the rule `correction`.
    exclude
        A list of items that must not be recommended to anybody.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``.
    protocol
        The rules that the numbers depend on; ``other.protocol`` repeats an evaluation.
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
    begin = time.perf_counter()
    check_source(source, test)
    repeatable = {"candidates": candidates, "exclude": exclude, "baseline": baseline}
    stated = protocol_of(protocol, rules, [*(evaluate.__kwdefaults__ or ())])
    requested = tuple(parse_under(metrics, stated))
    settled = with_order(source, stated)
    known_items = catalogue_of(catalogue)
    other = baseline_of(baseline)
    seed = seed_of(seed)
    threads = resolve_threads(threads)
    repeatable |= {"source": source, "test": test, "catalogue": known_items}
    test = test_of(source, test)
    train = None if train is None else Interactions.of(train)
    chosen = read_candidates(candidates)
    never = None if exclude is None else read_items(exclude, "exclude")
    corrections.check(requested, settled, _is_uniform(chosen))
    if test.n_users == 0 or len(test) == 0:
        raise InputError(
            f"test is empty: {test.n_users} users, {len(test)} interactions. "
            "Hint: is the split right, and the column of users?"
        )
    given_test = test
    listed = source.listed_users()
    if listed is not None and any(rules_of(one, settled).users == "listed" for one in requested):
        test = test.with_users(listed)
    requested = tuple(with_largest_gain(requested, _largest_gain(test)))
    of_lists = [metric for metric in requested if metric.definition.record == "lists"]
    of_ranks = [metric for metric in requested if metric.definition.record != "lists"]
    check_side_data(needed_by(requested), train=train, baseline=other, catalogue=known_items)
    read = time.perf_counter()

    asked = asked_of_source(of_ranks, settled)
    forgets = settled.unranked != "misses" or settled.unknown_items != "misses"
    whole = settled.correction != "none" or forgets
    request = Request(
        test,
        train,
        asked,
        _numbered(known_items),
        None if whole else _depth(of_ranks),
        threads,
        progress,
        chosen,
        never,
        seed,
    )
    ratings = _ratings(source, request, requested)
    ranks = None if ratings is None else ratings.ranks
    own_truth = source.test() is not None
    if ranks is None and (of_ranks or own_truth):
        ranks = source.rank(request)
    found = find_lists(source, other, request, of_lists) if of_lists else None
    if ranks is not None:
        ranks = leave_out(ranks, settled)
    users = _Users.of(ranks, None if found is None else found.lists, request)
    check_users(users.flags, users.n_relevant, source, test)
    counts = {} if found is None else dict(found.lists.counts)
    if ranks is not None:
        check_length(ranks, of_ranks, test)
        counts |= {**ranks.counts, **check_cutoffs(ranks, source, of_ranks)}
        check_correction(ranks, source, settled)
        needed = needed_by(of_ranks)
        ranks = ranks_with(ranks, needed, test=test, train=train, catalogue=known_items)
    ranked = time.perf_counter()

    arrays = {"source": source.arrays(), "test": _arrays(given_test), "train": _arrays(train)}
    arrays |= {"candidates": _arrays(chosen), "exclude": _arrays(never)}
    arrays["catalogue"] = {} if known_items is None else known_items.arrays()
    if isinstance(other, Evaluation):
        arrays["baseline"] = {} if other.lists is None else {"lists": other.lists.items}
    elif other is not None:
        arrays["baseline"] = other.arrays()
    values: dict[str, Any] = {}
    reasons: dict[str, Any] = {}
    of_list_metrics: ListValues | None = None
    # Ranking keeps all processors busy, the metrics only one: the other is free to hash.
    with Fingerprinting(arrays) as fingerprinting:
        if ranks is not None and of_ranks:
            keys = ids.user_keys(test.user_ids, test.n_users) if settled.ties == "random" else None
            values, reasons = undefined.compute(
                ranks, of_ranks, settled, seed, keys, ratings, threads
            )
        over_rows = undefined.compute_over_rows(ratings, requested, settled) if ratings else {}
        if found is not None:
            truth = ranks if own_truth else None
            of_list_metrics = measure_lists(found, of_lists, request, known_items, truth)
            values |= of_list_metrics.values
            reasons |= of_list_metrics.reasons
        activity, popularity = (None, None) if train is None else profiles(test, train)
        measured = time.perf_counter()
        fingerprints = fingerprinting.result()
    check_defined(values, reasons)
    descriptions = {"source": source.describe(), "test": repr(given_test)}
    for name, given in (("train", train), ("candidates", chosen), ("exclude", never)):
        if given is not None:
            descriptions[name] = repr(given)
    if known_items is not None:
        descriptions["catalogue"] = known_items.describe()
    if isinstance(other, Evaluation):
        descriptions["baseline"] = other.inputs["source"]["description"]
    elif other is not None:
        descriptions["baseline"] = other.describe()
    names = list(map(str, requested))
    inputs: dict[str, dict[str, Any]] = {
        name: {"description": description, "fingerprints": fingerprints[name]}
        for name, description in descriptions.items()
    }
    if _is_uniform(chosen) is not None:
        inputs["candidates"]["warning"] = _warning(chosen, settled)
    return Evaluation(
        values={name: values[name] for name in names if name in values},
        reasons={name: reasons[name] for name in names},
        user_ids=test.user_ids,
        **users._asdict(),
        metrics=requested,
        # As stated: a rule that the source changed would look as if it replaced the metrics' own.
        protocol=stated,
        seed=seed,
        counts={**counts, **_duplicates(test=test, train=train)},
        definitions=_definitions(requested),
        timings={
            "reading": read - begin,
            "ranking": ranked - read,
            "metrics": measured - ranked,
            "total": time.perf_counter() - begin,
        },
        versions=_versions(),
        inputs=inputs,
        over_rows=over_rows,
        activity=activity,
        popularity=popularity,
        over_users={} if of_list_metrics is None else of_list_metrics.over_users,
        lists=None if found is None else found.lists,
        list_data=None if of_list_metrics is None else of_list_metrics.data,
        inputs_kept=_kept(repeatable, given_test, train),
    )


class _Users(NamedTuple):
    """What an Evaluation says of each user."""

    n_relevant: npt.NDArray[np.int64]
    n_candidates: npt.NDArray[np.int64]
    n_excluded: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, ranks: Ranks | None, lists: TopLists | None, request: Request) -> _Users:
        if ranks is not None:
            return cls(
                ranks.n_relevant, ranks.n_candidates, ranks.n_excluded, ranks.depth, ranks.flags
            )
        assert lists is not None
        test, train = request.test, request.train
        relevant = relevant_rows(test, request.protocol.relevant_from)
        if train is not None:
            relevant &= ~in_train(test, train)
        unknown = np.full(test.n_users, -1)
        n_relevant = np.diff(ragged.offsets(relevant, test.indptr))
        return cls(n_relevant, unknown, unknown, unknown, lists.flags)


def _numbered(catalogue: Catalogue | None) -> int | npt.NDArray[Any] | None:
    """Return what sources read of a catalogue: the ids of its items, or their number."""
    if catalogue is None:
        return None
    return catalogue.n_items if catalogue.item_ids is None else catalogue.item_ids


def _kept(
    given: dict[str, Any], test: Interactions, train: Interactions | None
) -> dict[str, Any] | None:
    """Return what repeats the evaluation, unless that would hold on to much memory."""
    sources = [one for one in (given["source"], given["baseline"]) if isinstance(one, Source)]
    held = [one.held_bytes() for one in sources]
    held += [_n_bytes(array) for data in (test, train) for array in _arrays(data).values()]
    if None in held or sum(filter(None, held)) > KEPT_BYTES:
        return None
    # A source that brings the truth brings it again.
    return {**given, "test": None if given["test"] is None else test, "train": train}


def _n_bytes(array: Any) -> int:
    return 0 if array is None else int(array.nbytes)


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


def _largest_gain(test: Interactions) -> float:
    """Return the largest value of test; 1 where there is none above 0."""
    if test.values is None:
        return 1.0
    usable = test.values[np.isfinite(test.values) & (test.values > 0)]
    return float(usable.max(initial=0)) or 1.0


def _is_uniform(candidates: Candidates | None) -> bool | None:
    """Return whether users have uniformly drawn candidates; None: they have no sets at all."""
    if isinstance(candidates, SampledCandidates):
        return candidates.by == "uniform"
    return True if isinstance(candidates, Interactions) else None


def _warning(candidates: Candidates | None, protocol: Protocol) -> str:
    """Say what values of candidate sets are worth."""
    if protocol.correction != "none":
        return (
            "The values are estimates of those of the whole catalogue, from the ranks among "
            f"sampled candidates (correction={protocol.correction!r}). Without candidates= they "
            "would be exact."
        )
    sampled = "these are" if isinstance(candidates, SampledCandidates) else "if these are"
    return (
        f"Ranked among candidates of each user, not the whole catalogue: {sampled} a sample, the "
        "values are too high, and may put systems in another order than the whole catalogue does "
        "(Krichene & Rendle 2020). Leave candidates= out, or see correction=."
    )


def _arrays(data: Candidates | None) -> dict[str, object]:
    if isinstance(data, Items):
        return {"items": data.ids}
    if not isinstance(data, Interactions):
        return {}
    names = ("indptr", "items", "values", "user_ids", "item_ids")
    return {name: getattr(data, name) for name in names}


def _duplicates(**data: Interactions | None) -> dict[str, int]:
    return {
        f"{name}_duplicates": given.duplicates
        for name, given in data.items()
        if given is not None and given.duplicates
    }


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
