"""The kernel's number of instructions per user and item on 64-bit Arm, under an emulator.

Counts do not depend on the load of the machine. `.ci/check_aarch64` installs the Python for this,
and a compiler (cc) builds the QEMU plug-in that counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / "build" / "aarch64" / "python"
# The numbers of factors, and of relevant items per user. With one factor, counting dominates.
CASES = [(1, 1), (1, 10), (1, 50), (65, 10)]
DTYPES = ["float32", "float64"]
USERS, ITEMS = 120, 2048


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().inside:
        run_cases()
        return
    if not PYTHON.exists():
        sys.exit(f"There is no {PYTHON}. Hint: .ci/check_aarch64 installs it on Debian.")
    counts = counted()
    names = sorted({name for name, *_ in counts})
    print("| scores | factors | relevant items |", *(f"{name} |" for name in names))
    print("|---|---|---|" + "---|" * len(names))
    for dtype in DTYPES:
        for factors, relevant in CASES:
            numbers = [f"{counts[name, dtype, factors, relevant]:.1f} |" for name in names]
            print(f"| {dtype} | {factors} | {relevant} |", *numbers)


def counted() -> dict[tuple[str, str, int, int], float]:
    """Return the instructions of each case, divided by users and items."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(folder) / "count.so"
        source = str(HERE / "_instructions.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), source], check=True)
        process = subprocess.run(
            [PYTHON, __file__, "--inside"],
            env=os.environ | {"QEMU_PLUGIN": str(plugin)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
    per_pair: dict[tuple[str, str, int, int], float] = {}
    counts: list[int] = []
    for line in process.stdout.splitlines():
        word, *rest = line.split()
        if word == "count":
            counts.append(int(rest[0]))
        elif word == "case":
            name, dtype, factors, relevant = rest
            key = name, dtype, int(factors), int(relevant)
            per_pair[key] = (counts[-1] - counts[-2]) / (USERS * ITEMS)
    return per_pair


def run_cases() -> None:
    """Rank all items for all users, in every case and with every instruction set."""
    from recometer import _kernel

    for name in _kernel.instruction_sets():
        for dtype in DTYPES:
            for factors, relevant in CASES:
                for _ in range(2):  # the emulator translates the code in the first run
                    rank(name, dtype, factors, relevant)
                print("case", name, dtype, factors, relevant, flush=True)


def rank(name: str, dtype: str, n_factors: int, n_relevant: int) -> None:
    """Rank random relevant items, with a marker before and after."""
    import numpy as np

    from recometer import _kernel

    rng = np.random.default_rng(0)
    factors: dict[str, Any] = {
        "users": rng.normal(size=(USERS, n_factors)).astype(dtype),
        "items": rng.normal(size=(ITEMS, n_factors)).astype(dtype),
        "bias": None,
        "rows": None,
    }
    rows = [np.sort(rng.choice(ITEMS, n_relevant, replace=False)) for _ in range(USERS)]
    judged = np.concatenate(rows).astype(np.int32)
    indptr = np.arange(USERS + 1) * n_relevant
    scores = np.empty(len(judged), dtype)
    score: dict[str, Any] = {"indptr": indptr, "listed": judged, "scores": scores}
    _kernel.score_items(instruction_set=name, **factors, **score)
    counts = {
        name_of_count: np.zeros(len(judged), np.int64)
        for name_of_count in ("above", "tied", "before")
    }
    arguments: dict[str, Any] = {
        **factors,
        **dict.fromkeys(("by_place", "places", "item_bound", "user_bound", "limit")),
        "first": 0,
        "last": ITEMS,
        "check": False,
        "nan_rule": _kernel.NanRule.UNDEFINED,
        "excluded_indptr": np.zeros(USERS + 1, np.int64),
        "excluded": np.zeros(0, np.int32),
        "judged_indptr": indptr,
        "judged": judged,
        "judged_scores": scores,
        **counts,
        "flags": np.zeros(USERS, np.uint32),
        "finished": np.zeros(USERS, np.uint8),
    }
    os.getppid()
    lost = _kernel.rank_factors(instruction_set=name, **arguments)
    os.getppid()
    assert lost == -1


if __name__ == "__main__":
    main()
