"""A user whose candidates all have the same score has no ranking, whatever the test items are.

The candidates of users 0 and 3 have equal scores, those of user 1 do not, and user 2 has a single
candidate. Users 0 and 2 have no test item that is a candidate, unless a test function adds one.
"""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import recometer as rm

USERS, ITEMS = ["u0", "u1", "u2", "u3"], ["i0", "i1", "i2", "i3", "i4"]
SCORES = np.array(
    [
        [9.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 2.0, 1.0, 1.0, 1.0],
        [5.0, 1.0, 2.0, 3.0, 4.0],
        [0.0, 7.0, 7.0, 7.0, 7.0],
    ]
)
# Item 0 is never a candidate, and item 4 is the only candidate for user 2.
CANDIDATES = np.array([[0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 1], [0, 1, 1, 1, 1]])
TEST = {(0, 0): 1.0, (1, 0): 1.0, (1, 2): 1.0, (2, 0): 1.0, (3, 1): 1.0}
METRICS = "rr recall@2 ndcg"


def as_frame(cells):
    return pl.DataFrame(
        [(USERS[user], ITEMS[item], value) for (user, item), value in cells.items()],
        schema=["user", "item", "value"],
        orient="row",
    )


def matrix(cells):
    users, items = zip(*cells, strict=True)
    matrix_of_cells = sp.coo_array(
        (list(cells.values()), (users, items)), shape=SCORES.shape
    ).tocsr()
    matrix_of_cells.sort_indices()
    return matrix_of_cells


def candidates(form):
    """Return options of the given form that restrict `evaluate` to CANDIDATES."""
    sets = {user: np.flatnonzero(row).tolist() for user, row in enumerate(CANDIDATES)}
    seen_items = {2: [1, 2, 3]}
    return {
        "sets": {"candidates": sets},
        "a list": {"candidates": [1, 2, 3, 4], "train": seen_items},
        "exclude": {"exclude": [0], "train": seen_items},
        "train": {"train": {user: [0, *seen_items.get(user, [])] for user in range(4)}},
    }[form]


def with_ids(options):
    def ids(id_values):
        if isinstance(id_values, list):
            return [ITEMS[item] for item in id_values]
        return {USERS[user]: [ITEMS[item] for item in items] for user, items in id_values.items()}

    return {name: ids(argument) for name, argument in options.items()}


def frame(scores=SCORES):
    rows = [
        (USERS[user], ITEMS[item], score)
        for user, of_user in enumerate(scores)
        for item, score in enumerate(of_user)
    ]
    return pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")


IDS = {"user_ids": USERS, "item_ids": ITEMS}
SOURCES = {
    "scores": lambda: rm.Scores(SCORES, **IDS),
    "function": lambda: rm.Scores(lambda users: SCORES[users], **IDS),
    "factors": lambda: rm.Factors(SCORES, np.eye(5), **IDS),
    "float32": lambda: rm.Factors(SCORES.astype(np.float32), np.eye(5, dtype=np.float32), **IDS),
    "biases": lambda: rm.Factors(SCORES - 3, np.eye(5), item_bias=np.full(5, 3.0), **IDS),
    "lists": lambda: rm.Lists(frame(), score="score"),
    "pairs": lambda: rm.Pairs(frame(), relevance=False),
}


def reasons(result):
    return [[rm.Reason(code) for code in result.reasons[name]] for name in result.reasons]


def expected(test):
    none = (
        rm.Reason.NO_RELEVANT
        if not any(value for (user, _), value in test.items() if not user)
        else rm.Reason.CONSTANT_SCORES
    )
    return [none, rm.Reason.DEFINED, rm.Reason.FEW_CANDIDATES, rm.Reason.CONSTANT_SCORES]


MORE = {
    "no candidate": {},
    "a candidate that is not relevant": {(0, 2): 0.0, (2, 4): 0.0},
    "a candidate": {(0, 3): 1.0},
}


@pytest.mark.parametrize("extra_test", MORE.values(), ids=MORE.keys())
@pytest.mark.parametrize("form", ["sets", "a list", "exclude", "train"])
@pytest.mark.parametrize("kind", [*SOURCES, "stream"])
def test_constant_scores_leave_metrics_undefined(kind, form, extra_test):
    test, options = TEST | extra_test, with_ids(candidates(form))
    if form == "train":  # test items that are also training items would be ignored
        test = {cell: value for cell, value in test.items() if cell != (1, 0)} | {(0, 4): 1.0}
        test = {cell: value for cell, value in test.items() if cell != (2, 0)} | {(2, 4): 1.0}
    if kind == "lists":
        options["catalogue"] = ITEMS
    if kind == "stream":
        stream = rm.Evaluator(as_frame(test), metrics=METRICS, **options).stream(item_ids=ITEMS)
        for user in (2, 0, 3, 1):
            stream.update(SCORES[[user]], users=[USERS[user]])
        result = stream.compute()
    else:
        result = rm.evaluate(SOURCES[kind](), as_frame(test), metrics=METRICS, **options)
    assert reasons(result) == [expected(test)] * 3
    constant = (result.flags & rm.UserFlag.CONSTANT_SCORES) != 0
    np.testing.assert_array_equal(constant, [True, False, False, True])
    as_ties = rm.evaluate(
        SOURCES["scores" if kind == "stream" else kind](),
        as_frame(test),
        metrics="rr",
        constant_scores="ties",
        **options,
    )
    defined = [rm.Reason.DEFINED] * 2 + [rm.Reason.FEW_CANDIDATES, rm.Reason.DEFINED]
    assert reasons(as_ties) == [defined]


@pytest.mark.parametrize("kind", ["scores", "factors", "lists"])
def test_unknown_items_are_not_candidates(kind):
    test = pl.DataFrame({"user": USERS, "item": ["new", "new", "i1", "i1"]})
    scores = np.array([[1.0] * 5, [1, 1, 1, 1, 2], [0.0] * 5, [3, 2, 1, 1, 1]])
    source = {
        "scores": lambda: rm.Scores(scores, **IDS),
        "factors": lambda: rm.Factors(scores, np.eye(5), **IDS),
        "lists": lambda: rm.Lists(frame(scores), score="score"),
    }[kind]()
    result = rm.evaluate(source, test, metrics="rr", catalogue=ITEMS)
    expected_reasons = [rm.Reason.CONSTANT_SCORES, rm.Reason.DEFINED]
    assert reasons(result) == [expected_reasons * 2]


def test_masked_items_are_not_candidates():
    masked = np.where(CANDIDATES == 1, SCORES, -np.inf)
    result = rm.evaluate(rm.Scores(masked, **IDS), as_frame(TEST), metrics=METRICS)
    assert reasons(result) == [expected(TEST)] * 3


@pytest.mark.parametrize("n_items", [7, 9, 300, 3000])
@pytest.mark.parametrize("different", [None, 0, 5, -1])
@pytest.mark.parametrize("kind", ["scores", "factors"])
def test_one_different_score_makes_a_ranking(kind, different, n_items):
    scores = np.full((3, n_items), 2.0)
    if different is not None:
        scores[:, different] = 3.0
    train = np.zeros((3, n_items))
    train[:, 1:4] = 1
    test = sp.csr_array(([1.0] * 3, ([0, 1, 2], [1, 2, 3])), shape=(3, n_items))
    source = rm.Scores(scores) if kind == "scores" else rm.Factors(scores, np.eye(n_items))
    result = rm.evaluate(source, test, train=train, metrics="rr", no_relevant="computed")
    assert ((result.flags & rm.UserFlag.CONSTANT_SCORES) != 0).tolist() == [different is None] * 3


def test_candidates_missing_from_a_list_rank_below_it():
    lists = rm.Lists({"a": {"x": 1.0, "y": 1.0}})
    test, rules = {"a": ["z"]}, {"metrics": "rr", "min_candidates": 1}
    assert reasons(rm.evaluate(lists, test, catalogue=["x", "y", "z"], **rules)) == [[0]]
    assert reasons(rm.evaluate(lists, test, candidates=["x", "y"], **rules)) == [
        [rm.Reason.CONSTANT_SCORES]
    ]
    assert reasons(rm.evaluate(lists, test, **rules)) == [[0]]
