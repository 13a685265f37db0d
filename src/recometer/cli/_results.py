"""Saved evaluations that arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from recometer.cli._models import split_name, stem
from recometer.cli._stdin import InputFormat, StandardInput
from recometer.data.files import names_in
from recometer.data.storage import is_table
from recometer.errors import FileError
from recometer.evaluation import Evaluation, load


def paths_of(text: str) -> list[str]:
    """Return the files of ``[NAME=]RESULT,RESULT``."""
    return split_name(text, "RESULT")[1].split(",")


def named_results(texts: Sequence[str], *, several: bool = False) -> dict[str, list[str]]:
    """Return the files of each model, by its name.

    Parameters
    ----------
    texts
        ``[NAME=]RESULT``, where a result is a file, or a folder of files that are a model each.
    several
        Whether a model may have several files, with commas between.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, path = split_name(text, "RESULT")
        files = path.split(",") if several else [path]
        each = [files] if len(files) > 1 else [[file] for file in _files(path)]
        for of_model in each:
            model = name or stem(of_model[0])
            if model in found:
                raise typer.BadParameter(
                    f"{found[model][0]} and {of_model[0]} are both called {model!r}. Hint: write "
                    "NAME=FILE.",
                    param_hint="RESULT",
                )
            found[model] = of_model
    return found


def loaded(path: str) -> Evaluation:
    """Return a saved evaluation, which may come through a pipe or standard input."""
    with StandardInput(InputFormat.parquet) as streams:
        try:
            return load(streams.path(path))
        except FileError as error:
            raise FileError(streams.named(str(error))) from error


def _files(path: str) -> list[str]:
    """Return a file, or the saved evaluations in a folder."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    every = [folder / name for name in names_in(folder) if name.endswith(".parquet")]
    found = [str(file) for file in every if is_table(file)]
    if not found:
        raise FileError(
            f"{path} holds no saved evaluation. Hint: recometer evaluate --out writes a folder of "
            "them."
        )
    return found
