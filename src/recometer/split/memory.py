"""Whether a split fits in memory, said before it is too late."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from recometer.errors import InputError

# Of users, items and times at once: the column as it is read and as it is kept, and a mask.
BYTES_PER_ROW = 40


def check_memory(n_rows: int, bytes_of_parts: int) -> None:
    """Raise if a split would need more memory than there is.

    Parameters
    ----------
    n_rows
        How many rows are split.
    bytes_of_parts
        How much memory the parts will take; 0 for those that stay in a file.

    Raises
    ------
    InputError
        It does not fit; the message says what is needed.
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
    """Return how many bytes this process can still take; None where the system does not say.

    On Linux that is what can be used without swapping, and what control groups (version 2) leave.
    """
    try:
        lines = meminfo.read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
        groups = membership.read_text().splitlines()
    except (OSError, StopIteration):
        return None
    least = free * 1024
    own = next((PurePosixPath(line[3:]) for line in groups if line.startswith("0::")), None)
    for path in () if own is None else (own, *own.parents):
        folder = root / path.relative_to("/")
        try:
            limit = int((folder / "memory.max").read_text())
            used = int((folder / "memory.current").read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        least = min(least, max(0, limit - used))
    return least
