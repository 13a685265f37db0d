"""Mutation testing: make small mistakes in the library, and check whether its tests notice.

    python tests/mutation/run.py --area ties --share 0.1 --seed 0

This command draws mutants of the modules in each area of `nearest.toml`, runs the nearest tests of
each mutant in a separate process, and prints the survivors. It changes no files. README.md says how
many mutants may survive.
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
WIDER = "wider"  # the key of the wider tests in nearest.toml; all other keys are paths
NEEDED = 0.78  # the share of mutants that tests must kill; README.md gives the reason


@dataclasses.dataclass(frozen=True)
class SelectedMutant:
    """A randomly drawn mutant, and its tests."""

    area: str
    path: str  # the path of the module within the package
    tests: tuple[str, ...]  # the nearest tests
    wider: tuple[str, ...]  # the tests to run if the nearest tests pass
    mutant: mutants.Mutant
    number: int  # distinguishes mutants of a module that look the same when printed

    def __str__(self) -> str:
        return f"{self.path}:{self.mutant.line}: {self.mutant}"


def main() -> int:
    """Run the command line; return 1 if too many mutants survive."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--area", action="append", help="areas of nearest.toml (default: all)")
    parser.add_argument("--nearest", type=Path, default=HERE / "nearest.toml")
    parser.add_argument("--module", action="append", help="paths of modules (default: all)")
    parser.add_argument(
        "--share", type=float, default=0.1, help="the share of each area's mutants to draw"
    )
    parser.add_argument(
        "--least", type=int, default=20, help="the minimum number of mutants to draw per area"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", type=int, default=300, help="seconds of a mutant's process")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to end")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at once")
    parser.add_argument("--needed", type=float, default=NEEDED, help="share that has to be killed")
    options = parser.parse_args()
    nearest = tomllib.loads(options.nearest.read_text("utf-8"))
    unknown = set(options.area or ()) - nearest.keys()
    if unknown:
        parser.error(f"There is no area {min(unknown)}: {', '.join(nearest)}.")
    areas = {area: nearest[area] for area in options.area or nearest}
    selected = draw(areas, options.module, options.share, options.least, options.seed)
    deadline = time.monotonic() + 60 * options.minutes
    killed: dict[str, list[bool]] = {}
    noticed: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        futures = {
            pool.submit(_verdict, mutant, options.cpu, deadline): mutant for mutant in selected
        }
        for future in concurrent.futures.as_completed(futures):
            mutant, (verdict, test) = futures[future], future.result()
            if verdict == "late":
                continue
            if verdict == "no tests":
                pool.shutdown(wait=False, cancel_futures=True)
                raise SystemExit(f"There are no such tests: {', '.join(mutant.tests)}.")
            noticed.add(test)
            killed.setdefault(mutant.area, []).append(verdict in ("killed", "endless"))
            print(f"{verdict:9} {mutant}" + (f"  [{test}]" if test else ""), flush=True)
    # If a test also fails on the original module, its failure says nothing about the mutant.
    if noticed - {""}:
        verdict, test = processes.run("", "", sorted(noticed - {""}), options.cpu)
        if verdict != "survived":
            raise SystemExit(f"{test} also fails without a mistake.")
    return report(killed, options.needed)


def report(killed: dict[str, list[bool]], needed: float) -> int:
    """Print the share of killed mutants per area; return 1 if the total share is too small."""
    all_outcomes = [outcome for outcomes in killed.values() for outcome in outcomes]
    for area, outcomes in (*sorted(killed.items()), ("all", all_outcomes)):
        print(
            f"{area}: {sum(outcomes)} of {len(outcomes)} killed"
            f" ({sum(outcomes) / max(len(outcomes), 1):.1%})"
        )
    return 0 if sum(all_outcomes) >= needed * len(all_outcomes) else 1


def draw(
    areas: Mapping[str, Mapping[str, Sequence[str]]],
    modules: Sequence[str] | None,
    share: float,
    least: int,
    seed: int,
) -> list[SelectedMutant]:
    """Draw mutants of each area in a random order.

    Hashes of the mutants decide which mutants are drawn, so changes elsewhere in the code do
    not affect the draw.
    """
    selected = []
    for area, nearest in areas.items():
        mutants = [
            mutant
            for path in _modules(nearest)
            if modules is None or path in modules
            for mutant in _of_module(area, path, nearest)
        ]
        n = min(len(mutants), max(least, math.ceil(share * len(mutants))))
        selected += sorted(mutants, key=lambda mutant: _place(mutant, seed))[:n]
    return selected


def _place(mutant: SelectedMutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.path} {mutant.number} {mutant.mutant}".encode()).digest()


def _modules(tests: Iterable[str]) -> list[str]:
    package, tests = processes.PACKAGE, set(tests) - {WIDER}
    paths = [path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))]
    return [path for path in paths if any(path.startswith(start) for start in tests)]


def _of_module(area: str, path: str, tests: Mapping[str, Sequence[str]]) -> list[SelectedMutant]:
    nearest = tuple(tests[max((start for start in tests if path.startswith(start)), key=len)])
    wider = tuple(test for test in tests.get(WIDER, ()) if test not in nearest)
    if not nearest:
        return []
    occurrences: collections.Counter[str] = collections.Counter()
    mutants_of_module = []
    for mutant in mutants.mutants_of((processes.PACKAGE / path).read_text("utf-8")):
        mutants_of_module.append(
            SelectedMutant(area, path, nearest, wider, mutant, occurrences[str(mutant)])
        )
        occurrences[str(mutant)] += 1
    return mutants_of_module


def _verdict(mutant: SelectedMutant, cpu: int, deadline: float) -> tuple[str, str]:
    """Return the outcome for a mutant, and the test that failed."""
    if time.monotonic() > deadline:
        return "late", ""
    outcome = processes.run(mutant.path, mutant.mutant.source, mutant.tests, cpu)
    if mutant.wider and outcome[0] in ("survived", "unloaded"):
        wider = processes.run(mutant.path, mutant.mutant.source, mutant.wider, cpu)
        outcome = outcome if wider[0] == "unloaded" else wider
    return outcome


if __name__ == "__main__":
    sys.exit(main())
