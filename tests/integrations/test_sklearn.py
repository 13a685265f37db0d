"""scikit-learn can score grouped rankings, including in cross-validation and searches."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import recometer as rm
from recometer import InputError
from recometer.integrations.sklearn import RankingScore, ranking_scorer

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

GENERATOR = np.random.default_rng(0)
QUERY = np.repeat([f"q{number}" for number in GENERATOR.permutation(40)], 8)
X = GENERATOR.normal(size=(320, 4))
Y = np.clip(np.round(X[:, 0] + GENERATOR.normal(size=320)), 0, 3)
ORDER = GENERATOR.permutation(320)  # shuffled, so the rows of a group are not adjacent
QUERY, X, Y = QUERY[ORDER], X[ORDER], Y[ORDER]


@pytest.fixture
def routing(sklearn):
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def scores_by_hand(sklearn, model, metric, response="predict", truth=Y, **rules):
    """Fit the model for each fold, and return the values that recometer computes directly."""
    values = []
    for train, test in sklearn.model_selection.GroupKFold(3).split(X, truth, QUERY):
        score = getattr(model.fit(X[train], truth[train]), response)(X[test])
        score = score[:, -1] if score.ndim == 2 else score
        pairs = rm.Pairs.of(truth[test], score, QUERY[test])
        values.append(rm.evaluate(pairs, metrics=metric, **rules).mean()[metric])
    return values


def test_cross_validation_uses_routed_groups(sklearn, routing):
    selection, model = sklearn.model_selection, sklearn.linear_model.Ridge()
    fold_scores = selection.cross_val_score(
        model,
        X,
        Y,
        cv=selection.GroupKFold(3),
        params={"groups": QUERY},
        scoring=ranking_scorer("ndcg@5"),
    )
    assert fold_scores.tolist() == scores_by_hand(sklearn, model, "ndcg@5")


def test_make_scorer_accepts_the_score(sklearn, routing):
    score = RankingScore("ndcg@5", protocol="sklearn")
    scorer = sklearn.metrics.make_scorer(score).set_score_request(groups=True)
    selection, model = sklearn.model_selection, sklearn.linear_model.Ridge()
    fold_scores = selection.cross_validate(
        model,
        X,
        Y,
        cv=selection.GroupKFold(3),
        params={"groups": QUERY},
        scoring={"ndcg": scorer},
    )["test_ndcg"]
    assert fold_scores.tolist() == scores_by_hand(sklearn, model, "ndcg@5", protocol="sklearn")


def test_each_querys_ndcg_agrees_with_sklearn(sklearn):
    score = GENERATOR.normal(size=len(Y))
    ndcg_by_query = [
        sklearn.metrics.ndcg_score([Y[query == QUERY]], [score[query == QUERY]], k=5)
        for query in np.unique(QUERY)
    ]
    ours = RankingScore("ndcg_score@5", protocol="sklearn")(Y, score, groups=QUERY)
    assert ours == pytest.approx(np.mean(ndcg_by_query), abs=1e-12)


@pytest.mark.parametrize("jobs", [1, 2])
def test_grid_search_reports_several_metrics(sklearn, routing, jobs):
    selection = sklearn.model_selection
    search = selection.GridSearchCV(
        sklearn.linear_model.Ridge(),
        {"alpha": [0.1, 1e4]},
        cv=selection.GroupKFold(3),
        scoring={"ndcg": ranking_scorer("ndcg@5"), "place": ranking_scorer("mean_rank")},
        refit="place",
        n_jobs=jobs,
    ).fit(X, Y, groups=QUERY)
    for place, alpha in enumerate([0.1, 1e4]):
        model = sklearn.linear_model.Ridge(alpha=alpha)
        for name, metric, sign in (("ndcg", "ndcg@5", 1), ("place", "mean_rank", -1)):
            mean_score = search.cv_results_[f"mean_test_{name}"][place]
            assert mean_score == pytest.approx(
                sign * np.mean(scores_by_hand(sklearn, model, metric))
            )


@pytest.mark.parametrize("routed", [False, True])
def test_groups_can_come_from_a_column(sklearn, routed):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(query=QUERY)
    selection = sklearn.model_selection
    features = sklearn.compose.ColumnTransformer([("features", "passthrough", list("abcd"))])
    model = sklearn.pipeline.make_pipeline(features, sklearn.linear_model.Ridge())
    passed = {"params": {"groups": QUERY}} if routed else {"groups": QUERY}
    scorer = ranking_scorer("ndcg@5", groups="query")
    with sklearn.config_context(enable_metadata_routing=routed):
        fold_scores = selection.cross_val_score(
            model, frame, Y, cv=selection.GroupKFold(3), scoring=scorer, **passed
        )
    assert fold_scores.tolist() == scores_by_hand(sklearn, sklearn.linear_model.Ridge(), "ndcg@5")
    with pytest.raises(InputError, match="no column 'query'"):
        scorer(model.fit(frame, Y), X, Y)


@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_classifiers_rank_by_their_confidence(sklearn, routing, method):
    scorer = ranking_scorer("rr")
    if method != "decision_function":
        scorer = sklearn.metrics.make_scorer(RankingScore("rr"), response_method=method)
        scorer = scorer.set_score_request(groups=True)
    model, selection = sklearn.linear_model.LogisticRegression(), sklearn.model_selection
    liked = (Y > 1).astype(int)
    fold_scores = selection.cross_val_score(
        model,
        X,
        liked,
        cv=selection.GroupKFold(3),
        params={"groups": QUERY},
        scoring=scorer,
    )
    assert fold_scores.tolist() == scores_by_hand(sklearn, model, "rr", method, truth=liked)


def test_missing_and_invalid_arguments_are_refused(sklearn):
    with pytest.raises(InputError, match=r"enable_metadata_routing=True.*groups=\"query\""):
        ranking_scorer("ndcg@5")
    with pytest.raises(InputError, match="needs the group of each row"):
        RankingScore("ndcg@5")(Y, Y)
    with pytest.raises(InputError, match="2 metrics were asked for"):
        RankingScore("ndcg@5,10")
    assert pickle.loads(pickle.dumps(RankingScore("rr")))(Y, Y, groups=QUERY) == 1.0
    with pytest.raises(rm.InputTypeError, match=r"ranking_scorer\(\.\.\.\) takes an estimator"):
        sklearn.model_selection.cross_val_score(
            sklearn.linear_model.Ridge(), X, Y, scoring=RankingScore("rr"), error_score="raise"
        )
    with pytest.raises(rm.InputTypeError, match="groups= is of type ndarray"):
        ranking_scorer("rr", groups=QUERY)
