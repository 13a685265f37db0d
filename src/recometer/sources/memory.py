"""Results of earlier calls, for a next call with the same arguments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recometer.arrays import Array
from recometer.data.interactions import Interactions

Found = TypeVar("Found")

MOST = 2  # results per kind: for a model in training, and for the one it is compared with


class _Entry(NamedTuple):
    """A result, and everything that it depends on."""

    key: Hashable
    same: tuple[object, ...]
    equal: tuple[Array | None, ...]
    found: Any

    def fits(self, key: Hashable, same: tuple[object, ...], equal: Sequence[Array | None]) -> bool:
        """Return whether the result was computed from these arguments."""
        if self.key != key or len(self.same) != len(same):
            return False
        for one, other in zip(self.same, same, strict=True):
            if one is not other:
                return False
        return all(map(_equal, self.equal, equal))


class Memory:
    """The last few results of each kind; several threads may use it at once.

    A copy, and the memory in another process, starts empty.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[_Entry, ...]] = {}

    def find(
        self,
        kind: str,
        key: Hashable,
        make: Callable[[], Found],
        *,
        same: Sequence[object] = (),
        equal: Sequence[Array | None] = (),
    ) -> Found:
        """Return the stored result for these arguments, or compute it with `make`.

        Parameters
        ----------
        kind
            The kind of result.
        key
            What the result depends on, together with the objects in `same` (`Interactions` are
            compared by their arrays) and the values of the arrays in `equal`, which may change in
            place.
        make
            Computes the result. Exceptions are not stored.
        """
        known = self._entries.get(kind, ())
        objects = tuple(itertools.chain.from_iterable(map(_parts, same)))
        for place, entry in enumerate(known):
            if entry.fits(key, objects, equal):
                if place:
                    self._entries[kind] = (entry, *(one for one in known if one is not entry))
                found: Found = entry.found
                return found
        found = make()
        kept = tuple(None if array is None else array.copy() for array in equal)
        # If two threads compute the same result, the second replaces the first, which is harmless.
        self._entries[kind] = (_Entry(key, objects, kept, found), *known)[:MOST]
        return found

    def held(self) -> list[object]:
        """Return all stored objects."""
        return [part for entries in self._entries.values() for one in entries for part in one[2:]]

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()


def _parts(one: object) -> tuple[object, ...]:
    """Return the objects to compare by identity: the arrays of interactions, else the object."""
    if isinstance(one, Interactions):
        return one.indptr, one.items, one.values, one.user_ids, one.item_ids
    return (one,)


def _equal(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other)
