"""A limit of memory is an error that says how much was asked for; memory is given back."""

import re
import sys

import pytest
from scripts import run_script

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits are Linux's"),
]
ASKED_FOR = r"MemoryError: Unable to allocate [\d.]+ [KMGT]iB for an array with shape .* data type"
LEAST = 4 * 2**20  # bytes by which a process may grow: what allocators keep


def said(case):
    """Run a case in a process of its own."""
    return run_script("starved.py", case, timeout=300).splitlines()


@pytest.mark.parametrize("case", ["long_lists", "many_cutoffs", "many_users", "texts"])
def test_too_little_memory_is_an_error_that_says_how_much(case):
    raised, after = said(case)
    assert re.match(ASKED_FOR, raised)
    assert after == "alive"


def test_a_thousand_evaluations_take_no_more_memory_than_some():
    (grown,) = said("repeated")
    assert int(grown) < LEAST
