"""Kernel functions return correct results on background threads."""

import itertools
import os
import pathlib
import threading

import kernel_twin
import numpy as np
import pytest
from rows_to_count import counting

from recometer import _kernel

PIECE, SOON = 8, 60.0  # the size of a piece in bytes, and a time-out in seconds
BYTES = np.zeros(9, np.uint8)


def hashing_arrays(rng, n_arrays=20):
    """Return random arrays, output arrays for their hashes, and the expected hashes."""
    arrays = [rng.integers(0, 256, n, dtype=np.uint8) for n in rng.integers(0, 100, n_arrays)]
    rooms = [np.zeros(-(-len(array) // PIECE), np.uint64) for array in arrays]
    expected = [np.zeros_like(output) for output in rooms]
    for array, output in zip(arrays, expected, strict=True):
        kernel_twin.hash_pieces(array, PIECE, output)
    return arrays, rooms, expected


def counting_arrays():
    """Return arguments for `count_items`: a random table and output arrays."""
    rng = np.random.default_rng(0)
    return counting(rng, rng.integers(0, 5, 30).tolist())


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_background_runs_all_steps(threads):
    rng = np.random.default_rng(threads)
    arrays, rooms, expected = hashing_arrays(rng)
    table, background = counting_arrays(), _kernel.Background()
    background.count_items(**table)
    for array, output in zip(arrays, rooms, strict=True):
        background.hash_pieces(array, PIECE, output)
    background.start(threads)
    assert background.wait(SOON)
    for output, expected_hashes in zip(rooms, expected, strict=True):
        np.testing.assert_array_equal(output, expected_hashes)
    items, users = table["items"], table["users"]
    np.testing.assert_array_equal(table["counts"], np.bincount(items, minlength=9))
    rows = [items[begin:end] for begin, end in itertools.pairwise(table["indptr"])]
    sums = [0 if user < 0 else table["counts"][rows[user]].sum() for user in users]
    np.testing.assert_array_equal(table["sums"], sums)


def test_background_without_steps_has_ended():
    background = _kernel.Background()
    assert background.wait(0)
    background.start(2)
    assert background.wait(0)
    background.stop()


def test_wait_raises_the_error_of_a_step():
    table, background = counting_arrays(), _kernel.Background()
    background.count_items(**table | {"counts": np.zeros(3, np.int64)})
    background.start(1)
    with pytest.raises(ValueError, match="no such item"):
        background.wait(SOON)
    background.stop()


def test_background_can_be_stopped_or_deleted_while_it_runs():
    data, hashes = np.zeros(2**26, np.uint8), np.zeros((20, 2**6), np.uint64)
    for stopped in (True, False):
        background = _kernel.Background()
        for of_step in hashes:
            background.hash_pieces(data, 2**20, of_step)
        background.start(2)
        assert not background.wait(0)
        if stopped:
            background.stop()
            assert background.wait(0)
    del background, data, hashes, of_step  # background threads may still be using these arrays


def processors_of_threads():
    """Return the `Cpus_allowed` line of each thread of this process, by thread id."""
    processors = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            lines = (task / "status").read_text().splitlines()
        except OSError:  # the thread has ended
            continue
        processors[task.name] = next(line for line in lines if line.startswith("Cpus_allowed:"))
    return processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs /proc of Linux")
@pytest.mark.parametrize("few_processors", [False, True], ids=["all processors", "one processor"])
def test_threads_inherit_the_processor_affinity(few_processors):
    before = os.sched_getaffinity(0)
    try:
        if few_processors:
            os.sched_setaffinity(0, {min(before)})
        all_threads, of_process = processors_of_threads(), os.sched_getaffinity(0)
        of_thread = all_threads[str(threading.get_native_id())]
        data, of_background_threads = np.zeros(2**24, np.uint8), []
        for _ in range(20):  # retry, because a new thread may briefly run on fewer processors
            background = _kernel.Background()
            for of_step in np.zeros((10, 2**4), np.uint64):
                background.hash_pieces(data, 2**20, of_step)
            background.start(2)
            while not background.wait(0):
                of_background_threads += [
                    processors
                    for name, processors in processors_of_threads().items()
                    if name not in all_threads
                ]
            if of_thread in of_background_threads:
                break
        assert of_thread in of_background_threads
        assert os.sched_getaffinity(0) == of_process
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda background: background.hash_pieces(BYTES, 0, np.zeros(2, np.uint64)), "empty"),
        (lambda background: background.hash_pieces(BYTES, 8, np.zeros(1, np.uint64)), "per piece"),
        (lambda background: background.start(0), "n_threads must be at least 1"),
        (lambda background: (background.start(1), background.start(1)), "already been started"),
        (
            lambda background: (background.start(1), background.count_items(**counting_with())),
            "already been started",
        ),
        (
            lambda background: background.count_items(**counting_with(users=np.array([99] * 12))),
            "no such users",
        ),
        (
            lambda background: background.count_items(**counting_with(indptr=np.zeros(0, int))),
            "not be empty",
        ),
    ],
)
def test_invalid_calls_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call(_kernel.Background())


def counting_with(**changes):
    return counting_arrays() | changes
