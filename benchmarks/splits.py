"""The speed of splitting interactions, compared with other libraries in the same run.

The script splits a data frame in memory into train and test frames with all columns, and a Parquet
file with 100 million interactions into a folder. It prints a table and writes
``results/splits.json``. Libraries that are not installed are left out:
pip install rectools lenskit replay-rec recometrics "polars<2"
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import polars as pl
from _table import HEADERS, Measure, markdown, seconds
from _timing import Timed, side_by_side

from recometer.split import After, Fraction, KCore, Last, split

HERE = Path(__file__).parent
Call = Callable[[], object]

SHARE = 0.2
BEGIN, END = 1_000_000_000, 1_200_000_000
LATER = END - int(SHARE * (END - BEGIN))  # a fifth of the interactions take place after this time
CASES = {
    # The minimum ratio of the fastest other library's time to ours. None sets no target.
    "last 1 of each user": 4.0,
    "a random fifth of all": 2.0,
    "a random fifth of each user's": None,
    "global time": None,
    "5-core, then global time": 2.0,
}
SLOW = ("lenskit", "recometrics", "rectools")  # libraries that are timed only once
SCALED = {"lenskit": 25}  # timed on one in 25 rows, since it loops over users
OTHERS = ("polars", "replay", "rectools", "lenskit", "recometrics")
LARGE = 100_000_000
LARGE_SECONDS, LARGE_GIB = 45.0, 8.0


def interactions(n: int, *, distinct: bool = True, seed: int = 0) -> pl.DataFrame:
    """Return interactions of n / 125 users with n / 500 items, both drawn from power laws.

    Users, items and rows are in random order.
    """
    rng = np.random.default_rng(seed)
    n_users, n_items = max(200, n // 125), max(100, n // 500)

    def drawn(size: int, kinds: int, power: float) -> Any:
        weights = np.cumsum((np.arange(kinds) + 10.0) ** -power)
        return np.searchsorted(weights / weights[-1], rng.random(size))

    pairs = np.empty(0, np.int64)
    while len(pairs) < n:
        size = int((n - len(pairs)) * 1.2) + 1000
        more = drawn(size, n_users, 0.6) * n_items + drawn(size, n_items, 0.8)
        pairs = np.unique(np.concatenate([pairs, more])) if distinct else more
    pairs = rng.permutation(pairs)[:n]
    return pl.DataFrame(
        {
            "user_id": rng.permutation(n_users)[pairs // n_items],
            "item_id": rng.permutation(n_items)[pairs % n_items],
            "rating": (rng.integers(1, 11, n) / 2).astype(np.float32),
            "timestamp": rng.integers(BEGIN, END, n),
        }
    )


def ours(data: pl.DataFrame, threads: int) -> dict[str, Call]:
    """Return recometer's calls, keyed by case."""

    def call(what: Any, **options: Any) -> Call:
        return lambda: split(data, what, threads=threads, **options)

    calls = (
        call(Last(1)),
        call(Fraction(SHARE, per_user=False)),
        call(Fraction(SHARE)),
        call(After(LATER)),
        call(After(LATER), filters=KCore(5)),
    )
    return dict(zip(CASES, calls, strict=True))


def with_polars(data: pl.DataFrame) -> dict[str, Call]:
    """Return calls that split as users would in Polars."""
    time_ = pl.col("timestamp")

    def parts(held: pl.Expr, frame: pl.DataFrame = data) -> object:
        return frame.filter(~held), frame.filter(held)

    def last() -> object:
        place = time_.rank("ordinal", descending=True).over("user_id")
        marked = data.with_columns(held=place <= 1)
        return parts(pl.col("held"), marked)

    def random() -> object:
        held = pl.lit(pl.Series(np.random.default_rng(0).random(len(data)) < SHARE))
        return parts(held)

    def core() -> object:
        frame, before = data, -1
        while len(frame) != before:
            before = len(frame)
            frame = frame.filter((pl.len().over("user_id") >= 5) & (pl.len().over("item_id") >= 5))
        return parts(time_ >= LATER, frame)

    return {
        "last 1 of each user": last,
        "a random fifth of all": random,
        "global time": lambda: parts(time_ >= LATER),
        "5-core, then global time": core,
    }


def with_replay(data: pl.DataFrame) -> dict[str, Call]:
    """Return calls to RePlay's splitters, with a Polars frame."""
    from replay.preprocessing.filters import MinCountFilter
    from replay.splitters import LastNSplitter, RandomSplitter, TimeSplitter

    columns = {"query_column": "user_id"}
    by_time = TimeSplitter(time_threshold=LATER, **columns)

    def core() -> object:
        frame, before = data, -1
        while len(frame) != before:
            before = len(frame)
            for column in ("user_id", "item_id"):
                frame = MinCountFilter(num_entries=5, groupby_column=column).transform(frame)
        return by_time.split(frame)

    last = LastNSplitter(1, divide_column="user_id", **columns)
    return {
        "last 1 of each user": lambda: last.split(data),
        "a random fifth of all": lambda: RandomSplitter(SHARE, seed=0, **columns).split(data),
        "global time": lambda: by_time.split(data),
        "5-core, then global time": core,
    }


def with_rectools(data: pl.DataFrame) -> dict[str, Call]:
    """Return calls to RecTools' splitters with a pandas frame, including the selection of rows."""
    from rectools.dataset import Interactions
    from rectools.model_selection import LastNSplitter, RandomSplitter, TimeRangeSplitter

    frame = data.rename({"rating": "weight", "timestamp": "datetime"}).to_pandas()
    frame["datetime"] = frame["datetime"].astype("datetime64[s]").astype("datetime64[ns]")
    dataset = Interactions(frame)
    every = {f"filter_{name}": False for name in ("cold_users", "cold_items", "already_seen")}
    days = (END - LATER) // 86_400

    def call(splitter: Any) -> Call:
        def parts() -> object:
            (train, test, _), *_ = splitter.split(dataset)
            return frame.iloc[train], frame.iloc[test]

        return parts

    return {
        "last 1 of each user": call(LastNSplitter(1, **every)),
        "a random fifth of all": call(RandomSplitter(SHARE, random_state=0, **every)),
        "global time": call(TimeRangeSplitter(f"{days}D", **every)),
    }


def with_lenskit(data: pl.DataFrame) -> dict[str, Call]:
    """Return calls to LensKit's splitters, with its own type of data set."""
    from lenskit.data import from_interactions_df
    from lenskit.splitting import LastN, SampleFrac, sample_records, sample_users, split_global_time

    frame = data.to_pandas()
    frame["timestamp"] = frame["timestamp"].astype("datetime64[s]")
    dataset = from_interactions_df(frame)
    n_users = dataset.user_count
    moment = np.datetime64(LATER, "s").astype(object)
    return {
        "last 1 of each user": lambda: sample_users(dataset, n_users, LastN(1), rng=0),
        "a random fifth of all": lambda: sample_records(dataset, int(SHARE * len(frame)), rng=0),
        "a random fifth of each user's": lambda: sample_users(
            dataset, n_users, SampleFrac(SHARE), rng=0
        ),
        "global time": lambda: split_global_time(dataset, moment),
    }


def with_recometrics(data: pl.DataFrame) -> dict[str, Call]:
    """Return a call to recometrics' split of all users, with a sparse matrix."""
    import scipy.sparse as sp
    from recometrics import split_reco_train_test

    matrix = sp.csr_array(
        (data["rating"].to_numpy(), (data["user_id"].to_numpy(), data["item_id"].to_numpy()))
    )
    return {
        "a random fifth of each user's": lambda: split_reco_train_test(
            matrix, "all", items_test_fraction=SHARE
        )
    }


MAKERS: Mapping[str, Callable[[pl.DataFrame], dict[str, Call]]] = {
    "polars": with_polars,
    "replay": with_replay,
    "rectools": with_rectools,
    "lenskit": with_lenskit,
    "recometrics": with_recometrics,
}


def in_memory(options: argparse.Namespace) -> dict[str, dict[str, Timed]]:
    """Time all cases: fast libraries in turn, slow ones once each."""
    data = interactions(options.rows).rechunk()
    mine = ours(data, options.threads)
    installed = [name for name in options.others if importlib.util.find_spec(name)]
    times: dict[str, dict[str, Timed]] = {}
    quick = {name: MAKERS[name](data) for name in installed if name not in SLOW}
    for case in CASES:
        calls = {"recometer": mine[case]}
        calls |= {
            name: calls_of_library[case]
            for name, calls_of_library in quick.items()
            if case in calls_of_library
        }
        times[case] = side_by_side(calls, options.repeats, wait=options.wait)
    # Run one library at a time, since each needs a copy of the data in its own format.
    for name in (name for name in installed if name in SLOW):
        part = SCALED.get(name, 1)
        calls_of_library = MAKERS[name](data if part == 1 else interactions(options.rows // part))
        label = name if part == 1 else f"{name} ({options.rows // part:,} rows, scaled up)"
        for case, call in calls_of_library.items():
            ((_, timed),) = side_by_side({name: call}, 1, warm_up=False, wait=options.wait).items()
            times[case][label] = Timed([part * second for second in timed.seconds], timed.others)
    return times


def measures(times: Mapping[str, Mapping[str, Timed]]) -> list[Measure]:
    """Compare recometer with each library, and the fastest of them with the target."""
    rows = []
    for case, timed in times.items():
        median = timed["recometer"].median
        medians = {
            name: timed_library.median
            for name, timed_library in timed.items()
            if name != "recometer"
        }
        libraries = {name: value for name, value in medians.items() if name != "polars"}
        fastest = min(libraries, key=libraries.__getitem__, default="")
        for name, value in medians.items():
            target = CASES[case] if name == fastest else None
            rows.append(
                Measure(f"{case}: {name}", seconds(median), seconds(value), value / median, target)
            )
        if case == "global time" and "polars" in medians:
            ratio = median / medians["polars"]
            label = f"{case}: ours / Polars' filter"
            rows.append(
                Measure(label, seconds(median), seconds(medians["polars"]), ratio, 1.3, True)
            )
    return rows


def large(n: int, threads: int) -> dict[str, Any]:
    """Split a file and write the parts, with each method in a separate process."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        pieces = []
        for piece in range(10):
            part = Path(folder) / f"{piece}.parquet"
            interactions(n // 10, distinct=False, seed=piece).write_parquet(part)
            pieces.append(part)
        pl.scan_parquet(pieces).sink_parquet(path)
        for part in pieces:
            part.unlink()
        for case in ("last", "random", "time", "core"):
            command = [sys.executable, __file__, "--child", case, str(path), str(threads)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results[case] = json.loads(output)
    return results


def child(case: str, path: str, threads: int) -> None:
    """Split a file and write the parts; print the time and the memory."""
    method = {
        "last": Last(1),
        "random": Fraction(SHARE),
        "time": After(LATER),
        "core": After(LATER),
    }[case]
    start = time.perf_counter()
    parts = split(path, method, filters=[KCore(5)] if case == "core" else [], threads=threads)
    at = time.perf_counter()
    parts.save(Path(path).parent / "split")
    results = {
        "seconds": time.perf_counter() - start,
        "splitting": at - start,
        "GiB": _peak(),
        "rows": dict(parts.protocol.counts),
    }
    print(json.dumps(results))


def _peak() -> float:
    """Return the peak resident memory of this process, in GiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000_000)
    parser.add_argument("--large", type=int, default=LARGE, help="rows of the file; 0 skips it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--wait", type=float, default=30.0, help="seconds to wait for other processes to be quiet"
    )
    parser.add_argument("--others", nargs="*", choices=OTHERS, default=OTHERS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        case, path, threads = options.child
        return child(case, path, int(threads))
    warnings.simplefilter("ignore")
    times = in_memory(options) if options.rows else {}
    table = measures(times)
    results: dict[str, Any] = {
        "machine": _machine.describe(),
        "options": {k: v for k, v in vars(options).items() if k != "child"},
        "times": {
            case: {name: dataclasses.asdict(timed_library) for name, timed_library in timed.items()}
            for case, timed in times.items()
        },
    }
    if options.large:
        results["large"] = large(options.large, options.threads)
        for case, results_of_case in results["large"].items():
            name = f"{options.large:,} rows of Parquet split and written, {case}"
            duration, memory = results_of_case["seconds"], results_of_case["GiB"]
            table.append(
                Measure(f"{name} (s)", seconds(duration), "", duration, LARGE_SECONDS, True)
            )
            table.append(Measure(f"{name} (GiB)", f"{memory:.1f} GiB", "", memory, LARGE_GIB, True))
    print(markdown(HEADERS, [measure.cells() for measure in table]))
    path = HERE / "results" / "splits.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
