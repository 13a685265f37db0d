"""Spark and one machine give every user the same values, to the last bit."""

import warnings

import numpy as np
import polars as pl
import pytest
from spark_cases import (
    CUT,
    MARKS,
    WHOLE,
    assert_same,
    assert_same_interval,
    both_factors,
    data,
    schema_of,
)

import recometer as rm
import recometer.spark as rs
from recometer.errors import DataWarning, FileError, InputError
from recometer.results import means
from recometer.spark import block
from recometer.spark import result as spark_result

pytestmark = MARKS


@pytest.mark.parametrize(("ids", "dtype"), [(str, "float32"), (int, "float64")])
def test_factors_are_ranked_as_on_one_machine(table, ids, dtype):
    users, items, test, train, rng = data(ids=ids)
    some = slice(-4)  # the last four have no factors
    source, one = both_factors(table, rng, dtype, users, items, some)
    schema = schema_of(ids)
    given = {"metrics": WHOLE, "exclude": items[:2], "chance": True}
    result = rs.evaluate(source, table(test, schema), train=table(train, schema), **given)
    expected = rm.evaluate(one, pl.DataFrame(test), train=pl.DataFrame(train), **given)
    assert_same(result, expected)


def test_factors_are_sent_as_a_file_or_read_from_shared_storage(table, monkeypatch, tmp_path):
    monkeypatch.setattr(block, "IN_CALL", 0)  # pass all jobs as files, however small
    users, items, test, _, rng = data(seed=2)
    source, one = both_factors(table, rng, "float32", users, items)
    expected = rm.evaluate(one, pl.DataFrame(test), metrics="ndcg@5 roc_auc")
    for shared in (None, str(tmp_path)):
        tested = table(test, schema_of(str))
        result = rs.evaluate(source, tested, metrics="ndcg@5 roc_auc", shared=shared)
        assert_same(result, expected)
        assert len(list(tmp_path.iterdir())) == (shared is not None)
    with pytest.raises(FileError, match=r"could not be written to .* Hint: shared= names a folder"):
        rs.evaluate(source, tested, metrics="rr", shared=str(tmp_path / "none"))


@pytest.mark.parametrize("ids", [str, int])
def test_lists_are_read_as_on_one_machine(table, ids):
    users, items, test, train, rng = data(ids=ids)
    lists = {user: rng.permutation(len(items))[:12] for user in users[3:]}
    rows = {
        "user": [user for user, places in lists.items() for _ in places],
        "item": [items[place] for places in lists.values() for place in places],
        "score": rng.integers(0, 6, 12 * len(lists)).astype(float),
    }
    schema = schema_of(ids)
    given = {"metrics": f"{CUT} novelty@5", "catalogue": items}
    tables = table(test, schema), table(train, schema)
    frame = table(rows, schema.replace("value", "score"))
    result = rs.evaluate(rs.Lists(frame), tables[0], train=tables[1], **given)
    expected = rm.evaluate(
        rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), train=pl.DataFrame(train), **given
    )
    assert_same(result, expected)


def test_arrays_of_structs_are_lists_as_recommend_for_all_users_gives(table):
    users, items, test, _, rng = data(ids=int)
    lists = [[items[n] for n in rng.permutation(len(items))[:8]] for _ in users]
    lists[5] = []
    scores = [
        sorted(rng.integers(0, 5, len(one)).astype(float).tolist(), reverse=True) for one in lists
    ]
    cells = [list(zip(*both, strict=True)) for both in zip(lists, scores, strict=True)]
    schema = "user bigint, recommendations array<struct<item: int, rating: float>>"
    frame = table({"user": users, "recommendations": cells}, schema)
    metrics = "ndcg@5 recall@5 rr@8"
    result = rs.evaluate(rs.Lists(frame), table(test, schema_of(int)), metrics=metrics)
    one = rm.Lists(pl.DataFrame({"user": users, "item": lists, "score": scores}))
    assert_same(result, rm.evaluate(one, pl.DataFrame(test), metrics=metrics))
    # Arrays have no scores here, and the convention reads the order of their items.
    plain = table({"user": users, "item": lists}, "user bigint, item array<bigint>")
    given = {"protocol": "pyspark", "metrics": "precisionAt@3 meanAveragePrecisionAt@5 ndcgAt@5"}
    result = rs.evaluate(rs.Lists(plain), table(test, schema_of(int)), **given)
    one = rm.Lists(pl.DataFrame({"user": users, "item": lists}))
    assert_same(result, rm.evaluate(one, pl.DataFrame(test), **given))


def test_arrays_that_lack_an_item_are_refused(table):
    frame = table({"user": ["a"], "item": [["x", None]]}, "user string, item array<string>")
    test = table({"user": ["a"], "item": ["x"]}, "user string, item string")
    with pytest.raises(InputError, match="arrays in which the item is missing"):
        rs.evaluate(rs.Lists(frame), test, metrics="rr")


def test_pairs_are_ranked_as_on_one_machine(table):
    users, items, _, _, rng = data()
    draw = rng.random((len(users), len(items))) < 0.4
    user, item = np.nonzero(draw)
    rows = {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "relevance": rng.integers(0, 2, len(user)).astype(float),
        "score": rng.integers(0, 7, len(user)).astype(float),
    }
    frame = table(rows, "user string, item string, relevance double, score double")
    metrics = "ndcg@5 ap roc_auc precision@3"
    result = rs.Evaluator(metrics=metrics, partitions=2)(rs.Pairs(frame))
    assert_same(result, rm.evaluate(rm.Pairs(pl.DataFrame(rows)), metrics=metrics))


RULES = [
    {"protocol": "trec_eval", "metrics": "ndcg_cut_5 map recip_rank"},
    {"protocol": "recbole", "metrics": "Recall@5 MRR@5 NDCG@5 Hit@5"},
    {"protocol": "implicit", "metrics": "ndcg@5 precision@5 map@5 auc@5"},
    {"metrics": CUT, "ties": "random", "seed": 3},
    {"metrics": CUT, "users": "listed", "no_relevant": 0.0, "interval": "bootstrap"},
]


@pytest.mark.parametrize(
    "given", RULES, ids=lambda given: given.get("protocol", given.get("ties", "listed"))
)
def test_conventions_and_rules_match_a_single_machine(table, given):
    users, items, test, train, rng = data(seed=1)
    listed = rng.permutation(len(users))[:40]
    rows = {"user": [], "item": [], "score": []}
    for number in listed:
        for place in rng.permutation(len(items))[: rng.integers(1, 15)]:
            rows["user"].append(users[number])
            rows["item"].append(items[place])
            rows["score"].append(float(rng.integers(0, 5)))
    schema = schema_of(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        source = rs.Lists(table(rows, schema.replace("value", "score")))
        tables = table(test, schema), table(train, schema)
        result = rs.evaluate(source, tables[0], train=tables[1], catalogue=items, **given)
        expected = rm.evaluate(
            rm.Lists(pl.DataFrame(rows)),
            pl.DataFrame(test),
            train=pl.DataFrame(train),
            catalogue=items,
            **given,
        )
    assert_same(result, expected)


def test_errors_of_ratings_are_over_the_rows_of_all_users(table, monkeypatch):
    monkeypatch.setattr(means, "RESAMPLES", (8, 8))  # few, on Spark as on one machine
    users, items, _, _, rng = data(ids=int)
    user, item = np.nonzero(rng.random((len(users), len(items))) < 0.3)
    rows = {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "rating": rng.integers(1, 6, len(user)).astype(float),
        "prediction": rng.normal(3, 1, len(user)),
    }
    rows["prediction"][::3] = rows["rating"][::3]  # some predictions of different users are equal
    frame = table(rows, "user bigint, item bigint, rating double, prediction double")
    of_rows = "rmse mae mse r2 explained_variance fcp fcp(averaged=true) rated_roc_auc"
    given = {"metrics": f"{of_rows} ndcg@5 rated_precision@5"}
    result = rs.evaluate(rs.Pairs(frame, threshold=3.5), lists=True, **given)
    expected = rm.evaluate(rm.Pairs(pl.DataFrame(rows), threshold=3.5), **given)
    found = result.collect()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(found.values[name], values, err_msg=name)
    assert result.mean() == pytest.approx(expected.mean(), rel=1e-12)
    assert result.mean("users") == pytest.approx(expected.mean("users"), rel=1e-12)
    assert [row.counted for row in result.summary()] == [row.counted for row in expected.summary()]
    for name in of_rows.split():
        assert_same_interval(result.interval(name), expected.interval(name))
    # Sums over rows are equal to the last bit, since Spark adds up in the same order.
    assert dict(result.over_rows) == dict(expected.over_rows)
    with pytest.raises(InputError, match=r"'rmse' has one value for all users.*Hint: lists=True"):
        rs.evaluate(rs.Pairs(frame), metrics="rmse")


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_more_values_than_the_driver_takes_have_means_from_moments(table, monkeypatch):
    users, items, test, train, rng = data(seed=12)
    source, one = both_factors(table, rng, "float32", users, items)
    given = {"metrics": f"{WHOLE} coverage@5", "no_relevant": 0.0}
    tables = [table(columns, schema_of(str)) for columns in (test, train)]
    result = rs.evaluate(source, tables[0], train=tables[1], **given)
    monkeypatch.setattr(spark_result, "LIMIT", 10)
    frames = [pl.DataFrame(columns) for columns in (test, train)]
    expected = rm.evaluate(one, frames[0], train=frames[1], **given)
    with pytest.raises(InputError, match=r"values \(57 users\) take .* on the driver, more than"):
        result.collect(10)
    assert result.mean() == pytest.approx(expected.mean(), rel=1e-12)
    for row, other in zip(result.moments(), expected.summary(interval="t"), strict=True):
        assert (row.metric, row.counted, row.skipped) == (
            other.metric, other.counted, other.skipped,
        )  # fmt: skip
        if row.metric != "coverage@5":
            width = other.high - other.low  # Student's interval is wider for 58 users
            assert [row.low, row.high] == pytest.approx([other.low, other.high], abs=0.05 * width)
    assert "normal interval" in str(result)
    assert result.collect(10**6).mean() == pytest.approx(expected.mean(), rel=1e-12)
