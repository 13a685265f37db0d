"""Evaluations that tests build from given values."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.evaluation import Evaluation
from recometer.metrics.names import parse
from recometer.protocol import Protocol


def evaluation(values: dict[str, list[float]], **changes: object) -> Evaluation:
    """Return an evaluation with the given values per user, and a reason for NaN values."""
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


# Fields that depend on the form of the source, the elapsed time or the kept inputs, and caches.
OF_THE_CALL = ("inputs", "inputs_kept", "timings", "_intervals")


def assert_same(one: object, other: object, where: str = "result") -> None:
    """Check that two results are equal to the last bit, except for what depends on the call."""
    if dataclasses.is_dataclass(one):
        assert type(one) is type(other), where
        for field in dataclasses.fields(one):
            if field.name not in OF_THE_CALL:
                pair = getattr(one, field.name), getattr(other, field.name)
                assert_same(*pair, f"{where}.{field.name}")
    elif isinstance(one, dict):
        assert list(one) == list(other), f"{where}: {one} and {other}"  # type: ignore[call-overload]
        for key, value in one.items():
            assert_same(value, other[key], f"{where}[{key!r}]")  # type: ignore[index]
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where  # type: ignore[arg-type]
        for number, value in enumerate(one):
            assert_same(value, other[number], f"{where}[{number}]")  # type: ignore[index]
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
        assert one.dtype == other.dtype, where  # type: ignore[attr-defined]
    elif hasattr(one, "tocoo"):  # a sparse array
        assert_same(one.toarray(), other.toarray(), where)  # type: ignore[attr-defined]
    else:
        assert one == other or (one != one and other != other), f"{where}: {one} and {other}"
