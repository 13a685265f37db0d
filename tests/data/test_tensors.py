"""Tests that tensors on the CPU are read in place, without importing torch.

These tests replace torch with a stand-in; tests/live uses torch itself.
"""

import sys
import types

import numpy as np
import pytest

import recometer as rm
from recometer.errors import DataWarning, InputTypeError


class Tensor:
    """The parts of a CPU tensor that recometer uses."""

    def __init__(self, array, dtype=None, steps=()):
        self.array = np.asarray(array)
        self.dtype = f"torch.{dtype or self.array.dtype}"
        self.device = types.SimpleNamespace(type="cpu")
        self.layout = "torch.strided"
        self.steps = steps

    def detach(self):
        return Tensor(self.array, self.dtype.removeprefix("torch."), (*self.steps, "detach"))

    def cpu(self):
        return Tensor(self.array, self.dtype.removeprefix("torch."), (*self.steps, "cpu"))

    def float(self):
        return Tensor(self.array.astype(np.float32), None, self.steps)

    def numpy(self):
        assert self.steps == ("detach", "cpu")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        if self.array.dtype == object:
            raise TypeError("can't convert Sparse layout tensor to numpy.")
        return self.array


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))


def test_factors_and_scores_are_not_copied():
    users, items = np.eye(3, dtype=np.float32), np.ones((4, 3), np.float32)
    source = rm.Factors(Tensor(users), Tensor(items), item_bias=Tensor(np.arange(4.0)))
    assert np.shares_memory(source.facts.arrays["users"], users)
    assert np.shares_memory(source.facts.arrays["items"], items)
    assert source.describe() == "Factors: 3 users x 4 items, 3 factors, float32"
    scores = np.arange(12.0).reshape(3, 4)
    assert np.shares_memory(rm.Scores(Tensor(scores)).facts.arrays["matrix"], scores)


def test_function_of_scores_may_return_tensors():
    scores = np.random.default_rng(0).random((20, 30))
    test = np.eye(20, 30)
    function = rm.Scores(lambda rows: Tensor(scores[rows]), n_users=20, n_items=30)
    np.testing.assert_array_equal(
        rm.evaluate(function, test, metrics="rr")["rr"],
        rm.evaluate(rm.Scores(scores), test, metrics="rr")["rr"],
    )


def test_bfloat16_is_converted_to_float32():
    with pytest.warns(DataWarning, match="users of Factors .* from bfloat16 to float32"):
        source = rm.Factors(Tensor(np.eye(2), "bfloat16"), np.eye(2, dtype=np.float32))
    assert source.describe().endswith("float32, users converted from bfloat16")


def test_error_about_a_sparse_tensor_suggests_to_dense():
    with pytest.raises(InputTypeError, match=r"cannot be read as an array: .*tensor.to_dense\(\)"):
        rm.Scores(Tensor(np.array([None])))
