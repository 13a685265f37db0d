"""How rounding factors to TF32 affects ranks and metrics, measured on the CPU.

Run: python benchmarks/tf32.py users.npy items.npy test.npz train.npz

The factors are float32; test and train are SciPy matrices. Products of numbers rounded to TF32
(10 bits after the leading one) are exact in float32. Rounding the factors therefore has the same
effect as TF32 on a device, except for the order of additions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import recometer as rm
from recometer.ragged import users_of
from recometer.sources.base import Request

METRICS = "ndcg@10 ap"
FIRST = 10
LOST = 13  # bits of float32 that TF32 lacks


def nearest(factors: Any) -> Any:
    """Round to nearest, like cuBLAS."""
    return cut_off((factors.view(np.uint32) + np.uint32(1 << (LOST - 1))).view(np.float32))


def cut_off(factors: Any) -> Any:
    """Truncate the last bits, like tensor cores."""
    return (factors.view(np.uint32) >> LOST << LOST).view(np.float32)


def double(factors: Any) -> Any:
    """Return the same numbers in float64, for products in double precision."""
    return factors.astype(np.float64)


def main(users: str, items: str, test: str, train: str) -> None:
    """Print the changes."""
    factors = [np.ascontiguousarray(np.load(path), np.float32) for path in (users, items)]
    truth, train_interactions = (rm.Interactions.of(sp.load_npz(path)) for path in (test, train))

    def places(source: rm.Factors) -> Any:
        ranks = source.rank(Request(truth, train_interactions))
        return ranks.above[np.lexsort((ranks.item, users_of(ranks.indptr)))]

    base = rm.Factors(*factors)
    expected, before = (
        rm.evaluate(base, truth, train=train_interactions, metrics=METRICS),
        places(base),
    )
    ways: tuple[Callable[[Any], Any], ...] = (double, nearest, cut_off)
    for way in ways:
        source = rm.Factors(*map(way, factors))
        result, after = (
            rm.evaluate(source, truth, train=train_interactions, metrics=METRICS),
            places(source),
        )
        moved = np.abs(after - before)
        first = np.minimum(after, before) < FIRST
        print(
            f"{way.__name__}: {np.mean(moved > 0):.2%} of ranks change, by at most {moved.max()};"
        )
        print(f"  {np.mean(moved[first] > 0):.2%} of those in the first {FIRST} places")
        for name, mean in result.mean().items():
            changed = np.abs(result[name] - expected[name]) > 1e-12
            print(
                f"  {name}: {expected.mean()[name]:.5f}, {mean - expected.mean()[name]:+.6f}; "
                f"of {changed.mean():.2%} of users"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
