"""The native functions that compute sums within cut-offs agree with their NumPy twins."""

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel
from recometer.ties import sum_by_user

FEW = [0, 1, 2, 5]
MANY = [_kernel.ROWS_WITHOUT_PARTS, _kernel.ROWS_WITHOUT_PARTS + 1, 3 * _kernel.ROWS_OF_PART + 7]


with_cases = given(
    seed=st.integers(0, 2**32),
    lengths=st.lists(st.sampled_from(FEW), max_size=6),
    cutoffs=st.lists(st.integers(0, 12), max_size=4),
)


def draw_places(rng, lengths):
    """Draw the places of each user's rows; some places have no row, and some have several rows."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = [np.sort(rng.integers(0, 2 * n + 1, n)) for n in lengths]
    return indptr, np.concatenate([*rows, []]).astype(np.int64)


def sums_within(module, indptr, place, terms, cutoffs):
    sums = np.full((len(cutoffs), len(indptr) - 1), -9.0)
    module.add_within(indptr, place, terms, cutoffs, sums)
    return sums


@with_cases
def test_add_within_agrees_with_its_twin(seed, lengths, cutoffs):
    rng = np.random.default_rng(seed)
    indptr, place = draw_places(rng, lengths)
    case = indptr, place, rng.normal(size=len(place)), np.array(cutoffs, np.int64)
    np.testing.assert_array_equal(sums_within(_kernel, *case), sums_within(kernel_twin, *case))


def test_long_sums_agree_with_the_twin_to_the_last_bit():
    rng = np.random.default_rng(0)
    indptr, place = draw_places(rng, [*MANY, 3, 0])
    terms = rng.normal(size=len(place))
    no_limit = np.iinfo(np.int64).max
    cutoffs = np.array([no_limit, 3000, 1, 2 * _kernel.ROWS_WITHOUT_PARTS])
    sums = sums_within(_kernel, indptr, place, terms, cutoffs)
    np.testing.assert_array_equal(sums, sums_within(kernel_twin, indptr, place, terms, cutoffs))
    # Rows beyond a cut-off must not affect the sum within it, not even through rounding.
    user = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    for column, cutoff in enumerate(cutoffs):
        rows = place < cutoff
        expected = sum_by_user(user[rows], terms[rows], len(indptr) - 1)
        np.testing.assert_array_equal(sums[column], expected)


@with_cases
def test_sums_of_hits_and_gains_agree_with_their_twins(seed, lengths, cutoffs):
    rng = np.random.default_rng(seed)
    indptr, place = draw_places(rng, lengths)
    compare_terms(indptr, place, rng.normal(size=len(place)), np.array(cutoffs, np.int64))


def test_gains_can_be_a_constant_or_a_table_column():
    indptr, place = draw_places(np.random.default_rng(0), [3, 0, 5])
    column = np.random.default_rng(0).normal(size=(len(place), 3))[:, 1]
    for gains in (column, column[::-1], np.broadcast_to(1.5, len(place))):
        compare_terms(indptr, place, gains, np.array([10**9, 4]))


def test_long_sums_of_hits_and_gains_agree_with_their_twins():
    rng = np.random.default_rng(0)
    indptr, place = draw_places(rng, [*MANY, 3, 0])
    compare_terms(indptr, place, rng.normal(size=len(place)), np.array([10**9, 3000, 1]))


@with_cases
def test_count_within_agrees_with_its_twin(seed, lengths, cutoffs):
    rng = np.random.default_rng(seed)
    indptr, place = draw_places(rng, lengths)
    limits = rng.choice([*cutoffs, 0, 10**9], len(lengths))
    counts = np.full((2, len(lengths)), -9)
    for module, out in zip((_kernel, kernel_twin), counts, strict=True):
        module.count_within(indptr, place, limits, out)
    np.testing.assert_array_equal(*counts)


@pytest.mark.parametrize(
    ("place", "limits", "message"),
    [(1, 1, "one place per row"), (3, 1, "one place per row"), (2, 2, "one limit and one count")],
)
def test_mismatched_limits_are_rejected(place, limits, message):
    arrays = (np.array([0, 2]), np.zeros(place, int), np.zeros(limits, int), np.zeros(1, int))
    with pytest.raises(ValueError, match=message):
        _kernel.count_within(*arrays)


def compare_terms(indptr, place, gains, cutoffs):
    rows = indptr, place
    logarithms = np.log2(np.arange(place.max(initial=0) + 3) + 1)
    for module in (_kernel, kernel_twin):
        sums = np.full((3, len(cutoffs), len(indptr) - 1), -9.0)
        module.add_hits(*rows, cutoffs, sums[0])
        module.add_precisions(*rows, cutoffs, sums[1])
        module.add_discounted(*rows, gains, logarithms, cutoffs, sums[2])
        if module is _kernel:
            expected = sums
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        ("add_hits", {"place": np.zeros(3, int)}, "one entry per row"),
        ("add_hits", {"sums": np.zeros((2, 1))}, "one sum per cut-off and user"),
        ("add_hits", {"place": np.array([4, 3])}, "must be in ascending order"),
        ("add_precisions", {"place": np.array([4, 3])}, "must be in ascending order"),
        ("add_discounted", {"gains": np.zeros(3)}, "one entry per row"),
        ("add_discounted", {"logarithms": np.ones(6)}, "too few logarithms"),
        ("add_discounted", {"place": np.array([-9, 3])}, "too few logarithms"),
    ],
)
def test_functions_of_terms_reject_mismatched_arrays(function, changes, message):
    arguments = {"indptr": np.array([0, 2]), "place": np.array([3, 4]), "cutoffs": np.array([9])}
    arguments["sums"] = np.zeros((1, 1))
    if function == "add_discounted":
        arguments |= {"gains": np.ones(2), "logarithms": np.ones(9)}
    with pytest.raises(ValueError, match=message):
        getattr(_kernel, function)(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.zeros(0, int)}, "must not be empty"),
        ({"place": np.zeros(1, int)}, "one entry per row"),
        ({"terms": np.zeros(3)}, "one entry per row"),
        ({"sums": np.zeros((1, 2))}, "one sum per cut-off and user"),
        ({"sums": np.zeros((2, 1))}, "one sum per cut-off and user"),
        ({"place": np.array([4, 3])}, "must be in ascending order"),
    ],
)
def test_mismatched_arrays_are_rejected(changes, message):
    arguments = {"indptr": np.array([0, 2]), "place": np.array([0, 1]), "terms": np.ones(2)}
    arguments |= {"cutoffs": np.array([9]), "sums": np.zeros((1, 1))}
    with pytest.raises(ValueError, match=message):
        _kernel.add_within(**{**arguments, **changes})
