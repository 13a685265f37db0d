"""Time another library and recometer in alternation, both doing the same work.

Both sides get the same objects in the same process, and one thread. The result is the median ratio
of adjacent runs in processor time (time.process_time), which other users of the machine hardly
affect. Compilation (Numba) and imports happen in an earlier round that does not count.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# Set the number of threads before NumPy is imported.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")})

from _machine import describe
from _table import markdown, number, seconds


class Pair(NamedTuple):
    """A call to a library, and the equivalent call to recometer."""

    name: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]


class Library(NamedTuple):
    """A library: its calls, the number of users or queries, and the package with its version."""

    pairs: Callable[[int], list[Pair]]
    n_users: int
    package: str


def measured(pair: Pair, repeats: int) -> dict[str, Any]:
    """Return the processor seconds of both sides in alternation, and the median of their ratios."""
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    for call in (pair.theirs, pair.ours):
        call()
    for _ in range(repeats):
        for side, times_of_side in times.items():
            call = getattr(pair, side)
            # Repeat calls that are shorter than a clock tick.
            calls, spent = 0, 0.0
            while spent < 0.05:
                begin = time.process_time()
                call()
                spent, calls = spent + time.process_time() - begin, calls + 1
            times_of_side.append(spent / calls)
    ratios = [theirs / ours for theirs, ours in zip(*times.values(), strict=True)]
    return {**times, "ratio": statistics.median(ratios)}


def main(libraries: Mapping[str, Library], results: Path, description: str | None) -> None:
    """Print a table, and save all times."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--library", action="append", choices=[*libraries])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="use a hundredth of the users")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record = json.loads(results.read_text()) if results.exists() else {"libraries": {}}
    headers = ["call", "users", "theirs", "ours", "times as fast"]
    for library in options.library or libraries:
        make, n_users, package = libraries[library]
        n_users = math.ceil(n_users / 100) if options.quick else n_users
        version = importlib.metadata.version(package)
        measurements, lines = {}, []
        for pair in make(n_users):
            measurements[pair.name] = measurement = measured(pair, options.repeats)
            medians = [seconds(statistics.median(measurement[side])) for side in ("theirs", "ours")]
            label = f"{library} {version}: {pair.name}"
            lines.append([label, f"{n_users:,}", *medians, number(measurement["ratio"])])
        print(markdown(headers, lines), flush=True)
        machine = describe()
        installed = {
            name: measurement
            for name, measurement in machine.pop("versions").items()
            if measurement != "missing"
        }
        facts = {
            "version": version,
            "versions": installed,
            "n_users": n_users,
            "calls": measurements,
        }
        record["libraries"][library] = facts
        if not options.quick:
            results.write_text(json.dumps({**record, "machine": machine}, indent=1) + "\n")
