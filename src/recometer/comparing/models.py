"""The models that are compared, each with one or several evaluations, on one set of users."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.data import ids
from recometer.errors import InputError, InputTypeError, UnknownNameError, brief, did_you_mean
from recometer.ranks import UserFlag, raised
from recometer.results.evaluation import EvaluationRecord
from recometer.stats.runs import mean_of_runs

HINT = 'Hint: rm.compare({"als": result, "pop": other}, baseline="pop").'


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model that is compared.

    Attributes
    ----------
    name
    runs
        The evaluations of several seeds on the same users, or of batches of users.
    batches
        Whether the runs have no user in common, because each is a batch of users.
    by_chance
        Whether it is a random order of another model's candidates.
    """

    name: str
    runs: tuple[EvaluationRecord, ...]
    batches: bool = False
    by_chance: bool = False

    @property
    def first(self) -> EvaluationRecord:
        """Return its only or first evaluation."""
        return self.runs[0]

    @property
    def n_seeds(self) -> int:
        """Return how often each user was evaluated."""
        return 1 if self.batches else len(self.runs)

    def has(self, metric: str) -> bool:
        """Return whether it was evaluated by a metric; a random order has no value of some."""
        return metric in self.first.reasons

    def once(self) -> tuple[EvaluationRecord, ...]:
        """Return the evaluations that together have every user once."""
        return self.runs if self.batches else self.runs[:1]

    def label(self, run: int) -> str:
        """Return how a message names a run."""
        if len(self.runs) == 1:
            return self.name
        return f"{self.name} ({'batch' if self.batches else 'run'} {run + 1})"


def read_models(given: Any) -> list[Model]:
    """Read models from a mapping or a sequence of evaluations, paths, or lists of either.

    Raises
    ------
    InputTypeError
        If the type is not supported.
    InputError
        If there are fewer than two models, or two with the same name.
    """
    if hasattr(given, "results") and isinstance(given.results, Mapping):  # a leaderboard
        given = given.results
    entries = named(given, "Models are compared by their evaluations", HINT)
    if len(entries) < 2:
        found = f"found one, {next(iter(entries))!r}" if entries else "found none"
        raise InputError(f"A comparison needs at least two models, {found}. {HINT}")
    return [_model(name, one) for name, one in entries.items()]


def named(given: object, what: str, hint: str) -> dict[str, Any]:
    """Return what is given for each model by the model's name; `what` begins the message.

    Raises
    ------
    InputTypeError
        If it is neither a mapping nor a sequence.
    InputError
        If two models have the same name.
    """
    if isinstance(given, Mapping):
        entries = [(str(name), one) for name, one in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        entries = [(name_of(number, one), one) for number, one in enumerate(given)]
    else:
        raise InputTypeError(f"{what}, found {type(given).__name__}. {hint}")
    names = [name for name, _ in entries]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"Two models are called {repeated!r}. {hint}")
    return dict(entries)


def check_baseline(baseline: object, names: Iterable[str]) -> str | None:
    """Return the name of the baseline; refuse one that is not one of the models.

    Raises
    ------
    InputTypeError
        If it is no name.
    UnknownNameError
        If there is no such model; the message names the most similar one.
    """
    if baseline is None:
        return None
    known = list(names)
    if not isinstance(baseline, str | int | np.integer):  # as keys of a dict are
        raise InputTypeError(
            f"baseline is the name of a model, found {brief(baseline)}. {did_you_mean('', known)}"
        )
    if str(baseline) not in known:
        raise UnknownNameError(
            f"The baseline {brief(baseline)} is not one of the models. "
            f"{did_you_mean(str(baseline), known)}"
        )
    return str(baseline)


def pairs_of(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return who is compared with whom: all with the baseline or, without one, with each other."""
    if baseline is None:
        return list(itertools.combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def by_chance(models: Sequence[Model]) -> Model:
    """Return a random order of the first model's candidates as a model.

    Raises
    ------
    InputError
        If that model was evaluated without ``chance=True``, or another model has the name.
    """
    first = models[0]
    runs = first.runs if first.batches else first.runs[:1]
    knows = all(run.chance for run in runs)
    check_chance([model.name for model in models], first.name, knows=knows)
    return Model("chance", tuple(map(_random_order, runs)), first.batches, by_chance=True)


def check_chance(names: Sequence[str], first: str, *, knows: bool) -> None:
    """Refuse a random order as a model, if there is one of its name or nothing is known of it.

    Raises
    ------
    InputError
        If one of the models has the name, or the first one does not know chance.
    """
    if "chance" in names:
        raise InputError("chance=True adds a model 'chance', but there is one. Hint: rename it.")
    if not knows:
        raise InputError(
            f"chance=True needs an evaluation that knows chance, which {first} does not. "
            "Hint: evaluate(..., chance=True)."
        )


def with_chance(
    metrics: list[str], lacking: Sequence[str], *, is_baseline: bool
) -> tuple[list[str], list[str]]:
    """Return the metrics to compare, and notes on those without a value by chance.

    Raises
    ------
    InputError
        If chance is the baseline and has a value of none.
    """
    if not lacking:
        return metrics, []
    names = ", ".join(lacking)
    if not is_baseline:
        return metrics, [f"chance is left out for {names}: a random order has no value there."]
    left = [name for name in metrics if name not in lacking]
    if not left:
        raise InputError(
            f"The baseline is chance, and a random order has no value of {names}. Hint: another "
            "baseline, or metrics of rankings, such as ndcg@10."
        )
    return left, [f"Left out: {names}. The baseline, a random order, has no value there."]


def _random_order(run: EvaluationRecord) -> EvaluationRecord:
    """Return the evaluation of a random order; users are undefined where the model's value is."""
    plain = {field.name: getattr(run, field.name) for field in dataclasses.fields(EvaluationRecord)}
    plain.pop("_intervals")
    names = [str(metric) for metric in run.metrics if str(metric) in run.chance]
    changes = {
        "values": {
            name: np.where(run.reasons[name] == 0, run.chance[name], run.values[name])
            for name in names
        },
        "reasons": {name: run.reasons[name] for name in names},
        "metrics": tuple(metric for metric in run.metrics if str(metric) in names),
        "chance": {},
        "over_users": {},
        "over_rows": {},
        **dict.fromkeys(("by_popularity", "lists", "list_data", "rated", "inputs_kept")),
    }
    return EvaluationRecord(**{**plain, **changes})


def name_of(number: int, given: Any) -> str:
    """Return the name of a model that was given without one."""
    if isinstance(given, str | os.PathLike):
        return Path(given).stem
    return f"model {number + 1}"


def _model(name: str, given: Any) -> Model:
    parts = given if isinstance(given, list | tuple) else [given]
    if not parts:
        raise InputError(f"{name!r} has no evaluation. {HINT}")
    runs = tuple(_evaluation(name, one) for one in parts)
    check_metrics(name, runs)
    return Model(name, runs, batches=_are_batches(name, runs))


def check_metrics(name: str, runs: Sequence[EvaluationRecord]) -> None:
    """Refuse runs of one model that have different metrics."""
    metrics = [set(map(str, one.metrics)) for one in runs]
    for number, found in enumerate(metrics):
        if found != metrics[0]:
            raise InputError(
                f"The runs of {name!r} have different metrics: only one of run 1 and run "
                f"{number + 1} has {min(found ^ metrics[0])}."
            )


def _evaluation(name: str, given: Any) -> EvaluationRecord:
    if isinstance(given, EvaluationRecord):
        return given
    if isinstance(given, str | os.PathLike):
        return EvaluationRecord.read(given)
    raise InputTypeError(
        f"{name!r} is of type {type(given).__name__}, and no evaluation, path of one, or list of "
        f"them. {HINT}"
    )


def _are_batches(name: str, runs: Sequence[EvaluationRecord]) -> bool:
    """Tell batches of users from runs with the same users; refuse runs that are neither."""
    if len(runs) == 1 or any(run.user_ids is None for run in runs):
        return False
    known = [run.user_ids for run in runs if run.user_ids is not None]
    _check_kinds(known, [f"{name} (run {number + 1})" for number in range(len(runs))])
    _, distinct = ids.encode(np.concatenate(known), f"user ids of {name}")
    if len(distinct) == sum(map(len, known)):
        return True
    if any(len(one) != len(distinct) for one in known):
        raise InputError(
            f"The {len(runs)} evaluations of {name!r} are neither of the same users (seeds) nor of "
            "users of their own (batches). Hint: evaluate all seeds on the same test data."
        )
    return False


def _check_kinds(known: Sequence[Array], labels: Sequence[str]) -> None:
    some = [(one, label) for one, label in zip(known, labels, strict=True) if len(one)]
    for (one, label), (other, other_label) in itertools.pairwise(some):
        if ids.kind(one) != ids.kind(other):
            raise InputTypeError(
                f"The user ids of {label} are of type {ids.kind(one)} (for instance "
                f"{ids.show(one, 0)}), those of {other_label} of type {ids.kind(other)} (for "
                f"instance {ids.show(other, 0)}). Hint: evaluate both with the same ids."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Users:
    """All users of some models, each once.

    Attributes
    ----------
    ids : [n] or None
        None if users are positions.
    n
        The number of users.
    places : mapping of str to tuple of (int64 [n_users] or None)
        For each model and run, the positions of its users among all; None if it has all of them in
        this order.
    """

    ids: Array | None
    n: int
    places: Mapping[str, tuple[Int64 | None, ...]]

    @classmethod
    def of(cls, models: Sequence[Model]) -> Users:
        """Find the users of some models.

        Raises
        ------
        InputError, InputTypeError
            If only some models have ids, ids have different types, or numbers of users without
            ids differ.
        """
        runs = [(model.label(at), run) for model in models for at, run in enumerate(model.runs)]
        label, first = runs[0]
        for other, run in runs:
            if (run.user_ids is None) != (first.user_ids is None):
                raise InputError(
                    f"Only one of {label} and {other} has user ids, so their users cannot be "
                    "matched. Hint: evaluate both with the same test data."
                )
            if first.user_ids is None and run.n_users != first.n_users:
                raise InputError(
                    f"{label} has {first.n_users:,} users and {other} {run.n_users:,}; without ids "
                    "they cannot be matched. Hint: evaluate both with the same test data."
                )
        known = [run.user_ids for _, run in runs if run.user_ids is not None]
        if all(np.array_equal(one, known[0]) for one in known):
            return cls(
                first.user_ids, first.n_users, {m.name: (None,) * len(m.runs) for m in models}
            )
        _check_kinds(known, [name for name, _ in runs])
        _, distinct = ids.encode(np.concatenate(known), "user ids of the models")
        found = {
            model.name: tuple(
                ids.match(run.user_ids, distinct, "user ids of a model") for run in model.runs
            )
            for model in models
        }
        return cls(distinct, len(distinct), found)

    def spread(self, model: Model, columns: Iterable[Array], missing: float) -> list[Array]:
        """Return a column of each run for all users; `missing` for those that it lacks."""
        found = []
        for column, place in zip(columns, self.places[model.name], strict=True):
            whole = column
            if place is not None:
                whole = np.full(self.n, missing, column.dtype)
                whole[place] = column
            found.append(whole)
        return found

    def runs(self, model: Model, metric: str) -> list[Float64]:
        """Return the values that count in a metric's mean, of each seed: float64 [n].

        All NaN where a random order has no value.
        """
        if model.by_chance and not model.has(metric):
            return [np.full(self.n, np.nan)]
        columns = (run.counted_values(metric) for run in model.runs)
        found = self.spread(model, columns, np.nan)
        if not model.batches:
            return found
        whole = np.full(self.n, np.nan)
        for column, place in zip(found, self.places[model.name], strict=True):
            whole[place] = column[place]
        return [whole]

    def values(self, model: Model, metric: str) -> Float64:
        """Return each user's mean over seeds; NaN unless it is defined for all of them."""
        return mean_of_runs(self.runs(model, metric))

    def known(self, model: Model) -> Bool:
        """Tell whom every run of a model knows: bool [n].

        Who was not evaluated is no user whom it lacks. A run whose flags know nobody says nothing.
        """
        unknown = []
        for run in model.runs:
            known = raised(run.flags, UserFlag.KNOWN)
            unknown.append(~known if known.any() else np.zeros(len(known), bool))
        found: Bool = ~np.logical_or.reduce(self.spread(model, unknown, False))
        return found

    def show(self, position: int) -> str:
        """Return a user as one would type it."""
        return str(position) if self.ids is None else ids.show(self.ids, position)

    def id(self, position: int) -> Any:
        """Return the id of a user, or the position."""
        return position if self.ids is None else self.ids[position : position + 1].tolist()[0]
