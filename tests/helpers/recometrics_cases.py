"""Random calls to recometrics, for tests of the functions that replace it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

TOP = ("precision", "trunc_precision", "recall", "average_precision", "trunc_average_precision")
METRICS = (*TOP, "ndcg", "hit", "rr", "roc_auc", "pr_auc")


def request_only(*names):
    """Return the arguments of calc_reco_metrics that request only these metrics."""
    return {name: name in names for name in METRICS}


def random_user(rng, kind, n_items, k):
    """Draw disjoint training and test items for a user of this kind, which must be one of KINDS."""
    items = rng.permutation(n_items)
    if kind == "nothing":
        return items[:0], items[:0]
    if kind == "no test":
        return items[: rng.integers(1, n_items)], items[:0]
    # Depending on the kind, about k items, all items or at least half of the items are candidates.
    around_k = int(np.clip(k + rng.integers(-1, 2), 1, n_items))
    n_candidates = {"tight": around_k, "tight full": around_k, "cold": n_items}.get(
        kind, int(rng.integers(max(1, n_items // 2), n_items + 1))
    )
    n_relevant = {
        "one": 1,
        "full": n_candidates,
        "tight full": n_candidates,
        "all but one": max(1, n_candidates - 1),
    }.get(kind, int(rng.integers(1, n_candidates + 1)))
    train, rest = items[: n_items - n_candidates], items[n_items - n_candidates :]
    return train, rest[:n_relevant]


KINDS = (
    "nothing",
    "no test",
    "one",
    "some",
    "some",
    "cold",
    "full",
    "tight",
    "tight",
    "tight full",
    "all but one",
)


def random_values(rng, kind, size):
    """Draw the values of test items, which determine their gains."""
    values = {
        "ones": np.ones(size),
        "graded": rng.integers(1, 6, size).astype(float),
        "stored zeros": rng.integers(0, 3, size).astype(float),
        "some negative": rng.choice([-1.0, 0.0, 1.0, 2.0, 5.0], size),
        "not positive": rng.choice([-2.0, 0.0], size),
        "real": rng.gamma(2.0, size=size),
    }
    return values[kind]


VALUES = ("ones", "graded", "stored zeros", "some negative", "not positive", "real")


def as_csr(rows, n_items, dtype=float):
    """Build a sparse array from an (items, values) pair for each row, and keep stored zeros."""
    indptr = np.cumsum([0] + [len(items) for items, _ in rows])
    order = [np.argsort(items) for items, _ in rows]
    items = np.concatenate([items[o] for (items, _), o in zip(rows, order, strict=True)])
    values = np.concatenate([v[o] for (_, v), o in zip(rows, order, strict=True)])
    return sp.csr_array(
        (values.astype(dtype), items.astype(np.int32), indptr.astype(np.int32)),
        shape=(len(rows), n_items),
    )


def random_factors(rng, n_users, n_items, scores, dtype):
    """Draw user factors, item factors and biases that cause no ties; any of the three may be None.

    With "exact" scores, every product and sum is exact in float32. With "real" scores, no two
    scores of a user are close enough for the order of additions to swap them.
    """
    n_factors = int(rng.integers(1, 7))
    if scores == "biases":
        return None, None, rng.permutation(n_items) / 64.0
    if scores == "exact":
        users = rng.integers(-4, 5, (n_users, n_factors)).astype(dtype)
        items = rng.integers(-4, 5, (n_items, n_factors)).astype(dtype)
        distinct = (rng.permutation(n_items) / 1024.0).astype(dtype)
        if rng.random() < 0.5:
            return users, items, distinct
        users = np.c_[users, np.ones(n_users, dtype)]
        return users, np.c_[items, distinct], None
    while True:
        users = rng.normal(size=(n_users, n_factors)).astype(dtype)
        items = rng.normal(size=(n_items, n_factors)).astype(dtype)
        biases = rng.normal(size=n_items).astype(dtype) if rng.random() < 0.5 else None
        exact = users.astype(float) @ items.T.astype(float) + (0.0 if biases is None else biases)
        if np.diff(np.sort(exact, axis=1), axis=1).min() > 2e-5:
            return users, items, biases


def random_metrics(rng):
    """Draw metrics to request; skip requests for which recometrics reads uninitialised memory."""
    if rng.random() < 0.3:
        return {"all_metrics": True}
    requested = {name: bool(rng.random() < 0.4) for name in METRICS}
    if not any(requested[name] for name in (*TOP, "ndcg")):
        requested[str(rng.choice(["precision", "average_precision", "ndcg"]))] = True
    # recometrics rejects a request as empty unless it contains at least one of these metrics.
    if not any(requested[name] for name in ("precision", "average_precision", "ndcg", "roc_auc")):
        requested["roc_auc"] = True
    requested["roc_auc"] |= requested["pr_auc"]
    return requested


def spoil_some_scores(rng, users, items, noise):
    """Make the scores of some users constant, NaN or infinite."""
    first, second, third = rng.choice(len(users), 3, replace=False)
    users[first] = 0
    users[second, 0] = np.nan
    if noise:  # without noise, recometrics checks only the best k scores
        users[third, 0] = np.inf
        if rng.random() < 0.3:
            items[rng.integers(len(items)), 0] = np.nan


def random_case(seed):
    """Draw positional and keyword arguments for calc_reco_metrics."""
    rng = np.random.default_rng(seed)
    scores = str(rng.choice(["exact", "exact", "real", "real", "biases"]))
    dtype = np.dtype(rng.choice(["float32", "float64"]))
    n_items = int(rng.choice([3, 5, 8, 13, 21, 34]))
    if scores == "exact" and seed % 12 == 0:
        n_items = 1000
    k = int(rng.integers(1, min(n_items, 12) + 1))
    kinds = [*KINDS, *rng.choice(KINDS, 3)]
    value_kinds = rng.choice(VALUES, len(kinds))
    pairs = [random_user(rng, kind, n_items, k) for kind in kinds]
    train = as_csr([(tr, np.ones(len(tr))) for tr, _ in pairs], n_items)
    test = as_csr(
        [
            (te, random_values(rng, kind, len(te)))
            for (_, te), kind in zip(pairs, value_kinds, strict=True)
        ],
        n_items,
        dtype,
    )
    users, items, biases = random_factors(rng, len(pairs), n_items, scores, dtype)
    options = random_metrics(rng) | {
        "k": k,
        "item_biases": biases,
        "as_df": False,
        "cumulative": bool(rng.random() < 0.5),
        "consider_cold_start": bool(rng.random() < 0.7),
        "min_items_pool": int(rng.choice([1, 2, 2, 5])),
        "break_ties_with_noise": bool(rng.random() < 0.6),
        "nthreads": 1,
        "seed": int(rng.integers(1, 100)),
    }
    # At k = 1, recometrics handles equal scores correctly only if it adds noise.
    options["break_ties_with_noise"] |= k == 1
    if users is not None and rng.random() < 0.3:
        spoil_some_scores(rng, users, items, noise=options["break_ties_with_noise"])
    if rng.random() < 0.15:
        train = None
    return (train, test, users, items), options


def six_items():
    """Return data for three users with five candidates each, and with 2, 1 and 3 test items."""
    test = sp.csr_array(
        np.array([[1, 0, 2, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 3, 0, 0, 1, 1]], dtype=float)
    )
    train = sp.csr_array(
        np.array([[0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=float)
    )
    users = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.125]])
    items = np.array([[5, 1], [4, 6], [3, 2], [2, 5], [1, 3], [0, 4]], dtype=float)
    return train, test, users, items


def many_users(seed=0, n_users=30, n_items=40):
    """Return random factors, and data for users with a few training and test items each."""
    rng = np.random.default_rng(seed)
    pairs = [random_user(rng, "some", n_items, 5) for _ in range(n_users)]
    return (
        as_csr([(tr, np.ones(len(tr))) for tr, _ in pairs], n_items),
        as_csr(
            [(te[:9], rng.integers(1, 6, len(te[:9])).astype(float)) for _, te in pairs], n_items
        ),
        rng.normal(size=(n_users, 4)),
        rng.normal(size=(n_items, 4)),
    )


def assert_equal(ours, theirs, dtype):
    """Assert that names, dtypes, shapes and NaN positions are equal, and values nearly equal."""
    assert list(ours) == list(theirs)
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    for label, expected in theirs.items():
        if label == "K":
            assert ours[label] == expected
            continue
        assert ours[label].dtype == dtype == expected.dtype
        assert ours[label].shape == expected.shape
        np.testing.assert_allclose(
            ours[label], expected, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=label
        )
