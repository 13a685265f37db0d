"""``recometer metrics``: lists every metric with its formula, or explains one."""

from __future__ import annotations

import inspect
import math
import re
from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._text import say
from recometer.metrics.registry import METRICS, SIDE_DATA, MetricDefinition, canonical
from recometer.rendering import Column, Table

LABEL = 12  # width of the labels in front of explanations
AT = "{0}@10 reads the first 10 places; {0}@5,10,50 several; {0}@1..10 all up to 10"
CUTOFFS = {
    "required": AT,
    "optional": f"{AT}; {{0}} alone the whole ranking",
    "none": "{0} takes none",
}
READS = {
    "relevance": "whether an item is relevant: its value in test is above 0, or is at least "
    "that of --relevant-from",
    "gain": "an item's gain: its value in test, 0 if that is below 0, or 1 if test has no values",
    "judgement": "whether an item was judged, and whether it is relevant",
    "ratings": "predicted and true ratings, which rm.Pairs has (in Python)",
    "lists": "the items of the lists",
    "inverse_popularity": "whether an item is relevant, and how many users have it in train",
    "inverse_propensity": "whether an item is relevant, and its propensity",
}


def metrics(
    name: Annotated[
        str | None,
        options.name_to_explain("Metric to explain, for instance ndcg."),
    ] = None,
    form: options.Form = "table",
) -> None:
    """List every metric with its formula, or explain one."""
    options.list_or_explain(name, form, _overview, _explain)


def _overview() -> Table:
    columns = [
        Column("name"),
        Column("other names", wraps=True),
        Column("metric", wraps=True, spare=True),
        Column("formula", wraps=True),
    ]
    notes = [
        "h(k), hits(k): relevant items in the first k places; R: the user's relevant items; "
        "rel(j): 1 if the item at rank j is relevant, else 0.",
        "[@k]: without a cut-off, the whole ranking is read.",
        "recometer metrics NAME explains one.",
    ]
    rows = [
        {
            "name": _pattern(one),
            "other names": ", ".join(one.other_names),
            "metric": one.title,
            "formula": one.formula,
        }
        for one in METRICS.values()
    ]
    return Table(columns, rows, notes)


def _pattern(definition: MetricDefinition) -> str:
    return definition.name + {"required": "@k", "optional": "[@k]", "none": ""}[definition.cutoff]


def _explain(name: str) -> None:
    alone = re.split(r"[@(]", name)[0]
    definition = METRICS[canonical(alone)].with_parameters(())
    typer.echo(f"{_pattern(definition)}: {definition.title}\n")
    text = (inspect.getdoc(definition.function) or "").partition("\nReferences\n")[0]
    for paragraph in text.replace("`", "").strip().split("\n\n"):
        say("", " ".join(paragraph.split()))
        typer.echo()
    ranks = definition.record == "ranks"
    reads = definition.reads if ranks else definition.record
    direction = "higher is better" if definition.higher_is_better else "lower is better"
    order = "it makes no difference" if definition.order_free else "it matters"
    for label, line in (
        ("Formula", definition.formula),
        ("Cut-off", CUTOFFS[definition.cutoff].format(definition.name)),
        ("Reads", READS[reads]),
        ("Needs", ", ".join(SIDE_DATA[side][0] for side in definition.side)),
        ("Users", "one value for all of them" if definition.over_users else ""),
        ("Range", f"{_bound(definition.lower)} to {_bound(definition.upper)}; {direction}"),
        ("Order", "" if definition.record == "ratings" else f"within the first k places {order}"),
        ("Source", definition.source),
        ("Other names", ", ".join(definition.other_names)),
    ):
        if line:
            say(f"{label:<{LABEL}}", line)
    for number, parameter in enumerate(definition.parameters.values()):
        label = "" if number else "Parameters"
        say(f"{label:<{LABEL}}", f"{parameter.describe()}: {parameter.sentence}")
        for choice, meaning in parameter.choices.items():
            say(" " * LABEL, f"  {choice}: {meaning}")


def _bound(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else f"{'-' if value < 0 else ''}infinity"
