"""Tests that `fairness` agrees with a second implementation of its formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from shown import DISCOUNTS, GROUPS, LISTS, TEST

import recometer as rm

ITEMS = "abcde"
OTHER = {"ann": ["e", "b", "a"], "bob": ["c", "d"], "cat": ["a", "d"]}


def attention(lists, k, d):
    """Return a dict that maps each user to the attention that the user gives to each item."""
    return {
        user: {item: d(place) for place, item in enumerate(row[:k], 1)}
        for user, row in lists.items()
    }


def ideal_attention_of(relevant, items, k, d):
    """Return the mean attention over all orders in which the relevant items come first."""
    total, count = dict.fromkeys(items, 0.0), 0
    irrelevant = [item for item in items if item not in relevant]
    for above in itertools.permutations(relevant):
        for below in itertools.permutations(irrelevant):
            count += 1
            for place, item in enumerate([*above, *below][:k], 1):
                total[item] += d(place)
    return {item: value / count for item, value in total.items()}


def expected_exposure(draws, items, k, d):
    """Return the disparity, relevance and loss of expected exposure (EE-D, EE-R and EE-L).

    The function `items` returns the candidates of a user.
    """
    rows_of_users = []
    all_items = {
        *ITEMS,
        *itertools.chain.from_iterable(row for lists in draws for row in lists.values()),
    }
    for user, relevant in TEST.items():
        attentions = [attention(lists, k, d)[user] for lists in draws]
        mean_attention = {
            item: sum(attention_of_draw.get(item, 0) for attention_of_draw in attentions)
            / len(attentions)
            for item in all_items
        }
        ideal_attention = ideal_attention_of(relevant, items(user), k, d)
        pairs = [(mean_attention[item], ideal_attention.get(item, 0)) for item in all_items]
        sums = (lambda e, t: e * e, lambda e, t: e * t, lambda e, t: (e - t) ** 2)
        rows_of_users.append([sum(f(e, t) for e, t in pairs) for f in sums])
    return np.mean(rows_of_users, axis=0)


def group_fairness(lists, target, k, d):
    """Return the exposure ratio, the exposure difference and the rank fairness of two groups."""
    total = np.zeros(2)
    similarities = []
    for attention_of_user in attention(lists, k, d).values():
        attention_of_groups = np.array(
            [
                sum(x for item, x in attention_of_user.items() if GROUPS[item] == g)
                for g in ("big", "small")
            ]
        )
        total += attention_of_groups
        similarities.append(
            1
            - scipy.spatial.distance.jensenshannon(
                attention_of_groups / attention_of_groups.sum(), target, base=2
            )
            ** 2
        )
    share = total / total.sum()
    favour = share / target
    return favour.min() / favour.max(), abs(share - target).sum() / 2, np.mean(similarities)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_fairness_of_one_list_per_user_agrees_with_the_formulas(discount, k):
    d = DISCOUNTS[discount]
    targets = {"relevant": [0.75, 0.25], "catalogue": [0.4, 0.6]}
    for target, shares in targets.items():
        options = {"k": k, "discount": discount, "patience": 0.5, "target": target}
        result = rm.fairness(rm.Lists(LISTS), GROUPS, TEST, **options)
        expected = group_fairness(LISTS, np.array(shares), k, d)
        assert (result.ratio, result.difference, result.rank_fairness) == pytest.approx(expected)
        target_shares = dict(zip(("big", "small"), shares, strict=True))
        with_target_by_name = rm.fairness(
            rm.Lists(LISTS), GROUPS, TEST, **options | {"target": target_shares}
        )
        assert with_target_by_name.ratio == pytest.approx(result.ratio)
        expected = expected_exposure([LISTS], lambda user: ITEMS, k, d)
        assert (result.disparity, result.relevance, result.loss) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 3])
def test_fairness_of_a_randomised_model_agrees_with_the_formulas(k):
    d = DISCOUNTS["log"]
    sources = [rm.Lists(LISTS), rm.Lists(OTHER)]
    result = rm.fairness(sources, GROUPS, TEST, k=k)
    expected = expected_exposure([LISTS, OTHER], lambda user: ITEMS, k, d)
    assert (result.disparity, result.relevance, result.loss) == pytest.approx(expected)
    single_results = [rm.fairness(source, GROUPS, TEST, k=k) for source in sources]
    assert result.rank_fairness == pytest.approx(
        np.mean([single_result.rank_fairness for single_result in single_results])
    )
    assert result.disparity < np.mean([single_result.disparity for single_result in single_results])


def test_train_items_are_not_candidates():
    train = {"ann": ["e"], "bob": ["d", "e"]}
    result = rm.fairness(rm.Lists(LISTS), GROUPS, TEST, train=train, k=3)
    expected = expected_exposure(
        [LISTS],
        lambda user: [item for item in ITEMS if item not in train.get(user, [])],
        3,
        DISCOUNTS["log"],
    )
    assert (result.disparity, result.relevance, result.loss) == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 5])
def test_invented_items_are_not_candidates(k):
    invented = {"ann": ["a", "x", "b", "y"], "bob": ["z"], "cat": ["d", "a", "x"]}
    expected_values = [
        expected_exposure(draws, lambda _: ITEMS, k, DISCOUNTS["log"])
        for draws in ([invented], [invented, OTHER])
    ]
    frame = {"item": list(ITEMS), "group": [[GROUPS[item]] for item in ITEMS]}
    groups = rm.Catalogue(frame, item="item", title=False, categories="group")
    sources = [rm.Lists(lists) for lists in (invented, OTHER)]
    for expected, source in zip(expected_values, (sources[0], sources), strict=True):
        result = rm.fairness(source, groups, TEST, k=k)
        assert (result.disparity, result.relevance, result.loss) == pytest.approx(expected)


def test_ideal_randomised_model_has_no_loss():
    relevant = np.array([[1.0, 1.0, 0.0, 0.0]])
    orders = [
        [*above, *below]
        for above in itertools.permutations([0, 1])
        for below in itertools.permutations([2, 3])
    ]
    draws = [rm.Scores(-np.argsort(np.array([order])).astype(float)) for order in orders]
    result = rm.fairness(draws, ["x", "y", "x", "y"], relevant, k=4)
    assert result.loss == pytest.approx(0, abs=1e-12)
    assert result.disparity == pytest.approx(result.relevance)
    assert (result.ratio, result.difference) == pytest.approx((1, 0))


def test_users_without_relevant_items_do_not_affect_expected_exposure():
    relevant = {user: dict.fromkeys(items, 1.0) for user, items in TEST.items()}
    result = rm.fairness(rm.Lists(LISTS), GROUPS, relevant, k=3)
    with_further_user = rm.fairness(
        rm.Lists(LISTS | {"dan": ["a", "b"]}), GROUPS, relevant | {"dan": {"a": 0.0}}, k=3
    )
    for name in ("disparity", "relevance", "loss"):
        assert getattr(with_further_user, name) == getattr(result, name)
    assert with_further_user.rank_fairness != result.rank_fairness


def test_items_without_a_group_are_left_out():
    incomplete_groups = {"a": "big", "b": None, "c": "small", "d": None, "e": None}
    result = rm.fairness(
        rm.Lists(LISTS), incomplete_groups, TEST, k=3, discount="none", target="catalogue"
    )
    assert (result.ratio, result.difference) == pytest.approx((0.5, 1 / 6))
    none = rm.fairness(rm.Lists({"ann": ["b"]}), incomplete_groups, {"ann": ["b"]}, k=1)
    assert all(math.isnan(x) for x in (none.ratio, none.difference, none.rank_fairness))
    assert none.loss == 0


def test_groups_of_an_item_share_its_attention():
    groups = rm.Catalogue({"item_id": ["film", "book"], "genres": ["x|y", "x"]})
    lists, test = rm.Lists({"ann": ["film", "book"]}), {"ann": ["film"]}
    target = {"x": 3 / 4, "y": 1 / 4}  # x and y share the attention that "film" gets
    result = rm.fairness(lists, groups, test, k=2, discount="none", target=target)
    assert result.rank_fairness == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": None}, "test is missing"),
        ({"target": "equal"}, "target='equal' must be 'relevant', 'catalogue', or a dict"),
        ({"target": {"big": 1}}, "target has the groups big, but the groups of items are big, sm"),
        ({"target": {"big": 1, "small": -1}}, "Every share of target must be at lea"),
        ({"sources": []}, "There are no lists"),
        ({"k": 0}, "k=0 must be a whole number"),
    ],
)
def test_invalid_arguments_are_refused(changes, message):
    arguments = {"sources": rm.Lists(LISTS), "item_groups": GROUPS, "test": TEST} | changes
    with pytest.raises(rm.InputError, match=message):
        rm.fairness(**arguments)
