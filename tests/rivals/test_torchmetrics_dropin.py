"""`recometer.compat.torchmetrics` gives the same values as TorchMetrics on 10,000 random cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _dropins import assert_same, in_parts, numbers, outcome

from recometer.compat import torchmetrics as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
FUNCTIONS = {
    "average_precision": ours.RetrievalMAP,
    "auroc": ours.RetrievalAUROC,
    "fall_out": ours.RetrievalFallOut,
    "hit_rate": ours.RetrievalHitRate,
    "normalized_dcg": ours.RetrievalNormalizedDCG,
    "precision": ours.RetrievalPrecision,
    "recall": ours.RetrievalRecall,
    "reciprocal_rank": ours.RetrievalMRR,
    "r_precision": ours.RetrievalRPrecision,
}
CLASSES = ["MAP", "MRR", "Recall", "HitRate", "NormalizedDCG", "Precision", "FallOut", "AUROC"]
CLASSES += ["RPrecision"]


def case(generator: np.random.Generator, *, graded: bool, n_queries: int = 1) -> tuple[Any, ...]:
    """Draw scores (with ties only for NDCG), targets and queries, in random order."""
    n = int(generator.integers(n_queries, 25 * n_queries))
    # Small scores stay distinct after TorchMetrics has applied a sigmoid to them.
    preds = (generator.permutation(4 * n)[:n] - n / 2) / (8 * n_queries)
    target = (generator.random(n) < generator.choice([0, 0.2, 0.6, 1])).astype(int)
    if graded:
        preds = np.round(preds * 2)
        target = target * generator.integers(0, 4, n)
    return preds.astype(np.float32), target, generator.integers(0, n_queries, n)


@in_parts
def test_values_of_one_query_match_torchmetrics(part: int) -> None:
    import torch
    from torchmetrics.functional import retrieval as theirs

    for number, generator in numbers(part):
        name = [*FUNCTIONS][number % len(FUNCTIONS)]
        preds, target, _ = case(generator, graded=name == "normalized_dcg")
        arguments: dict[str, Any] = {}
        if name != "r_precision":
            arguments["top_k"] = None if number % 4 == 0 else int(generator.integers(1, 30))
        if name == "precision":
            arguments["adaptive_k"] = bool(number % 2)
        tensors = torch.tensor(preds), torch.tensor(target)
        expected = getattr(theirs, f"retrieval_{name}")(*tensors, **arguments)
        metric = FUNCTIONS[name](empty_target_action="neg", **arguments)
        result = metric(*tensors, torch.zeros(len(target), dtype=torch.int64))
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert_same(float(result), float(expected), (number, name), tolerance=1e-6)


@in_parts
def test_areas_match_torchmetrics_with_ties(part: int) -> None:
    """Some scores, or their sigmoids, are equal in single precision."""
    import torch
    from torchmetrics.functional import retrieval as theirs

    for _, generator in numbers(part):
        n = int(generator.integers(1, 25))
        preds = generator.integers(-2, 4, n) * generator.choice([0.3, 9.0])
        preds = torch.tensor(preds + generator.choice([0, 1e-10], n))
        target = torch.tensor(generator.integers(0, 2, n))
        expected = float(theirs.retrieval_auroc(preds, target))
        result = ours.RetrievalAUROC()(preds, target, torch.zeros(n, dtype=torch.int64))
        assert float(result) == pytest.approx(expected, abs=1e-6)


def in_halves(metric: Any, tensors: list[Any]) -> float:
    half = max(len(tensors[0]) // 2, 1)
    for rows in (slice(0, half), slice(half, None)):
        preds, target, indexes = (tensor[rows] for tensor in tensors)
        if len(preds):
            metric.update(preds, target, indexes=indexes)
    return float(metric.compute())


@in_parts
def test_values_of_classes_match_torchmetrics(part: int) -> None:
    """The test runs only a tenth of the cases, since TorchMetrics is slow for so many queries."""
    import torch
    from torchmetrics import retrieval as theirs

    for number, generator in numbers(part):
        if number % 10:
            continue
        name = CLASSES[number // 10 % len(CLASSES)]
        arguments: dict[str, Any] = {
            "empty_target_action": str(generator.choice(["neg", "pos", "skip", "error"])),
            "aggregation": str(generator.choice(["mean", "median", "min", "max"])),
            "ignore_index": 0 if name == "NormalizedDCG" and number % 4 == 0 else None,
        }
        if name != "RPrecision":
            arguments["top_k"] = None if number % 4 == 0 else int(generator.integers(1, 12))
        if name == "Precision":
            arguments["adaptive_k"] = bool(generator.integers(2))
        preds, target, indexes = case(generator, graded=name == "NormalizedDCG", n_queries=10)
        tensors = [torch.tensor(array) for array in (preds, target, indexes)]
        outcomes = [
            outcome(in_halves, getattr(library, f"Retrieval{name}")(**arguments), tensors)
            for library in (theirs, ours)
        ]
        assert_same(outcomes[1], outcomes[0], (number, name, arguments), tolerance=1e-6)
