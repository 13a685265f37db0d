"""Interactions of some users after others, put together in the order of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int32, Int64
from recometer.data.ids import encode, match

if TYPE_CHECKING:
    from recometer.data.interactions import Interactions

PER_ROW = ("values", "times", "copies")


class Together:
    """Interactions whose users are those of parts, none of which is in two of them.

    Parameters
    ----------
    n_repeated
        How many repeated pairs are kept as examples.
    """

    def __init__(self, n_repeated: int) -> None:
        self._n_repeated = n_repeated
        self._parts: list[Interactions | None] = []
        self._codes: list[Int64] = []  # of the items of each part, in the order in which they came
        self._item_ids: Array | None = None
        self.n_rows = 0  # as they were read

    def add(self, part: Interactions) -> None:
        """Add a part whose users and items have ids."""
        assert part.item_ids is not None
        self.n_rows += len(part) + part.duplicates
        if self._item_ids is None:
            self._item_ids, codes = part.item_ids, np.arange(part.n_items)
        else:
            codes = match(part.item_ids, self._item_ids, "item ids")
            new = codes < 0
            codes[new] = len(self._item_ids) + np.arange(np.count_nonzero(new))
            self._item_ids = _joined([self._item_ids, part.item_ids[new]])
        self._codes.append(codes)
        self._parts.append(part)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the whole; the parts are released meanwhile."""
        assert self._item_ids is not None
        items_of, item_ids = encode(self._item_ids, "item ids")
        parts = [part for part in self._parts if part is not None]
        users = _joined([part.user_ids for part in parts])  # type: ignore[misc]
        places, user_ids = encode(users, "user ids")
        counts = np.zeros(len(user_ids), np.int64)
        ends = np.cumsum([part.n_users for part in parts])
        of_parts = np.split(places, ends[:-1])
        for one, mine in zip(parts, of_parts, strict=True):
            counts[mine] = np.diff(one.indptr)
        indptr = ragged.indptr_of(counts)
        found: dict[str, Any] = {
            "indptr": indptr,
            "items": np.empty(indptr[-1], np.int32),
            "n_items": len(item_ids),
            "user_ids": user_ids,
            "item_ids": item_ids,
            "duplicates": sum(part.duplicates for part in parts),
            "repeated": self._repeated(parts),
            **{name: _column(parts, name, int(indptr[-1])) for name in PER_ROW},
        }
        del parts
        for number, mine in enumerate(of_parts):
            part = self._parts[number]
            assert part is not None
            rows = np.repeat(indptr[mine] - part.indptr[:-1], np.diff(part.indptr))
            rows += np.arange(len(part))
            items: Int32 = items_of[self._codes[number]].astype(np.int32)[part.items]
            found["items"][rows] = items
            for name in PER_ROW:
                own = getattr(part, name)
                if found[name] is not None and own is not None:
                    found[name][rows] = own
            self._parts[number] = None  # its memory is for the next
        return found

    def _repeated(self, parts: list[Interactions]) -> tuple[tuple[Any, Any], ...]:
        """Return the first pairs in the order of the ids."""
        pairs = [pair for part in parts for pair in part.repeated]
        if not pairs:
            return ()
        users, items = (encode([pair[side] for pair in pairs], "ids")[0] for side in (0, 1))
        order = np.lexsort((items, users))[: self._n_repeated]
        return tuple(pairs[place] for place in order.tolist())


def _column(parts: list[Interactions], name: str, n: int) -> Array | None:
    """Return an array of ones for a column; None if no part has this column."""
    known = [getattr(part, name) for part in parts if getattr(part, name) is not None]
    if not known:
        return None
    return np.ones(n, np.result_type(*known))


def _joined(ids: list[Array]) -> Array:
    """Join ids; of integers, those beyond int64 decide for all."""
    kinds = {part.dtype for part in ids}
    if len(kinds) > 1 and np.dtype(object) not in kinds:
        ids = [part.astype(np.uint64) for part in ids]
    return np.concatenate(ids)
