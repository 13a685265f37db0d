"""Tests that replay all inputs that fuzzing has kept; see `fuzz.py`."""

from pathlib import Path

import pytest
from fuzz import TARGETS, run

CORPUS = Path(__file__).with_name("corpus")
KEPT = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))


def test_every_target_has_a_corpus():
    assert {path.split("/")[0] for path in KEPT} == TARGETS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", KEPT)
def test_every_corpus_input_leads_to_a_result_or_an_error(path):
    run(TARGETS[path.split("/")[0]], (CORPUS / path).read_bytes())
