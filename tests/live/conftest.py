"""Load third-party libraries; if one is missing, its tests fail."""

import importlib
import os
import warnings

import pytest

from recometer.data import tensors

DEVICE = os.environ.get("RECOMETER_TORCH_DEVICE", "cpu")


def load(name):
    """Import a library and ignore its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def torch():
    return load("torch")


@pytest.fixture
def device(torch, monkeypatch):
    """Return a GPU, or else the CPU, whose tensors recometer then treats like those on a GPU."""
    if DEVICE == "cpu":
        monkeypatch.setattr(tensors, "CPU", "none")
    return torch.device(DEVICE)


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
