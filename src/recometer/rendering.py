"""A table of texts, and how it is shown as plain text and as HTML."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

__all__ = ["Table", "to_html", "to_text"]


@dataclasses.dataclass(frozen=True)
class Table:
    """What is shown, whatever the format.

    Attributes
    ----------
    headers
        Names of the columns.
    rows
        A text per column.
    numbers
        Names of the columns that are aligned to the right.
    notes
        Lines below the table.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()
    notes: Sequence[str] = ()


def to_text(table: Table) -> str:
    """Return the table as plain text, without a line break at its end."""
    lines = [table.headers, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [header in table.numbers for header in table.headers]
    texts = [
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*texts, *([""] if table.notes else []), *table.notes])


def to_html(table: Table) -> str:
    """Return the table as HTML, every text escaped."""

    def cells(tag: str, line: Sequence[str]) -> str:
        aligned = [
            f' style="text-align: {"right" if header in table.numbers else "left"}"'
            for header in table.headers
        ]
        return "".join(
            f"<{tag}{style}>{html.escape(cell)}</{tag}>"
            for cell, style in zip(line, aligned, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    notes = "\n".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    return (
        f"<table>\n<thead><tr>{cells('th', table.headers)}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n{notes}"
    )
