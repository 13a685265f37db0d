"""The time of print(result) with its intervals, compared with the evaluation."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
from _table import Measure, seconds
from _timing import side_by_side

import recometer as rm

MOST = 0.1  # the largest acceptable share of the evaluation time


def printing(options: argparse.Namespace) -> tuple[dict[str, Any], list[Measure]]:
    """Return the times of evaluations with default metrics, and of printing their results."""
    n_users = 2_000 if options.quick else 100_000
    times: dict[str, Any] = {}
    table = []
    # With few items, evaluation is fast; with grades, almost all values are distinct.
    for n_items, grades in ((20_000, 1), (1_000, 5)):
        generator = np.random.default_rng(0)
        train, test = (_rows(generator, n_users, n_items, each, grades) for each in (50, 10))
        factors = [generator.normal(size=(n, 64)).astype(np.float32) for n in (n_users, n_items)]
        source = rm.Factors(*factors)

        def evaluate(source: Any = source, test: Any = test, train: Any = train) -> Any:
            return rm.evaluate(source, test, train=train, threads=options.threads)

        result = evaluate()
        # A result caches its intervals, but a copy does not have them.
        timed = side_by_side(
            {"evaluate": evaluate, "print": lambda one=result: str(dataclasses.replace(one))},  # type: ignore[misc]
            5,
            wait=options.wait,
        )
        times[f"{n_items} items"] = {name: one.seconds for name, one in timed.items()}
        table.append(
            Measure(
                f"print(result), {n_users:,} users x {n_items:,} items: share of the evaluation",
                seconds(timed["print"].median),
                seconds(timed["evaluate"].median),
                timed["print"].median / timed["evaluate"].median,
                MOST,
                True,
            )
        )
    return times, table


def _rows(
    generator: np.random.Generator, n_users: int, n_items: int, each: int, grades: int
) -> scipy.sparse.csr_array:
    """Return `each` items for every user, with grades up to `grades`."""
    users = np.repeat(np.arange(n_users), each)
    items = generator.integers(n_items, size=len(users))
    _, first = np.unique(users * n_items + items, return_index=True)
    values = generator.integers(1, grades + 1, len(first)).astype(np.float64)
    return scipy.sparse.csr_array((values, (users[first], items[first])), (n_users, n_items))
