"""Preflight: the result of `check`."""

from __future__ import annotations

import dataclasses
from typing import Any

from recometer.auditing.findings import COLUMNS, Findings
from recometer.rendering import Table
from recometer.version import __version__


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preflight(Findings):
    """Whether the output of a model can be evaluated, and what would go wrong.

    ``print(preflight)`` shows a table, and ``preflight["nan_scores"]`` is a single finding.

    Attributes
    ----------
    findings : tuple of Finding
        The results of all checks, found or not, always in the same order.
    source, test, train
        Descriptions of the model's output and of the data; `train` is None if there is none.
    n_checked, n_users : int
        How many users of test were checked, and how many there are.
    k : int
        The number of places of each list that were checked.
    """

    source: str
    test: str
    train: str | None
    n_checked: int
    n_users: int
    k: int

    @property
    def passed(self) -> bool:
        """Whether no problem was found."""
        return not self.named("problem")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        given = dataclasses.asdict(dataclasses.replace(self, findings=()))
        return {
            "recometer": __version__,
            **given,
            "passed": self.passed,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def table(self) -> Table:
        """Return a row per finding, and below it a sentence for each check that found something."""
        users = "user" if self.n_users == 1 else "users"
        looked = f"checked: {self.n_users:,} {users} of test, {self.k:,} places of each"
        if self.n_checked < self.n_users:
            looked = looked.replace(":", f": {self.n_checked:,} of", 1) + ", drawn at random"
        head = [f"source: {self.source}", f"test: {self.test}"]
        if self.train is not None:
            head.append(f"train: {self.train}")
        return Table(COLUMNS, self.findings, [*head, looked, *self._sentences(), self._verdict()])

    def _sentences(self) -> list[str]:
        """Return what was found, and what was not checked, by the reason."""
        unchecked: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.count is None:
                unchecked.setdefault(finding.sentence, []).append(finding.name)
        found = [
            f"{finding.name} ({finding.what}): {finding.sentence}"
            for finding in self.findings
            if finding.count
        ]
        return [*found, *(f"{', '.join(names)}: {why}" for why, names in unchecked.items())]

    def _verdict(self) -> str:
        problems = self.named("problem")
        if not problems:
            return "No problem was found."
        what = "There is a problem" if len(problems) == 1 else "There are problems"
        return f"{what}: {', '.join(problems)}."

    def __repr__(self) -> str:
        return f"<Preflight: {', '.join(self.named('problem')) or 'no problem'}>"
