"""Tests of leaderboards, which show several models in one table."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from results import evaluation

import recometer as rm


def board(**options: Any) -> rm.Leaderboard:
    """Return a leaderboard in which "one" has the best ndcg@10, and "two" the best rr."""
    return rm.Leaderboard(
        {
            "one": evaluation({"rr": [0.5, 0.5], "ndcg@10": [0.9, 0.7]}),
            "two": evaluation({"rr": [1.0, 0.5], "ndcg@10": [0.25, 0.25]}),
            "none": evaluation({"rr": [math.nan, math.nan], "ndcg@10": [0.0, 0.5]}),
        },
        **options,
    )


def test_models_are_sorted_by_the_first_metric_with_undefined_last() -> None:
    lines = str(board()).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["model", "two", "one", "none"]
    assert lines[3].split()[1] == "undefined"
    assert board().table().best == {(0, 1), (1, 2)}


def test_model_with_the_smallest_error_comes_first() -> None:
    results = {name: evaluation({"rmse": [value]}) for name, value in (("a", 2.0), ("b", 1.0))}
    assert list(rm.Leaderboard(results).rows) == ["b", "a"]


def test_seconds_are_shown_in_columns() -> None:
    table = board(seconds={"one": {"fit": 1.5}, "two": {"fit": 2.0, "load": 0.125}}).table()
    assert table.headers[-2:] == ["fit", "load"]
    assert [line[-2:] for line in table.cells()] == [["2.00 s", "0.12 s"], ["1.50 s", ""], ["", ""]]


def test_chance_is_shown_on_one_line_or_one_per_model() -> None:
    rng = np.random.default_rng(0)
    test = rng.random((40, 12)) < 0.3
    sources = {name: rm.Scores(rng.random((40, 12))) for name in ("a", "b")}

    def evaluate(name: str, **options: Any) -> rm.Evaluation:
        return rm.evaluate(sources[name], test, metrics="hit@3 rr", **options)

    results = {name: evaluate(name, chance=True) for name in sources}
    table = rm.Leaderboard(results).table()
    expected = [f"{row.chance:.4f}" for row in results["a"].summary()]
    assert table.cells()[2] == ["(chance)", *expected, "", ""]
    assert {line for line, _ in table.best} <= {0, 1}
    assert "chance: the exact mean over all orders" in str(rm.Leaderboard(results))
    fewer_candidates = rm.Leaderboard(
        results | {"b": evaluate("b", chance=True, candidates=[*range(6)])}
    )
    models = {line[0]: line[1] for line in fewer_candidates.table().cells()}
    assert models["(chance, a)"] == expected[0] != models["(chance, b)"]
    without_chance = rm.Leaderboard({name: evaluate(name) for name in sources})
    assert "chance" not in str(without_chance)
    assert len(without_chance.table().cells()) == 2


def test_metrics_beyond_the_width_are_shown_in_another_table() -> None:
    values = {f"ndcg@{k}": [0.25, 0.5] for k in range(1, 15)}
    wide_board = rm.Leaderboard({"one": evaluation(values), "two": evaluation(values)})
    lines = str(wide_board).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("model") for line in lines) > 1
    assert len(wide_board.tables()) == 1
    assert wide_board.to_markdown().count("| model |") == 1


def test_skipped_users_of_each_model_are_reported() -> None:
    text = " ".join(str(board()).split())
    assert "Skipped 2 of 2 users: no relevant item to find (none: rr)." in text


def test_notes_explain_intervals_of_metrics_over_all_users() -> None:
    test, lists = {1: [1], 2: [2]}, {1: [1, 2], 2: [2, 1]}
    results = {
        name: rm.evaluate(rm.Lists(lists), test, metrics="rr coverage@1", catalogue=3)
        for name in ("one", "two")
    }
    text = " ".join(str(rm.Leaderboard(results)).split())
    assert (
        "Mean over the counted users, or one value for all users (coverage@1); ± is the longer "
        "arm of the 95% interval." in text
    )
    assert "by resampling users (coverage@1)" in text
    only_coverage = {
        name: rm.evaluate(rm.Lists(lists), test, metrics="coverage@1", catalogue=3)
        for name in ("one", "two")
    }
    assert "Gaffke" not in str(rm.Leaderboard(only_coverage))


def test_single_model_is_shown_like_its_evaluation() -> None:
    result = evaluation({"rr": [0.5, 0.5]})
    assert str(rm.Leaderboard({"one": result})) == str(result)


def test_values_of_users_are_shown_in_every_format() -> None:
    table = board(with_users=True)
    assert table.to_csv().splitlines()[:2] == ["model,user,rr,ndcg@10", "one,0,0.5,0.9"]
    assert table.to_csv().splitlines()[-1] == "none,1,,0.5"
    assert json.loads(table.to_json())["models"]["none"]["per_user"]["rr"] == [None, None]
    assert "undefined" in str(table)


def test_results_that_cannot_be_compared_are_reported() -> None:
    with pytest.raises(rm.InputTypeError, match="a dict from the names of models to evaluations"):
        rm.Leaderboard([evaluation({"rr": [1.0]})])  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="at least one"):
        rm.Leaderboard({})
    with pytest.raises(rm.InputError, match="a and b were evaluated with different metrics"):
        rm.Leaderboard({"a": evaluation({"rr": [1.0]}), "b": evaluation({"ap": [1.0]})})
    first = rm.evaluate(rm.Lists({1: [1]}), {1: [1]}, metrics="rr")
    second = rm.evaluate(rm.Lists({1: [1]}), {1: [2]}, metrics="rr")
    with pytest.warns(rm.DataWarning, match="a and b were evaluated on different test data"):
        rm.Leaderboard({"a": first, "b": second})
