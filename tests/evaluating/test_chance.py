"""With `chance=True`, results include the expected values for a random order of the candidates."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import polars as pl
import pytest

import recometer as rm

METRICS = "ndcg@2 rr recall@2 ap@3 roc_auc"
RNG = np.random.default_rng(4)
SCORES = RNG.random((12, 5))
TEST = RNG.random((12, 5)) < 0.4
TRAIN = (RNG.random((12, 5)) < 0.2) & ~TEST


@pytest.fixture(scope="module")
def result() -> rm.Evaluation:
    return rm.evaluate(rm.Scores(SCORES), TEST, train=TRAIN, metrics=METRICS, chance=True)


def test_chance_is_the_mean_over_all_orders(result: rm.Evaluation) -> None:
    orders = list(itertools.permutations(range(5)))
    results_of_orders = [
        rm.evaluate(
            rm.Scores(np.tile(np.array(order, float), (12, 1))), TEST, train=TRAIN, metrics=METRICS
        )
        for order in orders
    ]
    for name in result.values:
        expected = np.mean([ranking[name] for ranking in results_of_orders], axis=0)
        np.testing.assert_allclose(result.chance[name], expected, atol=1e-12)


def test_chance_changes_no_value_and_covers_the_same_users(result: rm.Evaluation) -> None:
    plain = rm.evaluate(rm.Scores(SCORES), TEST, train=TRAIN, metrics=METRICS)
    for name in result.values:
        np.testing.assert_array_equal(result[name], plain[name])
    assert plain.chance == {}
    rows = {row.metric: row for row in result.summary()}
    defined = ~np.isnan(result["rr"])
    assert rows["rr"].chance == pytest.approx(result.chance["rr"][defined].mean())
    assert rows["roc_auc"].chance == pytest.approx(0.5)
    assert "chance: the exact mean over all orders" in str(result)
    assert "chance" not in str(plain)


def test_chance_is_high_if_nearly_all_candidates_are_relevant() -> None:
    """Four of five candidates are relevant, so a random order has a precision of 0.8."""
    test = np.ones((30, 5))
    test[:, 0] = 0
    result = rm.evaluate(rm.Scores(RNG.random((30, 5))), test, metrics="precision@3", chance=True)
    assert result.summary()[0].chance == pytest.approx(0.8)


def test_chance_is_saved_and_selected_along_with_users(
    result: rm.Evaluation, tmp_path: pathlib.Path
) -> None:
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet")
    for name in result.values:
        np.testing.assert_array_equal(loaded.chance[name], result.chance[name])
    selected = result.of_users([1, 3])
    np.testing.assert_array_equal(selected.chance["rr"], result.chance["rr"][[1, 3]])


def test_chance_is_averaged_over_folds() -> None:
    frame = pl.DataFrame({"user_id": np.repeat(np.arange(10), 4), "item_id": [*range(4)] * 10})
    source = rm.Scores(RNG.random((10, 9)), user_ids=range(10), item_ids=range(9))
    folds = rm.split.folds(frame, rm.split.KFold(2))
    folded = rm.evaluate([source, source], folds, metrics="rr", chance=True)
    expected = np.mean([fold.chance["rr"] for fold in folded.folds], axis=0)
    np.testing.assert_allclose(folded.chance["rr"], expected)


def test_models_are_compared_with_chance(result: rm.Evaluation) -> None:
    second = rm.evaluate(rm.Scores(SCORES + TEST), TEST, train=TRAIN, metrics=METRICS)
    comparison = rm.compare({"a": result, "b": second}, chance=True, baseline="chance")
    row = comparison.row("rr", "b")
    assert row.difference == pytest.approx(np.nanmean(second["rr"] - result.chance["rr"]))
    assert comparison.standings[0].model == "b"
    with pytest.raises(rm.InputError, match="which b does not"):
        rm.compare({"b": second, "a": result}, chance=True)
    with pytest.raises(rm.InputError, match="adds a model 'chance'"):
        rm.compare({"chance": result, "b": second}, chance=True)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (rm.Lists({"ann": ["x"]}), {"metrics": "rr"}, "the lists end before the last candidate"),
        (
            rm.Lists({"ann": ["x"]}),
            {"metrics": "coverage@1", "catalogue": 3},
            "needs ranking metrics",
        ),
    ],
)
def test_chance_is_refused_for_lists(source: rm.Lists, options: dict, message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        rm.evaluate(source, {"ann": ["x"]}, chance=True, **options)
