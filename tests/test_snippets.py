"""Tests that commands and code blocks without output run as the pages show them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from command_line import run_command

import recometer as rm

ROOT = Path(__file__).parents[1]
N_USERS, N_ITEMS = 300, 40
METRICS = "ndcg@10 hit@10"


def blocks(path: str, language: str, heading: str = "") -> list[str]:
    """Return a page's code blocks in the given language, without doctests.

    If a heading is passed, return only the blocks below it.
    """
    text = (ROOT / path).read_text(encoding="utf-8")
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code_blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for block in code_blocks if ">>>" not in block]


def run_commands(block: str) -> None:
    """Run a block of shell commands line by line, and expand wildcards as a shell would."""
    for line in block.replace("\\\n", " ").strip().splitlines():
        program, *words = shlex.split(line)
        assert program == "recometer"
        if words[0] == "demo":
            continue  # tests/cli/test_demo.py runs this slow command
        arguments = [
            path
            for word in words
            for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        result = run_command(arguments, env={"COLUMNS": "100"})
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, and leave the chart script out of reports to save time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recometer.report.page.vega", lambda: "")


@pytest.fixture
def scores() -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.normal(size=(N_USERS, 4)) @ generator.normal(size=(4, N_ITEMS))


@pytest.fixture
def ratings(scores: np.ndarray) -> pl.DataFrame:
    """Write ratings.parquet, which contains 15 items per user, mostly items with high scores."""
    generator = np.random.default_rng(1)
    noisy = scores + generator.gumbel(size=scores.shape)
    items = np.argsort(-noisy, axis=1)[:, :15]
    frame = pl.DataFrame(
        {
            "user_id": np.repeat(np.arange(N_USERS), 15),
            "item_id": items.ravel(),
            "rating": generator.integers(1, 6, items.size),
            "timestamp": generator.permutation(items.size),
        }
    )
    frame.write_parquet("ratings.parquet")
    return frame


def add_noise(scores: np.ndarray) -> np.ndarray:
    return scores + np.random.default_rng(4).normal(scale=4, size=scores.shape)


def ranked_lists(scores: np.ndarray) -> pl.DataFrame:
    """Return all items for each user, best first."""
    items = np.argsort(-scores, axis=1)
    columns = {
        "user_id": np.repeat(np.arange(len(items)), items.shape[1]),
        "item_id": items.ravel(),
        "rank": np.tile(np.arange(1, items.shape[1] + 1), len(items)),
    }
    return pl.DataFrame(columns)


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
def test_commands_of_the_readme_run(scores: np.ndarray, ratings: pl.DataFrame) -> None:
    ranked_lists(scores).write_parquet("als_top100.parquet")
    ranked_lists(add_noise(scores)).write_csv("bpr.csv")
    (commands,) = blocks("README.md", "bash", "On the command line")
    run_commands(commands)
    assert Path("report.html").stat().st_size > 0


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
def test_snippets_on_the_page_about_reports_run(scores: np.ndarray, ratings: pl.DataFrame) -> None:
    split = rm.split(ratings, rm.split.Fraction(0.3))
    split.test.write_parquet("test.parquet")
    split.train.write_parquet("train.parquet")
    lists = {"als": ranked_lists(scores), "bpr": ranked_lists(add_noise(scores))}
    lists["als"].write_parquet("als_top100.parquet")
    lists["bpr"].write_csv("bpr.csv")
    items = pl.DataFrame(
        {"item_id": range(N_ITEMS), "title": [f"Film {i}" for i in range(N_ITEMS)]}
    )
    items.write_csv("items.csv")
    names: dict[str, object] = {"test": split.test, "train": split.train, "catalogue": items}
    Path("results").mkdir()
    for name, frame in lists.items():
        names[f"{name}_source"] = rm.Lists(frame)
        result = rm.evaluate(rm.Lists(frame), split, metrics=METRICS)
        names[f"{name}_result"] = result
        result.save(f"{name}.parquet")
        result.save(f"results/{name}.parquet")
    pairs = pl.DataFrame(
        {
            "object": np.repeat(np.arange(20), 5),
            "item": np.tile(np.arange(5), 20),
            "relevance": np.tile([1, 0, 0, 1, 0], 20),
            "random scores": np.random.default_rng(2).random(100),
            "KNN scores": np.random.default_rng(3).random(100),
        }
    )
    pairs.write_csv("knowledge.csv")
    names["frame"] = pairs
    snippets = blocks("docs/report.md", "python")
    assert len(snippets) == 4
    for snippet in snippets:
        exec(compile(snippet, "report.md", "exec"), names)
    commands = blocks("docs/report.md", "sh")
    assert len(commands) == 2
    for block in commands:
        run_commands(block)
    assert Path("report.html").stat().st_size > 0


def test_snippets_on_the_page_about_models_run(scores: np.ndarray) -> None:
    """The test skips the first snippet, which needs torch; tests/live runs it."""

    class Model:
        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.ones((len(rows), 1682))

    generator = np.random.default_rng(0)
    edges = np.unique(generator.integers(0, (N_USERS, N_ITEMS), (600, 2)), axis=0).T
    edges[1] += N_USERS
    links = {"edge_index": edges[:, :400] - [[0], [N_USERS]]}
    links |= {"edge_label_index": edges[:, 400:] - [[0], [N_USERS]]}
    links["edge_label"] = np.ones(edges.shape[1] - 400)
    names = {
        "rm": rm,
        "user_factors": generator.random((5, 2)),
        "item_factors": generator.random((7, 2)),
        "popularity": generator.random(7),
        "matrix": scores,
        "model": Model(),
        "edge_index": edges,
        "held_out": generator.random(edges.shape[1]) < 0.3,
        "n_users": N_USERS,
        "n_items": N_ITEMS,
        "user_emb": generator.random((N_USERS, 4)),
        "item_emb": generator.random((N_ITEMS, 4)),
        "data": {("user", "rates", "movie"): SimpleNamespace(**links)},
    }
    first, *other_blocks = blocks("docs/models.md", "python")
    assert "torch" in first
    assert len(other_blocks) == 3
    for snippet in other_blocks:
        exec(compile(snippet, "models.md", "exec"), names)
