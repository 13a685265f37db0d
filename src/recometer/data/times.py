"""Reads times from text, and formats them for messages."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Bool
from recometer.errors import InputError, argument_text

if TYPE_CHECKING:
    import polars as pl

# Dates that may begin with the day or the month; dates that begin with the year are unambiguous.
DAY_OR_MONTH = r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-]\d"
# The UTC offset at the end of an ISO 8601 time; a date without a time has none.
OFFSET = r"[T ]\d{2}(?::?\d{2}){0,2}(?:[.,]\d+)?\s*(Z|[+-]\d{2}(?::?\d{2})?)\s*$"
# The range of plausible times, in seconds since 1970: from 1985 to 2100.
EARLIEST, LATEST = 473_385_600, 4_102_444_800
UNITS = (1, 10**3, 10**6, 10**9)  # units per second
NAMES = dict(zip(UNITS, ("seconds", "milliseconds", "microseconds", "nanoseconds"), strict=True))


def times_of_text(text: pl.Series, prefix: str = "") -> pl.Series:
    """Parse a column of strings: either all numbers, or all dates and times in ISO 8601.

    The result is Int64, Float64, or Datetime in microseconds. Errors begin with `prefix`:
    ``"ratings.csv: "``.
    """
    import polars as pl

    for dtype in (pl.Int64, pl.Float64):
        number = text.str.strip_chars().cast(dtype, strict=False)
        if number.null_count() == text.null_count():
            return number
    _check_days(text, prefix)
    try:
        parsed = text.str.to_datetime(time_unit="us", strict=False)
    except pl.exceptions.PolarsError:
        parsed = pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    check_parsed(
        text,
        parsed,
        prefix,
        f"a number or a date such as 2024-05-31 (or pass {argument_text('time', False)})",
    )
    return parsed


def offsets_of_text(text: pl.Series) -> set[str | None]:
    """Return the UTC offsets in a column: ``"+02:00"``, ..., and None for times without one."""
    return set(text.str.extract(OFFSET).str.replace(r"^Z$", "+00:00"))


def named_zone(zone: Any) -> datetime.tzinfo:
    """Make a time zone from its name or UTC offset; return a time zone unchanged."""
    import zoneinfo  # rarely needed

    if isinstance(zone, str) and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        offset = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
        return datetime.timezone(-offset if zone[0] == "-" else offset)
    # pytz time zones only work with dates that they have localised.
    name = zone if isinstance(zone, str) else getattr(zone, "zone", None)
    return zone if name is None else zoneinfo.ZoneInfo(name)


def check_parsed(text: pl.Series, parsed: pl.Series, prefix: str, expected: str) -> None:
    """If an entry could not be read, raise an error that names its row."""
    wrong = (parsed.is_null() & text.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{prefix}row {row} (counted from 0){_suffix(text)} holds {text[row]!r}. "
            f"Hint: expected {expected}."
        )


def _check_days(text: pl.Series, prefix: str) -> None:
    """Refuse dates such as 01/05/2020, unless a day above 12 shows which number is the day."""
    import polars as pl

    numbers = text.str.extract_groups(DAY_OR_MONTH).struct.unnest().cast(pl.Int64)
    first, second = numbers.get_columns()
    either = (first <= 12) & (second <= 12)
    if either.any() and either.sum() == first.count():
        row = int(either.arg_true()[0])
        raise InputError(
            f"{prefix}row {row} (counted from 0){_suffix(text)} holds {text[row]!r}, and no row "
            "shows which number is the day and which is the month. Hint: write dates such as "
            f"2024-05-31 (or pass {argument_text('time', False)})."
        )


def _suffix(text: pl.Series) -> str:
    return f" of column {text.name!r}" if text.name else ""


def values_in_words(low: float, high: float) -> str:
    """Return ``"values 1 to 5"``, or ``"every value 1"``."""
    return f"every value {low:g}" if low == high else f"values {low:g} to {high:g}"


def times_in_words(numbers: Array) -> str:
    """Describe the earliest and the latest time, with dates if they look like times since 1970.

    Times may be any numbers, and only their size shows the unit (seconds to nanoseconds since
    1970). For this reason, both the numbers and the dates are shown.
    """
    low, high = numbers.min(), numbers.max()
    text = f"every time {low}" if low == high else f"times {low} to {high}"
    unit = unit_of_times(numbers)
    if unit is None:
        return text
    first, last = (_day(int(time // unit)) for time in (low, high))
    return f"{text} ({first})" if first == last else f"{text} ({first} to {last})"


def unit_of_times(numbers: Array) -> int | None:
    """Return the units per second if numbers look like times since 1970, otherwise None."""
    low, high = numbers.min(), numbers.max()
    fitting = (unit for unit in UNITS if low / unit >= EARLIEST and high / unit < LATEST)
    return next(fitting, None)


def check_units(numbers: Array, noun: str) -> None:
    """Refuse times since 1970 in different units, such as seconds and milliseconds.

    Numbers below `EARLIEST` are ignored. The times are refused if each of the other numbers is a
    plausible time (1985 to 2100) in some unit, but the units differ. A number between the ranges of
    two units shows that the numbers mean something else.
    """
    if not len(numbers) or numbers.max() < EARLIEST * UNITS[1] or unit_of_times(numbers):
        return
    units, unclear = _by_unit(numbers)
    first = {unit: numbers[mask.argmax()] for unit, mask in units.items() if mask.any()}
    if len(first) < 2 or unclear.any():
        return
    low, high = [*first][:2]
    examples = [
        f"{first[unit]} ({NAMES[unit]}, {_day(int(first[unit] // unit))})" for unit in first
    ]
    raise InputError(
        f"The {noun} count in different units since 1970: {' and '.join(examples)}. Hint: convert "
        f"them to one unit, for instance those in {NAMES[high]} by // {high // low}; or pass "
        f"{argument_text('time', False)} to ignore the times."
    )


def sample_rows(numbers: Array) -> list[int]:
    """Return the positions of a few times that have the same range and units as all times."""
    units, unclear = _by_unit(numbers)
    rows = [int(mask.argmax()) for mask in (*units.values(), unclear) if mask.any()]
    return sorted({int(numbers.argmin()), int(numbers.argmax()), *rows})


def _by_unit(numbers: Array) -> tuple[dict[int, Bool], Bool]:
    """Return masks of the plausible times in each unit, and a mask of the other large numbers."""
    units = {unit: (numbers >= EARLIEST * unit) & (numbers < LATEST * unit) for unit in UNITS}
    return units, (numbers >= EARLIEST) & ~np.logical_or.reduce([*units.values()])


def _day(seconds: int) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.date().isoformat()
