"""Case: a source and the sides to evaluate it with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from recometer.evaluating.requirements import Requirements, requirements_of
from recometer.evaluating.sides import Sides
from recometer.evaluating.unknown import check_shifted
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.sources.base import Source

KEPT_BYTES = 2**28  # the largest inputs that a result keeps


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One evaluation: a source, the sides, and the rules that apply."""

    source: Source
    sides: Sides
    protocol: Protocol  # adapted to the source, see `settled`
    brings_truth: bool  # whether test comes with the source

    @cached_property
    def requirements(self) -> Requirements:
        """What the metrics need under the rules."""
        return requirements_of(self.sides.metrics, self.protocol)

    def check_ids(self) -> None:
        """Refuse ids of the source that look like positions; see `check_shifted`."""
        sides, arguments = self.sides, self.sides.arguments
        test = None if self.brings_truth else sides.given
        check_shifted(self.source, test, arguments.train, self.protocol, arguments.by_hand)

    def described(self, fingerprints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the description and the fingerprints of each argument."""
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
        """Return the arguments to repeat the evaluation, or None if they take too much memory."""
        sides, arguments = self.sides, self.sides.arguments
        held = [sides.held_bytes, self.source.facts.n_bytes]
        if isinstance(arguments.baseline, Source):
            held.append(arguments.baseline.facts.n_bytes)
        if None in held or sum(filter(None, held)) > KEPT_BYTES:
            return None
        # If the source contains the test data, it will do so again.
        test = None if self.brings_truth else sides.given
        return {**arguments.as_given, "source": self.source, "test": test, "train": arguments.train}
