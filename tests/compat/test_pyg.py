"""The drop-in for PyTorch Geometric's metrics returns the same values as version 2.8.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recometer as rm
from recometer.compat import pyg

# The first list is padded with -1.
LISTS = np.array([[4, 2, -1], [1, 0, 3], [5, 1, 2]])
EDGES = np.array([[0, 0, 1, 2, 2], [2, 5, 3, 5, 0]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0, 1.0], np.float32)
NAMES = ["Precision", "Recall", "F1", "MAP", "NDCG", "MRR", "HitRatio"]

# PyTorch Geometric 2.8.1 computes these values for the same collection after update(LISTS, EDGES,
# WEIGHTS).
PRINTED = {
    "LinkPredPrecision@2": 0.3333333432674408,
    "LinkPredRecall@2": 0.3333333432674408,
    "LinkPredF1@2": 0.3333333432674408,
    "LinkPredMAP@2": 0.25,
    "LinkPredNDCG@2": 0.3333333432674408,
    "LinkPredMRR@2": 0.5,
    "LinkPredHitRatio@2": 0.6666666865348816,
    "WeightedLinkPredRecall@3": 0.694444477558136,
    "WeightedLinkPredNDCG@4": 0.5220157504081726,
    "LinkPredPrecision@3": 0.3333333432674408,
    "LinkPredCoverage@2": 0.8333333134651184,
    "LinkPredPersonalization@2": 0.8333333134651184,
    "LinkPredDiversity@2": 0.6666666865348816,
    "LinkPredAveragePopularity@2": 3.3333332538604736,
}


def collection() -> pyg.LinkPredMetricCollection:
    return pyg.LinkPredMetricCollection(
        [
            *(getattr(pyg, f"LinkPred{name}")(2) for name in NAMES),
            pyg.LinkPredRecall(3, weighted=True),
            pyg.LinkPredNDCG(4, weighted=True),
            pyg.LinkPredPrecision(3),
            pyg.LinkPredCoverage(2, 6),
            pyg.LinkPredPersonalization(2),
            pyg.LinkPredDiversity(2, [0, 0, 0, 1, 1, 1]),
            pyg.LinkPredAveragePopularity(2, [1, 2, 3, 4, 5, 7]),
        ]
    )


def test_values_equal_those_of_pytorch_geometric() -> None:
    metrics = collection()
    metrics.update(LISTS, EDGES, WEIGHTS)
    values = {name: float(value) for name, value in metrics.compute().items()}
    assert values == pytest.approx(PRINTED, abs=1e-6)
    metrics.reset()
    assert float(metrics.compute()["LinkPredMAP@2"]) == 0.0


def test_batches_are_averaged_together() -> None:
    metric = pyg.LinkPredMRR(2)
    metric.update(LISTS[:1], EDGES[:, :2])
    metric(LISTS[1:], (EDGES[0, 2:] - 1, EDGES[1, 2:]))
    assert float(metric.compute()) == pytest.approx(PRINTED["LinkPredMRR@2"])
    assert repr(metric) == "LinkPredMRR(k=2)"


def test_padding_can_match_the_last_item_of_the_previous_source() -> None:
    metric = pyg.LinkPredPrecision(2)
    metric.update(np.array([[1, 0], [0, -1]]), np.array([[0, 1], [3, 2]]))
    assert float(metric.compute()) == 0.25
    assert float(pyg.LinkPredRecall(2).compute()) == 0.0


def test_repeated_edge_counts_once_with_a_padded_list() -> None:
    """PyTorch Geometric 2.8.1 also returns 1.0: it reads -1 as item 7 of the previous node."""
    edges, lists = np.array([[0, 0, 1], [7, 7, 3]]), np.array([[1, 2], [3, -1]])
    metric = pyg.LinkPredRecall(k=2)
    metric.update(lists, edges)
    assert float(metric.compute()) == 1.0
    weighted = pyg.LinkPredRecall(k=2, weighted=True)
    weighted.update(lists, edges, np.array([0.5, 0.5, 1.0]))
    assert float(weighted.compute()) == 0.75
    with pytest.raises(rm.InputError, match="repeats an edge with different weights"):
        weighted.update(lists, edges, np.array([0.5, 1.0, 1.0]))


def test_collection_behaves_like_a_mapping() -> None:
    metrics = collection()
    assert list(metrics) == list(metrics.keys()) == list(PRINTED)
    assert len(metrics) == len(metrics.values()) == len(metrics.items())
    assert metrics.max_k == 4
    assert metrics.weighted
    assert metrics["LinkPredPrecision@3"].k == 3
    assert "  WeightedLinkPredRecall@3: LinkPredRecall(k=3, weighted=True),\n" in repr(metrics)
    collection_with_names = pyg.LinkPredMetricCollection({"mine": pyg.LinkPredMRR(1)})
    assert list(collection_with_names.keys()) == ["mine"]


def test_invalid_options_and_tensors_are_refused() -> None:
    with pytest.raises(rm.InputError, match="k=0 must be a whole number"):
        pyg.LinkPredMAP(0)
    with pytest.raises(rm.InputError, match="LinkPredNDCG is weighted, but edge_label_weight"):
        pyg.LinkPredNDCG(2, weighted=True).update(LISTS, EDGES)
    with pytest.raises(rm.InputError, match="The collection contains no metrics"):
        pyg.LinkPredMetricCollection([])
    metric: Any = pyg.LinkPredMAP(2)
    with pytest.raises(rm.InputError, match=r"pred_index_mat has the shape \(3,\)"):
        metric.update(LISTS[0], EDGES)
