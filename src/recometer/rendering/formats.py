"""Tables in all formats: plain text, terminal output, Markdown, LaTeX, HTML, JSON and CSV.

A new format needs a function that takes a `Shown`, an entry in `FORMATS` and a method of `Shown`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
import shutil
import sys
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recometer.data.paths import as_path, write_atomic
from recometer.errors import InputError, UnknownNameError, did_you_mean, visible

if TYPE_CHECKING:
    from rich.table import Table as RichTable

WIDTH = 100  # characters per printed line
LEFT_OUT = "Left out for lack of width: {}."
NARROWEST, NARROW = 30, 16  # the minimum width of a broken column; NARROW if several are broken
# These characters have a special meaning in Markdown, except for "_" within words.
MARKDOWN = re.compile(r"[\\`*{}\[\]<|&~]|^>|(?<![^\W_])_|_(?![^\W_])|^[-+#](?= )|^-(?=-+$)")
NUMBERED = re.compile(r"^(\d+)([.)])(?= )")
# These characters have a special meaning in HTML or, in the case of the backslash, Markdown.
ENTITIES = {"\\": "&#92;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
# Sites may turn these characters into a mention of a person, a reference to an issue, or a link.
ADDRESSES = re.compile(r"(?<!\w)@(?=\w)|@(?=[^\W\d])|(?<!\w)#(?=\w)|:(?=//)|\bwww(?=\.)")
ZERO_WIDTH = "\u200b"  # a zero-width space, which `visible` always escapes
# In spreadsheets, formulas begin with one of these characters, some of which are full-width.
FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
GAP = 2  # the number of spaces between two columns
HUGE = 1e12  # numbers of this size or more are shown in scientific notation
MOST_LINES = 10_000  # JSON is indented only if it then has fewer lines
# TeX reads these characters as commands, or shows them as other characters.
LATEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
}


# The lines between rows have the colour of the text, which is light in dark notebooks.
NOTEBOOK = (
    ".recometer table{border-collapse:collapse;font-size:.9em;font-variant-numeric:tabular-nums}"
    ".recometer th,.recometer td{padding:.15em .7em;border:0;background:none;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
    ".recometer p{font-size:.85em;margin:.2em 0;opacity:.8;max-width:60em}"
)


def number(value: float, sign: str = "") -> str:
    """Return a number as text: with four decimals, or as ``1.7e+308`` if it is huge."""
    return f"{value:{sign}.4{'g' if abs(value) >= HUGE else 'f'}}"


def width_of_lines() -> int:
    """Return the width of lines of text: `WIDTH`, or less in a narrower terminal.

    If Python itself redirects standard output, as in a notebook or a test, the width of the
    terminal does not matter.
    """
    if sys.stdout is not sys.__stdout__:
        return WIDTH
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 1)).columns)


def to_text(result: Shown, width: int | None = None) -> str:
    """Return tables as plain text, without a line break at the end.

    If possible, lines are not wider than `width`; see `fitted`.
    """
    texts = (
        _lines(block, width)
        if isinstance(block, Fitted)
        else [wrapped(line, width) for line in block]
        for block in blocks_of(result, width)
    )
    return "\n\n".join("\n".join(lines) for lines in texts if lines)


def blocks_of(result: Shown, width: int | None) -> list[Fitted | Sequence[str]]:
    """Return tables fitted to a width, and the lines around them."""
    blocks: list[Fitted | Sequence[str]] = []
    left_out: dict[str, None] = {}
    below: Sequence[str] = []
    for table in result.tables(width):
        parts, titles = fitted(table, width)
        blocks += [below, table.head, *parts]
        below = table.below
        left_out |= dict.fromkeys(titles)
    note = [LEFT_OUT.format(", ".join(left_out))] if left_out else []
    return [*blocks, [*below, *note]]


def _lines(part: Fitted, width: int | None) -> list[str]:
    rows = [part.headers, *part.rows]
    widths = [max(map(_text_width, column)) for column in zip(*rows, strict=True)]
    lines = [wrapped(part.above, width)] if part.above else []
    for row in rows:
        cells = [cell.split("\n") for cell in row]
        for line in itertools.zip_longest(*cells, fillvalue=""):
            texts = (
                text.rjust(wide) if column.number else text.ljust(wide)
                for text, wide, column in zip(line, widths, part.columns, strict=True)
            )
            lines.append((" " * GAP).join(texts).rstrip())
    return lines


def wrapped(text: str, width: int | None = WIDTH) -> str:
    """Break a string into lines of at most `width` characters; indent all but the first line."""
    if width is None:
        return text
    begin = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text, width, subsequent_indent=begin + "  ", break_long_words=False, break_on_hyphens=False
    )


class Fitted(NamedTuple):
    """A table or some of its columns, with line breaks in cells that would be too wide.

    Attributes
    ----------
    columns
    headers, rows
        The column titles, and the text of each cell, row by row.
    best
        The cells to highlight, each as (row, column).
    above
        The line above the table, which shows the values that all rows share. It may be empty.
    """

    columns: Sequence[Column]
    headers: list[str]
    rows: list[list[str]]
    best: Collection[tuple[int, int]]
    above: str = ""


def fitted(table: Table, width: int | None) -> tuple[list[Fitted], list[str]]:
    """Fit a table to a width, and return its parts and the titles of omitted columns.

    The function tries these steps in order until the table fits:

    1. Break long cells of the last column, then titles.
    2. If all rows share a cell, show it once, above the table; leave out spare columns.
    3. Break the last column into narrower lines.
    4. If rows share their first cell, show it once, above their second cells.
    5. Break other cells.
    6. Move the remaining columns to additional tables, which repeat the first columns.
    """
    full = Fitted(table.shown, table.headers, table.cells(), table.best)
    if width is None or _fits(full, width, NARROWEST):
        return [_with_broken_last(full, width, NARROWEST)], []
    titled = _with_narrow_titles(full)
    if _fits(titled, width, NARROWEST):
        return [_with_broken_last(titled, width, NARROWEST)], []
    for narrow in (NARROWEST, NARROW):
        for variant in (full, titled):
            reduced, left_out = _without_spare(variant, width, narrow)
            if _fits(reduced, width, narrow):
                return [_with_broken_last(reduced, width, narrow)], left_out
    if _fits(grouped := _indented(reduced), width, NARROWEST):
        return [grouped], left_out
    keys = next((i for i, column in enumerate(reduced.columns) if column.number), 1)
    keys = max(1, min(keys, len(reduced.columns) - 1))
    reduced = _narrow(reduced, width, keys)
    groups: list[list[int]] = [[]]
    for i in range(keys, len(reduced.columns)):
        wider = [*range(keys), *groups[-1], i]
        if groups[-1] and not _fits(_select(reduced, wider), width, NARROW):
            groups.append([])
        groups[-1].append(i)
    parts = [_select(reduced, [*range(keys), *group]) for group in groups]
    parts[0] = parts[0]._replace(above=reduced.above)
    return [_with_broken_last(part, width, NARROW) for part in parts], left_out


def _without_spare(table: Fitted, width: int, narrow: int) -> tuple[Fitted, list[str]]:
    """Show shared values above the table, and omit spare columns until it fits."""
    shared = _shared(table) if len(table.rows) > 1 else []
    titles = [" ".join(title.split()) for title in table.headers]
    columns, left_out = [i for i in range(len(table.columns)) if i not in shared], []
    for i in list(columns):
        if table.columns[i].spare and not _fits(_select(table, columns), width, narrow):
            columns.remove(i)
            left_out.append(titles[i])
    above = "; ".join(f"{titles[i]}: {table.rows[0][i]}" for i in shared)
    return _select(table, columns)._replace(above=above), left_out


def _indented(table: Fitted) -> Fitted:
    """If rows share a first cell, show it in a row of its own, and merge the first two columns."""
    firsts = [row[0] for row in table.rows]
    numbers = any(column.number for column in table.columns[:2])
    if len(set(firsts)) == len(firsts) or table.best or numbers:
        return table
    rows: list[list[str]] = []
    for row, previous in zip(table.rows, [None, *firsts], strict=False):
        if row[0] != previous:
            rows.append([row[0], *[""] * (len(row) - 2)])
        rows.append(["  " + row[1], *row[2:]])
    headers = [f"{table.headers[0]}\n  {table.headers[1]}", *table.headers[2:]]
    return Fitted(table.columns[1:], headers, rows, (), table.above)


def _with_narrow_titles(table: Fitted) -> Fitted:
    """Break titles at spaces into lines that are no wider than the cells below, if possible."""
    wide = [max(map(len, column)) for column in zip(*table.rows, strict=True)] if table.rows else []
    titles = [_in_lines(title, max(n, 1)) for title, n in zip(table.headers, wide, strict=False)]
    return table._replace(headers=titles or table.headers)


def _shared(table: Fitted) -> list[int]:
    """Return the text columns with equal cells in all rows, but never all of the text columns."""
    shared = [
        i
        for i, column in enumerate(table.columns[:-1])
        if not column.number and len({row[i] for row in table.rows}) == 1
    ]
    texts = [i for i, column in enumerate(table.columns) if not column.number]
    return shared if len(texts) > len(shared) else shared[1:]


def _select(table: Fitted, columns: Sequence[int]) -> Fitted:
    """Return a table with only some of the columns."""
    return Fitted(
        [table.columns[i] for i in columns],
        [table.headers[i] for i in columns],
        [[row[i] for i in columns] for row in table.rows],
        {(row, i) for row, column in table.best for i, old in enumerate(columns) if old == column},
    )


def _text_width(text: str) -> int:
    return max(map(len, text.split("\n")))


def _widths(table: Fitted) -> list[int]:
    columns = zip(table.headers, *table.rows, strict=True)
    return [max(map(_text_width, column)) for column in columns]


def _fits(table: Fitted, width: int, narrow: int) -> bool:
    """Return whether a table fits if its last column is reduced to `narrow` characters."""
    *before, last = _widths(table)
    return sum(before) + GAP * len(before) + min(last, narrow) <= width


def _with_broken_last(table: Fitted, width: int | None, narrow: int) -> Fitted:
    """Break the cells of the last column into lines, so that the table fits if possible."""
    if width is None:
        return table
    *before, _ = _widths(table)
    space = max(width - sum(before) - GAP * len(before), narrow)
    return table._replace(rows=[[*cells, _in_lines(last, space)] for *cells, last in table.rows])


def _narrow(table: Fitted, width: int, keys: int) -> Fitted:
    """Break the widest cells at spaces, and if necessary within words, until the table fits.

    If that is not enough, narrow the first `keys` columns, which all parts repeat, even further.
    """
    targets = widths = _widths(table)
    words = [
        max(len(word) for text in column for word in text.split() or [""])
        for column in zip(table.headers, *table.rows, strict=True)
    ]
    texts = [i for i, column in enumerate(table.columns) if not column.number]
    first = range(min(keys, len(widths)))
    for columns, minima in (
        (texts, [max(n, NARROW) for n in words]),
        (texts, [NARROW] * len(widths)),
        ([i for i in texts if i in first], [NARROW // 2] * len(widths)),
    ):
        keys_only = columns is not texts
        space = width - (max(targets[keys:], default=0) + GAP if keys_only else 0)
        n = len(first) if keys_only else len(widths)
        targets = _shrink(targets, columns, minima, space, n)

    def broken(row: Sequence[str]) -> list[str]:
        return [
            text if target >= wide else _in_lines(text, target, words=True)
            for text, wide, target in zip(row, widths, targets, strict=True)
        ]

    return table._replace(headers=broken(table.headers), rows=[broken(row) for row in table.rows])


def _shrink(
    widths: Sequence[int], columns: Sequence[int], minima: Sequence[int], width: int, n: int
) -> list[int]:
    """Narrow the widest columns in `columns` until the first n columns fit; return all widths."""
    result = list(widths)
    while sum(result[:n]) + GAP * (n - 1) > width:
        wider = [i for i in columns if result[i] > minima[i]]
        if not wider:
            break
        result[max(wider, key=lambda i: result[i])] -= 1
    return result


def _in_lines(text: str, width: int, *, words: bool = False) -> str:
    """Break a string into lines at spaces and, if `words`, also within words that are too wide."""
    return "\n".join(textwrap.wrap(text, width, break_long_words=words, break_on_hyphens=words))


def in_markdown(text: str) -> str:
    """Escape a string so that Markdown shows it literally: no tables, tags, links or mentions."""
    line = ADDRESSES.sub(lambda match: match[0] + ZERO_WIDTH, visible(" ".join(text.split())))
    line = MARKDOWN.sub(lambda match: ENTITIES.get(match[0], "\\" + match[0]), line)
    line = NUMBERED.sub(r"\1\\\2", line)
    return line.replace(ZERO_WIDTH, "&#8203;")


def to_markdown(result: Shown) -> str:
    """Return tables in Markdown, with the lines around them as paragraphs."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    parts = []
    for table in result.tables():
        rule = ["---:" if column.number else "---" for column in table.shown]
        rows = table.marked(lambda text: f"**{text}**", in_markdown)
        lines = [line(map(in_markdown, table.headers)), line(rule), *map(line, rows)]
        parts += [*map(in_markdown, table.head), "\n".join(lines), *map(in_markdown, table.below)]
    return "\n\n".join(parts)


def to_latex(result: Shown) -> str:
    """Return tables in LaTeX with booktabs rules.

    Lines around tables become comments, except for lines that explain symbols, which become rows.
    """

    def escape(text: str) -> str:
        return "".join(LATEX.get(character, character) for character in text)

    def line(cells: Iterable[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    def comments(lines: Iterable[str]) -> list[str]:
        return [f"% {' '.join(line.split())}" for line in lines]

    parts = [r"% \usepackage{booktabs}"]
    for table in result.tables():
        aligned = "".join("r" if column.number else "l" for column in table.shown)
        rows = table.marked(lambda text: rf"\textbf{{{text}}}", escape)
        parts += comments(table.head)
        parts += [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule"]
        parts += [line(map(escape, table.headers)), r"\midrule", *map(line, rows)]
        signs = [
            line([rf"\multicolumn{{{len(aligned)}}}{{l}}{{\footnotesize {escape(text)}}}"])
            for text in table.legend
        ]
        parts += [r"\bottomrule", *signs, r"\end{tabular}", *comments(table.notes)]
    return "\n".join(parts)


def to_html(result: Shown) -> str:
    """Return tables in HTML with every string escaped."""
    import html  # imported only here, because terminals do not need it

    def paragraphs(lines: Iterable[str]) -> list[str]:
        return [f"<p>{html.escape(line)}</p>" for line in lines]

    parts: list[str] = []
    for table in result.tables():
        styles = [
            f' style="text-align: {"right" if column.number else "left"}"' for column in table.shown
        ]

        def cells(tag: str, line: Iterable[str], styles: Sequence[str] = styles) -> str:
            pairs = zip(line, styles, strict=True)
            return f"<tr>{''.join(f'<{tag}{style}>{text}</{tag}>' for text, style in pairs)}</tr>"

        rows = table.marked(lambda text: f"<strong>{text}</strong>", html.escape)
        parts += paragraphs(table.head)
        parts += ["<table>", f"<thead>{cells('th', map(html.escape, table.headers))}</thead>"]
        parts += ["<tbody>", *(cells("td", row) for row in rows), "</tbody>", "</table>"]
        parts += paragraphs(table.below)
    return "\n".join(parts)


def to_notebook(result: Shown) -> str:
    """Return tables in compact HTML for notebooks, in the colours of the notebook's theme."""
    return f'<div class="recometer"><style>{NOTEBOOK}</style>\n{to_html(result)}\n</div>'


def to_json(result: Shown) -> str:
    """Return a result in JSON, with null for undefined values."""
    import json

    content = plain(result.to_dict())
    text = json.dumps(content, indent=2, allow_nan=False)
    # If all users' values are included, indentation would make up most of the file.
    return text if text.count("\n") < MOST_LINES else json.dumps(content, allow_nan=False)


def to_csv(result: Shown, field: Callable[[Any], str] | None = None) -> str:
    """Return rows in CSV with all digits, and with empty fields for undefined values.

    The function `field`, by default `_flat`, formats a value as a string.
    """
    import csv

    table, to_field = result.data(), field or _flat
    lines: list[str] = []
    # Python's writer quotes only its own line ending, but a lone \r ends a line for other readers.
    writer = csv.writer(types.SimpleNamespace(write=lines.append), lineterminator="\r\n")
    try:
        writer.writerow(map(to_field, table.fields()))
        for row in table.rows:
            writer.writerow([to_field(value_of(row, name)) for name in table.fields()])
    except csv.Error as error:
        raise InputError(
            f"The table cannot be written as CSV: {error}. Python 3.10 cannot write the character "
            "NUL. Hint: use JSON or a later Python."
        ) from None
    return "\n".join(line.removesuffix("\r\n") for line in lines)


def to_spreadsheet(result: Shown) -> str:
    """Return rows in CSV in which no string, such as an id, looks like a spreadsheet formula."""
    return to_csv(result, _no_formula)


FORMATS: dict[str, Callable[[Shown], str]] = {
    "table": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
    "json": to_json,
    "csv": to_csv,
    "spreadsheet": to_spreadsheet,
}
"""The functions that write a result, keyed by the format names on the command line."""


def render(result: Shown, form: str) -> str:
    """Return a result in one of `FORMATS`, without a line break at the end."""
    if form not in FORMATS:
        raise UnknownNameError(f"There is no format {form!r}. {did_you_mean(form, FORMATS)}")
    return FORMATS[form](result)


def plain(value: Any) -> Any:
    """Convert a value for JSON: undefined values to None, and values of other types to strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # a NumPy array or scalar
        return plain(value.tolist())
    return str(value)


def _flat(value: Any) -> str:
    """Format a value as a CSV field."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_flat(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)


def _no_formula(value: Any) -> str:
    """Format a value as a CSV field; strings that look like formulas get an apostrophe."""
    text = _flat(value)
    if isinstance(value, bool | int | float) or hasattr(value, "dtype"):
        return text
    return f"'{text}" if text.lstrip().startswith(FORMULAS) or text[:1] in tuple("\t\r\n") else text


def value_of(row: Any, name: str) -> Any:
    """Return a value from a row, whether the row is a mapping or an object with attributes."""
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def save_text(text: str, path: str | os.PathLike[str] | None) -> str:
    """Write a string to the path, if there is one, and return the string."""
    if path is not None:
        write_text(path, text + "\n")
    return text


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, with lone surrogates escaped, because UTF-8 cannot encode them."""
    write_atomic(as_path(path, "a table"), text.encode("utf-8", errors="backslashreplace"))


@dataclasses.dataclass(frozen=True)
class Column:
    """A table column that shows one or more values of each row.

    Attributes
    ----------
    title
        The heading of the column.
    fields
        The names of the values that a cell shows together, such as ``("low", "high")``. In CSV and
        JSON, each value has its own column. If `fields` is empty, the title names the value.
    show
        A function that formats these values as a string.
    number
        Whether the column is right-aligned.
    wraps
        Whether cells may be broken into lines in a narrow terminal.
    hidden
        Whether the column appears only in CSV and JSON.
    spare
        Whether the column is left out, with a note, if not all columns fit.
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
        """The names of the values that a cell shows."""
        return self.fields or (self.title,)


class Shown:
    """The base class of everything that can be shown as a table in all formats."""

    def table(self) -> Table:
        """Return the table for display."""
        raise NotImplementedError

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return tables that, if possible, are not wider than `width` characters."""
        return [self.table()]

    def data(self) -> Table:
        """Return the table for CSV and JSON, whose rows contain the unformatted values."""
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Return the whole table as Python objects that can be written as JSON."""
        table = self.data()
        return {"rows": table.records(), "notes": [*table.head, *table.notes]}

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a table in Markdown, and write it to the path, if any."""
        return save_text(to_markdown(self), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a LaTeX table for the booktabs package, and write it to the path, if any."""
        return save_text(to_latex(self), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return an HTML table with all strings escaped, and write it to the path, if any."""
        return save_text(to_html(self), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the whole result in JSON, and write it to the path, if any.

        Undefined values are null.
        """
        return save_text(to_json(self), path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return rows in CSV, and write them to the path, if any.

        Undefined values become empty fields. Strings are unchanged; use `to_spreadsheet` for
        programs that might read some strings as formulas.
        """
        return save_text(to_csv(self), path)

    def to_spreadsheet(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return CSV that is safe in spreadsheets, and write it to the path, if any.

        Strings that a spreadsheet program would read as formulas, because they begin with ``=``,
        ``+``, ``-`` or ``@``, are prefixed with an apostrophe. Numbers are written as in `to_csv`.
        """
        return save_text(to_spreadsheet(self), path)


class Printed(Shown):
    """The base class of results that ``print`` and notebooks also show as a table."""

    def __str__(self) -> str:
        return to_text(self, width_of_lines())

    def _repr_html_(self) -> str:
        return to_notebook(self)


@dataclasses.dataclass(frozen=True)
class Table(Printed):
    """A table and the lines around it, independent of the format.

    Attributes
    ----------
    columns
    rows
        Mappings, or objects with attributes, that contain the values of the columns.
    notes
        The lines below the table.
    legend
        The lines that explain symbols, shown before the notes and, in LaTeX, as part of the table.
    head
        The lines above the table.
    best
        The cells to highlight, each as (row, column).
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
        """The columns that are not hidden."""
        return [column for column in self.columns if not column.hidden]

    @property
    def below(self) -> list[str]:
        """All lines below the table."""
        return [*self.legend, *self.notes]

    @property
    def headers(self) -> list[str]:
        """The titles of the shown columns."""
        return [visible(column.title) for column in self.shown]

    def cells(self) -> list[list[str]]:
        """Return the cells of the shown columns, row by row, as strings."""
        return [
            [
                visible(column.show(*(value_of(row, name) for name in column.names)))
                for column in self.shown
            ]
            for row in self.rows
        ]

    def fields(self) -> list[str]:
        """Return the names of all values in a row."""
        return list(dict.fromkeys(name for column in self.columns for name in column.names))

    def records(self) -> list[dict[str, Any]]:
        """Return a dict of Python objects for each row, with None for undefined values."""
        return [{name: plain(value_of(row, name)) for name in self.fields()} for row in self.rows]

    def marked(self, mark: Callable[[str], str], escape: Callable[[str], str]) -> list[list[str]]:
        """Return the escaped cells of all rows, with the best cells marked."""
        return [
            [
                mark(escape(cell)) if (row, column) in self.best else escape(cell)
                for column, cell in enumerate(line)
            ]
            for row, line in enumerate(self.cells())
        ]


def output(result: Shown, form: str = "table", *, folded: bool = True) -> None:
    """Write a result to standard output, with styled tables if it is a terminal.

    In plain text, each row is one line of any length, unless `folded`.
    """
    if form != "table":
        print(render(result, form), flush=True)
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        print(to_text(result, width_of_lines() if folded else None), flush=True)
        return
    for number, block in enumerate(filter(None, blocks_of(result, console.width))):
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
        styles = ["bold green" if (row, i) in part.best else "" for i in range(len(line))]
        styled.add_row(*(Text(cell, style) for cell, style in zip(line, styles, strict=True)))
    return styled
