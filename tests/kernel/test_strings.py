"""The native function that numbers strings agrees with its NumPy twin."""

import kernel_twin
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel

# Polars stores strings of up to 12 bytes inside their views. Most of the longer strings share
# prefixes.
BASES = ["", "\0", "a", "a\0", "é", "user 1", "user 10", "twelve bytes", "twelve byte\0"]
BASES += ["thirteen byte", "thirteen byt\0", "x" * 40, "x" * 39 + "y", "😀" * 3, "😀" * 4, "ß" * 50]
columns = st.lists(st.lists(st.one_of(st.sampled_from(BASES), st.text(max_size=15)), max_size=40))


def number_series(number_strings, series):
    numbers, rows = np.full(len(series), 99, np.uint32), np.full(len(series), -1)
    n = number_strings(series, numbers, rows)
    return numbers.tolist(), rows[:n].tolist()


@given(columns, st.integers(0, 9))
def test_strings_are_numbered_by_first_appearance(chunks, begin):
    empty = pl.Series([], dtype=pl.String)
    series = pl.concat(
        [empty, *(pl.Series(chunk, dtype=pl.String) for chunk in chunks)], rechunk=False
    )
    for part in (series, series[begin:], series.gather_every(2)):
        assert number_series(_kernel.number_strings, part) == number_series(
            kernel_twin.number_strings, part
        )


def test_many_distinct_strings_are_numbered_correctly():
    """There are more distinct strings than fit into the initial hash table, so it must grow."""
    values = np.random.default_rng(0).integers(0, 5000, 20_000)
    for text in ("{}", "a text that is longer {}"):
        series = pl.Series([text.format(value) for value in values])
        assert number_series(_kernel.number_strings, series) == number_series(
            kernel_twin.number_strings, series
        )


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (pl.Series([1, 2]), "string views"),
        (pl.Series(["a", None]), "the column contains nulls"),
        (pl.Series(["a", "b", "c"]), "one entry per row"),
    ],
)
def test_unsuitable_columns_are_rejected(series, message):
    with pytest.raises(ValueError, match=message):
        _kernel.number_strings(series, np.zeros(2, np.uint32), np.zeros(2, np.int64))
