"""The native list functions agree with their NumPy twins."""

import kernel_twin
import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from recometer import _kernel

SPECIAL = [np.nan, np.inf, -np.inf]


def ragged(rng, n_users, n_items, max_items):
    """Draw distinct items for each user, and sort them in ascending order."""
    rows = [
        np.sort(
            rng.choice(n_items, min(int(rng.integers(0, max_items + 1)), n_items), replace=False)
        )
        for _ in range(n_users)
    ]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate([*rows, []]).astype(np.int32)


def run(rank_lists, problem, k, ties):
    n_users, n_judged = len(problem["begin"]), len(problem["judged"])
    outputs = {"above": np.full(n_judged, -9, np.int64)}
    for name in ("tied", "before"):
        outputs[name] = np.full(n_judged, -9, np.int64) if ties else None
    for name in ("given", "listed", "removed", "repeated"):
        outputs[name] = np.full(n_users, -9, np.int64)
    outputs["flags"] = np.zeros(n_users, np.uint32)
    outputs["top"] = np.full((n_users, k), -1, np.int32)
    outputs["left"] = np.zeros(n_users, np.int64)
    rank_lists(**problem, **outputs, keys=np.arange(n_users, dtype=np.uint64) * np.uint64(977))
    return outputs


@given(
    seed=st.integers(0, 2**32),
    scored=st.sampled_from(["no", "few", "many", "special"]),
    input_order=st.booleans(),
    nan_rule=st.sampled_from(_kernel.NanRule),
    k=st.sampled_from([0, 1, 2, 5, 20]),
    order=st.sampled_from(_kernel.TieOrder),
    ties=st.booleans(),
)
@example(0, "special", False, _kernel.NanRule.UNDEFINED, 5, _kernel.TieOrder.ITEM, True)
@example(1, "special", True, _kernel.NanRule.UNDEFINED, 5, _kernel.TieOrder.RANDOM, True)
@examples(5)
def test_rank_lists_agrees_with_its_twin(seed, scored, input_order, nan_rule, k, order, ties):
    rng = np.random.default_rng(seed)
    n_users, n_items = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    lengths = rng.integers(0, 14, n_users)
    end = np.cumsum(lengths).astype(np.int64)
    items = rng.integers(-1, n_items, end[-1]).astype(np.int32)
    scores = None
    if scored != "no":
        scores = rng.integers(0, 3 if scored == "few" else 9, end[-1]).astype(np.float64)
    if scored == "special":
        odd = rng.random(end[-1]) < 0.3
        scores[odd] = rng.choice(SPECIAL, int(odd.sum()))
    judged = ragged(rng, n_users, n_items, 5)
    judged[1][rng.random(len(judged[1])) < 0.1] = -1
    excluded = ragged(rng, n_users, n_items, 3)
    problem = {
        "items": items,
        "scores": scores,
        "begin": end - lengths,
        "end": end,
        "n_items": n_items,
        "excluded_indptr": excluded[0],
        "excluded": excluded[1],
        "judged_indptr": judged[0],
        "judged": judged[1],
        "input_order": input_order,
        "nan_rule": nan_rule,
        "order": order,
    }
    ties = ties or scores is not None
    native, slow = (run(module.rank_lists, problem, k, ties) for module in (_kernel, kernel_twin))
    for name, actual in native.items():
        np.testing.assert_array_equal(actual, slow[name], err_msg=name)


@given(
    seed=st.integers(0, 2**32),
    n_scores=st.sampled_from([3, 40, 10**6]),
    input_order=st.booleans(),
    k=st.sampled_from([0, 7]),
)
def test_rank_lists_agrees_with_its_twin_on_many_judged_items(seed, n_scores, input_order, k):
    rng = np.random.default_rng(seed)
    lengths, n_items = np.array([90, 0, 30]), 70
    end = np.cumsum(lengths).astype(np.int64)
    scores = rng.integers(0, n_scores, end[-1]).astype(np.float64)
    odd = rng.random(end[-1]) < 0.1
    scores[odd] = rng.choice([*SPECIAL, -0.0], int(odd.sum()))
    judged = ragged(rng, 3, n_items, 60)
    excluded = ragged(rng, 3, n_items, 9)
    problem = {
        "items": rng.integers(-1, n_items, end[-1]).astype(np.int32),
        "scores": scores,
        "begin": end - lengths,
        "end": end,
        "n_items": n_items,
        "excluded_indptr": excluded[0],
        "excluded": excluded[1],
        "judged_indptr": judged[0],
        "judged": judged[1],
        "input_order": input_order,
        "nan_rule": _kernel.NanRule.LAST,
        "order": _kernel.TieOrder.ITEM,
    }
    native, slow = (run(module.rank_lists, problem, k, True) for module in (_kernel, kernel_twin))
    for name, actual in native.items():
        np.testing.assert_array_equal(actual, slow[name], err_msg=name)


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from([np.int32, np.float64]))
def test_rows_are_counted_and_grouped(seed, dtype):
    rng = np.random.default_rng(seed)
    n_lists, n = int(rng.integers(1, 5)), int(rng.integers(0, 20))
    rows = rng.integers(0, n_lists, n).astype(np.int32)
    values = rng.integers(0, 99, n).astype(dtype)
    results = []
    for module in (_kernel, kernel_twin):
        counts = np.full(n_lists, 3)
        assert module.count_rows(rows, counts)
        next, grouped = np.cumsum(counts - 3) - (counts - 3), np.empty_like(values)
        module.group_rows(rows, values, next, grouped)
        results.append((counts, next, grouped))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(results[0][2], values[np.argsort(rows, kind="stable")])


@given(seed=st.integers(0, 2**32), first=st.sampled_from([0, 1, 1 - 2**31]))
def test_place_rows_agrees_with_its_twin(seed, first):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, int(rng.integers(1, 5)))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    order = rng.permutation(indptr[-1])
    rows = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    places = (np.arange(indptr[-1]) - indptr[rows] + first).astype(np.int32)
    items = rng.permutation(indptr[-1]).astype(np.int32)
    if rng.random() < 0.3 and len(places):
        places[rng.integers(len(places))] += rng.choice([-1, 1])
    results = []
    for place_rows in (_kernel.place_rows, kernel_twin.place_rows):
        out = np.full_like(items, -1)
        fits = place_rows(
            list=rows[order],
            items=items[order],
            places=places[order],
            first=first,
            indptr=indptr,
            sorted_items=out,
        )
        results.append((fits, out if fits else None))
    assert results[0][0] == results[1][0]
    if results[0][0] and (results[0][1] >= 0).all():
        np.testing.assert_array_equal(results[0][1], items)
        np.testing.assert_array_equal(results[1][1], items)
    else:
        assert results[1][1] is None or (results[1][1] < 0).any()


@pytest.mark.parametrize("count_rows", [_kernel.count_rows, kernel_twin.count_rows])
@pytest.mark.parametrize("wrong", [-1, 2])
def test_count_rows_reports_rows_that_belong_to_no_list(count_rows, wrong):
    assert not count_rows(np.array([0, wrong], np.int32), np.zeros(2, np.int64))


@given(
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([np.int32, np.int64]),
    wrong=st.sampled_from(
        ["nothing", "item", "far item", "user", "twice", "again", "room", "width", "users", "all"]
    ),
)
def test_take_lists_accepts_only_valid_lists_of_new_users(seed, dtype, wrong):
    rng = np.random.default_rng(seed)
    n_users, k, n_items = int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
    users = rng.permutation(n_users)[: int(rng.integers(1, n_users + 1))]
    items = rng.integers(-1, n_items, (len(users), k)).astype(dtype)
    before = np.isin(np.arange(n_users), users, invert=True) & (rng.random(n_users) < 0.5)
    row = int(rng.integers(len(users)))
    if wrong == "item":
        items[row, 0] = rng.choice([n_items, -2])
    elif wrong == "far item":
        items[row, 0] = rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max])
    elif wrong == "user":
        users[row] = rng.choice([n_users, -1])
    elif wrong == "twice":
        users = np.append(users, users[row])
        items = np.append(items, items[:1], axis=0)
    elif wrong == "again":
        before[users[row]] = True
    elif wrong == "all":  # the batch contains no lists
        users, items = users[:0], items[:0]
    first = int(rng.integers(3))
    end = first + len(items)
    n_users_with_room, width = end + int(rng.integers(3)), k + (wrong == "width")
    if wrong == "room":
        n_users_with_room = end - 1
    elif wrong == "users":
        users = users[1:]
    for module in (_kernel, kernel_twin):
        has_come, taken = before.copy(), np.full((n_users_with_room, width), -9, np.int32)
        taken_users = np.full(n_users_with_room, -9)
        taken_all = module.take_lists(items, n_items, users, has_come, first, taken, taken_users)
        assert taken_all is (wrong == "nothing")
        if wrong == "nothing":
            np.testing.assert_array_equal(taken[first:end], items)
            np.testing.assert_array_equal(taken_users[first:end], users)
            assert (np.delete(taken, slice(first, end), 0) == -9).all()
            before_or_now = before | np.isin(np.arange(n_users), users)
            np.testing.assert_array_equal(has_come, before_or_now)
        else:
            np.testing.assert_array_equal(has_come, before)


def test_take_lists_refuses_users_without_a_list():
    with pytest.raises(ValueError, match="one user per list"):
        _kernel.take_lists(
            items=np.zeros((2, 3), np.int64),
            n_items=1,
            users=np.arange(2),
            came=np.zeros(2, bool),
            first=0,
            taken=np.zeros((4, 3), np.int32),
            taken_users=np.zeros(3, np.int64),
        )
