"""The application with which the commands are registered, and what they have in common."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from recometer.cli._exit import ExitCode, epilog
from recometer.cli._words import in_words
from recometer.cli.audit import audit
from recometer.cli.check import check
from recometer.cli.compare import compare
from recometer.cli.conventions import conventions
from recometer.cli.demo import demo
from recometer.cli.evaluate import evaluate
from recometer.cli.metrics import metrics
from recometer.cli.report import report
from recometer.cli.show import show
from recometer.cli.significance import significance
from recometer.cli.split import split
from recometer.cli.why import why
from recometer.errors import DataWarning, RecometerError, UnknownNameError
from recometer.version import __version__


class Commands(TyperGroup):
    """Turns errors and warnings of recometer into messages on standard error."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", DataWarning)
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except RecometerError as error:
            typer.echo(f"Error: {in_words(str(error))}", err=True)
            unknown = isinstance(error, UnknownNameError)
            raise typer.Exit(ExitCode.USAGE if unknown else ExitCode.FAILED) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from error


app = typer.Typer(
    cls=Commands,
    help="Measures how good recommendations are: exactly, comparably and fast.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
COMMANDS = (
    *(evaluate, compare, report, significance, split, audit, check, show),
    *(metrics, conventions, why, demo),
)
for each in COMMANDS:
    app.command(epilog=epilog())(each)


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
    typer.echo(f"{name}: {in_words(str(message))}", err=True)
