"""Tests of metrics restricted to groups of items (``recall@10[new]``, `by_items`)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from command_line import run_command
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from results import assert_same

import recometer as rm
from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.metrics import METRICS, Metric, parse

GROUPED = sorted(name for name, definition in METRICS.items() if definition.takes_group)
RANKED = [name for name in GROUPED if METRICS[name].record == "ranks"]
TIES = ["expected", "item", "optimistic", "pessimistic", "random"]
N_USERS, N_ITEMS = 12, 15
USERS = [f"u{number:02}" for number in range(N_USERS)]
ITEMS = [f"i{number:02}" for number in range(N_ITEMS)]
GROUP = {item: ("new" if number % 3 else "old") for number, item in enumerate(ITEMS[:-2])}


def interactions(table):
    return rm.Interactions.of(table, user_ids=USERS, item_ids=ITEMS)


def source_of(kind, scores):
    if kind == "scores":
        return rm.Scores(scores, user_ids=USERS, item_ids=ITEMS)
    if kind == "factors":
        item_factors = np.eye(N_ITEMS, dtype=np.float32)
        return rm.Factors(scores.astype(np.float32), item_factors, user_ids=USERS, item_ids=ITEMS)
    if kind == "lists":
        order = np.argsort(-scores, axis=1, kind="stable")[:, :6]
        return rm.Lists(
            {user: [ITEMS[i] for i in row] for user, row in zip(USERS, order, strict=True)}
        )
    user, item = np.nonzero(np.ones_like(scores))
    columns = {"user": np.array(USERS)[user], "item": np.array(ITEMS)[item]}
    return pl.DataFrame({**columns, "score": scores[user, item]})


@examples(3)
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["scores", "factors", "lists", "pairs"]),
    name=st.sampled_from(RANKED),
    cutoff=st.integers(1, 8),
    ties=st.sampled_from(TIES),
    seen=st.sampled_from(["removed", "kept"]),
)
def test_values_of_a_group_equal_those_on_its_items_alone(seed, kind, name, cutoff, ties, seen):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (N_USERS, N_ITEMS)).astype(float)
    test = rng.integers(0, 4, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.4)
    train = interactions((rng.random((N_USERS, N_ITEMS)) < 0.2).astype(float))
    in_group = np.array([GROUP.get(item) == "new" for item in ITEMS])
    rules = {"ties": ties, "seen": seen, "train": train, "seed": 3}
    # Skip random ties with pairs: in pairs, the items outside the group are judged, with a label of
    # 0, and the random order of ties depends on which items are judged.
    assume((test * in_group).any() and (kind, ties) != ("pairs", "random"))

    def evaluate(truth, metric, **further_options):
        source = source_of(kind, scores)
        if kind == "pairs":
            value = pl.Series(truth.reshape(-1))
            source = rm.Pairs(source.with_columns(relevance=value))
            del further_options["train"]
            return rm.evaluate(source, metrics=metric, **further_options)
        return rm.evaluate(
            source, interactions(truth.astype(float)), metrics=metric, **further_options
        )

    catalogue = rm.Catalogue.of_groups(GROUP)
    restricted = evaluate(test, f"{name}@{cutoff}[new]", catalogue=catalogue, **rules)
    evaluated_on_group = evaluate(test * in_group, f"{name}@{cutoff}", **rules)
    column = dict(
        zip(
            evaluated_on_group.user_ids.tolist(),
            evaluated_on_group[f"{name}@{cutoff}"].tolist(),
            strict=True,
        )
    )
    expected = [column.get(user, np.nan) for user in restricted.user_ids.tolist()]
    np.testing.assert_array_equal(restricted[f"{name}@{cutoff}[new]"], expected)


def example(**options):
    rng = np.random.default_rng(5)
    scores = rng.random((N_USERS, N_ITEMS))
    test = interactions((rng.random((N_USERS, N_ITEMS)) < 0.3).astype(float))
    options = {"metrics": "recall@5 ndcg@5,10 coverage@5"} | options
    return rm.evaluate(source_of("scores", scores), test, **options)


def test_by_items_evaluates_every_metric_for_every_group():
    result = example().by_items(GROUP)
    names = [f"{name}[{group}]" for name in ("recall@5", "ndcg@5", "ndcg@10") for group in NEW_OLD]
    shares = [f"share@{cutoff}[{group}]" for cutoff in (5, 10) for group in NEW_OLD]
    assert list(result.mean()) == names + shares
    evaluated_by_name = example(
        metrics=" ".join(names + shares), catalogue=rm.Catalogue.of_groups(GROUP)
    )
    assert_same(result, evaluated_by_name)


NEW_OLD = ("new", "old")


@pytest.mark.parametrize("form", ["frame", "file", "catalogue", "named columns"])
def test_groups_may_have_many_forms(form, tmp_path):
    frame = pl.DataFrame({"item_id": list(GROUP), "age": list(GROUP.values())})
    result, options = example(), {}
    groups = frame
    if form == "file":
        groups = tmp_path / "groups.csv"
        frame.write_csv(groups)
    elif form == "catalogue":
        groups = rm.Catalogue(frame, categories="age")
    elif form == "named columns":
        groups = frame.rename({"item_id": "key"}).with_columns(other=1)
        options = {"item": "key", "column": "age"}
    assert result.by_items(groups, **options).mean() == result.by_items(GROUP).mean()


def test_item_may_be_in_several_groups():
    result = example().by_items(pl.DataFrame({"item": ITEMS, "genre": ["a|b"] * N_ITEMS}))
    np.testing.assert_array_equal(result["ndcg@5[a]"], result["ndcg@5[b]"])
    np.testing.assert_array_equal(result["ndcg@5[a]"], example()["ndcg@5"])
    assert (result["share@5[a]"] == 1).all()


def test_groups_may_be_an_array_in_the_order_of_positions():
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    test = np.array([[1, 0, 1], [0, 1, 0]])
    result = rm.evaluate(rm.Scores(scores), test, metrics="recall@1")
    restricted = result.by_items(["new", "old", "new"])
    np.testing.assert_array_equal(restricted["recall@1[new]"], [0.5, np.nan])
    np.testing.assert_array_equal(restricted["share@1[new]"], [1.0, 1.0])


def test_groups_do_not_limit_the_items_of_lists():
    """An item without a group may appear in lists, and does not count as unknown."""
    lists = rm.Lists({"ann": ["song", "film"], "bob": ["film", "play"]})
    test = {"ann": ["film"], "bob": ["play"]}
    result = rm.evaluate(lists, test, metrics="recall@2")
    restricted = result.by_items({"film": "old"})
    assert restricted.mean() == {"recall@2[old]": 1.0, "share@2[old]": 0.5}
    assert dict(restricted.counts) == dict(result.counts)


def test_groups_replace_the_categories_of_a_catalogue():
    catalogue = rm.Catalogue({"item": [*ITEMS, "more"], "genre": ["x"] * (N_ITEMS + 1)})
    result = example(metrics="recall@5", catalogue=catalogue)
    assert result.by_items(GROUP).mean() == example(metrics="recall@5").by_items(GROUP).mean()


def test_by_items_pools_folds():
    rng = np.random.default_rng(2)
    log = pl.DataFrame({"user": rng.choice(USERS, 200), "item": rng.choice(ITEMS, 200)})
    folds = rm.split.folds(log.unique(maintain_order=True), rm.split.KFold(3), seed=1)
    scores = rm.Scores(rng.random((N_USERS, N_ITEMS)), user_ids=USERS, item_ids=ITEMS)
    result = rm.evaluate([scores] * 3, folds, metrics="recall@5").by_items(GROUP)
    values_of_folds = [fold["recall@5[new]"] for fold in result.folds]
    assert len(values_of_folds) == 3
    assert list(result.mean()) == [f"{m}@5[{g}]" for m in ("recall", "share") for g in NEW_OLD]


def test_metrics_named_as_in_a_convention_can_be_evaluated_by_group():
    result = example(protocol="pyg", metrics="LinkPredNDCG@5").by_items(GROUP)
    assert "LinkPredNDCG@5[new]" in result.mean()


def test_explanation_of_a_group_states_its_name():
    result = example(metrics="ndcg@5").by_items(GROUP)
    explanation = rm.explain(result, "ndcg@5[new]", protocol="pyg")
    assert "[new]" in explanation.right.metric
    assert explanation.left.mean == result.mean()["ndcg@5[new]"]


def test_chance_is_computed_for_the_group():
    result = example(metrics="recall@5", chance=True).by_items(GROUP)
    defined = ~np.isnan(result["recall@5[new]"])
    np.testing.assert_allclose(result.chance["recall@5[new]"][defined], 5 / N_ITEMS)


def test_stream_evaluates_groups():
    rng = np.random.default_rng(5)
    scores = rng.random((N_USERS, N_ITEMS))
    test = interactions((rng.random((N_USERS, N_ITEMS)) < 0.3).astype(float))
    options = {"metrics": "ndcg@5[new] share@5[new]", "catalogue": rm.Catalogue.of_groups(GROUP)}
    stream = rm.Evaluator(test, **options).stream(item_ids=ITEMS)
    for rows in np.array_split(np.arange(N_USERS), 4):
        stream.update(scores[rows], users=[USERS[row] for row in rows])
    at_once = rm.evaluate(source_of("scores", scores), test, **options)
    assert stream.compute().mean() == at_once.mean()


def test_groups_are_saved_compared_and_gated(tmp_path):
    first, second = example().by_items(GROUP), example(ties="item").by_items(GROUP)
    first.save(tmp_path / "one.parquet")
    assert_same(rm.load(tmp_path / "one.parquet").mean(), first.mean())
    comparison = rm.compare({"a": first, "b": second}, baseline="a", allow="ties")
    assert "ndcg@5[new]" in comparison.metrics
    assert "recall@5[new] >= -1%" in str(comparison.gate("recall@5[new] >= -1%"))
    comparison.report(tmp_path / "report.html")
    assert "recall@5[new]" in (tmp_path / "report.html").read_text()


@given(
    name=st.sampled_from(RANKED),
    group=st.text(st.characters(exclude_categories=["C"], exclude_characters="[]@"), min_size=1),
)
def test_names_with_groups_are_parsed_and_printed(name, group):
    metric = Metric(name, 10, group=group)
    assert parse(str(metric)) == [metric]
    assert parse(f"ap@1 {metric}, rr") == [*parse("ap@1"), metric, *parse("rr")]
    assert parse({f"{name}[{group}]": [5, 10]}) == [
        Metric(name, cutoff, group=group) for cutoff in (5, 10)
    ]


def test_several_cutoffs_of_a_group_are_read_as_columns():
    result = example().by_items(GROUP)
    columns = [result[f"ndcg@{cutoff}[new]"] for cutoff in (5, 10)]
    np.testing.assert_array_equal(result["ndcg@5,10[new]"], np.column_stack(columns))


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ("coverage@5[new]", InputError, "'coverage' cannot be restricted to the group"),
        ("recall@5[nw]", UnknownNameError, r"no item of the catalogue is in it.*'new'"),
    ],
)
def test_invalid_names_of_groups_are_refused(metrics, error, message):
    with pytest.raises(error, match=message):
        example(metrics=metrics, catalogue=rm.Catalogue.of_groups(GROUP))


def test_groups_need_categories():
    with pytest.raises(InputError, match="needs item categories"):
        example(metrics="recall@5[new]")


def test_groups_have_no_pooled_mean():
    result = example(metrics="recall@5").by_items(GROUP)
    with pytest.raises(InputError, match="no pooled mean of 'recall@5\\[new\\]'"):
        result.mean(weights="pooled")


def test_invalid_groups_are_refused(tmp_path):
    result = example()
    with pytest.raises(InputError, match="cannot be the name of a group"):
        result.by_items(dict.fromkeys(ITEMS, "a]"))
    wide = rm.evaluate(rm.Scores(np.ones((2, 5000))), np.eye(2, 5000), metrics="recall@5")
    with pytest.raises(InputError, match="5,000 groups of items result in 10,000 metrics"):
        wide.by_items([str(number) for number in range(5000)])
    with pytest.raises(InputTypeError, match="name columns of a table"):
        result.by_items(GROUP, column="age")
    with pytest.raises(InputError, match="cannot be restricted to the group of items"):
        example(metrics="coverage@5").by_items(GROUP)
    result.save(tmp_path / "result.parquet")
    with pytest.raises(InputError, match="does not contain its inputs"):
        rm.load(tmp_path / "result.parquet").by_items(GROUP)


def test_groups_of_items_are_refused_as_groups_of_users():
    with pytest.raises(InputError, match=r"keys of groups are items.*by_items"):
        example().by(GROUP)
    scores, test = np.random.default_rng(1).random((3, 5)), np.eye(3, 5)
    result = rm.evaluate(rm.Scores(scores), test, metrics="rr")
    with pytest.raises(InputError, match="by_items"):
        result.by(dict.fromkeys(range(5), "new"))
    assert len(result.by({0: "a", 1: "b", 2: "a"}).rows) == 2
    # A list contains item 9, but the test data do not, and item 3 occurs only in the catalogue.
    lists, catalogue = rm.Lists({1: [9, 2], 2: [2]}), rm.Catalogue([2, 3, 9])
    result = rm.evaluate(lists, {1: [2], 2: [2]}, metrics="rr", catalogue=catalogue)
    for items in ([1, 2], [2, 3], [2, 9]):
        groups = dict.fromkeys(items, "new")
        if items == [1, 2]:
            assert len(result.by(groups).rows) == 1
        else:
            with pytest.raises(InputError, match="by_items"):
                result.by(groups)
    with pytest.raises(InputError, match=r"None of the 2 users has a group.*by_items"):
        result.by({7: "new"})


def test_command_line_evaluates_groups_of_items(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "z"]}).write_csv("test.csv")
    run_ = {"user": ["a", "a", "b", "b"], "item": ["x", "z", "x", "z"], "rank": [1, 2, 1, 2]}
    pl.DataFrame(run_).write_csv("als.csv")
    groups = {"item": ["x", "y", "z"], "age": ["old", "new", "new"], "price": [1, 2, 3]}
    pl.DataFrame(groups).write_csv("items.csv")
    arguments = ("evaluate", "--test", "test.csv", "--run", "als.csv", "--metrics", "recall@2")
    with_groups = [*arguments, "--by-items", "age=items.csv", "--format", "csv", "--out", "out"]
    printed = run_command(with_groups).stdout
    rows = {row["metric"]: row["mean"] for row in pl.read_csv(printed.encode()).to_dicts()}
    expected = {"recall@2": 0.75, "recall@2[new]": 0.5, "recall@2[old]": 1.0}
    assert rows == expected | {"share@2[new]": 0.5, "share@2[old]": 0.5}
    assert rm.load("out/als.parquet").mean() == rows
    failed = run_command([*arguments, "--by-items", "items.csv"])
    assert failed.exit_code == 1
    assert "--by-items items.csv: Which column holds the groups?" in failed.stderr
    assert "as in COLUMN=FILE" in failed.stderr
