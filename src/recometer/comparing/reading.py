"""Models that are evaluated on as many users as it takes to tell them apart."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing.corrections import Correction, check_correction
from recometer.comparing.models import Model, check_baseline, named
from recometer.comparing.sequences import Sequences
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from recometer.evaluating.evaluator import Evaluator
from recometer.evaluating.parts import Parts
from recometer.evaluating.reading import (
    bounds_here,
    check_readable,
    reading_order,
    values_in_order,
    with_users_read,
)
from recometer.evaluating.until import Until, check_bounds
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.results.naming import names_among
from recometer.stats import ConfidenceSequence
from recometer.stats.ends import check_confidence
from recometer.stats.multiplicity import Correction as Adjusted

# Said here and on Spark, whose functions have the same names.
HINT = 'Hint: compare({"als": source, "bpr": other}, evaluator=Evaluator(test, ...)'
USUAL = {"test": "randomisation", "interval": "auto", "margin": None, "cluster": None}


def evaluated(
    models: Any,
    *,
    evaluator: Evaluator | None,
    until: str | Until | None,
    baseline: str | None,
    primary: str | Iterable[str] | None,
    correction: Correction,
    chance: bool,
    confidence: float | None,
    **options: Any,
) -> tuple[Any, Sequences | None]:
    """Evaluate sources, on all users or until enough is known; evaluations stay as they are.

    All parameters are those of `recometer.compare`.
    """
    if until is not None:
        check_options(evaluator, correction, chance, options)
    if evaluator is None:
        return models, None
    sources = _sources_of(models, evaluator)
    if until is None:
        return {name: evaluator(one) for name, one in sources.items()}, None
    level = evaluator.asked.protocol.confidence if confidence is None else confidence
    return _read(
        sources,
        evaluator,
        Until.of(until),
        primary,
        baseline=baseline,
        correction=as_adjusted(correction),
        confidence=check_confidence(level),
    )


def as_adjusted(correction: Correction) -> Adjusted:
    """Return the correction of p-values; Tukey's, which has none, was refused."""
    return "none" if correction == "tukey" else correction


def _read(
    sources: Mapping[str, object],
    evaluator: Evaluator,
    until: Until,
    primary: str | Iterable[str] | None,
    **options: Any,
) -> tuple[dict[str, Evaluation], Sequences]:
    """Read users until enough is known; return the evaluations, and what holds of them."""
    check_several(list(sources), options["baseline"])
    if evaluator.truth is None or evaluator.asked.counts_listed_users:
        raise unknown_before()
    begin = time.perf_counter()
    given = {name: evaluator.inputs(source) for name, source in sources.items()}
    first = next(iter(given.values()))
    check_readable(first)
    metrics = decisive(until, primary, first.truth.metrics, evaluator.asked.protocol)
    parts = {name: Parts(one) for name, one in given.items()}
    order = reading_order(first, list(parts.values()))
    ranges = {one: bounds_here(one, first) for one in metrics}
    followed = Followed(list(sources), ranges, len(order), until, **options)
    started = time.perf_counter()
    n_read, reached = followed.read(
        lambda name, start, stop: values_in_order(parts[name], order[start:stop], metrics)
    )
    seconds = started - begin, (time.perf_counter() - started) / len(parts)
    read, results = order[:n_read], {}
    for name, one in parts.items():
        result = one.evaluation(*seconds)
        results[name] = with_users_read(result, read, len(order), until, reached, {})
    users_read = next(iter(results.values())).users_read
    assert users_read is not None
    place = np.searchsorted(np.sort(read), read)
    names = tuple(map(str, metrics))
    return results, Sequences(users_read, until, place, options["confidence"], names)


def check_several(names: Sequence[str], baseline: str | None) -> None:
    """Refuse a single source, and a baseline that is none of them."""
    if len(names) < 2:
        raise InputError(f"A comparison needs at least two models. {HINT}).")
    check_baseline(baseline, names)


def unknown_before() -> InputError:
    """Return the error for users of whom only a source knows that they count."""
    return InputError(
        "Which users are read has to be known from test, alike for all models. Hint: "
        "Evaluator(test, ...), without users='listed'."
    )


def _sources_of(models: Any, evaluator: object) -> dict[str, Any]:
    """Return sources by the names of their models.

    InputTypeError: something else; or no evaluator.
    """
    if not isinstance(evaluator, Evaluator):
        raise InputTypeError(
            f"evaluator= is of type {type(evaluator).__name__}, expected an Evaluator. {HINT})."
        )
    return named(models, "Sources are compared by the names of their models", f"{HINT}).")


def check_options(
    evaluator: object, correction: str, chance: bool, options: Mapping[str, object]
) -> None:
    """Refuse options that do not apply to intervals that are followed."""
    if evaluator is None:
        raise InputError(
            "until= reads users of test, and what is compared are evaluations, which have read "
            f"them. {HINT}, until='decided')."
        )
    given = [name for name, usual in USUAL.items() if options[name] not in (usual, False)]
    given += ["chance"] if chance else []
    if correction == "tukey":
        given.append("correction")
    else:
        check_correction(correction, "", [], [], ())
    if given:
        raise InputError(
            f"until= follows each difference by a confidence sequence, to which {given[0]}= does "
            f"not apply. Hint: leave {given[0]}= out, or until=."
        )


def check_read(models: Iterable[Model]) -> None:
    """Refuse evaluations whose users were read until enough was known of one model."""
    for model in models:
        for run in model.runs:
            if run.users_read is not None and run.users_read.n_read < run.users_read.n_users:
                raise InputError(
                    f"{model.name} was evaluated until enough was known of it, and which users "
                    f"these are depends on what was found. {HINT}, until='decided') reads the "
                    "users that tell the models apart."
                )


class Followed:
    """Differences between models that are followed, user by user.

    Parameters
    ----------
    names
        The models.
    ranges
        The metrics that decide, with the range of each.
    n_users
        How many users there are to read.
    until, baseline, correction, confidence
        As for `recometer.compare`.
    """

    def __init__(
        self,
        names: Sequence[str],
        ranges: Mapping[Metric, tuple[float, float] | None],
        n_users: int,
        until: Until,
        *,
        baseline: str | None,
        correction: Adjusted,
        confidence: float,
    ) -> None:
        self.names, self.metrics, self.n_users = names, list(ranges), n_users
        self.until, self.correction, self.confidence = until, correction, confidence
        self.baseline = baseline
        pairs = [
            pair
            for pair in itertools.combinations(names, 2)
            if baseline is None or baseline in pair
        ]
        self.sequences = {
            (str(metric), *pair): self._sequence(check_bounds(metric, bounds))
            for metric, bounds in ranges.items()
            for pair in pairs
        }

    def _sequence(self, bounds: tuple[float, float]) -> ConfidenceSequence:
        low, high = bounds
        width = None if self.until.relative else self.until.width
        return ConfidenceSequence(
            (low - high, high - low),
            self.confidence,
            self.n_users,
            aim="any" if width is None else width,
            some_undefined=True,
        )

    def read(self, values_of: Callable[[str, int, int], Mapping[str, Float64]]) -> tuple[int, bool]:
        """Follow users until enough is known; return how many, and whether it is known.

        `values_of` returns the values of a model, by metric, of the users from one place in the
        order of reading to another.
        """
        n_read, reached = 0, False
        totals = {(str(m), name): np.zeros(2) for m in self.metrics for name in self.names}
        while n_read < self.n_users and not reached:
            stop = self.until.next_number(n_read, self.n_users)
            found = {name: values_of(name, n_read, stop) for name in self.names}
            for (metric, one, other), sequence in self.sequences.items():
                sequence.add(found[one][metric] - found[other][metric])
            for metric, name in totals:
                column = found[name][metric]
                totals[metric, name] += np.nansum(column), np.count_nonzero(~np.isnan(column))
            n_read, reached = stop, self._enough(totals)
        return n_read, reached

    def _enough(self, totals: Mapping[tuple[str, str], Float64]) -> bool:
        """Tell whether what was asked is known."""
        if self.until.width is not None:
            return all(
                one.interval.width / 2 <= self.until.width for one in self.sequences.values()
            )
        p_values = [one.p_value() for one in self.sequences.values()]
        adjusted = stats.adjust(p_values, self.correction)
        undecided = {
            key
            for key, p in zip(self.sequences, adjusted.tolist(), strict=True)
            if not p <= 1 - self.confidence
        }
        if self.baseline is not None:
            return not undecided
        best = {str(metric): self._best(metric, totals) for metric in self.metrics}
        return not any(best[metric] in pair for metric, *pair in undecided)

    def _best(self, metric: Metric, totals: Mapping[tuple[str, str], Float64]) -> str:
        sign = 1 if metric.definition.higher_is_better else -1

        def score(name: str) -> float:
            total, n = totals[str(metric), name].tolist()
            return sign * total / n if n else -np.inf

        return max(self.names, key=score)


def decisive(
    until: Until,
    primary: str | Iterable[str] | None,
    metrics: Sequence[Metric],
    protocol: Protocol,
) -> list[Metric]:
    """Return the metrics whose differences are followed."""
    if until.relative:
        raise InputError(
            f"until={until.text!r}: a difference may be 0, of which a share says nothing. Hint: "
            "'ndcg@10 ± 0.002', or 'decided'."
        )
    if not until.decided:
        return [until.metric_of(metrics, protocol)]
    known = {str(one): one for one in metrics}
    if primary is None:
        if len(known) > 1:
            raise InputError(
                "until='decided' asks which model is better by the metric that decides, and there "
                f"are several: {', '.join(known)}. Hint: primary={next(iter(known))!r}."
            )
        return list(metrics)
    names = names_among(primary, metrics, protocol)
    for name in names:
        if name not in known:
            raise UnknownNameError(
                f"The primary metric {name!r} is not evaluated. {did_you_mean(name, known)}"
            )
    return [known[name] for name in names]
