"""A stream of batches gives the same result, to the last bit, as a single call with all data."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pickle
import re

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import assert_same

import recometer as rm
from recometer.errors import InputError, InputTypeError, RecometerError
from recometer.integrations import _plain

TIES = ["expected", "optimistic", "pessimistic", "item", "item_desc", "random"]
TOP = "ndcg@3 recall@1..4 ap@2"
WHOLE = "roc_auc ndcg pr_auc rr"
RULES = [
    {},
    {"nan_scores": "last"},
    {"nan_scores": "first", "infinite_scores": "ranked"},
    {"seen": "kept"},
    {"no_list": "undefined", "cold_start": False},
    {"relevant_from": 2, "undefined": 0.0},
    {"score_above": 1},
    {"unranked": "left_out", "unknown_items": "left_out"},
    {"constant_scores": "ties", "min_candidates": 0},
]
OF_LISTS = [
    {"duplicates": "counted"},
    {"duplicates": "first"},
    {"users": "listed"},
    {"repeated_test": "joined"},
    {"ties": "input"},
]


class Case:
    """Random test and training data, and scores with ties, NaN and infinities; ids are optional."""

    def __init__(self, rng: np.random.Generator, ids: str) -> None:
        self.rng, self.ids = rng, ids
        self.n_users, self.n_items = int(rng.integers(1, 9)), int(rng.integers(3, 14))
        shape = (self.n_users, self.n_items)
        self.scores = rng.integers(0, rng.choice([2, 4, 50]), shape).astype(np.float64)
        if rng.random() < 0.3:
            odd = rng.random(shape) < 0.1
            self.scores[odd] = rng.choice([np.nan, np.inf, -np.inf], int(odd.sum()))
        kind = rng.random(shape)
        self.test = np.where(kind < 0.3, rng.integers(0, 4, shape), np.nan)
        self.test[0, 0] = 1
        self.train = np.where(kind > 0.8, 1.0, np.nan)
        self.train[0] = np.nan
        make_id = {"int": lambda n, w: 3 * n, "str": lambda n, w: f"{w} {n}", "none": None}[ids]
        self.users, self.items = np.arange(self.n_users), np.arange(self.n_items)
        if make_id is not None:
            # The ids are in random order. The test data also contain a user and an item that the
            # model does not know.
            self.users = np.array([make_id(n, "u") for n in rng.permutation(self.n_users)], object)
            self.items = np.array([make_id(n, "i") for n in rng.permutation(self.n_items)], object)

    @property
    def source_ids(self) -> dict[str, object]:
        """The arguments of `Scores` that contain the row and column ids."""
        if self.ids == "none":
            return {}
        return {"user_ids": list(self.users), "item_ids": list(self.items)}

    def interactions(self, values: np.ndarray, with_unknown: bool = False) -> rm.Interactions:
        users, items = np.nonzero(~np.isnan(values))
        columns = {"user": self.users[users].tolist(), "item": self.items[items].tolist()}
        columns["value"] = values[users, items].tolist()
        if with_unknown and self.ids != "none":
            unknown_ids = ("u stranger", "i stranger") if self.ids == "str" else (998, 998)
            columns["user"] += [self.users[0], unknown_ids[0]]
            columns["item"] += [unknown_ids[1], self.items[0]]
            columns["value"] += [1.0, 2.0]
        shape = {"n_users": self.n_users, "n_items": self.n_items} if self.ids == "none" else {}
        return rm.Interactions.of(pl.DataFrame(columns), **shape)

    def batches(self) -> list[np.ndarray]:
        """Shuffle the users, and divide them into batches of random sizes."""
        rows = self.rng.permutation(self.n_users)
        cuts = np.sort(self.rng.integers(0, self.n_users + 1, self.rng.integers(0, 4)))
        return [part for part in np.split(rows, cuts) if len(part)]

    def frame(self, rows: np.ndarray, lists: np.ndarray, scored: bool) -> pl.DataFrame:
        user, place = np.nonzero(lists[rows] >= 0)
        item = lists[rows][user, place]
        columns = {"user": self.users[rows[user]].tolist(), "item": self.items[item].tolist()}
        columns["score" if scored else "rank"] = (
            np.nan_to_num(self.scores[rows[user], item]) if scored else place + 1
        )
        return pl.DataFrame(columns)


@st.composite
def cases(draw, ids=("int", "str", "none")):
    return Case(np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from(ids)))


def assert_equal(left: rm.Evaluation, right: rm.Evaluation) -> None:
    """Check that evaluations are equal; compare lists by ids, since positions may differ."""
    plain = [
        dataclasses.replace(evaluation, lists=None, list_data=None) for evaluation in (left, right)
    ]
    assert_same(*plain)
    assert_same(*(evaluation.summary() for evaluation in (left, right)))
    if left.lists is not None:
        assert_same(*(ids_of_lists(evaluation.lists) for evaluation in (left, right)))


def ids_of_lists(lists: rm.TopLists) -> list[list[object]]:
    assert lists.items.min(initial=-1) == -1  # -1 pads shorter lists
    names = range(lists.n_items) if lists.item_ids is None else lists.item_ids.tolist()
    return [[names[item] if item >= 0 else None for item in row] for row in lists.items]


def check_same_outcome(at_once, parts):
    """Return the result if both calls agree, or None if both raise the same error."""
    try:
        expected = at_once()
    except InputError as error:
        with pytest.raises(type(error)):
            parts()
        return None
    assert_equal(expected, parts())
    return expected


def halves(stream, evaluator, add, batches, **options):
    """Fill two streams, pickle the state of one of them, and merge it into the other."""
    second_stream = evaluator.stream(**options)
    for n, rows in enumerate(batches):
        add(second_stream if n % 2 else stream, rows)
    stream.merge(
        _plain.loads(pickle.dumps(second_stream.state()))
    )  # a state contains no recometer classes, so this loader can read it
    return stream.compute()


@examples(0.6)
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@given(
    case=cases(),
    ties=st.sampled_from(TIES),
    rules=st.sampled_from(RULES),
    metrics=st.sampled_from([TOP, WHOLE, f"{TOP} {WHOLE}", f"{TOP} coverage@2", "coverage@3"]),
    limits=st.sampled_from(["", "items", "sets", "drawn", "exclude"]),
)
def test_streamed_scores_match_a_single_call(case, ties, rules, metrics, limits):
    options = {"train": case.interactions(case.train), "metrics": metrics, "seed": 3}
    if limits == "items":
        options["candidates"] = case.items[: case.n_items // 2 + 1].tolist()
    if limits == "exclude":
        options["exclude"] = case.items[:1].tolist()
    if limits == "sets":
        sets = np.where(case.rng.random(case.scores.shape) < 0.7, 1.0, np.nan)
        sets[0] = 1.0
        options["candidates"] = case.interactions(sets)
    if limits == "drawn":
        options["candidates"] = rm.SampledCandidates(2, seed=1)
    evaluator = rm.Evaluator(case.interactions(case.test, True), **options, ties=ties, **rules)
    item_ids = case.source_ids.get("item_ids")

    def add(stream, rows):
        stream.update(case.scores[rows], users=case.users[rows])

    def streamed():
        stream = evaluator.stream(item_ids=item_ids)
        for rows in case.batches():
            add(stream, rows)
        return stream.compute()

    at_once = functools.partial(evaluator, rm.Scores(case.scores, **case.source_ids))
    expected = check_same_outcome(at_once, streamed)
    if expected is not None:
        stream = evaluator.stream(item_ids=item_ids)
        merged = halves(stream, evaluator, add, case.batches(), item_ids=item_ids)
        assert_equal(expected, merged)


@examples(0.6)
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@given(
    case=cases(),
    kind=st.sampled_from(["array", "ranks", "scores"]),
    ties=st.sampled_from(TIES),
    rules=st.sampled_from(RULES + OF_LISTS),
    metrics=st.sampled_from([TOP, f"{TOP} coverage@2 gini@3", "novelty@2"]),
    with_catalogue=st.booleans(),
    limits=st.sampled_from(["", "items", "exclude"]),
)
def test_streamed_lists_match_a_single_call(
    case, kind, ties, rules, metrics, with_catalogue, limits
):
    lists = np.argsort(case.rng.random(case.scores.shape), axis=1)[:, :4]
    lists[case.rng.random(lists.shape) < 0.2] = -1
    if "duplicates" in rules:
        lists[:, -1] = lists[:, 0]
    lists = np.take_along_axis(lists, np.argsort(lists < 0, axis=1, kind="stable"), axis=1)
    if kind != "array" and case.ids == "none":
        kind = "array"  # a table would need user ids
    options = {"train": case.interactions(case.train), "metrics": metrics, "seed": 3}
    if with_catalogue or "novelty" in metrics or "coverage" in metrics:
        number = case.ids == "none" or "duplicates" in rules
        options["catalogue"] = case.n_items + 1 if number else case.items.tolist()
    if limits in ("items", "exclude"):
        options["candidates" if limits == "items" else "exclude"] = case.items[:2].tolist()
    evaluator = rm.Evaluator(
        case.interactions(case.test, True), **options, **{"ties": ties, **rules}
    )
    item_ids = case.source_ids.get("item_ids")

    def lists_of(rows):
        if kind == "array":
            ids = {"user_ids": case.users[rows].tolist()} if case.source_ids else {}
            return rm.Lists(lists[rows], **ids, item_ids=item_ids)
        return rm.Lists(case.frame(rows, lists, kind == "scores"))

    def add(stream, rows):
        if kind == "array":
            stream.update(items=lists[rows], users=case.users[rows])
        elif (lists[rows] >= 0).any():
            stream.update(case.frame(rows, lists, kind == "scores"))

    def streamed():
        stream = evaluator.stream(item_ids=item_ids)
        for rows in case.batches():
            add(stream, rows)
        return stream.compute()

    expected = check_same_outcome(lambda: evaluator(lists_of(np.arange(case.n_users))), streamed)
    if expected is not None:
        stream = evaluator.stream(item_ids=item_ids)
        merged = halves(stream, evaluator, add, case.batches(), item_ids=item_ids)
        assert_equal(expected, merged)


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@given(
    case=cases(),
    ties=st.sampled_from(TIES),
    rules=st.sampled_from(RULES[:3] + RULES[5:7]),
    flat=st.booleans(),
)
def test_streamed_labelled_candidates_match_pairs(case, ties, rules, flat):
    """A stream of labelled candidates, flat or in padded rows, gives the same result as `Pairs`."""
    relevance = np.where(np.isnan(case.test), 0.0, case.test)
    relevance[case.rng.random(relevance.shape) < 0.2] = np.nan
    relevance[:, -1] = -1  # padding
    users = case.users if case.ids != "none" else np.arange(case.n_users) + 5
    not_padding = np.ones(relevance.shape, bool)
    not_padding[:, -1] = False
    evaluator = rm.Evaluator(metrics="ndcg@2 ap rr roc_auc bpref", ties=ties, seed=4, **rules)

    def add(stream, rows):
        mask, user_ids = not_padding[rows], users[rows].tolist()
        if flat:
            flat_rows = case.scores[rows][mask], relevance[rows][mask]
            stream.update(
                *flat_rows, users=[user for user in user_ids for _ in range(case.n_items - 1)]
            )
        else:
            stream.update(case.scores[rows], relevance[rows], users=user_ids, padding=-1)

    def at_once():
        users_of_cells = np.repeat(users, case.n_items).reshape(not_padding.shape)
        return evaluator(
            rm.Pairs.of(
                relevance[not_padding],
                case.scores[not_padding],
                users_of_cells[not_padding].tolist(),
            )
        )

    def streamed():
        stream = evaluator.stream()
        for rows in case.batches():
            add(stream, rows)
        return stream.compute()

    check_same_outcome(at_once, streamed)


PAIRS = [("a", "x", 3.0, 5.0), ("a", "y", 2.0, 1.0), ("a", "z", 1.0, 0.0)]
TEST = rm.Interactions.of(np.array([[0, 1, 2, 3], [3, 0, 1, 2]]), n_users=4, n_items=5)
SCORES = np.random.default_rng(0).permutation(20).reshape(4, 5).astype(np.float32)


def stream_of(*, with_ids=False, **options):
    names = {"user_ids": list("abcd"), "item_ids": list("vwxyz")} if with_ids else {}
    test = rm.Interactions.of(TEST.to_csr(), **names)
    return rm.Evaluator(test, metrics="rr ndcg@2").stream(**options)


def test_relevance_below_1_keeps_its_precision():
    rows = [("a", "y", 2.0, 0.5), ("a", "z", 3.0, 0.25), ("b", "y", 1.0, 0.5)]
    stream = rm.Evaluator(metrics="rr", relevant_from=0.5).stream()
    stream.update(pl.DataFrame(rows, ["user", "item", "score", "relevance"], orient="row"))
    np.testing.assert_array_equal(stream.compute()["rr"], [1 / 2, np.nan])


def test_memory_does_not_grow_with_items_or_batches() -> None:
    """A stream keeps a few numbers per user, regardless of the number of items and batches."""
    users = np.array([10**15, 5, 2**62])
    stream = rm.Evaluator(metrics="ndcg@10 rr").stream()
    for user in users:
        stream.update(np.arange(1000.0)[None], np.arange(1000)[None] % 2, users=[user])
    assert stream.nbytes < 10 * 3000
    test = rm.Interactions.of(np.array([np.arange(200)] * 2), n_users=200, n_items=30_000)
    evaluator = rm.Evaluator(test, metrics="ndcg@10")
    sizes = []
    for size in (200, 1):
        stream = evaluator.stream()
        for user in range(0, 200, size):
            rows = np.arange(user, user + size)
            stream.update(np.tile(np.float32(rows), (30_000, 1)).T, users=rows)
        sizes.append((stream.nbytes, len(pickle.dumps(stream.state()))))
    assert sizes[0][0] == sizes[1][0] < 200 * 60
    assert max(size for _, size in sizes) < 200 * 80


def test_nbytes_of_scores_counts_ranks_and_lists() -> None:
    n_users, rng = 200, np.random.default_rng(4)
    test, scores, sizes = rng.random((n_users, 12)) < 0.3, rng.random((n_users, 12)), []
    for metrics in ("ndcg@3", "coverage@2", "ndcg@3 coverage@2"):
        stream = rm.Evaluator(test, metrics=metrics).stream()
        for batch in np.array_split(np.arange(n_users), 7):
            stream.update(scores[batch], users=batch)
        sizes.append(stream.nbytes)
        stream.compute()
        assert stream.nbytes == sizes[-1]
    assert sizes[0] + sizes[1] == sizes[2] + n_users  # one flag per user


@pytest.mark.parametrize("form", ["positions", "dicts"])
def test_nbytes_of_lists_does_not_depend_on_batches(form) -> None:
    n_users, rng = 200, np.random.default_rng(4)
    ids = {"user_ids": range(n_users), "item_ids": range(12)} if form == "dicts" else {}
    test = rm.Interactions.of(rng.random((n_users, 12)) < 0.3, **ids)
    lists, sizes = np.argsort(rng.random((n_users, 12)), axis=1)[:, :5], set()
    for n_batches in (1, 7, 200):
        stream = rm.Evaluator(test, metrics="ndcg@3").stream()
        for batch in np.array_split(np.arange(n_users), n_batches):
            if form == "positions":
                stream.update(items=lists[batch], users=batch)
            else:
                stream.update({user: lists[user].tolist() for user in batch.tolist()})
        sizes.add(stream.nbytes)
        stream.compute()
        sizes.add(stream.nbytes)
    (size,) = sizes
    assert size < n_users * (5 * 4 + 20) + 12 * 8


@pytest.mark.parametrize("metrics", ["rr", "rmse"])
def test_nbytes_counts_candidates_and_user_ids(metrics) -> None:
    scores, sizes = np.random.default_rng(4).random((200, 5)), []
    for users in (None, np.arange(200)):
        stream = rm.Evaluator(metrics=metrics).stream()
        stream.update(scores, scores > 0.5, users=users)
        sizes.append(stream.nbytes)
    assert 0 < sizes[0] < sizes[1]  # ids take additional memory


def test_small_batches_take_little_more_memory_than_a_large_one() -> None:
    rng = np.random.default_rng(0)
    scores, relevance = rng.random((130, 20), np.float32), rng.integers(0, 2, (130, 20))
    sizes, values = [], []
    for size in (1, 130):
        stream = rm.Evaluator(metrics="ndcg@5").stream()
        for row in range(0, 130, size):
            rows = np.arange(row, row + size)
            stream.update(scores[rows], relevance[rows], users=rows)
        sizes.append(stream.nbytes)
        values.append(stream.compute()["ndcg@5"].tolist())
        with pytest.raises(InputError, match="user 70 was in an earlier batch"):
            stream.update(scores[:2], relevance[:2], users=[200, 70])
    assert values[0] == values[1]
    assert sizes[0] < 1.7 * sizes[1]
    assert sizes[1] < 130 * 20 * 6  # at most 6 bytes per candidate


def test_users_without_ids_are_numbered_in_order() -> None:
    rng = np.random.default_rng(0)
    scores, relevance = rng.random((6, 4)), np.eye(6, 4)
    stream = rm.Evaluator(metrics="rr").stream()
    for rows in (slice(0, 2), slice(2, 6)):
        stream.update(scores[rows], relevance[rows])
    expected = rm.Evaluator(metrics="rr")(
        rm.Pairs.of(relevance.ravel(), scores.ravel(), np.repeat(np.arange(6), 4))
    )
    np.testing.assert_array_equal(stream.compute()["rr"], expected["rr"])
    assert stream.compute().user_ids is None
    stream.reset()
    assert stream.n_users == stream.nbytes == 0


def test_streams_of_users_without_ids_can_be_merged() -> None:
    rng = np.random.default_rng(0)
    scores, relevance = rng.random((6, 4)), np.eye(6, 4)
    unmerged, *streams = (rm.Evaluator(metrics="rr").stream() for _ in range(3))
    unmerged.update(scores, relevance)
    for stream, rows in zip(streams, (slice(0, 2), slice(2, 6)), strict=True):
        stream.update(scores[rows], relevance[rows])
    streams[0].merge(streams[1])
    np.testing.assert_array_equal(streams[0].compute()["rr"], unmerged.compute()["rr"])
    with_ids = rm.Evaluator(metrics="rr").stream()
    with_ids.update(scores, relevance, users=range(6))
    for first, second in ((with_ids, unmerged), (unmerged, with_ids)):
        with pytest.raises(InputError, match="of one stream have ids, but those of the"):
            first.merge(second)


def test_users_in_no_batch_are_treated_by_the_rule_no_list() -> None:
    evaluator = rm.Evaluator(TEST, metrics="rr", no_list="undefined")
    stream = evaluator.stream()
    stream.update(SCORES[:2], users=[0, 1])
    result = stream.compute()
    assert result.counts["users_unknown"] == 2
    assert np.isnan(result["rr"]).tolist() == [False, False, True, True]


def test_repeated_users_are_rejected_or_left_out() -> None:
    stream = stream_of(repeated="first")
    stream.update(SCORES, users=np.arange(4))
    expected = stream.compute()
    stream.update(SCORES[::-1], users=np.arange(4))
    second_stream = stream_of()
    second_stream.update(SCORES[::-1][:2], users=[0, 1])
    stream.merge(second_stream)
    np.testing.assert_array_equal(stream.compute()["rr"], expected["rr"])
    assert "6 repeated" in repr(stream)
    pairs = rm.Evaluator(metrics="rr").stream(repeated="first")
    pairs.update(SCORES, SCORES > 9, users=[1, 2, 3, 4])
    expected = pairs.compute()
    pairs.update(-SCORES, SCORES > 9, users=[4, 3, 5, 1])
    assert pairs.n_users == 5
    np.testing.assert_array_equal(pairs.compute()["rr"][:4], expected["rr"])


def test_first_list_of_a_repeated_user_counts_whatever_its_form() -> None:
    stream = rm.Evaluator(np.eye(6), metrics="rr").stream(repeated="first")
    for user in (0, 1, 2):
        stream.update(items=np.array([[user, 3]]), users=np.array([user]))
    stream.update(rm.Lists(np.array([[3, 1], [3, 0]]), user_ids=[1, 3]))
    assert stream.compute()["rr"].tolist() == [1, 1, 1, 1, 0, 0]
    assert "1 repeated" in repr(stream)


def test_streams_are_merged_if_their_evaluators_have_equal_data():
    class Model:
        def __call__(self, rows):
            return SCORES[rows]

    def stream():
        baseline = rm.Scores(Model(), n_users=len(SCORES), n_items=SCORES.shape[1])
        return rm.Evaluator(SCORES > 9, metrics="rr overlap@2", baseline=baseline).stream()

    first, second = stream(), stream()
    first.update(SCORES[:2], users=[0, 1])
    second.update(SCORES[2:], users=np.arange(2, len(SCORES)))
    first.merge(second)
    assert first.n_users == len(SCORES)


@pytest.mark.parametrize(
    ("kind", "expected_start"),
    [
        ("scores", "Scores, streamed: 3 users x 5 items"),
        ("lists", "Lists: 3 lists, 15 entries"),
        ("pairs", "Pairs: 15 rows, 3 users"),
    ],
)
def test_merged_streams_are_described_as_one(kind, expected_start):
    evaluator = rm.Evaluator(None if kind == "pairs" else SCORES > 9, metrics="rr")
    streams = evaluator.stream(), evaluator.stream()
    for stream, users in zip(streams, ([0, 1], [3]), strict=True):
        if kind == "lists":
            stream.update(rm.Lists(np.argsort(-SCORES[users]), user_ids=users))
        else:
            labels = (SCORES[users] > 9,) if kind == "pairs" else ()
            stream.update(SCORES[users], *labels, users=users)
    streams[0].merge(streams[1])
    description = streams[0].compute().inputs["source"]["description"]
    assert description.startswith(expected_start)


def update(*arguments, to=stream_of, before=None, **options):
    def call():
        stream = to()
        if before is not None:
            before(stream)
        stream.update(*arguments, **options)

    return call


def stream_with_ids() -> object:
    return stream_of(with_ids=True, item_ids=list("vwxyz"))


def named_stream() -> object:
    return stream_of(with_ids=True)


def stream_without_test() -> object:
    return rm.Evaluator(metrics="rr").stream()


def test_merging_a_stream_with_repeats_leaves_other_lists_alone():
    """Repeated items in one of two merged streams do not affect the other stream's lists."""
    repeating, plain = {"ann": ["a", "a", "b"]}, {"bob": ["c", "b", "a"], "cid": ["a", "b", "c"]}
    test = {"ann": ["a", "b"], "bob": ["b", "c"], "cid": ["c"]}
    evaluator = rm.Evaluator(test, metrics="recall@2 ap@3", duplicates="first")
    stream, second_stream = evaluator.stream(), evaluator.stream()
    stream.update(rm.Lists(repeating))
    second_stream.update(rm.Lists(plain))
    stream.merge(second_stream)
    with pytest.raises(InputError, match="was in an earlier batch"):
        stream.update(rm.Lists({"bob": ["a"]}))
    # Ann's 1st and 3rd items are hits (the 2nd repeats the 1st), as are bob's 1st and 2nd and cid's
    # 3rd.
    assert stream.compute().values["recall@2"].tolist() == [0.5, 1, 0]
    np.testing.assert_allclose(stream.compute().values["ap@3"], [5 / 6, 1, 1 / 3], rtol=1e-15)


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_streams_with_lists_of_different_lengths_can_be_merged():
    lists = {"ann": ["a"], "bob": ["b", "c", "d"]}
    test = {"ann": ["a"], "bob": ["a"]}
    evaluator = rm.Evaluator(test, metrics="user_coverage@9 personalization@9")
    expected = evaluator(rm.Lists(lists))
    for users in (["ann", "bob"], ["bob", "ann"]):
        streams = [evaluator.stream() for _ in users]
        for stream, user in zip(streams, users, strict=True):
            stream.update({user: lists[user]})
        streams[0].merge(streams[1])
        assert_equal(expected, streams[0].compute())


@pytest.mark.parametrize("item_ids", [None, ["a", "b", "c"]])
def test_batches_with_other_item_ids_than_the_stream_are_refused(item_ids):
    test = {"ann": ["b"], "bob": ["a"]}
    stream = rm.Evaluator(test, metrics="rr@3").stream(item_ids=item_ids)
    stream.update(rm.Scores([[1.0, 2, 3]], user_ids=["ann"], item_ids=["a", "b", "c"]))
    with pytest.raises(InputError, match="item_ids of this batch differ"):
        stream.update(rm.Scores([[1.0, 2, 3]], user_ids=["bob"], item_ids=["a", "c", "b"]))
    stream.update(rm.Scores([[1.0, 2, 3]], user_ids=["bob"], item_ids=["a", "b", "c"]))
    assert stream.compute().values["rr@3"].tolist() == [1 / 2, 1 / 3]


@pytest.mark.parametrize("test", [{"ann": ["b"], "bob": ["a"]}, {"ann": ["b"]}])
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_repeated_items_of_users_outside_test_are_counted_once(test):
    lists = {"ann": ["a", "a", "b"], "eve": ["a", "a", "a"], "kim": ["b", "b"], "bob": ["a"]}
    evaluator = rm.Evaluator(test, metrics="recall@2", duplicates="first")
    expected = evaluator(rm.Lists(lists)).counts
    assert expected["list_repeats"] == 4
    streams = [evaluator.stream() for _ in range(4)]
    for stream, (user, items) in zip(streams, lists.items(), strict=True):
        stream.update(rm.Lists({user: items}))
    for later in streams[1:]:
        streams[0].merge(later)
    assert streams[0].compute().counts == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (update(SCORES), "users= is missing"),
        (update(SCORES, users=[0, 1]), "4 rows, but 2 users"),
        (update(SCORES, users=[0, 1, 2, 2]), "user 2 was in two rows of a batch"),
        (update(SCORES, users=[0, 1, 2, 9]), "users= has 9"),
        (update(SCORES, users=list("abcd")), "positions 0 to 3"),
        (update(SCORES, SCORES, users=range(4)), "evaluator has test data"),
        (update(SCORES, users=range(4), items=SCORES), "both were passed"),
        (update(), "neither was passed"),
        (update(lambda rows: SCORES), "batch is a function"),
        (update(rm.Factors(SCORES, SCORES), users=range(4)), "A batch cannot be Factors"),
        (update(SCORES[:, :4], users=np.arange(4)), "has 4 items, but test has 5"),
        (
            update(SCORES[:1, :4], users=[1], before=lambda s: s.update(SCORES[:1], users=[0])),
            "scores of 4 items, but earlier batches had 5",
        ),
        (
            update(SCORES[:1], users=[1], before=lambda s: s.update(items=[[1]], users=[0])),
            "contains scores, but earlier batches contained lists",
        ),
        (
            update(SCORES[:1], users=[1], before=lambda s: s.update(SCORES[:2], users=[0, 1])),
            "user 1 was in an earlier batch",
        ),
        (update(SCORES, users=range(4), to=stream_with_ids), "of type int"),
        (update(SCORES, users=list("abcd"), to=lambda: stream_of(with_ids=True)), "item_ids=..."),
        (update({"a": ["v"]}, users=["a"], to=stream_with_ids), "already contains the users"),
        (update(SCORES, to=stream_without_test), "There are no labels"),
        (
            update(SCORES, SCORES[:2], to=stream_without_test),
            "shape (4, 5) and relevance of shape (2, 5)",
        ),
        (update(SCORES, SCORES, padding=SCORES, to=stream_without_test), "expected bool (4, 5)"),
        (
            update(SCORES, SCORES, users=[1, 1, 2, 3], to=stream_without_test),
            "user 1 was in two rows",
        ),
        (update(SCORES, "abc", to=stream_without_test), "relevance"),
        (
            update(items=[[1]], users=[1], to=stream_without_test),
            "require an evaluator with test data",
        ),
        (
            update(
                SCORES,
                SCORES > 3,
                to=stream_without_test,
                before=lambda s: s.update(SCORES, SCORES > 3, users=range(4)),
            ),
            "Some batches name their users",
        ),
        (
            update(
                SCORES,
                SCORES > 3,
                users=list("abcd"),
                to=stream_without_test,
                before=lambda s: s.update(SCORES, SCORES > 3, users=range(4)),
            ),
            "of type str",
        ),
        (lambda: stream_of().compute(), "No batch has been added yet"),
        (lambda: stream_without_test().compute(), "No batch has been added yet"),
        (lambda: stream_of(repeated="last"), "'error' or 'first'"),
        (lambda: stream_of().merge(3), "found int"),
        (
            lambda: stream_of().merge(stream_without_test()),
            "they differ in test, which was passed only here",
        ),
        (
            lambda: (
                rm.Evaluator(TEST, metrics="rr@3", candidates=rm.SampledCandidates(2))
                .stream()
                .update(items=[[1]], users=[0])
            ),
            "needs to know the items to draw from",
        ),
        (
            update({"b": {"v": 1}}, to=named_stream, before=lambda s: s.update({"a": ["v"]})),
            "differ from earlier ones",
        ),
        (
            update({"b": [1]}, to=named_stream, before=lambda s: s.update({"a": ["v"]})),
            "differ from earlier ones",
        ),
        (
            update(
                rm.Pairs.of([1, 0], [2, 1], ["a", "a"], threshold=1),
                to=stream_without_test,
                before=lambda s: s.update(rm.Pairs.of([1, 0], [2, 1], ["b", "b"])),
            ),
            "a different kind of label, or a different threshold=, from earlier batches",
        ),
    ],
)
def test_invalid_batches_and_merges_are_refused(call, message) -> None:
    with pytest.raises((InputError, InputTypeError), match=re.escape(message)):
        call()


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize("metrics", ["rr", "coverage@1", "rr coverage@1"])
@pytest.mark.parametrize("unknown_user", ["first", "last", "nobody"])
def test_streams_of_positions_accept_an_unknown_user(metrics, unknown_user) -> None:
    users, lists = np.array([5, 6, 7, 9]), np.array([[0, 1], [1, 2], [0, 2], [2, 0]])
    test = rm.Interactions.of(np.eye(3), user_ids=users[:3])
    evaluator = rm.Evaluator(test, metrics=metrics, catalogue=3)
    n_lists = 3 if unknown_user == "nobody" else 4
    expected = evaluator(rm.Lists(lists[:n_lists], user_ids=users[:n_lists]))
    stream = evaluator.stream()
    if unknown_user == "first":
        stream.update(rm.Lists(lists[3:], user_ids=users[3:]))
    stream.update(items=lists[:3], users=users[:3])
    if unknown_user == "last":
        assert stream.compute().counts.get("list_users_ignored", 0) == 0
        stream.update(rm.Lists(lists[3:], user_ids=users[3:]))
    result = stream.compute()
    assert_equal(expected, result)
    assert result.inputs["source"]["description"].startswith(f"Lists: {n_lists} lists, ")


@pytest.mark.parametrize("batches", [["ann eve", "bob"], ["ann", "bob", "eve"], ["eve", "bob ann"]])
def test_listed_users_outside_test_are_treated_by_the_rule_users(batches) -> None:
    lists = {"ann": ["x", "y"], "bob": ["z", "x"], "eve": ["y", "z"]}
    test = {"ann": ["y"], "bob": ["x"]}
    evaluator = rm.Evaluator(
        test, metrics="rr coverage@1", catalogue=["x", "y", "z"], users="listed"
    )
    stream = evaluator.stream()
    for users in batches:
        stream.update({user: lists[user] for user in users.split()})
    result = stream.compute()
    assert_equal(evaluator(rm.Lists(lists)), result)
    assert result.user_ids.tolist() == ["ann", "bob", "eve"]


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_items_beyond_the_cutoff_count_as_known_items() -> None:
    lists = {"ann": ["x", "u"], "eve": ["v", "w"], "bob": ["y"]}
    evaluator = rm.Evaluator(
        {"ann": ["x"], "bob": ["y"]}, train={"ann": ["z"]}, metrics="novelty@1"
    )
    stream = evaluator.stream()
    for user, items in lists.items():
        stream.update({user: items})
    for result in (evaluator(rm.Lists(lists)), stream.compute()):
        assert result.lists.item_ids.tolist() == list("uvwxyz")


def test_merging_keeps_a_users_list_from_the_first_stream() -> None:
    lists = {"ann": ["x", "y"], "bob": ["y", "x"], "cid": ["x", "y"]}
    evaluator = rm.Evaluator({user: ["x"] for user in lists}, metrics="rr")
    stream, second_stream = (evaluator.stream(repeated="first") for _ in range(2))
    for user in ("ann", "bob"):  # the second batch waits to be ranked
        stream.update({user: lists[user]})
    second_stream.update({user: items[::-1] for user, items in lists.items()})
    stream.merge(second_stream)
    result = stream.compute()
    assert result["rr"].tolist() == [1, 1 / 2, 1 / 2]
    assert result.inputs["source"]["description"] == "Lists: 3 lists, 6 entries, up to 2 each"


@pytest.mark.parametrize("train", [None, {1: ["x"], 2: ["y"]}])
def test_merging_keeps_a_users_rows_from_the_first_stream(train) -> None:
    columns = {"user": [1, 1, 2, 2, 3], "item": list("xyxyz"), "score": [1.0, 2, 4, 3, 5]}
    frame = pl.DataFrame(columns).with_columns(relevance=1)
    evaluator = rm.Evaluator(metrics="rr", train=train)
    streams = [evaluator.stream(repeated="first") for _ in range(2)]
    streams[0].update(frame[:2])
    streams[1].update(frame)
    streams[0].merge(streams[1])
    result = streams[0].compute()
    assert result.n_users == 3
    description = result.inputs["source"]["description"]
    assert description.startswith("Pairs: 5 rows, 3 users")


def test_fingerprints_of_lists_depend_on_ties() -> None:
    prints = set()
    for scores in ([2, 1, 0], [1, 1, 0], [1, 0, 0], [1, 1, 1]):
        stream = rm.Evaluator({"ann": ["y"]}, metrics="rr", ties="item").stream()
        stream.update({"ann": dict(zip("xyz", scores, strict=True))})
        prints.add(str(stream.compute().inputs["source"]["fingerprints"]))
    assert len(prints) == 4


@pytest.mark.parametrize("metrics", ["rr", "coverage@2 unknown_items@2", "rr coverage@2 gini@1"])
@pytest.mark.parametrize("ids", [False, True])
def test_streamed_items_outside_the_catalogue_match_a_single_call(metrics, ids) -> None:
    """Both batches and test rows may contain items outside the catalogue."""
    lists = {0: [0, 4], 1: [5, 4, 1], 2: [1, 0]}
    test = {0: [0, 5], 1: [4, 5], 2: [1], 3: [4]}
    if not ids:
        matrix = np.zeros((4, 6))
        for user, items in test.items():
            matrix[user, items] = 1
        test = matrix
    evaluator = rm.Evaluator(test, metrics=metrics, catalogue=[0, 1, 2])
    stream = evaluator.stream()
    for user, items in lists.items():
        if ids:
            stream.update({user: items})
        else:
            stream.update(items=np.array([items]), users=np.array([user]))
    rows = lists if ids else np.array([[0, 4, -1], [5, 4, 1], [1, 0, -1], [-1, -1, -1]])
    expected = evaluator(rm.Lists(rows))
    assert_equal(expected, stream.compute())
    assert expected.counts["list_items_uncatalogued"] == 3
    assert expected.counts["relevant_unranked"] == 2


def test_batches_of_lists_show_no_progress(capsys) -> None:
    evaluator = rm.Evaluator(np.eye(3), metrics="rr", progress=True)
    evaluator(rm.Lists(np.array([[0, 1], [1, 2], [2, 0]])))
    assert "Ranking" in capsys.readouterr().err
    stream = evaluator.stream()
    for users in ([0], [2, 1]):
        stream.update(items=np.array([[0, 1]] * len(users)), users=np.array(users))
    assert not capsys.readouterr().err


def test_lists_with_and_without_tied_scores_may_alternate() -> None:
    lists = {"ann": {"x": 2, "y": 1}, "bob": {"y": 2, "x": 2}, "cid": {"x": 1, "y": 2}}
    evaluator = rm.Evaluator({user: ["x"] for user in lists}, metrics="rr", ties="item_desc")
    stream = evaluator.stream()
    for user, items in lists.items():
        stream.update({user: items})
    result = stream.compute()
    assert result["rr"].tolist() == [1, 1 / 2, 1 / 2]
    assert_equal(evaluator(rm.Lists(lists)), result)


def test_lists_with_and_without_ranks_may_alternate() -> None:
    stream = rm.Evaluator({"ann": ["z"], "bob": ["y"]}, metrics="rr", ties="as_ranked").stream()
    ranks = {"user": ["ann"] * 3, "item": ["x", "y", "z"], "rank": [1, 2, 2]}
    stream.update(pl.DataFrame(ranks))
    stream.update({"bob": ["x", "y"]})
    assert stream.compute()["rr"].tolist() == [1 / 2, 1 / 2]


def test_waiting_lists_may_have_one_place_or_only_padding() -> None:
    lists = np.array([[1], [-1], [0], [2]])
    evaluator = rm.Evaluator(np.eye(4), metrics="rr coverage@1", catalogue=4)
    expected = evaluator(rm.Lists(lists))
    assert expected.counts["users_unknown"] == 1
    for parts in ([[0, 1, 2, 3]], [[3, 1], [0], [2]]):
        stream = evaluator.stream()
        for users in parts:
            stream.update(items=lists[users], users=np.array(users))
        assert_equal(expected, stream.compute())
    test = rm.Interactions.of(np.eye(3), user_ids=[5, 6, 7])
    evaluator = rm.Evaluator(test, metrics="rr", catalogue=3)
    stream = evaluator.stream()
    stream.update(items=np.array([[0]]), users=np.array([5]))
    stream.update(rm.Lists(np.array([[-1, -1], [0, -1]]), user_ids=[9, 8]))
    assert stream.compute().counts["list_users_ignored"] == 1


def test_lists_with_padding_and_ids_wait_for_later_batches() -> None:
    lists, users = np.array([[0, 1], [2, -1], [-1, 0], [2, 1]]), np.array(["a", "b", "c", "d"])
    evaluator = rm.Evaluator({user: ["x", "y"] for user in users.tolist()}, metrics="recall@2 rr")
    stream = evaluator.stream(item_ids=["z", "y", "x"])
    for user in range(4):
        stream.update(items=lists[user : user + 1], users=users[user : user + 1])
    assert_equal(
        evaluator(rm.Lists(lists, user_ids=users, item_ids=["z", "y", "x"])), stream.compute()
    )


def test_streams_of_ratings_can_be_merged() -> None:
    rng = np.random.default_rng(3)
    columns = {"user": np.repeat(np.arange(6), 4), "item": np.tile(np.arange(4), 6)}
    rows = {"rating": rng.integers(1, 6, 24).astype(float), "prediction": rng.uniform(1, 5, 24)}
    frame = pl.DataFrame({**columns, **rows})
    evaluator = rm.Evaluator(metrics="rmse rr ndcg@2")
    streams = [evaluator.stream(repeated="first") for _ in range(2)]
    streams[0].update(frame.filter(pl.col("user") < 4))
    streams[1].update(frame.filter(pl.col("user") >= 2))
    assert streams[0].nbytes > 0
    streams[0].merge(streams[1])
    expected, result = evaluator(rm.Pairs(frame)), streams[0].compute()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(result.values[name], values)
    assert result.mean() == expected.mean()


def test_largest_label_in_train_may_be_in_another_stream() -> None:
    evaluator = rm.Evaluator(metrics="rr ndcg", train={"a": ["x"], "b": ["y"]})
    streams = [evaluator.stream() for _ in range(2)]
    rows = [*PAIRS, ("b", "x", 1.0, 1.0), ("b", "y", 2.0, 0.0)]
    frame = pl.DataFrame(rows, ["user", "item", "score", "relevance"], orient="row")
    for stream, user in zip(streams, "ba", strict=True):
        stream.update(frame.filter(user=user))
    streams[0].merge(streams[1])
    assert_equal(evaluator(rm.Pairs(frame)), streams[0].compute())


def test_rejected_batches_are_not_counted() -> None:
    stream = rm.Evaluator(TEST, metrics="ndcg@2").stream()
    stream.update(items=[[1, 2]], users=[0])
    with pytest.raises(InputError, match="position 7"):
        stream.update(items=[[1, 7], [2, 3]], users=[1, 2])
    stream.update(items=[[1, 0], [2, 3], [0, 4]], users=[1, 2, 3])
    expected = rm.Evaluator(TEST, metrics="ndcg@2")(
        rm.Lists(np.array([[1, 2], [1, 0], [2, 3], [0, 4]]))
    )
    np.testing.assert_array_equal(stream.compute()["ndcg@2"], expected["ndcg@2"])


def test_users_of_waiting_lists_are_counted() -> None:
    stream = rm.Evaluator({user: ["x"] for user in "abc"}, metrics="rr").stream()
    for user in "abc":
        stream.update({user: ["x"]})
    assert stream.n_users == 3
    with pytest.raises(InputError, match="user 'c' was in an earlier batch"):
        stream.update({"c": ["y"]})


@pytest.mark.parametrize("n_entries", [20, 2**18])
@pytest.mark.parametrize("with_ids", [False, True])
def test_waiting_lists_may_differ_in_length_and_dtype(monkeypatch, n_entries, with_ids) -> None:
    """Lists that wait to be ranked may come in batches of different lengths and dtypes."""
    monkeypatch.setattr("recometer.sources.streams.ENTRIES_AT_ONCE", n_entries)
    rng = np.random.default_rng(n_entries)
    lists = np.argsort(rng.random((30, 12)), axis=1)[:, :5]
    lists[rng.random(30) < 0.3, 3:] = -1
    test = rm.Interactions.of(
        rng.random((30, 12)) < 0.3, user_ids=range(9, 39) if with_ids else None
    )
    train = rm.Interactions.of(
        rng.random((30, 12)) < 0.1, user_ids=range(9, 39) if with_ids else None
    )
    evaluator = rm.Evaluator(test, train=train, metrics="ndcg@3 ap rr coverage@2", catalogue=12)
    for n_users in (30, 25):
        rows = rng.permutation(30)[:n_users]
        stream = evaluator.stream()
        for number, batch in enumerate(np.array_split(rows, 7)):
            items = lists[batch].astype([np.int64, np.int32, np.int16][number % 3])
            users = batch + 9 if with_ids else batch.copy()
            if number % 2:
                items = np.asfortranarray(np.pad(items, [(0, 0), (0, 2)], constant_values=-1))
            stream.update(items=items, users=users)
            items[:], users[:] = 0, 0  # the stream must not depend on the caller's arrays
        all_lists = np.full_like(lists, -1)
        all_lists[rows] = lists[rows]
        expected = evaluator(rm.Lists(all_lists, user_ids=test.user_ids))
        assert_equal(expected, stream.compute())
        assert_equal(expected, stream.compute())


@pytest.mark.parametrize("n_entries", [6, 2**18])
def test_lists_of_positions_may_come_in_any_order(monkeypatch, n_entries) -> None:
    """Users may come in any order, whether the buffer can hold all of their lists or only some."""
    monkeypatch.setattr("recometer.sources.streams.ENTRIES_AT_ONCE", n_entries)
    lists = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    evaluator = rm.Evaluator(np.eye(4), metrics="rr coverage@1", catalogue=4)
    expected = evaluator(rm.Lists(lists))
    for rows in itertools.permutations(range(4)):
        stream = evaluator.stream()
        for batch in (list(rows[:2]), list(rows[2:])):
            stream.update(items=lists[batch], users=np.array(batch))
        assert_equal(expected, stream.compute())


def test_lists_longer_than_the_catalogue_are_refused_by_compute() -> None:
    evaluator = rm.Evaluator(np.ones((4, 9)), metrics="rr", catalogue=2)
    stream = evaluator.stream()
    lists = np.array([[1, -1, -1], [3, 2, -1], [1, 2, 3], [0, -1, -1]])
    for user, items in enumerate(lists):
        stream.update(items=items[np.newaxis], users=np.array([user]))
    with pytest.raises(InputError, match="the list has 3"):
        stream.compute()


@pytest.mark.parametrize(
    ("items", "users"),
    [
        ([[0.5, 1.0]], [2]),
        ([[0, 12]], [2]),
        ([[-3, 0]], [2]),
        ([["0", "1"]], [2]),
        ([[[0, 1]]], [2]),
        ([0, 1], [2]),
        ([[0, 1]], [2, 3]),
        ([[0, 1]], [[2]]),
        ([[0, 1]], [2.5]),
        ([[0, 1]], ["2"]),
        ([[0, 1]], [12]),
        ([[0, 1]], [-1]),
        ([[0, 1]], [True]),
        ([[0, 1], [1, 0]], [2, 2]),
        (np.zeros((0, 2), np.int64), np.zeros(0, np.int64)),
        (np.ma.masked_array([[0, 1]], [[False, True]]), np.array([2])),
    ],
)
def test_later_batches_are_checked_like_the_first(items, users) -> None:
    """A stream accepts or rejects a batch regardless of which batches came before."""
    evaluator = rm.Evaluator(np.ones((4, 3)), metrics="rr", catalogue=3)
    errors = []
    for lists in ([], [[1, 2]]):
        stream = evaluator.stream()
        for item in lists:
            stream.update(items=np.array([item]), users=np.array([0]))
        try:
            stream.update(items=np.asanyarray(items), users=np.asanyarray(users))
        except RecometerError as error:
            errors.append((type(error), str(error)))
        else:
            stream.update(items=np.array([[2, 0]]), users=np.array([0 if not lists else 1]))
            errors.append(stream.compute()["rr"][2])
    np.testing.assert_equal(*errors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"catalogue": ["a", "b"]}, "the catalogue has item ids"),
        ({"catalogue": [-1, 2]}, "the catalogue has item ids"),
        ({"exclude": ["a", "b"]}, "the list exclude= has item ids"),
        ({"candidates": ["a", "b"]}, "the list candidates= has item ids"),
        ({"train": rm.Interactions.of(np.eye(3))}, "train has 3 users, but test has 4"),
        ({"train": rm.Interactions.of(np.eye(4), item_ids=list("abcd"))}, "train has item ids"),
        (
            {"train": rm.Interactions.of(np.eye(4), user_ids=list("abcd"))},
            "train has user ids, but test has none",
        ),
        (
            {"test": rm.Interactions.of(np.eye(4), item_ids=list("abcd")), "catalogue": None},
            "test has item ids",
        ),
        (
            {
                "test": rm.Interactions.of(np.eye(4), user_ids=range(4)),
                "train": rm.Interactions.of(np.eye(4), user_ids=range(4), item_ids=list("abcd")),
            },
            "train has item ids",
        ),
        (
            {
                "test": rm.Interactions.of(np.eye(4), user_ids=range(4)),
                "train": rm.Interactions.of(np.eye(4), user_ids=list("abcd")),
            },
            "The user ids of test are of type int",
        ),
    ],
)
def test_first_batch_raises_errors_about_unusable_arguments(arguments, message) -> None:
    """The first batch raises the error, even if its lists could wait to be ranked."""
    options = {"test": np.eye(4), "catalogue": 4} | arguments
    stream = rm.Evaluator(metrics="rr", **options).stream()
    with pytest.raises(RecometerError, match="^" + message):
        stream.update(items=np.array([[2, 3]]), users=np.array([0]))


def test_sessions_of_users_can_be_streamed() -> None:
    rows = [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x")]
    frame = pl.DataFrame(rows, schema=["user", "session", "item"], orient="row")
    test = rm.Interactions.of(frame, user=["user", "session"])
    scores = np.array([[0.1, 0.9], [0.3, 0.2], [0.8, 0.7]])
    users = [("a", 1), ("a", 2), ("b", 1)]
    evaluator = rm.Evaluator(test, metrics="rr")
    stream = evaluator.stream(item_ids=["x", "y"])
    for row in (2, 0, 1):
        stream.update(scores[row : row + 1], users=users[row : row + 1])
    expected = evaluator(rm.Scores(scores, user_ids=users, item_ids=["x", "y"]))
    assert_equal(expected, stream.compute())
    with pytest.raises(InputTypeError, match="The users of the batch are of type str"):
        stream.update(scores[:1], users=["a"])
