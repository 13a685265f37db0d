"""Parts of the page as they were when somebody last looked at them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from results import evaluation

import recometer as rm

FOLDER = Path(__file__).with_name("snapshots")
PARTS = ("verdict", "leaderboard", "users")


@pytest.fixture(scope="module")
def text() -> str:
    """Return the page of two models whose values are exact on every processor."""
    from recometer.report import page

    values = np.arange(64) % 8 / 8
    results = {
        "old": evaluation({"ndcg@10": values.tolist(), "hit@10": (values > 0.5).tolist()}),
        "<new>": evaluation({"ndcg@10": ((values + 1) / 2).tolist(), "hit@10": [1.0] * 64}),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "vega", lambda: "")
        return str(rm.compare(results, primary="ndcg@10").report().to_html())


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_the_page(text: str, part: str) -> None:
    """RECOMETER_SNAPSHOTS=write writes them anew: look at the difference before you commit it."""
    found = re.search(rf'<section id="{part}".*?</section>', text, re.DOTALL)
    assert found is not None
    path = FOLDER / f"{part}.html"
    shown = re.sub(r"\n\s*\n+", "\n", found[0]) + "\n"
    if os.environ.get("RECOMETER_SNAPSHOTS") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8", newline="\n")
    assert shown == path.read_text(encoding="utf-8"), test_parts_of_the_page.__doc__
