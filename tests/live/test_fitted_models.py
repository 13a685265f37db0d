"""The code in the guides to other libraries' models runs as written, with the real libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from snippets import DOCS, blocks_of

import recometer as rm

GUIDES = sorted(path for path in DOCS.glob("model_*.md") if path.stem != "model_spark_als")
pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _ratings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a folder that contains ratings.csv, with ratings of 40 items by 60 users."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    liking = generator.normal(size=(60, 3)) @ generator.normal(size=(3, 40))
    liking += generator.gumbel(size=liking.shape)
    items = np.argsort(-liking, axis=1)[:, :15].ravel()
    n = len(items)
    columns = {
        "user_id": np.repeat(np.arange(60), 15) + 501,
        "item_id": items + 1001,
        "rating": generator.integers(1, 6, n),
        "timestamp": 1_700_000_000 + generator.integers(0, 10**7, n),
    }
    pl.DataFrame(columns).write_csv("ratings.csv")


def test_all_guides_are_tested() -> None:
    assert len(GUIDES) == 5  # tests/spark runs the sixth guide, which needs Spark


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guide_runs_as_written(guide: Path) -> None:
    names: dict[str, object] = {}
    exec(compile("".join(blocks_of(guide.name)), guide.name, "exec"), names)
    result, split = names["result"], names["made"]
    assert isinstance(result, rm.Evaluation)
    assert set(result.user_ids.tolist()) == set(split.test["user_id"].to_list())  # type: ignore[attr-defined]
    assert 0 < result.mean()["ndcg@10"] < 1
