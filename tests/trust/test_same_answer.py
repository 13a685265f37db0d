"""Values are the same to the last bit on every machine and for every form of the data."""

import functools

import pytest
from frames import FRAMES
from same_answer import MODELS, digest, evaluate
from scripts import run_script

from recometer import _kernel
from recometer.measuring import listed, ranked
from recometer.sources import factors, lists

TIES = ("expected", "random")
SETS = _kernel.instruction_sets()
# The constants that limit the number of users, items or places per block.
BLOCKS = (
    (factors, "USERS_PER_TASK"),
    (factors, "USERS_PER_BLOCK"),
    (factors, "PLACES_PER_TASK"),
    (lists, "USERS_PER_TASK"),
    (ranked, "BLOCK_USERS"),
    (ranked, "BLOCK_JUDGED"),
    (listed, "BLOCK_PLACES"),
)
FRAME_NAMES = ("polars", "pandas", "pandas categories", "pyarrow table")
# The tests vary the number of threads, the order of rows, and the data frame library.
CHANGES = [
    {"threads": threads, "order": threads // 2, "frame": FRAMES[FRAME_NAMES[threads % 4]]}
    for threads in (2, 3, 5, 8)
]


@functools.cache
def expected(model, ties):
    return digest(evaluate(model, ties=ties, seed=3, threads=1))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("ties", TIES)
def test_values_do_not_depend_on_threads_row_order_or_data_frame(model, ties):
    for changes in CHANGES:
        result = evaluate(model, ties=ties, seed=3, **changes)
        assert digest(result) == expected(model, ties), changes


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("instruction_set", SETS)
def test_values_do_not_depend_on_the_instruction_set(model, instruction_set, monkeypatch):
    digests = {ties: expected(model, ties) for ties in TIES}
    monkeypatch.setenv("RECOMETER_INSTRUCTION_SET", instruction_set)
    for ties in TIES:
        assert digest(evaluate(model, ties=ties, seed=3)) == digests[ties]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_values_do_not_depend_on_block_sizes(model, size, monkeypatch):
    expected_digest = expected(model, "random")
    for module, name in BLOCKS:
        assert getattr(module, name) > 64
        monkeypatch.setattr(module, name, size)
    result = evaluate(model, ties="random", seed=3, threads=3)
    assert digest(result) == expected_digest


def test_values_do_not_depend_on_process_or_hash_seed():
    expected_digests = {model: expected(model, "random") for model in MODELS}
    # The hash seed of the test process itself is random.
    printed = run_script("same_answer.py", PYTHONHASHSEED="12345")
    assert dict(line.split() for line in printed.splitlines()) == expected_digests


def test_values_depend_on_the_seed():
    """If values did not depend on the seed, the other tests would prove nothing about draws."""
    for model in ("factors", "scores", "lists"):
        other_seed = evaluate(model, ties="random", seed=4, threads=1)
        assert digest(other_seed) != expected(model, "random")
        assert len({expected(model, ties) for ties in TIES}) == len(TIES)
