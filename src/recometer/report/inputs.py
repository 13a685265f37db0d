"""The checked inputs of a report: models, users, options and groups of users."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.comparing.compared import Compared, profile
from recometer.comparing.kinds import Options
from recometer.comparing.models import Model, Users
from recometer.metrics.registry import MetricDefinition
from recometer.results.evaluation import EvaluationRecord
from recometer.results.groups import quantiles, read_groups
from recometer.stats.ends import check_confidence
from recometer.tasks import resolve_threads

N_QUANTILES = 5  # the number of groups into which users are divided by activity or popularity
TITLES = {"activity": "the user's training items", "popularity": "popularity of the user's items"}


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """A grouping of users by the property that `title` names."""

    title: str
    names: tuple[str, ...]
    codes: Int64  # each user's group, or `recometer.results.groups.LEFT_OUT`


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """The models of a report, and the settings of their comparison."""

    models: tuple[Model, ...]
    users: Users
    comparison: Compared | None  # None for a single model
    metrics: tuple[str, ...]  # the primary metric comes first
    options: Options  # for a single model, only the confidence and the threads matter
    groups: Groups | None  # None if there is no property by which to group the users

    @property
    def first(self) -> EvaluationRecord:
        """The first evaluation, used for the properties that all evaluations share."""
        return self.models[0].first

    def definition(self, metric: str) -> MetricDefinition:
        """Return the definition of a metric in the report."""
        return self.first.known_metric(metric).definition

    def is_whole(self, metric: str) -> bool:
        """Return whether a metric has one value for all users."""
        return metric in self.first.together

    def model(self, name: str) -> Model:
        """Return the model called `name`."""
        return next(model for model in self.models if model.name == name)


def read_inputs(
    result: Compared | EvaluationRecord, name: str, groups: object, threads: int | None
) -> Inputs:
    """Read a comparison, or an evaluation as a single model called `name`.

    Raises
    ------
    InputError
        If groups do not match the users.
    """
    if isinstance(result, Compared):
        models, users, comparison = result.models, result.users, result
        # If there are several primary metrics, the report uses the first one.
        metrics = tuple(dict.fromkeys((*result.primary, *result.metrics)))
        options = result.options
        if threads is not None:
            options = dataclasses.replace(options, threads=resolve_threads(threads))
    else:
        models, comparison = (Model(name, (result,)),), None
        users = Users.of(models)
        metrics = tuple(map(str, result.metrics))
        options = Options(
            test="randomisation",
            confidence=check_confidence(result.protocol.confidence),
            margin=None,
            clusters=None,
            seed=0,
            threads=resolve_threads(threads),
        )
    return Inputs(models, users, comparison, metrics, options, groups_of(groups, models, users))


def groups_of(groups: Any, models: Sequence[Model], users: Users) -> Groups | None:
    """Return the requested groups or, by default, groups by activity (None if it is unknown)."""
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
    """Return each group's range of values as text, with few digits."""
    assert values is not None

    def text(value: float) -> str:
        return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"

    labels = []
    for code in range(int(codes.max()) + 1):
        inside = values[codes == code]
        low, high = text(inside.min()), text(inside.max())
        labels.append(low if low == high else f"{low} to {high}")
    # Groups whose ranges look the same when rounded are numbered.
    return tuple(
        f"{label} ({number + 1})" if labels.count(label) > 1 else label
        for number, label in enumerate(labels)
    )


def chance_of(inputs: Inputs, metric: str) -> float:
    """Return the expected mean of a metric for a random order, or NaN if it is unknown."""
    means = [
        np.mean(run.chance[metric][run.reasons[metric] == 0])
        for model in inputs.models
        for run in model.runs[:1]
        if metric in run.chance and (run.reasons[metric] == 0).any()
    ]
    return float(means[0]) if means else float("nan")
