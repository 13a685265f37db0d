"""Splits in folders, as the other commands read them."""

from __future__ import annotations

from pathlib import Path

from recometer.cli._inputs import NONE
from recometer.errors import FileError
from recometer.split import Split

__all__ = ["files_of", "load_split"]


def load_split(folder: str) -> Split:
    """Read a split; of a folder with folds, say that it is one."""
    if (Path(folder) / "fold_0").is_dir():
        raise FileError(f"{folder} holds folds. Hint: name one of them: {Path(folder) / 'fold_0'}.")
    return Split.load(folder)


def files_of(folder: str) -> tuple[str, str, dict[str, str]]:
    """Return the files of train and test in a folder, and their columns by what they hold."""
    found = load_split(folder).columns
    columns = {} if found is None else {name: n or NONE for name, n in found._asdict().items()}
    return str(Path(folder) / "train.parquet"), str(Path(folder) / "test.parquet"), columns
