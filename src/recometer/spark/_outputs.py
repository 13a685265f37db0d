"""The output of a model where the users are: a source of one machine, made of some users' rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.errors import InputError
from recometer.sources.base import Source
from recometer.sources.factors import Factors
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs
from recometer.spark._columns import ids, numbers, vectors


@dataclasses.dataclass(frozen=True, eq=False)
class ItemFactors:
    """The factors of all items, where they travel with the job."""

    ids: Array
    factors: Array
    bias: Array | None


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """What a model gave out.

    Attributes
    ----------
    kind
        ``"factors"``, ``"lists"``, ``"arrays"`` or ``"pairs"``.
    options
        The arguments that the class of the source takes beside the data. ``every_item`` are the
        ids of the items of all users, where something is drawn that depends on them.
    items
        The item factors, for factors only.
    """

    kind: str
    options: Mapping[str, Any]
    items: ItemFactors | None

    @property
    def names_items(self) -> bool:
        """Whether each row has an item."""
        return self.kind in ("lists", "pairs")

    def source(self, table: Any, user: Sequence[str]) -> Source:
        """Return the source of some users.

        Parameters
        ----------
        table
            Their rows.
        user
            The columns that name a user.
        """
        named: dict[str, Any] = {"user": [*user] if len(user) > 1 else user[0], "item": "i"}
        if self.kind == "factors":
            return self._factors(table)
        if self.kind == "pairs":
            truth = self.options["truth"]
            columns = {**named, "score": "x", **({} if truth is None else {truth: "y"})}
            options = {name: self.options.get(name) for name in ("threshold", "every_item")}
            return Pairs.of_some_users(table, **options, **columns)
        by = self.options["by"]
        columns = {**named, "rank": "x" if by == "rank" else False}
        columns["score"] = "x" if by == "score" else False
        given = table if self.kind == "lists" else _listed(table, user)
        options = {name: self.options.get(name) for name in ("depth", "every_item")}
        return Lists.of_some_users(given, **options, **columns)

    def _factors(self, table: Any) -> Factors:
        assert self.items is not None
        n_factors, dtype = self.items.factors.shape[1], self.items.factors.dtype
        users = vectors(table["f"], n_factors, "user_factors").astype(dtype, copy=False)
        bias = numbers(table["x"]).astype(dtype) if self.options["user_bias"] else None
        return Factors(
            users,
            self.items.factors,
            user_bias=bias,
            item_bias=self.items.bias,
            user_ids=ids(table["u"]),
            item_ids=self.items.ids,
        )


def _listed(table: Any, user: Sequence[str]) -> Any:
    """Return a row per user, with lists of items, and of their scores where there are some.

    Raises
    ------
    InputError
        If an item of an array is missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = table["f"].combine_chunks()
    flat, cells = pc.list_flatten(lists), {}
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    if pa.types.is_struct(flat.type):
        cells = {name: pc.struct_field(flat, name) for name in ("i", "x")}
    else:
        cells = {"i": flat}
    if cells["i"].null_count:
        raise InputError(
            "Lists has arrays in which an item is missing. Hint: drop it: filter(items, item -> "
            "item IS NOT NULL)."
        )
    columns = {name: pa.ListArray.from_arrays(offsets, cell) for name, cell in cells.items()}
    return pa.table({**{name: table[name] for name in user}, **columns})
