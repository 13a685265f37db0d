"""What values and times range over, in words."""

from __future__ import annotations

import datetime

from recometer.arrays import Array

# Seconds since 1970 that are taken for times of this day and age: 1985 to 2100.
EARLIEST, LATEST = 473_385_600, 4_102_444_800
UNITS = (1, 10**3, 10**6, 10**9)  # of a second


def values(low: float, high: float) -> str:
    """Return ``"values 1 to 5"``, or ``"every value 1"``."""
    return f"every value {low:g}" if low == high else f"values {low:g} to {high:g}"


def times(numbers: Array) -> str:
    """Return the first and the last time, and their days where they look like dates.

    Times are numbers of any kind, so both are shown: the unit (seconds to nanoseconds since 1970)
    is known by their size alone.
    """
    low, high = numbers.min(), numbers.max()
    text = f"every time {low}" if low == high else f"times {low} to {high}"
    unit = unit_of_times(numbers)
    if unit is None:
        return text
    first, last = (_day(int(time // unit)) for time in (low, high))
    return f"{text} ({first})" if first == last else f"{text} ({first} to {last})"


def unit_of_times(numbers: Array) -> int | None:
    """Return the units per second of numbers that look like times since 1970, or None."""
    low, high = numbers.min(), numbers.max()
    fitting = (unit for unit in UNITS if low / unit >= EARLIEST and high / unit < LATEST)
    return next(fitting, None)


def _day(seconds: int) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.date().isoformat()
