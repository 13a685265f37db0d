"""What a result was computed from, for those who compare two of them."""

from __future__ import annotations

from typing import Any

from recometer.results.evaluation import Evaluation


def fingerprints(result: Evaluation, name: str) -> dict[str, Any]:
    """Return what identifies an input of a result or of its folds; empty if it was not given.

    The inputs are ``"test"``, ``"train"``, ``"candidates"`` and ``"exclude"``.
    """
    return {
        key: described.get("fingerprints")
        for key, described in result.inputs.items()
        if key == name or key.endswith(f": {name}")
    }
