"""recometer's convention for WarpRec gives the same values as WarpRec."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from _cases import CUTOFFS, N_ITEMS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
RANKED = ["Precision", "Recall", "F1", "HitRate", "MRR", "MAP", "MAR", "nDCG", "nDCGRendle2020"]
WEIGHTED = ["IPSRecall", "IPSDCG", "SNIPSRecall", "SNIPSDCG", "EPC", "EFD"]
OF_LISTS = ["ARP", "SRecall", "ItemCoverage", "Gini", "ShannonEntropy"]
WHOLE = ["AUC", "GAUC"]
ERRORS = ["MAE", "MSE", "RMSE"]
# WarpRec computes everything in single precision, including the sums for AUC.
TOLERANCE = 2e-6


@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_warprec(case: Dense) -> None:
    train, truth = with_everything_in_train(case)
    features = np.random.default_rng([2028, case.number]).random((N_ITEMS, 5)) < 0.4
    metrics = [*RANKED, *WEIGHTED, *WHOLE]
    printed = values(case.scores, truth, train, [*metrics, *OF_LISTS], features.astype(float))
    library_values = {without_cutoff(name): value for name, value in printed.items()}
    evaluated_users = np.flatnonzero(truth.any(axis=1))
    if not len(evaluated_users):
        return
    catalogue = rm.Catalogue(N_ITEMS, categories=features)
    of_lists = {
        name: library_values.pop(name)
        for name in list(library_values)
        if name.startswith(tuple(OF_LISTS))
    }
    options: dict[str, Any] = {"train": train, "catalogue": catalogue, "tolerance": TOLERANCE}
    check("warprec", rm.Scores(case.scores), truth, library_values, **options)
    # WarpRec creates lists only for users with test rows.
    scores = np.full_like(case.scores, -np.inf)
    scores[evaluated_users] = case.scores[evaluated_users]
    means = {name: (None, mean) for name, (_, mean) in of_lists.items()}
    check("warprec", rm.Scores(scores), truth, means, **options)


@pytest.mark.parametrize("case", dense_cases()[:10], ids=str)
def test_rating_errors_match_warprec(case: Dense) -> None:
    train, truth = with_everything_in_train(case)
    scores = case.scores / 1024  # scores of the same magnitude as ratings, and exact in float32
    user, item = np.nonzero(truth)
    frame = pl.DataFrame(
        {"user": user, "item": item, "rating": truth[user, item], "score": scores[user, item]}
    )
    printed = values(scores, truth, train, ERRORS)
    library_values = {without_cutoff(name): value for name, value in printed.items()}
    pairs = rm.Pairs(frame, rating="rating", score="score")
    check("warprec", pairs, None, library_values, tolerance=TOLERANCE * 10)


def without_cutoff(name: str) -> str:
    """Remove the cut-off from the name of a metric that takes none."""
    metric = name.partition("@")[0]
    return metric if metric in (*WHOLE, *ERRORS) else name


def with_everything_in_train(case: Dense) -> tuple[np.ndarray, np.ndarray]:
    """Give every user and item a training row; WarpRec knows only users and items that have one."""
    train = case.train.copy()
    train[np.arange(N_ITEMS) % len(train), np.arange(N_ITEMS)] = True
    return train, np.where(train, 0.0, case.truth)


def values(
    scores: np.ndarray,
    truth: np.ndarray,
    train: np.ndarray,
    metrics: list[str],
    features: np.ndarray | None = None,
) -> dict[str, tuple[Mapping[Any, float] | None, float | None]]:
    """Return the metrics that WarpRec's evaluator computes from these scores."""
    import torch
    from scipy.sparse import csr_matrix
    from torch.utils.data import DataLoader
    from warprec.data.eval_loaders import EvaluationDataset, sparse_eval_collate
    from warprec.evaluation.evaluator import Evaluator
    from warprec.evaluation.propensity import build_propensity

    score_tensor = torch.tensor(scores, dtype=torch.float32)
    model: Any = types.SimpleNamespace(
        eval=lambda: None, predict=lambda user_indices, **_: score_tensor[user_indices].clone()
    )
    history = csr_matrix(train.astype(np.float32))
    loader: Any = DataLoader(
        EvaluationDataset(csr_matrix(truth)), batch_size=5, collate_fn=sparse_eval_collate
    )
    dataset: Any = types.SimpleNamespace(
        train_set=types.SimpleNamespace(get_sparse=lambda: history), train_transactions=None
    )
    # WarpRec expects an additional padding row in the feature table.
    lookup = None if features is None else torch.tensor(np.pad(features, ((0, 1), (0, 0))))
    evaluator = Evaluator(
        metrics, list(CUTOFFS), history,
        feature_lookup=lookup, propensity=build_propensity(train.sum(axis=0)),
    )  # fmt: skip
    evaluator.evaluate(model, loader, "full", dataset)
    library_values: dict[str, tuple[Mapping[Any, float] | None, float | None]] = {}
    for k, results in evaluator.compute_results().items():
        for name, value in results.items():
            if isinstance(value, torch.Tensor):
                mean = value.nanmean().item()
                library_values[f"{name}@{k}"] = (dict(enumerate(value.tolist())), mean)
            else:
                library_values[f"{name}@{k}"] = (None, value)
    return library_values
