"""The command ``recometer show``, which shows saved evaluations as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._results import groups_of, loaded_results
from recometer.leaderboard import Leaderboard
from recometer.rendering import output


def show(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RESULT...",
            help="Files that result.save(path) or recometer evaluate --out wrote, or folders of "
            "them.",
        ),
    ],
    form: options.Form = "table",
    per_user: options.PerUser = False,
    by: options.By = None,
) -> None:
    """Show one saved evaluation with a row per metric, or several side by side."""
    evaluations = {}
    for model, (evaluations[model], *others) in loaded_results(results).items():
        if others:
            raise typer.BadParameter(
                f"there are several evaluations of {model!r}. Hint: recometer compare accepts "
                "several seeds.",
                param_hint="RESULT",
            )
    groups = groups_of(by, evaluations)
    output(Leaderboard(evaluations, with_users=per_user, groups=groups), form)
