"""How a rule is declared: once, as a field of `Protocol`, from which all else follows."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from recometer.arrays import plain_number
from recometer.errors import InputError, UnknownNameError, brief, did_you_mean
from recometer.remembered import cached_property
from recometer.removed import ARGUMENTS, VALUES

Step = Literal[
    "ranking", "ties", "formula", "undefined values", "rounding", "population", "average",
    "correction",
]  # fmt: skip
STEPS: tuple[Step, ...] = typing.get_args(Step)
"""What `recometer.explain` changes, in this order; the formula is that of the metric."""

Value = TypeVar("Value")
Class = TypeVar("Class", bound=type[Any])


@dataclasses.dataclass(frozen=True)
class Number:
    """The numbers that a rule takes, as a phrase and as a condition."""

    text: str = "a number"
    fits: Callable[[float], bool] = math.isfinite

    def takes(self, value: object) -> bool:
        """Return whether a value is one of these numbers."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            return self.fits(value)
        except OverflowError:  # an integer beyond all floats
            return False


@dataclasses.dataclass(frozen=True)
class Rule:
    """The declaration of a rule.

    Attributes
    ----------
    default
        The value of the rule if none is given.
    says
        A sentence for each value that the rule takes; in that of a `Number`, ``{}`` stands for the
        number. If it is empty, the rule takes any value and has no sentence.
    step
        The step of `recometer.explain` that the rule belongs to.
    no_step
        Why the rule belongs to no step.
    about
        What the sentences do not say, for the docstring.
    """

    default: Any
    says: Mapping[Any, str]
    step: Step | None
    no_step: str
    about: str

    def __post_init__(self) -> None:
        if (self.step is None) != bool(self.no_step):
            raise TypeError("A rule states its step of explain, or else why it has none: no_step.")
        if self.says:
            self._entry(self.default)  # raises LookupError

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values that the rule takes besides numbers."""
        numbers = [entry for entry in self.says if isinstance(entry, Number)]
        return tuple(
            entry
            for entry in self.says
            if entry not in numbers and not any(number.takes(entry) for number in numbers)
        )

    @cached_property
    def _values(self) -> dict[tuple[type, Any], Any]:
        """The entries by type and value, because True is not the number 1."""
        return {(type(entry), entry): entry for entry in self.says}

    def _entry(self, value: object) -> Any:
        """Return the entry of `says` that a value falls under; raise LookupError if none."""
        # Other kinds of text (of NumPy, or an enumeration) are their plain text.
        kind = str if isinstance(value, str) else type(value)
        if isinstance(value, str | int | float | None) and (kind, value) in self._values:
            return self._values[kind, value]
        for entry in self.says:
            if isinstance(entry, Number) and entry.takes(value):
                return entry
        raise LookupError(value)

    def check(self, name: str, value: object) -> None:
        """Refuse a value that the rule does not take."""
        if value is self.default or (not self.says and isinstance(value, str)):
            return
        if not self.says:
            raise InputError(f"{name}={brief(value)} must be a text.")
        try:
            self._entry(value)
        except LookupError:
            numbers = [entry.text for entry in self.says if isinstance(entry, Number)]
            named = list(map(repr, self.choices))
            if numbers:
                takes = " or ".join([*numbers, *named])
                raise InputError(f"{name}={brief(value)} must be {takes}.") from None
            hint = VALUES.get((name, str(value)), f"{name} is one of {', '.join(named)}.")
            raise InputError(
                f"The rule {name}={brief(value)} does not exist. Hint: {hint}"
            ) from None

    def sentence(self, value: object) -> str:
        """Return what a value means, as a sentence."""
        entry = self._entry(value)
        said = self.says[entry]
        return said.format(f"{value:g}") if isinstance(entry, Number) else said

    def read(self, text: str) -> Any:
        """Return the value that a text stands for: a choice, a number, or else the text itself."""
        for choice in self.choices:
            if str(choice).lower() == text.lower():
                return choice
        for number in (int, float) if self.says else ():
            with contextlib.suppress(ValueError):
                return number(text)
        return text

    def describe(self, name: str, default: object) -> str:
        """Return the rule's part of a docstring."""
        lines = [f"{name} : default {default!r}", *([f"    {self.about}"] if self.about else [])]
        for entry, said in self.says.items():
            value = f"x, {entry.text}" if isinstance(entry, Number) else repr(entry)
            lines.append(f"    * {value}: {said.format('x')}")
        return "\n".join(lines)


def rule(
    default: Value,
    says: Mapping[Any, str] | None = None,
    *,
    step: Step | None = None,
    no_step: str = "",
    about: str = "",
) -> Value:
    """Declare a rule, see `Rule`, as a field of a class that `ruled` decorates."""
    declared = Rule(default, says or {}, step, no_step, about)
    return dataclasses.field(default=default, metadata={"rule": declared})


def ruled(protocol: Class) -> Class:
    """Gather what a dataclass declares, describe it, and know the names of all rules."""
    fields = dataclasses.fields(protocol)
    plain = [field.name for field in fields if "rule" not in field.metadata]
    if plain:
        raise TypeError(f"A rule is declared by rule(...), which {', '.join(plain)} is not.")
    known = {field.name: field.metadata["rule"] for field in fields}
    init = protocol.__init__

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **rules: Any) -> None:
        args = tuple(map(plain_number, args))
        rules = {name: plain_number(value) for name, value in rules.items()}
        for name in rules:
            if name in ARGUMENTS:
                raise UnknownNameError(f"There is no argument {name!r}. Hint: {ARGUMENTS[name]}")
            if name not in known:
                raise UnknownNameError(f"There is no rule {name!r}. {did_you_mean(name, known)}")
        init(self, *args, **rules)

    said = "\n".join(known[field.name].describe(field.name, field.default) for field in fields)
    text = inspect.cleandoc(protocol.__doc__ or "")
    protocol.__doc__ = f"{text}\n\nParameters\n----------\n{said}\n"
    protocol.__init__ = checked
    protocol.declared = known
    return protocol
