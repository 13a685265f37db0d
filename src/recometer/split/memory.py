"""Checks whether a split fits in memory before it starts."""

from __future__ import annotations

import contextlib
from pathlib import Path

from recometer.errors import InputError
from recometer.tasks import control_groups

# For users, items and times together: the column as read, the column as kept, and a mask.
BYTES_PER_ROW = 40


def check_memory(n_rows: int, bytes_of_parts: int) -> None:
    """Raise InputError if splitting this number of rows would need more memory than available.

    The parts take `bytes_of_parts`, which is 0 if they stay in a file.
    """
    needed, free = n_rows * BYTES_PER_ROW + bytes_of_parts, available()
    if free is None or needed <= free:
        return
    hint = "split a Parquet file, whose parts are written piece by piece by Split.save"
    if not bytes_of_parts:
        hint = "use a machine with more memory, or split the users into several files"
    raise InputError(
        f"Splitting {n_rows:,} interactions needs about {needed / 1e9:.1f} GB, and "
        f"{free / 1e9:.1f} GB are free. Hint: {hint}."
    )


def available(
    meminfo: Path = Path("/proc/meminfo"),
    membership: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Return how many bytes this process can still allocate, or None if this is unknown.

    On Linux, this is the memory available without swapping, within the limits of control groups
    (version 2).
    """
    try:
        lines = meminfo.read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    least = free * 1024
    for group in control_groups(membership, root):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            limit, used = (
                int((group / f"memory.{name}").read_text()) for name in ("max", "current")
            )
            least = min(least, max(0, limit - used))
    return least
