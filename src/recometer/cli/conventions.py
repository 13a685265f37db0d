"""``recometer conventions``: whose definitions ``--protocol`` can name, or one in words."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli._tables import print_table
from recometer.cli._text import say
from recometer.errors import UnknownNameError, did_you_mean
from recometer.metrics.conventions import Convention, Entry, find
from recometer.metrics.conventions import conventions as all_conventions
from recometer.metrics.registry import METRICS, Metric
from recometer.protocol import Protocol
from recometer.rendering import Table

__all__ = ["complete_conventions", "conventions"]


def complete_conventions(incomplete: str) -> list[str]:
    """Return the conventions whose names begin so."""
    return [each.name for each in all_conventions() if each.name.startswith(incomplete)]


def conventions(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Explain this one, for instance: lenskit.",
            autocompletion=complete_conventions,
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the conventions of other libraries, or explain how one differs from recometer."""
    if name is None:
        print_table(_overview(), wrapped=("metrics",))
        return
    convention = find(name)
    if convention is None:
        known = [each.name for each in all_conventions()]
        raise UnknownNameError(f"There is no convention {name!r}. {did_you_mean(name, known)}")
    _explain(convention)


def _overview() -> Table:
    rows = [
        (each.name, f"{each.library} {each.version}", " ".join(each.names))
        for each in all_conventions()
    ]
    notes = ["recometer conventions NAME explains one; evaluate --protocol NAME computes by it."]
    return Table(("name", "library", "metrics"), rows, notes=notes)


def _explain(convention: Convention) -> None:
    typer.echo(f"{convention.name}: {convention.library} {convention.version}\n")
    typer.echo("Rules that are not recometer's:")
    for sentence in convention.protocol.sentences():
        say("  ", sentence)
    typer.echo("\nMetrics, and what they are here:")
    for entry, name in zip(convention.entries, convention.names, strict=True):
        _explain_entry(convention.protocol, entry, name)
    for note in convention.notes:
        say("\nNote: ", note)


def _explain_entry(protocol: Protocol, entry: Entry, name: str) -> None:
    ours = entry.ours(5, entry.some_number, False)
    say(f"  {name} = ", f"{_with_k(entry.metric)}: {_formula(ours)}")
    own = {rule: value for rule, value in entry.rules.items() if value != "{k}"}
    for sentence in protocol.replace(**own).sentences(protocol):
        say("      ", sentence)
    if entry.says:
        say("      ", entry.says)
    if entry.defect and entry.defect != entry.metric:
        say("      ", f"With defects=True: {_with_k(entry.defect)}.")
    elif entry.defect:
        say("      ", "What it computes against its documentation needs defects=True.")


def _with_k(metric: str) -> str:
    return metric.replace("{k}", "k").replace("{x}", "x")


def _formula(metric: Metric) -> str:
    definition = METRICS[metric.name]
    texts = [definition.formula]
    for name, value in metric.parameters:
        parameter = definition.parameters[name]
        meaning = parameter.choices.get(str(value))
        texts.append(f"{name}: {meaning}" if meaning else parameter.write(value))
    return "; ".join(texts)
