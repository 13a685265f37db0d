"""The native functions for splits against their twins in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel
from recometer._kernel import reference

LATEST, DRAWN, PAIRS, OLD_PAIRS = range(4)
orders = st.sampled_from([LATEST, DRAWN, PAIRS, OLD_PAIRS])


@st.composite
def problems(draw):
    """Rows of few users and items, so that pairs and times repeat."""
    n, n_users, n_items = draw(st.integers(0, 60)), draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    whole = rng.integers(-3, 4, n)
    times, is_float = {
        "none": (None, False),
        "whole": (whole, False),
        "float": ((whole / 2.0 * rng.choice([1.0, -0.0], n)).view(np.int64), True),
    }[draw(st.sampled_from(["none", "whole", "float"]))]
    values = draw(st.sampled_from([None, rng.integers(-2, 3, n) / 2.0]))
    return (
        rng.integers(0, n_users, n).astype(np.uint32),
        rng.integers(0, n_items, n).astype(np.uint32),
        rng.integers(0, 2**64, n_users, dtype=np.uint64),
        rng.integers(0, 2**64, n_items, dtype=np.uint64),
        times,
        is_float,
        values,
    )


def ranges(problem):
    """All users in two ranges, with their counts."""
    counts = np.bincount(problem[0], minlength=len(problem[2]))
    middle = len(counts) // 2
    return [(0, counts[:middle]), (middle, counts[middle:])]


@given(problems(), orders, st.integers(0, 6))
def test_the_first_rows(problem, order, size):
    held = np.full((2, len(problem[0])), 9, np.uint8)
    for first, counts in ranges(problem):
        sizes = np.minimum(counts, size)
        decided = _kernel.hold_first(*problem, first, counts, order, sizes, held[0])
        reference.hold_first(*problem, first, counts, order, sizes, held[1])
        assert decided or problem[6] is None
    np.testing.assert_array_equal(*held)


@given(problems(), orders)
def test_places(problem, order):
    places = np.full((2, len(problem[0])), 99, np.uint32)
    for first, counts in ranges(problem):
        _kernel.number_rows(*problem, first, counts, order, places[0])
        reference.number_rows(*problem, first, counts, order, places[1])
    np.testing.assert_array_equal(*places)


def test_it_is_said_when_values_would_decide():
    users, items = np.zeros(2, np.uint32), np.zeros(2, np.uint32)
    draws = np.zeros(1, np.uint64)
    for times, decided in ((np.array([1, 1]), False), (np.array([1, 2]), True)):
        held = np.zeros(2, np.uint8)
        rest = (0, np.array([2]), DRAWN, np.array([1]), held)
        assert _kernel.hold_first(users, items, draws, draws, times, False, None, *rest) == decided
        values = np.array([2.0, 1.0])
        assert _kernel.hold_first(users, items, draws, draws, times, False, values, *rest)


@given(problems(), st.integers(0, 2**64 - 1))
def test_rows_below_a_limit(problem, limit):
    held = np.zeros((2, len(problem[0])), np.uint8)
    _kernel.hold_below(*problem[:4], limit, held[0])
    reference.hold_below(*problem[:4], limit, held[1])
    np.testing.assert_array_equal(*held)


@given(problems(), st.integers(1, 6), st.integers(1, 6))
def test_the_core_and_the_counts(problem, least_user, least_item):
    users, items = problem[:2]
    results = []
    for module in (_kernel, reference):
        counts = np.zeros(len(problem[2]), np.int64), np.zeros(len(problem[3]), np.int64)
        module.count_codes(users, counts[0])
        module.count_codes(items, counts[1])
        kept = np.ones(len(users), np.uint8)
        backwards = False
        while module.trim_core(users, items, *counts, least_user, least_item, backwards, kept):
            backwards = not backwards
        results.append([kept, *counts])
    for native, slow in zip(*results, strict=True):
        np.testing.assert_array_equal(native, slow)


def test_numbers_that_do_not_fit_are_refused():
    users, items = np.array([0, 1], np.uint32), np.array([0, 3], np.uint32)
    draws = np.zeros(2, np.uint64)
    held = np.zeros(2, np.uint8)

    def hold(counts, first=0, order=DRAWN, draws_of_items=draws):
        counts = np.array(counts)
        columns = (users, items, draws, draws_of_items, None, False, None)
        _kernel.hold_first(*columns, first, counts, order, counts, held)

    for arguments, message in (
        (([1, 1],), "no such item"),
        (([0, 1],), "more rows"),
        (([2],), "fewer rows"),
        (([1, 1], 1), "no such users"),
    ):
        with pytest.raises(ValueError, match=message):
            hold(*arguments)
    with pytest.raises(TypeError, match=r"order: recometer\._kernel\._native\.RowOrder"):
        hold([1, 1], order=4)
    with pytest.raises(ValueError, match="too large"):
        _kernel.count_codes(items, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="per row"):
        _kernel.hold_below(users, items, draws, draws, 1, held[:1])
