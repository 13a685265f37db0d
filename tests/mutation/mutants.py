"""Create mutants of a module, each of which contains one small mistake."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)),
    *((ast.LShift, ast.RShift), ("minimum", "maximum"), ("any", "all"), ("min", "max")),
    *(("argmin", "argmax"), ("zeros", "ones"), ("left", "right")),
)
# The replacement for each operator, function or argument.
OTHER: dict[Any, Any] = {
    **dict(PAIRS),
    **{second: first for first, second in PAIRS},
    **dict.fromkeys((ast.FloorDiv, ast.Mod, ast.Pow), ast.Mult),
    ast.BitXor: ast.BitAnd,
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A module that contains one mistake.

    Attributes
    ----------
    line
        The line of the mistake.
    before, after
        The original and the mistaken expression or statement, each on one line.
    right
        The source code of the original module.
    span
        The byte range in the source code that the mistake replaces.
    wrong
        The replacement for these bytes.
    """

    line: int
    before: str
    after: str
    right: bytes
    span: slice
    wrong: str

    @property
    def source(self) -> str:
        """The source code of the whole module, including the mistake."""
        parts = (self.right[: self.span.start], self.wrong.encode(), self.right[self.span.stop :])
        return b"".join(parts).decode()

    def __str__(self) -> str:
        return f"{self.before} -> {self.after}"


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines.

    Some code is never changed: strings, types, docstrings, decorators (other tests check the
    declarations of metrics), example values for tests, raised exceptions, assertions (including
    `strict=True`), and `copy=False`, which only saves memory.
    """
    tree = ast.parse(source)
    original, starts = source.encode(), [0]
    for line in original.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    mutants = []
    conditions = {id(node.test) for node in ast.walk(tree) if isinstance(node, BRANCHES)}
    for node in _code(tree):
        for changed in _changes(node, conditions):
            before, after = ast.unparse(node), ast.unparse(changed)
            # Keep the number of lines, because some tests find functions by their first line.
            lines = "\n" * (_end(node.end_lineno) - node.lineno)
            replacement = f"({after}{lines})" if isinstance(node, ast.expr) else after + lines
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[_end(node.end_lineno) - 1] + _end(node.end_col_offset)
            mistake = _short(before), _short(after)
            mutants.append(Mutant(node.lineno, *mistake, original, slice(begin, end), replacement))
    return mutants


def _end(number: int | None) -> int:
    assert number is not None
    return number


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:97]}..."


Node = ast.expr | ast.stmt
BRANCHES = (ast.If, ast.IfExp, ast.While)


def _code(node: ast.AST) -> Iterator[Node]:
    """Yield the syntax nodes that may be mutated, and skip all other code."""
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST) and not _left_alone(child):
                yield from _code(child)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.keyword) and node.arg == "examples":
        return True
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        return (node.arg, node.value.value) in (("copy", False), ("strict", True))
    return isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)


def _changes(node: Node, conditions: set[int]) -> Iterator[Node]:
    for change in CHANGES:
        yield from change(node)
    # Negate only simple conditions, since the parts of compound conditions are mutated separately.
    plain = not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant)
    if id(node) in conditions and plain and isinstance(node, ast.expr):
        yield ast.UnaryOp(ast.Not(), node)


def _compare(node: Node) -> Iterator[Node]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[number] = OTHER[type(operator)]()
            yield changed


def _compute(node: Node) -> Iterator[Node]:
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OTHER:
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
        if not any(_is_text(side) for side in sides):
            yield _with_operator(node, OTHER[type(node.op)]())


def _with_operator(node: Any, operator: ast.AST) -> Node:
    changed: Any = copy.deepcopy(node)
    changed.op = operator
    with_operator: Node = changed
    return with_operator


def _is_text(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return constant or isinstance(node, ast.JoinedStr)


def _negate(node: Node) -> Iterator[Node]:
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.BoolOp):
        yield _with_operator(node, ast.And() if isinstance(node.op, ast.Or) else ast.Or())


def _constant(node: Node) -> Iterator[Node]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 2 or 1.0)


def _name(node: Node) -> Iterator[Node]:
    if not isinstance(node, ast.Call):
        return
    changed = copy.deepcopy(node)
    if ast.unparse(node).startswith(("np.zeros(0, ", "np.ones(0, ")):
        pass  # such a mutant would be equivalent, since the arrays are empty
    elif isinstance(changed.func, ast.Attribute) and changed.func.attr in OTHER:
        changed.func.attr = OTHER[changed.func.attr]
        yield changed
    elif isinstance(changed.func, ast.Name) and changed.func.id in OTHER:
        changed.func.id = OTHER[changed.func.id]
        yield changed
    for number, keyword in enumerate(node.keywords):
        if keyword.arg == "side" and isinstance(keyword.value, ast.Constant):
            mutated = copy.deepcopy(node)
            mutated.keywords[number].value = ast.Constant(OTHER[keyword.value.value])
            yield mutated


def _remove(node: Node) -> Iterator[Node]:
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    into = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    if calls or into or isinstance(node, ast.AugAssign):
        yield ast.Pass()


CHANGES: tuple[Callable[[Node], Iterator[Node]], ...] = (
    *(_compare, _compute, _negate, _constant, _name, _remove),
)
