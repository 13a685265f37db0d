"""``recometer significance``: what can be concluded from a published table."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._compared import Baseline
from recometer.cli._groups import Reads, command
from recometer.cli._words import output
from recometer.comparing.published import published_table
from recometer.data.files import read_columns
from recometer.errors import InputError

Means = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Published means, in CSV, TSV or Parquet: a row per model, with its name in the "
        "first column, and a column per metric (ndcg@10, ...).",
    ),
    Reads(),
]
Users = Annotated[
    int, typer.Option("--users", "-n", min=2, help="Number of users that the means are over.")
]
Alpha = Annotated[
    float,
    options.rule_option(
        min=1e-12, max=0.5, help="Level of significance of all comparisons together."
    ),
]
Range = Annotated[
    tuple[float, float] | None,
    options.rule_option(
        metavar="LOW HIGH",
        help="Lowest and highest value of a user, for metrics that recometer does not know.",
        show_default="those of the metric",
    ),
]


@command
def significance(
    table: Means,
    users: Users,
    baseline: Baseline = None,
    alpha: Alpha = 0.05,
    bounds: Range = None,
    form: options.Form = "table",
) -> None:
    """Say what you can conclude from a published table of means and the number of users.

    Such a table does not say how the values of two models are correlated over users. Therefore
    only the two values between which p lies can be computed.
    """
    output(
        published_table(read_means(table), users, baseline=baseline, alpha=alpha, bounds=bounds),
        form,
    )


def read_means(path: str) -> dict[str, dict[str, float]]:
    """Read the means of a table, by model and metric."""
    frame = read_columns(path)
    names, *metrics = frame.columns
    if not metrics:
        raise InputError(
            f"{path} has the column {names!r} alone. Hint: it needs the names of the models, and a "
            "column for each metric."
        )
    found: dict[str, dict[str, float]] = {}
    for row in frame.iter_rows(named=True):
        model = str(row[names])
        if model in found:
            raise InputError(f"{path} has two rows called {model!r}. Hint: one for each model.")
        found[model] = {metric: _number(row[metric], metric, model, path) for metric in metrics}
    return found


def _number(value: object, metric: str, model: str, path: str) -> float:
    if value is None or value == "":
        return math.nan
    try:
        return float(str(value))
    except ValueError:
        why = f"{metric} of {model} is {value!r}, which is not a number."
        raise InputError(f"{path}: {why}") from None
