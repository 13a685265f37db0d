"""Evaluating an MLlib model on Spark gives the same values as MLlib's own metrics."""

import numpy as np
import polars as pl
import pytest
from shared import SHARED
from spark_cases import MARKS, assert_same

import recometer as rm
import recometer.spark as rs

pytestmark = [*MARKS, pytest.mark.shared]

FOLDER = SHARED / "data" / "ml100k_sar"
METRICS = "precisionAt@10 meanAveragePrecision meanAveragePrecisionAt@10 ndcgAt@10 recallAt@10"


@pytest.fixture(scope="module")
def trained(spark):
    """Return training data, test data and a fitted ALS model, all on Spark."""
    from pyspark.ml.recommendation import ALS

    parts = [spark.read.parquet(str(FOLDER / f"{name}.parquet")) for name in ("train", "test")]
    user, item, value = parts[0].columns[:3]
    names = [f"CAST({name} AS int) AS {name}" for name in (user, item)]
    train, test = (part.selectExpr(*names, f"CAST({value} AS float) AS {value}") for part in parts)
    als = ALS(userCol=user, itemCol=item, ratingCol=value, rank=8, maxIter=3, seed=1)
    model = als.fit(train.repartition(2))
    return train, test, model


def to_polars(frame):
    return pl.from_arrow(frame.toArrow())


def test_als_model_is_evaluated_on_the_cluster(trained):
    train, test, model = trained
    metrics = "ndcg@10 recall@10 rr roc_auc ap@10"
    result = rs.evaluate(model, test, train=train, metrics=metrics)
    users, items = (to_polars(frame) for frame in (model.userFactors, model.itemFactors))
    local = rm.Factors(
        _matrix(users),
        _matrix(items),
        user_ids=users["id"].to_numpy(),
        item_ids=items["id"].to_numpy(),
    )
    expected = rm.evaluate(local, to_polars(test), train=to_polars(train), metrics=metrics)
    assert_same(result, expected)


def test_metrics_of_mllib_lists_match_mllib(trained, spark, request):
    _, test, model = trained
    lists = model.recommendForAllUsers(10)
    options = {"protocol": "pyspark", "metrics": METRICS}
    means = rs.evaluate(rs.Lists(lists, score=False), test, **options).mean()
    if "connect" in request.node.name:
        return  # RankingMetrics needs an RDD, which Spark Connect does not support
    from pyspark.mllib.evaluation import RankingMetrics

    user, item = test.columns[:2]
    truth = test.groupBy(user).agg({item: "collect_set"}).toDF(user, "truth")
    joined = lists.join(truth, user, "right")
    rows = joined.rdd.map(
        lambda row: (
            [recommendation[0] for recommendation in row["recommendations"] or []],
            list(row["truth"]),
        )
    )
    theirs = RankingMetrics(rows)
    expected = {
        "precisionAt@10": theirs.precisionAt(10),
        "meanAveragePrecision": theirs.meanAveragePrecision,
        "meanAveragePrecisionAt@10": theirs.meanAveragePrecisionAt(10),
        "ndcgAt@10": theirs.ndcgAt(10),
        "recallAt@10": theirs.recallAt(10),
    }
    assert means == pytest.approx(expected, rel=1e-12)


def _matrix(frame):
    return np.array(frame["features"].to_list(), np.float32)
