"""How fast lists are evaluated, beside other libraries, in one run.

Seven metrics at k = 20, from what the user has in memory to the values, conversions counted.
Prints a table and writes ``results/lists.json``. Others that are not installed are left out:
pip install ranx pytrec-eval-terrier rectools
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp
from _table import HEADERS, Measure, markdown, number, seconds
from _timing import side_by_side

import recometer as rm

HERE = Path(__file__).parent
Call = Callable[[], object]
Array = npt.NDArray[Any]

K, LENGTH, N_ITEMS, N_JUDGED = 20, 100, 40_981, 8
METRICS = f"ndcg@{K} recall@{K} precision@{K} ap@{K} rr@{K} hit@{K} rprecision"


@dataclasses.dataclass(frozen=True)
class Data:
    """Lists and test as arrays: items [n_users, LENGTH], best first, and the pairs of test."""

    lists: Array
    test_users: Array
    test_items: Array

    @classmethod
    def generate(cls, n_users: int) -> Data:
        """About a third of the items of test are in the lists."""
        rng = np.random.default_rng(0)
        some = np.stack([rng.choice(N_ITEMS, LENGTH, replace=False) for _ in range(1000)])
        shift = rng.integers(0, N_ITEMS, (n_users, 1))
        lists = (some[rng.integers(0, len(some), n_users)] + shift) % N_ITEMS
        users = np.repeat(np.arange(n_users), N_JUDGED)
        found = lists[users, rng.integers(0, LENGTH, len(users))]
        items = np.where(
            rng.random(len(users)) < 1 / 3, found, rng.integers(0, N_ITEMS, len(users))
        )
        keys = np.unique(users * N_ITEMS + items)
        return cls(lists, keys // N_ITEMS, keys % N_ITEMS)

    @property
    def n_users(self) -> int:
        """Number of users, all of whom have a list and are in test."""
        return len(self.lists)

    def frames(self, *, strings: bool = False, shuffled: bool = False) -> tuple[Any, Any]:
        """Return lists (user_id, item_id, score, rank) and test (user_id, item_id)."""
        lists = pl.DataFrame(
            {
                "user_id": np.repeat(np.arange(self.n_users), LENGTH),
                "item_id": self.lists.ravel(),
                "score": np.tile(np.linspace(1, 0.01, LENGTH), self.n_users),
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


def ours(lists: object, test: object, threads: int) -> Call:
    return lambda: rm.evaluate(rm.Lists(lists), test, metrics=METRICS, threads=threads)


def in_pandas(frame: pl.DataFrame) -> Any:
    import pandas as pd

    return pd.DataFrame({column.name: column.to_numpy() for column in frame})


def rectools(lists: Any, test: Any) -> Call:
    from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics

    metrics = {
        "ndcg": NDCG(K),
        "recall": Recall(K),
        "precision": Precision(K),
        "map": MAP(K),
        "mrr": MRR(K),
        "hit": HitRate(K),
        "rprecision": Precision(K, r_precision=True),
    }
    frames = in_pandas(lists.select("user_id", "item_id", "rank")), in_pandas(test)
    return lambda: calc_metrics(metrics, *frames)


def pytrec_eval(lists: Any, test: Any) -> Call:
    import pytrec_eval as library

    measures = {f"{m}.{K}" for m in ("ndcg_cut", "recall", "P", "map_cut", "success")}
    measures |= {"recip_rank", "Rprec"}

    def call() -> object:
        run: dict[str, dict[str, float]] = {}
        columns = (lists[name].to_list() for name in ("user_id", "item_id", "score"))
        for user, item, score in zip(*columns, strict=True):
            run.setdefault(str(user), {})[str(item)] = score
        qrels: dict[str, dict[str, int]] = {}
        for user, item in test.iter_rows():
            qrels.setdefault(str(user), {})[str(item)] = 1
        return library.RelevanceEvaluator(qrels, measures).evaluate(run)

    return call


def ranx(lists: Any, test: Any) -> Call:
    from ranx import Qrels, Run, evaluate

    names = ("ndcg", "recall", "precision", "map", "mrr", "hit_rate", "r-precision")
    metrics = [name if name == "r-precision" else f"{name}@{K}" for name in names]
    texts = [pl.col("user_id", "item_id").cast(pl.String)]
    run_frame = in_pandas(lists.with_columns(texts))
    test_frame = in_pandas(test.with_columns(*texts, score=pl.lit(1)))
    columns = {"q_id_col": "user_id", "doc_id_col": "item_id"}

    def call() -> object:
        qrels = Qrels.from_df(test_frame, **columns, score_col="score")
        return evaluate(qrels, Run.from_df(run_frame, **columns, score_col="score"), metrics)

    return call


OTHERS: dict[str, Callable[[Any, Any], Call]] = {
    "rectools": rectools,
    "pytrec_eval": pytrec_eval,
    "ranx": ranx,
}


def contestants(data: Data, threads: int, others: list[str]) -> dict[str, Call]:
    """Return what is timed, by name."""
    integers, strings = data.frames(), data.frames(strings=True)
    calls = {
        "integer frame": ours(*integers, threads),
        "integer frame, shuffled": ours(*data.frames(shuffled=True), threads),
        "integer array": ours(data.lists, data.matrix(), threads),
        "string frame": ours(*strings, threads),
        "string frame, shuffled": ours(*data.frames(strings=True, shuffled=True), threads),
    }
    for name in others:
        calls[name] = OTHERS[name](*integers)
        calls[f"{name}, strings"] = OTHERS[name](*strings)
    return calls


TARGETS = {
    "integer frame": 10,
    "integer frame, shuffled": 10,
    "integer array": 25,
    "string frame": 6,
    "string frame, shuffled": 6,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=30_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--others", nargs="*", choices=OTHERS, default=["rectools", "pytrec_eval"])
    options = parser.parse_args()
    others = [name for name in options.others if importlib.util.find_spec(name)]
    warnings.simplefilter("ignore")
    calls = contestants(Data.generate(options.users), options.threads, others)
    times = side_by_side(calls, options.repeats)
    measures = []
    for name, target in TARGETS.items():
        suffix = ", strings" if name.startswith("string") else ""
        rivals = {other: times[f"{other}{suffix}"].median for other in others}
        fastest = min(rivals, key=rivals.__getitem__, default=None)
        own = times[name].median
        other = "" if fastest is None else f"{fastest}: {seconds(rivals[fastest])}"
        ratio = float("nan") if fastest is None else rivals[fastest] / own
        rows = f"{name}, {number(options.users * LENGTH / own / 1e6)} million rows a second"
        measures.append(Measure(rows, seconds(own), other, ratio, target))
    print(markdown(HEADERS, [measure.cells() for measure in measures]))
    results = {
        "machine": _machine.describe(),
        "options": vars(options),
        "times": {name: dataclasses.asdict(timed) for name, timed in times.items()},
    }
    path = HERE / "results" / "lists.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
