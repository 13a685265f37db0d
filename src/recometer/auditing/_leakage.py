"""Checks of what the model could learn from what it is tested on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recometer.auditing._sides import Sides, newest, of_rows
from recometer.auditing.findings import Finding, Level, unchecked

OLDER = "interactions of test older than anyone's newest in train"


def overlap(sides: Sides) -> Finding:
    """Pairs of user and item that stand in test and in train."""
    train, test = sides.train, sides.test
    both = sides.twin >= 0
    statistics: dict[str, float] = {}
    if train.times is not None and test.times is not None:
        same = int(np.count_nonzero(train.times[sides.twin[both]] == test.times[both]))
        statistics["same_time"] = same
    found = on_overlap(statistics)
    return of_rows(
        sides,
        both,
        "interactions of test that are also in train",
        "leakage",
        found,
        "No pair of user and item is on both sides.",
        statistics=statistics,
    )


def on_overlap(statistics: Mapping[str, float]) -> str:
    """Say which effect pairs on both sides have."""
    found = (
        "The model has learnt them. Counted as hits they flatter it; left out, as evaluate does "
        "with train=, they make test smaller."
    )
    if "same_time" in statistics:
        found += f" {statistics['same_time']:,} of them have the same time on both sides."
    return found


def older_than_own_training(sides: Sides) -> Finding:
    """Interactions of test that precede training ones of the same user."""
    return _beside_own(
        sides,
        np.less,
        "interactions of test older than the user's newest in train",
        "leakage",
        "The model knows what these users did later, and guesses the past from the future: the "
        "result is better than it will be in use.",
        "No user's test is older than the user's newest interaction in train.",
    )


def older_than_training(sides: Sides) -> Finding:
    """Interactions of test that precede training ones of anyone."""
    train, test = sides.train, sides.test
    if train.times is None or test.times is None:
        return _unchecked(sides, OLDER)
    return older_than_training_among(sides, train.times.max(), test.times.min())


def older_than_training_among(sides: Sides, newest: float, oldest: float) -> Finding:
    """Return the finding from given values of train's newest time and test's oldest."""
    train, test = sides.train, sides.test
    assert train.times is not None
    assert test.times is not None
    newer = int(np.count_nonzero(train.times > oldest))
    return of_rows(
        sides,
        test.times < newest,
        OLDER,
        "leakage",
        on_newer(newer, max(len(train), 1)),
        "Nothing in test is older than the newest interaction of train.",
        statistics={"training_newer": newer},
    )


def on_newer(newer: int, n_train: int) -> str:
    """Say which effect training interactions newer than the oldest of test have."""
    return (
        "The model knows tastes and items of a later time than it is tested on: "
        f"{newer:,} interactions of train ({newer / n_train:.1%}) are newer than the oldest of "
        "test. A split at one time for all users avoids it."
    )


def same_time(sides: Sides) -> Finding:
    """Interactions of test at the time of the user's newest in train."""
    return _beside_own(
        sides,
        np.equal,
        "interactions of test at the time of the user's newest in train",
        "fact",
        "Time does not say which came first: a rule decided which of them are tested.",
        "Time alone says what came first.",
    )


def _beside_own(
    sides: Sides, compare: np.ufunc, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return what a comparison of each row's time with its user's newest in train finds."""
    if sides.train.times is None or sides.test.times is None:
        return _unchecked(sides, what)
    last, known = newest(sides.train)
    trained = (sides.users >= 0) & known[sides.users]
    chosen = trained[sides.user] & compare(sides.test.times, last[sides.users][sides.user])
    return of_rows(sides, chosen, what, level, found, clear)


def _unchecked(sides: Sides, what: str) -> Finding:
    """Say which sides have no times."""
    given = (("train", sides.train), ("test", sides.test))
    missing = [name for name, data in given if data.times is None]
    have = "have" if len(missing) > 1 else "has"
    return unchecked(what, f"{' and '.join(missing)} {have} no times.", len(sides.test))
