"""Settings and fixtures shared by all tests."""

import gc
import os
import pathlib
import sys

import pytest
from frames import FRAMES
from hypothesis import Phase, settings

# By default, Hypothesis generates the same cases in every run, and tests never fail just because a
# machine is slow. The nightly run (`nox -s nightly`, or pytest --hypothesis-profile nightly)
# generates more cases, and different ones every time. Mutation testing also uses more cases, but
# does not shrink failures.
settings.register_profile("recometer", deadline=None, derandomize=True, max_examples=12)
settings.register_profile("nightly", deadline=None, max_examples=200, print_blob=True)
settings.register_profile(
    "mutant", settings.get_profile("recometer"), max_examples=25, phases=[Phase.generate]
)
settings.load_profile("recometer")

# Without cached bytecode, each process that a test starts would compile the whole package again,
# which takes longer than the test itself.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests already run in parallel, so BLAS threads would only compete for processors. NumPy reads this
# variable when it is imported, and no pytest plugin imports NumPy earlier.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


HERE = pathlib.Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Skip the live or rivals folder if the marker of the same name is deselected.

    Without this hook, pytest would import the modules of these folders and collect their tests,
    only to deselect them.
    """
    folder = collection_path.parent == HERE and collection_path.name in ("live", "rivals")
    left_out = f"not {collection_path.name}" in (config.option.markexpr or "")
    return True if folder and left_out else None


# Collecting tests creates hardly any garbage, since pytest keeps nearly all objects that it
# creates.
gc.disable()


def pytest_collection_finish():
    """Exclude the thousands of collected tests from later garbage collections."""
    gc.freeze()
    # Collect garbage rarely, since tests create few reference cycles and memory is plentiful.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(params=FRAMES)
def frame(request):
    """Return a function that turns a dict of columns into a data frame of one library."""
    return FRAMES[request.param]
