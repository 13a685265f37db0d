"""Build evaluations from values per user, and compare results."""

from __future__ import annotations

import dataclasses

import numpy as np

import recometer as rm
from recometer.metrics import parse


def evaluation(values: dict[str, list[float]], **changes: object) -> rm.Evaluation:
    """Return an evaluation with these values per user, in which every NaN value has a reason."""
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
        "protocol": rm.Protocol(),
        "seed": 0,
        "counts": {"users_unknown": 3},
        "definitions": {"ndcg": {"title": "NDCG", "formula": "Σ …", "source": "Järvelin"}},
        "timings": {"total": 0.1},
        "versions": {"recometer": "0.1.0"},
        "inputs": {"source": {"description": "a <'source'>", "fingerprints": {"users": "00ff"}}},
    }
    return rm.Evaluation(**(fields | changes))  # type: ignore[arg-type]


# These fields are caches, or depend on the elapsed time or on the form of the source and the
# inputs.
OF_THE_CALL = ("inputs", "inputs_kept", "timings", "_intervals")


def assert_same(left: object, right: object, where: str = "result") -> None:
    """Check that two results are equal to the last bit, except for the fields in `OF_THE_CALL`."""
    if dataclasses.is_dataclass(left):
        assert type(left) is type(right), where
        for field in dataclasses.fields(left):
            if field.name not in OF_THE_CALL:
                pair = getattr(left, field.name), getattr(right, field.name)
                assert_same(*pair, f"{where}.{field.name}")
    elif isinstance(left, dict):
        assert list(left) == list(right), f"{where}: {left} and {right}"  # type: ignore[call-overload]
        for key, value in left.items():
            assert_same(value, right[key], f"{where}[{key!r}]")  # type: ignore[index]
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), where  # type: ignore[arg-type]
        for number, value in enumerate(left):
            assert_same(value, right[number], f"{where}[{number}]")  # type: ignore[index]
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right, err_msg=where)
        assert left.dtype == right.dtype, where  # type: ignore[attr-defined]
    elif hasattr(left, "tocoo"):  # only sparse arrays have this method
        assert_same(left.toarray(), right.toarray(), where)  # type: ignore[attr-defined]
    else:
        assert left == right or (left != left and right != right), f"{where}: {left} and {right}"
