"""``recometer metrics``, ``conventions`` and ``rules``: list all names, or explain one of them."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from recometer.cli import _options as options
from recometer.cli._messages import say
from recometer.errors import UnknownNameError, did_you_mean, option_value
from recometer.metrics.conventions import as_listed, find_convention
from recometer.metrics.conventions import conventions as all_conventions
from recometer.metrics.registry import METRICS, SIDE_DATA, MetricDefinition, canonical
from recometer.protocol import Number, Protocol
from recometer.rendering import Column, Table, output

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
    "ratings": "predicted and true ratings, which --pairs reads",
    "lists": "the items of the lists",
    "inverse_popularity": "whether an item is relevant, and how many training users have it",
    "inverse_propensity": "whether an item is relevant, and its propensity",
}
RULES = {name: rule for name, rule in Protocol.declared.items() if rule.says}


def _to_explain(noun: str, example: str) -> Any:
    help = f"{noun} to explain, for instance {example}."
    return typer.Argument(metavar="[NAME]", help=help, show_default=False)


def metrics(
    name: Annotated[str | None, _to_explain("Metric", "ndcg")] = None,
    form: options.Form = "table",
) -> None:
    """List all metrics with their formulas, or explain one of them."""
    _list_or_explain(name, form, _metrics, _explain_metric)


def conventions(
    name: Annotated[str | None, _to_explain("Convention", "lenskit")] = None,
    form: options.Form = "table",
) -> None:
    """List other libraries' conventions, or explain how one of them differs from recometer."""
    _list_or_explain(name, form, _conventions, _explain_convention)


def rules(
    name: Annotated[str | None, _to_explain("Rule", "ties")] = None,
    form: options.Form = "table",
) -> None:
    """List all rules, or explain one of them. To change a rule, use --rule NAME=VALUE."""
    _list_or_explain(name, form, _rules, _explain_rule)


def _list_or_explain(
    name: str | None, form: str, overview: Callable[[], Table], explain: Callable[[str], None]
) -> None:
    """Print the table of all names or, if a name was passed, explain it."""
    if name is None:
        output(overview(), form, folded=False)
    elif form != "table":
        raise typer.BadParameter(
            "it applies only to the list, without NAME.", param_hint="--format"
        )
    else:
        explain(name)


def _metrics() -> Table:
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
            "name": _pattern(metric),
            "other names": ", ".join(metric.other_names),
            "metric": metric.title,
            "formula": metric.formula,
        }
        for metric in METRICS.values()
    ]
    return Table(columns, rows, notes)


def _pattern(definition: MetricDefinition) -> str:
    return definition.name + {"required": "@k", "optional": "[@k]", "none": ""}[definition.cutoff]


def _explain_metric(name: str) -> None:
    base = re.split(r"[@(]", name)[0]
    definition = METRICS[canonical(base)].with_parameters(())
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


def _conventions() -> Table:
    rows = [
        {
            "name": convention.name,
            "library": f"{convention.library} {convention.version}",
            "metrics": " ".join(convention.names),
        }
        for convention in all_conventions()
    ]
    notes = ["recometer conventions NAME explains one; evaluate --protocol NAME uses it."]
    columns = [Column("name"), Column("library"), Column("metrics", wraps=True)]
    return Table(columns, rows, notes)


def _explain_convention(name: str) -> None:
    convention = find_convention(as_listed(name))
    if convention is None:
        hint = did_you_mean(name, [convention.name for convention in all_conventions()])
        raise UnknownNameError(f"There is no convention {name!r}. {hint}")
    for line in convention.describe().splitlines():
        text = line.lstrip()
        say(line[: len(line) - len(text)], text)


def _rules() -> Table:
    rows = [
        {
            "rule": name,
            "default": _option_text(rule.default),
            "values": ", ".join(_option_text(value) for value in rule.says),
        }
        for name, rule in RULES.items()
    ]
    notes = ["recometer rules NAME explains one; evaluate --rule NAME=VALUE changes it."]
    return Table([Column("rule"), Column("default"), Column("values", wraps=True)], rows, notes)


def _explain_rule(name: str) -> None:
    if name not in RULES:
        raise UnknownNameError(f"There is no rule {name!r}. {did_you_mean(name, RULES)}")
    rule = RULES[name]
    say("", f"--rule {name}=VALUE; default: {_option_text(rule.default)}")
    typer.echo()
    width = max(len(_option_text(value)) for value in rule.says) + 2
    for value, meaning in rule.says.items():
        say(f"{_option_text(value):<{width}}", meaning.format("x"))
    if rule.about:
        typer.echo()
        say("", rule.about)


def _option_text(value: object) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, Number):
        return f"x ({value.text})"
    return option_value(value)
