"""Prints tables to standard output, in colours if it is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recometer.rendering.formats import (
    GAP,
    Fitted,
    Shown,
    blocks_of,
    render,
    to_text,
    width_of_lines,
)

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def output(shown: Shown, form: str = "table", *, folded: bool = True) -> None:
    """Write a result to standard output, with styled tables if it is a terminal.

    In plain text, each row is one line of any length, unless `folded`.
    """
    if form != "table":
        print(render(shown, form), flush=True)
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        print(to_text(shown, width_of_lines() if folded else None), flush=True)
        return
    for number, block in enumerate(filter(None, blocks_of(shown, console.width))):
        if number:
            console.print()
        if not isinstance(block, Fitted):
            for line in block:
                console.print(line, markup=False)
            continue
        if block.above:
            console.print(block.above, markup=False)
        console.print(rich_table(block))


def rich_table(part: Fitted) -> RichTable:
    """Return a table for a terminal, without the lines around it."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for column, header in zip(part.columns, part.headers, strict=True):
        justify = "right" if column.number else "left"
        styled.add_column(Text(header), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row, line in enumerate(part.rows):
        styles = ["bold green" if (row, at) in part.best else "" for at in range(len(line))]
        styled.add_row(*(Text(cell, style) for cell, style in zip(line, styles, strict=True)))
    return styled
