"""A table of texts, and how it is shown as plain text and as HTML."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence

WIDTH = 100  # of what is printed
NARROWEST = 30  # of a column that is broken into lines


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


def to_text(table: Table, width: int | None = None) -> str:
    """Return the table as plain text, without a line break at its end.

    Parameters
    ----------
    table
    width
        If it is given, long texts in the last column, and notes, are broken into lines that end
        before this column.
    """
    lines = [table.headers, *table.rows]
    notes = table.notes
    if width is not None:
        lines = _broken(lines, width)
        notes = [wrapped(note, width) for note in notes]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [header in table.numbers for header in table.headers]
    texts = [
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*texts, *([""] if notes else []), *notes])


def wrapped(text: str, width: int = WIDTH) -> str:
    """Break a text into lines; all but the first are indented by two more columns."""
    begin = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text, width, subsequent_indent=begin + "  ", break_long_words=False, break_on_hyphens=False
    )


def _broken(lines: Sequence[Sequence[str]], width: int) -> list[Sequence[str]]:
    """Continue long texts of the last column in lines that are otherwise empty."""
    before = sum(max(map(len, column)) + 2 for column in list(zip(*lines, strict=True))[:-1])
    found: list[Sequence[str]] = []
    for *cells, last in lines:
        parts = textwrap.wrap(
            last, max(width - before, NARROWEST), break_long_words=False, break_on_hyphens=False
        )
        found.append([*cells, *(parts[:1] or [""])])
        found += [[*[""] * len(cells), part] for part in parts[1:]]
    return found


def to_html(table: Table) -> str:
    """Return the table as HTML, every text escaped."""
    import html  # not needed in a terminal

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
