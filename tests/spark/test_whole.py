"""Spark computes metrics over all users from sums per item, with the same values as one machine."""

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS, both_factors, data, schema_of
from spark_comparisons import assert_same_rows

import recometer as rm
import recometer.spark as rs
from recometer.errors import DataWarning, InputError
from recometer.results import means

pytestmark = MARKS

OF_LISTS = (
    "ndcg@5 coverage@1 coverage@5 coverage@5(users=relevant) coverage@5(numerator=trained) "
    "coverage@5(denominator=train) coverage@5(denominator=padded) coverage@5(denominator=one) "
    "user_coverage@5 user_coverage@10(least=any) gini@5 gini@5(patience=0.8) "
    "gini@5(support=listed) gini@5(support=padded,divisor=others,complement=true) entropy@5 "
    "entropy@5(unit=nats) entropy@5(divisor=largest) personalization@5 "
    "personalization@10(overlap=cosine) personalization@10(overlap=matrix) "
    "novelty@5(divisor=rows) popularity@5(divisor=rows) "
    "novelty@5(divisor=rows,unseen=dropped)"
)


FEW_RESAMPLES = (8, 8)  # the minimum and maximum number; a few suffice to compare results


def assert_same_whole(result, expected):
    means, expected_means = result.mean(), expected.mean()
    assert means.keys() == expected_means.keys()
    assert means == pytest.approx(expected_means, abs=1e-12, rel=1e-12, nan_ok=True)
    for name in expected_means:
        assert result.skipped(name) == expected.skipped(name)
    collected = result.collect()
    assert collected.over_users == pytest.approx(expected.over_users, abs=1e-12, nan_ok=True)
    assert list(collected.values) == list(expected.values)
    assert collected.mean() == pytest.approx(expected_means, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("ids", [str, int])
@pytest.mark.parametrize("together", [False, True], ids=["by item", "lists"])
def test_lists_of_several_partitions_give_the_same_values_as_on_one_machine(
    table, ids, together, monkeypatch
):
    monkeypatch.setattr(means, "RESAMPLES", FEW_RESAMPLES)
    users, items, test, train, rng = data(ids=ids)
    lists = {user: rng.permutation(len(items))[: rng.integers(0, 12)] for user in users[3:]}
    rows = {
        "user": [user for user, places in lists.items() for _ in places],
        "item": [items[place] for places in lists.values() for place in places],
        "rank": [float(n) for places in lists.values() for n in range(len(places))],
    }
    schema = schema_of(ids)
    tables = table(test, schema), table(train, schema)
    frame = table(rows, schema.replace("value", "rank"))
    options = {"metrics": OF_LISTS, "catalogue": items, "users": "test"}
    transport = {"lists": True} if together else {"partitions": 5}
    local = rm.Lists(pl.DataFrame(rows))
    expected = rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
    result = rs.evaluate(rs.Lists(frame), tables[0], train=tables[1], **transport, **options)
    assert_same_whole(result, expected)
    assert "coverage@5" not in result.per_user().columns
    assert "ndcg@5" in result.per_user().columns
    assert "coverage@5" not in result.mean("users")
    if not together:
        row = next(
            summary_row for summary_row in result.summary() if summary_row.metric == "coverage@5"
        )
        assert np.isnan(row.low)
        assert "Hint: rs.evaluate(..., lists=True)" in row.note
    if together and ids is int:
        for row, expected_row in zip(result.summary(), expected.summary(), strict=True):
            assert (row.metric, row.counted, row.method) == (
                expected_row.metric, expected_row.counted, expected_row.method,
            )  # fmt: skip
            ends = pytest.approx(
                [expected_row.low, expected_row.high], rel=1e-9, abs=1e-12, nan_ok=True
            )
            assert [row.low, row.high] == ends, row.metric
    result.unpersist()


def test_items_missing_from_the_catalogue_give_the_same_values_as_on_one_machine(table):
    users, items, test, _, rng = data(ids=str)
    rows = {
        "user": [user for user in users for _ in range(6)],
        "item": [items[place] for _ in users for place in rng.permutation(len(items))[:6]],
        "rank": [float(n) for _ in users for n in range(6)],
    }
    schema = schema_of(str)
    options = {"metrics": f"{OFFERED} unknown_items@5", "catalogue": items[:-9], "users": "test"}
    expected = rm.evaluate(rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), **options)
    source = rs.Lists(table(rows, schema.replace("value", "rank")))
    result = rs.evaluate(source, table(test, schema), partitions=5, **options)
    assert_same_whole(result, expected)
    name = "list_items_uncatalogued"
    assert result.counts[name] == expected.counts[name] > len(users)


def test_factors_give_the_same_values_on_spark_as_on_one_machine_under_other_rules(table):
    users, items, test, train, rng = data(ids=int)
    source, local = both_factors(table, rng, "float32", users, items, slice(-4))
    schema = schema_of(int)
    for rules in ({}, {"users": "known"}, {"percent": True, "decimals": 3}):
        options = {"metrics": "coverage@3 gini@3 user_coverage@3 personalization@3", **rules}
        result = rs.evaluate(source, table(test, schema), train=table(train, schema), **options)
        expected = rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
        assert_same_whole(result, expected)


OFFERED = "coverage@3 coverage@3(denominator=padded) gini@3 entropy@3(divisor=largest) ndcg@5"


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("source", ["factors", "lists", "pairs"])
def test_all_candidates_of_users_are_counted_once(table, source):
    users, items, test, _, rng = data(ids=int)
    is_candidate = rng.random((len(users), len(items) + 2)) < 0.3
    is_candidate[:-4] = False  # two of the six partitions have no candidates
    user, item = np.nonzero(is_candidate)
    item_ids = [*items, 9_001, 9_002]  # the source does not know the last two items
    sets = {"user": [users[n] for n in user], "item": [item_ids[n] for n in item]}
    scored = {
        "user": np.repeat(users, 12),
        "item": np.concatenate([rng.permutation(items)[:12] for _ in users]),
        "score": rng.integers(0, 9, 12 * len(users)).astype(float),
    }
    frame = table(scored, "user bigint, item bigint, score double")
    stored_sources = {
        "lists": (rs.Lists(frame), rm.Lists(pl.DataFrame(scored))),
        "pairs": (rs.Pairs(frame), rm.Pairs(pl.DataFrame(scored))),
    }
    on_spark, local = stored_sources.get(source) or both_factors(
        table, rng, "float32", users, items
    )
    options = {"metrics": OFFERED, "exclude": items[:2], "catalogue": items}
    schema = schema_of(int)
    if source != "lists":
        options.pop("catalogue")
    tables = table(test, schema), table(sets, "user bigint, item bigint")
    expected = rm.evaluate(local, pl.DataFrame(test), candidates=pl.DataFrame(sets), **options)
    with_candidates = {**options, "candidates": tables[1]}
    assert_same_whole(rs.evaluate(on_spark, tables[0], lists=True, **with_candidates), expected)
    with pytest.raises(InputError, match="Hint: lists=True evaluates all users together"):
        rs.evaluate(on_spark, tables[0], partitions=6, **with_candidates)
    if source == "pairs":
        options["candidates"] = items[3:20]
        expected = rm.evaluate(local, pl.DataFrame(test), **options)
        assert_same_whole(rs.evaluate(on_spark, tables[0], lists=True, **options), expected)
    if source == "factors":
        options["candidates"] = rm.SampledCandidates(5)
        expected = rm.evaluate(local, pl.DataFrame(test), **options)
        assert_same_whole(rs.evaluate(on_spark, tables[0], **options), expected)


@pytest.mark.parametrize("spark", ["connect"], indirect=True)
def test_single_values_are_compared_over_resampled_users(table, monkeypatch):
    monkeypatch.setattr(means, "RESAMPLES", FEW_RESAMPLES)
    users, items, test, _, rng = data()
    schema, results, expected = schema_of(str), {}, {}
    tests = table(test, schema)
    options = {"metrics": "ndcg@5 coverage@5 personalization@5", "catalogue": items}
    options["users"] = "listed"
    together = {**options, "lists": True}
    for name, listed_users in (("a", users[:50]), ("b", users[6:])):  # different users
        rows = {
            "user": np.repeat(listed_users, 6),
            "item": np.concatenate([rng.permutation(items)[:6] for _ in listed_users]),
            "rank": np.tile(np.arange(6.0), len(listed_users)),
        }
        frame = table(rows, schema.replace("value", "rank"))
        results[name] = rs.evaluate(rs.Lists(frame), tests, **together)
        expected[name] = rm.evaluate(rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), **options)
    clusters = [f"c{n % 11}" for n in range(len(users))]
    frame = table({"user": users, "c": clusters}, "user string, c string")
    groups = pl.DataFrame({"user": users, "c": clusters})
    with pytest.warns(DataWarning, match="Users with a value from only one"):
        comparison = rs.compare(results, seed=2, cluster=frame)
    with pytest.warns(DataWarning, match="Users with a value from only one"):
        local_comparison = rm.compare(expected, seed=2, cluster=groups)
    assert_same_rows(comparison, local_comparison)
    comparison = rs.compare(results, metrics="coverage@5", confidence=0.9)
    assert_same_rows(comparison, rm.compare(expected, metrics="coverage@5", confidence=0.9))
