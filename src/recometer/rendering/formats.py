"""Every way to write a table: text, Markdown, LaTeX, HTML, JSON and CSV.

A new format is a function of what is shown, an entry in `FORMATS` and a method of `Shown`.
"""

from __future__ import annotations

import math
import os
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recometer.data.paths import as_path, write_whole
from recometer.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from recometer.rendering.tables import Shown, Table

WIDTH = 100  # of what is printed
NARROWEST = 30  # of a column that is broken into lines
# What a formula begins with, also in the full width of East Asian scripts.
FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
GAP = 2  # between two columns
MOST_LINES = 10_000  # of JSON that is read by people, too
# What TeX reads as a command, or shows as another character.
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


# Lines take the colour of the text, which is light where the notebook is dark.
NOTEBOOK = (
    ".recometer table{border-collapse:collapse;font-size:.9em;font-variant-numeric:tabular-nums}"
    ".recometer th,.recometer td{padding:.15em .7em;border:0;background:none;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
    ".recometer p{font-size:.85em;margin:.2em 0;opacity:.8;max-width:60em}"
)


def to_text(shown: Shown, width: int | None = None) -> str:
    """Return tables as plain text, without a line break at the end.

    With a width, long texts in the last column, lines above and notes are broken into lines that
    end before this column.
    """
    return "\n\n".join(_table_as_text(table, width) for table in shown.tables(width))


def _table_as_text(table: Table, width: int | None) -> str:
    lines = [table.headers, *table.cells()]
    if width is not None:
        lines = _broken(lines, width)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        (" " * GAP)
        .join(
            cell.rjust(wide) if column.number else cell.ljust(wide)
            for cell, wide, column in zip(line, widths, table.shown, strict=True)
        )
        .rstrip()
        for line in lines
    ]
    head, notes = ([wrapped(one, width) for one in lines] for lines in (table.head, table.below))
    parts = (head, texts, notes)
    return "\n\n".join("\n".join(part) for part in parts if part)


def wrapped(text: str, width: int | None = WIDTH) -> str:
    """Break a text into lines, if there is a width; all but the first are indented by two more."""
    if width is None:
        return text
    begin = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text, width, subsequent_indent=begin + "  ", break_long_words=False, break_on_hyphens=False
    )


def _broken(lines: Sequence[list[str]], width: int) -> list[list[str]]:
    """Continue long texts of the last column in lines that are otherwise empty."""
    before = sum(max(map(len, column)) + GAP for column in list(zip(*lines, strict=True))[:-1])
    found: list[list[str]] = []
    for *cells, last in lines:
        parts = textwrap.wrap(
            last, max(width - before, NARROWEST), break_long_words=False, break_on_hyphens=False
        )
        found.append([*cells, *(parts[:1] or [""])])
        found += [[*[""] * len(cells), part] for part in parts[1:]]
    return found


def to_markdown(shown: Shown) -> str:
    """Return tables in Markdown, each with the lines around it as paragraphs."""

    def escape(text: str) -> str:
        return " ".join(text.split()).replace("|", r"\|").replace("*", r"\*")

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    parts = []
    for table in shown.tables():
        rule = ["---:" if column.number else "---" for column in table.shown]
        rows = table.marked(lambda text: f"**{text}**", escape)
        lines = [line(map(escape, table.headers)), line(rule), *map(line, rows)]
        parts += [*table.head, "\n".join(lines), *map(escape, table.legend), *table.notes]
    return "\n\n".join(parts)


def to_latex(shown: Shown) -> str:
    """Return tables in LaTeX, with booktabs' rules.

    Lines around them are comments, except those that explain signs, which are separate rows.
    """

    def escape(text: str) -> str:
        return "".join(LATEX.get(character, character) for character in text)

    def line(cells: Iterable[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    def comments(lines: Iterable[str]) -> list[str]:
        return [f"% {' '.join(line.split())}" for line in lines]

    parts = [r"% \usepackage{booktabs}"]
    for table in shown.tables():
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


def to_html(shown: Shown) -> str:
    """Return tables in HTML, every text escaped."""
    import html  # not needed in a terminal

    def paragraphs(lines: Iterable[str]) -> list[str]:
        return [f"<p>{html.escape(line)}</p>" for line in lines]

    parts: list[str] = []
    for table in shown.tables():
        styles = [
            f' style="text-align: {"right" if column.number else "left"}"' for column in table.shown
        ]

        def cells(tag: str, line: Iterable[str], styles: Sequence[str] = styles) -> str:
            found = zip(line, styles, strict=True)
            return f"<tr>{''.join(f'<{tag}{style}>{text}</{tag}>' for text, style in found)}</tr>"

        rows = table.marked(lambda text: f"<strong>{text}</strong>", html.escape)
        parts += paragraphs(table.head)
        parts += ["<table>", f"<thead>{cells('th', map(html.escape, table.headers))}</thead>"]
        parts += ["<tbody>", *(cells("td", row) for row in rows), "</tbody>", "</table>"]
        parts += paragraphs(table.below)
    return "\n".join(parts)


def to_notebook(shown: Shown) -> str:
    """Return tables in HTML as a notebook shows them: compact, in the colours of its theme."""
    return f'<div class="recometer"><style>{NOTEBOOK}</style>\n{to_html(shown)}\n</div>'


def to_json(shown: Shown) -> str:
    """Return everything in JSON, undefined values as null."""
    import json

    content = plain(shown.to_dict())
    text = json.dumps(content, indent=2, allow_nan=False)
    # With values per user, an entry a line would be most of what is written.
    return text if text.count("\n") < MOST_LINES else json.dumps(content, allow_nan=False)


def to_csv(shown: Shown, field: Callable[[Any], str] | None = None) -> str:
    """Return rows in CSV, undefined values empty; numbers have all of their digits.

    `field` makes the text of a value. None keeps the value as it is.
    """
    import csv

    table, made = shown.data(), field or _flat
    lines: list[str] = []
    # Only what stands in the end of lines is quoted: of it, \r would end a line for others.
    writer = csv.writer(types.SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow(map(made, table.fields()))
    for row in table.rows:
        writer.writerow([made(value_of(row, name)) for name in table.fields()])
    return "\n".join(line.removesuffix("\r\n") for line in lines)


def to_spreadsheet(shown: Shown) -> str:
    """Return rows in CSV in which no text, such as an id, is a formula to a spreadsheet program."""
    return to_csv(shown, _no_formula)


FORMATS: dict[str, Callable[[Shown], str]] = {
    "table": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
    "json": to_json,
    "csv": to_csv,
    "spreadsheet": to_spreadsheet,
}
"""Every way to show something, by its name on the command line."""


def render(shown: Shown, form: str) -> str:
    """Return something in one of `FORMATS`, without a line break at the end."""
    if form not in FORMATS:
        raise UnknownNameError(f"There is no format {form!r}. {did_you_mean(form, FORMATS)}")
    return FORMATS[form](shown)


def plain(value: Any) -> Any:
    """Return a value for JSON: undefined ones are None, and types that JSON lacks are texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # NumPy's
        return plain(value.tolist())
    return str(value)


def _flat(value: Any) -> str:
    """Return a value as a field of CSV."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_flat(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)


def _no_formula(value: Any) -> str:
    """Return a value as a field of CSV, a text that would be a formula behind an apostrophe."""
    text = _flat(value)
    if isinstance(value, bool | int | float) or hasattr(value, "dtype"):
        return text
    return f"'{text}" if text.lstrip().startswith(FORMULAS) or text[:1] in tuple("\t\r\n") else text


def value_of(row: Any, name: str) -> Any:
    """Return a value of a row, which is a mapping or an object with attributes."""
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return a text, and write it if there is a path."""
    if path is not None:
        write_text(path, text + "\n")
    return text


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; what UTF-8 lacks (lone surrogates) is escaped."""
    write_whole(as_path(path, "a table"), text.encode("utf-8", errors="backslashreplace"))
