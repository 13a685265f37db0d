"""Run tests in a process whose import hook replaces a recometer module with a mutant."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
# A package on PYTHONPATH takes precedence over the installed package.
_found = importlib.util.find_spec("recometer")
assert _found is not None, "recometer is not installed"
assert _found.origin is not None
PACKAGE = Path(_found.origin).parent
WALL = 1200  # a mutant that takes this many seconds is hanging, even on a busy machine
NOTICED = "noticed by "
OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--no-header"),
    *("--hypothesis-profile", "mutant"),
)


def run(path: str, source: str, tests: Sequence[str], cpu: int) -> tuple[str, str]:
    """Run tests on a mutant of the module at `path` in the package; `source` is the mutant's code.

    Return the outcome ("killed", "survived", "endless", or "unloaded" if no test imports the
    module) and the test that failed. Without a path, the tests run without a mutant.
    """
    with tempfile.TemporaryDirectory() as folder:
        mutant = Path(folder) / "mutant.py"
        mutant.write_text(source, encoding="utf-8")
        command = [sys.executable, __file__, path, str(mutant), str(cpu), *tests]
        # In a new process group, the processes that tests start can be killed, too.
        with subprocess.Popen(
            command,
            cwd=TESTS.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=WALL)
            except subprocess.TimeoutExpired:
                return "endless", ""
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == -signal.SIGXCPU:
        return "endless", ""
    noticed = [line for line in printed.splitlines() if line.startswith(NOTICED)]
    test = noticed[0].removeprefix(NOTICED) if noticed else ""
    verdict = {0: "survived", UNLOADED: "unloaded", NO_TESTS: "no tests"}
    return verdict.get(process.returncode, "killed"), test


UNLOADED, NO_TESTS = 10, 11


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import hook that loads the code of one module from a string."""

    def __init__(self, path: str, source: str) -> None:
        self.file, self.source = PACKAGE / path, source
        parts = Path(path).with_suffix("").parts
        self.name = ".".join(("recometer", *parts)).removesuffix(".__init__")
        self.loaded = False

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the mutated module, or None for any other module."""
        if fullname != self.name:
            return None
        inside = [str(self.file.parent)] if self.file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.file, loader=self, submodule_search_locations=inside
        )

    def exec_module(self, module: ModuleType) -> None:
        """Execute the mutant's code instead of the module's."""
        self.loaded = True
        exec(compile(self.source, str(self.file), "exec"), vars(module))


class Notice:
    """A pytest plugin that prints the test that failed, or the file that cannot be collected."""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Print the name of a test that fails."""
        if report.failed:
            print(f"\n{NOTICED}{report.nodeid}", flush=True)

    pytest_collectreport = pytest_runtest_logreport


def main(path: str, mutant: str, cpu: int, tests: Sequence[str]) -> int:
    """Run the tests in the child process."""
    import resource  # Windows does not have this module

    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 10))
    finder = Mutated(path, Path(mutant).read_text("utf-8")) if path else None
    if finder is not None:
        sys.meta_path.insert(0, finder)
    files = [test if test.startswith("tests/") else f"tests/{test}" for test in tests]
    code = int(pytest.main([*OPTIONS, *files], plugins=[Notice()]))
    if code == pytest.ExitCode.OK:
        return UNLOADED if finder is not None and not finder.loaded else 0
    return (
        NO_TESTS if code in (pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.USAGE_ERROR) else 1
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
