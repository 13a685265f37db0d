"""Time evaluations on Spark, with MLlib and on one machine, and a job without an evaluation.

Run: python benchmarks/spark.py lists --users 960000   # lists of ten items
     python benchmarks/spark.py compare                # two models of 6,022 users
     python benchmarks/spark.py large --users 10000000 # one run, with its memory use

The script needs the extra spark, and Java. All jobs run in turn in one process. The script prints
medians of the elapsed times, and writes them to results/spark.json with the load of the machine.
Ratios from the same round are steadier than seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import recometer as rm
import recometer.spark as rs
from recometer.spark.tables import gathered

RESULTS = Path(__file__).with_name("results") / "spark.json"
FIVE = "ndcg@10 recall@10 precision@10 ap@10 rr@10"
THEIRS = ("ndcgAtK", "recallAtK", "precisionAtK", "meanAveragePrecisionAtK")
N_ITEMS, PLACES, TEST = 20_000, 10, 3


def session(cores: int) -> Any:
    """Start Spark with some of this machine's cores."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]")
    settings = {
        "spark.driver.memory": "4g",
        "spark.driver.maxResultSize": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frames(spark: Any, folder: Path, n_users: int, seed: int = 0) -> tuple[Any, Any]:
    """Write random lists and test data as Parquet; return them as DataFrames."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(seed)
    first = rng.integers(0, N_ITEMS, n_users)  # a list consists of consecutive items
    listed = (first[:, None] + np.arange(PLACES)) % N_ITEMS
    test = rng.integers(0, N_ITEMS, (n_users, TEST))
    test[:, 0] = listed[np.arange(n_users), rng.integers(0, PLACES, n_users)]
    tables = {
        "lists": {
            "user": np.repeat(np.arange(n_users), PLACES),
            "item": listed.ravel(),
            "rank": np.tile(np.arange(1, PLACES + 1, dtype=np.int32), n_users),
        },
        "test": {"user": np.repeat(np.arange(n_users), TEST), "item": test.ravel()},
    }
    tables_read = []
    for name, columns in tables.items():
        path = folder / f"{name}{seed}.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=1_000_000)
        tables_read.append(spark.read.parquet(str(path)))
    return tables_read[0], tables_read[1]


def medians(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Time all jobs in turn, after a round that does not count; print and return medians."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begin)
            print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    result = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    counted = {name: times[1:] for name, times in seconds.items()}
    for name in works:
        pairs = zip(counted[next(iter(works))], counted[name], strict=True)
        result[f"first / {name}"] = statistics.median(
            first_time / other_time for first_time, other_time in pairs
        )
    return {**result, "load": os.getloadavg()[0]}


def lists(spark: Any, folder: Path, n_users: int, rounds: int) -> dict[str, float]:
    """Time five metrics of lists, one metric, the same job without metrics, and MLlib."""
    from pyspark.ml.evaluation import RankingEvaluator

    listed, test = frames(spark, folder, n_users)
    source = rs.Lists(listed)

    def ours(metrics: str) -> None:
        result = rs.evaluate(source, test, metrics=metrics)
        assert result.mean()
        result.unpersist()

    def identity() -> None:
        cells = {
            "test": test.selectExpr("user AS u", "named_struct('i', item) AS c"),
            "source": listed.selectExpr(
                "user AS u", "named_struct('i', item, 'x', CAST(rank AS double)) AS c"
            ),
        }
        rows = gathered(cells, None)
        assert rows.mapInArrow(lambda batches: batches, rows.schema).agg({"u": "count"}).collect()

    def mllib() -> None:
        cells = listed.selectExpr("user", "struct(rank, item) AS c").groupBy("user")
        ranked = "transform(array_sort(c), e -> double(e.item)) AS prediction"
        lists_of_users = (
            cells.agg({"c": "collect_list"}).toDF("user", "c").selectExpr("user", ranked)
        )
        truth = (
            test.selectExpr("user", "double(item) AS i").groupBy("user").agg({"i": "collect_set"})
        )
        joined = lists_of_users.join(truth.toDF("user", "label"), "user").persist()
        for name in THEIRS:
            assert RankingEvaluator(metricName=name, k=PLACES).evaluate(joined) >= 0
        joined.unpersist()

    def one_machine() -> None:
        assert rm.evaluate(rm.Lists(listed.toArrow()), test.toArrow(), metrics=FIVE).mean()

    works = {
        "five metrics": lambda: ours(FIVE),
        "one metric": lambda: ours("ndcg@10"),
        "identity": identity,
        "RankingEvaluator, four metrics": mllib,
        "toArrow() and rm.evaluate": one_machine,
    }
    return medians(works, rounds)


def compare(spark: Any, folder: Path, n_users: int, rounds: int) -> dict[str, float]:
    """Time the evaluation of two models, and their comparison with its table."""
    models = [frames(spark, folder, n_users, seed) for seed in (0, 1)]
    results: dict[str, Any] = {}

    def evaluated() -> None:
        for name, (lists_of_model, _) in zip(("first", "second"), models, strict=True):
            if name in results:
                results[name].unpersist()
            results[name] = rs.evaluate(rs.Lists(lists_of_model), models[0][1], metrics=FIVE)

    def compared() -> None:
        assert str(rs.compare(results))

    return medians({"evaluate": evaluated, "compare and print": compared}, rounds)


def large(spark: Any, folder: Path, n_users: int, _: int) -> dict[str, float]:
    """Evaluate many users once; return the seconds and the peak memory of Java and the workers."""
    listed, test = frames(spark, folder, n_users)
    root, most, done = spark.sparkContext._gateway.proc.pid, {"java": 0, "python": 0}, False

    def watch() -> None:
        while not done:
            for name, n_bytes in memory_below(root).items():
                most[name] = max(most[name], n_bytes)
            time.sleep(0.2)

    watching = threading.Thread(target=watch)
    watching.start()
    begin = time.perf_counter()
    result = rs.evaluate(rs.Lists(listed), test, metrics=FIVE)
    evaluated = time.perf_counter() - begin
    rows = result.moments()
    moments = time.perf_counter() - begin - evaluated
    print(result)
    collected = time.perf_counter() - begin - evaluated - moments
    done = True
    watching.join()
    own = int(next(line for line in _status("self") if line.startswith("VmHWM")).split()[1]) * 1024
    assert [round(row.mean, 9) for row in rows] == [
        round(row.mean, 9) for row in result.collect().summary()
    ]
    seconds = {"evaluate": evaluated, "moments": moments, "collect and print": collected}
    return {**seconds, **most, "driver": own, "load": os.getloadavg()[0]}


def memory_below(root: int) -> dict[str, int]:
    """Return the resident memory of the Java process, and the total of its workers."""
    parents, memory_of, names = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = dict(line.split(":", 1) for line in _status(folder.name) if ":" in line)
            number = int(folder.name)
            parents[number], names[number] = int(fields["PPid"]), fields["Name"].strip()
            memory_of[number] = int(fields["VmRSS"].split()[0]) * 1024
        except (OSError, KeyError):  # the process has ended
            continue
    totals = {"java": 0, "python": 0}
    for number, n_bytes in memory_of.items():
        above = number
        while above in parents and above != root:
            above = parents[above]
        if above == root and names[number] in ("java", "python", "python3"):
            totals["java" if names[number] == "java" else "python"] += n_bytes
    return totals


def _status(process: str) -> list[str]:
    return (Path("/proc") / process / "status").read_text().splitlines()


def main() -> None:
    """Run the measurement that the command names."""
    commands = {"lists": (lists, 960_000), "compare": (compare, 6_022), "large": (large, 10**7)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=[*commands])
    parser.add_argument("--users", type=int)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    work, usual = commands[options.command]
    spark = session(options.cores)
    n_users = options.users or usual
    with tempfile.TemporaryDirectory() as folder:
        results = work(spark, Path(folder), n_users, options.repeats)
    spark.stop()
    content = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    content[f"{options.command}, {n_users} users"] = results
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
