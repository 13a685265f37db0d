"""The native functions that find top candidates agree with their NumPy twins.

All scores are sums of small integers and therefore exact, and most scores are tied.
"""

import functools
import itertools

import kernel_twin
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from orders_of_items import OWN_ORDER, in_order

from recometer import _kernel

SETS = _kernel.instruction_sets()


def ragged(rng, n_users, n_items, max_items):
    """Draw distinct items for each user, and sort them in ascending order."""
    sizes = np.minimum(rng.integers(0, max_items + 1, n_users), n_items)
    rows = [np.sort(rng.choice(n_items, size, replace=False)) for size in sizes]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return indptr, np.concatenate([*rows, []]).astype(np.int32)


class Lists:
    """Empty lists for the functions to fill."""

    def __init__(self, n_users, k, dtype):
        self.scores = np.full((n_users, k), -9, dtype)
        self.items = np.full((n_users, k), -1, np.int32)
        self.n, self.left, self.gone = (np.zeros(n_users, np.int64) for _ in range(3))
        self.flags, self.finished = np.zeros(n_users, np.uint32), np.zeros(n_users, np.uint8)
        self.keys = np.arange(n_users, dtype=np.uint64) * np.uint64(977)

    def native(self):
        """Return the lists as arguments for the kernel."""
        return {
            "keys": self.keys,
            "top_scores": self.scores,
            "top_items": self.items,
            "n": self.n,
            "left": self.left,
            "flags": self.flags,
        }

    def agrees_with(self, expected):
        for name in ("items", "scores", "n", "left", "flags", "gone"):
            np.testing.assert_array_equal(
                getattr(self, name), getattr(expected, name), err_msg=name
            )


@given(
    seed=st.integers(0, 2**31),
    # Sizes just below, at and just above the user-tile and item-chunk sizes.
    n_users=st.sampled_from([1, 4, 5, 6, 7, 13, 14, 15, 29]),
    n_items=st.sampled_from([1, 7, 16, 17, 63, 64, 65, 127, 255, 257, 511, 700]),
    n_factors=st.sampled_from([0, 1, 3, 17]),
    dtype=st.sampled_from([np.float32, np.float64]),
    high=st.sampled_from([0, 1, 3, 100]),
    k=st.sampled_from([1, 2, 5, 10, 70, 300]),
    order=st.sampled_from(_kernel.TieOrder),
    special=st.booleans(),
    nan_rule=st.sampled_from(_kernel.NanRule),
    how=st.integers(0, 5),
)
@examples(2)
def test_top_factors_agrees_with_its_twin(
    seed, n_users, n_items, n_factors, dtype, high, k, **rules
):
    order, special, nan_rule, kind_of_bias = (
        rules[r] for r in ("order", "special", "nan_rule", "how")
    )
    rng = np.random.default_rng(seed)
    users = rng.integers(-high, high + 1, (n_users, n_factors)).astype(dtype)
    items = rng.integers(-high, high + 1, (n_items, n_factors)).astype(dtype)
    bias = rng.integers(-high, high + 1, n_items).astype(dtype) if kind_of_bias % 2 else None
    rows = rng.permutation(n_items) if kind_of_bias % 3 == 1 else None
    items = np.asfortranarray(items) if kind_of_bias % 3 == 2 else items
    if special and n_factors:
        for value in (np.nan, np.inf, -np.inf):
            items[rng.integers(n_items), rng.integers(n_factors)] = value
    excluded = ragged(rng, n_users, n_items, 60)
    cut = n_items // 3
    expected = Lists(n_users, k, dtype)

    lengths = np.sqrt((items.astype(float) ** 2).sum(axis=1) + (0 if bias is None else bias**2))
    lengths = np.where(np.isnan(lengths), np.inf, lengths if rows is None else lengths[rows])
    shuffled, longest_first = rng.permutation(n_items), np.argsort(-lengths)
    user_bounds = np.sqrt((users.astype(float) ** 2).sum(axis=1) + 1)
    orders = (
        OWN_ORDER,
        in_order(shuffled, np.full(n_items, np.inf), user_bounds),
        in_order(longest_first, lengths[longest_first] * (1 + 1e-9), user_bounds),
    )

    def run(function, lists, first, last, order_of_items=OWN_ORDER):
        with np.errstate(invalid="ignore"):
            function(
                users=users,
                items=items,
                bias=bias,
                rows=rows,
                **order_of_items,
                first=first,
                last=last,
                excluded_indptr=excluded[0],
                excluded=excluded[1],
                order=order,
                **lists.native(),
                finished=lists.finished,
                check=special,
                nan_rule=nan_rule,
            )

    run(kernel_twin.top_factors, expected, 0, n_items)
    for cuts in ((0, n_items), (0, cut, n_items), (0, cut, cut, 2 * cut, n_items)):
        natives = (functools.partial(_kernel.top_factors, instruction_set=name) for name in SETS)
        for function, items_in in itertools.product((*natives, kernel_twin.top_factors), orders):
            lists = Lists(n_users, k, dtype)
            for first, last in itertools.pairwise(cuts):
                run(function, lists, first, last, items_in)
            lists.agrees_with(expected)


@given(
    seed=st.integers(0, 2**31),
    n_items=st.sampled_from([1, 15, 16, 17, 256, 300, 1500]),
    dtype=st.sampled_from([np.float32, np.float64]),
    permuted=st.booleans(),
    k=st.sampled_from([1, 3, 20, 400]),
    order=st.sampled_from(_kernel.TieOrder),
    nan_rule=st.sampled_from(_kernel.NanRule),
)
@examples(2)
def test_top_scores_agrees_with_its_twin(seed, n_items, dtype, permuted, k, order, nan_rule):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (6, n_items)).astype(dtype)
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    scores[rng.random(scores.shape) < 0.02] = np.nan
    scores[rng.random(scores.shape) < 0.02] = np.inf
    scores[scores == 2] = -0.0
    columns = rng.permutation(n_items) if permuted else None
    excluded = ragged(rng, 6, n_items, 10)

    def run(function):
        lists = Lists(6, k, dtype)
        function(
            scores=scores,
            columns=columns,
            excluded_indptr=excluded[0],
            excluded=excluded[1],
            order=order,
            **lists.native(),
            nan_rule=nan_rule,
            no_candidates=lists.gone,
        )
        return lists

    expected = run(kernel_twin.top_scores)
    for instruction_set in SETS:
        run(functools.partial(_kernel.top_scores, instruction_set=instruction_set)).agrees_with(
            expected
        )


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("order", _kernel.TieOrder)
@pytest.mark.parametrize("shape", ["rising", "falling", "constant", "few"])
def test_long_catalogues_are_listed_correctly(instruction_set, order, shape):
    """Test rising scores (the slowest case) and more ties than the kernel can buffer."""
    n, k = 50_000, 7
    scores = {
        "rising": np.arange(n),
        "falling": -np.arange(n),
        "constant": np.zeros(n),
        "few": np.arange(n) % 3,
    }[shape].astype(np.float32)
    no_factors = np.zeros((n, 0), np.float32)
    results = []
    native = functools.partial(_kernel.top_factors, instruction_set=instruction_set)
    for function in (native, kernel_twin.top_factors):
        lists = Lists(1, k, np.float32)
        function(
            users=no_factors[:1],
            items=no_factors,
            bias=scores,
            rows=None,
            **OWN_ORDER,
            first=0,
            last=n,
            excluded_indptr=np.array([0, 2]),
            excluded=np.array([0, n - 1], np.int32),
            order=order,
            **lists.native(),
            finished=lists.finished,
            check=False,
            nan_rule=_kernel.NanRule.UNDEFINED,
        )
        results.append(lists)
    results[0].agrees_with(results[1])
    expected = {"rising": 0, "falling": 0, "constant": n - 2 - k, "few": (n - 2) // 3 - k}
    assert abs(results[0].left[0] - expected[shape]) <= 1
