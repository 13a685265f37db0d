"""What the options of the command line name: models, and interactions in files."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import typer

from recometer.cli._factors import USAGE, read_factors
from recometer.cli._stdin import StandardInput
from recometer.cli._text import Note, as_options
from recometer.errors import ColumnError, InputError, RecometerError, did_you_mean
from recometer.files import EXTENSIONS, column_names, read_file
from recometer.interactions import Interactions
from recometer.sources.base import Source

__all__ = ["Inputs", "Model", "models"]


@dataclasses.dataclass(frozen=True)
class Model:
    """A model that the command line names, and its files."""

    name: str
    paths: Sequence[str]


def models(factors: Sequence[str]) -> list[Model]:
    """Read the options that name models.

    Raises
    ------
    typer.BadParameter
        No model, two of one name, or a wrong number of files.
    """
    found = []
    for text in factors:
        name, files = _named(text)
        paths = files.split(",")
        if len(paths) not in (2, 4) or not (paths[0] and paths[1]):
            raise typer.BadParameter(f"{text!r} is not [NAME=]{USAGE}.", param_hint="--factors")
        found.append(Model(name or "factors", paths))
    if not found:
        raise typer.BadParameter("there is no model to evaluate. Hint: --factors names one.")
    names = [model.name for model in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"two models are called {twice!r}. Hint: write NAME=FILE.")
    return found


def _named(text: str) -> tuple[str, str]:
    """Split ``NAME=FILES``; the name is empty where there is none."""
    name, equals, files = text.partition("=")
    if not equals or "/" in name or os.sep in name:
        return "", text
    if not name:
        raise typer.BadParameter(f"{text!r} begins with '=': the model's name is missing.")
    return name, files


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Reads files, by the columns that were asked for or have common names.

    Attributes
    ----------
    stdin
        Where the path ``-`` leads.
    columns
        The column that was asked for, or None, by ``"user"``, ``"item"`` and ``"value"``. A
        file without the column of users or items that was asked for is read by its common
        names: test, train and models may call them differently.
    note
        Called with what was found.
    """

    stdin: StandardInput
    columns: Mapping[str, str | None]
    note: Note

    @contextlib.contextmanager
    def stated(self, model: Model | None = None) -> Iterator[None]:
        """Let errors speak of the model, of options and of standard input."""
        try:
            yield
        except RecometerError as error:
            message = as_options(self.stdin.named(str(error)))
            raise type(error)(f"{model.name}: {message}" if model else message) from error

    def check_columns(self, paths: Iterable[str]) -> None:
        """Raise if a column of users or items that was asked for is in none of the files."""
        asked = {option: self.columns[option] for option in ("user", "item")}
        if not any(asked.values()):
            return
        tables = [path for path in map(self.stdin.path, paths) if _is_table(path)]
        names = {name: None for path in tables for name in column_names(path)}
        for option, name in asked.items():
            if name is not None and name not in names:
                raise ColumnError(
                    f"--{option} {name}: no file has such a column. {did_you_mean(name, names)}"
                )

    def interactions(self, what: str, path: str, *, value: bool) -> Interactions:
        """Read interactions, with their values or without."""
        file = self.stdin.path(path)
        with self.stated():
            # What is no table gets the error that says so.
            present = column_names(file)
            asked = {
                option: name if name in present else None
                for option, name in self.columns.items()
                if option != "value"
            }
            asked_value = self.columns["value"] if value else "none"
            found, frame = read_file(
                file, value=False if asked_value == "none" else asked_value, time=False, **asked
            )
            data = Interactions.of(
                frame, user=found.user, item=found.item, value=found.value or False, time=False
            )
        columns = ", ".join(
            f"{option} {name!r}" for option, name in found._asdict().items() if name
        )
        self.note(f"{what}: {self.stdin.named(str(file))} ({columns})")
        if not len(data):
            raise InputError(
                f"{self.stdin.named(str(file))} has no rows. Hint: every row after the header is "
                "one interaction."
            )
        return data

    def source(self, model: Model, test: Interactions) -> Source:
        """Read a model."""
        with self.stated(model):
            return read_factors(model.paths, test, self.note, self.columns)


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith(EXTENSIONS)
