"""Lists where `candidates` or `exclude` of `evaluate` say what may be recommended."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Int64
from recometer.sources._align_result import Aligned
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request
from recometer.sources.candidates import Items


def only_candidates(table: ListTable, aligned: Aligned) -> tuple[ListTable, int]:
    """Drop the entries that are not candidates; what follows moves up.

    Returns the table, whose items are numbered as `aligned.judged` is, and how many entries of
    users of test were dropped.
    """
    who = _users_of_entries(table, aligned)
    items = aligned.locate(np.maximum(who, 0), table.items)
    dropped = int(np.count_nonzero((items < 0) & (table.items >= 0) & (who >= 0)))
    ids_left = table.item_ids
    if aligned.numbers is not None:
        left = np.flatnonzero(aligned.numbers >= 0)
        ids_left = left if ids_left is None else ids_left[left]
    keep = items >= 0
    narrowed = dataclasses.replace(
        table,
        indptr=ragged.offsets(keep, table.indptr),
        items=items[keep].astype(np.int32),
        scores=None if table.scores is None else table.scores[keep],
        n_items=aligned.n_items,
        item_ids=ids_left,
    )
    return narrowed, dropped


def has_list(table: ListTable, aligned: Aligned) -> Bool:
    """Return which users of test have a list with an item: bool [n_users]."""
    who = _users_of_entries(table, aligned)
    has = np.zeros(aligned.n_users, bool)
    has[who[(who >= 0) & (table.items >= 0)]] = True
    return has


def catalogue_size(
    n_items: int | None, inside: Bool | None, aligned: Aligned, request: Request
) -> int | None:
    """Return how many items can be recommended to anybody, given the size of the catalogue.

    `inside` tells which items are in it, where that is known.
    """
    if isinstance(request.candidates, Items):
        return aligned.n_items  # the list of candidates is the catalogue
    if n_items is None or aligned.numbers is None:
        return n_items
    if inside is not None:
        return int(np.count_nonzero(inside[aligned.numbers >= 0]))
    return n_items - int(np.count_nonzero(aligned.numbers < 0))


def _users_of_entries(table: ListTable, aligned: Aligned) -> Int64:
    """Return the user of test of each entry, -1 where the list is nobody's."""
    users = np.full(table.n_lists, -1)
    known = np.flatnonzero(aligned.rows >= 0)
    users[aligned.rows[known]] = known
    return users[ragged.users_of(table.indptr)]
