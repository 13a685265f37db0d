"""Tests that packages import only packages that ORDER lists before them, without cycles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from modules import MODULES, statements_of, text_of

# A module may import only modules from its own entry and from earlier entries.
ORDER = (
    "arrays",
    "remembered",
    "errors",
    "ragged",
    "version",
    "protocol",
    "draws",
    "ranks",
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
    "logs",
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
    "",
    "cli",
    "__main__",
    "check",
)
# Pairs of packages that must not import each other.
APART = (("sources", "metrics"), ("sources", "ties"), ("sources", "split"))


def entry(module: str) -> str:
    """Return the entry of ORDER that contains a module."""
    name = module.removeprefix("recometer").removeprefix(".")
    fitting = [
        prefix for prefix in ORDER if name == prefix or (prefix and name.startswith(prefix + "."))
    ]
    assert fitting, f"{module} has no place in ORDER"
    return max(fitting, key=len)


def imports(module: str) -> set[str]:
    """Return the recometer modules that a module imports anywhere in its code."""
    return imports_of(statements_of(MODULES[module]), module)


def imports_that_run(module: str) -> set[str]:
    """Return the recometer modules that a module imports other than for type checking."""
    nodes = statements_of(MODULES[module])
    for_types = {
        part
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ast.walk(node)
    }
    return imports_of((node for node in nodes if node not in for_types), module)


def imports_of(nodes: Iterable[ast.AST], module: str) -> set[str]:
    """Return the recometer modules that these syntax nodes of a module import."""
    imported = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            imported |= {name if name in MODULES else str(node.module) for name in names}
    return {name for name in imported if name.split(".")[0] == "recometer"}


def test_imports_follow_the_order() -> None:
    wrong = []
    for module in sorted(MODULES):
        own_entry = entry(module)
        for imported in sorted(imports(module)):
            other_entry = entry(imported)
            before = own_entry == other_entry or ORDER.index(other_entry) < ORDER.index(own_entry)
            if not before or (own_entry, other_entry) in APART:
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def modules_in_strings(module: str) -> set[str]:
    """Return the modules that a module names in strings, which it may import by name."""
    path = MODULES[module]
    if path.name == "__init__.py":  # strings in __init__.py name lazy imports
        return set()
    return set(re.findall(r"""["'](recometer\.[\w.]+)["']""", text_of(path))) & MODULES.keys()


def reached_in(graph: dict[str, set[str]], module: str) -> set[str]:
    """Return all modules that a module imports, directly or indirectly."""
    reached: set[str] = set()
    waiting = list(graph[module])
    while waiting:
        next_module = waiting.pop()
        if next_module in graph and next_module not in reached:
            reached.add(next_module)
            waiting += graph[next_module]
    return reached


def cycles_in(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return all maximal sets of modules that reach each other through imports."""
    reached = {module: reached_in(graph, module) for module in graph}
    return {
        frozenset(
            other_module for other_module in reached[module] if module in reached[other_module]
        )
        for module in graph
        if module in reached[module]
    }


def import_cycles() -> list[list[str]]:
    """Return the import cycles, including imports in functions, for type checking and by name."""
    graph = {
        # Leave out the package itself, which imports its modules lazily.
        module: (imports(module) | modules_in_strings(module)) - {module, "recometer"}
        for module in MODULES
    }
    return sorted(map(sorted, cycles_in(graph)), key=lambda cycle: (-len(cycle), cycle))


def test_modules_do_not_import_each_other_in_cycles() -> None:
    texts = [
        " ".join(name.removeprefix("recometer.") for name in cycle) for cycle in import_cycles()
    ]
    assert texts == [], (
        "Modules import each other, maybe inside functions, for types, or by names in strings. "
        "Hint: move the code that both need into a separate module."
    )


def test_only_the_kernel_imports_the_native_module() -> None:
    importers = {
        module
        for module, path in MODULES.items()
        if re.search(r"^\s*(from|import) .*\b_native\b", text_of(path), re.MULTILINE)
    }
    assert importers == {"recometer._kernel"}
