"""Splits in folders, as the other commands read them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import typer

from recometer.cli._inputs import NONE
from recometer.errors import FileError
from recometer.split import Split


class Part(NamedTuple):
    """The files of test and of train, either of which may be missing; and the folder of a split."""

    test: str | None
    train: str | None
    split: Path | None = None


def load_split(folder: str) -> Split:
    """Read a split; of a folder with folds, say that it is one."""
    if _folds(folder):
        raise FileError(f"{folder} holds folds. Hint: name one of them: {Path(folder) / 'fold_0'}.")
    return Split.load(folder)


def parts_of(
    test: str | None, train: str | None, folder: str | None, *, needs_test: bool
) -> tuple[list[Part], dict[str, str]]:
    """Return the files of test and train, as named or of a split, and the split's columns.

    For folds, the files of each.
    """
    if folder is None:
        if test is None and needs_test:
            raise typer.BadParameter("there is nothing to test on. Hint: --test or --split.")
        return [Part(test, train)], {}
    if test is not None or train is not None:
        raise typer.BadParameter("--split has test and train already. Hint: leave them out.")
    splits = _folds(folder) or [Path(folder)]
    columns = [_columns(one) for one in splits]
    files = ((str(one / "test.parquet"), str(one / "train.parquet"), one) for one in splits)
    return [Part(*each) for each in files], columns[0]


def _columns(folder: Path) -> dict[str, str]:
    """Return the columns of the split in a folder by what they hold."""
    found = load_split(str(folder)).columns
    return {} if found is None else {name: n or NONE for name, n in found._asdict().items()}


def _folds(folder: str) -> list[Path]:
    """Return the folders of folds in a folder, in their order."""
    every = (Path(folder) / f"fold_{number}" for number in itertools.count())
    return list(itertools.takewhile(Path.is_dir, every))
