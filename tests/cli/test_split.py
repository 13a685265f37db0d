"""Tests of ``recometer split``, which writes training and test data to a folder."""

from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import Result, run_command
from polars.testing import assert_frame_equal

import recometer as rm
from recometer import split as splits
from recometer.cli.split import WHAT, WHO
from recometer.split.choices import Folding


def command(*arguments: object, stdin: bytes | None = None) -> Result:
    return run_command(
        list(map(str, arguments)), input=stdin, env={"COLUMNS": "100", "TERM": "dumb"}
    )


def split(*arguments: object, stdin: bytes | None = None) -> Result:
    return command("split", *arguments, stdin=stdin)


def one_line(text: str) -> str:
    """Return a boxed message as one line of text."""
    return " ".join(text.replace("│", " ").split())


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with ratings of 40 items by 30 users; one pair is repeated."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(7)
    user, item = np.nonzero(generator.random((30, 40)) < np.linspace(0.05, 0.5, 30)[:, None])
    user, item = np.append(user, user[0]), np.append(item, item[0])
    data = pl.DataFrame(
        {
            "user_id": user,
            "movieId": item,
            "rating": generator.integers(1, 6, len(user)),
            "timestamp": generator.permutation(len(user)),
            "device": generator.choice(["phone", "desk"], len(user)),
        }
    ).sample(fraction=1, shuffle=True, seed=1)
    data.write_parquet("ratings.parquet")
    data.write_csv("ratings.csv")
    first = datetime.datetime(2024, 1, 1)
    dates = [first + datetime.timedelta(days=time) for time in data["timestamp"].to_list()]
    data.with_columns(timestamp=pl.Series(dates)).write_parquet("dated.parquet")
    pathlib.Path("some.txt").write_text("3\n7\n11\n", encoding="utf-8")


def data() -> pl.DataFrame:
    return pl.read_parquet("ratings.parquet")


def assert_same(actual: rm.Split, expected: rm.Split) -> None:
    """Assert that two splits have equal parts, users and rules, ignoring file names."""
    for part in ("train", "test", "remainder"):
        frames = [getattr(split_result, part) for split_result in (actual, expected)]
        if frames[1] is None:
            assert frames[0] is None
        else:
            assert_frame_equal(*(frame.lazy().collect() for frame in frames))
    assert actual.users.tolist() == expected.users.tolist()
    assert actual.protocol == expected.protocol


PARTS_OF_WHAT: dict[str, Any] = {
    "last": splits.Last(),
    "last=2": splits.Last(2),
    "last_fraction=0.3": splits.LastFraction(0.3),
    "leave_one_out": splits.LeaveOneOut(),
    "leave_one_out=random": splits.LeaveOneOut("random"),
    "fraction=0.25": splits.Fraction(0.25),
    "fraction=0.25,per_user=no": splits.Fraction(0.25, per_user=False),
    "number=2": splits.Number(2),
    "after=200": splits.After(200),
    "after=200,until=240,since=20.5": splits.After(200, 240, 20.5),
    "after_share=0.8": splits.After(share=0.8),
    "windows=100,150": splits.Windows((100, 150)),
    "windows=100,150,until=200,length=50": splits.Windows((100, 150), until=200, length=50),
    "folds=3": splits.KFold(3),
    "cold_items=0.2": splits.ColdItems(0.2),
    "cold_items=some.txt": splits.ColdItems(items=pathlib.Path("some.txt")),
}
PARTS_OF_WHO: dict[str, Any] = {
    "all": splits.AllUsers(),
    "fraction=0.4": splits.UsersFraction(0.4),
    "number=5": splits.UsersNumber(5),
    "users=some.txt": splits.GivenUsers(pathlib.Path("some.txt")),
    "after=150": splits.ActiveAfter(150),
    "folds=4": splits.UserFolds(4),
}


@pytest.mark.parametrize("text", PARTS_OF_WHAT)
def test_every_way_to_hold_out_interactions_matches_python(text: str) -> None:
    what = PARTS_OF_WHAT[text]
    result = split("ratings.parquet", "--what", text, "--out", "made", "--seed", 3)
    assert result.exit_code == 0, result.stderr
    if isinstance(what, Folding):
        for number, fold in enumerate(splits.folds("ratings.parquet", what, seed=3)):
            assert_same(rm.Split.load(f"made/fold_{number}"), fold)
        assert len(list(pathlib.Path("made").iterdir())) == number + 1
    else:
        assert_same(rm.Split.load("made"), splits.split("ratings.parquet", what, seed=3))


@pytest.mark.parametrize("text", PARTS_OF_WHO)
def test_every_choice_of_test_users_matches_python(text: str) -> None:
    who = PARTS_OF_WHO[text]
    arguments = ("--what", "last=1", "--untested", "apart", "--min-train", 2, "--min-test", 1)
    result = split("ratings.parquet", "--who", text, *arguments, "--out", "made")
    assert result.exit_code == 0, result.stderr
    settings: dict[str, Any] = {"untested": "apart", "min_train": 2, "who": who}
    if isinstance(who, splits.UserFolds):
        for number, fold in enumerate(splits.folds("ratings.parquet", splits.Last(1), **settings)):
            assert_same(rm.Split.load(f"made/fold_{number}"), fold)
    else:
        loaded = rm.Split.load("made")
        assert_same(loaded, splits.split("ratings.parquet", splits.Last(1), **settings))


def test_every_kind_of_split_is_available_on_the_command_line() -> None:
    classes = {
        member
        for member in vars(splits).values()
        if isinstance(member, type) and member.__module__.endswith("split.choices")
    }
    every_part = [*PARTS_OF_WHAT.values(), *PARTS_OF_WHO.values()]
    assert {type(part) for part in every_part} == classes
    assert {text.partition("=")[0] for text in PARTS_OF_WHAT} == set(WHAT)
    assert {text.partition("=")[0] for text in PARTS_OF_WHO} == set(WHO)


def test_filters_apply_in_a_fixed_order() -> None:
    result = split(
        *("ratings.parquet", "--what", "last=1", "--out", "made"),
        *("--from-value", 2, "--duplicates", "last", "--min-user", 3, "--min-item", 2),
        *("--core", "user=4,item=3", "--seen", "both"),
    )
    assert result.exit_code == 0, result.stderr
    filters = [
        splits.ValuesFrom(2.0),
        splits.Duplicates("last"),
        splits.MinCounts(user=3, item=2),
        splits.KCore(user=4, item=3),
        splits.SeenInTrain(),
    ]
    expected = splits.split("ratings.parquet", splits.Last(1), filters=filters)
    assert_same(rm.Split.load("made"), expected)
    options = ["--from-value 2", "--duplicates last", "--min-user 3 --min-item 2"]
    options += ["--core user=4,item=3", "--seen both"]
    for option, removed in zip(options, expected.protocol.removed.values(), strict=True):
        assert f"left out by {option}: {removed:,}" in result.stdout.splitlines()
    split("ratings.parquet", "--what", "last=1", "--out", "core", "--core", 4, "--seen", "items")
    assert rm.Split.load("core").protocol.filters == (
        "KCore(user=4, item=4)",
        "SeenInTrain(users=False, items=True)",
    )


def test_summary_of_a_split_is_printed() -> None:
    result = split("ratings.parquet", "--what", "last=1", "--min-user", 5, "--out", "made")
    loaded = rm.Split.load("made")
    train, test = loaded.train.collect(), loaded.test.collect()
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["part", "users", "items", "interactions", "share"]
    for line, part in zip(lines[1:3], (train, test), strict=True):
        share = f"{len(part) / (len(train) + len(test)):.1%}"
        numbers = [part["user_id"].n_unique(), part["movieId"].n_unique(), len(part)]
        assert line.split()[1:] == [*map(str, numbers), share]
    assert lines[4] == "made by: --what last=1 --who all --seed 0 --min-user 5"
    assert result.stderr.splitlines() == [
        "data: ratings.parquet (user 'user_id', item 'movieId', value 'rating', time 'timestamp')",
        "written: made",
    ]
    assert set(train.columns) == {"user_id", "movieId", "rating", "timestamp", "device"}
    quiet = split("ratings.parquet", "--what", "last=1", "--out", "quiet", "--quiet")
    assert quiet.stderr == ""


def test_discarded_interactions_are_counted() -> None:
    result = split(
        *("ratings.parquet", "--what", "after=200,since=50", "--out", "made", "--from-value", 2)
    )
    counts = rm.Split.load("made").protocol.counts
    by_filter = data().filter(pl.col("rating") < 2).height
    assert f"in no part: {counts['left_out'] - by_filter}" in result.stdout.splitlines()


def test_folds_are_shown_one_per_line() -> None:
    arguments = ("--what", "folds=3", "--from-value", 2, "--out", "made")
    lines = split("ratings.parquet", *arguments).stdout.splitlines()
    assert lines[0].split() == ["fold", "users", "of", "test", "train", "test", "left", "out"]
    for number, line in enumerate(lines[1:4]):
        loaded = rm.Split.load(f"made/fold_{number}")
        counts = loaded.protocol.counts
        expected = [number, len(loaded.users), counts["train"], counts["test"], counts["left_out"]]
        assert line.split() == list(map(str, expected))
    assert lines[5] == "made by: --what folds=3 --who all --seed 0 --from-value 2"
    assert lines[6].startswith("left out by --from-value 2: ")


def test_dates_are_accepted_for_times_that_are_dates() -> None:
    windows = "windows=2024-06-01,2024-07-01T12:00,length=30d"
    assert split("dated.parquet", "--what", windows, "--out", "made").exit_code == 0
    times = [datetime.datetime(2024, 6, 1), datetime.datetime(2024, 7, 1, 12)]
    expected = splits.folds(
        "dated.parquet", splits.Windows(times, length=datetime.timedelta(days=30))
    )
    for number, fold in enumerate(expected):
        loaded = rm.Split.load(f"made/fold_{number}")
        assert_frame_equal(loaded.test.collect(), fold.test.collect())
        assert_frame_equal(loaded.train.collect(), fold.train.collect())
    wrong = split("ratings.parquet", "--what", "after=2024-06-01", "--out", "wrong")
    assert wrong.exit_code == 1
    assert "is a date, but the times of the data are numbers" in wrong.stderr
    wrong = split("dated.parquet", "--what", "after=2024", "--out", "wrong")
    assert wrong.exit_code == 1
    assert "is a number, but the times of the data are dates" in wrong.stderr


def test_csv_files_and_standard_input_can_be_split() -> None:
    expected = splits.split("ratings.csv", splits.Last(1))
    split("ratings.csv", "--what", "last=1", "--out", "text")
    content = pathlib.Path("ratings.csv").read_bytes()
    piped = split("-", "--format-in", "csv", "--what", "last=1", "--out", "piped", stdin=content)
    assert piped.exit_code == 0, piped.stderr
    assert piped.stderr.startswith("data: standard input (user 'user_id', item 'movieId'")
    for name in ("text", "piped"):
        assert_same(rm.Split.load(name), expected)


def test_qrels_can_be_split() -> None:
    lines = [f"{topic} 0 d{n} {n % 2 + 1}" for topic in (301, 302) for n in range(4)]
    pathlib.Path("qrels").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = split("qrels", "--what", "number=1", "--out", "made")
    assert result.exit_code == 0, result.stderr
    assert "data: qrels (TREC qrels)" in result.stderr
    loaded = rm.Split.load("made")
    assert (len(loaded.train), len(loaded.test)) == (6, 2)


def test_ids_in_text_files_take_the_type_of_the_data() -> None:
    test_qrels_can_be_split()
    pathlib.Path("topics.txt").write_text("302\n", encoding="utf-8")
    texts = data().with_columns(pl.col("user_id", "movieId").cast(pl.String))
    texts.write_parquet("texts.parquet")
    cases = [("qrels", "topics.txt", ["302"]), ("texts.parquet", "some.txt", ["11", "3", "7"])]
    cases += [("ratings.csv", "some.txt", [3, 7, 11]), ("ratings.parquet", "some.txt", [3, 7, 11])]
    for file, names, users in cases:
        result = split(file, "--who", f"users={names}", "--what", "number=1", "--out", "given")
        assert result.exit_code == 0, result.stderr
        assert rm.Split.load("given").users.tolist() == users
    result = split("texts.parquet", "--what", "cold_items=some.txt", "--out", "given")
    assert result.exit_code == 0, result.stderr


def test_columns_can_be_named() -> None:
    new_names = {"user_id": "who", "movieId": "what", "rating": "much", "timestamp": "when"}
    data().rename(new_names).write_parquet("named.parquet")
    columns = ("--user", "who", "--item", "what", "--value", "much", "--time", "when")
    result = split("named.parquet", "--what", "last=1", *columns, "--out", "made")
    assert result.exit_code == 0, result.stderr
    unnamed = {new: old for old, new in new_names.items()}
    loaded_test = rm.Split.load("made").test.collect().rename(unnamed)
    assert_frame_equal(loaded_test, splits.split(data(), splits.Last(1)).test)
    without_time = split("named.parquet", "--what", "last=1", *columns[:-2], "--out", "no")
    assert without_time.exit_code == 1
    assert "the data have no times. Hint: --time names their column" in without_time.stderr
    assert "Columns: who, what, much, when, device." in without_time.stderr
    wrong = split("named.parquet", "--what", "last=1", "--out", "no")
    assert wrong.exit_code == 1
    assert "named.parquet: No column has a common name for users. Hint: pass --user" in wrong.stderr


def test_empty_train_causes_a_warning() -> None:
    result = split("ratings.parquet", "--what", "after=-1", "--out", "all")
    assert result.exit_code == 0
    assert "Warning: data: the training data are empty: " in result.stderr


# Tests of splits as input to other commands


def test_split_folder_can_be_audited() -> None:
    split("ratings.parquet", "--what", "after=200", "--duplicates", "last", "--out", "time")
    result = command("audit", "time", "--strict")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{rm.audit(rm.Split.load('time'))}\n"
    assert result.stderr.startswith("split: time (After(time=200")
    split("ratings.parquet", "--what", "fraction=0.3", "--duplicates", "last", "--out", "random")
    leaking = command("audit", "random", "--strict", "--quiet")
    assert leaking.exit_code == 3
    assert leaking.stderr.startswith("Leakage: older_than_own_training (")
    assert command("audit", "time", "--train", "random/train.parquet").exit_code == 2
    assert command("audit", "time", "--user", "user_id").exit_code == 2
    assert "There is no split in 'nowhere'" in command("audit", "nowhere").stderr


def test_folds_are_audited_one_by_one() -> None:
    split("ratings.parquet", "--what", "folds=3", "--out", "made")
    assert command("audit", "made/fold_1").exit_code == 0
    result = command("audit", "made")
    assert result.exit_code == 1
    assert "made contains several folds. Hint: name one of them: made" in result.stderr


def test_split_folder_can_be_evaluated() -> None:
    new_names = {"user_id": "who", "movieId": "what", "rating": "much"}
    data().rename(new_names).unique(["who", "what"], keep="first").write_parquet("named.parquet")
    columns = ("--user", "who", "--item", "what", "--value", "much")
    split("named.parquet", "--what", "last=2", *columns, "--out", "made")
    generator = np.random.default_rng(2)
    np.save("users.npy", generator.normal(size=(30, 3)))
    np.save("items.npy", generator.normal(size=(40, 3)))
    model = (
        "--factors",
        "mf=users.npy,items.npy,positions,positions",
        "-m",
        "ndcg@5 recall@5",
        "--format",
        "json",
    )
    by_folder = command("evaluate", "--split", "made", *model)
    assert by_folder.exit_code == 0, by_folder.stderr
    by_file = command(
        *("evaluate", "--test", "made/test.parquet", "--train", "made/train.parquet"),
        *(*columns, *model),
    )
    assert by_folder.stdout == by_file.stdout
    source = rm.Factors(
        np.load("users.npy"), np.load("items.npy"), user_ids=range(30), item_ids=range(40)
    )
    expected = rm.evaluate(source, rm.Split.load("made"), metrics="ndcg@5 recall@5").mean()
    metrics = json.loads(by_folder.stdout)["models"]["mf"]["metrics"]
    assert {name: row["mean"] for name, row in metrics.items()} == pytest.approx(expected)
    refused = command("evaluate", "--split", "made", "--test", "made/test.parquet", *model)
    assert refused.exit_code == 2
    assert "--split already provides test and train" in one_line(refused.stderr)


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            "it is required: last=1 (this number of each user's last interactions)",
        ),
        (("--what", "lst=1"), "there is no 'lst'. Hint: Did you mean 'last'"),
        (("--what", "lst=1"), "cold_items=0.1 or cold_items=FILE"),
        (("--what", "last=1", "--who", "some"), "there is no 'some'"),
        (("--what", "last=1", "--who", "some"), "1000 (this number of users, drawn at random)"),
        (("--what", "last=one"), "'last=one': 'one' is not recognised. Usage: last=1."),
        (("--what", "last="), "'last=': '' is not recognised. Usage: last=1."),
        (("--what", "last=1,2"), "'last=1,2': '2' is not recognised. Usage: last=1."),
        (("--what", "fraction"), "'fraction' is not recognised. Usage: fraction=0.2[,per_user=no]"),
        (("--what", "fraction=2"), "fraction=2.0 must lie between 0 and 1"),
        (("--what", "fraction=0.2,users=no"), "'users=no' is not recognised. Usage: fraction=0.2"),
        (("--what", "fraction=0.2,per_user=maybe"), "'per_user=maybe' is not recognised"),
        (("--what", "after=1,until=2,until=3"), "'until=3' is not recognised"),
        (("--what", "leave_one_out=first"), "'first' must be 'time' or 'random'"),
        (("--what", "last=1", "--core", "five"), "'five': 'five' is not recognised"),
        (
            ("--what", "last=1", "--core", "users=5"),
            "'users=5' is not recognised. Usage: 5",
        ),
        (("--what", "last=1", "--core", "0"), "must be a whole number of at least 1"),
        (("--what", "folds=3", "--who", "folds=3"), "both make folds"),
        (("--what", "last=1", "--duplicates", "any"), "Invalid value for '--duplicates'"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    result = split("ratings.parquet", "--out", "made", *arguments)
    assert result.exit_code == 2
    assert message in one_line(result.stderr)
    assert not pathlib.Path("made").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--what", "last=1", "--who", "users=none.txt"), "There is no file none.txt"),
        (("--what", "last=1", "--min-train", "1000"), "no user can be tested"),
        (("--what", "last=1", "--time", "when"), "ratings.parquet: There is no column 'when'"),
        (("--what", "last=1", "--time", "none"), "the data have no times"),
        # These messages quote the options that the user typed.
        (("--what", "after=5000"), "by --who all, --what after=5000, --min-train 0, --min-t"),
        (("--what", "last=1", "--core", "99"), "--core 99 left out"),
    ],
)
def test_impossible_splits_are_refused(arguments: tuple[str, ...], message: str) -> None:
    result = split("ratings.parquet", "--out", "made", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_new_split_removes_files_of_the_old_one() -> None:
    for what in ("last=1", "last=2"):  # the second split replaces the first
        assert split("ratings.parquet", "--what", what, "--out", "one").exit_code == 0
    assert rm.Split.load("one").protocol.what == "Last(number=2)"
    refused = split("ratings.parquet", "--what", "folds=3", "--out", "one")
    assert refused.exit_code == 1
    assert "one already contains another split (split.json)" in refused.stderr
    for what in ("folds=3", "folds=4"):
        assert split("ratings.parquet", "--what", what, "--out", "folds").exit_code == 0
    refused = split("ratings.parquet", "--what", "folds=2", "--out", "folds")
    assert "folds already contains another split (fold_2)" in refused.stderr
    assert split("ratings.parquet", "--what", "last=1", "--out", "folds").exit_code == 1


@pytest.mark.parametrize("what", ["last=1", "folds=2"])
def test_split_does_not_replace_inputs_or_foreign_files(what: str) -> None:
    place = pathlib.Path("fold_1" if what == "folds=2" else ".")
    place.mkdir(exist_ok=True)
    content = pathlib.Path("ratings.parquet").read_bytes()
    (place / "train.parquet").write_bytes(content)
    for file, message in (
        (place / "train.parquet", "is an input"),
        (pathlib.Path("ratings.parquet"), "was not written by recometer"),
    ):
        refused = split(file, "--what", what, "--out", ".")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"{place / 'train.parquet'} " in refused.stderr
        assert message in refused.stderr
    assert (place / "train.parquet").read_bytes() == content
    assert not pathlib.Path("split.json").exists()


def test_split_of_a_split_does_not_replace_its_input() -> None:
    assert split("ratings.parquet", "--what", "last=1", "--out", "made").exit_code == 0
    options = ("--who", "users=made/users.parquet")
    for arguments in (
        ("made/train.parquet", "--what", "last=1"),
        ("ratings.parquet", "--what", "last=1", *options),
    ):
        refused = split(*arguments, "--out", "made")
        assert refused.exit_code == 1
        assert "is an input" in refused.stderr
    assert rm.Split.load("made").protocol.what == "Last(number=1)"


def test_out_must_name_a_folder() -> None:
    refused = split("ratings.parquet", "--what", "last=1", "--out", "")
    assert refused.exit_code == 2
    assert "does not name a folder" in refused.stderr


def test_folders_and_patterns_of_parquet_files_can_be_split() -> None:
    frame = data()
    folder = pathlib.Path("parts")
    folder.mkdir()
    frame[:50].write_parquet(folder / "part-0.parquet")
    frame[50:].write_parquet(folder / "part-1.parquet")
    expected = rm.split(frame, rm.split.Last(1), who=rm.split.UsersFraction(0.5))
    for path in ("parts", "parts/part-*.parquet"):
        result = split(path, "--what", "last=1", "--who", "fraction=0.5", "--out", "made")
        assert result.exit_code == 0, result.stderr
        assert_same(rm.Split.load("made"), expected)
