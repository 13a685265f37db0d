"""Items in the order of a file: their places, of which a part is read at once."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Int32, Int64
from recometer.sources._align_result import Aligned
from recometer.sources._factor_order import LongestFirst


class FilePlaces:
    """Where the items of `Aligned`, numbered by their ids, stand in the order of their rows.

    Attributes
    ----------
    by_place : int32 [n_items] or None
        The item at each place; None where items are in the order of their rows.
    bytes_per_item
        The memory that the tables of all items take, an item.
    """

    def __init__(self, aligned: Aligned) -> None:
        self._item_rows, self._n = aligned.item_rows, aligned.n_items
        self.by_place: Int32 | None = None
        self._place: Int32 | None = None
        rows = aligned.item_rows
        if rows is not None and not (np.diff(rows) > 0).all():
            self.by_place = np.argsort(rows).astype(np.int32)
            self._place = np.empty(self._n, np.int32)
            self._place[self.by_place] = np.arange(self._n, dtype=np.int32)
        self.bytes_per_item = 8 if self.by_place is None else 24

    @property
    def all_in_order(self) -> bool:
        """Whether each item is in the row of its number."""
        return self._item_rows is None

    def rows(self, part: int) -> Int64:
        """Return the row of each item in its part of `part` items."""
        place = np.arange(self._n) if self._place is None else self._place.astype(np.int64)
        place %= part
        return place

    def places(self, items: Int32) -> Int32:
        """Return the places of some items."""
        return items if self._place is None else self._place[items]

    def rows_of_items(self, items: Int32) -> Int64:
        """Return the rows of some items."""
        return items.astype(np.int64) if self._item_rows is None else self._item_rows[items]

    def rows_at(self, part: slice) -> slice | Int64:
        """Return the rows at some places: ascending, and a slice where they lie together."""
        if self._item_rows is None:
            return part
        items = part if self.by_place is None else self.by_place[part]
        rows = self._item_rows[items]
        if rows[-1] - rows[0] == len(rows) - 1:
            return slice(int(rows[0]), int(rows[-1]) + 1)
        return rows

    def order(self) -> LongestFirst | None:
        """Return the order as that in which items are scored, without bounds of their scores."""
        if self.by_place is None or self._place is None:
            return None
        return LongestFirst(self.by_place, self._place, np.full(self._n, np.inf), 0.0)
