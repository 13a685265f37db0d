"""Settings and fixtures that all tests share."""

import pytest
from frames import FRAMES
from hypothesis import settings

# Generated cases are the same in every run, and a busy machine makes no test fail.
settings.register_profile("recometer", deadline=None, derandomize=True)
settings.load_profile("recometer")


@pytest.fixture(params=FRAMES)
def frame(request):
    """Return a function that makes a data frame of a dict of columns: of every library in turn."""
    return FRAMES[request.param]
