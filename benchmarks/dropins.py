"""The speed of the drop-ins of recometer.compat, compared with the libraries they replace.

Run: python benchmarks/dropins.py --library ranx

`_pairs.py` explains how the two sides are timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _pairs import Library, Pair, main  # isort: split

import numpy as np
import scipy.sparse as sp
from _lists import Data, in_pandas, trec_dicts

RESULTS = Path(__file__).with_name("results") / "dropins.json"
K = 10


def implicit(n_users: int) -> list[Pair]:
    """Rank an ALS model: 64 factors, 20,000 items, 50 training and 10 test items per user."""
    from implicit import evaluation
    from implicit.als import AlternatingLeastSquares

    from recometer.compat import implicit as compat

    rng = np.random.default_rng(0)
    n_items = 20_000
    model = AlternatingLeastSquares(factors=64, num_threads=1)
    model.user_factors = rng.normal(size=(n_users, 64)).astype(np.float32)
    model.item_factors = rng.normal(size=(n_items, 64)).astype(np.float32)
    items = np.argsort(rng.random((n_users, 200)), axis=1)[:, :60] * 100
    items += rng.integers(0, 100, items.shape)
    users = np.arange(n_users)[:, np.newaxis]
    train, test = (
        sp.csr_matrix(
            (np.ones(part.size), ((users + 0 * part).ravel(), part.ravel())), (n_users, n_items)
        )
        for part in (items[:, :50], items[:, 50:])
    )

    def call(library: Any) -> Any:
        return library.ranking_metrics_at_k(model, train, test, K=K, show_progress=False)

    return [
        Pair("ranking_metrics_at_k", lambda: call(evaluation), lambda: call(compat)),
    ]


def pytrec_eval(n_users: int) -> list[Pair]:
    """Use dicts with text ids and 100 documents per query."""
    import pytrec_eval as library

    from recometer.compat import pytrec_eval as compat

    run, qrels = trec_dicts(*Data.generate(n_users).frames(strings=True))
    measures = {"map", "ndcg_cut.10", "recall.100", "P.10", "recip_rank"}

    def call(which: Any) -> Any:
        return which.RelevanceEvaluator(qrels, measures).evaluate(run)

    return [Pair("RelevanceEvaluator, dicts", lambda: call(library), lambda: call(compat))]


def ranx(n_users: int) -> list[Pair]:
    """Use 100 documents per query; build the library's objects in the call or beforehand."""
    import polars as pl
    import ranx as library

    from recometer.compat import ranx as compat

    lists, test = Data.generate(n_users).frames(strings=True)
    run, qrels = trec_dicts(lists, test)
    metrics = ["ndcg@10", "map", "mrr", "recall@100", "precision@10"]
    columns = ["q_id", "doc_id", "score"]
    scored = lists.with_columns(score=-pl.col("rank").cast(pl.Float64)).drop("rank")
    judged = test.with_columns(score=pl.lit(1, pl.Int64))
    frames = [in_pandas(frame.rename(dict(zip(frame.columns, columns, strict=True))))
              for frame in (judged, scored)]  # fmt: skip

    def of_dicts(which: Any) -> Any:
        return which.evaluate(which.Qrels(qrels), which.Run(run), metrics)

    def of_frames(which: Any) -> Any:
        inputs = which.Qrels.from_df(frames[0]), which.Run.from_df(frames[1])
        return which.evaluate(*inputs, metrics)

    ready = {which: (which.Qrels(qrels), which.Run(run)) for which in (library, compat)}
    return [
        Pair("evaluate, of dicts", lambda: of_dicts(library), lambda: of_dicts(compat)),
        Pair("evaluate, of frames", lambda: of_frames(library), lambda: of_frames(compat)),
        Pair(
            "evaluate, existing Qrels and Run",
            lambda: library.evaluate(*ready[library], metrics),
            lambda: compat.evaluate(*ready[compat], metrics, threads=1),
        ),
    ]


def sklearn(n_users: int) -> list[Pair]:
    """Use rows of 1,000 scores, and a single row of 100 scores."""
    from sklearn import metrics as library

    from recometer.compat import sklearn as compat

    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n_users, 1000))
    gains = (rng.random(scores.shape) < 0.02) * rng.integers(1, 5, scores.shape)
    single_row = gains[:1, :100] + 1, scores[:1, :100]
    return [
        Pair(
            "ndcg_score(k=10)",
            lambda: library.ndcg_score(gains, scores, k=K),
            lambda: compat.ndcg_score(gains, scores, k=K),
        ),
        Pair(
            "ndcg_score, one row of 100",
            lambda: library.ndcg_score(*single_row),
            lambda: compat.ndcg_score(*single_row),
        ),
    ]


def surprise(n_users: int) -> list[Pair]:
    """Use 50 predictions per user."""
    from surprise import Prediction, accuracy

    from recometer.compat import surprise as compat

    rng = np.random.default_rng(0)
    n = 50 * n_users
    columns = (
        rng.integers(0, n_users, n).tolist(),
        rng.integers(0, 5000, n).tolist(),
        rng.integers(1, 6, n).astype(float).tolist(),
        rng.normal(3, 1, n).tolist(),
    )
    predictions = [Prediction(*row, {}) for row in zip(*columns, strict=True)]

    def pair(name: str) -> Pair:
        return Pair(
            name,
            lambda: getattr(accuracy, name)(predictions, verbose=False),
            lambda: getattr(compat, name)(predictions, verbose=False),
        )

    return [pair("rmse"), pair("fcp")]


def recommenders(n_users: int) -> list[Pair]:
    """Use 100 rows of predictions per user."""
    from recommenders.evaluation import python_evaluation as library

    from recometer.compat import recommenders as compat

    lists, test = (in_pandas(frame) for frame in Data.generate(n_users).frames())
    lists = lists.rename(columns={"user_id": "userID", "item_id": "itemID"})
    lists["prediction"] = -lists.pop("rank").astype(float)
    test = test.rename(columns={"user_id": "userID", "item_id": "itemID"}).assign(rating=1.0)

    def pair(name: str) -> Pair:
        return Pair(
            name,
            lambda: getattr(library, name)(test, lists, k=K),
            lambda: getattr(compat, name)(test, lists, k=K),
        )

    return [pair("ndcg_at_k"), pair("precision_at_k"), pair("map_at_k")]


def torchmetrics(n_users: int) -> list[Pair]:
    """Use 100 pairs per query in one update."""
    import torch
    from torchmetrics import retrieval as library

    from recometer.compat import torchmetrics as compat

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    preds = torch.tensor(rng.random(100 * n_users), dtype=torch.float32)
    target = torch.tensor(rng.random(100 * n_users) < 0.1)
    indexes = torch.arange(n_users).repeat_interleave(100)

    def call(which: Any, name: str) -> Any:
        metric = getattr(which, name)(top_k=K)
        metric.update(preds, target, indexes=indexes)
        return metric.compute()

    names = ["RetrievalNormalizedDCG", "RetrievalMRR", "RetrievalPrecision"]
    return [
        Pair(name, lambda name=name: call(library, name), lambda name=name: call(compat, name))  # type: ignore[misc]
        for name in names
    ]


def pyg(n_users: int) -> list[Pair]:
    """Use lists of 20 and about 8 relevant edges per source, in batches of 4,096."""
    import torch
    from torch_geometric import metrics as library

    from recometer.compat import pyg as compat

    torch.set_num_threads(1)
    data = Data.generate(n_users)
    lists = torch.tensor(data.lists[:, :20].astype(np.int64))
    edges = torch.tensor(np.stack([data.test_users, data.test_items]).astype(np.int64))
    names = ["Precision", "Recall", "F1", "MAP", "NDCG", "MRR", "HitRatio"]
    batches = []
    for first in range(0, n_users, 4096):
        in_batch = (edges[0] >= first) & (edges[0] < first + 4096)
        batch = edges[:, in_batch].clone()
        batch[0] -= first
        batches.append((lists[first : first + 4096], batch))

    def call(which: Any) -> Any:
        metrics = [getattr(which, f"LinkPred{name}")(K) for name in names]
        collection = which.LinkPredMetricCollection(metrics)
        for batch in batches:
            collection.update(*batch)
        return collection.compute()

    name = "LinkPredMetricCollection of 7"
    return [Pair(name, lambda: call(library), lambda: call(compat))]


def rectools(n_users: int) -> list[Pair]:
    """Use 100 rows of recommendations per user."""
    from rectools import metrics as library

    from recometer.compat import rectools as compat

    frames = [in_pandas(frame) for frame in Data.generate(n_users).frames()]
    metrics = {
        name: getattr(library, name)(k=K)
        for name in ("Precision", "Recall", "HitRate", "MAP", "NDCG", "MRR")
    }
    return [
        Pair(
            "calc_metrics of 6",
            lambda: library.calc_metrics(metrics, *frames),
            lambda: compat.calc_metrics(metrics, *frames),
        )
    ]


LIBRARIES = {
    "implicit": Library(implicit, 2000, "implicit"),
    "pytrec_eval": Library(pytrec_eval, 5000, "pytrec-eval-terrier"),
    "ranx": Library(ranx, 5000, "ranx"),
    "sklearn": Library(sklearn, 2000, "scikit-learn"),
    "surprise": Library(surprise, 2000, "scikit-surprise"),
    "recommenders": Library(recommenders, 5000, "recommenders"),
    "torchmetrics": Library(torchmetrics, 1000, "torchmetrics"),
    "pyg": Library(pyg, 20_000, "torch-geometric"),
    "rectools": Library(rectools, 5000, "rectools"),
}


if __name__ == "__main__":
    main(LIBRARIES, RESULTS, __doc__)
