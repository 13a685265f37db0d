"""XGBoost: metrics of grouped ranking for ``xgboost.train``, ``xgboost.cv`` and `XGBRanker`."""

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

    Values are the same as in ``rm.evaluate(rm.Pairs.of(label, score, group), ...)``. With the
    default convention ``xgboost``, ``ndcg@10``, ``map@10``, ``pre@10`` and ``ndcg@10-`` are the
    numbers that XGBoost itself prints; unlike in XGBoost, map and pre also accept grades. XGBoost
    records them under names such as ``recometer_ndcg@10``, so that they do not replace its own
    values.

    Parameters
    ----------
    metrics
        As `recometer.evaluate` takes them: ``"ndcg@5,10 rr"``.
    protocol
        The convention. None means XGBoost's; ``"recometer"`` leaves out groups without a relevant
        row.
    threads
        Maximum number of threads. None uses all available processors.
    rules
        Single rules, as in `recometer.evaluate`.

    Notes
    -----
    XGBoost infers from the name of a metric whether higher values are better, and for most names
    assumes that lower values are. Use `early_stopping` to stop early in the right direction.

    The mean uses the weights of groups, as in XGBoost. For a group without a relevant row, XGBoost
    adds 1 whatever its weight. It keeps 6 decimals of the value of a custom metric.
    """

    convention = "xgboost"
    taken = ("ndcg", "map", "pre", "auc")

    def __call__(self, score: npt.ArrayLike, data: Any) -> Any:
        """Return (name, value) of each metric, given a DMatrix.

        With a single metric, it can also be the `eval_metric` of an `XGBRanker`, which calls it
        with the labels and scores of one query after the other, and expects a value. `XGBRanker`
        weights these values by the number of rows of each query, and uses 1 for queries with one
        row.

        Raises
        ------
        InputError
            If the data have no groups, or there are several metrics for an `XGBRanker`.
        """
        if not hasattr(data, "get_uint_info"):
            return self._of_query(score, data)
        pointers = np.asarray(data.get_uint_info("group_ptr"), dtype=np.int64)
        sizes = np.diff(pointers) if len(pointers) else None
        found = self.of_rows(data.get_label(), score, sizes, data.get_weight())
        return [(one.metric, one.mean) for one in found]

    def _of_query(self, label: npt.ArrayLike, score: npt.ArrayLike) -> float:
        if len(self.metrics) > 1:
            raise InputError(
                f"XGBRanker takes one metric of a callable, but there are {len(self.metrics)}. "
                "Hint: a list of RankingMetrics of one each; or xgboost.train."
            )
        label = as_array(label, "The labels")
        return self.of_rows(label, score, [label.size])[0].mean

    def early_stopping(self, rounds: int, metric: str | None = None, **options: Any) -> Any:
        """Return an ``xgboost.callback.EarlyStopping`` that knows which direction is better.

        Parameters
        ----------
        rounds
            Training stops after this number of rounds without a better value.
        metric
            One of the metrics. None takes the first one.
        options
            Options of the callback, such as ``save_best=True``.

        Raises
        ------
        InputError
            If the number of rounds is not a whole number of at least 1, or an option is set by this
            method or unknown to the callback.
        MissingExtraError
            If XGBoost is not installed.
        UnknownNameError
            If the metric is not one of these.
        """
        check_whole("rounds", rounds, 1)
        names = [str(one) for one in self.metrics]
        name = names[0] if metric is None else metric
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise UnknownNameError(f"There is no metric {brief(name)} here. {hint}")
        higher = self.metrics[names.index(name)].definition.higher_is_better
        callback = need("xgboost.callback", "Early stopping", "xgboost", "xgboost")
        known = set(inspect.signature(callback.EarlyStopping).parameters)
        for option in options:
            if option not in known - {"rounds", "metric_name", "maximize"}:
                raise InputError(
                    f"{option}= is no option here. Hint: metric= names the metric, from which the "
                    "direction follows; save_best= and others of "
                    "xgboost.callback.EarlyStopping are passed on."
                )
        return callback.EarlyStopping(
            rounds, metric_name=self.shown(name), maximize=higher, **options
        )
