"""Ranking metrics for LightGBM (``lightgbm.train``, ``lightgbm.cv`` and `LGBMRanker`)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.data.numbers import all_numbers, as_array, sizes_of
from recometer.errors import InputError, InputTypeError, brief
from recometer.integrations.grouped import GroupedMetrics


class RankingMetrics(GroupedMetrics):
    """Metrics to pass to LightGBM as ``feval``.

    The values are the same as those from ``rm.evaluate(rm.Pairs.of(label, score, query), ...)``.
    With the default convention ``lightgbm``, ``ndcg@10`` and ``map@10`` have the values that
    LightGBM itself prints: a query without a relevant document counts as 1. LightGBM records the
    values under the names ``recometer_ndcg@10`` and ``recometer_map@10``, so they do not replace
    its own.

    Parameters
    ----------
    metrics
        The metrics, as in `recometer.evaluate`, for instance ``"ndcg@5,10 rr"``.
    protocol
        The convention. None means LightGBM's convention; ``"recometer"`` leaves out queries without
        a relevant document.
    threads
        The maximum number of threads. None uses all available processors.
    rules
        Individual rules, as in `recometer.evaluate`.

    Notes
    -----
    If the data have weights, the weight of a query is the mean weight of its rows, as in LightGBM.
    A query without a relevant document adds 1 to the sum, whatever its weight, as in LightGBM, so
    the mean may exceed 1. ``ndcg@10`` uses the gains 2^label - 1 and raises an error if
    ``label_gain`` sets other gains; `of_ranker` cannot see ``label_gain``, so it raises no error.

    Examples
    --------
    ``lightgbm.train(..., valid_sets=[valid], feval=RankingMetrics("ndcg@10 rr"))``, and
    ``LGBMRanker().fit(..., eval_metric=RankingMetrics("ndcg@10 rr").of_ranker)``.
    """

    convention = "lightgbm"
    taken = ("ndcg", "map")

    def __call__(self, score: npt.ArrayLike, data: Any) -> list[tuple[str, float, bool]]:
        """Return a tuple (name, value, higher is better) for each metric on a Dataset.

        Raises
        ------
        InputError
            If ``label_gain`` sets gains that differ from those of the convention's ``ndcg``. The
            method also raises the errors of `of_ranker`.
        """
        if not hasattr(data, "get_group"):
            raise InputTypeError(
                f"The data are of type {type(data).__name__}, expected a lightgbm.Dataset. Hint: "
                "lightgbm.train(..., feval=...); of_ranker is for LGBMRanker."
            )
        self._check_gains((getattr(data, "params", None) or {}).get("label_gain"))
        data.construct()  # train() has already done so
        return self.of_ranker(data.get_label(), score, data.get_weight(), data.get_group())

    def _check_gains(self, table: Any) -> None:
        if table is None or self.evaluator.arguments.protocol.name != "lightgbm":
            return
        gains = np.array(table.split(",") if isinstance(table, str) else table, np.float64)
        metric = next((n for n in map(str, self.metrics) if re.fullmatch("ndcg(@.*)?", n)), "")
        if metric and not np.array_equal(gains, 2.0 ** np.arange(gains.size) - 1):
            raise InputError(
                f"{metric} uses the gains 2^label - 1, but label_gain={brief(table)}. Hint: for "
                "label_gain=0,1,2,3,... ask for ndcg(label_gain=label)@k; for another table, also "
                "pass np.take(label_gain, label) as labels."
            )

    def of_ranker(
        self,
        label: npt.ArrayLike,
        score: npt.ArrayLike,
        weight: npt.ArrayLike | None,
        group: npt.ArrayLike | None,
    ) -> list[tuple[str, float, bool]]:
        """Return the same tuples for the arguments that `LGBMRanker.fit` passes to ``eval_metric``.

        Raises
        ------
        InputError
            If the data have no groups, or the lengths of the arguments do not match.
        InputTypeError
            If labels, scores or weights are not numbers.
        """
        if weight is not None:
            weights = all_numbers(weight, "weights")
            sizes = sizes_of(group, as_array(label, "The labels").size)
            query = np.repeat(np.arange(len(sizes)), sizes)
            if weights.shape != query.shape:
                raise InputError(
                    f"The weights have the shape {weights.shape}, but there are {len(query):,} "
                    "rows. Hint: pass one weight for each row."
                )
            weight = np.bincount(query, weights, len(sizes)) / np.maximum(sizes, 1)
        return self.of_rows(label, score, group, weight)
