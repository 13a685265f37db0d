"""Tests that a source's cache reuses a result only if the inputs are equal."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable

import numpy as np

import recometer as rm
from recometer.sources.base import Memory


def numbered() -> tuple[list[int], Callable[[], int]]:
    """Return a list of numbers, and a function that appends the next number and returns it."""
    numbers: list[int] = []

    def make() -> int:
        numbers.append(len(numbers))
        return numbers[-1]

    return numbers, make


def test_equal_inputs_are_computed_once() -> None:
    memory, (numbers, make) = Memory(), numbered()
    identity, array = object(), np.arange(3)
    for _ in range(3):
        assert memory.find("kind", 1, make, same=[identity], equal=[array.copy(), None]) == 0
    assert numbers == [0]


def test_two_most_recently_used_results_are_kept() -> None:
    memory, (_, make) = Memory(), numbered()
    numbers = [memory.find("kind", key, make) for key in "abaabbcb"]
    assert numbers == [0, 1, 0, 0, 1, 1, 2, 1]
    assert memory.find("kind", "a", make) == 3


def test_different_inputs_cause_a_new_computation() -> None:
    identity, array = object(), np.arange(3)
    for kind, key, identical, equal in (
        ("other", 1, [identity], [array, None]),
        ("kind", 2, [identity], [array, None]),
        ("kind", 1, [object()], [array, None]),
        ("kind", 1, [], [array, None]),
        ("kind", 1, [identity, identity], [array, None]),
        ("kind", 1, [identity], [array + 1, None]),
        ("kind", 1, [identity], [array.astype(float), None]),
        ("kind", 1, [identity], [array, array]),
        ("kind", 1, [identity], [None, None]),
    ):
        memory, (_, make) = Memory(), numbered()
        memory.find("kind", 1, make, same=[identity], equal=[array, None])
        assert memory.find(kind, key, make, same=identical, equal=equal) == 1


def test_change_of_an_array_in_place_causes_a_new_computation() -> None:
    memory, (_, make) = Memory(), numbered()
    array = np.arange(3)
    memory.find("kind", 1, make, equal=[array])
    array[0] = 5
    assert memory.find("kind", 1, make, equal=[array]) == 1


def test_equal_interactions_share_a_cache_entry() -> None:
    memory, (_, make) = Memory(), numbered()
    test = rm.Interactions.of({0: [1]})
    copy = dataclasses.replace(test)
    assert memory.find("kind", 1, make, same=[test]) == 0
    assert memory.find("kind", 1, make, same=[copy]) == 0
    assert memory.find("kind", 1, make, same=[rm.Interactions.of({0: [1]})]) == 1


def test_each_kind_keeps_its_two_most_recent_results() -> None:
    memory, (_, make) = Memory(), numbered()
    numbers = [memory.find("kind", key, make) for key in ("a", "b", "a", "c", "a", "b")]
    assert numbers == [0, 1, 0, 2, 0, 3]
    assert memory.find("other", "d", make) == 4


def test_pickled_copy_of_the_cache_is_empty() -> None:
    memory, (_, make) = Memory(), numbered()
    memory.find("kind", 1, make)
    assert pickle.loads(pickle.dumps(memory)).find("kind", 1, make) == 1
