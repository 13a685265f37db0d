"""Functions for lines of plain text that fit the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping

import typer

from recometer.errors import visible
from recometer.rendering import width_of_lines

Note = Callable[[str], None]
"""A function that prints a note to standard error."""


def note_unless(quiet: bool) -> Note:
    """Return a function that prints notes to standard error, or does nothing if `quiet`."""
    return lambda text: None if quiet else typer.echo(visible(text), err=True)


def say(label: str, text: str) -> None:
    """Print wrapped text to standard output, with a label in front of its first line."""
    lines = textwrap.wrap(
        visible(text), width_of_lines() - len(label), break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(lines or [""]):
        typer.echo((" " * len(label) if number else label) + line)


def say_line(line: str) -> None:
    """Print a line to standard output, wrapped; continuation lines keep its indentation."""
    text = line.lstrip()
    say(line[: len(line) - len(text)], text)


def count(number: int, what: str) -> str:
    """Return ``"1 user"`` or ``"2,000 users"``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def in_words(columns: Mapping[str, str | None]) -> str:
    """Describe the columns found, by their meaning: ``"user 'user_id', item 'movie'"``."""
    return ", ".join(f"{option} {name!r}" for option, name in columns.items() if name)
