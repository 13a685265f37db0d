"""If memory runs out, an error states the requested size, and repeated work releases its memory."""

import re
import sys

import pytest
from scripts import run_script

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's memory limits"),
]
ASKED_FOR = r"MemoryError: Unable to allocate [\d.]+ [KMGT]iB for an array with shape .* data type"
ALLOWED_GROWTH = 4 * 2**20  # in bytes; some growth is normal, since allocators retain memory


def output_of(case):
    """Run a case in a separate process; return its output."""
    return run_script("starved.py", case, timeout=300).splitlines()


@pytest.mark.parametrize("case", ["long_lists", "many_cutoffs", "many_users", "texts"])
def test_memory_error_states_the_requested_size(case):
    raised, after = output_of(case)
    assert re.match(ASKED_FOR, raised)
    assert after == "alive"


def test_repeated_evaluations_do_not_leak_memory():
    (grown,) = output_of("repeated")
    assert int(grown) < ALLOWED_GROWTH
