"""Themes for charts on a light and on a dark background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# These colours contrast with their background, and colour-blind people can tell them apart.
LIGHT = {
    "category": [
        *("#0072b2", "#c24e00", "#117733", "#aa4499", "#7a6000", "#332288", "#b0505f", "#2f6f73"),
        *("#5c5c5c", "#000000", "#8c564b"),
    ],
    "heatmap": ["#f2f7fb", "#8fc1e3"],
    "diverging": ["#f0a875", "#f7f7f7", "#8fc1e3"],
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
    "heatmap": ["#1b2530", "#1f5f8b"],
    "diverging": ["#8a4b1f", "#1f2731", "#1f5f8b"],
    "who": ["#56b4e9", "#5a6572", "#f0a04b"],
    "text": "#e8edf2",
    "muted": "#a9b4c0",
    "grid": "#323d49",
    "accent": "#56b4e9",
    "warm": "#f0a04b",
}


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
        "range": {name: theme[name] for name in ("category", "heatmap", "diverging")},
        "mark": {"color": theme["accent"]},
        "text": {"fill": theme["text"], "fontSize": 12},
        "rule": {"color": theme["muted"]},
        "style": {
            "interval": {"stroke": theme["accent"], "strokeWidth": 3},
            "chance": {"stroke": theme["warm"], "strokeDash": [4, 3], "strokeWidth": 2},
            "zero": {"stroke": theme["text"], "strokeWidth": 1},
            "front": {"stroke": theme["muted"], "strokeDash": [4, 3]},
            "in-bar": {"fill": theme["text"], "fontSize": 12, "fontWeight": 600},
        },
    }
