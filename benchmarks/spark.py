"""How time on Spark grows with users, items and cores; MLlib beside it; and what larger sizes take.

Run: python benchmarks/spark.py scale            # factors, one core and two
     python benchmarks/spark.py mllib FOLDER     # lists of an ALS model beside RankingMetrics
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

import recometer.spark as rs

RESULTS = Path(__file__).with_name("results") / "spark.json"
METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
EVERY = "ndcgAt@10 precisionAt@10 meanAveragePrecision meanAveragePrecisionAt@10 recallAt@10"
FACTORS, TEST, TRAIN = 64, 5, 30  # a user
SIZES = [(5_000, 4_000), (20_000, 4_000), (20_000, 16_000)]  # users, items
CLOSURES = [("travel", "1GB"), ("blocks", "1MB")]  # the latter for the last size alone
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
    """Start Spark on so many cores of this machine."""
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
    """Time factors of several sizes on so many cores, items travelling and in blocks."""
    spark = session(cores)
    found: list[dict[str, Any]] = []
    for place, (n_users, n_items) in enumerate(SIZES):
        with tempfile.TemporaryDirectory() as name:
            source, test, train = made(spark, Path(name), n_users, n_items)
            last = place == len(SIZES) - 1
            for how, closure in CLOSURES if last else CLOSURES[:1]:
                options: Any = {"metrics": METRICS, "closure": closure, "keep": False}
                work = functools.partial(rs.evaluate, source, test, train=train, **options)
                if not found:
                    work()  # starts workers
                taken = [timed(spark, work) for _ in range(rounds)]
                best = sorted(taken, key=lambda one: one.both)[len(taken) // 2]
                row = {"cores": cores, "users": n_users, "items": n_items, "how": how}
                found.append({**row, **best._asdict()})
                print(json.dumps(found[-1]), flush=True)
    spark.stop()
    return found


def mllib(folder: Path, rounds: int) -> dict[str, Any]:
    """Time all metrics of ours beside three of RankingMetrics, on the same lists."""
    from pyspark.ml.recommendation import ALS
    from pyspark.mllib.evaluation import RankingMetrics

    spark = session(2)
    train, test = (spark.read.parquet(str(folder / f"{n}.parquet")) for n in ("train", "test"))
    user, item, rating = train.columns[:3]
    names = [f"CAST({user} AS int) AS {user}", f"CAST({item} AS int) AS {item}"]
    train, test = (
        part.selectExpr(*names, f"CAST({rating} AS float) AS {rating}") for part in (train, test)
    )
    als = ALS(userCol=user, itemCol=item, ratingCol=rating, rank=8, maxIter=3, seed=1)
    lists = als.fit(train).recommendForAllUsers(10).persist()
    test = test.persist()
    counts = lists.count(), test.count()

    def ours() -> None:
        found = rs.evaluate(
            rs.Lists(lists, score=False), test, protocol="pyspark", metrics=EVERY, keep=False
        ).mean()
        assert found

    def theirs() -> None:
        truth = test.groupBy(user).agg({item: "collect_set"}).toDF(user, "truth")
        both = lists.join(truth, user).rdd
        rows = both.map(lambda row: ([one[0] for one in row[1]], list(row[2])))
        metrics = RankingMetrics(rows)
        assert metrics.precisionAt(10) <= 1
        assert metrics.meanAveragePrecisionAt(10) <= 1
        assert metrics.ndcgAt(10) <= 1

    taken: dict[str, list[Taken]] = {"ours": [], "theirs": []}
    for _ in range(rounds + 1):
        taken["ours"].append(timed(spark, ours))
        taken["theirs"].append(timed(spark, theirs))
    spark.stop()
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
    """Return the seconds of a processor for a row, and for a score, of what was measured.

    Least squares of ``seconds = fixed + row · rows + score · users · items`` over all sizes.
    """
    own = [row for row in rows if row["how"] == "travel"]
    table = np.array(
        [[1.0, row["users"] * (1 + TEST + TRAIN), row["users"] * row["items"]] for row in own]
    )
    seconds = np.array([row["java"] + row["python"] for row in own])
    from scipy.optimize import nnls

    (fixed, per_row, per_score), _ = nnls(table / table.max(axis=0), seconds)
    scales = table.max(axis=0)
    return {
        "fixed": fixed,
        "row": per_row / scales[1],
        "score": per_score / scales[2],
    }


TARGETS = [(10**6, 10**5), (10**7, 10**6), (10**8, 10**6), (10**9, 10**7)]
CORES, MEMORY = 1_000, 4e9  # of the cluster that is assumed; bytes of an executor's core
ROW_BYTES = 24  # a user, an item and a number in a shuffle, before compression


def extrapolated(measured: dict[str, float]) -> list[dict[str, Any]]:
    """Return what larger sizes take, by the rates; see the assumptions in the document."""
    found = []
    for users, items in TARGETS:
        row, vector = users * (1 + TEST + TRAIN), 4 * FACTORS
        closure = items * (vector + 8)
        blocks = 1 if closure <= 64e6 else -(-closure // int(MEMORY / 4))
        # With items in blocks, users are as many to a block as fit beside them.
        user_blocks = (
            1
            if blocks == 1
            else -(-users * (vector + ROW_BYTES * (TEST + TRAIN)) // int(MEMORY / 4))
        )
        shuffled = ROW_BYTES * row + vector * users
        if blocks > 1:
            shuffled += blocks * users * (vector + ROW_BYTES * TEST) + user_blocks * closure
        seconds = (
            measured["row"] * row * (2 if blocks > 1 else 1) + measured["score"] * users * items
        )
        found.append(
            {
                "users": users,
                "items": items,
                "items in bytes": closure,
                "item blocks": blocks,
                "user blocks": user_blocks,
                "shuffled bytes": shuffled,
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
        cells = [f"{v:,.3g}" if isinstance(v, float) else f"{v:,}" for v in row.values()]
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
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "one":
        scale(options.cores, options.rounds)
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
