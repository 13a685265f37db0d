"""The Typer application, which imports commands when they run, and prints errors and warnings."""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from typing import Annotated, Any, Final, TextIO

import typer
from typer.core import TyperGroup

from recometer import removed
from recometer.cli._exit import ExitCode, epilog
from recometer.errors import DataWarning, RecometerError, UnknownNameError, naming_options, visible
from recometer.version import __version__

# Commands in the order of the help. Each is a function in the module of the same name.
COMMANDS = (
    *("evaluate", "compare", "report", "split", "audit", "check", "show", "logs"),
    *("metrics", "conventions", "rules", "why", "demo"),
)
MARKUP: Final = "markdown"


@functools.cache
def command_of(name: str) -> Any:
    """Import a command for Typer, only when needed: importing can take longer than running it."""
    alone = typer.Typer(rich_markup_mode=MARKUP, add_completion=False)
    function = getattr(importlib.import_module(f"recometer.cli.{name}"), name)
    alone.command(epilog=epilog())(function)
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """A Typer group that imports commands on call, and turns errors and warnings into messages."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if no command has this name."""
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the called command; if it was removed, name its replacement."""
        if args and args[0] in removed.COMMANDS:
            hint = removed.COMMANDS[args[0]]
            raise UnknownNameError(f"There is no command {args[0]!r}. Hint: {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and print errors of recometer as messages on standard error."""
        try:
            with naming_options(), warnings.catch_warnings():
                warnings.simplefilter("always", DataWarning)
                warnings.showwarning = _show_warning
                return self._invoke(ctx)
        except RecometerError as error:
            typer.echo(f"Error: {error}", err=True)
            unknown = isinstance(error, UnknownNameError)
            raise typer.Exit(ExitCode.USAGE if unknown else ExitCode.FAILED) from error
        except PermissionError as error:  # a parent folder of a file does not allow access
            where = visible(os.fsdecode(error.filename or "A file"))
            typer.echo(
                f"Error: {where} cannot be reached: {error.strerror}. Hint: ask its owner for the "
                "permission to enter the folders on the way (chmod +x).",
                err=True,
            )
            raise typer.Exit(ExitCode.FAILED) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error

    def _invoke(self, ctx: Any) -> Any:
        """Run a command; if an option was removed, name its replacement."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Click's NoSuchOption, which Typer may or may not bundle
            option = getattr(error, "option_name", None)
            if option not in removed.OPTIONS:
                raise
            hint = removed.OPTIONS[option]
            raise UnknownNameError(f"There is no option {option}. Hint: {hint}") from None


app = typer.Typer(
    cls=Commands,
    help="Measures how good recommendations are: exactly, comparably and fast.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recometer {__version__}")
        raise typer.Exit


@app.callback()
def recometer(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Measure how good recommendations are: exactly, comparably and fast."""


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    name = "Warning" if issubclass(category, DataWarning) else category.__name__
    typer.echo(f"{name}: {message}", err=True)
