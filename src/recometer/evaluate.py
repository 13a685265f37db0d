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
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from recometer.evaluation import Evaluation
from recometer.fingerprints import Fingerprinting
from recometer.interactions import Interactions
from recometer.metrics import undefined
from recometer.metrics.registry import METRICS, Metric, parse, with_largest_gain
from recometer.protocol import Protocol
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Request, Source
from recometer.tasks import resolve_threads
from recometer.version import __version__

__all__ = ["evaluate"]

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
PROTOCOLS = {"recometer": Protocol()}


def evaluate(
    source: Source,
    test: object,
    *,
    train: object = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    **rules: Any,
) -> Evaluation:
    """Measure how well model output finds what users went on to choose.

    The whole catalogue is ranked for each user, less the user's items in train; the
    formulas are in `Evaluation.definitions` and in the documentation.

    Parameters
    ----------
    source
        What is evaluated, for instance ``rm.Factors(user_factors, item_factors)``.
    test
        What should have been recommended: an `Interactions`, or what `Interactions.of`
        takes (a SciPy sparse matrix, a data frame, a file, ...).
    train
        What must not be recommended again, likewise; None: nothing.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``.
    protocol
        The rules that the numbers depend on; ``other.protocol`` repeats an evaluation.
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
        is known, or scores none of which can be ranked because they are NaN or infinite.
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
    _check_source(source)
    requested = tuple(parse(metrics))
    settled = _protocol(protocol, rules)
    seed = _seed(seed)
    threads = resolve_threads(threads)
    test = Interactions.of(test)
    train = None if train is None else Interactions.of(train)
    if test.n_users == 0 or len(test) == 0:
        raise InputError(
            f"test is empty: {test.n_users} users, {len(test)} interactions. "
            "Hint: is the split right, and the column of users?"
        )
    requested = tuple(with_largest_gain(requested, _largest_gain(test)))
    read = time.perf_counter()

    request = Request(test, train, settled, _depth(requested), threads, progress)
    ranks = source.rank(request)
    _check_ranks(ranks, source, test)
    ranked = time.perf_counter()

    arrays = {"source": source.arrays(), "test": _arrays(test), "train": _arrays(train)}
    # Ranking keeps all processors busy, the metrics only one: the other is free to hash.
    with Fingerprinting(arrays) as fingerprinting:
        keys = ids.user_keys(test.user_ids, test.n_users) if settled.ties == "random" else None
        values, reasons = undefined.compute(ranks, requested, settled, seed, keys, threads)
        measured = time.perf_counter()
        fingerprints = fingerprinting.result()
    descriptions = {"source": source.describe(), "test": repr(test)}
    if train is not None:
        descriptions["train"] = repr(train)
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
        counts={**ranks.counts, **_duplicates(test=test, train=train)},
        definitions=_definitions(requested),
        timings={
            "reading": read - begin,
            "ranking": ranked - read,
            "metrics": measured - ranked,
            "total": time.perf_counter() - begin,
        },
        versions=_versions(),
        inputs={
            name: {"description": description, "fingerprints": fingerprints[name]}
            for name, description in descriptions.items()
        },
    )


def _check_source(source: object) -> None:
    if isinstance(source, Source):
        return
    if isinstance(source, type) and issubclass(source, Source):
        hint = f"call it with your model's output: rm.{source.__name__}(...)."
    elif isinstance(source, tuple | list):
        hint = "rm.Factors(user_factors, item_factors) takes factor matrices."
    elif isinstance(source, Callable):  # type: ignore[arg-type]
        hint = "rm.Scores(function, n_users=..., n_items=...) takes a function of user rows."
    elif getattr(source, "ndim", None) == 2:
        hint = (
            "rm.Scores(matrix) takes scores of all users and items, "
            "rm.Factors(user_factors, item_factors) factor matrices."
        )
    else:
        hint = "wrap your model's output: rm.Factors(user_factors, item_factors) or rm.Scores(...)."
    raise InputTypeError(
        f"The source to evaluate is of type {type(source).__name__}, which is none. Hint: {hint}"
    )


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


def _arrays(interactions: Interactions | None) -> dict[str, object]:
    if interactions is None:
        return {}
    names = ("indptr", "items", "values", "user_ids", "item_ids")
    return {name: getattr(interactions, name) for name in names}


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
    if judged.any() and unusable[judged].all():
        raise InputError(
            f"All {np.count_nonzero(judged):,} users have a NaN or infinite score among their "
            f"candidates ({source.describe()}), so there is nothing to measure. "
            "Hint: look for NaN and infinity in the source; nan_scores='last' ranks NaN last."
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
