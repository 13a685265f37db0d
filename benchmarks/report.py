"""The time and size of a report of many models, metrics and users.

Run: python benchmarks/report.py --users 1000000 --models 10
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import recometer as rm

METRICS = "ndcg@1..10 recall@1..10 hit@1..10"  # 30 metrics
N_ITEMS, DEPTH = 2000, 10


def evaluations(n_models: int, n_users: int) -> dict[str, rm.Evaluation]:
    """Return models of increasing quality, for users with three relevant items each."""
    rng = np.random.default_rng(0)
    relevant = rng.integers(0, N_ITEMS // 3, (n_users, 3)) + np.arange(3) * (N_ITEMS // 3)
    indptr = np.arange(0, 3 * n_users + 1, 3)
    test = rm.Interactions(indptr=indptr, items=relevant.ravel().astype(np.int32), n_items=N_ITEMS)
    results = {}
    for model in range(n_models):
        lists = np.sort(rng.integers(0, N_ITEMS // DEPTH, (n_users, DEPTH)), axis=1)
        lists += np.arange(DEPTH) * (N_ITEMS // DEPTH)
        lists = rng.permuted(lists, axis=1)
        hit = rng.random(n_users) < 0.2 + 0.05 * model
        lists[hit, model % DEPTH] = relevant[hit, 0]
        results[f"model {model}"] = rm.evaluate(
            rm.Lists(lists), test, metrics=METRICS, catalogue=N_ITEMS, progress=False
        )
    return results


def main() -> None:
    """Print the time of the report in seconds, and its size in megabytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = evaluations(options.models, options.users)
    begin = time.perf_counter()
    versus = rm.compare(results, baseline="model 0", primary="ndcg@10")
    compared = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        begin, cpu = time.perf_counter(), time.process_time()
        versus.report(path)
        cpu = time.process_time() - cpu
        seconds, size = time.perf_counter() - begin, path.stat().st_size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{options.models} models, {len(versus.metrics)} metrics, {options.users:,} users")
    print(f"compare {compared:.1f} s; peak memory {memory:.1f} GB")
    print(f"report {seconds:.1f} s ({cpu:.1f} s of processors), {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
