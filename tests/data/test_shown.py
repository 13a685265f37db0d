"""Tests of how the repr of interactions describes their values and times."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import recometer as rm


@pytest.mark.parametrize(
    ("values", "times", "expected"),
    [
        ([1, 5], [10, 30], "values 1 to 5 of column 'rating', times 10 to 30 of"),
        ([1, 1], [7, 7], "every value 1 of column 'rating', every time 7 of"),
        ([1, 5], [1735776000, 1738368000], "1738368000 (2025-01-02 to 2025-02-01) of"),
        ([1, 5], [1735776000000, 1735776000001], "1735776000001 (2025-01-02) of"),
        ([1, 5], [1735776000000000, 1738368000000000], "(2025-01-02 to 2025-02-01) of"),
        ([1, 5], [10, 1738368000], "times 10 to 1738368000 of"),
    ],
)
def test_repr_shows_ranges_of_values_and_times(
    values: list[int], times: list[int], expected: str
) -> None:
    data = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": values, "time": times})
    assert f"{expected} column 'time'" in repr(rm.Interactions.of(data))


def test_repr_shows_dates_as_days() -> None:
    days = np.array(["2024-05-31", "2024-06-02"], dtype="datetime64[ms]")
    data = rm.Interactions.of(pl.DataFrame({"user": [1, 2], "item": [1, 2], "date": days}))
    assert "(2024-05-31 to 2024-06-02)" in repr(data)
