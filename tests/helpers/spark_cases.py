"""Data for Spark tests, and functions that compare results with those from a single machine."""

import numpy as np
import pytest

import recometer as rm
import recometer.spark as rs

MARKS = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:.*training values are 0"),  # `data` draws some zeros
]

N_USERS, N_ITEMS = 60, 40
WHOLE = "ndcg@5,10 recall@5 precision@3 ap@10 rr hit@5 roc_auc pr_auc err@10"
CUT = "ndcg@5,10 recall@5 precision@3 ap@10 rr@10 hit@5"


def data(seed=0, ids=str):
    """Return user ids, item ids, columns of test and training data, and the random generator."""
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
    """Assert that values, counts and reasons are equal, and means equal up to rounding."""
    local = result.collect()
    assert list(local.values) == list(expected.values)
    assert local.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(local.values[name], values, err_msg=name)
        np.testing.assert_array_equal(local.reasons[name], expected.reasons[name], err_msg=name)
    for name in ("n_relevant", "n_candidates", "n_excluded", "depth", "flags"):
        np.testing.assert_array_equal(getattr(local, name), getattr(expected, name), err_msg=name)
    assert {k: n for k, n in result.counts.items() if n} == {
        k: n for k, n in expected.counts.items() if n
    }
    for row, expected_row in zip(result.summary(), expected.summary(), strict=True):
        assert row.metric == expected_row.metric
        assert (row.counted, row.skipped, dict(row.reasons)) == (
            expected_row.counted,
            expected_row.skipped,
            dict(expected_row.reasons),
        )
        assert row.mean == pytest.approx(expected_row.mean, abs=mean, rel=mean, nan_ok=True)
        ends = [expected_row.low, expected_row.high, expected_row.chance]
        assert [row.low, row.high, row.chance] == pytest.approx(ends, abs=1e-9, nan_ok=True)
        assert (row.method, row.note) == (expected_row.method, expected_row.note)


def assert_same_interval(actual, expected):
    """Assert that the interval from Spark agrees with the interval from a single machine."""
    ends = pytest.approx([expected.low, expected.high], rel=1e-9, abs=1e-12, nan_ok=True)
    assert [actual.low, actual.high] == ends
    assert (actual.method, actual.n, actual.note) == (expected.method, expected.n, expected.note)


def factors(rng, dtype, users, items):
    """Draw user factors and item factors, many of whose products are equal."""
    shape = rng.integers(-2, 3, (len(users), 3)), rng.integers(-2, 3, (len(items), 3))
    return [array.astype(dtype) for array in shape]


def both_factors(table, rng, dtype, users, items, known_users=slice(None)):
    """Draw factors; return them as a source on Spark and as a local source.

    Both sources know only the `known_users`.
    """
    of_users, of_items = factors(rng, dtype, users, items)
    number = {"float32": "float", "float64": "double"}[dtype]
    kind = f"id {'string' if isinstance(users[0], str) else 'bigint'}, features array<{number}>"
    source = rs.Factors(
        table({"id": users[known_users], "features": of_users[known_users]}, kind),
        table({"id": items, "features": of_items}, kind),
    )
    return source, rm.Factors(
        of_users[known_users], of_items, user_ids=users[known_users], item_ids=items
    )
