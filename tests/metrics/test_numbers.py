"""Sums, areas and logarithms agree with exact arithmetic, even for many or awkward numbers."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import ragged, ties
from recometer.arrays import Int64
from recometer.metrics import METRICS, ListData
from recometer.metrics.listed.data import exposures
from recometer.metrics.rated import dot
from recometer.metrics.sums import SMALLEST, log2_of, log2_table
from recometer.ties import LONG, PART, resolve, sum_by_user

MANY = 1_000_000
# A naive sum of these numbers has an error of about 1e-11, which grows with the number of terms.
TENTHS = np.full(MANY, 0.1)


def relative_error(actual: float, terms: Any) -> float:
    """Return the relative error of `actual`, which should be the sum of the terms."""
    exact = math.fsum(terms)
    return abs(actual - exact) / abs(exact)


# Rounding errors grow fastest if terms are equal, or if small terms follow large terms.
AWKWARD = {
    "equal": TENTHS,
    "falling": np.geomspace(1e8, 1e-8, MANY),
    "rising": np.geomspace(1e-8, 1e8, MANY),
    "small behind large": np.concatenate([[2.0**40], np.full(MANY, 1e-4)]),
}


def test_naive_sums_are_inaccurate() -> None:
    assert (
        relative_error(float(np.bincount(np.zeros(MANY, int), weights=TENTHS)[0]), TENTHS) > 1e-12
    )


@pytest.mark.parametrize("kind", AWKWARD)
def test_long_sums_of_users_are_accurate(kind: str) -> None:
    terms = AWKWARD[kind]
    assert relative_error(sum_by_user(np.zeros(len(terms), np.int64), terms, 1)[0], terms) < 3e-13


@pytest.mark.parametrize("kind", AWKWARD)
def test_long_sums_of_unsorted_rows_are_accurate(kind: str) -> None:
    terms = AWKWARD[kind]
    numbers = np.arange(len(terms)) % 3
    sums = ragged.sums_of(numbers, terms, 4)
    for number in range(3):
        exact = math.fsum(terms[numbers == number])
        assert abs(sums[number] - exact) < 1e-15 * max(exact, len(terms) * terms.max() * 1e-6)
    assert sums[3] == 0


@pytest.mark.parametrize("kind", AWKWARD)
def test_sums_of_long_columns_are_accurate(kind: str) -> None:
    terms = AWKWARD[kind]
    table = np.column_stack([terms, terms[::-1]])
    assert (
        max(relative_error(column_sum, terms) for column_sum in ragged.column_sums(table)) < 1e-13
    )
    assert relative_error(dot(np.full(len(terms), 2.0), terms), 2 * terms) < 1e-13


def test_column_sums_of_integers_are_exact() -> None:
    counts = np.arange(6).reshape(3, 2)
    assert ragged.column_sums(counts).dtype == np.int64
    assert ragged.column_sums(counts).tolist() == [6, 9]
    assert ragged.column_sums(np.zeros((3, 0))).shape == (0,)


@given(data=st.data(), part=st.integers(2, 5))
def test_sums_of_users_match_their_rows(data: st.DataObject, part: int) -> None:
    """Sums of integers are exact, whatever the size of the parts."""
    lengths = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=8))
    user = np.repeat(np.arange(len(lengths)), lengths)
    values = np.random.default_rng(sum(lengths)).integers(-9, 9, len(user)).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ties, "PART", part)
        patch.setattr(ties, "LONG", 2 * part)
        sums = sum_by_user(user, values, len(lengths) + 1)
    assert sums.tolist() == [values[user == number].sum() for number in range(len(lengths) + 1)]


@pytest.mark.parametrize("length", [PART, LONG - 1, LONG, LONG + 1, 3 * PART, 5 * LONG + 7])
def test_sums_do_not_depend_on_other_users(length: int) -> None:
    values = np.random.default_rng(length).random(length)
    sum_alone = sum_by_user(np.zeros(length, np.int64), values, 1)[0]
    for before in (0, 1, PART - 1, 4 * LONG):
        for after in (0, 5 * LONG):
            user = np.repeat([0, 1, 2], [before, length, after])
            all_values = np.concatenate([np.ones(before), values, np.ones(after)])
            assert sum_by_user(user, all_values, 3)[1] == sum_alone
    if length <= LONG:
        assert sum_alone == np.cumsum(values)[-1]


def test_more_than_2048_rows_are_added_in_parts_of_1024() -> None:
    values = np.random.default_rng(0).random(4000)
    for n in (2048, 2049, 4000):
        ends = [n] if n == 2048 else [1024, 2048, 3072, n]
        parts = [np.cumsum(part)[-1] for part in np.split(values[:n], ends) if len(part)]
        sums = sum_by_user(np.zeros(n, np.int64), values[:n], 1)
        assert sums.tolist() == [np.cumsum(parts)[-1]]


def test_nan_and_infinity_stay_in_sums() -> None:
    user = np.repeat([0, 1], 3 * LONG)
    values = np.ones(len(user))
    values[10], values[-10] = np.inf, np.nan
    assert sum_by_user(user, values, 3).tolist()[::2] == [np.inf, 0.0]
    assert math.isnan(sum_by_user(user, values, 3)[1])
    assert ragged.sums_of(np.array([0, 0, 1]), np.array([np.inf, 1, 2.0]), 2).tolist() == [
        np.inf,
        2.0,
    ]
    tiny = np.array([5e-324, 5e-324])
    assert ragged.sums_of(np.array([1, 1]), tiny, 2).tolist() == [0.0, 1e-323]
    assert ragged.sums_of(np.array([], np.int64), np.array([]), 2).tolist() == [0.0, 0.0]


def test_exposures_of_many_users_are_accurate() -> None:
    n_users = 1_000_000
    items = np.tile([[0, 1]], (n_users, 1))
    lists = rm.TopLists(items, 2, np.ones(n_users, bool), np.zeros(n_users, bool))
    actual = exposures(ListData(lists), 2, discount=np.array([0.1, 0.7]))
    assert relative_error(actual[0], np.full(n_users, 0.1)) < 1e-14
    assert relative_error(actual[1], np.full(n_users, 0.7)) < 1e-14


def natural_logarithm(number: int) -> decimal.Decimal:
    with decimal.localcontext() as context:
        context.prec = 50
        return decimal.Decimal(number).ln()


LOG_OF_2 = natural_logarithm(2)


def correctly_rounded(number: int) -> float:
    with decimal.localcontext() as context:
        context.prec = 50
        return float(natural_logarithm(number) / LOG_OF_2)


def test_logarithms_are_correct_to_the_last_bit() -> None:
    size = 2**20
    # Some math libraries incorrectly round the logarithms of these numbers or of numbers near
    # powers of two.
    awkward = [1621, 3242, 57803, 104703, 107177, 110806, SMALLEST - 1, SMALLEST, SMALLEST + 1]
    awkward += [3393, 7957]  # their logarithms are nearly halfway between two floats
    awkward += [2**power + step for power in range(13, 20) for step in (-1, 0, 1)]
    random_numbers = np.random.default_rng(3).integers(1, size, 1500).tolist()
    numbers = [*range(1, 1000), *awkward, *random_numbers, size]
    logarithms = log2_of(np.array(numbers))
    assert [
        number
        for number, logarithm in zip(numbers, logarithms.tolist(), strict=True)
        if logarithm != correctly_rounded(number)
    ] == []


def test_small_tables_of_logarithms_are_prefixes_of_large_ones() -> None:
    large = log2_table(2**15)
    for size in (2**12, 2**13):
        assert np.array_equal(log2_table(size), large[: size + 1])
    assert large[[0, 1, 2, 4096, 32768]].tolist() == [0, 0, 1, 12, 15]
    assert (np.diff(large[1:]) > 0).all()


def ranks_of(above: Int64, tied: Int64, n_candidates: int) -> rm.Ranks:
    """Return the ranks of a single user whose judged items are all relevant."""
    n = len(above)
    ones = np.ones(1, np.int64)
    return rm.Ranks(
        indptr=np.array([0, n]),
        item=np.arange(n),
        above=above,
        tied=tied,
        before=np.zeros(n, np.int64),
        gain=np.ones(n),
        relevant=np.ones(n, bool),
        n_relevant=ones * n,
        n_candidates=ones * n_candidates,
        n_excluded=ones * 0,
        depth=ones * n_candidates,
        flags=np.full(1, rm.UserFlag.KNOWN, np.uint32),
    )


def value(name: str, ranks: rm.Ranks, cutoff: int = 1) -> float:
    return float(METRICS[name].function(resolve(ranks), np.array([cutoff]))[0, 0])


N = 10_000_000


def test_roc_auc_of_ten_million_items_is_exact_up_to_rounding() -> None:
    """Values agree with exact fractions, even if they are close to 0, 1/2 or 1."""
    spread = np.arange(0, N, 9_973)
    behind, first = np.arange(N - 1000, N), np.arange(1000)
    nearly = np.append(np.arange(999), N - 1)
    for above in (spread, behind, first, nearly, np.append(N // 2, behind)):
        n, n_others = len(above), N - len(above)
        right = sum(n_others - (int(place) - number) for number, place in enumerate(above.tolist()))
        expected = float(Fraction(right, n * n_others))
        actual = value("roc_auc", ranks_of(above, np.zeros(n, np.int64), N))
        assert abs(actual - expected) <= 2.3e-16 * expected


def test_areas_with_millions_of_ties_are_accurate() -> None:
    n = 1_500_000
    ranks = ranks_of(np.zeros(n, np.int64), np.full(n, N - 1), N)
    assert value("roc_auc", ranks) == 0.5
    assert value("partial_auc", ranks, N) == pytest.approx(0.5, rel=1e-15)
    # The expected value is the mean over all orders of the n tied hits and the other items.
    for cutoff in (1, 1000, N // 3):
        n_others = N - n
        pairs = Fraction(cutoff * (cutoff + 1), 2 * (n_others + 1))
        expected = float(pairs / cutoff)
        assert value("partial_auc", ranks, cutoff) == pytest.approx(expected, rel=1e-14)


def test_ideal_order_of_thousands_of_items_scores_exactly_1() -> None:
    for n in (LONG, LONG + 1, 3 * LONG + 5):
        ranks = ranks_of(np.arange(n), np.zeros(n, np.int64), n + 10)
        for cutoff in (n, n + 5, LONG, LONG + 1, n - 1):
            assert value("ndcg", ranks, cutoff) == 1.0


@pytest.mark.parametrize("power", [12, 13])
def test_discounts_near_a_power_of_two_are_correct(power: int) -> None:
    """The tables of logarithms end near powers of two."""
    for above in range(2**power - 4, 2**power + 3):
        ranks = ranks_of(np.array([above]), np.array([0]), above + 9)
        assert value("dcg", ranks, above + 5) == 1 / correctly_rounded(above + 2)


def test_dcg_of_many_items_is_accurate() -> None:
    n = 400_000
    ranks = ranks_of(np.arange(n), np.zeros(n, np.int64), n)
    expected = math.fsum((1 / log2_of(np.arange(2, n + 2))).tolist())
    assert value("dcg", ranks, n) == pytest.approx(expected, rel=1e-14)


def test_means_over_many_users_are_accurate() -> None:
    """All users have the same values, so each mean must equal a user's value."""
    n_users = 500_000
    items = np.tile(np.array([[1, 2, 0]]), (n_users, 1))
    test_data = rm.Interactions(
        indptr=np.arange(n_users + 1), items=np.zeros(n_users, np.int32), n_items=3
    )
    result = rm.evaluate(rm.Lists(items), test_data, metrics="ndcg@3 rr")
    assert result.mean()["rr"] == pytest.approx(1 / 3, rel=1e-15)
    assert result.mean()["ndcg@3"] == 0.5
