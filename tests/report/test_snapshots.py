"""All sections of the report's page match the reviewed snapshots."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest

import recometer as rm

FOLDER = Path(__file__).with_name("snapshots")
PARTS = ("verdict", "leaderboard", "users", "lists", "groups", "audit", "protocol")
N_USERS, N_ITEMS = 32, 8


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """Return the sections of a page about two models, whose values are exact on all processors."""
    from recometer.report import page

    user, item = np.arange(N_USERS), np.arange(N_ITEMS)
    place = (item - user[:, np.newaxis]) % N_ITEMS
    train, test = place < 1 + user[:, np.newaxis] % 3, place == 5
    scores = {"old": -((place + user[:, np.newaxis] % 4) % N_ITEMS), "<new>": place % 6}
    results = {
        name: rm.evaluate(
            rm.Scores(of.astype(float)),
            test,
            train=train,
            metrics="hit@1,2,4 rr coverage@2",
            chance=True,
            progress=False,
        )
        for name, of in scores.items()
    }
    # These parts of the page differ between machines.
    changes = {"versions": {"recometer": "1.0"}, "timings": {"total": 0.125}}
    results = {name: dataclasses.replace(one, **changes) for name, one in results.items()}  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "vega", lambda: "")
        text = str(rm.compare(results, primary="hit@2").report(users=["5"]).to_html())
    found = re.findall(r'(<section id="(\w+)".*?</section>)', text, re.DOTALL)
    return {name: re.sub(r"\n\s*\n+", "\n", shown) + "\n" for shown, name in found}


def test_every_section_has_a_snapshot(sections: dict[str, str]) -> None:
    assert tuple(sections) == PARTS
    assert {path.stem for path in FOLDER.iterdir()} == {*PARTS}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_the_page(sections: dict[str, str], part: str) -> None:
    """If this fails, set RECOMETER_SNAPSHOTS=write to update the snapshots, and review the diff."""
    path = FOLDER / f"{part}.html"
    if os.environ.get("RECOMETER_SNAPSHOTS") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(sections[part], encoding="utf-8", newline="\n")
    expected = path.read_text(encoding="utf-8")
    assert sections[part] == expected, test_parts_of_the_page.__doc__
