"""Pickled states of training processes contain numbers, strings, arrays and ids, but no code."""

import datetime
import decimal
import pathlib
import pickle
import uuid

import numpy as np
import pytest

import recometer as rm
from recometer.integrations import _plain

IDS = [3, "ann", b"x", datetime.date(2024, 5, 31), datetime.datetime(2024, 5, 31, 7, 8)]
IDS += [decimal.Decimal("1.5"), uuid.UUID(int=7), None, True, 2.5, ("ann", 3)]


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_ids_survive_pickling(protocol):
    ids = np.empty(len(IDS), object)
    ids[:] = IDS
    state = {"n": 2, "arrays": [np.eye(2, dtype=np.float32), np.array(["a", "bc"]), ids]}
    state["number"] = np.float64(0.1)
    restored = _plain.loads(pickle.dumps(state, protocol=protocol))
    assert restored["n"] == 2
    assert restored["number"] == 0.1
    for array, original in zip(restored["arrays"], state["arrays"], strict=True):
        assert array.dtype == original.dtype
        assert array.tolist() == original.tolist()


class Planted:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self):
        return pathlib.Path.write_text, (pathlib.Path("planted"), "")


class Evaluated:
    """An object that evaluates an expression when it is unpickled."""

    def __reduce__(self):
        return eval, ("1 + 1",)


@pytest.mark.parametrize("planted", [Planted(), Evaluated(), np.array([Planted()], object)])
def test_pickles_with_code_are_rejected(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rm.errors.InputError, match=r"could run as code.*Hint"):
        _plain.loads(pickle.dumps({"state": planted}))
    assert list(tmp_path.iterdir()) == []
