"""Ranking metrics for rows in groups, as in libraries of boosted trees: one query per group."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError
from recometer.evaluating.evaluator import Evaluator
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.sources.pairs import Pairs

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules


@dataclasses.dataclass(frozen=True)
class Value:
    """The mean of a metric over queries."""

    metric: str
    mean: float
    higher_is_better: bool


class GroupedMetrics:
    """Metrics of the rows of queries, in the given order: a query is a user, a row is an item."""

    def __init__(
        self,
        metrics: Metrics,
        protocol: str | Protocol,
        threads: int | None,
        **rules: Unpack[Rules],
    ) -> None:
        self.evaluator = Evaluator(
            metrics=metrics, protocol=protocol, threads=threads, progress=False, **rules
        )
        self.metrics = tuple(self.evaluator.asked.metrics)

    def __repr__(self) -> str:
        names = " ".join(map(str, self.metrics))
        return f"<{type(self).__name__} {names!r}, {self.evaluator.asked.protocol.name}>"

    def of_rows(
        self,
        label: npt.ArrayLike,
        score: npt.ArrayLike,
        sizes: npt.ArrayLike | None,
        weights: npt.ArrayLike | None = None,
    ) -> list[Value]:
        """Return the mean of each metric.

        Parameters
        ----------
        label, score : [n_rows]
        sizes : int [n_queries]
            The number of rows of each query; the rows of a query are adjacent.
        weights : float [n_queries], optional
            The weight of each query in the mean.

        Raises
        ------
        InputError
            If there are no queries, or the sizes do not add up to the number of rows.
        """
        if sizes is None:
            raise InputError(
                "The data have no groups, but ranking metrics are means over queries. Hint: "
                "group=[rows of each query, ...] says which rows belong together."
            )
        rows, label = np.asarray(sizes, dtype=np.int64), np.asarray(label)
        if rows.sum() != len(label):
            raise InputError(
                f"The groups have {rows.sum():,} rows, but there are {len(label):,} labels."
            )
        pairs = Pairs.of(label, np.asarray(score), np.repeat(np.arange(len(rows)), rows))
        if weights is None or not len(np.asarray(weights)):
            means = self.evaluator.mean(pairs)
        else:
            weights = np.asarray(weights, dtype=np.float64)
            if len(weights) != len(rows):
                raise InputError(
                    f"There are {len(weights):,} weights for {len(rows):,} groups. Hint: a weight "
                    "is that of a group."
                )
            result = self.evaluator(pairs)
            means = result.mean(weights[result.user_ids])  # a group may have no rows
        return [
            Value(str(one), means[str(one)], one.definition.higher_is_better)
            for one in self.metrics
        ]
