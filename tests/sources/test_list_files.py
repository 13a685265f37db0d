"""Lists in Parquet files that are read part by part: no value changes, whatever the parts."""

import warnings

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, FileError, InputError, InputTypeError

METRICS = {
    "ranks": "ndcg@5 recall@3 rr@10",
    "both": "ndcg@3 coverage@5 gini@3",
    "lists": "coverage@5",
}


def drawn(rng, n_users, n_items, length, named, sessions):
    """Draw rows of lists, shuffled: with ties, repetitions and lists of different lengths."""
    user = np.repeat(np.arange(n_users), rng.integers(0, length + 1, n_users))
    item = rng.integers(0, n_items, len(user))
    frame = pl.DataFrame(
        {
            "user_id": [f"u{one}" for one in user] if named else user * 1_000_003,
            "item_id": [f"i{one}" for one in item] if named else item,
            "score": rng.integers(0, 6, len(user)) / 2,
            "rank": np.arange(len(user)) + 1,
        }
    )
    if sessions:
        frame = frame.with_columns(session=pl.Series(rng.integers(0, 2, len(user))))
    return frame[rng.permutation(len(user))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lists")


def write(folder, frame, n_files):
    """Write a table to some files in a folder that holds nothing else."""
    for path in folder.glob("*.parquet"):
        path.unlink()
    size = max(1, -(-len(frame) // n_files))
    for number in range(n_files):
        part = frame[number * size : (number + 1) * size]
        part.write_parquet(folder / f"part-{number}.parquet")


@given(
    seed=st.integers(0, 2**31),
    named=st.booleans(),
    by=st.sampled_from(["rank", "score", "rows"]),
    metrics=st.sampled_from(sorted(METRICS)),
    rules=st.fixed_dictionaries(
        {
            "ties": st.sampled_from(["expected", "item_desc", "random", "input"]),
            "duplicates": st.sampled_from(["removed", "counted"]),
            "no_list": st.sampled_from(["misses", "undefined"]),
        }
    ),
    trained=st.booleans(),
    catalogue=st.booleans(),
    depth=st.sampled_from([None, 4]),
    n_files=st.sampled_from([1, 3]),
    memory=st.sampled_from([400, 3000, "1MB"]),
)
@examples(1)
def test_parts_change_nothing(
    folder, seed, named, by, metrics, rules, trained, catalogue, depth, n_files, memory
):
    rng = np.random.default_rng(seed)
    frame = drawn(rng, 30, 40, 9, named, sessions=False)
    write(folder, frame, n_files)
    test, train = (
        drawn(rng, 34, 40, 4, named, sessions=False).select("user_id", "item_id").unique()
        for _ in range(2)
    )
    columns = {
        "rank": {"rank": "rank"},
        "score": {"score": "score"},
        "rows": {"rank": False, "score": False},
    }[by]
    options = {"metrics": METRICS[metrics], "train": train if trained else None, **rules}
    if catalogue and rules["duplicates"] == "removed":  # no catalogue has an item twice
        options["catalogue"] = [f"i{item}" for item in range(40)] if named else list(range(40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        source = rm.Lists(folder, **columns, depth=depth, memory=memory)
        try:
            whole = rm.evaluate(rm.Lists(folder, **columns, depth=depth), test, **options)
        except InputError:  # of the rules: the same is refused
            with pytest.raises(InputError):
                rm.evaluate(source, test, **options)
            return
        parts = rm.evaluate(source, test, **options)
    for name, values in whole.values.items():
        np.testing.assert_array_equal(parts.values[name], values, err_msg=name)
    assert parts.mean() == whole.mean()
    assert parts.counts == whole.counts


def one_file(folder, frame, name="one.parquet"):
    path = folder / name
    frame.write_parquet(path)
    return path


def test_a_result_holds_on_to_lists_in_memory_but_not_to_files(tmp_path):
    path = one_file(tmp_path, pl.DataFrame({"user_id": [1, 1], "item_id": [7, 8], "rank": [1, 2]}))
    results = [rm.evaluate(rm.Lists(path, memory=m), {1: [8]}, metrics="rr") for m in (None, 400)]
    assert [result.inputs_kept is None for result in results] == [False, True]


def test_fingerprints_tell_where_lists_are_cut(tmp_path):
    path = one_file(tmp_path, pl.DataFrame({"user_id": [1, 1], "item_id": [7, 8], "rank": [1, 2]}))

    def fingerprints(depth):
        result = rm.evaluate(rm.Lists(path, depth=depth, memory=400), {1: [8]}, metrics="rr@1")
        return result.inputs["source"]["fingerprints"]

    whole, one, two = (fingerprints(depth) for depth in (None, 1, 2))
    assert one.pop("depth") != two.pop("depth")
    assert whole == one == two


@pytest.fixture
def frame():
    return drawn(np.random.default_rng(5), 50, 30, 6, named=True, sessions=True)


@pytest.mark.filterwarnings("ignore:.*repeat an? :UserWarning")
@pytest.mark.parametrize("sessions", ["both", "test"])
def test_sessions_of_a_user_stay_together(tmp_path, frame, sessions):
    path = one_file(tmp_path, frame)
    user = ["user_id", "session"]
    test = rm.Interactions.of(frame[::3], user=user, item="item_id", value=False)
    options = {"user": user if sessions == "both" else "user_id", "rank": "rank"}
    whole = rm.evaluate(rm.Lists(path, **options), test, metrics="ndcg@5")
    parts = rm.evaluate(rm.Lists(path, **options, memory=2000), test, metrics="ndcg@5")
    np.testing.assert_array_equal(parts["ndcg@5"], whole["ndcg@5"])
    assert whole.mean()["ndcg@5"] > 0


def test_lists_in_cells(tmp_path, frame):
    rows = frame.group_by("user_id").agg(pl.col("item_id").unique().sort())
    path = one_file(tmp_path, rows)
    test = {user: [items[-1]] for user, items in rows.iter_rows()}
    whole = rm.evaluate(rm.Lists(path), test, metrics="rr")
    source = rm.Lists(path, memory=2000)
    np.testing.assert_array_equal(rm.evaluate(source, test, metrics="rr")["rr"], whole["rr"])
    assert source.describe() == f"Lists: {len(rows)} rows of one.parquet, in the order of the rows"
    long = pl.DataFrame({"user_id": ["u"], "item_id": [list(range(3000))]})
    other = long.with_columns(item_id=pl.Series([[*range(1500), 9999, *range(1501, 3000)]]))
    prints = [
        rm.evaluate(
            rm.Lists(one_file(tmp_path, one), memory="1MB"), {"u": [7]}, metrics="rr"
        ).inputs["source"]["fingerprints"]["item"]
        for one in (long, other)
    ]
    assert prints[0] != prints[1]


def test_repeated_items_are_said_once(tmp_path, frame):
    path = one_file(tmp_path, frame)
    with pytest.warns(DataWarning, match=r"\d+ entries of lists repeat an item") as said:
        rm.evaluate(rm.Lists(path, rank="rank", memory=2000), {"u1": ["i1"]}, metrics="rr@1")
    assert len(said) == 1


@pytest.mark.filterwarnings("ignore:.*repeat an item:UserWarning")
def test_a_file_has_one_fingerprint_whatever_the_parts(tmp_path, frame):
    path, test = one_file(tmp_path, frame), {"u1": ["i1"], "u2": ["i2"]}
    found = [
        rm.evaluate(rm.Lists(path, rank="rank", memory=memory), test, metrics="rr@1").inputs
        for memory in (2000, "1MB")
    ]
    assert found[0]["source"]["fingerprints"] == found[1]["source"]["fingerprints"]
    assert {"user", "item", "rank"} <= found[0]["source"]["fingerprints"].keys()
    other = one_file(tmp_path, frame.with_columns(rank=-pl.col("rank")), "other.parquet")
    source = rm.Lists(other, rank="rank", memory=2000)
    changed = rm.evaluate(source, test, metrics="rr@1").inputs["source"]["fingerprints"]
    assert changed["rank"] != found[0]["source"]["fingerprints"]["rank"]
    assert changed["item"] == found[0]["source"]["fingerprints"]["item"]


@pytest.mark.filterwarnings("ignore:.*repeat an item:UserWarning")
def test_strange_items_and_ids_on_one_side_are_treated_as_in_memory(tmp_path, frame):
    path = one_file(tmp_path, frame)
    whole, parts = (rm.Lists(path, rank="rank", memory=memory) for memory in (None, 2000))
    counts = [rm.evaluate(one, {"u1": ["x"]}, metrics="rr@1").counts for one in (whole, parts)]
    assert counts[0] == counts[1]
    said = []
    for source in (whole, parts):
        with pytest.raises(InputError, match="Lists has user ids, but test has none") as error:
            rm.evaluate(source, np.eye(3), metrics="rr@1")
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: rm.Lists({"u": ["i"]}, memory="1GB"), InputTypeError, "in Parquet files, found"),
        (lambda p: rm.Lists(p / "no.csv", memory="1GB"), InputError, "no.csv is not one. Hint"),
        (lambda p: rm.Lists(p / "no.parquet", memory="1GB"), FileError, "There is no file"),
        (lambda p: rm.Lists(p / "one.parquet", memory="a lot"), InputError, "must be a size"),
        (lambda p: rm.Lists(p / "one.parquet", memory=1), InputError, "bytes are too few for"),
        (lambda p: rm.Lists(p / "gap.parquet", memory=9999), InputError, "no value in row 2 "),
        (lambda p: rm.Lists(p / "one.parquet", user_ids=[1], memory=9999), InputError, "not apply"),
    ],
)
def test_what_cannot_be_read_in_parts_is_refused(tmp_path, frame, make, kind, message):
    one_file(tmp_path, frame)
    gap = frame.with_columns(item_id=pl.Series([*"ab", None, *"c" * (len(frame) - 3)]))
    one_file(tmp_path, gap, "gap.parquet")
    with pytest.raises(kind, match=message):
        make(tmp_path)


def test_they_are_no_batch_of_a_stream(tmp_path, frame):
    source = rm.Lists(one_file(tmp_path, frame), rank="rank", memory=9999)
    stream = rm.Evaluator({"u1": ["i1"]}, metrics="rr@1").stream()
    with pytest.raises(InputError, match=r"read from files part by part .* Hint: evaluator"):
        stream.update(source)


def test_users_whom_no_list_names_are_said(tmp_path, frame):
    source = rm.Lists(one_file(tmp_path, frame), rank="rank", memory=9999)
    with pytest.raises(InputError, match=r"knows none of the 1 users .* The source has 'u"):
        rm.evaluate(source, {"nobody": ["i1"]}, metrics="rr@1")


def test_candidates_of_each_user_are_refused(tmp_path, frame):
    source = rm.Lists(one_file(tmp_path, frame), rank="rank", memory=9999)
    test = {"u1": ["i1"]}
    with pytest.raises(InputError, match="candidates= are sets of each user"):
        rm.evaluate(source, test, candidates={"u1": ["i1", "i2"]}, metrics="rr@1")


def test_what_is_said_of_lists_in_files(tmp_path):
    columns = {"user": ["u"] * 3, "item": ["a", "b", "a"], "rank": [1, 2, 3]}
    path, test = one_file(tmp_path, pl.DataFrame(columns)), {"u": ["b"]}
    assert rm.Lists(path, memory="1MB").describe() == "Lists: 3 rows of one.parquet"
    by_rows = rm.Lists(path, rank=False, score=False, memory="1MB")
    assert by_rows.describe().endswith("one.parquet, in the order of the rows")
    for metrics in ("rr", "coverage@1"):
        with pytest.warns(DataWarning, match="1 entries of lists repeat an item"):
            rm.evaluate(rm.Lists(path, memory="1MB"), test, metrics=metrics, catalogue=["a", "b"])
