"""Lines of plain text that fit the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable

import typer

WIDTH = 100  # where the output is not a terminal

Note = Callable[[str], None]
"""Says something beside the result, on standard error."""


def note_unless(quiet: bool) -> Note:
    """Return a function that prints notes beside the result, or nothing if `quiet`."""
    return lambda text: None if quiet else typer.echo(text, err=True)


def say(label: str, text: str) -> None:
    """Print a text to standard output, wrapped, with a label in front of its first line."""
    width = min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
    lines = textwrap.wrap(text, width - len(label), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        typer.echo((" " * len(label) if number else label) + line)


def say_line(line: str) -> None:
    """Print a line to standard output, wrapped; all of it is indented as its beginning is."""
    text = line.lstrip()
    say(line[: len(line) - len(text)], text)


def count(number: int, what: str) -> str:
    """Return ``"1 user"`` or ``"2,000 users"``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
