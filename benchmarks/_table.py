"""Measurements and their targets as a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Measure:
    """A row of the table.

    `ours` and `other` are formatted numbers; `value` is compared with `target`.
    """

    name: str
    ours: str
    other: str
    value: float
    target: float | None = None
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Return whether the target is reached, or None without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target

    def cells(self) -> list[str]:
        """Return the cells of the row."""
        words = {None: "", True: "yes", False: "NO"}
        bound = "" if self.target is None else f"{'≤' if self.at_most else '≥'} {self.target:g}"
        return [self.name, self.ours, self.other, number(self.value), bound, words[self.reached]]


HEADERS = ["measure", "ours", "other", "value", "to reach", "reached"]


def number(value: float) -> str:
    """Format a number with three digits: 123, 12.3, 1.23, 0.0123."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def seconds(value: float) -> str:
    """Format a time."""
    return f"{number(value)} s" if value >= 1 else f"{number(1000 * value)} ms"


def markdown(headers: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return an aligned Markdown table."""
    lines = [headers, *lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([rows[0], rule, *rows[1:]])
