"""The statistics package exports its modules' functions, and loads a module on first use."""

import importlib
import inspect
import pkgutil

import pytest

from recometer import stats


def test_every_exported_name_has_a_module():
    assert list(stats.LAZY) == stats.__all__


@pytest.mark.parametrize("name", stats.__all__)
def test_exports_are_the_objects_of_their_modules(name):
    module = importlib.import_module(f"recometer.stats.{stats.LAZY[name]}")
    assert getattr(stats, name) is getattr(module, name)


DEFAULTS = {"confidence": 0.95, "alpha": 0.05, "wanted": 0.8, "unit": 0.0, "seed": 0, "threads": 1}


@pytest.mark.parametrize("name", [name for name in stats.__all__ if callable(getattr(stats, name))])
def test_parameters_have_the_same_default_in_all_functions(name):
    for parameter in inspect.signature(getattr(stats, name)).parameters.values():
        if parameter.name in DEFAULTS:
            expected = (inspect.Parameter.empty, None, DEFAULTS[parameter.name])
            assert parameter.default in expected, parameter.name


def test_no_module_hides_a_function():
    modules = {module.name for module in pkgutil.iter_modules(stats.__path__)}
    assert modules.isdisjoint(stats.__all__)


def test_unknown_names_raise_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'intervall'"):
        stats.intervall  # noqa: B018
