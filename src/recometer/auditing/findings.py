"""Findings: the results of checks on a split or on a model's output."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from recometer.arrays import Array, Bool
from recometer.errors import UnknownNameError, did_you_mean
from recometer.rendering import Column, Printed, Table
from recometer.version import __version__

if TYPE_CHECKING:
    import polars

Level = Literal["leakage", "problem", "warning", "fact"]
EXAMPLES = 5  # the maximum number of examples per finding
SHOWN = 3  # the maximum number of examples per finding that a table shows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check on a split or on a model's output.

    Attributes
    ----------
    name
        The name of the check, such as ``"overlap"``.
    what
        What is counted, such as ``"test interactions that are also in the training data"``.
    level
        ``"leakage"`` means that the training data may reveal the test interactions, ``"problem"``
        that the result would be wrong or meaningless, and ``"warning"`` that the result means less
        than it seems to. ``"fact"`` means none of these, or that nothing was found.
    count
        The number of things found. None if the check was not possible; `sentence` then says why.
    total
        The number of things that were checked, including those found.
    examples
        The first few users, items or (user, item) pairs that were found, in the order of their ids.
        If there are no ids, the examples are positions.
    sentence
        What the finding means for the result.
    statistics
        Additional numbers about the finding, keyed by name.
    """

    name: str = ""
    what: str
    level: Level
    count: int | None
    total: int
    examples: tuple[Any, ...] = ()
    sentence: str
    statistics: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The count divided by the total, or None if the count is None or the total is 0."""
        return None if self.count is None or not self.total else self.count / self.total

    @property
    def found(self) -> str:
        """The count and the total, as a string."""
        return "not checked" if self.count is None else f"{self.count:,} of {self.total:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as Python objects that can be written as JSON.

        Ids of types that JSON does not support become strings.
        """
        values = {name: getattr(self, name) for name in FIELDS}
        values["examples"] = [_plain(example) for example in self.examples]
        return {**values, "statistics": dict(self.statistics)}


def counted(
    count: int,
    total: int,
    examples: tuple[Any, ...],
    what: str,
    level: Level,
    meaning: str,
    clear: str,
    statistics: Mapping[str, float] | None = None,
    name: str = "",
) -> Finding:
    """Return a finding that says `meaning` or, if the count is 0, a fact that says `clear`."""
    return Finding(
        name=name,
        what=what,
        level=level if count else "fact",
        count=count,
        total=total,
        examples=examples,
        sentence=meaning if count else clear,
        statistics=statistics or {},
    )


def among(
    chosen: Bool,
    ids: Array | None,
    what: str,
    level: Level,
    meaning: str,
    clear: str,
) -> Finding:
    """Return the finding of a check that selects users or items by a mask; see `counted`."""
    places = np.flatnonzero(chosen)
    examples = examples_at(places, ids)
    return counted(len(places), len(chosen), examples, what, level, meaning, clear)


def unchecked(what: str, why: str, total: int = 0, name: str = "") -> Finding:
    """Return the finding of a check that was not possible; `why` gives the reason."""
    sentence = f"Not checked: {why}"
    return Finding(name=name, what=what, level="fact", count=None, total=total, sentence=sentence)


def examples_at(positions: Array, ids: Array | None) -> tuple[Any, ...]:
    """Return the ids at the first few positions; without ids, return the positions themselves."""
    few = positions[:EXAMPLES]
    return tuple(few.tolist() if ids is None else ids[few].tolist())


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
class Findings(Printed):
    """The results of all checks in a fixed order, whether or not they found anything."""

    findings: tuple[Finding, ...]
    plain: ClassVar[tuple[str, ...]]  # the names of other attributes that `to_dict` includes

    def __getitem__(self, name: str) -> Finding:
        """Return the finding with this name.

        Raises
        ------
        UnknownNameError
            If no finding has this name. The message suggests other names.
        """
        by_name = {finding.name: finding for finding in self.findings}
        if name not in by_name:
            raise UnknownNameError(f"There is no finding {name!r}. {did_you_mean(name, by_name)}")
        return by_name[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as Python objects that can be written as JSON."""
        attributes = {name: getattr(self, name) for name in self.plain}
        findings = [finding.to_dict() for finding in self.findings]
        return {"recometer": __version__, **attributes, "findings": findings}

    def frame(self) -> polars.DataFrame:
        """Return a Polars frame with a row for each finding; examples are converted to strings."""
        import polars as pl

        kinds: dict[str, Any] = dict.fromkeys(FIELDS, pl.String)
        kinds |= {"count": pl.Int64, "total": pl.Int64, "share": pl.Float64}
        kinds["examples"] = pl.List(pl.String)
        columns = {name: [getattr(finding, name) for finding in self.findings] for name in FIELDS}
        columns["examples"] = [list(map(str, examples)) for examples in columns["examples"]]
        return pl.DataFrame(columns, schema=kinds)

    def table(self) -> Table:
        """Return a table with a row for each finding, and with the findings' sentences as notes."""
        return Table(COLUMNS, self.findings, self._notes())

    def _notes(self) -> list[str]:
        raise NotImplementedError

    def notable(self) -> list[Finding]:
        """Return the findings with a count above 0 or no count at all, most serious first."""
        order = ("leakage", "problem", "warning", "fact")
        found = (finding for finding in self.findings if finding.count != 0)
        return sorted(found, key=lambda finding: order.index(finding.level))

    def names_at(self, level: Level) -> list[str]:
        """Return the names of the findings at this level."""
        return [finding.name for finding in self.findings if finding.level == level]


def _plain(example: Any) -> Any:
    if isinstance(example, tuple):
        return [_plain(part) for part in example]
    return example if isinstance(example, int | float | str | bool) else str(example)
