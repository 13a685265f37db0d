"""Options for who is tested and what is held out: ``fraction=0.1``, ``after=2024-05-31``."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import typer

from recometer import split
from recometer.errors import InputError, did_you_mean

AnyPart = TypeVar("AnyPart")
Read = Callable[[str], Any]


@dataclasses.dataclass(frozen=True)
class Part:
    """A way to choose users or interactions: its syntax on the command line, and its meaning.

    `make` is called with the values, which `read` converts, and with the options, which have
    readers of their own.
    """

    make: Callable[..., Any]
    usage: str
    meaning: str = ""
    read: Read = str
    options: Mapping[str, Read] = dataclasses.field(default_factory=dict)  # for OPTION=VALUE


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _time(text: str) -> int | float | str:
    """Return a number, or the string, which may be a date."""
    try:
        return _number(text)
    except ValueError:
        return text


def _span(text: str) -> int | float | datetime.timedelta:
    found = re.fullmatch(r"(\d+)(d|h|min)", text)
    if found is None:
        return _number(text)
    unit = {"d": "days", "h": "hours", "min": "minutes"}[found[2]]
    return datetime.timedelta(**{unit: int(found[1])})


def _cold_items(text: str) -> Any:
    """Return a share of the items, or the items in a file."""
    try:
        share = float(text)
    except ValueError:
        return split.ColdItems(items=Path(text))
    return split.ColdItems(share)


PER_USER = {"yes": True, "no": False}
WHO = {
    "all": Part(split.AllUsers, "all", "everyone"),
    "fraction": Part(split.UsersFraction, "fraction=0.1", "a random share of the users", float),
    "number": Part(split.UsersNumber, "number=1000", "this number of users, drawn at random", int),
    "users": Part(split.GivenUsers, "users=FILE", "the users whose ids are in a file", Path),
    "after": Part(
        split.ActiveAfter, "after=TIME", "users with interactions at that time or later", _time
    ),
    "folds": Part(split.UserFolds, "folds=5", "all users, each in one of the folds", int),
}
WHAT = {
    "last": Part(split.Last, "last=1", "this number of each user's last interactions", int),
    "last_fraction": Part(
        split.LastFraction,
        "last_fraction=0.2",
        "this share of each user's interactions, the last ones",
        float,
    ),
    "leave_one_out": Part(
        split.LeaveOneOut,
        "leave_one_out[=random]",
        "the last interaction, or a random one, of each user who has at least two",
    ),
    "fraction": Part(
        split.Fraction,
        "fraction=0.2[,per_user=no]",
        "a random share of each user's interactions, or of all interactions",
        float,
        {"per_user": PER_USER.__getitem__},
    ),
    "number": Part(
        split.Number, "number=5", "this number of each user's interactions, drawn at random", int
    ),
    "after": Part(
        split.After,
        "after=TIME[,until=TIME][,since=TIME]",
        "all interactions from a time on",
        _time,
        {"until": _time, "since": _time},
    ),
    "after_share": Part(
        lambda share: split.After(share=share),
        "after_share=0.8",
        "all interactions after the first share of them",
        float,
    ),
    "windows": Part(
        lambda *times, **options: split.Windows(times, **options),
        "windows=TIME,TIME,...[,until=TIME][,length=30d]",
        "one window of time after the other",
        _time,
        {"until": _time, "length": _span},
    ),
    "folds": Part(split.KFold, "folds=5", "every interaction, in one of the folds", int),
    "cold_items": Part(
        lambda items: items,
        "cold_items=0.1 or cold_items=FILE",
        "all interactions with a random share of the items, or with those in a file",
        _cold_items,
    ),
}
CORE = Part(split.KCore, "5 or user=5,item=3", read=int, options={"user": int, "item": int})


def make_part(option: str, parts: Mapping[str, Part], text: str) -> Any:
    """Make a part of a split from ``NAME``, ``NAME=VALUE`` or ``NAME=VALUE,OPTION=VALUE``.

    `parts` is `WHO` or `WHAT`; errors name the `option`.
    """
    name, equals, rest = text.partition("=")
    if name not in parts:
        raise typer.BadParameter(
            f"there is no {name!r}. {did_you_mean(name, parts)} Their syntax: "
            f"{usages(parts.values())}.",
            param_hint=option,
        )
    return make(option, parts[name], text, rest if equals else None)


def make(option: str, part: Part, text: str, given: str | None) -> Any:
    """Make a part of a split from its values and options, separated by commas.

    `text` is the value of the `option` in full, which errors name.
    """
    values: list[Any] = []
    options: dict[str, Any] = {}
    piece = text
    try:
        for piece in [] if given is None else given.split(","):
            name, equals, value = piece.partition("=")
            if not equals:
                values.append(part.read(piece))
            elif name in options:
                raise ValueError
            else:
                options[name] = part.options[name](value)
        inspect.signature(part.make).bind(*values, **options)
        return with_option(part.make(*values, **options), f"{option} {text}")
    except (InputError, KeyError, TypeError, ValueError) as error:
        why = f"{piece!r} is not understood"
        if isinstance(error, InputError):
            why = str(error).rstrip(".")
        raise typer.BadParameter(
            f"{text!r}: {why}. Usage: {part.usage}.", param_hint=option
        ) from error


def with_option(part: AnyPart, option: str) -> AnyPart:
    """Return a part of a split that messages show as the option that made it."""
    object.__setattr__(part, "option", option)  # parts are frozen dataclasses
    return part


def complete(parts: Mapping[str, Part]) -> Callable[[str], list[str]]:
    """Return a completion for the name of a part."""
    return lambda incomplete: [
        name + ("=" if part.usage.startswith(f"{name}=") else "")
        for name, part in parts.items()
        if name.startswith(incomplete)
    ]


def usages(parts: Iterable[Part]) -> str:
    """List the syntax and the meaning of parts."""
    return "; ".join(f"{part.usage} ({part.meaning})" for part in parts)
