"""Which way imports run: no package knows one that stands after it, no two modules each other."""

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
    "comparing",
    "auditing",
    "report",
    "tracking",
    "reporting",
    "evaluation",
    "evaluator",
    "leaderboard",
    "group_exposure",
    "comparison",
    "explanation",
    "spark",
    "checking",
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


def named_in_strings(module: str) -> set[str]:
    """Return the modules whose names stand in a module as texts, to be imported by their names."""
    path = MODULES[module]
    if path.name == "__init__.py":  # a table of names that are imported when they are asked for
        return set()
    return set(re.findall(r"""["'](recometer\.[\w.]+)["']""", text_of(path))) & MODULES.keys()


def reached_in(graph: dict[str, set[str]], module: str) -> set[str]:
    """Return all modules that a module imports, directly or through others."""
    found: set[str] = set()
    waiting = list(graph[module])
    while waiting:
        one = waiting.pop()
        if one in graph and one not in found:
            found.add(one)
            waiting += graph[one]
    return found


def circles_in(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the largest sets of modules of which each imports all others, directly or not."""
    reached = {module: reached_in(graph, module) for module in graph}
    return {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }


def circles() -> list[list[str]]:
    """Return the circles, counting imports in functions and for types, and names in texts."""
    graph = {
        # The package itself imports its modules when they are asked for.
        module: (imports(module) | named_in_strings(module)) - {module, "recometer"}
        for module in MODULES
    }
    return sorted(map(sorted, circles_in(graph)), key=lambda one: (-len(one), one))


def test_no_modules_know_each_other() -> None:
    texts = [" ".join(name.removeprefix("recometer.") for name in circle) for circle in circles()]
    assert texts == [], (
        "Modules import each other, maybe in functions, for types, or by names in texts. Hint: "
        "move what both need into a module of its own."
    )


def test_only_the_kernel_imports_the_native_module() -> None:
    importers = {
        module
        for module, path in MODULES.items()
        if re.search(r"^\s*(from|import) .*\b_native\b", text_of(path), re.MULTILINE)
    }
    assert importers == {"recometer._kernel"}
