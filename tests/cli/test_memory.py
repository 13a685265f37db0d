"""``--memory``: files that are read part by part, with the same results."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import polars as pl
import pytest
from command_line import CliRunner, Result

from recometer.cli._app import app

N_USERS, N_ITEMS = 400, 3_000
METRICS = ("-m", "ndcg@5 recall@5 roc_auc")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "100"})


def means(*arguments: str) -> object:
    found = run("evaluate", "--test", "test.parquet", *arguments, "--format", "json")
    assert found.exit_code == 0, found.output
    return [
        {key: metric[key] for key in ("mean", "low", "high", "counted")}
        for model in json.loads(found.stdout)["models"].values()
        for metric in model["metrics"].values()
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write test, train, lists and factors."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    for side, n in (("users", N_USERS), ("items", N_ITEMS)):
        np.save(f"{side}.npy", generator.standard_normal((n, 8), dtype=np.float32))
    ranks = {"rank": np.tile(np.arange(1, 11), N_USERS)}
    for name, more in (("train", {}), ("test", {}), ("lists", ranks)):
        item = np.argsort(generator.random((N_USERS, 60)), axis=1)[:, :10].ravel()
        columns = {"user_id": np.repeat(np.arange(N_USERS), 10), "item_id": item}
        pl.DataFrame({**columns, **more}).write_parquet(f"{name}.parquet")
    pl.read_parquet("lists.parquet").write_csv("lists.csv")


@pytest.mark.parametrize(
    "model",
    [
        ("--factors", "users.npy,items.npy,positions,positions"),
        ("--run", "lists.parquet"),
        ("--run", "lists.parquet", "--run", "text=lists.csv"),
    ],
)
def test_results_are_the_same_part_by_part(model: tuple[str, ...]) -> None:
    metrics = METRICS if model[0] == "--factors" else ("-m", "ndcg@5 recall@5 coverage@5")
    asked = (*model, *metrics, "--train", "train.parquet", "--catalogue", "60")
    asked = asked if model[0] == "--run" else asked[:-2]
    assert means(*asked, "--memory", "120kB") == means(*asked)


def test_what_is_read_part_by_part_is_said() -> None:
    found = run(
        "evaluate", "--test", "test.parquet", "--run", "lists.csv", "--run", "also=lists.parquet",
        "--memory", "1MB",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "memory: read as a whole: lists.csv" in found.stderr
    assert "also: lists.parquet (user 'user_id', item 'item_id', rank 'rank', part by part)" in (
        " ".join(found.stderr.split())
    )
    assert "test: test.parquet (user 'user_id', item 'item_id', part by part)" in found.stderr


def test_memory_that_is_too_small_says_how_much_is_enough() -> None:
    found = run("evaluate", "--test", "test.parquet", "--run", "lists.parquet", "--memory", "200")
    assert found.exit_code
    assert "are too few" in found.stderr
    assert "memory=" in found.stderr


@pytest.mark.parametrize("size", ["much", "0", "-1", "2 elephants"])
def test_no_size_is_refused(size: str) -> None:
    found = run("evaluate", "--test", "test.parquet", "--run", "lists.parquet", f"--memory={size}")
    assert found.exit_code == 2
    assert "must be a size" in found.stderr


def test_memory_is_refused_where_it_has_no_effect() -> None:
    pl.read_parquet("test.parquet").write_csv("test.csv")
    found = run("evaluate", "--test", "test.csv", "--run", "lists.csv", "--memory", "1GB")
    assert found.exit_code == 2
    assert "none of the files can be read part by part" in found.stderr


def test_ids_of_two_kinds_are_refused() -> None:
    pl.read_parquet("test.parquet").with_columns(pl.all().cast(pl.String) + "x").write_parquet(
        "texts.parquet"
    )
    found = run("evaluate", "--test", "texts.parquet", "--run", "lists.parquet", "--memory", "1MB")
    assert found.exit_code
    assert "not written alike" in " ".join(found.stderr.split())
