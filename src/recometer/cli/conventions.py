"""``recometer conventions``: lists the conventions that ``--protocol`` takes, or explains one."""

from __future__ import annotations

from typing import Annotated

from recometer.cli import _options as options
from recometer.cli._text import say_line
from recometer.errors import UnknownNameError, did_you_mean
from recometer.evaluating.arguments import as_listed
from recometer.metrics.conventions import conventions as all_conventions
from recometer.metrics.conventions import find
from recometer.rendering import Column, Table


def _names() -> list[str]:
    return [each.name for each in all_conventions()]


def conventions(
    name: Annotated[
        str | None,
        options.name_to_explain("Convention to explain, for instance lenskit."),
    ] = None,
    form: options.Form = "table",
) -> None:
    """List the conventions of other libraries, or explain how one differs from recometer."""
    options.list_or_explain(name, form, _overview, _explain)


def _explain(name: str) -> None:
    convention = find(as_listed(name))
    if convention is None:
        hint = did_you_mean(name, _names())
        raise UnknownNameError(f"There is no convention {name!r}. {hint}")
    for line in convention.describe().splitlines():
        say_line(line)


def _overview() -> Table:
    rows = [
        {
            "name": each.name,
            "library": f"{each.library} {each.version}",
            "metrics": " ".join(each.names),
        }
        for each in all_conventions()
    ]
    notes = ["recometer conventions NAME explains one; evaluate --protocol NAME computes by it."]
    columns = [Column("name"), Column("library"), Column("metrics", wraps=True)]
    return Table(columns, rows, notes)
