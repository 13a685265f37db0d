"""Write stub files, which tell editors about the functions that drop-ins create from tables."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import recometer.compat

HEAD = '"""Written by tests/helpers/dropin_stubs.py from the module of the same name."""\n\n'
FOLDER = Path(recometer.compat.__path__[0])


def names() -> list[str]:
    """Return the names of the drop-ins that create their functions from tables."""
    paths = sorted(FOLDER.glob("[!_]*.py"))
    return [path.stem for path in paths if "@row(" in path.read_text(encoding="utf-8")]


def stub_of(name: str) -> str:
    """Return a drop-in's stub, with the signatures and docstrings of its public functions."""
    module = importlib.import_module(f"recometer.compat.{name}")
    tree = ast.parse(inspect.getsource(module))
    functions = [_shown(tree, public, getattr(module, public)) for public in module.__all__]
    used = {node.id for part in functions for node in ast.walk(part) if isinstance(node, ast.Name)}
    aliases = [
        node
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id in used
    ]
    used |= {node.id for part in aliases for node in ast.walk(part) if isinstance(node, ast.Name)}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    for node in imports:
        node.names = [alias for alias in node.names if alias.name in used]
    needed = [ast.unparse(node) for node in imports if node.names]
    return HEAD + "\n".join([*needed, "", *map(ast.unparse, [*aliases, *functions])]) + "\n"


def _shown(tree: ast.Module, name: str, function: Any) -> ast.FunctionDef:
    """Return the definition of a public function, with its own name, defaults and docstring."""
    line = function.__code__.co_firstlineno
    definition = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and line in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
    )
    # Several functions share this definition, so modify a copy.
    definition = ast.parse(textwrap.dedent(ast.unparse(definition))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.name, definition.decorator_list = name, []
    definition.args.defaults = [ast.Constant(default) for default in function.__defaults__ or ()]
    doc = textwrap.indent(inspect.cleandoc(function.__doc__), "    ").lstrip()
    definition.body = [ast.Expr(ast.Constant(doc + "\n    " * ("\n" in doc)))]
    return definition


if __name__ == "__main__":
    for drop_in in names():
        path = FOLDER / f"{drop_in}.pyi"
        path.write_text(stub_of(drop_in), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", path], check=True)
