"""Unusually large problems: factors in a file, a million users, and bytes per row.

`file` times factors in a memory-mapped file and in memory. `million` evaluates 1,000,000 users x
100,000 items x 64 factors in a separate process, and watches its memory and progress bar. `rows`
measures the memory per row of each kind of input, in separate processes. The script writes
``results/size.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import os
import pty
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import polars as pl
from _cases import ALL_METRICS, CUTOFF_METRICS, Case, Data, make
from _table import Measure, markdown, number, seconds
from _timing import side_by_side

import recometer as rm

RESULTS = Path(__file__).parent / "results" / "size.json"
MIB = 2**20
FILE = Case("file", n_users=4_096, n_items=1_000_000)
MILLION = Case("a million users", n_users=1_000_000, n_items=100_000)
METRICS = {"all eleven metrics": ALL_METRICS, "cut-offs only": CUTOFF_METRICS}
LEAST_SPEED = 0.9  # the smallest acceptable speed with factors in a file, relative to memory
N_ROWS, ROWS_PER_USER, N_ROW_ITEMS = 10_000_000, 10, 100_000
BYTES_PER_JUDGED = 28  # the score and the counts, which are written during the ranking
SHARE = 0.1  # share of the work after which the bar's estimate is checked
SHOWN = re.compile(r"Ranking\D*(\d+)% +(\d+):(\d\d):(\d\d)")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # terminal codes for colours and cursor movements
SAMPLE = 0.05  # seconds between two samples of a process's memory


def in_file(threads: int, repeats: int, case: Case) -> dict[str, Any]:
    """Time factors in a file and in memory, for all metrics and for metrics with cut-offs."""
    mapped = make(dataclasses.replace(case, mapped=True))
    in_memory = dataclasses.replace(mapped, items=mapped.items.copy())
    results: dict[str, Any] = {"size": case.size, "seconds": {}, "processor": {}}
    for name, metrics in METRICS.items():
        calls = {
            "in memory": _evaluation(in_memory, threads, metrics),
            "in a file": _evaluation(mapped, threads, metrics),
        }
        times = side_by_side(calls, repeats)
        results["seconds"][name] = {place: timed.seconds for place, timed in times.items()}
        results["processor"][name] = _processor_times(calls, repeats)
    return results


def _evaluation(data: Data, threads: int, metrics: str) -> Callable[[], rm.Evaluation]:
    def call() -> rm.Evaluation:
        source = rm.Factors(data.users, data.items)
        return rm.evaluate(source, data.test, train=data.train, metrics=metrics, threads=threads)

    return call


def _processor_times(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Return each call's CPU time. Calls run in turn, so other load affects all calls equally."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            gc.collect()
            begin = time.process_time()
            call()
            times[name].append(time.process_time() - begin)
    return times


def million(threads: int, case: Case) -> dict[str, Any]:
    """Evaluate in a separate process, which draws its progress bar on a terminal that we read."""
    terminal, child_terminal = pty.openpty()
    command = [sys.executable, __file__, "child", json.dumps(dataclasses.asdict(case))]
    child = subprocess.Popen(
        [*command, "--threads", str(threads)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=child_terminal,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(child_terminal)
    watch = _Watch(child.pid, terminal)
    watch.start()
    output = child.communicate()[0]
    watch.join()
    if child.returncode:
        raise SystemExit(f"{case.name} failed:\n{watch.text[-2000:]}")
    child_results = json.loads(output)
    return {"size": case.size, **child_results, **watch.found()}


def per_row(threads: int, n_rows: int) -> dict[str, Any]:
    """Return the bytes of memory per row of each kind of input."""
    results: dict[str, Any] = {"rows": n_rows, "users": n_rows // ROWS_PER_USER, "bytes": {}}
    with tempfile.TemporaryDirectory() as folder:
        _write_rows(Path(folder), n_rows)
        for kind in KINDS:
            command = [sys.executable, __file__, "kind", json.dumps([kind, folder])]
            output = subprocess.run(
                [*command, "--threads", str(threads)], check=True, capture_output=True, text=True
            ).stdout
            results["bytes"][kind] = {
                moment: n / n_rows for moment, n in json.loads(output).items()
            }
    return results


def _write_rows(folder: Path, n_rows: int) -> None:
    """Write the same rows with numeric and text ids."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_rows // ROWS_PER_USER), ROWS_PER_USER)
    # A user's items are a few steps apart, so they are distinct.
    first = rng.integers(0, N_ROW_ITEMS, len(user) // ROWS_PER_USER)
    item = (first[user] + 7919 * np.tile(np.arange(ROWS_PER_USER), len(first))) % N_ROW_ITEMS
    score, judged = rng.random(n_rows), rng.random(n_rows) < 1 / ROWS_PER_USER
    table = pl.DataFrame({"user_id": user, "item_id": item, "score": score})
    table = table.with_columns(rating=pl.Series(judged).cast(pl.Float64))
    texts = table.with_columns(pl.format("user-{}", "user_id").alias("user_id"))
    texts = texts.with_columns(pl.format("item-{}", "item_id").alias("item_id"))
    for name, frame in (("numbers", table), ("texts", texts)):
        frame.write_parquet(folder / f"{name}.parquet")
        frame.filter(pl.Series(judged)).select("user_id", "item_id").write_parquet(
            folder / f"test_{name}.parquet"
        )


def _pairs(path: Path) -> rm.Pairs:
    frame = pl.read_parquet(path)
    return rm.Pairs(frame, score="score", rating="rating", threshold=0.5)


# For each kind of input: whether ids are numbers or text, and the function that reads it.
KINDS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "lists": ("numbers", lambda path: rm.Lists(path, score="score")),
    "lists, ids of text": ("texts", lambda path: rm.Lists(path, score="score")),
    "interactions": ("numbers", lambda path: rm.Interactions.of(path, value=False)),
    "interactions with values": ("numbers", lambda path: rm.Interactions.of(path, value="rating")),
    "interactions, ids of text": ("texts", lambda path: rm.Interactions.of(path, value=False)),
    "pairs": ("numbers", _pairs),
}


def kind(name: str, folder: Path, threads: int) -> None:
    """Run as the child process that reads and evaluates a kind of input."""
    ids, read = KINDS[name]
    test = rm.Interactions.of(folder / f"test_{ids}.parquet")
    before = _anonymous()
    with _Most() as reading:
        data = read(folder / f"{ids}.parquet")
    gc.collect()
    sizes = {"while reading": reading.most - before, "held": _anonymous() - before}
    with _Most() as evaluating:
        if name.startswith("lists"):
            rm.evaluate(data, test, metrics="ndcg@10 recall@10", threads=threads)
        elif name == "pairs":
            rm.evaluate(data, metrics="ndcg@10 roc_auc", threads=threads)
        else:
            names = {"user_ids": data.user_ids, "item_ids": data.item_ids}
            factors = rm.Factors(
                np.ones((data.n_users, 1), np.float32),
                np.arange(data.n_items, dtype=np.float32)[:, np.newaxis],
                **names,
            )
            rm.evaluate(factors, data, metrics="ndcg@10 recall@10", threads=threads)
    print(json.dumps({**sizes, "while evaluating": evaluating.most - before}))


def _anonymous() -> int:
    """Return the bytes of this process's memory that are not backed by a file."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(entry for entry in status.splitlines() if entry.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


class _Most(threading.Thread):
    """Samples the peak memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._ended = _anonymous(), threading.Event()

    def run(self) -> None:
        """Sample until the block ends."""
        while not self._ended.wait(0.005):
            self.most = max(self.most, _anonymous())

    def __enter__(self) -> _Most:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


class _Watch(threading.Thread):
    """Reads a process's terminal output, and watches its memory."""

    def __init__(self, process: int, terminal: int) -> None:
        super().__init__()
        self.text = ""
        self._process, self._terminal = process, terminal
        self._shown: list[tuple[float, int, int]] = []  # time, percentage, seconds left
        self._memory: list[tuple[float, int]] = []

    def run(self) -> None:
        """Watch until the terminal is closed."""
        sampler = threading.Thread(target=self._sample, daemon=True)
        sampler.start()
        with contextlib.suppress(OSError):  # raised when the terminal has been closed
            while piece := os.read(self._terminal, 4096):
                self.text += CODES.sub("", piece.decode(errors="replace"))
                *_, match = (None, *SHOWN.finditer(self.text[-500:]))
                if match is not None:
                    percent, hours, minutes, seconds = map(int, match.groups())
                    remaining = 3600 * hours + 60 * minutes + seconds
                    self._shown.append((time.monotonic(), percent, remaining))

    def _sample(self) -> None:
        with contextlib.suppress(OSError, StopIteration):  # the process has ended
            while True:
                status = Path(f"/proc/{self._process}/status").read_text()
                line = next(entry for entry in status.splitlines() if entry.startswith("RssAnon"))
                self._memory.append((time.monotonic(), int(line.split()[1]) * 1024))
                time.sleep(SAMPLE)

    def found(self) -> dict[str, Any]:
        """Return the bar's estimate after a tenth of the work, the actual time, and the memory."""
        begin, end = self._shown[0][0], next(at for at, percent, _ in self._shown if percent == 100)
        at, _, remaining = next(shown for shown in self._shown if shown[1] >= 100 * SHARE)
        ranking = [size for when, size in self._memory if at <= when <= end]
        return {
            "ranking": end - begin,
            "estimate": at - begin + remaining,
            "least": min(ranking),
            "most": max(ranking),
        }


def child(case: Case, threads: int) -> None:
    """Run as the child process that evaluates."""
    data = make(case)
    begin, busy = time.perf_counter(), time.process_time()
    result = rm.evaluate(
        rm.Factors(data.users, data.items),
        data.test,
        train=data.train,
        metrics=ALL_METRICS,
        threads=threads,
        progress=True,
    )
    results = {
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - busy,
        "rate": data.operations / (time.perf_counter() - begin),
        "ndcg": result.mean()["ndcg@10"],
        "counts": BYTES_PER_JUDGED * data.test.nnz,
    }
    print(json.dumps(results))


def lines(results: dict[str, Any]) -> list[Measure]:
    """Return the measurements, each with its target."""
    measures = []
    for name, times in results.get("file", {}).get("seconds", {}).items():
        ours, in_memory = (
            statistics.median(times[million]) for million in ("in a file", "in memory")
        )
        speed = in_memory / ours
        measures.append(
            Measure(
                f"speed in a file, {name}", seconds(ours), seconds(in_memory), speed, LEAST_SPEED
            )
        )
    for name, sizes in results.get("rows", {}).get("bytes", {}).items():
        for moment, size in sizes.items():
            measures.append(Measure(f"bytes per row {moment}: {name}", number(size), "", size))
    if "million" in results:
        million = results["million"]
        error = abs(million["estimate"] / million["ranking"] - 1)
        growth = million["most"] - million["least"] - million["counts"]
        measures += [
            Measure(
                "a million users, seconds", seconds(million["seconds"]), "", million["seconds"]
            ),
            Measure("GFLOP/s", number(million["rate"] / 1e9), "", million["rate"] / 1e9),
            Measure(
                "error of the bar's estimate after a tenth",
                seconds(million["estimate"]),
                seconds(million["ranking"]),
                error,
                0.2,
                at_most=True,
            ),
            Measure(
                "growth of memory while ranking, without the counts",
                f"{number(growth / MIB)} MiB",
                f"{number(million['least'] / MIB)} MiB",
                growth / million["least"],
                0.05,
                at_most=True,
            ),
        ]
    return measures


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["file", "million", "rows", "all", "child", "kind"])
    parser.add_argument("case", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="use a tenth of the users and of the items"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="output file")
    options = parser.parse_args()
    if options.part == "child":
        child(Case(**json.loads(options.case)), options.threads)
        return
    if options.part == "kind":
        name, folder = json.loads(options.case)
        kind(name, Path(folder), options.threads)
        return
    results = json.loads(options.output.read_text()) if options.output.exists() else {}
    shrunk = 10 if options.quick else 1
    if options.part in ("file", "all"):
        case = dataclasses.replace(FILE, n_users=FILE.n_users // shrunk)
        results["file"] = in_file(options.threads, options.repeats, case)
    if options.part in ("rows", "all"):
        results["rows"] = per_row(options.threads, N_ROWS // shrunk)
    if options.part in ("million", "all"):
        case = dataclasses.replace(
            MILLION, n_users=MILLION.n_users // shrunk, n_items=MILLION.n_items // shrunk
        )
        results["million"] = million(options.threads, case)
    results |= {"machine": _machine.describe(), "threads": options.threads}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    headers = ["measure", "ours", "other", "value", "to reach", "reached"]
    print(markdown(headers, [measure.cells() for measure in lines(results)]))


if __name__ == "__main__":
    main()
