"""Run the command line within the test process."""

import functools

import typer.testing
from typer.testing import CliRunner, Result

__all__ = ["CliRunner", "Result"]

# Typer would rebuild all commands for every run, which would take half of the tests' running time.
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]
