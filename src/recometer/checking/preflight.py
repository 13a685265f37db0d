"""`check`, which says whether a model's output can be evaluated, and `Preflight`, its result."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np

from recometer.auditing.findings import Findings
from recometer.checking.checks import Answers, checks_of
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.numbers import seed_of
from recometer.errors import DataWarning, InputError, brief
from recometer.evaluating.arguments import are_folds, is_split, parts_of
from recometer.evaluating.preparation import check_evaluable
from recometer.evaluator import Evaluator
from recometer.protocol import Protocol
from recometer.sources.base import Source
from recometer.tasks import waiting

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules
    from recometer.sources.models import Recommender


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preflight(Findings):
    """The result of `check`, which says whether a model's output can be evaluated.

    ``print(preflight)`` shows a table, and ``preflight["nan_scores"]`` is a single finding.

    Attributes
    ----------
    findings : tuple of Finding
        The results of all checks in a fixed order, whether or not they found anything.
    source, test, train
        Descriptions of the model's output and of the data; `train` is None without training data.
    n_checked, n_users : int
        The number of test users who were checked, and the total number of test users.
    k : int
        The number of places that were checked in each list.
    """

    source: str
    test: str
    train: str | None
    n_checked: int
    n_users: int
    k: int
    plain = ("source", "test", "train", "n_checked", "n_users", "k", "passed")

    @property
    def passed(self) -> bool:
        """Whether no problem was found."""
        return not self.names_at("problem")

    def _notes(self) -> list[str]:
        users = "user" if self.n_users == 1 else "users"
        checked = f"checked: {self.n_users:,} test {users}, {self.k:,} places for each"
        if self.n_checked < self.n_users:
            checked = checked.replace(":", f": {self.n_checked:,} of", 1) + ", drawn at random"
        notes = [f"source: {self.source}", f"test: {self.test}"]
        if self.train is not None:
            notes.append(f"train: {self.train}")
        notes.append(checked)
        notes += [f"{f.name} ({f.what}): {f.sentence}" for f in self.findings if f.count]
        unchecked: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.count is None:
                unchecked.setdefault(finding.sentence, []).append(finding.name)
        notes += [f"{', '.join(names)}: {why}" for why, names in unchecked.items()]
        problems = self.names_at("problem")
        phrase = "There is a problem" if len(problems) == 1 else "There are problems"
        named = f"{phrase}: {', '.join(problems)}."
        return [*notes, named if problems else "No problem was found."]

    def __repr__(self) -> str:
        return f"<Preflight: {', '.join(self.names_at('problem')) or 'no problem'}>"


def check(
    source: Source | Recommender,
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    catalogue: object = None,
    k: int = 10,
    n_users: int | None = 1000,
    protocol: str | Protocol = "recometer",
    seed: int = 0,
    threads: int | None = None,
    **rules: Unpack[Rules],
) -> Preflight:
    """Check the output of a model before it is evaluated.

    The checks find out whether two calls agree, whether scores distinguish items, whether ranks
    agree with lists, whether the source knows the users and items, how it ranks training items, and
    whether the model is better than chance. The outcome of each check is a finding with a count,
    examples, and its effect on an evaluation.

    Parameters
    ----------
    source, test, train, candidates, exclude, catalogue
        The arguments of `evaluate`. A model with ``recommend(...)`` is called twice.
    k
        The number of places to check in each list.
    n_users
        The number of test users to check, drawn at random; None means all of them. All users are
        also checked if the data have no ids, or if the source contains the test data. Unknown users
        and items are always counted over all test interactions.
    protocol, **rules
        The rules that the evaluation will follow, as in `evaluate`.
    seed
        The seed for drawing users.
    threads
        The maximum number of threads. None uses all available processors.

    Returns
    -------
    Preflight

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        If `evaluate` would raise this error for the same arguments.

    Examples
    --------
    >>> import recometer as rm
    >>> source = rm.Scores(
    ...     [[3.0, 2.0, 2.0], [1.0, 1.0, 1.0]],
    ...     user_ids=["ann", "bob"],
    ...     item_ids=["book", "film", "song"],
    ... )
    >>> preflight = rm.check(source, {"ann": ["film"], "bob": ["song"], "cleo": ["game"]})
    >>> preflight["constant_scores"].examples
    ('bob',)
    >>> preflight["test_users_unknown"].count, preflight["test_items_unknown"].examples
    (1, ('game',))
    >>> preflight["changes_between_calls"].sentence
    'Both calls returned the same output.'
    """
    k = _count(k, "k")
    if are_folds(test):
        raise InputError(
            "Folds are checked one at a time. Hint: rm.check(source, next(iter(folds)))."
        )
    if is_split(test):
        test, train = parts_of(test, train)
    truth = None if test is None else read_interactions(test, "test")
    checked = None if truth is None else _draw_users(truth, n_users, seed_of(seed))
    check_evaluable(source, test)
    evaluator = Evaluator(
        checked,
        train=train,
        candidates=candidates,
        exclude=exclude,
        metrics=f"ndcg@{k}",
        protocol=protocol,
        catalogue=catalogue,
        seed=seed,
        threads=threads,
        progress=False,
        **rules,
    )
    with warnings.catch_warnings(), waiting("Checking"):
        # The findings replace these warnings.
        warnings.simplefilter("ignore", DataWarning)
        case = evaluator.case(source)
        case.check_ids()
        # Request the lists of a model a second time.
        second = case if isinstance(source, Source) else evaluator.case(source)
        all_test = case.sides.test_as_passed if truth is None else truth
        answers = Answers(case, second.source, all_test, k)
        findings = tuple(
            dataclasses.replace(find(answers), name=name)
            for name, find in checks_of(case.source).items()
        )
    return Preflight(
        findings=findings,
        source=case.source.describe(),
        test=repr(answers.all_test),
        train=None if answers.train is None else repr(answers.train),
        n_checked=answers.test.n_users,
        n_users=answers.all_test.n_users,
        k=k,
    )


def _draw_users(test: Interactions, n_users: int | None, seed: int) -> Interactions:
    """Return the interactions of `n_users` users, drawn from the users with test interactions."""
    if n_users is None:
        return test
    n = _count(n_users, "n_users")
    if test.user_ids is None or test.n_users <= n:
        return test
    users = np.flatnonzero(np.diff(test.indptr))
    if len(users) <= n:
        return test
    chosen = np.random.default_rng(seed).choice(users, n, replace=False)
    return test.select_users(np.sort(chosen))


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**63:
        none = ", or None for all" if name == "n_users" else ""
        raise InputError(f"{name}={brief(value)} must be a whole number, at least 1{none}.")
    return int(value)
