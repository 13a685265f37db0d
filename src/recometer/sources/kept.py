"""What is kept of batches: records of users, in as little memory as their numbers take."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.data.ids import as_ids, encode, match
from recometer.data.ids import kind as kind_of
from recometer.errors import InputTypeError
from recometer.ragged import Record
from recometer.ranks import Ranks

AnyRecord = TypeVar("AnyRecord", bound=Record)

# What is kept as it came before it is packed: of many small batches, together.
USERS_AT_ONCE = 2**12
RECORDS_AT_ONCE = 64
NO_BATCH = "are in no batch of the stream"  # what is said of users of test who did not come


class Packed(NamedTuple):
    """An array in as little memory as its numbers take."""

    numbers: Array  # the numbers; the only one where all are the same
    shape: tuple[int, ...]
    dtype: str  # of the array

    @classmethod
    def of(cls, array: Array) -> Packed:
        """Pack an array; one of objects stays as it is."""
        dtype = array.dtype.str
        if array.dtype == object or not array.size:
            return cls(array, array.shape, dtype)
        # As bits, so that NaN is the same as NaN.
        bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        if (bits == bits.flat[0]).all():
            return cls(array.ravel()[:1].copy(), array.shape, dtype)
        return cls(_narrow(array), array.shape, dtype)

    def unpacked(self) -> Array:
        """Return the array."""
        numbers = self.numbers
        if numbers.size != math.prod(self.shape):
            return np.full(self.shape, numbers[0], self.dtype)
        return numbers.astype(self.dtype, copy=False)

    @property
    def nbytes(self) -> int:
        """The memory of the numbers."""
        return self.numbers.nbytes


def _narrow(array: Array) -> Array:
    """Return the same numbers in a narrow type that holds all of them, as a copy."""
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


def pack(record: Record) -> dict[str, Any]:
    """Return the fields of a record, arrays and records in it packed."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if not field.init or field.metadata.get("per") == "nothing":
            continue
        if isinstance(value, Record):
            value = pack(value)
        elif isinstance(value, np.ndarray):
            value = Packed.of(value)
        found[field.name] = value
    return found


def unpack(cls: type[AnyRecord], packed: Mapping[str, Any], of: Mapping[str, type[Record]]) -> Any:
    """Return the record again; `of` are the classes of the records in it, by field."""
    found = {}
    for name, value in packed.items():
        if isinstance(value, Packed):
            value = value.unpacked()
        elif name in of:
            value = unpack(of[name], value, {})
        found[name] = value
    return cls(**found)


def _plain(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Return packed arrays as tuples."""
    return {
        name: tuple(value)
        if isinstance(value, Packed)
        else _plain(value)
        if isinstance(value, dict)
        else value
        for name, value in packed.items()
    }


def _as_packed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return tuples as packed arrays."""
    return {
        name: Packed(*value)
        if isinstance(value, tuple)
        else _as_packed(value)
        if isinstance(value, dict)
        else value
        for name, value in plain.items()
    }


def _arrays(packed: Mapping[str, Any]) -> Iterator[Packed]:
    for value in packed.values():
        if isinstance(value, Packed):
            yield value
        elif isinstance(value, dict):
            yield from _arrays(value)


class Kept(Generic[AnyRecord]):
    """Records of users that came one after the other, each packed.

    Records are put together as they come, those of similar sizes, so that many small batches take
    no more memory than few large ones, and the time for it grows little faster than their number.

    Parameters
    ----------
    cls
        The class of the records.
    of
        The classes of records in them, by field.
    alike
        Gives several records the same optional columns, before they are put together.
    """

    def __init__(
        self,
        cls: type[AnyRecord],
        of: Mapping[str, type[Record]] | None = None,
        alike: Callable[[list[AnyRecord]], list[AnyRecord]] = list,
    ) -> None:
        self._class, self._of, self._alike = cls, of or {}, alike
        self._parts: list[tuple[int, dict[str, Any]]] = []  # numbers of users, and what is packed
        self._latest: list[AnyRecord] = []  # not packed yet
        self._n_latest = 0

    def add(self, record: AnyRecord) -> None:
        """Add a record after the earlier ones."""
        # Not the last one, which may be asked for next.
        if self._n_latest >= USERS_AT_ONCE or len(self._latest) >= RECORDS_AT_ONCE:
            self._pack()
        self._latest.append(record)
        self._n_latest += record.n_users

    def _pack(self) -> None:
        """Pack the latest records, and put parts of similar sizes together."""
        if not self._latest:
            return
        self._parts.append(self._packed(self._latest))
        self._latest, self._n_latest = [], 0
        while len(self._parts) > 1 and 2 * self._parts[-1][0] >= self._parts[-2][0]:
            later, earlier = self._parts.pop(), self._parts.pop()
            self._parts.append(self._packed([self._unpacked(earlier), self._unpacked(later)]))

    def _packed(self, records: list[AnyRecord]) -> tuple[int, dict[str, Any]]:
        one = self._class.concat(self._alike(records))
        return one.n_users, pack(one)

    def _unpacked(self, part: tuple[int, dict[str, Any]]) -> AnyRecord:
        found: AnyRecord = unpack(self._class, part[1], self._of)
        return found

    def together(self, *more: AnyRecord) -> AnyRecord:
        """Return all records, and some more, as one."""
        records = [*map(self._unpacked, self._parts), *self._latest, *more]
        return self._class.concat(self._alike(records))

    def __bool__(self) -> bool:
        return bool(self._latest or self._parts)

    @property
    def nbytes(self) -> int:
        """The memory of the numbers that are kept."""
        self._pack()
        return sum(array.nbytes for _, part in self._parts for array in _arrays(part))

    def state(self) -> list[tuple[int, dict[str, Any]]]:
        """Return what is kept, as numbers, tuples and arrays, and no classes of ours."""
        self._pack()
        return [(n_users, _plain(part)) for n_users, part in self._parts]

    def take(self, state: list[tuple[int, dict[str, Any]]]) -> None:
        """Add what `state` of another object returned."""
        for n_users, part in state:
            self.add(self._unpacked((n_users, _as_packed(part))))


class ItemCodes:
    """Numbers of items, in the order in which their ids first came."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def add(self, item_ids: object) -> Int64:
        """Return the code of each id, a new one where it was not known."""
        values = as_ids(item_ids, "item ids").tolist()
        codes = self._codes
        return np.fromiter((codes.setdefault(v, len(codes)) for v in values), np.int64, len(values))

    @property
    def ids(self) -> list[Any]:
        """The id of each code."""
        return list(self._codes)

    def among(self, item_ids: Array) -> tuple[Int64, Array]:
        """Return the place of each code among the sorted ids, these and others; and all ids."""
        own = self.ids
        every = encode([*own, *item_ids.tolist()], "item ids")[1]
        return match(own, every, "item ids"), every


class Strangers:
    """The ids of users who came and are not in test, each once."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def add(self, user_ids: Array) -> None:
        """Add ids, as `ids.as_ids` returns them."""
        if len(user_ids):
            self._parts.append(user_ids)
            if len(self._parts) > RECORDS_AT_ONCE:
                self._parts = [self.beside(user_ids[:0])]

    def beside(self, user_ids: Array) -> Array:
        """Return all of these ids, sorted, and others."""
        every = [part for part in (user_ids, *self._parts) if len(part)]
        if len({part.dtype for part in every}) > 1:  # what int64 does not hold
            return encode([one for part in every for one in part.tolist()], "user ids")[1]
        return encode(np.concatenate(every), "user ids")[1] if every else user_ids

    def state(self) -> list[Array]:
        """Return them in parts, each of which `add` takes."""
        return self._parts


class Came:
    """The ids of users who came, with quick lookup."""

    def __init__(self) -> None:
        self._parts: list[Array] = []  # as they came
        self._sorted: list[Array] = []

    def add(self, user_ids: Array) -> None:
        """Add ids, as `ids.as_ids` returns them, none of which is here."""
        self._parts.append(user_ids)
        self._sorted.append(np.sort(user_ids))
        while len(self._sorted) > 1 and 2 * len(self._sorted[-1]) >= len(self._sorted[-2]):
            together = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            self._sorted.append(np.sort(together, kind="stable"))
        if len(self._parts) > 2 * len(self._sorted) + 64:
            self._parts = [self.ids]

    def among(self, user_ids: Array) -> Bool:
        """Return which of some ids are here: bool [n]."""
        found = np.zeros(len(user_ids), bool)
        for part in self._sorted:
            if len(user_ids) and kind_of(part) != kind_of(user_ids):
                raise InputTypeError(
                    f"The users of this batch are of type {kind_of(user_ids)}, but those of "
                    f"batches before are of type {kind_of(part)}. Hint: convert one of them."
                )
            places = np.minimum(np.searchsorted(part, user_ids), len(part) - 1)
            found |= part[places] == user_ids
        return found

    @property
    def ids(self) -> Array:
        """All ids, as they came; there is one."""
        return np.concatenate(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        """The memory of the ids."""
        return sum(part.nbytes for part in (*self._parts, *self._sorted))


def alike(parts: list[Ranks]) -> list[Ranks]:
    """Give all parts the facts that one of them has."""
    by_rank = any(part.by_rank for part in parts)
    parts = [dataclasses.replace(part, by_rank=by_rank) for part in parts]
    for name, nothing in (("repeated", False), ("score", np.nan)):
        if any(getattr(part, name) is not None for part in parts):
            parts = [
                part
                if getattr(part, name) is not None
                else dataclasses.replace(part, **{name: np.full(len(part.item), nothing)})  # type: ignore[arg-type]
                for part in parts
            ]
    return parts
