"""Tests that reports work in Chromium when opened from disk, without a network."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recometer as rm

pytestmark = pytest.mark.browser

ITEM = "</script><script>alert(1)</script>"
USER = '"><img src=x onerror=alert(1)>'
MODEL = "<b>als</b> & co"
PHONE, TABLET, DESK = 390, 800, 1300


@pytest.fixture(scope="module")
def report(comparison: rm.Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    comparison.report(path, users=[USER], n_users=3)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses to start as root unless its sandbox is off.
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield browser
        browser.close()


class Opened:
    """An open page, and the errors that have occurred on it."""

    def __init__(self, chromium: Any, path: Path, width: int, scheme: str) -> None:
        self.wrong: list[str] = []
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page = context.new_page()
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(request.url))
        self.page.on("dialog", self._dialog)
        self.page.goto(path.as_uri())

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def draw_all(self) -> Any:
        """Scroll to each chart, since only visible charts are drawn; return all charts."""
        figures = self.page.locator("[data-chart]")
        for number in range(figures.count()):
            figures.nth(number).scroll_into_view_if_needed()
            figures.nth(number).locator("xpath=self::*[@data-state='drawn']").wait_for()
        return figures


@pytest.fixture(params=[(DESK, "light"), (TABLET, "dark"), (PHONE, "dark")], ids=str)
def opened(request: pytest.FixtureRequest, chromium: Any, report: Path) -> Iterator[Opened]:
    page = Opened(chromium, report, *request.param)
    yield page
    page.page.context.close()


@pytest.fixture
def wide_page(chromium: Any, report: Path) -> Iterator[Opened]:
    page = Opened(chromium, report, DESK, "light")
    yield page
    assert page.wrong == []
    page.page.context.close()


def test_all_charts_are_drawn_without_errors(opened: Opened) -> None:
    figures = opened.draw_all()
    assert figures.count() >= 9
    for number in range(figures.count()):
        drawing = figures.nth(number).locator(".drawing svg")
        marks = drawing.locator(".mark-symbol path, .mark-rect path, .mark-line path")
        assert marks.count() >= 3, figures.nth(number).get_attribute("data-chart")
    wide = opened.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    assert opened.wrong == []


def test_names_from_data_are_shown_as_text(wide_page: Opened) -> None:
    page = wide_page.page
    page.fill("#search", "<img")
    assert page.inner_text("#user") == f"user {USER}"
    assert page.locator("#models label").first.inner_text() == MODEL
    assert ITEM in page.inner_text("#columns")
    assert page.locator("#lists img, #lists b:not(.values b)").count() == 0
    hover = page.locator("[data-chart=leaderboard]")
    hover.scroll_into_view_if_needed()
    hover.locator(".mark-symbol path").first.hover()
    page.locator("#vg-tooltip-element.visible").wait_for()
    assert MODEL in page.inner_text("#vg-tooltip-element")


def test_headings_sort_the_table(wide_page: Opened) -> None:
    board = wide_page.page.locator("table.sortable").first
    names = board.locator("tbody th")
    assert names.first.inner_text().startswith(MODEL)
    board.get_by_role("button", name="Mean").press("Enter")
    assert names.first.inner_text().strip() == "random"
    assert board.locator("th[aria-sort=ascending]").inner_text().startswith("Mean")
    board.get_by_role("button", name="Model").click()
    assert names.first.inner_text().strip() == "random"


def test_users_can_be_searched_and_models_switched(wide_page: Opened) -> None:
    page = wide_page.page
    harmed = page.locator("#verdict [data-user]")
    name = harmed.inner_text()
    page.fill("#search", "none")
    assert "Not in this report" in page.inner_text("#found")
    page.fill("#search", "")
    harmed.click()
    assert page.inner_text("#user") == name
    assert page.locator("#columns .list").count() == 3
    page.locator("#models input").last.uncheck()
    assert page.locator("#columns h4").all_inner_texts() == [MODEL, "bpr"]
    page.select_option("#kind", "most improved")
    assert page.locator("#userlist button").count() == 3


def test_charts_follow_the_selected_options(wide_page: Opened) -> None:
    figure = wide_page.page.locator("[data-chart=leaderboard]")
    figure.locator("summary").click()
    before = figure.locator("table").inner_text()
    figure.locator("select").select_option(label="hit@5")
    assert figure.locator("table").inner_text() != before
    assert figure.locator("tbody tr").count() == 3


def test_button_switches_between_dark_and_light(wide_page: Opened) -> None:
    page = wide_page.page

    def background_colour() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    wide_page.draw_all()
    light = background_colour()
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert background_colour() != light


@pytest.fixture(scope="module")
def report_of_one_model(
    results: dict[str, rm.Evaluation], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write a report on a single model, without a comparison; return its path."""
    path = tmp_path_factory.mktemp("alone") / "report.html"
    changes = {"chance": {}, "inputs_kept": None, "lists": None}
    dataclasses.replace(results["bpr"], **changes).report(path, name="bpr")  # type: ignore[arg-type]
    return path


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report with a policy's estimated value and a gate; return its path."""
    user = np.arange(256) // 2
    frame = {"user": user, "item": user % 2, "click": user % 3 % 2, "shown": [0.5] * 256}
    log = rm.Impressions(frame, user="user", item="item", reward="click", propensity="shown")
    versus = log.evaluate({MODEL: np.where(user % 2, 0.75, 0.25)}).compare(baseline="logged")
    path = tmp_path_factory.mktemp("policies") / "report.html"
    versus.report(path, gates=versus.gate("snips >= -50%"))
    return path


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("report", "light"), ("report_of_one_model", "dark"), ("policies", "light")],
)
def test_axe_finds_nothing_serious(
    chromium: Any, request: pytest.FixtureRequest, name: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    opened = Opened(chromium, request.getfixturevalue(name), DESK, scheme)
    opened.draw_all()
    # The test evaluates Axe's script, since the page's content policy would block a script tag.
    violations = Axe().run(opened.page).response["violations"]
    serious = [
        (violation["id"], [node["html"] for node in violation["nodes"]][:3])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert opened.wrong == []
    opened.page.context.close()
