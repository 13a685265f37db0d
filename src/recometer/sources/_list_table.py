"""Tables of recommendation lists, and the catalogue from which the items were chosen."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64, all_of, follow
from recometer.data import ids
from recometer.data.interactions import Interactions, check_positions
from recometer.data.matching import SourceIndex, both_have_ids
from recometer.data.spelling import FEWEST, guess, variants
from recometer.errors import InputError, argument_text, python_or_command, warn
from recometer.ranks import Ranks
from recometer.sources.base import Kind, Request
from recometer.sources.candidates import Items, SampledCandidates


@dataclasses.dataclass(frozen=True, eq=False)
class ListTable:
    """All lists in CSR layout."""

    indptr: Int64  # list l consists of the entries indptr[l]:indptr[l + 1], if any
    items: Int32  # positions among `item_ids`; -1 is padding
    n_items: int  # larger than every item
    scores: Float64 | None  # scores of entries; None if lists are already best first
    user_ids: Array | None  # distinct, in any order; None if list l belongs to user l
    # Sorted and distinct; may include items that occur in no list. None for positions.
    item_ids: Array | None
    padded: bool = False  # whether `items` may contain -1
    # The original scores, even if lists are already in order. None if there are none.
    given: Float64 | None = None
    by_rows: bool = False  # whether the lists come from a table without ranks or scores
    generated: bool = False  # whether repeats are misses, whatever the rule `duplicates` says

    @property
    def n_lists(self) -> int:
        """Number of lists, including empty lists."""
        return len(self.indptr) - 1

    @property
    def index(self) -> SourceIndex:
        """The users and items of the lists."""
        return SourceIndex("Lists", self.n_lists, self.n_items, self.user_ids, self.item_ids)

    def with_items(self, id_sets: Mapping[str, Array | None]) -> ListTable:
        """Return the same lists with more item ids: those in `id_sets`, keyed by their origin."""
        assert self.item_ids is not None
        all_ids = self.item_ids
        for origin, item_ids in id_sets.items():
            if item_ids is None:
                continue
            places = ids.match(item_ids, all_ids, f"item ids of {origin}", "item ids of Lists")
            new = item_ids[places < 0]
            if not len(all_ids):
                all_ids = new
            elif len(new) and all_ids.dtype == new.dtype != object:
                all_ids = np.sort(np.concatenate([all_ids, new]))
            elif len(new):
                all_ids = encode_all([all_ids, new], "item ids")[1]
        if all_ids is self.item_ids:
            return self
        return dataclasses.replace(
            self, items=self.items_among(all_ids), n_items=len(all_ids), item_ids=all_ids
        )

    def items_among(self, item_ids: Array) -> Int32:
        """Return `items` as positions in `item_ids`, with -1 for absent items and for padding."""
        assert self.item_ids is not None
        places = ids.match(self.item_ids, item_ids, "item ids of Lists")
        if (places == np.arange(len(places))).all():
            return self.items
        return np.append(places, -1).astype(np.int32)[self.items]

    def listed(self) -> Bool:
        """Return a mask of the items that occur in a list, as bool [n_items]."""
        mask = np.zeros(self.n_items + 1, bool)
        mask[self.items] = True  # the last entry is for padding
        return mask[:-1]

    def hold_items(self, lists: Int64 | None = None) -> Bool:
        """Return a mask of the lists (all, or those in `lists`) that contain more than padding."""
        mask: Bool = ragged.lengths(self.indptr, lists) > 0
        if not self.padded or not len(self.items):
            return mask
        chosen = np.arange(self.n_lists) if lists is None else lists
        # A list that has any places rarely begins with padding.
        begins_with_padding = self.items[self.indptr[chosen] * mask] < 0
        doubtful = (mask & begins_with_padding).nonzero()[0]
        if len(doubtful):
            indptr, entries = ragged.take(self.indptr, chosen[doubtful])
            mask[doubtful] = False
            mask[doubtful[ragged.users_of(indptr)[self.items[entries] >= 0]]] = True
        return mask

    def listed_users(self) -> Array:
        """Return the ids (or positions) of the users with a list."""
        mask = self.hold_items()
        if self.user_ids is None:
            return mask.nonzero()[0]
        return self.user_ids if all_of(mask) else self.user_ids[mask]

    def known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of users with a list, or of listed items; None for positions."""
        if kind == "user":
            return None if self.user_ids is None else self.listed_users()
        return None if self.item_ids is None else self.item_ids[self.listed()]


def join_tables(tables: Sequence[ListTable]) -> ListTable:
    """Join several tables of the same kind into one; all users must have ids.

    Users are sorted by id, and users without items are left out. If a user has several lists, the
    first one counts. The result does not depend on which lists are in which table.
    """
    first, n_items = tables[0], max(table.n_items for table in tables)
    items, item_ids = [table.items for table in tables], first.item_ids
    of_users = first.user_ids
    in_order = of_users is not None and of_users.dtype == np.int64 and follow(of_users)
    if len(tables) == 1 and item_ids is None and in_order and all_of(first.hold_items()):
        return first
    if item_ids is not None:
        id_arrays = [table.known_ids("item") for table in tables]
        item_ids = encode_all(id_arrays, "item ids of Lists")[1]
        n_items = len(item_ids)
        items = [table.items_among(item_ids) for table in tables]
    masks = [table.hold_items() for table in tables]
    codes, user_ids = encode_all([table.listed_users() for table in tables], "user ids of Lists")
    lists = np.flatnonzero(np.concatenate(masks))
    indptr = ragged.indptr_of(np.concatenate([np.diff(table.indptr) for table in tables]))
    columns: dict[str, Array] = {"items": items[0] if len(items) == 1 else np.concatenate(items)}
    if any(table.scores is not None for table in tables):
        columns["scores"] = np.concatenate([*map(_falling_scores, tables)])
    if first.given is not None:
        columns["given"] = np.concatenate([table.given for table in tables])
    if len(lists) < len(indptr) - 1 or not follow(codes):
        indptr, rows = ragged.take(indptr, lists[np.unique(codes, return_index=True)[1]])
        columns = {name: column[rows] for name, column in columns.items()}
    return ListTable(
        indptr,
        columns["items"],
        n_items,
        columns.get("scores"),
        user_ids,
        item_ids,
        any(table.padded for table in tables),
        columns.get("given"),
        any(table.by_rows for table in tables),
        first.generated,
    )


def encode_all(arrays: Sequence[Any], noun: str) -> tuple[Int64, Array]:
    """Apply `ids.encode` to several arrays of the same kind, as if they were one."""
    non_empty = [array for array in arrays if len(array)] or arrays[:1]
    if len({array.dtype for array in non_empty}) == 1:
        return ids.encode(np.concatenate(non_empty), noun)
    # There are ids above int64.
    return ids.encode([value for array in non_empty for value in array.tolist()], noun)


def _falling_scores(table: ListTable) -> Float64:
    """Return the scores of a table, or descending numbers if its lists are already best first."""
    if table.scores is not None:
        return table.scores
    if table.given is not None:
        return table.given
    first = table.indptr[ragged.users_of(table.indptr)]
    return (first - np.arange(len(table.items))).astype(np.float64)


def judged_scores(table: ListTable, lists: Int64, ranks: Ranks) -> Float64:
    """Return the score of each judged item in its list, or NaN if the list lacks it.

    The table must have scores. For a repeated item, the highest score counts. `lists` holds the
    position of each user's list, or -1 for a user without a list.
    """
    assert table.given is not None
    key = ragged.numbered(table.indptr, table.items, table.n_items)
    order = np.lexsort((-table.given, key))
    user = ragged.users_of(ranks.indptr)
    judged = ragged.pairs(lists[user], ranks.item, table.n_items)
    places = np.minimum(np.searchsorted(key[order], judged), len(key) - 1)
    return np.where(ranks.above >= 0, table.given[order[places]], np.nan)


PROBE = 1024  # number of entries to check first
PROBED_ITEMS = 16  # number of items whose other spellings are tried
FEW_ITEMS = 5  # with fewer entries, there is no warning even if no item is shared


class ListCatalogue(NamedTuple):
    """The items that could have been recommended."""

    n_items: int | None  # None if unknown
    inside: Bool | None = None  # whether the catalogue has each item; None if unknown
    lacking: Int64 | None = None  # the listed items that the catalogue lacks; None if unknown


def catalogue_of(table: ListTable, request: Request) -> ListCatalogue:
    """Return the request's catalogue; all of its items must be among those of the table."""
    catalogue = request.catalogue
    if catalogue is None or isinstance(catalogue, int):
        return ListCatalogue(catalogue)
    if table.item_ids is not None:
        catalogue = ids.match(catalogue, table.item_ids, "item ids of the catalogue")
    inside = np.zeros(table.n_items, bool)
    inside[catalogue] = True
    lacking = np.flatnonzero(table.listed() & ~inside)
    return ListCatalogue(int(np.count_nonzero(inside)), inside, lacking)


def with_all_items(table: ListTable, request: Request) -> tuple[ListTable, Request]:
    """Extend the lists, test and train to the union of their items.

    If the rule `seen` is ``"kept_in_lists"``, it is ``"kept"`` in the returned request.
    """
    if request.protocol.seen == "kept_in_lists":
        request = dataclasses.replace(request, protocol=request.protocol.replace(seen="kept"))
    test, train, catalogue = request.test, request.train, request.catalogue
    candidates = request.candidates
    if isinstance(candidates, SampledCandidates) and (
        catalogue is None or (isinstance(catalogue, int) and table.item_ids is not None)
    ):
        raise InputError(
            f"{candidates} needs to know the items to draw from, but lists do not show which items "
            "were never recommended. Hint: pass the ids of all items as "
            f"{argument_text('catalogue')}."
        )
    if table.item_ids is not None:
        sides: dict[str, Any] = {"test": test, "train": train, "the catalogue": catalogue}
        sides |= {"candidates": candidates, "exclude": request.exclude}
        id_sets = {side: _item_ids(data) for side, data in sides.items()}
        widened = table.with_items(id_sets)
        if test.item_ids is not None and len(test.item_ids):
            _warn_of_disjoint_items(table, test, (id_sets["train"], id_sets["the catalogue"]))
            texts, effect = ids.kind(table.item_ids) == "str", "They are not left out of the lists"
            if texts:
                _warn_of_spelling(table, test, "test", "They count as misses")
            if train is not None and not (
                texts and _warn_of_spelling(table, train, "train", effect)
            ):
                _warn_of_train(table, test, train)
        return widened, request
    for side, data in (("test", test), ("train", train)):
        if data is not None:
            both_have_ids("item", "Lists", None, side, data.item_ids)
    sets = candidates if isinstance(candidates, Interactions) else None
    n_items = _number_of_positions(table, request, sets)
    _check_positions(table, n_items)
    return (
        dataclasses.replace(table, n_items=n_items),
        dataclasses.replace(
            request,
            test=_with_n_items(test, n_items),
            train=None if train is None else _with_n_items(train, n_items),
            candidates=request.candidates if sets is None else _with_n_items(sets, n_items),
        ),
    )


def _item_ids(data: Any) -> Array | None:
    """Return the item ids in test, train, a catalogue or a set of candidates."""
    ids_of_items: Array | None = data if isinstance(data, np.ndarray) else None
    return data.ids if isinstance(data, Items) else getattr(data, "item_ids", ids_of_items)


def _number_of_positions(table: ListTable, request: Request, sets: Interactions | None) -> int:
    """Return the largest number of items in any of the inputs; all items are positions."""
    sides = {"test": request.test, "train": request.train, "candidates": sets}
    numbers = {side: data.n_items for side, data in sides.items() if data is not None}
    n_entries = len(table.items) + sum(len(data) for data in sides.values() if data is not None)
    for items in (request.candidates, request.exclude):
        if isinstance(items, Items) and items.ids.dtype == np.int64:
            numbers[items.parameter] = int(items.ids.max(initial=-1)) + 1
            n_entries += len(items.ids)
    catalogue = request.catalogue
    if isinstance(catalogue, int):
        numbers["the catalogue"] = catalogue
    elif catalogue is not None:
        if catalogue.dtype != np.int64 or catalogue.min() < 0:
            both_have_ids("item", "the catalogue", catalogue, "Lists", None)
        numbers["the catalogue"] = int(catalogue.max(initial=-1)) + 1
        n_entries += len(catalogue)
    side, n_items = max(numbers.items(), key=operator.itemgetter(1))
    check_positions(n_items, n_entries, f"The items of {side}")
    return n_items


def _check_positions(table: ListTable, n_items: int) -> None:
    """Refuse positions that are too large to be items, perhaps because they are graph nodes."""
    if table.n_items <= n_items:
        return
    entry = int(np.argmax(table.items >= n_items))
    user = int(np.searchsorted(table.indptr, entry, side="right")) - 1
    raise InputError(
        f"The list in row {user} holds the item position {table.items[entry]:,}, but the items of "
        f"test, train and the catalogue are the positions 0 to {n_items - 1:,}. Hint: if the items "
        "are numbered after the users, as in a graph, use rm.Lists(array, item_offset=n_users); if "
        f"there are more items, pass their number as {argument_text('catalogue')}."
    )


def _warn_of_disjoint_items(
    table: ListTable, test: Interactions, other_ids: Sequence[Array | None]
) -> None:
    """Warn if no test item is listed and nothing shows that both sides spell ids the same way.

    The table's ids do not yet include the test items. `other_ids` are the item ids of the training
    data and of the catalogue.
    """
    assert table.item_ids is not None
    assert test.item_ids is not None
    # If both sides spell ids the same way, the first few entries usually show it.
    first_ids = table.item_ids[np.unique(table.items[:PROBE].clip(0))]
    if _share_ids(first_ids, test.item_ids):
        return
    listed = table.item_ids[table.listed()]
    # With so few entries, the absence of test items may be due to chance.
    if min(len(table.items), len(test)) < FEW_ITEMS:
        return
    if any(_share_ids(listed, other) for other in (test.item_ids, *other_ids) if other is not None):
        return
    nodes = python_or_command(
        " In a graph, items are numbered after the users: rm.Lists(array, item_offset=n_users).", ""
    )
    warn(
        f"Lists and test share no item: every relevant item is a miss. Hint: are the item ids of "
        f"Lists, such as {ids.show(listed, 0)}, written like those of test, such as "
        f"{ids.show(test.item_ids, 0)}?{nodes}"
    )


def _warn_of_spelling(table: ListTable, data: Interactions, side: str, effect: str) -> bool:
    """Warn if lists spell test or training items differently; return whether they do.

    Only a small sample of the test or training items is checked.
    """
    named, data_ids = table.item_ids, data.item_ids
    if named is None or data_ids is None or ids.kind(named) != "str" or ids.kind(data_ids) != "str":
        return False
    n = len(data_ids)
    sample = data_ids[np.linspace(0, n - 1, min(n, PROBED_ITEMS)).astype(np.int64)]
    unlisted = sample[~_occur_in(sample, named)].tolist()
    spellings = [variants(item, len(named[0])) for item in unlisted]
    numbers = np.repeat(np.arange(len(spellings)), [*map(len, spellings)])
    all_spellings = np.fromiter(itertools.chain.from_iterable(spellings), object, len(numbers))
    matches = np.unique(numbers[_occur_in(all_spellings, named)]) if len(all_spellings) else numbers
    misspelt = [unlisted[number] for number in matches]
    guessed = guess(misspelt, named.tolist()) if misspelt else None
    if guessed is None or len(matches) < FEWEST * len(sample):
        return False
    warn(
        f"Some items of {side} occur in Lists only in another spelling: {guessed}. {effect}. Hint: "
        "spell item ids the same way on both sides."
    )
    return True


def _occur_in(strings: Array, sorted_strings: Array) -> Bool:
    """Return a mask of the strings that occur in a sorted array."""
    places = np.minimum(np.searchsorted(sorted_strings, strings), len(sorted_strings) - 1)
    mask: Bool = sorted_strings[places] == strings
    return mask


def _warn_of_train(table: ListTable, test: Interactions, train: Interactions) -> None:
    """Warn if no listed item and no test item is in train, so that nothing would be removed."""
    train_ids = train.item_ids
    if train_ids is None or test.item_ids is None or table.item_ids is None:
        return
    if len(train_ids) < FEW_ITEMS or _share_ids(table.item_ids, train_ids):
        return
    if _share_ids(test.item_ids, train_ids):
        return
    warn(
        "train shares no item with Lists or test, so no item is removed from any list. Hint: are "
        f"its item ids, such as {ids.show(train_ids, 0)}, written like those of test, such as "
        f"{ids.show(test.item_ids, 0)}?"
    )


def _share_ids(sorted_ids: Array, other_ids: Array) -> bool:
    return bool((ids.match(other_ids, sorted_ids, "item ids", "item ids of Lists") >= 0).any())


def _with_n_items(data: Interactions, n_items: int) -> Interactions:
    if data.n_items == n_items:
        return data
    return dataclasses.replace(data, n_items=n_items)
