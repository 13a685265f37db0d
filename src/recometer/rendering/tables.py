"""What a table shows: its columns, its rows, and the lines around them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from recometer.errors import visible
from recometer.rendering import formats
from recometer.rendering.formats import plain, value_of


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table: its title, and what of a row it shows.

    Attributes
    ----------
    title
        What people read above it.
    fields
        Names of the values that it shows together, such as ``("low", "high")``; CSV and JSON have
        each of them by itself. Empty: one, called like the title.
    show
        Makes a text of these values.
    number
        Whether it is aligned to the right.
    wraps
        Whether a narrow terminal may break it into lines.
    hidden
        Whether only CSV and JSON have it.
    spare
        Whether lines that are too narrow for all columns leave it out first, and say so.
    """

    title: str
    fields: tuple[str, ...] = ()
    show: Callable[..., str] = str
    number: bool = False
    wraps: bool = False
    hidden: bool = False
    spare: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values that it shows."""
        return self.fields or (self.title,)


class Shown:
    """What can be shown as a table, in every format."""

    def table(self) -> Table:
        """Return the table that people read."""
        raise NotImplementedError

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return tables that are not wider than `width` columns, if that is possible."""
        return [self.table()]

    def data(self) -> Table:
        """Return the table that CSV holds; its rows have the values themselves."""
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        table = self.data()
        return {"rows": table.records(), "notes": [*table.head, *table.notes]}

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a table in Markdown; also write it to a path if one is given."""
        return formats.written(formats.to_markdown(self), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a LaTeX table for the package booktabs; also write it to a path if given."""
        return formats.written(formats.to_latex(self), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return an HTML table with every text escaped; also write it to a path if given."""
        return formats.written(formats.to_html(self), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return everything in JSON, undefined values as null; also write it to a path if given."""
        return formats.written(formats.to_json(self), path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return rows in CSV, undefined values empty; also write them to a path if one is given.

        Texts are as they are. `to_spreadsheet` is for programs that would compute some of them.
        """
        return formats.written(formats.to_csv(self), path)

    def to_spreadsheet(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return CSV that is safe to open in a spreadsheet program; also write it to a path.

        A text that such a program would take as a formula (it begins with ``=``, ``+``, ``-`` or
        ``@``) has an apostrophe before it. Numbers are as in `to_csv`.
        """
        return formats.written(formats.to_spreadsheet(self), path)


class Printed(Shown):
    """What ``print`` and notebooks show as a table, too."""

    def __str__(self) -> str:
        return formats.to_text(self, formats.width_of_lines())

    def _repr_html_(self) -> str:
        return formats.to_notebook(self)


@dataclasses.dataclass(frozen=True)
class Table(Printed):
    """What is shown, whatever the format.

    Attributes
    ----------
    columns
    rows
        Mappings, or objects with attributes, that have the values of the columns.
    notes
        Lines below the table.
    legend
        Lines that explain the signs in the cells, before the notes; LaTeX has them within the
        table.
    head
        Lines above it.
    best
        Cells to highlight, each as (row, column).
    """

    columns: Sequence[Column]
    rows: Sequence[Any]
    notes: Sequence[str] = ()
    head: Sequence[str] = ()
    best: Collection[tuple[int, int]] = ()
    legend: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("notes", "head", "legend"):
            object.__setattr__(self, name, [visible(line) for line in getattr(self, name)])

    def table(self) -> Table:
        """Return the table itself."""
        return self

    @property
    def shown(self) -> list[Column]:
        """The columns that people read."""
        return [column for column in self.columns if not column.hidden]

    @property
    def below(self) -> list[str]:
        """All lines below the table."""
        return [*self.legend, *self.notes]

    @property
    def headers(self) -> list[str]:
        """Their titles."""
        return [visible(column.title) for column in self.shown]

    def cells(self) -> list[list[str]]:
        """Return the texts of all rows, as people read them."""
        return [
            [
                visible(column.show(*(value_of(row, name) for name in column.names)))
                for column in self.shown
            ]
            for row in self.rows
        ]

    def fields(self) -> list[str]:
        """Return the names of all values of a row."""
        return list(dict.fromkeys(name for column in self.columns for name in column.names))

    def records(self) -> list[dict[str, Any]]:
        """Return a dict of plain values per row, undefined ones as None."""
        return [{name: plain(value_of(row, name)) for name in self.fields()} for row in self.rows]

    def marked(self, mark: Callable[[str], str], escape: Callable[[str], str]) -> list[list[str]]:
        """Return escaped texts of all rows, the best of them marked."""
        return [
            [
                mark(escape(cell)) if (row, column) in self.best else escape(cell)
                for column, cell in enumerate(line)
            ]
            for row, line in enumerate(self.cells())
        ]
