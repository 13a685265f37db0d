"""Mutation testing: make small mistakes in the library, and check whether its tests notice.

    python tests/mutation/run.py --area ties --share 0.1 --seed 0

Draws mutants from the modules of each area in `nearest.toml`, runs the nearest tests of each mutant
in a separate process, and prints the survivors. Files are not changed. README.md says how many
mutants may survive.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import mutants
import processes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
WIDER = "wider"  # a key of nearest.toml; the other keys are paths
NEEDED = 0.78  # README.md says why


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A mutant that was drawn, and the tests for it."""

    area: str
    path: str  # within the package
    tests: tuple[str, ...]  # the nearest tests
    wider: tuple[str, ...]  # the tests to run if those pass
    mutant: mutants.Mutant
    number: int  # counts equal mutants of a module

    def __str__(self) -> str:
        return f"{self.path}:{self.mutant.line}: {self.mutant}"


def main() -> int:
    """Run the command line; return 1 if too many mutants survive."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--area", action="append", help="areas of nearest.toml; by default all")
    parser.add_argument("--nearest", type=Path, default=HERE / "nearest.toml")
    parser.add_argument("--module", action="append", help="paths of modules; by default all")
    parser.add_argument("--share", type=float, default=0.1, help="of the mutants of each area")
    parser.add_argument("--least", type=int, default=20, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", type=int, default=300, help="seconds of a mutant's process")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to end")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at once")
    parser.add_argument("--needed", type=float, default=NEEDED, help="share that has to be killed")
    given = parser.parse_args()
    nearest = tomllib.loads(given.nearest.read_text("utf-8"))
    unknown = set(given.area or ()) - nearest.keys()
    if unknown:
        parser.error(f"There is no area {min(unknown)}: {', '.join(nearest)}.")
    areas = {area: nearest[area] for area in given.area or nearest}
    drawn = draw(areas, given.module, given.share, given.least, given.seed)
    deadline = time.monotonic() + 60 * given.minutes
    killed: dict[str, list[bool]] = {}
    noticed: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(given.processes) as pool:
        futures = {pool.submit(_verdict, one, given.cpu, deadline): one for one in drawn}
        for future in concurrent.futures.as_completed(futures):
            one, (verdict, test) = futures[future], future.result()
            if verdict == "late":
                continue
            if verdict == "no tests":
                pool.shutdown(wait=False, cancel_futures=True)
                raise SystemExit(f"There are no such tests: {', '.join(one.tests)}.")
            noticed.add(test)
            killed.setdefault(one.area, []).append(verdict in ("killed", "endless"))
            print(f"{verdict:9} {one}" + (f"  [{test}]" if test else ""), flush=True)
    # A test that always fails proves nothing.
    if noticed - {""}:
        verdict, test = processes.run("", "", sorted(noticed - {""}), given.cpu)
        if verdict != "survived":
            raise SystemExit(f"Without a mistake {test} fails, too.")
    return report(killed, given.needed)


def report(killed: dict[str, list[bool]], needed: float) -> int:
    """Print the share of killed mutants per area, and compare the total with the requirement."""
    every = [one for each in killed.values() for one in each]
    for area, each in (*sorted(killed.items()), ("all", every)):
        print(f"{area}: {sum(each)} of {len(each)} killed ({sum(each) / max(len(each), 1):.1%})")
    return 0 if sum(every) >= needed * len(every) else 1


def draw(
    areas: Mapping[str, Mapping[str, Sequence[str]]],
    modules: Sequence[str] | None,
    share: float,
    least: int,
    seed: int,
) -> list[Drawn]:
    """Draw mutants of each area in a random order.

    The draw depends on hashes of the mutants, so changes elsewhere in the code do not affect it.
    """
    found = []
    for area, nearest in areas.items():
        every = [
            one
            for path in _modules(nearest)
            if modules is None or path in modules
            for one in _of_module(area, path, nearest)
        ]
        n = min(len(every), max(least, math.ceil(share * len(every))))
        found += sorted(every, key=lambda one: _place(one, seed))[:n]
    return found


def _place(one: Drawn, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {one.path} {one.number} {one.mutant}".encode()).digest()


def _modules(tests: Iterable[str]) -> list[str]:
    package, tests = processes.PACKAGE, set(tests) - {WIDER}
    every = [path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))]
    return [path for path in every if any(path.startswith(start) for start in tests)]


def _of_module(area: str, path: str, tests: Mapping[str, Sequence[str]]) -> list[Drawn]:
    nearest = tuple(tests[max((start for start in tests if path.startswith(start)), key=len)])
    wider = tuple(one for one in tests.get(WIDER, ()) if one not in nearest)
    if not nearest:
        return []
    occurrences: collections.Counter[str] = collections.Counter()
    every = []
    for mutant in mutants.mutants_of((processes.PACKAGE / path).read_text("utf-8")):
        every.append(Drawn(area, path, nearest, wider, mutant, occurrences[str(mutant)]))
        occurrences[str(mutant)] += 1
    return every


def _verdict(one: Drawn, cpu: int, deadline: float) -> tuple[str, str]:
    """Return the outcome for a mutant, and the test that failed."""
    if time.monotonic() > deadline:
        return "late", ""
    found = processes.run(one.path, one.mutant.source, one.tests, cpu)
    if one.wider and found[0] in ("survived", "unloaded"):
        wider = processes.run(one.path, one.mutant.source, one.wider, cpu)
        found = found if wider[0] == "unloaded" else wider
    return found


if __name__ == "__main__":
    sys.exit(main())
