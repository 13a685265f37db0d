"""Mutation testing: make small mistakes in the library, and see whether its tests notice.

    python tests/mutation/run.py --area ties --share 0.1 --seed 0

Draws mutants of the modules of each area (`nearest.toml`), runs the tests nearest to each in a
process of its own, which is forked and changes no file, and prints those that survive.
`survivors.toml` lists survivors that no test can kill, each with the reason; they are not drawn.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import mutants
import tomllib

HERE = Path(__file__).parent
TESTS, PACKAGE = HERE.parent, HERE.parents[1] / "src" / "recometer"
# Loaded before a process is forked for each mutant: the tests need them, and they take long.
PRELOADED = ("hypothesis", "numpy", "pandas", "polars", "pytest", "scipy.stats", "scipy.sparse")
MEMORY = 16 * 2**30  # that a mutant may take, in bytes
WALL = 1200  # seconds after which a mutant hangs, however busy the machine is
PASSED, FAILED = 0, 1  # exit codes of pytest; anything else is a failure, too


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A mutant of a module."""

    area: str
    path: str  # within the package
    tests: tuple[str, ...]
    mutant: mutants.Mutant

    def __str__(self) -> str:
        return f"{self.path}:{self.mutant.line}: {self.mutant}"


def main() -> int:
    """Run the command line; 1 where too many survive."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--area", action="append", help="areas of nearest.toml; by default all")
    parser.add_argument("--module", action="append", help="paths of modules; by default all")
    parser.add_argument("--share", type=float, default=0.1, help="of the mutants of each area")
    parser.add_argument("--least", type=int, default=20, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", type=int, default=300, help="seconds of a mutant's process")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop drawing")
    parser.add_argument("--needed", type=float, default=0.9, help="share that has to be killed")
    parser.add_argument("--no-check", dest="check", action="store_false", help="see `check`")
    given = parser.parse_args()
    drawn = draw(given.area, given.module, given.share, given.least, given.seed)
    for name in PRELOADED:
        importlib.import_module(name)
    if given.check:
        check(drawn, given.cpu)
    begin, killed = time.monotonic(), dict[str, list[bool]]()
    for one in drawn:
        if time.monotonic() - begin > 60 * given.minutes:
            print(f"Stopped after {given.minutes:g} minutes.")
            break
        began = time.monotonic()
        verdict = run(one, given.cpu)
        killed.setdefault(one.area, []).append(verdict.what != "survived")
        by = f"  [{verdict.test}]" if verdict.test else ""
        print(f"{verdict!s:9} {time.monotonic() - began:6.1f} s  {one}{by}", flush=True)
    return report(killed, given.needed)


def check(drawn: Iterable[Drawn], cpu: int) -> None:
    """Refuse to begin where tests fail without a mistake: they would kill every mutant."""
    for one in {one.tests: one for one in drawn}.values():
        source = (PACKAGE / one.path).read_text("utf-8")
        unchanged = dataclasses.replace(one.mutant, source=source)
        verdict = run(dataclasses.replace(one, mutant=unchanged), cpu)
        if verdict.what != "survived":
            raise SystemExit(f"Without a mistake {one.path} is {verdict}: {', '.join(one.tests)}.")


def report(killed: dict[str, list[bool]], needed: float) -> int:
    """Print the share of killed mutants of each area."""
    enough = True
    for area, each in sorted(killed.items()):
        print(f"{area}: {sum(each)} of {len(each)} killed ({sum(each) / len(each):.1%})")
        enough &= sum(each) >= needed * len(each)
    return PASSED if enough else FAILED


def draw(
    areas: Sequence[str] | None,
    modules: Sequence[str] | None,
    share: float,
    least: int,
    seed: int,
) -> list[Drawn]:
    """Draw mutants of each area, the areas taking turns."""
    nearest = tomllib.loads((HERE / "nearest.toml").read_text("utf-8"))
    unknown = set(areas or ()) - nearest.keys()
    if unknown:
        raise SystemExit(f"There is no area {min(unknown)}: {', '.join(nearest)}.")
    by_area = []
    for area in areas or nearest:
        every = [
            one
            for path in _modules(nearest[area])
            if modules is None or path in modules
            for one in _of_module(area, path, nearest[area])
        ]
        n = min(len(every), max(least, math.ceil(share * len(every))))
        by_area.append(random.Random(f"{seed} {area}").sample(every, n))
    longest = max(map(len, by_area))
    return [each[turn] for turn in range(longest) for each in by_area if turn < len(each)]


def _modules(tests: Iterable[str]) -> list[str]:
    every = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]
    return [path for path in every if any(path.startswith(start) for start in tests)]


def _of_module(area: str, path: str, tests: dict[str, list[str]]) -> list[Drawn]:
    explained = tomllib.loads((HERE / "survivors.toml").read_text("utf-8"))
    known = {one["mutant"] for one in explained.get(path, [])}
    nearest = max((start for start in tests if path.startswith(start)), key=len)
    made = mutants.mutants_of((PACKAGE / path).read_text("utf-8"))
    return [Drawn(area, path, tuple(tests[nearest]), one) for one in made if str(one) not in known]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed (by a test, or by itself), survived, or endless."""

    what: str
    test: str = ""

    def __str__(self) -> str:
        return self.what


def run(one: Drawn, cpu: int) -> Verdict:
    """Run the nearest tests on a mutant in a process of its own."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        code = FAILED
        try:
            code = _in_child(one, cpu, writing)
        finally:
            os._exit(code)
    os.close(writing)
    status = _wait(process)
    with os.fdopen(reading) as pipe:
        test = pipe.readline().strip()
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Verdict("endless")
    passed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == PASSED
    return Verdict("survived") if passed else Verdict("killed", test)


def _wait(process: int) -> int | None:
    """Return how a process has ended; None: it had to be ended."""
    deadline = time.monotonic() + WALL
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


class FirstFailure:
    """A plugin of pytest that says which test fails first."""

    def __init__(self, writing: int) -> None:
        self.writing = writing

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write the name of a test that failed."""
        if report.failed:
            os.write(self.writing, f"{report.nodeid}\n".encode())


def _in_child(one: Drawn, cpu: int, writing: int) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 10))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    sys.meta_path.insert(0, Finder(one.path, one.mutant.source))
    os.chdir(TESTS.parent)
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--no-header"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was loaded before
    files = [f"tests/{path}" for path in one.tests]
    return int(pytest.main([*options, *files], plugins=[FirstFailure(writing)]))


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module with another source than its file has."""

    def __init__(self, path: str, source: str) -> None:
        parts = Path(path).with_suffix("").parts
        self.name = ".".join(("recometer", *(part for part in parts if part != "__init__")))
        self.path, self.source = PACKAGE / path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the mutant alone."""
        if fullname != self.name:
            return None
        loader = Loader(self.name, str(self.path))
        loader.source = self.source
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from another source than its file has."""

    source: str

    def get_code(self, fullname: str) -> CodeType:
        """Compile it, past the cache of compiled modules."""
        return compile(self.source, self.path, "exec")


if __name__ == "__main__":
    sys.exit(main())
