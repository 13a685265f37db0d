"""Tests of `exposure`, which returns item groups' shares of the lists and of the relevant items."""

from __future__ import annotations

import numpy as np
import pytest
from shown import DISCOUNTS, GROUPS, LISTS, TEST

import recometer as rm


def column(frame, name):
    return dict(zip(frame["group"], frame[name], strict=True))


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_shares_agree_with_a_direct_computation(discount, k):
    result = rm.exposure(rm.Lists(LISTS), GROUPS, TEST, k=k, discount=discount, patience=0.5)
    exposed = {"big": 0.0, "small": 0.0}
    n_listed = {"big": 0, "small": 0}
    for row in LISTS.values():
        for place, item in enumerate(row[:k], 1):
            exposed[GROUPS[item]] += DISCOUNTS[discount](place)
            n_listed[GROUPS[item]] += 1
    total = sum(exposed.values())
    assert column(result, "listed") == n_listed
    assert column(result, "exposure") == pytest.approx({g: x / total for g, x in exposed.items()})
    assert column(result, "items") == {"big": 2, "small": 3}
    assert column(result, "catalogue") == {"big": 0.4, "small": 0.6}
    assert column(result, "relevant") == {"big": 0.75, "small": 0.25}
    for name, share in (("per_item", "catalogue"), ("per_relevant", "relevant")):
        assert result[name].to_list() == pytest.approx(
            (result["exposure"] / result[share]).to_list()
        )


def test_items_without_a_group_have_a_row():
    groups = {"a": "big", "b": None}
    result = rm.exposure(rm.Lists(LISTS), groups, TEST, k=3, discount="none")
    assert result["group"].to_list() == ["big", None]
    assert result["listed"].to_list() == [2, 4]
    assert result["items"].to_list() == [1, 1]
    assert result["relevant"].to_list() == [0.5, 0.5]


def test_item_in_several_groups_counts_for_each():
    table = {"item_id": list("abcde"), "genres": ["x|y", "x", "y", "y", ""]}
    result = rm.exposure(rm.Lists(LISTS), rm.Catalogue(table), TEST, k=3, discount="none")
    assert result["group"].to_list() == ["x", "y", None]
    assert result["listed"].to_list() == [3, 3, 0]
    assert result["items"].to_list() == [2, 3, 1]
    assert result["catalogue"].to_list() == [0.3, 0.5, 0.2]


def test_train_items_are_not_listed_and_relevant_from_applies():
    scores = rm.Scores(np.array([[3.0, 2.0, 1.0]]))
    test = np.array([[0.0, 1.0, 2.0]])
    train = np.array([[1.0, 0.0, 0.0]])
    groups = ["old", "new", "new"]
    result = rm.exposure(scores, groups, test, train=train, k=1, relevant_from=2)
    assert column(result, "listed") == {"new": 1, "old": 0}
    assert column(result, "relevant") == {"new": 1, "old": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0 must be a whole number"),
        ({"discount": "linear"}, "discount='linear' must be one of log, geometric, none"),
        ({"patience": 1}, "patience=1 must lie between"),
        ({"item_groups": {}}, "item_groups is empty"),
        ({"item_groups": rm.Catalogue(list("abc"))}, "has no categories"),
        ({"test": None}, "test is missing"),
    ],
)
def test_invalid_arguments_are_refused(changes, message):
    arguments = {"item_groups": GROUPS, "test": TEST} | changes
    with pytest.raises(rm.InputError, match=message):
        rm.exposure(rm.Lists(LISTS), **arguments)


def test_invalid_types_and_rules_are_refused():
    with pytest.raises(rm.InputTypeError, match="item_groups is of type int"):
        rm.exposure(rm.Lists(LISTS), 3, TEST)
    with pytest.raises(rm.UnknownNameError, match="tie"):
        rm.exposure(rm.Lists(LISTS), GROUPS, TEST, tie="item")
