"""Settings and fixtures shared by all tests."""

import gc
import os
import pathlib
import sys

import pytest
from frames import FRAMES
from hypothesis import Phase, settings

# Generated cases are the same in every run, and no test fails because a machine is slow. The
# nightly run (`nox -s nightly`, or pytest --hypothesis-profile nightly) has more cases, which
# differ every time. Mutants get more cases too, and a single failure is enough.
settings.register_profile("recometer", deadline=None, derandomize=True, max_examples=12)
settings.register_profile("nightly", deadline=None, max_examples=200, print_blob=True)
settings.register_profile(
    "mutant", settings.get_profile("recometer"), max_examples=25, phases=[Phase.generate]
)
settings.load_profile("recometer")

# If Python may not write bytecode, each process started by a test compiles the whole package again,
# which takes longer than the test itself.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests run in parallel, and threads that wait for parts of a small product keep processors busy.
# NumPy reads this when it is imported, and no plugin imports it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


HERE = pathlib.Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Skip folders named after a marker of all their tests, unless the marker is requested.

    Otherwise their modules would be imported and their tests collected, only to be deselected.
    """
    folder = collection_path.parent == HERE and collection_path.name in ("live", "rivals")
    left_out = f"not {collection_path.name}" in (config.option.markexpr or "")
    return True if folder and left_out else None


# Nearly all objects created during collection are kept, so there is no garbage to look for.
gc.disable()


def pytest_collection_finish():
    """Keep thousands of collected tests out of every later garbage collection."""
    gc.freeze()
    # There are few cycles and plenty of memory, so collect rarely.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(params=FRAMES)
def frame(request):
    """Return a function that makes a data frame from a dict of columns, for every library."""
    return FRAMES[request.param]
