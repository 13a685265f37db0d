"""Ranking metrics as scikit-learn scorers, for cross-validation and grid search."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, InputTypeError, need
from recometer.integrations._shared import wrong_type
from recometer.integrations.grouped import evaluator_of_rows
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.sources.pairs import Pairs

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules

__all__ = ["RankingScore", "ranking_scorer"]

# The methods that can rank rows, in order of preference.
RESPONSES = ("decision_function", "predict_proba", "predict")


class RankingScore:
    """A score function: ``RankingScore("ndcg@10")(y_true, y_pred, groups=queries)``.

    It ranks the rows of each group by `y_pred`. The score is the mean over groups, as computed by
    ``rm.evaluate(rm.Pairs.of(y_true, y_pred, groups), ...)``. You can pass the function to
    scikit-learn's ``make_scorer``; see `ranking_scorer`.

    Parameters
    ----------
    metric
        A metric with at most one cut-off.
    protocol, rules
        The rules, as in `recometer.evaluate`.

    Raises
    ------
    InputError
        If there are several metrics, or an argument does not apply to rows in groups.
    """

    def __init__(
        self,
        metric: Metrics = "ndcg@10",
        *,
        protocol: str | Protocol = "recometer",
        **rules: Unpack[Rules],
    ) -> None:
        self.evaluator = evaluator_of_rows(metric, protocol, 1, rules)
        parsed = self.evaluator.arguments.metrics
        if len(parsed) > 1:
            raise InputError(
                f"A score is one number, but {len(parsed)} metrics were asked for. Hint: a dict of "
                'scorers, scoring={"ndcg@10": ranking_scorer("ndcg@10"), ...}.'
            )
        self.metric = parsed[0]
        self.__name__ = repr(self)  # scikit-learn displays functions by name

    @property
    def higher_is_better(self) -> bool:
        """Whether higher values of the metric are better."""
        return self.metric.definition.higher_is_better

    def __call__(
        self,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        *more: object,
        groups: npt.ArrayLike | None = None,
    ) -> float:
        """Return the mean over groups, or NaN if it is undefined for all of them.

        Parameters
        ----------
        y_true, y_pred : [n_rows]
            The relevance of each row, and the scores by which rows are ranked.
        groups : [n_rows]
            The user or query of each row, in any order.

        Raises
        ------
        InputError
            If there are no groups.
        InputTypeError
            If there are more positional arguments, as when the function is called like a scorer.
        """
        if more:  # scikit-learn calls a scorer with an estimator, X and y
            raise InputTypeError(
                "RankingScore takes labels and predictions, and groups= by name, but got "
                f"{2 + len(more)} arguments. Hint: as scoring= of scikit-learn, "
                "ranking_scorer(...) takes an estimator."
            )
        if groups is None:
            raise InputError(
                "The score of a ranking needs the group of each row. Hint: cross_val_score(..., "
                'params={"groups": queries}), or GridSearchCV(...).fit(X, y, groups=queries).'
            )
        pairs = Pairs.of(y_true, y_pred, groups)
        return self.evaluator.mean(pairs)[str(self.metric)]

    def __repr__(self) -> str:
        return f"RankingScore({str(self.metric)!r})"


def ranking_scorer(
    metric: Metrics = "ndcg@10",
    *,
    groups: str | None = None,
    protocol: str | Protocol = "recometer",
    **rules: Unpack[Rules],
) -> Any:
    """Return a scorer for ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``.

    If lower values are better, scores are negative, as for scikit-learn's own scorers. Rows are
    ranked by the first of the methods ``decision_function``, ``predict_proba`` and ``predict`` that
    the estimator has. To choose another method, pass a `RankingScore` to scikit-learn's
    ``make_scorer``.

    Parameters
    ----------
    metric, protocol, rules
        The arguments of `RankingScore`.
    groups
        The name of the column in X that contains each row's group. With None, scikit-learn must
        pass the groups, which requires ``sklearn.set_config(enable_metadata_routing=True)``:
        ``cross_val_score(model, X, y, cv=GroupKFold(), params={"groups": queries}, scoring=...)``.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    InputError
        If there are several metrics, or if `groups` is None and metadata routing is disabled.
    InputTypeError
        If `groups` is not the name of a column.
    """
    metrics = need("sklearn.metrics", "ranking_scorer", "sklearn", "scikit-learn")
    score = RankingScore(metric, protocol=protocol, **rules)
    if groups is not None and not isinstance(groups, str | int):
        expected = (
            "the name of a column of X. Hint: groups themselves are passed on by scikit-learn, as "
            "the documentation of ranking_scorer explains."
        )
        raise wrong_type("groups=", groups, expected)
    make = functools.partial(
        metrics.make_scorer, response_method=RESPONSES, greater_is_better=score.higher_is_better
    )
    if groups is not None:
        return _ColumnScorer(make, score, groups)
    config = need("sklearn", "ranking_scorer", "sklearn", "scikit-learn").get_config()
    if not config["enable_metadata_routing"]:
        raise InputError(
            "scikit-learn is not configured to pass groups on to scorers. Hint: "
            "sklearn.set_config(enable_metadata_routing=True); or ranking_scorer(..., "
            'groups="query") reads them from a column of X.'
        )
    return make(score).set_score_request(groups=True)


class _ColumnScorer:
    """A scorer that reads groups from a column of X."""

    def __init__(self, make: Callable[..., Any], score: RankingScore, column: str) -> None:
        self._make, self._score, self._column = make, score, column

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        names = getattr(X, "columns", None)
        if names is None or self._column not in list(names):
            raise InputError(
                f"X has no column {self._column!r}, from which groups are read. Hint: X must be a "
                "data frame with that column; a pipeline can leave it out of the features."
            )
        score = functools.partial(self._score, groups=np.asarray(X[self._column]))
        return float(self._make(score)(estimator, X, y))

    def __repr__(self) -> str:
        return f"ranking_scorer({str(self._score.metric)!r}, groups={self._column!r})"
