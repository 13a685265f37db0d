"""Tests of the names that recometer exports, and of the modules that importing it loads."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys

import pytest
from modules import MODULES, statements_of

import recometer

HEAVY = ("scipy", "polars", "pandas", "pyarrow", "torch", "rich", "typer")
# Modules of Python's standard library that take milliseconds to load and are rarely needed.
RARELY_NEEDED = ("concurrent.futures", "difflib", "json", "logging", "secrets", "tomllib", "uuid")
UNNEEDED = (*RARELY_NEEDED, "csv", "dataclasses", "hashlib", "inspect", "pathlib")

# Modules that run as scripts and are not meant to be imported.
RUN = ("recometer.__main__", "recometer.check")


def loaded_by(code: str) -> set[str]:
    """Return the modules that a piece of code loads after Python has started."""
    code = f"before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(output.split())


def test_import_loads_no_slow_modules() -> None:
    loaded = loaded_by("import recometer")
    ours = {name for name in loaded if name.split(".")[0] == "recometer"}
    assert ours == {"recometer", "recometer.errors", "recometer.version"}
    assert loaded & {*HEAVY, *UNNEEDED, "numpy"} == set()


def test_evaluation_loads_no_slow_modules() -> None:
    names = "recometer.evaluate, recometer.Factors, recometer.Interactions"
    loaded = loaded_by(f"import numpy, recometer; before = set(sys.modules); {names}")
    assert "recometer.evaluation" in loaded
    assert loaded & {*HEAVY, *RARELY_NEEDED} == set()


def test_exported_names_exist() -> None:
    for module in sorted(MODULES.keys() - set(RUN)):
        try:
            loaded = importlib.import_module(module)
        except recometer.MissingExtraError:  # it needs a library that is not installed
            assert module.startswith("recometer.integrations.")
            continue
        names = getattr(loaded, "__all__", [])
        assert len(set(names)) == len(names), module
        missing = [name for name in names if not hasattr(loaded, name)]
        assert missing == [], module


def test_public_names_match_the_imports() -> None:
    froms = [
        node for node in statements_of(MODULES["recometer"]) if isinstance(node, ast.ImportFrom)
    ]
    origins = {alias.name: node.module for node in froms for alias in node.names}
    public = {name for name, module in origins.items() if str(module).startswith("recometer")}
    assert recometer.__all__ == sorted(public)
    for name in public - {"split"}:  # rm.split is a package, not a function or class
        imported = getattr(importlib.import_module(str(origins[name])), name)
        assert getattr(recometer, name) is imported
    assert set(importlib.import_module("recometer.errors").__all__) <= public


def test_submodules_need_no_separate_import() -> None:
    code = "import recometer as rm; print(rm.baselines.__name__, rm.split.__name__)"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output == "recometer.baselines recometer.split\n"
    assert {"baselines", "split", "evaluate"} <= set(dir(recometer))
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        recometer.evaluat  # noqa: B018


def test_importing_recometer_check_does_not_replace_the_function() -> None:
    code = """
import importlib, pkgutil, sys
import recometer as rm
function = rm.check
for name in ("recometer.check", "recometer.check"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(error)
print(len(list(pkgutil.walk_packages(rm.__path__, "recometer."))) > 200)
from recometer import check
from recometer import *
print(function is rm.check is check, "recometer.check" in sys.modules)
"""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *refused, found_all_modules, last = output.splitlines()
    assert len(set(refused)) == 1
    assert refused[0].endswith("Hint: python -m recometer.check, or from recometer import check.")
    assert (found_all_modules, last) == ("True", "True False")


def test_importing_testing_reports_missing_hypothesis() -> None:
    code = """
sys.modules["hypothesis"] = None
try:
    import recometer.testing
except ImportError as error:
    print(type(error).__name__, error)
"""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.startswith("MissingExtraError recometer.testing needs the package hypothesis")
    assert output.endswith('Hint: pip install "recometer[test]".\n')


def test_version_matches_the_installed_package() -> None:
    try:
        installed = importlib.metadata.version("recometer")
    except importlib.metadata.PackageNotFoundError:
        return  # recometer runs from its source folder
    assert recometer.__version__ == installed
