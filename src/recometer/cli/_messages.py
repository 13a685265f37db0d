"""Notes and text that commands print, usage errors, and exit codes."""

from __future__ import annotations

import contextlib
import enum
import textwrap
from collections.abc import Callable, Collection, Iterator

import typer

from recometer.errors import RecometerError, did_you_mean, visible
from recometer.rendering import width_of_lines

Note = Callable[[str], None]
"""A function that prints a note to standard error."""


class ExitCode(enum.IntEnum):
    """The exit codes of the commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    VERDICT = 3
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.DONE: "success",
    ExitCode.FAILED: "a failure, explained on standard error: files or data that do not fit "
    "together, a gate that a model fails, an installation that does not work",
    ExitCode.USAGE: "wrong usage: an option, a name or a value that does not exist",
    ExitCode.VERDICT: "the command succeeded, but the verdict that you asked for is bad: leakage "
    "or a problem with --strict, or an undecided gate",
    ExitCode.INTERRUPTED: "you interrupted the command with Ctrl-C",
}
EPILOG = f"Exit codes: {'; '.join(f'{code:d} {text}' for code, text in MEANINGS.items())}."
"""The last line of every command's help."""


def check_name(name: str, names: Collection[str], noun: str = "", option: str | None = None) -> str:
    """Return a name if it is known; otherwise raise an error that describes it as `noun`."""
    if name not in names:
        raise typer.BadParameter(
            f"there is no {noun}{name!r}. {did_you_mean(name, names)}", param_hint=option
        )
    return name


@contextlib.contextmanager
def usage_of(option: str) -> Iterator[None]:
    """Turn errors that recometer raises in the block into usage errors for an option."""
    try:
        yield
    except RecometerError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


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
