"""Tests of lists from every kind of data, and of the rules for missing and repeated items."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, InputError
from recometer.metrics import reading
from recometer.sources._list_reading import PROBE
from recometer.testing import cases

METRICS = reading("ranks", side=False)

USERS = ["ann", "ann", "bob", "bob", "bob"]
ITEMS = ["x", "y", "z", "x", "w"]
SCORES = [0.9, 0.5, 0.8, 0.7, 0.1]
TEST = {"ann": ["y"], "bob": ["w", "z"], "cat": ["x"]}
# Ann's relevant item y is second in her list. Bob's relevant items z and w are first and third in
# his list. Cat has no list.
EXPECTED = [1 / 2, 1.0, 0.0]


def rr(source, test=TEST, **options):
    return rm.evaluate(source, test, metrics="rr", **options)["rr"].tolist()


def columns(order=range(5), *, ids=str, third="score"):
    """Return the columns of a frame, with the rows in the given order."""
    names = {"user_id": USERS, "item_id": ITEMS}
    rows = {name: [values[row] for row in order] for name, values in names.items()}
    if ids is not str:
        rows = {name: [ids(ord(value[0])) for value in values] for name, values in rows.items()}
    if third == "score":
        rows["score"] = [SCORES[row] for row in order]
    if third == "rank":
        rows["rank"] = [[1, 2, 1, 2, 3][row] for row in order]
    return rows


def integer_test():
    return {ord(user[0]): [ord(item) for item in items] for user, items in TEST.items()}


ORDERS = {"sorted": range(5), "shuffled": (4, 1, 2, 0, 3), "interleaved": (0, 2, 1, 3, 4)}


def test_frames_are_ranked_by_score_or_rank(frame):
    for order, third in itertools.product(ORDERS, ["score", "rank"]):
        lists = rm.Lists(frame(columns(ORDERS[order], third=third)))
        assert rr(lists) == EXPECTED, f"{order} rows with a {third}"


def with_score_column(name):
    """Return shuffled rows with a score column called `name`."""
    plain = {**columns((4, 1, 2, 0, 3), third=None), "note": list("abcde"), "timestamp": [1] * 5}
    return {**plain, name: [SCORES[row] for row in (4, 1, 2, 0, 3)]}


def test_score_with_an_uncommon_name_causes_a_warning(frame):
    rows = with_score_column("utility")
    with pytest.warns(DataWarning, match="order of the rows.*'utility'.*Hint: score='utility'"):
        by_rows = rm.Lists(frame(rows))
    assert rr(by_rows) == rr(rm.Lists(frame(rows), rank=False, score=False)) == [1.0, 1.0, 0.0]
    by_score = rm.Lists(frame(rows), score="utility")
    assert rr(by_score) == EXPECTED
    assert "order of the rows" not in by_score.describe()
    del rows["utility"]
    assert rm.Lists(frame(rows)).describe().endswith("in the order of the rows")


@pytest.mark.parametrize("name", ["rating_2", "my_score"])
def test_possible_score_column_is_suggested(name):
    with pytest.warns(DataWarning, match=f"order of the rows.*{name!r}.*Hint: score={name!r}"):
        rm.Lists(pl.DataFrame(with_score_column(name)))


def check_rank_is_suggested(frame, name):
    rows = {**columns((4, 1, 2, 0, 3), third="rank"), "label": [1, 0, 1, 0, 1]}
    rows[name] = rows.pop("rank")
    hint = f"Hint: rank={name!r} ranks .* lowest first; rank="
    with pytest.warns(DataWarning, match=hint):
        rm.Lists(frame(rows))
    assert rr(rm.Lists(frame(rows), rank=name)) == EXPECTED


def test_possible_rank_column_of_any_frame_is_suggested(frame):
    check_rank_is_suggested(frame, "itemNumber")


@pytest.mark.parametrize("name", ["slot", "Order", "index", "list_position"])
def test_possible_rank_columns_are_recognised_by_name(name):
    check_rank_is_suggested(pl.DataFrame, name)


@pytest.mark.parametrize("extension", ["csv", "tsv", "parquet"])
def test_ignored_score_in_a_file_causes_a_warning(tmp_path, extension):
    rows = {**columns((4, 1, 2, 0, 3), third=None), "note": ["1", None, "2b", "", "3"]}
    frame = pl.DataFrame({**rows, "utility": [1.5, None, -2.0, 1e-7, 3.0]})
    path = tmp_path / f"lists.{extension}"
    if extension == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if extension == "tsv" else ",")
    with pytest.warns(DataWarning, match="taken as the ranking, ignoring 'utility'"):
        by_rows = rm.Lists(path)
    assert by_rows.describe().endswith("in the order of the rows")
    assert rr(by_rows) == rr(rm.Lists(path, score=False))


@pytest.mark.parametrize("ids", [int, lambda code: code * 10**9 - 10**11])
def test_frames_may_have_integer_ids(frame, ids):
    test = {ids(user): list(map(ids, items)) for user, items in integer_test().items()}
    for order, rows in ORDERS.items():
        assert rr(rm.Lists(frame(columns(rows, ids=ids))), test) == EXPECTED, f"{order} rows"


def test_frames_without_rank_and_score_are_ranked_by_row(frame):
    assert rr(rm.Lists(frame(columns(third=None)))) == EXPECTED
    backwards = columns(range(4, -1, -1), third=None)
    assert rr(rm.Lists(frame(backwards))) == [1.0, 1.0, 0.0]
    with_score = columns(range(4, -1, -1))
    assert rr(rm.Lists(frame(with_score), score=False)) == [1.0, 1.0, 0.0]


def test_lazy_frame_is_collected_once():
    times = []

    def shuffled(frame):
        times.append(1)
        return frame.sample(fraction=1, shuffle=True, seed=len(times))

    lazy = pl.LazyFrame(columns()).map_batches(shuffled)
    assert rr(rm.Lists(lazy)) == EXPECTED
    assert len(times) == 1


def test_rank_takes_precedence_over_score(frame):
    data = {**columns(), "rank": [2, 1, 3, 2, 1]}
    assert rr(rm.Lists(frame(data))) == [1.0, 1.0, 0.0]
    assert rr(rm.Lists(frame(data), score="score")) == EXPECTED
    assert rr(rm.Lists(frame(data), rank=False)) == EXPECTED
    with pytest.raises(rm.InputError, match="Both rank= and score= were passed"):
        rm.Lists(frame(data), rank="rank", score="score")


def test_columns_can_be_named(frame):
    data = {"a": USERS, "b": ITEMS, "c": SCORES}
    assert rr(rm.Lists(frame(data), user="a", item="b", score="c")) == EXPECTED
    with pytest.raises(rm.ColumnError, match="user="):
        rm.Lists(frame(data))


@pytest.mark.parametrize("entries", [list, tuple, np.array])
def test_dict_of_lists_is_ranked_by_position(entries):
    assert rr(rm.Lists({"bob": entries(["z", "x", "w"]), "ann": entries(["x", "y"])})) == EXPECTED


def test_dict_of_scores_is_ranked_by_score():
    lists = {"ann": {"y": 0.5, "x": 0.9}, "bob": {"w": 1, "x": 2, "z": 3}}
    assert rr(rm.Lists(lists)) == EXPECTED


def test_dict_of_other_values_is_refused():
    with pytest.raises(rm.InputTypeError, match="The list of user 'ann' is of type str"):
        rm.Lists({"ann": "xyz"})
    with pytest.raises(rm.InputTypeError, match="of user 'bob' is of type list"):
        rm.Lists({"ann": {"x": 1.0}, "bob": ["x"]})
    with pytest.raises(
        rm.InputTypeError, match=r"pairs .* as \('b', 0\.5\)\. Hint: write \{user: \{"
    ):
        rm.Lists({"ann": [("b", 0.5)]})
    # The tuples here are ids with two parts.
    assert "2 entries" in repr(rm.Lists({"ann": [("b", 1), ("b", 2)]}))


def test_nested_list_of_rows_is_refused():
    with pytest.raises(rm.InputTypeError, match=r"from list\. Hint: .* np\.array\(\.\.\.\)"):
        rm.Lists([[0, 1], [1, -1]])


def test_dict_of_columns_and_single_column_are_refused():
    with pytest.raises(rm.InputTypeError, match=r"seems to hold the columns .* polars.DataFrame"):
        rm.Lists({"user": USERS, "item": ITEMS, "score": SCORES})
    series = pd.Series([["x", "y"], ["z", "x", "w"]], index=["ann", "bob"])
    with pytest.raises(
        rm.InputTypeError, match=r"one column \(Series\).* pass series\.to_dict\(\)"
    ):
        rm.Lists(series)
    assert rr(rm.Lists(series.to_dict())) == EXPECTED


ARRAY = np.array([[0, 1, -1], [2, 0, 3], [-1, -1, -1]])
ARRAY_TEST = sp.csr_array(([1.0, 1, 1, 1], ([0, 1, 1, 2], [1, 2, 3, 0])), shape=(3, 4))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_array_is_read_as_positions(dtype):
    result = rm.evaluate(rm.Lists(ARRAY.astype(dtype)), ARRAY_TEST, metrics="rr")
    assert result["rr"].tolist() == EXPECTED
    assert result.counts == {"users_unknown": 1}


def test_padding_may_be_anywhere_in_an_array():
    padded = np.asfortranarray([[-1, 0, -1, 1], [2, -1, 0, 3], [-1] * 4])
    assert rr(rm.Lists(padded), ARRAY_TEST) == EXPECTED


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_masked_entries_are_read_as_padding(dtype):
    array = np.ma.masked_array(np.maximum(ARRAY, 0).astype(dtype), mask=ARRAY < 0)
    assert rr(rm.Lists(array), ARRAY_TEST) == EXPECTED


def test_read_only_array_is_accepted():
    array = ARRAY.astype(np.int32)
    array.flags.writeable = False
    assert rr(rm.Lists(array), ARRAY_TEST) == EXPECTED


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_later_changes_to_an_array_have_no_effect(dtype):
    array = ARRAY.astype(dtype)
    lists = rm.Lists(array)
    array[1] = 10**6
    assert rr(lists, ARRAY_TEST) == EXPECTED


def test_array_may_have_ids():
    lists = rm.Lists(ARRAY, user_ids=["bob", "ann", "zoe"], item_ids=["z", "y", "x", "w"])
    # Bob's list contains z and y, and Ann's list contains x, z and w.
    assert rr(lists, {"ann": ["w"], "bob": ["y"]}) == [1 / 3, 1 / 2]
    # No list contains item a. Since a comes first in the order of ids, all other items get new
    # numbers.
    assert rr(lists, {"bob": ["a", "w", "x"]}) == [0]
    lists = rm.Lists(ARRAY, user_ids=["bob", "ann", "zoe"], item_ids=["w", "z", "x", "y"])
    assert rr(lists, {"ann": ["y"], "bob": ["z"]}) == [1 / 3, 1 / 2]


def test_array_may_have_only_user_ids():
    test = rm.Interactions.of(ARRAY_TEST, user_ids=["a", "b", "c"])
    assert rr(rm.Lists(ARRAY, user_ids=["a", "b", "c"]), test) == EXPECTED
    # The lists of users without test rows are ignored; the result counts those that are not empty.
    result = rm.evaluate(rm.Lists(ARRAY, user_ids=["a", "x", "y"]), test, metrics="rr")
    assert result["rr"].tolist() == [1 / 2, 0, 0]
    assert result.counts == {"list_users_ignored": 1, "users_unknown": 2}


def test_positions_beyond_the_items_are_refused():
    lists = rm.Lists(np.array([[0, 1], [2, 9], [3, 8]]))
    message = "list in row 1 holds the item position 9, .* 0 to 3. Hint: .*item_offset=n_users"
    with pytest.raises(rm.InputError, match=message):
        rr(lists, ARRAY_TEST)
    with pytest.raises(rm.InputError, match="list in row 1 holds the item position 9"):
        rr(rm.Lists(np.array([[0, 1], [9, 2], [3, 8]])), ARRAY_TEST)
    # The catalogue may contain items that are not test items.
    assert rr(lists, ARRAY_TEST, catalogue=10) == [1 / 2, 1, 0]
    assert rr(lists, ARRAY_TEST, catalogue=range(10)) == [1 / 2, 1, 0]
    with pytest.raises(rm.InputError, match="positions 0 to 8"):
        rr(lists, ARRAY_TEST, catalogue=9)
    with pytest.raises(rm.InputError, match="positions 0 to 8"):
        rr(lists, ARRAY_TEST, catalogue=range(9))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_node_numbers_of_a_graph_are_read_with_an_offset(dtype):
    """In the graph, the item nodes are numbered after the 3 user nodes."""
    nodes = np.where(ARRAY >= 0, ARRAY + 3, -1).astype(dtype)
    assert rr(rm.Lists(nodes, item_offset=3), ARRAY_TEST) == EXPECTED
    with_ids = rm.Lists(nodes, item_offset=3, user_ids=["bob", "ann", "zoe"], item_ids=list("zyxw"))
    assert rr(with_ids, {"ann": ["w"], "bob": ["y"]}) == [1 / 3, 1 / 2]
    with pytest.raises(rm.InputError, match=r"Row 0 .* index 3, which is below item_offset=4"):
        rm.Lists(nodes, item_offset=4)
    with pytest.raises(rm.InputError, match="item_offset=-1 must be a whole number"):
        rm.Lists(nodes, item_offset=-1)
    with pytest.raises(rm.InputError, match="item_offset= does not apply to a dict"):
        rm.Lists({"a": [4]}, item_offset=3)


def test_lists_that_share_no_item_with_test_cause_a_warning():
    lists, test = rm.Lists({"a": range(103, 108)}), {"a": range(3, 6), "b": [7, 8]}
    message = "share no item: .* such as 103, written like those of test, such as 3.*item_offset"
    with pytest.warns(rm.DataWarning, match=message):
        assert rr(lists, test) == [0, 0]
    with pytest.warns(rm.DataWarning, match=message):
        rr(lists, test, train={"b": [5]})
    # If the training data or the catalogue contain the items in the lists, there is no warning.
    assert rr(lists, test, train={"b": [104]}) == [0, 0]
    assert rr(lists, test, catalogue=range(200)) == [0, 0]


@pytest.mark.parametrize(
    ("n_listed", "n_tested", "warned"), [(5, 5, True), (4, 9, False), (9, 4, False)]
)
def test_warning_about_unshared_items_needs_enough_entries(n_listed, n_tested, warned):
    lists = rm.Lists({"ann": [f"a{number}" for number in range(n_listed)]})
    test = {"ann": [f"b{number}" for number in range(n_tested)]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert rr(lists, test) == [0]
    assert ["share no item" in str(warning.message) for warning in caught] == [True] * warned


@pytest.mark.parametrize(("n_items", "warned"), [(5, True), (4, False)])
def test_warning_about_unmatched_train_items_needs_enough_items(n_items, warned):
    train = {"ann": [f"c{number}" for number in range(n_items)]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rm.evaluate(rm.Lists({"ann": ["a"]}), {"ann": ["a"]}, train=train, metrics="rr")
    assert result["rr"].tolist() == [1]
    assert ["train shares no item with Lists" in str(warning.message) for warning in caught] == [
        True
    ] * warned


def test_train_that_shares_no_item_with_lists_causes_a_warning():
    lists, test = rm.Lists({"a": range(5)}), {"a": [3]}
    with pytest.warns(
        rm.DataWarning, match="train shares no item with Lists or test, .* such as 103, written"
    ):
        assert rr(lists, test, train={"a": range(103, 108)}) == [1 / 4]
    assert rr(lists, test, train={"a": range(103, 108), "b": [4]}) == [1 / 4]
    other_items = {"a": range(104, 108), "b": [103]}
    assert rr(lists, {"a": [3, 103]}, train=other_items) == [1 / 4]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[0, -2]]), "Row 0 of the lists holds the item index -2"),
        (np.array([[0.5, 1.0]]), "integers"),
        (np.array([0, 1]), "shape"),
    ],
)
def test_invalid_arrays_are_refused(array, message):
    with pytest.raises((rm.InputError, rm.InputTypeError), match=message):
        rm.Lists(array)


def test_options_that_do_not_apply_are_refused(tmp_path):
    with pytest.raises(rm.InputError, match="user= does not apply to an array"):
        rm.Lists(ARRAY, user="user")
    with pytest.raises(rm.InputError, match="user_ids= does not apply to a dict"):
        rm.Lists({"a": ["b"]}, user_ids=["a"])
    (tmp_path / "lists.run").write_text("a Q0 b 1 2.5 run\n")
    with pytest.raises(
        rm.InputError, match=("item_ids= does not apply to files, which contain ids")
    ):
        rm.Lists(tmp_path / "lists.run", item_ids=["b"])
    with pytest.raises(rm.InputError, match="score= does not apply to a TREC run"):
        rm.Lists(tmp_path / "lists.run", score="score")
    assert rr(rm.Lists(ARRAY, rank=False, score=False), ARRAY_TEST) == EXPECTED
    with pytest.raises(rm.InputError, match="3 lists, but 1 user_ids"):
        rm.Lists(ARRAY, user_ids=["a"])
    with pytest.raises(rm.InputError, match=r"item index 2.*0 to 1"):
        rm.Lists(ARRAY, item_ids=["a", "b"])
    with pytest.raises(rm.InputTypeError, match="cannot be read from int"):
        rm.Lists(3)
    for depth in (0, True, 2.5, 2**31):
        with pytest.raises(rm.InputError, match=f"depth={depth} must be a whole number"):
            rm.Lists(ARRAY, depth=depth)
    assert rr(rm.Lists(ARRAY, depth=2**31 - 1), ARRAY_TEST) == EXPECTED


@pytest.mark.parametrize("extension", ["parquet", "csv", "tsv"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("third", ["score", "rank"])
def test_files_are_read_like_frames(tmp_path, extension, order, third):
    frame = pl.DataFrame(columns(ORDERS[order], third=third))
    path = tmp_path / f"lists.{extension}"
    if extension == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if extension == "csv" else "\t")
    assert rr(rm.Lists(path)) == EXPECTED
    assert rr(rm.Lists(str(path))) == EXPECTED


def test_integer_ids_are_read_from_a_csv_file(tmp_path):
    path = tmp_path / "lists.csv"
    pl.DataFrame(columns(ids=int)).write_csv(path)
    assert rr(rm.Lists(path), integer_test()) == EXPECTED


def test_errors_for_missing_ids_and_ranks_name_the_row(frame):
    data = {"user": ["a", None], "item": ["x", "y"], "rank": [1, None]}
    with pytest.raises(rm.InputError, match=r"user ids .* no value in row 1"):
        rm.Lists(frame(data))
    with pytest.raises(rm.InputError, match=r"ranks .* no value in row 1"):
        rm.Lists(frame({**data, "user": ["a", "a"]}))
    with pytest.raises(rm.InputError, match=r"user ids .* no value in row 4"):
        rm.Lists(frame({"user": ["a", "a", "b", "b", None], "item": list("vwxyz")}))


def test_ids_of_a_different_type_are_refused():
    with pytest.raises(rm.InputTypeError, match="item ids of test are of type int"):
        rr(rm.Lists({"ann": ["x"]}), {"ann": [1]})
    with pytest.raises(rm.InputError, match="has user ids, but test has none"):
        rr(rm.Lists({0: [1]}), ARRAY_TEST)


def test_dates_and_uuids_can_be_ids():
    import datetime
    import uuid

    user, items = uuid.UUID(int=1), [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    assert rr(rm.Lists({user: items}), {user: [items[1]]}) == [0.5]
    frame = pl.DataFrame({"user": pl.Series([user] * 3, dtype=pl.Object), "item": items})
    assert rr(rm.Lists(frame), {user: [items[1]]}) == [0.5]


def test_cells_of_a_frame_may_contain_lists():
    """A cell contains a user's items, best first unless another cell contains ranks or scores."""
    frame = pl.DataFrame({"user": [3, 9, 5], "item": [["x", "y"], ["w", "z"], ["z", "x", "w"]]})
    test = {3: ["y"], 9: ["z"], 5: ["x"]}
    assert rr(rm.Lists(frame), test) == [1 / 2, 1 / 2, 1 / 2]
    scores = pl.Series([[1.0, 2.0], [3.0, 1.0], [1.0, 0.5, 2.0]])
    by_rank = rm.Lists(frame.with_columns(rank=scores))
    assert rr(by_rank, test) == [1 / 2, 1, 1]
    with pytest.raises(rm.InputError, match=r"score_above=1\.5 needs the scores"):
        rr(by_rank, test, score_above=1.5)
    by_score = rm.Lists(frame.with_columns(score=scores))
    assert rr(by_score, test) == [1, 1 / 3, 1 / 2]
    assert rr(by_score, test, score_above=0.75) == [1, 0, 1 / 2]


@pytest.mark.parametrize("order", ORDERS)
def test_score_above_removes_items_with_low_scores(order):
    """`score_above` applies to sorted and to unsorted rows."""
    lists = rm.Lists(pl.DataFrame(columns(ORDERS[order])))
    assert rr(lists, score_above=0.3) == [1 / 2, 1, 0]
    assert rr(lists, {"ann": ["y"], "bob": ["w"]}, score_above=0.3) == [1 / 2, 0]


@pytest.mark.parametrize("ranks", [[-5, -(2**40)], [2**40, 5], [2**32, 1]])
def test_ranks_may_have_large_gaps(ranks):
    lists = rm.Lists(pl.DataFrame({"user": ["ann"] * 2, "item": ["x", "y"], "rank": ranks}))
    assert rr(lists, {"ann": ["y"]}) == [1]


# Rules


TIED = {"u": {"c": 1.0, "a": 1.0, "b": 1.0, "d": 0.5}}


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("expected", (1 + 1 / 2 + 1 / 3) / 3),
        ("optimistic", 1.0),
        ("pessimistic", 1 / 3),
        ("item", 1 / 2),
        ("item_desc", 1 / 2),
        ("input", 1 / 3),
        ("as_ranked", 1 / 3),
    ],
)
def test_equal_scores_follow_the_tie_rule(ties, expected):
    frame = pl.DataFrame(
        {"user": ["u"] * 4, "item": ["c", "a", "b", "d"], "score": [1.0, 1.0, 1.0, 0.5]}
    )
    assert rr(rm.Lists(frame), {"u": ["b"]}, ties=ties) == pytest.approx([expected])
    assert rr(rm.Lists(TIED), {"u": ["b"]}, ties=ties) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("ties", "expected"), [("item", 1.0), ("item_desc", 1 / 3), ("input", 1 / 2)]
)
def test_equal_scores_can_be_ordered_by_id_or_input(ties, expected):
    assert rr(rm.Lists(TIED), {"u": ["a"]}, ties=ties) == [expected]


def test_random_orders_of_tied_items_are_equally_likely():
    lists = {user: {"a": 1, "b": 1, "c": 1} for user in range(600)}
    values = rr(rm.Lists(lists), {user: ["b"] for user in lists}, ties="random")
    shares = [values.count(value) / len(values) for value in (1.0, 1 / 2, 1 / 3)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.06)


def test_equal_ranks_are_tied():
    frame = pl.DataFrame({"user": ["u"] * 3, "item": ["a", "b", "c"], "rank": [1, 1, 3]})
    assert rr(rm.Lists(frame), {"u": ["a"]}) == [0.75]
    with pytest.warns(DataWarning, match="1 rows repeat a rank of their user"):
        dense = rm.Lists(frame.with_columns(rank=pl.Series([1, 1, 2])))
    assert rr(dense, {"u": ["a"]}) == [0.75]


def test_equal_ranks_are_resolved_by_the_tie_rule():
    columns = {"user": ["u"] * 3, "item": ["b", "a", "c"], "rank": [1, 2, 2]}
    for test, expected in (({"u": ["a"]}, 1 / 2), ({"u": ["c"]}, 1 / 2)):
        assert rr(rm.Lists(pl.DataFrame(columns)), test, ties="as_ranked") == [expected]
        assert rr(rm.Lists(pl.DataFrame(columns)), test, ties="pessimistic") == [1 / 3]


def test_repeated_item_keeps_its_highest_score():
    items, scores = ["a", "y", "a", "y", "z"], [0.5, 1, 4, 5, 2]
    columns = {"user": ["u"] * 5, "item": items, "score": scores}
    lists = rm.Lists(pl.DataFrame(columns))
    for item, above, expected in (("a", 3, 1 / 2), ("y", 3, 1), ("a", 4.5, 0), ("z", 1.5, 1 / 3)):
        with pytest.warns(rm.DataWarning, match="repeat an item"):
            assert rr(lists, {"u": [item]}, score_above=above) == [expected]


def test_rule_ties_input_is_refused_for_scores():
    with pytest.raises(rm.InputError, match=r"ties='input'.*Scores has no such order"):
        rr(rm.Scores(np.eye(3)), sp.csr_array(np.eye(3)), ties="input")


def test_nan_scores_follow_their_rule():
    lists = rm.Lists({"ann": {"x": 1.0, "y": float("nan")}, "bob": {"x": 2.0}})
    test = {"ann": ["y"], "bob": ["x"]}
    result = rm.evaluate(lists, test, metrics="rr")
    assert result.reasons["rr"].tolist() == [rm.Reason.NAN_SCORE, rm.Reason.DEFINED]
    assert np.isnan(result["rr"][0])
    assert rr(lists, test, nan_scores="first") == [1.0, 1.0]
    assert rr(lists, test, nan_scores="last") == [0.5, 1.0]


def test_missing_scores_are_read_as_nan(frame):
    missing = frame({"user": ["ann"] * 2, "item": ["x", "y"], "score": [1.0, None]})
    assert rr(rm.Lists(missing), {"ann": ["y"]}, nan_scores="first") == [1.0]


def test_infinite_scores_are_undefined_and_minus_infinity_is_masked():
    lists = rm.Lists({"ann": {"x": 1.0, "y": np.inf}, "bob": {"x": 1.0, "y": -np.inf, "z": 0.5}})
    result = rm.evaluate(lists, {"ann": ["x"], "bob": ["z", "y"]}, metrics="rr recall@2")
    assert result.reasons["rr"].tolist() == [rm.Reason.INFINITE_SCORE, rm.Reason.DEFINED]
    # A score of -inf masks an item: it is not recommended, and takes no place in the list.
    assert result["rr"][1] == 1 / 2
    assert result["recall@2"][1] == 1 / 2


@pytest.mark.parametrize("last", ["ann", "bob", "cat"])
def test_masked_items_at_the_end_of_a_list_take_no_place(last):
    lists = {user: {"x": 2.0, "y": 1.0, "z": 0.5} for user in ("ann", "bob", "cat")}
    lists[last]["z"] = -np.inf
    expected = [0 if user == last else 1 / 3 for user in lists]
    assert rr(rm.Lists(lists), {user: ["z"] for user in lists}) == expected


@pytest.mark.parametrize(
    "lists",
    [
        {"u": ["a", "b", "a", "a", "c"]},
        {"u": [("a", 5.0), ("b", 4.0), ("a", 5.0), ("a", 1.0), ("c", 0.5)]},
        {"u": [("a", 1.0), ("b", 4.0), ("a", 5.0), ("a", 1.0), ("c", 0.5)]},
    ],
)
def test_repeated_item_counts_once_at_its_first_place(lists):
    if isinstance(lists["u"][0], tuple):
        items, scores = zip(*lists["u"], strict=True)
        source = rm.Lists(pl.DataFrame({"user": ["u"] * 5, "item": items, "score": scores}))
    else:
        source = rm.Lists(lists)
    with pytest.warns(rm.DataWarning, match=r"2 entries in 1 lists repeat .*user 'u', item 'a'"):
        result = rm.evaluate(source, {"u": ["c", "a"]}, metrics="ap@3 recall@3")
    assert result["ap@3"].tolist() == [(1 + 2 / 3) / 2]
    assert result["recall@3"].tolist() == [1.0]
    assert result.counts == {"list_duplicates": 2}


@pytest.mark.parametrize("duplicates", ["removed", "first", "counted", "joined"])
def test_ids_in_only_lists_or_test_are_rejected_under_any_duplicates_rule(duplicates):
    with_user_ids = rm.Interactions.of(np.eye(2), user_ids=["ann", "bob"])
    with_item_ids = rm.Interactions.of(np.eye(2), item_ids=["a", "b"])
    array = np.array([[0, 0], [1, 0]])
    for lists, test, message in (
        (rm.Lists(array, item_ids=["a", "b"]), np.eye(2), "Lists has item ids, but test has none"),
        (rm.Lists(array, user_ids=[0, 1]), np.eye(2), "Lists has user ids, but test has none"),
        (rm.Lists(array), with_item_ids, "test has item ids, but Lists has none"),
        (rm.Lists(array), with_user_ids, "test has user ids, but Lists has none"),
    ):
        with pytest.raises(InputError, match=message):
            rr(lists, test, duplicates=duplicates)


def test_padding_does_not_count_as_a_repeat():
    lists = rm.Lists(np.array([[0, 0, -1, -1], [-1, 1, -1, 2]]))
    result = rm.evaluate(lists, np.eye(2, 3), metrics="rr", duplicates="counted")
    assert result["rr"].tolist() == [1, 1]
    assert result.counts == {"list_repeats": 1}


def test_relevant_items_outside_the_candidates_do_not_count_as_repeated():
    lists = rm.Lists({"ann": ["a", "b", "b", "c"]})
    options = {"exclude": ["p", "q"], "duplicates": "counted"}
    result = rm.evaluate(lists, {"ann": ["a", "p", "q"]}, metrics="recall@3", **options)
    assert result["recall@3"].tolist() == [1 / 3]
    assert result.n_relevant.tolist() == [3]
    options = {"candidates": ["b", "c", "d"], "duplicates": "counted"}
    result = rm.evaluate(lists, {"ann": ["c", "p", "q"]}, metrics="rr", **options)
    assert result.n_relevant.tolist() == [3]


@pytest.mark.parametrize("duplicates", ["first", "counted", "joined"])
@pytest.mark.parametrize(
    "options",
    [
        {"exclude": ["x"]},
        {"candidates": ["a", "b", "c", "d", "e"]},
        {"candidates": {"ann": ["e", "a", "b", "c", "d"], "bob": ["a", "b", "c", "d", "e"]}},
        {"train": {"ann": ["x"], "bob": ["x"]}, "catalogue": 6},
        {"train": {"ann": ["x"], "bob": ["x"]}, "catalogue": ["a", "b", "c", "d", "e", "x"]},
    ],
    ids=["exclude", "candidates", "sets of candidates", "size of a catalogue", "catalogue"],
)
def test_excluding_an_item_removes_its_repeats(duplicates, options):
    """The results are the same as for lists that never contained the item."""
    test = {"ann": ["b"], "bob": ["a", "b"]}
    options |= {"metrics": "rr ap recall@3 precision@4", "duplicates": duplicates}
    with_x = rm.Lists({"ann": ["x", "x", *"aabb"], "bob": ["b", "b", "x", "a", "x"]})
    result = rm.evaluate(with_x, test, **options)
    options = {"metrics": options["metrics"], "duplicates": duplicates, "catalogue": [*"abcde"]}
    expected = rm.evaluate(rm.Lists({"ann": [*"aabb"], "bob": [*"bba"]}), test, **options)
    for metric in expected.metrics:
        np.testing.assert_array_equal(result[str(metric)], expected[str(metric)])
    assert result.depth.tolist() == [4, 3]
    if "exclude" not in result.inputs:
        assert result.n_candidates.tolist() == expected.n_candidates.tolist() == [5, 5]


@pytest.mark.parametrize("options", [{"exclude": [0]}, {"candidates": [1, 2, 3]}])
def test_excluding_a_position_removes_its_repeats(options):
    lists, test = rm.Lists(np.array([[0, 0, 1, 1, 2]])), np.array([[0, 0, 1, 0]])
    result = rm.evaluate(lists, test, metrics="rr", duplicates="counted", **options)
    assert result["rr"].tolist() == [1 / 3]


def test_users_without_a_list_are_counted_as_misses():
    lists = rm.Lists({"ann": ["y"], "cat": []})
    result = rm.evaluate(lists, TEST, metrics="recall@1")
    assert result["recall@1"].tolist() == [1.0, 0.0, 0.0]
    assert result.counts == {"users_unknown": 2}
    assert "test users that the source does not know: 2" in str(result)
    known_users = rm.evaluate(lists, TEST, metrics="recall@1", users="known")
    assert known_users.mean() == {"recall@1": 1.0}


@pytest.mark.parametrize("extra", [["zoe"], ["zoe", "yan"]])
def test_lists_of_users_outside_test_are_ignored_and_counted(extra):
    lists = {"ann": ["x", "y"], "bob": ["z"], **{user: ["x", "x"] for user in extra}}
    result = rm.evaluate(rm.Lists(lists), TEST, metrics="rr")
    assert result["rr"].tolist() == EXPECTED
    assert result.counts == {"list_users_ignored": len(extra), "users_unknown": 1}
    assert f"not in the test data (ignored): {len(extra)}" in str(result)


def test_unknown_items_count_as_misses():
    assert rr(rm.Lists({"ann": ["?", "!", "y"]}), {"ann": ["y"]}) == [1 / 3]


def test_test_items_in_no_list_count_as_misses():
    result = rm.evaluate(rm.Lists({"ann": ["y"]}), {"ann": ["y", "nowhere"]}, metrics="recall@1")
    assert result["recall@1"].tolist() == [1 / 2]
    assert not result.counts


def test_short_lists_do_not_change_the_denominators():
    lists = rm.Lists({"ann": ["y"], "bob": list("abcdefghij")})
    test = {"ann": ["y", "x"], "bob": ["j"]}
    result = rm.evaluate(lists, test, metrics="precision@10 recall@10 ap@10 ndcg@10")
    ideal = 1 + 1 / np.log2(3)
    assert [values[0] for values in result.values.values()] == pytest.approx(
        [1 / 10, 1 / 2, 1 / 2, 1 / ideal]
    )


def test_train_items_are_removed_and_later_items_move_up():
    lists = rm.Lists({"ann": ["a", "b", "c", "d"], "bob": ["a", "b"]})
    train = {"ann": ["a", "c", "far"], "bob": ["z"]}
    result = rm.evaluate(lists, {"ann": ["d"], "bob": ["b"]}, train=train, metrics="rr")
    assert result["rr"].tolist() == [1 / 2, 1 / 2]
    assert result.counts == {"list_train_items": 2}
    assert "list entries that are training items (later entries move up): 2" in str(result)


def test_train_items_are_removed_from_test_even_if_unlisted():
    lists, train = rm.Lists({"ann": ["a", "b"]}), {"ann": ["far"]}
    result = rm.evaluate(lists, {"ann": ["b", "far"]}, train=train, metrics="recall@2")
    assert result["recall@2"].tolist() == [1.0]
    assert result.counts == {"train_test_overlap": 1}


def test_number_of_candidates_is_unknown_without_a_catalogue():
    lists, test = rm.Lists({"ann": ["a", "b"]}), {"ann": ["a", "b"]}
    result = rm.evaluate(lists, test, metrics="precision@2 precision recall ap", min_candidates=9)
    # All items in the list are relevant, and the list is not longer than the cut-off. The values
    # are defined anyway, since there may be other candidates.
    assert result.mean() == dict.fromkeys(["precision@2", "precision", "recall", "ap"], 1.0)
    assert result.n_candidates.tolist() == [-1]
    constant = rm.Lists({"ann": {"a": 1.0, "b": 1.0}})
    assert rr(constant, {"ann": ["a"]}) == [3 / 4]


@pytest.mark.parametrize("catalogue", [3, ["a", "b", "c"], np.array(["a", "b", "c"], object)])
@pytest.mark.filterwarnings("ignore:.*larger than every list")
def test_rules_about_candidates_apply_with_a_catalogue(catalogue):
    def reason(lists, test, metric, **rules):
        result = rm.evaluate(
            rm.Lists({"ann": lists}), {"ann": test}, metrics=metric, catalogue=catalogue, **rules
        )
        return rm.Reason(result.reasons[metric][0])

    assert reason(["a"], ["a"], "precision@3") == rm.Reason.CUTOFF_TOO_DEEP
    assert reason(["a"], ["a"], "precision@1") == rm.Reason.DEFINED
    assert reason(["a"], ["a"], "rr", min_candidates=4) == rm.Reason.FEW_CANDIDATES
    assert reason(["a", "b"], ["a", "b", "c"], "rr") == rm.Reason.ALL_RELEVANT
    assert reason({"a": 1, "b": 1, "c": 1}, ["a"], "rr") == rm.Reason.CONSTANT_SCORES
    assert reason({"a": 1, "b": 1}, ["a"], "rr") == rm.Reason.DEFINED


def test_result_describes_the_catalogue():
    for catalogue in (2000, [f"item {number}" for number in range(2000)]):
        result = rm.evaluate(rm.Lists({1: ["a"]}), {1: ["a"]}, metrics="rr", catalogue=catalogue)
        assert "catalogue: 2,000 items" in str(result)
        assert set(result.inputs["catalogue"]["fingerprints"]) == {"items"}


def test_train_items_are_not_candidates():
    for catalogue in (4, ["a", "b", "c", "d"]):
        result = rm.evaluate(
            rm.Lists({"ann": ["a", "b"]}),
            {"ann": ["b"]},
            train={"ann": ["a", "c"]},
            metrics="precision@1",
            catalogue=catalogue,
        )
        assert result.n_candidates.tolist() == [2]
        assert result.n_excluded.tolist() == [2]


def test_list_longer_than_the_catalogue_is_refused():
    lists = {"ann": ["a", "b"], "bob": ["a", "b", "c"]}
    with pytest.raises(rm.InputError, match=r"leaves 2 items .* user 'bob' .* list has 3\."):
        rr(rm.Lists(lists), {"ann": ["a"], "bob": ["b"]}, catalogue=2)


def test_items_outside_the_catalogue_are_counted():
    lists = rm.Lists({"ann": ["?", "a", "b"]})
    result = rm.evaluate(
        lists,
        {"ann": ["b", "new"]},
        train={"ann": ["old", "c"]},
        metrics="rr recall",
        catalogue=["a", "b", "c", "d"],
    )
    assert result.n_candidates.tolist() == [4]  # a, b, d and ? are candidates
    assert result.n_excluded.tolist() == [1]
    assert result["rr"].tolist() == [1 / 3]
    assert result["recall"].tolist() == [1 / 2]
    assert result.counts == {
        "items_unknown": 1,
        "list_items_uncatalogued": 1,
        "relevant_unranked": 1,
    }


@pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")
@pytest.mark.parametrize(
    ("options", "share", "coverage"),
    [
        ({}, 2 / 4, 2 / 3),
        ({"exclude": ["a"]}, 2 / 3, 1 / 2),
        ({"candidates": ["a", "b", "?"]}, 1 / 3, 1.0),
        ({"train": {"ann": ["??", "a"]}}, 1 / 2, 1 / 3),
    ],
)
def test_candidates_and_invented_items_determine_coverage(options, share, coverage):
    result = rm.evaluate(
        rm.Lists({"ann": ["?", "a", "??", "b"]}),
        {"ann": ["b"]},
        catalogue=["a", "b", "c"],
        metrics="unknown_items@4 coverage@4 rr",
        **options,
    )
    assert result.mean()["unknown_items@4"] == share
    assert result.mean()["coverage@4"] == coverage


def test_invented_items_are_not_drawn_as_candidates():
    names = [f"i{number}" for number in range(20)]
    invented = [f"?{number}" for number in range(50)]
    result = rm.evaluate(
        rm.Lists({"ann": ["i0"], "bob": invented}),
        {"ann": ["i0"], "bob": ["i0"]},
        catalogue=names,
        candidates=rm.SampledCandidates(19, seed=1),
        metrics="rr",
    )
    assert result.n_candidates.tolist() == [20, 20]
    assert result.counts["list_not_candidates"] == 50


def test_test_item_outside_the_catalogue_is_found_in_lists():
    lists, test = {"ann": ["?", "a"], "bob": ["a"]}, {"ann": ["?"], "bob": ["?"]}
    result = rm.evaluate(rm.Lists(lists), test, metrics="rr", catalogue=["a", "b"])
    assert result["rr"].tolist() == [1.0, 0.0]
    assert result.counts["relevant_unranked"] == 1  # Bob's relevant item is not in his list


def test_catalogue_may_contain_positions():
    result = rm.evaluate(rm.Lists(ARRAY), ARRAY_TEST, metrics="rr", catalogue=np.arange(10))
    assert result.n_candidates.tolist() == [10, 10, 10]
    with pytest.raises(rm.InputError, match="positions"):
        rr(rm.Lists(ARRAY), ARRAY_TEST, catalogue=["a"])


@pytest.mark.parametrize(
    ("catalogue", "error", "message"),
    [
        (0, rm.InputError, "from 1 to"),
        (1, rm.InputError, r"catalogue= leaves 1 items .* user 'ann' .* the list has 2"),
        ("items", rm.FileError, "There is no file items"),
        (True, rm.InputTypeError, "of type bool"),
        ([1, 2], rm.InputTypeError, "item ids of the catalogue are of type int"),
    ],
)
def test_invalid_catalogues_are_refused(catalogue, error, message):
    with pytest.raises(error, match=message):
        rr(rm.Lists({"ann": ["a", "b"]}), {"ann": ["a"]}, catalogue=catalogue)


WHOLE = [name for name, definition in METRICS.items() if definition.needs_whole_ranking]


@pytest.mark.parametrize("metric", WHOLE)
def test_metrics_of_the_whole_ranking_need_complete_lists(metric):
    lists, test = (
        rm.Lists({"ann": ["a", "b"], "bob": ["a", "b", "c"]}),
        {"ann": ["a"], "bob": ["a"]},
    )
    with pytest.raises(
        rm.InputError, match=rf"{metric} need.*2 in the list of user 'ann'.*catalogue="
    ):
        rm.evaluate(lists, test, metrics=metric)
    with pytest.raises(rm.InputError, match="user 'ann' ends after 2 of 3 items"):
        rm.evaluate(lists, test, metrics=metric, catalogue=3)
    # Ann has no list, so her relevant item is a miss. Bob's list ranks every item.
    complete = rm.Lists({"bob": ["b", "a", "c"]})
    result = rm.evaluate(complete, test, metrics=metric, catalogue=3)
    worst = {"mean_rank": 4.0, "percentile_rank": 1.0}.get(metric, 0.0)
    second = {"mean_rank": 2.0}.get(metric, 1 / 2)
    np.testing.assert_array_equal(result[metric], [worst, second])


def test_roc_auc_and_pr_auc_need_the_whole_ranking():
    assert {"roc_auc", "pr_auc"} <= set(WHOLE)


def test_cutoff_beyond_every_list_causes_a_warning():
    lists, test = rm.Lists({"ann": ["a", "b"], "bob": ["a"]}), {"ann": ["b"], "bob": ["a"]}
    with pytest.warns(
        rm.DataWarning, match=r"^recall@3, ap@5: .* larger than every list.* 2 items"
    ):
        rm.evaluate(lists, test, metrics="recall@2 recall@3 ap@5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.evaluate(lists, test, metrics="recall@2 ap")
        # There is no warning for complete lists, which contain every item.
        rm.evaluate(rm.Lists({"ann": ["a", "b"]}), {"ann": ["b"]}, metrics="ap@5", catalogue=2)


def test_depth_truncates_lists():
    lists = {"ann": ["a", "b", "c"], "bob": ["a"]}
    test = {"ann": ["b", "c"], "bob": ["a"]}
    with pytest.warns(rm.DataWarning, match="larger than every list"):
        result = rm.evaluate(rm.Lists(lists, depth=2), test, metrics="recall recall@3 precision")
    assert result["recall"].tolist() == [1 / 2, 1.0]
    assert result["recall@3"].tolist() == [1 / 2, 1.0]
    assert result["precision"].tolist() == [1 / 2, 1.0]


@pytest.mark.parametrize(
    ("ties", "expected"), [("item", [1, 1, 0]), ("item_desc", [0, 1, 1]), ("input", [1, 0, 1])]
)
def test_tie_rule_decides_which_tied_items_are_within_the_depth(ties, expected):
    lists = rm.Lists({"u": {"c": 1, "a": 1, "b": 1}}, depth=2)
    actual = [
        rm.evaluate(lists, {"u": [i]}, metrics="recall", ties=ties)["recall"][0] for i in "abc"
    ]
    assert actual == expected
    # The cut does not change the places of the tied items.
    places = [rr(lists, {"u": [item]}, ties=ties)[0] for item in "abc"]
    assert sorted(places) == [0.0, 1 / 2, 1.0]


def test_fingerprints_depend_on_the_depth_of_lists():
    evaluations = [
        rm.evaluate(rm.Lists(ARRAY, depth=depth), ARRAY_TEST, metrics="rr")
        for depth in (None, 3, 2)
    ]
    assert (
        len({str(evaluation.inputs["source"]["fingerprints"]) for evaluation in evaluations}) == 3
    )


def test_candidates_apply_if_the_catalogue_lacks_a_test_item():
    lists, test = rm.Lists({"ann": ["a", "x", "b"]}), {"ann": ["b", "new"]}
    options = {"catalogue": ["a", "b", "c", "x"], "metrics": "rr coverage@1"}
    result = rm.evaluate(lists, test, exclude=["a"], **options)
    assert result.mean() == {"rr": 1 / 2, "coverage@1": 1 / 3}
    assert result.counts == {"items_unknown": 1, "list_not_candidates": 1, "relevant_unranked": 1}
    result = rm.evaluate(lists, test, candidates=["a", "b"], **options)
    assert result.mean() == {"rr": 1 / 2, "coverage@1": 1 / 2}
    assert result.counts == {"list_not_candidates": 1, "relevant_not_candidates": 1}


def test_integers_of_128_bits_can_be_ids():
    frame = pl.DataFrame({"user": ["u"] * 2, "item": [5, 3]})
    assert rr(rm.Lists(frame.cast({"item": pl.Int128})), {"u": [3]}) == [1 / 2]


def test_fingerprints_do_not_depend_on_strides():
    result = rm.evaluate(rm.Lists(ARRAY), ARRAY_TEST, metrics="rr")
    assert result.inputs["source"]["description"] == "Lists: 3 lists, 9 entries, up to 3 each"
    reversed_twice = rm.evaluate(rm.Lists(ARRAY[:, ::-1].copy()[:, ::-1]), ARRAY_TEST, metrics="rr")
    reversed_lists = rm.evaluate(rm.Lists(ARRAY[:, ::-1]), ARRAY_TEST, metrics="rr")
    fingerprints = [
        run.inputs["source"]["fingerprints"] for run in (result, reversed_twice, reversed_lists)
    ]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_evaluation_of_lists_can_be_saved_and_loaded(tmp_path):
    result = rm.evaluate(rm.Lists(ARRAY), ARRAY_TEST, metrics="rr", ties="input")
    result.save(tmp_path / "lists.parquet")
    loaded = rm.load(tmp_path / "lists.parquet")
    np.testing.assert_array_equal(loaded["rr"], result["rr"])
    assert loaded.n_candidates.tolist() == [-1, -1, -1]
    assert loaded.protocol == result.protocol


@pytest.mark.live
def test_torch_tensors_are_read_as_arrays():
    import torch

    assert rr(rm.Lists(torch.tensor(ARRAY)), ARRAY_TEST) == EXPECTED


def test_error_about_a_dict_suggests_lists():
    with pytest.raises(rm.InputTypeError, match=r"rm\.Lists\(recommendations\)"):
        rm.evaluate({"ann": ["x"]}, TEST)


# Lists of all items give the same values as Scores.


METRIC_NAMES = [
    name if definition.cutoff == "none" else f"{name}@1..4" for name, definition in METRICS.items()
] + ["ndcg", "ap", "rr", "rprecision"]
RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")


@given(
    ties=st.sampled_from(RULES),
    case=cases(max_users=6, max_items=6),
    metrics=st.lists(st.sampled_from(METRIC_NAMES), min_size=10, max_size=20, unique=True),
    shuffle=st.randoms(use_true_random=False),
)
@examples(2)
def test_lists_of_all_items_equal_scores(ties, case, metrics, shuffle):
    users, items = np.nonzero(~np.isnan(case.gains))
    if not len(users):
        return
    shape = case.scores.shape
    test = sp.coo_array((case.gains[users, items], (users, items)), shape=shape)
    options = {"train": sp.csr_array(case.excluded.astype(float)), "ties": ties}
    ids = {"user_ids": np.arange(shape[0]), "item_ids": np.arange(shape[1])}
    data = {
        "test": rm.Interactions.of(test, **ids),
        "train": rm.Interactions.of(options["train"], **ids),
    }
    rows = list(np.ndindex(shape))
    shuffle.shuffle(rows)
    frame = pl.DataFrame(
        {
            "user": [user for user, _ in rows],
            "item": [item for _, item in rows],
            "score": [case.scores[row] for row in rows],
        }
    )
    lists, scores = (
        rm.evaluate(
            source, data["test"], train=data["train"], metrics=metrics, ties=ties, catalogue=n
        )
        for source, n in ((rm.Lists(frame), shape[1]), (rm.Scores(case.scores, **ids), None))
    )
    np.testing.assert_array_equal(lists.n_candidates, scores.n_candidates)
    np.testing.assert_array_equal(lists.flags, scores.flags)
    for name in scores.values:
        np.testing.assert_array_equal(lists[name], scores[name], err_msg=name)
        np.testing.assert_array_equal(lists.reasons[name], scores.reasons[name], err_msg=name)


def test_frames_without_rows_are_refused():
    columns = {"user": pl.String, "item": pl.String, "score": pl.Float64}
    for empty in (pl.DataFrame(schema=columns), pl.DataFrame(schema=columns).to_pandas()):
        with pytest.raises(InputError, match=r"no lists: the recommendations are empty. Hint"):
            rm.Lists(empty)


def test_many_short_lists_that_share_no_item_with_test_cause_a_warning() -> None:
    lists = rm.Lists({user: ["a", "b"] for user in range(20)})
    with pytest.warns(rm.DataWarning, match="Lists and test share no item"):
        rm.evaluate(lists, {user: ["c", "d"] for user in range(20)}, metrics="recall@2")


def test_listed_items_outside_the_catalogue_are_counted():
    result = rm.evaluate(rm.Lists({7: [1, 2]}), {7: [0, 1, 2]}, catalogue=[1, 2, 3], metrics="rr")
    assert {name: result.counts[name] for name in ("items_unknown", "relevant_unranked")} == {
        "items_unknown": 1,
        "relevant_unranked": 1,
    }


@pytest.mark.parametrize("n_again", [0, 1])
def test_rows_of_a_user_need_not_be_adjacent(n_again):
    """The first user may have another row at the end, far from the user's other rows."""
    n_users = PROBE // 2 + 1  # each of these users has three rows
    users = np.append(np.repeat(np.arange(n_users), 3), np.zeros(n_again, int))
    items = np.append(np.tile([5, 6, 7], n_users), np.full(n_again, 8))
    lists = rm.Lists(pl.DataFrame({"user": users, "item": items}))
    result = rm.evaluate(lists, {0: [8], 1: [7]}, metrics="rr")
    assert result["rr"].tolist() == [1 / 4 if n_again else 0, 1 / 3]


def test_users_with_a_nonempty_list_count_as_listed():
    for lists in (rm.Lists({"ann": [], "bob": ["a"]}), rm.Lists({"bob": ["a"]})):
        assert lists.facts.listed().tolist() == ["bob"]
    assert rm.Lists(np.array([[0, -1], [-1, -1], [-1, 1]])).facts.listed().tolist() == [0, 2]
    assert rm.Lists({"ann": []}).describe() == "Lists: 0 lists, 0 entries, up to 0 each"


def test_row_of_padding_is_read_as_an_empty_list():
    test = {"ann": ["a"], "bob": ["b"]}
    ids = {"user_ids": ["ann", "bob", "cat"], "item_ids": ["a", "b"]}
    padded = rm.Lists(np.array([[0, 1], [-1, -1], [-1, -1]]), **ids)
    empty = rm.Lists({"ann": ["a", "b"], "bob": [], "cat": []})
    for rule in ("test", "known", "listed"):
        result, expected = (
            rm.evaluate(source, test, metrics="recall@2", users=rule) for source in (padded, empty)
        )
        assert result.user_ids.tolist() == expected.user_ids.tolist() == ["ann", "bob"]
        np.testing.assert_array_equal(result["recall@2"], expected["recall@2"])
        assert result.skipped("recall@2") == expected.skipped("recall@2")


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize("argument", ["exclude", "candidates", "catalogue"])
def test_largest_position_in_any_input_limits_the_positions(argument):
    def evaluate(last):
        lists = rm.Lists(np.array([[1, 2], [3, 12], [0, 1], [1, 0]]))
        return rm.evaluate(lists, np.eye(4, 5), metrics="hit@2", **{argument: [last, 1]})

    with pytest.raises(InputError, match=r"holds the item position 12, but .* 0 to 11\."):
        evaluate(11)
    evaluate(12)
    with pytest.raises(InputError, match=r"0 to 1,000,000,000, but there are only 14 entries"):
        evaluate(10**9)
    with pytest.raises(InputError, match=r"0 to 0\."):
        rm.evaluate(rm.Lists(np.array([[1]])), np.eye(1, 1), metrics="rr", exclude=[])


@pytest.mark.parametrize(
    ("lists", "options", "message"),
    [
        ([[-1, 3], [-3, 9]], {}, "Row 1 .* index -3.* from 0 to 2,147,483,646;"),
        ([[7, 0], [0, -4]], {"item_ids": "abc"}, "Row 0 .* index 7.* from 0 to 2, as there are"),
        ([[0, -1], [1, 3]], {"item_ids": "abc"}, "Row 1 .* index 3.* from 0 to 2, as there are"),
        ([[0, 1], [2**31 - 1, 0]], {}, "Row 1 .* index 2,147,483,647.* from 0 to 2,147,483,646;"),
        ([[-1, 4], [5, 3]], {"item_offset": 4}, "Row 1 .* index 3, which is below item_offset=4"),
        ([[0]], {"item_offset": True}, "item_offset=True must be a whole number"),
        ([[0]], {"item_offset": -1}, "item_offset=-1 must be a whole number"),
    ],
)
def test_index_out_of_range_is_refused(lists, options, message):
    options = {name: list(x) if isinstance(x, str) else x for name, x in options.items()}
    with pytest.raises(InputError, match=message):
        rm.Lists(np.array(lists), **options)


def test_smallest_and_largest_indices_are_accepted():
    rm.Lists(np.array([[2**31 - 2, -1]]))
    rm.Lists(np.array([[2, -1]]), item_ids=list("abc"))
    result = rm.evaluate(
        rm.Lists(np.array([[4, -1, 5]]), item_offset=4), np.eye(1, 2), metrics="rr"
    )
    assert result["rr"] == 1
