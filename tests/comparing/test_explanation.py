"""`explain` and `recometer why` show why two definitions give different numbers."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import numpy as np
import pytest
from command_line import run_command
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import naming_options
from recometer.explanation import Explanation

NAMES = [convention.name for convention in rm.conventions()]
LISTS = {"ann": {"song": 0.9, "film": 0.8}, "bob": {"film": 0.9, "book": 0.9, "game": 0.7}}
TEST = {"ann": {"film": 4.0}, "bob": {"game": 2.0, "song": 5.0}, "eve": {"song": 3.0}}


@functools.cache
def evaluate(**options: object) -> rm.Evaluation:
    metrics = options.pop("metrics", "ndcg@3 ap@2 recall@1")
    return rm.evaluate(rm.Lists(LISTS), TEST, metrics=metrics, **options)


def random_result(seed: int, protocol: str) -> rm.Evaluation:
    generator = np.random.default_rng(seed)
    users, items = [f"u{n:02}" for n in range(12)], [f"i{n:02}" for n in range(15)]
    lists = {
        user: dict(
            zip(
                generator.permutation(items)[: generator.integers(1, 8)].tolist(),
                generator.choice([0.1, 0.2, 0.3, 0.4], 8).tolist(),
                strict=False,
            )
        )
        for user in users[2:]
    }
    test = {
        user: dict.fromkeys(generator.permutation(items)[: generator.integers(1, 6)].tolist(), 2.0)
        for user in users[:10]
    }
    return rm.evaluate(rm.Lists(lists), test, metrics="ndcg@3 recall@3 ap@3", protocol=protocol)


def evaluate_again(result: rm.Evaluation, metric: str, protocol: str) -> float:
    kept_inputs = {**result.inputs_kept}
    return rm.evaluate(**kept_inputs, metrics=metric, protocol=protocol).mean()[metric]


def test_steps_lead_from_one_mean_to_the_other() -> None:
    explanation = rm.explain(evaluate(), "ndcg@3", protocol="rectools")
    assert explanation.left.mean == pytest.approx(evaluate().mean()["ndcg@3"])
    expected = evaluate(metrics="NDCG@3", protocol="rectools").mean()["NDCG@3"]
    assert explanation.right.mean == pytest.approx(expected)
    assert explanation.steps[-1].mean == explanation.right.mean
    assert [step.name for step in explanation.steps if step.users] == ["gain", "ideal"]
    text = str(explanation)
    assert "recometer: ndcg@3 = 0.2635 over 3 users" in text
    assert "dcg(k) / dcg(k) of the best order" in text
    assert "ideal=all becomes ideal=k (k times the user's largest gain)." in text


@pytest.mark.parametrize("name", ["lenskit", "recbole", "trec_eval", "recpack", "pyg", "ranx"])
@examples(0.1)
@given(seed=st.integers(0, 1000))
def test_first_and_last_means_match_evaluate(name: str, seed: int) -> None:
    result = random_result(seed, "recometer")
    for metric in ("ndcg@3", "recall@3"):
        explanation = rm.explain(result, metric, protocol=name)
        np.testing.assert_equal(explanation.left.mean, result.mean()[metric])
        np.testing.assert_equal(explanation.right.mean, evaluate_again(result, metric, name))
        for left, right, before, after in zip(
            explanation.steps[:-1],
            explanation.steps[1:],
            explanation.values.T[1:],
            explanation.values.T[2:],
            strict=False,
        ):
            unchanged = np.array_equal(before, after, equal_nan=True)
            assert unchanged == (right.users == 0)
            # If a step changes no user's value, only a change in averaging can change the mean.
            if unchanged and right.name not in ("average", "population"):
                np.testing.assert_equal(left.mean, right.mean)


@pytest.mark.parametrize("name", NAMES)
def test_steps_to_every_convention_and_back_reach_the_same_means(name: str) -> None:
    result = evaluate(metrics="precision@2")
    if name == "surprise":  # Surprise's precision reads predicted ratings
        with pytest.raises(rm.InputError, match="needs predicted and true ratings"):
            rm.explain(result, "precision@2", protocol=name)
        return
    forward = rm.explain(result, "precision@2", protocol=name)
    assert forward.right.protocol == name
    in_convention = evaluate(metrics="precision@2", protocol=name)
    backward = rm.explain(in_convention, "precision@2", protocol="recometer")
    np.testing.assert_equal(backward.right.mean, forward.left.mean)
    np.testing.assert_equal(backward.left.mean, forward.right.mean)


def test_explanation_accepts_a_librarys_metric_name() -> None:
    result = evaluate(metrics="NDCG@3", protocol="lenskit")
    explanation = rm.explain(result, "NDCG@3", protocol="rectools")
    assert (explanation.left.metric, explanation.right.metric) == ("NDCG@3", "NDCG@3")
    explanation = rm.explain(result, "NDCG@3", protocol="pyg")
    assert explanation.right.metric == "ndcg@3"
    assert "discount" in [step.name for step in explanation.steps]


def test_explanation_of_equal_protocols_has_no_steps() -> None:
    explanation = rm.explain(evaluate(), "ndcg@3", protocol="recometer")
    assert explanation.steps == ()
    assert explanation.left.mean == explanation.right.mean
    assert explanation.to_dict()["users"] == []
    assert str(explanation)


def test_explanation_shows_the_users_whose_values_differ_most() -> None:
    result = evaluate()
    explanation = rm.explain(result, "ndcg@3", protocol="trec_eval")
    # eve has no list, so trec_eval leaves her out.
    assert list(explanation.user_ids) == ["ann", "bob", "eve"]
    (first,) = dataclasses.replace(explanation, n_shown=1).to_dict()["users"]
    assert (first["user"], first["step"]) == ("eve", "population")
    assert "not counted" in str(explanation)
    assert "<table>" in explanation._repr_html_()


def test_loaded_result_is_explained_if_inputs_are_passed_again(tmp_path: pathlib.Path) -> None:
    result = evaluate()
    result.save(tmp_path / "run.parquet")
    loaded = rm.load(tmp_path / "run.parquet")
    assert loaded.inputs_kept is None
    with pytest.raises(rm.InputError, match="does not contain its inputs"):
        rm.explain(loaded, "ndcg@3", protocol="lenskit")
    inputs = rm.explain(
        loaded, "ndcg@3", protocol="lenskit", source=rm.Lists(LISTS), test=TEST, train=None
    )
    assert str(inputs) == str(rm.explain(result, "ndcg@3", protocol="lenskit"))


def test_function_that_returns_scores_is_not_kept() -> None:
    source = rm.Scores(lambda rows: np.ones((len(rows), 3)) * [3, 2, 1], n_users=2, n_items=3)
    result = rm.evaluate(source, np.array([[1, 0, 0], [0, 1, 0]]), metrics="rr")
    assert result.inputs_kept is None


def test_pairs_with_labels_are_explained_without_test_data() -> None:
    pairs = rm.Pairs.of([1, 1, 0, 0, 1], [0.4, 0.1, 0.2, 0.5, 0.3])
    explanation = rm.explain(rm.evaluate(pairs, metrics="ap@3"), "ap@3", protocol="torchmetrics")
    assert isinstance(explanation, Explanation)
    assert explanation.left.mean != explanation.right.mean


@pytest.mark.parametrize(
    ("metric", "protocol", "message"),
    [("ndcg@7", "lenskit", "no metric 'ndcg@7'"), ("ndcg@3", "lenskitt", "no protocol 'lenskitt'")],
)
def test_unknown_metrics_and_protocols_are_refused(
    metric: str, protocol: str, message: str
) -> None:
    with pytest.raises(rm.UnknownNameError, match=message):
        rm.explain(evaluate(), metric, protocol=protocol)


# Tests of the commands `recometer why` and `recometer conventions`


def run(*arguments: object) -> tuple[int, str, str]:
    result = run_command([str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def files(tmp_path: pathlib.Path) -> list[object]:
    rows = [
        f"{user},{item},{value}"
        for user, values_of_items in TEST.items()
        for item, value in values_of_items.items()
    ]
    (tmp_path / "test.csv").write_text("\n".join(["user,item,rating", *rows]))
    rows = [
        f"{user},{item},{score}"
        for user, values_of_items in LISTS.items()
        for item, score in values_of_items.items()
    ]
    (tmp_path / "run.csv").write_text("\n".join(["user,item,score", *rows]))
    return ["--test", tmp_path / "test.csv", "--run", tmp_path / "run.csv"]


def test_why_prints_both_means_and_the_steps(files: list[object]) -> None:
    code, out, err = run("why", *files, "--metric", "ndcg@3", "--from", "lenskit", "--to", "ranx")
    assert code == 0, err
    assert "lenskit: ndcg@3 = 0.6577 over 2 users" in out
    assert "ranx: ndcg@3 = " in out
    assert "discount=original becomes discount=standard" in out
    assert "differ at" in out
    assert "test.csv (user 'user'" in err
    assert "test.csv (user" not in run("why", *files, "-q", "-m", "ap@3", "--to", "implicit")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "ndcg@3", "--to", "lenskitt"], "no protocol 'lenskitt'"),
        (["--metric", "ndcg@1,3", "--to", "lenskit"], "is not a single metric"),
        (["--metric", "ndcg@3", "--metric", "rr", "--to", "lenskit"], "is not a single metric"),
        (["--metric", "ndcg@3", "--to", "lenskit", "--run", "b.csv"], "one model"),
        (["--metric", "ndcg@3"], "Missing option '--to'"),
        (
            ["--metric", "ndcg@3", "--to", "ranx", "--split", "a"],
            "--split already provides test and train",
        ),
    ],
)
def test_why_refuses_invalid_arguments(
    files: list[object], arguments: list[str], message: str
) -> None:
    code, _, err = run("why", *files, *arguments)
    assert code == 2
    assert message in " ".join(err.replace("│", " ").split())


def test_why_explains_metrics_of_lists(files: list[object], tmp_path: pathlib.Path) -> None:
    rows = [f"{item},{number}" for number, item in enumerate(["song", "film", "book", "game"])]
    (tmp_path / "items.csv").write_text("\n".join(["item,size", *rows]))
    side = ["--catalogue", tmp_path / "items.csv", "--features", "size", "--baseline", "run"]
    for metric in ("ild@2", "overlap@2"):
        code, out, err = run("why", *files, *side, "--metric", metric, "--to", "recpack")
        assert code == 0, err
        assert f"recpack: {metric} = " in out
        assert max(map(len, out.splitlines())) <= 100


def test_why_reads_a_split_folder(files: list[object], tmp_path: pathlib.Path) -> None:
    rows = [f"{user},{item}" for user in TEST for item in ("film", "song", "book", "game")]
    (tmp_path / "all.csv").write_text("\n".join(["user,item", *rows]))
    split_folder = tmp_path / "made"
    assert (
        run("split", tmp_path / "all.csv", "--what", "fraction=0.5", "--out", split_folder)[0] == 0
    )
    code, out, err = run(
        "why", "--split", split_folder, *files[2:], "-m", "ndcg@3", "--to", "lenskit"
    )
    assert code == 0, err
    assert "lenskit: ndcg@3 = " in out


def test_training_ids_are_read_like_test_ids(tmp_path: pathlib.Path) -> None:
    (tmp_path / "qrels").write_text("1 0 10 1\n2 0 20 1\n")
    (tmp_path / "run").write_text("1 Q0 10 1 2.0 x\n1 Q0 11 2 1.0 x\n2 Q0 11 1 1.0 x\n")
    (tmp_path / "train.csv").write_text("user,item\n1,11\n")
    data = ["--test", tmp_path / "qrels", "--train", tmp_path / "train.csv"]
    code, out, err = run("why", *data, "--run", tmp_path / "run", "-m", "rr", "--to", "trec_eval")
    assert code == 0, err
    assert "trec_eval: rr = 0.5" in out


def test_reading_standard_input_twice_is_refused(files: list[object]) -> None:
    code, _, err = run("why", *files, "--test", "-", "--train", "-", "-m", "rr", "--to", "ranx")
    assert code == 2
    assert "can be read only once" in " ".join(err.replace("│", " ").split())


def test_conventions_command_lists_all_conventions() -> None:
    code, out, _ = run("conventions")
    assert code == 0
    for name in NAMES:
        assert f"\n{name} " in out


@pytest.mark.parametrize("name", NAMES)
def test_conventions_command_describes_a_convention(name: str) -> None:
    code, out, _ = run("conventions", name)
    assert code == 0
    convention = next(item for item in rm.conventions() if item.name == name)
    assert out.startswith(f"{name}: {convention.library} {convention.version}")
    with naming_options():
        assert out.split() == convention.describe().split()
    assert max(map(len, out.splitlines())) <= 100
    assert "{" not in out


def test_unknown_convention_is_refused_with_suggestions() -> None:
    code, _, err = run("conventions", "lenskitt")
    assert code == 2
    assert "Did you mean 'lenskit' or 'lenskit_2025'?" in err


def test_printed_explanation_fits_100_columns() -> None:
    result = evaluate()
    for protocol in NAMES:
        text = str(rm.explain(result, "ndcg@3", protocol=protocol))
        assert max(map(len, text.splitlines())) <= 100


def test_equal_definitions_are_reported() -> None:
    assert "Every user has the same value under both." in str(
        rm.explain(evaluate(), "recall@1", protocol=rm.Protocol())
    )


def test_repr_and_print_describe_a_convention() -> None:
    convention = next(item for item in rm.conventions() if item.name == "lenskit")
    assert repr(convention).startswith("<Convention lenskit: LensKit ")
    assert "NDCG[@k] = ndcg" in str(convention)


def test_metric_names_of_libraries_are_suggested_in_any_case() -> None:
    with pytest.raises(rm.UnknownNameError, match=r"LensKit .*'RecipRank\[@k\]'.*Known: P"):
        evaluate(metrics="reciprankk", protocol="lenskit")


@pytest.mark.parametrize("name", ["coverage@2", "gini@2", "personalization@2", "entropy@2"])
def test_metric_with_one_value_for_all_users_is_explained_by_its_mean(name: str) -> None:
    """The metric has no values per user, so the explanation compares only means."""
    lists = rm.Lists({user: [user, user + 1, user + 2] for user in range(6)})
    test = {user: [user + 1] for user in range(6)}
    result = rm.evaluate(lists, test, metrics=name, catalogue=20)
    explanation = rm.explain(result, name, protocol=rm.Protocol(users="known"))
    assert explanation.left.mean == explanation.right.mean == result.mean()[name]
    assert explanation.left.counted == 6
    assert explanation.to_dict()["users"] == []


def test_shares_in_percent_are_explained_as_a_step() -> None:
    lists = rm.Lists({0: [0, 1], 1: [1, 2]})
    result = rm.evaluate(lists, {0: [1], 1: [2]}, metrics="coverage@2", catalogue=20)
    explanation = rm.explain(result, "coverage@2", protocol="recmetrics")
    assert (explanation.left.mean, explanation.right.mean) == (0.15, 15.0)
    assert "Shares are given as percentages." in " ".join(str(explanation).split())


@pytest.mark.parametrize("name", ["ndcg@2", "rr", "coverage@2"])
def test_training_items_in_lists_are_explained_as_a_step(name: str) -> None:
    """rexmex keeps training items in lists, so the explanation has a step for them."""
    lists = rm.Lists({"ann": ["a", "b", "c"], "bob": ["b", "a", "d"]})
    test, train = {"ann": ["b"], "bob": ["d"]}, {"ann": ["a"], "bob": ["c"]}
    data = {"train": train, "catalogue": list("abcde"), "metrics": name}
    result = rm.evaluate(lists, test, **data)
    explanation = rm.explain(result, name, protocol="rexmex")
    expected = rm.evaluate(lists, test, protocol="rexmex", **data).mean()
    assert explanation.right.mean == next(iter(expected.values()))
    assert explanation.right.mean != explanation.left.mean


@pytest.mark.parametrize("metric", ["gini@1", "ild@2", "novelty@2"])
def test_listed_users_outside_test_do_not_change_test(metric: str) -> None:
    """Including listed users without test rows in the mean does not change the test data."""
    lists = rm.Lists({"ann": ["a", "b"], "bob": ["c", "d"], "eve": ["c", "a"]})
    catalogue = rm.Catalogue({"item": list("abcd"), "size": [1.0, 2, 4, 8]}, features=["size"])
    train = {"ann": ["c"], "bob": ["a"], "joe": ["a", "b"]}
    data = {"train": train, "catalogue": catalogue, "metrics": f"{metric} recall@2"}
    test = {"ann": ["b"], "bob": ["a"]}
    ours = rm.evaluate(lists, test, **data)
    listed_result = rm.evaluate(lists, test, users="listed", **data)
    assert (ours.n_users, listed_result.n_users) == (2, 3)
    backward = rm.explain(listed_result, metric, protocol="recometer")
    np.testing.assert_equal(backward.right.mean, ours.mean()[metric])
    np.testing.assert_equal(backward.left.mean, listed_result.mean()[metric])
    assert listed_result.inputs["test"] == ours.inputs["test"]
