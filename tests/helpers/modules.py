"""Read and parse the source code of the package's modules, each module only once."""

from __future__ import annotations

import ast
import functools
import gc
import pathlib

import recometer

PACKAGE = pathlib.Path(recometer.__file__).parent
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {
    ".".join(("recometer", *pathlib.PurePath(name).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for name, path in FILES.items()
}


@functools.cache
def text_of(path: pathlib.Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: pathlib.Path) -> ast.Module:
    """Return the syntax tree of a file."""
    collects = gc.isenabled()
    gc.disable()  # garbage collection would slow down parsing, which creates no garbage
    try:
        return ast.parse(text_of(path))
    finally:
        if collects:
            gc.enable()


@functools.cache
def nodes_of(path: pathlib.Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree, like `ast.walk` but twice as fast."""
    nodes: list[ast.AST] = [tree_of(path)]
    for node in nodes:
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [child for child in value if isinstance(child, ast.AST)]
    return tuple(nodes)


@functools.cache
def statements_of(path: pathlib.Path) -> tuple[ast.stmt, ...]:
    """Return all statements of a file; only a tenth of its nodes are statements."""
    statements: list[ast.AST] = [tree_of(path)]
    for node in statements:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements += getattr(node, name, ())
    return tuple(node for node in statements if isinstance(node, ast.stmt))
