"""Splits in folders, as the other commands read them."""

from __future__ import annotations

from pathlib import Path

import typer

from recometer.cli._inputs import NONE
from recometer.errors import FileError
from recometer.split import Split


def load_split(folder: str) -> Split:
    """Read a split; of a folder with folds, say that it is one."""
    if (Path(folder) / "fold_0").is_dir():
        raise FileError(f"{folder} holds folds. Hint: name one of them: {Path(folder) / 'fold_0'}.")
    return Split.load(folder)


def data_of(
    test: str | None, train: str | None, folder: str | None
) -> tuple[str, str | None, dict[str, str]]:
    """Return the files of test and train, as named or of a split, and the split's columns."""
    if folder is None:
        if test is None:
            raise typer.BadParameter("there is nothing to test on. Hint: --test or --split.")
        return test, train, {}
    if test is not None or train is not None:
        raise typer.BadParameter("--split has test and train already. Hint: leave them out.")
    train, test, columns = files_of(folder)
    return test, train, columns


def files_of(folder: str) -> tuple[str, str, dict[str, str]]:
    """Return the files of train and test in a folder, and their columns by what they hold."""
    found = load_split(folder).columns
    columns = {} if found is None else {name: n or NONE for name, n in found._asdict().items()}
    return str(Path(folder) / "train.parquet"), str(Path(folder) / "test.parquet"), columns
