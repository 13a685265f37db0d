"""MLflow: results in its runs, and an evaluator for ``mlflow.models.evaluate``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.comparing.result import Comparison
from recometer.data import ids
from recometer.data.columns import choose_columns
from recometer.data.frames import in_numpy
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError, ModelError, brief, need
from recometer.evaluation import evaluate
from recometer.results.evaluation import Evaluation
from recometer.results.flat import Tracked
from recometer.results.leaderboard import Leaderboard
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs
from recometer.stats.checks import check_whole
from recometer.version import __version__

FOLDER = "recometer"
"""The folder of the artifacts in a run."""
# What `mlflow.models.evaluate` may call what recommends; of the last, MLflow has metrics itself.
MODEL_TYPES = ("recommender", "ranker", "retriever")
LARGEST_STEP = 2**63 - 1
SCORE, RELEVANCE = "recometer: score", "recometer: relevance"


def log(
    result: Tracked,
    *,
    prefix: str = "",
    step: int | None = None,
    run_id: str | None = None,
    model_id: str | None = None,
    artifact: bool | None = None,
) -> None:
    """Log a result; see `recometer.Evaluation.log_mlflow`."""
    if not isinstance(result, Tracked):
        raise InputTypeError(
            f"What is logged is of type {type(result).__name__}, expected a result. Hint: what "
            "rm.evaluate or rm.compare returned."
        )
    for name, given in (("prefix", prefix), ("run_id", run_id), ("model_id", model_id)):
        if not isinstance(given, str) and (given is not None or name == "prefix"):
            raise InputTypeError(
                f'{name}={brief(given)} must be a text. Hint: for instance "valid".'
            )
    if step is not None:
        check_whole("step", step, -LARGEST_STEP)
        if step > LARGEST_STEP:
            raise InputError(f"step={brief(step)} must be below 2^63, as MLflow stores it.")
    if not isinstance(artifact, bool | None):
        raise InputTypeError(f"artifact={brief(artifact)} must be True, False or None.")
    mlflow = need("mlflow", "log_mlflow", "mlflow")
    values = {f"{prefix}{name}": float(value) for name, value in result.flat().items()}
    if run_id is None:  # as MLflow does: the run that is active, or a new one
        run_id = (mlflow.active_run() or mlflow.start_run()).info.run_id
    mlflow.log_metrics(values, step=step, run_id=run_id, model_id=model_id)
    client = mlflow.MlflowClient()
    for name, value in _tags(result).items():
        client.set_tag(run_id, name, value)
    if artifact or (artifact is None and step is None):
        with tempfile.TemporaryDirectory() as folder:
            _save(result, folder, prefix)
            client.log_artifacts(run_id, folder, FOLDER)


def _tags(result: Tracked) -> dict[str, str]:
    """Return a short text of what the numbers depend on."""
    tags = {"recometer.version": __version__}
    if isinstance(result, Evaluation):
        tags["recometer.protocol"] = result.protocol.describe()
        for name in ("source", "test", "train"):
            if name in result.inputs:
                tags[f"recometer.{name}"] = result.inputs[name]["description"]
    return tags


def _save(result: Tracked, folder: str, prefix: str) -> None:
    """Write all of a result to files, from which it can be had again."""
    if isinstance(result, Evaluation):
        result.save(os.path.join(folder, f"{_safe(prefix)}evaluation.parquet"))
    elif isinstance(result, Comparison):
        result.to_json(os.path.join(folder, f"{_safe(prefix)}comparison.json"))
    elif isinstance(result, Leaderboard):
        taken: set[str] = set()  # some file systems do not tell "ALS" from "als"
        for model, one in result.results.items():
            first = name = _safe(prefix + model)
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{first}_{number}"
            taken.add(name.lower())
            one.save(os.path.join(folder, f"{name}.parquet"))


def _safe(text: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in text)


class RecometerEvaluator:
    """The evaluator of ``mlflow.models.evaluate(..., evaluators="recometer")``.

    The data have either a row per pair of a user and an item, with relevance as targets and scores
    as predictions; or a row per user, with lists of items, best first, as both.
    ``evaluator_config`` takes arguments of `recometer.evaluate` by name, such as ``metrics`` and
    ``train``, and ``user`` and ``item``, the columns of ids. Metrics are logged under the names of
    `Evaluation.flat`, and the evaluation is logged as an artifact.

    MLflow finds it by its entry point, and uses it by default for the model types recommender and
    ranker.
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: str | None, evaluator_config: Mapping[str, Any] | None, **_: Any
    ) -> bool:
        """Return whether models of a type are evaluated."""
        if model_type == "retriever":  # unless it is asked for, MLflow's own metrics are meant
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
        """Evaluate, log, and return an ``mlflow.models.EvaluationResult``.

        Raises
        ------
        InputError
            If there are no targets, there are extra metrics, or data do not fit.
        InputTypeError
            If the model returns something other than a prediction for each row.
        ModelError
            If the model raises an exception.
        ColumnError
            If a column of users or items does not exist.
        """
        for name, given in (
            ("extra_metrics", extra_metrics),
            ("custom_artifacts", custom_artifacts),
        ):
            if given:
                raise InputError(
                    f"The evaluator recometer computes only its own metrics, not {name}. Hint: "
                    'evaluators=["default", "recometer"] runs both.'
                )
        if dataset.labels_data is None:
            raise InputError(
                "The evaluator recometer needs what is relevant. Hint: targets= names its column."
            )
        config = dict(evaluator_config or {})
        found = _evaluated(dataset, _predictions(model, dataset, predictions), config)
        log(found, run_id=run_id, model_id=model_id)
        models = need("mlflow.models", "The evaluator recometer", "mlflow", "mlflow")
        return models.EvaluationResult(metrics=found.flat(), artifacts={}, run_id=run_id)


def _predictions(model: Any, dataset: Any, column: str | None) -> Array:
    """Return a prediction for each row: the model's, or the one given with the data."""
    found = dataset.predictions_data if model is None else _predicted(model, dataset)
    if found is None and model is None:
        raise InputError(
            "There is neither a model nor a prediction. Hint: predictions= names their column."
        )
    if hasattr(found, "columns"):  # a pandas frame
        names = list(found.columns)
        if column is None and len(names) == 1:
            column = names[0]
        if column not in names:
            raise InputError(
                f"The model returns the columns {', '.join(map(repr, names))}. Hint: predictions= "
                "names that of scores, or of lists."
            )
        found = found[column]
    found = in_numpy(found, "The predictions")
    if isinstance(found, str | bytes | Mapping) or not hasattr(found, "__len__"):
        raise InputTypeError(
            f"The model returned {brief(found)}, expected a prediction for each row of data. Hint: "
            "a list, an array or a column of scores, or of lists of items."
        )
    if not hasattr(found, "to_numpy") and _of_lists(found):
        return _objects(found)
    array = as_array(found, "The predictions")
    # One column is a score for each row, as many models return it.
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
    """Evaluate rows of pairs, or of lists."""
    for name in ("source", "test"):
        if name in config:
            raise InputError(
                f"evaluator_config has {name!r}, which the data are. Hint: leave it out; targets= "
                "and predictions= name their columns."
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
                f"The column {column!r} has a user in several rows. Hint: lists have a row per "
                "user."
            )
    lists = Lists(dict(zip(users, predictions, strict=True)))
    return evaluate(lists, dict(zip(users, truth, strict=True)), **config)


def _of_lists(rows: Any) -> bool:
    """Return whether rows are lists of items, and no numbers."""
    return len(rows) > 0 and isinstance(rows[0], list | tuple | set | np.ndarray)


def _objects(rows: Any) -> Array:
    found = np.empty(len(rows), dtype=object)
    found[:] = list(rows)
    return found
