"""Tests that tie rules give tied items their documented places, or draw them uniformly."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer.testing import RankingCase, cases, rank
from recometer.ties import WHOLE, Groups, resolve, two_to, worth_of

NAN = np.nan
RULES = ("optimistic", "pessimistic", "random", "item", "item_desc")

# Item 0 comes first, items 1 to 5 are tied, item 6 comes last, and items 2, 4 and 6 are relevant.
SCORES = [9, 5, 5, 5, 5, 5, 1]
GAINS = [NAN, NAN, 1, NAN, 3, NAN, 2]


def table(groups: Groups) -> list[tuple[float, ...]]:
    columns = (groups.start, groups.size, groups.relevant, groups.hits_before, groups.gain)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_rule_expected_keeps_tied_items_together():
    ranks = rank(SCORES, GAINS)
    assert table(resolve(ranks, "expected", "relevance")) == [(1, 5, 2, 0, 2 / 5), (6, 1, 1, 2, 1)]
    assert table(resolve(ranks, "expected", "gain")) == [(1, 5, 2, 0, 4 / 5), (6, 1, 1, 2, 2)]


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ("optimistic", [1, 2, 6]),
        ("pessimistic", [4, 5, 6]),
        ("item", [2, 4, 6]),
        ("item_desc", [2, 4, 6]),
    ],
)
def test_tie_rules_give_tied_items_their_places(rule, places):
    groups = resolve(rank(SCORES, GAINS), rule)
    assert groups.start.tolist() == places
    assert groups.single
    assert groups.hits_before.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("optimistic", [(0, 5), (1, 0.5), (4, -0.5), (5, -3)]),
        ("pessimistic", [(0, -3), (1, -0.5), (4, 0.5), (5, 5)]),
        ("item", [(0, 0.5), (2, -0.5), (3, -3), (5, 5)]),
        ("item_desc", [(0, 5), (2, -3), (3, -0.5), (5, 0.5)]),
    ],
)
def test_places_by_gain_put_unjudged_items_between_likes_and_dislikes(rule, expected):
    groups = resolve(rank([1] * 6, [0.5, 0, -0.5, -3, NAN, 5]), rule, "gain")
    assert list(zip(groups.start.tolist(), groups.gain.tolist(), strict=True)) == expected


def test_shared_place_is_the_rounded_up_middle_of_the_group():
    """A group of five tied items shares its third place, and a group of four its second place."""
    assert resolve(rank(SCORES, GAINS), "shared").start.tolist() == [3, 3, 6]
    assert resolve(rank([9, 5, 5, 5, 5], [NAN, 1, NAN, NAN, 1]), "shared").start.tolist() == [2, 2]
    assert resolve(rank([5, 5, 1], [1, NAN, 1]), "shared").start.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("rule", "places"),
    [("as_ranked", [1, 1, 6]), ("item", [2, 4, 6]), ("input", [2, 4, 6]), ("shared", [3, 3, 6])],
)
def test_equal_ranks_share_a_place(rule, places):
    """Under `as_ranked`, equal ranks share a place, but equal scores keep their input order."""
    ranks = dataclasses.replace(rank(SCORES, GAINS), by_rank=True)
    assert resolve(ranks, rule).start.tolist() == places
    assert resolve(rank(SCORES, GAINS), "as_ranked").start.tolist() == [2, 4, 6]


def test_higher_ids_come_first_among_ties_within_the_cutoff():
    """Tied items are ordered by descending id within the cut-off, and by ascending id below it."""
    ranks = rank(SCORES, [NAN, 1, 2, 3, 4, 5, NAN])
    for within, gains in (
        (3, [2, 1, 3, 4, 5]),
        (1, [1, 2, 3, 4, 5]),
        (6, [5, 4, 3, 2, 1]),
        (100, [5, 4, 3, 2, 1]),
        (None, [5, 4, 3, 2, 1]),
    ):
        groups = resolve(ranks, "item_desc_within", "gain", within=within)
        assert groups.start.tolist() == [1, 2, 3, 4, 5]
        assert groups.gain.tolist() == gains


@pytest.mark.parametrize(
    ("by", "worth"),
    [
        ("gain", [2, -1, 0.5]),
        ("positive_gain", [2, 0.5]),
        ("relevant_gain", [2, 0.5]),
        ("judgement", [1, 1, -1, 1]),
        ("exponential", [3, -0.5, 2**0.5 - 1]),
        ("positive_exponential", [3, 2**0.5 - 1]),
        ("shifted", [7, 1, 2**1.5 - 1]),
    ],
)
def test_groups_contain_exactly_the_items_with_nonzero_worth(by, worth):
    ranks = rank([5, 4, 3, 2, 1], [2, 0, -1, 0.5, NAN], relevant_from=0)
    groups = resolve(ranks, by=by, relevant_from=0)
    has_worth, all_worths = worth_of(ranks, by, 0)
    assert groups.gain.tolist() == all_worths[has_worth].tolist() == worth
    assert not all_worths[~has_worth].any()
    assert groups.hits_before.tolist() == list(range(len(worth)))


def test_repeated_list_item_counts_once_in_the_ideal_order():
    ranks = rank([5, 4, 3, 2], [3, 2, 3, -1], unranked=[False, True, False, False])
    expected = resolve(ranks, by="gain")
    repeated = resolve(dataclasses.replace(ranks, repeated=ranks.above == 1), by="gain")
    assert repeated.gain.tolist() == expected.gain.tolist() == [3, 3, -1]
    for groups, ideal, ideal_of_list, signed in (
        (expected, [3, 3, 2], [3, 3], [3, 3, 2, -1]),
        (repeated, [3, 2], [3], [3, 2, -1]),
    ):
        assert groups.ideal_gain.tolist() == ideal
        assert groups.listed_ideal()[1].tolist() == ideal_of_list
        assert groups.signed_ideal()[1].tolist() == signed


@pytest.mark.parametrize("power", [[1023, 1024, -1074, 2000], [1023.5, 1024, 0.5, 1e300]])
def test_powers_beyond_the_range_are_infinite(power):
    expected = [math.inf if exponent >= 1024 else 2.0**exponent for exponent in power]
    assert two_to(np.array(power, np.float64)).tolist() == expected


def test_unranked_items_appear_only_in_the_ideal_order():
    ranks = rank([3, 2, 1], [1, 4, 2], unranked=[False, True, False])
    groups = resolve(ranks, by="gain")
    assert table(groups) == [(0, 1, 1, 0, 1), (1, 1, 1, 1, 2)]
    assert groups.ideal_gain.tolist() == [4, 2, 1]
    assert resolve(ranks).n_relevant.tolist() == [3]


def test_ideal_order_contains_the_positive_gains_of_each_user_best_first():
    gains = [[1, 3, 2, NAN], [NAN, -1, 0, NAN], [5, NAN, 7, 0], [1, NAN, NAN, NAN]]
    groups = resolve(rank(np.zeros((4, 4)), gains), by="gain")
    assert groups.ideal_indptr.tolist() == [0, 3, 3, 5, 6]
    assert groups.ideal_gain.tolist() == [3, 2, 1, 7, 5, 1]


def test_users_without_relevant_items_have_no_groups():
    groups = resolve(rank(np.ones((3, 2)), [[NAN, NAN], [0, 1], [NAN, 0]]))
    assert groups.indptr.tolist() == [0, 0, 1, 1]
    empty = resolve(rank(np.ones((2, 2)), np.full((2, 2), NAN)))
    assert empty.indptr.tolist() == [0, 0, 0]
    assert empty.single


def test_within_counts_the_places_of_a_group_inside_the_cutoff():
    groups = resolve(rank(SCORES, GAINS))
    for cutoff, rows, places in [(1, [], []), (3, [0], [2]), (6, [0], [5]), (7, [0, 1], [5, 1])]:
        inside_of_group, inside = groups.within(cutoff)
        assert (inside_of_group.tolist(), inside.tolist()) == (rows, places)
    per_user, inside = groups.within(np.array([3]))
    assert (per_user.tolist(), inside.tolist()) == ([0], [2])
    assert groups.within(WHOLE)[1].tolist() == [5, 1]
    parted = {cutoff: groups.parted(cutoff).tolist() for cutoff in range(1, 8)}
    assert parted == {1: [], 2: [0], 3: [0], 4: [0], 5: [0], 6: [], 7: []}


@given(cases(), st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_several_cutoffs_give_the_same_values_as_each_alone(case: RankingCase, cutoffs: list[int]):
    for rule in ("expected", "item"):
        groups = resolve(case.ranks(), rule)
        reach = groups.reach(np.array(cutoffs))
        group_numbers = np.arange(len(groups.size))
        for cutoff, (inside, user, parted, rows_of_cutoff) in zip(
            cutoffs, reach.cutoffs, strict=True
        ):
            rows, places = groups.within(cutoff)
            assert group_numbers[reach.rows][inside].tolist() == rows.tolist()
            assert user.tolist() == groups.user[rows].tolist()
            only_some = np.flatnonzero(places < groups.size[rows])
            assert parted.tolist() == only_some.tolist()
            assert reach.parted[rows_of_cutoff].tolist() == rows[only_some].tolist()
            assert reach.places[rows_of_cutoff].tolist() == places[only_some].tolist()


@given(cases())
def test_every_rule_gives_distinct_places_within_the_tie_group(case: RankingCase):
    ranks = case.ranks()
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    for rule, by in itertools.product(RULES, ("relevance", "gain")):
        groups = resolve(ranks, rule, by, seed=3)
        assert groups.single
        places = list(zip(groups.user.tolist(), groups.start.tolist(), strict=True))
        assert places == sorted(set(places))
        has_worth = (ranks.above >= 0) & (ranks.relevant if by == "relevance" else ranks.gain != 0)
        n_places = Counter()
        for u, above, tied in zip(
            user[has_worth], ranks.above[has_worth], ranks.tied[has_worth], strict=True
        ):
            n_places[int(u), int(above), int(above + tied)] += 1
        for (u, first, last), count in n_places.items():
            inside = [place for owner, place in places if owner == u and first <= place <= last]
            assert len(inside) == count


@pytest.mark.parametrize(
    ("n_items", "n_judged"),
    # Large groups of judged items take a different code path from small groups.
    [(4, 3), (4, 4), (6, 2), (7, 3)],
)
def test_random_places_are_equally_likely(n_items, n_judged):
    n_users = 6_000
    gains = [*range(1, n_judged + 1), *[NAN] * (n_items - n_judged)]
    ranks = rank([0] * n_items, gains).users(np.zeros(n_users, int))
    groups = resolve(ranks, "random", "gain", seed=1)
    # Each row contains the places of a user's items with gain 1, 2, and so on.
    order = np.argsort(groups.gain.reshape(n_users, n_judged), axis=1)
    places = np.take_along_axis(groups.start.reshape(n_users, n_judged), order, axis=1)
    counts = Counter(map(tuple, places.tolist()))
    outcomes = list(itertools.permutations(range(n_items), n_judged))
    assert set(counts) <= set(outcomes)
    mean = n_users / len(outcomes)
    chi_square = sum((counts[outcome] - mean) ** 2 / mean for outcome in outcomes)
    degrees = len(outcomes) - 1
    # A chi-square statistic with d degrees of freedom has mean d and variance 2d, and hardly ever
    # deviates from its mean by six standard deviations.
    assert abs(chi_square - degrees) < 6 * np.sqrt(2 * degrees)


def test_random_order_is_the_same_for_relevance_and_gain():
    gains = [1, 2, 0, -1, NAN, NAN, 3, NAN, 1, 1]
    case = rank([1] * 9 + [0], gains, relevant_from="not_zero").users(np.zeros(500, int))
    by_relevance = resolve(case, "random", "relevance", seed=5)
    by_gain = resolve(case, "random", "gain", seed=5)
    np.testing.assert_array_equal(by_relevance.start, by_gain.start)


def test_random_places_do_not_depend_on_other_users():
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 3, (50, 30))
    gains = np.where(generator.random((50, 30)) < 0.2, 1.0, NAN)
    keys = generator.integers(0, 2**63, 50).astype(np.uint64)
    together = resolve(rank(scores, gains), "random", seed=7, user_keys=keys)
    for user in (0, 17, 49):
        separate = resolve(
            rank(scores[user], gains[user]), "random", seed=7, user_keys=keys[user : user + 1]
        )
        np.testing.assert_array_equal(separate.start, together.start[together.user == user])


def test_random_places_depend_on_seed_and_key():
    ranks = rank([0] * 200, [1] * 5 + [NAN] * 195).users(np.zeros(2, int))
    start = resolve(ranks, "random", seed=1).start
    np.testing.assert_array_equal(start, resolve(ranks, "random", seed=1).start)
    assert (start != resolve(ranks, "random", seed=2).start).any()
    assert (start[:5] != start[5:]).any()
    same_keys = np.zeros(2, np.uint64)
    start = resolve(ranks, "random", seed=-1, user_keys=same_keys).start
    np.testing.assert_array_equal(start[:5], start[5:])


def splitmix64(value: int) -> int:
    """Compute the SplitMix64 hash of an integer with Python integers."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def test_random_places_follow_the_published_hash():
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # this value is published
    # The seed is 11, the user's key is 5, and one candidate is above the tie.
    key = splitmix64(splitmix64(splitmix64(11) ^ 5) ^ 1)
    user = np.array([5], np.uint64)

    few_judged = rank([9] + [0] * 1000, [NAN] + [1] * 4 + [NAN] * 996)
    few_judged = resolve(few_judged, "random", seed=11, user_keys=user)
    assert few_judged.start.tolist() == sorted(1 + splitmix64(key ^ i) % 1000 for i in range(4))

    most_judged = rank([9] + [0] * 6, [NAN] + [1] * 4 + [NAN] * 2)
    most_judged = resolve(most_judged, "random", seed=11, user_keys=user)
    hashes = [splitmix64(key ^ i) for i in range(6)]
    assert most_judged.start.tolist() == sorted(1 + sorted(hashes).index(h) for h in hashes[:4])
