"""Tables on standard output, in colours if that is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recometer.rendering.formats import GAP, WIDTH, render, to_text
from recometer.rendering.tables import Shown, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def output(shown: Shown, form: str = "table", width: int | None = WIDTH) -> None:
    """Write something to standard output; a table is styled if that is a terminal.

    The width is that of lines of plain text. None writes one line per row, however long.
    """
    if form != "table":
        print(render(shown, form), flush=True)
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        print(to_text(shown, width), flush=True)
        return
    for number, table in enumerate(shown.tables(console.width)):
        lines = ([""] if number else []) + ([*table.head, ""] if table.head else [])
        for line in lines:
            console.print(line, markup=False)
        console.print(rich_table(table))
        for line in ["", *table.below] if table.below else []:
            console.print(line, markup=False)


def rich_table(table: Table) -> RichTable:
    """Return a table for a terminal, without the lines around it."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for column in table.shown:
        justify = "right" if column.number else "left"
        styled.add_column(column.title, justify=justify, no_wrap=not column.wraps)  # type: ignore[arg-type]
    for row, line in enumerate(table.cells()):
        styles = ["bold green" if (row, at) in table.best else "" for at in range(len(line))]
        styled.add_row(*(Text(cell, style) for cell, style in zip(line, styles, strict=True)))
    return styled
