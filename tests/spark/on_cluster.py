"""Run cases of `test_cluster.py` on a cluster: python on_cluster.py ADDRESS FOLDER CASE..."""

import json
import os
import pathlib
import sys
import warnings

import numpy as np
import polars as pl
from spark_cases import data
from spark_cluster import session

import recometer as rm
import recometer.spark as rs
from recometer.spark import block, evaluation, tables

METRICS = "ndcg@5 recall@5 rr@8"
PAIR = "user long, item long"


def frame_of(spark, columns, schema, n=3):
    rows = zip(*(np.asarray(column, object).tolist() for column in columns.values()), strict=True)
    return spark.createDataFrame(list(rows), schema).repartition(n)


def columns_of_lists(users, items, rng, n=8):
    return {
        "user": np.repeat(users, n).tolist(),
        "item": [items[place] for _ in users for place in rng.permutation(len(items))[:n]],
        "rank": list(range(1, n + 1)) * len(users),
    }


def equals(result, expected):
    collected = result.collect()
    users = collected.user_ids.tolist() == expected.user_ids.tolist()
    values = [
        np.array_equal(collected.values[name], column, equal_nan=True)
        and np.array_equal(collected.reasons[name], expected.reasons[name])
        for name, column in expected.values.items()
    ]
    return {"same": users and all(values) and len(values) > 0}


def evaluate_lists(spark, *, n=3, **options):
    """Evaluate lists on the cluster; return whether the values are the same as on one machine."""
    users, items, test, train, rng = data(ids=int)
    rows = columns_of_lists(users, items, rng)
    frames = [
        frame_of(spark, {"user": side["user"], "item": side["item"]}, PAIR, n)
        for side in (test, train)
    ]
    lists = rs.Lists(frame_of(spark, rows, f"{PAIR}, rank int", n))
    result = rs.evaluate(lists, frames[0], train=frames[1], metrics=METRICS, **options)
    here = [pl.DataFrame(side).select("user", "item") for side in (test, train)]
    local = rm.Lists(pl.DataFrame(rows))
    return equals(result, rm.evaluate(local, here[0], train=here[1], metrics=METRICS))


def factors_in_a_file(spark, _):
    block.IN_CALL = 0  # send even small jobs as files
    users, items, test, train, rng = data(ids=int)
    factors = [rng.normal(size=(len(ids), 8)).astype(np.float32) for ids in (users, items)]
    schema = "id long, features array<float>"
    tables = [
        frame_of(spark, {"id": ids, "features": [row.tolist() for row in factor]}, schema)
        for ids, factor in zip((users, items), factors, strict=True)
    ]
    frames = [
        frame_of(spark, {"user": side["user"], "item": side["item"]}, PAIR)
        for side in (test, train)
    ]
    result = rs.evaluate(rs.Factors(*tables), frames[0], train=frames[1], metrics=METRICS)
    here = [pl.DataFrame(side).select("user", "item") for side in (test, train)]
    local = rm.Factors(*factors, user_ids=users, item_ids=items)
    return equals(result, rm.evaluate(local, here[0], train=here[1], metrics=METRICS))


def executor_killed(spark, folder):
    class Killing(evaluation.Job):
        """A job whose first task kills its executor, a Java process, after the first rows."""

        def __call__(self, batches):
            for batch in super().__call__(batches):
                yield batch
                mark = os.path.join(folder, "killed")
                if not os.path.exists(mark):
                    pathlib.Path(mark).touch()
                    daemon = os.getppid()
                    stat = pathlib.Path(f"/proc/{daemon}/stat").read_text()
                    os.kill(int(stat.rpartition(")")[2].split()[1]), 9)
                    os._exit(1)

    evaluation.Job = Killing
    is_equal = evaluate_lists(spark, partitions=4)
    assert os.path.exists(os.path.join(folder, "killed"))
    return is_equal


def many_rows_of_a_user(spark, _):
    n = 200_000
    rng = np.random.default_rng(0)
    users = np.append(np.zeros(n, np.int64), np.repeat(np.arange(1, 51), 4))
    items = np.append(np.arange(n), rng.integers(0, n, 200))
    distinct_rows = pl.DataFrame({"user": users, "item": items}).unique(maintain_order=True)
    rows = distinct_rows.with_columns(score=rng.random(len(distinct_rows)))
    test = distinct_rows.sample(fraction=0.3, seed=0)
    train = pl.DataFrame({"user": [0, 1], "item": [0, 1]})
    frames = [spark.createDataFrame(data.to_pandas()) for data in (rows, test, train)]
    metrics = "ndcg@5 recall@5 ap@10"
    result = rs.evaluate(rs.Lists(frames[0]), frames[1], train=frames[2], metrics=metrics)
    return equals(result, rm.evaluate(rm.Lists(rows), test, train=train, metrics=metrics))


def many_partitions(spark, _):
    is_equal = evaluate_lists(spark, n=64)  # with 58 users, some of the 64 partitions are empty
    before = spark.sparkContext.statusTracker()
    assert before is not None
    rows = frame_of(spark, {"user": [1], "item": [1], "rank": [1]}, f"{PAIR}, rank int")
    result = rs.evaluate(rs.Lists(rows), rows.select("user", "item"), metrics="rr")
    # Spark must use fewer partitions for few rows, although spark.sql.shuffle.partitions is 2000.
    assert result.rows.rdd.getNumPartitions() < 50
    return is_equal


def _refused(call):
    try:
        call()
    except rm.RecometerError as error:
        return {"type": type(error).__name__, "message": str(error)}
    return {}


def more_rows_than_the_limit(spark, _):
    limit, tables.MOST_ROWS = tables.MOST_ROWS, 8
    try:
        return _refused(lambda: evaluate_lists(spark))
    finally:
        tables.MOST_ROWS = limit


def out_of_memory(spark, _):
    class Failing(evaluation.Job):
        def __call__(self, batches):
            raise MemoryError

    job, evaluation.Job = evaluation.Job, Failing
    try:
        return _refused(lambda: evaluate_lists(spark))
    finally:
        evaluation.Job = job


def evaluated(spark, _):
    return _refused(lambda: evaluate_lists(spark))


def split(spark, _):
    frame = frame_of(spark, {"user": [1, 1], "item": [1, 2]}, PAIR)
    return _refused(lambda: rs.split(frame, rm.split.Fraction(0.5)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    address, folder, *cases = sys.argv[1:]
    spark = session(address)
    try:
        print(json.dumps({case: globals()[case](spark, folder) for case in cases}))
    finally:
        spark.stop()
