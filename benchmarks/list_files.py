"""The speed and memory of evaluating lists in a Parquet file with 100 million rows.

The script prints a table and writes ``results/list_files.json``; README.md explains it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from _lists import LENGTH, METRICS, N_ITEMS, N_JUDGED, K
from _table import HEADERS, Measure, markdown, number, seconds

import recometer as rm

HERE = Path(__file__).parent
ROWS_PER_GROUP = 2**20
GIB = 2.0**30
SCHEMA = pa.schema({"user_id": pa.int64(), "item_id": pa.int64(), "rank": pa.int64()})
MILLION_ROWS_A_SECOND = {"grouped": 20, "ungrouped": 10}
LARGEST = 2.5e9  # the largest acceptable peak memory, in bytes


def write(folder: Path, n_users: int) -> None:
    """Write the lists of all users, grouped and ungrouped, and a test set, in chunks of rows."""
    n = n_users * LENGTH
    # A step that is coprime to the number of rows visits every row once. Users also get random ids.
    step = next(s for s in range(int(n * 0.618), n) if np.gcd(s, n) == 1)
    names = np.random.default_rng(0).permutation(n_users)
    for order in MILLION_ROWS_A_SECOND:
        with pq.ParquetWriter(folder / f"{order}.parquet", SCHEMA) as writer:
            for start in range(0, n, ROWS_PER_GROUP):
                row = np.arange(start, min(start + ROWS_PER_GROUP, n))
                if order == "ungrouped":
                    row = row * step % n
                user, rank = names[row // LENGTH], row % LENGTH
                items = (user * 7919 + rank * 409) % N_ITEMS
                writer.write_table(pa.table([user, items, rank + 1], schema=SCHEMA))
    user = np.repeat(np.arange(n_users), N_JUDGED)
    judged = np.random.default_rng(1).integers(0, N_ITEMS, len(user))
    test = pl.DataFrame({"user_id": user, "item_id": judged}).unique()
    test.write_parquet(folder / "test.parquet")


def measure_file(files: list[str], threads: int) -> None:
    """Evaluate a file; print the time and the peak memory of this process."""
    warnings.simplefilter("ignore")
    lists, test = files
    begin = time.perf_counter()
    metrics = [name if name == "rprecision" else f"{name}@{K}" for name in METRICS]
    rm.evaluate(rm.Lists(lists), test, metrics=metrics, threads=threads)
    duration = time.perf_counter() - begin
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"seconds": duration, "bytes": int(peak.split()[1]) * 1024}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure_file(options.measure, options.threads)
        return
    runs_by_order: dict[str, list[dict[str, Any]]] = {order: [] for order in MILLION_ROWS_A_SECOND}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.users)
        for _ in range(options.repeats):
            for order, runs in runs_by_order.items():
                files = [str(Path(folder) / f"{name}.parquet") for name in (order, "test")]
                command = [sys.executable, __file__, "--threads", str(options.threads)]
                output = subprocess.run(
                    [*command, "--measure", *files], check=True, capture_output=True, text=True
                ).stdout
                runs.append(json.loads(output))
    n = options.users * LENGTH
    measures = []
    for order, runs in runs_by_order.items():
        duration = statistics.median(run["seconds"] for run in runs)
        most = max(run["bytes"] for run in runs)
        name, rate = f"{n / 1e6:g} million rows, {order}", n / duration / 1e6
        target = MILLION_ROWS_A_SECOND[order]
        measures += [
            Measure(f"{name}: million rows a second", seconds(duration), "", rate, target),
            Measure(
                f"{name}: memory of the process (GB)",
                f"{number(most / GIB)} GiB",
                "",
                most / 1e9,
                LARGEST / 1e9,
                at_most=True,
            ),
        ]
    print(markdown(HEADERS, [measure.cells() for measure in measures]))
    results = {
        "machine": _machine.describe(),
        "options": vars(options),
        "measures": [dataclasses.asdict(measure) for measure in measures],
        "runs": runs_by_order,
    }
    path = HERE / "results" / "list_files.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
