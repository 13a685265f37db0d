"""Check the arguments of the classes that choose users and interactions, and of filters."""

from __future__ import annotations

import datetime
import numbers
import re
from typing import Any

import numpy as np

from recometer.data.times import unit_of_times
from recometer.errors import InputError, InputTypeError
from recometer.split.table import Table


class NoTestUsersError(InputError, RuntimeError):
    """The error raised if the conditions of a split leave no test user."""


def check_share(name: str, share: Any) -> float:
    """Return a share as a float, or raise an error unless it is between 0 and 1."""
    if not isinstance(share, numbers.Real) or not 0 < float(share) < 1:
        raise InputError(f"{name}={share!r} must lie between 0 and 1. Hint: {name}=0.3 is 30 %.")
    return float(share)


def limit(share: float) -> np.uint64:
    """Return the threshold below which a random uint64 falls with probability `share`."""
    return np.uint64(min(int(share * 2.0**64), 2**64 - 1))


def check_whole(name: str, number: Any, least: int = 0) -> int:
    """Return a whole number as an int, or raise an error unless it is at least `least`."""
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not whole or number < least:
        raise InputError(f"{name}={number!r} must be a whole number of at least {least}.")
    return int(number)


def check_folds(k: Any, example: str) -> None:
    """Raise an error if the number of folds is below 2."""
    if check_whole("k", k, 1) < 2:
        raise InputError(f"k=1 makes no folds: expected at least 2. Hint: {example}.")


def moment(table: Table, time: Any) -> int | float:
    """Convert a time to the form of a table's times: a number, or microseconds since 1970.

    A date or time without a time zone is assumed to be in the table's time zone.
    """
    table.times  # noqa: B018  # raises an error if there are no times
    if isinstance(time, np.datetime64) and not np.isnat(time):
        time = time.astype("datetime64[us]").item()
    number = isinstance(time, numbers.Real) and not isinstance(time, bool)
    if (number or isinstance(time, datetime.date)) and time != time:
        raise InputError(
            "A time must not be NaN or NaT. Hint: for instance 20240531, or '2024-05-31'."
        )
    if number and table.dates:
        raise InputError(
            f"The time {time} is a number, but the times of the data are dates. Hint: for instance "
            "'2024-05-31'."
        )
    if number:
        return int(time) if isinstance(time, numbers.Integral) else float(time)
    if isinstance(time, str):
        try:
            # Python 3.10 does not understand Z for UTC.
            time = datetime.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", time))
        except ValueError:
            raise InputError(
                f"The time {time!r} is not a date in ISO 8601. Hint: for instance '2024-05-31'."
            ) from None
    if not isinstance(time, datetime.date):
        raise InputTypeError(
            f"A time must be a number or a date, found {type(time).__name__} ({time!r}). Hint: "
            "for instance 20240531, or '2024-05-31'."
        )
    if not isinstance(time, datetime.datetime):
        time = datetime.datetime.combine(time, datetime.time())
    if time.tzinfo is None:
        time = datetime.datetime.combine(time.date(), time.time(), table.zone())
    since: datetime.timedelta = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    if not table.dates:
        unit = unit_of_times(table.times) if len(table.times) else None
        converted = "" if unit is None else f", here {int(since.total_seconds()) * unit}"
        raise InputError(
            f"The time {time:%Y-%m-%d %H:%M:%S} is a date, but the times of the data are numbers. "
            f"Hint: pass a number in their unit{converted}; or convert them to dates."
        )
    return since // datetime.timedelta(microseconds=1)
