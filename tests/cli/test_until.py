"""``recometer evaluate --until``: as many users as the question needs."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import polars as pl
import pytest
from command_line import CliRunner, Result

import recometer as rm
from recometer.cli._app import app

DATA = ("--test", "test.parquet", "-m", "ndcg@5 recall@5")
MODELS = ("--run", "one.parquet", "--run", "two.parquet")


def evaluate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["evaluate", *arguments], env={"COLUMNS": "100"})


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write lists of two models for 2,500 users."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    user = np.repeat(np.arange(2_500), 5)
    for name in ("one", "two"):
        item = np.argsort(generator.random((2_500, 20)), axis=1)[:, :5].ravel()
        rank = np.tile(np.arange(1, 6), 2_500)
        pl.DataFrame({"user_id": user, "item_id": item, "rank": rank}).write_parquet(
            f"{name}.parquet"
        )
    test = pl.DataFrame({"user_id": np.arange(2_500), "item_id": generator.integers(0, 20, 2_500)})
    test.write_parquet("test.parquet")


def test_users_are_read_until_enough_is_known() -> None:
    found = evaluate(*DATA, *MODELS[:2], "--until", "ndcg@5 +- 0.03", "--seed", "3", "--out", "out")
    assert found.exit_code == 0, found.output
    assert "until ndcg@5 +- 0.03: 1,000 of 2,500 users were read (40.0%)" in found.stdout
    expected = rm.evaluate(
        rm.Lists("one.parquet"),
        "test.parquet",
        metrics="ndcg@5 recall@5",
        until="ndcg@5 ± 0.03",
        seed=3,
    )
    saved = rm.load("out/one.parquet")
    np.testing.assert_array_equal(saved.user_ids, expected.user_ids)  # type: ignore[arg-type]
    assert saved.interval("ndcg@5") == expected.interval("ndcg@5")
    shown = CliRunner().invoke(app, ["show", "out/one.parquet"], env={"COLUMNS": "100"})
    assert "1,000 of 2,500 users were read" in shown.stdout


def test_several_models_read_the_same_users_as_far_as_both_go() -> None:
    options = ("--until", "recall@5 +- 12%")
    found = evaluate(*DATA, *MODELS, *options)
    assert found.exit_code == 0, found.output
    assert "users were read" in found.stdout
    content = json.loads(evaluate(*DATA, *MODELS, *options, "--format", "json").stdout)
    for model in content["models"].values():
        read, row = model["users_read"], model["metrics"]["recall@5"]
        assert read["until"] == "recall@5 +- 12%"
        assert (row["high"] - row["low"]) / 2 <= 0.12 * row["mean"]
        assert row["counted"] == read["n_read"] < 2_500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--until", "ndcg@5"), "cannot be read"),
        (("--until", "rr ± 0.1"), "rr is not among the metrics"),
        (("--until", "decided"), "a question about several models"),
        (("--until", "ndcg@5 ± 0.1", "-m", "coverage@5"), "coverage@5 is one value for all users"),
    ],
)
def test_what_cannot_be_asked(options: tuple[str, ...], message: str) -> None:
    found = evaluate(*DATA, *MODELS[:2], *options)
    assert found.exit_code != 0
    assert message in " ".join(found.output.replace("│", " ").split())
