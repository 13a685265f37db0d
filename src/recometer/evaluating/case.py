"""What one evaluation is given: a source, beside the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from recometer.evaluating.arguments import Arguments
from recometer.evaluating.sides import Sides
from recometer.evaluating.unknown import check_shifted
from recometer.protocol import Protocol
from recometer.sources.base import Source

KEPT_BYTES = 2**28  # of inputs that a result holds on to


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A source, and what it is measured by."""

    source: Source
    sides: Sides
    protocol: Protocol  # with what the source replaces, see `settled`
    brings_truth: bool  # whether test comes with the source

    @property
    def arguments(self) -> Arguments:
        """What is asked for."""
        return self.sides.arguments

    def check_ids(self) -> None:
        """Refuse ids of the source that look like positions; see `check_shifted`."""
        sides, arguments = self.sides, self.arguments
        test = None if self.brings_truth else sides.given
        check_shifted(self.source, test, arguments.train, self.protocol, arguments.by_hand)

    def described(self, fingerprints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return a description of each argument that was given, beside its fingerprints."""
        source, rules = self.source, self.protocol
        facts, description = source.facts, source.describe()
        replaces = facts.replaces_relevant_from(rules)
        if not replaces:
            description = description.replace(facts.default_threshold, "")
        texts = {"source": {"description": description}, **self.sides.descriptions}
        if replaces:
            texts["test"] = {"description": texts["test"]["description"]}
        return {
            name: {
                "description": text["description"],
                "fingerprints": fingerprints[name],
                **text,
            }
            for name, text in texts.items()
        }

    def kept(self) -> dict[str, Any] | None:
        """Return what repeats the evaluation, unless that would hold on to much memory."""
        sides, arguments = self.sides, self.arguments
        sources = [one for one in (self.source, arguments.baseline) if isinstance(one, Source)]
        held = [sides.held_bytes, *(one.facts.n_bytes for one in sources)]
        if None in held or sum(filter(None, held)) > KEPT_BYTES:
            return None
        # A source that brings the truth brings it again.
        test = None if self.brings_truth else sides.given
        return {**arguments.as_given, "source": self.source, "test": test, "train": arguments.train}
