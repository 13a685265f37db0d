"""Tests that rows are sorted by user and item, even if several threads share the work."""

import numpy as np
import pytest

from recometer.data import interactions


@pytest.mark.parametrize("n_users", [1, 2, 7, 5000])
@pytest.mark.parametrize("n_items", [3, 2**31, 2**62])
@pytest.mark.parametrize("skewed", [False, True])
def test_sorting_in_parts_gives_the_order_of_a_stable_sort(n_users, n_items, skewed, monkeypatch):
    rng = np.random.default_rng(n_users)
    users = rng.integers(0, n_users, 3000)
    if skewed:
        users[rng.random(3000) < 0.9] = n_users // 2
    items = rng.integers(0, min(n_items, 40), 3000)
    expected = np.lexsort((items, users))
    for rows in (10_000, 100, 1):
        monkeypatch.setattr(interactions, "ROWS_PER_TASK", rows)
        order = interactions.order_of_pairs(users, items, n_users, n_items)
        np.testing.assert_array_equal(order, expected)


def test_ascending_pairs_need_no_reordering():
    users, items = np.array([0, 0, 2]), np.array([1, 4, 0])
    assert interactions.order_of_pairs(users, items, 3, 5) is None
    assert interactions.order_of_pairs(users, np.array([1, 1, 0]), 3, 5).tolist() == [0, 1, 2]


def test_pairs_with_keys_that_would_overflow_are_sorted():
    users = np.array([2**40, 3, 2**40, 3], dtype=np.int64)
    items = np.array([1, 2**31 - 2, 0, 5], dtype=np.int64)
    order = interactions.order_of_pairs(users, items, n_users=2**40 + 1, n_items=2**31 - 1)
    assert order.tolist() == [3, 1, 2, 0]
    assert interactions.order_of_pairs(users[order], items[order], 2**40 + 1, 2**31 - 1) is None
    # With these users and items, the largest key just fits into 64 bits.
    users = np.array([2**31 + 1, 0])
    assert interactions.order_of_pairs(users, items[:2], 2**31 + 2, 2**31 - 1).tolist() == [1, 0]
