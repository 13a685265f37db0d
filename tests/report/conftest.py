"""Fixtures with evaluations whose names would run as code if reports did not escape them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import recometer as rm

ITEM = "</script><script>alert(1)</script>"
USER = '"><img src=x onerror=alert(1)>'
MODEL = "<b>als</b> & co"
METRICS = "ndcg@5 recall@1..5 hit@5 roc_auc coverage@5 novelty@5"


def sources_and_data(n_users: int = 60, n_items: int = 30) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sources of three models, and the options test, train and catalogue."""
    rng = np.random.default_rng(0)
    items = [ITEM, *(f"item {number:02}" for number in range(1, n_items))]
    users = [USER, *(f"user {number:02}" for number in range(1, n_users))]
    uniform = rng.random((n_users, n_items))
    test, train = uniform < 0.12, uniform > 0.75
    test[0, 0], train[0, 0] = True, False
    order = np.argsort(items), np.argsort(users)

    def frame(matrix: Any) -> pl.DataFrame:
        rows, columns = np.nonzero(matrix)
        data = {
            "user_id": [users[row] for row in rows],
            "item_id": [items[column] for column in columns],
        }
        return pl.DataFrame(data)

    def source(strength: float) -> rm.Scores:
        noise = rng.random((n_users, n_items))
        scores = (noise + strength * test)[np.ix_(order[1], order[0])]
        return rm.Scores(scores, user_ids=sorted(users), item_ids=sorted(items))

    titles = [f"Title of {item}" for item in items]
    data = {
        "test": rm.Interactions.of(frame(test)),
        "train": rm.Interactions.of(frame(train)),
        "catalogue": rm.Catalogue({"item_id": items, "title": titles}),
    }
    return {MODEL: source(0.5), "bpr": source(0.2), "random": source(0.0)}, data


@pytest.fixture(scope="session")
def results() -> dict[str, rm.Evaluation]:
    sources, data = sources_and_data()
    return {
        name: rm.evaluate(source, metrics=METRICS, chance=True, progress=False, **data)
        for name, source in sources.items()
    }


@pytest.fixture(scope="session")
def comparison(results: dict[str, rm.Evaluation]) -> rm.Comparison:
    return rm.compare(results, primary="ndcg@5")


@pytest.fixture
def _no_vega(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave Vega out of pages that no browser opens, since bundling it takes seconds."""
    monkeypatch.setattr("recometer.report.page.vega", lambda: "window.vegaEmbed = null;")
