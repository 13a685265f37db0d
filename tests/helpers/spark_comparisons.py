"""Check that comparisons give the same results on Spark as on a single machine."""

import numpy as np
import pytest

COUNTS = ("n", "n_only_model", "n_only_other", "n_better", "n_equal", "n_worse", "primary")
NUMBERS = (
    *("mean", "mean_other", "difference", "low", "high", "relative", "relative_low"),
    *("relative_high", "p_value", "adjusted_p", "standardised"),
    *("deviation", "error", "probability_better", "smallest_difference", "unit"),
)


def assert_same_rows(actual, expected):
    assert len(actual.rows) == len(expected.rows)
    for row, expected_row in zip(actual.rows, expected.rows, strict=True):
        assert (row.metric, row.model, row.other) == (
            expected_row.metric,
            expected_row.model,
            expected_row.other,
        )
        for name in COUNTS:
            assert getattr(row, name) == getattr(expected_row, name), name
        for name in NUMBERS:
            value = getattr(expected_row, name)
            close = pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
            assert getattr(row, name) == close, (row.metric, row.model, row.other, name)
        assert (row.test.test, row.test.method) == (
            expected_row.test.test,
            expected_row.test.method,
        )
        assert row.interval.method == expected_row.interval.method
        assert row.notes == expected_row.notes
        assert (row.equivalence is None) == (expected_row.equivalence is None)
        if row.equivalence is not None:
            assert row.equivalence.p_value == pytest.approx(
                expected_row.equivalence.p_value, rel=1e-6
            )
            assert row.equivalence.method == expected_row.equivalence.method
    assert str(actual) == str(expected)  # the text includes the leaderboard


def frame_of(spark, columns, schema):
    rows = zip(*(np.asarray(column, object).tolist() for column in columns.values()), strict=True)
    return spark.createDataFrame(list(rows), schema).repartition(3)
