"""``recometer why``: why one library's number is not another's, on the data at hand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recometer.cli import _options as options
from recometer.cli._folder import data_of
from recometer.cli._inputs import Inputs, baseline_of, catalogue_columns, check_stdin, models
from recometer.cli._stdin import StandardInput
from recometer.cli._tables import print_table
from recometer.cli._text import WIDTH, say_line
from recometer.cli.metrics import complete_metrics
from recometer.errors import UnknownNameError
from recometer.evaluate import evaluate
from recometer.evaluating.arguments import named_protocol, protocol_names
from recometer.explanation import explain
from recometer.metrics.conventions import parse_under
from recometer.protocol import Protocol
from recometer.tasks import resolve_threads


def why(
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="One metric: recometer's name, for instance ndcg@10, or that of --from.",
            autocompletion=complete_metrics,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose other number it is. See: recometer conventions.",
            autocompletion=protocol_names,
        ),
    ],
    from_: Annotated[
        str,
        typer.Option(
            "--from", metavar="NAME", help="Whose number it is.", autocompletion=protocol_names
        ),
    ] = "recometer",
    test: options.Test = None,
    train: options.Train = None,
    split: options.Split = None,
    run: options.Run = None,
    factors: options.Factors = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    score: options.Score = None,
    rank: options.Rank = None,
    catalogue: options.CatalogueOption = None,
    categories: options.Categories = None,
    features: options.Features = None,
    propensity: options.Propensity = None,
    baseline: options.Baseline = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Say why the number of one library is not that of another.

    Shows both formulas and, for these data, how the mean goes from one to the other when one
    rule after the other changes, and the users whose values differ most.
    """
    test, train, known = data_of(test, train, split)
    named = models(run or [], factors or [])
    if len(named) != 1:
        raise typer.BadParameter("one model is explained at a time.", param_hint="--run")
    first, second = (_protocol(name, option) for name, option in ((from_, "--from"), (to, "--to")))
    metric = " ".join(metrics)
    if len(parse_under(metric, first)) != 1:
        raise typer.BadParameter(f"{metric!r} is not one metric.", param_hint="--metric")

    def note(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    of_items = catalogue_columns(catalogue, categories, features, propensity)
    columns = {"user": user, "item": item, "value": value, "score": score, "rank": rank}
    columns |= {name: column for name, column in known.items() if columns.get(name) is None}
    data = [test] if train is None else [test, train]
    files = [path for path in named[0].paths if path]
    check_stdin([*data, *files])
    with StandardInput(None) as stdin:
        inputs = Inputs(stdin, columns, note)
        inputs.check_columns([*data, *files])
        test_data, train_data = inputs.both(test, train)
        other = baseline_of(baseline, named)
        given: dict[str, Any] = {
            "train": train_data,
            "catalogue": inputs.catalogue(catalogue, test_data, of_items),
            "baseline": None if other is None else inputs.source(other, test_data, None),
            "threads": resolve_threads(threads),
        }
        source = inputs.source(named[0], test_data, None)
        with inputs.stated(named[0]):
            result = evaluate(
                source, test_data, metrics=metric, protocol=first, progress=False, **given
            )
            explanation = explain(
                result, result.metrics[0], protocol=second, source=source, test=test_data, **given
            )
    for line in explanation.head():
        say_line(line)
    for table in explanation.tables():
        typer.echo()
        print_table(table, wrapped=("change",), width=WIDTH)


def _protocol(name: str, option: str) -> Protocol:
    try:
        return named_protocol(name)
    except UnknownNameError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
