"""Load the libraries that the integrations need; if one is missing, its tests fail."""

import importlib
import os
import sys
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def load(name):
    """Import a library and ignore its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def mlflow():
    load("mlflow.models")
    registry = load("mlflow.models.evaluation.evaluator_registry")._model_evaluation_registry
    if not registry.is_registered("recometer"):  # recometer need not be installed
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        group = "mlflow.model_evaluator"
        entry = EntryPoint("recometer", project["entry-points"][group]["recometer"], group)
        registry.register("recometer", entry.load())
    return load("mlflow")


@pytest.fixture(scope="session")
def torch():
    return load("torch")


@pytest.fixture(scope="session")
def torchmetrics(torch):
    load("torchmetrics.retrieval")
    return load("torchmetrics")


@pytest.fixture(scope="session")
def lightning(torch):
    load("lightning.pytorch")
    return load("lightning")


@pytest.fixture(scope="session")
def keras():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    return load("keras")


@pytest.fixture(scope="session")
def sentence_transformers(torch):
    load("sentence_transformers.evaluation")
    load("sentence_transformers.models")
    return load("sentence_transformers")


@pytest.fixture(scope="session")
def geometric(torch):
    load("torch_geometric.nn")
    load("torch_geometric.metrics")
    return load("torch_geometric")


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    """Reset the wandb module after earlier tests, and let it write to this test's folder."""
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    library = load("wandb")
    library.teardown()
    yield library
    library.teardown()


@pytest.fixture(scope="session")
def lightgbm():
    return load("lightgbm")


@pytest.fixture(scope="session")
def xgboost():
    return load("xgboost")


@pytest.fixture(scope="session")
def optuna():
    return load("optuna")


@pytest.fixture(scope="session")
def sklearn():
    for part in ("compose", "linear_model", "metrics", "model_selection", "pipeline"):
        load(f"sklearn.{part}")
    return load("sklearn")
