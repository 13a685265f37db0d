"""The speed of computing metrics from ranks, compared with other libraries in the same run.

The script prints a table and writes ``results/metrics.json``; README.md explains the measurements.
Libraries that are not installed are left out: pip install ranx rectools
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import gc
import importlib.util
import json
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import numpy.typing as npt
from _table import HEADERS, Measure, markdown, seconds
from _timing import WAIT, Times, side_by_side

from recometer.measuring.compute import compute
from recometer.measuring.listed import ListedUsers
from recometer.measuring.ranked import RankedUsers
from recometer.metrics import ListData, Metric, parse, reading
from recometer.protocol import Protocol
from recometer.ranks import Ranks, TopLists, UserFlag

HERE = Path(__file__).parent
Call = Callable[[], object]
Int64 = npt.NDArray[np.int64]

CUTOFFS = (1, 2, 3, 5, 10, 20, 30, 50, 70, 100)
N_ITEMS, N_RELEVANT, GROUP = 50_000, 10, 4
LENGTH = max(CUTOFFS)  # the length of the lists that other libraries get


@dataclasses.dataclass(frozen=True)
class Data:
    """The places of each user's relevant items, counted from 0: [n_users, N_RELEVANT].

    A tenth of the users have a relevant item at the top, and 90 % have one among the first hundred.
    """

    places: Int64
    all_tied: bool

    @classmethod
    def generate(cls, n_users: int, *, all_tied: bool = False) -> Data:
        """Return random places, mostly near the top."""
        rng = np.random.default_rng(0)
        drawn = rng.random((n_users, N_RELEVANT)) ** 4 * (N_ITEMS - N_RELEVANT)
        # Make the places distinct and ascending.
        places = np.sort(drawn.astype(np.int64), axis=1) + np.arange(N_RELEVANT)
        return cls(places, all_tied)

    @property
    def n_users(self) -> int:
        """The number of users, who all have the same number of relevant items."""
        return len(self.places)

    def ranks(self) -> Ranks:
        """Return the ranks: in groups of four tied items, or with 1 % of the items tied in pairs.

        In a pair, the other item is irrelevant and comes second.
        """
        above, tied = self.places, np.full(self.places.shape, GROUP - 1)
        if self.all_tied:
            above = self.places // GROUP * GROUP
        else:
            free = np.diff(self.places, axis=1, append=N_ITEMS) > 1
            tied = (free & (np.random.default_rng(1).random(free.shape) < 0.01)).astype(np.int64)
        n = self.n_users
        everything = np.full(n, N_ITEMS)
        return Ranks(
            indptr=np.arange(n + 1) * N_RELEVANT,
            item=self.items().ravel(),
            above=above.ravel(),
            tied=tied.ravel(),
            before=(self.places - above).ravel(),
            gain=np.ones(n * N_RELEVANT),
            relevant=np.ones(n * N_RELEVANT, np.bool_),
            n_relevant=np.full(n, N_RELEVANT),
            n_candidates=everything,
            n_excluded=np.zeros(n, np.int64),
            depth=everything,
            flags=np.full(n, UserFlag.KNOWN | UserFlag.TRAINED, np.uint32),
            popularity=(1 + self.items().ravel()) / N_ITEMS,
        )

    def items(self, places: Int64 | None = None) -> Int64:
        """Return the items at the given places: [n_users, n_places]."""
        shift = np.arange(self.n_users)[:, np.newaxis] * 7
        items: Int64 = ((self.places if places is None else places) + shift) % N_ITEMS
        return items

    def lists(self) -> Int64:
        """Return each user's top items: [n_users, LENGTH]."""
        return self.items(np.arange(LENGTH)[np.newaxis])


def accuracy_metrics() -> list[Metric]:
    """Return every ranking metric: at ten cut-offs, or once if it has none."""
    metrics = []
    for name, definition in reading("ranks").items():
        from_test = [p for p in definition.parameters.values() if p.from_test]
        setting = f"({from_test[0].name}=1)" if from_test else ""
        cutoffs = "" if definition.cutoff == "none" else "@" + ",".join(map(str, CUTOFFS))
        metrics += parse(f"{name}{cutoffs}{setting}")
    return metrics


def at_cutoffs(*names: str) -> list[Metric]:
    return parse([f"{name}@{cutoff}" for name in names for cutoff in CUTOFFS])


def ours(data: Data, metrics: list[Metric], threads: int) -> Call:
    ranks = data.ranks()
    return lambda: compute(RankedUsers(ranks), metrics, Protocol(), threads)


def writing(n_users: int, n_columns: int, threads: int) -> Call:
    """Return a call that only writes arrays of the size of the result."""

    def write(columns: list[npt.NDArray[np.float64]]) -> None:
        for column in columns:
            column[:] = 1.0

    def call() -> None:
        columns = [np.empty(n_users) for _ in range(n_columns)]
        workers = [
            threading.Thread(target=write, args=(columns[first::threads],))
            for first in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return call


@dataclasses.dataclass
class Run:
    """The options of a run, and its measurements so far."""

    threads: int
    repeats: int
    users: int
    users_with_others: int
    wait: float
    measures: list[Measure] = dataclasses.field(default_factory=list)
    times: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add(self, *measure: Any, **more: Any) -> None:
        """Add a row to the table, and print it."""
        self.measures.append(Measure(*measure, **more))
        print("  " + " | ".join(self.measures[-1].cells()), flush=True)

    def time(self, name: str, contestants: dict[str, Call]) -> Times:
        """Time calls in turn, and keep the times for the results."""
        times = side_by_side(contestants, self.repeats, wait=self.wait)
        self.times[name] = {
            contestant: dataclasses.asdict(timed) for contestant, timed in times.items()
        }
        return times


def all_metrics(name: str, target: float, *, all_tied: bool) -> Callable[[Run], None]:
    def measure(run: Run) -> None:
        metrics = accuracy_metrics()
        data = Data.generate(run.users, all_tied=all_tied)
        call = ours(data, metrics, run.threads)
        result, peak, spent = _peak(call)
        contestants = {"ours": call, "writing": writing(run.users, len(metrics), run.threads)}
        times = run.time(name, contestants)
        median, writing_time = times["ours"].median, times["writing"].median
        title = f"{name}, {run.users:,} users, {len(metrics)} columns"
        run.add(f"{title} (s)", seconds(median), "", median, target, at_most=True)
        # Other processes hardly affect the processor time.
        run.add(f"{title}: processor time (s)", seconds(spent), "", spent)
        run.add(
            f"{title}: relative to writing as many numbers",
            seconds(median),
            seconds(writing_time),
            median / writing_time,
        )
        sizes = f"{peak / 2**30:.2f} GiB", f"{result / 2**30:.2f} GiB"
        run.add(f"{title}: memory relative to the result", *sizes, peak / result, 3, at_most=True)

    return measure


def _peak(call: Call) -> tuple[int, int, float]:
    """Return the bytes of a result, the peak above the initial memory, and the seconds."""
    gc.collect()
    # Free memory that is kept for the next allocation would hide later allocations.
    ctypes.CDLL(None).malloc_trim(0)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    start = time.process_time()
    values: Any = call()
    spent, peak = time.process_time() - start, _memory("VmHWM") - before
    return sum(array.nbytes for part in values for array in part.values()), peak, spent


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def ild(run: Run) -> None:
    """Time ILD with embeddings as features, for existing lists."""
    rng = np.random.default_rng(0)
    n_users, length, n_features = max(run.users // 10, 1), 50, 128
    shift = rng.integers(0, N_ITEMS, (n_users, 1))
    everyone = np.ones(n_users, np.bool_)
    lists = TopLists(
        (rng.permutation(N_ITEMS)[:length] + shift) % N_ITEMS, N_ITEMS, everyone, ~everyone
    )
    features = rng.normal(size=(N_ITEMS, n_features))
    metrics = parse(f"ild@{length}")

    def call() -> object:
        listed = ListedUsers(ListData(lists, features=features))
        return compute(listed, metrics, Protocol())

    median = run.time("ild", {"ours": call})["ours"].median
    title = f"ILD of {n_features} numbers an item, {n_users:,} lists of {length} (s)"
    run.add(title, seconds(median), "", median, 5, at_most=True)


def compared_with(name: str, others: Callable[[Data], Call], *names: str) -> Callable[[Run], None]:
    """Compare recometer with others at ten cut-offs, without conversions on either side."""

    def measure(run: Run) -> None:
        if importlib.util.find_spec(name) is None:
            print(f"  {name} is not installed.")
            return
        data = Data.generate(run.users_with_others)
        metrics = [*at_cutoffs(*names), *parse("rprecision")]
        call = ours(data, metrics, run.threads)
        times = run.time(name, {"ours": call, name: others(data)})
        own, other = times["ours"].median, times[name].median
        title = f"{name}, {data.n_users:,} users, {len(metrics)} columns"
        run.add(title, seconds(own), seconds(other), other / own)

    return measure


def ranx(data: Data) -> Call:
    from ranx import Qrels, Run, evaluate

    users = [str(user) for user in range(data.n_users)]
    scores = np.linspace(1, 0.01, LENGTH).tolist()
    run = {
        user: dict(zip(map(str, items), scores, strict=True))
        for user, items in zip(users, data.lists().tolist(), strict=True)
    }
    qrels = {
        user: {str(item): 1 for item in items}
        for user, items in zip(users, data.items().tolist(), strict=True)
    }
    names = ("precision", "recall", "f1", "hit_rate", "hits", "mrr", "map", "ndcg")
    metrics = [f"{name}@{cutoff}" for name in names for cutoff in CUTOFFS]
    ready_qrels, lists = Qrels(qrels), Run(run)
    return lambda: evaluate(ready_qrels, lists, [*metrics, "r-precision"])


def rectools(data: Data) -> Call:
    import pandas as pd
    from rectools.metrics import (
        MAP,
        MRR,
        NDCG,
        F1Beta,
        HitRate,
        Precision,
        Recall,
        calc_metrics,
    )

    def frame(items: Int64) -> Any:
        columns = {"user_id": np.repeat(np.arange(len(items)), items.shape[1])}
        return pd.DataFrame({**columns, "item_id": items.ravel()})

    lists, test = frame(data.lists()), frame(data.items())
    lists["rank"] = np.tile(np.arange(1, LENGTH + 1), data.n_users)
    metrics = {
        f"{kind.__name__}@{cutoff}": kind(cutoff)
        for kind in (Precision, Recall, F1Beta, HitRate, MRR, MAP, NDCG)
        for cutoff in CUTOFFS
    }
    metrics["R-precision"] = Precision(LENGTH, r_precision=True)
    return lambda: calc_metrics(metrics, lists, test)


CASES: dict[str, Callable[[Run], None]] = {
    "few-ties": all_metrics("few ties", 4, all_tied=False),
    "all-tied": all_metrics("every item tied", 10, all_tied=True),
    "ild": ild,
    "ranx": compared_with(
        "ranx", ranx, "precision", "recall", "f", "hit", "hits", "rr", "ap", "ndcg"
    ),
    "rectools": compared_with(
        "rectools", rectools, "precision", "recall", "f", "hit", "rr", "ap", "ndcg"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=CASES, help="run only this case; repeatable"
    )
    parser.add_argument("--repeats", type=int, default=5, help="number of repeats per median (5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of recometer (2)")
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--users-with-others", type=int, default=50_000)
    parser.add_argument(
        "--wait", type=float, default=WAIT, help="seconds to wait for other processes to be quiet"
    )
    parser.add_argument("--output", type=Path, default=HERE / "results" / "metrics.json")
    parser.add_argument("--update", action="store_true", help="keep the other cases in --output")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"cases": {}}
    if options.update and options.output.exists():
        record = json.loads(options.output.read_text())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for name in options.case or CASES:
        print(name, flush=True)
        run = Run(
            options.threads,
            options.repeats,
            options.users,
            options.users_with_others,
            options.wait,
        )
        CASES[name](run)
        measures = [dataclasses.asdict(measure) for measure in run.measures]
        record["cases"][name] = {"measures": measures, "times": run.times}
        record |= {"machine": _machine.describe(), "threads": options.threads}
        options.output.write_text(json.dumps(record, indent=1) + "\n")
    lines = [
        Measure(**measure).cells()
        for name in CASES
        for measure in record["cases"].get(name, {"measures": []})["measures"]
    ]
    print(f"\n{markdown(HEADERS, lines)}\n\nWritten to {options.output}")


if __name__ == "__main__":
    main()
