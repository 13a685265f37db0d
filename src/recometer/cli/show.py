"""``recometer show``: evaluations that were saved, once more as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._inputs import split_name, stem
from recometer.data.storage import is_table
from recometer.errors import FileError
from recometer.rendering import output
from recometer.results.evaluation import load
from recometer.results.leaderboard import Leaderboard


def show(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RESULT...",
            help="Files that result.save(path) or --out of recometer evaluate wrote, or folders "
            "of them.",
        ),
    ],
    form: options.Form = "table",
    per_user: options.PerUser = False,
) -> None:
    """Show evaluations that were saved: one with a row per metric, several side by side."""
    found: dict[str, str] = {}
    for text in results:
        name, path = split_name(text, "RESULT")
        for each in _files(path):
            model = name or stem(each)
            if model in found:
                raise typer.BadParameter(
                    f"{found[model]} and {each} are both called {model!r}. Hint: write NAME=FILE.",
                    param_hint="RESULT",
                )
            found[model] = each
    board = Leaderboard({model: load(path) for model, path in found.items()}, with_users=per_user)
    output(board, form)


def _files(path: str) -> list[str]:
    """Return a file, or the saved evaluations in a folder."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    found = [str(file) for file in sorted(folder.glob("*.parquet")) if is_table(file)]
    if not found:
        raise FileError(
            f"{path} holds no saved evaluation. Hint: recometer evaluate --out writes a folder of "
            "them."
        )
    return found
