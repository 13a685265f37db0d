"""How time on Spark grows with users, items and cores; MLlib beside it; and what larger sizes take.

Run: python benchmarks/spark.py scale            # factors, one core and two
     python benchmarks/spark.py mllib FOLDER     # lists of an ALS model beside RankingMetrics
     python benchmarks/spark.py mllib --users 100000   # the same with random lists
    python benchmarks/spark.py table            # from the rates of `scale` to larger sizes

FOLDER has train.parquet and test.parquet with columns of users, items and ratings. Needs the extra
spark, and Java. Times are those of processors: the Java process and all its workers, so that other
work on the machine matters little; seconds on the clock stand beside them.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import recometer as rm
import recometer.spark as rs

RESULTS = Path(__file__).with_name("results") / "spark.json"
METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
EVERY = "ndcgAt@10 precisionAt@10 meanAveragePrecision meanAveragePrecisionAt@10 recallAt@10"
FACTORS, TEST, TRAIN = 64, 5, 30  # a user
SIZES = [(5_000, 4_000), (20_000, 4_000), (20_000, 16_000)]  # users, items
TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """Seconds of processors, of the Java process and of Python workers, and on the clock."""

    java: float
    python: float
    clock: float

    @property
    def both(self) -> float:
        """Return the seconds of all processors."""
        return self.java + self.python


def session(cores: int) -> Any:
    """Start Spark on some cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]")
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def processes(root: int) -> Iterator[tuple[int, float]]:
    """Yield all processes below one, itself included, with the seconds that they have used."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(folder.name)
        parents[number] = int(fields[1])
        seconds[number] = sum(map(int, fields[11:15])) / TICKS  # with those of ended children
    for number in parents:
        above = number
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            yield number, seconds[number]


def timed(spark: Any, work: Callable[[], object]) -> Taken:
    """Return what some work takes."""
    root = spark.sparkContext._gateway.proc.pid

    def used() -> tuple[float, float]:
        found = dict(processes(root))
        java = next((p for p in found if "java" in _command(p)), root)
        return found[java], sum(found.values()) - found[java]

    before, begin = used(), time.perf_counter()
    work()
    after, clock = used(), time.perf_counter() - begin
    return Taken(after[0] - before[0], after[1] - before[1], clock)


def _command(number: int) -> str:
    try:
        return (Path("/proc") / str(number) / "comm").read_text()
    except OSError:
        return ""


def made(spark: Any, folder: Path, n_users: int, n_items: int) -> tuple[rs.Factors, Any, Any]:
    """Write factors, test and train of random numbers as Parquet; return them as DataFrames."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)

    def factors(n: int) -> Any:
        flat = pa.array(rng.standard_normal(n * FACTORS, np.float32))
        offsets = pa.array(np.arange(0, (n + 1) * FACTORS, FACTORS, dtype=np.int32))
        return pa.table({"id": np.arange(n), "features": pa.ListArray.from_arrays(offsets, flat)})

    def rows(each: int) -> Any:
        return pa.table(
            {
                "user": np.repeat(np.arange(n_users), each),
                "item": rng.integers(0, n_items, n_users * each),
            }
        )

    tables = {
        "users": factors(n_users),
        "items": factors(n_items),
        "test": rows(TEST),
        "train": rows(TRAIN),
    }
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    frames = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in tables}
    return rs.Factors(frames["users"], frames["items"]), frames["test"], frames["train"]


def scale(cores: int, rounds: int) -> list[dict[str, Any]]:
    """Time factors of several sizes on some cores."""
    spark = session(cores)
    found: list[dict[str, Any]] = []
    for n_users, n_items in SIZES:
        with tempfile.TemporaryDirectory() as name:
            source, test, train = made(spark, Path(name), n_users, n_items)
            options: Any = {"metrics": METRICS, "closure": "1GB", "keep": False}
            work = functools.partial(rs.evaluate, source, test, train=train, **options)
            if not found:
                work()  # starts workers
            taken = [timed(spark, work) for _ in range(rounds)]
            best = sorted(taken, key=lambda one: one.both)[len(taken) // 2]
            row = {"cores": cores, "users": n_users, "items": n_items}
            found.append({**row, **best._asdict()})
            print(json.dumps(found[-1]), flush=True)
    spark.stop()
    return found


def mllib(folder: Path, rounds: int) -> dict[str, Any]:
    """Time all metrics of ours beside three of RankingMetrics, on the same lists."""
    from pyspark.ml.recommendation import ALS

    spark = session(2)
    train, test = (spark.read.parquet(str(folder / f"{n}.parquet")) for n in ("train", "test"))
    user, item, rating = train.columns[:3]
    names = [f"CAST({user} AS int) AS {user}", f"CAST({item} AS int) AS {item}"]
    train, test = (
        part.selectExpr(*names, f"CAST({rating} AS float) AS {rating}") for part in (train, test)
    )
    als = ALS(userCol=user, itemCol=item, ratingCol=rating, rank=8, maxIter=3, seed=1)
    found = beside(spark, als.fit(train).recommendForAllUsers(10), test, rounds)
    spark.stop()
    return found


def many(n_users: int, rounds: int) -> dict[str, Any]:
    """Time the same on random lists of many users."""
    import pyarrow as pa
    import pyarrow.parquet

    spark, rng = session(2), np.random.default_rng(0)
    first = rng.integers(0, 5_000, n_users)  # ten items of 5,000 that follow one another
    listed = [pa.array((first + place) % 5_000) for place in range(10)]
    flat = pa.array(np.stack(listed, axis=1).ravel())
    offsets = pa.array(np.arange(0, n_users * 10 + 1, 10, dtype=np.int32))
    users = np.arange(n_users)
    lists = pa.table({"user": users, "items": pa.ListArray.from_arrays(offsets, flat)})
    rows = {"user": np.repeat(users, TEST), "item": rng.integers(0, 5_000, n_users * TEST)}
    with tempfile.TemporaryDirectory() as folder:
        frames = []
        for name, table in (("lists", lists), ("test", pa.table(rows))):
            path = str(Path(folder) / f"{name}.parquet")
            pyarrow.parquet.write_table(table, path, row_group_size=20_000)
            frames.append(spark.read.parquet(path))
        found = beside(spark, frames[0], frames[1], rounds)
    spark.stop()
    return found


def beside(spark: Any, lists: Any, test: Any, rounds: int) -> dict[str, Any]:
    """Time metrics of lists, kept in memory by Spark, by ours and by RankingMetrics."""
    from pyspark.mllib.evaluation import RankingMetrics

    lists, test = lists.persist(), test.persist()
    counts = lists.count(), test.count()
    user, item, *_ = test.columns

    def ours() -> None:
        found = rs.evaluate(
            rs.Lists(lists, score=False), test, protocol="pyspark", metrics=EVERY, keep=False
        ).mean()
        assert found

    def theirs() -> None:
        truth = test.groupBy(user).agg({item: "collect_set"}).toDF(user, "truth")
        both = lists.join(truth, user).rdd
        rows = both.map(
            lambda row: ([one if isinstance(one, int) else one[0] for one in row[1]], list(row[2]))
        )
        metrics = RankingMetrics(rows)
        assert metrics.precisionAt(10) <= 1
        assert metrics.meanAveragePrecisionAt(10) <= 1
        assert metrics.ndcgAt(10) <= 1

    taken: dict[str, list[Taken]] = {"ours": [], "theirs": []}
    for _ in range(rounds + 1):
        taken["ours"].append(timed(spark, ours))
        taken["theirs"].append(timed(spark, theirs))
    found: dict[str, Any] = {"lists": counts[0], "rows of test": counts[1]}
    for name, each in taken.items():
        found[name] = {
            "processors": statistics.median(one.both for one in each[1:]),
            "clock": statistics.median(one.clock for one in each[1:]),
        }
    for kind in ("processors", "clock"):
        found[f"theirs / ours, {kind}"] = found["theirs"][kind] / found["ours"][kind]
    print(json.dumps(found, indent=2))
    return found


def rates(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds of a processor per row and per score.

    A row: least squares of ``seconds = fixed + row * rows``, of Java and Python. A score: one
    machine's, since the same kernel runs in the workers, where it takes less time than can be told
    from starting a job at these sizes.
    """
    table = np.array([[1.0, row["users"] * (1 + TEST + TRAIN)] for row in rows])
    seconds = np.array([row["java"] + row["python"] for row in rows])
    (fixed, per_row), *_ = np.linalg.lstsq(table, seconds, rcond=None)
    return {
        "fixed": float(fixed),
        "row": float(max(per_row, 0.0)),
        "score": seconds_per_score(),
    }


def seconds_per_score() -> float:
    """Return what one score takes on one machine, one thread, for metrics with cut-offs."""
    rng, (n_users, n_items) = np.random.default_rng(0), (2_048, 100_000)
    source = rm.Factors(
        rng.standard_normal((n_users, FACTORS), np.float32),
        rng.standard_normal((n_items, FACTORS), np.float32),
    )
    test = rm.Interactions.of(
        np.stack([np.repeat(np.arange(n_users), TEST), rng.integers(0, n_items, n_users * TEST)]),
        n_users=n_users,
        n_items=n_items,
    )
    begin = time.process_time()
    rm.evaluate(source, test, metrics=METRICS, threads=1, progress=False)
    return (time.process_time() - begin) / (n_users * n_items)


VECTOR = 4 * FACTORS + 8  # bytes of an item or a user with its factors
TARGETS = [(10**6, 10**5), (10**7, 10**6), (10**8, 10**6)]
CORES = 1_000  # of the cluster that is assumed
ROW_BYTES = 24  # a user, an item and a number in a shuffle, before compression


def extrapolated(measured: dict[str, float]) -> list[dict[str, Any]]:
    """Return what larger sizes take, by the rates; see the assumptions in docs/spark.md."""
    found = []
    for users, items in TARGETS:
        rows, closure = users * (1 + TEST + TRAIN), items * VECTOR
        shuffled, seconds = rows * ROW_BYTES + users * VECTOR, measured["row"] * rows
        seconds += measured["score"] * users * items
        found.append(
            {
                "users": f"{users:,}",
                "items": f"{items:,}",
                "item factors": f"{closure / 1e9:.3g} GB",
                "shuffled": f"{shuffled / 1e9:,.3g} GB",
                "processor hours": seconds / 3600,
                f"hours on {CORES:,} cores": seconds / 3600 / CORES,
            }
        )
    return found


def printed(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table of Markdown."""
    print("|", " | ".join(rows[0]), "|")
    print("|", " | ".join("---:" for _ in rows[0]), "|")
    for row in rows:
        cells = [f"{v:,.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        print("|", " | ".join(cells), "|")


def saved(part: str, found: Any) -> None:
    """Write a part of the results beside those of earlier runs."""
    content = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    content[part] = found
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Measure what the command says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["scale", "one", "mllib", "table"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--users", type=int, help="mllib: random lists of this number of users")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "one":
        scale(options.cores, options.rounds)
    elif options.command == "mllib" and options.users:
        saved(f"mllib, {options.users} lists", many(options.users, options.rounds))
    elif options.command == "mllib":
        saved("mllib", mllib(options.folder, options.rounds))
    elif options.command == "scale":
        rows = []
        for cores in (1, 2):  # a process each: a session keeps its cores
            command = [sys.executable, __file__, "one", "--cores", str(cores)]
            command += ["--rounds", str(options.rounds)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows += [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        saved("scale", rows)
        printed(rows)
    else:
        measured = rates(json.loads(RESULTS.read_text())["scale"])
        print(json.dumps(measured, indent=2))
        printed(extrapolated(measured))


if __name__ == "__main__":
    main()
