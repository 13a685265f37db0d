"""What the package of statistics exports, module by module, when it is first used."""

import importlib
import pkgutil

import pytest

from recometer import stats


def test_every_name_has_its_module():
    assert list(stats.LAZY) == stats.__all__


@pytest.mark.parametrize("name", stats.__all__)
def test_a_name_is_what_its_module_has(name):
    module = importlib.import_module(f"recometer.stats.{stats.LAZY[name]}")
    assert getattr(stats, name) is getattr(module, name)


def test_no_module_hides_a_function():
    modules = {module.name for module in pkgutil.iter_modules(stats.__path__)}
    assert modules.isdisjoint(stats.__all__)


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="no attribute 'intervall'"):
        stats.intervall  # noqa: B018
