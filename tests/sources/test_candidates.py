"""Tests of `exclude` and of `candidates`, which may be a whitelist, sets per user or a sample."""

import warnings
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.matching import SourceIndex
from recometer.errors import DataWarning, InputError, InputTypeError
from recometer.sources import alignment
from recometer.sources import factors as factor_source
from recometer.sources.alignment import align
from recometer.sources.base import Request

METRICS = "ndcg@3 recall@1..3 ap rr roc_auc hit@2"
RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
KINDS = ("factors", "scores")


def source(kind, scores, **ids):
    """Return `scores` as `Scores`, or as `Factors` with one factor per item."""
    scores = np.asarray(scores, np.float64)
    if kind == "scores":
        return rm.Scores(scores, **ids)
    return rm.Factors(scores, np.eye(scores.shape[1]), **ids)


def has_warning(result):
    """Return whether a result contains a warning about its inputs."""
    return any("warning" in text for text in result.inputs.values())


def assert_same(left, right, users=slice(None)):
    for name in left.values:
        np.testing.assert_array_equal(left[name], right[name][users], err_msg=name)


@st.composite
def problems(draw):
    """Draw tied scores, graded test labels with zeros, training data, and candidate sets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 6)), draw(st.integers(3, 14))
    scores = rng.integers(-2, draw(st.sampled_from([1, 30])), (n_users, n_items)) * 1.0
    kind = rng.random(scores.shape)
    test = np.where(kind < 0.3, rng.integers(0, 3, kind.shape), np.nan)
    test[0, 0] = 1
    train = rng.random(scores.shape) < 0.2
    is_candidate = rng.random(scores.shape) < draw(st.sampled_from([0.3, 0.8, 1.0]))
    is_candidate[0, 0], train[0, 0] = True, False
    return scores, stored(test), sp.csr_array(train * 1.0), is_candidate


def stored(values):
    users, items = np.nonzero(~np.isnan(values))
    return sp.coo_array((values[users, items], (users, items)), shape=values.shape).tocsr()


@given(kind=st.sampled_from(KINDS), ties=st.sampled_from(RULES), problem=problems())
def test_items_outside_the_candidates_behave_like_masked_items(kind, ties, problem):
    """The test compares `candidates` and `exclude` with scores of -inf (another code path)."""
    scores, test, train, is_candidate = problem
    options = {"train": train, "metrics": METRICS, "ties": ties}
    whitelist = np.flatnonzero(is_candidate[0])

    model = source(kind, scores)
    masked = rm.Scores(np.where(is_candidate, scores, -np.inf))
    assert_same(
        rm.evaluate(model, test, candidates=sp.csr_array(is_candidate * 1.0), **options),
        rm.evaluate(masked, test, **options),
    )
    masked = rm.Scores(np.where(is_candidate[0], scores, -np.inf))
    expected = rm.evaluate(masked, test, **options)
    assert_same(rm.evaluate(model, test, candidates=whitelist, **options), expected)
    excluded = np.flatnonzero(~is_candidate[0])
    assert_same(rm.evaluate(model, test, exclude=excluded, **options), expected)


@given(kind=st.sampled_from(KINDS), problem=problems())
@examples(0.5)
def test_all_items_as_candidates_give_the_values_without_candidates(kind, problem):
    scores, test, train, _ = problem
    n_users, n_items = scores.shape
    options = {"train": train, "metrics": METRICS}
    expected = rm.evaluate(source(kind, scores), test, **options)
    for candidates in (
        np.arange(n_items),
        np.ones((n_users, n_items)),
        rm.SampledCandidates(n_items),
        rm.SampledCandidates(n_items, seed=5),
    ):
        result = rm.evaluate(source(kind, scores), test, candidates=candidates, **options)
        assert_same(result, expected)
        np.testing.assert_array_equal(result.n_candidates, expected.n_candidates)
        np.testing.assert_array_equal(result.n_excluded, expected.n_excluded)


@given(ties=st.sampled_from(RULES), problem=problems(), as_ids=st.booleans())
def test_lists_of_all_items_agree_with_scores(ties, problem, as_ids):
    scores, test, train, is_candidate = problem
    n_users, n_items = scores.shape
    names = np.array([f"i{item:02}" for item in range(n_items)])
    users, items = np.divmod(np.arange(scores.size), n_items)
    if as_ids:
        test, train, chosen_sets = (
            rm.Interactions.of(data, user_ids=range(n_users), item_ids=names)
            for data in (test, train, sp.csr_array(is_candidate * 1.0))
        )
        model = rm.Scores(scores, user_ids=range(n_users), item_ids=names)
        frame = pl.DataFrame({"user": users, "item": names[items], "score": scores.ravel()})
        listed, catalogue = names[is_candidate[0]], names
        lists = rm.Lists(frame.sample(fraction=1.0, shuffle=True, seed=1))
    else:
        model, chosen_sets = rm.Scores(scores), sp.csr_array(is_candidate * 1.0)
        listed, catalogue = np.flatnonzero(is_candidate[0]), n_items
        order = np.argsort(-scores, axis=1, kind="stable")
        lists = rm.Lists(order)
        if ties != "item":
            return
    # Lists that are merely ordered have no scores, so turn off the rule for constant scores.
    options = {"train": train, "metrics": METRICS, "ties": ties, "constant_scores": "ties"}
    for limits in (
        {"candidates": listed},
        {"exclude": listed[:1]},
        {"candidates": chosen_sets},
        {"candidates": chosen_sets, "exclude": listed[:1]},
        {"candidates": rm.SampledCandidates(min(3, n_items - 1), seed=2)},
    ):
        try:
            expected = rm.evaluate(model, test, **limits, **options)
        except InputError as error:
            with pytest.raises(InputError, match=str(error)[:12]):
                rm.evaluate(lists, test, catalogue=catalogue, **limits, **options)
            continue
        result = rm.evaluate(lists, test, catalogue=catalogue, **limits, **options)
        assert_same(result, expected)
        np.testing.assert_array_equal(result.n_candidates, expected.n_candidates)


@given(ties=st.sampled_from(["expected", "pessimistic", "item", "item_desc"]), problem=problems())
@examples(0.5)
def test_pairs_of_all_users_and_items_agree_with_scores(ties, problem):
    """The labels come from a column of the pairs, or from `test`."""
    scores, test, train, is_candidate = problem
    n_users, n_items = scores.shape
    ids = {"user_ids": range(n_users), "item_ids": range(100, 100 + n_items)}
    truth = test.toarray()
    test, train, sets = (
        rm.Interactions.of(data, **ids)
        for data in (sp.csr_array(truth), train, sp.csr_array(is_candidate * 1.0))
    )
    users, items = np.divmod(np.arange(scores.size), n_items)
    rows = {"user": users, "item": items + 100, "score": scores.ravel()}
    labelled = rm.Pairs(pl.DataFrame(rows | {"relevance": truth.ravel()}))
    metrics = "ap rr roc_auc pr_auc ndcg"
    # `Scores` detects constant scores only if an item is judged, so turn off the rule for them.
    options = {"train": train, "metrics": metrics, "ties": ties, "constant_scores": "ties"}
    for limits in (
        {"candidates": np.flatnonzero(is_candidate[0]) + 100},
        {"exclude": [100, 101]},
        {"candidates": sets},
        {"candidates": sets, "exclude": [101]},
    ):
        try:
            expected = rm.evaluate(rm.Scores(scores, **ids), test, **limits, **options)
        except InputError:
            continue
        for result in (
            rm.evaluate(rm.Pairs(pl.DataFrame(rows)), test, **limits, **options),
            rm.evaluate(labelled, **limits, **options),
        ):
            assert_same(result, expected)
            np.testing.assert_array_equal(result.n_candidates, expected.n_candidates)
            count = "relevant_not_candidates"
            assert result.counts.get(count) == expected.counts.get(count)
            assert has_warning(result) == has_warning(expected)


def test_pairs_with_excluded_items_are_left_out():
    frame = {"user": [1, 1], "item": [3, 4], "score": [1.0, 2.0], "rating": [3.0, 4.0]}
    pairs = rm.Pairs(pl.DataFrame(frame))
    with pytest.raises(InputError, match="names items, but these Pairs have no items"):
        rm.evaluate(rm.Pairs.of([1, 0], [0.5, 0.2]), exclude=[0], metrics="rr")
    # Without item 3, only the pair with a prediction of 2 and a true rating of 4 remains.
    assert rm.evaluate(pairs, exclude=[3], metrics="rmse").mean() == {"rmse": 2}


def test_items_outside_the_candidates_are_removed_from_short_lists():
    lists = rm.Lists({"ann": ["a", "x", "b", "c"], "bob": ["x", "y"], "cat": ["c"]})
    test = {"ann": ["b"], "bob": ["b"], "cat": ["a"]}
    result = rm.evaluate(lists, test, exclude=["x", "y"], metrics="rr@3 recall@1")
    assert result["rr@3"].tolist() == [0.5, 0, 0]
    assert result.n_candidates.tolist() == [-1, -1, -1]
    # With `candidates`, the number of candidates is known. Bob counts, although his list contains
    # no candidate.
    with pytest.warns(rm.DataWarning, match="larger than every list; the longest has 3 items"):
        result = rm.evaluate(lists, test, candidates=list("abcde"), metrics="rr@3 recall@5")
    assert result["rr@3"].tolist() == [0.5, 0, 0]
    assert result.n_candidates.tolist() == [5, 5, 5]
    assert np.isnan(result["recall@5"]).all()
    assert result.counts == {"list_not_candidates": 3}
    assert "list entries that are not candidates (later entries move up): 3" in str(result)
    sets = {"ann": ["a", "b", "x"], "bob": ["b", "z"], "cat": ["a", "c"]}
    result = rm.evaluate(lists, test, candidates=sets, metrics="rr@3")
    assert result["rr@3"].tolist() == [1 / 3, 0, 0]
    assert result.n_candidates.tolist() == [3, 2, 2]
    with pytest.raises(InputError, match=r"needs to know the items to draw from.*catalogue="):
        rm.evaluate(lists, test, candidates=rm.SampledCandidates(1), metrics="rr@3")


@pytest.fixture(scope="module")
def case():
    """Draw user factors, item factors, test data and training data for a larger problem."""
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(60, 4)), rng.normal(size=(300, 4))
    kind = rng.random((60, 300))
    test, train = kind > 0.97, kind < 0.1
    test[:, 0], train[:, 0] = True, False
    return users, items, sp.csr_array(test * 1.0), sp.csr_array(train * 1.0)


def test_order_and_repeats_in_a_whitelist_change_nothing(case):
    users, items, test, train = case
    rng = np.random.default_rng(0)
    whitelist = rng.choice(300, 80, replace=False)
    options = {"train": train, "metrics": METRICS}
    factors = rm.Factors(users, items)
    expected = rm.evaluate(factors, test, candidates=whitelist, **options)
    for same_items in (
        np.sort(whitelist),
        whitelist.tolist() * 2,
        tuple(whitelist.tolist()),
        set(whitelist.tolist()),
        pl.Series(whitelist),
        pd.Series(whitelist, index=whitelist),
    ):
        assert_same(rm.evaluate(factors, test, candidates=same_items, **options), expected)
    assert expected.n_candidates.max() <= 80
    assert "candidates: 80 items for all users" in str(expected)
    assert "Warning" not in str(expected)
    for threads in (1, 3):
        assert_same(
            rm.evaluate(factors, test, candidates=whitelist, threads=threads, **options),
            expected,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_threads_change_nothing(case, dtype, monkeypatch):
    """The sizes of the candidate sets differ widely between users."""
    users, items, test, train = case
    factors = rm.Factors(users.astype(dtype), items.astype(dtype), item_bias=np.arange(300) / 300)
    rng = np.random.default_rng(2)
    candidates = rng.random((60, 300)) < rng.random((60, 1)) ** 3
    options = {"train": train, "metrics": METRICS}
    expected = rm.evaluate(factors, test, candidates=candidates, **options)
    monkeypatch.setattr(factor_source, "CANDIDATES_PER_TASK", 500)
    monkeypatch.setattr(factor_source, "USERS_PER_BLOCK", 7)
    monkeypatch.setattr(alignment, "CELLS_AT_ONCE", 400)
    for threads in (1, 3):
        result = rm.evaluate(factors, test, candidates=candidates, threads=threads, **options)
        assert_same(result, expected)
    sample = rm.SampledCandidates(200)
    blocked = rm.evaluate(factors, test, candidates=sample, **options)
    monkeypatch.undo()
    assert_same(rm.evaluate(factors, test, candidates=sample, **options), blocked)
    unrestricted = rm.evaluate(factors, test, candidates=np.ones((60, 300)), **options)
    assert_same(unrestricted, rm.evaluate(factors, test, **options))


COLUMNS = {
    "list": list,
    "array": np.array,
    "pandas": pd.Series,
    "pandas arrow": lambda items: pd.Series(items).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda items: pd.Series(items, dtype="category"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda items: pa.chunked_array([items[:1], items[1:]]),
}


def narrowed(items):
    """Count the candidates with `items()` passed as candidates, exclude and catalogue in turn."""
    model = rm.Scores([[1.0, 5.0, 0.0]], user_ids=["ann"], item_ids=["a", "b", "c"])
    test, lists = {"ann": ["a"]}, rm.Lists({"ann": ["a", "b"]})
    results = (
        rm.evaluate(model, test, metrics="rr", candidates=items()),
        rm.evaluate(model, test, metrics="rr", exclude=items(), min_candidates=1),
        rm.evaluate(lists, test, metrics="rr", catalogue=items()),
    )
    return [int(result.n_candidates[0]) for result in results]


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_any_library_are_read_as_items(column):
    assert narrowed(lambda: COLUMNS[column](["a", "b"])) == [2, 1, 2]


def test_only_frames_with_one_column_are_read_as_items(frame):
    """A frame with a single column is read as a list of items; two columns raise an error."""
    assert narrowed(lambda: frame({"item": ["a", "b"]})) == [2, 1, 2]
    rows = frame({"item": ["a", "b"], "title": ["A", "B"]})
    with pytest.raises(rm.ColumnError, match="exclude is a data frame with 2 columns: item, title"):
        rm.evaluate(rm.Scores([[1.0, 2.0]]), np.eye(1, 2), exclude=rows)


def test_exclude_removes_items_from_candidates(case):
    users, items, test, train = case
    options = {"train": train, "metrics": METRICS}
    factors = rm.Factors(users, items)
    combined = rm.evaluate(factors, test, candidates=range(100), exclude=[3, 4], **options)
    remaining = [item for item in range(100) if item not in (3, 4)]
    assert_same(combined, rm.evaluate(factors, test, candidates=remaining, **options))
    is_candidate = np.random.default_rng(1).random((60, 300)) < 0.3
    sets = rm.evaluate(factors, test, candidates=is_candidate, exclude=[3, 4], **options)
    is_candidate[:, [3, 4]] = False
    assert_same(sets, rm.evaluate(factors, test, candidates=is_candidate, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_ids_changes_nothing(case, kind):
    users, items, test, train = case
    scores = users @ items.T
    rng = np.random.default_rng(1)
    row, column = rng.permutation(60), rng.permutation(300)
    names = np.array([f"i{item:03}" for item in range(300)])
    shuffled = source(kind, scores[row][:, column], user_ids=row, item_ids=names[column])
    with_ids = {
        name: rm.Interactions.of(data, user_ids=range(60), item_ids=names)
        for name, data in (("test", test), ("train", train))
    }
    is_candidate = rng.random((60, 300)) < 0.4
    sets = {
        user: [*names[is_candidate[user]], "unheard of"]
        for user in reversed(range(60))
        if user != 7
    }
    is_candidate[7] = False
    for by_position, by_id in (
        (np.arange(100), names[:100][::-1]),
        (is_candidate, sets),
        (rm.SampledCandidates(30, seed=2), rm.SampledCandidates(30, seed=2)),
    ):
        expected = rm.evaluate(
            source(kind, scores), test, train=train, candidates=by_position, metrics=METRICS
        )
        result = rm.evaluate(
            shuffled,
            with_ids["test"],
            train=with_ids["train"],
            candidates=by_id,
            metrics=METRICS,
            exclude=["unheard of", "too"],
        )
        assert_same(result, expected)
        assert result.counts["exclude_unknown"] == 2
        if by_id is sets:
            assert result.counts["candidates_unknown"] == 1
            assert result.counts["users_without_candidates"] == 1
            assert "candidates that the source does not know (ignored): 1" in str(result)
            assert result.skipped("rr") == {"fewer items to rank than min_candidates": 1}


def test_rows_labelled_zero_are_candidates(frame):
    """Some papers publish their candidates as labelled rows."""
    rows = frame(
        {
            "user": ["ann"] * 4 + ["bob"] * 3,
            "item": ["a", "b", "c", "d", "b", "d", "e"],
            "label": [1, 0, 0, 0, 0, 1, 0],
        }
    )
    scores = [[1.0, 5.0, 0.0, 3.0, 9.0], [9.0, 1.0, 9.0, 2.0, 3.0]]
    model = rm.Scores(scores, user_ids=["ann", "bob"], item_ids=list("abcde"))
    test = {"ann": ["a"], "bob": ["d"]}
    result = rm.evaluate(model, test, candidates=rows, metrics="rr recall@2")
    assert result["rr"].tolist() == [1 / 3, 1 / 2]
    assert result["recall@2"].tolist() == [0, 1]
    assert result.n_candidates.tolist() == [4, 3]
    text = "Warning: Ranked among candidates of each user, not the whole catalogue: if these"
    assert text in str(result)
    assert text in result._repr_html_()


@pytest.mark.parametrize("kind", KINDS)
def test_relevant_item_outside_the_candidates_is_a_miss(kind):
    scores = [[4.0, 3.0, 2.0, 1.0]]
    test = np.array([[1, 0, 1, 0]])
    for candidates in ([1, 2, 3], np.array([[0, 1, 1, 1]])):
        result = rm.evaluate(
            source(kind, scores), test, candidates=candidates, metrics="recall@2 rr"
        )
        assert result["recall@2"].tolist() == [0.5]
        assert result["rr"].tolist() == [0.5]
        assert result.n_relevant.tolist() == [2]
        assert result.counts == {"relevant_not_candidates": 1}
        assert "relevant test rows whose items are not candidates (misses): 1" in str(result)


@pytest.mark.parametrize("kind", KINDS)
def test_train_items_are_removed_from_test_even_if_they_are_not_candidates(kind):
    scores, train = [[4.0, 3.0, 2.0, 1.0]], np.array([[1, 0, 0, 0]])
    test = np.array([[1, 0, 1, 0]])
    options = {"train": train, "metrics": "rr"}
    for candidates in ([1, 2, 3], range(4), np.array([[1, 1, 1, 0]])):
        result = rm.evaluate(source(kind, scores), test, candidates=candidates, **options)
        assert result["rr"].tolist() == [0.5]
        assert result.n_relevant.tolist() == [1]
        assert result.counts == {"train_test_overlap": 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("candidates", ["whitelist", "sets"])
def test_nan_and_infinite_scores_matter_only_among_candidates(kind, candidates):
    """The items with NaN or infinite scores are candidates in some cases, but not in others."""
    scores = np.array([[np.nan, 2.0, 1.0, 0.0], [5.0, np.inf, 1.0, 0.0], [3.0, 2.0, 1.0, 0.0]])
    test = np.array([[0, 0, 1, 0]] * 3)

    def evaluate(items, **rules):
        whitelist = (
            items if candidates == "whitelist" else np.isin(np.arange(4), items) * np.ones((3, 1))
        )
        factors = rm.Factors(np.eye(3), scores.T)
        # With factors, a single NaN or infinity affects every user, since 0 x NaN is NaN.
        model = rm.Scores(scores) if kind == "scores" else factors
        return rm.evaluate(model, test, candidates=whitelist, metrics="rr", **rules)["rr"]

    np.testing.assert_array_equal(evaluate([2, 3]), [1, 1, 1])
    if kind == "scores":
        np.testing.assert_array_equal(evaluate([1, 2]), [0.5, np.nan, 0.5])
        np.testing.assert_array_equal(evaluate([0, 2]), [np.nan, 0.5, 0.5])
        np.testing.assert_array_equal(evaluate([0, 2], nan_scores="last"), [1, 0.5, 0.5])
        np.testing.assert_array_equal(evaluate([0, 2], nan_scores="first"), [0.5, 0.5, 0.5])
    else:
        np.testing.assert_array_equal(evaluate([0, 2, 3], nan_scores="last"), [1, 1, 1])
        np.testing.assert_array_equal(evaluate([0, 2, 3], nan_scores="first"), [0.5, 0.5, 0.5])


def test_infinite_score_in_a_set_makes_its_user_undefined():
    factors = rm.Factors([[1.0], [1.0]], [[-np.inf], [2.0], [1.0]])
    test = np.array([[0, 0, 1], [1, 0, 1]])
    sets = np.array([[0, 1, 1], [1, 1, 1]])
    result = rm.evaluate(factors, test, candidates=sets, metrics="rr")
    np.testing.assert_array_equal(result["rr"], [0.5, np.nan])
    assert result.skipped("rr") == {"a candidate's score is infinite": 1}


def test_users_unknown_to_the_source_count_as_misses():
    factors = rm.Factors([[1.0]], [[1.0], [2.0], [3.0]], user_ids=["ann"], item_ids=["a", "b", "c"])
    test = {"ann": ["a"], "eve": ["b"]}
    for candidates in (rm.SampledCandidates(1), {"ann": ["a", "b"], "eve": ["a", "b"]}):
        result = rm.evaluate(factors, test, candidates=candidates, metrics="rr")
        assert result["rr"].tolist() == [0.5, 0]
        assert result.counts == {"users_unknown": 1}


def draw_table(n, seed=0, *, test, train, **options):
    """Return which items are drawn for each user, assuming that the model can rank every item."""
    n_users, n_items = test.shape
    request = Request(
        rm.Interactions.of(test, user_ids=options.get("user_ids")),
        rm.Interactions.of(train, user_ids=options.get("user_ids")),
        rm.Protocol(),
        candidates=rm.SampledCandidates(n, seed),
        threads=options.get("threads", 1),
    )
    ids = options.get("user_ids")
    aligned = align(SourceIndex.of("test", n_users, n_items, ids, None), request)
    table = np.zeros((n_users, n_items), bool)
    indptr, items = aligned.candidates
    table[np.repeat(np.arange(n_users), np.diff(indptr)), items] = True
    return table, aligned


@pytest.mark.parametrize("n", [1, 20, 200])
def test_drawn_negatives_are_neither_relevant_nor_in_train(case, n):
    _, _, test, train = case
    table, _ = draw_table(n, test=test, train=train)
    relevant, trained = test.toarray() > 0, train.toarray() > 0
    assert (table[relevant]).all()
    assert not (table & trained).any()
    negatives = table & ~relevant
    np.testing.assert_array_equal(negatives.sum(axis=1), n)
    np.testing.assert_array_equal(draw_table(n, test=test, train=train, threads=3)[0], table)
    assert (draw_table(n, seed=1, test=test, train=train)[0] != table).any()


def test_draws_do_not_depend_on_other_users(case):
    _, _, test, train = case
    ids = np.arange(60) * 7
    together, _ = draw_table(50, test=test, train=train, user_ids=ids)
    users = np.array([3, 11, 40])
    test_of_users = sp.csr_array(test.toarray()[users])
    drawn_alone, _ = draw_table(
        50, test=test_of_users, train=sp.csr_array(train.toarray()[users]), user_ids=ids[users]
    )
    np.testing.assert_array_equal(drawn_alone, together[users])
    factors = rm.Factors(*case[:2], user_ids=ids)
    data_with_ids = [rm.Interactions.of(data, user_ids=ids) for data in (test, train)]
    sample = rm.SampledCandidates(50)
    result = rm.evaluate(
        factors, data_with_ids[0], train=data_with_ids[1], candidates=sample, metrics=METRICS
    )
    drawn_alone = rm.evaluate(
        factors,
        data_with_ids[0].select_users(users),
        train=data_with_ids[1],
        candidates=sample,
        metrics=METRICS,
    )
    assert_same(drawn_alone, result, users)


def test_draws_are_the_same_in_every_version():
    """Every machine and every version must draw the same items."""

    def items(n, seed, train):
        table, _ = draw_table(n, seed, test=test, train=train)
        return [np.flatnonzero(row).tolist() for row in table]

    test, train = np.eye(3, 40), np.fliplr(np.eye(3, 40)) + np.eye(3, 40, 20)
    expected = [[0, 16, 18, 19, 38], [1, 7, 27, 30, 34], [2, 12, 14, 23, 24]]
    assert items(4, 0, train) == expected
    # 33 of 40 items are too many to draw one by one, so the last of them are the items with the
    # smallest hashes. The expected lists contain the items that are not drawn.
    items_not_drawn = [sorted({*range(40)} - {*row}) for row in items(33, 0, train)]
    assert items_not_drawn == [
        [6, 9, 20, 22, 28, 39],
        [6, 9, 13, 21, 32, 38],
        [11, 21, 22, 26, 34, 37],
    ]
    # With this many users, some hashes are nearly equal.
    test = np.tile(np.eye(40), (25, 1))
    train = (np.arange(1000)[:, None] % np.arange(1, 41) ** 2 == 1) * 1.0
    table, _ = draw_table(20, 1, test=test, train=train)
    assert zlib.crc32(np.packbits(table)) == 713900790


@pytest.mark.parametrize("n", [5, 28])
def test_draws_are_uniform(n):
    """Five items are drawn one by one; of 28 items, the last few are chosen by their hashes."""
    n_users, n_items = 20_000, 30
    test = np.zeros((n_users, n_items))
    test[:, 0] = 1
    table, _ = draw_table(n, test=sp.csr_array(test), train=sp.csr_array((n_users, n_items)))
    share = table[:, 1:].mean(axis=0)
    expected = n / 29
    assert np.abs(share - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / n_users)
    # Items are drawn without replacement, so all pairs of items must be equally likely, too.
    drawn_together = (table[:, 1:-1] & table[:, 2:]).mean(axis=0)
    expected = n * (n - 1) / (29 * 28)
    assert np.abs(drawn_together - expected).max() < 4.5 * np.sqrt(
        expected * (1 - expected) / n_users
    )


def test_users_with_too_few_items_to_draw_from_are_counted(case):
    users, items, test, train = case
    result = rm.evaluate(
        rm.Factors(users, items),
        test,
        train=train,
        candidates=rm.SampledCandidates(290),
        metrics="rr",
    )
    assert result.counts["candidates_short"] == 60
    assert "users with fewer candidates to draw from than requested: 60" in str(result)


def test_results_of_sampled_candidates_carry_a_warning(case, tmp_path):
    users, items, test, train = case
    sample = rm.SampledCandidates(20, seed=4)
    result = rm.evaluate(
        rm.Factors(users, items), test, train=train, candidates=sample, metrics="rr"
    )
    result.save(tmp_path / "sampled.parquet")
    for printed_result in (result, rm.load(tmp_path / "sampled.parquet")):
        for text in (" ".join(str(printed_result).split()), printed_result._repr_html_()):
            assert "Warning: Ranked among candidates of each user, not the whole" in text
            assert "Krichene &amp; Rendle" in text or "Krichene & Rendle" in text
            assert "SampledCandidates(n=20, seed=4" in text
        assert "warning" in printed_result.inputs["candidates"]
    unsampled = rm.evaluate(rm.Factors(users, items), test, train=train, metrics="rr")
    assert "Warning" not in str(unsampled)


def test_item_unknown_to_the_source_is_not_a_candidate():
    source = rm.Scores(np.array([[1.0, 3, 4, 5]]), user_ids=["ann"], item_ids=list("abcd"))
    test = {"ann": ["d", "z"]}
    for candidates in (list("bcd"), {"ann": list("bcd")}):
        result = rm.evaluate(source, test, candidates=candidates, metrics="recall@1,2")
        assert [result[f"recall@{k}"][0] for k in (1, 2)] == [1 / 2, 1 / 2]


def test_candidates_ignore_lists_of_users_outside_test():
    lists, test = rm.Lists({"ann": ["a"], "zed": ["z", "b"]}), {"ann": ["a"], "bob": ["b"]}
    result = rm.evaluate(lists, test, candidates=["a", "b"], metrics="rr", no_list="undefined")
    np.testing.assert_array_equal(result["rr"], [1, np.nan])
    assert "list_not_candidates" not in result.counts


def test_sizes_and_seeds_out_of_range_are_refused():
    assert rm.SampledCandidates(1) == rm.SampledCandidates(1, seed=0)
    assert repr(rm.SampledCandidates(np.int64(5))) == repr(rm.SampledCandidates(5))
    rm.SampledCandidates(2**31 - 1, seed=2**63 - 1)
    for n, seed in ((0, 0), (2**31, 0), (True, 0), (1.0, 0), (1, -1), (1, 2**63), (1, False)):
        with pytest.raises(InputError, match=r"must be a whole number, at least [01] and below"):
            rm.SampledCandidates(n, seed=seed)


def test_invalid_candidates_are_refused(case):
    users, items, test, train = case
    factors = rm.Factors(users, items)

    def evaluate(candidates=None, exclude=None, train=train, model=factors):
        return rm.evaluate(
            model, test, train=train, candidates=candidates, exclude=exclude, metrics="rr"
        )

    for n in (0, -1, 2.5, True, "many"):
        with pytest.raises(InputError, match=r"n=.* of SampledCandidates must be a whole number"):
            rm.SampledCandidates(n)
    with pytest.raises(InputError, match="seed=-1 of SampledCandidates"):
        rm.SampledCandidates(5, seed=-1)
    with pytest.raises(InputError, match=r"n=301.* draws more items than there are: 300"):
        evaluate(rm.SampledCandidates(301))
    with pytest.raises(InputTypeError, match=r"is a number. Hint: rm.SampledCandidates\(100\)"):
        evaluate(100)
    with pytest.raises(InputTypeError, match="is a class"):
        evaluate(rm.SampledCandidates)
    with pytest.raises(InputError, match="candidates is empty"):
        evaluate([])
    with pytest.raises(InputError, match="candidates is empty: no user"):
        evaluate(sp.csr_array((60, 300)))
    with pytest.raises(InputError, match=r"has the item 300, but .* the positions 0 to 299"):
        evaluate([1, 300])
    with pytest.raises(InputError, match="exclude has the item -1"):
        evaluate(exclude=[-1])
    with pytest.raises(InputTypeError, match=r"mask.*numpy.flatnonzero"):
        evaluate(np.ones(300, bool))
    with pytest.raises(InputError, match="list candidates= has item ids, but Factors has none"):
        evaluate(["a"])
    with pytest.raises(InputTypeError, match="exclude must be a list or an array of items"):
        evaluate(exclude=sp.csr_array((60, 300)))
    with pytest.raises(InputError, match="None of the 300 items of the source is left"):
        evaluate(exclude=range(300))
    with pytest.raises(InputError, match="No test user has a candidate"):
        evaluate(train)
    for user, message in (
        ("ann", "No test user has a candidate"),
        ("bob", "None of the 1 test users"),
    ):
        source_with_ids = rm.Scores([[1.0, 2.0]], user_ids=["ann"], item_ids=["a", "b"])
        options = {"train": {user: ["b"]}, "candidates": {user: ["b"]}}
        with pytest.raises(InputError, match=message):
            rm.evaluate(source_with_ids, {user: ["a"]}, **options, metrics="rr")
    with pytest.raises(InputError, match="candidates has 2 users, but test has 60"):
        evaluate(np.ones((2, 300)))
    with pytest.raises(InputError, match="Factors has 300 items, but candidates has 3"):
        evaluate(np.ones((60, 3)))
    factors_with_ids = rm.Factors(users, items, item_ids=[f"i{item}" for item in range(300)])
    with_ids = rm.Interactions.of(test, item_ids=[f"i{item}" for item in range(300)])
    with pytest.raises(
        InputError, match=r"None of the 2 items of candidates, such as .*, is in Factors"
    ):
        rm.evaluate(factors_with_ids, with_ids, candidates=["x", "y"], metrics="rr")
    with pytest.raises(InputTypeError, match="items of exclude are of type int"):
        rm.evaluate(factors_with_ids, with_ids, exclude=[1], metrics="rr")


# Tests of candidates that contain only negatives


def case_of_negatives(n_users=40, n_items=60, n=20):
    """Draw a good model's scores, a test set with one item per user, and sampled negatives."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(n_users, n_items))
    test = np.zeros((n_users, n_items))
    test[np.arange(n_users), rng.integers(0, n_items, n_users)] = 1
    scores += 2 * test
    negatives = [rng.permutation(np.flatnonzero(row == 0))[:n] for row in test]
    return scores, test, np.array(negatives)


def test_candidates_without_test_items_cause_a_warning_unless_they_are_negatives():
    scores, test, negatives = case_of_negatives()
    labels = test.copy()
    np.put_along_axis(labels, negatives, 1, axis=1)
    expected = rm.evaluate(rm.Scores(scores), test, candidates=labels, metrics="hit@3 rr")
    assert expected.mean()["hit@3"] > 0.5
    marks = labels - test
    for candidate_sets in (negatives, marks, sp.csr_array(marks), marks.astype(int)):
        with pytest.warns(DataWarning, match=r"40 of 40 relevant .*candidates=rm\.Negatives\(cand"):
            without_test_items = rm.evaluate(
                rm.Scores(scores), test, candidates=candidate_sets, metrics="hit@3"
            )
        assert without_test_items.mean() == {"hit@3": 0.0}
        result = rm.evaluate(
            rm.Scores(scores), test, candidates=rm.Negatives(candidate_sets), metrics="hit@3 rr"
        )
        assert_same(result, expected)


def test_negatives_may_be_a_dict_or_frame_of_ids():
    scores, test, negatives = case_of_negatives()
    users, items = [f"u{n:02}" for n in range(40)], [f"i{n:02}" for n in range(60)]
    source_ = rm.Scores(scores, user_ids=users, item_ids=items)
    truth = {user: [items[row.argmax()]] for user, row in zip(users, test, strict=True)}
    # The first test user has no negatives, and a user without test rows has some.
    sets = {u: [items[i] for i in row] for u, row in zip(users[1:], negatives[1:], strict=True)}
    sets["nobody"] = ["i01"]
    frame = pl.DataFrame([{"user": u, "item": i} for u, row in sets.items() for i in row])
    plain = rm.evaluate(rm.Scores(scores), test, candidates=rm.Negatives(negatives), metrics="rr")
    for candidate_sets in (sets, frame):
        result = rm.evaluate(source_, truth, candidates=rm.Negatives(candidate_sets), metrics="rr")
        assert result["rr"][1:].tolist() == plain["rr"][1:].tolist()
        assert result.n_candidates[0] == 1


def test_invalid_negatives_are_refused():
    scores, test, _ = case_of_negatives()
    for wrong in (None, rm.SampledCandidates(3)):
        with pytest.raises(InputTypeError, match=r"Hint: rm\.Negatives\(\{user: \[items\]\}\)"):
            rm.Negatives(wrong)
    with pytest.raises(InputTypeError, match="one list for all"):
        rm.evaluate(rm.Scores(scores), test, candidates=rm.Negatives([1, 2]))
    with pytest.raises(InputError, match="Only one of test and candidates has user ids"):
        rm.evaluate(rm.Scores(scores), test, candidates=rm.Negatives({"a": [1]}))


def test_integer_arrays_are_read_as_positions_of_candidates():
    scores, test, negatives = case_of_negatives()
    padded = np.concatenate([negatives, np.full((40, 2), -1)], axis=1)
    first = rm.evaluate(rm.Scores(scores), test, candidates=negatives, metrics="rr")
    assert (first.n_candidates == 20).all()
    assert_same(rm.evaluate(rm.Scores(scores), test, candidates=padded, metrics="rr"), first)
    # Repeated items count once, like the repeated rows of a frame.
    repeated = np.concatenate([negatives, negatives[:, :2]], axis=1)
    rows = np.repeat(np.arange(40), repeated.shape[1])
    frame = rm.Interactions.of(
        pl.DataFrame({"user": rows, "item": repeated.ravel()}).unique(), n_users=40, n_items=60
    )
    for sets, warning in (
        (repeated, r"80 of 880 interactions repeat a user-item pair"),
        (frame, None),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert_same(rm.evaluate(rm.Scores(scores), test, candidates=sets, metrics="rr"), first)
        messages = [
            str(record.message)
            for record in caught
            if "repeat a user-item pair" in str(record.message)
        ]
        assert len(messages) == (warning is not None)
        assert not messages or warning in messages[0]
    counts = np.zeros((40, 60), int)
    counts[:, :2] = 3
    for wrong, message in (
        (negatives[:3], r"pass a row for each of the 40 test users"),
        (np.where(negatives == negatives.max(), 60, negatives), r"to 60\. .*from 0 to 59"),
        (counts, r"or a count for every item\. Hint: for counts, pass matrix != 0"),
        (np.where(negatives == negatives.max(), -2, negatives), r"from -2 to "),
    ):
        with pytest.raises(InputError, match=message):
            rm.evaluate(rm.Scores(scores), test, candidates=wrong)
    for ids in ({"user_ids": range(40)}, {"item_ids": range(60)}):
        with pytest.raises(InputError, match=r"but test has ids\. Hint: pass a dict"):
            rm.evaluate(rm.Scores(scores), rm.Interactions.of(test, **ids), candidates=negatives)


def test_array_of_one_position_is_not_read_as_a_matrix():
    result = rm.evaluate(
        rm.Scores([[3.0, 2, 1]]), np.eye(1, 3, 2), candidates=np.array([[2]]), metrics="rr"
    )
    assert result.n_candidates.tolist() == [1]
    assert "relevant_not_candidates" not in result.counts


def test_large_overlap_of_test_and_train_causes_a_warning():
    scores, test, _ = case_of_negatives()
    train = test.copy()
    train[:19] = 0
    with pytest.warns(DataWarning, match=r"21 of 40 test rows are also in train.*rm\.split"):
        rm.evaluate(rm.Scores(scores), test, train=train, metrics="rr")
    train[19] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.evaluate(rm.Scores(scores), test, train=train, metrics="rr")


def test_coverage_is_relative_to_the_union_of_candidate_sets():
    source = rm.Scores([[4.0, 3.0, 2.0, 1.0]] * 2, user_ids=["ann", "bob"], item_ids=list("abcd"))
    test, sets = {"ann": ["a"], "bob": ["b"]}, {"ann": ["a", "c"], "bob": ["b"]}
    result = rm.evaluate(source, test, candidates=sets, metrics="coverage@1 recall@1")
    assert result.mean() == {"coverage@1": 2 / 3, "recall@1": 1.0}
    result = rm.evaluate(source, test, candidates=sets, exclude=["c", "d"], metrics="coverage@1")
    assert result.mean() == {"coverage@1": 1.0}


def test_candidates_unknown_to_the_source_are_counted():
    source = rm.Scores([[3.0, 2.0, 1.0]], user_ids=["ann"], item_ids=list("abc"))
    result = rm.evaluate(
        source, {"ann": ["a"]}, candidates=["a", "b", "x", "x", "y"], exclude=["z"], metrics="rr"
    )
    assert {name: result.counts[name] for name in ("candidates_unknown", "exclude_unknown")} == {
        "candidates_unknown": 2,
        "exclude_unknown": 1,
    }
    result = rm.evaluate(source, {"ann": ["a"]}, candidates=["a"], exclude=["b"], metrics="rr")
    assert not result.counts.keys() & {"candidates_unknown", "exclude_unknown"}


def test_seed_of_a_draw_must_fit_into_63_bits():
    assert rm.SampledCandidates(1, seed=2**63 - 1).seed == 2**63 - 1
    for seed in (-1, 2**63):
        with pytest.raises(InputError, match=f"seed={seed} of SampledCandidates must be a whole"):
            rm.SampledCandidates(1, seed=seed)


def test_other_columns_of_candidates_are_ignored_without_a_warning():
    source = rm.Scores([[3.0, 2.0, 1.0]], user_ids=["ann"], item_ids=list("abc"))
    candidates = pl.DataFrame({"user": ["ann"] * 2, "item": ["a", "b"], "score": [1.0, 2.0]})
    result = rm.evaluate(source, {"ann": ["b"]}, candidates=candidates, metrics="rr")
    assert result.mean() == {"rr": 0.5}


@pytest.mark.parametrize("kind", KINDS)
def test_values_at_cutoffs_do_not_depend_on_other_metrics(kind):
    """Some users have as many relevant items as candidates, but not the same items."""
    scores = np.random.default_rng(3).random((30, 9))
    test = np.random.default_rng(4).random((30, 9)) < 0.6
    candidates = np.random.default_rng(5).random((30, 9)) < 0.4
    metrics_at_cutoffs = "recall@1 ndcg@2"
    for candidate_items in (candidates, [0, 2, 3, 5, 8]):
        all_metrics = rm.evaluate(
            source(kind, scores),
            test,
            candidates=candidate_items,
            metrics=f"{metrics_at_cutoffs} rr roc_auc",
        )
        at_cutoffs = rm.evaluate(
            source(kind, scores), test, candidates=candidate_items, metrics=metrics_at_cutoffs
        )
        assert at_cutoffs.counts == all_metrics.counts
        for name in at_cutoffs.values:
            np.testing.assert_array_equal(at_cutoffs[name], all_metrics[name])
            np.testing.assert_array_equal(at_cutoffs.reasons[name], all_metrics.reasons[name])


@pytest.mark.parametrize("kind", KINDS)
def test_users_with_only_relevant_candidates_are_undefined_at_cutoffs(kind):
    """The values are the same whether or not an AUC is computed as well."""
    scores = np.random.default_rng(6).random((4, 5))
    test = np.array([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 1, 1]])
    for candidates in (None, [0, 1], [0]):
        options = {"candidates": candidates, "all_relevant": "undefined"}
        all_metrics = rm.evaluate(source(kind, scores), test, metrics="recall@1 roc_auc", **options)
        one_metric = rm.evaluate(source(kind, scores), test, metrics="recall@1", **options)
        np.testing.assert_array_equal(one_metric["recall@1"], all_metrics["recall@1"])
        assert one_metric.skipped("recall@1") == all_metrics.skipped("recall@1") != {}


def test_padding_of_lists_is_not_read_as_a_candidate():
    lists = rm.Lists(np.array([[0, -1, -1], [-1, 2, 1]]))
    test = np.array([[0, 1, 0, 0], [0, 1, 0, 0]])
    for options in ({"exclude": [3]}, {"candidates": [0, 1, 2]}, {"exclude": [3], "catalogue": 4}):
        assert rm.evaluate(lists, test, metrics="rr", **options)["rr"].tolist() == [0, 0.5]


def test_padding_distinguishes_positions_from_a_matrix():
    scores, test = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[1, 0, 0], [0, 1, 0]]
    for padded_items, sizes in (([[0, -1], [1, 0]], [1, 2]), ([[0, 1, 1], [1, 1, 0]], [2, 2])):
        result = rm.evaluate(
            rm.Scores(scores), np.array(test), candidates=np.array(padded_items), metrics="rr"
        )
        assert result.n_candidates.tolist() == sizes
