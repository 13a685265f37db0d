"""The native split functions agree with their NumPy twins."""

from __future__ import annotations

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel

orders = st.sampled_from(_kernel.RowOrder)


@st.composite
def problems(draw):
    """Draw rows from so few users, items and times that some rows repeat."""
    n, n_users, n_items = draw(st.integers(0, 60)), draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    integers = rng.integers(-3, 4, n)
    times, is_float = {
        "none": (None, False),
        "whole": (integers, False),
        "float": ((integers / 2.0 * rng.choice([1.0, -0.0], n)).view(np.int64), True),
    }[draw(st.sampled_from(["none", "whole", "float"]))]
    values = draw(st.sampled_from([None, rng.integers(-2, 3, n) / 2.0]))
    return {
        "users": rng.integers(0, n_users, n).astype(np.uint32),
        "items": rng.integers(0, n_items, n).astype(np.uint32),
        "user_draws": rng.integers(0, 2**64, n_users, dtype=np.uint64),
        "item_draws": rng.integers(0, 2**64, n_items, dtype=np.uint64),
        "times": times,
        "float_times": is_float,
        "values": values,
    }


def ranges(problem):
    """Split the users into two ranges, and count the rows of each user."""
    counts = np.bincount(problem["users"], minlength=len(problem["user_draws"]))
    middle = len(counts) // 2
    return [
        {"first": 0, "counts": counts[:middle]},
        {"first": middle, "counts": counts[middle:]},
    ]


@given(problems(), orders, st.integers(0, 6))
def test_hold_first_agrees_with_its_twin(problem, order, size):
    held = np.full((2, len(problem["users"])), 9, np.uint8)
    for users in ranges(problem):
        arguments = {**problem, **users, "order": order, "sizes": np.minimum(users["counts"], size)}
        decided = _kernel.hold_first(**arguments, held=held[0])
        kernel_twin.hold_first(**arguments, held=held[1])
        assert decided or problem["values"] is None
    np.testing.assert_array_equal(*held)


@given(problems(), orders)
def test_number_rows_agrees_with_its_twin(problem, order):
    places = np.full((2, len(problem["users"])), 99, np.uint32)
    for users in ranges(problem):
        _kernel.number_rows(**problem, **users, order=order, places=places[0])
        kernel_twin.number_rows(**problem, **users, order=order, places=places[1])
    np.testing.assert_array_equal(*places)


def test_hold_first_reports_whether_it_needs_values():
    def hold(times, values):
        return _kernel.hold_first(
            users=np.zeros(2, np.uint32),
            items=np.zeros(2, np.uint32),
            user_draws=np.zeros(1, np.uint64),
            item_draws=np.zeros(1, np.uint64),
            times=times,
            float_times=False,
            values=values,
            first=0,
            counts=np.array([2]),
            order=_kernel.RowOrder.DRAWN,
            sizes=np.array([1]),
            held=np.zeros(2, np.uint8),
        )

    for times, decided in ((np.array([1, 1]), False), (np.array([1, 2]), True)):
        assert hold(times, None) == decided
        assert hold(times, np.array([2.0, 1.0]))


@given(problems(), st.integers(0, 2**64 - 1))
def test_hold_below_agrees_with_its_twin(problem, limit):
    names = ("users", "items", "user_draws", "item_draws")
    rows = {name: problem[name] for name in names}
    held = np.zeros((2, len(rows["users"])), np.uint8)
    _kernel.hold_below(**rows, limit=limit, held=held[0])
    kernel_twin.hold_below(**rows, limit=limit, held=held[1])
    np.testing.assert_array_equal(*held)


@given(problems(), st.integers(1, 6), st.integers(1, 6))
def test_trim_core_and_count_codes_agree_with_their_twins(problem, least_user, least_item):
    users, items = problem["users"], problem["items"]
    results = []
    for module in (_kernel, kernel_twin):
        user_counts = np.zeros(len(problem["user_draws"]), np.int64)
        item_counts = np.zeros(len(problem["item_draws"]), np.int64)
        module.count_codes(users, user_counts)
        module.count_codes(items, item_counts)
        kept = np.ones(len(users), np.uint8)
        backwards = False
        while module.trim_core(
            users=users,
            items=items,
            user_counts=user_counts,
            item_counts=item_counts,
            least_user=least_user,
            least_item=least_item,
            backwards=backwards,
            kept=kept,
        ):
            backwards = not backwards
        results.append([kept, user_counts, item_counts])
    for native, slow in zip(*results, strict=True):
        np.testing.assert_array_equal(native, slow)


def test_inconsistent_counts_are_rejected():
    items = np.array([0, 3], np.uint32)
    columns = {"users": np.array([0, 1], np.uint32), "items": items}
    columns |= dict.fromkeys(["user_draws", "item_draws"], np.zeros(2, np.uint64))

    def hold(counts, first=0, order=_kernel.RowOrder.DRAWN):
        _kernel.hold_first(
            **columns,
            times=None,
            float_times=False,
            values=None,
            first=first,
            counts=np.array(counts),
            order=order,
            sizes=np.array(counts),
            held=np.zeros(2, np.uint8),
        )

    for arguments, message in (
        (([1, 1],), "no such item"),
        (([0, 1],), "more rows"),
        (([2],), "fewer rows"),
        (([1, 1], 1), "no such users"),
    ):
        with pytest.raises(ValueError, match=message):
            hold(*arguments)
    with pytest.raises(ValueError, match="too large"):
        _kernel.count_codes(items, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="per row"):
        _kernel.hold_below(**columns, limit=1, held=np.zeros(1, np.uint8))
