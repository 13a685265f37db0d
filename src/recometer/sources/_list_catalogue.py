"""Which items lists could have recommended, as far as anybody says."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from recometer.arrays import Bool
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids
from recometer.errors import InputError
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates


class ListCatalogue(NamedTuple):
    """What could have been recommended."""

    n_items: int | None  # None: unknown
    inside: Bool | None  # which of the items; None: unknown
    n_added: int  # listed items that it lacked, and that count as part of it


def catalogue_of(table: ListTable, request: Request) -> ListCatalogue:
    catalogue = request.catalogue
    if catalogue is None or isinstance(catalogue, int):
        return ListCatalogue(catalogue, None, 0)
    inside, listed = np.zeros(table.n_items, bool), np.zeros(table.n_items + 1, bool)
    listed[table.items] = True  # the last is padding
    positions = catalogue
    if table.item_ids is not None:
        positions = ids.match(catalogue, table.item_ids, "item ids of the catalogue")
    inside[positions] = True
    n_given = np.count_nonzero(inside)
    inside |= listed[:-1]
    n_items = int(np.count_nonzero(inside))
    return ListCatalogue(n_items, inside, n_items - int(n_given))


def with_all_items(table: ListTable, request: Request) -> tuple[ListTable, Request]:
    """Give lists, test and train the same items, whoever names them."""
    test, train, catalogue = request.test, request.train, request.catalogue
    sets = request.candidates if isinstance(request.candidates, Interactions) else None
    chosen = sets.item_ids if sets is not None else None
    if isinstance(request.candidates, Items):
        chosen = request.candidates.ids
    never = request.exclude
    if isinstance(request.candidates, SampledCandidates) and (
        catalogue is None or (isinstance(catalogue, int) and table.item_ids is not None)
    ):
        raise InputError(
            f"{request.candidates} needs to know the items to draw from, and lists do not name "
            "those that nobody was recommended. Hint: catalogue= takes the ids of all items."
        )
    if table.item_ids is not None:
        given = {"test": test.item_ids, "train": None if train is None else train.item_ids}
        given["the catalogue"] = None if isinstance(catalogue, int) else catalogue
        given |= {"candidates": chosen, "exclude": None if never is None else never.ids}
        return table.with_items({w: more for w, more in given.items() if more is not None}), request
    n_items = max(
        table.n_items,
        test.n_items,
        0 if train is None else train.n_items,
        0 if sets is None else sets.n_items,
        *(
            int(items.ids.max(initial=-1)) + 1
            for items in (request.candidates, never)
            if isinstance(items, Items) and items.ids.dtype == np.int64
        ),
    )
    if isinstance(request.candidates, SampledCandidates) and isinstance(catalogue, int):
        n_items = max(n_items, catalogue)
    if catalogue is not None and not isinstance(catalogue, int):
        if catalogue.dtype != np.int64 or catalogue.min(initial=0) < 0:
            both_have_ids("item", "the catalogue", catalogue, "Lists", None)
        n_items = max(n_items, int(catalogue.max(initial=-1)) + 1)
    return (
        dataclasses.replace(table, n_items=n_items),
        dataclasses.replace(
            request,
            test=_widened(test, n_items),
            train=None if train is None else _widened(train, n_items),
            candidates=request.candidates if sets is None else _widened(sets, n_items),
        ),
    )


def _widened(data: Interactions, n_items: int) -> Interactions:
    if data.item_ids is not None or data.n_items == n_items:
        return data
    return dataclasses.replace(data, n_items=n_items)
