"""The models to compare, their users, and checks for differences that rule out a comparison."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.data import ids
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    argument_text,
    did_you_mean,
    python_or_command,
    quantity,
)
from recometer.protocol import Protocol
from recometer.ranks import UserFlag
from recometer.results.evaluation import EvaluationRecord, fingerprints
from recometer.stats.runs import mean_of_runs


def _hint() -> str:
    call = python_or_command(
        'rm.compare({"als": result, "pop": other}, baseline="pop").',
        "recometer compare als.parquet pop.parquet --baseline pop.",
    )
    return f"Hint: {call}"


def on_unpaired() -> str:
    """Return a sentence that says how to compare groups of different users."""
    option = python_or_command("paired=False", "--unpaired")
    return f"Groups of different users, as in an A/B test, are compared with {option}."


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model to compare."""

    name: str
    runs: tuple[EvaluationRecord, ...]  # one evaluation, or one per seed, all on the same users
    by_chance: bool = False  # whether it is a random order of another model's candidates

    @property
    def first(self) -> EvaluationRecord:
        """Return the first evaluation, or the only one."""
        return self.runs[0]

    def has_metric(self, metric: str) -> bool:
        """Return whether the model has values for a metric; a random order lacks some metrics."""
        return metric in self.first.reasons

    def label(self, run: int) -> str:
        """Return the name that messages use for a run."""
        return self.name if len(self.runs) == 1 else f"{self.name} (run {run + 1})"


def read_models(models: Any) -> list[Model]:
    """Read models from a mapping or a sequence of evaluations, paths, or lists of these."""
    if hasattr(models, "results") and isinstance(models.results, Mapping):  # a leaderboard
        models = models.results
    entries = entries_by_name(models, "Models must be passed as evaluations", _hint)
    if len(entries) < 2:
        number = f"found one, {next(iter(entries))!r}" if entries else "found none"
        raise InputError(f"A comparison needs at least two models, {number}. {_hint()}")
    return [_model(name, evaluations) for name, evaluations in entries.items()]


def entries_by_name(argument: object, requirement: str, hint: Callable[[], str]) -> dict[str, Any]:
    """Return the entries of a mapping or a sequence, keyed by model name.

    For any other object, an error is raised whose message begins with `requirement`.
    """
    if isinstance(argument, Mapping):
        entries = [(str(name), entry) for name, entry in argument.items()]
    elif isinstance(argument, Sequence) and not isinstance(argument, str):
        entries = [
            (Path(entry).stem if isinstance(entry, str | os.PathLike) else f"model {number}", entry)
            for number, entry in enumerate(argument, start=1)
        ]
    else:
        raise InputTypeError(f"{requirement}, found {type(argument).__name__}. {hint()}")
    names = [name for name, _ in entries]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"Two models are called {repeated!r}. {hint()}")
    return dict(entries)


def by_chance(models: Sequence[Model]) -> Model:
    """Return a model that stands for a random order of the first model's candidates."""
    name, run = models[0].name, models[0].first
    if any(model.name == "chance" for model in models):
        raise InputError(
            f"{argument_text('chance', True)} adds a model 'chance', but another model is called "
            "that. Hint: rename it."
        )
    if not run.chance:
        raise InputError(
            f"{argument_text('chance', True)} needs the values of a random order, which {name} "
            "does not contain. Hint: "
            f"{python_or_command('evaluate(..., chance=True)', 'recometer evaluate --chance')}."
        )
    # The metrics of a random order are undefined for the same users as the model's metrics.
    names = [str(metric) for metric in run.metrics if str(metric) in run.chance]
    fields = [field.name for field in dataclasses.fields(EvaluationRecord) if field.init]
    arguments = {name: getattr(run, name) for name in fields} | {
        "values": {
            name: np.where(run.reasons[name] == 0, run.chance[name], run.values[name])
            for name in names
        },
        "reasons": {name: run.reasons[name] for name in names},
        "metrics": tuple(metric for metric in run.metrics if str(metric) in names),
        **{name: {} for name in ("chance", "over_users", "over_rows")},
        **dict.fromkeys(("lists", "list_data", "rated", "inputs_kept")),
    }
    return Model("chance", (EvaluationRecord(**arguments),), by_chance=True)


def _model(name: str, evaluations: Any) -> Model:
    parts = evaluations if isinstance(evaluations, list | tuple) else [evaluations]
    if not parts:
        raise InputError(f"{name!r} has no evaluation. {_hint()}")
    runs = tuple(_evaluation(name, part) for part in parts)
    if len(runs) > 1:
        _check_seeds(name, runs)
    return Model(name, runs)


def _evaluation(name: str, result: Any) -> EvaluationRecord:
    if isinstance(result, EvaluationRecord):
        return result
    if isinstance(result, str | os.PathLike):
        return EvaluationRecord.read(result)
    raise InputTypeError(
        f"{name!r} is of type {type(result).__name__}, expected an evaluation, the path of an "
        f"evaluation, or a list of evaluations. {_hint()}"
    )


def _check_seeds(name: str, runs: Sequence[EvaluationRecord]) -> None:
    """Raise an error if a model's seeds were evaluated with different metrics or users."""
    metrics = [set(map(str, run.metrics)) for run in runs]
    for number, names in enumerate(metrics, start=1):
        if names != metrics[0]:
            raise InputError(
                f"The runs of {name!r} have different metrics: only one of run 1 and run "
                f"{number} has {min(names ^ metrics[0])}."
            )
    user_ids = [run.user_ids for run in runs if run.user_ids is not None]
    if all(np.array_equal(own, user_ids[0]) for own in user_ids):
        return
    _check_kinds(user_ids, [f"{name} (run {number + 1})" for number in range(len(user_ids))])
    _, distinct = ids.encode(np.concatenate(user_ids), f"user ids of {name}")
    if any(len(own) != len(distinct) for own in user_ids):
        raise InputError(
            f"The {len(runs)} evaluations of {name!r} have different users. Hint: evaluate all "
            "seeds on the same test data; rm.Evaluator(...).stream() evaluates batches of users."
        )


def _check_kinds(user_ids: Sequence[Array], labels: Sequence[str]) -> None:
    nonempty = [(own, label) for own, label in zip(user_ids, labels, strict=True) if len(own)]
    for (own, label), (other, other_label) in itertools.pairwise(nonempty):
        if ids.kind(own) != ids.kind(other):
            raise InputTypeError(
                f"The user ids of {label} are of type {ids.kind(own)} (for instance "
                f"{ids.show(own, 0)}), those of {other_label} of type {ids.kind(other)} (for "
                f"instance {ids.show(other, 0)}). Hint: evaluate both with the same ids."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Users:
    """All users of several models, without duplicates."""

    ids: Array | None  # None if users are identified by position
    n: int
    # For each model, the positions of each run's users among all users: int64 [n_users], or None if
    # the run has all users in this order.
    places: Mapping[str, tuple[Int64 | None, ...]]

    @classmethod
    def of(cls, models: Sequence[Model], *, paired: bool = True) -> Users:
        """Find the users of several models.

        If users are not paired and have no ids, the models are assumed to share no users.
        """
        runs = [(m.label(number), run) for m in models for number, run in enumerate(m.runs)]
        label, first = runs[0]
        if not paired and any(run.user_ids is None for _, run in runs):
            ends = np.cumsum([0, *(run.n_users for _, run in runs)])
            own = map(np.arange, ends, ends[1:])  # each model has a single run
            positions = {m.name: (place,) for m, place in zip(models, own, strict=True)}
            return cls(None, int(ends[-1]), positions)
        for other, run in runs:
            if (run.user_ids is None) != (first.user_ids is None):
                raise InputError(
                    f"Only one of {label} and {other} has user ids, so their users cannot be "
                    "matched. Hint: evaluate both with the same test data."
                )
            if first.user_ids is None and run.n_users != first.n_users:
                raise InputError(
                    f"{label} has {first.n_users:,} users and {other} {run.n_users:,}; without ids "
                    "they cannot be matched. Hint: evaluate both with the same test data. "
                    f"{on_unpaired()}"
                )
        user_ids = [run.user_ids for _, run in runs if run.user_ids is not None]
        if all(np.array_equal(own_ids, user_ids[0]) for own_ids in user_ids):
            return cls(
                first.user_ids, first.n_users, {m.name: (None,) * len(m.runs) for m in models}
            )
        _check_kinds(user_ids, [name for name, _ in runs])
        _, distinct = ids.encode(np.concatenate(user_ids), "user ids of the models")
        places = {
            model.name: tuple(
                ids.match(run.user_ids, distinct, "user ids of a model") for run in model.runs
            )
            for model in models
        }
        return cls(distinct, len(distinct), places)

    def spread(self, model: Model, columns: Iterable[Array], missing: float) -> list[Array]:
        """Return each run's column, extended to all users: those without a value get `missing`."""
        spread = []
        for column, place in zip(columns, self.places[model.name], strict=True):
            all_users = column
            if place is not None:
                all_users = np.full(self.n, missing, column.dtype)
                all_users[place] = column
            spread.append(all_users)
        return spread

    def runs(self, model: Model, metric: str) -> list[Float64]:
        """Return, for each seed, the values that count towards a metric's mean (float64 [n]).

        All are NaN for a random order that lacks the metric.
        """
        if model.by_chance and not model.has_metric(metric):
            return [np.full(self.n, np.nan)]
        columns = (run.counted_values(metric) for run in model.runs)
        return self.spread(model, columns, np.nan)

    def values(self, model: Model, metric: str) -> Float64:
        """Return each user's mean over seeds; NaN unless all seeds have a value."""
        return mean_of_runs(self.runs(model, metric))

    def known_to(self, model: Model) -> Bool:
        """Return which users are known to every run of a model: bool [n].

        Users who were not evaluated count as known, as do all users of a run without flags.
        """
        flagged = [(run.flags & np.uint32(UserFlag.KNOWN)) != 0 for run in model.runs]
        unknown = [~flags & flags.any() for flags in flagged]
        known: Bool = ~np.logical_or.reduce(self.spread(model, unknown, False))
        return known

    def show(self, position: int) -> str:
        """Return the id of a user for messages, as a person would type it."""
        return str(position) if self.ids is None else ids.show(self.ids, position)

    def id(self, position: int) -> Any:
        """Return the id of a user, or the user's position if there are no ids."""
        return position if self.ids is None else self.ids[position : position + 1].tolist()[0]


INPUTS = {
    "test": "test data",
    "train": "training data",
    "candidates": "candidates",
    "exclude": "excluded items",
}
RULES = [name for name, declared in Protocol.declared.items() if declared.step is not None]
MAY_DIFFER = (*INPUTS, "protocol", *RULES)
"""The names that `allow` accepts."""


def read_allow(allow: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the inputs and rules that may differ."""
    texts = [allow] if isinstance(allow, str) or not isinstance(allow, Iterable) else allow
    names = [name for text in texts for name in str(text).replace(",", " ").split()]
    for name in names:
        if name not in MAY_DIFFER:
            raise UnknownNameError(
                f"There is no input or rule {name!r} that may differ. "
                f"{did_you_mean(name, MAY_DIFFER)}"
            )
    return tuple(dict.fromkeys(names))


def check_comparable(
    models: Sequence[Model], users: Users, allow: tuple[str, ...], *, paired: bool = True
) -> list[str]:
    """Raise InputError for differences not named in `allow`; return notes on allowed ones."""
    refused: dict[str, str] = {}
    allowed: dict[str, str] = {}
    first, *other_runs = (
        (model.label(number), run, users.places[model.name][number])
        for model in models
        for number, run in enumerate(model.runs)
    )
    for other in other_runs:
        for name, reason in _differences(first, other, users, paired):
            by_rule = name in RULES and "protocol" in allow
            (allowed if name in allow or by_rule else refused).setdefault(name, reason)
    if refused:
        reason, *further = refused.values()
        more = f" {len(further)} more: {' '.join(further)}" if further else ""
        names = " ".join(refused)
        n_each = sum(model.first.n_users for model in models)
        unpaired = f" {on_unpaired()}" if "test" in refused and users.n == n_each else ""
        raise InputError(
            f"{reason}{more} Hint: evaluate both the same way; or, if the difference is intended, "
            f"{argument_text('allow', names)} compares them anyway.{unpaired}"
        )
    notes = [f"Allowed: {reason}" for reason in allowed.values()]
    unused = [
        n for n in allow if n not in allowed and not (n == "protocol" and {*RULES} & {*allowed})
    ]
    if unused:
        notes.append(
            f"allow contains {', '.join(unused)}, but the models do not differ in this respect."
        )
    return notes


Run = tuple[str, EvaluationRecord, Int64 | None]
"""What messages call an evaluation, the evaluation, and the positions of its users in `Users`."""


def _differences(run: Run, other_run: Run, users: Users, paired: bool) -> Iterator[tuple[str, str]]:
    """Yield each input or rule in which two evaluations differ, with a sentence that says how."""
    (first, result, _), (second, other, _) = run, other_run
    inputs = False
    for name, noun in INPUTS.items():
        found_in = fingerprints(result, name), fingerprints(other, name)
        if not paired:  # different users have different data, so only compare whether there are any
            found_in = bool(found_in[0]), bool(found_in[1])  # type: ignore[assignment]
        if found_in[0] != found_in[1]:
            inputs = True
            inputs_of = " and ".join(
                f"{_described(of, name)} ({label})"
                for label, of in ((first, result), (second, other))
            )
            yield (name, f"{first} and {second} were evaluated with different {noun}: {inputs_of}.")
    for name in RULES:
        values = getattr(result.protocol, name), getattr(other.protocol, name)
        if values[0] != values[1]:
            yield (
                name,
                f"{first} and {second} were evaluated under different rules: {name} is "
                f"{values[0]!r} for {first} and {values[1]!r} for {second}.",
            )
    if paired and not inputs:
        yield from _numbers_of_candidates(run, other_run, users)


def _numbers_of_candidates(run: Run, other_run: Run, users: Users) -> Iterator[tuple[str, str]]:
    (first, result, _), (second, other, _) = run, other_run
    numbers = []
    for _, evaluation, place in (run, other_run):
        column = np.full(users.n, -1)
        column[slice(None) if place is None else place] = evaluation.n_candidates
        numbers.append(column)
    invents = any(each.counts.get("list_items_uncatalogued") for each in (result, other))
    if invents and fingerprints(result, "catalogue") == fingerprints(other, "catalogue"):
        return  # items outside the catalogue were ranked only for users whose lists contain them
    differ = (numbers[0] >= 0) & (numbers[1] >= 0) & (numbers[0] != numbers[1])
    if differ.any():
        at, n = int(np.argmax(differ)), int(np.count_nonzero(differ))
        yield (
            "candidates",
            f"{first} and {second} were evaluated with different candidates: "
            f"their number differs for {quantity(n, 'user')}, for instance user "
            f"{users.show(at)}: {numbers[0][at]:,} ({first}) and {numbers[1][at]:,} ({second}).",
        )


def _described(result: EvaluationRecord, name: str) -> str:
    descriptions = [
        described.get("description", "not described")
        for key, described in result.inputs.items()
        if key == name or key.endswith(f": {name}")
    ]
    if not descriptions:
        return "none"
    return descriptions[0] if len(descriptions) == 1 else f"{len(descriptions)} folds"
