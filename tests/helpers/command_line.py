"""Run the command line within the test process."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import typer.testing
from typer.testing import CliRunner, Result

from recometer.cli._app import app

__all__ = ["Result", "run_command"]

# Typer would rebuild all commands for every run, which would take half of the tests' running time.
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]


def run_command(arguments: Sequence[str], **options: Any) -> Result:
    """Run `recometer` with these arguments; the options are those of `CliRunner.invoke`."""
    return CliRunner().invoke(app, arguments, **options)
