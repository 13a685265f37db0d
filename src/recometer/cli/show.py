"""``recometer show``: evaluations that were saved, once more as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._by import groups_of
from recometer.cli._results import named_results
from recometer.cli._words import output
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
    by: options.By = None,
) -> None:
    """Show evaluations that were saved: one with a row per metric, several side by side."""
    found = named_results(results)
    evaluations = {model: load(path) for model, (path,) in found.items()}
    output(
        Leaderboard(evaluations, with_users=per_user, groups=groups_of(by, evaluations)),
        form,
    )
