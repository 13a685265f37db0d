"""Checks of who and what each side knows."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.auditing.findings import Finding, Level, counted, unchecked
from recometer.checking._looked import EXAMPLES, Looked
from recometer.data import ids, sessions
from recometer.data.interactions import Interactions
from recometer.evaluating import unknown
from recometer.sources.base import Kind


def test_users_unknown(looked: Looked) -> Finding:
    """Count the users of test that the source does not know."""
    return _unknown(looked, looked.whole, "test", "user")


def test_items_unknown(looked: Looked) -> Finding:
    """Count the items of test that the source does not know."""
    return _unknown(looked, looked.whole, "test", "item")


def train_users_unknown(looked: Looked) -> Finding:
    """Count the users of train that the source does not know."""
    return _unknown(looked, looked.train, "train", "user")


def train_items_unknown(looked: Looked) -> Finding:
    """Count the items of train that the source does not know."""
    return _unknown(looked, looked.train, "train", "item")


def source_users_untested(looked: Looked) -> Finding:
    """Count the users of the source that are not in test."""
    return _untested(looked, "user")


def source_items_untested(looked: Looked) -> Finding:
    """Count the items of the source that are not in test."""
    return _untested(looked, "item")


def listed_items_unknown(looked: Looked) -> Finding:
    """Count the listed items that the catalogue lacks."""
    what = "listed items that the catalogue lacks"
    lists = looked.lists
    listed = np.unique(lists.items[lists.items >= 0])
    named = listed if lists.item_ids is None else lists.item_ids[listed]
    lacking = _lacking(looked, listed, named)
    if lacking is None:
        return unchecked(what, "no catalogue with the ids of the items.")
    return counted(
        int(np.count_nonzero(lacking)),
        len(listed),
        tuple(named[lacking][:EXAMPLES].tolist()),
        what,
        "warning",
        "They are invented, no longer there, or written differently: they are misses, and no part "
        "of the coverage. Hint: unknown_items@k is their share of the places.",
        "The catalogue has every listed item.",
    )


def _lacking(looked: Looked, listed: Int64, named: Array) -> Bool | None:
    """Tell which of some items, given by positions and ids, the catalogue lacks."""
    lists, catalogue = looked.lists, looked.given.arguments.catalogue
    if lists.uncatalogued is not None:
        return np.isin(listed, lists.uncatalogued)
    if catalogue is None or (catalogue.item_ids is None) != (lists.item_ids is None):
        return None
    if catalogue.item_ids is None:
        return listed >= catalogue.n_items
    return ids.match(named, catalogue.item_ids, "item ids", "item ids of the catalogue") < 0


EFFECTS = {
    ("test", "user"): "They have no ranking: they count as misses, or not at all if the rule "
    "cold_start is off.",
    ("test", "item"): "The source cannot recommend them, so they are misses. If the source is "
    "lists, they are in none of them.",
    ("train", "user"): "The model was not fitted to this train, or leaves users out.",
    ("train", "item"): "The model was not fitted to this train, or leaves items out. If the source "
    "is lists, they are in none of them.",
}


def _unknown(looked: Looked, data: Interactions | None, side: str, kind: Kind) -> Finding:
    what = f"{kind}s of {side} that the source does not know"
    if data is None:
        return unchecked(what, "no train.")
    known, (there, its) = looked.source.facts.known_ids(kind), unknown.there(data, kind)
    missing = unknown.missing(data, kind, known)
    level: Level = "problem" if 2 * len(missing) > len(there) else "warning"
    found = EFFECTS[side, kind]
    if len(missing) > unknown.MANY * len(there) and its is not None:
        found += unknown.Unknown.of(its[missing], known, side).hint
    few = missing[:EXAMPLES]
    return counted(
        len(missing),
        len(there),
        tuple(few.tolist() if its is None else its[few].tolist()),
        what,
        level,
        found,
        f"The source knows every {kind} of {side}.",
    )


def _untested(looked: Looked, kind: Kind) -> Finding:
    data, own = looked.whole, looked.source.facts.known_ids(kind)
    there, its = unknown.there(data, kind)
    if own is not None and its is not None:
        asked = sessions.as_named_by(its[there], own) if kind == "user" else its[there]
        found = ids.match(asked, own, f"{kind} ids of test", f"{kind} ids of the source")
        tested = np.unique(found[found >= 0])
        total = len(own)
    else:
        tested, total = there, data.n_users if kind == "user" else looked.lists.n_items
    rest = np.ones(total, np.bool_)
    rest[tested] = False
    few = np.flatnonzero(rest)[:EXAMPLES]
    return counted(
        int(np.count_nonzero(rest)),
        total,
        tuple(few.tolist() if own is None else own[few].tolist()),
        f"{kind}s of the source that are not in test",
        "fact",
        "The result says nothing about them."
        if kind == "user"
        else "They can be recommended, and are never right.",
        f"Every {kind} of the source is in test.",
    )
