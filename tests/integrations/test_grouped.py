"""Metrics for grouped rows work without the libraries that normally call them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import recometer as rm
from recometer import InputError
from recometer.integrations.lightgbm import RankingMetrics as ForLightGBM
from recometer.integrations.xgboost import RankingMetrics as ForXGBoost

SIZES = np.array([4, 0, 5, 3])
QUERY = np.repeat(np.arange(4), SIZES)
LABEL = np.array([0, 2, 1, 0, 3, 0, 0, 1, 1, 0, 0, 0])
SCORE = np.array([0.5, 0.5, 0.1, 0.9, 0.2, 0.7, 0.7, 0.1, 0.4, 0.3, 0.2, 0.1])
PAIRS = rm.Pairs.of(LABEL, SCORE, QUERY)


def lightgbm_data(weight=None, group=SIZES, **params):
    return SimpleNamespace(
        params=params,
        construct=lambda: None,
        get_label=lambda: LABEL,
        get_weight=lambda: weight,
        get_group=lambda: group,
    )


def xgboost_data(weight=(), group=SIZES):
    pointers = [] if group is None else np.append(0, np.cumsum(group))
    return SimpleNamespace(
        get_label=lambda: LABEL.astype(np.float32),
        get_weight=lambda: np.array(weight),
        get_uint_info=lambda name: np.array(pointers, np.uint32),
    )


def test_values_match_evaluate():
    names = "ndcg@3 rr mean_rank"
    for metrics, data in ((ForLightGBM, lightgbm_data()), (ForXGBoost, xgboost_data())):
        protocol = "lightgbm" if metrics is ForLightGBM else "xgboost"
        expected = rm.evaluate(PAIRS, metrics=names, protocol=protocol).mean()
        expected["recometer_ndcg@3"] = expected.pop(
            "ndcg@3"
        )  # LightGBM and XGBoost have their own ndcg@3
        assert {name: value for name, value, *_ in metrics(names)(SCORE, data)} == expected
    directions = [higher for _, _, higher in ForLightGBM(names)(SCORE, lightgbm_data())]
    assert directions == [True, True, False]


def test_rules_replace_those_of_the_convention():
    (value_of_metric,) = ForLightGBM("rr", protocol="recometer", ties="pessimistic")(
        SCORE, lightgbm_data()
    )
    assert value_of_metric == (
        "rr",
        rm.evaluate(PAIRS, metrics="rr", ties="pessimistic").mean()["rr"],
        True,
    )


def test_weights_apply_to_queries():
    of_queries = np.array([1.0, 7.0, 3.0, 2.0])
    result = rm.evaluate(PAIRS, metrics="ndcg@3", protocol="xgboost")
    expected = result.mean(of_queries[[0, 2, 3]])["ndcg@3"]
    assert ForXGBoost("ndcg@3")(SCORE, xgboost_data(of_queries))[0][1] == expected
    rows = np.array(
        [1.0] * 4 + [1.0, 5.0, 3.0, 2.0, 4.0] + [2.0] * 3
    )  # the weights of the third query's rows average 3
    assert ForLightGBM("ndcg@3")(SCORE, lightgbm_data(rows))[0][1] == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ForLightGBM()(SCORE, lightgbm_data(group=None)), r"no groups.*Hint"),
        (lambda: ForXGBoost()(SCORE, xgboost_data(group=None)), r"no groups.*Hint"),
        (lambda: ForLightGBM()(SCORE, lightgbm_data(group=[4, 5])), "9 rows, but there are 12"),
        (
            lambda: ForXGBoost()(SCORE, xgboost_data([1.0, 2.0])),
            r"shape \(2,\), but there are 4 groups",
        ),
        (lambda: ForXGBoost("ndgc@3"), "ndgc"),
        (
            lambda: ForLightGBM("rr ndcg@3")(SCORE, lightgbm_data(label_gain="0,1,5,50")),
            r"ndcg@3 uses the gains 2\^label - 1, but label_gain='0,1,5,50'.*Hint",
        ),
    ],
)
def test_mismatched_arguments_are_reported(call, message):
    with pytest.raises((InputError, rm.UnknownNameError), match=message):
        call()


def test_label_gain_is_accepted_if_it_changes_no_value():
    for metrics, table in (
        ("ndcg@3", [0, 1, 3, 7]),
        ("map@3 rr", [0, 1, 5, 50]),
        ("ndcg(label_gain=label)@3", [0, 1, 2, 3]),
    ):
        values_of_metrics = ForLightGBM(metrics)(SCORE, lightgbm_data(label_gain=table))
        assert values_of_metrics == ForLightGBM(metrics)(SCORE, lightgbm_data())
    ForLightGBM("ndcg@3", protocol="recometer")(SCORE, lightgbm_data(label_gain=[0, 1, 5, 50]))


def test_repr_shows_the_metrics_and_the_convention():
    assert repr(ForLightGBM("rr ndcg@5")) == "<RankingMetrics 'rr ndcg@5', lightgbm>"
