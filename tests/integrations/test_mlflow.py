"""MLflow logs results to runs in a SQLite store, and calls recometer's evaluator."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import recometer as rm
from recometer import ColumnError, InputError

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

ROWS = pd.DataFrame(
    {
        "user_id": ["ann", "ann", "ann", "bob", "bob", "bob", "cat", "cat"],
        "item_id": ["film", "song", "book", "film", "game", "book", "song", "game"],
        "relevance": [1, 0, 2, 0, 1, 0, 1, 0],
        "score": [0.5, 0.9, 0.1, 0.2, 0.8, 0.3, 0.1, 0.4],
    }
)
METRICS = "ndcg@2 rr roc_auc"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Create a database for all tests in this file, since creating a database takes seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


@pytest.fixture
def store(mlflow, database, tmp_path):
    """Create an experiment in the store; return a client for the store."""
    mlflow.set_tracking_uri(database)
    place = (tmp_path / "artifacts").as_uri()
    experiment = mlflow.create_experiment(str(tmp_path), artifact_location=place)
    mlflow.set_experiment(experiment_id=experiment)
    yield mlflow.MlflowClient()
    mlflow.end_run()


@pytest.fixture
def result():
    return rm.evaluate(rm.Pairs(ROWS), metrics=METRICS)


def test_logged_result_can_be_read_back(mlflow, store, result, tmp_path):
    with mlflow.start_run() as run:
        result.log_mlflow()
    data = store.get_run(run.info.run_id).data
    assert data.metrics == result.flat()
    assert data.metrics["ndcg_at_2"] == result.mean()["ndcg@2"]
    assert data.tags["recometer.protocol"] == result.protocol.describe()
    path = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="recometer/evaluation.parquet", dst_path=str(tmp_path)
    )
    np.testing.assert_array_equal(rm.load(path)["rr"], result["rr"])


def test_epochs_are_logged_as_steps_without_artifacts(mlflow, store, result):
    with mlflow.start_run() as run:
        for epoch in range(3):
            result.log_mlflow(prefix="valid/", step=epoch)
    history = store.get_metric_history(run.info.run_id, "valid/ndcg_at_2")
    assert [(logged.step, logged.value) for logged in history] == [
        (epoch, result.mean()["ndcg@2"]) for epoch in range(3)
    ]
    assert store.list_artifacts(run.info.run_id) == []


def test_result_can_be_logged_to_another_run(mlflow, store, result):
    with mlflow.start_run() as other_run:
        pass
    with mlflow.start_run() as active:
        result.log_mlflow(run_id=other_run.info.run_id, artifact=False)
    assert store.get_run(other_run.info.run_id).data.metrics == result.flat()
    assert store.get_run(active.info.run_id).data.metrics == {}


def test_logging_without_a_run_starts_one(mlflow, store, result):
    result.log_mlflow(artifact=False)
    assert store.get_run(mlflow.active_run().info.run_id).data.metrics == result.flat()


def test_undefined_values_are_logged_as_nan(mlflow, store):
    one_kind = ROWS.assign(relevance=1)
    with mlflow.start_run() as run, pytest.warns(rm.DataWarning):
        rm.evaluate(rm.Pairs(one_kind), metrics="roc_auc").log_mlflow()
    assert math.isnan(store.get_run(run.info.run_id).data.metrics["roc_auc"])


def test_values_are_logged_in_several_requests_if_necessary(mlflow, store, result):
    scores = np.random.default_rng(0).random((4, 300))
    result_of_many_cutoffs = rm.evaluate(rm.Scores(scores), scores > 0.5, metrics="ndcg@1..250")
    with mlflow.start_run() as run:
        result_of_many_cutoffs.log_mlflow(artifact=False)
    assert len(store.get_run(run.info.run_id).data.metrics) == 1250


def test_comparison_and_leaderboard_are_logged(mlflow, store, result):
    other_result = rm.evaluate(rm.Pairs(ROWS.assign(score=ROWS["relevance"])), metrics=METRICS)
    models = {"als": result, "best": other_result}
    versus = rm.compare(models, baseline="als", allow="test")
    with mlflow.start_run() as run:
        versus.log_mlflow()
    data = store.get_run(run.info.run_id).data
    assert set(data.metrics) == set(versus.flat())
    difference = versus.row("rr", "best", "als").difference
    assert data.metrics["rr_of_best_versus_als"] == difference
    (saved,) = store.list_artifacts(run.info.run_id, "recometer")
    assert saved.path == "recometer/comparison.json"
    with mlflow.start_run() as run:
        rm.Leaderboard(models).log_mlflow(prefix="all/")
    data = store.get_run(run.info.run_id).data
    assert data.metrics["all/rr_of_best"] == other_result.mean()["rr"]
    saved = [artifact.path for artifact in store.list_artifacts(run.info.run_id, "recometer")]
    assert saved == ["recometer/all_als.parquet", "recometer/all_best.parquet"]


def test_every_metric_has_a_valid_mlflow_name(mlflow, store):
    names = "ndcg@2 rbp(p=0.95) f@2(beta=0.5,empty=undefined) rr@2(all) dcg(gain=exponential)"
    result_of_all_metrics = rm.evaluate(rm.Pairs(ROWS), metrics=names)
    # MLflow rejects names with an @, such as ndcg@2.
    with pytest.raises(mlflow.exceptions.MlflowException, match="Invalid"):
        mlflow.log_metrics(result_of_all_metrics.mean())
    with mlflow.start_run(nested=True) as run:
        result_of_all_metrics.log_mlflow(artifact=False)
    assert store.get_run(run.info.run_id).data.metrics.keys() == result_of_all_metrics.flat().keys()


def test_mlflow_evaluates_scored_pairs(mlflow, store, result):
    with mlflow.start_run() as run:
        mlflow_result = mlflow.models.evaluate(
            data=ROWS,
            targets="relevance",
            predictions="score",
            model_type="ranker",
            evaluators="recometer",
            evaluator_config={"metrics": METRICS},
        )
    assert mlflow_result.metrics == result.flat()
    assert store.get_run(run.info.run_id).data.metrics == result.flat()
    assert store.list_artifacts(run.info.run_id, "recometer")[0].path.endswith("evaluation.parquet")


def test_mlflow_evaluates_a_model_of_pairs(mlflow, store, result):
    scores = {(row.user_id, row.item_id): row.score for row in ROWS.itertuples()}

    def model(frame):
        return [scores[row.user_id, row.item_id] for row in frame.itertuples()]

    with mlflow.start_run():
        mlflow_result = mlflow.models.evaluate(
            model,
            ROWS.drop(columns="score"),
            targets="relevance",
            model_type="ranker",
            evaluators="recometer",
            evaluator_config={"metrics": METRICS},
        )
    assert mlflow_result.metrics == result.flat()


LISTS = pd.DataFrame(
    {
        "user": ["ann", "bob"],
        "relevant": [["film", "song"], ["game"]],
        "listed": [["film", "game"], ["song", "game"]],
    }
)


@pytest.mark.parametrize("user", [["ann", "bob"], None])
def test_mlflow_evaluates_lists_of_items(mlflow, store, user):
    data = LISTS if user else LISTS.drop(columns="user").assign(question=["a", "b"])
    with mlflow.start_run():
        mlflow_result = mlflow.models.evaluate(
            data=data,
            targets="relevant",
            predictions="listed",
            model_type="recommender",
            evaluator_config={"metrics": "recall@2 rr", "catalogue": 10},
        )
    expected = rm.evaluate(
        rm.Lists(dict(enumerate(LISTS["listed"]))),
        dict(enumerate(LISTS["relevant"])),
        metrics="recall@2 rr",
        catalogue=10,
    )
    assert mlflow_result.metrics == expected.flat()


def test_mlflow_retriever_is_skipped_unless_metrics_are_named(mlflow, store):
    arguments = {
        "data": LISTS,
        "targets": "relevant",
        "predictions": "listed",
        "model_type": "retriever",
    }
    with mlflow.start_run():
        default_result = mlflow.models.evaluate(**arguments, evaluators="default")
        named_result = mlflow.models.evaluate(
            **arguments,
            evaluators=["default", "recometer"],
            evaluator_config={"recometer": {"metrics": "precision@3"}},
        )
        result_of_all = mlflow.models.evaluate(**arguments)
    assert default_result.metrics.keys() == result_of_all.metrics.keys()
    assert named_result.metrics.keys() > default_result.metrics.keys()
    assert "precision_at_3" in named_result.metrics


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"targets": None}, InputError, "targets= names their column"),
        ({"predictions": None}, InputError, "neither a model nor a prediction"),
        ({"config": {"user": "nobody"}}, ColumnError, "nobody"),
        ({"config": {"metrcs": "rr"}}, rm.UnknownNameError, "metrcs"),
        ({"extra_metrics": ["mse"]}, InputError, "extra_metrics"),
        ({"model": lambda frame: [0.5]}, InputError, "1 predictions for 8 rows"),
        (
            {"model": lambda frame: frame[["user_id", "item_id"]]},
            InputError,
            "'user_id', 'item_id'",
        ),
    ],
)
def test_error_about_mismatched_columns_names_them(mlflow, store, changes, error, message):
    config = {"metrics": METRICS} | changes.pop("config", {}) if "config" in changes else {}
    if changes.get("extra_metrics"):
        changes["extra_metrics"] = [mlflow.metrics.mse()]
    arguments = {"targets": "relevance", "predictions": "score", "model": None} | changes
    if arguments["model"] is not None:
        arguments["predictions"] = None
    with mlflow.start_run(), pytest.raises(error, match=message):
        mlflow.models.evaluate(
            data=ROWS,
            model_type="ranker",
            evaluators="recometer",
            evaluator_config=config,
            **arguments,
        )


def test_columns_that_mix_lists_and_numbers_are_refused(mlflow, store):
    repeated_lists = pd.concat([LISTS, LISTS])
    cases = [
        (LISTS.assign(listed=[1.0, 2.0]), {}, "but predictions are not"),
        (repeated_lists, {}, "a user in several rows"),
        (LISTS, {"item": "user"}, "item='user' is not read"),
        (
            LISTS,
            {"source": 1},
            "evaluator_config must not contain 'source': the data take its place",
        ),
        (LISTS.assign(listed=[["film"], "song"]), {}, "The list of user .* is of type str"),
        (LISTS.assign(relevant=[["film"], "song"]), {}, "The items of user .* are of type str"),
        (LISTS.assign(user=[["ann"], ["bob"]]), {"user": "user"}, "of type list .* cannot be"),
    ]
    for data, config, message in cases:
        refused = pytest.raises((InputError, rm.InputTypeError), match=message)
        with mlflow.start_run(), refused:
            mlflow.models.evaluate(
                data=data,
                targets="relevant",
                predictions="listed",
                model_type="recommender",
                evaluators="recometer",
                evaluator_config=config,
            )


def test_results_saved_by_mlflow_contain_the_same_values(mlflow, store, result, tmp_path):
    with mlflow.start_run():
        mlflow_result = mlflow.models.evaluate(
            data=ROWS,
            targets="relevance",
            predictions="score",
            model_type="ranker",
            evaluators="recometer",
            evaluator_config={"metrics": METRICS},
        )
    mlflow_result.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "metrics.json").read_text()) == result.flat()


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda data: 1 / 0, rm.ModelError, "The model raised ZeroDivisionError"),
        (lambda data: None, rm.InputTypeError, "The model returned None, expected a prediction"),
        (lambda data: "abc", rm.InputTypeError, "The model returned 'abc'"),
        (lambda data: {"score": 1}, rm.InputTypeError, "The model returned {'score': 1}"),
        (lambda data: [0.5], InputError, "There are 1 predictions for 8 rows"),
    ],
)
def test_return_values_of_models_are_checked(mlflow, store, model, error, message):
    with mlflow.start_run(), pytest.raises(error, match=message):
        mlflow.models.evaluate(
            model=model,
            data=ROWS,
            targets="relevance",
            model_type="ranker",
            evaluators="recometer",
            evaluator_config={"metrics": METRICS},
        )


def test_models_with_similar_names_get_separate_files(mlflow, store, result):
    with mlflow.start_run() as run:
        rm.Leaderboard(
            {"als 1": result, "als_1": result, "ALS-1": result, "b": result}
        ).log_mlflow()
    files = {artifact.path for artifact in store.list_artifacts(run.info.run_id, "recometer")}
    assert files == {f"recometer/{name}.parquet" for name in ("als_1", "als_1_2", "ALS_1_3", "b")}


def test_wrong_arguments_log_nothing(mlflow, store, result):
    wrong = ({"prefix": None}, {"step": 1.5}, {"artifact": "yes"}, {"run_id": 3}, {"model_id": 3})
    with mlflow.start_run() as run:
        for options in wrong:
            with pytest.raises((InputError, rm.InputTypeError), match=next(iter(options))):
                result.log_mlflow(**options)
    assert store.get_run(run.info.run_id).data.metrics == {}
