"""Audit and Finding: what `audit` returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from recometer.errors import UnknownNameError, did_you_mean
from recometer.rendering import Column, Printed, Table
from recometer.version import __version__

if TYPE_CHECKING:
    import polars

Level = Literal["leakage", "warning", "fact"]

SHOWN = 3  # examples in a table


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked for in a split.

    Attributes
    ----------
    name
        For instance ``"overlap"``.
    what
        What is counted: ``"interactions of test that are also in train"``.
    level
        ``"leakage"``: the model could learn from what it is tested on; ``"warning"``: the result
        means less than it seems to; ``"fact"``: neither, or nothing was found.
    count
        None if it was not checked; the sentence says why.
    total
        The number that `count` is a part of.
    examples
        The first few by the order of the ids: ids of users or items, or pairs (user, item);
        positions where there are no ids.
    sentence
        What it does to the result.
    statistics
        Further numbers by name.
    """

    name: str
    what: str
    level: Level
    count: int | None
    total: int
    examples: tuple[Any, ...] = ()
    sentence: str
    statistics: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The count divided by the total; None where there is no such number."""
        return None if self.count is None or not self.total else self.count / self.total

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON); ids of other types become texts."""
        values = {name: getattr(self, name) for name in FIELDS}
        values["examples"] = [_plain(example) for example in self.examples]
        return {**values, "statistics": dict(self.statistics)}


def _list(examples: tuple[Any, ...]) -> str:
    more = ", ..." if len(examples) > SHOWN else ""
    return ", ".join(str(example) for example in examples[:SHOWN]) + more


COLUMNS = (
    Column("finding", ("name",)),
    Column("what", hidden=True),
    Column("level", ("level", "count"), lambda level, count: level if count else ""),
    Column(
        "count",
        show=lambda count: "not checked" if count is None else f"{count:,}",
        number=True,
    ),
    Column("of", ("total",), "{:,}".format, number=True),
    Column("share", show=lambda share: "" if share is None else f"{share:.1%}", number=True),
    Column("for instance", ("examples",), _list, wraps=True),
    Column("sentence", hidden=True),
)
FIELDS = tuple(Table(COLUMNS, []).fields())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit(Printed):
    """What is wrong with a split into train and test, and what it does to the result.

    ``print(audit)`` shows a table, ``audit["overlap"]`` is one finding.

    Attributes
    ----------
    findings : tuple of Finding
        Everything that was looked for, found or not, always in the same order.
    train, test
        Descriptions of the data.
    allowed : tuple of str
        Names of leakage that is accepted, which the verdict says.
    """

    findings: tuple[Finding, ...]
    train: str
    test: str
    allowed: tuple[str, ...] = ()

    @property
    def leaks(self) -> bool:
        """Whether there is leakage."""
        return any(finding.level == "leakage" for finding in self.findings)

    def __getitem__(self, name: str) -> Finding:
        """Return a finding by its name.

        Raises
        ------
        UnknownNameError
            There is no such finding; the message lists all.
        """
        found = {finding.name: finding for finding in self.findings}
        if name not in found:
            raise UnknownNameError(f"There is no finding {name!r}. {did_you_mean(name, found)}")
        return found[name]

    def frame(self) -> polars.DataFrame:
        """Return a Polars frame, a row per finding; the examples as texts."""
        import polars as pl

        kinds: dict[str, Any] = dict.fromkeys(FIELDS, pl.String)
        kinds |= {"count": pl.Int64, "total": pl.Int64, "share": pl.Float64}
        kinds["examples"] = pl.List(pl.String)
        columns = {name: [getattr(one, name) for one in self.findings] for name in FIELDS}
        columns["examples"] = [list(map(str, examples)) for examples in columns["examples"]]
        return pl.DataFrame(columns, schema=kinds)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        return {
            "recometer": __version__,
            "train": self.train,
            "test": self.test,
            "leaks": self.leaks,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def table(self) -> Table:
        """Return a row per finding, and below a sentence for each that was made."""
        return Table(COLUMNS, self.findings, self._notes())

    def _notes(self) -> list[str]:
        said = [
            f"{finding.name} ({finding.what}): {finding.sentence}"
            for finding in self.findings
            if finding.count != 0
        ]
        checked = all(finding.count is not None for finding in self.findings)
        clear = "No leakage was found" + ("." if checked else ", as far as it was checked.")
        leaks = [finding.name for finding in self.findings if finding.level == "leakage"]
        accepted = [name for name in leaks if name in self.allowed]
        leaking = "There is leakage"
        if accepted:
            part = "all of it" if accepted == leaks else "some of it"
            leaking += f", {part} allowed: {', '.join(accepted)}"
        verdict = f"{leaking}." if leaks else clear
        return [f"train: {self.train}", f"test: {self.test}", *said, verdict]

    def __repr__(self) -> str:
        found = [finding.name for finding in self.findings if finding.level == "leakage"]
        return f"<Audit: {', '.join(found) if found else 'no leakage'}>"


def _plain(example: Any) -> Any:
    if isinstance(example, tuple):
        return [_plain(part) for part in example]
    return example if isinstance(example, int | float | str | bool) else str(example)
