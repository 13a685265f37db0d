"""Read the saved evaluations named in a command's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import recometer as rm
from recometer.cli._messages import usage_of
from recometer.cli._models import split_name, stem
from recometer.data.columns import columns_of_groups, common_names
from recometer.data.factor_files import adapt
from recometer.data.files import column_names, names_in, read_columns
from recometer.data.storage import is_table
from recometer.errors import ColumnError, FileError, naming
from recometer.results.saved import PROFILE

if TYPE_CHECKING:
    import polars as pl


def loaded_results(texts: Sequence[str]) -> dict[str, list[rm.Evaluation]]:
    """Load each model's saved evaluations, keyed by name; several per model are repeated runs.

    Each text has the form ``[NAME=]RESULT,RESULT``; a result is a file, or a folder with a file for
    each model.
    """
    paths: dict[str, list[str]] = {}
    for text in texts:
        name, path = split_name(text, "RESULT")
        files = path.split(",")
        for of_model in [files] if len(files) > 1 else [[file] for file in _files(path)]:
            model = name or stem(of_model[0])
            if model in paths:
                raise typer.BadParameter(
                    f"{paths[model][0]} and {of_model[0]} are both called {model!r}. Hint: write "
                    "NAME=FILE.",
                    param_hint="RESULT",
                )
            paths[model] = of_model
    return {name: [rm.load(path) for path in of_model] for name, of_model in paths.items()}


def check_page(path: Path, option: str, inputs: Sequence[str]) -> None:
    """Raise an error early if a report cannot be written to the path that an option names."""
    from recometer.report.result import check_report, format_of  # imported only for reports

    with usage_of(option):
        format_of(path)
    check_report(path, inputs)


def _files(path: str) -> list[str]:
    """Return the saved evaluations in a folder, or just the path itself if it is not a folder."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    files = [folder / name for name in names_in(folder) if name.endswith(".parquet")]
    tables = [str(file) for file in files if is_table(file)]
    if not tables:
        raise FileError(
            f"{path} holds no saved evaluation. Hint: recometer evaluate --out writes a folder of "
            "them."
        )
    return tables


def groups_of(text: str | None, results: Mapping[str, rm.Evaluation]) -> str | pl.DataFrame | None:
    """Return groups for `Evaluation.by`: a name that it accepts, or a frame with a row per user."""
    if text is None or text in PROFILE:
        return text
    return of_users(text, "--by", next(iter(results.values())))


def of_users(text: str, option: str, result: rm.Evaluation) -> pl.DataFrame:
    """Read two columns of ``[COLUMN=]FILE``: the user ids and one other column.

    The user ids are converted to the type of those in `result`.

    Raises
    ------
    ColumnError
        If a column does not exist, or it is unclear which one is meant.
    """
    column, path = split_name(text, option)
    names = column_names(path)
    with naming(f"{option} {path}"):
        users = common_names("user", names)
        if len(users) != 1:
            raise ColumnError(
                f"{'several columns' if users else 'no column'} could hold the users. Hint: call "
                f"one user_id. Columns: {', '.join(names)}."
            )
        columns = columns_of_groups(names, "user", users[0], column or None)
    frame = read_columns(path, columns)
    return frame.with_columns(adapt(frame[users[0]], result.user_ids))
