"""Parameters of metrics, set in names such as ``f@10(beta=0.5)``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from recometer.errors import InputError, did_you_mean

Value = str | float | bool | None


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a metric.

    The default comes from the metric's function. If there are `choices`, the value is one of them.
    If the default is False, the name alone switches the parameter on, as in ``rr@10(all)``.
    Otherwise, the value is a number.

    Parameters
    ----------
    sentence
        A sentence that says what the parameter does.
    choices
        The names of its values, and their meanings.
    above, below
        Exclusive bounds of the value, if it is a number.
    from_test
        Whether `evaluate` sets the number to the largest gain in the test data and adds it to the
        name, unless the name already sets it.
    examples
        Values to use in tests, if the parameter is a number.
    for_conventions
        Whether the parameter exists only to reproduce other libraries' numbers. The pages about
        metrics hide such parameters in a collapsed section.
    name, default
        Filled in by the decorator, from the metric's function.
    """

    sentence: str
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    above: float = -math.inf
    below: float = math.inf
    from_test: bool = False
    examples: tuple[float, ...] = ()
    for_conventions: bool = False
    name: str = ""
    default: Value = None

    @property
    def values(self) -> str:
        """The possible values, as a phrase."""
        if self.choices:
            *first, last = self.choices
            return " or ".join(filter(None, [", ".join(first), last]))
        if self.is_flag:
            return "on or off"
        if math.isfinite(self.above) and math.isfinite(self.below):
            return f"a number between {self.above:g} and {self.below:g}"
        return f"a number above {self.above:g}" if math.isfinite(self.above) else "a number"

    @property
    def is_flag(self) -> bool:
        """Whether the parameter is switched on by its name alone."""
        return self.default is False

    def settle(self, value: object, metric: str) -> Value:
        """Check a value, which may be a string from a metric name, and convert it.

        Raises
        ------
        InputError
            If the parameter does not accept the value. The message says which values it accepts.
        """
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return value
            hint = did_you_mean(str(value), self.choices)
        elif self.is_flag:
            if isinstance(value, bool | np.bool_):
                return bool(value)
            if value in ("true", "false"):
                return value == "true"
            hint = f"Hint: write {metric}({self.name}) to switch it on."
        else:
            number = _number(value)
            if number is not None and self.above < number < self.below:
                return number
            hint = f"Hint: pass {self.values}."
        raise InputError(
            f"The metric {metric!r} does not take {self.name}={value}: {self.name} must be "
            f"{self.values}. {hint}"
        )

    def write(self, value: Value) -> str:
        """Return the parameter as it is written in a name; the inverse of `settle`."""
        if value is True:
            return self.name
        return f"{self.name}={_text(value)}"

    def describe(self) -> str:
        """Return the parameter's name, its possible values and its default as a string."""
        if self.is_flag:
            return self.name
        default = "" if self.default is None else f"; default {_text(self.default)}"
        return f"{self.name} ({self.values}{default})"


def _number(value: object) -> float | None:
    if isinstance(value, str):
        # float() would also accept spaces, underscores, nan, infinity and non-ASCII digits.
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
