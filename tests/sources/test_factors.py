"""Tests that factors give exact ranks, whatever the memory layout, ids, threads and blocks."""

import dataclasses
import os
import subprocess
import sys
import uuid
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import _kernel, tasks
from recometer.errors import DataWarning, InputError, InputTypeError, InternalError
from recometer.sources import factors as factor_source
from recometer.sources.base import Request

ALL = "precision@5 tprecision@5 recall@5 ap@5 tap@5 ndcg@5 hit@5 rr@5 roc_auc pr_auc rprecision"


class Data:
    """Random factors, and training and test data that do not overlap."""

    def __init__(
        self, seed=0, n_users=60, n_items=300, n_factors=8, dtype=np.float32, integers=False
    ):
        rng = np.random.default_rng(seed)
        draw = (lambda s: rng.integers(-2, 3, s)) if integers else rng.standard_normal
        self.users = np.asarray(draw((n_users, n_factors))).astype(dtype)
        self.items = np.asarray(draw((n_items, n_factors))).astype(dtype)
        kind = rng.random((n_users, n_items))
        self.train = sp.csr_array((kind < 0.1).astype(np.float64))
        graded = np.where((kind > 0.95), rng.integers(1, 5, kind.shape), 0)
        self.test = sp.csr_array(graded.astype(np.float64))

    def evaluate(self, source=None, **options):
        source = rm.Factors(self.users, self.items) if source is None else source
        return rm.evaluate(source, self.test, train=self.train, metrics=ALL, **options)


def assert_same(left, right):
    assert list(left.values) == list(right.values)
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)


@pytest.fixture(scope="module")
def data():
    return Data()


def expected_ranks(data, user):
    scores = data.users[user].astype(np.float64) @ data.items.astype(np.float64).T
    candidates = np.setdiff1d(np.arange(len(data.items)), data.train[[user]].indices)
    order = candidates[np.argsort(-scores[candidates], kind="stable")]
    return {item: place for place, item in enumerate(order)}


def test_ranks_match_sorting(data):
    test = rm.Interactions.of(data.test)
    ranks = rm.Factors(data.users, data.items).rank(
        Request(test, rm.Interactions.of(data.train), threads=2)
    )
    for user in range(test.n_users):
        part = slice(ranks.indptr[user], ranks.indptr[user + 1])
        places = expected_ranks(data, user)
        assert ranks.above[part].tolist() == [places[i] for i in ranks.item[part].tolist()]
        assert ranks.above[part].tolist() == sorted(ranks.above[part].tolist())
        assert ranks.n_candidates[user] == len(places)
        values = data.test[[user]].toarray()[0]
        np.testing.assert_array_equal(ranks.gain[part], values[ranks.item[part]])


def test_ranks_are_exact_down_to_the_requested_depth(data):
    request = Request(rm.Interactions.of(data.test), rm.Interactions.of(data.train))
    source = rm.Factors(data.users, data.items)
    full_ranks = source.rank(request)
    top = source.rank(Request(request.test, request.train, depth=5))
    within = (full_ranks.above >= 0) & (full_ranks.above < 5)
    assert (top.above[within] == full_ranks.above[within]).all()
    assert (top.above[~within] == -1).all()
    assert (top.depth == 5).all()
    np.testing.assert_array_equal(top.n_candidates, full_ranks.n_candidates)


def test_values_at_cutoffs_do_not_depend_on_other_metrics(data):
    expected = data.evaluate()
    for ties in ("expected", "pessimistic", "random", "item"):
        names = "ndcg@5 recall@5 ap@5"
        single_metric = rm.evaluate(
            rm.Factors(data.users, data.items),
            data.test,
            train=data.train,
            metrics=names,
            ties=ties,
        )
        for name in names.split():
            np.testing.assert_array_equal(single_metric[name], expected[name])


LAYOUTS = {
    "fortran": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every second column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "read only": lambda a: _read_only(a),
    "not aligned": lambda a: _not_aligned(a),
}


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _not_aligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    raw[:] = array
    return raw


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_does_not_change_a_single_bit(layout, dtype):
    data = Data(dtype=dtype)
    laid_out = rm.Factors(LAYOUTS[layout](data.users), LAYOUTS[layout](data.items))
    assert_same(data.evaluate(laid_out), data.evaluate())


def test_memory_mapped_factors_equal_arrays(data, tmp_path):
    np.save(tmp_path / "users.npy", data.users)
    np.save(tmp_path / "items.npy", data.items)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("users", "items")]
    source = rm.Factors(*mapped)
    assert isinstance(source.facts.arrays["items"], np.memmap)
    assert_same(data.evaluate(source), data.evaluate())


@pytest.mark.parametrize("integers", [False, True])
def test_threads_and_blocks_change_nothing(integers, monkeypatch):
    data = Data(n_users=200, n_items=5000, integers=integers)
    expected = data.evaluate(threads=1, ties="item")
    for threads, users, judged, seconds in (
        (2, 1024, 10**5, 1),
        (3, 7, 10**5, 1e-9),
        (5, 1, 10**5, 1e-4),
        (1, 64, 40, 1),
    ):
        monkeypatch.setattr(factor_source, "USERS_PER_TASK", users)
        monkeypatch.setattr(factor_source, "JUDGED_PER_TASK", judged)
        monkeypatch.setattr(factor_source, "SECONDS_PER_CALL", seconds)
        monkeypatch.setattr(factor_source, "BRIEF_SECONDS", 0)
        assert_same(data.evaluate(threads=threads, ties="item"), expected)


@pytest.mark.parametrize("integers", [False, True])
def test_instruction_sets_change_nothing(integers, monkeypatch):
    data = Data(n_users=50, n_items=3000, n_factors=33, integers=integers)
    sets = _kernel.instruction_sets()
    # An instruction set without fused multiply-add needs to agree only on exact scores.
    results = []
    for name in sets if integers else [s for s in sets if s != "plain"]:
        monkeypatch.setenv("RECOMETER_INSTRUCTION_SET", name)
        results.append(data.evaluate(ties="item"))
    for result in results[1:]:
        assert_same(result, results[0])


def test_item_bias_alone_gives_all_users_the_same_ranking(data):
    popularity = data.train.sum(axis=0)
    source = rm.Factors(None, None, item_bias=popularity)
    as_factors = rm.Factors(np.ones((60, 1)), popularity[:, None])
    assert_same(data.evaluate(source), data.evaluate(as_factors))


def test_item_biases_act_like_an_additional_factor(data):
    bias = np.random.default_rng(5).standard_normal(300)
    users, items = data.users.astype(np.float64), data.items.astype(np.float64)
    source = rm.Factors(users, items, item_bias=bias, user_bias=np.arange(60.0))
    appended = rm.Factors(np.c_[np.ones(60), users], np.c_[bias, items])
    assert_same(data.evaluate(source), data.evaluate(appended))


def relabelled(data, users, items):
    """Return the test and training data as shuffled frames with ids instead of positions."""
    import polars as pl

    def frame(matrix, seed):
        coo = matrix.tocoo()
        table = pl.DataFrame(
            {
                "user_id": [users[u] for u in coo.row.tolist()],
                "item_id": [items[i] for i in coo.col.tolist()],
                "rating": coo.data,
            }
        )
        return table.sample(fraction=1, shuffle=True, seed=seed)

    return frame(data.test, 1), frame(data.train, 2)


@pytest.mark.parametrize("kind", ["int", "str"])
def test_order_of_ids_changes_nothing(data, kind):
    rng = np.random.default_rng(2)
    users = (rng.permutation(60) * 10 - 5).tolist()
    items = (rng.permutation(300) + 10**12).tolist()
    if kind == "str":
        users, items = [f"u{u}" for u in users], [f"i-{i}" for i in items]
    test, train = relabelled(data, users, items)
    source = rm.Factors(data.users, data.items, user_ids=users, item_ids=items)
    result = rm.evaluate(source, test, train=train, metrics=ALL)
    expected = data.evaluate()
    place = {user: row for row, user in enumerate(users)}
    rows = [place[user] for user in result.user_ids.tolist()]
    for name in expected.values:
        np.testing.assert_array_equal(result[name], expected[name][rows], err_msg=name)


def test_item_order_follows_ids_instead_of_rows():
    ids = [30, 10, 20, 40]
    source = rm.Factors(None, None, item_bias=np.ones(4) * [1, 1, 1, 0], item_ids=ids)
    test = {1: [10], 2: [20], 3: [30]}
    result = rm.evaluate(source, test, metrics="rr", ties="item")
    assert result["rr"].tolist() == [1, 1 / 2, 1 / 3]
    result = rm.evaluate(source, test, metrics="rr", ties="item_desc")
    assert result["rr"].tolist() == [1 / 3, 1 / 2, 1]


def test_uuids_can_be_ids():
    users = [uuid.UUID(int=i) for i in (7, 3)]
    source = rm.Factors(
        [[1.0], [2.0]], [[1.0], [2.0], [3.0]], user_ids=users, item_ids=["a", "b", "c"]
    )
    result = rm.evaluate(source, {users[0]: ["a"], users[1]: ["c"]}, metrics="rr")
    assert result.user_ids.tolist() == [users[1], users[0]]
    assert result["rr"].tolist() == [1.0, 1 / 3]


def test_unknown_users_and_items_are_counted_as_misses():
    source = rm.Factors(
        [[1.0], [1.0]], [[3.0], [2.0], [1.0]], user_ids=["ann", "bob"], item_ids=["a", "b", "c"]
    )
    test = {"ann": ["b", "new"], "bob": ["a", "c"], "eve": ["a"]}
    train = {"ann": ["a"], "bob": ["a"], "zoe": ["old"]}
    result = rm.evaluate(source, test, train=train, metrics="recall@1 rr roc_auc")
    assert result.counts == {
        "items_unknown": 1,
        "relevant_unranked": 1,
        "train_test_overlap": 1,
        "users_unknown": 1,
    }
    assert result["recall@1"].tolist() == [0.5, 0.0, 0.0]
    assert result["rr"].tolist() == [1.0, 0.5, 0.0]
    assert result["roc_auc"].tolist() == [0.5, 0.0, 0.0]
    assert result.n_excluded.tolist() == [1, 1, 0]
    text = str(result)
    for words in ("source does not know", "also in the training data"):
        assert words in text
    known_users = rm.evaluate(source, test, train=train, metrics="recall@1", users="known")
    assert np.isnan(known_users["recall@1"][2])


@given(st.integers(0, 2**31), st.sampled_from(["expected", "item", "item_desc", "pessimistic"]))
@examples(0.75)
def test_ranks_of_tied_integer_scores_agree_with_sorting(seed, ties):
    """Integer factors cause many ties; the test sorts the items by score and then by item."""
    data = Data(seed, n_users=6, n_items=40, n_factors=2, integers=True)
    result = rm.evaluate(
        rm.Factors(data.users, data.items), data.test, train=data.train, metrics="rr", ties=ties
    )
    if ties not in ("item", "item_desc"):
        return
    scores = data.users @ data.items.T
    for user in range(6):
        relevant = data.test[[user]].indices
        if not len(relevant) or np.isnan(result["rr"][user]):
            continue
        candidates = np.setdiff1d(np.arange(40), data.train[[user]].indices)
        tie_break = candidates if ties == "item" else -candidates
        order = candidates[np.lexsort((tie_break, -scores[user, candidates]))]
        first = np.flatnonzero(np.isin(order, relevant))[0]
        assert result["rr"][user] == 1 / (first + 1)


FOUR_ITEMS = {"user_ids": ["u"], "item_ids": list("abcd")}


def test_unknown_item_in_train_is_removed_from_test():
    source = rm.Factors([[1.0]], [[3.0], [2.0], [1.0], [0.0]], **FOUR_ITEMS)
    with pytest.warns(DataWarning, match="None of the test users. training items is in Factors"):
        result = rm.evaluate(
            source, {"u": ["b", "x"]}, train={"u": ["x"]}, metrics="recall@2 ap rprecision"
        )
    assert result.mean() == {"recall@2": 1, "ap": 0.5, "rprecision": 0}
    assert result.counts == {"train_test_overlap": 1}


def test_unknown_item_is_tied_with_no_other_item():
    source = rm.Factors([[1.0]], [[2.0], [1.0]], user_ids=["u"], item_ids=["a", "b"])
    test = rm.Interactions.of({"u": ["b", "x"]})
    ranks = source.rank(Request(test))
    assert ranks.above.tolist() == [1, -1]
    assert ranks.tied.tolist() == ranks.before.tolist() == [0, 0]
    # The scores of the two candidates differ, so the rule for constant scores does not apply.
    assert rm.evaluate(source, test, metrics="rr").mean() == {"rr": 0.5}


def test_unknown_relevant_items_do_not_make_all_candidates_relevant():
    source = rm.Factors([[1.0]], [[3.0], [2.0], [1.0], [0.0]], **FOUR_ITEMS)
    test = {"u": ["a", "b", "c", "x"]}
    first = rm.evaluate(source, test, metrics="precision@2")
    together = rm.evaluate(source, test, metrics="precision@2 rr")
    assert first["precision@2"].tolist() == together["precision@2"].tolist() == [1]


def test_messages_quote_unmatched_ids_of_test_and_train():
    source = rm.Factors([[1.0]], [[3.0], [2.0], [1.0], [0.0]], **FOUR_ITEMS)
    with pytest.warns(DataWarning, match="train has none of the 1 test users.*'U'.*'u'"):
        rm.evaluate(source, {"u": ["a"]}, train={"U": ["b"]}, metrics="rr")
    with pytest.raises(InputError, match="None of the 2 items of test, such as 'A', is in Factors"):
        rm.evaluate(source, {"u": ["A", "B"]}, metrics="rr")


def test_unknown_users_do_not_get_the_factors_of_the_first_row():
    users, items = np.array([[np.inf], [1.0]]), [[1.0], [2.0], [3.0]]
    for order in ([0, 1], [1, 0]):
        names = [["ann", "bob"][row] for row in order]
        source = rm.Factors(users[order], items, user_ids=names, item_ids=[0, 1, 2])
        result = rm.evaluate(source, {"bob": [1], "zoe": [0]}, metrics="rr")
        assert result["rr"].tolist() == [0.5, 0.0]


def test_factors_without_users_are_refused():
    source = rm.Factors(np.zeros((0, 2)), np.ones((3, 2)), user_ids=[], item_ids=[0, 1, 2])
    with pytest.raises(InputError, match="None of the 1 test users"):
        rm.evaluate(source, {"bob": [1]}, metrics="rr")


# Tests of NaN and infinity


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_user_with_nonfinite_factors_is_undefined(data, value):
    users = data.users.copy()
    users[3, 2] = value
    result = data.evaluate(rm.Factors(users, data.items))
    expected = data.evaluate()
    for name in result.values:
        assert np.isnan(result[name][3])
        finite = np.arange(60) != 3
        np.testing.assert_array_equal(result[name][finite], expected[name][finite])
    flag = rm.UserFlag.NAN_SCORE if np.isnan(value) else rm.UserFlag.INFINITE_SCORE
    assert result.flags[3] & np.uint32(flag)


def test_nan_item_is_ignored_for_users_who_trained_on_it(data):
    items = data.items.copy()
    items[7] = np.nan
    with pytest.warns(DataWarning, match="users have a NaN or infinite score"):
        result = data.evaluate(rm.Factors(data.users, items))
    trained = data.train[:, [7]].toarray()[:, 0] > 0
    assert trained.any()
    defined = ~np.isnan(result["roc_auc"])
    assert (defined <= trained).all()
    assert defined.any()


def test_user_whose_only_judged_item_has_a_nan_score_is_undefined():
    items = np.array([[1.0], [2.0], [np.nan], [4.0]])
    test = np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    train = np.array([[0, 0, 0, 0], [0, 0, 1, 0]])
    result = rm.evaluate(rm.Factors(np.ones((2, 1)), items), test, train=train, metrics="rr")
    np.testing.assert_array_equal(result["rr"], [np.nan, 1])


def test_users_with_a_nonfinite_bias_are_undefined():
    bias = [np.nan, np.inf, 1.0]
    source = rm.Factors(np.ones((3, 1)), [[1.0], [2.0]], user_bias=bias)
    with pytest.warns(DataWarning, match="2 of 3 users have a NaN or infinite score"):
        result = rm.evaluate(source, np.array([[1, 0]] * 3), metrics="rr")
    np.testing.assert_array_equal(result["rr"], [np.nan, np.nan, 0.5])


@pytest.mark.parametrize("metrics", ["rr", "coverage@1 rr"])
def test_nan_bias_of_a_user_affects_only_that_user(metrics):
    source = rm.Factors(
        [[1.0], [1.0]], [[1.0], [2.0]], user_bias=[np.nan, 1], user_ids=[1, 2], item_ids=[1, 2]
    )
    result = rm.evaluate(source, {2: [1], 3: [1]}, metrics=metrics)
    assert result["rr"].tolist() == [0.5, 0]


@pytest.mark.parametrize("nan_scores", ["first", "last"])
def test_nan_scores_can_be_ranked_first_or_last(data, nan_scores):
    items = data.items.copy()
    items[7] = np.nan
    result = data.evaluate(rm.Factors(data.users, items), nan_scores=nan_scores)
    finite = data.users @ np.nan_to_num(data.items).T
    finite[:, 7] = 1e6 if nan_scores == "first" else -1e6
    bias_only = data.evaluate(rm.Scores(finite.astype(np.float64)))
    np.testing.assert_allclose(result["roc_auc"], bias_only["roc_auc"], atol=1e-3)


@pytest.mark.parametrize("n_items", [3, 5000])
def test_nan_item_is_noticed_at_any_depth(n_items):
    items = np.arange(n_items, dtype=np.float64)[::-1, None].copy()
    items[-1] = np.nan
    source = rm.Factors(np.ones((20, 1)), items)
    with pytest.raises(InputError, match="users have a NaN or infinite score among"):
        rm.evaluate(source, np.eye(20, n_items), metrics="hit@1")


def test_judged_item_with_a_nan_score_has_no_rank():
    request = Request(rm.Interactions.of(np.array([[1, 0, 1]])))
    scores = np.array([[3.0, 2.0, np.nan]])
    with_candidates = dataclasses.replace(
        request, candidates=rm.Interactions.of(np.array([[1, 1, 1]]))
    )
    for source in (rm.Factors([[1.0]], scores.T), rm.Scores(scores)):
        for requested in (request, with_candidates):
            assert source.rank(requested).above.tolist() == [0, -1]


def test_error_is_raised_if_scores_of_judged_items_are_rounded_differently(data, monkeypatch):
    """The test simulates a compiler that rounds the scores of judged items differently."""
    native = _kernel.score_items

    def score_items(*, scores, **options):
        native(scores=scores, **options)
        scores[:] = np.nextafter(scores, np.float32(np.inf))

    monkeypatch.setattr(_kernel, "score_items", score_items)
    with pytest.raises(InternalError, match="was not found among the scores of the candidates"):
        data.evaluate()
    monkeypatch.setattr(_kernel, "rank_scores", lambda **_: 0)
    with pytest.raises(InternalError, match="was not found among the scores of the candidates"):
        data.evaluate(rm.Scores(data.users @ data.items.T))


def test_error_is_raised_if_all_users_are_undefined(data):
    with pytest.raises(InputError, match=r"All .* users have a NaN or infinite score.*Hint"):
        data.evaluate(rm.Factors(data.users * np.nan, data.items))


def test_only_users_whose_scores_overflow_are_undefined(data):
    """One user has scores of 1e39, which overflow float32."""
    users = data.users.copy()
    users[4] = 3e38
    result = data.evaluate(rm.Factors(users, data.items * 10))
    assert np.isnan(result["roc_auc"][4])
    assert not np.isnan(np.delete(result["roc_auc"], 4)).any()


@pytest.mark.parametrize(
    ("users", "items", "options"),
    [
        ([[1e19, 1e19], [1, 1]], [[3e19, 3e19], [1, 1]], {}),  # the score is 3e38 + 3e38
        ([[1e19], [1]], [[1e18], [1]], {"item_bias": [3.4e38, 0], "user_bias": [3.4e38] * 2}),
    ],
)
def test_sums_that_slightly_exceed_their_dtype_are_noticed(users, items, options):
    factors = (np.array(factor, np.float32) for factor in (users, items))
    result = rm.evaluate(rm.Factors(*factors, **options), np.eye(2), metrics="rr")
    np.testing.assert_array_equal(result["rr"], [np.nan, 0.5])


def test_users_with_constant_scores_are_undefined_by_default(data):
    users = data.users.copy()
    users[2] = 0
    assert np.isnan(data.evaluate(rm.Factors(users, data.items))["ndcg@5"][2])
    tied = data.evaluate(rm.Factors(users, data.items), constant_scores="ties")
    assert tied["roc_auc"][2] == 0.5


# Tests of invalid input


def test_factors_may_be_passed_by_keyword(data):
    by_keyword = rm.Factors(item_factors=data.items, user_factors=data.users)
    assert by_keyword.describe() == rm.Factors(data.users, data.items).describe()


def test_constructor_refuses_invalid_factors(data):
    users, items = data.users, data.items
    for arguments, options, error, message in (
        ((users, items[:, :3]), {}, InputError, r"8 factors, but items have 3 .*\(60, 8\)"),
        ((users, items.T), {}, InputError, "Hint: is one of them transposed"),
        ((users, items[0]), {}, InputError, r"items of Factors have shape \(8,\), expected two"),
        ((users.T, items), {}, InputError, "8 .*Hint: is one of them transposed"),
        ((users.T, items.T), {}, InputError, "Hint: is one of them transposed"),
        ((users, None), {}, InputError, "user_factors, but item_factors is None"),
        ((None, items), {}, InputError, "item_factors, but user_factors is None"),
        ((None, None), {}, InputError, "nothing to rank by"),
        ((users, items[:0]), {}, InputError, "no items"),
        ((users, items), {"item_bias": np.ones(3)}, InputError, "item_bias of Factors has 3"),
        ((users, items), {"user_bias": np.ones((3, 3))}, InputError, "expected one dimension"),
        ((users, items), {"item_ids": [1, 2]}, InputError, "300 items, but 2 item_ids"),
        ((users, items), {"user_ids": [1] * 60}, InputError, "distinct, but 1 occurs twice"),
        ((np.array([["x"]]), items), {}, InputTypeError, "dtype <U1, expected float32"),
        ((users, sp.csr_array(items)), {}, InputTypeError, r"are sparse.*\.toarray\(\)"),
        ((np.ma.array(users), items), {}, InputTypeError, r"masked array.*\.filled"),
    ):
        with pytest.raises(error, match=message):
            rm.Factors(*arguments, **options)
    with pytest.raises(InputError, match=r"\(shapes \(60, 8\) and \(300, 7\)\)\.$"):
        rm.Factors(users, items[:, :7])  # no transposition would make the shapes match


def test_other_dtypes_are_converted_with_a_warning(data):
    with pytest.warns(DataWarning, match="users of Factors were converted from float32 to float64"):
        source = rm.Factors(data.users, data.items.astype(np.float64))
    assert source.describe().endswith("float64, users converted from float32")
    with pytest.warns(DataWarning, match="from float16 to float32"):
        rm.Factors(data.users.astype(np.float16), data.items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.Factors(data.users.tolist(), data.items.tolist())


def test_mismatched_shapes_and_ids_are_refused(data):
    source = rm.Factors(data.users, data.items)
    factors_with_ids = rm.Factors(data.users, data.items, user_ids=range(60), item_ids=range(300))
    for model, test, train, error, message in (
        (source, data.test[:, :9], None, InputError, "300 items, but test has 9"),
        (source, data.test[:9], None, InputError, "60 users, but test has 9"),
        (source, data.test.T, None, InputError, "but test has 300. Is it transposed"),
        (data.test, source, None, InputTypeError, r"rm\.evaluate\(source, test\)"),
        (source, data.test, data.train[:9], InputError, "train has 9 users, but test has 60"),
        (source, data.test, data.train[:, :9], InputError, "300 items, but train has 9"),
        (source, {1: [2]}, None, InputError, "test has user ids, but Factors has none.*Hint"),
        (
            factors_with_ids,
            data.test,
            None,
            InputError,
            "Factors has user ids, but test has none.*Hint",
        ),
        (
            factors_with_ids,
            {"a": [2]},
            None,
            InputTypeError,
            r"user ids of test are of type str.*'a'.*int",
        ),
        (
            factors_with_ids,
            {1: ["b"]},
            None,
            InputTypeError,
            r"item ids of test are of type str.*'b'.*int",
        ),
        (factors_with_ids, {1: [2]}, {"a": [3]}, InputTypeError, "user ids of train"),
        (factors_with_ids, {999: [2]}, None, InputError, "None of the 1 test users"),
        (factors_with_ids, {}, None, InputError, "test is empty"),
    ):
        with pytest.raises(error, match=message):
            rm.evaluate(model, test, train=train, metrics="ndcg@5")


# Tests of long evaluations


INTERRUPTED = """
import numpy as np, scipy.sparse as sp, sys, threading, time
import recometer as rm
rng = np.random.default_rng(0)
users, items = (rng.standard_normal((n, 128), dtype=np.float32) for n in (160_000, 40_000))
which = np.arange(len(users))
cells = np.ones(len(users)), (which, which % len(items))
test = sp.csr_array(cells, shape=(len(users), len(items)))
print("ready", flush=True)
try:
    rm.evaluate(rm.Factors(users, items), test, metrics="roc_auc", threads=2)
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_stops_an_evaluation_and_its_threads():
    import signal
    import time

    code = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert process.stdout.readline() == "interrupted 1\n"
        # The documentation promises 0.5 seconds, but a busy machine may need more.
        assert time.monotonic() - sent < 5


def test_progress_is_shown_on_request(data, capsys):
    data.evaluate(progress=True)
    assert "Ranking" in capsys.readouterr().err
    data.evaluate()
    assert capsys.readouterr().err == ""


def test_number_of_threads_has_a_default():
    assert tasks.resolve_threads(None) >= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_biases_alone_keep_their_precision(dtype):
    bias = np.array([1, 1 + np.finfo(dtype).eps], dtype)
    source = rm.Factors(None, None, item_bias=bias)
    assert np.dtype(dtype).name in source.describe()
    assert rm.evaluate(source, np.eye(2), metrics="rr", ties="pessimistic")["rr"].tolist() == [
        0.5,
        1,
    ]
