"""Evaluations made by hand, for tests."""

from __future__ import annotations

import numpy as np

from recometer.metrics.names import parse
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation


def evaluation(values: dict[str, list[float]], **changes: object) -> Evaluation:
    """Return an evaluation with these values per user; NaN has a reason."""
    n_users = len(next(iter(values.values())))
    columns = {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    fields: dict[str, object] = {
        "values": columns,
        "reasons": {
            name: 2 * np.isnan(column).astype(np.uint8) for name, column in columns.items()
        },
        "user_ids": None,
        "n_relevant": np.arange(n_users),
        "n_candidates": np.full(n_users, 10),
        "depth": np.full(n_users, 10),
        "n_excluded": np.zeros(n_users, np.int64),
        "flags": np.ones(n_users, np.uint32),
        "metrics": tuple(parse(list(values))),
        "protocol": Protocol(),
        "seed": 0,
        "counts": {"users_unknown": 3},
        "definitions": {"ndcg": {"title": "NDCG", "formula": "Σ …", "source": "Järvelin"}},
        "timings": {"total": 0.1},
        "versions": {"recometer": "0.1.0"},
        "inputs": {"source": {"description": "a <'source'>", "fingerprints": {"users": "00ff"}}},
    }
    return Evaluation(**(fields | changes))  # type: ignore[arg-type]
