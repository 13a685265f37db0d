"""Tests of ``recometer report``, which writes a page about saved evaluations or models."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import Result, run_command

import recometer as rm

RNG = np.random.default_rng(3)
USERS, ITEMS, DEPTH = 40, 25, 8


def run(*arguments: object) -> Result:
    return run_command(list(map(str, arguments)), env={"COLUMNS": "300"})


def one_line(text: str) -> str:
    return " ".join(text.split())


def data_of(path: str) -> dict[str, Any]:
    text = pathlib.Path(path).read_text(encoding="utf-8")
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return dict(json.loads(match[1]))


@pytest.fixture(autouse=True)
def _folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with test data, training data, and two models' lists and results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recometer.report.page.vega", lambda: "window.vegaEmbed = null;")
    order = np.argsort(RNG.random((USERS, ITEMS)), axis=1)
    parts = {"test": order[:, :4], "train": order[:, 4:8]}
    lists = {"random": np.argsort(RNG.random((USERS, ITEMS)), axis=1)[:, :DEPTH]}
    lists["good"] = np.concatenate([order[:, :3], order[:, 8 : 5 + DEPTH]], axis=1)
    for name, items in (parts | lists).items():
        users = np.repeat(np.arange(USERS), items.shape[1])
        frame = pl.DataFrame({"user_id": users, "item_id": items.ravel()})
        if name in lists:
            ranks = np.tile(np.arange(items.shape[1]) + 1, USERS)
            frame = frame.with_columns(rank=pl.Series(ranks))
        frame.write_parquet(f"{name}.parquet")
    titles = [f"Title {item}" for item in range(ITEMS)]
    pl.DataFrame({"item_id": range(ITEMS), "title": titles}).write_csv("items.csv")
    models = [argument for name in lists for argument in ("--run", f"{name}.parquet")]
    result = run(
        *("evaluate", "--test", "test.parquet", "--train", "train.parquet", *models),
        *("-m", "ndcg@5 recall@1..5", "--out", "results", "--quiet"),
    )
    assert result.exit_code == 0, result.stderr


def test_report_of_saved_evaluations_states_the_verdict() -> None:
    result = run("report", "results", "--primary", "ndcg@5", "-o", "report.html")
    assert result.exit_code == 0, result.stderr
    versus = rm.compare(
        {name: f"results/{name}.parquet" for name in ("good", "random")}, primary="ndcg@5"
    )
    assert versus.report().model.headline.verdict in result.stderr
    assert result.stderr.endswith("written: report.html\n")
    data = data_of("report.html")
    assert data["inspector"] is None
    assert "leaderboard" in data["charts"]


def test_lists_are_matched_to_results_by_name() -> None:
    inputs = ("--test", "test.parquet", "--train", "train.parquet", "--catalogue", "items.csv")
    models = ("--run", "good.parquet", "--run", "random.parquet")
    result = run("report", "results", *models, *inputs, "--show", "7")
    assert result.exit_code == 0, result.stderr
    inspector = data_of("report.html")["inspector"]
    assert inspector["models"] == ["good", "random"]
    assert inspector["users"][0]["id"] == "7"
    entries = inspector["users"][0]["lists"]["good"]["entries"]
    assert [relevant for _, _, _, relevant, _ in entries] == [True] * 3 + [False] * 5
    assert all(title.startswith("Title ") for _, title in inspector["items"].values())
    with_other_name = run("report", "results", "--run", "x=good.parquet", *inputs)
    assert with_other_name.exit_code == 2
    assert "there is no result for 'x', only for good, random" in one_line(with_other_name.stderr)


def test_split_without_models_is_audited() -> None:
    test, train = (pl.read_parquet(f"{name}.parquet") for name in ("test", "train"))
    data = pl.concat([test, train], how="diagonal")
    rm.split(data, rm.split.Fraction(0.5), user="user_id", item="item_id").save("split")
    result = run("report", "results", "--split", "split", "-o", "page.md")
    assert result.exit_code == 0, result.stderr
    assert "## Audit of the split" in pathlib.Path("page.md").read_text(encoding="utf-8")
    for unused_options in (
        ("--catalogue", "items.csv"),
        ("--test", "test.parquet"),
        ("--split", "split", "--user", "user_id"),
    ):
        refused = run("report", "results", *unused_options)
        assert refused.exit_code == 2, unused_options
        assert "it has no effect without models" in one_line(refused.stderr)


def test_models_without_results_are_evaluated() -> None:
    result = run(
        *("report", "--run", "good.parquet", "--baselines", "popular", "--quiet"),
        *("--test", "test.parquet", "--train", "train.parquet", "-o", "page.md", "-m", "rr@5"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    text = pathlib.Path("page.md").read_text(encoding="utf-8")
    assert "good beats popular by" in text


def test_scored_pairs_are_read_as_in_evaluate() -> None:
    rng = np.random.default_rng(0)
    rows = {"object": np.repeat([4, 9], 6), "item": np.tile(np.arange(6), 2)}
    relevant = np.tile([1, 0, 1, 0, 0, 1], 2)
    scores = {"random": rng.random(12), "KNN": relevant + rng.random(12)}
    for name, score in scores.items():
        pl.DataFrame({**rows, "relevant": relevant, "score": score}).write_csv(f"{name}.csv")
    pairs = ("--pairs", "random.csv", "--pairs", "KNN.csv", "--user", "object")
    result = run("report", *pairs, "-m", "recall@3")
    assert result.exit_code == 0, result.stderr
    inspector = data_of("report.html")["inspector"]
    assert inspector["models"] == ["KNN", "random"]
    user = next(entry for entry in inspector["users"] if entry["id"] == "4")
    assert user["values"]["KNN"][inspector["metrics"].index("recall@3")] == 1
    entries = user["lists"]["KNN"]["entries"]
    assert [relevant for _, _, _, relevant, _ in entries] == [True] * 3 + [False] * 3


def test_candidates_and_exclude_apply_to_models_and_their_lists() -> None:
    pathlib.Path("some.txt").write_text("\n".join(map(str, range(12))), encoding="utf-8")
    pathlib.Path("none.txt").write_text("0\n1\n", encoding="utf-8")
    options = ("--candidates", "some.txt", "--exclude", "none.txt", "--baselines", "popular")
    result = run("report", *options, "--test", "test.parquet", "--train", "train.parquet")
    assert result.exit_code == 0, result.stderr
    inspector = data_of("report.html")["inspector"]
    shown_items = {
        inspector["items"][str(entry[0])][0]
        for user in inspector["users"]
        for entry in user["lists"]["popular"]["entries"]
    }
    assert shown_items == set(map(str, range(2, 12)))


def test_metric_gets_its_maximum_gain_from_test() -> None:
    pathlib.Path("q.qrels").write_text("1 0 a 3\n1 0 b 1\n2 0 a 2\n", encoding="utf-8")
    pathlib.Path("run.trec").write_text("1 Q0 a 1 2.0 x\n2 Q0 b 1 2.0 x\n", encoding="utf-8")
    arguments = ("report", "--run", "run.trec", "--test", "q.qrels", "-o", "page.md")
    result = run(*arguments, "-m", "err@2")
    assert result.exit_code == 0, result.stderr
    assert "err@2(max_gain=3)" in pathlib.Path("page.md").read_text(encoding="utf-8")


def test_report_of_one_model_refuses_a_baseline() -> None:
    result = run("report", "results/good.parquet", "-o", "report.md")
    assert result.exit_code == 0, result.stderr
    assert pathlib.Path("report.md").read_text(encoding="utf-8").startswith("<!-- recometer report")
    refused = run("report", "results/good.parquet", "--baseline", "random")
    assert refused.exit_code == 2
    assert "it needs several models" in refused.stderr


def test_report_replaces_only_earlier_reports() -> None:
    pathlib.Path("report.html").write_text("mine", encoding="utf-8")
    result = run("report", "results")
    assert result.exit_code == 1
    assert "was not written by recometer" in result.stderr
    assert pathlib.Path("report.html").read_text(encoding="utf-8") == "mine"
    pathlib.Path("items.md").write_text("recometer report", encoding="utf-8")
    inputs = ("--test", "test.parquet", "--catalogue", "items.md")
    audit_of_lists = run("report", "--run", "good.parquet", *inputs, "-o", "items.md")
    assert audit_of_lists.exit_code == 1
    assert "is an input, and would be replaced" in audit_of_lists.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to report"),
        (("results", "-o", "report.pdf"), "a report is written as .html or .md"),
        (("--split", "folds", "--baselines", "popular"), "lists are shown for one fold"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    assert run("split", "test.parquet", "--what", "folds=2", "--out", "folds").exit_code == 0
    result = run("report", *arguments)
    assert result.exit_code == 2
    assert message in one_line(result.stderr)
    assert not list(pathlib.Path().glob("report.*"))
