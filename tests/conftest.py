"""Settings and fixtures that all tests share."""

import gc
import os
import pathlib
import sys

import pytest
from frames import FRAMES
from hypothesis import Phase, settings

# Generated cases are the same in every run, and a busy machine makes no test fail. At night
# (`nox -s nightly`, or pytest --hypothesis-profile nightly) they are more, and others each time.
# A mutant meets more cases, too, and it is enough that one fails.
settings.register_profile("recometer", deadline=None, derandomize=True, max_examples=12)
settings.register_profile("nightly", deadline=None, max_examples=200, print_blob=True)
settings.register_profile(
    "mutant", settings.get_profile("recometer"), max_examples=25, phases=[Phase.generate]
)
settings.load_profile("recometer")

# Where Python may write no bytecode, each process that a test starts compiles the whole package
# once more, which takes longer than what is tested.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests run side by side, and threads that wait for more of a small product keep a processor busy.
# NumPy, which no plugin loads, reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


HERE = pathlib.Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Leave out folders that are named after a marker of all their tests, where it is not asked.

    Their modules would be imported, and their tests made, to be deselected one by one.
    """
    folder = collection_path.parent == HERE and collection_path.name in ("live", "rivals")
    left_out = f"not {collection_path.name}" in (config.option.markexpr or "")
    return True if folder and left_out else None


# Nearly all that is made while tests are collected stays: nothing is to be searched for garbage.
gc.disable()


def pytest_collection_finish():
    """Keep thousands of collected tests out of every garbage collection to come."""
    gc.freeze()
    # Few cycles are made and memory is plenty: the search for them is to be seldom, too.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(params=FRAMES)
def frame(request):
    """Return a function that makes a data frame of a dict of columns: of every library in turn."""
    return FRAMES[request.param]
