"""Check the arguments of statistical functions."""

from __future__ import annotations

import math
import numbers

from recometer.errors import InputError, InputTypeError, argument_text, brief

Bounds = tuple[float, float]


def check_alpha(alpha: float) -> None:
    """Raise an error unless the significance level is above 0 and below 1."""
    if not isinstance(alpha, numbers.Real) or not 0 < alpha < 1:
        raise InputError(
            f"alpha={brief(alpha)} must be above 0 and below 1. Hint: the usual value is 0.05."
        )


def check_number(name: str, given: object) -> None:
    """Raise an error unless an argument is a finite number."""
    if not isinstance(given, numbers.Real) or isinstance(given, bool):
        raise InputTypeError(f"{argument_text(name, given)} must be a number.")
    try:
        finite = math.isfinite(given)
    except OverflowError:  # an integer above 1.8e308
        finite = False
    if not finite:
        raise InputError(f"{argument_text(name, given)} must be a finite number, at most 1.8e308.")


def check_whole(name: str, given: object, least: int, most: int | None = None) -> None:
    """Raise an error unless an argument is a whole number from `least` to `most`."""
    if not isinstance(given, numbers.Integral) or isinstance(given, bool) or given < least:
        raise InputError(f"{name}={brief(given)} must be a whole number, at least {least}.")
    if most is not None and int(given) > most:
        raise InputError(f"{name}={brief(given)} must be at most {most:,}.")


def check_bounds(bounds: Bounds) -> Bounds:
    """Check the lowest and highest possible values, and return them as floats.

    They may be infinite.
    """
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(
            f"bounds={brief(bounds)} must be a pair of numbers, the lowest value and the highest. "
            "Hint: for instance (0, 1)."
        ) from None
    if math.isnan(low) or math.isnan(high):
        raise InputError(
            f"bounds={brief(bounds)} are not a range: one is NaN. Hint: for instance (0, 1)."
        )
    if math.isfinite(low) and math.isfinite(high) and not math.isfinite(2 * (high - low)):
        raise InputError(
            f"bounds={brief(bounds)} differ by more than a number can hold (1.8e308). Hint: "
            "divide values and bounds by the same number; None stands for unknown bounds."
        )
    return low, high
