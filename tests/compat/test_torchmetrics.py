"""The drop-in's retrieval metrics return the same values as TorchMetrics 1.9.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recometer as rm
from recometer.compat import torchmetrics

PREDS = np.array([0.9, 0.3, -0.2, 0.5, 0.7, 0.1, 0.4], np.float32)
TARGET = np.array([0, 1, 1, 0, 1, 0, 0])
INDEXES = np.array([0, 0, 0, 1, 1, 2, 2])

# The values that RetrievalMAP(top_k=2) and the other retrieval classes of TorchMetrics 1.9.0
# return.
OF_CLASSES = {
    "MAP": 0.5,
    "MRR": 0.5,
    "Recall": 0.5,
    "HitRate": 0.6666666865348816,
    "NormalizedDCG": 0.46228423714637756,
    "Precision": 0.3333333432674408,
    "FallOut": 1.0,
    "AUROC": 0.3333333432674408,
}
# The values that the functions of TorchMetrics 1.9.0, such as retrieval_average_precision, return
# for the first four rows with top_k=3.
OF_ONE_QUERY = {
    "MAP": 0.3333333432674408,
    "AUROC": 0.0,
    "FallOut": 1.0,
    "HitRate": 1.0,
    "NormalizedDCG": 0.3065735995769501,
    "Precision": 0.3333333432674408,
    "Recall": 0.5,
    "MRR": 0.3333333432674408,
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_values_of_classes_match_torchmetrics(name: str) -> None:
    metric = getattr(torchmetrics, f"Retrieval{name}")(top_k=2)
    for batch in (slice(0, 4), slice(4, None)):
        metric.update(PREDS[batch], TARGET[batch], indexes=INDEXES[batch])
    assert float(metric.compute()) == pytest.approx(OF_CLASSES[name], abs=1e-6)
    metric.reset()
    assert float(metric.compute()) == 0.0


def of_one_query(name: str, preds: Any, target: Any, **options: Any) -> float:
    metric = getattr(torchmetrics, f"Retrieval{name}")(**options)
    return float(metric(preds, target, np.zeros(len(target), int)))


@pytest.mark.parametrize("name", OF_ONE_QUERY)
def test_values_of_single_queries_match_torchmetrics(name: str) -> None:
    value = of_one_query(name, PREDS[:4], TARGET[:4], top_k=3)
    assert value == pytest.approx(OF_ONE_QUERY[name], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"empty_target_action": "skip"}, 0.75),  # printed by TorchMetrics 1.9.0
        ({"empty_target_action": "pos"}, (0.5 + 1 + 1) / 3),
        ({"aggregation": "max"}, 1.0),
        ({"aggregation": "min"}, 0.0),
        ({"aggregation": "median"}, 0.5),
        ({"aggregation": lambda values: values.sum()}, 1.5),
        ({"ignore_index": 1}, 0.0),
    ],
)
def test_options_change_the_value_as_in_torchmetrics(options: dict[str, Any], value: float) -> None:
    metric = torchmetrics.RetrievalRPrecision(**options)
    metric.update(PREDS, TARGET, INDEXES)
    assert float(metric.compute()) == pytest.approx(value, abs=1e-6)


def test_calling_a_metric_returns_the_value_of_the_batch() -> None:
    metric = torchmetrics.RetrievalMRR()
    assert float(metric(PREDS[3:5], TARGET[3:5], INDEXES[3:5])) == 1.0
    assert float(metric(PREDS[5:], TARGET[5:], INDEXES[5:])) == 0.0
    assert float(metric.compute()) == 0.5


def test_precision_of_short_queries_divides_by_top_k_unless_adaptive() -> None:
    query = PREDS[3:5], TARGET[3:5]
    assert of_one_query("Precision", *query, top_k=4) == 0.25
    assert of_one_query("Precision", *query, top_k=4, adaptive_k=True) == 0.5
    assert of_one_query("RPrecision", *query) == 1.0


@pytest.mark.parametrize(
    ("preds", "target", "top_k", "area"),
    [  # printed by TorchMetrics 1.9.0
        ([0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0], None, 0.5),
        ([0.9, 0.5, 0.5, 0.1], [0, 1, 0, 1], None, 0.125),
        ([0.5, 0.5 + 1e-10, 0.1], [1, 0, 0], None, 0.75),  # two scores are equal in float32
        ([30.0, 25.0, 20.0, 1.0], [0, 1, 0, 1], None, 0.25),  # three scores have a sigmoid of 1
        ([30.0, 25.0, 20.0, 1.0], [0, 1, 0, 1], 3, 0.5),
    ],
)
def test_areas_are_averaged_over_the_orders_of_ties(
    preds: list[float], target: list[int], top_k: int | None, area: float
) -> None:
    arrays = np.array(preds), np.array(target)
    assert of_one_query("AUROC", *arrays, top_k=top_k) == area
    metric = torchmetrics.RetrievalAUROC(top_k=top_k)
    metric.update(*arrays, np.zeros(len(preds), int))
    metric.update(np.array([0.2, 0.1]), np.array([1, 0]), np.array([7, 7]))  # a second query
    assert float(metric.compute()) == (area + 1) / 2


def test_scores_equal_in_single_precision_keep_their_order() -> None:
    preds, target = np.array([0.5, 0.5 + 1e-10, 0.1]), np.array([1, 0, 0])
    assert of_one_query("MRR", preds, target) == 1.0


def test_invalid_options_and_tensors_are_refused() -> None:
    with pytest.raises(rm.InputError, match="empty_target_action='none' must be one of"):
        torchmetrics.RetrievalMAP(empty_target_action="none")
    with pytest.raises(rm.InputError, match="aggregation='sum' must be one of"):
        torchmetrics.RetrievalMAP(aggregation="sum")
    with pytest.raises(rm.InputError, match="top_k=0 must be a whole number"):
        torchmetrics.RetrievalRecall(top_k=0)
    with pytest.raises(rm.InputError, match="target has values other than 0 and 1"):
        of_one_query("Recall", PREDS, TARGET * 2)
    with pytest.raises(rm.InputTypeError, match="preds has the dtype int64"):
        of_one_query("Recall", TARGET, TARGET)
    with pytest.raises(rm.InputError, match=r"max_fpr=0.5 is not supported"):
        torchmetrics.RetrievalAUROC(max_fpr=0.5)
    metric = torchmetrics.RetrievalMAP(empty_target_action="error")
    with pytest.raises(rm.InputError, match=r"have \[7, 7, 2\] entries"):
        metric.update(PREDS, TARGET, INDEXES[:2])
    metric.update(PREDS, TARGET, INDEXES)
    with pytest.raises(rm.InputError, match="A query has no relevant item"):
        metric.compute()
