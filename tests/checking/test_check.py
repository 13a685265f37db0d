"""`check` finds planted faults in the output of models."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.sources.base import Request

N_USERS, N_ITEMS = 40, 60
USERS = [f"user {number:02}" for number in range(N_USERS)]
ITEMS = [f"item {number:02}" for number in range(N_ITEMS)]
RNG = np.random.default_rng(7)
FACTORS = RNG.normal(size=(N_USERS, 6)), RNG.normal(size=(N_ITEMS, 6))
BEST = np.argsort(-(FACTORS[0] @ FACTORS[1].T), axis=1)
# Each user's best items are training items, and the next best items are test items.
TRAIN = {user: [ITEMS[item] for item in BEST[row, :5]] for row, user in enumerate(USERS)}
TEST = {user: [ITEMS[item] for item in BEST[row, 5:9]] for row, user in enumerate(USERS)}
IDS = {"user_ids": USERS, "item_ids": ITEMS}
CLEAN = (
    *("changes_between_calls", "rank_differs_from_list", "nan_scores", "infinite_scores"),
    *("constant_scores", "tied_places", "same_list", "test_users_unknown", "test_items_unknown"),
    *("train_users_unknown", "train_items_unknown", "train_items_low"),
)


def good_model() -> rm.Factors:
    return rm.Factors(*FACTORS, **IDS)


def check_changed_scores(change: Any) -> rm.Preflight:
    """Apply `change` to the model's scores, and then run `check` on them."""
    scores = FACTORS[0] @ FACTORS[1].T
    change(scores)
    return rm.check(rm.Scores(scores, **IDS), TEST, train=TRAIN)


def test_check_finds_no_problem_in_a_good_model() -> None:
    report = rm.check(good_model(), TEST, train=TRAIN)
    assert report.passed
    assert {name: report[name].count for name in CLEAN} == dict.fromkeys(CLEAN, 0)
    assert {finding.level for finding in report.findings} == {"fact"}
    # Each user's five best items are training items, which the model would recommend again.
    assert report["train_items_recommended"].count == 5 * N_USERS
    assert report["train_items_recommended"].total == 10 * N_USERS
    chance = report["no_better_than_chance"]
    assert chance.count == 0
    assert chance.statistics["mean"] == pytest.approx(1)
    assert 0 < chance.statistics["chance"] < chance.statistics["low"] < 1
    assert str(report).endswith("No problem was found.")
    assert repr(report) == "<Preflight: no problem>"


def test_chance_level_matches_evaluate() -> None:
    result = rm.evaluate(good_model(), TEST, train=TRAIN, metrics="ndcg@3", chance=True)
    statistics = rm.check(good_model(), TEST, train=TRAIN, k=3)["no_better_than_chance"].statistics
    (row,) = result.summary()
    assert (statistics["mean"], statistics["chance"]) == (row.mean, row.chance)


def test_scores_that_change_between_calls_are_reported_as_a_problem() -> None:
    calls = itertools.count()
    unstable = rm.Scores(
        lambda rows: np.random.default_rng(next(calls)).normal(size=(len(rows), N_ITEMS)), **IDS
    )
    report = rm.check(unstable, TEST, train=TRAIN)
    assert not report.passed
    assert report["changes_between_calls"].level == "problem"
    assert report["changes_between_calls"].share == 1
    assert "There are problems: changes_between_calls, rank_differs_from_list." in str(report)


class Recommender:
    """A model that recommends the best items, but reverses one user's list on every second call."""

    def __init__(self, unstable: int) -> None:
        self.restless, self.calls = unstable, 0

    def recommend(self, users: Any, k: int) -> dict[str, list[str]]:
        self.calls += 1
        lists = {user: [ITEMS[i] for i in BEST[USERS.index(user), :k]] for user in users}
        if self.calls % 2 == 0:
            lists[USERS[self.restless]].reverse()
        return lists


def test_model_is_called_twice_to_compare_its_lists() -> None:
    model = Recommender(unstable=3)
    report = rm.check(model, TEST, train=TRAIN)
    assert model.calls == 2
    assert report["changes_between_calls"].examples == (USERS[3],)
    assert report["changes_between_calls"].count == 1
    assert report["no_better_than_chance"].count is None
    assert "the lists end before the last candidate" in report["train_items_low"].sentence


class Contradicting(rm.Factors):
    """A source whose list for one user contradicts the ranks of the items."""

    def top(self, request: Request, k: int) -> rm.TopLists:
        lists = super().top(request, k)
        items = lists.items.copy()
        items[2, :2] = items[2, 1::-1]
        return rm.TopLists(
            items, lists.n_items, lists.known, lists.cut_in_ties, item_ids=lists.item_ids
        )


class Shortened(rm.Factors):
    """A source whose list for one user is shorter than k, although there are enough items."""

    def top(self, request: Request, k: int) -> rm.TopLists:
        lists = super().top(request, k)
        items = lists.items.copy()
        items[4, 7:] = -1
        return rm.TopLists(
            items, lists.n_items, lists.known, lists.cut_in_ties, item_ids=lists.item_ids
        )


@pytest.mark.parametrize(("source", "user"), [(Contradicting, 2), (Shortened, 4)])
def test_lists_that_contradict_ranks_are_reported_as_a_problem(
    source: type[rm.Factors], user: int
) -> None:
    report = rm.check(source(*FACTORS, **IDS), TEST, train=TRAIN)
    assert [finding.name for finding in report.findings if finding.level == "problem"] == [
        "rank_differs_from_list"
    ]
    assert report["rank_differs_from_list"].examples == (USERS[user],)


def test_users_with_nan_infinite_or_constant_scores_are_reported() -> None:
    def change(scores: Any) -> None:
        scores[1, 40], scores[2, 41], scores[5] = math.nan, math.inf, 2.0

    report = check_changed_scores(change)
    for name, user in (("nan_scores", 1), ("infinite_scores", 2), ("constant_scores", 5)):
        assert report[name].examples == (USERS[user],), name
        assert report[name].level == "warning"
        assert report[name].total == N_USERS
    assert report["tied_places"].count == 10
    assert report["tied_places"].examples == (USERS[5],)
    assert report.passed

    def change_most_users(scores: Any) -> None:
        scores[1:, 40] = math.nan

    assert check_changed_scores(change_most_users)["nan_scores"].level == "problem"


def test_nan_scores_of_half_the_users_are_only_a_warning() -> None:
    def change(scores: Any) -> None:
        scores[::2, 40] = math.nan

    assert check_changed_scores(change)["nan_scores"].level == "warning"


def test_places_with_tied_scores_are_counted() -> None:
    def round_all(scores: Any) -> None:
        scores[:] = np.round(scores)

    finding = check_changed_scores(round_all)["tied_places"]
    scores = np.round(FACTORS[0] @ FACTORS[1].T)
    tied = 0
    for row in range(N_USERS):
        left = np.delete(scores[row], BEST[row, :5])
        best = np.sort(left)[::-1][:10]
        tied += sum(np.count_nonzero(left == score) > 1 for score in best)
    assert (finding.count, finding.total) == (tied, 10 * N_USERS)
    assert finding.level == "warning"

    def tie_two_items(scores: Any) -> None:
        scores[0, BEST[0, 6]] = scores[0, BEST[0, 7]]

    assert check_changed_scores(tie_two_items)["tied_places"].level == "fact"
    assert check_changed_scores(tie_two_items)["tied_places"].count == 2
    constant = rm.Scores(np.ones((N_USERS, N_ITEMS)), **IDS)
    finding = rm.check(constant, TEST)["tied_places"]
    assert (finding.level, finding.share) == ("problem", 1)


def test_same_list_for_all_users_is_reported() -> None:
    popular = rm.Factors(None, None, item_bias=RNG.normal(size=N_ITEMS), item_ids=ITEMS)
    finding = rm.check(popular, TEST)["same_list"]
    assert (finding.count, finding.level) == (N_USERS, "warning")

    def copy_scores_of_one_user(scores: Any) -> None:
        scores[3] = scores[8]

    finding = rm.check(rm.Scores(_changed(copy_scores_of_one_user), **IDS), TEST)["same_list"]
    assert (finding.examples, finding.level) == ((USERS[3], USERS[8]), "fact")


def _changed(change: Any) -> Any:
    scores = FACTORS[0] @ FACTORS[1].T
    change(scores)
    return scores


def test_unknown_users_and_items_are_counted() -> None:
    source = rm.Factors(FACTORS[0][4:], FACTORS[1][1:], user_ids=USERS[4:], item_ids=ITEMS[1:])
    test = {**TEST, "stranger": [ITEMS[0], "novelty"]}
    report = rm.check(source, test, train=TRAIN)
    assert report.passed
    assert report["test_users_unknown"].examples == ("stranger", *USERS[:4])
    assert report["test_users_unknown"].total == N_USERS + 1
    assert report["test_items_unknown"].examples == (ITEMS[0], "novelty")
    assert report["train_users_unknown"].examples == tuple(USERS[:4])
    assert report["train_items_unknown"].count == any(ITEMS[0] in items for items in TRAIN.values())
    report = rm.check(source, {user: TEST[user] for user in USERS[5:]})
    assert report["train_users_unknown"].count is None
    assert " ".join(str(report).split()).count("Not checked: no training data.") == 1
    model_of_few_users = rm.Factors(FACTORS[0][:3], FACTORS[1], user_ids=USERS[:3], item_ids=ITEMS)
    report = rm.check(model_of_few_users, TEST)
    assert report["test_users_unknown"].level == "problem"
    assert "are ids spelled the same way? The test data have ids such as 'user 03'" in str(
        report["test_users_unknown"].sentence
    )


def test_positions_are_never_reported_as_unknown() -> None:
    test, train = (
        [[ITEMS.index(item) for item in items] for items in side.values()] for side in (TEST, TRAIN)
    )
    sides = []
    for rows in (test, train):
        matrix = np.zeros((N_USERS, N_ITEMS))
        for row, items in enumerate(rows):
            matrix[row, items] = 1
        sides.append(matrix)
    sides[0][0] = 0
    report = rm.check(rm.Factors(*FACTORS), sides[0], train=sides[1], n_users=5)
    assert report.n_checked == N_USERS  # all users are checked if the data have no ids
    assert report["test_users_unknown"].count == 0


def test_only_a_sample_of_users_is_checked() -> None:
    report = rm.check(good_model(), TEST, train=TRAIN, n_users=7)
    assert (report.n_checked, report.n_users) == (7, N_USERS)
    assert report["nan_scores"].total == 7
    assert report["test_users_unknown"].total == N_USERS
    assert "checked: 7 of 40 test users, 10 places for each, drawn at random" in str(report)
    assert rm.check(good_model(), TEST, n_users=None).n_checked == N_USERS
    lists = [
        rm.check(rm.Factors(*FACTORS, **IDS), TEST, train=TRAIN, n_users=3, seed=seed)[
            "train_items_recommended"
        ].examples
        for seed in (0, 0, 1)
    ]
    assert lists[0] == lists[1] != lists[2]


def test_recommended_training_items_are_counted() -> None:
    lists = {user: [ITEMS[item] for item in BEST[row, :10]] for row, user in enumerate(USERS)}
    report = rm.check(rm.Lists(lists), TEST, train=TRAIN)
    assert report["train_items_recommended"].level == "warning"
    assert "the lists become shorter" in report["train_items_recommended"].sentence
    assert report["train_items_recommended"].count == 5 * N_USERS
    finding_if_kept = rm.check(rm.Lists(lists), TEST, train=TRAIN, seen="kept")[
        "train_items_recommended"
    ]
    assert (finding_if_kept.level, finding_if_kept.sentence) == (
        "fact",
        "They keep their places (the rule seen).",
    )
    longer = {user: [ITEMS[item] for item in BEST[row, :20]] for row, user in enumerate(USERS)}
    report = rm.check(rm.Lists(longer), TEST, train=TRAIN)
    assert report["train_items_recommended"].level == "fact"
    without_train_items = {
        user: [ITEMS[item] for item in BEST[row, 5:15]] for row, user in enumerate(USERS)
    }
    report = rm.check(rm.Lists(without_train_items), TEST, train=TRAIN)
    assert report["train_items_recommended"].count == 0


def test_lists_of_all_candidates_never_count_as_too_short() -> None:
    source = rm.Scores([[3.0, 2.0, 1.0]], user_ids=["ann"], item_ids=["a", "b", "c"])
    report = rm.check(source, {"ann": ["b"]}, train={"ann": ["a"]})
    assert report["train_items_recommended"].level == "fact"
    assert report["rank_differs_from_list"].count == 0


def test_check_detects_users_in_the_wrong_order() -> None:
    """If the model's users are in the wrong order, training and test items rank low."""
    reversed_model = rm.Factors(-FACTORS[0], FACTORS[1], **IDS)
    report = rm.check(reversed_model, TEST, train=TRAIN)
    assert (report["train_items_low"].level, report["train_items_low"].share) == ("warning", 1)
    assert report["train_items_low"].statistics["mean_depth"] > 0.9
    assert "in the same order?" in report["train_items_low"].sentence
    chance = report["no_better_than_chance"]
    assert (chance.level, chance.share) == ("problem", 1)
    assert "That is worse than chance." in chance.sentence
    random = rm.Factors(RNG.normal(size=(N_USERS, 6)), FACTORS[1], **IDS)
    assert rm.check(random, TEST, train=TRAIN)["no_better_than_chance"].level == "warning"


def test_labelled_pairs_do_not_need_test_data() -> None:
    rows = [(user, item) for user in range(6) for item in range(12)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row").with_columns(
        score=pl.Series(RNG.normal(size=len(rows))), relevance=pl.Series(RNG.integers(0, 2, 72))
    )
    report = rm.check(rm.Pairs(frame))
    assert report["rank_differs_from_list"].count == 0
    assert report["tied_places"].total == 60
    assert report["no_better_than_chance"].count is not None


def test_check_takes_test_and_train_from_a_split() -> None:
    rows = [(user, item) for side in (TRAIN, TEST) for user in USERS for item in side[user]]
    frame = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    split = rm.split.split(frame, rm.split.Fraction(0.3))
    assert rm.check(good_model(), split).train is not None
    with pytest.raises(rm.InputError, match="Split contains its own"):
        rm.check(good_model(), split, train=TRAIN)
    with pytest.raises(rm.InputError, match="one at a time"):
        rm.check(good_model(), rm.split.folds(frame, rm.split.KFold(2)))


def test_preflight_converts_to_json_a_frame_and_html() -> None:
    report = rm.check(good_model(), TEST, train=TRAIN)
    content = json.loads(report.to_json())
    assert content["passed"] is True
    assert content["k"] == 10
    assert [finding["name"] for finding in content["findings"]] == [
        finding.name for finding in report.findings
    ]
    assert report.frame().height == len(report.findings)
    assert report.frame().schema["examples"] == pl.List(pl.String)
    with pytest.raises(rm.UnknownNameError, match="Did you mean 'nan_scores'"):
        report["nan_score"]
    assert "<table" in report._repr_html_()


SOURCES = {
    "factors": lambda scores: rm.Factors(scores, np.eye(scores.shape[1])),
    "scores": rm.Scores,
    "lists": lambda scores: rm.Lists(np.argsort(-scores, axis=1, kind="stable")[:, :6]),
}


@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from([*SOURCES]),
    ties=st.sampled_from(["expected", "random", "item_desc"]),
    trained=st.booleans(),
    k=st.integers(1, 12),
)
def test_recometers_sources_never_contradict_themselves(
    seed: int, kind: str, ties: Any, trained: bool, k: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (8, 10)).astype(float)
    test, train = (np.where(rng.random((8, 10)) < share, 1, 0) for share in (0.3, 0.2))
    test[0, 0] = 1
    report = rm.check(SOURCES[kind](scores), test, train=train if trained else None, ties=ties, k=k)
    for name in ("changes_between_calls", "rank_differs_from_list"):
        assert report[name].count == 0, name


def test_ranks_are_compared_by_ids() -> None:
    """A new item in the second call changes how other items are numbered, but not their ranks."""

    class Growing:
        calls = 0

        def recommend(self, users: Any, k: int) -> dict[str, list[str]]:
            Growing.calls += 1
            lists = {user: [ITEMS[i] for i in BEST[USERS.index(user), :k]] for user in users}
            lists[USERS[0]][-1] = "a new item" if Growing.calls == 2 else ITEMS[BEST[0, k - 1]]
            return lists

    report = rm.check(Growing(), TEST)
    assert report["changes_between_calls"].examples == (USERS[0],)


def test_changed_ranks_are_detected_even_if_lists_stay_the_same() -> None:
    class Unstable(rm.Factors):
        calls = 0

        def rank(self, request: Request) -> rm.Ranks:
            Unstable.calls += 1
            ranks = super().rank(request)
            if Unstable.calls == 2:
                ranks.above[ranks.indptr[6]] += 1
            return ranks

    report = rm.check(Unstable(*FACTORS, **IDS), TEST)
    assert report["changes_between_calls"].examples == (USERS[6],)


def test_listed_items_missing_from_the_catalogue_are_counted():
    lists = rm.Lists({"ann": ["book", "bokk"], "bob": ["film"]})
    test = {"ann": ["book"], "bob": ["film"]}
    finding = rm.check(lists, test, catalogue=["book", "film"])["listed_items_unknown"]
    assert (finding.level, finding.count, finding.total) == ("warning", 1, 3)
    assert finding.examples == ("bokk",)
    finding = rm.check(lists, test, catalogue=["book", "film", "bokk"])["listed_items_unknown"]
    assert (finding.level, finding.count) == ("fact", 0)
    positions = rm.Lists(np.array([[0, 3], [1, 2]]))
    finding = rm.check(positions, np.eye(2, 4), catalogue=[0, 1, 2])["listed_items_unknown"]
    assert (finding.count, finding.total, finding.examples) == (1, 4, (3,))
    for catalogue in (None, 3):
        finding = rm.check(lists, test, catalogue=catalogue)["listed_items_unknown"]
        assert (finding.count, finding.sentence[:12]) == (None, "Not checked:")


def test_invalid_places_of_generated_lists_are_counted() -> None:
    catalogue = rm.Catalogue({"item": [1, 2, 3], "title": ["Hamlet", "hamlet", "Up"]})
    answers = {
        "ann": "1. Up\n2. Hamlet\n3. Up\n4. Foo",
        "bob": "",
        "cat": "[1,",
        "dan": '["Foo", "Bar", "Up"]',
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lists = rm.Lists.from_text(answers, catalogue)
    report = rm.check(lists, {user: [3] for user in answers}, catalogue=catalogue)
    counts = {
        finding.name: (finding.count, finding.total, finding.examples)
        for finding in report.findings
    }
    assert "listed_items_unknown" not in counts
    assert counts["places_unknown"] == (4, 8, ("Foo", "[1,", "Bar"))
    assert counts["places_shared"] == (1, 8, ("Hamlet",))
    assert counts["places_repeated"] == (1, 8, ("Up",))
    assert counts["answers_without_list"] == (1, 4, ("bob",))
    assert counts["rank_differs_from_list"][0] == 0
    assert report.passed
    clear = rm.check(rm.Lists.from_text({"ann": "Up"}, catalogue), {"ann": [3]}, k=1)
    assert not any(
        finding.count
        for finding in clear.findings
        if finding.name.startswith(("places", "answers"))
    )
