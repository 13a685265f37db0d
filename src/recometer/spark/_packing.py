"""Sums of parts of the users: packed where they are made, and put together on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.spark._bytes import packed, unpacked
from recometer.spark._cells import Cells
from recometer.spark._few import FewRows, Largest
from recometer.spark._frames import Frame, collected
from recometer.spark._ratios import Ratios


def added_up(rows: Frame, adding: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Add up what a function makes of the Arrow batches of each partition; nothing without rows."""

    def run(batches: Any) -> Any:
        import pyarrow as pa

        found = adding(batches)
        if found:
            yield pa.RecordBatch.from_arrays([pa.array([to_bytes(found)], pa.binary())], ["sums"])

    found = collected(rows.mapInArrow(run, "sums binary"))
    parts = [from_bytes(bytes(row[0])) for row in found]
    return together(parts) if parts else {}


def together(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put the sums of several parts together, each by its kind."""
    found: dict[str, Any] = {}
    for key in parts[0]:
        own = [part[key] for part in parts]
        kind = type(own[0])
        found[key] = np.sum(own, axis=0) if kind is np.ndarray else kind.together(own)
    return found


def to_bytes(found: Mapping[str, Any]) -> bytes:
    """Return sums as bytes: arrays alone."""
    arrays: dict[str, Any] = {}
    for key, one in found.items():
        fields = {"": one} if isinstance(one, np.ndarray) else vars(one)
        arrays |= {f"{key}.{name}": np.asarray(value) for name, value in fields.items()}
    return packed(None, arrays)


def from_bytes(content: bytes) -> dict[str, Any]:
    """Read what `to_bytes` returned."""
    fields: dict[str, dict[str, Any]] = {}
    for name, value in unpacked(content)[1].items():
        key, _, field = name.rpartition(".")
        fields.setdefault(key, {})[field] = value if value.ndim else value.item()
    kinds: dict[str, Any] = {
        **dict.fromkeys(("cells", "of_sums"), Cells),
        **dict.fromkeys(("ratios", "units"), Ratios),
        "largest": Largest,
        "rows": FewRows,
    }
    return {
        key: own[""] if "" in own else kinds[key.split(" ")[1]](**own)
        for key, own in fields.items()
    }
