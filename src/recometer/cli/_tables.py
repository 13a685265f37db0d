"""Tables for people: rich on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from recometer.rendering import Table, to_text

if TYPE_CHECKING:
    from rich.table import Table as RichTable

GAP = 2  # between two columns


def print_table(table: Table, wrapped: Collection[str] = (), width: int | None = None) -> None:
    """Print a table to standard output.

    Parameters
    ----------
    table
        Its notes follow it after an empty line.
    wrapped
        Names of the columns that a narrow terminal may break into lines.
    width
        Of the lines where the output is no terminal; None: a line per row, however long.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        print(to_text(table, width), flush=True)
        return
    console.print(rich_table(table, wrapped=wrapped))
    if table.notes:
        console.print()
    for note in table.notes:
        console.print(note, markup=False)


def rich_table(
    table: Table,
    *,
    wrapped: Collection[str] = (),
    best: Collection[tuple[int, int]] = (),
) -> RichTable:
    """Return a table for a terminal, without its notes.

    Parameters
    ----------
    table
    wrapped
        Names of the columns that may be broken into lines.
    best
        Cells to highlight, each as (row, column).
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for header in table.headers:
        right = header in table.numbers
        styled.add_column(
            header, justify="right" if right else "left", no_wrap=header not in wrapped
        )
    for row, line in enumerate(table.rows):
        styled.add_row(
            *(
                Text(cell, style="bold green" if (row, column) in best else "")
                for column, cell in enumerate(line)
            )
        )
    return styled
