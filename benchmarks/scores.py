"""The speed of evaluating dense scores, compared with torch.topk in the same run.

The data are a float32 matrix of 10,000 users and 50,000 items, with 51 training and 10 relevant
items per user. The metrics are ndcg, recall, precision and hit at k = 20. The script prints a table
and writes ``results/scores.json``; README.md explains the measurements.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import scipy.sparse as sp
import torch
from _table import HEADERS, Measure, markdown, seconds
from _timing import side_by_side

import recometer as rm

HERE = Path(__file__).parent
Call = Callable[[], Any]

K, N_TRAINED, N_RELEVANT = 20, 51, 10
METRICS = f"ndcg@{K} recall@{K} precision@{K} hit@{K}"


@dataclasses.dataclass(frozen=True)
class Data:
    """Scores, and the training and test items of each user."""

    scores: Any  # float32 [n_users, n_items]
    train: Any  # a sparse matrix
    test: Any  # a sparse matrix

    @classmethod
    def generate(cls, n_users: int, n_items: int) -> Data:
        """Draw normally distributed scores, and uniformly distributed training and test items."""
        rng = np.random.default_rng(0)
        scores = rng.standard_normal((n_users, n_items), dtype=np.float32)
        n = N_TRAINED + N_RELEVANT
        # Draw one item from each of n equal parts of the catalogue, so a user's items are distinct.
        items = np.arange(n) * (n_items // n) + rng.integers(0, n_items // n, (n_users, n))
        items = rng.permuted(items, axis=1)
        return cls(
            scores,
            *(
                sp.csr_array(
                    (
                        np.ones(part.size),
                        (np.repeat(np.arange(n_users), part.shape[1]), part.ravel()),
                    ),
                    shape=scores.shape,
                )
                for part in (items[:, :N_TRAINED], items[:, N_TRAINED:])
            ),
        )


def ours(data: Data, threads: int) -> Call:
    def call() -> dict[str, float]:
        source = rm.Scores(data.scores)
        result = rm.evaluate(source, data.test, train=data.train, metrics=METRICS, threads=threads)
        return result.mean()

    return call


def top_k(data: Data, *, copy: bool) -> Call:
    """Return a top-k search that masks training items in a copy, or in place."""
    scores = torch.from_numpy(data.scores)
    users, items = (torch.from_numpy(index.astype(np.int64)) for index in data.train.nonzero())
    if not copy:
        scores = scores.clone()  # the other calls need the scores as a model returns them

    def call() -> Any:
        masked = scores.clone() if copy else scores
        masked[users, items] = -torch.inf
        return torch.topk(masked, K).indices

    return call


def top_k_metrics(data: Data) -> Call:
    """Return a search that masks a copy and then computes the metrics of its lists."""
    search = top_k(data, copy=True)
    users, items = (torch.from_numpy(index.astype(np.int64)) for index in data.test.nonzero())
    n_items = data.scores.shape[1]

    def call() -> dict[str, float]:
        top_items = search()
        keys = torch.arange(len(top_items))[:, None] * n_items + top_items
        hits = torch.isin(keys, users * n_items + items).double()
        n_relevant = torch.bincount(users, minlength=len(top_items)).double()
        discounts = 1 / torch.log2(torch.arange(2, K + 2).double())
        ideal = torch.cumsum(discounts, 0)[n_relevant.clamp(max=K).long() - 1]
        n_hits = hits.sum(1)
        values = {
            "ndcg": hits @ discounts / ideal,
            "recall": n_hits / n_relevant,
            "precision": n_hits / K,
            "hit": (n_hits > 0).double(),
        }
        return {f"{name}@{K}": float(value.mean()) for name, value in values.items()}

    return call


WITH_METRICS = "torch.topk of a masked copy, with metrics"
TARGETS = {"torch.topk of a masked copy": 5, WITH_METRICS: 5, "torch.topk, masked in place": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    data = Data.generate(options.users, options.items)
    calls = {
        "recometer": ours(data, options.threads),
        "torch.topk of a masked copy": top_k(data, copy=True),
        WITH_METRICS: top_k_metrics(data),
        "torch.topk, masked in place": top_k(data, copy=False),
    }
    expected, theirs = calls["recometer"](), calls[WITH_METRICS]()
    if not all(np.isclose(theirs[name], mean) for name, mean in expected.items()):
        raise SystemExit(f"The values differ: {expected} and {theirs}.")
    times = side_by_side(calls, options.repeats)
    median = times["recometer"].median
    measures = [
        Measure(f"evaluate: {name}", seconds(median), seconds(duration), duration / median, target)
        for (name, target), duration in ((one, times[one[0]].median) for one in TARGETS.items())
    ]
    print(markdown(HEADERS, [measure.cells() for measure in measures]))
    results = {
        "machine": _machine.describe(),
        "options": vars(options),
        "measures": [dataclasses.asdict(measure) for measure in measures],
        "times": {name: dataclasses.asdict(timed) for name, timed in times.items()},
    }
    path = HERE / "results" / "scores.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
