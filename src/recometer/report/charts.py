"""Vega-Lite charts and their themes, as dicts for pages and notebooks, or as image files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recometer import errors
from recometer.comparing.rows import NO_DIFFERENCE
from recometer.errors import InputError, quantity
from recometer.report.model import SAME, Chart, Key

# The modules of the extra "report", which are imported on first use, and their packages.
PACKAGES = {"jinja2": "jinja2", "vl_convert": "vl-convert-python"}

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
IMAGES = {".png": "png", ".svg": "svg"}
IMAGE_WIDTH = 640
ROW = 34  # the height of a row of marks, in pixels
SHAPES = [
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down"),
    *("triangle-right", "triangle-left", "stroke", "arrow"),
]
DASHES = [
    *([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 4], [1, 3], [6, 2, 1, 2], [3, 1], [12, 3])
]
OUTCOMES = {"domain": ["better off", "the same", "worse off"], "range": "diverging3"}
# These colours contrast with their background, and colour-blind people can tell them apart.
LIGHT = {
    "category": [
        *("#0072b2", "#c24e00", "#117733", "#aa4499", "#7a6000", "#332288", "#b0505f", "#2f6f73"),
        *("#5c5c5c", "#000000", "#8c564b"),
    ],
    "who": ["#0072b2", "#b8bec6", "#c24e00"],
    "text": "#1d2733",
    "muted": "#55606e",
    "grid": "#e3e7ec",
    "accent": "#0072b2",
    "warm": "#c24e00",
}
DARK = {
    "category": [
        *("#56b4e9", "#f0a04b", "#4cc38a", "#dd9bc4", "#e8d44d", "#a99cf0", "#f08a9a", "#7fc8c8"),
        *("#b5bdc6", "#ffffff", "#d0a58f"),
    ],
    "who": ["#56b4e9", "#5a6572", "#f0a04b"],
    "text": "#e8edf2",
    "muted": "#a9b4c0",
    "grid": "#323d49",
    "accent": "#56b4e9",
    "warm": "#f0a04b",
}


SPECS: dict[str, Callable[[Chart], Spec]] = {}
"""The functions that draw charts, keyed by `Chart.kind`."""


def drawing(kind: str) -> Callable[[Callable[[Chart], Spec]], Callable[[Chart], Spec]]:
    """Return a decorator that registers a function for drawing charts of the given kind."""

    def register(function: Callable[[Chart], Spec]) -> Callable[[Chart], Spec]:
        SPECS[kind] = function
        return function

    return register


def spec_of(chart: Chart) -> Spec:
    """Return a chart's Vega-Lite specification, without data and as wide as its container."""
    spec = SPECS[chart.kind](chart)
    return {
        "$schema": SCHEMA,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "rows", "values": []},
        **spec,
    }


def with_rows(chart: Chart, options: Sequence[str], theme: Mapping[str, Any] = LIGHT) -> Spec:
    """Return a chart's specification with its rows and a fixed width.

    Raises
    ------
    InputError
        If the chart does not have these options.
    """
    spec = copy.deepcopy(spec_of(chart))
    rows = [dict(row) for row in chart.rows[_key(chart, options)]]
    colours = theme["who"]
    spec["data"] = {"values": rows}
    return {
        **_with_range(spec, colours),
        "width": IMAGE_WIDTH,
        "title": {"text": chart.title, "anchor": "start", "color": theme["text"]},
        "config": config(theme),
    }


class Drawing(dict[str, Any]):
    """A Vega-Lite specification with its data, which notebooks display as a chart."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        svg = str(need("vl_convert").vegalite_to_svg(dict(self)))
        return {"application/vnd.vegalite.v6+json": dict(self), "image/svg+xml": svg}


def image(chart: Chart, options: Sequence[str], suffix: str) -> bytes:
    """Return a chart as the content of a PNG or an SVG file."""
    spec = with_rows(chart, options)
    spec["config"]["background"] = "white"
    convert = need("vl_convert")
    if suffix == ".png":
        return bytes(convert.vegalite_to_png(spec, scale=2))
    return str(convert.vegalite_to_svg(spec)).encode()


def _key(chart: Chart, options: Sequence[str]) -> Key:
    if not options:
        return tuple(choice.options[0] for choice in chart.choices)
    key = tuple(options)
    if key not in chart.rows:
        choices = "; ".join(
            f"{choice.label.lower()}: {', '.join(choice.options)}" for choice in chart.choices
        )
        raise InputError(
            f"The chart {chart.name!r} has no data for {', '.join(map(repr, key))}. Hint: it takes "
            f"{quantity(len(chart.choices), 'option')}. {choices}."
        )
    return key


def _with_range(spec: Any, colours: Sequence[str]) -> Any:
    """Replace the range of `OUTCOMES` with colours, because Vega-Lite has no such range."""
    if isinstance(spec, dict):
        return {
            name: list(colours)
            if (name, v) == ("range", OUTCOMES["range"])
            else _with_range(v, colours)
            for name, v in spec.items()
        }
    return [_with_range(value, colours) for value in spec] if isinstance(spec, list) else spec


def _x(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": None, **more}


def _by_model(chart: Chart) -> tuple[Spec, Spec, Spec]:
    """Return encodings of models as colours, dashes and shapes, the same in all charts."""
    models, n = list(chart.models), len(chart.models)
    base = _names("model", title=None)
    legend = {"symbolOpacity": 1, "symbolStrokeWidth": 2}
    return (
        {**base, "scale": {"domain": models}, "legend": legend},
        {**base, "scale": {"domain": models, "range": _repeated(DASHES, n)}, "legend": {}},
        {**base, "scale": {"domain": models, "range": _repeated(SHAPES, n)}, "legend": {}},
    )


def _repeated(values: list[Any], n: int) -> list[Any]:
    return (values * (n // len(values) + 1))[:n]


def _tooltip(chart: Chart) -> list[Spec]:
    formats = {"number": ".4f", "signed": "+.4f", "count": ",", "share": ".1%"}
    return [
        {"field": field.name, "title": field.title}
        | (
            {"format": formats[field.kind], "type": "quantitative"}
            if field.kind in formats
            else {"type": "nominal"}
        )
        for field in chart.fields
    ]


def _layer(mark: Spec, *, transform: Sequence[Spec] = (), **encoding: object) -> Spec:
    """Return a chart layer whose marks encode the fields of the rows."""
    steps = {"transform": list(transform)} if transform else {}
    return {**steps, "mark": mark, "encoding": encoding}


def _names(field: str, **more: Any) -> Spec:
    """Return the encoding of a field that contains names, in the order of the rows."""
    return {"field": field, "type": "nominal", "sort": None, **more}


def _outcome(**more: Any) -> Spec:
    return {"field": "who", "type": "nominal", "title": None, "scale": OUTCOMES, **more}


def _at_zero(**encoding: Any) -> Spec:
    line = _layer({"type": "rule", "style": "zero"}, x=_x("zero"), **encoding)
    return {"data": {"values": [{"zero": 0}]}, **line}


def _points(chart: Chart, filled: str) -> list[Spec]:
    """Draw a point and its interval for each row; `filled` is the condition for filled points."""
    y = _names(chart.fields[0].name, title=None)
    near = {"zero": False}
    fill = {"condition": {"test": filled, "value": 1}, "value": 0}
    ends = _x("low", scale=near)
    return [
        _layer({"type": "rule", "style": "interval"}, y=y, x=ends, x2={"field": "high"}),
        _layer(
            {"type": "point", "size": 110, "strokeWidth": 2},
            y=y,
            x=_x("mean", scale=near),
            fillOpacity=fill,
            fill={"value": LIGHT["accent"]},
            tooltip=_tooltip(chart),
        ),
    ]


@drawing("leaderboard")
def _leaderboard(chart: Chart) -> Spec:
    chance = {"field": "chance", "type": "quantitative", "format": ".4f", "title": "chance"}
    minimum = {"aggregate": [{"op": "min", "field": "chance", "as": "chance"}]}
    line = _layer(
        {"type": "rule", "style": "chance"},
        transform=[{"filter": "isValid(datum.chance)"}, minimum],
        x=_x("chance"),
        tooltip=[chance],
    )
    points = _points(chart, f"datum.verdict == '{SAME}'")
    return {"height": ROW * max(chart.lines, 1), "layer": [*points, line]}


@drawing("item_groups")
def _item_groups(chart: Chart) -> Spec:
    zero = [_at_zero(y=None)] if chart.fields[1].kind == "signed" else []
    points = _points(chart, f"datum.verdict != '{NO_DIFFERENCE}'")
    return {"height": ROW * max(chart.lines, 1), "layer": [*points, *zero]}


@drawing("curves")
def _curves(chart: Chart) -> Spec:
    color, dash, shape = _by_model(chart)
    x = _x("k", axis={"tickMinStep": 1, "title": "k"}, scale={"zero": False, "nice": False})
    band = _x("low", scale={"zero": False})
    points = {"type": "point", "size": 36, "filled": True}
    return {
        "height": 280,
        "encoding": {"x": x, "color": color},
        "layer": [
            _layer({"type": "area", "opacity": 0.14}, y=band, y2={"field": "high"}),
            _layer({"type": "line"}, y=_x("mean"), strokeDash=dash),
            _layer(points, y=_x("mean"), shape=shape, tooltip=_tooltip(chart)),
        ],
    }


@drawing("tradeoff")
def _tradeoff(chart: Chart) -> Spec:
    color, _, shape = _by_model(chart)
    x, y = (_x(name, scale={"zero": False, "padding": 24}) for name in ("x", "y"))
    return {
        "height": 320,
        "layer": [
            _layer(
                {"type": "line", "style": "front"},
                transform=[{"filter": "datum.front"}],
                x=x,
                y=y,
                order={"field": "x", "type": "quantitative"},
            ),
            _layer(
                {"type": "point", "filled": True},
                x=x,
                y=y,
                color=color,
                shape=shape,
                size={"condition": {"test": "datum.front", "value": 190}, "value": 70},
                tooltip=_tooltip(chart),
            ),
        ],
    }


@drawing("ridges")
def _ridges(chart: Chart) -> Spec:
    n = max(chart.lines, 1)
    scale = {"domain": [-1, n - 1], "reverse": True, "nice": False, "zero": False}
    y = {"type": "quantitative", "scale": scale, "axis": None}
    first = {"op": "min", "field": "line", "as": "line"}
    return {
        "height": n * 64,
        "layer": [
            _layer(
                {"type": "bar", "opacity": 0.85, "binSpacing": 1},
                transform=[{"calculate": "datum.line - 0.72 * datum.height", "as": "top"}],
                x=_x("from", bin="binned"),
                x2={"field": "to"},
                y={"field": "line", **y},
                y2={"field": "top"},
                tooltip=_tooltip(chart),
            ),
            _layer(
                {"type": "text", "align": "left", "fontWeight": 600},
                transform=[
                    {"aggregate": [first], "groupby": ["model"]},
                    {"calculate": "datum.line - 0.86", "as": "above"},
                ],
                x={"value": 0},
                y={"field": "above", **y},
                text={"field": "model", "type": "nominal"},
            ),
        ],
    }


@drawing("winners")
def _winners(chart: Chart) -> Spec:
    labels = {"labelExpr": _in_two_lines(" minus "), "labelBaseline": "bottom"}
    bars = _layer(
        {"type": "bar", "height": 24},
        x=_x("from", axis={"format": "%"}, scale={"domain": [0, 1]}),
        x2={"field": "to"},
        color=_outcome(),
        tooltip=_tooltip(chart),
    )
    y = _names("pair", title=None, axis=labels)
    return {"height": ROW * max(chart.lines, 1), "encoding": {"y": y}, "layer": [bars]}


@drawing("differences")
def _differences(chart: Chart) -> Spec:
    bars = _layer(
        {"type": "bar", "binSpacing": 1},
        x=_x("from", bin="binned"),
        x2={"field": "to"},
        y=_x("users", axis={"title": "users", "tickMinStep": 1}),
        color=_outcome(),
        tooltip=_tooltip(chart),
    )
    return {"height": 220, "layer": [bars, _at_zero()]}


def _in_two_lines(separator: str) -> str:
    """Return a Vega expression that breaks a label into two lines before `separator`."""
    parts = f"split(datum.label, '{separator}')"
    return f"length({parts}) == 2 ? [{parts}[0], '{separator.lstrip()}' + {parts}[1]] : datum.label"


@drawing("by_group")
def _by_group(chart: Chart) -> Spec:
    """Draw a point for each model in each group, with a separate line for each model."""
    color, _, shape = _by_model(chart)
    group = _names("group", axis={"title": chart.fields[0].title}, scale={"paddingInner": 0.35})
    points = _layer(
        {"type": "point", "size": 70, "filled": True, "opacity": 1},
        y=group,
        yOffset=_names("model", scale={"domain": list(chart.models)}),
        x=_x("mean", scale={"zero": False}),
        color=color,
        shape=shape,
        tooltip=_tooltip(chart),
    )
    return {"height": max(chart.lines, 1) * (12 * len(chart.models) + 20), "layer": [points]}


@drawing("signed_bars")
def _signed_bars(chart: Chart) -> Spec:
    y = _names("group", axis={"title": chart.fields[0].title})
    bars = _layer(
        {"type": "bar", "height": 20},
        x=_x("mean"),
        color=_outcome(legend=None),
        tooltip=_tooltip(chart),
    )
    return {
        "height": ROW * max(chart.lines, 1),
        "encoding": {"y": y},
        "layer": [bars, _at_zero(y=None)],
    }


@drawing("popularity")
def _popularity(chart: Chart) -> Spec:
    color, dash, _ = _by_model(chart)
    return {
        "height": 300,
        "encoding": {
            "x": _x("items", axis={"format": "%", "title": "most popular items"}),
            "y": _x("share", axis={"format": "%", "title": "share of recommendations"}),
            "color": color,
            "strokeDash": dash,
            "tooltip": _tooltip(chart),
        },
        "mark": {"type": "line", "interpolate": "linear", "strokeWidth": 2.5},
    }


@drawing("dots")
def _dots(chart: Chart) -> Spec:
    points = {"type": "point", "size": 80, "filled": True, "opacity": 0.7}
    mean = {"aggregate": [{"op": "mean", "field": "mean", "as": "mean"}], "groupby": ["model"]}
    return {
        "height": ROW * max(chart.lines, 1),
        "encoding": {"y": _names("model", title=None), "x": _x("mean", scale={"zero": False})},
        "layer": [
            _layer(points, tooltip=_tooltip(chart)),
            {"transform": [mean], "mark": {"type": "tick", "thickness": 3, "size": 22}},
        ],
    }


def need(module: str) -> Any:
    """Import a module of the extra "report", or raise an error if it is not installed."""
    return errors.need(module, "A report", "report", PACKAGES[module])


def config(theme: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a theme."""
    words = {"labelColor": theme["text"], "titleColor": theme["muted"]}
    return {
        "background": "transparent",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "view": {"stroke": None},
        "axis": {
            **words,
            "gridColor": theme["grid"],
            "domainColor": theme["grid"],
            "tickColor": theme["grid"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 150,
        },
        # On narrow pages, fewer ticks have labels, so that labels never overlap.
        "axisX": {"labelOverlap": "parity", "labelSeparation": 8},
        "legend": {
            **words,
            "labelFontSize": 12,
            "orient": "bottom",
            "columns": {"expr": "width < 420 ? 1 : 2"},
            "labelLimit": {"expr": "width < 420 ? 280 : 170"},
        },
        "range": {"category": theme["category"]},
        "mark": {"color": theme["accent"]},
        "text": {"fill": theme["text"], "fontSize": 12},
        "rule": {"color": theme["muted"]},
        "style": {
            "interval": {"stroke": theme["accent"], "strokeWidth": 3},
            "chance": {"stroke": theme["warm"], "strokeDash": [4, 3], "strokeWidth": 2},
            "zero": {"stroke": theme["text"], "strokeWidth": 1},
            "front": {"stroke": theme["muted"], "strokeDash": [4, 3]},
        },
    }
