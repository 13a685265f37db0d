"""An MLflow evaluator for ``mlflow.models.evaluate`` that logs its results to MLflow runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data import ids
from recometer.data.columns import choose_columns
from recometer.data.frames import in_numpy
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError, ModelError, brief, need
from recometer.evaluation import Evaluation, evaluate
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs

# Model types of `mlflow.models.evaluate`; for retrievers, MLflow has its own metrics.
MODEL_TYPES = ("recommender", "ranker", "retriever")
SCORE, RELEVANCE = "recometer: score", "recometer: relevance"


class RecometerEvaluator:
    """The evaluator that ``mlflow.models.evaluate(..., evaluators="recometer")`` runs.

    The data have either a row per user-item pair, with its relevance as the target and its score as
    the prediction, or a row per user, with a list of relevant items as the target and a ranked list
    of items as the prediction. ``evaluator_config`` takes arguments of `recometer.evaluate` by
    name, such as ``metrics`` and ``train``, and the names of the id columns as ``user`` and
    ``item``. The evaluator logs metrics under the names of `Evaluation.flat`, and the evaluation as
    an artifact.

    MLflow finds this evaluator through its entry point, and uses it by default for the model types
    recommender and ranker.
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: str | None, evaluator_config: Mapping[str, Any] | None, **_: Any
    ) -> bool:
        """Return whether this evaluator can evaluate models of this type."""
        if model_type == "retriever":  # MLflow's own metrics are the default
            return "metrics" in (evaluator_config or {})
        return model_type in MODEL_TYPES

    def evaluate(
        self,
        *,
        model_type: str | None,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        extra_metrics: Any = None,
        custom_artifacts: Any = None,
        predictions: str | None = None,
        model_id: str | None = None,
        **_: Any,
    ) -> Any:
        """Evaluate the predictions, log the metrics, and return them.

        Raises
        ------
        InputError
            If there are no targets, if there are extra metrics or custom artifacts, or if the
            targets do not match the predictions.
        InputTypeError
            If the model returns something other than a prediction for each row.
        ModelError
            If the model raises an exception.
        ColumnError
            If the user or item column does not exist.
        """
        refused = {"extra_metrics": extra_metrics, "custom_artifacts": custom_artifacts}
        for name, argument in refused.items():
            if argument:
                raise InputError(
                    f"The evaluator recometer computes only its own metrics, not {name}. Hint: "
                    'evaluators=["default", "recometer"] runs both.'
                )
        if dataset.labels_data is None:
            raise InputError(
                "The evaluator recometer needs relevant items. Hint: targets= names their column."
            )
        array = _predictions(model, dataset, predictions)
        result = _evaluated(dataset, array, dict(evaluator_config or {}))
        result.log_mlflow(run_id=run_id, model_id=model_id)
        models = need("mlflow.models", "The evaluator recometer", "mlflow", "mlflow")
        return models.EvaluationResult(metrics=result.flat(), artifacts={}, run_id=run_id)


def _predictions(model: Any, dataset: Any, column: str | None) -> Array:
    """Return a prediction for each row: from the model or, without one, from the data."""
    returned = dataset.predictions_data if model is None else _predicted(model, dataset)
    if returned is None and model is None:
        raise InputError(
            "There is neither a model nor a prediction. Hint: predictions= names their column."
        )
    if hasattr(returned, "columns"):  # a pandas frame
        names = list(returned.columns)
        if column is None and len(names) == 1:
            column = names[0]
        if column not in names:
            raise InputError(
                f"The model returns the columns {', '.join(map(repr, names))}. Hint: predictions= "
                "must name the column of scores, or of lists."
            )
        returned = returned[column]
    returned = in_numpy(returned, "The predictions")
    if isinstance(returned, str | bytes | Mapping) or not hasattr(returned, "__len__"):
        raise InputTypeError(
            f"The model returned {brief(returned)}, expected a prediction for each row of data. "
            "Hint: return a list, an array or a column of scores, or of lists of items."
        )
    if not hasattr(returned, "to_numpy") and _of_lists(returned):
        lists = np.empty(len(returned), dtype=object)
        lists[:] = list(returned)
        return lists
    array = as_array(returned, "The predictions")
    # Many models return scores as a single column.
    return array.ravel() if array.ndim == 2 and array.shape[1] == 1 else array


def _predicted(model: Any, dataset: Any) -> Any:
    try:
        return model.predict(dataset.features_data)
    except Exception as error:
        raise ModelError(
            f"The model raised {type(error).__name__}: {error}. Hint: it is called with the data "
            "without the targets."
        ) from error


def _evaluated(dataset: Any, predictions: Array, config: dict[str, Any]) -> Evaluation:
    """Evaluate rows that contain either pairs or lists."""
    for name in ("source", "test"):
        if name in config:
            raise InputError(
                f"evaluator_config must not contain {name!r}: the data take its place. Hint: leave "
                "it out; targets= and predictions= name their columns."
            )
    user, item = config.pop("user", None), config.pop("item", None)
    truth = dataset.labels_data
    if len(truth) != len(predictions):
        raise InputError(
            f"There are {len(predictions):,} predictions for {len(truth):,} rows of data. Hint: "
            "the model has to return one for each row."
        )
    frame = dataset.features_data
    if not hasattr(frame, "columns"):
        pandas = need("pandas", "The evaluator recometer", "mlflow")
        frame = pandas.DataFrame(frame, columns=dataset.feature_names)
    if not _of_lists(truth):
        frame = frame.assign(**{SCORE: predictions, RELEVANCE: truth})
        pairs = Pairs(frame, user=user, item=item, score=SCORE, relevance=RELEVANCE)
        return evaluate(pairs, **config)
    if item is not None:
        raise InputError(f"item={item!r} is not read: targets and predictions are lists of items.")
    if not _of_lists(predictions):
        raise InputError(
            "Targets are lists of items, but predictions are not. Hint: predict a list of items, "
            "best first, for each row."
        )
    column = choose_columns(frame.columns, {"user": user}, required=())["user"]
    users = list(range(len(truth)))
    if column is not None:
        users = frame[column].tolist()
        if len(ids.encode(users, f"users (column {column!r})")[1]) < len(truth):
            raise InputError(
                f"The column {column!r} has a user in several rows. Hint: lists need one row per "
                "user."
            )
    lists = Lists(dict(zip(users, predictions, strict=True)))
    return evaluate(lists, dict(zip(users, truth, strict=True)), **config)


def _of_lists(rows: Any) -> bool:
    """Return whether each row has a list of items rather than a number."""
    return len(rows) > 0 and isinstance(rows[0], list | tuple | set | np.ndarray)
