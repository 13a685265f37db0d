"""Tests of `Lists.from_text`, which reads lists from the answers of a language model."""

import json
import unicodedata
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import ColumnError, DataWarning, InputError, InputTypeError

TITLES = {
    "h": "Heat (1995)",
    "a": "Alien",
    "m": "Amélie (2001)",
    "g": "The Good, the Bad and the Ugly (1966)",
    "t": "12 Angry Men",
    "r": "[REC]",
    "s": "Schindler's List",
    "x": "Spider-Man",
    "n": "!!!",
    "k": "Kind: A Story",
}
CATALOGUE = rm.Catalogue({"item": list(TITLES), "title": list(TITLES.values())})
TEST = {user: ["h"] for user in ("ann", "bob", "cat", "dan")}
METRICS = "valid@1,2,5 unknown_items@5 repeated_items@5 rr precision@5 coverage@5"


def items_of_answer(answer, catalogue=CATALOGUE, **options):
    """Return the items of a single answer; None stands for a title that matches no item."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        lists = rm.Lists.from_text({"ann": answer}, catalogue, **options)
        result = rm.evaluate(
            lists,
            {"ann": catalogue.item_ids[:1].tolist()},
            metrics="coverage@30",
            catalogue=catalogue,
        )
    listed_items = result.lists.item_ids[result.lists.items[0][result.lists.items[0] >= 0]].tolist()
    return [item if item in catalogue.item_ids.tolist() else None for item in listed_items]


def kinds(answers, catalogue=CATALOGUE):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return rm.Lists.from_text(answers, catalogue).invalid.drop("text").rows()


@pytest.mark.parametrize(
    "answer",
    [
        "1. Heat (1995)\n2. Alien\n3. 12 Angry Men",
        "1) Heat (1995)\n2) Alien\n3) 12 Angry Men",
        "(1) Heat (1995)\r\n(2) Alien\r\n(3) 12 Angry Men",
        "Here you are:\n\n1. Heat (1995)\n   - a thriller\n2. Alien\n\n3. 12 Angry Men\n\nEnjoy!",
        "3. Heat (1995)\n4. Alien\n5. 12 Angry Men",
        "- Heat (1995)\n- Alien\n- 12 Angry Men",
        "* **Heat** (1995)\n* *Alien*\n* `12 Angry Men`",
        "Sure!\n• Heat (1995)\n• Alien\n• 12 Angry Men\nMore?",
        "Heat (1995)\nAlien\n12 Angry Men",
        "Films for Ann:\n\n  Heat (1995)\n\n  Alien\n---\n12 Angry Men\n",
        '["Heat (1995)", "Alien", "12 Angry Men"]',
        '[\n  "Heat \\u00281995)",\n  "Alien",\n  "12 Angry Men"\n]',
        '[{"title": "Heat (1995)", "year": 1995}, {"title": "Alien"}, {"Title": "12 Angry Men"}]',
        '{"user": 3, "recommendations": ["Heat (1995)", "Alien", "12 Angry Men"]}',
        '{"1": "Heat (1995)", "2": "Alien", "3": "12 Angry Men"}',
        '{"1": {"title": "Heat (1995)"}, "2": {"title": "Alien"}, "3": "12 Angry Men"}',
        '```json\n["Heat (1995)", "Alien", "12 Angry Men"]\n```',
        'Here:\n```\n["Heat (1995)", "Alien", "12 Angry Men"]\n```\nDone.',
        'Sure! Here it is:\n["Heat (1995)", "Alien", "12 Angry Men"]',
        'JSON: ["Heat (1995)", "Alien", "12 Angry Men"]',
        'Here:\n\n[\n  "Heat (1995)",\n  "Alien",\n  "12 Angry Men"\n]\n\nEnjoy!',
        'For you:\n{"items": ["Heat (1995)", "Alien", "12 Angry Men"]}\nHope this helps.',
        '<think>\n1. Up? No, ["Up"]\n</think>\n["Heat (1995)", "Alien", "12 Angry Men"]',
        ["Heat (1995)", "Alien", "12 Angry Men"],
        np.array(["Heat (1995)", "Alien", "12 Angry Men"]),
    ],
)
def test_answers_are_read_in_many_forms(answer):
    assert items_of_answer(answer) == ["h", "a", "t"]


@pytest.mark.parametrize(
    ("title", "item"),
    [
        ("heat (1995)", "h"),
        ("HEAT   1995", "h"),
        ("“Heat” \u2013 (1995)", "h"),
        ("Ｈｅａｔ (1995)", "h"),  # noqa: RUF001  # fullwidth letters
        ("Heat", None),  # the title lacks the year, so it does not match
        ("Heat (1996)", None),
        ("Ame\u0301lie (2001)", "m"),
        ("AMÉLIE (2001)", "m"),
        ("Amelie (2001)", None),
        ("The Good, The Bad, and the Ugly (1966)", "g"),
        ("Schindlers List", "s"),
        ("Schindler\u2019s List", "s"),
        ("Spider Man", "x"),
        ("Spiderman", None),
        ("[REC]", "r"),
        ("!!!", "n"),
        ("kind - a story", "k"),
        ("12 Angry Men", "t"),
        ("Heat (1995), a thriller", None),
    ],
)
def test_titles_may_differ_only_in_spelling(title, item):
    assert items_of_answer(f"1. {title}\n2. Alien") == [item, "a"]
    assert items_of_answer(f"{title}\nAlien") == [item, "a"]
    assert items_of_answer([title, "Alien"]) == [item, "a"]


def test_invalid_places_and_answers_are_classified():
    answers = {
        "ann": "1. Alien\n2. Alien 9\n3. ALIEN\n4. alien-9\n5. Heat (1995)",
        "bob": '["Alien", ',
        "cat": "",
        "dan": "Alien, Heat (1995), 12 Angry Men",
        "eve": None,
        "fay": "[]",
        "gus": ["Alien", None],
    }
    assert kinds(answers) == [
        ("ann", 2, "unknown"),
        ("ann", 3, "repeated"),
        ("ann", 4, "repeated"),
        ("dan", 1, "unknown"),
        ("gus", 2, "unknown"),
        ("bob", None, "unreadable"),
        ("cat", None, "empty"),
        ("eve", None, "empty"),
        ("fay", None, "empty"),
    ]


def test_invalid_place_counts_as_a_miss():
    lists = rm.Lists.from_text({"ann": "Alien\nAliens\nAlien\nHeat (1995)"}, CATALOGUE)
    result = rm.evaluate(lists, {"ann": ["h", "a"]}, metrics="precision@4 rr", catalogue=CATALOGUE)
    assert result.mean() == {"precision@4": 1 / 2, "rr": 1.0}
    last = rm.evaluate(
        lists,
        {"ann": ["h"]},
        metrics="rr valid@4 unknown_items@4 repeated_items@4",
        catalogue=CATALOGUE,
    )
    assert last.mean() == {
        "rr": 1 / 4,
        "valid@4": 1 / 2,
        "unknown_items@4": 1 / 4,
        "repeated_items@4": 1 / 4,
    }
    assert last.counts == {"list_items_uncatalogued": 1, "list_repeats": 1}


def test_invalid_unicode_is_read_as_an_unknown_title():
    assert items_of_answer('["\\ud800", "Alien"]') == [None, "a"]
    assert items_of_answer("1. \ud800\n2. Alien") == [None, "a"]
    assert items_of_answer(["\ud800", "Alien"]) == [None, "a"]


def test_answers_can_belong_to_sessions():
    columns = {"user": ["ann", "ann"], "session": [1, 2], "answer": ["Alien", "Up"]}
    lists = rm.Lists.from_text(pl.DataFrame(columns), CATALOGUE, user=["user", "session"])
    assert lists.invalid["kind"].to_list() == ["unknown"]
    test = {("ann", 1): ["a"], ("ann", 2): ["a"]}
    assert rm.evaluate(lists, test, metrics="rr")["rr"].tolist() == [1, 0]


def test_repeated_titles_never_count():
    lists = rm.Lists.from_text({"ann": "Alien\nAlien"}, CATALOGUE)
    with pytest.warns(DataWarning, match="repeats in generated lists keep their places"):
        result = rm.evaluate(lists, {"ann": ["a"]}, metrics="precision@2", duplicates="counted")
    assert result.mean() == {"precision@2": 1 / 2}


def test_title_shared_by_several_items_matches_none_of_them():
    catalogue = rm.Catalogue({"item": [1, 2, 3], "title": ["Hamlet", "hamlet!", "Heat"]})
    with pytest.warns(DataWarning, match="belong to several items of the catalogue"):
        lists = rm.Lists.from_text({"ann": "Hamlet\nHeat"}, catalogue)
    assert lists.invalid.rows() == [("ann", 1, "shared", "Hamlet")]
    result = rm.evaluate(lists, {"ann": [1, 2, 3]}, metrics="precision@1 rr", catalogue=catalogue)
    assert result.mean() == {"precision@1": 0, "rr": 1 / 2}


def test_repeated_train_items_are_removed():
    lists = rm.Lists.from_text({"ann": "Alien\nAlien\nAliens\nHeat (1995)"}, CATALOGUE)
    result = rm.evaluate(
        lists,
        {"ann": ["h"]},
        train={"ann": ["a"]},
        metrics="rr valid@2 repeated_items@2",
        catalogue=CATALOGUE,
    )
    assert result.mean()["rr"] == 1 / 2
    assert result.mean()["repeated_items@2"] == 0
    assert result.mean()["valid@2"] == 1 / 2
    assert "list_repeats" not in result.counts


def test_depth_limits_the_number_of_places():
    lists = rm.Lists.from_text({"ann": "Alien\nAlien\nHeat (1995)"}, CATALOGUE, depth=2)
    result = rm.evaluate(lists, {"ann": ["h"]}, metrics="rr valid@2", catalogue=CATALOGUE)
    assert result.mean() == {"rr": 0, "valid@2": 1 / 2}


@pytest.mark.parametrize(
    "make", [pl.DataFrame, pd.DataFrame, lambda columns: pl.DataFrame(columns).lazy()]
)
def test_answers_are_read_from_frames(make):
    frame = make({"user_id": [3, 4], "response": ["Alien\nHeat (1995)", '["Heat (1995)"]']})
    lists = rm.Lists.from_text(frame, CATALOGUE)
    assert rm.evaluate(lists, {3: ["h"], 4: ["h"]}, metrics="rr")["rr"].tolist() == [1 / 2, 1]


@pytest.mark.parametrize("end", ["parquet", "csv", "tsv"])
def test_answers_and_catalogue_are_read_from_files(tmp_path, end):
    def write(name, frame):
        path = tmp_path / f"{name}.{end}"
        if end == "parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path, separator="," if end == "csv" else "\t")
        return path

    answers = write(
        "answers", pl.DataFrame({"who": [3, 4], "said": ["Alien\nHeat (1995)", '["Up", "Alien"]']})
    )
    catalogue = write("items", pl.DataFrame({"item": [7, 8], "title": ["Alien", "Heat (1995)"]}))
    lists = rm.Lists.from_text(answers, catalogue, user="who", answer="said")
    assert rm.evaluate(lists, {3: [8], 4: [7]}, metrics="rr")["rr"].tolist() == [1 / 2, 1 / 2]


def test_frame_may_contain_lists_of_titles():
    frame = pl.DataFrame({"user": ["ann"], "answer": [["Alien", "Heat (1995)"]]})
    assert rm.evaluate(
        rm.Lists.from_text(frame, CATALOGUE), {"ann": ["h"]}, metrics="rr"
    ).mean() == {"rr": 0.5}


def test_invented_items_are_identified_by_title_across_calls():
    """An invented item never gets a catalogue id, even if catalogue ids start with "?"."""
    for item_ids in ([1, 2], [-5, 7], ["a", "b"], ["? up", "a"]):
        catalogue = rm.Catalogue({"item": item_ids, "title": ["Heat", "Alien"]})
        arrays_of_ann, arrays_of_bob = (
            rm.Lists.from_text({user: f"{title}\nUp\nUP\n{other_title}"}, catalogue).facts.arrays
            for user, title, other_title in (("ann", "Heat", "Away"), ("bob", "Alien", "Home"))
        )
        shared = set(arrays_of_ann["item_ids"].tolist()) & set(arrays_of_bob["item_ids"].tolist())
        assert len(shared - set(item_ids)) == 1  # both answers contain Up
        assert len(set(arrays_of_ann["item_ids"].tolist()) - shared) == 1


answer_titles = st.lists(st.sampled_from([*TITLES.values(), "Up", "Brazil (1985)"]), max_size=6)


def spelled(title, spelling):
    changed = {0: title, 1: title.upper(), 2: f"  {title} ", 3: unicodedata.normalize("NFD", title)}
    return changed.get(spelling, f'"{title}"' if title != "!!!" else title)


def as_text(titles, form, spellings):
    titles = [spelled(title, spelling) for title, spelling in zip(titles, spellings, strict=False)]
    if form == "json":
        return json.dumps(titles)
    marks = {"numbered": "{}. ", "bulleted": "- ", "lines": ""}[form]
    return "\n".join(marks.format(n) + title for n, title in enumerate(titles, 1))


forms = st.sampled_from(["json", "numbered", "bulleted", "lines"])
spelling_choices = st.lists(st.integers(0, 4), min_size=6, max_size=6)


@given(st.lists(st.tuples(answer_titles, forms, spelling_choices), min_size=4, max_size=4))
@examples(2)
def test_spelling_and_form_change_nothing(rows):
    plain = {user: row[0] for user, row in zip(TEST, rows, strict=True)}
    texts = {user: as_text(*row) for user, row in zip(TEST, rows, strict=True)}
    if not any(plain.values()):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result, spelled_result = (
            rm.evaluate(
                rm.Lists.from_text(answers, CATALOGUE), TEST, metrics=METRICS, catalogue=CATALOGUE
            )
            for answers in (plain, texts)
        )
    for metric in result.values:
        np.testing.assert_array_equal(result[metric], spelled_result[metric])
    item_of = {title: item for item, title in TITLES.items()}
    for place, titles in enumerate(plain.values()):
        items = [item_of.get(title) for title in titles[:5]]
        first = {item for item in items if item}
        assert result["valid@5"][place] == len(first) / 5
        if titles:
            # Each place is valid, or contains an unknown or repeated item.
            shares = result["unknown_items@5"][place] + result["repeated_items@5"][place]
            assert result["valid@5"][place] * 5 == pytest.approx(len(items) * (1 - shares))
            hits = [n for n, item in enumerate(items, 1) if item == "h"]
            assert result["rr"][place] == (1 / min(hits) if hits else result["rr"][place])


@given(st.lists(answer_titles, min_size=4, max_size=4), st.integers(1, 3))
def test_streamed_blocks_of_users_equal_a_single_evaluation(rows, n_in_first_block):
    answers = dict(zip(TEST, rows, strict=True))
    if not any(rows):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        expected = rm.evaluate(
            rm.Lists.from_text(answers, CATALOGUE), TEST, metrics=METRICS, catalogue=CATALOGUE
        )
        stream = rm.Evaluator(TEST, metrics=METRICS, catalogue=CATALOGUE).stream()
        users = list(answers)
        for block in (users[:n_in_first_block], users[n_in_first_block:]):
            stream.update(rm.Lists.from_text({user: answers[user] for user in block}, CATALOGUE))
        result = stream.compute()
    for metric in expected.values:
        np.testing.assert_array_equal(result[metric], expected[metric])
    assert result.mean() == expected.mean()
    assert result.counts == expected.counts


@pytest.mark.parametrize(
    ("answers", "catalogue", "message"),
    [
        ({"ann": "Alien"}, rm.Catalogue(["a", "b"]), "has no titles"),
        ({"ann": "Alien"}, 10, "has no titles"),
        ({"ann": "Alien"}, rm.Catalogue({"title": ["Alien"]}, item=False), "are positions"),
        ({"ann": "Alien"}, rm.Catalogue({"item": [1], "title": [None]}), "has no titles"),
        ({}, CATALOGUE, "There are no answers"),
        ({"ann": "Alien, Heat, Up, Brazil"}, CATALOGUE, "several titles on one line"),
        (pl.DataFrame({"user": [1, 1], "answer": ["Alien", "Up"]}), CATALOGUE, "several answers"),
    ],
)
def test_invalid_answers_and_catalogues_are_refused(answers, catalogue, message):
    with pytest.raises(InputError, match=message):
        rm.Lists.from_text(answers, catalogue)


def test_answers_of_wrong_types_are_refused():
    with pytest.raises(InputTypeError, match="for user 'ann' is of type int"):
        rm.Lists.from_text({"ann": 3}, CATALOGUE)
    with pytest.raises(InputTypeError, match="cannot be read from list"):
        rm.Lists.from_text(["Alien"], CATALOGUE)
    with pytest.raises(ColumnError, match="common name for answers"):
        rm.Lists.from_text(pl.DataFrame({"user": [1], "words": ["Alien"]}), CATALOGUE)
    with pytest.raises(InputError, match="column"):
        rm.Lists.from_text({"ann": "Alien"}, CATALOGUE, answer="said")
    with pytest.raises(InputError, match="strings, or whole numbers"):
        rm.Lists.from_text(
            {"ann": "Alien"}, rm.Catalogue({"item": [-(2**62) - 5], "title": ["Alien"]})
        )


def test_answers_without_any_title_of_the_catalogue_cause_a_warning():
    with pytest.warns(DataWarning, match="None of the titles in the answers"):
        rm.Lists.from_text({"ann": "Heat\nAliens"}, CATALOGUE)
