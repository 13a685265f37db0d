"""Ranking metrics for XGBoost (``xgboost.train``, ``xgboost.cv`` and `XGBRanker`)."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.data.numbers import as_array
from recometer.errors import InputError, UnknownNameError, brief, did_you_mean, need
from recometer.integrations.grouped import GroupedMetrics
from recometer.stats.checks import check_whole


class RankingMetrics(GroupedMetrics):
    """Metrics to pass to XGBoost as ``custom_metric``.

    The values are the same as those from ``rm.evaluate(rm.Pairs.of(label, score, group), ...)``.
    With the default convention ``xgboost``, ``ndcg@10``, ``map@10``, ``pre@10`` and ``ndcg@10-``
    have the values that XGBoost itself prints; unlike in XGBoost, map and pre also accept grades.
    XGBoost records the values under names such as ``recometer_ndcg@10``, so they do not replace its
    own.

    Parameters
    ----------
    metrics
        The metrics, as in `recometer.evaluate`, for instance ``"ndcg@5,10 rr"``.
    protocol
        The convention. None means XGBoost's convention; ``"recometer"`` leaves out groups without a
        relevant row.
    threads
        The maximum number of threads. None uses all available processors.
    rules
        Individual rules, as in `recometer.evaluate`.

    Notes
    -----
    XGBoost infers from a metric's name whether higher or lower is better; for most names, it
    assumes lower. For early stopping in the right direction, use `early_stopping`.

    The mean takes group weights into account, as in XGBoost. A group without a relevant row adds 1
    to the sum, whatever its weight. XGBoost rounds the values of custom metrics to 6 decimals.
    """

    convention = "xgboost"
    taken = ("ndcg", "map", "pre", "auc")

    def __call__(self, score: npt.ArrayLike, data: Any) -> Any:
        """Return a pair (name, value) for each metric on a DMatrix.

        A `RankingMetrics` with a single metric can also be the `eval_metric` of an `XGBRanker`,
        which passes the labels and scores of one query at a time and expects one number. The
        `XGBRanker` averages these numbers, weighted by the number of rows in each query, and uses 1
        for queries with one row.

        Raises
        ------
        InputError
            If the data have no groups, or there are several metrics for an `XGBRanker`.
        """
        if not hasattr(data, "get_uint_info"):
            return self._of_query(score, data)
        pointers = np.asarray(data.get_uint_info("group_ptr"), dtype=np.int64)
        sizes = np.diff(pointers) if len(pointers) else None
        means = self.of_rows(data.get_label(), score, sizes, data.get_weight())
        return [(name, mean) for name, mean, _ in means]

    def _of_query(self, label: npt.ArrayLike, score: npt.ArrayLike) -> float:
        if len(self.metrics) > 1:
            raise InputError(
                f"XGBRanker takes one metric per callable, but there are {len(self.metrics)}. "
                "Hint: pass a list of RankingMetrics with one metric each, or use xgboost.train."
            )
        label = as_array(label, "The labels")
        return self.of_rows(label, score, [label.size])[0][1]

    def early_stopping(self, rounds: int, metric: str | None = None, **options: Any) -> Any:
        """Return an ``xgboost.callback.EarlyStopping`` that knows whether higher values are better.

        Parameters
        ----------
        rounds
            The number of rounds without improvement after which training stops.
        metric
            The metric to monitor. None means the first metric.
        options
            Options of the callback, such as ``save_best=True``.

        Raises
        ------
        InputError
            If `rounds` is not a whole number of at least 1, or if an option is set by this method
            itself or unknown to the callback.
        MissingExtraError
            If XGBoost is not installed.
        UnknownNameError
            If the metric is not one of this object's metrics.
        """
        check_whole("rounds", rounds, 1)
        names = [str(entry) for entry in self.metrics]
        name = names[0] if metric is None else metric
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise UnknownNameError(f"There is no metric {brief(name)} here. {hint}")
        higher = self.metrics[names.index(name)].definition.higher_is_better
        callback = need("xgboost.callback", "Early stopping", "xgboost", "xgboost")
        accepted = set(inspect.signature(callback.EarlyStopping).parameters)
        for option in options:
            if option not in accepted - {"rounds", "metric_name", "maximize"}:
                raise InputError(
                    f"{option}= is not an option here. Hint: metric= names the metric, which "
                    "determines the direction; save_best= and other options of "
                    "xgboost.callback.EarlyStopping are passed on."
                )
        return callback.EarlyStopping(
            rounds, metric_name=self.shown(name), maximize=higher, **options
        )
