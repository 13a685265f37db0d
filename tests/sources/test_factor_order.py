"""Tests that scoring the items with the longest factors first changes no result."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import _kernel
from recometer.sources import factors as factor_source
from recometer.sources.alignment import align
from recometer.sources.base import Request
from recometer.sources.candidates import read_candidates
from recometer.sources.factors import FactorsWork, length_bounds

KINDS = ["whole", "skewed", "parallel", "repeated", "tiny", "large", "constant", "special"]


def draw_factors(rng, kind, n, n_factors, dtype):
    """Draw factors; `kind` determines their lengths and ties."""
    rows = rng.standard_normal((n, n_factors))
    limits = np.finfo(dtype)
    if kind == "whole":
        rows = rng.integers(-1, 2, rows.shape)
    elif kind == "skewed":
        rows *= np.exp(2 * rng.standard_normal((n, 1)))
    elif kind == "parallel":  # the scores are nearly equal to their bounds
        rows = np.ones((n, 1)) * rows[:1] * (1 + rng.integers(-2, 3, (n, 1)) * float(limits.eps))
    elif kind == "repeated":
        rows = rows[rng.integers(0, max(n // 3, 1), n)]
    elif kind == "tiny":
        rows *= float(limits.tiny) ** rng.choice([0.4, 0.5, 0.55, 1.0], (n, 1))
    elif kind == "large":
        rows *= float(limits.max) ** rng.choice([0.3, 0.45], (n, 1))
    elif kind == "constant":
        rows[:] = 1
    elif n_factors:
        rows[rng.integers(n), rng.integers(n_factors)] = rng.choice([np.nan, np.inf])
    return rows.astype(dtype)


def draw_bias(rng, kind, n, dtype):
    return {
        "none": lambda: None,
        "whole": lambda: rng.integers(-2, 3, n).astype(dtype),
        "large": lambda: (100 * rng.standard_normal(n) + 100).astype(dtype),
        "negative": lambda: -rng.random(n).astype(dtype),
        "zero": lambda: np.zeros(n, dtype),
    }[kind]()


def interactions(rng, n_users, n_items, share):
    stored = rng.random((n_users, n_items)) < share
    stored[0, 0] = True
    return rm.Interactions.of(
        {
            f"u{user}": [f"i{item}" for item in np.flatnonzero(row)]
            for user, row in enumerate(stored)
        }
    )


def outcome(source, request, k, *, longest_first):
    """Return all ranks and lists; optionally, score the items with the longest factors first."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_ITEMS", "MIN_USERS"):
            patch.setattr(factor_source, name, 0 if longest_first else 2**62)
        patch.setattr(factor_source, "MAX_MEDIAN", np.inf)
        ranks = source.rank(dataclasses.replace(request, depth=k))
        lists = source.top(request, k)
    return vars(ranks), vars(lists)


@given(
    seed=st.integers(0, 2**31),
    user_kind=st.sampled_from(KINDS),
    item_kind=st.sampled_from(KINDS),
    bias=st.sampled_from(["none", "whole", "large", "negative", "zero"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    shape=st.sampled_from([(3, 40, 2), (20, 700, 1), (17, 900, 5), (9, 300, 0), (2, 1300, 33)]),
    k=st.sampled_from([1, 3, 10, 200]),
    ties=st.sampled_from(["expected", "item_desc", "random"]),
    with_candidates=st.booleans(),
)
@examples(2)
def test_scoring_the_longest_items_first_changes_nothing(
    seed, user_kind, item_kind, bias, dtype, shape, k, ties, with_candidates
):
    rng = np.random.default_rng(seed)
    n_users, n_items, n_factors = shape
    source = rm.Factors(
        draw_factors(rng, user_kind, n_users, n_factors, dtype),
        draw_factors(rng, item_kind, n_items, n_factors, dtype),
        item_bias=draw_bias(rng, bias, n_items, dtype),
        user_ids=[f"u{user}" for user in rng.permutation(n_users)],
        item_ids=[f"i{item}" for item in rng.permutation(n_items)],
    )
    candidates = [f"i{item}" for item in range(n_items) if rng.random() < 0.8] + ["i0"]
    request = Request(
        interactions(rng, n_users, n_items, 0.02),
        interactions(rng, n_users, n_items, 0.1),
        rm.Protocol(ties=ties),
        candidates=read_candidates(candidates) if with_candidates else None,
    )
    with np.errstate(all="ignore"):
        longest_first, unordered = (
            outcome(source, request, k, longest_first=on) for on in (True, False)
        )
    for actual, expected in zip(longest_first, unordered, strict=True):
        for name, value in expected.items():
            np.testing.assert_array_equal(actual[name], value, err_msg=name)


@given(
    seed=st.integers(0, 2**31),
    kinds=st.tuples(*[st.sampled_from(KINDS[:-1])] * 2),
    bias=st.sampled_from(["none", "whole", "large", "negative", "zero"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    n_factors=st.sampled_from([0, 1, 2, 7, 64, 513]),
    aligned=st.booleans(),
)
@examples(3)
def test_no_score_exceeds_its_bound(seed, kinds, bias, dtype, n_factors, aligned):
    rng = np.random.default_rng(seed)
    users = draw_factors(rng, kinds[0], 6, n_factors, dtype)
    items = draw_factors(rng, kinds[1], 50, n_factors, dtype)
    if aligned and n_factors:  # make the scores nearly equal to their bounds
        items[:25] = users[0] * rng.choice([1, 1 / 3, 7, 1 - float(np.finfo(dtype).eps)], (25, 1))
    biases = draw_bias(rng, bias, 50, dtype)
    largest_bias = 0.0 if biases is None else np.maximum(biases, 0).astype(np.float64)
    bounds = np.multiply.outer(
        length_bounds(users, 0.0 if biases is None else 1.0), length_bounds(items, largest_bias)
    )
    for instruction_set in _kernel.instruction_sets():
        scores = np.empty(300, dtype)
        _kernel.score_items(
            instruction_set=instruction_set,
            users=users,
            items=items,
            bias=biases,
            rows=None,
            indptr=np.arange(7) * 50,
            listed=np.tile(np.arange(50, dtype=np.int32), 6),
            scores=scores,
        )
        assert not (scores.reshape(6, 50) > bounds).any()


def test_users_finish_early_if_lengths_fall(monkeypatch):
    """A single call to the kernel suffices for all users, both for ranks and for lists."""
    rng = np.random.default_rng(3)
    lengths = 1 / np.arange(1, 20_001)
    items = (np.abs(rng.standard_normal((20_000, 8))) * lengths[:, np.newaxis]).astype(np.float32)
    users = np.abs(rng.standard_normal((30, 8))).astype(np.float32)
    last = []
    for name in ("rank_factors", "top_factors"):
        native = getattr(_kernel, name)

        def call(native=native, **arguments):
            last.append(arguments["last"])
            return native(**arguments)

        monkeypatch.setattr(_kernel, name, call)
    monkeypatch.setattr("recometer.sources.factors.SECONDS_PER_CALL", 1e-9)
    test = rm.Interactions.of((rng.random((30, 20_000)) < 0.001).astype(float))
    source = rm.Factors(users, items[rng.permutation(20_000)])
    ranks = source.rank(Request(test, depth=10))
    source.top(Request(test), 10)
    assert last == [2048, 2048]
    monkeypatch.setattr(factor_source, "MIN_ITEMS", 10**9)
    expected = source.rank(Request(test, depth=10))
    np.testing.assert_array_equal(ranks.above, expected.above)
    assert max(last) > 2048


def order_of(source, request):
    work = FactorsWork(source._factors, align(source._index, request), request)
    return work.longest_first


def test_bounds_decrease_and_places_are_a_permutation(monkeypatch):
    monkeypatch.setattr(factor_source, "MAX_MEDIAN", np.inf)
    rng = np.random.default_rng(5)
    for kind in KINDS[:-1]:
        items = draw_factors(rng, kind, 3000, 4, np.float64)
        source = rm.Factors(items[:20], items, item_bias=rng.random(3000))
        order = order_of(source, Request(rm.Interactions.of(np.eye(20, 3000)), depth=5))
        np.testing.assert_array_equal(order["by_place"][order["places"]], np.arange(3000))
        assert (np.diff(order["item_bound"]) <= 0).all()


@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_items_of_similar_length_are_not_reordered(spread):
    rng = np.random.default_rng(7)
    items = rng.standard_normal((4000, 32)) * np.exp(spread * rng.standard_normal((4000, 1)))
    source, test = rm.Factors(items[:20], items), rm.Interactions.of(np.eye(20, 4000))
    assert (order_of(source, Request(test, depth=5)) is None) == (spread < 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_users_who_finish_early_do_not_stop_others(dtype):
    """The kernel scores 2,048 items at a time; only half of the users need all scores."""
    rng = np.random.default_rng(2)
    items = rng.integers(1, 8, (9000, 2)).astype(dtype)
    items[:30] *= 1000
    users = np.tile(np.array([[1, 0], [-1, 0]], dtype), (10, 1))
    request = Request(rm.Interactions.of(np.eye(20, 9000)), None, rm.Protocol(ties="item"), depth=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recometer.sources.factors.SECONDS_PER_CALL", 0.0)
        source = rm.Factors(users, items)
        lists = source.top(request, 3).items
        ranks = source.rank(request)
    expected = np.argsort(-(users @ items.T), axis=1, kind="stable")
    np.testing.assert_array_equal(lists, expected[:, :3])
    scores = users @ items.T
    above = (scores > scores[range(20), range(20)][:, None]).sum(axis=1)
    np.testing.assert_array_equal(ranks.above, np.where(above < 3, above, -1))


def test_item_with_short_factors_and_a_large_bias_is_found():
    items = np.geomspace(1000, 1, 2000)[:, None]
    bias = np.ones(2000)
    bias[-1] = 50
    test = np.zeros((20, 2000))
    test[:, 0] = 1  # the item with the longest factors has the second-highest score
    source = rm.Factors(np.full((20, 1), 0.001), items, item_bias=bias)
    assert rm.evaluate(source, test, metrics="hit@1 hit@2").mean() == {"hit@1": 0, "hit@2": 1}
