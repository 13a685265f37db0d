"""Compare a library's output with recometer's values under the library's convention."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pytest

import recometer as rm

# For each metric of a library, the value of each user (None if the library returns only a mean),
# and the mean (None if the library returns no mean).
LibraryValues = Mapping[str, tuple[Mapping[Any, float] | None, float | None]]


def check(
    convention: str,
    source: Any,
    test: Any,
    library_values: LibraryValues,
    *,
    train: Any = None,
    catalogue: Any = None,
    tolerance: float = 1e-9,
) -> None:
    """Compare recometer's values with all values that a library computed for a case."""
    result = rm.evaluate(
        source,
        test,
        train=train,
        catalogue=catalogue,
        metrics=list(library_values),
        protocol=convention,
        threads=1,
        progress=False,
    )
    users: list[Hashable] = list(
        range(len(result)) if result.user_ids is None else result.user_ids.tolist()
    )
    means = result.mean()
    for metric, (values, mean) in library_values.items():
        if values is not None:
            ours = dict(zip(users, result[metric].tolist(), strict=True))
            assert _defined(ours) == pytest.approx(_defined(values), abs=tolerance), metric
        if mean is not None:
            expected = pytest.approx(mean, abs=tolerance, nan_ok=True)
            assert means[metric] == expected, f"mean of {metric}: {means[metric]}, not {mean}"


def _defined(values: Mapping[Any, float]) -> dict[Any, float]:
    return {user: float(value) for user, value in values.items() if not math.isnan(value)}
