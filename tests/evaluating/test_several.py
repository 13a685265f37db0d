"""`evaluate` prepares the data only once for several models."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.evaluating.preparation import Preparation

RNG = np.random.default_rng(0)
TEST, TRAIN = RNG.random((40, 20)) < 0.2, RNG.random((40, 20)) < 0.1
SOURCES = {
    "scores": rm.Scores(RNG.random((40, 20))),
    "factors": rm.Factors(RNG.random((40, 3)), RNG.random((20, 3))),
    7: rm.Lists(np.argsort(RNG.random((40, 20)), axis=1)[:, :5]),
}


def test_models_evaluated_together_get_the_same_values_as_separately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"metrics": "ndcg@5 recall@5 coverage@5", "ties": "random", "catalogue": 20}
    options["train"] = TRAIN
    separate = {str(name): rm.evaluate(source, TEST, **options) for name, source in SOURCES.items()}
    preparations, original = [], Preparation.__init__
    monkeypatch.setattr(
        Preparation, "__init__", lambda *a, **o: (preparations.append(0), original(*a, **o))[1]
    )
    together = rm.evaluate(SOURCES, TEST, **options)
    assert len(preparations) == 1
    assert list(together) == ["scores", "factors", "7"]
    for name, result in together.items():
        assert result.mean() == separate[name].mean()
        assert result.inputs == separate[name].inputs
        for metric, values in result.values.items():
            np.testing.assert_array_equal(values, separate[name].values[metric])
    assert list(rm.Leaderboard(together).results) == list(together)
    comparison = rm.compare(together, baseline="7", metrics="ndcg@5")
    assert [row.model for row in comparison.rows] == ["scores", "factors"]


def test_several_sources_can_contain_their_own_labels() -> None:
    frame = pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "score": [1.0, 2, 3, 4]})
    pairs = {
        name: rm.Pairs(frame.with_columns(relevance=pl.Series(labels)))
        for name, labels in {"a": [0, 1, 0, 1], "b": [1, 0, 1, 0]}.items()
    }
    results_of_pairs = rm.evaluate(pairs, metrics="rr")
    assert {name: result.mean()["rr"] for name, result in results_of_pairs.items()} == {
        "a": 1.0,
        "b": 0.5,
    }


def test_several_models_can_be_evaluated_on_splits_and_folds() -> None:
    pairs = [(user, item) for user in range(30) for item in RNG.choice(12, 6, replace=False)]
    rows = {"user": [u for u, _ in pairs], "item": [i for _, i in pairs], "time": range(len(pairs))}
    split = rm.split(pl.DataFrame(rows), rm.split.Last(1))
    models = {"pop": rm.baselines.most_popular, "knn": rm.baselines.item_knn}
    fitted = {name: model(split.train) for name, model in models.items()}
    on_split = rm.evaluate(fitted, split, metrics="rr")
    assert on_split["pop"].mean() == rm.evaluate(fitted["pop"], split, metrics="rr").mean()
    folds = rm.split.folds(pl.DataFrame(rows), rm.split.KFold(2))
    functions = {
        name: lambda fold, model=model: model(fold.train) for name, model in models.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        on_folds = rm.evaluate(functions, folds, metrics="rr")
    assert [len(result.folds) for result in on_folds.values()] == [2, 2]


def test_warnings_mention_the_model() -> None:
    lists = rm.Lists({"a": ["x"], "b": ["y"]}), rm.Lists({"a": ["x"]})
    models = dict(zip(("good", "lacking"), lists, strict=True))
    test = {"a": ["x"], "b": ["x"]}
    with pytest.warns(rm.DataWarning, match="^lacking: 1 of 2 test users") as caught:
        rm.evaluate(models, test, metrics="hit@1")
    assert len(caught) == 1
    with pytest.warns(rm.DataWarning, match="^1 of 2 test users"):
        rm.evaluate(models["lacking"], test, metrics="hit@1")


def test_result_of_folds_is_shown_on_one_line() -> None:
    rows = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2]}
    folds = rm.split.folds(pl.DataFrame(rows), rm.split.KFold(3))
    scores = np.arange(8.0).reshape(2, 4)
    source = rm.Scores(scores, user_ids=[0, 1], item_ids=[0, 1, 2, 3])
    models = {name: [source] * 3 for name in "ab"}
    result = rm.evaluate(models, folds, metrics="rr coverage@1")
    assert repr(result["a"]) == "<Evaluation of 2 users: rr, coverage@1>"
    # Coverage has one value per fold, which must not count as a user's value.
    assert "over the 2 users with a value from every model" in " ".join(
        str(rm.compare(result)).split()
    )
