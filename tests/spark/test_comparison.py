"""`rs.compare` gives the same results as `rm.compare`."""

import dataclasses

import polars as pl
import pytest
from spark_cases import MARKS, data, schema_of
from spark_comparisons import assert_same_rows, frame_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:Users that only one")]

NAMES = ("first", "second", "third")
GIVEN = {"metrics": "ndcg@5 rr@20 novelty@5 err@5", "chance": True}


@pytest.fixture(scope="module")
def models(spark):
    """Evaluate three models on Spark and on one machine; also return the users."""
    users, items, test, train, rng = data(seed=6)
    schema = schema_of(str)
    tables = [frame_of(spark, columns, schema) for columns in (test, train)]
    results, expected = {}, {}
    for name in NAMES:
        rows = {
            "user": [user for user in users for _ in items],
            "item": items * len(users),
            "score": rng.integers(0, 8, len(users) * len(items)).astype(float),
        }
        lists = rs.Lists(frame_of(spark, rows, schema.replace("value", "score")))
        results[name] = rs.evaluate(lists, tables[0], train=tables[1], catalogue=items, **GIVEN)
        local, trained = rm.Lists(pl.DataFrame(rows)), pl.DataFrame(train)
        expected[name] = rm.evaluate(
            local, pl.DataFrame(test), train=trained, catalogue=items, **GIVEN
        )
    return results, expected, users


VARIANTS = {
    "primary": {"baseline": "second", "primary": ["ndcg@5"]},
    "by the name asked for": {"metrics": "err@5", "primary": "err@5", "margin": {"err@5": 0.1}},
    "wilcoxon": {"test": "wilcoxon", "metrics": "ndcg@5"},
    "t": {"test": "t", "margin": 0.05, "correction": "bonferroni"},
    "tukey": {"correction": "tukey", "metrics": "ndcg@5 novelty@5", "seed": 3},
    "chance": {"chance": True, "margin": {"ndcg@5": 0.2}, "metrics": "ndcg@5 novelty@5"},
    "against chance": {"chance": True, "baseline": "chance"},
}


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("variant", VARIANTS)
def test_models_are_compared_as_on_one_machine(models, variant):
    results, expected, _ = models
    options = VARIANTS[variant]
    comparison = rs.compare(results, **options)
    assert_same_rows(comparison, rm.compare(expected, **options))
    assert "adjusted" in str(comparison)


SEEDS = {"seeds": ["first", "second"], "third": "third"}
RUNS = ("mean", "p_value", "n_users", "deviation_users", "share_of_runs", "deviation_runs")


def test_seeds_of_a_model_are_compared_as_on_one_machine(models):
    options = {"margin": 0.1, "chance": True, "baseline": "third", "metrics": "ndcg@5 novelty@5"}
    results, expected, _ = models
    comparison = rs.compare(results_of_models(SEEDS, results), **options)
    local_comparison = rm.compare(results_of_models(SEEDS, expected), **options)
    assert_same_rows(comparison, local_comparison)
    for row, expected_row in zip(comparison.rows, local_comparison.rows, strict=True):
        for name in RUNS if row.runs is not None else ():
            value = getattr(expected_row.runs, name)
            assert getattr(row.runs, name) == pytest.approx(value, nan_ok=True), name
        assert (row.runs is None) == (expected_row.runs is None)


def results_of_models(names, results):
    return {
        model: [results[index] for index in name_or_names]
        if isinstance(name_or_names, list)
        else results[name_or_names]
        for model, name_or_names in names.items()
    }


def test_clusters_of_users_are_drawn_together(models, spark):
    results, expected, users = models
    clusters = [f"c{number % 7 if number > 20 else number}" for number in range(len(users))]
    frame = spark.createDataFrame(list(zip(users, clusters, strict=True)), "user string, c string")
    groups = pl.DataFrame({"user": users, "c": clusters})
    for options in ({"metrics": "ndcg@5"}, {"metrics": "rr@20", "test": "wilcoxon", "margin": 0.1}):
        comparison = rs.compare(results, cluster=frame, **options)
        assert_same_rows(comparison, rm.compare(expected, cluster=groups, **options))
    with pytest.raises(InputError, match="1 of 58 users have no cluster, for instance 'u5'"):
        rs.compare(results, cluster=frame.where("user != 'u5'"))
    with pytest.raises(InputError, match="seeds has several seeds: the variance between seeds"):
        rs.compare(results_of_models(SEEDS, results), cluster=frame)
    with pytest.raises(rm.ColumnError, match=r"the user column .*, the columns are: none"):
        rs.compare(results, cluster=frame.select("user"))


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_models_with_different_rules_are_compared_if_allowed(models):
    results, expected = (with_other_rules(evaluations) for evaluations in models[:2])
    names = {"first": "first", "changed": "changed"}
    with pytest.raises(InputError, match="first and changed were evaluated under different rules"):
        rs.compare(results_of_models(names, results))
    options = {"allow": "undefined", "metrics": "ndcg@5"}
    comparison = rs.compare(results_of_models(names, results), **options)
    assert_same_rows(comparison, rm.compare(results_of_models(names, expected), **options))
    assert "Allowed: first and changed" in str(comparison)
    with pytest.raises(InputError, match=r"both \(run 1\) and both \(run 2\) were evaluated under"):
        rs.compare({"both": [results["first"], results["changed"]], "second": results["second"]})


def with_other_rules(results):
    second = results["second"]
    rules = second.protocol.replace(undefined=0)
    return {**results, "changed": dataclasses.replace(second, protocol=rules)}


def test_results_from_one_machine_are_refused(models):
    results, expected, _ = models
    with pytest.raises(rm.InputTypeError, match="'b' is of type int"):
        rs.compare({"a": results["first"], "b": 3})
    mixed = {"a": results["first"], "b": expected["second"]}  # "b" was evaluated on one machine
    comparison = rs.compare(mixed, metrics="ndcg@5", allow="test train")
    assert comparison.rows[0].difference == rs.compare(results, metrics="ndcg@5").rows[0].difference
    with pytest.raises(InputError, match="Two models are called '1'"):
        rs.compare({1: results["first"], "1": results["second"]})
    with pytest.raises(rm.UnknownNameError, match="has no metric 'hit@5'"):
        rs.compare(results, metrics="hit@5")


@pytest.mark.filterwarnings("ignore:.*unknown to the model")
@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_verdict_mentions_users_unknown_to_a_model(spark):
    users, items, test, train, _ = data(seed=6)
    schema = schema_of(str)
    tables = [frame_of(spark, columns, schema) for columns in (test, train)]
    tested_users = sorted(set(test["user"]))
    results, expected = {}, {}
    for name, known_users in (("all", users), ("few", tested_users[: len(tested_users) // 2])):
        rows = {
            "user": [user for user in known_users for _ in items],
            "item": items * len(known_users),
            "score": [float(position) for _ in known_users for position in range(len(items))],
        }
        options = {"metrics": "ndcg@5 rr@20"}
        lists = rs.Lists(frame_of(spark, rows, schema.replace("value", "score")))
        results[name] = rs.evaluate(lists, tables[0], train=tables[1], **options)
        local, trained = rm.Lists(pl.DataFrame(rows)), pl.DataFrame(train)
        expected[name] = rm.evaluate(local, pl.DataFrame(test), train=trained, **options)
    comparison = rs.compare(results, primary="ndcg@5")
    assert "unknown to few; none to all." in " ".join(str(comparison).split())
    assert_same_rows(comparison, rm.compare(expected, primary="ndcg@5"))
