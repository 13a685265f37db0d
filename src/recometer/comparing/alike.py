"""Check that evaluations can be compared: same test data, candidates and rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Int64
from recometer.comparing.models import Model, Users, on_unpaired
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    argument_text,
    brief,
    did_you_mean,
)
from recometer.protocol import Protocol
from recometer.results.evaluation import EvaluationRecord, fingerprints

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
    if not isinstance(allow, Iterable):
        raise InputTypeError(
            f"allow names what may differ, found {brief(allow)}. Hint: "
            f"{argument_text('allow', 'train')}, or several."
        )
    names = allow.replace(",", " ").split() if isinstance(allow, str) else list(map(str, allow))
    if isinstance(allow, str) and not names:
        raise InputError(
            f"{argument_text('allow', allow)} names nothing that may differ. Hint: leave it out, "
            f"or name {', '.join(INPUTS)}, protocol or a rule."
        )
    for name in names:
        if name not in MAY_DIFFER:
            raise UnknownNameError(
                f"Nothing called {name!r} may differ. {did_you_mean(name, MAY_DIFFER)}"
            )
    return tuple(dict.fromkeys(names))


def check_alike(
    models: Sequence[Model], users: Users, allow: tuple[str, ...], *, paired: bool = True
) -> list[str]:
    """Raise InputError for differences that `allow` does not name; return notes on the others."""
    refused: dict[str, str] = {}
    allowed: dict[str, str] = {}
    first, *others = (
        Run(model.label(at), run, users.places[model.name][at])
        for model in models
        for at, run in enumerate(model.runs)
    )
    for other in others:
        for name, reason in _differences(first, other, users, paired):
            by_rule = name in RULES and "protocol" in allow
            (allowed if name in allow or by_rule else refused).setdefault(name, reason)
    if refused:
        reason, *further = refused.values()
        more = f" {len(further)} more: {' '.join(further)}" if further else ""
        names = " ".join(refused)
        n_each = sum(model.first.n_users for model in models)
        apart = f" {on_unpaired()}" if "test" in refused and users.n == n_each else ""
        raise InputError(
            f"{reason}{more} Hint: evaluate both the same way; or, if that is meant, "
            f"{argument_text('allow', names)} compares them nevertheless.{apart}"
        )
    notes = [f"Allowed: {reason}" for reason in allowed.values()]
    unused = [
        n for n in allow if n not in allowed and not (n == "protocol" and {*RULES} & {*allowed})
    ]
    if unused:
        notes.append(f"allow names {', '.join(unused)}, in which the models do not differ.")
    return notes


class Run(NamedTuple):
    """An evaluation, its name in messages, and the positions of its users among all users."""

    label: str
    result: EvaluationRecord
    place: Int64 | None


def _differences(one: Run, two: Run, users: Users, paired: bool) -> Iterator[tuple[str, str]]:
    """Yield the inputs and rules in which two evaluations differ, and how."""
    (first, result, _), (second, other, _) = one, two
    inputs = False
    for name, what in INPUTS.items():
        found_in = fingerprints(result, name), fingerprints(other, name)
        if not paired:  # data of different users may differ, but not their kinds
            found_in = bool(found_in[0]), bool(found_in[1])  # type: ignore[assignment]
        if found_in[0] != found_in[1]:
            inputs = True
            inputs_of = " and ".join(
                f"{_described(of, name)} ({label})"
                for label, of in ((first, result), (second, other))
            )
            yield (
                name,
                f"{first} and {second} were evaluated with different {what}: {inputs_of}.",
            )
    for name in RULES:
        values = getattr(result.protocol, name), getattr(other.protocol, name)
        if values[0] != values[1]:
            yield (
                name,
                f"{first} and {second} were evaluated under different rules: {name} is "
                f"{values[0]!r} for {first} and {values[1]!r} for {second}.",
            )
    if paired and not inputs:
        yield from _numbers_of_candidates(one, two, users)


def _numbers_of_candidates(one: Run, two: Run, users: Users) -> Iterator[tuple[str, str]]:
    numbers = []
    for _, result, place in (one, two):
        column = result.n_candidates
        if place is not None:
            column = np.full(users.n, -1)
            column[place] = result.n_candidates
        numbers.append(column)
    invents = any(result.counts.get("list_items_uncatalogued") for _, result, _ in (one, two))
    if invents and fingerprints(one.result, "catalogue") == fingerprints(two.result, "catalogue"):
        return  # items outside the catalogue were only ranked for users who list them
    comparable = (numbers[0] >= 0) & (numbers[1] >= 0)
    differ = comparable & (numbers[0] != numbers[1])
    if differ.any():
        at = int(np.argmax(differ))
        yield (
            "candidates",
            f"{one.label} and {two.label} were evaluated with different candidates: "
            f"{int(differ.sum()):,} users have another number of them, user {users.show(at)} for "
            f"instance {numbers[0][at]:,} ({one.label}) and {numbers[1][at]:,} ({two.label}).",
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
