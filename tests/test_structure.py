"""The tree can be read: few modules at the top, short files and functions, nothing borrowed."""

from __future__ import annotations

import ast
import pathlib

from modules import FILES, statements_of, text_of, tree_of

MOST_AT_THE_TOP = 17
LONGEST_FILE = 500
LONGEST_FUNCTION = 60  # its docstring apart

# Functions that may be longer, and why.
LONGER = {
    "_kernel/reference.py:rank_lists": "it takes what its native twin takes: 22 arguments",
    "compat/recometrics.py:calc_reco_metrics": "it takes what recometrics' function takes",
}


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has, its docstring apart."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def long_functions() -> dict[str, int]:
    """Return the functions that are longer than they should be."""
    found = {}
    for name, path in FILES.items():
        for node in statements_of(path):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if function and length(node) > LONGEST_FUNCTION:
                found[f"{name}:{node.name}"] = length(node)
    return found


def private_imports(name: str) -> list[str]:
    """Return what a module imports that is private to another package."""
    here = ["recometer", *pathlib.PurePosixPath(name).parts[:-1]]
    found = []
    for node in statements_of(FILES[name]):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("recometer"):
            continue
        for alias in node.names:
            parts = [*str(node.module).split("."), alias.name]
            for depth, part in enumerate(parts):
                private = part.startswith("_") and not part.startswith("__") and part != "_kernel"
                if private and here[:depth] != parts[:depth]:
                    found.append(".".join(parts))
    return found


def test_few_modules_stand_at_the_top() -> None:
    assert len([name for name in FILES if "/" not in name]) <= MOST_AT_THE_TOP


def test_files_are_short() -> None:
    lines = {name: len(text_of(path).splitlines()) for name, path in FILES.items()}
    assert {name: n for name, n in lines.items() if n > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    assert set(long_functions()) == set(LONGER)
    assert all(LONGER.values()), "say why each is longer"


def test_nothing_private_is_imported_from_another_package() -> None:
    borrowed = {name: private_imports(name) for name in FILES}
    assert {name: found for name, found in borrowed.items() if found} == {}


def test_every_folder_and_file_says_what_it_is_for() -> None:
    silent = [name for name, path in FILES.items() if not ast.get_docstring(tree_of(path))]
    assert silent == []
