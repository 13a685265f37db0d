"""The time of small and repeated evaluations, compared with other libraries in the same run.

The script prints a table and writes ``results/calls.json``; README.md explains the measurements.
Libraries that are not installed are left out: pip install scikit-learn ranx torchmetrics
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.util
import json
import random
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _machine
import numpy as np
from _table import HEADERS, Measure, markdown, seconds
from threadpoolctl import threadpool_limits

import recometer as rm
from recometer.sources.base import Request

HERE = Path(__file__).parent
Call = Callable[[], object]
FIVE = "ndcg@10 recall@10 precision@10 ap@10 rr"
TEN = f"{FIVE} hit@10 rprecision roc_auc tprecision@10 f@10"


@dataclasses.dataclass
class Run:
    """The options of a run, and its measurements so far."""

    threads: int
    repeats: int
    measures: list[Measure] = dataclasses.field(default_factory=list)
    times: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add(self, *measure: Any, **more: Any) -> None:
        """Add a row to the table, and print it."""
        self.measures.append(Measure(*measure, **more))
        print("  " + " | ".join(self.measures[-1].cells()), flush=True)

    def time(self, name: str, contestants: Mapping[str, Call], calls: int) -> dict[str, float]:
        """Return each call's median processor time; the order is drawn again for each round."""
        spent: dict[str, list[float]] = {contestant: [] for contestant in contestants}
        for call in contestants.values():
            call()
        for _ in range(self.repeats):
            for contestant in random.sample([*contestants], len(contestants)):
                begin = time.process_time()
                for _ in range(calls):
                    contestants[contestant]()
                spent[contestant].append((time.process_time() - begin) / calls)
        self.times[name] = spent
        return {contestant: statistics.median(times) for contestant, times in spent.items()}


def _data(n_users: int, n_items: int, share: float, seed: int = 0) -> tuple[Any, Any]:
    """Return scores, and which items are relevant: at least one for each user."""
    rng = np.random.default_rng(seed)
    relevant = (rng.random((n_users, n_items)) < share).astype(float)
    relevant[np.arange(n_users), rng.integers(0, n_items, n_users)] = 1
    return rng.random((n_users, n_items)), relevant


def one(run: Run) -> None:
    """Time five metrics of one query with 100 candidates."""
    scores, relevant = _data(1, 100, 0.1)
    options: dict[str, Any] = {"metrics": FIVE, "threads": run.threads}
    evaluator = rm.Evaluator(relevant, **options)
    contestants: dict[str, Call] = {
        "Evaluator": lambda: evaluator(rm.Scores(scores)),
        "Evaluator.mean": lambda: evaluator.mean(rm.Scores(scores)),
        "evaluate": lambda: rm.evaluate(rm.Scores(scores), relevant, **options),
    }
    if _there("sklearn"):
        from sklearn.metrics import ndcg_score

        contestants["scikit-learn"] = lambda: ndcg_score(relevant, scores, k=10)
    times = run.time("one query", contestants, 20)
    title = "one query, 100 candidates, 5 metrics"
    if "scikit-learn" in times:
        theirs = times["scikit-learn"]
        for contestant, target in (("Evaluator", 1.5), ("Evaluator.mean", None)):
            ratio = times[contestant] / theirs
            formatted = seconds(times[contestant]), seconds(theirs)
            run.add(
                f"{title}: {contestant} / ndcg_score of scikit-learn",
                *formatted,
                ratio,
                target,
                at_most=True,
            )
    median = times["evaluate"]
    run.add(f"{title}: rm.evaluate (ms)", seconds(median), "", 1000 * median, 1.5, at_most=True)


def hundred(run: Run) -> None:
    """Time ten metrics of 100 users with 1,000 items each."""
    scores, relevant = _data(100, 1000, 0.01)
    evaluator = rm.Evaluator(relevant, metrics=TEN, threads=run.threads)
    contestants: dict[str, Call] = {
        "Evaluator": lambda: evaluator(rm.Scores(scores)),
        "Evaluator.mean": lambda: evaluator.mean(rm.Scores(scores)),
    }
    title = "100 users x 1,000 items, 10 metrics"
    # Evaluate many epochs in a row, since other calls would evict the data from the caches.
    times = run.time("100 users", contestants, 20)
    median, mean = times["Evaluator"], times["Evaluator.mean"]
    run.add(f"{title}: Evaluator (ms)", seconds(median), "", 1000 * median, 2, at_most=True)
    run.add(f"{title}: Evaluator.mean (ms)", seconds(mean), "", 1000 * mean)
    contestants |= {**torchmetrics(scores, relevant, run.threads), **ranx(scores, relevant)}
    times = run.time("100 users, with other libraries", contestants, 3)
    for contestant in times.keys() - {"Evaluator", "Evaluator.mean"}:
        formatted = seconds(times["Evaluator"]), seconds(times[contestant])
        run.add(
            f"{title}: {contestant} / Evaluator",
            *formatted,
            times[contestant] / times["Evaluator"],
            5,
        )


def torchmetrics(scores: Any, relevant: Any, threads: int) -> dict[str, Call]:
    """Return a call to the nine retrieval metrics of torchmetrics that are most similar to ours."""
    if not _there("torchmetrics"):
        return {}
    import torch
    from torchmetrics import MetricCollection, retrieval

    torch.set_num_threads(threads)
    at_ten = ("NormalizedDCG", "Recall", "Precision", "MAP", "HitRate", "FallOut")
    collection = MetricCollection(
        [getattr(retrieval, f"Retrieval{name}")(top_k=10) for name in at_ten]
        + [getattr(retrieval, f"Retrieval{name}")() for name in ("MRR", "RPrecision", "AUROC")]
    )
    preds, target = torch.tensor(scores).ravel(), torch.tensor(relevant).long().ravel()
    indexes = torch.arange(len(scores)).repeat_interleave(scores.shape[1])

    def call() -> object:
        collection.reset()
        collection.update(preds, target, indexes=indexes)
        return collection.compute()

    return {"torchmetrics, 9 metrics": call}


def ranx(scores: Any, relevant: Any) -> dict[str, Call]:
    """Return calls to ranx for ten metrics: with an existing run, and with arrays."""
    if not _there("ranx"):
        return {}
    from ranx import Qrels, evaluate
    from ranx import Run as Lists

    names = [str(item) for item in range(scores.shape[1])]
    ranked = {
        str(user): dict(zip(names, row, strict=True)) for user, row in enumerate(scores.tolist())
    }
    ready_qrels = Qrels(
        {
            str(user): {str(item): 1 for item in np.flatnonzero(row)}
            for user, row in enumerate(relevant)
        }
    )
    at_ten = ("ndcg", "recall", "precision", "map", "hit_rate", "f1", "hits")
    metrics = [*(f"{name}@10" for name in at_ten), "mrr", "r-precision", "bpref"]
    ready_run = Lists(ranked)
    return {
        "ranx, existing run": lambda: evaluate(ready_qrels, ready_run, metrics),
        "ranx": lambda: evaluate(ready_qrels, Lists(ranked), metrics),
    }


def models(run: Run) -> None:
    """Time 200 models on the same data, with an Evaluator and with separate calls."""
    rng = np.random.default_rng(0)
    n_users, n_items, n_models = 1000, 2000, 200
    _, relevant = _data(n_users, n_items, 0.005)
    train = (rng.random((n_users, n_items)) < 0.02) * (relevant == 0)
    test, train = rm.Interactions.of(relevant), rm.Interactions.of(train)
    users = rng.normal(size=(n_models, n_users, 16)).astype(np.float32)
    items = rng.normal(size=(n_models, n_items, 16)).astype(np.float32)

    def for_each(use: Callable[[rm.Factors], object]) -> Call:
        def call() -> None:
            for of_users, of_items in zip(users, items, strict=True):
                use(rm.Factors(of_users, of_items))

        return call

    def evaluator() -> None:
        prepared = rm.Evaluator(test, train=train, metrics=FIVE, threads=run.threads)
        for_each(prepared)()

    contestants = {
        "Evaluator": evaluator,
        "evaluate": for_each(
            lambda source: rm.evaluate(source, test, train=train, metrics=FIVE, threads=run.threads)
        ),
        "ranking": for_each(lambda source: source.rank(Request(test, train, threads=run.threads))),
    }
    times = run.time("200 models", contestants, 1)
    above_ranking, evaluate_above_ranking = (
        times[contestant] - times["ranking"] for contestant in ("Evaluator", "evaluate")
    )
    title = "200 models: Evaluator / evaluate, both without the ranking"
    run.add(
        title,
        seconds(above_ranking),
        seconds(evaluate_above_ranking),
        above_ranking / evaluate_above_ranking,
        0.7,
        at_most=True,
    )
    formatted = seconds(times["Evaluator"]), seconds(times["evaluate"])
    run.add("200 models: total", *formatted, times["Evaluator"] / times["evaluate"])


def stream(run: Run) -> None:
    """Compare 100 batches of scores or of labelled candidates with a single call."""
    # With a small catalogue, the overhead of a call dominates.
    for n_items in (8000, 1000):
        scores, relevant = _data(10_000, n_items, 5 / n_items)
        evaluator = rm.Evaluator(relevant, metrics=FIVE, threads=run.threads)
        title = f"100 batches of 100 users x {n_items:,} items / one call"
        whole = functools.partial(_whole, evaluator, scores)
        _compare(run, title, functools.partial(_streamed, evaluator, scores), whole)
    rng = np.random.default_rng(0)
    scores = rng.random((20_000, 100))
    truth = rng.integers(0, 2, scores.shape)
    groups = np.repeat(np.arange(len(scores)), scores.shape[1])
    candidates = rm.Evaluator(metrics=FIVE, threads=run.threads)

    def in_one() -> object:
        return candidates(rm.Pairs.of(truth.ravel(), scores.ravel(), groups))

    title = "100 batches of 200 users x 100 candidates / one call"
    _compare(run, title, functools.partial(_streamed, candidates, scores, truth), in_one)


def lists(run: Run) -> None:
    """Compare 100 batches of lists with a single call."""
    scores, relevant = _data(10_000, 1000, 0.005)
    best = np.argsort(scores, axis=1)[:, :-21:-1].copy()
    evaluator = rm.Evaluator(relevant, metrics=FIVE, catalogue=1000, threads=run.threads)
    # Cut the batches beforehand, since this is not part of the stream.
    batches = [(best[rows], rows) for rows in np.array_split(np.arange(len(best)), 100)]

    def streamed() -> object:
        stream = evaluator.stream()
        for items, users in batches:
            stream.update(items=items, users=users)
        return stream.compute()

    title = "100 batches of 100 lists of 20 items / one call"
    _compare(run, title, streamed, lambda: evaluator(rm.Lists(best)))


def _compare(
    run: Run, title: str, streamed: Callable[[], object], single_call: Callable[[], object]
) -> None:
    times = run.time("stream", {"stream": streamed, "whole": single_call}, 1)
    formatted = seconds(times["stream"]), seconds(times["whole"])
    run.add(title, *formatted, times["stream"] / times["whole"], 1.1, at_most=True)


def _whole(evaluator: rm.Evaluator, scores: Any) -> object:
    return evaluator(rm.Scores(scores))


def _streamed(evaluator: rm.Evaluator, scores: Any, truth: Any = None) -> object:
    streamed = evaluator.stream()
    for rows in np.array_split(np.arange(len(scores)), 100):
        batch = slice(rows[0], rows[-1] + 1)
        streamed.update(scores[batch], None if truth is None else truth[batch], users=rows)
    return streamed.compute()


def _there(name: str) -> bool:
    installed = importlib.util.find_spec(name) is not None
    if not installed:
        print(f"  {name} is not installed.")
    return installed


CASES: dict[str, Callable[[Run], None]] = {
    "one": one,
    "hundred": hundred,
    "models": models,
    "stream": stream,
    "lists": lists,
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=CASES, help="run only this case; repeatable"
    )
    parser.add_argument("--repeats", type=int, default=9, help="number of repeats per median (9)")
    parser.add_argument(
        "--threads", type=int, action="append", help="threads of all contestants (2, then 1)"
    )
    parser.add_argument("--output", type=Path, default=HERE / "results" / "calls.json")
    parser.add_argument("--update", action="store_true", help="keep the other cases in --output")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"cases": {}}
    if options.update and options.output.exists():
        record = json.loads(options.output.read_text())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for threads in options.threads or (2, 1):
        for name in options.case or CASES:
            print(f"{name}, threads: {threads}", flush=True)
            run = Run(threads, options.repeats)
            with threadpool_limits(threads):
                CASES[name](run)
            measures = [dataclasses.asdict(measure) for measure in run.measures]
            case = {"measures": measures, "times": run.times}
            record["cases"].setdefault(name, {})[str(threads)] = case
            record["machine"] = _machine.describe()
            options.output.write_text(json.dumps(record, indent=1) + "\n")
    lines = [
        [threads, *Measure(**measure).cells()]
        for name in CASES
        for threads, case in record["cases"].get(name, {}).items()
        for measure in case["measures"]
    ]
    print(f"\n{markdown(['threads', *HEADERS], lines)}\n\nWritten to {options.output}")


if __name__ == "__main__":
    main()
