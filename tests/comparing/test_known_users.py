"""Comparisons mention the users and items that some of the models do not know."""

from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np
import pytest
from command_line import run_command

import recometer as rm
from recometer.comparing.gates import junit

ITEMS = [f"i{number}" for number in range(8)]
OLD, NEW = [f"old{number}" for number in range(40)], [f"new{number}" for number in range(60)]
TEST = {user: ["i0" if number % 2 else "i4"] for number, user in enumerate(OLD)}
TEST |= {user: ["i0"] for user in NEW}
TRAIN = {user: ["i7"] for user in OLD}


def lists(users: list[str], first: str = "i0") -> rm.Lists:
    """Return lists that begin with the item `first`; "*" stands for each user's test item."""
    return rm.Lists(
        {user: [TEST[user][0] if first == "*" else first, "i1", "i2"] for user in users}
    )


def evaluate(source: rm.Lists, **options: object) -> rm.Evaluation:
    return rm.evaluate(source, TEST, train=TRAIN, metrics="rr hit@1", **options)


def compare(**options: object) -> rm.Comparison:
    """Compare popularity, which knows all 100 users, with a perfect model that knows only 40."""
    results = {"popular": evaluate(lists(OLD + NEW)), "own": evaluate(lists(OLD, "*"))}
    with pytest.warns(rm.DataWarning, match="the order is different"):
        return rm.compare(results, **options)


SENTENCE = "60 of 100 users (60.0%) are unknown to own; none to popular."
MEANS = (
    "rr over the 40 users known to all models: own 1.0000, popular 0.5000. Over all 100 users, "
    "the order is different (popular 0.8000, own 0.4000), because the means also depend on how "
    "many users each model knows."
)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_comparison_has_means_over_users_known_to_all_models() -> None:
    assert compare().known_users == (SENTENCE, MEANS)
    hit = MEANS.replace("rr over", "hit@1 over")
    assert compare(primary="hit@1").known_users == (SENTENCE, hit)
    assert compare(primary="rr hit@1").known_users == (SENTENCE, MEANS, hit)


def test_every_table_of_the_comparison_mentions_unknown_users(tmp_path: pathlib.Path) -> None:
    comparison = compare(baseline="popular")
    for text in (str(comparison), str(comparison.full()), comparison.to_markdown()):
        assert SENTENCE.split(" are ")[1] in one_line(text)
        assert "known to all models: own 1.0000, popular 0.5000" in one_line(text)
    before, _, after = one_line(str(comparison)).partition(SENTENCE)
    assert "verdict" not in before
    assert "verdict" in after
    content = json.loads(comparison.to_json())
    assert content["known_users"] == [SENTENCE, MEANS]
    report = comparison.report(tmp_path / "report.html")
    assert {SENTENCE, MEANS} <= set(report.model.headline.sentences)


def test_gate_reports_mention_unknown_users(tmp_path: pathlib.Path) -> None:
    report = compare(baseline="popular").gate("rr >= -5%")
    assert report.verdict == "failed"
    assert str(report).startswith("Gates against popular: failed (1 failed).\n60 of 100 users")
    assert report.said[:2] == (SENTENCE, MEANS)
    assert report.to_dict()["said"] == list(report.said)
    assert SENTENCE in junit(report)
    for name, source in (("popular", lists(OLD + NEW)), ("own", lists(OLD, "*"))):
        evaluate(source).save(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("popular", "own")]
    gated = ["compare", *files, "--baseline", "popular", "--gate", "rr >= -5%"]
    result = run_command(gated)
    assert result.exit_code == 1
    assert result.stdout.startswith("Gates against popular: failed (1 failed).\n60 of 100 users")
    assert "--rule cold_start=false of recometer evaluate leaves out users" in result.stderr


def test_users_missing_from_all_models_are_mentioned_only_above_two_percent() -> None:
    for left_out, mentioned in ((2, False), (3, True)):
        known_to_both = (OLD + NEW)[left_out:]
        results = {"a": evaluate(lists(known_to_both)), "b": evaluate(lists(known_to_both, "i4"))}
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the order stays the same, so there must be no warning
            known_users = rm.compare(results).known_users
        assert bool(known_users) is mentioned
    assert known_users[0] == "3 of 100 users (3.0%) are unknown to a, b."


def test_users_unknown_to_each_model_are_counted_separately() -> None:
    all_users = OLD + NEW
    results = {"a": evaluate(lists(all_users[1:])), "b": evaluate(lists(all_users[:-1], "i4"))}
    unknown, means = rm.compare(results).known_users
    assert unknown == "1 of 100 users (1.0%) are unknown to a, b."
    assert means.startswith("rr over the 98 users known to all models: ")


@pytest.mark.parametrize("rules", [{"cold_start": False}, {"users": "known"}])
def test_unknown_users_outside_the_means_are_not_mentioned(rules: dict[str, object]) -> None:
    results = {
        "popular": evaluate(lists(OLD + NEW), **rules),
        "own": evaluate(lists(OLD, "*"), **rules),
    }
    with warnings.catch_warnings():
        # Some users have a value from only one of the models.
        warnings.simplefilter("ignore", rm.DataWarning)
        comparison = rm.compare(results)
    assert comparison.known_users == ()
    assert {row.n for row in comparison.rows} == {40}


def test_users_left_out_by_cold_start_do_not_count_as_unknown() -> None:
    with pytest.warns(rm.DataWarning, match="60 of 100 test users"):
        evaluate(lists(OLD, "*"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(lists(OLD, "*"), cold_start=False)
    with pytest.warns(rm.DataWarning, match="20 of 100 test users"):
        evaluate(lists(OLD[:20], "*"), cold_start=False)


def test_models_that_know_all_users_are_compared_without_a_note() -> None:
    results = {"a": evaluate(lists(OLD + NEW)), "b": evaluate(lists(OLD + NEW, "i4"))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = rm.compare(results)
    assert comparison.known_users == ()
    assert "unknown" not in str(comparison)


def test_unknown_users_are_reported_for_seeds_but_not_for_random_orders() -> None:
    seeds = {"popular": [evaluate(lists(OLD + NEW))] * 2, "own": [evaluate(lists(OLD, "*"))] * 2}
    with pytest.warns(rm.DataWarning, match="the order is different"):
        assert rm.compare(seeds).known_users == (SENTENCE, MEANS)
    scores = np.random.default_rng(0).random((100, 8))
    matrix = np.array([[item in TEST[user] for item in ITEMS] for user in OLD + NEW])
    randomised = rm.evaluate(rm.Scores(scores), matrix, metrics="rr", chance=True)
    assert rm.compare({"one": randomised, "two": randomised}, chance=True).known_users == ()


def test_relevant_rows_of_items_missing_from_one_model_are_counted() -> None:
    users, known_items = OLD + NEW, [item for item in ITEMS if item != "i4"]
    scores = np.random.default_rng(0).random((100, 8))
    full = rm.Scores(scores, user_ids=users, item_ids=ITEMS)
    without_an_item = rm.Scores(scores[:, :7], user_ids=users, item_ids=known_items)
    results = {"full": evaluate(full), "lacking": evaluate(without_an_item)}
    comparison = rm.compare(results, allow="candidates")
    sentence = "20 of 100 relevant test rows (20.0%) are unknown to lacking; none to full."
    assert comparison.known_users == (sentence,)
    assert sentence in one_line(str(comparison))
    assert rm.compare({"a": results["lacking"], "b": results["lacking"]}).known_users == ()


def test_unknown_users_of_saved_evaluations_are_reported(tmp_path: pathlib.Path) -> None:
    for name, source in (("popular", lists(OLD + NEW)), ("own", lists(OLD, "*"))):
        evaluate(source).save(tmp_path / f"{name}.parquet")
    with pytest.warns(rm.DataWarning, match="60 of 100 users"):
        comparison = rm.compare([tmp_path / "popular.parquet", tmp_path / "own.parquet"])
    assert comparison.known_users == (SENTENCE, MEANS)
