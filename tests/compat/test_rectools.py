"""The drop-in for RecTools' `calc_metrics` returns the same values as RecTools 0.19.0."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import recometer as rm
from recometer.compat.rectools import calc_metrics

RECO = pl.DataFrame(
    {"user_id": [1, 1, 1, 2, 2, 3], "item_id": [7, 8, 9, 7, 6, 5], "rank": [1, 2, 3, 1, 2, 1]}
)
TEST = pl.DataFrame({"user_id": [1, 1, 2, 4], "item_id": [8, 5, 7, 7]})
TRAIN = pl.DataFrame({"user_id": [1, 2, 3, 3], "item_id": [6, 8, 7, 9]})


def metric(kind: str, **attributes: Any) -> Any:
    """Make a stand-in for a RecTools metric object."""
    metric_object = type(kind, (), {"__module__": "rectools.metrics.some"})()
    vars(metric_object).update({"k": 2, **attributes})
    return metric_object


# RecTools metrics, each with the value that calc_metrics in RecTools 0.19.0 returns for RECO, TEST
# and TRAIN, with items 5 to 9 as the catalogue and a cut-off of 2.
PRINTED = {
    "precision": (metric("Precision"), 0.3333333333333333),
    "r_precision": (metric("Precision", r_precision=True), 0.5),
    "recall": (metric("Recall"), 0.5),
    "f2": (metric("F1Beta", beta=2.0), 0.4444444444444445),
    "map": (metric("MAP"), 0.4166666666666667),
    "ndcg": (metric("NDCG"), 0.3333333333333333),
    "ndcg_achievable": (metric("NDCG", divide_by_achievable=True), 0.46228426907818054),
    "mrr": (metric("MRR"), 0.5),
    "accuracy": (metric("Accuracy"), 0.6),
    "mcc": (metric("MCC"), 0.12359693729953271),
    "auc": (metric("PartialAUC"), 0.4166666666666667),
    "pap": (metric("PAP"), 0.4166666666666667),
    "miuf": (metric("MeanInvUserFreq"), 1.5849625007211563),
    "popularity": (metric("AvgRecPopularity"), 0.6666666666666666),
    "coverage": (metric("CatalogCoverage", normalize=True), 0.8),
}


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_values_equal_those_of_rectools(kind: str) -> None:
    metrics = {name: metric_object for name, (metric_object, _) in PRINTED.items()}
    frames = [frame.to_pandas() if kind == "pandas" else frame for frame in (RECO, TEST, TRAIN)]
    result = calc_metrics(metrics, *frames, catalog=range(5, 10))
    assert list(result) == list(PRINTED)
    assert result == pytest.approx({n: value for n, (_, value) in PRINTED.items()}, abs=1e-12)


def test_list_metrics_do_not_need_interactions() -> None:
    miuf, coverage = PRINTED["miuf"][0], PRINTED["coverage"][0]
    result = calc_metrics({"miuf": miuf}, RECO, prev_interactions=TRAIN)
    assert result["miuf"] == pytest.approx(PRINTED["miuf"][1])
    result = calc_metrics({"coverage": coverage}, RECO, catalog=range(5, 10))
    assert result == {"coverage": PRINTED["coverage"][1]}


@pytest.mark.parametrize(
    ("metric_object", "error", "message"),
    [
        (metric("Recall"), rm.InputError, r"Recall \('x'\) needs interactions="),
        (metric("Serendipity"), rm.UnknownNameError, "RecTools has no metric 'Serendipity'"),
        (object(), rm.UnknownNameError, "RecTools has no metric 'object'"),
        (metric("Recall", debias_config=1), rm.InputError, "Recall has a debias_config"),
        (metric("PAP", insufficient_handling="raise"), rm.InputError, "insufficient_handling"),
    ],
)
def test_unavailable_metrics_are_refused(
    metric_object: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        calc_metrics({"x": metric_object}, RECO)


def test_reference_lists_are_rejected() -> None:
    with pytest.raises(rm.InputError, match="ref_reco does not apply"):
        calc_metrics({"x": metric("Recall")}, RECO, TEST, ref_reco=RECO)
