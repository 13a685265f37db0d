"""Tests that every format shows the same table, for every kind of result."""

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
from recometer.rendering.formats import LATEX, to_csv, to_text

TEST = {"ann": ["song"], "bob": ["film"], "cat": ["book"]}
LISTS = {"ann": ["film", "song"], "bob": ["game", "book"]}
TRAIN = {"ann": ["book"], "bob": ["book", "song"]}
ROWS = {"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3, 1, 2, 3], "time": [1, 2, 3, 4, 5, 6]}


def make_evaluation(metrics: str = "rr recall@2") -> rm.Evaluation:
    return rm.evaluate(rm.Lists(LISTS), TEST, train=TRAIN, metrics=metrics)


def one_of_each_kind() -> dict[str, Shown]:
    """Return a result of each kind that can be rendered as tables."""
    import polars as pl

    result = make_evaluation()
    folds = rm.split.folds(pl.DataFrame(ROWS), rm.split.KFold(2))
    return {
        "evaluation": result,
        "folds": rm.evaluate([rm.baselines.most_popular(fold.train) for fold in folds], folds),
        "groups": result.by({"ann": "new", "bob": "old", "cat": "old"}),
        "one metric": make_evaluation("rr").by({"ann": "new", "bob": "old", "cat": "old"}),
        "audit": rm.audit(TRAIN, TEST),
        "check": rm.check(rm.Lists(LISTS), TEST, train=TRAIN),
        "installation": check_installation(),
        "explanation": rm.explain(result, "recall@2", protocol="lenskit"),
        "split": rm.split.split(pl.DataFrame(ROWS), rm.split.Last(1)),
        "split of interactions": rm.split.split(
            rm.Interactions.of(pl.DataFrame(ROWS)), rm.split.Last(1)
        ),
        "split of several": folds,
        "leaderboard": rm.Leaderboard({"one": result, "other": make_evaluation()}),
        "users": rm.Leaderboard({"one": result}, with_users=True),
    }


EVERYTHING = one_of_each_kind()


@pytest.mark.parametrize("kind", EVERYTHING)
def test_every_kind_of_result_is_rendered_in_every_format(
    kind: str, tmp_path: pathlib.Path
) -> None:
    result = EVERYTHING[kind]
    for form in FORMATS:
        assert render(result, form) == FORMATS[form](result)
    for form in FORMATS.keys() - {"table"}:
        text = getattr(result, f"to_{form}")(tmp_path / form)
        assert text == render(result, form)
        assert (tmp_path / form).read_text(encoding="utf-8") == text + "\n"
    with pytest.raises(rm.FileError, match="cannot be written"):
        result.to_csv(tmp_path / "missing" / "file.csv")


@pytest.mark.parametrize("kind", EVERYTHING)
def test_csv_and_json_contain_exact_values(kind: str) -> None:
    result = EVERYTHING[kind]
    table = result.data()
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert len(rows) == len(table.rows)
    for row, record in zip(rows, table.records(), strict=True):
        for name, value in record.items():
            if isinstance(value, float):
                assert float(row[name]) == value
            elif value is None:
                assert row[name] == ""
            elif isinstance(value, int | str):
                assert row[name] == str(value)
    assert isinstance(json.loads(result.to_json()), dict)


@pytest.mark.parametrize("kind", EVERYTHING)
def test_formats_for_people_show_the_same_cells(kind: str) -> None:
    tables = EVERYTHING[kind].tables()
    cells = [cell for table in tables for line in table.cells() for cell in line if cell]
    assert cells
    page = html.unescape(re.sub(r"</?\w[^>]*>", "", EVERYTHING[kind].to_html()))
    for cell in cells:
        assert cell in page
        assert cell.replace("|", r"\|") in EVERYTHING[kind].to_markdown()


def test_unknown_format_is_refused() -> None:
    with pytest.raises(rm.UnknownNameError, match="no format 'markdwon'"):
        render(make_evaluation(), "markdwon")


# A strategy for cells, with every character that Markdown or LaTeX interprets.
TEXTS = st.text(st.sampled_from("aB3 &%$#_{}~^\\<>|±*`\"'-.²Ü"), max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), TEXTS)
def test_cells_are_never_interpreted_as_commands(rows: list[tuple[str, str]], note: str) -> None:
    columns = [Column("first"), Column("second", number=True)]
    table = Table(
        columns, [dict(zip(("first", "second"), row, strict=True)) for row in rows], [note]
    )
    unescaped_character = {escape: character for character, escape in LATEX.items()}
    longest = sorted(unescaped_character, key=len, reverse=True)
    lines = table.to_latex().split("\n")
    begin, end = lines.index(r"\midrule") + 1, lines.index(r"\bottomrule")
    pattern = "|".join(map(re.escape, longest))
    for line, row in zip(lines[begin:end], rows, strict=True):
        assert line.endswith(r" \\")
        texts = re.split(r"(?<!\\) & |^& ", line.removesuffix(r" \\"))
        unescaped = [
            re.sub(pattern, lambda match: unescaped_character[match[0]], text) for text in texts
        ]
        assert unescaped == list(row)
    assert to_csv(table).count("first,second") >= 1
    assert list(csv.reader(io.StringIO(table.to_csv())))[1:] == [list(row) for row in rows]
    for text in (text for row in rows for text in row):
        assert html.escape(text) in table.to_html()


def test_best_values_are_marked_in_formats_that_support_it() -> None:
    columns = [Column("model"), Column("rr", number=True)]
    rows = [{"model": "a", "rr": "0.5"}, {"model": "b", "rr": "0.25"}]
    table = Table(columns, rows, best={(0, 1)})
    assert "| a | **0.5** |\n| b | 0.25 |" in table.to_markdown()
    assert "a & \\textbf{0.5} \\\\\nb & 0.25 \\\\" in table.to_latex()
    assert "<strong>0.5</strong>" in table.to_html()
    assert "**" not in str(table)


def test_formats_for_people_show_notes_and_headers() -> None:
    table = Table([Column("a")], [{"a": 1}], ["below <b>"], ["above"])
    assert str(table) == "above\n\na\n1\n\nbelow <b>"
    assert table.to_markdown() == "above\n\n| a |\n| --- |\n| 1 |\n\nbelow &lt;b>"
    assert table.to_latex().split("\n")[1] == "% above"
    assert table.to_latex().endswith("\\end{tabular}\n% below <b>")
    assert table.to_html().startswith("<p>above</p>")
    assert table.to_html().endswith("<p>below &lt;b&gt;</p>")


def test_values_of_all_kinds_are_converted_to_json() -> None:
    import numpy as np

    rows = [{"a": np.float64("nan"), "b": np.int64(3)}, {"a": float("inf"), "b": ("x", 1)}]
    table = Table([Column("a"), Column("b")], rows)
    assert json.loads(table.to_json())["rows"] == [{"a": None, "b": 3}, {"a": None, "b": ["x", 1]}]
    assert table.to_csv() == "a,b\n,3\ninf,x; 1"


def make_comparison(**options: object) -> rm.Comparison:
    import numpy as np

    rng = np.random.default_rng(0)
    test = rng.random((150, 40)) < 0.1
    names = ("a_model_with_a_rather_long_name_01", "another_long_name_of_a_model_02", "c", "d")
    metrics = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10 coverage@10"
    results = {
        name: rm.evaluate(
            rm.Scores(rng.random(test.shape) + 0.1 * index * test), test, metrics=metrics
        )
        for index, name in enumerate(names)
    }
    return rm.compare(results, **options)


WITH_COMPARISONS = {
    **EVERYTHING,
    "comparison": make_comparison(),
    "all of a comparison": make_comparison().full(),
    "comparison with a baseline": make_comparison(baseline="c", margin=0.01).full(),
    "changes": make_comparison().changes("ndcg@10", "c", "d"),
    "gates": make_comparison(baseline="c").gate(["ndcg@10 >= -5%", "coverage@10 >= -0.02"]),
}


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("kind", WITH_COMPARISONS)
def test_narrow_lines_do_not_break_names(kind: str, width: int) -> None:
    result = WITH_COMPARISONS[kind]
    text = to_text(result, width)
    assert "…" not in text
    for line in text.split("\n"):
        assert len(line) <= width or " " not in line.strip()
    # If spaces and line breaks are removed, the text contains every word of the column titles.
    letters = re.sub(r"[\s-]", "", text)
    for table in result.tables():
        for column in table.shown:
            assert all(word in letters for word in column.title.replace("-", "").split())


def test_tables_become_narrower_step_by_step() -> None:
    columns = [
        Column("model"),
        Column("of what"),
        Column("mean of all", number=True, spare=True),
        Column("difference", number=True),
        Column("verdict"),
    ]
    rows = [
        {
            "model": f"model {index}",
            "of what": "ndcg@10",
            "mean of all": "0.1234",
            "difference": f"+0.{index}",
            "verdict": "no difference shown",
        }
        for index in range(2)
    ]
    table = Table(columns, rows, ["a note"])
    assert to_text(table, 64) == to_text(table)
    assert to_text(table, 58).split("\n")[:2] == [
        "model    of what    mean  difference  verdict",
        "                  of all",
    ]
    assert to_text(table, 46).split("\n") == [
        "of what: ndcg@10",
        "model    difference  verdict",
        "model 0        +0.0  no difference shown",
        "model 1        +0.1  no difference shown",
        "",
        "a note",
        "Left out for lack of width: mean of all.",
    ]
    assert to_text(table, 33).split("\n")[1:3] == [
        "model    difference",
        "model 0        +0.0",
    ]
    assert "model    verdict\nmodel 0  no difference" in to_text(table, 33)


SPECIAL_CHARACTERS = [
    "new\\|0.9999* 1",
    "a|b",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) ![](http://evil/t.png)",
    "`code` @someone #1 see http://evil.example www.evil.example a@b.example",
    "a\nb",
    "~~gone~~ _em_ __strong__ **bold**",
    "1. one",
    "# head",
    "> quote",
    "&lt;b&gt; &#124;",
]


def test_markdown_does_not_interpret_names() -> None:
    """The names contain every character that Markdown would interpret."""
    rows = [{"model": name, "rr": "0.5"} for name in SPECIAL_CHARACTERS]
    table = Table(
        [Column("model"), Column("rr", number=True)], rows, SPECIAL_CHARACTERS, SPECIAL_CHARACTERS
    )
    text = table.to_markdown()
    lines = [line for line in text.split("\n") if line.startswith("| ")]
    assert len(lines) == 2 + len(SPECIAL_CHARACTERS)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)
    assert not re.search(r"\\\\", text)
    for pattern in (
        r"<",
        r"(?<!\\)[\[\]`~]",
        r"://",
        r"(?m)^(#|>|1\. )",
        r"(?<![\\\w])_|(?<!\\)_(?!\w)",
    ):
        assert not re.search(pattern, text), pattern
    for sign in ("@someone", "#1 ", "www.", "a@b"):
        assert sign not in text
    assert "&#92;\\|0.9999\\* 1" in text
    assert r"a&#92;nb" in text
    assert "&amp;lt;b&amp;gt;" in text


def test_metric_names_are_not_escaped_in_markdown() -> None:
    table = Table([Column("metric")], [{"metric": "roc_auc ndcg@10(gain=binary) >= -5%"}])
    assert "| roc_auc ndcg@10(gain=binary) >= -5% |" in table.to_markdown()


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "html"])
def test_control_characters_are_shown_as_escapes(form: str) -> None:
    name = "a\x1b[31mred\x1b]0;title\x07\u202e\udc80\r\nb"
    table = Table([Column("model"), Column(name)], [{"model": name, name: "1"}], [name], [name])
    text = render(table, form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udc80]", text)
    assert text.count("x1b") == 2 * 4
    assert name in json.loads(table.to_json())["rows"][0].values()
    assert list(csv.reader(io.StringIO(table.to_csv(), newline="")))[1][0] == name
