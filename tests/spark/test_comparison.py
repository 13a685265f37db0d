"""Comparing on Spark says what one machine says."""

import polars as pl
import pytest
from spark_cases import MARKS, data, schema_of

import recometer as rm
import recometer.spark as rs

pytestmark = MARKS


def test_models_are_compared_as_on_one_machine(table):
    users, items, test, _, rng = data(seed=6)
    schema = schema_of(str)
    frame, results, expected = table(test, schema), {}, {}
    for name in ("first", "second", "third"):
        rows = {
            "user": [user for user in users for _ in items],
            "item": items * len(users),
            "score": rng.integers(0, 8, len(users) * len(items)).astype(float),
        }
        lists = rs.Lists(table(rows, schema.replace("value", "score")))
        results[name] = rs.evaluate(lists, frame, metrics="ndcg@5 rr@20", catalogue=items)
        one = rm.Lists(pl.DataFrame(rows))
        metrics = "ndcg@5 rr@20"
        expected[name] = rm.evaluate(one, pl.DataFrame(test), metrics=metrics, catalogue=items)
    found = rs.compare(results, baseline="second", primary=["ndcg@5"])
    other = rm.compare(expected, baseline="second", primary=["ndcg@5"])
    for row, same in zip(found.rows, other.rows, strict=True):
        assert (row.metric, row.model, row.other) == (same.metric, same.model, same.other)
        for name in ("n", "n_better", "n_equal", "n_worse", "primary"):
            assert getattr(row, name) == getattr(same, name)
        for name in (
            *("mean", "mean_other", "difference", "low", "high", "relative", "relative_low"),
            *("relative_high", "p_value", "adjusted_p", "standardised", "deviation", "error"),
            *("probability_better", "smallest_difference", "unit"),
        ):
            value = getattr(same, name)
            assert getattr(row, name) == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
        assert row.notes == same.notes
    assert "adjusted" in str(found)
    with pytest.raises(rm.InputTypeError, match="must be a result of"):
        rs.compare({"a": results["first"], "b": expected["first"]})
    with pytest.raises(rm.InputError, match="wilcoxon"):
        rs.compare({"a": results["first"], "b": results["second"]}, test="wilcoxon")
