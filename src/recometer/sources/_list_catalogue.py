"""The items that lists could have recommended, if known."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids, check_number_of_positions
from recometer.data.spelling import FEWEST, guess, variants
from recometer.errors import InputError, argument_text, python_or_command, warn
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates

PROBE = 1024  # entries
PROBED_ITEMS = 16  # number of items of test to try in other spellings
FEW_ITEMS = 5  # with fewer entries, no warning if no item of test is listed


class ListCatalogue(NamedTuple):
    """The items that could have been recommended."""

    n_items: int | None  # None if unknown
    inside: Bool | None = None  # which of the items; None if unknown
    lacking: Int64 | None = None  # the listed items that it lacks; None if unknown


def catalogue_of(table: ListTable, request: Request) -> ListCatalogue:
    catalogue = request.catalogue
    if catalogue is None or isinstance(catalogue, int):
        return ListCatalogue(catalogue)
    listed = np.zeros(table.n_items + 1, bool)
    listed[table.items] = True  # the last is padding
    inside = items_of(catalogue, table.item_ids, table.n_items)
    lacking = np.flatnonzero(listed[:-1] & ~inside)
    return ListCatalogue(int(np.count_nonzero(inside)), inside, lacking)


def items_of(catalogue: Array, item_ids: Array | None, n_items: int) -> Bool:
    """Return which items are in the catalogue: bool [n_items].

    Every item of the catalogue must be among the `n_items` items.
    """
    inside = np.zeros(n_items, bool)
    positions = catalogue
    if item_ids is not None:
        positions = ids.match(catalogue, item_ids, "item ids of the catalogue")
    inside[positions] = True
    return inside


def with_all_items(table: ListTable, request: Request) -> tuple[ListTable, Request]:
    """Give lists, test and train the items of all of them."""
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
            f"{request.candidates} needs to know the items to draw from, and lists do not contain "
            f"those that were recommended to no user. Hint: {argument_text('catalogue')} takes the "
            "ids of all items."
        )
    if table.item_ids is not None:
        given = {"test": test.item_ids, "train": None if train is None else train.item_ids}
        given["the catalogue"] = None if isinstance(catalogue, int) else catalogue
        others = [given[name] for name in ("train", "the catalogue")]
        given |= {"candidates": chosen, "exclude": None if never is None else never.ids}
        widened = table.with_items({w: more for w, more in given.items() if more is not None})
        _warn_of_strangers(table, test, [other for other in others if other is not None])
        _warn_of_spelling(table, test, "test", "They are misses")
        missed = "They are not left out of a list"
        if train is None or not _warn_of_spelling(table, train, "train", missed):
            _warn_of_train(table, test, train)
        return widened, request
    for side, data in (("test", test), ("train", train)):
        if data is not None:
            both_have_ids("item", "Lists", None, side, data.item_ids)
    n_items = _number_of_positions(table, request, sets)
    _check_positions(table, n_items)
    return (
        dataclasses.replace(table, n_items=n_items),
        dataclasses.replace(
            request,
            test=_widened(test, n_items),
            train=None if train is None else _widened(train, n_items),
            candidates=request.candidates if sets is None else _widened(sets, n_items),
        ),
    )


def _number_of_positions(table: ListTable, request: Request, sets: Interactions | None) -> int:
    """Return the number of items of sides without item ids."""
    sides = {"test": request.test, "train": request.train, "candidates": sets}
    numbers = {side: data.n_items for side, data in sides.items() if data is not None}
    n_entries = len(table.items) + sum(len(data) for data in sides.values() if data is not None)
    for items in (request.candidates, request.exclude):
        if isinstance(items, Items) and items.ids.dtype == np.int64:
            numbers[items.what] = _number_of(items.ids)
            n_entries += len(items.ids)
    catalogue = request.catalogue
    if isinstance(catalogue, int):
        numbers["the catalogue"] = catalogue
    elif catalogue is not None:
        if catalogue.dtype != np.int64 or catalogue.min() < 0:
            both_have_ids("item", "the catalogue", catalogue, "Lists", None)
        numbers["the catalogue"] = _number_of(catalogue)
        n_entries += len(catalogue)
    side, n_items = max(numbers.items(), key=operator.itemgetter(1))
    check_number_of_positions(n_items, n_entries, side)
    return n_items


def _number_of(positions: Array) -> int:
    """Return the number of positions up to the largest of these."""
    last = positions.max(initial=-1)
    return int(last) + 1


def _check_positions(table: ListTable, n_items: int) -> None:
    """Refuse positions beyond all items: they may be nodes of a graph."""
    if table.n_items <= n_items:
        return
    entry = int(np.argmax(table.items >= n_items))
    user = int(np.searchsorted(table.indptr, entry, side="right")) - 1
    raise InputError(
        f"The list in row {user} holds the item position {table.items[entry]:,}, but the items of "
        f"test, train and the catalogue are the positions 0 to {n_items - 1:,}. Hint: if items are "
        "the nodes of a graph after its users, rm.Lists(array, item_offset=n_users); if there are "
        f"more items, {argument_text('catalogue')} takes their number."
    )


def _warn_of_strangers(table: ListTable, test: Interactions, others: Sequence[Array]) -> None:
    """Warn if no item of test is listed, and nothing shows that both sides spell ids the same.

    The table does not have the items of test yet; `others` are the item ids of train and of the
    catalogue.
    """
    if table.item_ids is None or test.item_ids is None or not len(test.item_ids):
        return
    # If both sides spell ids the same, the first few entries show it.
    few = table.item_ids[np.unique(table.items[:PROBE].clip(0))]
    if _shared(few, test.item_ids):
        return
    listed = np.zeros(len(table.item_ids) + 1, bool)
    listed[table.items] = True  # the last is padding
    named = table.item_ids[listed[:-1]]
    # With few entries, chance alone explains it.
    if min(len(table.items), len(test)) < FEW_ITEMS:
        return
    if any(_shared(named, other) for other in (test.item_ids, *others)):
        return
    nodes = python_or_command(
        " Those of a graph's nodes begin after its users: rm.Lists(array, item_offset=n_users).", ""
    )
    warn(
        f"Lists and test share no item: every relevant item is a miss. Hint: are the item ids of "
        f"Lists, such as {ids.show(named, 0)}, written like those of test, such as "
        f"{ids.show(test.item_ids, 0)}?{nodes}"
    )


def _warn_of_spelling(table: ListTable, data: Interactions, side: str, effect: str) -> bool:
    """Warn if lists contain items of test or train in another spelling; return whether they do.

    A single unlisted item proves nothing. A small sample of the items of this side is enough.
    """
    named, its = table.item_ids, data.item_ids
    if named is None or its is None or ids.kind(named) != "str" or ids.kind(its) != "str":
        return False
    some = its[np.linspace(0, len(its) - 1, min(len(its), PROBED_ITEMS)).astype(np.int64)]
    unlisted = some[~_among(some, named)].tolist()
    others = [variants(item, len(named[0])) for item in unlisted]
    each = np.repeat(np.arange(len(others)), [*map(len, others)])
    every = np.fromiter(itertools.chain.from_iterable(others), object, len(each))
    found = np.unique(each[_among(every, named)]) if len(every) else each
    guessed = guess([unlisted[number] for number in found], named.tolist()) if len(found) else None
    if guessed is None or len(found) < FEWEST * len(some):
        return False
    warn(
        f"Lists have none of some items of {side}, but have them in another spelling: {guessed}. "
        f"{effect}. Hint: write item ids alike on both sides."
    )
    return True


def _among(some: Array, named: Array) -> Bool:
    """Return which of some strings occur in a sorted array."""
    places = np.minimum(np.searchsorted(named, some), len(named) - 1)
    found: Bool = named[places] == some
    return found


def _warn_of_train(table: ListTable, test: Interactions, train: Interactions | None) -> None:
    """Warn if train has no item that is listed or in test, so that nothing would be removed."""
    of_train = None if train is None else train.item_ids
    if of_train is None or test.item_ids is None or table.item_ids is None:
        return
    if len(of_train) < FEW_ITEMS or _shared(table.item_ids, of_train):
        return
    if _shared(test.item_ids, of_train):
        return
    warn(
        "train has none of the items of Lists and of test: no item is left out of a list. Hint: "
        f"are its item ids, such as {ids.show(of_train, 0)}, written like those of test, such as "
        f"{ids.show(test.item_ids, 0)}?"
    )


def _shared(named: Array, other: Array) -> bool:
    return bool((ids.match(other, named, "item ids", "item ids of Lists") >= 0).any())


def _widened(data: Interactions, n_items: int) -> Interactions:
    if data.n_items == n_items:
        return data
    return dataclasses.replace(data, n_items=n_items)
