"""The command ``recometer logs``, which estimates how good other policies would have been."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, get_args

import typer

from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._models import split_name
from recometer.cli._results import check_page
from recometer.cli.compare import GateOptions, conclude
from recometer.data.files import column_names
from recometer.logs import Impressions
from recometer.logs.impressions import Slates
from recometer.logs.values import TERMS


@dataclasses.dataclass(frozen=True)
class Columns:
    """The options that name the columns of a log."""

    user: Annotated[str, options.column_option(help="Column of users.")] = "user_id"
    item: Annotated[str, options.column_option(help="Column of items.")] = "item_id"
    reward: Annotated[str, options.column_option(help="Column of rewards or costs.")] = "reward"
    propensity: Annotated[
        str, options.column_option(help="Column of the probability that this item was shown.")
    ] = "propensity"
    position: Annotated[
        str | None, options.column_option(help="Column of positions in slates.")
    ] = None
    slate: Annotated[str | None, options.column_option(help="Column of slates.")] = None


@command
def logs(
    files: Files,
    log: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The log: Parquet, CSV or TSV with a row for each impression.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        list[str],
        options.model_option(
            metavar="NAME=COLUMN|FILE",
            help="A policy: the column of its probabilities in the log, or a file with "
            "target_probability (and predictions) or with all candidates. May be repeated.",
            show_default=False,
        ),
    ],
    columns: Columns,
    gates: GateOptions,
    slates: Annotated[
        str | None,
        options.rule_option(
            "--slates",
            metavar="KIND",
            help=f"What the propensities of slates mean: {', '.join(get_args(Slates))}.",
        ),
    ] = None,
    estimators: Annotated[
        list[str] | None,
        options.rule_option(
            metavar="NAMES",
            help=f"Estimators, the primary one first: {', '.join(TERMS)}. May be repeated.",
            show_default="all that the data permit",
        ),
    ] = None,
    clip: Annotated[
        float | None, options.rule_option(metavar="W", help="Largest weight of clipped_ips.")
    ] = None,
    costs: Annotated[
        bool, options.rule_option("--costs", help="Rewards are costs: lower is better.")
    ] = False,
    min_effective: Annotated[
        float, options.rule_option(metavar="N", help="Refuse policies with fewer effective users.")
    ] = 50,
    baseline: options.ComparedWith = None,
    report: options.ReportPath = None,
    form: options.Form = "table",
) -> None:
    """Estimate from a log with propensities how good other policies would have been.

    The first table shows whether the log can answer this question. It lists the effective users,
    the largest weights, and the mean weight, which should be 1. The logging policy is called
    logged. With --gate 'snips >= -1%', the command fails if a policy is worse than the baseline by
    more than that.
    """
    gates.check(baseline, files)
    if report is not None:
        check_page(report, "--report", files)
    policies: dict[str, str | Path] = {}
    columns_of_log = column_names(log)
    for text in policy:
        name, source = split_name(text, "--policy")
        if not name or name in policies:
            fault = "has no name" if not name else "has the name of another policy"
            raise typer.BadParameter(
                f"{text!r} {fault}. Hint: --policy new=COLUMN.", param_hint="--policy"
            )
        # A path must contain a dot; the name of a log column may also contain one.
        is_column = source in columns_of_log or "." not in source
        policies[name] = source if is_column else Path(source)
    values = Impressions(log, **dataclasses.asdict(columns)).evaluate(
        policies,
        estimators=" ".join(estimators) if estimators else None,
        slates=slates,  # type: ignore[arg-type]
        clip=clip,
        maximise=not costs,
        min_effective=min_effective,
    )
    compared = values.compare(baseline=baseline)
    verdicts = gates.report(compared)
    if report is not None:
        compared.report(report, gates=verdicts)
    conclude(compared, verdicts, form, gates.junit)
