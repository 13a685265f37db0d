"""The command ``recometer why``, which explains why the numbers of two libraries differ."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._job import option_rules, protocol_of, reading
from recometer.cli._messages import usage_of
from recometer.explanation import explain
from recometer.metrics.conventions import parse_under
from recometer.rendering import output


@command
def why(
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="One metric, by its name in recometer (for instance ndcg@10) or in --from.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="Where the other number comes from: a convention (recometer conventions lists "
            "them), or a saved evaluation (.parquet).",
        ),
    ],
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    baseline: options.Baseline = None,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NAME|FILE",
            help="Where the number comes from: a protocol, a convention or a result.",
        ),
    ] = "recometer",
) -> None:
    """Explain why one library's number differs from another's.

    The command prints both formulas. For your data, it also shows how the mean changes as the rules
    change one by one, and which users' values differ most. Rules set by options apply to both
    sides.
    """
    rules_by_name = option_rules(rules)
    first, second = (
        protocol_of(option, name, rules_by_name)
        for name, option in ((from_, "--from"), (to, "--to"))
    )
    metric = " ".join(metrics)
    with usage_of("--metric"):
        parsed = parse_under(metric, first)
    if len(parsed) != 1:
        raise typer.BadParameter(f"{metric!r} is not a single metric.", param_hint="--metric")
    with reading(data, model, rules, run, files, metrics=parsed, baseline=baseline) as work:
        job, explained, source = work.only_model("explained")
        first, second = (
            job.settled(protocol, name, rules_by_name)
            for protocol, name in ((first, from_), (second, to))
        )
        result = job.evaluate(explained, source, metric, first, progress=False)
        with job.inputs.error_context(explained):
            explanation = explain(
                result,
                result.metrics[0],
                protocol=second,
                source=source,
                test=job.test,
                **job.arguments,
            )
    if run.per_user:
        explanation = dataclasses.replace(explanation, n_shown=None)
    output(explanation, run.form)
