"""evaluate: from model output and test to an Evaluation."""

from __future__ import annotations

import dataclasses
import numbers
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recometer import _kernel, ids
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, warn
from recometer.evaluation import Evaluation
from recometer.fingerprints import Fingerprinting
from recometer.interactions import Interactions
from recometer.metrics import corrections, undefined
from recometer.metrics.registry import METRICS, Metric, parse, with_largest_gain
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, UserFlag
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

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
PROTOCOLS = {"recometer": Protocol()}


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
        where the source has no ids) is for all users; an `Interactions`, or what
        `Interactions.of` takes, holds a set for each user (values do not matter); and
        `SampledCandidates` draws one. A relevant item that is no candidate is a miss, and
        counted. Where sets per user are a sample, the values are not those of the whole
        catalogue, which the result says; see the rule `correction`.
    exclude
        A list of items that must not be recommended to anybody.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``.
    protocol
        The rules that the numbers depend on; ``other.protocol`` repeats an evaluation.
    catalogue
        For lists: the number of items that could have been recommended, or their ids. Rules
        that need the number of candidates apply only where it is known. Sources that score
        every item know it and do not read this.
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
        ratings, where there are none).
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
    _check_source(source, test)
    requested = tuple(parse(metrics))
    settled = _protocol(protocol, rules)
    _check_input_order(source, settled)
    known_items = _catalogue(catalogue)
    seed = _seed(seed)
    threads = resolve_threads(threads)
    test = _test(source, test)
    train = None if train is None else Interactions.of(train)
    chosen = read_candidates(candidates)
    never = None if exclude is None else read_items(exclude, "exclude")
    corrections.check(requested, settled, _is_uniform(chosen))
    if test.n_users == 0 or len(test) == 0:
        raise InputError(
            f"test is empty: {test.n_users} users, {len(test)} interactions. "
            "Hint: is the split right, and the column of users?"
        )
    requested = tuple(with_largest_gain(requested, _largest_gain(test)))
    read = time.perf_counter()

    corrected = settled.correction != "none"
    depth = None if corrected else _depth(requested)
    request = Request(test, train, settled, known_items, depth, threads, progress, chosen, never)
    ratings = _ratings(source, request, requested)
    ranks = source.rank(request) if ratings is None else ratings.ranks
    _check_ranks(ranks, source, test)
    _check_length(ranks, requested, test)
    shorter = _check_cutoffs(ranks, source, requested)
    if corrected and (ranks.ends_early.any() or (ranks.pool is not None and ranks.pool.min() < 0)):
        raise InputError(
            f"correction={settled.correction!r} needs the ranks of all candidates, and the number "
            f"of items that they were drawn from. The source ({source.describe()}) does not tell."
        )
    ranked = time.perf_counter()

    arrays = {"source": source.arrays(), "test": _arrays(test), "train": _arrays(train)}
    arrays |= {"candidates": _arrays(chosen), "exclude": _arrays(never)}
    arrays["catalogue"] = {} if known_items is None else {"items": np.asarray(known_items)}
    # Ranking keeps all processors busy, the metrics only one: the other is free to hash.
    with Fingerprinting(arrays) as fingerprinting:
        keys = ids.user_keys(test.user_ids, test.n_users) if settled.ties == "random" else None
        values, reasons = undefined.compute(ranks, requested, settled, seed, keys, ratings, threads)
        over_rows = undefined.compute_over_rows(ratings, requested, settled) if ratings else {}
        measured = time.perf_counter()
        fingerprints = fingerprinting.result()
    descriptions = {"source": source.describe(), "test": repr(test)}
    for name, given in (("train", train), ("candidates", chosen), ("exclude", never)):
        if given is not None:
            descriptions[name] = repr(given)
    if known_items is not None:
        n_known = known_items if isinstance(known_items, int) else len(known_items)
        descriptions["catalogue"] = f"{n_known:,} items"
    inputs: dict[str, dict[str, Any]] = {
        name: {"description": description, "fingerprints": fingerprints[name]}
        for name, description in descriptions.items()
    }
    if ranks.pool is not None:
        inputs["candidates"]["warning"] = _warning(chosen, settled)
    return Evaluation(
        values=values,
        reasons=reasons,
        user_ids=test.user_ids,
        n_relevant=ranks.n_relevant,
        n_candidates=ranks.n_candidates,
        n_excluded=ranks.n_excluded,
        flags=ranks.flags,
        metrics=requested,
        protocol=settled,
        seed=seed,
        counts={**ranks.counts, **shorter, **_duplicates(test=test, train=train)},
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
    )


def _check_source(source: object, test: object) -> None:
    if isinstance(source, Source):
        return
    if isinstance(test, Source):
        raise InputTypeError(
            "The second argument is a source, the first is not: rm.evaluate(source, test)."
        )
    if isinstance(source, type) and issubclass(source, Source):
        hint = f"call it with your model's output: rm.{source.__name__}(...)."
    elif isinstance(source, tuple | list):
        hint = (
            "rm.Factors(user_factors, item_factors) takes factor matrices, "
            "rm.Lists(recommendations) lists, rm.Pairs(predictions) Surprise's predictions."
        )
    elif isinstance(source, dict | str) or hasattr(source, "columns"):
        hint = (
            "rm.Lists(recommendations) takes lists of recommended items, rm.Pairs(frame) scored "
            "pairs with the truth beside them."
        )
    elif isinstance(source, Callable):  # type: ignore[arg-type]
        hint = "rm.Scores(function, n_users=..., n_items=...) takes a function of user rows."
    elif getattr(source, "ndim", None) == 2:
        hint = (
            "rm.Scores(matrix) takes scores of all users and items, "
            "rm.Factors(user_factors, item_factors) factor matrices."
        )
    else:
        hint = (
            "wrap your model's output: rm.Factors(user_factors, item_factors) or rm.Scores(...); "
            "rm.Scores.from_model(model) knows fitted models of some libraries."
        )
    raise InputTypeError(
        f"What is evaluated must be a source, found {type(source).__name__}. Hint: {hint}"
    )


def _test(source: Source, test: object) -> Interactions:
    """Return what should have been recommended, which stands in one place."""
    beside = source.test()
    if test is None:
        if beside is None:
            raise InputError(
                f"There is no test, and the source ({source.describe()}) has no truth of its own. "
                "Hint: rm.evaluate(source, test); rm.Pairs(frame, relevance=...) brings its own."
            )
        return beside
    if beside is not None:
        raise InputError(
            f"test was given, but the source ({source.describe()}) brings the truth itself. Hint: "
            "leave test out, or give Pairs relevance=False, rating=False."
        )
    return Interactions.of(test)


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


def _check_cutoffs(ranks: Ranks, source: Source, metrics: Iterable[Metric]) -> dict[str, int]:
    """Refuse cut-offs above the number of given rows; count users who have fewer."""
    cutoffs = [metric.cutoff for metric in metrics if metric.cutoff is not None]
    if not ranks.any_cutoff or not cutoffs:
        return {}
    deepest, most = max(cutoffs), int(ranks.n_candidates.max(initial=0))
    if deepest > most:
        name = next(str(metric) for metric in metrics if metric.cutoff == deepest)
        raise InputError(
            f"The cut-off of {name} is above the number of rows: no user of the source "
            f"({source.describe()}) has more than {most:,}. Hint: ask for @{most} at most."
        )
    shorter = (ranks.n_candidates < deepest) & ((ranks.flags & UserFlag.KNOWN) != 0)
    return {"users_below_cutoff": int(np.count_nonzero(shorter))} if shorter.any() else {}


def _protocol(protocol: str | Protocol, rules: Mapping[str, Any]) -> Protocol:
    if isinstance(protocol, str):
        if protocol not in PROTOCOLS:
            raise UnknownNameError(
                f"There is no protocol {protocol!r}. {did_you_mean(protocol, PROTOCOLS)}"
            )
        protocol = PROTOCOLS[protocol]
    elif not isinstance(protocol, Protocol):
        raise InputTypeError(
            f"protocol={protocol!r} must be a name or a Protocol. Hint: single rules are given "
            "by name, for instance ties='random'."
        )
    names = [field.name for field in dataclasses.fields(Protocol)]
    for rule in rules:
        if rule not in names:
            known = [*(evaluate.__kwdefaults__ or ()), *names]
            raise UnknownNameError(
                f"evaluate has no parameter or rule {rule!r}. {did_you_mean(rule, known)}"
            )
    return protocol.replace(**rules)


def _check_input_order(source: Source, protocol: Protocol) -> None:
    if protocol.ties == "input" and not source.has_input_order:
        raise InputError(
            f"ties='input' keeps the order in which items were given, but {type(source).__name__} "
            "has none. Hint: ties='item' orders equal scores by item id."
        )


def _catalogue(catalogue: Any) -> int | np.ndarray[Any, np.dtype[Any]] | None:
    if catalogue is None:
        return None
    if isinstance(catalogue, numbers.Integral) and not isinstance(catalogue, bool):
        if catalogue < 1:
            raise InputError(f"catalogue={catalogue} must be the number of items, at least 1.")
        return int(catalogue)
    if isinstance(catalogue, str) or not hasattr(catalogue, "__len__"):
        raise InputTypeError(
            f"catalogue= is of type {type(catalogue).__name__}. Hint: pass the number of items, or "
            "their ids as a list, an array or a column."
        )
    return ids.encode(catalogue, "item ids of the catalogue")[1]


def _seed(seed: int) -> int:
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**63:
        raise InputError(f"seed={seed!r} must be a whole number, at least 0 and below 2**63.")
    return int(seed)


def _depth(metrics: Iterable[Metric]) -> int | None:
    depths = [metric.depth for metric in metrics]
    known = [depth for depth in depths if depth is not None]
    return max(known) if len(known) == len(depths) else None


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


def _check_ranks(ranks: Ranks, source: Source, test: Interactions) -> None:
    known = (ranks.flags & UserFlag.KNOWN) != 0
    if not known.any():
        users = range(test.n_users) if test.user_ids is None else test.user_ids.tolist()
        raise InputError(
            f"The source ({source.describe()}) knows none of the {test.n_users:,} users of test, "
            f"such as {', '.join(map(repr, users[:3]))}. "
            "Hint: give the source the ids that test has: user_ids=..."
        )
    judged = known & (ranks.n_relevant > 0)
    unusable = (ranks.flags & (UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE)) != 0
    n_judged, n_unusable = np.count_nonzero(judged), np.count_nonzero(unusable & judged)
    hint = (
        "Hint: look for NaN and infinity in the source, and for factors whose products are too "
        "large for their dtype; nan_scores='last' ranks NaN last."
    )
    if n_judged and n_unusable == n_judged:
        raise InputError(
            f"All {n_judged:,} users have a NaN or infinite score among their "
            f"candidates ({source.describe()}), so there is nothing to measure. {hint}"
        )
    if 2 * n_unusable > n_judged:
        warn(
            f"{n_unusable:,} of {n_judged:,} users have a NaN or infinite score among their "
            f"candidates and are left out of the means. {hint}"
        )


def _check_length(ranks: Ranks, metrics: Iterable[Metric], test: Interactions) -> None:
    """Refuse metrics that need more than lists give; warn of cut-offs beyond all lists."""
    early = ranks.ends_early
    if not early.any():
        return
    whole = [str(metric) for metric in metrics if metric.definition.needs_whole_ranking]
    if whole:
        user = int(np.argmax(early))
        name = user if test.user_ids is None else ids.show(test.user_ids, user)
        n, depth = ranks.n_candidates[user], ranks.depth[user]
        found = (
            f"nothing says how many items there were beyond the {depth:,} in the list of user "
            f"{name}. Hint: if the lists are complete, pass catalogue= (the number of items, or "
            "their ids)"
            if n < 0
            else f"the list of user {name} ends after {depth:,} of {n:,} items. Hint: ask for "
            "metrics with a cut-off"
        )
        raise InputError(f"{' and '.join(whole)} need the whole ranking, but {found}.")
    longest = int(ranks.depth.max())
    beyond = [m for m in metrics if m.cutoff is not None and m.cutoff > longest]
    if beyond:
        warn(
            f"{', '.join(map(str, beyond))}: the cut-off lies beyond every list, the longest of "
            f"which has {longest:,} items; the missing places are misses."
        )


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
        for name, value in metric.parameters:
            parameter = definition.parameters[name]
            meaning = parameter.choices.get(str(value), parameter.sentence)
            found[metric.variant][parameter.write(value)] = meaning
    return found


def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
        "instruction_set": _kernel.instruction_set(),
    }
