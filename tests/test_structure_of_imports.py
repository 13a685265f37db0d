"""Which way imports run: no package knows one that stands after it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from modules import MODULES, statements_of, text_of

# A module imports only what stands before it, or lies in the same entry.
ORDER = (
    "arrays",
    "remembered",
    "errors",
    "removed",
    "ragged",
    "version",
    "protocol",
    "ranks",
    "draws",
    "_kernel",
    "tasks",
    "data",
    "rendering",
    "split",
    "stats",
    "ties",
    "metrics",
    "sources",
    "measuring",
    "results",
    "evaluating",
    "evaluation",
    "group_exposure",
    "comparing",
    "comparison",
    "auditing",
    "spark",
    "checking",
    "report",
    "datasets",
    "baselines",
    "compat",
    "integrations",
    "testing",
    "cli",
    "__main__",
    "check",
    "",
)
# Neighbours that must not know each other, whatever the order.
APART = (("sources", "metrics"), ("sources", "ties"), ("sources", "split"))


def entry(module: str) -> str:
    """Return the entry of ORDER that a module belongs to."""
    name = module.removeprefix("recometer").removeprefix(".")
    fitting = [one for one in ORDER if name == one or (one and name.startswith(one + "."))]
    assert fitting, f"{module} has no place in ORDER"
    return max(fitting, key=len)


def imports(module: str) -> set[str]:
    """Return the modules of recometer that a module imports, anywhere in it."""
    return imports_of(statements_of(MODULES[module]), module)


def imports_that_run(module: str) -> set[str]:
    """Return the same without those that only types need."""
    nodes = statements_of(MODULES[module])
    for_types = {
        part
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ast.walk(node)
    }
    return imports_of((node for node in nodes if node not in for_types), module)


def imports_of(nodes: Iterable[ast.AST], module: str) -> set[str]:
    """Return the modules of recometer that some nodes of a module import."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else str(node.module) for name in names}
    return {name for name in found if name.split(".")[0] == "recometer"}


def test_imports_run_one_way() -> None:
    wrong = []
    for module in sorted(MODULES):
        here = entry(module)
        for imported in sorted(imports(module)):
            there = entry(imported)
            before = here == there or ORDER.index(there) < ORDER.index(here)
            if not before or (here, there) in APART:
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_no_module_imports_one_that_imports_it() -> None:
    """These imports are not even allowed in a function."""
    imported = {module: imports_that_run(module) - {module} for module in MODULES}

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        waiting = list(imported[module])
        while waiting:
            one = waiting.pop()
            if one in MODULES and one not in found:
                found.add(one)
                waiting += imported[one]
        return found

    assert [module for module in MODULES if module in reached(module)] == []


def test_only_the_kernel_imports_the_native_module() -> None:
    importers = {
        module
        for module, path in MODULES.items()
        if re.search(r"^\s*(from|import) .*\b_native\b", text_of(path), re.MULTILINE)
    }
    assert importers == {"recometer._kernel"}
