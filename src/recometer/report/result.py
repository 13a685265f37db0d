"""The class `Report`, which writes a report as an HTML page or in Markdown."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from recometer.data.paths import as_path
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.rendering import in_markdown as escape
from recometer.report import charts, page
from recometer.report.model import Chart, Facts, Field, Inspector, ReportModel, Standings
from recometer.report.page import MARK

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


class Report:
    """The result of `Comparison.report` and `Evaluation.report`.

    Attributes
    ----------
    model : recometer.report.model.ReportModel
        The content of the report, which does not depend on its format.
    """

    def __init__(self, model: ReportModel) -> None:
        self.model = model

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return an HTML page that needs no other files, and write it to the path, if any.

        Raises
        ------
        FileError
            If the path cannot be written, or is an existing file that is not a recometer report.
        MissingExtraError
            If the packages of the extra ``report`` are not installed.
        """
        text = page.to_html(self.model)
        return text if path is None else page.write(path, text)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report in Markdown, without charts; also write it to the path, if any."""
        text = to_markdown(self.model)
        return text if path is None else page.write(path, text)

    @property
    def charts(self) -> tuple[str, ...]:
        """Return the names of the charts in this report."""
        return tuple(chart.name for chart in self.model.charts)

    def chart(self, name: str, *options: str) -> Any:
        """Return a chart as a Vega-Lite specification: a dict that notebooks display as a chart.

        Parameters
        ----------
        name
            One of the names in `charts`.
        options
            An option for each choice that the chart offers, such as ``"ndcg@10"``. The defaults are
            the options that the page shows first.
        """
        return charts.Drawing(charts.with_rows(self._chart(name), options))

    def save_chart(self, path: str | os.PathLike[str], name: str, *options: str) -> None:
        """Write a chart to a PNG or SVG file, depending on the file's extension.

        Raises
        ------
        InputError
            If the file's name ends in neither ``.png`` nor ``.svg``.
        """
        suffix = as_path(path, "a chart").suffix.lower()
        if suffix not in charts.IMAGES:
            raise InputError(
                f"{os.fspath(path)!r}: charts are written as .png or .svg. Hint: "
                f"save_chart('{name}.svg', {name!r})."
            )
        image = charts.image(self._chart(name), options, suffix)
        page.write_image(path, image, suffix)

    def __repr__(self) -> str:
        return f"<Report: {self.model.headline.verdict}>"

    def _chart(self, name: str) -> Chart:
        chart = self.model.chart(name)
        if chart is None:
            raise UnknownNameError(
                f"The report has no chart {name!r}. {did_you_mean(name, self.charts)}"
            )
        return chart


def make_report(content: Callable[[], ReportModel], path: str | os.PathLike[str] | None) -> Report:
    """Check the path if one is given, make a report, and write it there."""
    if path is None:
        return Report(content())
    form = format_of(path)
    check_report(path)
    report = Report(content())
    page.write(path, report.to_html() if form == "html" else report.to_markdown())
    return report


def check_report(path: str | os.PathLike[str], inputs: Sequence[str] = ()) -> None:
    """Raise an error early if a report cannot be written or would replace an input.

    Raises
    ------
    FileError
        If the path is a file that is not a report, or its folder does not exist.
    MissingExtraError
        If a package that pages need is not installed.
    """
    page.check(path, tuple(inputs))
    if format_of(path) == "html":
        page.check_extra()


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format for a file's extension, or raise an error if there is none."""
    suffix = as_path(path, "a report").suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"{os.fspath(path)!r}: a report is written as .html or .md. Hint: report.html."
        )
    return FORMATS[suffix]


MOST_ROWS = 40  # maximum number of rows shown in the table of a chart's numbers
MOST_USERS = 6  # maximum number of the inspector's users that are shown


def to_markdown(model: ReportModel) -> str:
    """Return the report in Markdown, without a line break at the end."""
    headline = model.headline
    parts = [
        f"<!-- {MARK} {model.version} -->",
        f"# {escape(model.title)}",
        escape(model.subtitle),
        f"**{escape(headline.verdict)}**",
        _list(headline.sentences),
        *(part for facts in model.facts_before for part in _facts(facts)),
        "## Leaderboard",
        *(_standings(standings) for standings in model.standings),
        *(part for facts in model.facts_after for part in _facts(facts)),
    ]
    if isinstance(model.audit, str):
        parts += ["## Audit of the split", escape(model.audit)] if model.audit else []
    else:
        rows = [
            (finding.level if finding.count else "not checked", finding.found, finding.sentence)
            for finding in model.audit.notable()
        ]
        parts += ["## Audit of the split", escape(model.audit.verdict)]
        parts += [_table(("level", "count", "finding"), rows)] if rows else []
    for chart in model.charts:
        if chart.kind != "leaderboard":
            parts += [f"## {escape(chart.title)}", escape(chart.text), _numbers(chart)]
    if model.inspector is not None:
        parts += ["## Lists for individual users", *_users(model.inspector)]
    parts += ["## Protocol", *(part for facts in model.protocol for part in _facts(facts))]
    # Names are in Python string literals, where escapes are safe. A name can therefore neither end
    # the code block nor look like a tag.
    call = model.call.replace("`", r"\x60").replace("<", r"\x3c")
    parts += [f"```python\n{call}\n```"]
    if model.notes:
        parts += ["## Notes", _list(model.notes)]
    if model.missing:
        parts += ["## What is not shown", _list(model.missing)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(value: Any, field: Field) -> str:
    """Return a value of a chart as text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    forms = {"number": "{:.4f}", "signed": "{:+.4f}", "count": "{:,}", "share": "{:.1%}"}
    if field.kind == "flag":
        return "yes" if value else ""
    return forms.get(field.kind, "{}").format(value)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"* {escape(line)}" for line in lines)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(map(escape, cells))} |"

    return "\n".join([line(headings), f"|{' --- |' * len(headings)}", *map(line, rows)])


def _standings(standings: Standings) -> str:
    def text(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.4f}"

    rows = [
        (
            place.rank,
            place.model
            + (
                " (best)" if place.leads else " (no difference from it shown)" if place.best else ""
            ),
            *map(text, (place.mean, place.low, place.high)),
            f"{place.n:,}",
        )
        for place in standings.places
    ]
    better = "" if standings.higher_is_better else " (lower is better)"
    chance = "" if math.isnan(standings.chance) else f"; chance {standings.chance:.4f}"
    head = ("rank", "model", "mean", "low", "high", "users")
    return f"### {escape(standings.metric + better + chance)}\n\n{_table(head, rows)}"


def _numbers(chart: Chart) -> str:
    options = [f"{choice.label}: {choice.options[0]}" for choice in chart.choices]
    rows = chart.first
    cells = [
        [_cell(row.get(field.name), field) for field in chart.fields] for row in rows[:MOST_ROWS]
    ]
    more = f"\n\n{len(rows) - MOST_ROWS:,} more rows." if len(rows) > MOST_ROWS else ""
    head = escape("; ".join(options)) + "\n\n" if options else ""
    return head + _table([field.title for field in chart.fields], cells) + more


def _users(inspector: Inspector) -> list[str]:
    parts = [escape(inspector.note)] if inspector.note else []
    for user in inspector.users[:MOST_USERS]:
        head = f"{inspector.noun} {user.id} ({', '.join(user.kinds)})"
        parts.append(f"### {escape(head)}")
        for model in user.lists:
            lists = user.lists[model]
            rows = []
            for entry in lists.entries:
                identity, title = inspector.items[entry.item]
                score = "" if entry.score is None else f"{entry.score:.4g}"
                rows.append(
                    (f"{entry.rank}", title or identity, score, "✓" if entry.relevant else "")
                )
            parts += [escape(model), _table(("rank", "item", "score", "relevant"), rows)]
    return parts


def _facts(facts: Facts) -> list[str]:
    rows = facts.rows[:MOST_ROWS]
    more = f"{len(facts.rows) - MOST_ROWS:,} more rows." if len(facts.rows) > MOST_ROWS else ""
    return [f"### {escape(facts.title)}", escape(facts.text), _table(facts.headings, rows), more]
