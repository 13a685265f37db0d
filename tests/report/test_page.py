"""Tests that reports are written as pages or Markdown, and charts as separate files."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import recometer as rm
from recometer.report import page

ITEM = "</script><script>alert(1)</script>"
USER = '"><img src=x onerror=alert(1)>'
MODEL = "<b>als</b> & co"


class Tags(html.parser.HTMLParser):
    """A parser that collects a page's tags and the contents of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.texts[-1] += data


@pytest.fixture
def text(comparison: rm.Comparison, _no_vega: None) -> str:
    return str(comparison.report().to_html())


@pytest.fixture
def tags(text: str) -> Tags:
    parsed = Tags()
    parsed.feed(text)
    return parsed


def test_names_from_data_are_escaped(text: str, tags: Tags) -> None:
    names = [tag for tag, _ in tags.found]
    assert "img" not in names
    assert "b" not in names
    assert names.count("script") == 3
    for name in (ITEM, USER, MODEL):
        assert name not in text
    data = json.loads(next(script for script in tags.texts if script.startswith("{")))
    assert ITEM in {identity for identity, _ in data["inspector"]["items"].values()}
    assert MODEL in data["inspector"]["models"]


def test_every_chart_has_a_place_in_the_page(comparison: rm.Comparison, tags: Tags) -> None:
    charts = {chart.name for chart in comparison.report().model.charts}
    assert len(charts) > 5
    placed = {attrs["data-chart"] for _, attrs in tags.found if "data-chart" in attrs}
    assert charts - placed == set(), "Hint: place it in src/recometer/report/assets/report.html.j2"


def test_content_policy_allows_only_the_scripts_of_the_page(tags: Tags) -> None:
    (policy,) = (attrs["content"] for tag, attrs in tags.found if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    executed = [scripts for scripts in tags.texts if not scripts.startswith("{")]
    assert len(executed) == 3
    for script in executed:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_page_fetches_nothing(text: str, tags: Tags) -> None:
    addresses = [
        value
        for _, attrs in tags.found
        for name, value in attrs.items()
        if name in ("src", "href", "action") and value and not value.startswith("#")
    ]
    assert addresses == []
    assert "@import" not in text


def test_ids_are_distinct_and_labels_refer_to_them(tags: Tags) -> None:
    ids = [attrs["id"] for _, attrs in tags.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [attrs["href"] for tag, attrs in tags.found if tag == "a"]
    labelled = [attrs["aria-labelledby"] for _, attrs in tags.found if "aria-labelledby" in attrs]
    assert {str(target).removeprefix("#") for target in (*targets, *labelled)} <= set(ids)


def test_json_cannot_end_its_script_element() -> None:
    dangerous_texts = ["</script>", "<!--", "a & b", "\u2028\u2029"]
    text = page.as_json(dangerous_texts)
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert json.loads(text) == dangerous_texts


def test_markdown_contains_the_numbers_of_the_page(comparison: rm.Comparison) -> None:
    report = comparison.report()
    text = report.to_markdown()
    place = report.model.standings[0].places[0]
    assert f"{place.mean:.4f}" in text
    words = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<(?!!--)", words)
    assert "&lt;b>als" in text
    assert "## Protocol" in text


def test_charts_can_be_drawn_in_notebooks(
    comparison: rm.Comparison, results: dict[str, Any]
) -> None:
    assert "leaderboard" in dir(comparison.plot)
    chart = comparison.plot.leaderboard("hit@5")
    assert {row["model"] for row in chart["data"]["values"]} == {MODEL, "bpr", "random"}
    assert chart._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert results["bpr"].plot.values() is not None
    with pytest.raises(AttributeError, match="no chart 'leaderbord'"):
        comparison.plot.leaderbord()
    with pytest.raises(rm.InputError, match="has no data for 'ndcg@7'"):
        comparison.plot.leaderboard("ndcg@7")


def test_every_chart_can_be_saved(comparison: rm.Comparison, tmp_path: Path) -> None:
    report = comparison.report()
    for name in report.charts:
        report.save_chart(tmp_path / f"{name}.svg", name)
        svg = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert svg.startswith("<svg"), name
        assert svg.count("<path") > 3, name
        assert "<script" not in svg
    report.save_chart(tmp_path / "board.png", "leaderboard", "hit@5")
    assert (tmp_path / "board.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(rm.InputError, match=r"written as .png or .svg"):
        report.save_chart("board.gif", "leaderboard")
    with pytest.raises(rm.UnknownNameError, match="no chart 'bord'"):
        report.save_chart("board.png", "bord")


@pytest.mark.usefixtures("_no_vega")
def test_files_of_other_programs_are_kept(comparison: rm.Comparison, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(rm.FileError, match=r"not written by recometer.*Hint: choose another name"):
        comparison.report(path)
    assert path.read_text(encoding="utf-8") == "mine"
    path.unlink()
    comparison.report(path)
    comparison.report(path, title="Once more")
    assert "<title>Once more</title>" in path.read_text(encoding="utf-8")
    comparison.report(tmp_path / "report.md")
    comparison.report(tmp_path / "report.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]


def test_invalid_paths_of_reports_are_refused(comparison: rm.Comparison, tmp_path: Path) -> None:
    with pytest.raises(rm.FileError, match="is a folder"):
        comparison.report(_folder(tmp_path / "a.html"))
    with pytest.raises(rm.FileError, match="there is no folder"):
        comparison.report(tmp_path / "none" / "report.html")
    with pytest.raises(rm.InputError, match=r"written as .html or .md"):
        comparison.report(tmp_path / "report.pdf")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("module", "package"), [("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")]
)
def test_error_names_a_missing_package(
    comparison: rm.Comparison,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    module: str,
    package: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"the package {package}.*recometer\\[report\\]"):
        comparison.report(tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
    assert comparison.report(tmp_path / "report.md")


def test_names_break_after_their_separators() -> None:
    broken = str(page.breakable("two-tower_128 <b> bpr.v2"))
    assert broken == "two-<wbr>tower_<wbr>128 &lt;b&gt; bpr.<wbr>v2"
