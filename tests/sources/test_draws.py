"""Drawn candidates agree with a reference implementation in plain integers."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest

from recometer.sources.alignment import RACE, STREAM, draw_items

N_ITEMS = 50


def splitmix64(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def draw_successively(
    n: int, seed: int, user: int, refused: set[int], pool: list[int], weights: list[int]
) -> list[int]:
    """Draw items by weight, skipping refused and repeated items; a race draws the last ones."""
    key = splitmix64(splitmix64(seed ^ int(STREAM)) ^ user)
    ends = list(accumulate(weights))
    drawn: list[int] = []
    for counter in range(n + n // 2 + 16):
        position = splitmix64(key ^ counter) % ends[-1]
        item = pool[next(place for place, end in enumerate(ends) if position < end)]
        if item not in refused and item not in drawn and len(drawn) < n:
            drawn.append(item)
    runner = splitmix64(key ^ int(RACE))
    times = {}
    for item, weight in zip(pool, weights, strict=True):
        if item not in refused and item not in drawn:
            share = ((splitmix64(runner ^ item) >> 11) + 0.5) * 2.0**-53
            times[item] = share if len({*weights}) == 1 else -math.log(share) / weight
    return sorted(drawn + sorted(times, key=times.__getitem__)[: n - len(drawn)])


@pytest.mark.parametrize("n", [1, 12, 30, 45])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws(n: int, weighted: bool) -> None:
    generator = np.random.default_rng(n)
    users = [int(key) for key in generator.integers(0, 2**63, 12)]
    pool = sorted(generator.choice(N_ITEMS - 1, 40, replace=False).tolist())
    weights = [1000 if item % 10 == 0 else 1 + item for item in pool] if weighted else [1] * 40
    refused = [set(generator.choice(pool, size, replace=False).tolist()) for size in range(12)]
    refused[11] |= {N_ITEMS - 1}  # an item outside the pool
    forbidden = [user * N_ITEMS + item for user in range(12) for item in sorted(refused[user])]
    drawn = draw_items(
        n,
        7,
        np.array(users, np.uint64),
        np.array(forbidden),
        np.array(pool, np.int32),
        np.array(weights) if weighted else None,
        N_ITEMS,
        1,
        None,
    )
    expected = [
        user * N_ITEMS + item
        for user in range(12)
        for item in draw_successively(n, 7, users[user], refused[user], pool, weights)
    ]
    assert drawn.tolist() == expected
