"""The problems on which `recometer check` tests the kernel, with the results of its NumPy twin.

``python tests/helpers/kernel_problems.py`` writes the problems and results to a file in the
package. All scores are sums of small integers, which are exact with and without fused multiply-add.
"""

from __future__ import annotations

import enum
import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any

import kernel_twin
import numpy as np
import numpy.typing as npt
from orders_of_items import OWN_ORDER, in_order

from recometer import _kernel
from recometer.checking import installation
from recometer.draws import mix

Array = npt.NDArray[Any]
Call = tuple[str, dict[str, Any], dict[str, Array]]
# The numbers of users, items and factors of each problem.
SHAPES = ((1, 7, 3), (13, 64, 16), (6, 257, 5), (29, 511, 17))


class Draws:
    """Random integers that are the same in every version of NumPy."""

    def __init__(self) -> None:
        self.seeds = itertools.count()

    def __call__(self, low: int, high: int, *shape: int) -> Array:
        """Return random integers from low to high."""
        bits = mix(np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(next(self.seeds) << 32))
        return (bits % np.uint64(high - low + 1)).astype(np.int64).reshape(shape) + low

    def order(self, *shape: int) -> Array:
        """Return random permutations along the last axis."""
        return np.argsort(self(0, 2**62, *shape), axis=-1)


def problems() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each problem as the name of a kernel function and its arguments."""
    draw = Draws()
    for number, (shape, dtype) in enumerate(itertools.product(SHAPES, (np.float32, np.float64))):
        yield from of_vectors(draw, number, *shape, dtype)
    yield from of_rows(draw)


def of_vectors(
    draw: Draws, number: int, n_users: int, n_items: int, n_factors: int, dtype: npt.DTypeLike
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield problems for the functions that are compiled for each instruction set."""
    rule, order = _kernel.NanRule(number % 3), _kernel.TieOrder(number % 3)
    users, items = (draw(-4, 4, n, n_factors).astype(dtype) for n in (n_users, n_items))
    if number % 4 > 1:  # make some scores of every user NaN or infinite
        items[draw(0, n_items - 1, 3), 0] = np.nan, np.inf, -np.inf
    factors: dict[str, Any] = {"users": users, "items": items, "bias": None, "rows": None}
    if number % 2:
        factors |= {"bias": draw(-4, 4, n_items).astype(dtype), "rows": draw.order(n_items)}
    picked = draw.order(n_users, n_items)[:, :4].astype(
        np.int32
    )  # two excluded and two judged items per user
    excluded, judged = (np.sort(part, axis=1).ravel() for part in (picked[:, :2], picked[:, 2:]))
    indptr = np.arange(0, 2 * n_users + 1, 2)
    common = {"excluded_indptr": indptr, "excluded": excluded, "nan_rule": rule}
    scores = np.zeros(2 * n_users, dtype)
    yield "score_items", {**factors, "indptr": indptr, "listed": judged, "scores": scores}

    scores = scores.copy()
    kernel_twin.score_items(**factors, indptr=indptr, listed=judged, scores=scores)
    if rule != _kernel.NanRule.UNDEFINED:
        scores[np.isnan(scores)] = np.inf if rule == _kernel.NanRule.FIRST else -np.inf
    judged_arrays = {
        "judged_indptr": indptr,
        "judged": judged,
        "judged_scores": scores,
        "limit": None,
    }
    judged_arrays |= {name: np.zeros(2 * n_users, np.int64) for name in ("above", "tied", "before")}
    list_arrays = {"order": order, "keys": draw(0, 2**62, n_users).astype(np.uint64)}
    list_arrays |= {"top_scores": np.zeros((n_users, 5), dtype), "n": np.zeros(n_users, np.int64)}
    list_arrays |= {
        "top_items": np.full((n_users, 5), -1, np.int32),
        "left": np.zeros(n_users, int),
    }
    common["flags"] = np.zeros(n_users, np.uint32)
    all_items = {
        "first": 0,
        "last": n_items,
        "check": True,
        "finished": np.zeros(n_users, np.uint8),
    }
    yield "rank_factors", {**factors, **OWN_ORDER, **common, **judged_arrays, **all_items}

    infinite = np.full(n_items, np.inf), np.full(n_users, np.inf)
    yield (
        "top_factors",
        {
            **factors,
            **in_order(draw.order(n_items), *infinite),
            **common,
            **list_arrays,
            **all_items,
        },
    )

    columns = draw.order(n_items) if number % 2 else None
    distinct_scores = draw(-4, 4, n_users, n_items).astype(dtype)
    cells = np.repeat(np.arange(n_users), 2), judged if columns is None else columns[judged]
    scores = distinct_scores[cells]
    for value in (np.nan, np.inf, -np.inf):
        distinct_scores[draw(0, 19, n_users, n_items) == 0] = value
    distinct_scores[cells] = scores
    common |= {
        "scores": distinct_scores,
        "columns": columns,
        "no_candidates": np.zeros(n_users, np.int64),
    }
    yield "rank_scores", {**common, **judged_arrays, "judged_scores": scores}
    yield "top_scores", {**common, **list_arrays}


def of_rows(draw: Draws) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield problems for lists, sorting, sums and hashing."""
    n_users, n_items, n = 5, 12, 60
    indptr, judged = np.arange(0, n + 1, n // n_users), draw(-1, n_items - 1, n_users)
    scores = draw(0, 4, n).astype(float)
    scores[draw(0, 9, n) == 0] = np.nan
    for list_scores, rule, order in zip(
        (scores, scores, None), _kernel.NanRule, _kernel.TieOrder, strict=True
    ):
        outputs = {name: np.zeros(n_users, int) for name in ("above", "tied", "before", "left")}
        for name in ("given", "listed", "removed", "repeated"):
            outputs[name] = np.zeros(n_users, np.int64)
        rows = {"items": draw(-1, n_items - 1, n).astype(np.int32), "scores": list_scores}
        rows |= {"begin": indptr[:-1], "end": indptr[1:], "n_items": n_items, "order": order}
        rows |= {"excluded_indptr": np.arange(n_users + 1), "input_order": list_scores is None}
        rows |= {"excluded": draw(0, n_items - 1, n_users).astype(np.int32), "nan_rule": rule}
        rows |= {"judged_indptr": np.arange(n_users + 1), "judged": judged.astype(np.int32)}
        rows |= {"keys": draw(0, 2**62, n_users).astype(np.uint64)}
        rows |= {"flags": np.zeros(n_users, np.uint32), "top": np.full((n_users, 4), -1, np.int32)}
        yield "rank_lists", {**rows, **outputs}
    table = {"indptr": indptr, "above": draw(-1, 3, n), "before": draw(0, 2, n)}
    yield "best_first", {**table, "order": np.zeros(n, np.int64)}
    lengths = np.append(draw(0, 99, n) / 4, np.inf)
    outputs = {"order": np.zeros(n + 1, np.int32), "bounds": np.zeros(n + 1)}
    yield "longest_first", {"lengths": lengths, **outputs}
    place = np.sort(draw(0, 30, n_users, n // n_users)).ravel()
    sums = {"indptr": indptr, "place": place, "cutoffs": np.array([1, 5, 40])}
    sums["sums"] = np.zeros((3, n_users))
    yield "add_hits", sums
    yield "add_precisions", sums
    gains, logarithms = draw(-9, 9, n) / 8, draw(4, 99, 42) / 8
    yield "add_discounted", {**sums, "gains": gains, "logarithms": logarithms}
    data = draw(0, 255, 1000).astype(np.uint8)
    yield "hash_pieces", {"data": data, "piece": 99, "hashes": np.zeros(11, np.uint64)}


def solved() -> Iterator[Call]:
    """Yield each problem, and copies of its arrays after the twin has solved it."""
    for name, arguments in problems():
        after = {
            key: value.copy() for key, value in arguments.items() if isinstance(value, np.ndarray)
        }
        with np.errstate(invalid="ignore"):
            getattr(kernel_twin, name)(**{**arguments, **after})
        yield name, arguments, after


def content() -> bytes:
    """Return the uncompressed contents of the file, which stores equal arrays only once."""
    arrays: dict[str, int] = {}

    def with_array_names(value: object) -> object:
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name}"
        if not isinstance(value, np.ndarray):
            return value
        array = json.dumps([value.dtype.name, value.shape, value.ravel().tolist()])
        return f"array.{arrays.setdefault(array, len(arrays))}"

    calls = [
        [name, *({key: with_array_names(value) for key, value in part.items()} for part in parts)]
        for name, *parts in solved()
    ]
    return json.dumps({"calls": calls, "arrays": list(map(json.loads, arrays))}).encode()


if __name__ == "__main__":
    installation.PROBLEMS.write_bytes(gzip.compress(content(), mtime=0))
