"""Trackers, training loops and searches themselves. A missing one is an error, never a skip."""

import importlib
import warnings

import pytest


def load(name):
    """Import a library, whose own warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def mlflow():
    load("mlflow.models")
    return load("mlflow")
