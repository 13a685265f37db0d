"""Spark draws the same candidates as a single machine, for every source."""

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS, assert_same, data, factors, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError

pytestmark = MARKS

FEW = "ndcg@5 precision@3 rr@4"


def columns_of_lists(users, items, rng, n=12):
    """Draw lists with many equal scores, and return them as columns."""
    places = [rng.permutation(len(items))[:n] for _ in users]
    return {
        "user": [user for user in users for _ in range(n)],
        "item": [items[place] for places_of_user in places for place in places_of_user],
        "score": rng.integers(0, 6, n * len(users)).astype(float),
    }


def scored(users, items, rng):
    """Draw pairs with true ratings, a few of them missing, and return them as columns."""
    user, item = np.nonzero(rng.random((len(users), len(items))) < 0.5)
    rating = rng.integers(0, 6, len(user)).astype(float)
    rating[rng.random(len(user)) < 0.1] = np.nan
    return {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "rating": rating,
        "score": rng.integers(0, 9, len(user)).astype(float),
    }


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_sampled_candidates_of_factors_match_those_on_one_machine(table):
    users, items, test, train, rng = data(ids=int, seed=7)
    of_users, of_items = factors(rng, "float32", users, items)
    kind = "id bigint, features array<float>"
    source = rs.Factors(
        table({"id": users, "features": of_users}, kind),
        # The source does not know the first three items, which may be training items.
        table({"id": items[3:], "features": of_items[3:]}, kind),
    )
    local = rm.Factors(of_users, of_items[3:], user_ids=users, item_ids=items[3:])
    options = {"metrics": "ndcg@5 roc_auc", "candidates": rm.SampledCandidates(6, seed=4)}
    tables = [table(columns, schema_of(int)) for columns in (test, train)]
    result = rs.evaluate(source, tables[0], train=tables[1], **options)
    expected = rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
    assert_same(result, expected)


@pytest.mark.parametrize(("spark", "ids"), [("classic", int), ("connect", str)], indirect=["spark"])
def test_candidates_of_lists_are_drawn_from_the_catalogue(table, ids):
    users, items, test, train, rng = data(ids=ids, seed=8)
    rows = columns_of_lists(users[4:], items, rng)
    schema = schema_of(ids)
    source = rs.Lists(table(rows, schema.replace("value", "score")))
    options = {"metrics": f"{FEW} novelty@3", "candidates": rm.SampledCandidates(9, seed=2)}
    tables = table(test, schema), table(train, schema)
    result = rs.evaluate(source, tables[0], train=tables[1], catalogue=items, **options)
    expected = rm.evaluate(
        rm.Lists(pl.DataFrame(rows)),
        pl.DataFrame(test),
        train=pl.DataFrame(train),
        catalogue=items,
        **options,
    )
    assert expected.counts["list_not_candidates"]
    assert_same(result, expected)


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("catalogue", [None, 40])
def test_lists_without_the_items_to_draw_from_are_refused_as_on_one_machine(table, catalogue):
    users, items, test, _, rng = data(ids=int)
    rows = columns_of_lists(users, items, rng)
    schema = schema_of(int)
    options = {"metrics": FEW, "candidates": rm.SampledCandidates(9), "catalogue": catalogue}
    with pytest.raises(InputError, match="needs to know the items to draw from") as local_error:
        rm.evaluate(rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), **options)
    source = rs.Lists(table(rows, schema.replace("value", "score")))
    with pytest.raises(InputError) as refused:
        rs.evaluate(source, table(test, schema), **options)
    assert str(refused.value) == str(local_error.value)


PAIRS = {
    "uniform": {"candidates": rm.SampledCandidates(7, seed=5), "metrics": f"{FEW} roc_auc"},
    "random ties": {
        "candidates": rm.SampledCandidates(7),
        "metrics": f"{FEW} novelty@3",
        "ties": "random",
    },
}


@pytest.mark.parametrize(
    ("spark", "case"),
    [("classic", "random ties"), ("connect", "uniform")],
    indirect=["spark"],
)
def test_candidates_of_pairs_are_drawn_from_the_items_of_all_pairs(table, case):
    users, items, _, train, rng = data(seed=9)
    rows, options = scored(users, items, rng), PAIRS[case]
    frame = table(rows, "user string, item string, rating double, score double")
    trained = table(train, schema_of(str))
    result = rs.evaluate(rs.Pairs(frame, threshold=3), train=trained, **options)
    pairs = rm.Pairs(pl.DataFrame(rows), threshold=3)
    assert_same(result, rm.evaluate(pairs, train=pl.DataFrame(train), **options))


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_candidates_of_pairs_may_have_a_separate_test(table):
    users, items, test, _, rng = data(ids=int, seed=10)
    rows = scored(users, items, rng)
    frame = table(rows, "user bigint, item bigint, rating double, score double")
    source = rs.Pairs(frame, relevance=False, rating=False)
    options = {"metrics": FEW, "candidates": rm.SampledCandidates(8, seed=1)}
    held_out = table(test, schema_of(int))
    result = rs.evaluate(source, held_out, **options)
    pairs = rm.Pairs(pl.DataFrame(rows), relevance=False, rating=False)
    assert_same(result, rm.evaluate(pairs, pl.DataFrame(test), **options))


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("kind", ["lists", "pairs"])
def test_draws_of_tied_items_do_not_depend_on_partitions(table, kind):
    users, items, test, train, rng = data(seed=16)
    rows = columns_of_lists(users, items, rng, n=4)
    rows["score"] = np.minimum(rows["score"], 1)
    frame = table(rows, "user string, item string, score double")
    options = {"metrics": "popularity@2", "ties": "random"}
    here, test_frame = pl.DataFrame(rows), table(test, schema_of(str))
    sources = {
        "lists": (rs.Lists(frame), rm.Lists(here)),
        "pairs": (rs.Pairs(frame), rm.Pairs(here)),
    }
    source, local = sources[kind]
    trained = table(train, schema_of(str))
    result = rs.evaluate(source, test_frame, train=trained, partitions=8, **options)
    assert_same(
        result, rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
    )
