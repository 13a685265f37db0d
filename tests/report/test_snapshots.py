"""Tests that all sections of a report match their reviewed snapshots."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest

import recometer as rm
from recometer.report import Report

FOLDER = Path(__file__).with_name("snapshots")
PARTS = ("verdict", "leaderboard", "users", "lists", "groups", "audit", "protocol")
N_USERS, N_ITEMS = 32, 8


def policies() -> Report:
    """Return a report on two policies whose values are the same on every processor."""
    user = np.arange(256) // 2
    shown_probability, good = np.where(user % 2, 0.5, 0.25), np.where(user % 2, 0.75, 0.0625)
    frame = {"user": user, "item": user % 2, "click": user % 3 % 2, "shown": shown_probability}
    log = rm.Impressions(frame, user="user", item="item", reward="click", propensity="shown")
    values = log.evaluate({"<new>": good, "old": shown_probability}, estimators="snips ips")
    versus = values.compare(baseline="logged")
    return versus.report(gates=versus.gate("snips >= -50%"))


@pytest.mark.parametrize("form", ["html", "txt"])
def test_report_of_policies_matches_its_snapshot(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, set RECOMETER_SNAPSHOTS=write to update the snapshots, and review the diff."""
    monkeypatch.setattr("recometer.report.page.vega", lambda: "")
    report = policies()
    text = report.to_markdown()
    if form == "html":
        text = re.sub(r"\n\s*\n+", "\n", report.to_html())
        text = text[text.index("<main") : text.index("</main>")]
    path = FOLDER.with_name(f"policies.{form}")
    check(
        path,
        text.replace(rm.__version__, "1.0"),
        test_report_of_policies_matches_its_snapshot.__doc__,
    )


def by_items() -> tuple[rm.Comparison, rm.Evaluation]:
    """Return a comparison of two models by item groups, and the evaluation of the first model."""
    user, item = np.arange(N_USERS), np.arange(N_ITEMS)
    test = (item + user[:, np.newaxis]) % 4 == 0
    good = (item - user[:, np.newaxis]) % N_ITEMS
    scores = {"good": np.where(test, 9, good), "old": np.where(test & (item < 4), 9, good)}
    groups = ["<new>" if number % 4 else "old" for number in item]
    results = {
        name: rm.evaluate(rm.Scores(values.astype(float)), test, metrics="hit@1 recall@2").by_items(
            groups
        )
        for name, values in scores.items()
    }
    return rm.compare(results, baseline="old"), results["good"]


def test_chart_of_item_groups_matches_its_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, set RECOMETER_SNAPSHOTS=write to update the snapshots, and review the diff."""
    monkeypatch.setattr("recometer.report.page.vega", lambda: "")
    compared, alone = by_items()
    texts = [page.report().to_html() for page in (compared, alone)]
    parts = [re.search(r'<section id="groups".*?</section>', page, re.DOTALL) for page in texts]
    sections_of_pages = (
        "\n".join(re.sub(r"\n\s*\n+", "\n", part[0]) for part in parts if part) + "\n"
    )
    check(
        FOLDER.with_name("item_groups.html"),
        sections_of_pages,
        test_chart_of_item_groups_matches_its_snapshot.__doc__,
    )
    chart = compared.report().model.chart("item_groups")
    assert chart is not None
    for (metric, pair), rows in chart.rows.items():
        assert pair == "good minus old"
        for row in rows:
            name = f"{metric}[{row['group']}]"
            assert row["mean"] == pytest.approx(compared.row(name, "good").difference, abs=1e-8)
            assert row["verdict"] == compared.row(name, "good").verdict


def check(path: Path, content: str, doc: str | None) -> None:
    """Compare a string with a snapshot, or update the snapshot."""
    if os.environ.get("RECOMETER_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    assert content == path.read_text(encoding="utf-8"), doc


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """Return the sections of a page on two models whose values are the same on every processor."""
    user, item = np.arange(N_USERS), np.arange(N_ITEMS)
    place = (item - user[:, np.newaxis]) % N_ITEMS
    train, test = place < 1 + user[:, np.newaxis] % 3, place == 5
    scores = {"old": -((place + user[:, np.newaxis] % 4) % N_ITEMS), "<new>": place % 6}
    results = {
        name: rm.evaluate(
            rm.Scores(values.astype(float)),
            test,
            train=train,
            metrics="hit@1,2,4 rr coverage@2",
            chance=True,
            progress=False,
        )
        for name, values in scores.items()
    }
    # Versions and timings differ between machines, so replace them.
    changes = {"versions": {"recometer": "1.0"}, "timings": {"total": 0.125}}
    results = {name: dataclasses.replace(result, **changes) for name, result in results.items()}  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recometer.report.page.vega", lambda: "")
        text = str(rm.compare(results, primary="hit@2").report(users=["5"]).to_html())
    matches = re.findall(r'(<section id="(\w+)".*?</section>)', text, re.DOTALL)
    return {name: re.sub(r"\n\s*\n+", "\n", section) + "\n" for section, name in matches}


def test_every_section_has_a_snapshot(sections: dict[str, str]) -> None:
    assert tuple(sections) == PARTS
    assert {path.stem for path in FOLDER.iterdir()} == {*PARTS}


@pytest.mark.parametrize("part", PARTS)
def test_every_section_matches_its_snapshot(sections: dict[str, str], part: str) -> None:
    """If this fails, set RECOMETER_SNAPSHOTS=write to update the snapshots, and review the diff."""
    check(FOLDER / f"{part}.html", sections[part], test_every_section_matches_its_snapshot.__doc__)
