"""Tests of text files with byte order marks, line endings and blanks that programs often write."""

import gzip
import json
import os
import pathlib
import warnings

import numpy as np
import polars as pl
import pytest
from command_line import run_command

import recometer as rm
import recometer.split

MARK = b"\xef\xbb\xbf"
TABLE = b"user_id,item_id,rating\n1,20,3\n2,30,4\n"
QRELS = b"1 0 d1 1\n1 0 d3 2\n2 0 d1 1\n"
RUN = b"1 Q0 d1 1 3 x\n1 Q0 d3 2 2 x\n2 Q0 d1 1 1 x\n"
TEST = {1: {20: 3}, 2: {30: 4}}


FORMS = {
    "marked": lambda content: MARK + content,
    "marked and compressed": lambda content: gzip.compress(MARK + content),
    "Windows line endings": lambda content: MARK + content.replace(b"\n", b"\r\n"),
    "old Mac line endings": lambda content: MARK + content.replace(b"\n", b"\r"),
    "old Mac line endings, compressed": lambda c: gzip.compress(c.replace(b"\n", b"\r")),
}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def rows(data: rm.Interactions) -> dict[object, dict[object, float]]:
    ratings = {}
    for user, name in enumerate(data.user_ids.tolist()):
        part = slice(*data.indptr[user : user + 2])
        items = data.item_ids[data.items[part]].tolist()
        ratings[name] = dict(zip(items, data.values[part].tolist(), strict=True))
    return ratings


def test_tables_are_read_with_any_marks_and_line_endings(tmp_path, form) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(form(TABLE))
    data = rm.Interactions.of(path)
    assert rows(data) == TEST
    assert data.columns.user == "user_id"


@pytest.mark.parametrize("form_of_run", FORMS.values())
def test_trec_files_are_read_with_any_marks_and_line_endings(tmp_path, form, form_of_run) -> None:
    qrels, run = tmp_path / "q.qrels", tmp_path / "r.run"
    qrels.write_bytes(form(QRELS))
    run.write_bytes(form_of_run(RUN))
    result = rm.evaluate(rm.Lists(run), qrels, metrics="ap ndcg", relevant_from=1)
    assert result.user_ids.tolist() == ["1", "2"]
    first = (1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3))
    assert result.mean() == pytest.approx({"ap": 1.0, "ndcg": (first + 1) / 2})


def test_second_byte_order_mark_is_removed(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(MARK + MARK + TABLE)
    assert rows(rm.Interactions.of(path, user="user_id")) == TEST


@pytest.mark.parametrize(
    ("name", "content", "place_of_mark"),
    [
        ("a.csv", MARK + TABLE + MARK + b"3,20,1\n", "row 2"),
        ("a.tsv", TABLE.replace(b",", b"\t") + MARK + b"1\t40\t1\n", "row 2"),
        ("a.qrels", MARK + QRELS + MARK + b"3 0 d1 1\n", "line 3"),
        ("b.qrels", MARK + MARK + QRELS, "line 0"),
    ],
)
def test_byte_order_mark_inside_a_file_is_refused(tmp_path, name, content, place_of_mark) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    message = rf"{name}: {place_of_mark} \(counted from 0\) begins with a byte order mark"
    with pytest.raises(rm.FileError, match=message):
        rm.Interactions.of(path)


def test_byte_order_mark_before_a_quote_is_removed(tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(MARK + b'"user_id","item_id"\n"1","20"\n')
    assert rm.Interactions.of(path).user_ids.tolist() == [1]


def test_catalogue_is_read_with_any_marks_and_line_endings(tmp_path, form) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes(form(b"item_id,title,genres\n7,Heat,Crime|Drama\n3,Casino,Crime\n"))
    catalogue = rm.Catalogue(path)
    assert (catalogue.item_ids.tolist(), catalogue.titles.tolist()) == ([3, 7], ["Casino", "Heat"])
    assert catalogue.category_names == ("Crime", "Drama")


def test_ids_and_groups_are_read_with_any_marks_and_line_endings(
    tmp_path, monkeypatch, form
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "test.csv": b"user_id,item_id\n1,7\n2,8\n",
        "run.csv": b"user_id,item_id,rank\n1,9,1\n1,7,2\n2,8,1\n",
        "items.csv": b"item_id\n7\n8\n",
        "groups.csv": b"user_id,group\n1,new\n2,old\n",
    }.items():
        pathlib.Path(name).write_bytes(form(content))
    pathlib.Path("ids.txt").write_bytes(
        b"7\n8\n" if form(b"a")[:2] == b"\x1f\x8b" else form(b"7\n8\n")
    )
    for candidates in ("ids.txt", "items.csv"):
        arguments = ["evaluate", "--test", "test.csv", "--run", "run.csv", "-m", "rr"]
        arguments += ["--candidates", candidates, "--by", "groups.csv", "--format", "json"]
        result = run_command(arguments)
        assert result.exit_code == 0, result.stderr
        model = json.loads(result.stdout)["models"]["run"]
        # Item 9 is ranked first, but is not a candidate.
        assert model["metrics"]["rr"]["mean"] == 1.0


def test_split_reads_files_with_any_marks_and_line_endings(tmp_path, form) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(form(TABLE + b"2,20,5\n"))
    parts = recometer.split.split(path, recometer.split.Fraction(0.5), seed=1)
    assert sorted([*parts.train["item_id"], *parts.test["item_id"]]) == [20, 20, 30]


def test_split_header_with_a_byte_order_mark_is_read(tmp_path) -> None:
    frame = pl.DataFrame({"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2]})
    parts = recometer.split.split(frame, recometer.split.Fraction(0.5))
    parts.save(tmp_path / "split")
    header = tmp_path / "split" / "split.json"
    header.write_bytes(MARK + header.read_bytes())
    assert len(recometer.split.Split.load(tmp_path / "split").test) == len(parts.test)


@pytest.mark.parametrize(
    "content",
    [
        "user_id, item_id, rating\n1, 20, 3\n2, 30, 4\n",
        "user_id, item_id, rating\n1,20,3\n2,30,4\n",
        "user_id,item_id,rating\n1, 20, 3\n2, 30, 4\n",
        "user_id; item_id; rating\n1; 20; 3\n2; 30; 4\n",
        'user_id, "item_id", "rating"\n1, "20", "3"\n2, "30", "4"\n',
    ],
)
def test_blanks_after_separators_are_removed(tmp_path, content) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(content)
    assert rows(rm.Interactions.of(path, item="item_id")) == TEST
    lists = rm.Lists(path, score="rating")
    assert rm.evaluate(lists, {1: [20], 2: [30]}, metrics="rr").mean() == {"rr": 1.0}


def test_entry_of_blanks_is_read_as_missing(tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user_id, item_id\n1, a\n2, \n")
    with pytest.raises(rm.InputError, match=r"item ids .* have no value in row 1"):
        rm.Interactions.of(path)


def test_blanks_inside_entries_are_kept(tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text('user_id, item_id\n1, Toy Story\n2, "Heat  2"\n')
    assert rm.Interactions.of(path).item_ids.tolist() == ["Heat  2", "Toy Story"]


def test_blank_lines_before_a_run_are_skipped(tmp_path) -> None:
    path = tmp_path / "r.run"
    path.write_bytes(b"\n \n" + RUN)
    assert rm.Lists(path).describe() == "Lists: 2 lists, 3 entries, up to 2 each"


def test_unnamed_columns_may_repeat(tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user_id,item_id,rating,,\n1,20,3,,\n2,30,4,,\n")
    assert rows(rm.Interactions.of(path)) == TEST


def test_beir_judgements_are_read_without_a_warning(tmp_path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\n1\td1\t1\n1\td3\t2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = rm.Interactions.of(path)
    assert rows(data) == {1: {"d1": 1, "d3": 2}}


def test_plain_text_named_like_a_compressed_file_is_read(tmp_path) -> None:
    path = tmp_path / "ratings.csv.gz"  # some browsers unpack downloads but keep the name
    path.write_bytes(TABLE)
    assert rows(rm.Interactions.of(path)) == TEST


@pytest.mark.parametrize("make", [os.fsdecode, lambda name: pathlib.Path(os.fsdecode(name))])
def test_file_names_need_not_be_utf8(tmp_path, make) -> None:
    folder = os.fsencode(tmp_path) + b"/"
    frame = pl.DataFrame({"user_id": [1, 2], "item_id": [20, 30], "rating": [3, 4]})
    with open(folder + b"\xff.parquet", "wb") as file:
        frame.write_parquet(file)
    for name, content in ((b"\xff.csv", TABLE), (b"\xff.qrels", QRELS), (b"\xff.run", RUN)):
        with open(folder + name, "wb") as file:
            file.write(content)
    for name in (b"\xff.parquet", b"\xff.csv"):
        assert rows(rm.Interactions.of(make(folder + name))) == TEST
        assert len(rm.Catalogue(make(folder + name))) == 2
        lists = rm.Lists(make(folder + name), score="rating")
        assert rm.evaluate(lists, {1: [20], 2: [30]}, metrics="rr").mean() == {"rr": 1.0}
    run, qrels = make(folder + b"\xff.run"), make(folder + b"\xff.qrels")
    assert rm.evaluate(rm.Lists(run), qrels, metrics="rr").mean() == {"rr": 1.0}
