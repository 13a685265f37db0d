"""Times: read from text, and said in words, as values are."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from recometer.arrays import Array
from recometer.errors import InputError

if TYPE_CHECKING:
    import polars as pl

# Days and months that could be either; after the year they could not.
DAY_OR_MONTH = r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-]\d"
# Seconds since 1970 that are taken for times of this day and age: 1985 to 2100.
EARLIEST, LATEST = 473_385_600, 4_102_444_800
UNITS = (1, 10**3, 10**6, 10**9)  # of a second


def times_of_text(text: pl.Series, where: str = "") -> pl.Series:
    """Return the numbers, or dates and times in ISO 8601, that every entry is written as.

    They come as Int64, Float64, or Datetime in microseconds; `where` stands before an error:
    ``"ratings.csv: "``.

    Raises
    ------
    InputError
        If it is something else, or days and months of dates could be either.
    """
    import polars as pl

    for dtype in (pl.Int64, pl.Float64):
        number = text.str.strip_chars().cast(dtype, strict=False)
        if number.null_count() == text.null_count():
            return number
    _check_days(text, where)
    try:
        parsed = text.str.to_datetime(time_unit="us", strict=False)
    except pl.exceptions.PolarsError:
        parsed = pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    check_parsed(text, parsed, where, "a number or a date such as 2024-05-31 (or pass time=False)")
    return parsed


def check_parsed(text: pl.Series, parsed: pl.Series, where: str, expected: str) -> None:
    """Raise if an entry could not be read; its row is named."""
    wrong = (parsed.is_null() & text.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{where}row {row} (counted from 0){_of(text)} holds {text[row]!r}. "
            f"Hint: expected {expected}."
        )


def _check_days(text: pl.Series, where: str) -> None:
    """Raise if dates are such as 01/05/2020, unless a day above 12 says which number it is."""
    import polars as pl

    numbers = text.str.extract_groups(DAY_OR_MONTH).struct.unnest().cast(pl.Int64)
    first, second = numbers.get_columns()
    either = (first <= 12) & (second <= 12)
    if either.any() and either.sum() == first.count():
        row = int(either.arg_true()[0])
        raise InputError(
            f"{where}row {row} (counted from 0){_of(text)} holds {text[row]!r}, and "
            "no row says which number is the day and which the month. Hint: write dates such as "
            "2024-05-31 (or pass time=False)."
        )


def _of(text: pl.Series) -> str:
    return f" of column {text.name!r}" if text.name else ""


def values_in_words(low: float, high: float) -> str:
    """Return ``"values 1 to 5"``, or ``"every value 1"``."""
    return f"every value {low:g}" if low == high else f"values {low:g} to {high:g}"


def times_in_words(numbers: Array) -> str:
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
