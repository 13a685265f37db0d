"""Sums of parts are those of the whole: no Spark is needed for that."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import stats
from recometer.metrics.predictions import Predictions
from recometer.spark import _across, _rows
from recometer.spark._blocks import blocks
from recometer.spark._cells import MOST_VALUES, Cells
from recometer.spark._few import FewRows
from recometer.spark._packing import folded, from_bytes, to_bytes
from recometer.spark._ratios import Ratios
from recometer.stats.grouping import group

VALUES_OF_USERS = [0.0, 0.25, 1 / 3, 0.5, 1.0]
VALUES = st.lists(st.sampled_from([*VALUES_OF_USERS, float("nan")]), max_size=60)


@given(VALUES, st.lists(st.integers(0, 60), max_size=4))
def test_parts_of_values_are_grouped_as_the_whole(values, cuts):
    whole = np.array(values)
    parts = [Cells.of(part) for part in np.split(whole, sorted(cuts))]
    found, expected = Cells.together(parts).grouped(), group(whole)
    assert found.n == expected.n
    for name in ("estimate", "n_above", "n_below", "sum_of_squares", "exact"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), nan_ok=True)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.counts, expected.counts)


def test_cells_of_many_values_move_an_interval_by_less_than_a_thousandth():
    rng = np.random.default_rng(0)
    values = rng.beta(0.5, 2, 80_000) * (rng.random(80_000) < 0.7)
    parts = [Cells.of(part) for part in np.array_split(values, 7)]
    joined = Cells.together(parts)
    assert len(joined.counts) > MOST_VALUES / 4
    assert joined.n == len(values)
    assert joined.mean == pytest.approx(values.mean(), rel=1e-13)
    for kind in ("t", "auto"):
        one = stats.interval(values, kind, bounds=(0, 1))
        other = stats.means.interval_of(joined.grouped(), kind, bounds=(0, 1))
        width = one.high - one.low
        assert [other.low, other.high] == pytest.approx([one.low, one.high], abs=width / 1000)


def test_cells_of_values_close_together_are_narrow():
    rng = np.random.default_rng(0)
    values = 0.9 + 1e-6 * rng.random(60_000)
    joined = Cells.together([Cells.of(part) for part in np.array_split(values, 5)])
    one = stats.interval(values, "bca")
    other = stats.means.interval_of(joined.grouped(), "bca")
    assert [other.low, other.high] == pytest.approx(
        [one.low, one.high], rel=0, abs=(one.high - one.low) / 1000
    )


def test_cells_of_negative_values_do_not_cross_zero():
    values = np.linspace(-1, 1, 3 * MOST_VALUES)
    found = Cells.of(values)
    assert ((found.low < 0) == (found.high < 0)).all()
    assert (np.diff(found.low) > 0).all()
    assert found.counts.sum() == len(values)
    grouped = found.grouped()
    assert (grouped.n_above, grouped.n_below) == (np.sum(values > 0), np.sum(values < 0))


def test_parts_of_ratios_are_those_of_the_whole():
    rng = np.random.default_rng(1)
    y = rng.integers(1, 9, 20_000).astype(float)
    x = y * rng.random(20_000)
    ratio = x.sum() / y.sum()
    pairs = zip(np.array_split(x, 5), np.array_split(y, 5), strict=True)
    joined = Ratios.together([Ratios.of(*pair, ratio) for pair in pairs])
    found = stats.means.interval_of(joined.grouped(), "bca")
    expected = stats.interval(x / y, "bca", weights=y)
    width = expected.high - expected.low
    assert [found.low, found.high] == pytest.approx([expected.low, expected.high], abs=width / 500)
    again = from_bytes(to_bytes({"0 ratios": joined, "0 sums": np.ones(3)}))
    np.testing.assert_array_equal(again["0 ratios"].x, joined.x)
    assert again["0 ratios"].squares == joined.squares
    assert again["0 sums"].tolist() == [1, 1, 1]


@given(st.lists(st.sampled_from(VALUES_OF_USERS), max_size=200))
def test_parts_may_be_put_together_a_few_at_a_time(values):
    parts = [Cells.of(np.array([value])) for value in values]
    found = folded(parts, Cells.together)
    if not values:
        assert found is None
        return
    whole = Cells.of(np.array(values))
    np.testing.assert_array_equal(found.low, whole.low)
    np.testing.assert_array_equal(found.counts, whole.counts)
    assert found.squares == pytest.approx(whole.squares, abs=1e-12)


def test_few_rows_are_kept_in_the_order_of_their_keys():
    keys = np.array([["b", "1"], ["a", "2"], ["a", "1"]])
    rows = np.array([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]])
    parts = [FewRows.of(keys[n : n + 1], rows[n : n + 1], 3) for n in range(3)]
    joined = from_bytes(to_bytes({"0 rows": FewRows.together(parts)}))["0 rows"]
    assert joined.sorted()[:, 0].tolist() == [3, 2, 1]
    more = FewRows.together([joined, parts[0]])
    assert (more.n, len(more.rows), more.squares) == (4, 0, 2 * (1 + 4 + 9 + 1))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 40), st.integers(1, 9))
def test_blocks_hold_whole_users(lengths, least, size):
    users = np.repeat(np.arange(len(lengths)), lengths)
    table = pa.table({"u": users, "n": np.arange(len(users))})
    batches = table.to_batches(max_chunksize=size)
    found = list(blocks([*batches, batches[0].slice(0, 0)], least))
    assert pa.concat_tables(found)["n"].to_pylist() == list(range(len(users)))
    owners = [set(block["u"].to_pylist()) for block in found]
    assert sum(map(len, owners)) == len(set().union(*owners))


def test_spreads_of_parts_are_that_of_the_whole():
    rng = np.random.default_rng(2)
    values, at = [rng.normal(3, 1, n) for n in (4, 1, 7)], len(_rows.SUMS)
    parts = []
    for own in values:
        part = np.zeros(_rows.SIZE)
        part[0] = len(own)
        part[at : at + 2] = own.mean(), ((own - own.mean()) ** 2).sum()
        parts.append(part)
    parts.append(np.zeros(_rows.SIZE))
    whole = np.concatenate(values)
    expected = pytest.approx([whole.mean(), ((whole - whole.mean()) ** 2).sum()])
    found = _rows.together(parts)
    assert found[0] == len(whole)
    assert found[at : at + 2] == expected
    centre = np.full(_rows.SIZE, 2.9)
    total = np.sum([_rows.added(part, centre) for part in parts], axis=0)
    assert _rows.from_added(total, centre)[at : at + 2] == expected


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), max_size=40), st.data()
)
def test_ranges_of_predictions_add_up_to_all_pairs(rows, drawn):
    rows = sorted(rows)
    x = np.array([row[0] for row in rows], np.float64)
    relevant = np.array([row[1] for row in rows], bool)
    users = np.array([row[2] for row in rows], np.int64)
    weights = np.array([[1, 1, 1, 1], [0, 2, 1, 3]], np.int32)
    # A range ends where another prediction begins; batches end anywhere.
    ends = drawn.draw(st.lists(st.integers(0, 5), max_size=3))
    spread = []
    for within in np.split(np.arange(len(x)), np.searchsorted(x, sorted(ends))):
        cuts = sorted(drawn.draw(st.lists(st.integers(0, len(within)), max_size=3)))
        batches = [
            pa.RecordBatch.from_pydict(
                {
                    "k": np.full(len(some), 7, np.int32),
                    "x": x[some],
                    "h": relevant[some].astype(np.int64),
                    "o": (~relevant[some]).astype(np.int64),
                    "q": users[some],
                }
            )
            for some in np.split(within, cuts)
        ]
        spread += list(_across.within_range(batches, weights))
    found = _across.of_ranges(pa.Table.from_batches(spread)) if spread else {}
    for place, weight in enumerate(weights.astype(np.float64)):
        order = np.argsort(users, kind="stable")
        one = Predictions(users[order], x[order], x[order], 4, relevant[order])
        expected = one.across(weight) if len(x) else (0.0, 0.0)
        assert tuple(found[7][:, place]) == expected if spread else expected == (0.0, 0.0)
