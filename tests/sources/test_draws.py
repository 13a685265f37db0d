"""Tests that drawn candidates agree with a reference implementation that uses Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from recometer.sources.alignment import RACE, STREAM, draw_items

N_ITEMS = 50


def splitmix64(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def draw_successively(n: int, seed: int, user: int, refused: set[int]) -> list[int]:
    """Draw items one by one, and skip refused and repeated items.

    If too few items have been drawn after a fixed number of steps, add the remaining items with the
    smallest hashes.
    """
    key = splitmix64(splitmix64(seed ^ int(STREAM)) ^ user)
    drawn: list[int] = []
    for counter in range(n + n // 2 + 16):
        item = splitmix64(key ^ counter) % N_ITEMS
        if item not in refused and item not in drawn and len(drawn) < n:
            drawn.append(item)
    runner = splitmix64(key ^ int(RACE))
    times = {
        item: ((splitmix64(runner ^ item) >> 11) + 0.5) * 2.0**-53
        for item in range(N_ITEMS)
        if item not in refused and item not in drawn
    }
    return sorted(drawn + sorted(times, key=times.__getitem__)[: n - len(drawn)])


@pytest.mark.parametrize("n", [1, 12, 30, 45])
def test_draws_agree_with_the_reference_implementation(n: int) -> None:
    generator = np.random.default_rng(n)
    users = [int(key) for key in generator.integers(0, 2**63, 12)]
    refused = [set(generator.choice(N_ITEMS, size, replace=False).tolist()) for size in range(12)]
    forbidden = [user * N_ITEMS + item for user in range(12) for item in sorted(refused[user])]
    drawn = draw_items(n, 7, np.array(users, np.uint64), np.array(forbidden), N_ITEMS, 1, None)
    expected = [
        user * N_ITEMS + item
        for user in range(12)
        for item in draw_successively(n, 7, users[user], refused[user])
    ]
    assert drawn.tolist() == expected
