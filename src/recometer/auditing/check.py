"""audit(): every check, applied to train and test."""

from __future__ import annotations

import dataclasses
from typing import Any

from recometer.auditing import _evaluable, _leakage, _shifts
from recometer.auditing._sides import Sides
from recometer.auditing.result import Audit
from recometer.data.interactions import Interactions, read_interactions, together
from recometer.errors import InputError, InputTypeError
from recometer.protocol import Protocol, RelevantFrom
from recometer.tasks import waiting

# A check is a function of Sides that returns a Finding; this is the order they are shown in.
OF_LEAKAGE = (_leakage.overlap, _leakage.older_than_own_training, _leakage.older_than_training)
CHECKS = (
    *OF_LEAKAGE,
    _leakage.same_time,
    _evaluable.train_duplicates,
    _evaluable.test_duplicates,
    _evaluable.unseen_users,
    _evaluable.unseen_items,
    _evaluable.unreachable,
    _evaluable.users_without_relevant,
    _evaluable.users_emptied,
    _evaluable.users_without_candidates,
    _evaluable.users_few_relevant,
    _evaluable.untested_users,
    _shifts.popularity_shift,
    _shifts.activity_shift,
)
LEAKAGE = tuple(check.__name__ for check in OF_LEAKAGE)
"""The names of the findings that can be leakage."""


def audit(
    train: object,
    test: object = None,
    *,
    user: str | None = None,
    item: str | None = None,
    value: str | bool | None = None,
    time: str | bool | None = None,
    relevant_from: RelevantFrom = None,
    min_positives: int = 1,
    min_candidates: int = 2,
) -> Audit:
    """Look for leakage and other faults in a split into train and test.

    Rows that repeat a pair of user and item are merged first, as by `Interactions.of`; all
    other numbers count distinct pairs, each at its latest time. A user of test is one with
    interactions there. Every item of train or test could be recommended to any user who does not
    have it in train. Times are compared without conversion; equal times are not leakage.

    Parameters
    ----------
    train, test
        Anything that `Interactions.of` takes. Users and items are matched by id, or by position if
        neither side has ids. Instead of both, you can pass a `Split` as `train`; its remainder
        counts as train.
    user, item, value, time
        Columns of frames and files, as in `Interactions.of`. A `Split` knows its columns.
    relevant_from, min_positives, min_candidates
        The rules of `evaluate` by which users are evaluated.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If a side has no interactions, only one side has ids, positions have different shapes, or
        times have different units or types (seconds and milliseconds, dates and numbers).
    InputTypeError
        If the type of the data is not supported, or ids have different types.
    ColumnError, FileError
        As `Interactions.of` raises them.

    Examples
    --------
    Ann's book is in train and in test.

    >>> import recometer as rm
    >>> train = {"ann": ["book", "film"], "bob": ["film", "song"]}
    >>> test = {"ann": ["book", "song"], "cleo": ["game"]}
    >>> found = rm.audit(train, test)
    >>> found.leaks
    True
    >>> found["overlap"].count, found["overlap"].examples
    (1, (('ann', 'book'),))
    >>> found["unseen_users"].examples
    ('cleo',)
    >>> found["older_than_training"].sentence
    'Not checked: train and test have no times.'

    References
    ----------
    Ji, Sun, Zhang & Li, A critical study on data leakage in recommender system offline
    evaluation, ACM TOIS 41(3), 2023. Meng, McCreadie, Macdonald & Ounis, Exploring data splitting
    strategies for the evaluation of recommendation models, RecSys 2020.
    """
    rules = Protocol(
        relevant_from=relevant_from, min_positives=min_positives, min_candidates=min_candidates
    )
    columns: dict[str, Any] = {"user": user, "item": item, "value": value, "time": time}
    if test is None:
        train, test = _of_split(train)
    if isinstance(train, Interactions) and isinstance(test, Interactions):
        Interactions.of(train, **columns)  # refuses columns
    with waiting("Auditing"):
        sides = Sides.of(_read("train", train, columns), _read("test", test, columns), rules)
        findings = (dataclasses.replace(check(sides), name=check.__name__) for check in CHECKS)
        return Audit(findings=tuple(findings), train=repr(sides.train), test=repr(sides.test))


def _of_split(split: object) -> tuple[Interactions, Interactions]:
    from recometer.split import Split

    if not isinstance(split, Split):
        raise InputTypeError(
            f"An audit needs train and test, or a Split, found only {type(split).__name__}. Hint: "
            "rm.audit(train, test); rm.Split.load(folder) reads a split that was saved."
        )
    plain = split.interactions()
    if plain.remainder is None or not len(plain.remainder):
        return plain.train, plain.test
    return together(plain.train, plain.remainder), plain.test


def _read(name: str, data: object, columns: dict[str, Any]) -> Interactions:
    found = (
        data
        if isinstance(data, Interactions)
        else read_interactions(data, name, warns=name == "test", **columns)
    )
    if not len(found):
        raise InputError(
            f"{name} is empty: {found.n_users:,} users, no interactions. Hint: check the split, "
            "and the column of users."
        )
    return found
