"""A process for each mutant, forked from one that has collected the tests already."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "recometer"
MEMORY = 16 * 2**30  # that a mutant may take beside what was loaded before, in bytes
WALL = 1200  # seconds after which a mutant hangs, however busy the machine is
PASSED, FAILED, UNCHANGED = 0, 1, 3

Code = dict[tuple[str, int], CodeType]  # by the name of the function, and its first line


def run_all(
    some: Sequence[tuple[str, str]], tests: Sequence[str], writing: int, cpu: int, deadline: float
) -> None:
    """Collect the tests, and run them on each mutant: its module's path and source.

    Writes a line of JSON for each to the file `writing`: its number, what became of it (killed,
    survived, endless, or unloaded, where the tests do not read the module) and the test that
    noticed. Each of these tests is run without a mistake, too: one that fails there ends it all,
    as number -1.
    """
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    os.chdir(TESTS.parent)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--no-header"]
    loop = Loop(some, writing, cpu, deadline)
    code = pytest.main([*options, *(f"tests/{path}" for path in tests)], plugins=[loop])
    if not loop.begun:
        loop.write(-1, "failed", f"the tests cannot be collected (exit code {int(code)})")


class Loop:
    """A plugin of pytest: instead of running the tests once it does so for each mutant."""

    def __init__(
        self, some: Sequence[tuple[str, str]], writing: int, cpu: int, deadline: float
    ) -> None:
        self.some, self.writing, self.cpu, self.deadline = some, writing, cpu, deadline
        self.begun = False
        self.failure = -1  # file that the name of a test that fails is written to

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork a process for each mutant."""
        self.begun = True
        by_name = {item.nodeid: item for item in session.items}
        passing = set()
        for number, (path, source) in enumerate(self.some):
            if time.monotonic() > self.deadline:
                break
            verdict, test = self._run(session.items, path, source)
            if test and test not in passing:
                alone, _ = self._run([by_name[test]], "", "")
                if alone != "survived":
                    self.write(-1, "failed", test)
                    break
                passing.add(test)
            self.write(number, verdict, test)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write down which test has failed."""
        if report.failed and self.failure >= 0:
            os.write(self.failure, f"{report.nodeid}\n".encode())

    def write(self, number: int, verdict: str, test: str) -> None:
        """Say what became of a mutant."""
        os.write(self.writing, f"{json.dumps([number, verdict, test])}\n".encode())

    def _run(self, items: Sequence[pytest.Item], path: str, source: str) -> tuple[str, str]:
        reading, self.failure = os.pipe()
        process = os.fork()
        if not process:
            code = UNCHANGED
            with contextlib.suppress(BaseException):
                code = self._in_child(items, path, source)
            os._exit(code)
        os.close(self.failure)
        status = _wait(process)
        with os.fdopen(reading) as pipe:
            test = pipe.readline().strip()
        if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
            return "endless", ""
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else FAILED
        return {PASSED: "survived", UNCHANGED: "unloaded"}.get(code, "killed"), test

    def _in_child(self, items: Sequence[pytest.Item], path: str, source: str) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu, self.cpu + 10))
        pages = Path("/proc/self/statm")
        if pages.exists():  # libraries reserve much more than they use
            most = int(pages.read_text().split()[0]) * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if path and not mutate(PACKAGE / path, source):
            return UNCHANGED
        for item, following in zip(items, (*items[1:], None), strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return FAILED
        return PASSED


def _wait(process: int) -> int | None:
    """Return how a process has ended; None: it had to be ended."""
    deadline = time.monotonic() + WALL
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def mutate(path: Path, source: str) -> bool:
    """Give the functions of a loaded module the code that they have in another source.

    Who has imported them has the same functions. What runs once when a module is loaded (its
    constants, defaults of parameters) runs again, in the module alone. Returns whether anything
    changed: not if the tests never load the module.
    """
    name_of_module = ".".join(("recometer", *path.relative_to(PACKAGE).with_suffix("").parts))
    # Many are loaded when they are first used, which is after this.
    module = importlib.import_module(name_of_module.removesuffix(".__init__"))
    gc.unfreeze()  # libraries may hide what they have loaded from `get_objects`
    compiled = compile(source, str(path), "exec")
    changed = dict(_functions(compiled))
    before = dict(_functions(compile(path.read_text("utf-8"), str(path), "exec")))
    if any(code != before[name] for name, code in changed.items()):
        found = False
        for function in _loaded_from(path):
            name = function.__code__.co_qualname, function.__code__.co_firstlineno
            if name in changed:
                function.__code__, found = changed[name], True
        return found
    old = dict(vars(module))
    exec(compiled, vars(module))
    # Functions and classes stay those that others have imported; constants are new.
    for key, value in old.items():
        if callable(value):
            new = vars(module)[key]
            if isinstance(value, FunctionType) and isinstance(new, FunctionType):
                value.__defaults__, value.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
            setattr(module, key, value)
        else:
            _replace(value, vars(module)[key], key)
    return True


def _replace(old: object, new: object, key: str) -> None:
    """Give the modules that have imported a constant its new value."""
    if old is new or key.startswith("__"):
        return
    for module in list(sys.modules.values()):
        named = getattr(module, "__name__", "").startswith("recometer")
        if named and vars(module).get(key) is old:
            setattr(module, key, new)


def _functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _functions(constant)


def _loaded_from(path: Path) -> list[FunctionType]:
    """Return the functions of a file: those that its module and its classes name, and others."""
    file = str(path)
    found = {id(one): one for one in gc.get_objects() if isinstance(one, FunctionType)}
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            for one in list(vars(module).values()):
                inside = list(vars(one).values()) if isinstance(one, type) else []
                for function in map(_plain, [one, *inside]):
                    found[id(function)] = function
    return [
        one
        for one in found.values()
        if isinstance(one, FunctionType) and one.__code__.co_filename == file
    ]


def _plain(one: Any) -> Any:
    """Return the function that a decorator of Python's own has wrapped."""
    for name in ("__wrapped__", "__func__", "fget", "func"):
        one = getattr(one, name, one) if not isinstance(one, type) else one
    return one
