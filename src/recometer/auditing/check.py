"""`audit`, which finds leakage and other faults in a split, and `Audit`, its result."""

from __future__ import annotations

import dataclasses
from typing import Any

from recometer.auditing.checks import findings_of
from recometer.auditing.facts import Facts, facts_of
from recometer.auditing.findings import Findings
from recometer.data.interactions import Interactions, concatenate, read_interactions
from recometer.errors import InputError, InputTypeError
from recometer.protocol import Protocol, RelevantFrom
from recometer.tasks import waiting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit(Findings):
    """The faults of a train-test split, and their effects on evaluation results.

    ``print(audit)`` shows a table, and ``audit["overlap"]`` is a single finding.

    Attributes
    ----------
    findings : tuple of Finding
        The results of all checks in a fixed order, whether or not they found anything.
    train, test
        Descriptions of the training and test data.
    allowed : tuple of str
        The names of the findings whose leakage is accepted; the verdict mentions them.
    """

    train: str
    test: str
    allowed: tuple[str, ...] = ()
    plain = ("train", "test", "leaks")

    @property
    def leaks(self) -> bool:
        """Whether there is leakage."""
        return any(finding.level == "leakage" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """A sentence that says whether there is leakage."""
        leaks = self.names_at("leakage")
        if not leaks:
            checked = all(finding.count is not None for finding in self.findings)
            return "No leakage was found" + ("." if checked else " by the checks that ran.")
        accepted = [name for name in leaks if name in self.allowed]
        if not accepted:
            return "There is leakage."
        part = "all of it" if accepted == leaks else "some of it"
        return f"There is leakage, {part} allowed: {', '.join(accepted)}."

    def _notes(self) -> list[str]:
        sentences = [
            f"{finding.name} ({finding.what}): {finding.sentence}"
            for finding in self.findings
            if finding.count != 0
        ]
        return [f"train: {self.train}", f"test: {self.test}", *sentences, self.verdict]

    def __repr__(self) -> str:
        leaks = self.names_at("leakage")
        return f"<Audit: {', '.join(leaks) if leaks else 'no leakage'}>"


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
    """Look for leakage and other faults in a train-test split.

    Rows that repeat a user-item pair are merged, as in `Interactions.of`. Each pair therefore
    counts once, at its latest time, except in the numbers of repeated rows. Only users with test
    interactions count as test users. The audit assumes that every training or test item could be
    recommended to any user who has no training interaction with it. Times are compared without
    conversion; equal times do not count as leakage.

    Parameters
    ----------
    train, test
        The interactions, in any form that `Interactions.of` accepts. Users and items are matched by
        id, or by position if neither side has ids. Instead of both, you can pass a `Split` as
        `train`; its remainder counts as training data.
    user, item, value, time
        The columns of data frames and files, as in `Interactions.of`. Not needed for a `Split`.
    relevant_from, min_positives, min_candidates
        The rules of `evaluate` that determine which users are evaluated.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If `train` or `test` has no interactions, if only one of them has ids, if neither has ids
        and their shapes differ, or if their times have different units or types (such as seconds
        and milliseconds, or dates and numbers).
    InputTypeError
        If the type of the data is not supported, or if the ids of the two sides have different
        types.
    ColumnError, FileError
        If `Interactions.of` raises this error for the data.

    Examples
    --------
    Ann's book is in both the training and the test data.

    >>> import recometer as rm
    >>> train = {"ann": ["book", "film"], "bob": ["film", "song"]}
    >>> test = {"ann": ["book", "song"], "cleo": ["game"]}
    >>> result = rm.audit(train, test)
    >>> result.leaks
    True
    >>> result["overlap"].count, result["overlap"].examples
    (1, (('ann', 'book'),))
    >>> result["unseen_users"].examples
    ('cleo',)
    >>> result["older_than_training"].sentence
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
        Interactions.of(train, **columns)  # raises an error if columns are given
    with waiting("Auditing"):
        first, second = _read("train", train, columns), _read("test", test, columns)
        return audit_of(facts_of(first, second, rules), repr(first), repr(second))


def audit_of(facts: Facts, train: str, test: str) -> Audit:
    """Return the audit based on the facts; the strings `train` and `test` describe the data."""
    return Audit(findings=findings_of(facts), train=train, test=test)


def _of_split(split: object) -> tuple[Interactions, Interactions]:
    from recometer.split.result import Split

    if not isinstance(split, Split):
        raise InputTypeError(
            f"An audit needs train and test, or a Split, found only {type(split).__name__}. Hint: "
            "rm.audit(train, test); rm.Split.load(folder) reads a split that was saved."
        )
    plain = split.interactions()
    if plain.remainder is None or not len(plain.remainder):
        return plain.train, plain.test
    return concatenate(plain.train, plain.remainder), plain.test


def _read(name: str, data: object, columns: dict[str, Any]) -> Interactions:
    interactions = (
        data
        if isinstance(data, Interactions)
        else read_interactions(data, name, warns=name == "test", **columns)
    )
    check_not_empty(name, len(interactions), interactions.n_users)
    return interactions


def check_not_empty(name: str, n_rows: int, n_users: int = 0) -> None:
    """Raise an error if the training or test data have no interactions."""
    if not n_rows:
        raise InputError(
            f"{name} is empty: {n_users:,} users, no interactions. Hint: check the split "
            "and the user column."
        )
