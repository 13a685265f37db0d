"""`check` finds known faults in the output of models."""

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
from recometer.ranks import Ranks, TopLists
from recometer.sources.base import Request

N_USERS, N_ITEMS = 40, 60
USERS = [f"user {number:02}" for number in range(N_USERS)]
ITEMS = [f"item {number:02}" for number in range(N_ITEMS)]
RNG = np.random.default_rng(7)
FACTORS = RNG.normal(size=(N_USERS, 6)), RNG.normal(size=(N_ITEMS, 6))
BEST = np.argsort(-(FACTORS[0] @ FACTORS[1].T), axis=1)
# Each user's best items are in train; the next best ones are in test.
TRAIN = {user: [ITEMS[item] for item in BEST[row, :5]] for row, user in enumerate(USERS)}
TEST = {user: [ITEMS[item] for item in BEST[row, 5:9]] for row, user in enumerate(USERS)}
IDS = {"user_ids": USERS, "item_ids": ITEMS}
CLEAN = (
    *("changes_between_calls", "rank_differs_from_list", "nan_scores", "infinite_scores"),
    *("constant_scores", "tied_places", "same_list", "test_users_unknown", "test_items_unknown"),
    *("train_users_unknown", "train_items_unknown", "source_users_untested", "train_items_low"),
)


def good() -> rm.Factors:
    return rm.Factors(*FACTORS, **IDS)


def scored(change: Any) -> rm.Preflight:
    """Run `check` on scores after changing some of them."""
    scores = FACTORS[0] @ FACTORS[1].T
    change(scores)
    return rm.check(rm.Scores(scores, **IDS), TEST, train=TRAIN)


def test_a_good_model_has_no_problem() -> None:
    found = rm.check(good(), TEST, train=TRAIN)
    assert found.passed
    assert {name: found[name].count for name in CLEAN} == dict.fromkeys(CLEAN, 0)
    assert {finding.level for finding in found.findings} == {"fact"}
    assert found["train_items_scored"].share == 1
    # Each user's five best items are in train, so the model would recommend them again.
    assert found["train_items_recommended"].count == 5 * N_USERS
    assert found["train_items_recommended"].total == 10 * N_USERS
    chance = found["no_better_than_chance"]
    assert chance.count == 0
    assert chance.statistics["mean"] == pytest.approx(1)
    assert 0 < chance.statistics["chance"] < chance.statistics["low"] < 1
    assert str(found).endswith("No problem was found.")
    assert repr(found) == "<Preflight: no problem>"


def test_chance_is_that_of_evaluate() -> None:
    result = rm.evaluate(good(), TEST, train=TRAIN, metrics="ndcg@3", chance=True)
    statistics = rm.check(good(), TEST, train=TRAIN, k=3)["no_better_than_chance"].statistics
    (row,) = result.summary()
    assert (statistics["mean"], statistics["chance"]) == (row.mean, row.chance)


def test_a_function_that_changes_its_mind() -> None:
    calls = itertools.count()
    restless = rm.Scores(
        lambda rows: np.random.default_rng(next(calls)).normal(size=(len(rows), N_ITEMS)), **IDS
    )
    found = rm.check(restless, TEST, train=TRAIN)
    assert not found.passed
    assert found["changes_between_calls"].level == "problem"
    assert found["changes_between_calls"].share == 1
    assert "There are problems: changes_between_calls, rank_differs_from_list." in str(found)


class Recommender:
    """A model that recommends the best items, but reverses a list in every second call."""

    def __init__(self, restless: int) -> None:
        self.restless, self.calls = restless, 0

    def recommend(self, users: Any, k: int) -> dict[str, list[str]]:
        self.calls += 1
        lists = {user: [ITEMS[i] for i in BEST[USERS.index(user), :k]] for user in users}
        if self.calls % 2 == 0:
            lists[USERS[self.restless]].reverse()
        return lists


def test_a_model_is_asked_twice() -> None:
    model = Recommender(restless=3)
    found = rm.check(model, TEST, train=TRAIN)
    assert model.calls == 2
    assert found["changes_between_calls"].examples == (USERS[3],)
    assert found["changes_between_calls"].count == 1
    assert found["no_better_than_chance"].count is None
    assert "lists end early" in found["train_items_low"].sentence


class Contradicting(rm.Factors):
    """A source whose list for one user contradicts the ranks of the items."""

    def top(self, request: Request, k: int) -> TopLists:
        lists = super().top(request, k)
        items = lists.items.copy()
        items[2, :2] = items[2, 1::-1]
        return TopLists(
            items, lists.n_items, lists.known, lists.cut_in_ties, item_ids=lists.item_ids
        )


class Shortened(rm.Factors):
    """A source whose list for one user is shorter than k, although there are enough items."""

    def top(self, request: Request, k: int) -> TopLists:
        lists = super().top(request, k)
        items = lists.items.copy()
        items[4, 7:] = -1
        return TopLists(
            items, lists.n_items, lists.known, lists.cut_in_ties, item_ids=lists.item_ids
        )


@pytest.mark.parametrize(("source", "user"), [(Contradicting, 2), (Shortened, 4)])
def test_lists_that_contradict_ranks(source: type[rm.Factors], user: int) -> None:
    found = rm.check(source(*FACTORS, **IDS), TEST, train=TRAIN)
    assert [one.name for one in found.findings if one.level == "problem"] == [
        "rank_differs_from_list"
    ]
    assert found["rank_differs_from_list"].examples == (USERS[user],)


def test_nan_infinite_and_constant_scores() -> None:
    def change(scores: Any) -> None:
        scores[1, 40], scores[2, 41], scores[5] = math.nan, math.inf, 2.0

    found = scored(change)
    for name, user in (("nan_scores", 1), ("infinite_scores", 2), ("constant_scores", 5)):
        assert found[name].examples == (USERS[user],), name
        assert found[name].level == "warning"
        assert found[name].total == N_USERS
    assert found["tied_places"].count == 10
    assert found["tied_places"].examples == (USERS[5],)
    assert found.passed

    def change_most(scores: Any) -> None:
        scores[1:, 40] = math.nan

    assert scored(change_most)["nan_scores"].level == "problem"


def test_half_of_the_users_is_not_most_of_them() -> None:
    def change(scores: Any) -> None:
        scores[::2, 40] = math.nan

    assert scored(change)["nan_scores"].level == "warning"


def test_tied_places() -> None:
    def round_off(scores: Any) -> None:
        scores[:] = np.round(scores)

    found = scored(round_off)["tied_places"]
    scores = np.round(FACTORS[0] @ FACTORS[1].T)
    tied = 0
    for row in range(N_USERS):
        left = np.delete(scores[row], BEST[row, :5])
        best = np.sort(left)[::-1][:10]
        tied += sum(np.count_nonzero(left == score) > 1 for score in best)
    assert (found.count, found.total) == (tied, 10 * N_USERS)
    assert found.level == "warning"

    def make_one(scores: Any) -> None:
        scores[0, BEST[0, 6]] = scores[0, BEST[0, 7]]

    assert scored(make_one)["tied_places"].level == "fact"
    assert scored(make_one)["tied_places"].count == 2
    constant = rm.Scores(np.ones((N_USERS, N_ITEMS)), **IDS)
    found = rm.check(constant, TEST)["tied_places"]
    assert (found.level, found.share) == ("problem", 1)


def test_everybody_gets_the_same() -> None:
    popular = rm.Factors(None, None, item_bias=RNG.normal(size=N_ITEMS), item_ids=ITEMS)
    found = rm.check(popular, TEST)["same_list"]
    assert (found.count, found.level) == (N_USERS, "warning")

    def copy_one(scores: Any) -> None:
        scores[3] = scores[8]

    found = rm.check(rm.Scores(_changed(copy_one), **IDS), TEST)["same_list"]
    assert (found.examples, found.level) == ((USERS[3], USERS[8]), "fact")


def _changed(change: Any) -> Any:
    scores = FACTORS[0] @ FACTORS[1].T
    change(scores)
    return scores


def test_unknown_users_and_items() -> None:
    source = rm.Factors(FACTORS[0][4:], FACTORS[1][1:], user_ids=USERS[4:], item_ids=ITEMS[1:])
    test = {**TEST, "stranger": [ITEMS[0], "novelty"]}
    found = rm.check(source, test, train=TRAIN)
    assert found.passed
    assert found["test_users_unknown"].examples == ("stranger", *USERS[:4])
    assert found["test_users_unknown"].total == N_USERS + 1
    assert found["test_items_unknown"].examples == (ITEMS[0], "novelty")
    assert found["train_users_unknown"].examples == tuple(USERS[:4])
    assert found["train_items_unknown"].count == any(ITEMS[0] in items for items in TRAIN.values())
    found = rm.check(source, {user: TEST[user] for user in USERS[5:]})
    assert found["source_users_untested"].examples == (USERS[4],)
    tested = {item for user in USERS[5:] for item in TEST[user]}
    assert found["source_items_untested"].count == N_ITEMS - 1 - len(tested - {ITEMS[0]})
    assert found["train_users_unknown"].count is None
    assert str(found).count("Not checked: no train.") == 1
    few = rm.Factors(FACTORS[0][:3], FACTORS[1], user_ids=USERS[:3], item_ids=ITEMS)
    found = rm.check(few, TEST)
    assert found["test_users_unknown"].level == "problem"
    assert "are ids written the same way? Those of test are such as 'user 03'" in str(
        found["test_users_unknown"].sentence
    )


def test_positions_are_known() -> None:
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
    found = rm.check(rm.Factors(*FACTORS), sides[0], train=sides[1], n_users=5)
    assert found.n_checked == N_USERS  # all users are checked if data have no ids
    assert found["test_users_unknown"].count == 0
    assert found["source_users_untested"].examples == (0,)
    assert found["source_items_untested"].total == N_ITEMS


def test_a_sample_of_users() -> None:
    found = rm.check(good(), TEST, train=TRAIN, n_users=7)
    assert (found.n_checked, found.n_users) == (7, N_USERS)
    assert found["nan_scores"].total == 7
    assert found["test_users_unknown"].total == N_USERS
    assert "checked: 7 of 40 test users, 10 places of each, drawn at random" in str(found)
    assert rm.check(good(), TEST, n_users=None).n_checked == N_USERS
    lists = [
        rm.check(rm.Factors(*FACTORS, **IDS), TEST, train=TRAIN, n_users=3, seed=seed)[
            "train_items_recommended"
        ].examples
        for seed in (0, 0, 1)
    ]
    assert lists[0] == lists[1] != lists[2]


def test_items_of_train() -> None:
    lists = {user: [ITEMS[item] for item in BEST[row, :10]] for row, user in enumerate(USERS)}
    found = rm.check(rm.Lists(lists), TEST, train=TRAIN)
    assert found["train_items_recommended"].level == "warning"
    assert "the lists are shorter" in found["train_items_recommended"].sentence
    assert found["train_items_recommended"].count == 5 * N_USERS
    kept = rm.check(rm.Lists(lists), TEST, train=TRAIN, seen="kept")["train_items_recommended"]
    assert (kept.level, kept.sentence) == ("fact", "They keep their places (the rule seen).")
    longer = {user: [ITEMS[item] for item in BEST[row, :20]] for row, user in enumerate(USERS)}
    found = rm.check(rm.Lists(longer), TEST, train=TRAIN)
    assert found["train_items_recommended"].level == "fact"
    apart = {user: [ITEMS[item] for item in BEST[row, 5:15]] for row, user in enumerate(USERS)}
    found = rm.check(rm.Lists(apart), TEST, train=TRAIN)
    assert found["train_items_recommended"].count == 0
    assert found["train_items_scored"].count == 0


def test_lists_of_all_candidates_are_not_too_short() -> None:
    source = rm.Scores([[3.0, 2.0, 1.0]], user_ids=["ann"], item_ids=["a", "b", "c"])
    found = rm.check(source, {"ann": ["b"]}, train={"ann": ["a"]})
    assert found["train_items_recommended"].level == "fact"
    assert found["rank_differs_from_list"].count == 0


def test_users_in_another_order() -> None:
    """If the model's users are in the wrong order, items of train and test rank low."""
    turned = rm.Factors(-FACTORS[0], FACTORS[1], **IDS)
    found = rm.check(turned, TEST, train=TRAIN)
    assert (found["train_items_low"].level, found["train_items_low"].share) == ("warning", 1)
    assert found["train_items_low"].statistics["mean_depth"] > 0.9
    assert "in the same order?" in found["train_items_low"].sentence
    chance = found["no_better_than_chance"]
    assert (chance.level, chance.share) == ("problem", 1)
    assert "That is worse than chance." in chance.sentence
    random = rm.Factors(RNG.normal(size=(N_USERS, 6)), FACTORS[1], **IDS)
    assert rm.check(random, TEST, train=TRAIN)["no_better_than_chance"].level == "warning"


def test_pairs_bring_the_truth() -> None:
    rows = [(user, item) for user in range(6) for item in range(12)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row").with_columns(
        score=pl.Series(RNG.normal(size=len(rows))), relevance=pl.Series(RNG.integers(0, 2, 72))
    )
    found = rm.check(rm.Pairs(frame))
    assert found["rank_differs_from_list"].count == 0
    assert found["tied_places"].total == 60
    assert found["no_better_than_chance"].count is not None
    assert found["train_items_scored"].count is None


def test_a_split_brings_train() -> None:
    rows = [(user, item) for side in (TRAIN, TEST) for user in USERS for item in side[user]]
    frame = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    made = rm.split.split(frame, rm.split.Fraction(0.3))
    found = rm.check(good(), made)
    assert found["train_items_scored"].share == 1
    with pytest.raises(rm.InputError, match="Split contains its own"):
        rm.check(good(), made, train=TRAIN)
    with pytest.raises(rm.InputError, match="one at a time"):
        rm.check(good(), rm.split.folds(frame, rm.split.KFold(2)))


def test_preflight_formats() -> None:
    found = rm.check(good(), TEST, train=TRAIN)
    content = json.loads(found.to_json())
    assert content["passed"] is True
    assert content["k"] == 10
    assert [one["name"] for one in content["findings"]] == [one.name for one in found.findings]
    assert found.frame().height == len(found.findings)
    assert found.frame().schema["examples"] == pl.List(pl.String)
    with pytest.raises(rm.UnknownNameError, match="Did you mean 'nan_scores'"):
        found["nan_score"]
    assert "<table" in found._repr_html_()


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
def test_our_own_sources_never_contradict_themselves(
    seed: int, kind: str, ties: Any, trained: bool, k: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (8, 10)).astype(float)
    test, train = (np.where(rng.random((8, 10)) < share, 1, 0) for share in (0.3, 0.2))
    test[0, 0] = 1
    found = rm.check(SOURCES[kind](scores), test, train=train if trained else None, ties=ties, k=k)
    for name in ("changes_between_calls", "rank_differs_from_list"):
        assert found[name].count == 0, name


def test_ranks_are_compared_by_ids() -> None:
    """Two calls of a model may number the same items differently, which is not an error."""

    class Growing:
        calls = 0

        def recommend(self, users: Any, k: int) -> dict[str, list[str]]:
            Growing.calls += 1
            lists = {user: [ITEMS[i] for i in BEST[USERS.index(user), :k]] for user in users}
            lists[USERS[0]][-1] = "a new item" if Growing.calls == 2 else ITEMS[BEST[0, k - 1]]
            return lists

    found = rm.check(Growing(), TEST)
    assert found["changes_between_calls"].examples == (USERS[0],)


def test_ranks_that_change_are_seen_even_if_lists_do_not() -> None:
    class Restless(rm.Factors):
        calls = 0

        def rank(self, request: Request) -> Ranks:
            Restless.calls += 1
            found = super().rank(request)
            if Restless.calls == 2:
                found.above[found.indptr[6]] += 1
            return found

    found = rm.check(Restless(*FACTORS, **IDS), TEST)
    assert found["changes_between_calls"].examples == (USERS[6],)


def test_listed_items_that_the_catalogue_lacks():
    lists = rm.Lists({"ann": ["book", "bokk"], "bob": ["film"]})
    test = {"ann": ["book"], "bob": ["film"]}
    found = rm.check(lists, test, catalogue=["book", "film"])["listed_items_unknown"]
    assert (found.level, found.count, found.total) == ("warning", 1, 3)
    assert found.examples == ("bokk",)
    found = rm.check(lists, test, catalogue=["book", "film", "bokk"])["listed_items_unknown"]
    assert (found.level, found.count) == ("fact", 0)
    positions = rm.Lists(np.array([[0, 3], [1, 2]]))
    found = rm.check(positions, np.eye(2, 4), catalogue=[0, 1, 2])["listed_items_unknown"]
    assert (found.count, found.total, found.examples) == (1, 4, (3,))
    for catalogue in (None, 3):
        found = rm.check(lists, test, catalogue=catalogue)["listed_items_unknown"]
        assert (found.count, found.sentence[:12]) == (None, "Not checked:")


def test_invalid_places_of_generated_lists() -> None:
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
    found = rm.check(lists, {user: [3] for user in answers}, catalogue=catalogue)
    counts = {one.name: (one.count, one.total, one.examples) for one in found.findings}
    assert "listed_items_unknown" not in counts
    assert counts["places_unknown"] == (4, 8, ("Foo", "[1,", "Bar"))
    assert counts["places_shared"] == (1, 8, ("Hamlet",))
    assert counts["places_repeated"] == (1, 8, ("Up",))
    assert counts["answers_without_list"] == (1, 4, ("bob",))
    assert counts["rank_differs_from_list"][0] == 0
    assert found.passed
    clear = rm.check(rm.Lists.from_text({"ann": "Up"}, catalogue), {"ann": [3]}, k=1)
    assert not any(
        one.count for one in clear.findings if one.name.startswith(("places", "answers"))
    )
