"""The models that are compared on Spark, each with one or several evaluations."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recometer.comparing.alike import INPUTS, check_batches, differing_rules, read_allow, settled
from recometer.comparing.models import (
    Model,
    check_baseline,
    check_chance,
    check_metrics,
    named,
    pairs_of,
    with_chance,
)
from recometer.data.numbers import flag
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from recometer.evaluating.chance import knows_chance
from recometer.metrics.registry import Metric
from recometer.results.naming import names_among
from recometer.spark._frames import Frame, together
from recometer.spark.result import SparkEvaluation

Runs = SparkEvaluation | Sequence[SparkEvaluation]
Given = Mapping[str, Runs] | Sequence[Runs]
CHANCE = "chance"  # the name of a random order among the models


@dataclasses.dataclass(frozen=True, eq=False)
class Models:
    """The models that are compared."""

    runs: Sequence[Model]
    baseline: str | None
    notes: Sequence[str] = ()  # on what was allowed to differ

    @classmethod
    def of(
        cls, models: Given, baseline: str | None, chance: bool, allow: str | Iterable[str] = ()
    ) -> Models:
        """Check that the models fit to each other."""
        chance = flag("chance", chance)
        hint = "Hint: rs.compare({'als': first, 'bpr': second})."
        entries = named(models, "Models are compared by their results", hint)
        found = [_model(name, one) for name, one in entries.items()]
        if len(found) < 2 and not (found and chance):
            raise InputError(
                "compare needs two models at least. Hint: rs.compare({'als': first, ...})."
            )
        notes = _check_alike(found, read_allow(allow))
        if chance:
            first = found[0]
            knows = all(run.chance for run in first.runs)
            check_chance([one.name for one in found], first.name, knows=knows)
            runs = first.runs if first.batches else first.runs[:1]
            found.append(Model(CHANCE, runs, first.batches, by_chance=True))
        return cls(found, check_baseline(baseline, (one.name for one in found)), notes)

    @property
    def names(self) -> list[str]:
        """The names of all models, that of chance among them."""
        return [one.name for one in self.runs]

    @property
    def first(self) -> SparkEvaluation:
        """The first result of the first model."""
        return evaluations(self.runs[0])[0]

    @property
    def by(self) -> list[str]:
        """The columns that name a user, in all results."""
        return ["u"] if self.first.session is None else ["u", "s"]

    def metrics(self, metrics: str | Iterable[str] | None) -> tuple[list[str], list[str]]:
        """Return the metrics to compare, and what is said of those that are left out."""
        first = self.first
        asked = [str(one) for one in first.metrics]
        if metrics is not None:
            asked = names_among(metrics, first.metrics, first.protocol)
        for model in self.runs:
            own = list(map(str, model.first.metrics))
            for metric in asked:
                if metric not in own:
                    raise UnknownNameError(
                        f"{model.name} has no metric {metric!r}. {did_you_mean(metric, own)}"
                    )
        if not self.runs[-1].by_chance:
            return asked, []
        ranked = {str(one) for one in first.metrics if knows_chance(one)}
        lacking = [name for name in asked if name not in ranked]
        return with_chance(asked, lacking, is_baseline=self.baseline == CHANCE)

    def model_pairs(self, *, every: bool = False) -> list[tuple[Model, Model]]:
        """Return the pairs that are compared, or all, except those with a random order."""
        by_name = {model.name: model for model in self.runs if not model.by_chance}
        both = pairs_of(self.names, None if every else self.baseline)
        return [(by_name[a], by_name[b]) for a, b in both if a in by_name and b in by_name]

    def metric(self, name: str) -> Metric:
        """Return a metric by its name."""
        return next(one for one in self.first.metrics if str(one) == name)

    def pairs(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs of models that both have a value of a metric."""
        both = pairs_of(self.names, self.baseline)
        alone = self.runs[-1].by_chance and not knows_chance(self.metric(metric))
        return [pair for pair in both if not (alone and CHANCE in pair)]

    def joined(self, metrics: Sequence[str], folds: Mapping[int, int] | None = None) -> Frame:
        """Return a row per user with the values and reasons of all models in all runs.

        They are in columns by the numbers of model, run and metric: ``m0_0_1``, ``r0_0_1``. With
        `folds`, only the models that it names by their numbers, each in one of its folds.
        """
        frames: list[Frame] = []
        for at, model in enumerate(self.runs):
            if folds is None:
                frames += _frames_of(at, model, metrics)
            elif at in folds:
                one: Any = evaluations(model)[0]
                frames += _frames_of(at, Model(model.name, (one.folds[folds[at]],)), metrics)
        by = self.by
        return functools.reduce(lambda one, two: one.join(two, by, "full_outer"), frames)

    def bounds(self, name: str) -> tuple[float, float]:
        """Return the lowest and the highest possible value of a user with any of the models."""
        metric = self.metric(name)
        each = [run.bounds(metric) for model in self.runs for run in evaluations(model)]
        return min(low for low, _ in each), max(high for _, high in each)


def evaluations(model: Model) -> tuple[SparkEvaluation, ...]:
    """Return the evaluations of a model, which are those of Spark here."""
    return model.runs  # type: ignore[return-value]


def _model(name: str, given: object) -> Model:
    runs: Any = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not runs:
        raise InputError(f"{name!r} has no result. Hint: rs.compare({{{name!r}: result, ...}}).")
    for one in runs:
        if not isinstance(one, SparkEvaluation):
            raise InputTypeError(
                f"{name!r} must be a result of recometer.spark.evaluate, or a list of them, found "
                f"{type(one).__name__}. Hint: recometer.compare takes result.collect()."
            )
    check_metrics(name, runs)
    return Model(name, runs, batches=_are_batches(name, runs))


def _are_batches(name: str, runs: Sequence[SparkEvaluation]) -> bool:
    """Tell batches of users from runs with the same users; refuse runs that are neither."""
    if len(runs) == 1:
        return False
    by = ["u"] if runs[0].session is None else ["u", "s"]
    if any((run.session is None) != (runs[0].session is None) for run in runs):
        raise InputError(f"Only some runs of {name!r} were evaluated on sessions of users.")
    users = together([run.values().select(*by) for run in runs]).groupBy(*by).count()
    fewest, most = users.selectExpr("min(count)", "max(count)").collect()[0]
    if most == 1:
        return True
    if fewest < len(runs):
        raise InputError(
            f"The {len(runs)} results of {name!r} are neither of the same users (seeds) nor of "
            "users of their own (batches). Hint: evaluate all seeds on the same test data."
        )
    return False


def _check_alike(models: Sequence[Model], allow: tuple[str, ...]) -> list[str]:
    """Refuse models that were evaluated by different rules, or on different kinds of users.

    Returns notes on rules that may differ.
    """
    unknown = [name for name in allow if name in INPUTS]
    if unknown:
        raise InputError(
            f"allow={unknown[0]!r} has no effect: data on Spark have no fingerprints, and whether "
            f"{INPUTS[unknown[0]]} differ is not known. Hint: leave it out."
        )
    labelled = [
        (model.label(at), one) for model in models for at, one in enumerate(evaluations(model))
    ]
    (label, first), *others = labelled
    differences: list[tuple[str, str]] = []
    for other, one in others:
        differences += differing_rules(label, first.protocol, other, one.protocol)
        if (one.session is None) != (first.session is None):
            raise InputError(
                f"Only one of {label} and {other} was evaluated on sessions of users. Hint: "
                "evaluate both on the same test."
            )
    for model in models:
        if any(one.protocol != model.first.protocol for one in evaluations(model)):
            raise InputError(
                f"The results of {model.name!r} were evaluated by different protocols. Hint: "
                "protocol=other.protocol repeats one."
            )
    check_batches(models)
    return settled(differences, allow)


def _frames_of(number: int, model: Model, metrics: Sequence[str]) -> Iterator[Frame]:
    """Yield the values of a model: a frame for each run, or one of all batches."""
    batches = []
    for at, one in enumerate(evaluations(model)):
        run = 0 if model.batches else at
        own = [str(metric) for metric in one.metrics]
        columns = ["u"] if one.session is None else ["u", "s"]
        for place, name in enumerate(metrics):
            m, r = f"m{own.index(name)}", f"r{own.index(name)}"
            if model.by_chance:
                m = f"CASE WHEN {r} = 0 THEN c{own.index(name)} ELSE {m} END"
            columns += [f"{m} AS m{number}_{run}_{place}", f"{r} AS r{number}_{run}_{place}"]
        frame = one.values().selectExpr(*columns)
        if not model.batches:
            yield frame
        batches.append(frame)
    if model.batches:
        yield together(batches)
