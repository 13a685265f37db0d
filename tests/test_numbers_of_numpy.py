"""Tests that NumPy numbers are accepted like Python numbers."""

import numpy as np
import polars as pl
import pytest

import recometer as rm
import recometer.baselines

TEST = pl.DataFrame({"user_id": [1, 2], "item_id": [20, 30], "rating": [4, 5]})
SCORED = rm.Lists({1: {10: 0.5, 20: 0.25}, 2: {30: 0.75, 10: 0.5}})
KINDS = {
    "int": (np.int8, np.uint16, np.int64),
    "float": (np.float16, np.float32, np.float64, np.longdouble),
    "bool": (np.bool_,),
}
RULES = {
    "relevant_from": (5, "int"),
    "min_positives": (1, "int"),
    "min_candidates": (2, "int"),
    "no_relevant": (0.5, "float"),
    "undefined": (0, "int"),
    "decimals": (3, "int"),
    "confidence": (0.5, "float"),
    "score_above": (0.25, "float"),
    "cold_start": (True, "bool"),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_accept_numpy_numbers(name) -> None:
    value, kind = RULES[name]
    expected = rm.Protocol(**{name: value})
    plain = rm.evaluate(SCORED, TEST, metrics="rr", catalogue=5, **{name: value})
    for kind_of_numpy in KINDS[kind]:
        for number in (kind_of_numpy(value), np.asarray(kind_of_numpy(value))):
            protocol = rm.Protocol(**{name: number})
            assert protocol == expected
            assert repr(protocol) == repr(expected)
            result = rm.evaluate(SCORED, TEST, metrics="rr", catalogue=5, **{name: number})
            assert str(result) == str(plain)


def test_threshold_may_be_the_largest_float32_rating() -> None:
    rated = TEST.with_columns(rating=pl.Series([3.7, 4.1], dtype=pl.Float32))
    largest = rated["rating"].to_numpy().max()  # this is the float32 number closest to 4.1
    result = rm.evaluate(SCORED, rated, metrics="rr", relevant_from=largest)
    assert np.isnan(result["rr"][0])
    assert result["rr"][1] == 1.0


def test_invalid_numpy_numbers_are_refused() -> None:
    with pytest.raises(rm.InputError, match="min_positives=-1 must be a whole number"):
        rm.evaluate(SCORED, TEST, metrics="rr", min_positives=np.int64(-1))
    with pytest.raises(rm.InputError, match=r"confidence=.* must be"):
        rm.evaluate(SCORED, TEST, metrics="rr", confidence=np.float32(1.5))


def test_arguments_of_functions_accept_numpy_numbers() -> None:
    results = {
        name: rm.evaluate(
            rm.Lists({1: [first, 20], 2: [30, first]}), TEST, metrics="rr", train={1: [5]}
        )
        for name, first in (("a", 11), ("b", 10))
    }
    comparison = rm.compare(results)
    changed = comparison.changes("rr", "a", "b", n=np.int64(1))
    assert changed.harmed == comparison.changes("rr", "a", "b", n=1).harmed
    groups = {10: "x", 20: "y", 30: "y"}
    shares = [
        rm.exposure(SCORED, groups, TEST, k=k, discount="geometric", patience=patience)
        for k, patience in ((2, 0.5), (np.int32(2), np.float32(0.5)))
    ]
    assert shares[0].equals(shares[1])
    result = results["b"]
    assert str(result.by("activity", quantiles=np.int64(2))) == str(
        result.by("activity", quantiles=2)
    )
    ratings = np.eye(3)
    with_numpy = recometer.baselines.ease(ratings, regularisation=np.float32(2))
    assert with_numpy.describe() == recometer.baselines.ease(ratings, regularisation=2.0).describe()
    lists = rm.Lists({1: [10, 20]}, depth=np.int16(1))
    assert rm.evaluate(lists, {1: [20]}, metrics="rr", seed=np.uint8(3)).mean() == {"rr": 0.0}
    stream = rm.Evaluator(metrics="rr").stream()
    stream.update(np.array([[0.5, 0.25]]), np.array([[0.0, -1.0]]), padding=np.int64(-1))
