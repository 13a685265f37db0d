"""Checks of what the source does with the items that users have in train."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.auditing.findings import Finding, Level, counted, unchecked
from recometer.checking._looked import Looked, as_interactions
from recometer.data import matching
from recometer.errors import InputError
from recometer.ranks import Ranks

MIDDLE = 0.5


def train_items_scored(looked: Looked) -> Finding:
    """Count the interactions of train whose items the source ranks."""
    what = "interactions of train whose item the source ranks for the user"
    ranks = _ranks_of_train(looked)
    if isinstance(ranks, str):
        return unchecked(what, f"{ranks}.")
    ranked = ranks.above >= 0
    return counted(
        int(np.count_nonzero(ranked)),
        len(ranked),
        (),
        what,
        "fact",
        "What it ranks may be recommended again: evaluate leaves these items out with train=.",
        "The source ranks nothing that users have in train.",
    )


def train_items_recommended(looked: Looked) -> Finding:
    """Count the listed places that items of train would take if nothing left them out."""
    what = f"of the first {looked.k:,} places, those that items of the user's train would take"
    if looked.train is None:
        return unchecked(what, "no train.")
    protocol = looked.request.protocol.replace(seen="kept")
    request = dataclasses.replace(looked.request, protocol=protocol)
    lists = looked.source.top(request, looked.k)
    listed = as_interactions(lists, looked.test)
    again = matching.in_train(listed, looked.train)
    users = np.unique(ragged.users_of(listed.indptr)[again])
    # Where all candidates are ranked, a list is as long as there are any.
    shorter = looked.lists.lengths < lists.lengths
    shortened = bool((shorter & looked.ranks.ends_early).any())
    left_out = looked.source.facts.removes_train(looked.given.protocol)
    return counted(
        int(np.count_nonzero(again)),
        len(again),
        looked.examples(users),
        what,
        "warning" if shortened and left_out else "fact",
        _effect(left_out=left_out, shortened=shortened),
        "Nothing that users have in train would be recommended again.",
    )


def _effect(*, left_out: bool, shortened: bool) -> str:
    if not left_out:
        return "They keep their places (the rule seen)."
    if shortened:
        return (
            "evaluate leaves them out, and the lists are shorter by as much: the missing places "
            "are misses. Hint: ask the model for longer lists, or for lists without these items."
        )
    return (
        "evaluate leaves them out, and others move up. When the model is used, its caller has to "
        "do the same."
    )


def train_items_low(looked: Looked) -> Finding:
    """Count the users whose items of train are not ranked above the middle."""
    what = "users whose own items of train are, on average, in the lower half of their ranking"
    ranks = _ranks_of_train(looked)
    if isinstance(ranks, str):
        return unchecked(what, f"{ranks}.")
    if ranks.ends_early.any():
        return unchecked(what, "lists end early.")
    others = ranks.n_candidates[ranks.user] - 1
    rows = np.flatnonzero((ranks.above >= 0) & (others > 0))
    user = ranks.user[rows]
    depth = (ranks.above[rows] + ranks.tied[rows] / 2) / others[rows]
    counts = np.bincount(user, minlength=ranks.n_users)
    users = np.flatnonzero(counts)
    mean = np.bincount(user, weights=depth, minlength=ranks.n_users)[users] / counts[users]
    low = users[mean >= MIDDLE]
    overall = float(mean.mean()) if len(mean) else np.nan
    level: Level = "warning" if overall >= MIDDLE else "fact"
    return counted(
        len(low),
        len(users),
        looked.examples(low),
        what,
        level,
        f"On average, items of train are below {overall:.1%} of the others. Most models put what "
        "they were fitted to far above the middle"
        + (
            ": are users and items of the source those of train, in the same order?"
            if level == "warning"
            else "."
        ),
        "What users have in train is ranked above the middle.",
        {"mean_depth": overall},
    )


def _ranks_of_train(looked: Looked) -> Ranks | str:
    """Return where the items of train land if nothing leaves them out, or why that is not known."""
    if looked.trained is None:
        return "no train"
    if looked.given.brings_truth:
        return "the source brings its own truth"
    if not len(looked.trained):
        return "these users have nothing in train"
    request = dataclasses.replace(
        looked.request, test=looked.trained, train=None, candidates=None, exclude=None
    )
    try:
        return looked.source.rank(request)
    except InputError:  # it knows none of these items, which another check counts
        return "the source knows none of the items"
