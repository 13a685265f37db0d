"""Native functions take the same arguments as their twins, and native flags match `UserFlag`."""

import ast
import inspect
from pathlib import Path

import kernel_twin
import numpy as np
import pytest

import recometer as rm
from recometer import _kernel

STUB = ast.parse(Path(_kernel.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
NATIVE = {node.name: node.args for node in STUB.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted(NATIVE.keys() - {"instruction_sets"}))
def test_native_functions_and_twins_have_the_same_arguments(name):
    assert callable(getattr(_kernel, name))
    twin = inspect.signature(getattr(kernel_twin, name)).parameters.values()
    by_name = [
        argument.arg for argument in NATIVE[name].kwonlyargs if argument.arg != "instruction_set"
    ]
    assert by_name == [
        parameter.name for parameter in twin if parameter.kind == parameter.KEYWORD_ONLY
    ]
    in_any_way = [argument.arg for argument in NATIVE[name].args]
    assert in_any_way == [
        parameter.name for parameter in twin if parameter.kind == parameter.POSITIONAL_OR_KEYWORD
    ]


def test_score_flags_match_user_flags():
    assert {flag.name: flag.value for flag in _kernel.ScoreFlag} == {
        flag.name: rm.UserFlag[flag.name].value for flag in _kernel.ScoreFlag
    }


def best(order=_kernel.TieOrder.ITEM, instruction_set=None):
    items = np.zeros((1, 1), np.int32)
    _kernel.top_scores(
        instruction_set=instruction_set or _kernel.instruction_set(),
        scores=np.array([[1.0, 2.0]]),
        columns=None,
        excluded_indptr=np.zeros(2, np.int64),
        excluded=np.zeros(0, np.int32),
        order=order,
        keys=np.zeros(1, np.uint64),
        top_scores=np.zeros((1, 1)),
        top_items=items,
        n=np.zeros(1, np.int64),
        left=np.zeros(1, np.int64),
        nan_rule=_kernel.NanRule.UNDEFINED,
        flags=np.zeros(1, np.uint32),
        no_candidates=np.zeros(1, np.int64),
    )
    return int(items[0, 0])


@pytest.mark.parametrize(
    "order", [3, -1, 1, _kernel.NanRule.FIRST, _kernel.RowOrder.DRAWN, "item", None]
)
def test_invalid_enum_values_are_rejected(order):
    assert best(_kernel.TieOrder.ITEM) == 1
    with pytest.raises(TypeError, match=r"order: recometer\._kernel\._native\.TieOrder"):
        best(order)


@pytest.mark.parametrize("name", ["AVX2", "sse9", "plain "])
def test_unknown_instruction_set_is_rejected(name):
    assert {
        best(instruction_set=instruction_set) for instruction_set in _kernel.instruction_sets()
    } == {1}
    with pytest.raises(ValueError, match=f"no instruction set {name}$"):
        best(instruction_set=name)
