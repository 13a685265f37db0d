"""Titles, and the names of users, items and models, cannot add elements to a report."""

import csv
import html.parser
import io
import json
import sys
import warnings

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st

import recometer as rm
from recometer.rendering import Column, Table
from recometer.rendering.formats import FORMULAS

TRICKY = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "--><img src=x onerror=alert(1)>",
    "\"' onload='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "]]><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "\u2028\u2029\u202e<\u0000",
    "=1+1",
    "[a](javascript:alert(1))",
    "\\u003cscript\\u003e",
    "</title></style><x>",
]
PIECES = ["<", ">", "&", "'", '"', "`", "=", "/", "\\", "{{", "}}", "<!--", "-->", "script", " "]
texts = st.one_of(
    st.sampled_from(TRICKY),
    st.lists(
        st.one_of(st.sampled_from(PIECES), st.characters(exclude_categories=["Cs"])), max_size=8
    ).map("".join),
)
# Each name ends with a number, which makes it unique.
names = st.lists(texts, min_size=9, max_size=9).map(
    lambda texts: [f"{text}{number}" for number, text in enumerate(texts)]
)


class Page(html.parser.HTMLParser):
    """A parser that collects a page's elements, their attributes, and the contents of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.values = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "wbr" and not attrs:  # <wbr> allows a line break in a long name
            return
        self.elements.append((tag, sorted(name for name, _ in attrs)))
        self.values += attrs
        if tag == "script":
            self.scripts.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        self.elements.append(("/" + tag, []))

    def handle_comment(self, data):
        self.elements.append(("!--", [data]))

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1][1] += data


def report(names):
    """Write a report in which two models, four users and two titled items have these names."""
    rng = np.random.default_rng(2)
    users, items = names[:4], [*names[4:6], "c", "d", "e"]
    test = {user: [items[number % 5], items[(number + 2) % 5]] for number, user in enumerate(users)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = {
            name: rm.evaluate(
                rm.Scores(rng.random((4, 5)), user_ids=users, item_ids=items),
                test,
                catalogue=rm.Catalogue({"item_id": items, "title": [names[6], *items[1:]]}),
                metrics="ndcg@2 rr",
            )
            for name in names[7:9]
        }
        return rm.compare(results).report(title=names[0]).to_html()


@pytest.fixture(scope="module")
def plain():
    """Return the same report with harmless names, for comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recometer.report.page.vega", lambda: "window.vegaEmbed = null;")
        yield Page(report([f"name {number}" for number in range(9)]))


@given(names)
@example([f"{text}{number}" for number, text in enumerate(TRICKY[:9])])
@example([f"{text}{number}" for number, text in enumerate(TRICKY[4:])])
@examples(0.3)
def test_names_add_no_elements_to_a_report(plain, names):
    page = Page(report(names))
    assert page.elements == plain.elements
    assert len(page.scripts) == len(plain.scripts)
    for (attributes, text), (_, expected) in zip(page.scripts, plain.scripts, strict=True):
        if attributes.get("type") == "application/json":
            json.loads(text)
            assert not {"<", ">", "&", "\u2028", "\u2029"} & set(text)
        else:
            assert text == expected  # scripts contain no names
    for name, value in page.values:
        assert not name.startswith("on")
        assert name not in ("href", "src") or (value or "").startswith(("#", "data:image/"))


@given(st.lists(texts, min_size=4, max_size=4))
@examples(4)
def test_names_add_no_elements_to_tables(names):
    table = Table([Column(names[0]), Column("b")], [{names[0]: names[1], "b": names[2]}], names)
    plain = Table([Column("a"), Column("b")], [{"a": "x", "b": "y"}], ["n"] * 4)
    assert Page(table.to_html()).elements == Page(plain.to_html()).elements


@given(st.lists(st.one_of(texts, st.floats(), st.integers()), min_size=1, max_size=4))
@example(["=cmd|' /C calc'!A0", "\t=1", "+1", "-2", "@x", "\uff1d1", "\r=1", "\n=1", "x\r=1"])
@example([-1.5, -3, float("-inf"), True])
@examples(4)
def test_spreadsheets_do_not_read_strings_as_formulas(values):
    # Python 3.10's csv module can neither read nor write the NUL character.
    assume(sys.version_info >= (3, 11) or not any("\0" in str(value) for value in values))
    table = Table([Column("a")], [{"a": value} for value in values])
    unescaped, safe = (
        [row[0] if row else "" for row in csv.reader(io.StringIO(text, newline=""))][1:]
        for text in (table.to_csv(), table.to_spreadsheet())
    )
    for value, plain_cell, safe_cell in zip(values, unescaped, safe, strict=True):
        if isinstance(value, str):
            assert plain_cell == value
            assert safe_cell in (value, f"'{value}")
            assert not safe_cell.lstrip().startswith(FORMULAS)
        else:
            assert plain_cell == safe_cell
