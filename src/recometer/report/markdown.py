"""The report in Markdown, with all text and tables, and the first numbers of every chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from recometer.rendering import in_markdown as escape
from recometer.report.model import Chart, Facts, Field, Inspector, ReportModel, Standings
from recometer.report.writing import MARK

MOST_ROWS = 40  # maximum number of rows of numbers shown for a chart
MOST_USERS = 6  # maximum number of users shown from the inspector


def to_markdown(model: ReportModel) -> str:
    """Return the report in Markdown, without a line break at the end."""
    said = model.headline
    parts = [
        f"<!-- {MARK} {model.version} -->",
        f"# {escape(model.title)}",
        escape(model.subtitle),
        f"**{escape(said.verdict)}**",
        _list(said.sentences),
        *(part for one in model.before for part in _facts(one)),
        "## Leaderboard",
        *(_standings(one) for one in model.standings),
        *(part for one in model.after for part in _facts(one)),
    ]
    if isinstance(model.audit, str):
        parts += ["## Audit of the split", escape(model.audit)] if model.audit else []
    else:
        rows = [
            (one.level if one.count else "not checked", one.found, one.sentence)
            for one in model.audit.told()
        ]
        parts += ["## Audit of the split", escape(model.audit.verdict)]
        parts += [_table(("level", "count", "finding"), rows)] if rows else []
    for chart in model.charts:
        if chart.kind != "leaderboard":
            parts += [f"## {escape(chart.title)}", escape(chart.text), _numbers(chart)]
    if model.inspector is not None:
        parts += ["## Lists of single users", *_users(model.inspector)]
    parts += ["## Protocol", *(part for one in model.protocol for part in _facts(one))]
    # Names are in Python string literals, where escapes are safe. A name can therefore neither end
    # the code block nor look like a tag.
    call = model.call.replace("`", r"\x60").replace("<", r"\x3c")
    parts += [f"```python\n{call}\n```"]
    if model.notes:
        parts += ["## Notes", _list(model.notes)]
    if model.missing:
        parts += ["## What is not shown", _list(model.missing)]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(value: Any, field: Field) -> str:
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


def _standings(one: Standings) -> str:
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
        for place in one.places
    ]
    better = "" if one.higher_is_better else " (lower is better)"
    chance = "" if math.isnan(one.chance) else f"; chance {one.chance:.4f}"
    head = ("rank", "model", "mean", "low", "high", "users")
    return f"### {escape(one.metric + better + chance)}\n\n{_table(head, rows)}"


def _numbers(chart: Chart) -> str:
    options = [f"{choice.label}: {choice.options[0]}" for choice in chart.choices]
    rows = chart.first
    cells = [
        [shown(row.get(field.name), field) for field in chart.fields] for row in rows[:MOST_ROWS]
    ]
    more = f"\n\n{len(rows) - MOST_ROWS:,} more rows." if len(rows) > MOST_ROWS else ""
    head = escape("; ".join(options)) + "\n\n" if options else ""
    return head + _table([field.title for field in chart.fields], cells) + more


def _users(inspector: Inspector) -> list[str]:
    parts = [escape(inspector.note)] if inspector.note else []
    for user in inspector.users[:MOST_USERS]:
        head = f"{inspector.who} {user.id} ({', '.join(user.kinds)})"
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
