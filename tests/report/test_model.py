"""Tests of the report model, from which every format is rendered."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from results import evaluation
from shared import SHARED

import recometer as rm
from recometer.report.model import ReportModel

ITEM = "</script><script>alert(1)</script>"
MODEL = "<b>als</b> & co"


@pytest.fixture(scope="module")
def model(comparison: rm.Comparison) -> ReportModel:
    return comparison.report().model


def test_headline_names_the_winner_and_its_certainty(
    model: ReportModel, comparison: rm.Comparison
) -> None:
    headline, row = model.headline, comparison.row("ndcg@5", MODEL, "bpr")
    assert headline.winner == MODEL
    assert headline.certain is True
    ends = f"[{row.low:.4f}, {row.high:.4f}] over {row.n} users"
    assert (
        headline.verdict
        == f"{MODEL} beats bpr by {row.difference:.4f} ndcg@5 ({row.relative:.1%}) {ends}."
    )
    assert f"{row.n_worse:,} worse off." in " ".join(headline.sentences)


def test_headline_and_lists_name_the_most_harmed_user(
    model: ReportModel, comparison: rm.Comparison
) -> None:
    harmed = comparison.changes("ndcg@5", MODEL, "bpr").harmed[0]
    assert model.headline.harmed == harmed.user
    assert model.inspector is not None
    first = model.inspector.users[0]
    assert (first.id, first.kinds) == (harmed.user, ("most harmed",))
    assert first.change == harmed.difference


def test_headline_says_that_no_difference_is_shown() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(50)
    noisy = values + rng.normal(scale=0.01, size=50)
    results = {
        "one": evaluation({"ndcg@10": values.tolist()}),
        "two": evaluation({"ndcg@10": noisy.clip(0, 1).tolist()}),
    }
    headline = rm.compare(results).report().model.headline
    assert headline.certain is False
    assert "no difference between them is shown" in headline.verdict


def test_model_with_the_lowest_error_wins() -> None:
    results = {
        "good": evaluation({"rmse": [0.1, 0.2, 0.1, 0.3] * 10}),
        "bad": evaluation({"rmse": [0.9, 0.8, 0.7, 0.9] * 10}),
    }
    report_model = rm.compare(results).report().model
    assert report_model.headline.winner == "good"
    assert "Lower values of rmse are better." in report_model.headline.sentences
    assert [place.model for place in report_model.standings[0].places] == ["good", "bad"]
    (row, *_) = report_model.chart("winners").first  # type: ignore[union-attr]
    assert (row["who"], row["users"]) == ("better off", 40)


def test_standings_match_the_comparison(model: ReportModel, comparison: rm.Comparison) -> None:
    standing_of = {(standing.metric, standing.model): standing for standing in comparison.standings}
    for standings in model.standings:
        for place in standings.places:
            expected = standing_of[standings.metric, place.model]
            assert place.mean == expected.mean
            assert place.best == expected.best
    chance = model.standings[0].chance
    values = comparison.models[0].first.chance["ndcg@5"]
    assert chance == pytest.approx(np.nanmean(values))


def test_bins_of_charts_contain_all_users(model: ReportModel, comparison: rm.Comparison) -> None:
    values = model.chart("values")
    assert values is not None
    for name in model.models:
        rows = [row for row in values.rows["ndcg@5",] if row["model"] == name]
        n = np.count_nonzero(~np.isnan(comparison.users.values(comparison.model(name), "ndcg@5")))
        assert sum(row["users"] for row in rows) == n
    winners = model.chart("winners")
    assert winners is not None
    row = comparison.row("ndcg@5", MODEL, "bpr")
    counts = [
        bin_of_users["users"]
        for bin_of_users in winners.first
        if bin_of_users["pair"] == f"{MODEL} minus bpr"
    ]
    assert counts == [row.n_better, row.n_equal, row.n_worse]


def test_pareto_front_contains_the_undominated_models(model: ReportModel) -> None:
    chart = model.chart("tradeoff")
    assert chart is not None
    for rows in chart.rows.values():
        for row in rows:
            beaten = any(
                other_row["x"] >= row["x"]
                and other_row["y"] >= row["y"]
                and other_row is not row
                and (other_row["x"], other_row["y"]) != (row["x"], row["y"])
                for other_row in rows
            )
            assert row["front"] == (not beaten)


def test_groups_add_up_to_all_users(model: ReportModel, comparison: rm.Comparison) -> None:
    chart = model.chart("groups")
    assert chart is not None
    rows = [row for row in chart.rows[("ndcg@5",)] if row["model"] == "bpr"]
    values = comparison.users.values(comparison.model("bpr"), "ndcg@5")
    n = sum(row["users"] for row in rows)
    mean = sum(row["users"] * row["mean"] for row in rows) / n
    assert n == np.count_nonzero(~np.isnan(values))
    assert mean == pytest.approx(np.nanmean(values), abs=1e-5)


def test_groups_can_be_passed_by_the_caller(results: dict[str, rm.Evaluation]) -> None:
    groups = ["old" if number % 2 else "new" for number in range(60)]
    chart = rm.compare(results, metrics="hit@5").report(groups=groups).model.chart("groups")
    assert chart is not None
    assert {row["group"] for row in chart.first} == {"old", "new"}
    assert sum(row["users"] for row in chart.first if row["model"] == "bpr") <= 60


def test_popularity_curves_range_from_0_to_1(model: ReportModel) -> None:
    chart = model.chart("popularity")
    assert chart is not None
    for name in (*model.models, "training data"):
        curve = [row["share"] for row in chart.first if row["model"] == name]
        assert (curve[0], curve[-1]) == (0.0, 1.0)
        assert curve == sorted(curve)


def test_lists_agree_with_the_metrics(model: ReportModel) -> None:
    inspector = model.inspector
    assert inspector is not None
    for user in inspector.users:
        for name, lists in user.lists.items():
            hits = [entry.relevant for entry in lists.entries[:5]]
            recall = user.values[name]["recall@5"]
            if not math.isnan(recall):
                assert recall == pytest.approx(sum(hits) / user.n_relevant)
            ranks = [item.rank for item in lists.missed]
            assert all(rank is not None and rank > inspector.depth for rank in ranks)
            in_list = sum(entry.relevant for entry in lists.entries)
            assert in_list + len(ranks) == user.n_relevant
            scores = [entry.score for entry in lists.entries]
            assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    titles = {title for _, title in inspector.items.values()}
    assert f"Title of {ITEM}" in titles


def test_scored_pairs_show_every_item_of_a_user() -> None:
    frame = pl.DataFrame(
        {
            "object": [0, 0, 0, 1, 1, 1],
            "item": [5, 6, 7, 5, 6, 7],
            "relevant": [1, 0, 1, 0, 0, 1],
            "KNN": [0.9, 0.5, 0.1, 0.3, 0.2, 0.1],
            "random": [0.1, 0.2, 0.3, 0.1, 0.9, 0.5],
        }
    )
    results = {
        name: rm.evaluate(rm.Pairs(frame, user="object", score=name), metrics="recall@2")
        for name in ("KNN", "random")
    }
    inspector = rm.compare(results).report().model.inspector
    assert inspector is not None
    first = next(user for user in inspector.users if user.id == "0")
    entries = first.lists["KNN"].entries
    assert [inspector.items[entry.item][0] for entry in entries] == ["5", "6", "7"]
    assert [entry.relevant for entry in entries] == [True, False, True]
    assert [entry.score for entry in entries] == [0.9, 0.5, 0.1]
    assert first.values["KNN"]["recall@2"] == 0.5


def test_lists_of_results_from_files_come_from_sources(
    results: dict[str, rm.Evaluation], tmp_path: Any
) -> None:
    for name in ("bpr", "random"):
        results[name].save(tmp_path / f"{name}.parquet")
    loaded = rm.compare([tmp_path / "bpr.parquet", tmp_path / "random.parquet"])
    without_lists = loaded.report().model
    assert without_lists.inspector is None
    assert any("No lists for individual users" in sentence for sentence in without_lists.missing)
    inputs = results["bpr"].inputs_kept
    assert inputs is not None
    lists = {name: results[name].inputs_kept["source"] for name in ("bpr", "random")}  # type: ignore[index]
    with_lists = loaded.report(
        lists=lists, test=inputs["test"], train=inputs["train"]
    ).model.inspector
    assert with_lists is not None
    assert with_lists.models == ("bpr", "random")
    with pytest.raises(rm.InputError, match=r"requires test, which is not available.*Hint: test="):
        loaded.report(lists=lists)
    with pytest.raises(rm.UnknownNameError, match="lists= contains 'bpt', which is not a model"):
        loaded.report(lists={"bpt": lists["bpr"]})


def test_report_shows_the_requested_users(comparison: rm.Comparison) -> None:
    inspector = comparison.report(users=["user 07"], n_users=1).model.inspector
    assert inspector is not None
    assert inspector.users[0].id == "user 07"
    assert "chosen" in inspector.users[0].kinds
    with pytest.raises(rm.UnknownNameError, match="There is no user 'nobody'"):
        comparison.report(users="nobody")


def test_item_to_item_shows_titles_of_query_items() -> None:
    lists = rm.Lists({1: [2, 3], 2: [3, 1]})
    test = {1: [3], 2: [1]}
    catalogue = rm.Catalogue({"item_id": [1, 2, 3], "title": ["Heat", "Up", "Alien"]})
    result = rm.evaluate(lists, test, metrics="rr hit@1", catalogue=catalogue)
    inspector = result.report(item_to_item=True).model.inspector
    assert inspector is not None
    assert inspector.noun == "item"
    assert {user.title for user in inspector.users} == {"Heat", "Up"}


def test_report_of_a_single_model_has_no_comparison(results: dict[str, rm.Evaluation]) -> None:
    report_model = results["bpr"].report(name="bpr").model
    assert report_model.headline.certain is None
    assert report_model.headline.verdict.startswith("bpr: ")
    assert report_model.chart("winners") is None
    assert report_model.chart("leaderboard") is not None
    assert report_model.inspector is not None


def test_headline_describes_equal_models_and_undefined_metrics() -> None:
    equal_models = {name: evaluation({"rr": [1.0, 0.5, 0.25]}) for name in ("one", "two")}
    assert "one and two are level" in rm.compare(equal_models).report().model.headline.verdict
    undefined_model = evaluation({"rr": [math.nan]}).report(name="one").model
    assert undefined_model.headline.verdict == "one: rr is undefined for all users."
    single = evaluation({"rr": [1.0]}).report(name="one").model
    assert single.headline.verdict.endswith("over 1 user.")


def test_folds_of_one_model_are_drawn_as_dots() -> None:
    interactions = {user: [(user * step) % 17 for step in range(1, 9)] for user in range(1, 17)}
    folds = rm.split.folds(interactions, rm.split.KFold(3))
    result = rm.evaluate(lambda split: rm.baselines.most_popular(split.train), folds, metrics="rr")
    chart = result.report().model.chart("repeats")
    assert chart is not None
    assert [row["run"] for row in chart.first] == ["fold 0", "fold 1", "fold 2"]


def test_seeds_of_a_model_are_drawn_as_dots(results: dict[str, rm.Evaluation]) -> None:
    seeds = {"two": [results["bpr"], results["random"]], "one": results[MODEL]}
    chart = rm.compare(seeds, metrics="hit@5").report().model.chart("repeats")
    assert chart is not None
    assert [row["run"] for row in chart.first] == ["seed 1", "seed 2"]
    inspector = rm.compare(seeds, metrics="hit@5").report().model.inspector
    assert inspector is not None
    assert all(user.n_relevant > 0 for user in inspector.users if user.lists)


def test_headline_mentions_baseline_and_chance(
    results: dict[str, rm.Evaluation],
) -> None:
    # The test swaps two names, so that "bpr" has a lower mean than the baseline "random".
    names = {MODEL: MODEL, "random": "bpr", "bpr": "random"}
    renamed = {names[name]: result for name, result in results.items()}
    versus = rm.compare(renamed, baseline="random", metrics="ndcg@5 roc_auc", chance=True)
    report_model = versus.report().model
    assert [place.model for place in report_model.standings[0].places][:2] == [MODEL, "random"]
    assert f"{MODEL} beats bpr by" in report_model.headline.verdict
    row = versus.row("ndcg@5", MODEL, "random")
    size = f"{row.difference:.4f} ndcg@5 [{row.low:.4f}, {row.high:.4f}]"
    printed = " ".join(report_model.headline.sentences)
    assert f"{MODEL} is {size} above the baseline random." in printed
    assert "above a random order (chance)." in printed
    assert f"Compared with random, {MODEL} is better in roc_auc." in printed
    chart = report_model.chart("winners")
    assert chart is not None
    pairs = [f"{MODEL} minus bpr", f"{MODEL} minus random", "bpr minus random"]
    assert list(dict.fromkeys(row["pair"] for row in chart.first)) == pairs


def test_headline_says_that_no_model_beats_the_baseline(results: dict[str, rm.Evaluation]) -> None:
    report_model = rm.compare(results, baseline=MODEL, metrics="ndcg@5").report().model
    assert report_model.headline.verdict.startswith(f"{MODEL} beats bpr by")
    assert (
        f"{MODEL} is the baseline: no other model has a better mean."
        in report_model.headline.sentences
    )
    two_models = {name: results[name] for name in (MODEL, "bpr")}
    single = rm.compare(two_models, baseline="bpr", metrics="ndcg@5").report().model
    assert "beats bpr by" in single.headline.verdict
    assert not any("baseline" in sentence for sentence in single.headline.sentences)


def test_leakage_is_mentioned_first(results: dict[str, rm.Evaluation]) -> None:
    inputs = results["bpr"].inputs_kept
    assert inputs is not None
    leaking = rm.audit(inputs["test"], inputs["test"])
    report_model = results["bpr"].report(audit=leaking).model
    assert report_model.audit.leaks
    assert "leakage" in report_model.headline.sentences[0]
    assert "audit=False left it out" in results["bpr"].report(audit=False).model.audit


def test_report_contains_the_full_protocol(model: ReportModel) -> None:
    parts = {part.title: part for part in model.protocol}
    assert {"Formulas", "Rules", "All means", "Data", "Versions"} <= parts.keys()
    assert {row[0] for row in parts["Formulas"].rows} >= {"ndcg", "recall", "novelty"}
    assert "primary='ndcg@5'" in model.call
    assert "'ndcg@5 recall@1..5 hit@5 roc_auc coverage@5 novelty@5'" in model.call
    compile(model.call, "call", "exec")


def test_report_model_is_frozen_and_consists_of_plain_values(model: ReportModel) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.title = "other"  # type: ignore[misc]
    rows = [row for chart in model.charts for rows in chart.rows.values() for row in rows]
    assert rows
    json.dumps(rows, allow_nan=False)


def test_invalid_options_of_reports_are_refused(comparison: rm.Comparison) -> None:
    with pytest.raises(rm.InputError, match="n_users=0 must be a whole number"):
        comparison.report(n_users=0)
    with pytest.raises(rm.InputTypeError, match="audit= is of type str"):
        comparison.report(audit="yes")
    with pytest.raises(rm.InputError, match="audit=True needs train and test"):
        evaluation({"rr": [1.0, 0.0]}).report(audit=True)
    with pytest.raises(rm.InputError, match="groups has 2 entries"):
        comparison.report(groups=["a", "b"])


@pytest.mark.shared
def test_knowledge_recall_example_shows_its_published_values() -> None:
    """The report shows the published lists and the published recall@3 of one object."""
    frame = pl.read_parquet(SHARED / "data" / "knowledge_recall" / "example.parquet")
    columns = ["Random scores", "KNN scores"]
    pairs = {name: rm.Pairs(frame, user="object", score=name) for name in columns}
    results = {name: rm.evaluate(pairs[name], metrics="recall@3") for name in columns}
    inspector = rm.compare(results).report().model.inspector
    assert inspector is not None
    (user,) = (user for user in inspector.users if user.id == "4")
    printed_recalls = [f"{user.values[name]['recall@3']:.2%}" for name in columns]
    assert printed_recalls == ["15.38%", "23.08%"]
    for name in columns:
        rows = frame.filter(object=4).sort(name, descending=True)
        entries = user.lists[name].entries
        assert [inspector.items[entry.item][0] for entry in entries] == [*map(str, rows["item"])]
        assert [entry.relevant for entry in entries] == (rows["relevant"] == 1).to_list()
        assert [entry.score for entry in entries] == rows[name].to_list()
