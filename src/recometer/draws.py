"""Random numbers from hashes, and the random places of tied items under ``ties="random"``."""

from __future__ import annotations

import numbers

import numpy as np

from recometer.arrays import Int64, UInt64
from recometer.errors import InputError, argument_text
from recometer.ranks import Ranks


def mix(bits: UInt64) -> UInt64:
    """Scramble 64-bit numbers, one to one: the output function of SplitMix64.

    Steele, Lea & Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def mixed_seed(seed: int) -> UInt64:
    """Scramble a seed, so that consecutive seeds give unrelated numbers."""
    return mix(np.array([seed % 2**64], dtype=np.uint64))


def seed_of(seed: int) -> int:
    """Check a seed and return it as an int."""
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**63:
        raise InputError(
            f"{argument_text('seed', seed)} must be a whole number, at least 0 and below 2**63."
        )
    return int(seed)


def drawn_places(ranks: Ranks, user: Int64, seed: int, user_keys: UInt64 | None) -> Int64:
    """Return a place for every judged item; a user's tied items are in one random order.

    A draw is a hash of the seed, the user's key, the tie group's `above` and the item's number
    among the judged items of the group.
    """
    place = ranks.above.copy()
    rows = np.flatnonzero((ranks.tied > 0) & (ranks.above >= 0))
    first, count = find_runs(user[rows], ranks.above[rows])
    run, index = number_runs(count)
    leader = rows[first]
    size = ranks.tied[leader] + 1
    if user_keys is None:
        user_keys = np.arange(ranks.n_users, dtype=np.uint64)
    key = mix(mixed_seed(seed) ^ user_keys[user[leader]])
    key = mix(key ^ ranks.above[leader].astype(np.uint64))

    crowded = 2 * count > size
    in_crowded = crowded[run]
    sparse = ~in_crowded
    place[rows[in_crowded]] += _shuffled(key[crowded], size[crowded], count[crowded])
    place[rows[sparse]] += _distinct(run[sparse], index[sparse], key, size)
    return place


def _shuffled(key: UInt64, size: Int64, count: Int64) -> Int64:
    """Shuffle all `size` places of every group; return those of its first `count` members."""
    group, index = number_runs(size)
    order = np.lexsort((mix(key[group] ^ index.astype(np.uint64)), group))
    place = np.empty_like(index)
    place[order] = index
    return place[index < count[group]]


def _distinct(group: Int64, index: Int64, key: UInt64, size: Int64) -> Int64:
    """Draw distinct places; draw again for items that share a place.

    Items take at most half of a group's places, so each round settles at least about half of the
    items. No place is preferred, so every outcome is equally likely.
    """
    place = np.zeros_like(index)
    pending = np.arange(len(index))
    attempt = 0
    while len(pending):
        counter = index[pending].astype(np.uint64) + np.uint64(attempt << 40)
        draw = mix(key[group[pending]] ^ counter) % size[group[pending]].astype(np.uint64)
        place[pending] = draw.astype(np.int64)
        late = np.zeros(len(index), bool)
        late[pending] = True
        order = np.lexsort((late, place, group))
        same = (np.diff(group[order]) == 0) & (np.diff(place[order]) == 0)
        pending = np.sort(order[1:][same])
        attempt += 1
    return place


def find_runs(user: Int64, above: Int64) -> tuple[Int64, Int64]:
    """Find runs of rows with the same user and the same `above`: the members of a tie group.

    Returns the first row and the number of rows of each run.
    """
    new = np.ones(len(user), bool)
    new[1:] = (user[1:] != user[:-1]) | (above[1:] != above[:-1])
    first = np.flatnonzero(new)
    return first, np.diff(first, append=len(user))


def number_runs(count: Int64) -> tuple[Int64, Int64]:
    """Return the run of each row and its number within the run, given the lengths of the runs."""
    run = np.repeat(np.arange(len(count)), count)
    return run, np.arange(len(run)) - (np.cumsum(count) - count)[run]
