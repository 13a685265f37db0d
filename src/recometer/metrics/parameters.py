"""Parameters of metrics: what may be set in a name such as ``f@10(beta=0.5)``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from recometer.errors import InputError, did_you_mean

Value = str | float | bool | None


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a metric.

    Its default is that of the metric's function. With `choices` it is one of these names; with
    the default False it is switched on by its name alone, as in ``rr@10(all)``; otherwise it
    is a number.

    Parameters
    ----------
    sentence
        What it does.
    choices
        The names that it may have, and what each stands for.
    above, below
        A number lies strictly between.
    from_test
        A number that `evaluate` takes from test (its largest gain) and puts into the name,
        unless it is given.
    examples
        Numbers with which to test.
    name, default
        Filled in by the decorator, from the metric's function.
    """

    sentence: str
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    above: float = -math.inf
    below: float = math.inf
    from_test: bool = False
    examples: tuple[float, ...] = ()
    name: str = ""
    default: Value = None

    @property
    def values(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if self.is_flag:
            return "on or off"
        if math.isfinite(self.above) and math.isfinite(self.below):
            return f"a number between {self.above:g} and {self.below:g}"
        return f"a number above {self.above:g}" if math.isfinite(self.above) else "a number"

    @property
    def is_flag(self) -> bool:
        """Whether it is switched on by its name alone."""
        return self.default is False

    def settle(self, value: object, metric: str) -> Value:
        """Check a value, which may be text as it stands in a name.

        Raises
        ------
        InputError
            A value that the parameter does not take; the message says which it does.
        """
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return value
            hint = did_you_mean(str(value), self.choices)
        elif self.is_flag:
            if isinstance(value, bool):
                return value
            if value in ("true", "false"):
                return value == "true"
            hint = f"Hint: write {metric}({self.name}) to switch it on."
        else:
            number = _number(value)
            if number is not None and self.above < number < self.below:
                return number
            hint = f"Hint: it takes {self.values}."
        raise InputError(
            f"The metric {metric!r} does not take {self.name}={value}: it is {self.values}. {hint}"
        )

    def write(self, value: Value) -> str:
        """Write it as it stands in a name; the inverse of `settle`."""
        if value is True:
            return self.name
        return f"{self.name}={_text(value)}"

    def describe(self) -> str:
        """Say its name, what may be given, and its default."""
        if self.is_flag:
            return self.name
        default = "" if self.default is None else f", default {_text(self.default)}"
        return f"{self.name} ({self.values}{default})"


def _number(value: object) -> float | None:
    if isinstance(value, str):
        # float() also takes spaces, underscores, nan, infinity and other scripts' digits.
        if not value.isascii() or set(value) - set("0123456789.eE+-"):
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    number = float(value)
    return number + 0.0 if math.isfinite(number) else None


def _text(value: Value) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
