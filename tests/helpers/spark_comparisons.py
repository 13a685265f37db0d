"""Check that comparisons give the same results on Spark as on a single machine."""

import numpy as np
import pytest

COUNTS = ("n", "n_only_model", "n_only_other", "n_better", "n_equal", "n_worse", "primary")
NUMBERS = (
    *("mean", "mean_other", "difference", "low", "high", "relative", "relative_low"),
    *("relative_high", "p_value", "adjusted_p", "smallest_adjusted_p", "standardised"),
    *("deviation", "error", "probability_better", "smallest_difference", "unit"),
)


def assert_same_rows(found, other):
    assert len(found.rows) == len(other.rows)
    for row, same in zip(found.rows, other.rows, strict=True):
        assert (row.metric, row.model, row.other) == (same.metric, same.model, same.other)
        for name in COUNTS:
            assert getattr(row, name) == getattr(same, name), name
        for name in NUMBERS:
            value = getattr(same, name)
            close = pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
            assert getattr(row, name) == close, (row.metric, row.model, row.other, name)
        assert (row.test.test, row.test.method) == (same.test.test, same.test.method)
        assert row.interval.method == same.interval.method
        assert row.notes == same.notes
        assert (row.equivalence is None) == (same.equivalence is None)
        if row.equivalence is not None:
            assert row.equivalence.p_value == pytest.approx(same.equivalence.p_value, rel=1e-6)
            assert row.equivalence.method == same.equivalence.method
    assert str(found) == str(other)  # with the leaderboard


def frame_of(spark, columns, schema):
    rows = zip(*(np.asarray(one, object).tolist() for one in columns.values()), strict=True)
    return spark.createDataFrame(list(rows), schema).repartition(3)
