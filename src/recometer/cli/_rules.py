"""The rules that options give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from recometer.cli._exit import usage_of
from recometer.cli._inputs import Inputs
from recometer.cli._models import Model
from recometer.cli._options import RuleOptions
from recometer.errors import did_you_mean, warn
from recometer.evaluating.arguments import as_listed, named_protocol, protocol_names
from recometer.evaluation import load
from recometer.protocol import Protocol


def given_rules(options: RuleOptions) -> dict[str, Any]:
    """Return the rules that options give, by name."""
    users = None if options.complete is None else "test" if options.complete else "known"
    own = {"ties": options.ties, "relevant_from": options.relevant_from, "users": users}
    rules: dict[str, Any] = {name: rule for name, rule in own.items() if rule is not None}
    for text in options.rule or []:
        name, equals, rule = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not RULE=VALUE.", param_hint="--rule")
        if name in rules:
            raise typer.BadParameter(f"the rule {name!r} is given twice.", param_hint="--rule")
        declared = Protocol.declared.get(name)
        rules[name] = rule if declared is None else declared.read(rule)
    return rules


def protocol_of(option: str, name: str, rules: dict[str, Any]) -> Protocol:
    """Return the protocol that an option names, with some rules replaced."""
    if as_listed(name) in protocol_names():
        found = named_protocol(name)
    elif name.endswith(".parquet"):
        found = load(name).protocol
    else:
        raise typer.BadParameter(
            f"there is no protocol {name!r}. {did_you_mean(name, protocol_names())} Or name a "
            "saved evaluation (.parquet).",
            param_hint=option,
        )
    with usage_of("--rule"):
        return found.replace(**rules)


def with_users(
    protocol: Protocol, name: str, rules: dict[str, Any], named: Sequence[Model], inputs: Inputs
) -> Protocol:
    """Return who counts unless it is said: one rule for all models, whose means are compared."""
    if name != Protocol().name or "users" in rules:
        return protocol
    runs = [model.name for model in named if inputs.is_trec(model)]
    if len(runs) == len(named):
        return protocol.replace(users="known")
    if runs:
        warn(
            f"{', '.join(runs)}: because other models are not TREC runs, topics without a list "
            "count as misses. Hint: --complete confirms this, and --no-complete leaves them out "
            "for all models."
        )
    return protocol.replace(users="test")
