"""Tests of interactions read from files."""

from __future__ import annotations

import gzip
import pathlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.files import column_names, read_file
from recometer.errors import ColumnError, FileError, InputError

WRITERS = {
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
    ".tsv.gz": lambda frame, path: path.write_bytes(
        gzip.compress(frame.write_csv(separator="\t").encode())
    ),
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Return a function that writes a frame to a file in this format and returns its path."""

    def write(frame: pl.DataFrame) -> pathlib.Path:
        path = tmp_path / f"ratings{request.param}"
        WRITERS[request.param](frame, path)
        return path

    return write


@pytest.fixture
def text(tmp_path):
    """Return a function that writes text to a CSV file and returns its path."""

    def write(content: str | bytes, name: str = "ratings.csv") -> pathlib.Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def content(interactions: rm.Interactions) -> tuple[object, ...]:
    values, times = interactions.values, interactions.times
    return (
        interactions.user_ids.tolist(),
        interactions.item_ids.tolist(),
        interactions.indptr.tolist(),
        interactions.items.tolist(),
        None if values is None else values.tolist(),
        None if times is None else times.tolist(),
    )


@pytest.mark.parametrize("as_path", [str, pathlib.Path])
def test_ids_values_and_times_are_read_from_files(write, as_path):
    path = write(
        pl.DataFrame(
            {
                "title": ["no", "such", "column"],
                "userId": ["b", "a", "b"],
                "movieId": [30, 10, 20],
                "rating": [1.5, 2.0, -3.0],
                "timestamp": [7, 8, 9],
            }
        )
    )
    expected = (["a", "b"], [10, 20, 30], [0, 1, 3], [0, 1, 2], [2.0, -3.0, 1.5], [8, 9, 7])
    assert content(rm.Interactions.of(as_path(path))) == expected
    assert column_names(path) == ["title", "userId", "movieId", "rating", "timestamp"]


def test_only_the_needed_columns_are_read(write):
    path = write(pl.DataFrame({"a": [1], "b": [2], "c": [3], "rating": [4.0]}))
    columns, frame = read_file(as_str := str(path), user="a", item="c", value=False)
    assert columns == ("a", "c", None, None)
    assert frame.columns == ["a", "c"]
    interactions = rm.Interactions.of(as_str, user="a", item="b", time="c", value=False)
    assert content(interactions) == ([1], [2], [0, 1], [0], None, [3])


def test_positions_are_read_from_a_file(write):
    path = write(pl.DataFrame({"user": [1, 0], "item": [3, 4]}))
    interactions = rm.Interactions.of(path, n_users=2, n_items=2, item_offset=3)
    assert interactions.items.tolist() == [1, 0]


def test_error_about_an_unknown_column_lists_the_columns(write):
    path = write(pl.DataFrame({"user_id": [1], "film": [2]}))
    with pytest.raises(ColumnError) as caught:
        rm.Interactions.of(path, user="usr_id", item="film")
    assert str(caught.value) == (
        f"{path}: There is no column 'usr_id'. Hint: Did you mean 'user_id'? Known: user_id, film."
    )
    with pytest.raises(ColumnError, match=r"common name for items\. Hint: pass item="):
        rm.Interactions.of(path)


def test_missing_entries_of_files_are_refused(write):
    path = write(pl.DataFrame({"user": ["a", None], "item": [1, 2]}))
    with pytest.raises(InputError, match=r"user ids \(column 'user'\) have no value in row 1 "):
        rm.Interactions.of(path)
    path = write(pl.DataFrame({"user": ["a", "b"], "item": [1, 2], "count": [None, 2]}))
    with pytest.raises(InputError, match="value of user 'a' and item 1 is NaN"):
        rm.Interactions.of(path)
    path = write(pl.DataFrame({"user": ["a", "b"], "item": [1, 2], "time": [1, None]}))
    with pytest.raises(InputError, match=r"times \(column 'time'\) have no value in row 1 "):
        rm.Interactions.of(path)


# Tests of ids, values and times in text files


def test_ids_in_text_are_integers_only_if_nothing_is_lost(text):
    def ids(*users: object) -> list[object]:
        lines = "".join(f"{user},1\n" for user in users)
        return rm.Interactions.of(text(f"user,item\n{lines}")).user_ids.tolist()

    assert ids(10, -2) == [-2, 10]
    assert ids(2**64 - 1, 0) == [0, 2**64 - 1]
    assert ids("7", "007") == ["007", "7"]
    assert ids("1", "x") == ["1", "x"]
    assert ids("1.0", "2") == ["1.0", "2"]
    assert ids(2**65, 1) == ["1", str(2**65)]
    # The type depends on all rows, not just the first ones.
    assert ids(*range(2000), "x")[-1] == "x"


def test_values_are_read_from_text(text):
    path = text("user,item,value\n1,1, 2.5\n1,2,1e3\n1,3,-4\n1,4,inf\n")
    assert rm.Interactions.of(path).values.tolist() == [2.5, 1000.0, -4.0, float("inf")]


def test_invalid_numbers_in_text_are_refused(text):
    path = text("user,item,value\n1,1,2\n1,2,good\n")
    with pytest.raises(InputError, match=r"row 1 .* column 'value' holds 'good'. Hint: expected a"):
        rm.Interactions.of(path)
    with pytest.raises(InputError, match="value of user 1 and item 2 is NaN"):
        rm.Interactions.of(text("user,item,value\n1,1,2\n1,2,nan\n"))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["3", " 1"], [3, 1]),
        (["1.5", "2"], [1.5, 2.0]),
        (["1970-01-02", "1970-01-01"], [86_400_000_000, 0]),
        (["1970-01-01 00:00:01", "1970-01-01 00:00:02"], [1_000_000, 2_000_000]),
        (["1970-01-01T00:00:01.5", "1970-01-01T00:00:02.5"], [1_500_000, 2_500_000]),
        (["1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00+01:00"], [0, -3_600_000_000]),
        (["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"], [0, 1_000_000]),
    ],
)
def test_times_are_read_from_text(text, texts, expected):
    path = text(f"user,item,time\n1,1,{texts[0]}\n1,2,{texts[1]}\n")
    assert rm.Interactions.of(path).times.tolist() == expected


@pytest.mark.parametrize("wrong", ["yesterday", "2024-13-01"])
def test_invalid_times_in_text_are_refused(text, wrong):
    path = text(f"user,item,date\n1,1,2024-05-31\n1,2,{wrong}\n")
    with pytest.raises(InputError, match=f"row 1 .* 'date' holds '{wrong}'.*pass time=False"):
        rm.Interactions.of(path)
    path = text(f"user,item,date\n1,1,{wrong}\n")
    with pytest.raises(InputError, match=f"row 0 .* holds '{wrong}'"):
        rm.Interactions.of(path)
    assert rm.Interactions.of(path, time=False).times is None


@pytest.mark.parametrize("dates", [["01/05/2020", "02/05/2020"], ["1.12.2020"], ["1-2-2020 10:00"]])
def test_dates_with_an_ambiguous_month_are_refused(text, dates):
    lines = "".join(f"1,{item},{date}\n" for item, date in enumerate(dates))
    path = text(f"user,item,date\n{lines}")
    with pytest.raises(
        InputError,
        match=rf"row 0 .* column 'date' holds '{dates[0]}', and no row shows .*2024-05-31",
    ):
        rm.Interactions.of(path)
    assert rm.Interactions.of(path, time=False).times is None


def test_day_above_twelve_settles_the_order_of_day_and_month(text):
    path = text("user,item,date\n1,1,02/01/1970\n1,2,13/01/1970\n")
    assert rm.Interactions.of(path).times.tolist() == [86_400_000_000, 12 * 86_400_000_000]


def test_quotes_and_byte_order_marks_are_removed(text):
    path = text('\ufeffuser,item\n"a,b","x ""y"""\n')
    assert content(rm.Interactions.of(path))[:2] == (["a,b"], ['x "y"'])


def test_windows_line_endings_are_accepted(text):
    assert content(rm.Interactions.of(text("user,item\r\n1,2\r\n")))[:2] == ([1], [2])


def test_file_with_only_a_header_is_empty(text):
    assert len(rm.Interactions.of(text("user,item,value,time\n"))) == 0


# Tests of files that cannot be read


def test_error_about_a_missing_file_suggests_a_similar_name(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item\n")
    with pytest.raises(FileError) as caught:
        rm.Interactions.of(tmp_path / "rating.csv")
    assert str(caught.value) == (
        f"There is no file {tmp_path / 'rating.csv'}. Hint: Did you mean 'ratings.csv'?"
    )
    with pytest.raises(FileError, match=r"There is no file .*x\.csv\. Hint: Relative paths start"):
        rm.Interactions.of(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(FileError, match="There is no file user"):
        rm.Interactions.of("user")


def test_folder_without_files_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"is not a file\. Hint: name one file"):
        rm.Interactions.of(tmp_path)


def test_unknown_extension_is_refused(text):
    path = text("user,item\n1,2\n", "ratings.xlsx")
    with pytest.raises(FileError, match=r"unsupported extension. Hint: supported are \.parquet, "):
        rm.Interactions.of(path)


def test_extensions_may_be_in_capitals(text):
    assert len(rm.Interactions.of(text("user,item\n1,2\n", "RATINGS.CSV"))) == 1


def test_names_of_existing_files_may_look_like_patterns(text):
    assert len(rm.Interactions.of(text("user,item\n1,2\n", "[ab]*.csv"))) == 1


@pytest.mark.parametrize("options", [{}, {"user": "user", "item": "item"}])
def test_file_without_a_header_is_refused(text, options):
    with pytest.raises(FileError) as caught:
        rm.Interactions.of(text("1,Toy Story,5\n1,Heat,4\n"), **options)
    assert "seems to have no header: its first line is 1, Toy Story, 5. Hint:" in str(caught.value)


def test_columns_may_be_named_by_numbers(text):
    interactions = rm.Interactions.of(text("who,1,2\na,5,6\n"), user="who", item="1", value=False)
    assert content(interactions)[:2] == (["a"], [5])


def test_empty_file_is_refused(text):
    with pytest.raises(FileError, match=r"ratings\.csv is empty\. Hint: the first line must name"):
        rm.Interactions.of(text(""))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separators_are_detected_in_the_header(text, separator, name, mark):
    lines = mark + 'user;"item";rating\n"a;b";2;3.5\n'.replace(";", separator)
    packed = gzip.compress(lines.encode()) if name.endswith(".gz") else lines
    assert content(rm.Interactions.of(text(packed, name))) == (
        *([f"a{separator}b"], [2], [0, 1], [0]),
        *([3.5], None),
    )


def test_other_separators_in_the_data_are_ignored(text):
    assert content(rm.Interactions.of(text("user,item\na;b,c|d;e\n")))[:2] == (["a;b"], ["c|d;e"])
    path = text("user;item;rating\na;1;3,5\n")
    with pytest.raises(InputError, match=r"'3,5'\. Hint: expected a number with a decimal point"):
        rm.Interactions.of(path)


@pytest.mark.parametrize("lines", ["a,1\n\nb,2\n", "a,1\nb,2\n\n", "\n\na,1\nb,2\n"])
def test_blank_lines_are_left_out(text, lines):
    assert content(rm.Interactions.of(text(f"user,item\n{lines}")))[:2] == (["a", "b"], [1, 2])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("rows", "line", "fields"),
    [
        (["a,1,2", "b,1,2,3"], 3, "4 fields"),
        (["a,1,2"] * 3000 + ["b,1,2,3"], 3002, "4 fields"),
        (['"a', 'b",1,2', "b,1,2,3,4"], 4, "5 fields"),
        (["a,1,2", "b,1"], 3, "2 fields"),
        (["a,1,2", "b", "c,1"], 3, "1 field"),
        (["a,1,2", "", "", "b,1"], 5, "2 fields"),
    ],
)
def test_error_about_a_wrong_number_of_fields_names_the_line(text, pack, rows, line, fields):
    content = pack("\n".join(["user,item,rating", *rows, ""]).encode())
    path = text(content, "a.csv" if pack is bytes else "a.csv.gz")
    with pytest.raises(FileError) as caught:
        rm.Interactions.of(path)
    assert str(caught.value).startswith(
        f"{path}: line {line} has {fields}, but the first line names 3 columns. Hint: fields are "
        "separated by ','"
    )


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("a.parquet", b"user,item\n1,2\n"),
        ("a.parquet", b""),
        ("a.csv", b"user,item\n\xff\xfe\xfa,2\n"),
        ("a.csv.gz", gzip.compress(b"user,item\n1,2\n" * 1000, mtime=0)[:-30]),
    ],
)
def test_damaged_files_are_refused(text, name, damaged):
    with pytest.raises(FileError, match=r"a\.[a-z.]+ cannot be read as \.[a-z.]+: .*Hint: "):
        rm.Interactions.of(text(damaged, name))


def test_file_errors_are_os_errors(tmp_path):
    with pytest.raises(OSError, match="There is no file"):
        rm.Interactions.of(tmp_path / "x.csv")


# Round trip

letters = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4)


@given(
    st.sampled_from(sorted(WRITERS)),
    st.lists(letters.map("u{}".format), min_size=4, max_size=4, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4, unique=True),
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.floats(allow_nan=False), st.integers(-(2**62), 2**62)),
    ),
)
def test_every_format_gives_the_same_interactions(tmp_path_factory, extension, users, items, rows):
    frame = pl.DataFrame(
        {
            "user": pl.Series([users[user] for user, _ in rows], dtype=pl.String),
            "item": pl.Series([items[item] for _, item in rows], dtype=pl.Int64),
            "value": pl.Series([value for value, _ in rows.values()], dtype=pl.Float64),
            "time": pl.Series([time for _, time in rows.values()], dtype=pl.Int64),
        }
    )
    path = tmp_path_factory.mktemp("files") / f"ratings{extension}"
    WRITERS[extension](frame, path)
    assert content(rm.Interactions.of(path)) == content(rm.Interactions.of(frame))
