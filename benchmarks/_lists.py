"""Lists and test data for lists.py, and the libraries that evaluate them.

The function for a library takes frames and converts them to what its users have in memory. It
returns a call, and a function that converts the call's result to means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

import recometer as rm

Call = Callable[[], Any]
Array = npt.NDArray[Any]

K, LENGTH, N_ITEMS, N_JUDGED = 20, 100, 40_981, 8
METRICS = ("ndcg", "recall", "precision", "ap", "rr", "hit", "rprecision")


class Contestant(NamedTuple):
    """A timed call, and the function that converts its result to {metric: mean}."""

    call: Call
    means: Callable[[Any], dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Data:
    """Lists and test data as arrays: items [n_users, LENGTH], best first, and the test pairs."""

    lists: Array
    test_users: Array
    test_items: Array

    @classmethod
    def generate(cls, n_users: int) -> Data:
        """Return random lists and test items. About a third of the test items are in the lists."""
        rng = np.random.default_rng(0)
        samples = np.stack([rng.choice(N_ITEMS, LENGTH, replace=False) for _ in range(1000)])
        lists = samples[rng.integers(0, len(samples), n_users)]
        lists += rng.integers(0, N_ITEMS, (n_users, 1))
        lists %= N_ITEMS
        users = np.repeat(np.arange(n_users), N_JUDGED)
        listed = lists[users, rng.integers(0, LENGTH, len(users))]
        items = np.where(
            rng.random(len(users)) < 1 / 3, listed, rng.integers(0, N_ITEMS, len(users))
        )
        keys = np.unique(users * N_ITEMS + items)
        return cls(lists, keys // N_ITEMS, keys % N_ITEMS)

    @property
    def n_users(self) -> int:
        """The number of users. Each user has one list."""
        return len(self.lists)

    def first(self, n_users: int) -> Data:
        """Return the data of the first users only."""
        rows = self.test_users < n_users
        return Data(self.lists[:n_users], self.test_users[rows], self.test_items[rows])

    def frames(self, *, strings: bool = False, shuffled: bool = False) -> tuple[Any, Any]:
        """Return lists (user_id, item_id, rank) and test (user_id, item_id)."""
        lists = pl.DataFrame(
            {
                "user_id": np.repeat(np.arange(self.n_users), LENGTH),
                "item_id": self.lists.ravel(),
                "rank": np.tile(np.arange(1, LENGTH + 1), self.n_users),
            }
        )
        test = pl.DataFrame({"user_id": self.test_users, "item_id": self.test_items})
        if shuffled:
            lists = lists[np.random.default_rng(1).permutation(len(lists))]
        if strings:
            texts = [pl.format("user {}", "user_id"), pl.format("item {}", "item_id")]
            names = ["user_id", "item_id"]
            lists, test = (
                frame.with_columns([text.alias(n) for text, n in zip(texts, names, strict=True)])
                for frame in (lists, test)
            )
        return lists, test

    def matrix(self) -> Any:
        """Return test as a sparse matrix."""
        entries = (np.ones(len(self.test_users)), (self.test_users, self.test_items))
        return sp.csr_array(entries, shape=(self.n_users, N_ITEMS))


def ours(lists: object, test: object, threads: int) -> Contestant:
    metrics = [name if name == "rprecision" else f"{name}@{K}" for name in METRICS]

    def call() -> rm.Evaluation:
        return rm.evaluate(rm.Lists(lists), test, metrics=metrics, threads=threads)

    return Contestant(
        call, lambda result: {name.split("@")[0]: mean for name, mean in result.mean().items()}
    )


def in_pandas(frame: pl.DataFrame) -> Any:
    import pandas as pd

    return pd.DataFrame({column.name: column.to_numpy() for column in frame})


def in_dicts(lists: pl.DataFrame) -> dict[Any, list[Any]]:
    columns = lists["user_id"].to_list(), lists["item_id"].to_list()
    lists_by_user: dict[Any, list[Any]] = {}
    for user, item in zip(*columns, strict=True):
        lists_by_user.setdefault(user, []).append(item)
    return lists_by_user


def rectools(lists: pl.DataFrame, test: pl.DataFrame) -> Contestant:
    from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics

    metrics = {
        "ndcg": NDCG(K, divide_by_achievable=True),
        "recall": Recall(K),
        "precision": Precision(K),
        "ap": MAP(K),
        "rr": MRR(K),
        "hit": HitRate(K),
        "rprecision": Precision(K, r_precision=True),
    }
    frames = in_pandas(lists), in_pandas(test)
    return Contestant(lambda: calc_metrics(metrics, *frames), dict)


TREC_NAMES = {
    "ndcg": f"ndcg_cut_{K}",
    "recall": f"recall_{K}",
    "precision": f"P_{K}",
    "ap": f"map_cut_{K}",
    "rr": "recip_rank",
    "hit": f"success_{K}",
    "rprecision": "Rprec",
}


def pytrec_eval_on_dicts(run: dict[str, Any], qrels: dict[str, Any]) -> Contestant:
    import pytrec_eval as library

    measures = {f"{m}.{K}" for m in ("ndcg_cut", "recall", "P", "map_cut", "success")}
    measures |= {"recip_rank", "Rprec"}

    def means(values_by_user: dict[str, dict[str, float]]) -> dict[str, float]:
        users = values_by_user.values()
        return {
            name: sum(values[trec_name] for values in users) / len(users)
            for name, trec_name in TREC_NAMES.items()
        }

    return Contestant(lambda: library.RelevanceEvaluator(qrels, measures).evaluate(run), means)


def trec_dicts(lists: pl.DataFrame, test: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    run: dict[str, dict[str, float]] = {}
    columns = (lists[name].to_list() for name in ("user_id", "item_id", "rank"))
    for user, item, rank in zip(*columns, strict=True):
        run.setdefault(str(user), {})[str(item)] = -float(rank)
    qrels: dict[str, dict[str, int]] = {}
    for user, item in test.iter_rows():
        qrels.setdefault(str(user), {})[str(item)] = 1
    return run, qrels


def pytrec_eval(lists: pl.DataFrame, test: pl.DataFrame) -> Contestant:
    means = pytrec_eval_on_dicts({}, {}).means
    return Contestant(lambda: pytrec_eval_on_dicts(*trec_dicts(lists, test)).call(), means)


def ranx(lists: pl.DataFrame, test: pl.DataFrame) -> Contestant:
    from ranx import Qrels, Run, evaluate

    names = ("ndcg", "recall", "precision", "map", "mrr", "hit_rate", "r-precision")
    metrics = [name if name == "r-precision" else f"{name}@{K}" for name in names]
    # The frames of ranx contain text ids, so a user with integer ids has to convert them.
    texts = pl.col("user_id", "item_id").cast(pl.String)
    columns = {"q_id_col": "user_id", "doc_id_col": "item_id", "score_col": "score"}

    def call() -> Any:
        run = in_pandas(lists.select(texts, score=-pl.col("rank").cast(pl.Float64)))
        qrels = in_pandas(test.select(texts, score=pl.lit(1, pl.Int64)))
        return evaluate(Qrels.from_df(qrels, **columns), Run.from_df(run, **columns), metrics)

    def means(values: dict[str, float]) -> dict[str, float]:
        return {name: values[ranx_name] for name, ranx_name in zip(METRICS, metrics, strict=True)}

    return Contestant(call, means)


def torchmetrics(lists: pl.DataFrame, test: pl.DataFrame) -> Contestant:
    import torch
    from torchmetrics import retrieval

    metrics = {
        "ndcg": retrieval.RetrievalNormalizedDCG(top_k=K),
        "recall": retrieval.RetrievalRecall(top_k=K),
        "precision": retrieval.RetrievalPrecision(top_k=K),
        "ap": retrieval.RetrievalMAP(top_k=K),
        "rr": retrieval.RetrievalMRR(top_k=K),
        "hit": retrieval.RetrievalHitRate(top_k=K),
        "rprecision": retrieval.RetrievalRPrecision(),
    }

    def call() -> dict[str, float]:
        # torchmetrics takes scored pairs and never recommends an item whose score is not positive,
        # so test items that are in no list come last, with score 0.
        on = ["user_id", "item_id"]
        pairs = lists.join(test.with_columns(target=pl.lit(True)), on=on, how="full", coalesce=True)
        columns = (
            LENGTH + 1 - pairs["rank"].fill_null(LENGTH + 1).cast(pl.Float32),
            pairs["target"].fill_null(False),
            pairs["user_id"].rank("dense").cast(pl.Int64),
        )
        scores, target, index = (torch.from_numpy(column.to_numpy().copy()) for column in columns)
        means = {}
        for name, metric in metrics.items():
            metric.reset()
            metric.update(scores, target, indexes=index)
            means[name] = float(metric.compute())
        return means

    return Contestant(call, dict)


# Some definitions differ: RecTools' R-precision divides the hits among the first k, not R, by R;
# torchmetrics divides AP by the number of relevant items that were found.
DIFFERENT = {
    "rectools": {"rprecision"},
    "pytrec_eval": {"rr"},
    "ranx": set[str](),
    "torchmetrics": {"ap"},
}
