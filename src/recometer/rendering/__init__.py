"""Show tables in terminals and as plain text, Markdown, LaTeX, HTML, JSON and CSV.

A result declares its columns (`Column`) and its rows (`Table`); all formats follow from these.
"""

from recometer.rendering.formats import (
    FORMATS,
    Column,
    Printed,
    Shown,
    Table,
    in_markdown,
    output,
    plain,
    render,
    width_of_lines,
    wrapped,
    write_text,
)

__all__ = [
    "FORMATS",
    "Column",
    "Printed",
    "Shown",
    "Table",
    "in_markdown",
    "output",
    "plain",
    "render",
    "width_of_lines",
    "wrapped",
    "write_text",
]
