"""`recometer.compat.pyg` gives the same values as PyG on 10,000 source nodes in 2,500 calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat import pyg as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["Precision", "Recall", "F1", "MAP", "NDCG", "MRR", "HitRatio"]
N_ITEMS = 20


def batch(generator: np.random.Generator) -> tuple[Any, Any, Any]:
    """Draw lists and edges for every source node; some lists are short, and some edges repeat."""
    import torch

    n, length = int(generator.integers(1, 6)), int(generator.integers(1, 9))
    lists = np.stack([generator.permutation(N_ITEMS)[:length] for _ in range(n)])
    if generator.random() < 0.5:
        ends = generator.integers(1, length + 1, n)[:, None]
        lists[np.arange(length)[None, :] >= ends] = -1
    edges = generator.random((n, N_ITEMS)) < generator.choice([0.1, 0.4])
    edges[np.arange(n), generator.integers(0, N_ITEMS, n)] = True
    pairs_of_nodes = np.stack(np.nonzero(edges))
    weights = generator.integers(1, 9, pairs_of_nodes.shape[1]) / 4
    if generator.random() < 0.2:
        weights = weights - 0.5
    first = np.unique(pairs_of_nodes[0], return_index=True)[1]
    weights[first] = 1.0
    if generator.random() < 0.3:  # repeat three edges
        repeated = generator.integers(0, pairs_of_nodes.shape[1], 3)
        order = generator.permutation(pairs_of_nodes.shape[1] + 3)
        pairs_of_nodes = np.append(pairs_of_nodes, pairs_of_nodes[:, repeated], axis=1)[:, order]
        weights = np.append(weights, weights[repeated])[order]
    edge_index = torch.tensor(pairs_of_nodes)
    return torch.tensor(lists), edge_index, torch.tensor(weights, dtype=torch.float32)


def collection(library: Any, generator: np.random.Generator, padded: bool) -> Any:
    import torch

    k = [int(k) for k in generator.integers(1, 12, 2)]
    metrics = [getattr(library, f"LinkPred{name}")(cutoff) for name in NAMES for cutoff in {*k}]
    metrics += [library.LinkPredRecall(k[0], weighted=True), library.LinkPredNDCG(k[1], True)]
    if not padded:  # for -1, the drop-in raises an error or ignores the place
        metrics += [library.LinkPredCoverage(k[0], N_ITEMS), library.LinkPredPersonalization(k[0])]
        category = torch.tensor(generator.integers(0, 3, N_ITEMS))
        popularity = torch.tensor(generator.integers(0, 50, N_ITEMS))
        metrics.append(library.LinkPredDiversity(k[1] + 1, category))
        metrics.append(library.LinkPredAveragePopularity(k[1], popularity))
    return library.LinkPredMetricCollection(metrics)


@in_parts
def test_dropin_values_match_pytorch_geometric(part: int) -> None:
    from torch_geometric import metrics as theirs

    for number, generator in numbers(part):
        if number % 4:
            continue
        batches = [batch(generator) for _ in range(number // 4 % 2 + 1)]
        width = min(lists.shape[1] for lists, _, _ in batches)
        batches = [(lists[:, :width], edges, weights) for lists, edges, weights in batches]
        padded = any((lists < 0).any() for lists, _, _ in batches)
        results = []
        for library in (ours, theirs):
            metrics = collection(library, np.random.default_rng(number), padded)
            for arguments in batches:
                metrics.update(*arguments)
            results.append({name: float(value) for name, value in metrics.compute().items()})
        assert_same(*results, number, tolerance=2e-6)


def test_single_weighted_metrics_use_the_weights() -> None:
    from torch_geometric import metrics as theirs

    _, generator = next(numbers(0))
    lists, edges, weights = batch(generator)
    for name, options in (("NDCG", {"weighted": True}), ("NDCG", {}), ("Recall", {})):
        results = []
        for library in (ours, theirs):
            metric = getattr(library, f"LinkPred{name}")(3, **options)
            metric.update(lists, edges, weights)
            assert repr(metric) == repr(getattr(theirs, f"LinkPred{name}")(3, **options))
            results.append(float(metric.compute()))
        assert results[0] == pytest.approx(results[1], abs=1e-6)
