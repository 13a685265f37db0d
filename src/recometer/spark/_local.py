"""Rows of users as an `Evaluation` of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.evaluating.making import versions
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.spark._columns import user_ids
from recometer.spark._job import USERS


def evaluation(
    table: Any,
    *,
    metrics: tuple[Metric, ...],
    over_users: Mapping[str, float],
    protocol: Protocol,
    seed: int,
    chance: bool,
    **more: Any,
) -> Evaluation:
    """Return the values of users, whatever their order, as one machine has them.

    Parameters
    ----------
    table : pyarrow.Table
        The columns of `SparkEvaluation.values`.
    metrics, protocol, seed
        Those of the evaluation.
    over_users
        The values of metrics that have no columns.
    chance
        Whether there are columns of a random order.
    **more
        Further attributes of `Evaluation`.
    """
    ids = user_ids(table, ["u", "s"] if "s" in table.column_names else ["u"])
    order = np.argsort(ids, kind="stable")

    def column(name: str, dtype: Any = np.float64) -> Any:
        return np.asarray(table[name].to_numpy()).astype(dtype)[order]

    every = {str(metric): number for number, metric in enumerate(metrics)}
    of = {name: number for name, number in every.items() if name not in over_users}
    given: dict[str, Any] = {
        "counts": {},
        "definitions": {},
        "timings": {},
        "inputs": {},
        "versions": versions(),
        **more,
    }
    return Evaluation(
        values={name: column(f"m{number}") for name, number in of.items()},
        reasons={name: column(f"r{number}", np.uint8) for name, number in every.items()},
        over_users=over_users,
        chance={name: column(f"c{n}") for name, n in of.items()} if chance else {},
        user_ids=ids[order],
        **{name: column(name, np.int64) for name in USERS if name != "flags"},
        flags=column("flags", np.uint32),
        metrics=metrics,
        protocol=protocol,
        seed=seed,
        **given,
    )
