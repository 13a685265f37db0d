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
    known_users = slice(-4)  # the last four users have no factors
    source, local = both_factors(table, rng, dtype, users, items, known_users)
    schema = schema_of(ids)
    options = {"metrics": WHOLE, "exclude": items[:2], "chance": True}
    result = rs.evaluate(source, table(test, schema), train=table(train, schema), **options)
    expected = rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
    assert_same(result, expected)


def test_factors_are_sent_as_a_file_or_read_from_shared_storage(table, monkeypatch, tmp_path):
    monkeypatch.setattr(block, "IN_CALL", 0)  # send even small jobs as files
    users, items, test, _, rng = data(seed=2)
    source, local = both_factors(table, rng, "float32", users, items)
    expected = rm.evaluate(local, pl.DataFrame(test), metrics="ndcg@5 roc_auc")
    for shared in (None, str(tmp_path)):
        test_frame = table(test, schema_of(str))
        result = rs.evaluate(source, test_frame, metrics="ndcg@5 roc_auc", shared=shared)
        assert_same(result, expected)
        assert len(list(tmp_path.iterdir())) == (shared is not None)
    with pytest.raises(
        FileError, match=r"could not be written to .* Hint: shared= must name a folder"
    ):
        rs.evaluate(source, test_frame, metrics="rr", shared=str(tmp_path / "none"))


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
    options = {"metrics": f"{CUT} novelty@5", "catalogue": items}
    tables = table(test, schema), table(train, schema)
    frame = table(rows, schema.replace("value", "score"))
    result = rs.evaluate(rs.Lists(frame), tables[0], train=tables[1], **options)
    expected = rm.evaluate(
        rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), train=pl.DataFrame(train), **options
    )
    assert_same(result, expected)


def test_arrays_of_structs_are_read_as_lists(table):
    users, items, test, _, rng = data(ids=int)
    lists = [[items[n] for n in rng.permutation(len(items))[:8]] for _ in users]
    lists[5] = []
    scores = [
        sorted(rng.integers(0, 5, len(items_of_user)).astype(float).tolist(), reverse=True)
        for items_of_user in lists
    ]
    cells = [
        list(zip(*items_and_ratings, strict=True))
        for items_and_ratings in zip(lists, scores, strict=True)
    ]
    schema = "user bigint, recommendations array<struct<item: int, rating: float>>"
    frame = table({"user": users, "recommendations": cells}, schema)
    metrics = "ndcg@5 recall@5 rr@8"
    result = rs.evaluate(rs.Lists(frame), table(test, schema_of(int)), metrics=metrics)
    local = rm.Lists(pl.DataFrame({"user": users, "item": lists, "score": scores}))
    assert_same(result, rm.evaluate(local, pl.DataFrame(test), metrics=metrics))
    # These arrays contain no scores, so the convention ranks items by their order in the array.
    plain = table({"user": users, "item": lists}, "user bigint, item array<bigint>")
    options = {"protocol": "pyspark", "metrics": "precisionAt@3 meanAveragePrecisionAt@5 ndcgAt@5"}
    result = rs.evaluate(rs.Lists(plain), table(test, schema_of(int)), **options)
    local = rm.Lists(pl.DataFrame({"user": users, "item": lists}))
    assert_same(result, rm.evaluate(local, pl.DataFrame(test), **options))


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
    {"metrics": CUT, "users": "listed", "no_relevant": 0.0, "interval": "bca"},
]


@pytest.mark.parametrize(
    "options", RULES, ids=lambda options: options.get("protocol", options.get("ties", "listed"))
)
def test_conventions_and_rules_match_a_single_machine(table, options):
    users, items, test, train, rng = data(seed=1)
    listed_users = rng.permutation(len(users))[:40]
    rows = {"user": [], "item": [], "score": []}
    for number in listed_users:
        for place in rng.permutation(len(items))[: rng.integers(1, 15)]:
            rows["user"].append(users[number])
            rows["item"].append(items[place])
            rows["score"].append(float(rng.integers(0, 5)))
    schema = schema_of(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        source = rs.Lists(table(rows, schema.replace("value", "score")))
        tables = table(test, schema), table(train, schema)
        result = rs.evaluate(source, tables[0], train=tables[1], catalogue=items, **options)
        expected = rm.evaluate(
            rm.Lists(pl.DataFrame(rows)),
            pl.DataFrame(test),
            train=pl.DataFrame(train),
            catalogue=items,
            **options,
        )
    assert_same(result, expected)


def test_rating_errors_are_computed_over_the_rows_of_all_users(table, monkeypatch):
    monkeypatch.setattr(means, "RESAMPLES", (8, 8))  # fewer resamples save time
    users, items, _, _, rng = data(ids=int)
    user, item = np.nonzero(rng.random((len(users), len(items))) < 0.3)
    rows = {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "rating": rng.integers(1, 6, len(user)).astype(float),
        "prediction": rng.normal(3, 1, len(user)),
    }
    rows["prediction"][::3] = rows["rating"][::3]  # different users get equal predictions
    frame = table(rows, "user bigint, item bigint, rating double, prediction double")
    of_rows = "rmse mae mse r2 explained_variance fcp fcp(averaged=true) rated_roc_auc"
    options = {"metrics": f"{of_rows} ndcg@5 rated_precision@5"}
    result = rs.evaluate(rs.Pairs(frame, threshold=3.5), lists=True, **options)
    expected = rm.evaluate(rm.Pairs(pl.DataFrame(rows), threshold=3.5), **options)
    collected = result.collect()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(collected.values[name], values, err_msg=name)
    assert result.mean() == pytest.approx(expected.mean(), rel=1e-12)
    assert result.mean("users") == pytest.approx(expected.mean("users"), rel=1e-12)
    assert [row.counted for row in result.summary()] == [row.counted for row in expected.summary()]
    for name in of_rows.split():
        assert_same_interval(result.interval(name), expected.interval(name))
    # Spark adds up the rows in the same order, so the sums are equal to the last bit.
    assert dict(result.over_rows) == dict(expected.over_rows)
    with pytest.raises(InputError, match=r"'rmse' has one value for all users.*Hint: lists=True"):
        rs.evaluate(rs.Pairs(frame), metrics="rmse")


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_means_are_computed_from_moments_if_the_driver_cannot_hold_all_values(table, monkeypatch):
    users, items, test, train, rng = data(seed=12)
    source, local = both_factors(table, rng, "float32", users, items)
    options = {"metrics": f"{WHOLE} coverage@5", "no_relevant": 0.0}
    tables = [table(columns, schema_of(str)) for columns in (test, train)]
    result = rs.evaluate(source, tables[0], train=tables[1], **options)
    monkeypatch.setattr(spark_result, "LIMIT", 10)
    frames = [pl.DataFrame(columns) for columns in (test, train)]
    expected = rm.evaluate(local, frames[0], train=frames[1], **options, interval="t")
    with pytest.raises(InputError, match=r"values \(57 users\) take .* on the driver, more than"):
        result.collect(10)
    assert result.mean() == pytest.approx(expected.mean(), rel=1e-12)
    for row, expected_row in zip(result.moments(), expected.summary(), strict=True):
        assert (row.metric, row.counted, row.skipped) == (
            expected_row.metric, expected_row.counted, expected_row.skipped,
        )  # fmt: skip
        if row.metric != "coverage@5":
            # With 58 users, Student's interval is a little wider than the normal interval.
            width = expected_row.high - expected_row.low
            assert [row.low, row.high] == pytest.approx(
                [expected_row.low, expected_row.high], abs=0.05 * width
            )
    assert "normal interval" in str(result)
    assert result.collect(10**6).mean() == pytest.approx(expected.mean(), rel=1e-12)
