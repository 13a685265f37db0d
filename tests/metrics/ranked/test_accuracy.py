"""Expected values for large groups of tied items agree with exact or compensated sums."""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math

import numpy as np
import pytest

import recometer as rm
from recometer.metrics import METRICS, parse
from recometer.testing import rank
from recometer.ties import WHOLE, resolve

# Some of these groups end just before or just after the last place in the metrics' tables, which
# have 4,096 and 65,536 places. Together, the groups cover every code path of the expected
# reciprocal rank.
STARTS = (0, 1, 7, 1_000, 4_090, 65_530, 200_000)
SIZES = (2, 3, 10, 50, 200, 2_000)


def one_group(start: int, size: int, relevant: int) -> rm.Ranks:
    """Return the ranks of a user whose relevant items are all in one tie group."""
    n_candidates = np.array([start + size + 1])
    return dataclasses.replace(
        rank([1, 0], [1, math.nan]),
        indptr=np.array([0, relevant]),
        item=np.arange(relevant),
        above=np.full(relevant, start),
        tied=np.full(relevant, size - 1),
        before=np.arange(relevant),
        gain=np.ones(relevant),
        relevant=np.ones(relevant, bool),
        n_relevant=np.array([relevant]),
        n_candidates=n_candidates,
        depth=n_candidates,
    )


def all_of(users: list[rm.Ranks]) -> rm.Ranks:
    columns = ["item", "above", "tied", "before", "gain", "relevant", "n_relevant", "n_candidates"]
    columns += ["n_excluded", "depth", "flags"]
    joined_columns = {
        name: np.concatenate([getattr(user, name) for user in users]) for name in columns
    }
    return rm.Ranks(
        indptr=np.append(0, np.cumsum([len(user.item) for user in users])), **joined_columns
    )


def numbers_of_relevant(size: int) -> list[int]:
    return [n for n in sorted({1, 2, 5, size // 3, size - 1, size}) if 1 <= n <= min(size, 500)]


def cutoffs_of(start: int, size: int) -> list[int]:
    return sorted({start + 1, start + size // 2 + 1, start + size - 1, start + size, WHOLE})


def computed(name: str, start: int, size: int, relevant: int, cutoffs: list[int]):
    definition = METRICS[name]
    groups = resolve(one_group(start, size, relevant), by=definition.reads)
    return definition.function(groups, np.array(cutoffs))[0].tolist()


def chances(size: int, relevant: int):
    """Yield each place, and 2**300 times the probability that the first hit is there."""
    n_choices = math.comb(size - 1, relevant - 1)
    for i in range(1, size - relevant + 2):
        yield i, (n_choices << 300) // math.comb(size, relevant)
        n_choices = n_choices * (size - i - relevant + 1) // (size - i) if i < size else 0


def test_values_of_tie_groups_do_not_depend_on_other_users():
    kinds = [(0, 1, 1), (3, 6, 6), (7, 3, 1), (0, 10, 5), (0, 80, 2), (50, 80, 1), (2, 9, 8)]
    kinds += [(1_000, 200, 66), (1_000, 300, 180), (7, 200, 5), (0, 200, 66), (90, 100, 20)]
    kinds += [(65_540 + place, 1, 1) for place in range(1, 9)]  # these users have no ties
    users = [one_group(*kind) for kind in kinds]
    deep = [one_group(place, 1, 1) for place in (2, 4, 9, 20)]
    users += [dataclasses.replace(user, gain=np.array([3.0])) for user in deep]
    names = "rr rr(all) hit ap ap(denominator=hits) ndcg err(max_gain=3) err(max_gain=1)"
    names += " roc_auc(domain=list) partial_auc@9(denominator=min) mean_precision@9(stop=last)"
    names += " mean_recall@9(over=relevant) f@9(empty=undefined)"
    for metric in parse(names):
        cutoffs = np.array([2, 9, 50, 1_060, 70_000])
        together = metric.definition.function(
            resolve(all_of(users), by=metric.definition.reads), cutoffs, **dict(metric.parameters)
        )
        for number, user in enumerate(users):
            separate = metric.definition.function(
                resolve(user, by=metric.definition.reads), cutoffs, **dict(metric.parameters)
            )
            assert together[number].tobytes() == separate[0].tobytes(), str(metric)


@pytest.mark.parametrize("size", SIZES)
def test_reciprocal_rank_and_hit_match_exact_sums(size):
    for relevant in numbers_of_relevant(size):
        of_places = list(chances(size, relevant))
        for start in STARTS:
            cutoffs = cutoffs_of(start, size)
            rr, hit = dict.fromkeys(cutoffs, 0), dict.fromkeys(cutoffs, 0)
            for i, chance in of_places:
                share = chance // (start + i)
                for cutoff in cutoffs:
                    if start + i <= cutoff:
                        rr[cutoff] += share
                        hit[cutoff] += chance
            description = f"{relevant} relevant items from place {start} on"
            assert computed("rr", start, size, relevant, cutoffs) == pytest.approx(
                [value / 2**300 for value in rr.values()], rel=2e-14
            ), description
            assert computed("hit", start, size, relevant, cutoffs) == pytest.approx(
                [value / 2**300 for value in hit.values()], rel=1e-14
            ), description


@pytest.mark.parametrize(
    ("start", "size", "relevant"),
    [
        (0, 50_000, 20_000),
        (0, 1_000_000, 100_000),
        (5, 300_000, 30_000),
        (1_000, 1_000_000, 3_000),
        (1_000, 1_000_000, 10_000),
    ],
)
def test_reciprocal_rank_of_many_tied_items_matches_a_decimal_sum(start, size, relevant):
    """The test sums the expected value's terms to 40 digits, and leaves out negligible ones."""
    with decimal.localcontext() as context:
        context.prec = 40
        chance, expected = decimal.Decimal(relevant) / size, decimal.Decimal(0)
        for i in itertools.count(1):
            expected += chance / (start + i)
            chance *= decimal.Decimal(size - i - relevant + 1) / (size - i)
            if chance < 1e-30:
                break
    values = computed("rr", start, size, relevant, [start + size // 3, WHOLE])
    assert values == pytest.approx([float(expected)] * 2, rel=3e-14)
    (hit,) = computed("hit", start, size, relevant, [start + size // 3])
    assert hit == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("start", STARTS)
def test_average_precision_and_ndcg_match_compensated_sums(start, size):
    cutoffs = cutoffs_of(start, size)
    places = range(start + 1, start + size + 1)
    discounts = [1 / math.log2(j + 1) for j in places]
    best = [1 / math.log2(j + 1) for j in range(1, min(size, 500) + 1)]
    for relevant in numbers_of_relevant(size):
        hit_rate_of_others = (relevant - 1) / (size - 1)
        precisions = [(1 + (j - start - 1) * hit_rate_of_others) / j / size for j in places]
        ap, ndcg = [], []
        for cutoff in cutoffs:
            within = max(cutoff - start, 0)
            ap.append(math.fsum(precisions[:within]))
            expected_dcg = relevant * math.fsum(discounts[:within]) / size
            ndcg.append(expected_dcg / math.fsum(best[: min(relevant, cutoff)]))
        # Far down the ranking, large terms of the closed form cancel, so allow an absolute error.
        assert computed("ap", start, size, relevant, cutoffs) == pytest.approx(
            ap, rel=1e-14, abs=1e-15
        ), f"{relevant} relevant items"
        assert computed("ndcg", start, size, relevant, cutoffs) == pytest.approx(ndcg, rel=1e-14), (
            f"{relevant} relevant items"
        )


@pytest.mark.parametrize("start", [0, 9, 65_500, 65_535, 65_536, 10**6, 10**9, 10**15])
@pytest.mark.parametrize("size", [2, 3, 50, 100_000])
def test_rr_and_ap_of_one_tied_relevant_item_are_the_mean_reciprocal_rank(start, size):
    expected = math.fsum(1 / j for j in range(start + 1, start + size + 1)) / size
    assert computed("rr", start, size, 1, [WHOLE]) == pytest.approx([expected], rel=1e-14)
    assert computed("ap", start, size, 1, [WHOLE]) == pytest.approx([expected], rel=1e-14)
