"""Tests that the lists of every source agree with the ranks of its judged items."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.ids import user_keys
from recometer.errors import InputError
from recometer.ranks import drawn_places
from recometer.sources.base import Facts, Request, Source
from recometer.sources.candidates import read_candidates, read_items

RULES = ["expected", "optimistic", "pessimistic", "item", "item_desc", "random"]


class Case:
    """Scores with few distinct values, and test and training data with ids in random order.

    If `special`, some scores are NaN or infinite; if `constant`, all scores are equal.
    """

    def __init__(self, seed, *, special=False, constant=False):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.n_users, self.n_items = int(rng.integers(1, 7)), int(rng.integers(2, 14))
        shape = (self.n_users, self.n_items)
        high = 1 if constant else int(rng.choice([2, 3, 50]))
        self.scores = rng.integers(0, high, shape).astype(rng.choice([np.float32, np.float64]))
        if special:
            is_special = rng.random(shape) < 0.15
            self.scores[is_special] = rng.choice(
                [np.nan, np.nan, np.inf, -np.inf], int(is_special.sum())
            )
        self.user_ids = [f"user {i}" for i in rng.permutation(self.n_users + 1)[: self.n_users]]
        self.item_ids = [f"item {i}" for i in rng.permutation(self.n_items)]
        users = [f"user {i}" for i in range(self.n_users + 1)]
        items = [f"item {i}" for i in range(self.n_items + 1)]
        # The sources must know at least one test item and at least one training item.
        self.test = {user: self.sample(items) for user in users}
        self.test[self.user_ids[0]] = [self.item_ids[0]]
        self.train = {user: self.sample(items, 0.2) for user in users}
        self.train[self.user_ids[0]] = []
        self.train[(set(users) - set(self.user_ids)).pop()] = [self.item_ids[0]]
        self.sets = {user: self.sample(items, 0.6) for user in users}
        self.sets[self.user_ids[0]] = list(self.item_ids)

    def sample(self, items, share=0.4):
        return [item for item in items if self.rng.random() < share]

    def frame(self):
        rows = [
            (user, item, float(self.scores[u, i]))
            for u, user in enumerate(self.user_ids)
            for i, item in enumerate(self.item_ids)
        ]
        frame = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
        return frame.sample(fraction=1.0, shuffle=True, seed=1)

    def sources(self):
        names, frame = {"user_ids": self.user_ids, "item_ids": self.item_ids}, self.frame()
        lists = rm.Lists(frame)
        by_name = {
            "scores": rm.Scores(self.scores, **names),
            "function": rm.Scores(lambda rows: self.scores[rows], **names),
            "lists": lists,
            "lists, cut": rm.Lists(frame, depth=3),
        }
        if np.isfinite(self.scores).all():
            eye = np.eye(self.n_items, dtype=self.scores.dtype)
            by_name["factors"] = rm.Factors(self.scores, eye, **names)
            by_name["pairs"] = rm.Pairs(frame, relevance=False, rating=False)
        return by_name

    def request(self, ties, *, train=True, candidates=None, exclude=None, threads=1, **rules):
        return Request(
            rm.Interactions.of(self.test),
            rm.Interactions.of(self.train) if train else None,
            rm.Protocol(ties=ties, **rules),
            candidates=read_candidates(candidates),
            exclude=None if exclude is None else read_items(exclude, "exclude"),
            seed=5,
            threads=threads,
        )


def check_law(source, request, k):
    """Check that each judged item is in the list at the place that the tie rule assigns."""
    ranks, lists = source.rank(request), source.top(request, k)
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    place = ranks.above + ranks.before
    if request.protocol.ties == "item_desc":
        place = ranks.above + ranks.tied - ranks.before
    if request.protocol.ties == "random":
        keys = user_keys(request.test.user_ids, request.test.n_users)
        place = drawn_places(ranks, user, request.seed, keys)
    undefined = (ranks.flags & (rm.UserFlag.NAN_SCORE | rm.UserFlag.INFINITE_SCORE)) != 0
    for u, item, above, place_in_list in zip(user, ranks.item, ranks.above, place, strict=True):
        listed_items = lists.items[u].tolist()
        if undefined[u] or above < 0 or place_in_list >= k:
            assert item < 0 or item not in listed_items
        else:
            assert listed_items[place_in_list] == item
    is_known = (ranks.flags & rm.UserFlag.KNOWN) != 0
    np.testing.assert_array_equal(lists.known, is_known)
    np.testing.assert_array_equal(
        lists.flags & ~np.uint32(rm.UserFlag.CONSTANT_SCORES),
        ranks.flags & ~np.uint32(rm.UserFlag.CONSTANT_SCORES),
    )
    has_full_length = is_known & ~undefined & (ranks.n_candidates >= 0)
    expected = np.minimum(np.minimum(ranks.n_candidates, ranks.depth), k)
    np.testing.assert_array_equal(lists.lengths[has_full_length], expected[has_full_length])
    assert (lists.lengths[~is_known | undefined] == 0).all()
    assert not lists.cut_in_ties[has_full_length & (lists.lengths == ranks.n_candidates)].any()
    for row in lists.items:
        assert len(set(row[row >= 0])) == (row >= 0).sum()
    return lists


@given(
    ties=st.sampled_from(RULES),
    seed=st.integers(0, 2**32),
    k=st.sampled_from([1, 2, 3, 5, 20]),
    data=st.data(),
)
def test_judged_items_are_listed_at_their_ranks(ties, seed, k, data):
    case = Case(seed)
    candidates = data.draw(st.sampled_from(["all", "items", "sets", "sampled"]))
    options = {
        "train": data.draw(st.booleans()),
        "exclude": case.item_ids[1:2] if data.draw(st.booleans()) else None,
        "candidates": {
            "all": None,
            "items": case.item_ids[: 1 + len(case.item_ids) // 2],
            "sets": case.sets,
            "sampled": rm.SampledCandidates(1),
        }[candidates],
    }
    for name, source in case.sources().items():
        if candidates == "sampled" and name.startswith("lists"):
            continue  # for lists, candidates are sampled from other items
        check_law(source, case.request(ties, **options), k)


@given(
    nan_scores=st.sampled_from(["undefined", "first", "last"]),
    ties=st.sampled_from(["expected", "item_desc", "random"]),
    seed=st.integers(0, 2**32),
    k=st.sampled_from([1, 3, 20]),
)
def test_lists_with_nan_and_infinite_scores_agree_with_ranks(ties, nan_scores, seed, k):
    case = Case(seed, special=True)
    for source in case.sources().values():
        check_law(source, case.request(ties, nan_scores=nan_scores), k)


@given(
    nan_scores=st.sampled_from(["undefined", "first", "last"]),
    seed=st.integers(0, 2**32),
    ties=st.sampled_from(RULES),
    sets=st.booleans(),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
    k=st.sampled_from([1, 3, 20]),
)
def test_lists_of_nonfinite_factors_agree_with_ranks(nan_scores, seed, ties, sets, value, k):
    case = Case(seed)
    items = np.round(case.rng.normal(size=(case.n_items, 2)))
    users = np.round(case.rng.normal(size=(case.n_users, 2)))
    bias = np.zeros(case.n_users)
    items[-1] = value
    bias[-1] = value if case.n_users > 1 else 0
    names = {"user_ids": case.user_ids, "item_ids": case.item_ids}
    for source in (
        rm.Factors(users, items, user_bias=bias, **names),
        rm.Factors(None, None, item_bias=items[:, 0], item_ids=case.item_ids),
    ):
        candidates = case.sets if sets else None
        request = case.request(ties, nan_scores=nan_scores, candidates=candidates, threads=2)
        with np.errstate(invalid="ignore"):
            check_law(source, request, k)


@given(seed=st.integers(0, 2**32), k=st.sampled_from([1, 3, 20]))
@examples(0.5)
def test_lists_agree_with_sorting(seed, k):
    case = Case(seed)
    names, sources = sorted(case.item_ids), case.sources()
    train = {user: set(items) for user, items in case.train.items()}
    for name in ("scores", "function", "factors", "lists", "pairs"):
        lists = sources[name].top(case.request("item"), k)
        assert lists.n_items == len(lists.item_ids)
        for u, user in enumerate(sorted(case.test)):
            expected = []
            if user in case.user_ids:
                row = dict(zip(case.item_ids, case.scores[case.user_ids.index(user)], strict=True))
                free = [item for item in names if item not in train[user]]
                expected = sorted(free, key=lambda item: -row[item])[:k]
                beyond = sorted(free, key=lambda item: -row[item])[k : k + 1]
                cut = bool(beyond) and row[beyond[0]] == row[expected[-1]]
                assert lists.cut_in_ties[u] == cut
            listed = lists.items[u]
            assert [lists.item_ids[i] for i in listed[listed >= 0]] == expected
        assert lists.counts.get("cut_in_ties", 0) == lists.cut_in_ties.sum()


@given(seed=st.integers(0, 2**32), sets=st.booleans())
@examples(0.3)
def test_constant_scores_are_flagged(seed, sets):
    case = Case(seed)
    is_constant = case.rng.random((case.n_users, 1)) < 0.6
    case.scores[:] = np.where(is_constant, case.rng.integers(0, 3, (case.n_users, 1)), case.scores)
    expected = []
    for user in sorted(case.test):
        row = [] if user not in case.user_ids else case.scores[case.user_ids.index(user)]
        items_and_scores = zip(case.item_ids, row, strict=False)
        candidate_scores = [
            score for item, score in items_and_scores if not sets or item in case.sets[user]
        ]
        expected.append(len(candidate_scores) > 1 and len(set(candidate_scores)) == 1)
    for name, source in case.sources().items():
        if "lists" in name:
            continue  # lists do not show all candidates, so this flag can differ
        request = case.request("item", train=False, candidates=case.sets if sets else None)
        flags = source.top(request, 2).flags & rm.UserFlag.CONSTANT_SCORES
        assert (flags != 0).tolist() == expected, name


@pytest.mark.parametrize("ties", RULES)
def test_threads_and_other_test_users_change_nothing(ties):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (3000, 100)).astype(np.float32)
    eye = np.eye(100, dtype=np.float32)
    users, items = [f"{u:05}" for u in range(3000)], list(range(100))
    names = {"user_ids": users, "item_ids": items}
    for source in (rm.Factors(scores, eye, **names), rm.Scores(scores, **names)):
        test = rm.Interactions.of({user: [0, 7] for user in users})
        small_test = rm.Interactions.of({user: [0, 7] for user in users[::3]})
        protocol = rm.Protocol(ties=ties)
        first, second, from_small_test = (
            source.top(Request(data, None, protocol, threads=threads, seed=3), 10)
            for data, threads in ((test, 1), (test, 3), (small_test, 1))
        )
        np.testing.assert_array_equal(first.items, second.items)
        np.testing.assert_array_equal(first.items[::3], from_small_test.items)


def test_random_orders_of_ties_are_equally_likely():
    """All items of each user are tied, and two of them are judged."""
    n_users, n_items = 6000, 6
    source = rm.Scores(np.zeros((n_users, n_items)))
    test = rm.Interactions.of(np.tile([1, 0, 0, 0, 1, 0], (n_users, 1)))
    protocol = rm.Protocol(ties="random", constant_scores="ties")
    items = source.top(Request(test, None, protocol, seed=1), 3).items
    for place in range(3):
        share = np.bincount(items[:, place], minlength=n_items) / n_users
        assert abs(share - 1 / n_items).max() < 0.02


def test_tied_items_keep_their_input_order():
    lists = rm.Lists({"a": {"x": 1.0, "z": 2.0, "y": 1.0}, "b": {"w": 0.0}})
    request = Request(rm.Interactions.of({"a": ["y"]}), None, rm.Protocol(ties="input"))
    top = lists.top(request, 3)
    assert [top.item_ids[i] for i in top.items[0]] == ["z", "x", "y"]
    check_law(lists, request, 3)


def test_lists_skip_repeated_and_train_items():
    lists = rm.Lists(np.array([[3, 3, 1, -1, 0, 2]]))
    request = Request(
        rm.Interactions.of(np.array([[0, 0, 1, 0]])), rm.Interactions.of(np.array([[0, 1, 0, 0]]))
    )
    with pytest.warns(rm.DataWarning, match="repeat"):
        top = lists.top(request, 5)
    assert top.items.tolist() == [[3, 0, 2, -1, -1]]
    assert top.counts["list_train_items"] == 1


def test_lists_of_labelled_pairs_agree_with_ranks():
    frame = {"user": ["a"] * 4, "item": [4, 3, 2, 1], "score": [1.0, 2.0, 1.0, 0.0]}
    pairs = rm.Pairs(pl.DataFrame({**frame, "relevance": [1, 0, 0, 1]}))
    for ties in RULES:
        request = Request(pairs.facts.truth, None, rm.Protocol(ties=ties), seed=2)
        top = check_law(pairs, request, 3)
        assert top.cut_in_ties.tolist() == [False]
    assert top.item_ids[top.items[0, 0]] == 3


def test_error_is_raised_if_a_source_has_no_lists():
    class Plain(Source):
        def rank(self, request):
            raise NotImplementedError

        def describe(self):
            return "Plain"

        @property
        def facts(self):
            return Facts({})

    with pytest.raises(InputError, match=r"The source \(Plain\) returns no lists.*Hint: .*top"):
        Plain().top(Request(rm.Interactions.of(np.array([[1]]))), 3)
