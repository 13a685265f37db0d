"""Ranking metrics for boosted-tree libraries, in which rows are grouped by query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from recometer.data.numbers import all_numbers, as_array, sizes_of
from recometer.errors import InputError
from recometer.evaluator import Evaluator
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.sources.pairs import Pairs

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules


def evaluator_of_rows(
    metrics: Metrics,
    protocol: str | Protocol,
    threads: int | None,
    rules: Mapping[str, Any],
) -> Evaluator:
    """Return an evaluator for rows that come with labels.

    Raises
    ------
    InputError
        If `rules` contains an argument of `Evaluator` that does not apply to such rows.
    """
    how: dict[str, Any] = {"protocol": protocol, "threads": threads, "progress": False}
    for name in rules:
        if name in (*how, "metrics", "test", "candidates"):
            raise InputError(
                f"{name}= does not apply to rows in groups. Hint: leave it out; ties=, "
                "relevant_from= and other individual rules do apply."
            )
    return Evaluator(metrics=metrics, **how, **rules)


class GroupedMetrics:
    """Metrics for rows grouped by query. Queries play the role of users, and rows that of items."""

    convention: ClassVar[str]
    """The library's convention, which is the default for `protocol`."""
    taken: ClassVar[tuple[str, ...]] = ()
    """The names of the library's own metrics, without cut-offs."""

    def __init__(
        self,
        metrics: Metrics = "ndcg@10",
        *,
        protocol: str | Protocol | None = None,
        threads: int | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        protocol = self.convention if protocol is None else protocol
        self.evaluator = evaluator_of_rows(metrics, protocol, threads, rules)
        self.metrics = tuple(self.evaluator.arguments.metrics)
        self.__name__ = self.shown(str(self.metrics[0]))  # XGBRanker prints this name

    def __repr__(self) -> str:
        names = " ".join(map(str, self.metrics))
        return f"<{type(self).__name__} {names!r}, {self.evaluator.arguments.protocol.name}>"

    def of_rows(
        self,
        label: npt.ArrayLike,
        score: npt.ArrayLike,
        sizes: npt.ArrayLike | None,
        weights: npt.ArrayLike | None = None,
    ) -> list[tuple[str, float, bool]]:
        """Return each metric's name, its mean over queries, and whether higher values are better.

        The rows of a query must be adjacent. `label` and `score` have an entry per row. `sizes`
        (the number of rows in each query) and `weights` have an entry per query.

        Raises
        ------
        InputError
            If there are no queries, or `sizes` or `weights` do not match the rows.
        InputTypeError
            If labels, scores or weights are not numbers.
        """
        label = as_array(label, "The labels")
        rows = sizes_of(sizes, label.size)
        pairs = Pairs.of(label, score, sizes=rows)
        weights = np.empty(0) if weights is None else all_numbers(weights, "weights")
        if not weights.size:
            means = self.evaluator.mean(pairs)
        else:
            if weights.shape != rows.shape:
                raise InputError(
                    f"The weights have the shape {weights.shape}, but there are {len(rows):,} "
                    "groups. Hint: pass one weight for each group."
                )
            result = self.evaluator(pairs)
            means = result.mean(weights[result.user_ids])  # a group may have no rows
        return [
            (self.shown(str(metric)), means[str(metric)], metric.definition.higher_is_better)
            for metric in self.metrics
        ]

    def shown(self, metric: str) -> str:
        """Return a metric's name, with a prefix if the library has a metric of the same name."""
        name = re.split(r"[@(-]", metric)[0]
        return f"recometer_{metric}" if name in self.taken else metric
