"""Runs the command line within the process."""

import functools

import typer.testing
from typer.testing import CliRunner, Result

__all__ = ["CliRunner", "Result"]

# Typer would make all commands of their functions again for each that is run: half the time.
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]
