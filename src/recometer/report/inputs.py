"""The checked inputs of a report: models, users, options and groups of users."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.comparing.changes import profile
from recometer.comparing.compared import Compared
from recometer.comparing.kinds import Options
from recometer.comparing.models import Model, Users
from recometer.errors import InputTypeError
from recometer.metrics.registry import MetricDefinition
from recometer.results.evaluation import EvaluationRecord
from recometer.results.groups import LEFT_OUT, quantiles, read_groups
from recometer.stats.ends import check_confidence
from recometer.tasks import resolve_threads

N_QUANTILES = 5  # number of groups by activity, and by popularity
TITLES = {
    "activity": "the user's training items",
    "popularity": "popularity of the user's items",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Groups of users.

    Attributes
    ----------
    title
        The property by which users are grouped.
    names
    codes : int64 [n_users]
        `LEFT_OUT` for users without a group.
    """

    title: str
    names: tuple[str, ...]
    codes: Int64


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """The models of a report, and how they were compared.

    Attributes
    ----------
    models
        The models, in the order given.
    users
        All users of the models.
    comparison
        The comparison, or None for a single model.
    metrics
        The metrics, the primary metric first.
    options
        The options of the comparison; only confidence and threads are read.
    groups
        The groups of users, or None if there is no property to group them by.
    """

    models: tuple[Model, ...]
    users: Users
    comparison: Compared | None
    metrics: tuple[str, ...]
    options: Options
    groups: Groups | None

    @property
    def first(self) -> EvaluationRecord:
        """The first evaluation, for properties that all evaluations share."""
        return self.models[0].first

    def definition(self, metric: str) -> MetricDefinition:
        """Return the definition of a metric."""
        return self.first.known_metric(metric).definition

    def is_whole(self, metric: str) -> bool:
        """Return whether a metric has one value for all users."""
        return metric in self.first.together

    def model(self, name: str) -> Model:
        """Return a model by its name."""
        return next(model for model in self.models if model.name == name)

    def columns(self, metric: str) -> list[Float64]:
        """Return the users' values for each model, with NaN where they do not count."""
        return [self.users.values(model, metric) for model in self.models]


def read_inputs(of: object, name: str, groups: object, threads: int | None) -> Inputs:
    """Read a comparison, or an evaluation as one model of this name.

    Raises
    ------
    InputTypeError
        If it is anything else.
    InputError
        If groups do not match the users.
    """
    if isinstance(of, Compared):
        models, users, comparison = of.models, of.users, of
        # With several primary metrics, the report uses the first.
        metrics = tuple(dict.fromkeys((*of.primary, *of.metrics)))
        options = of.options
        if threads is not None:
            options = dataclasses.replace(options, threads=resolve_threads(threads))
    elif isinstance(of, EvaluationRecord):
        models, comparison = (Model(name, (of,)),), None
        users = Users.of(models)
        metrics = tuple(map(str, of.metrics))
        options = _options_of(of, threads)
    else:
        raise InputTypeError(
            f"A report is made of a comparison or an evaluation, found {type(of).__name__}. Hint: "
            "rm.compare(results).report('report.html')."
        )
    return Inputs(models, users, comparison, metrics, options, groups_of(groups, models, users))


def _options_of(result: EvaluationRecord, threads: int | None) -> Options:
    return Options(
        test="randomisation",
        confidence=check_confidence(result.protocol.confidence),
        margin=None,
        clusters=None,
        seed=0,
        threads=resolve_threads(threads),
    )


def groups_of(groups: Any, models: Sequence[Model], users: Users) -> Groups | None:
    """Return the requested groups, or groups by activity if train is known."""
    name = "activity" if groups is None else groups
    if isinstance(name, str) and name in TITLES:
        values = profile(name, models, users)
        if groups is None and (values is None or np.isnan(values).all()):
            return None
        codes = quantiles(name, values, N_QUANTILES)[0]
        return Groups(TITLES[name], _ranges(values, codes), codes)
    codes, names = read_groups(groups, users.ids, users.n, None, None)
    return Groups("group of users", tuple(names), codes)


def _ranges(values: Float64 | None, codes: Int64) -> tuple[str, ...]:
    """Return the range of each group, with few digits."""
    assert values is not None

    def text(value: float) -> str:
        return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"

    found = []
    for code in range(int(codes.max()) + 1):
        inside = values[codes == code]
        low, high = text(inside.min()), text(inside.max())
        found.append(low if low == high else f"{low} to {high}")
    # Groups whose ranges look the same with few digits are numbered.
    return tuple(
        f"{one} ({at + 1})" if found.count(one) > 1 else one for at, one in enumerate(found)
    )


def chance_of(given: Inputs, metric: str) -> float:
    """Return the mean of a random order; NaN if it is unknown."""
    means = [
        np.mean(run.chance[metric][run.reasons[metric] == 0])
        for model in given.models
        for run in model.runs[:1]
        if metric in run.chance and (run.reasons[metric] == 0).any()
    ]
    return float(means[0]) if means else float("nan")


def as_mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return a mapping by model, or raise an error for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputTypeError(
            f"{name}= is of type {type(value).__name__}, expected a mapping by the model's name. "
            f"Hint: {name}={{'als': source}}."
        )
    return value


__all__ = ["LEFT_OUT", "Groups", "Inputs", "as_mapping", "chance_of", "read_inputs"]
