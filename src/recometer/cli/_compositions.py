"""Options for who is tested and what is held out: ``fraction=0.1``, ``after=2024-05-31``."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import typer

from recometer import split
from recometer.arrays import Array
from recometer.data.factor_files import read_ids
from recometer.errors import InputError, RecometerError, did_you_mean
from recometer.split import KCore

AnyPart = TypeVar("AnyPart")
Read = Callable[[str], Any]
Known = Callable[[str], Array | None]
"""Returns ids of the data of the kind ``"user"`` or ``"item"``, or None."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A way to choose users or interactions: its syntax on the command line, and its meaning.

    `make` is called with the given values and options.
    """

    make: Callable[..., Any]
    usage: str
    meaning: str
    values: tuple[int, float] = (1, 1)  # minimum and maximum number of values
    read: Read | None = str  # converts a string to a value; None allows only files of ids
    ids: str | None = None  # the kind of ids in a file, if the string is not a value
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


def _yes_or_no(text: str) -> bool:
    return {"yes": True, "no": False}[text]


WHO = {
    "all": Part(split.AllUsers, "all", "everyone", values=(0, 0)),
    "fraction": Part(
        split.UsersFraction, "fraction=0.1", "a random share of the users", read=float
    ),
    "number": Part(
        split.UsersNumber, "number=1000", "this number of users, drawn at random", read=int
    ),
    "users": Part(
        split.GivenUsers, "users=FILE", "the users whose ids are in a file", read=None, ids="user"
    ),
    "after": Part(
        split.ActiveAfter, "after=TIME", "users with interactions at that time or later", read=_time
    ),
    "folds": Part(split.UserFolds, "folds=5", "all users, each in one of the folds", read=int),
}
WHAT = {
    "last": Part(split.Last, "last=1", "this number of each user's last interactions", (0, 1), int),
    "last_fraction": Part(
        split.LastFraction,
        "last_fraction=0.2",
        "this share of each user's interactions, the last ones",
        read=float,
    ),
    "leave_one_out": Part(
        split.LeaveOneOut,
        "leave_one_out[=random]",
        "the last interaction, or a random one, of each user who has at least two",
        (0, 1),
    ),
    "fraction": Part(
        split.Fraction,
        "fraction=0.2[,per_user=no]",
        "a random share of each user's interactions, or of all interactions",
        read=float,
        options={"per_user": _yes_or_no},
    ),
    "number": Part(
        split.Number,
        "number=5",
        "this number of each user's interactions, drawn at random",
        read=int,
    ),
    "after": Part(
        split.After,
        "after=TIME[,until=TIME][,since=TIME]",
        "all interactions from a time on",
        read=_time,
        options={"until": _time, "since": _time},
    ),
    "after_share": Part(
        lambda share: split.After(share=share),
        "after_share=0.8",
        "all interactions after the first share of them",
        read=float,
    ),
    "windows": Part(
        lambda *times, **options: split.Windows(times, **options),
        "windows=TIME,TIME,...[,until=TIME][,length=30d]",
        "one window of time after the other",
        (1, float("inf")),
        _time,
        options={"until": _time, "length": _span},
    ),
    "folds": Part(split.KFold, "folds=5", "every interaction, in one of the folds", read=int),
    "cold_items": Part(
        lambda given: split.ColdItems(
            **{"fraction" if isinstance(given, float) else "items": given}
        ),
        "cold_items=0.1 or cold_items=FILE",
        "all interactions with a random share of the items, or with those in a file",
        read=float,
        ids="item",
    ),
}
CORE = Part(split.KCore, "5 or user=5,item=3", "", (0, 1), int, options={"user": int, "item": int})


def make_part(option: str, parts: Mapping[str, Part], text: str, known: Known) -> Any:
    """Make a part of a split from ``NAME``, ``NAME=VALUE`` or ``NAME=VALUE,OPTION=VALUE``.

    `parts` is `WHO` or `WHAT`; errors name the `option`. Ids in text files are read as numbers or
    strings, like the ids in `known`.
    """
    name, equals, rest = text.partition("=")
    if name not in parts:
        raise typer.BadParameter(
            f"there is no {name!r}. {did_you_mean(name, parts)} Their syntax: "
            f"{usages(parts.values())}.",
            param_hint=option,
        )
    if equals and not rest:
        raise _bad(option, text, parts[name], "there is nothing after '='")
    made = _make(option, parts[name], text, rest.split(",") if rest else [], known)
    return with_option(made, f"{option} {text}")


def make_core(text: str) -> KCore:
    """Make a k-core filter from ``5`` or ``user=5,item=3``."""
    core: KCore = _make("--core", CORE, text, text.split(","), lambda _: None)
    same = core.user == core.item
    least = core.user if same else f"user={core.user},item={core.item}"
    return with_option(core, f"--core {least}")


def with_option(part: AnyPart, option: str) -> AnyPart:
    """Return a part of a split that messages show as the option that made it."""
    object.__setattr__(part, "option", option)  # parts are frozen dataclasses
    return part


def complete(parts: Mapping[str, Part]) -> Callable[[str], list[str]]:
    """Return a completion for the name of a part."""
    return lambda incomplete: [
        name + ("=" if part.values[0] else "")
        for name, part in parts.items()
        if name.startswith(incomplete)
    ]


def usages(parts: Iterable[Part]) -> str:
    """List the syntax and the meaning of parts."""
    return "; ".join(f"{part.usage} ({part.meaning})" for part in parts)


def _make(option: str, part: Part, text: str, pieces: list[str], known: Known) -> Any:
    values: list[Any] = []
    options: dict[str, Any] = {}
    for piece in pieces:
        name, equals, given = piece.partition("=")
        if name in options and equals:
            raise _bad(option, text, part, f"{name!r} is given twice")
        if equals and name not in part.options:
            possible = ", ".join(part.options) or "none"
            raise _bad(option, text, part, f"{name!r} is not an option of it (known: {possible})")
        if not equals and options:
            raise _bad(option, text, part, f"{piece!r} must come before the options")
        try:
            made = part.options[name](given) if equals else _value(part, piece, known)
        except (ValueError, KeyError) as error:
            if isinstance(error, RecometerError):
                raise
            raise _bad(option, text, part, f"{piece!r} is not understood") from None
        if equals:
            options[name] = made
        else:
            values.append(made)
    least, most = part.values
    if not least <= len(values) <= most:
        needed = "a value" if len(values) < least else "fewer values"
        raise _bad(option, text, part, f"it takes {needed}")
    try:
        return part.make(*values, **options)
    except InputError as error:
        raise _bad(option, text, part, str(error)) from error


def _value(part: Part, text: str, known: Known) -> Any:
    if part.read is not None:
        try:
            return part.read(text)
        except ValueError:
            if part.ids is None:
                raise
    assert part.ids is not None
    return read_ids(Path(text), part.ids, None, known(part.ids))


def _bad(option: str, text: str, part: Part, why: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{text!r}: {why.rstrip('.')}. Usage: {part.usage}.", param_hint=option
    )
