"""Options that several commands have which compare models."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.comparing.alike import MAY_DIFFER

Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model that all others are compared with.",
        show_default="every pair is compared",
    ),
]
Primary = Annotated[
    list[str] | None,
    options.rule_option(
        metavar="METRICS",
        help="Metrics that decide: p-values are adjusted over all comparisons by them, and a "
        "report is about the first. May be repeated.",
        show_default="all",
    ),
]
Allow = Annotated[
    list[str] | None,
    options.rule_option(
        metavar="NAME",
        help="What may differ between evaluations: test, train, candidates, exclude, protocol, or "
        "a rule. May be repeated.",
        autocompletion=options.one_of(lambda: list(MAY_DIFFER)),
    ),
]
