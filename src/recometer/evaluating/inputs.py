"""What one evaluation is given: a source, beside the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from recometer.evaluating.asked import Asked
from recometer.evaluating.truth import Truth
from recometer.evaluating.unknown import check_shifted
from recometer.protocol import Protocol
from recometer.sources.base import Source

KEPT_BYTES = 2**28  # of inputs that a result holds on to


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """A source, and what it is measured by."""

    source: Source
    truth: Truth
    protocol: Protocol  # with what the source replaces, see `settled`
    brings_truth: bool  # whether test comes with the source

    @property
    def asked(self) -> Asked:
        """What is asked for."""
        return self.truth.asked

    def check_ids(self) -> None:
        """Refuse ids of the source that look like positions; see `check_shifted`."""
        truth, asked = self.truth, self.asked
        test = None if self.brings_truth else truth.given
        check_shifted(self.source, test, asked.train, self.protocol, asked.by_hand)

    def described(self, fingerprints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return a description of each argument that was given, beside its fingerprints."""
        source, rules = self.source, self.protocol
        texts = {"source": {"description": source.described_under(rules)}}
        texts |= self.truth.descriptions
        if source.says_what_is_relevant(rules):
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
        truth, asked = self.truth, self.asked
        sources = [one for one in (self.source, asked.baseline) if isinstance(one, Source)]
        held = [truth.held_bytes, *(one.held_bytes() for one in sources)]
        if None in held or sum(filter(None, held)) > KEPT_BYTES:
            return None
        # A source that brings the truth brings it again.
        test = None if self.brings_truth else truth.given
        return {**asked.as_given, "source": self.source, "test": test, "train": asked.train}
