"""Every format shows the same table, whoever it belongs to."""

from __future__ import annotations

import csv
import html
import io
import json
import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.checking.installation import check_installation
from recometer.rendering import FORMATS, Column, Shown, Table, render
from recometer.rendering.formats import LATEX, to_csv

TEST = {"ann": ["song"], "bob": ["film"], "cat": ["book"]}
LISTS = {"ann": ["film", "song"], "bob": ["game", "book"]}
TRAIN = {"ann": ["book"], "bob": ["book", "song"]}
ROWS = {"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3, 1, 2, 3], "time": [1, 2, 3, 4, 5, 6]}


def evaluated(metrics: str = "rr recall@2") -> rm.Evaluation:
    return rm.evaluate(rm.Lists(LISTS), TEST, train=TRAIN, metrics=metrics)


def everything() -> dict[str, Shown]:
    """Return one of each kind that can be shown."""
    import polars as pl

    result = evaluated()
    folds = rm.split.folds(pl.DataFrame(ROWS), rm.split.KFold(2))
    return {
        "evaluation": result,
        "folds": rm.evaluate([rm.baselines.most_popular(one.train) for one in folds], folds),
        "groups": result.by({"ann": "new", "bob": "old", "cat": "old"}),
        "one metric": evaluated("rr").by({"ann": "new", "bob": "old", "cat": "old"}),
        "audit": rm.audit(TRAIN, TEST),
        "check": rm.check(rm.Lists(LISTS), TEST, train=TRAIN),
        "installation": check_installation(),
        "explanation": rm.explain(result, "recall@2", protocol="lenskit"),
        "split": rm.split.split(pl.DataFrame(ROWS), rm.split.Last(1)),
        "split of interactions": rm.split.split(
            rm.Interactions.of(pl.DataFrame(ROWS)), rm.split.Last(1)
        ),
        "split of several": folds,
        "leaderboard": rm.Leaderboard({"one": result, "other": evaluated()}),
        "users": rm.Leaderboard({"one": result}, with_users=True),
    }


EVERYTHING = everything()


@pytest.mark.parametrize("kind", EVERYTHING)
def test_every_kind_has_every_format(kind: str, tmp_path: pathlib.Path) -> None:
    shown = EVERYTHING[kind]
    for form in FORMATS:
        assert render(shown, form) == FORMATS[form](shown)
    for form in FORMATS.keys() - {"table"}:
        text = getattr(shown, f"to_{form}")(tmp_path / form)
        assert text == render(shown, form)
        assert (tmp_path / form).read_text(encoding="utf-8") == text + "\n"
    with pytest.raises(rm.FileError, match="cannot be written"):
        shown.to_csv(tmp_path / "missing" / "file.csv")


@pytest.mark.parametrize("kind", EVERYTHING)
def test_csv_and_json_have_the_values_themselves(kind: str) -> None:
    shown = EVERYTHING[kind]
    table = shown.data()
    rows = list(csv.DictReader(io.StringIO(shown.to_csv())))
    assert len(rows) == len(table.rows)
    for row, record in zip(rows, table.records(), strict=True):
        for name, value in record.items():
            if isinstance(value, float):
                assert float(row[name]) == value
            elif value is None:
                assert row[name] == ""
            elif isinstance(value, int | str):
                assert row[name] == str(value)
    assert isinstance(json.loads(shown.to_json()), dict)


@pytest.mark.parametrize("kind", EVERYTHING)
def test_formats_for_people_show_the_same_cells(kind: str) -> None:
    tables = EVERYTHING[kind].tables()
    cells = [cell for table in tables for line in table.cells() for cell in line if cell]
    assert cells
    page = html.unescape(re.sub(r"</?\w[^>]*>", "", EVERYTHING[kind].to_html()))
    for cell in cells:
        assert cell in page
        assert cell.replace("|", r"\|") in EVERYTHING[kind].to_markdown()


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(rm.UnknownNameError, match="no format 'markdwon'"):
        render(evaluated(), "markdwon")


# No digits of other scripts, nor line breaks: what cells of results can hold.
TEXTS = st.text(st.sampled_from("aB3 &%$#_{}~^\\<>|±*`\"'-.²Ü"), max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), TEXTS)
def test_what_a_cell_holds_never_becomes_a_command(rows: list[tuple[str, str]], note: str) -> None:
    columns = [Column("first"), Column("second", number=True)]
    table = Table(
        columns, [dict(zip(("first", "second"), row, strict=True)) for row in rows], [note]
    )
    back = {written: character for character, written in LATEX.items()}
    longest = sorted(back, key=len, reverse=True)
    lines = table.to_latex().split("\n")
    begin, end = lines.index(r"\midrule") + 1, lines.index(r"\bottomrule")
    pattern = "|".join(map(re.escape, longest))
    for line, row in zip(lines[begin:end], rows, strict=True):
        assert line.endswith(r" \\")
        texts = re.split(r"(?<!\\) & |^& ", line.removesuffix(r" \\"))
        found = [re.sub(pattern, lambda one: back[one[0]], text) for text in texts]
        assert found == list(row)
    assert to_csv(table).count("first,second") >= 1
    assert list(csv.reader(io.StringIO(table.to_csv())))[1:] == [list(row) for row in rows]
    for text in (text for row in rows for text in row):
        assert html.escape(text) in table.to_html()


def test_the_best_are_marked_in_every_format_that_can() -> None:
    columns = [Column("model"), Column("rr", number=True)]
    rows = [{"model": "a", "rr": "0.5"}, {"model": "b", "rr": "0.25"}]
    table = Table(columns, rows, best={(0, 1)})
    assert "| a | **0.5** |\n| b | 0.25 |" in table.to_markdown()
    assert "a & \\textbf{0.5} \\\\\nb & 0.25 \\\\" in table.to_latex()
    assert "<strong>0.5</strong>" in table.to_html()
    assert "**" not in str(table)


def test_notes_and_lines_above_are_in_every_format_for_people() -> None:
    table = Table([Column("a")], [{"a": 1}], ["below <b>"], ["above"])
    assert str(table) == "above\n\na\n1\n\nbelow <b>"
    assert table.to_markdown() == "above\n\n| a |\n| --- |\n| 1 |\n\nbelow <b>"
    assert table.to_latex().split("\n")[1] == "% above"
    assert table.to_latex().endswith("\\end{tabular}\n% below <b>")
    assert table.to_html().startswith("<p>above</p>")
    assert table.to_html().endswith("<p>below &lt;b&gt;</p>")


def test_values_of_all_kinds_become_json() -> None:
    import numpy as np

    rows = [{"a": np.float64("nan"), "b": np.int64(3)}, {"a": float("inf"), "b": ("x", 1)}]
    table = Table([Column("a"), Column("b")], rows)
    assert json.loads(table.to_json())["rows"] == [{"a": None, "b": 3}, {"a": None, "b": ["x", 1]}]
    assert table.to_csv() == "a,b\n,3\ninf,x; 1"
