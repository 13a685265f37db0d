"""LightGBM and XGBoost train with recometer's metrics, which match the libraries' own metrics."""

from __future__ import annotations

import numpy as np
import pytest

import recometer as rm
from recometer import InputError, UnknownNameError
from recometer.integrations.lightgbm import RankingMetrics as ForLightGBM
from recometer.integrations.xgboost import RankingMetrics as ForXGBoost

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

GENERATOR = np.random.default_rng(5)
SIZES = GENERATOR.integers(3, 15, 60)
QUERY = np.repeat(np.arange(len(SIZES)), SIZES)
FEATURES = GENERATOR.normal(size=(len(QUERY), 5))
LABEL = np.clip(np.round(FEATURES[:, 0] + GENERATOR.normal(0, 1, len(QUERY))), 0, 3).astype(int)
LABEL[QUERY == 3] = 0  # this query has no relevant document
WEIGHT = GENERATOR.integers(1, 5, len(SIZES)).astype(float)
# In their averages, LightGBM and XGBoost give queries without a relevant document a weight of 1.
WEIGHT[np.bincount(QUERY, LABEL) == 0] = 1
LIGHTGBM = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "seed": 0}
XGBOOST = {"objective": "rank:ndcg", "nthread": 1, "seed": 0}


def dataset(lightgbm, weight=None, **options):
    rows = None if weight is None else np.repeat(weight, SIZES)
    return lightgbm.Dataset(
        FEATURES, LABEL, group=SIZES, weight=rows, free_raw_data=False, **options
    )


def matrix(xgboost, weight=None):
    data = xgboost.DMatrix(FEATURES, label=LABEL)
    data.set_group(SIZES)
    if weight is not None:
        data.set_weight(weight)
    return data


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_values_match_lightgbm(lightgbm, weight):
    metrics = ForLightGBM("ndcg@3,5 map@3,5 rr@5")
    recorded = {}
    data = dataset(lightgbm, weight)
    lightgbm.train(
        LIGHTGBM | {"metric": ["ndcg", "map"], "eval_at": [3, 5]},
        data,
        num_boost_round=5,
        valid_sets=[data],
        valid_names=["valid"],
        feval=metrics,
        callbacks=[lightgbm.record_evaluation(recorded)],
    )
    for name in ("ndcg@3", "ndcg@5", "map@3", "map@5"):
        ours = recorded["valid"][f"recometer_{name}"]
        assert ours == pytest.approx(recorded["valid"][name], abs=1e-12)
    assert len(set(recorded["valid"]["rr@5"])) > 1
    assert all(higher for _, _, higher in metrics(np.ones(len(LABEL)), data))


def test_lightgbm_stops_early_by_recometers_metric(lightgbm):
    recorded = {}
    booster = lightgbm.train(
        LIGHTGBM | {"metric": "None"},
        dataset(lightgbm),
        num_boost_round=200,
        valid_sets=[dataset(lightgbm)],
        feval=ForLightGBM("rr@10", protocol="recometer"),
        callbacks=[lightgbm.early_stopping(3), lightgbm.record_evaluation(recorded)],
    )
    values = recorded["valid_0"]["rr@10"]
    assert booster.best_iteration == int(np.argmax(values)) + 1 < 200


def test_lightgbm_cross_validates_with_recometers_metric(lightgbm):
    history = lightgbm.cv(
        LIGHTGBM | {"metric": "ndcg", "eval_at": [5]},
        dataset(lightgbm),
        num_boost_round=3,
        nfold=3,
        stratified=False,
        feval=ForLightGBM("ndcg@5"),
    )
    ours, theirs = history["valid recometer_ndcg@5-mean"], history["valid ndcg@5-mean"]
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_lightgbm_ranker_reports_the_same_values_as_evaluate(lightgbm, weight):
    rows = None if weight is None else np.repeat(weight, SIZES)
    model = lightgbm.LGBMRanker(n_estimators=4, n_jobs=1, verbose=-1)
    model.fit(
        FEATURES,
        LABEL,
        group=SIZES,
        eval_X=FEATURES.copy(),
        eval_y=LABEL,
        eval_group=[SIZES],
        eval_sample_weight=None if rows is None else [rows],
        eval_at=[5],
        eval_metric=ForLightGBM("hit@1 map@5", ties="pessimistic").of_ranker,
    )
    values = model.evals_result_["valid_0"]
    pairs = rm.Pairs.of(LABEL, model.predict(FEATURES), QUERY)
    expected = rm.evaluate(
        pairs, metrics="hit@1 map@5", protocol="lightgbm", ties="pessimistic"
    ).mean(weight)
    names_in_library = {"hit@1": "hit@1", "map@5": "recometer_map@5"}
    assert [values[names_in_library[name]][-1] for name in expected] == pytest.approx(
        list(expected.values())
    )


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_values_match_xgboost(xgboost, weight):
    names = ["ndcg@3", "ndcg@5", "ndcg@5-"]
    metrics, recorded = ForXGBoost(f"{' '.join(names)} rr@5"), {}
    data = matrix(xgboost, weight)
    xgboost.train(
        XGBOOST | {"eval_metric": names},
        data,
        num_boost_round=5,
        evals=[(data, "valid")],
        custom_metric=metrics,
        evals_result=recorded,
        verbose_eval=False,
    )
    for name in names:
        ours = recorded["valid"][f"recometer_{name}"]
        assert ours == pytest.approx(recorded["valid"][name], abs=1e-6)
    assert len(set(recorded["valid"]["rr@5"])) > 1


def test_xgboost_ranker_reports_the_same_values_as_evaluate(xgboost):
    metrics = ForXGBoost("hit@1", ties="pessimistic", threads=1)
    model = xgboost.XGBRanker(n_estimators=3, n_jobs=1, eval_metric=metrics)
    fit_options = {"eval_set": [(FEATURES, LABEL)], "eval_group": [SIZES], "verbose": False}
    model.fit(FEATURES, LABEL, group=SIZES, **fit_options)
    pairs = rm.Pairs.of(LABEL, model.predict(FEATURES), QUERY)
    result = rm.evaluate(pairs, metrics="hit@1", protocol="xgboost", ties="pessimistic")
    values = model.evals_result()["validation_0"]["hit@1"]
    assert values[-1] == pytest.approx(result.mean(SIZES)["hit@1"], abs=1e-6)
    with pytest.raises(InputError, match="there are 2"):
        ForXGBoost("hit@1 rr")(LABEL, FEATURES[:, 0])


def test_xgboost_stops_early_in_the_right_direction(xgboost):
    metrics, recorded = ForXGBoost("hit@1 rr@10 mean_rank", protocol="recometer"), {}
    data = matrix(xgboost)
    booster = xgboost.train(
        XGBOOST | {"disable_default_eval_metric": True},
        data,
        num_boost_round=60,
        evals=[(data, "valid")],
        custom_metric=metrics,
        callbacks=[metrics.early_stopping(4, "rr@10")],
        evals_result=recorded,
        verbose_eval=False,
    )
    assert booster.best_iteration == int(np.argmax(recorded["valid"]["rr@10"])) < 60
    assert metrics.early_stopping(4).maximize is True
    assert metrics.early_stopping(4, "mean_rank", save_best=True).maximize is False
    with pytest.raises(UnknownNameError, match="rr@10"):
        metrics.early_stopping(4, "rr@11")


def test_xgboost_cross_validates_with_recometers_metric(xgboost):
    data = xgboost.DMatrix(FEATURES, label=LABEL, qid=QUERY)
    history = xgboost.cv(
        XGBOOST | {"eval_metric": "ndcg@5"},
        data,
        num_boost_round=3,
        nfold=3,
        custom_metric=ForXGBoost("ndcg@5"),
        as_pandas=True,
    )
    ours, theirs = history["test-recometer_ndcg@5-mean"], history["test-ndcg@5-mean"]
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)


def test_data_without_groups_is_rejected(lightgbm, xgboost):
    data = lightgbm.Dataset(FEATURES, LABEL, free_raw_data=False).construct()
    with pytest.raises(InputError, match=r"no groups.*Hint"):
        ForLightGBM("ndcg@5")(LABEL, data)
    with pytest.raises(InputError, match=r"no groups.*Hint"):
        ForXGBoost("ndcg@5")(LABEL, xgboost.DMatrix(FEATURES, label=LABEL))


def test_early_stopping_refuses_unsuitable_options(xgboost):
    for option in ("maximize", "metric_name", "nosuch"):
        with pytest.raises(rm.InputError, match=f"{option}= is not an option here"):
            ForXGBoost("rr").early_stopping(3, **{option: True})
    ForXGBoost("rr").early_stopping(3, save_best=True)


def test_metric_accepts_a_data_set_that_is_not_constructed_yet(lightgbm):
    data = lightgbm.Dataset(np.eye(2), [1, 0], group=[2], params={"verbosity": -1})
    assert ForLightGBM("rr")([0.5, 0.2], data) == [("rr", 1.0, True)]
