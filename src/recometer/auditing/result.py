"""Audit: the result of `audit`."""

from __future__ import annotations

import dataclasses
from typing import Any

from recometer.auditing.findings import COLUMNS, Findings
from recometer.rendering import Table
from recometer.version import __version__


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit(Findings):
    """The faults of a split into train and test, and their effects on the result.

    ``print(audit)`` shows a table, and ``audit["overlap"]`` is a single finding.

    Attributes
    ----------
    findings : tuple of Finding
        The results of all checks, found or not, always in the same order.
    train, test
        Descriptions of the data.
    allowed : tuple of str
        Names of leakage that is accepted; the verdict mentions them.
    """

    train: str
    test: str
    allowed: tuple[str, ...] = ()

    @property
    def leaks(self) -> bool:
        """Whether there is leakage."""
        return any(finding.level == "leakage" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Whether there is leakage, in a sentence."""
        leaks = self.named("leakage")
        if not leaks:
            checked = all(finding.count is not None for finding in self.findings)
            return "No leakage was found" + ("." if checked else ", as far as it was checked.")
        accepted = [name for name in leaks if name in self.allowed]
        if not accepted:
            return "There is leakage."
        part = "all of it" if accepted == leaks else "some of it"
        return f"There is leakage, {part} allowed: {', '.join(accepted)}."

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
        """Return a row per finding, and below it a sentence for each check that found something."""
        return Table(COLUMNS, self.findings, self._notes())

    def _notes(self) -> list[str]:
        said = [
            f"{finding.name} ({finding.what}): {finding.sentence}"
            for finding in self.findings
            if finding.count != 0
        ]
        return [f"train: {self.train}", f"test: {self.test}", *said, self.verdict]

    def __repr__(self) -> str:
        found = self.named("leakage")
        return f"<Audit: {', '.join(found) if found else 'no leakage'}>"
