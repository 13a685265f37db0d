"""Models that are told apart on as many users as that takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import recometer as rm
from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.stats import ConfidenceSequence

N_USERS, N_ITEMS = 400, 40
Sources = dict[str, Any]


def models(seed: int = 0) -> tuple[NDArray[Any], Sources]:
    """Return test, and models that find it more and less well."""
    generator = np.random.default_rng(seed)
    test = generator.random((N_USERS, N_ITEMS)) < 0.08
    noise = generator.random((N_USERS, N_ITEMS))
    of = {"good": 0.8, "fair": 0.55, "bad": 0.0}
    scores = {name: noise + more * test for name, more in of.items()}
    return test, {name: rm.Scores(one) for name, one in scores.items()}


def until(text: str = "decided") -> rm.Until:
    return rm.Until(text, first=20, growth=1.5)


def test_users_are_read_until_models_are_told_apart() -> None:
    test, sources = models()
    evaluator = rm.Evaluator(test, metrics="ndcg@5 recall@5", threads=1)
    whole = rm.compare(sources, evaluator=evaluator, baseline="bad", primary="ndcg@5")
    found = rm.compare(
        sources, evaluator=evaluator, baseline="bad", primary="ndcg@5", until=until()
    )
    for row in found.rows:
        true = whole.row(row.metric, row.model).difference
        assert row.n == len(found.models[0].first) < N_USERS / 2
        assert true in row.interval
        assert row.interval.method == row.test.method == "betting"
        assert (0 not in row.interval) == (row.p_value <= 0.05)
        assert whole.row(row.metric, row.model).relative in row.relative_interval
    decisive = [row for row in found.rows if row.metric == "ndcg@5"]
    assert [row.verdict for row in decisive] == ["better", "better"]
    assert all(row.adjusted_p <= 0.05 for row in decisive)
    for model in found.models:
        place = model.first.user_ids
        np.testing.assert_array_equal(
            model.first["ndcg@5"], evaluator(sources[model.name])["ndcg@5"][place]
        )
        assert model.first.users_read is not None
        assert model.first.users_read.reached
    text = str(found)
    assert "until decided: " in text
    assert f"of {int(np.count_nonzero(test.any(axis=1)))} users were read" in text
    assert "are about the users of test, and say nothing of others" in " ".join(text.split())
    assert "Power:" not in text


def test_the_rows_are_those_of_sequences_in_the_order_of_reading() -> None:
    test, sources = models()
    evaluator = rm.Evaluator(test, metrics="ndcg@5", seed=5, threads=1)
    found = rm.compare(sources, evaluator=evaluator, until=until("ndcg@5 ± 0.1"))
    read = found.models[0].first.users_read
    assert read is not None
    alone = evaluator(sources["good"], until=rm.Until("ndcg@5 ± 0.0001", read.n_read, 100))
    assert alone.users_read is not None
    # Who is read depends on the seed alone, and so on neither the models nor the question.
    assert set(found.models[0].first.user_ids) <= set(alone.user_ids)  # type: ignore[arg-type]
    sequences = found.options.sequences
    assert sequences is not None
    for row in found.rows:
        one, other = (found.model(name).first["ndcg@5"] for name in (row.model, row.other))
        direct = ConfidenceSequence((-1, 1), 0.95, read.n_users, aim=0.1)
        direct.add((one - other)[sequences.order])
        assert tuple(row.interval) == tuple(direct.interval)
        assert row.p_value == direct.p_value()
        assert row.interval.width <= 0.2
    assert read.n_users == np.count_nonzero(test.any(axis=1))


def test_without_a_baseline_the_best_is_told_from_the_others() -> None:
    test, sources = models()
    sources = {"bad": sources["bad"], "good": sources["good"], "alike": sources["bad"]}
    found = rm.compare(
        sources, evaluator=rm.Evaluator(test, metrics="ndcg@5"), until=until(), confidence=0.9
    )
    read = found.models[0].first.users_read
    assert read is not None
    assert read.reached
    verdicts = {(row.model, row.other): row.verdict for row in found.rows}
    assert verdicts["bad", "good"] == "worse"
    assert verdicts["good", "alike"] == "better"
    # They are the same, which does not keep the best one from being found.
    assert verdicts["bad", "alike"] == "no difference shown"
    first = found.standings[0]
    assert (first.model, first.best, first.rank_low, first.rank_high) == ("good", True, 1, 1)
    assert first.interval.method == "betting"
    assert first.interval.confidence == 0.9


def test_models_that_are_equal_take_all_users() -> None:
    test, sources = models()
    two = {"one": sources["bad"], "two": sources["bad"]}
    found = rm.compare(two, evaluator=rm.Evaluator(test, metrics="ndcg@5"), until=until())
    (row,) = found.rows
    assert (row.difference, *row.interval, row.p_value) == (0, 0, 0, 1)
    assert row.verdict == "no difference shown"
    assert "users were read, so that the means are those of test" in " ".join(str(found).split())


def test_differences_that_cancel_are_none() -> None:
    """Each user who gains has one who loses as much: rounding alone does not decide."""
    generator = np.random.default_rng(2)
    noise, test = generator.random((200, N_ITEMS)), generator.random((200, N_ITEMS)) < 0.1
    one, other = noise + 0.3 * test, noise
    swapped = {"one": rm.Scores(np.r_[one, other]), "two": rm.Scores(np.r_[other, one])}
    evaluator = rm.Evaluator(np.r_[test, test], metrics="ndcg@5")
    (row,) = rm.compare(swapped, evaluator=evaluator, until=until("ndcg@5 ± 0.000001")).rows
    assert row.n_better == row.n_worse > 50
    assert abs(row.difference) < 1e-15
    assert row.p_value == 1
    assert row.verdict == "no difference shown"


def test_when_all_are_read_differences_are_exact() -> None:
    test, sources = models()
    evaluator = rm.Evaluator(test, metrics="ndcg@5")
    two = {"good": sources["good"], "fair": sources["fair"]}
    whole = rm.compare(two, evaluator=evaluator)
    found = rm.compare(two, evaluator=evaluator, until=until("ndcg@5 ± 0.000001"))
    (row,), (expected,) = found.rows, whole.rows
    assert row.difference == expected.difference
    assert tuple(row.interval) == (row.difference, row.difference)
    assert tuple(row.relative_interval) == (expected.relative, expected.relative)
    assert row.p_value == 0
    assert "Whether other users would show it" in " ".join(str(found).split())
    # And the report, the table and JSON say what was read.
    content = json.loads(found.to_json())
    assert content["users_read"]["n_read"] == content["users_read"]["n_users"]


def test_differences_are_covered_whatever_is_read() -> None:
    test, sources = models(3)
    two = {"fair": sources["fair"], "bad": sources["bad"]}
    true = rm.compare(two, evaluator=rm.Evaluator(test, metrics="rr")).rows[0].difference
    missed, wrong = 0, 0
    for seed in range(20):
        evaluator = rm.Evaluator(test, metrics="rr", seed=seed, threads=1)
        (row,) = rm.compare(two, evaluator=evaluator, until=until()).rows
        missed += true not in row.interval
        wrong += row.verdict == "worse"
    assert missed <= 3
    assert wrong == 0


def test_sources_of_any_kind_read_the_same_users() -> None:
    test, sources = models()
    best = np.argsort(-np.random.default_rng(1).random((N_USERS, N_ITEMS)), axis=1)[:, :20]
    mixed = {"scores": sources["good"], "lists": rm.Lists(best)}
    train = np.roll(test, 7, axis=1)
    evaluator = rm.Evaluator(test, train=train, metrics="ndcg@5", catalogue=N_ITEMS)
    found = rm.compare(mixed, evaluator=evaluator, until=until())
    one, two = (model.first.user_ids for model in found.models)
    np.testing.assert_array_equal(one, two)
    assert found.rows[0].verdict == "better"


def test_gates_and_reports_of_what_was_read(tmp_path: Path) -> None:
    test, sources = models()
    evaluator = rm.Evaluator(test, metrics="ndcg@5 recall@5")
    found = rm.compare(
        sources, evaluator=evaluator, baseline="bad", primary="ndcg@5", until=until()
    )
    assert found.gate("ndcg@5 >= -0.1").verdict == "passed"
    assert found.gate("ndcg@5 >= -1%").verdict == "passed"
    with pytest.raises(InputError, match="of groups nothing follows"):
        found.by(np.arange(found.users.n) % 2, "ndcg@5", "good")
    found.report(tmp_path / "report.md")
    text = " ".join((tmp_path / "report.md").read_text(encoding="utf-8").split())
    assert "users were read" in text
    assert len(found.changes("ndcg@5", "good").helped) > 0


def test_a_metric_without_a_range_is_shown_and_not_followed() -> None:
    test, sources = models()
    user, item = np.nonzero(test)
    rated = pl.DataFrame({"user": user, "item": item, "value": 1 + item % 3})
    values = rm.Interactions.of(rated, n_users=N_USERS, n_items=N_ITEMS)
    evaluator = rm.Evaluator(values, metrics="ndcg@5 dcg@5")
    found = rm.compare(sources, evaluator=evaluator, primary="ndcg@5", until=until())
    row = next(row for row in found.rows if row.metric == "dcg@5")
    assert np.isfinite(row.difference)
    assert np.isnan(row.p_value)
    assert np.isnan(row.low)
    assert row.verdict == ""
    with pytest.raises(InputError, match="no known range"):
        rm.compare(sources, evaluator=evaluator, primary="dcg@5", until=until())


def test_what_cannot_be_asked_is_refused() -> None:
    test, sources = models()
    evaluator = rm.Evaluator(test, metrics="ndcg@5 recall@5")
    results = {name: evaluator(source) for name, source in sources.items()}

    def refused(error: type[Exception] = InputError, **more: Any) -> str:
        options = {"evaluator": evaluator, "primary": "ndcg@5", "until": until(), **more}
        given = options.pop("models", sources)
        with pytest.raises(error) as found:
            rm.compare(given, **options)
        return str(found.value)

    assert "evaluator=Evaluator(test, ...), until='decided'" in refused(evaluator=None)
    assert "expected an Evaluator" in refused(InputTypeError, evaluator=test)
    assert "must be a source" in refused(InputTypeError, models=results)
    assert "at least two models" in refused(models={"one": sources["good"]})
    assert "found Scores" in refused(InputTypeError, models=sources["good"])
    assert "several: ndcg@5, recall@5" in refused(primary=None)
    assert "'rr' is not evaluated" in refused(UnknownNameError, primary="rr")
    assert "a difference may be 0" in refused(until="ndcg@5 ± 2%")
    assert "not one of the models" in refused(UnknownNameError, baseline="best")
    assert "no correction" in refused(UnknownNameError, correction="most")
    assert "leave correction= out" in refused(correction="tukey")
    assert "leave test= out" in refused(test="t")
    assert "leave interval= out" in refused(interval="bca")
    assert "leave margin= out" in refused(margin=0.1)
    assert "leave chance= out" in refused(chance=True)
    assert "leave cluster= out" in refused(cluster={0: 1})
    assert "coverage@5 is one value" in refused(
        evaluator=rm.Evaluator(test, metrics="ndcg@5 coverage@5")
    )
    assert "Hint: Evaluator(test, ...)" in refused(evaluator=rm.Evaluator(metrics="ndcg@5"))
    some = {name: evaluator(one, until=until("ndcg@5 ± 0.2")) for name, one in sources.items()}
    with pytest.raises(InputError, match="which users these are depends on what was found"):
        rm.compare(some)
