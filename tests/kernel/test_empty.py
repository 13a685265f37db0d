"""Native functions and their twins agree on arrays that have no rows or no columns.

Under the sanitizers (`.ci/check_sanitizers`), these tests show that no function reads or writes
beyond the bounds of an empty array.
"""

import itertools

import kernel_twin
import numpy as np
import polars as pl
import pytest
from orders_of_items import OWN_ORDER, in_order

from recometer import _kernel

SETS = _kernel.instruction_sets()
REALS = [np.float32, np.float64]
# Numbers of users, items and factors, at least one of which is 0.
SIZES = [size for size in itertools.product((0, 1, 5), (0, 1, 20), (0, 3)) if 0 in size]
NO_ROWS = np.zeros(0, np.int32)


def zeros_of(size, dtype=np.int64):
    return np.zeros(size, dtype)


def all_equal(function, twin, arguments, make_outputs):
    """Call a native function and its twin with new output arrays, and compare the outputs."""
    native_outputs, twin_outputs = make_outputs(), make_outputs()
    function(**arguments, **native_outputs)
    twin(**arguments, **twin_outputs)
    for name in native_outputs.keys() - {"finished"}:  # only the kernel fills this array
        array = native_outputs[name]
        np.testing.assert_array_equal(array, twin_outputs[name], err_msg=name)


def factors(n_users, n_items, n_factors, dtype, bias, permuted):
    return {
        "users": zeros_of((n_users, n_factors), dtype),
        "items": zeros_of((n_items, n_factors), dtype),
        "bias": zeros_of(n_items, dtype) if bias else None,
        "rows": np.arange(n_items) if permuted else None,
    }


def native(name, instruction_set):
    return lambda **arguments: getattr(_kernel, name)(instruction_set=instruction_set, **arguments)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("with_bias", [False, True])
def test_functions_of_factors_accept_empty_arrays(instruction_set, dtype, with_bias):
    for n_users, n_items, n_factors in SIZES:
        factor_arguments = factors(
            n_users, n_items, n_factors, dtype, bias=with_bias, permuted=with_bias
        )
        order = OWN_ORDER
        if with_bias:
            order = in_order(np.arange(n_items), zeros_of(n_items, float), zeros_of(n_users, float))
        table = {"indptr": zeros_of(n_users + 1), "listed": NO_ROWS}
        all_equal(
            native("score_items", instruction_set),
            kernel_twin.score_items,
            {**factor_arguments, **table},
            lambda: {"scores": zeros_of(0, dtype)},
        )
        common = {
            **factor_arguments,
            **order,
            "first": 0,
            "last": n_items,
            "nan_rule": _kernel.NanRule.LAST,
        }
        common |= {
            "excluded_indptr": zeros_of(n_users + 1),
            "excluded": NO_ROWS,
            "check": with_bias,
        }

        def per_user(n=n_users):
            return {"flags": zeros_of(n, np.uint32), "finished": zeros_of(n, np.uint8)}

        judged_arguments = {"judged_indptr": zeros_of(n_users + 1), "judged": NO_ROWS}
        judged_arguments |= {"judged_scores": zeros_of(0, dtype), "limit": 5 if with_bias else None}
        all_equal(
            native("rank_factors", instruction_set),
            kernel_twin.rank_factors,
            {**common, **judged_arguments},
            lambda of=per_user: {**{n: zeros_of(0) for n in ("above", "tied", "before")}, **of()},
        )

        def lists(n=n_users, of=per_user):
            list_outputs = {
                "top_scores": zeros_of((n, 3), dtype),
                "top_items": zeros_of((n, 3), np.int32),
            }
            return {**list_outputs, "n": zeros_of(n), "left": zeros_of(n), **of()}

        ties = {"order": _kernel.TieOrder.RANDOM, "keys": zeros_of(n_users, np.uint64)}
        top = native("top_factors", instruction_set), kernel_twin.top_factors
        all_equal(*top, {**common, **ties}, lists)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("permuted", [False, True])
def test_functions_of_scores_accept_empty_arrays(instruction_set, dtype, permuted):
    for n_users, n_items in ((0, 0), (0, 1), (5, 0), (1, 1)):
        common = {
            "scores": zeros_of((n_users, n_items), dtype),
            "columns": np.arange(n_items) if permuted else None,
            "excluded_indptr": zeros_of(n_users + 1),
            "excluded": NO_ROWS,
            "nan_rule": _kernel.NanRule.FIRST,
        }

        def per_user(n=n_users):
            return {"flags": zeros_of(n, np.uint32), "no_candidates": zeros_of(n)}

        judged_arguments = {"judged_indptr": zeros_of(n_users + 1), "judged": NO_ROWS}
        all_equal(
            native("rank_scores", instruction_set),
            kernel_twin.rank_scores,
            {**common, **judged_arguments, "judged_scores": zeros_of(0, dtype), "limit": None},
            lambda of=per_user: {**{n: zeros_of(0) for n in ("above", "tied", "before")}, **of()},
        )

        def lists(n=n_users, of=per_user):
            list_outputs = {
                "top_scores": zeros_of((n, 2), dtype),
                "top_items": zeros_of((n, 2), np.int32),
            }
            return {**list_outputs, "n": zeros_of(n), "left": zeros_of(n), **of()}

        ties = {"order": _kernel.TieOrder.ITEM, "keys": zeros_of(n_users, np.uint64)}
        top = native("top_scores", instruction_set), kernel_twin.top_scores
        all_equal(*top, {**common, **ties}, lists)


@pytest.mark.parametrize("n_users", [0, 3])
@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize("scored", [False, True])
def test_rank_lists_accepts_empty_arrays(n_users, k, scored):
    arguments = {
        "items": NO_ROWS,
        "scores": zeros_of(0, float) if scored else None,
        "begin": zeros_of(n_users),
        "end": zeros_of(n_users),
        "n_items": 4,
        "excluded_indptr": zeros_of(n_users + 1),
        "excluded": NO_ROWS,
        "judged_indptr": zeros_of(n_users + 1),
        "judged": NO_ROWS,
        "input_order": not scored,
        "nan_rule": _kernel.NanRule.LAST,
        "order": _kernel.TieOrder.ITEM,
        "keys": zeros_of(n_users, np.uint64),
    }

    def make_outputs():
        arrays = {name: zeros_of(0) for name in ("above", "tied", "before")}
        arrays |= {name: zeros_of(n_users) for name in ("given", "listed", "removed", "repeated")}
        arrays |= {"flags": zeros_of(n_users, np.uint32), "left": zeros_of(n_users)}
        return {**arrays, "top": np.full((n_users, k), -1, np.int32)}

    all_equal(_kernel.rank_lists, kernel_twin.rank_lists, arguments, make_outputs)


NO_CODES, NO_DRAWS = zeros_of(0, np.uint32), zeros_of(0, np.uint64)
EVENTS = {"users": NO_CODES, "items": NO_CODES, "user_draws": NO_DRAWS, "item_draws": NO_DRAWS}
TIMED = {"times": None, "float_times": False, "values": None, "first": 0, "counts": zeros_of(0)}
TIMED |= {"order": _kernel.RowOrder.LATEST}
# For each function, its arguments, and the shape and dtype of each output array.
ROWS = {
    "best_first": (
        {"indptr": zeros_of(1), "above": zeros_of(0), "before": zeros_of(0)},
        {"order": 0},
    ),
    "longest_first": (
        {"lengths": zeros_of(0, float)},
        {"order": (0, np.int32), "bounds": (0, float)},
    ),
    "count_rows": ({"list": NO_ROWS}, {"counts": 0}),
    "place_rows": (
        {"list": NO_ROWS, "items": NO_ROWS, "places": NO_ROWS, "first": 0, "indptr": zeros_of(1)},
        {"sorted_items": (0, np.int32)},
    ),
    "group_rows": (
        {"list": NO_ROWS, "values": NO_ROWS, "next": zeros_of(0)},
        {"grouped": (0, np.int32)},
    ),
    "take_lists": (
        {"items": zeros_of((0, 3)), "n_items": 2, "users": zeros_of(0), "came": zeros_of(0, bool)}
        | {"first": 0},
        {"taken": ((0, 3), np.int32), "taken_users": 0},
    ),
    "find_rows": (
        {"indptr": zeros_of(1), "items": NO_ROWS, "users": None}
        | {"other_indptr": zeros_of(1), "other_items": NO_ROWS},
        {"found": 0},
    ),
    "count_items": (
        {"indptr": zeros_of(1), "items": NO_ROWS, "users": None},
        {"counts": 0, "sums": 0},
    ),
    "add_within": (
        {
            "indptr": zeros_of(1),
            "place": zeros_of(0),
            "terms": zeros_of(0, float),
            "cutoffs": zeros_of(2),
        },
        {"sums": ((2, 0), float)},
    ),
    "add_hits": (
        {"indptr": zeros_of(1), "place": zeros_of(0), "cutoffs": zeros_of(2)},
        {"sums": ((2, 0), float)},
    ),
    "add_precisions": (
        {"indptr": zeros_of(1), "place": zeros_of(0), "cutoffs": zeros_of(2)},
        {"sums": ((2, 0), float)},
    ),
    "add_discounted": (
        {"indptr": zeros_of(1), "place": zeros_of(0), "gains": zeros_of(0, float)}
        | {"logarithms": zeros_of(0, float), "cutoffs": zeros_of(2)},
        {"sums": ((2, 0), float)},
    ),
    "count_within": (
        {"indptr": zeros_of(1), "place": zeros_of(0), "limits": zeros_of(0)},
        {"counts": 0},
    ),
    "rows_ascend": (
        {"indptr": zeros_of(1), "items": NO_ROWS, "n_items": 0, "first": 0, "last": 0},
        {},
    ),
    "hold_first": ({**EVENTS, **TIMED, "sizes": zeros_of(0)}, {"held": (0, np.uint8)}),
    "number_rows": ({**EVENTS, **TIMED}, {"places": (0, np.uint32)}),
    "hold_below": ({**EVENTS, "limit": 7}, {"held": (0, np.uint8)}),
    "count_codes": ({"codes": NO_CODES}, {"counts": 0}),
    "trim_core": (
        {
            "users": NO_CODES,
            "items": NO_CODES,
            "user_counts": zeros_of(0),
            "item_counts": zeros_of(0),
        }
        | {"least_user": 1, "least_item": 1, "backwards": False},
        {"kept": (0, np.uint8)},
    ),
    "hash_pieces": ({"data": zeros_of(0, np.uint8), "piece": 8}, {"hashes": (0, np.uint64)}),
    "number_strings": (
        {"column": pl.Series([], dtype=pl.String)},
        {"numbers": (0, np.uint32), "rows": 0},
    ),
}
OTHERS = {"score_items", "rank_factors", "top_factors", "rank_scores", "top_scores", "rank_lists"}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_functions_of_rows_accept_empty_arrays(name):
    arguments, outputs = ROWS[name]

    def make_outputs():
        shapes = outputs.items()
        return {
            n: zeros_of(*(shape if isinstance(shape, tuple) else (shape,))) for n, shape in shapes
        }

    all_equal(getattr(_kernel, name), getattr(kernel_twin, name), arguments, make_outputs)


def test_every_native_function_is_tested():
    functions = {
        name for name in vars(_kernel._native) if callable(getattr(kernel_twin, name, None))
    } - {"NanRule", "RowOrder", "ScoreFlag", "TieOrder"}
    assert functions == {*ROWS, *OTHERS}
