"""The native kernel agrees with its NumPy twin for every instruction set of this processor.

All scores are sums of small integers and therefore exact, so all counts must be equal.
"""

import functools
import os
import subprocess
import sys
from itertools import product

import kernel_twin
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from orders_of_items import OWN_ORDER, in_order
from ranked_biases import NOTHING, rank_biases, tables, zero_counts

from recometer import _kernel

SETS = _kernel.instruction_sets()
NOT_FUSED = ("plain",)  # these instruction sets round each product before adding it


def ragged(rng, n_users, n_items, max_items, avoid=None):
    """Draw sorted items for each user, leaving out the user's items in the table `avoid`."""
    rows = []
    for user in range(n_users):
        pool = np.arange(n_items)
        if avoid is not None:
            pool = np.setdiff1d(pool, avoid[1][avoid[0][user] : avoid[0][user + 1]])
        size = min(int(rng.integers(0, max_items + 1)), len(pool))
        rows.append(np.sort(rng.choice(pool, size, replace=False)))
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate([*rows, []]).astype(np.int32)


class Problem:
    """A random problem for `score_items` and `rank_factors`, with methods that solve it."""

    def __init__(
        self,
        seed,
        n_users,
        n_items,
        n_factors,
        dtype,
        high,
        most_judged,
        most_excluded,
        kind_of_bias,
    ):
        rng = np.random.default_rng(seed)
        self.users = rng.integers(-high, high + 1, (n_users, n_factors)).astype(dtype)
        self.items = rng.integers(-high, high + 1, (n_items, n_factors)).astype(dtype)
        self.bias = (
            rng.integers(-high, high + 1, n_items).astype(dtype) if kind_of_bias % 2 else None
        )
        self.rows = rng.permutation(n_items) if kind_of_bias % 3 == 1 else None
        if kind_of_bias % 3 == 2:
            self.items = np.asfortranarray(self.items)
        if kind_of_bias % 5 == 4 and n_factors:
            self.items = np.repeat(self.items, 2, axis=0)[::2]
        self.judged = ragged(rng, n_users, n_items, most_judged)
        self.excluded = ragged(rng, n_users, n_items, most_excluded, avoid=self.judged)

    def longest_first(self):
        """Return the items in order of descending vector length, with bounds on their scores."""
        bias = np.zeros(len(self.items)) if self.bias is None else self.bias
        lengths = np.sqrt((self.items.astype(float) ** 2).sum(axis=1) + bias.astype(float) ** 2)
        lengths = lengths if self.rows is None else lengths[self.rows]
        user_bounds = np.sqrt((self.users.astype(float) ** 2).sum(axis=1) + 1)
        order = np.argsort(-lengths)
        return in_order(order, lengths[order] * (1 + 1e-9), user_bounds)

    def shuffled(self):
        """Return the items in random order, without bounds on their scores."""
        order = np.random.default_rng(len(self.items)).permutation(len(self.items))
        infinite = np.full(len(self.items), np.inf)
        return in_order(order, infinite, np.full(len(self.users), np.inf))

    def run(
        self,
        score,
        rank,
        *,
        order=OWN_ORDER,
        cuts=(),
        limit=None,
        check=False,
        nan_rule=_kernel.NanRule.UNDEFINED,
    ):
        factors = {"users": self.users, "items": self.items, "bias": self.bias, "rows": self.rows}
        scores = np.empty(len(self.judged[1]), self.users.dtype)
        score(**factors, indptr=self.judged[0], listed=self.judged[1], scores=scores)
        if nan_rule != _kernel.NanRule.UNDEFINED:
            scores[np.isnan(scores)] = np.inf if nan_rule == _kernel.NanRule.FIRST else -np.inf
        counts = zero_counts(len(scores))
        flags, finished = np.zeros(len(self.users), np.uint32), np.zeros(len(self.users), np.uint8)
        for first, last in zip((0, *cuts), (*cuts, len(self.items)), strict=True):
            inaccurate_user = rank(
                **factors,
                **order,
                first=first,
                last=last,
                **tables(self.excluded, self.judged, scores),
                **counts,
                limit=limit,
                check=check,
                nan_rule=nan_rule,
                flags=flags,
                finished=finished,
            )
            assert inaccurate_user == -1
        return scores, *counts.values(), flags

    def native(self, instruction_set, **options):
        return self.run(
            functools.partial(_kernel.score_items, instruction_set=instruction_set),
            functools.partial(_kernel.rank_factors, instruction_set=instruction_set),
            **options,
        )

    def twin(self, **options):
        return self.run(kernel_twin.score_items, kernel_twin.rank_factors, **options)


# The kernel processes groups of 4, 6, 10 or 14 users, panels of 8, 16 or 32 items, and chunks of
# 64, 128 or 256 items. Test sizes just below, at and just above these.
USERS = [1, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 29]
ITEMS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 700]
FACTORS = [0, 1, 2, 3, 15, 16, 17, 64, 300]


@given(
    seed=st.integers(0, 2**31),
    n_users=st.sampled_from(USERS),
    n_items=st.sampled_from(ITEMS),
    n_factors=st.sampled_from(FACTORS),
    dtype=st.sampled_from([np.float32, np.float64]),
    high=st.sampled_from([0, 1, 3, 100]),
    most_judged=st.sampled_from([0, 1, 2, 4, 10, 40]),
    most_excluded=st.sampled_from([0, 3, 60]),
    kind_of_bias=st.integers(0, 29),
    check=st.booleans(),
)
@examples(3)
def test_native_and_twin_agree(check, **problem):
    problem = Problem(**problem)
    expected = problem.twin(check=check)
    cut, names = len(problem.items) // 3, ("scores", "above", "tied", "before", "flags")
    all_cuts = ((), (cut,), (cut, cut), (cut, 2 * cut))
    for instruction_set, cuts, order in product(SETS, all_cuts, (OWN_ORDER, problem.shuffled())):
        results = problem.native(instruction_set, cuts=cuts, order=order, check=check)
        for name, actual, expected_array in zip(names, results, expected, strict=True):
            np.testing.assert_array_equal(
                actual, expected_array, err_msg=f"{name} {instruction_set} {cuts}"
            )
    for expected_array, actual in zip(
        expected, problem.twin(order=problem.shuffled()), strict=True
    ):
        np.testing.assert_array_equal(actual, expected_array)


@pytest.mark.parametrize(("judged", "excluded"), [(3000, 0), (0, 3000), (1500, 1500)])
def test_native_and_twin_agree_on_thousands_of_items(judged, excluded):
    for dtype, high in ((np.float32, 2), (np.float64, 50), (np.float32, 0)):
        problem = Problem(7, 3, 4099, 5, dtype, high, judged, excluded, kind_of_bias=1)
        expected = problem.twin()
        for instruction_set in SETS:
            for actual, expected_array in zip(
                problem.native(instruction_set), expected, strict=True
            ):
                np.testing.assert_array_equal(actual, expected_array, err_msg=instruction_set)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_narrow_counters_do_not_overflow(dtype):
    """There are more chunks of items than the counters can count before they are flushed."""
    problem = Problem(3, 16, 9001, 600, dtype, 2, 40, 30, kind_of_bias=1)
    expected = problem.twin()
    for instruction_set in SETS:
        for actual, expected_array in zip(problem.native(instruction_set), expected, strict=True):
            np.testing.assert_array_equal(actual, expected_array)


@pytest.mark.parametrize("instruction_set", SETS)
@given(
    seed=st.integers(0, 2**31),
    max_judged=st.sampled_from([1, 2, 10]),
    kind_of_bias=st.integers(0, 29),
)
def test_each_block_of_users_reads_its_slice_of_the_tables(
    instruction_set, seed, max_judged, kind_of_bias
):
    """Each call receives its user's slice of the tables, which may be empty."""
    problem = Problem(seed, 7, 50, 3, np.float32, 2, max_judged, max_judged, kind_of_bias)
    _, *counts, _ = problem.twin()
    judged, scores = problem.judged, np.empty(len(problem.judged[1]), np.float32)
    block_counts = zero_counts(len(scores))
    for user in range(7):
        block, offsets = slice(user, user + 1), slice(user, user + 2)
        factors = {
            "instruction_set": instruction_set,
            "users": problem.users[block],
            "items": problem.items,
            "bias": problem.bias,
            "rows": problem.rows,
        }
        _kernel.score_items(**factors, indptr=judged[0][offsets], listed=judged[1], scores=scores)
        excluded = problem.excluded[0][offsets], problem.excluded[1]
        inaccurate_user = _kernel.rank_factors(
            **factors,
            **OWN_ORDER,
            first=0,
            last=50,
            **tables(excluded, (judged[0][offsets], judged[1]), scores),
            **block_counts,
            limit=None,
            check=False,
            nan_rule=_kernel.NanRule.UNDEFINED,
            flags=np.zeros(1, np.uint32),
            finished=np.zeros(1, np.uint8),
        )
        assert inaccurate_user == -1
    np.testing.assert_array_equal(list(block_counts.values()), counts)


N_MANY = 150_000


def many_scores(constant):
    """Return scores and judged items for a catalogue too large for the kernel's counters."""
    scores = np.zeros(N_MANY) if constant else np.arange(N_MANY) % 7.0
    judged = np.concatenate([[0, 6], np.arange(40, 110), [N_MANY - 1]]).astype(np.int32)
    scores[judged[2:-1]] = -np.arange(1, 71)
    return scores.astype(np.float32), judged


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("given_scores", [True, False])
def test_counts_may_exceed_the_capacity_of_the_bit_planes(instruction_set, constant, given_scores):
    scores, judged = many_scores(constant)
    judged_scores = np.ascontiguousarray(scores[judged])
    counts = zero_counts(len(judged_scores))
    if given_scores:
        inaccurate_user = _kernel.rank_scores(
            instruction_set=instruction_set,
            scores=scores[None],
            columns=None,
            **tables(NOTHING, (np.array([0, len(judged_scores)]), judged), judged_scores),
            **counts,
            limit=None,
            nan_rule=_kernel.NanRule.UNDEFINED,
            flags=np.zeros(1, np.uint32),
            no_candidates=np.zeros(1, np.int64),
        )
    else:
        inaccurate_user = rank_biases(instruction_set, scores, judged, judged_scores, counts)
    assert inaccurate_user == -1
    np.testing.assert_array_equal(counts["above"], [(scores > s).sum() for s in judged_scores])
    np.testing.assert_array_equal(counts["tied"], [(scores == s).sum() - 1 for s in judged_scores])
    expected = [(scores[:i] == s).sum() for i, s in zip(judged, judged_scores, strict=True)]
    np.testing.assert_array_equal(counts["before"], expected)


@given(
    seed=st.integers(0, 2**31),
    n_judged=st.integers(1, 70),
    n_kinds=st.integers(1, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    infinite=st.booleans(),
)
@examples(1)
def test_signed_zeros_and_extreme_scores_are_ranked_correctly(
    seed, n_judged, n_kinds, dtype, infinite
):
    rng, facts = np.random.default_rng(seed), np.finfo(dtype)
    sizes = np.array([0, 0, 1, 2, 3], dtype) * facts.smallest_subnormal
    sizes = np.append(sizes, [facts.tiny, 1, np.nextafter(dtype(1), dtype(2)), facts.max])
    kinds = np.concatenate([sizes, -sizes, [np.inf, -np.inf] if infinite else []]).astype(dtype)
    scores = rng.choice(rng.choice(kinds, n_kinds), 600)
    judged = np.sort(rng.choice(len(scores), n_judged, replace=False)).astype(np.int32)
    judged_scores = scores[judged]
    for instruction_set, check in product(SETS, (True,) if infinite else (True, False)):
        counts = zero_counts(n_judged)
        assert (
            rank_biases(instruction_set, scores, judged, judged_scores, counts, check=check) == -1
        )
        message = f"{instruction_set} {check}"
        above = [(scores > s).sum() for s in judged_scores]
        tied = [(scores == s).sum() - 1 for s in judged_scores]
        before = [(scores[:i] == s).sum() for i, s in zip(judged, judged_scores, strict=True)]
        np.testing.assert_array_equal(counts["above"], above, message)
        np.testing.assert_array_equal(counts["tied"], tied, message)
        np.testing.assert_array_equal(counts["before"], before, message)


@pytest.mark.parametrize("instruction_set", SETS)
def test_judged_item_with_an_inconsistent_score_is_reported(instruction_set):
    scores, judged = many_scores(constant=False)
    judged_scores = np.ascontiguousarray(scores[judged])
    judged_scores[1] += 0.5
    assert (
        rank_biases(instruction_set, scores, judged, judged_scores, zero_counts(len(judged_scores)))
        == 1
    )


@given(
    seed=st.integers(0, 2**31),
    limit=st.integers(0, 30),
    kind_of_bias=st.integers(0, 29),
    # Problems with many ties, with fewer ties, and with several blocks of packed items.
    shape=st.sampled_from([(2000, 3, 1), (2000, 3, 20), (1500, 200, 3)]),
)
@examples(1.5)
def test_limit_does_not_change_the_counts_below_it(seed, limit, kind_of_bias, shape):
    n_items, n_factors, high = shape
    problem = Problem(seed, 31, n_items, n_factors, np.float32, high, 12, 30, kind_of_bias)
    _, above, tied, before, _ = problem.twin()
    within = above < limit
    orders = (OWN_ORDER, problem.shuffled(), problem.longest_first())
    for instruction_set, cuts, order in product(SETS, ((), (700,)), orders):
        results = problem.native(instruction_set, cuts=cuts, limit=limit, order=order)
        for counts, expected in zip(results[1:4], (above, tied, before), strict=True):
            np.testing.assert_array_equal(counts[within], expected[within])
        assert (results[1][~within] >= limit).all()


@pytest.mark.parametrize("limit", [None, 0, 1, 40, 1200])
@pytest.mark.parametrize(("dtype", "high"), [(np.float32, 40), (np.float64, 40), (np.float64, 9)])
def test_users_with_many_distinct_scores_are_ranked_correctly(dtype, high, limit):
    """If a user's judged items have many distinct scores, the kernel takes a separate code path."""
    problem = Problem(5, 6, 2100, 9, dtype, high, 1500, 60, kind_of_bias=1)
    few_judged = Problem(6, 3, 2100, 9, dtype, high, 12, 60, kind_of_bias=1).judged
    problem.users = np.concatenate([problem.users, problem.users[:3]])
    problem.judged = (
        np.concatenate([problem.judged[0], problem.judged[0][-1] + few_judged[0][1:]]),
        np.concatenate([problem.judged[1], few_judged[1]]),
    )
    none = np.full(3, problem.excluded[0][-1])
    problem.excluded = np.concatenate([problem.excluded[0], none]), problem.excluded[1]
    _, *expected, _ = problem.twin()
    within = slice(None) if limit is None else expected[0] < limit
    orders = (OWN_ORDER, problem.shuffled(), problem.longest_first())
    for instruction_set, cuts, order in product(SETS, ((), (700,)), orders):
        results = problem.native(instruction_set, cuts=cuts, limit=limit, order=order)
        for counts, expected_counts in zip(results[1:4], expected, strict=True):
            np.testing.assert_array_equal(counts[within], expected_counts[within])


@given(
    nan_rule=st.sampled_from(_kernel.NanRule),
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@examples(2)
def test_native_and_twin_agree_on_nan_and_infinite_scores(nan_rule, seed, dtype):
    problem = Problem(seed, 9, 70, 3, dtype, 5, 8, 8, kind_of_bias=1)
    rng = np.random.default_rng(seed)
    for value in (np.nan, np.inf, -np.inf):
        if rng.random() < 0.6:
            problem.items[rng.integers(70), rng.integers(3)] = value
    with np.errstate(invalid="ignore"):
        expected = problem.twin(check=True, nan_rule=nan_rule)
    for instruction_set in SETS:
        results = problem.native(instruction_set, check=True, nan_rule=nan_rule)
        np.testing.assert_array_equal(results[4], expected[4])
        for counts, expected_counts in zip(results[1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(counts, expected_counts)


@given(
    nan_rule=st.sampled_from(_kernel.NanRule),
    seed=st.integers(0, 2**31),
    n_items=st.sampled_from([1, 15, 16, 17, 256, 300]),
    dtype=st.sampled_from([np.float32, np.float64]),
    permuted=st.booleans(),
)
@examples(2)
def test_rank_scores_agrees_with_its_twin(nan_rule, seed, n_items, dtype, permuted):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (6, n_items)).astype(dtype)
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    scores[rng.random(scores.shape) < 0.02] = np.nan
    scores[rng.random(scores.shape) < 0.02] = np.inf
    columns = rng.permutation(n_items) if permuted else None
    judged = ragged(rng, 6, n_items, 20)
    excluded = ragged(rng, 6, n_items, 10, avoid=judged)
    users = np.repeat(np.arange(6), np.diff(judged[0]))
    judged_scores = scores[users, judged[1] if columns is None else columns[judged[1]]]
    # Set the scores of judged items that are not candidates to NaN, as sources do.
    judged_scores[np.isneginf(judged_scores)] = np.nan
    keep = ~np.isnan(judged_scores)
    offsets = np.concatenate([[0], np.cumsum(keep)])
    judged = offsets[judged[0]], judged[1][keep]
    judged_scores = judged_scores[keep]

    def run(rank):
        counts = zero_counts(len(judged_scores))
        flags, gone = np.zeros(6, np.uint32), np.zeros(6, np.int64)
        inaccurate_user = rank(
            scores=scores,
            columns=columns,
            **tables(excluded, judged, judged_scores),
            **counts,
            limit=None,
            nan_rule=nan_rule,
            flags=flags,
            no_candidates=gone,
        )
        assert inaccurate_user == -1
        return *counts.values(), flags, gone

    expected = run(kernel_twin.rank_scores)
    for instruction_set in SETS:
        results = run(functools.partial(_kernel.rank_scores, instruction_set=instruction_set))
        for actual, expected_array in zip(results, expected, strict=True):
            np.testing.assert_array_equal(actual, expected_array)


@given(st.lists(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2)), max_size=6), max_size=5))
def test_best_first_agrees_with_its_twin(users):
    indptr = np.concatenate([[0], np.cumsum([len(user) for user in users])]).astype(np.int64)
    table = np.array([row for user in users for row in user], np.int64).reshape(-1, 2)
    above, before = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
    native_order, twin_order = np.empty(len(table), np.int64), np.empty(len(table), np.int64)
    for ties in (before, None):
        _kernel.best_first(indptr, above, ties, native_order)
        kernel_twin.best_first(indptr, above, ties, twin_order)
        np.testing.assert_array_equal(native_order, twin_order)


@given(
    seed=st.integers(0, 2**31),
    n=st.sampled_from([0, 1, 2, 300, 3000]),
    kind=st.sampled_from(["any", "few", "zero", "infinite", "tiny"]),
)
def test_longest_first_agrees_with_its_twin(seed, n, kind):
    rng = np.random.default_rng(seed)
    lengths = rng.gamma(0.5, size=n)
    if kind == "few":
        lengths = rng.integers(0, 4, n).astype(float)
    elif kind == "infinite":
        lengths[rng.random(n) < rng.choice([0.01, 0.5, 1])] = np.inf
    elif kind in ("zero", "tiny"):
        lengths *= 0 if kind == "zero" else 1e-320
    native_arrays, twin_arrays = ((np.empty(n, np.int32), np.empty(n)) for _ in range(2))
    _kernel.longest_first(lengths, *native_arrays)
    kernel_twin.longest_first(lengths, *twin_arrays)
    for actual, expected in zip(native_arrays, twin_arrays, strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_instruction_sets_return_identical_scores(dtype):
    """Scores of random factors are rounded, but in the same way for every vector width."""
    rng = np.random.default_rng(3)
    problem = Problem(3, 40, 3000, 37, dtype, 3, 30, 30, kind_of_bias=0)
    problem.users = rng.standard_normal(problem.users.shape).astype(dtype)
    problem.items = rng.standard_normal(problem.items.shape).astype(dtype)
    fused = [name for name in SETS if name not in NOT_FUSED]
    results = [problem.native(name) for name in fused]
    for result in results[1:]:
        for actual, first_result in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(actual, first_result)


def test_environment_variable_selects_the_instruction_set():
    environment = {**os.environ, "RECOMETER_INSTRUCTION_SET": "plain"}
    code = "from recometer import _kernel; print(_kernel.instruction_set())"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "plain"


def test_unsupported_instruction_set_is_rejected(monkeypatch):
    monkeypatch.setenv("RECOMETER_INSTRUCTION_SET", "sse9")
    with pytest.raises(
        ValueError,
        match=r"'sse9' is not an instruction set that this processor supports .*plain\)",
    ):
        _kernel.instruction_set()
