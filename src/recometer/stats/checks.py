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


def check_number(name: str, value: object) -> None:
    """Raise an error unless an argument is a finite number."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputTypeError(f"{argument_text(name, value)} must be a number.")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer above 1.8e308
        finite = False
    if not finite:
        raise InputError(f"{argument_text(name, value)} must be a finite number, at most 1.8e308.")


def check_whole(name: str, value: object, lowest: int, highest: int | None = None) -> None:
    """Raise an error unless an argument is a whole number from `lowest` to `highest`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < lowest:
        raise InputError(f"{name}={brief(value)} must be a whole number, at least {lowest}.")
    if highest is not None and int(value) > highest:
        raise InputError(f"{name}={brief(value)} must be at most {highest:,}.")


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
            f"bounds={brief(bounds)} are too far apart: twice their difference exceeds the "
            "largest number (1.8e308). Hint: divide values and bounds by the same number; None "
            "stands for unknown bounds."
        )
    return low, high
