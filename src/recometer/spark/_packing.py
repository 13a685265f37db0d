"""Sums of parts of the users: packed where they are made, and put together on the driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from recometer.spark._bytes import packed, unpacked
from recometer.spark._cells import Cells
from recometer.spark._few import FewRows, Largest
from recometer.spark._frames import Frame, collected, partitions_of
from recometer.spark._ratios import Ratios

Part = TypeVar("Part")
MANY = 256  # partitions whose sums the driver takes one by one
AT_ONCE = 16  # sums that wait to be put together


def added_up(rows: Frame, adding: Callable[[Any], Iterator[dict[str, Any]]]) -> dict[str, Any]:
    """Add up what a function makes of the Arrow batches of each partition; nothing without rows."""

    def run(batches: Any) -> Any:
        import pyarrow as pa

        found = folded(adding(batches), together)
        if found is not None:
            yield pa.RecordBatch.from_arrays([pa.array([to_bytes(found)], pa.binary())], ["sums"])

    def joined(parts: list[bytes]) -> bytes:
        return to_bytes(together([from_bytes(one) for one in parts]))

    sums = rows.mapInArrow(run, "sums binary").selectExpr("sums", "CAST(NULL AS string) AS error")
    found = collected(fewer(sums, joined, partitions_of(rows, None)))
    parts = [from_bytes(bytes(row["sums"])) for row in found]
    return together(parts) if parts else {}


def fewer(rows: Frame, joined: Callable[[list[bytes]], bytes], n: int | None) -> Frame:
    """Put the sums of many partitions together where they are, so that few reach the driver.

    Parameters
    ----------
    rows
        Sums, or an error, of each partition: the columns ``sums`` and ``error``.
    joined
        Puts sums together.
    n
        How many partitions there are, at most. None: not known, and left as they are.
    """
    if n is None or n <= MANY:
        return rows

    def run(batches: Any) -> Any:
        import pyarrow as pa

        def parts() -> Iterator[bytes]:
            for batch in batches:
                yield from (one for one in batch["sums"].to_pylist() if one is not None)
                errors.extend(one for one in batch["error"].to_pylist() if one is not None)

        errors: list[str] = []
        found = folded(parts(), joined)
        rows = [*([(found, None)] if found is not None else []), *((None, e) for e in errors)]
        if rows:
            sums, failed = zip(*rows, strict=True)
            arrays = [pa.array(sums, pa.binary()), pa.array(failed, pa.string())]
            yield pa.RecordBatch.from_arrays(arrays, ["sums", "error"])

    # By their content, so that the same parts always meet, in the same order.
    spread = rows.repartition(math.isqrt(n), "sums").sortWithinPartitions("sums")
    return spread.mapInArrow(run, "sums binary, error string")


def folded(parts: Iterable[Part], joined: Callable[[list[Part]], Part]) -> Part | None:
    """Put parts together, a few at a time; None if there are none."""
    waiting: list[Part] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == AT_ONCE:
            waiting = [joined(waiting)]
    if not waiting:
        return None
    return waiting[0] if len(waiting) == 1 else joined(waiting)


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
        **dict.fromkeys(("largest", "lowest", "ends"), Largest),
        "rows": FewRows,
    }
    return {
        key: own[""] if "" in own else kinds[key.split(" ")[1]](**own)
        for key, own in fields.items()
    }
