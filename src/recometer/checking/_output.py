"""Checks of the output itself: does it change its mind, does it tell items apart, is it whole."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.auditing.findings import Finding, Level, counted
from recometer.checking._looked import Looked, named
from recometer.ranks import Ranks, TopLists, UserFlag

TIED_SHARE = 0.1  # of the listed places; more is a warning


def changes_between_calls(looked: Looked) -> Finding:
    """Look for users whose lists or ranks differ when they are asked for once more."""
    again = looked.again.top(looked.request, looked.k)
    changed = _different(looked.lists, again)
    changed |= _moved(looked.ranks, looked.again.rank(looked.request))
    return _users(
        looked,
        changed,
        "users whose ranking is another when it is asked for again",
        "problem",
        "Two calls do not agree, so no evaluation can be repeated. Hint: switch dropout and "
        "sampling off, and fix seeds.",
        "Two calls agree.",
    )


def rank_differs_from_list(looked: Looked) -> Finding:
    """Look for users whose listed items are not where `rank` puts them."""
    lists, ranks = looked.lists, looked.places
    place, n_users = ranks.above + ranks.before, lists.n_users
    rows = np.flatnonzero((ranks.above >= 0) & (place < lists.depth))
    user, place = ranks.user[rows], place[rows]
    agrees = lists.items[user, place] == ranks.item[rows]
    within = np.bincount(user, minlength=n_users)
    agreeing = np.bincount(user[agrees], minlength=n_users)
    ranked = lists.known & ((looked.flags & (UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE)) == 0)
    short = ranked & (lists.lengths < np.minimum(looked.k, looked.ranks.depth))
    return _users(
        looked,
        (within != lists.lengths) | (agreeing != lists.lengths) | short,
        "users whose list is not in the order of their ranks, or ends early",
        "problem",
        "rank(...) and top(...) of the source contradict each other: metrics of lists and of ranks "
        "would be of two different models. Hint: recometer.testing.check_source says where.",
        "Lists are in the order of the ranks.",
    )


def nan_scores(looked: Looked) -> Finding:
    """Look for users with a NaN score."""
    return _flagged(
        looked,
        UserFlag.NAN_SCORE,
        "users with a NaN score among their candidates",
        "They are left out of the mean, unless the rule nan_scores says otherwise.",
        "No score is NaN.",
    )


def infinite_scores(looked: Looked) -> Finding:
    """Look for users with an infinite score."""
    return _flagged(
        looked,
        UserFlag.INFINITE_SCORE,
        "users with an infinite score among their candidates",
        "They are left out of the mean, unless the rule infinite_scores says otherwise. Hint: "
        "factors whose products are too large for their dtype.",
        "No score is infinite.",
    )


def constant_scores(looked: Looked) -> Finding:
    """Look for users whose candidates all have the same score."""
    return _flagged(
        looked,
        UserFlag.CONSTANT_SCORES,
        "users whose candidates all have the same score",
        "They get no ranking at all, and are left out of the mean unless the rule constant_scores "
        "says otherwise.",
        "No user's candidates all have the same score.",
    )


def tied_places(looked: Looked) -> Finding:
    """Count the listed places whose score another candidate has, too."""
    ranks = looked.places
    listed = (ranks.above >= 0) & (ranks.above + ranks.before < looked.lists.depth)
    tied = listed & (ranks.tied > 0)
    count, total = int(np.count_nonzero(tied)), int(np.count_nonzero(listed))
    level: Level = "warning" if count > TIED_SHARE * total else "fact"
    return counted(
        count,
        total,
        looked.examples(np.unique(ranks.user[tied])),
        f"of the first {looked.k:,} places, those whose score other candidates have, too",
        "problem" if count == total else level,
        "The order of equal scores is chance: other libraries take that of the rows, or of a sort. "
        "Here the mean of all orders counts (the rule ties).",
        "No listed item has the score of another candidate.",
    )


def same_list(looked: Looked) -> Finding:
    """Count the users who have the commonest list."""
    lists = looked.lists
    filled = np.flatnonzero(lists.lengths > 0)
    _, which, counts = np.unique(
        lists.items[filled], axis=0, return_inverse=True, return_counts=True
    )
    count = int(counts.max(initial=0))
    alike = filled[which.ravel() == np.argmax(counts)] if count > 1 else filled[:0]
    return counted(
        len(alike),
        len(filled),
        looked.examples(alike),
        f"users with the same first {looked.k:,} places in the same order",
        "warning" if count == len(filled) else "fact",
        "All users get the same list: nothing is personalised."
        if count == len(filled)
        else "The commonest list of all.",
        "No two users have the same list.",
    )


def _different(lists: TopLists, again: TopLists) -> Bool:
    """Return which users have other items in their lists: bool [n_users]."""
    depth = max(lists.depth, again.depth)
    first, second = (
        named(np.pad(one.items, ((0, 0), (0, depth - one.depth)), constant_values=-1), one.item_ids)
        for one in (lists, again)
    )
    found: Bool = np.any(np.asarray(first != second, np.bool_), axis=1)
    return found


def _moved(ranks: Ranks, again: Ranks) -> Bool:
    """Return which users have an item of test somewhere else: bool [n_users]."""
    columns: tuple[tuple[Array | Int64, Array | Int64], ...] = (
        (named(ranks.item, ranks.item_ids), named(again.item, again.item_ids)),
        (ranks.above, again.above),
        (ranks.tied, again.tied),
    )
    differs = np.zeros(len(ranks.above), np.bool_)
    for first, second in columns:
        differs |= np.asarray(first != second, np.bool_)
    moved: Bool = np.bincount(ranks.user[differs], minlength=ranks.n_users) > 0
    return moved


def _flagged(looked: Looked, flag: UserFlag, what: str, found: str, clear: str) -> Finding:
    chosen = (looked.flags & flag) != 0
    level: Level = "problem" if 2 * np.count_nonzero(chosen) > len(chosen) else "warning"
    return _users(looked, chosen, what, level, found, clear)


def _users(
    looked: Looked, chosen: Bool, what: str, level: Level, found: str, clear: str
) -> Finding:
    users = np.flatnonzero(chosen)
    return counted(len(users), len(chosen), looked.examples(users), what, level, found, clear)
