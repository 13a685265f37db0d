"""Users are read until enough is known: on Spark the same ones, in the same order."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS, assert_same, both_factors, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError, InputTypeError, RecometerError
from recometer.spark import _until

pytestmark = MARKS

FEW = "rr ndcg@5 recall@5 err@10"
classic = pytest.mark.parametrize("spark", ["classic"], indirect=True)


@pytest.fixture(autouse=True)
def shares(monkeypatch):
    """Let shares be small, so that there are several."""
    monkeypatch.setattr(_until, "LEAST", 20)


def assert_read_alike(result, expected):
    """Check that the same users were read, and that the same follows."""
    read, other = result.users_read, expected.users_read
    for name in ("until", "n_read", "n_users", "reached", "sentence"):
        assert getattr(read, name) == getattr(other, name)
    assert list(read.intervals) == list(other.intervals)
    for name, interval in other.intervals.items():
        found = read.intervals[name]
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
        assert (found.method, found.n, found.note) == (interval.method, interval.n, interval.note)
    assert_same(result, expected)
    assert other.sentence in " ".join(str(result).split())


def test_users_are_read_in_the_order_of_one_machine(table):
    users, items, test, train, rng = data(seed=13)
    source, one = both_factors(table, rng, "float32", users, items)
    schema = schema_of(str)
    given = {"metrics": FEW, "until": rm.Until("rr ± 0.1", first=8)}
    expected = rm.evaluate(one, pl.DataFrame(test), train=pl.DataFrame(train), **given)
    assert expected.users_read.reached
    result = rs.evaluate(source, table(test, schema), train=table(train, schema), **given)
    assert_read_alike(result, expected)
    assert result.collect().users_read == result.users_read
    with pytest.raises(InputError, match="Users were read until enough was known"):
        result.summary(interval="t")


@classic
def test_a_baseline_is_read_beside_the_users_who_are_read(table):
    users, items, test, train, rng = data(seed=13)
    source, one = both_factors(table, rng, "float32", users, items)
    other, another = both_factors(table, rng, "float32", users, items)
    given = {"metrics": "rr overlap@5", "until": rm.Until("rr ± 0.1", first=8)}
    expected = rm.evaluate(
        one, pl.DataFrame(test), train=pl.DataFrame(train), baseline=another, **given
    )
    tables = table(test, schema_of(str)), table(train, schema_of(str))
    result = rs.evaluate(source, tables[0], train=tables[1], baseline=other, **given)
    assert_read_alike(result, expected)


@classic
def test_all_users_are_read_where_it_takes_them_also_in_blocks(table, monkeypatch):
    monkeypatch.setattr(_until, "LEAST", 10_000)
    monkeypatch.setattr(_until, "BYTES_PER_VALUE", 1)  # so that values are within the closure
    users, items, test, _, rng = data(seed=13, ids=int)
    source, one = both_factors(table, rng, "float32", users, items)
    given = {"metrics": "rr ndcg@5", "until": rm.Until("rr ± 0.02", first=8)}
    expected = rm.evaluate(one, pl.DataFrame(test), **given)
    assert expected.users_read.n_read == expected.users_read.n_users
    held_out = table(test, schema_of(int))
    assert_read_alike(rs.evaluate(source, held_out, closure=400, partitions=1, **given), expected)


@classic
def test_users_with_a_list_alone_are_read_where_they_count(table):
    users, items, test, train, rng = data(seed=14)
    test = {name: column[:150] for name, column in test.items()}
    lists = [[items[n] for n in rng.permutation(len(items))[:6]] for _ in users]
    rows = {"user": users, "item": lists}
    frame = table(rows, "user string, item array<string>")
    given = {"metrics": "hit@5 popularity@5", "users": "listed", "no_relevant": 0.0, "seed": 3}
    given["until"] = rm.Until("hit@5 ± 50%", first=5)
    schema = schema_of(str)
    result = rs.evaluate(rs.Lists(frame), table(test, schema), train=table(train, schema), **given)
    expected = rm.evaluate(
        rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), train=pl.DataFrame(train), **given
    )
    assert expected.users_read.n_users == len(users)
    # On Spark, lists of users who are not read are not looked at.
    counts = {name: n for name, n in expected.counts.items() if name != "list_users_ignored"}
    assert_read_alike(result, dataclasses.replace(expected, counts=counts))


@classic
def test_users_of_pairs_are_read(table):
    users, items, _, _, rng = data(ids=int)
    user, item = np.nonzero(rng.random((len(users), len(items))) < 0.4)
    rows = {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "relevance": rng.integers(0, 2, len(user)).astype(float),
        "score": rng.integers(0, 7, len(user)).astype(float),
    }
    frame = table(rows, "user bigint, item bigint, relevance double, score double")
    given = {"metrics": "ndcg@5 roc_auc", "until": rm.Until("roc_auc ± 0.1", first=8), "seed": 2}
    expected = rm.evaluate(rm.Pairs(pl.DataFrame(rows)), **given)
    assert expected.users_read.reached
    result = rs.evaluate(rs.Pairs(frame), **given)
    assert_read_alike(result, expected)
    with pytest.raises(InputError, match="was evaluated until enough was known of it"):
        rs.compare({"one": result, "other": result})
    with pytest.raises(InputError, match=r"the driver, which takes more than closure="):
        rs.evaluate(rs.Pairs(frame), closure=100, **given)


@classic
def test_questions_that_cannot_be_followed_are_refused_as_on_one_machine(table):
    users, items, test, _, rng = data(seed=15)
    lists = [[items[n] for n in rng.permutation(len(items))[:6]] for _ in users]
    rows = {"user": users, "item": lists}
    source = rs.Lists(table(rows, "user string, item array<string>"))
    both = {"user": ["user", "session"], "item": "item", "value": "value"}
    one, here, there = rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), table(test, schema_of(str))
    sessions = (
        rm.Interactions.of(here.with_columns(session=pl.col("item")), **both),
        rs.Interactions(there.selectExpr("*", "item AS session"), **both),
    )
    near = {"metrics": "ndcg@5 recall@5", "until": "ndcg@5 ± 0.1"}
    for held_out, given, words in (
        ((here, there), {"until": "decided"}, "is a question about several models"),
        ((here, there), {"until": "ndcg@5 ± 0"}, "is not a number above 0"),
        ((here, there), {"until": "rr ± 0.1"}, "rr is not among the metrics"),
        ((here, there), {"metrics": "ndcg@5 coverage@5"}, "coverage@5"),
        ((here, there), {"duplicates": "counted"}, "may lie beyond its range"),
        ((here, there), {"relevant_from": 9}, "there is nobody to read"),
        (sessions, {}, "test has sessions of users"),
    ):
        with pytest.raises(RecometerError, match=words) as expected:
            rm.evaluate(one, held_out[0], **{**near, **given})
        with pytest.raises(RecometerError) as refused:
            rs.evaluate(source, held_out[1], **{**near, **given})
        assert str(refused.value) == str(expected.value)


@classic
def test_models_are_told_apart_by_the_users_that_one_machine_reads(table):
    users, items, test, train, rng = data(seed=17, ids=int)
    good, rows = {}, {"user": users, "item": [], "other": []}
    for user, item in zip(test["user"], test["item"], strict=True):
        good.setdefault(user, []).append(item)
    for user in users:
        drawn = [items[n] for n in rng.permutation(len(items))[:6]]
        rows["item"].append([*dict.fromkeys([*good.get(user, [])[:2], *drawn])][:6])
        rows["other"].append(drawn)
    frame = table(rows, "user bigint, item array<bigint>, other array<bigint>")
    here, schema = pl.DataFrame(rows), schema_of(int)
    given = {"until": rm.Until("decided", first=6), "baseline": "drawn", "primary": "ndcg@5"}
    stated = {"metrics": "ndcg@5 hit@3", "seed": 4}
    expected = rm.compare(
        {"good": rm.Lists(here, item="item"), "drawn": rm.Lists(here, item="other")},
        evaluator=rm.Evaluator(pl.DataFrame(test), train=pl.DataFrame(train), **stated),
        **given,
    )
    evaluator = rs.Evaluator(table(test, schema), train=table(train, schema), **stated)
    sources = {"good": rs.Lists(frame, item="item"), "drawn": rs.Lists(frame, item="other")}
    found = rs.compare(sources, evaluator=evaluator, **given)
    read = expected.options.sequences.read
    assert read.reached
    assert found.options.sequences.read == read
    assert str(found.table()) == str(expected.table())
    with pytest.raises(InputError, match=r"needs at least two models\. Hint: compare\("):
        rs.compare({"good": sources["good"]}, evaluator=evaluator, until="decided")
    with pytest.raises(InputTypeError, match=r"expected an Evaluator of recometer\.spark"):
        rs.compare(sources, evaluator=rm.Evaluator(pl.DataFrame(test)))
