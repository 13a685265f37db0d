"""Evaluating on Spark gives what one machine gives: users' values to the last bit."""

import warnings

import numpy as np
import polars as pl
import pytest

import recometer as rm
import recometer.spark as rs
from recometer.errors import DataWarning

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

N_USERS, N_ITEMS = 60, 40
WHOLE = "ndcg@5,10 recall@5 precision@3 ap@10 rr hit@5 roc_auc pr_auc err@10"
CUT = "ndcg@5,10 recall@5 precision@3 ap@10 rr@10 hit@5"


def data(seed=0, ids=str):
    """Return the columns of test and train, and ids of users and items."""
    rng = np.random.default_rng(seed)
    users = [ids(f"u{n}" if ids is str else 1000 + 7 * n) for n in range(N_USERS)]
    items = [ids(f"i{n}" if ids is str else 500 - 3 * n) for n in range(N_ITEMS)]
    draw = rng.random((N_USERS, N_ITEMS))

    def columns(mask):
        user, item = np.nonzero(mask)
        return {
            "user": [users[n] for n in user],
            "item": [items[n] for n in item],
            "value": rng.integers(0, 5, len(user)).astype(float),
        }

    test, train = columns((draw < 0.1) & (np.arange(N_USERS) > 1)[:, None]), columns(draw > 0.93)
    return users, items, test, train, rng


def schema_of(ids):
    kind = "string" if ids is str else "bigint"
    return f"user {kind}, item {kind}, value double"


def assert_same(result, expected, *, mean=1e-12):
    """Check that users have the same values to the last bit, and means, counts and reasons."""
    found = result.collect()
    assert list(found.values) == list(expected.values)
    assert found.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(found.values[name], values, err_msg=name)
        np.testing.assert_array_equal(found.reasons[name], expected.reasons[name], err_msg=name)
    for name in ("n_relevant", "n_candidates", "n_excluded", "depth", "flags"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert {k: n for k, n in result.counts.items() if n} == {
        k: n for k, n in expected.counts.items() if n
    }
    for row, other in zip(result.summary(), expected.summary(), strict=True):
        assert row.metric == other.metric
        assert (row.counted, row.skipped, dict(row.reasons)) == (
            other.counted,
            other.skipped,
            dict(other.reasons),
        )
        assert row.mean == pytest.approx(other.mean, abs=mean, rel=mean, nan_ok=True)
        ends = [other.low, other.high, other.chance]
        assert [row.low, row.high, row.chance] == pytest.approx(ends, abs=1e-9, nan_ok=True)
        assert (row.method, row.note) == (other.method, other.note)


def factors(rng, dtype, users, items):
    """Return factors whose products are often equal."""
    shape = rng.integers(-2, 3, (len(users), 3)), rng.integers(-2, 3, (len(items), 3))
    return [array.astype(dtype) for array in shape]


@pytest.mark.parametrize(("ids", "dtype"), [(str, "float32"), (int, "float64")])
def test_factors_are_ranked_as_on_one_machine(table, ids, dtype):
    users, items, test, train, rng = data(ids=ids)
    of_users, of_items = factors(rng, dtype, users, items)
    known = len(users) - 4  # some users have no factors
    number = {"float32": "float", "float64": "double"}[dtype]
    kind = f"id {'string' if ids is str else 'bigint'}, features array<{number}>"
    source = rs.Factors(
        table({"id": users[:known], "features": of_users[:known]}, kind),
        table({"id": items, "features": of_items}, kind),
    )
    one = rm.Factors(of_users[:known], of_items, user_ids=users[:known], item_ids=items)
    schema = schema_of(ids)
    given = {"metrics": WHOLE, "exclude": items[:2], "chance": True}
    result = rs.evaluate(source, table(test, schema), train=table(train, schema), **given)
    expected = rm.evaluate(one, pl.DataFrame(test), train=pl.DataFrame(train), **given)
    assert_same(result, expected)


@pytest.mark.parametrize("ids", [str, int])
def test_lists_are_read_as_on_one_machine(table, ids):
    users, items, test, train, rng = data(ids=ids)
    lists = {user: rng.permutation(len(items))[:12] for user in users[3:]}
    rows = {
        "user": [user for user, places in lists.items() for _ in places],
        "item": [items[place] for places in lists.values() for place in places],
        "score": rng.integers(0, 6, 12 * len(lists)).astype(float),
    }
    schema = schema_of(ids)
    given = {"metrics": f"{CUT} novelty@5", "catalogue": items}
    tables = table(test, schema), table(train, schema)
    frame = table(rows, schema.replace("value", "score"))
    result = rs.evaluate(rs.Lists(frame), tables[0], train=tables[1], **given)
    expected = rm.evaluate(
        rm.Lists(pl.DataFrame(rows)), pl.DataFrame(test), train=pl.DataFrame(train), **given
    )
    assert_same(result, expected)


def test_arrays_of_structs_are_lists_as_recommend_for_all_users_gives(table):
    users, items, test, _, rng = data(ids=int)
    lists = [[items[n] for n in rng.permutation(len(items))[:8]] for _ in users]
    lists[5] = []
    scores = [
        sorted(rng.integers(0, 5, len(one)).astype(float).tolist(), reverse=True) for one in lists
    ]
    cells = [list(zip(*both, strict=True)) for both in zip(lists, scores, strict=True)]
    schema = "user bigint, recommendations array<struct<item: int, rating: float>>"
    frame = table({"user": users, "recommendations": cells}, schema)
    metrics = "ndcg@5 recall@5 rr@8"
    result = rs.evaluate(rs.Lists(frame), table(test, schema_of(int)), metrics=metrics)
    one = rm.Lists(pl.DataFrame({"user": users, "item": lists, "score": scores}))
    assert_same(result, rm.evaluate(one, pl.DataFrame(test), metrics=metrics))
    # The order alone, under a rule that reads it.
    plain = table({"user": users, "item": lists}, "user bigint, item array<bigint>")
    given = {"protocol": "pyspark", "metrics": "precisionAt@3 meanAveragePrecisionAt@5 ndcgAt@5"}
    result = rs.evaluate(rs.Lists(plain), table(test, schema_of(int)), **given)
    one = rm.Lists(pl.DataFrame({"user": users, "item": lists}))
    assert_same(result, rm.evaluate(one, pl.DataFrame(test), **given))


def test_pairs_are_ranked_as_on_one_machine(table):
    users, items, _, _, rng = data()
    draw = rng.random((len(users), len(items))) < 0.4
    user, item = np.nonzero(draw)
    rows = {
        "user": [users[n] for n in user],
        "item": [items[n] for n in item],
        "relevance": rng.integers(0, 2, len(user)).astype(float),
        "score": rng.integers(0, 7, len(user)).astype(float),
    }
    frame = table(rows, "user string, item string, relevance double, score double")
    metrics = "ndcg@5 ap roc_auc precision@3"
    result = rs.evaluate(rs.Pairs(frame), metrics=metrics)
    assert_same(result, rm.evaluate(rm.Pairs(pl.DataFrame(rows)), metrics=metrics))


RULES = [
    {"protocol": "trec_eval", "metrics": "ndcg_cut_5 map recip_rank"},
    {"protocol": "recbole", "metrics": "Recall@5 MRR@5 NDCG@5 Hit@5"},
    {"protocol": "implicit", "metrics": "ndcg@5 precision@5 map@5 auc@5"},
    {"metrics": CUT, "ties": "random", "seed": 3},
    {"metrics": CUT, "users": "listed", "no_relevant": 0.0},
]


@pytest.mark.parametrize(
    "given", RULES, ids=lambda given: given.get("protocol", given.get("ties", "listed"))
)
def test_conventions_and_rules_are_those_of_one_machine(table, given):
    users, items, test, train, rng = data(seed=1)
    listed = rng.permutation(len(users))[:40]
    rows = {"user": [], "item": [], "score": []}
    for number in listed:
        for place in rng.permutation(len(items))[: rng.integers(1, 15)]:
            rows["user"].append(users[number])
            rows["item"].append(items[place])
            rows["score"].append(float(rng.integers(0, 5)))
    schema = schema_of(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        source = rs.Lists(table(rows, schema.replace("value", "score")))
        tables = table(test, schema), table(train, schema)
        result = rs.evaluate(source, tables[0], train=tables[1], catalogue=items, **given)
        expected = rm.evaluate(
            rm.Lists(pl.DataFrame(rows)),
            pl.DataFrame(test),
            train=pl.DataFrame(train),
            catalogue=items,
            **given,
        )
    assert_same(result, expected)


@pytest.mark.parametrize("ids", [str, int])
def test_blocks_of_items_give_what_all_items_give(table, ids):
    users, items, test, train, rng = data(seed=2, ids=ids)
    of_users, of_items = factors(rng, "float32", users, items)
    of_items[7] = np.nan
    known = len(items) - 3  # some items have no factors
    kind = f"id {'string' if ids is str else 'bigint'}, features array<float>"
    source = rs.Factors(
        table({"id": users[4:], "features": of_users[4:]}, kind),
        table({"id": items[:known], "features": of_items[:known]}, kind),
    )
    one = rm.Factors(of_users[4:], of_items[:known], user_ids=users[4:], item_ids=items[:known])
    schema = schema_of(ids)
    given = {"metrics": WHOLE, "nan_scores": "last", "ties": "item"}
    tables = table(test, schema), table(train, schema)
    result = rs.evaluate(source, tables[0], train=tables[1], closure=120, partitions=3, **given)
    expected = rm.evaluate(one, pl.DataFrame(test), train=pl.DataFrame(train), **given)
    assert_same(result, expected)
