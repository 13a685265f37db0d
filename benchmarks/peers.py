"""How fast libraries that have no drop-in are, beside recometer, for the same lists.

Run, in an environment that has the library: python benchmarks/peers.py --library replay

Each side gets what a user of it has in memory, and makes of it what it needs. Metrics are those at
10 that both have. `_pairs.py` says how the two sides are timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _pairs import Library, Pair, main  # isort: split

import numpy as np
import polars as pl
from _lists import Data, in_pandas, trec_dicts

import recometer as rm

RESULTS = Path(__file__).with_name("results") / "peers.json"
K = 10


def ours(lists: object, test: object, metrics: str) -> rm.Evaluation:
    """Evaluate lists with recometer in one thread."""
    return rm.evaluate(rm.Lists(lists), test, metrics=metrics, threads=1, progress=False)


def ir_measures(n_users: int) -> list[Pair]:
    """Dicts of texts, 100 documents a query."""
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
    """Frames of pandas, 100 rows of recommendations a user."""
    from lenskit.data import ItemListCollection
    from lenskit.metrics import NDCG, Hit, MeasurementCollector, Precision, Recall, RecipRank

    lists, test = (in_pandas(frame) for frame in Data.generate(n_users).frames())
    lists["score"] = -lists["rank"].astype(float)

    def theirs() -> Any:
        collector = MeasurementCollector()
        for metric in (NDCG, Precision, Recall, RecipRank, Hit):
            collector.add_metric(metric(K))
        found, truth = (ItemListCollection.from_df(frame, ["user_id"]) for frame in (lists, test))
        collector.add_collection_measurements(found, truth)
        return collector.summary_metrics()

    metrics = f"ndcg@{K} precision@{K} recall@{K} rr@{K} hit@{K}"
    return [Pair("MeasurementCollector of 5", theirs, lambda: ours(lists, test, metrics))]


def replay(n_users: int) -> list[Pair]:
    """Frames of Polars, 100 rows of recommendations a user."""
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

    metrics = f"ndcg@{K} precision@{K} recall@{K} ap@{K} rr@{K} hit@{K}"
    return [Pair("OfflineMetrics of 6", theirs, lambda: ours(lists, test, metrics))]


def recbole(n_users: int) -> list[Pair]:
    """Scores of 20,000 items as a tensor, in batches of 500 users."""
    import torch
    from recbole.evaluator import Collector, Evaluator

    torch.set_num_threads(1)
    data = Data.generate(n_users)
    n_items = 20_000
    scores = torch.rand((n_users, n_items), generator=torch.Generator().manual_seed(0))
    users, items = data.test_users, data.test_items % n_items
    names = ["NDCG", "Precision", "Recall", "MAP", "MRR", "Hit"]
    config = {
        "metrics": names,
        "topk": [K],
        "eval_args": {"mode": {"valid": "full", "test": "full"}},
        "device": torch.device("cpu"),
        "metric_decimal_place": 10,
    }

    def theirs() -> Any:
        collector = Collector(config)
        for first in range(0, n_users, 500):
            batch = scores[first : first + 500]
            some = (users >= first) & (users < first + len(batch))
            where = [torch.from_numpy(part[some].astype(np.int64)) for part in (users, items)]
            collector.eval_batch_collect(batch.clone(), None, where[0] - first, where[1])
        return Evaluator(config).evaluate(collector.get_data_struct())

    test = rm.Interactions.of(np.stack([users, items]), n_users=n_users, n_items=n_items)
    metrics = f"ndcg@{K} precision@{K} recall@{K} ap@{K} rr@{K} hit@{K}"

    def own() -> Any:
        return rm.evaluate(rm.Scores(scores), test, metrics=metrics, threads=1, progress=False)

    return [Pair("Collector and Evaluator of 6, scores", theirs, own)]


LIBRARIES = {
    "ir_measures": Library(ir_measures, 5000, "ir-measures"),
    "lenskit": Library(lenskit, 5000, "lenskit"),
    "recbole": Library(recbole, 2000, "recbole"),
    "replay": Library(replay, 5000, "replay-rec"),
}


if __name__ == "__main__":
    main(LIBRARIES, RESULTS, __doc__)
