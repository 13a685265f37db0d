"""The speed of libraries without a drop-in, compared with recometer on the same lists.

Run, in an environment that has the library: python benchmarks/peers.py --library replay

Each side gets the data that its users have in memory, and converts it as needed. Only metrics
with a cut-off of 10 that both sides support are computed. `_pairs.py` explains how the two sides
are timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _pairs import Library, Pair, main  # isort: split

import numpy as np
import polars as pl
import scipy.sparse as sp
from _lists import Data, in_pandas, trec_dicts

import recometer as rm

RESULTS = Path(__file__).with_name("results") / "peers.json"
K = 10
N_ITEMS, BATCH = 20_000, 500
OF_SIX = f"ndcg@{K} precision@{K} recall@{K} ap@{K} rr@{K} hit@{K}"


def ours(lists: object, test: object, metrics: str) -> rm.Evaluation:
    """Evaluate lists with recometer in one thread."""
    return rm.evaluate(rm.Lists(lists), test, metrics=metrics, threads=1, progress=False)


def ir_measures(n_users: int) -> list[Pair]:
    """Use dicts with text ids and 100 documents per query."""
    import ir_measures as library
    from ir_measures import AP, RR, P, R, nDCG

    run, qrels = trec_dicts(*Data.generate(n_users).frames(strings=True))
    measures = [nDCG @ K, P @ K, R @ K, AP @ K, RR]
    metrics = f"ndcg@{K} precision@{K} recall@{K} ap@{K} rr"
    return [
        Pair(
            "calc_aggregate of 5, dicts",
            lambda: library.calc_aggregate(measures, qrels, run),
            lambda: ours(run, qrels, metrics),
        )
    ]


def lenskit(n_users: int) -> list[Pair]:
    """Use pandas frames with 100 rows of recommendations per user."""
    from lenskit.data import ItemListCollection
    from lenskit.metrics import NDCG, Hit, MeasurementCollector, Precision, Recall, RecipRank

    lists, test = (in_pandas(frame) for frame in Data.generate(n_users).frames())
    lists["score"] = -lists["rank"].astype(float)

    def collections() -> list[Any]:
        return [ItemListCollection.from_df(frame, ["user_id"]) for frame in (lists, test)]

    def measured(collections: list[Any]) -> Any:
        collector = MeasurementCollector()
        for metric in (NDCG, Precision, Recall, RecipRank, Hit):
            collector.add_metric(metric(K))
        collector.add_collection_measurements(*collections)
        return collector.summary_metrics()

    there = collections()

    def own() -> rm.Evaluation:
        return ours(lists, test, metrics)

    metrics = f"ndcg@{K} precision@{K} recall@{K} rr@{K} hit@{K}"
    return [
        Pair("MeasurementCollector of 5, frames", lambda: measured(collections()), own),
        Pair("MeasurementCollector of 5, existing collections", lambda: measured(there), own),
    ]


def replay(n_users: int) -> list[Pair]:
    """Use Polars frames with 100 rows of recommendations per user."""
    from replay import metrics as library

    lists, test = Data.generate(n_users).frames()
    lists = lists.with_columns(score=-pl.col("rank").cast(pl.Float64))
    columns = {"user_id": "query_id", "score": "rating"}
    theirs_lists, theirs_test = (
        lists.drop("rank").rename(columns),
        test.rename({"user_id": "query_id"}),
    )
    names = ("NDCG", "Precision", "Recall", "MAP", "MRR", "HitRate")

    def theirs() -> Any:
        metrics = [getattr(library, name)(K) for name in names]
        return library.OfflineMetrics(metrics)(theirs_lists, theirs_test)

    return [Pair("OfflineMetrics of 6", theirs, lambda: ours(lists, test, OF_SIX))]


def evidently(n_users: int) -> list[Pair]:
    """Use pandas frames with 100 scored and judged rows per user."""
    from evidently import DataDefinition, Dataset, Recsys, Report
    from evidently import metrics as library

    lists, test = Data.generate(n_users).frames()
    judged = test.with_columns(target=pl.lit(1))
    rows = lists.join(judged, on=["user_id", "item_id"], how="left", maintain_order="left")
    frame = in_pandas(
        rows.select(
            "user_id",
            "item_id",
            prediction=-pl.col("rank").cast(pl.Float64),
            target=pl.col("target").fill_null(0),
        )
    )
    names = ("NDCG", "PrecisionTopK", "RecallTopK", "MAP", "MRR", "HitRate")

    def theirs() -> Any:
        definition = DataDefinition(ranking=[Recsys()])
        report = Report([getattr(library, name)(k=K) for name in names])
        return report.run(Dataset.from_pandas(frame, definition), None).dict()

    def own() -> rm.Evaluation:
        pairs = rm.Pairs(frame, relevance="target")
        return rm.evaluate(pairs, metrics=OF_SIX, threads=1, progress=False)

    return [Pair("Report of 6", theirs, own)]


def retrieval_eval_gate(n_users: int) -> list[Pair]:
    """Use TREC files with 100 documents per query, and time reading them as well."""
    import tempfile

    from rag_eval_gate.backends import RunFileBackend
    from rag_eval_gate.goldset import load_trec_qrels
    from rag_eval_gate.harness import add_intervals, evaluate
    from rag_eval_gate.stats import DEFAULT_ITERS

    lists, test = Data.generate(n_users).frames()
    folder = Path(tempfile.mkdtemp())
    run, qrels = str(folder / "lists.run"), str(folder / "test.qrels")
    fields = {"include_header": False, "separator": " "}
    lists.select(
        "user_id", pl.lit("Q0"), "item_id", "rank", -pl.col("rank").alias("s"), n=pl.lit("x")
    ).write_csv(run, **fields)
    test.select("user_id", pl.lit("0"), "item_id", r=pl.lit(1)).write_csv(qrels, **fields)

    def theirs() -> Any:
        return evaluate(RunFileBackend(run), load_trec_qrels(qrels), "run")

    def with_intervals() -> None:
        add_intervals({"run": theirs()}, DEFAULT_ITERS)

    def own() -> rm.Evaluation:
        return ours(run, qrels, f"recall@5 recall@{K} rr@{K} ndcg@{K}")

    return [
        Pair("evaluate of 4, means", theirs, own),
        Pair("evaluate of 4, with intervals", with_intervals, lambda: str(own())),
    ]


def scored(n_users: int) -> tuple[Any, Any, Any]:
    """Return scores of 20,000 items as a tensor [n_users, 20,000], and the test pairs.

    A third of the test items are ranked first.
    """
    import torch

    torch.set_num_threads(1)
    data = Data.generate(n_users)
    scores = torch.rand((n_users, N_ITEMS), generator=torch.Generator().manual_seed(0))
    pairs = np.unique(np.stack([data.test_users, data.test_items % N_ITEMS]), axis=1)
    users, items = (torch.from_numpy(part.astype(np.int64)) for part in pairs)
    scores[users[::3], items[::3]] += 1
    return scores, users, items


def of_scores(scores: Any, users: Any, items: Any) -> rm.Evaluation:
    """Evaluate scores with recometer in one thread."""
    edges = np.stack([users.numpy(), items.numpy()])
    test = rm.Interactions.of(edges, n_users=len(scores), n_items=N_ITEMS)
    return rm.evaluate(rm.Scores(scores), test, metrics=OF_SIX, threads=1, progress=False)


def recbole(n_users: int) -> list[Pair]:
    """Use scores of 20,000 items as a tensor, in batches of 500 users."""
    import torch
    from recbole.evaluator import Collector, Evaluator

    vars(np)["float"] = float  # RecBole 1.2.1 uses this name, which NumPy has removed
    scores, users, items = scored(n_users)
    config = {
        "metrics": ["NDCG", "Precision", "Recall", "MAP", "MRR", "Hit"],
        "topk": [K],
        "eval_args": {"mode": {"valid": "full", "test": "full"}},
        "device": torch.device("cpu"),
        "metric_decimal_place": 10,
    }

    def theirs() -> Any:
        collector = Collector(config)
        for first in range(0, n_users, BATCH):
            in_batch = (users >= first) & (users < first + BATCH)
            batch = scores[first : first + BATCH].clone()
            collector.eval_batch_collect(batch, None, users[in_batch] - first, items[in_batch])
        return Evaluator(config).evaluate(collector.get_data_struct())

    name = "Collector and Evaluator of 6"
    return [Pair(name, theirs, lambda: of_scores(scores, users, items))]


def warprec(n_users: int) -> list[Pair]:
    """Use scores of 20,000 items as a tensor, in batches of 500 users."""
    from types import SimpleNamespace

    import torch
    from warprec.evaluation.evaluator import Evaluator

    scores, users, items = scored(n_users)
    nothing = np.zeros(0, np.int64)
    train = sp.csr_matrix((np.zeros(0, np.float32), (nothing, nothing)), shape=(n_users, N_ITEMS))
    dataset = SimpleNamespace(
        train_set=SimpleNamespace(get_sparse=lambda: train), train_transactions=None
    )

    model = SimpleNamespace(
        eval=lambda: None, predict=lambda user_indices, **_: scores[user_indices]
    )

    def theirs() -> Any:
        batches = []
        for first in range(0, n_users, BATCH):
            in_batch = (users >= first) & (users < first + BATCH)
            rows = torch.arange(first, min(first + BATCH, n_users))
            ones = torch.ones(int(in_batch.sum()))
            batches.append((rows, users[in_batch] - first, items[in_batch], ones))
        names = ["nDCG", "Precision", "Recall", "MAP", "MRR", "HitRate"]
        evaluator = Evaluator(names, [K], train)
        evaluator.evaluate(model, batches, "full", dataset)
        return evaluator.compute_results()

    return [Pair("Evaluator of 6", theirs, lambda: of_scores(scores, users, items))]


LIBRARIES = {
    "evidently": Library(evidently, 1000, "evidently"),
    "ir_measures": Library(ir_measures, 5000, "ir-measures"),
    "lenskit": Library(lenskit, 5000, "lenskit"),
    "recbole": Library(recbole, 2000, "recbole"),
    "replay": Library(replay, 5000, "replay-rec"),
    "retrieval_eval_gate": Library(retrieval_eval_gate, 500, "retrieval-eval-gate"),
    "warprec": Library(warprec, 2000, "warprec"),
}


if __name__ == "__main__":
    main(LIBRARIES, RESULTS, __doc__)
