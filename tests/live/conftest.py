"""Libraries beside recometer. A missing one is an error here, never a skip."""

import importlib
import os
import warnings

import numpy as np
import pytest

from recometer.data import tensors
from recometer.sources import _factor_device

DEVICE = os.environ.get("RECOMETER_TORCH_DEVICE", "cpu")
if DEVICE == "cpu":
    # Read when Triton is imported, whoever imports it first: kernels are interpreted.
    os.environ["TRITON_INTERPRET"] = "1"


def load(name):
    """Import a library, whose own warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def torch():
    return load("torch")


@pytest.fixture(scope="session")
def triton(torch):
    found = load("triton")
    if DEVICE == "cpu":
        multiply_as_a_device(load("triton.runtime.interpreter"))
    return found


def multiply_as_a_device(interpreter):
    """Let the interpreter's products of tiles round alike wherever a row and a column meet.

    It takes NumPy's, whose rounding may depend on the place in the tile, as with OpenBLAS' kernel
    for Haswell.
    """

    def dot(_builder, left, right, added, *_precision):
        scores = added.data.copy()
        with np.errstate(invalid="ignore", over="ignore"):
            for factor in range(left.data.shape[1]):
                scores += left.data[:, factor, None] * right.data[None, factor]
        return interpreter.TensorHandle(scores, added.dtype.scalar)

    interpreter.InterpreterBuilder.create_dot = dot


@pytest.fixture
def there(torch, monkeypatch):
    """Return a device whose tensors take the road of a device."""
    if DEVICE == "cpu":
        monkeypatch.setattr(tensors, "CPU", "none")
    return torch.device(DEVICE)


@pytest.fixture(params=["torch alone", "triton"])
def device(there, request, monkeypatch):
    """Return the device, once without Triton and once with it."""
    if request.param == "triton":
        request.getfixturevalue("triton")
    else:
        monkeypatch.setattr(_factor_device, "tiles_of", lambda *_, **__: None)
    return there


@pytest.fixture(scope="session")
def geometric(torch):
    load("torch_geometric.nn")
    return load("torch_geometric")


@pytest.fixture(scope="session")
def implicit():
    for part in ("als", "bpr", "lmf", "nearest_neighbours"):
        load(f"implicit.{part}")
    return load("implicit")


@pytest.fixture(scope="session")
def surprise():
    return load("surprise")


@pytest.fixture(scope="session")
def lenskit():
    for part in ("data", "splitting"):
        load(f"lenskit.{part}")
    return load("lenskit")


@pytest.fixture(scope="session")
def rectools():
    for part in ("dataset", "model_selection"):
        load(f"rectools.{part}")
    return load("rectools")


@pytest.fixture(scope="session")
def lightfm():
    return load("lightfm")


@pytest.fixture(scope="session")
def torchmetrics(torch):
    return load("torchmetrics.functional.retrieval")


@pytest.fixture(scope="session")
def link_prediction(geometric):
    return load("torch_geometric.metrics")


@pytest.fixture(scope="session")
def ranx():
    return load("ranx")


@pytest.fixture(scope="session")
def pytrec_eval():
    return load("pytrec_eval")
