"""Item tables for tests of the kernel's popularity counts."""

import numpy as np


def indptr_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def counting(rng, lengths, n_items=9, *, same_users=False):
    """Return a table of items, some of which are popular, and output arrays for the counts."""
    chance = rng.dirichlet(np.full(n_items, 0.3))
    n_users = len(lengths) if same_users else (12 if lengths else 0)
    return {
        "indptr": indptr_of(lengths),
        "items": rng.choice(n_items, sum(lengths), p=chance).astype(np.int32),
        "users": None if same_users else rng.integers(-1, len(lengths), n_users),
        "counts": np.full(n_items, -9),
        "sums": np.full(n_users, -9),
    }
