"""Lines of plain text that fit the terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Callable

import typer

from recometer.protocol import Protocol

WIDTH = 100  # where the output is no terminal

CALL = re.compile(r"(\b(?:rm\.[\w.]+|[A-Z]\w*)\([^)]*\))")
ARGUMENT = re.compile(
    r"\b(user|item|value|score|rank|time|catalogue|train|baseline)=(False\b|'[^']*')?"
)
RULE = re.compile(rf"\b({'|'.join(Protocol.declared)})='(\w+)'")

Note = Callable[[str], None]
"""Says something beside the result, on standard error."""


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


def as_options(message: str) -> str:
    """Turn the arguments that a message speaks of into options of the command line.

    Those within a call of Python, ``rm.Pairs(frame, score=...)`` or ``After(time=500)``, stay.
    """
    parts = CALL.split(message)
    parts[::2] = map(_without_arguments, parts[::2])
    return "".join(parts)


def _without_arguments(text: str) -> str:
    text = ARGUMENT.sub(
        lambda found: f"--{found[1]} {_value(found[2])}".rstrip(),
        text,
    )
    return RULE.sub(r"--rule \1=\2", text).replace("--rule ties=", "--ties ")


def _value(written: str | None) -> str:
    return "none" if written == "False" else (written or "").strip("'")
