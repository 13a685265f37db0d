"""Makes the page of a report, and writes reports to files.

The page is HTML that needs no other files, with a Content-Security-Policy that forbids eval. Files
are written completely or not at all, and never replace files of other kinds.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from recometer.comparing.rows import PairRow
from recometer.data.paths import as_path, is_replaced, write_atomic
from recometer.data.storage import check_replaced
from recometer.errors import FileError, python_or_command
from recometer.report import charts
from recometer.report.model import Chart, Inspector, ReportModel, Standings

# These characters in JSON could end a script element or a line of JavaScript.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
MISSING = "\u2013"  # shown instead of a missing number
DIGITS = 6  # numbers in charts have this many significant digits


def to_html(model: ReportModel) -> str:
    """Return the report as an HTML page."""
    markup = charts.need("jinja2").utils.markupsafe.Markup
    style, script, library = _asset("report.css"), _asset("report.js"), vega()
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; "
        f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    text: str = _template().render(
        mark=MARK,
        model=model,
        policy=policy,
        style=markup(style),
        script=markup(script),
        library=markup(library),
        data=markup(as_json(data_of(model))),
        difference=None if model.headline.difference is None else bar(model.headline.difference),
        board=board(model.standings[0]),
        included=included(model.inspector),
    )
    return text


@functools.lru_cache(maxsize=1)
def _template() -> Any:
    """Return the template of the page, cached because compiling it takes longer than filling it."""
    jinja = charts.need("jinja2")
    environment = jinja.Environment(
        loader=jinja.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    environment.filters |= {"number": number, "signed": signed, "breakable": breakable}
    return environment.get_template("report.html.j2")


def check_extra() -> None:
    """Raise an error if a package that the page needs is not installed."""
    for module in ("jinja2", "vl_convert"):
        charts.need(module)


@functools.lru_cache(maxsize=1)
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = charts.need("vl_convert").javascript_bundle("window.vegaEmbed=vegaEmbed;")
    # These strings would end the script element or start a comment.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def as_json(content: Any) -> str:
    """Return content as JSON that is safe inside a script element, whatever strings it contains."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character, escaped in UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def data_of(model: ReportModel) -> dict[str, Any]:
    """Return the data for the page's script."""
    return {
        "charts": {chart.name: _chart(chart) for chart in model.charts},
        "themes": {
            name: {"config": charts.config(theme), "who": theme["who"], "accent": theme["accent"]}
            for name, theme in (("light", charts.LIGHT), ("dark", charts.DARK))
        },
        "inspector": None if model.inspector is None else _inspector(model.inspector),
        "best": [
            (s.metric, place.model) for s in model.standings for place in s.places if place.best
        ],
    }


def number(value: float | None, digits: int = 4) -> str:
    """Return a number as text, or a dash if it is missing."""
    return MISSING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def breakable(name: str) -> Any:
    """Return a name as HTML that may break after separators, but not within words."""
    markup = charts.need("jinja2").utils.markupsafe
    return markup.Markup(re.sub(r"([-_/.:]+)(?=\w)", r"\1<wbr>", str(markup.escape(name))))


def signed(value: float) -> str:
    """Return a difference as text with its sign, or a dash if it is missing."""
    return MISSING if math.isnan(value) else f"{value:+.4f}".replace("-", "\u2212")


def _scale(values: Iterable[float], margin: float) -> Callable[[float], float | None]:
    """Return a function that maps values to coordinates from `margin` to 100 - `margin`."""
    defined = [value for value in values if not math.isnan(value)]
    low, high = min(defined, default=0.0), max(defined, default=1.0)
    width = (high - low) or 1.0

    def coordinate(value: float) -> float | None:
        if math.isnan(value):
            return None
        return round(margin + (100 - 2 * margin) * (value - low) / width, 2)

    return coordinate


def _width(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else round(high - low, 2)


def bar(row: PairRow) -> dict[str, Any]:
    """Return the coordinates of a difference and its interval, between 0 and 100."""
    scale = _scale((0.0, row.difference, row.low, row.high), 6)
    has_interval = not math.isnan(row.low)
    low, high = (scale(row.low), scale(row.high)) if has_interval else [scale(row.difference)] * 2
    return {
        "zero": scale(0.0),
        "low": low,
        "width": max(_width(low, high) or 0, 0.8),
        "difference": scale(row.difference),
        "of": row,
    }


def board(standings: Standings) -> dict[str, Any]:
    """Return the leaderboard of a metric, with the coordinates of its means and intervals."""
    places = standings.places
    ends = [value for place in places for value in (place.mean, place.low, place.high)]
    scale = _scale([*ends, standings.chance], 2)
    rows = [
        {
            "place": place,
            "low": scale(place.low),
            "width": _width(scale(place.low), scale(place.high)),
            "mean": scale(place.mean),
        }
        for place in places
    ]
    return {"standings": standings, "rows": rows, "chance": scale(standings.chance)}


def included(inspector: Inspector | None) -> str:
    """Return a sentence that says which users the page contains, and how to add others."""
    if inspector is None:
        return ""
    noun, n = inspector.noun, len(inspector.users)
    if n == inspector.n_all:
        return f"Contains all {n:,} {noun}s."
    named = python_or_command("users=['4711']", "--show 4711")
    return (
        f"Contains {n:,} of {inspector.n_all:,} {noun}s: those with the largest changes, some "
        f"drawn at random, and those named when the report was made, as in {named}."
    )


def _chart(chart: Chart) -> dict[str, Any]:
    names = list(
        dict.fromkeys(name for rows in chart.rows.values() for row in rows for name in row)
    )
    places = [{option: i for i, option in enumerate(choice.options)} for choice in chart.choices]

    def key(options: tuple[str, ...]) -> str:
        return ",".join(str(row[option]) for row, option in zip(places, options, strict=True))

    return {
        "spec": charts.spec_of(chart),
        "title": chart.title,
        "fields": [[field.name, field.title, field.kind] for field in chart.fields],
        "choices": [{"label": c.label, "options": list(c.options)} for c in chart.choices],
        "columns": names,
        "rows": {
            key(options): [[_rounded(row.get(name)) for name in names] for row in rows]
            for options, rows in chart.rows.items()
        },
    }


def _rounded(value: Any) -> Any:
    """Return content as JSON types, with numbers rounded to `DIGITS` digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return list(map(_rounded, value))
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return _rounded(vars(value)) if dataclasses.is_dataclass(value) else value


def _inspector(inspector: Inspector) -> dict[str, Any]:
    users = [
        {
            **vars(user),
            "values": {
                name: [by_metric[metric] for metric in inspector.metrics]
                for name, by_metric in user.values.items()
            },
        }
        for user in inspector.users
    ]
    content: dict[str, Any] = _rounded({**vars(inspector), "users": users})
    return content


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


MARK = "recometer report"
"""A string in the first line of every report."""
HEADS = {".png": b"\x89PNG", ".svg": b"<svg"}


def check(path: str | os.PathLike[str], inputs: tuple[str, ...] = ()) -> None:
    """Raise FileError if a report cannot be written to the path, or would replace another file."""
    path = as_path(path, "a report")
    if path.is_dir():
        raise FileError(f"{path} is a folder. Hint: name a file in it, such as report.html.")
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}.")
    try:
        check_replaced([path], is_report, inputs)
    except FileError as error:
        # The original hint is about folders, so replace it.
        hint = "choose another name, or remove the file."
        raise FileError(f"{error.reason} Hint: {hint}") from None


def is_report(path: Path) -> bool:
    """Return whether a file is a recometer report."""
    return MARK.encode() in _first_line(path)


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(200)
    except OSError:
        return b""


def write(path: str | os.PathLike[str], text: str) -> str:
    """Write a report and return it, escaping lone surrogates, which UTF-8 cannot encode."""
    check(path)
    write_atomic(as_path(path, "a report"), text.encode("utf-8", errors="backslashreplace"))
    return text


def write_image(path: str | os.PathLike[str], image: bytes, suffix: str) -> None:
    """Write a chart; it may replace another image of the same format."""
    path = as_path(path, "a chart")
    if path.exists() and is_replaced(path) and not _first_line(path).startswith(HEADS[suffix]):
        raise FileError(
            f"{path} exists and is not in the {suffix[1:].upper()} format, so it is not replaced. "
            "Hint: choose another name."
        )
    write_atomic(path, image)
