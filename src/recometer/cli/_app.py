"""The Typer application, which imports commands on demand and prints errors and warnings."""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from recometer.cli._messages import EPILOG, ExitCode
from recometer.errors import DataWarning, RecometerError, UnknownNameError, naming_options, visible
from recometer.version import __version__

LISTINGS = ("metrics", "conventions", "rules")
# The commands, in the order in which the help lists them. Each is a function in the module of the
# same name; the commands in `LISTINGS` share the module `names`.
COMMANDS = (
    *("evaluate", "compare", "report", "split", "audit", "check", "show", "logs"),
    *(*LISTINGS, "why", "demo"),
)
MARKUP: Final = "markdown"


@functools.cache
def command_of(name: str) -> Any:
    """Import a command on demand, because the import may take longer than the command itself."""
    app = typer.Typer(rich_markup_mode=MARKUP, add_completion=False)
    module = "names" if name in LISTINGS else name
    function = getattr(importlib.import_module(f"recometer.cli.{module}"), name)
    app.command(epilog=EPILOG)(function)
    return typer.main.get_command(app)


class Commands(TyperGroup):
    """A Typer group that imports commands on demand and prints errors and warnings as messages."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None if there is none."""
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def invoke(self, ctx: Any) -> Any:
        """Run a command and print recometer's errors and warnings to standard error."""
        try:
            with naming_options(), warnings.catch_warnings():
                warnings.simplefilter("always", DataWarning)
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                return super().invoke(ctx)
        except RecometerError as error:
            typer.echo(f"Error: {error}", err=True)
            unknown = isinstance(error, UnknownNameError)
            raise typer.Exit(ExitCode.USAGE if unknown else ExitCode.FAILED) from error
        except PermissionError as error:  # no permission to enter a parent folder
            path = visible(os.fsdecode(error.filename or "A file"))
            typer.echo(
                f"Error: {path} cannot be reached: {error.strerror}. Hint: ask its owner for "
                "permission to enter the folders on its path (chmod +x).",
                err=True,
            )
            raise typer.Exit(ExitCode.FAILED) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error


app = typer.Typer(
    cls=Commands,
    help="Measures how good recommendations are: exactly, comparably and fast.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
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
    """Measure how good recommendations are."""


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    name = "Warning" if issubclass(category, DataWarning) else category.__name__
    typer.echo(f"{name}: {message}", err=True)
