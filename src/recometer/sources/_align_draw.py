"""Drawing items for users: without replacement, and for each user apart.

Every random number is a hash of the seed, the user's key and a counter. A user's first draws
are with replacement, and what was drawn before or is forbidden is passed over: that is drawing
without replacement. Where too few are left, the rest comes from a race among the items that
remain (each gets a random time, exponential with the item's weight as its rate, and the first
ones win), which continues the same distribution: Efraimidis & Spirakis, Weighted random
sampling with a reservoir, 2006.
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Bool, Float64, Int32, Int64, UInt64, slices
from recometer.draws import mix
from recometer.ragged import among, pairs
from recometer.tasks import Ticker, run_tasks

STREAM = np.uint64(0x63616E64)  # so that other draws with the same seed differ
RACE = np.uint64(1 << 63)  # beyond every counter of the first draws
CELLS_AT_ONCE = 2**19  # users x draws in memory at a time
LOG_TERMS = 12


def draw_items(
    n: int,
    seed: int,
    user_keys: UInt64,
    forbidden: Int64,
    pool: Int32,
    weights: Int64 | None,
    n_items: int,
    threads: int,
    progress: bool | None,
) -> Int64:
    """Draw n items of the pool for each user; all there are where there are fewer.

    Parameters
    ----------
    n, seed, user_keys
        How many, and what stands for the draw and for each user in it.
    forbidden : int64 [n_forbidden]
        What a user must not get, as ascending `pairs` among the `n_items` of the catalogue.
    pool : int32 [n_pool]
        The items, ascending.
    weights : int64 [n_pool] or None
        All above 0. None draws uniformly.

    Returns
    -------
    int64 [n_drawn]
        Ascending `pairs` of users and items.
    """
    totals = None if weights is None else np.cumsum(weights)
    times = None if weights is None else 1 / weights
    counters = np.arange(n + n // 2 + 16, dtype=np.uint64)
    keys = mix(mix(np.array([seed], np.uint64) ^ STREAM) ^ user_keys)

    def draw(block: slice, ticker: Ticker) -> Int64:
        ticker.advance()
        users = np.arange(block.start, block.stop)
        bits = mix(keys[block, np.newaxis] ^ counters)
        if totals is None:
            drawn = (bits % np.uint64(len(pool))).astype(np.int64)
        else:
            drawn = np.searchsorted(
                totals, (bits % np.uint64(totals[-1])).astype(np.int64), "right"
            )
        found = pairs(users[:, np.newaxis], pool[drawn], n_items)
        low, high = np.searchsorted(forbidden, [block.start * n_items, block.stop * n_items])
        refused = forbidden[low:high]
        allowed = _first_of_its_kind(drawn) & ~among(found, refused)
        allowed &= np.cumsum(allowed, axis=1) <= n
        taken = [found[allowed]]
        missing = n - np.count_nonzero(allowed, axis=1)
        late = np.flatnonzero(missing)
        for few in slices(len(late), CELLS_AT_ONCE // len(pool)):
            ticker.advance()
            some = late[few]
            bits = mix(mix(keys[users[some], np.newaxis] ^ RACE) ^ pool.astype(np.uint64))
            finish = _uniform(bits) if times is None else _minus_log(_uniform(bits)) * times
            row, draw_ = np.nonzero(allowed[some])
            finish[row, drawn[some][row, draw_]] = np.inf
            finish[_in_pool(refused, users[some], pool, n_items)] = np.inf
            row, place = np.nonzero(_least(finish, missing[some]))
            taken.append(pairs(users[some][row], pool[place], n_items))
        return np.sort(np.concatenate(taken))

    blocks = slices(len(user_keys), CELLS_AT_ONCE // len(counters))
    drawn = run_tasks(draw, blocks, threads=threads, progress=progress, label="Drawing")
    return np.concatenate([np.zeros(0, np.int64), *drawn])


def _first_of_its_kind(rows: Int64) -> Bool:
    """Return, row by row, which numbers did not come before."""
    # Number and place in one, which sorts faster than an order that is stable.
    bits = rows.shape[1].bit_length()
    ordered = np.sort(rows << bits | np.arange(rows.shape[1]), axis=1)
    first = np.ones(rows.shape, bool)
    first[:, 1:] = np.diff(ordered >> bits, axis=1) != 0
    result = np.empty_like(first)
    np.put_along_axis(result, ordered & ((1 << bits) - 1), first, axis=1)
    return result


def _in_pool(numbers: Int64, users: Int64, pool: Int32, n_items: int) -> tuple[Int64, Int64]:
    """Return which pairs are of some users, both ascending, and of items of the pool."""
    user, item = np.divmod(numbers, n_items)
    row = np.minimum(np.searchsorted(users, user), len(users) - 1)
    place = np.minimum(np.searchsorted(pool, item), len(pool) - 1)
    both = (users[row] == user) & (pool[place] == item)
    return row[both], place[both]


def _least(values: Float64, n: Int64) -> Bool:
    """Return, row by row, which values are the n least; infinite values never are."""
    last = np.minimum(n, values.shape[1]) - 1
    limit = np.take_along_axis(np.sort(values, axis=1), last[:, np.newaxis], axis=1)
    found: Bool = (values <= limit) & np.isfinite(values)
    for row in np.flatnonzero(np.count_nonzero(found, axis=1) > n):  # equal times: hardly ever
        found[row] = False
        found[row, np.argsort(values[row], kind="stable")[: n[row]]] = True
    return found


def _uniform(bits: UInt64) -> Float64:
    """Return numbers between 0 and 1, both excluded."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _minus_log(values: Float64) -> Float64:
    """Return -log(values), from operations that give the same bits on every platform."""
    fraction, exponent = np.frexp(values)
    low = fraction < np.sqrt(0.5)
    fraction = np.where(low, 2 * fraction, fraction)
    exponent = exponent - low
    ratio = (fraction - 1) / (fraction + 1)
    square, total = ratio * ratio, np.zeros_like(ratio)
    for term in range(LOG_TERMS, -1, -1):  # log((1 + r) / (1 - r)) = 2 (r + r³/3 + r⁵/5 + ...)
        total = total * square + 1 / (2 * term + 1)
    result: Float64 = -(exponent * 0.6931471805599453 + 2 * ratio * total)
    return result
