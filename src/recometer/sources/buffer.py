"""Records of users from many batches, stored as compactly as their numbers allow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.data import ids
from recometer.errors import InputTypeError
from recometer.ragged import Record
from recometer.ranks import Ranks

AnyRecord = TypeVar("AnyRecord", bound=Record)
# The numbers of an array (a single one if all are equal), its shape and its dtype. Plain types, so
# that a pickled state refers to no class of recometer.
Packed = tuple[Array, tuple[int, ...], str]
NESTED = {"ranks": Ranks}  # the records in other records, by the name of their field
# Records are packed once they hold this many users, or once there are this many records.
USERS_AT_ONCE = 2**12
RECORDS_AT_ONCE = 64


def pack(array: Array) -> Packed:
    """Pack an array without loss; an array of objects stays as it is."""
    if array.dtype == object or not array.size:
        return array, array.shape, array.dtype.str
    # Bits are compared, so that NaN equals NaN, and 0.0 differs from -0.0.
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    constant = bool((bits == bits.flat[0]).all())
    return array.ravel()[:1].copy() if constant else _narrow(array), array.shape, array.dtype.str


def unpack(packed: Packed) -> Array:
    """Return the array that was packed."""
    numbers, shape, dtype = packed
    if numbers.size != math.prod(shape):
        return np.full(shape, numbers[0], dtype)
    return numbers.astype(dtype, copy=False)


def _narrow(array: Array) -> Array:
    """Return a copy in the narrowest type that holds all numbers exactly."""
    if array.dtype.kind in "iu":
        least, most = np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max()))
        return array.astype(np.promote_types(least, most))
    if array.dtype == np.float64:
        if (np.abs(array) < 2**15).all() and (array == np.rint(array)).all():
            whole = array.astype(np.int16)
            if not (np.signbit(array) & (array == 0)).any():
                return _narrow(whole)
        single = array.astype(np.float32)
        if np.array_equal(single, array):
            return single
    return array.copy()


def _pack_fields(record: Record) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if not field.init or field.metadata.get("per") == "nothing":
            continue
        if isinstance(value, Record):
            value = _pack_fields(value)
        packed[field.name] = pack(value) if isinstance(value, np.ndarray) else value
    return packed


def _unpack_fields(cls: type[AnyRecord], packed: Mapping[str, Any]) -> AnyRecord:
    values = {}
    for name, value in packed.items():
        if isinstance(value, tuple):
            value = unpack(value)
        values[name] = _unpack_fields(NESTED[name], value) if name in NESTED else value
    return cls(**values)


def _packed_arrays(packed: Mapping[str, Any]) -> Iterator[Array]:
    for value in packed.values():
        if isinstance(value, tuple):
            yield value[0]
        elif isinstance(value, dict):
            yield from _packed_arrays(value)


class Buffer(Generic[AnyRecord]):
    """Packed records of a class, in the order in which their users came.

    Parts of similar sizes are merged as they come, so that many small batches take no more memory
    than a few large ones, and the time for it grows little faster than their number.
    """

    def __init__(self, cls: type[AnyRecord]) -> None:
        self._class = cls
        self._parts: list[tuple[int, dict[str, Any]]] = []  # numbers of users, packed fields
        self._latest: list[AnyRecord] = []  # not packed yet
        self._n_latest = 0

    def add(self, record: AnyRecord) -> None:
        """Add a record after the earlier ones."""
        # The new record stays unpacked: it may be read next.
        if self._n_latest >= USERS_AT_ONCE or len(self._latest) >= RECORDS_AT_ONCE:
            self._pack_latest()
        self._latest.append(record)
        self._n_latest += record.n_users

    def _pack_latest(self) -> None:
        if not self._latest:
            return
        self._parts.append(self._pack(self._latest))
        self._latest, self._n_latest = [], 0
        while len(self._parts) > 1 and 2 * self._parts[-1][0] >= self._parts[-2][0]:
            pair = [_unpack_fields(self._class, fields) for _, fields in self._parts[-2:]]
            self._parts[-2:] = [self._pack(pair)]

    def _pack(self, records: list[AnyRecord]) -> tuple[int, dict[str, Any]]:
        merged = self._merge(records)
        return merged.n_users, _pack_fields(merged)

    def _merge(self, records: list[AnyRecord]) -> AnyRecord:
        if self._class is Ranks:
            records = with_equal_columns(records)  # type: ignore[arg-type, assignment]
        return self._class.concat(records)

    def merged(self, *more: AnyRecord) -> AnyRecord:
        """Return all records, followed by `more`, as one record."""
        parts = [_unpack_fields(self._class, fields) for _, fields in self._parts]
        return self._merge([*parts, *self._latest, *more])

    def __bool__(self) -> bool:
        return bool(self._latest or self._parts)

    @property
    def nbytes(self) -> int:
        """The memory of the packed arrays, in bytes."""
        self._pack_latest()
        return sum(array.nbytes for _, part in self._parts for array in _packed_arrays(part))

    def state(self) -> list[tuple[int, dict[str, Any]]]:
        """Return all records in plain types, for `of_state`."""
        self._pack_latest()
        return list(self._parts)

    def of_state(self, state: list[tuple[int, dict[str, Any]]]) -> AnyRecord | None:
        """Return the records of another buffer from its state; None if there are none."""
        return (
            self._merge([_unpack_fields(self._class, part) for _, part in state]) if state else None
        )


def with_equal_columns(parts: list[Ranks]) -> list[Ranks]:
    """Give all parts the optional columns that one of them has."""
    by_rank = any(part.by_rank for part in parts)
    defaults = {"repeated": False, "score": np.nan}
    wanted = [name for name in defaults if any(getattr(part, name) is not None for part in parts)]

    def completed(part: Ranks) -> Ranks:
        changes: dict[str, Any] = {
            name: np.full(len(part.item), defaults[name])
            for name in wanted
            if getattr(part, name) is None
        }
        same = not changes and part.by_rank == by_rank
        return part if same else dataclasses.replace(part, by_rank=by_rank, **changes)

    return [completed(part) for part in parts]


class ItemCodes:
    """Codes of item ids, numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def add(self, item_ids: object) -> Int64:
        """Return the code of each id; a new id gets the next one."""
        values = ids.as_ids(item_ids, "item ids").tolist()
        codes = self._codes
        return np.fromiter((codes.setdefault(v, len(codes)) for v in values), np.int64, len(values))

    @property
    def ids(self) -> list[Any]:
        """The id of each code."""
        return list(self._codes)

    def sorted_with(self, item_ids: list[Any]) -> tuple[Int64, Array]:
        """Return the place of each code among the sorted ids, `item_ids` included; and all ids."""
        sorted_ids = ids.encode([*self.ids, *item_ids], "item ids")[1]
        return ids.match(self.ids, sorted_ids, "item ids"), sorted_ids


class UserIds:
    """Distinct ids of users in the order of arrival, with fast lookup."""

    def __init__(self) -> None:
        self._parts: list[Array] = []  # in the order of arrival
        self._sorted: list[Array] = []

    def add(self, user_ids: Array) -> None:
        """Add ids as `ids.as_ids` returns them; none of them may have been added before."""
        self._parts.append(user_ids)
        self._sorted.append(np.sort(user_ids))
        while len(self._sorted) > 1 and 2 * len(self._sorted[-1]) >= len(self._sorted[-2]):
            merged = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            self._sorted.append(np.sort(merged, kind="stable"))
        if len(self._parts) > 2 * len(self._sorted) + 64:
            self._parts = [self.ids]

    def contain(self, user_ids: Array) -> Bool:
        """Return which ids were added: bool [n]."""
        is_here = np.zeros(len(user_ids), bool)
        for part in self._sorted:
            if len(user_ids) and ids.kind(part) != ids.kind(user_ids):
                raise InputTypeError(
                    f"The users of this batch are of type {ids.kind(user_ids)}, but those of "
                    f"batches before are of type {ids.kind(part)}. Hint: convert one of them."
                )
            places = np.minimum(np.searchsorted(part, user_ids), len(part) - 1)
            is_here |= part[places] == user_ids
        return is_here

    @property
    def ids(self) -> Array:
        """All ids in the order of arrival; there must be one."""
        return np.concatenate(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        """The memory of the ids, in bytes."""
        return sum(part.nbytes for part in (*self._parts, *self._sorted))
