"""``recometer rules``: lists the rules that ``--rule`` takes, or explains one."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._text import say
from recometer.errors import UnknownNameError, did_you_mean, option_value
from recometer.protocol import Number, Protocol
from recometer.rendering import Column, Table

RULES = {name: rule for name, rule in Protocol.declared.items() if rule.says}


def rules(
    name: Annotated[
        str | None,
        options.name_to_explain("Rule to explain, for instance ties."),
    ] = None,
    form: options.Form = "table",
) -> None:
    """List the rules that determine metrics, or explain one: --rule NAME=VALUE changes it."""
    options.list_or_explain(name, form, _overview, _explain)


def _explain(name: str) -> None:
    if name not in RULES:
        raise UnknownNameError(f"There is no rule {name!r}. {did_you_mean(name, RULES)}")
    rule = RULES[name]
    say("", f"--rule {name}=VALUE; default: {_written(rule.default)}")
    typer.echo()
    width = max(len(_written(value)) for value in rule.says) + 2
    for value, meaning in rule.says.items():
        say(f"{_written(value):<{width}}", meaning.format("x"))
    if rule.about:
        typer.echo()
        say("", rule.about)


def _overview() -> Table:
    rows = [
        {
            "rule": name,
            "default": _written(rule.default),
            "values": ", ".join(_written(value) for value in rule.says),
        }
        for name, rule in RULES.items()
    ]
    notes = ["recometer rules NAME explains one; evaluate --rule NAME=VALUE changes it."]
    return Table([Column("rule"), Column("default"), Column("values", wraps=True)], rows, notes)


def _written(value: object) -> str:
    """Return a value as you write it on the command line."""
    if isinstance(value, Number):
        return f"x ({value.text})"
    return option_value(value)
