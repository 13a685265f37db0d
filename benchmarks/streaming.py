"""How fast a stream of batches is, beside one call on the whole, in one run.

Scores: a float32 matrix of 10,000 users and 20,000 items, 50 training and 10 relevant items a user,
and 100 candidates of 20,000 users each with the truth beside them; in 100 batches and in one.
Prints a table and writes ``results/streaming.json``. See README.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import _machine
import numpy as np
from _timing import side_by_side

import recometer as rm

HERE = Path(__file__).parent
METRICS = "ndcg@10 recall@20 ap@10"
N_BATCHES, N_CANDIDATES = 100, 100
Contestants = dict[str, Callable[[], object]]


def of_scores(n_users: int, n_items: int, threads: int) -> Contestants:
    """Return the whole matrix, and batches of it as a model would give them out."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((n_users, n_items), dtype=np.float32)
    # Distinct within a user: one of each of equal parts of the items.
    size = n_items // 60
    items = np.arange(60) * size + rng.integers(0, size, (n_users, 60))
    items = rng.permuted(items, axis=1)
    train, test = (
        rm.Interactions.of(
            np.stack([np.repeat(np.arange(n_users), part.shape[1]), part.ravel()]),
            n_users=n_users,
            n_items=n_items,
        )
        for part in (items[:, :50], items[:, 50:])
    )
    evaluator = rm.Evaluator(test, train=train, metrics=METRICS, threads=threads)
    rows = np.array_split(rng.permutation(n_users), N_BATCHES)
    batches = [scores[some] for some in rows]

    def streamed() -> object:
        stream = evaluator.stream()
        for some, batch in zip(rows, batches, strict=True):
            stream.update(batch, users=some)
        return stream.compute()

    return {"one call": lambda: evaluator(rm.Scores(scores)), "a stream": streamed}


def of_candidates(n_users: int, threads: int) -> Contestants:
    """Return all candidates, and batches of them."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((n_users, N_CANDIDATES))
    relevance = (rng.random(scores.shape) < 0.05).astype(np.float64)
    groups = np.repeat(np.arange(n_users), N_CANDIDATES)
    evaluator = rm.Evaluator(metrics=METRICS, threads=threads)
    rows = np.array_split(rng.permutation(n_users), N_BATCHES)

    def whole() -> object:
        return evaluator(rm.Pairs.of(relevance.ravel(), scores.ravel(), groups))

    def streamed() -> object:
        stream = evaluator.stream()
        for some in rows:
            stream.update(scores[some], relevance[some], users=some)
        return stream.compute()

    return {"one call": whole, "a stream": streamed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for threads in (1, 2):
        cases = {
            "scores": of_scores(options.users, options.items, threads),
            "candidates": of_candidates(2 * options.users, threads),
        }
        for name, contestants in cases.items():
            times = side_by_side(contestants, options.repeats)
            one, other = times["one call"].median, times["a stream"].median
            label = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
            found[label] = {"one call": one, "a stream": other, "ratio": other / one}
            print(f"{label}: {one:.3f} s, {other:.3f} s, ratio {other / one:.3f}", flush=True)
    report = {"machine": _machine.describe(), "seconds": found}
    (HERE / "results" / "streaming.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
