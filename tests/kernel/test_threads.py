"""Concurrent calls to native functions return the same results as sequential calls.

Under ThreadSanitizer (`.ci/check_sanitizers`), these tests show that no two calls write to the same
memory.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from orders_of_items import OWN_ORDER, in_order

from recometer import _kernel

THREADS, N_USERS, N_ITEMS, N_JUDGED, N_EXCLUDED, K = 8, 96, 700, 4, 6, 5
BLOCKS = [slice(first, first + N_USERS // THREADS) for first in range(0, N_USERS, 12)]


def run_concurrently(function, tasks):
    """Call a function for all tasks concurrently, and return the results."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, tasks))


def factors(rng, n, dtype):
    return rng.integers(-2, 3, (n, 6)).astype(dtype)


def tables(rng):
    """Return disjoint tables of judged and excluded items, sorted for each user."""
    rows = [rng.permutation(N_ITEMS)[: N_JUDGED + N_EXCLUDED] for _ in range(N_USERS)]
    sides = np.split(np.array(rows, np.int32), [N_JUDGED], axis=1)
    return [
        (np.arange(N_USERS + 1) * side.shape[1], np.sort(side, axis=1).ravel()) for side in sides
    ]


class Ranking:
    """Inputs that all threads share, and outputs in which each thread writes to its own part."""

    def __init__(self, instruction_set, dtype, shuffled):
        rng = np.random.default_rng(5)
        self.instruction_set = instruction_set
        self.users, self.items = factors(rng, N_USERS, dtype), factors(rng, N_ITEMS, dtype)
        self.judged, self.excluded = tables(rng)
        self.order = OWN_ORDER
        if shuffled:
            infinite = np.full(N_ITEMS, np.inf), np.full(N_USERS, np.inf)
            self.order = in_order(rng.permutation(N_ITEMS), *infinite)
        n = len(self.judged[1])
        self.scores = np.zeros(n, dtype)
        self.counts = {name: np.zeros(n, np.int64) for name in ("above", "tied", "before")}
        self.flags, self.finished = np.zeros(N_USERS, np.uint32), np.zeros(N_USERS, np.uint8)
        self.listed = np.full((N_USERS, K), -1, np.int32)

    def common(self, users):
        bound = self.order["user_bound"]
        return {
            "instruction_set": self.instruction_set,
            "users": self.users[users],
            "items": self.items,
            "bias": None,
            "rows": None,
            **self.order,
            "user_bound": None if bound is None else bound[users],
            "first": 0,
            "last": N_ITEMS,
            "excluded_indptr": self.excluded[0][users.start : users.stop + 1],
            "excluded": self.excluded[1],
            "check": True,
            "nan_rule": _kernel.NanRule.UNDEFINED,
            "finished": self.finished[users],
        }

    def rank(self, users):
        indptr = self.judged[0][users.start : users.stop + 1]
        arguments = self.common(users)
        factors = {name: arguments[name] for name in ("instruction_set", "users", "items")}
        _kernel.score_items(
            **factors,
            bias=None,
            rows=None,
            indptr=indptr,
            listed=self.judged[1],
            scores=self.scores,
        )
        inaccurate_user = _kernel.rank_factors(
            **arguments,
            judged_indptr=indptr,
            judged=self.judged[1],
            judged_scores=self.scores,
            **self.counts,
            limit=None,
            flags=self.flags[users],
        )
        assert inaccurate_user == -1

    def top(self, users):
        n = users.stop - users.start
        _kernel.top_factors(
            **self.common(users),
            order=_kernel.TieOrder.RANDOM,
            keys=np.arange(users.start, users.stop, dtype=np.uint64),
            top_scores=np.zeros((n, K), self.users.dtype),
            top_items=self.listed[users],
            n=np.zeros(n, np.int64),
            left=np.zeros(n, np.int64),
            flags=self.flags[users],
        )


@pytest.mark.parametrize("instruction_set", _kernel.instruction_sets())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shuffled", [False, True])
def test_concurrent_blocks_of_users_are_ranked_correctly(instruction_set, dtype, shuffled):
    """Each thread reads its part of the shared tables and writes its part of the output arrays."""
    together, sequential = (Ranking(instruction_set, dtype, shuffled) for _ in range(2))
    for method in ("rank", "top"):
        run_concurrently(getattr(together, method), BLOCKS)
        together.finished[:] = 0
        getattr(sequential, method)(slice(0, N_USERS))
        sequential.finished[:] = 0
    for name, counts in together.counts.items():
        np.testing.assert_array_equal(counts, sequential.counts[name])
    np.testing.assert_array_equal(together.listed, sequential.listed)
    np.testing.assert_array_equal(together.flags, sequential.flags)


def test_concurrent_ranges_of_users_are_split_correctly():
    """Each thread splits the rows of a range of users; these rows may be anywhere in the table."""
    rng = np.random.default_rng(3)
    n, n_users = 4000, 64
    rows = {
        "users": rng.integers(0, n_users, n).astype(np.uint32),
        "items": rng.integers(0, 30, n).astype(np.uint32),
        "user_draws": rng.integers(0, 2**64, n_users, dtype=np.uint64),
        "item_draws": rng.integers(0, 2**64, 30, dtype=np.uint64),
        "times": rng.integers(0, 9, n),
        "float_times": False,
        "values": None,
        "order": _kernel.RowOrder.LATEST,
    }
    counts = np.bincount(rows["users"], minlength=n_users)

    def hold(first, last, held):
        part = counts[first:last]
        _kernel.hold_first(**rows, first=first, counts=part, sizes=part // 3, held=held)

    together, sequential = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    run_concurrently(lambda first: hold(first, first + 8, together), range(0, n_users, 8))
    hold(0, n_users, sequential)
    np.testing.assert_array_equal(together, sequential)
    assert together.sum() == (counts // 3).sum()
