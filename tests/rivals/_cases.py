"""Random lists and score matrices, with relevant items, for comparisons with other libraries."""

from __future__ import annotations

import dataclasses

import numpy as np

N_CASES = 50
N_ITEMS = 30
ITEMS = [f"i{item:02}" for item in range(N_ITEMS)]
CUTOFFS = (1, 3, 5, 10)


@dataclasses.dataclass(frozen=True)
class Case:
    """Recommendations and relevant items, in a form that every library's test can convert.

    Attributes
    ----------
    lists : dict of user to {item: score}
        The items of each user, best first, with distinct scores.
    truth : dict of user to {item: grade}
        The relevant items of each user, with grades from 1 to 3.
    """

    number: int
    lists: dict[str, dict[str, float]]
    truth: dict[str, dict[str, int]]

    def __str__(self) -> str:
        return f"case {self.number}"


@dataclasses.dataclass(frozen=True)
class Dense:
    """A model that scores all items for all users, with training and test data.

    Attributes
    ----------
    users, items : float64 [n_users, 4] and [n_items, 4]
        The factors, whose products are the scores; a user's scores are distinct.
    train : bool [n_users, n_items]
    truth : float64 [n_users, n_items]
        The grades of the items, which are 0 for irrelevant items and for training items.
    """

    number: int
    users: np.ndarray
    items: np.ndarray
    train: np.ndarray
    truth: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        return self.users @ self.items.T

    def __str__(self) -> str:
        return f"case {self.number}"


def cases(*, all_have_lists: bool = False, all_have_truth: bool = False) -> list[Case]:
    """Make cases in which some users have short lists, no list, or no relevant items."""
    return [_case(number, all_have_lists, all_have_truth) for number in range(N_CASES)]


def _case(number: int, all_have_lists: bool, all_have_truth: bool) -> Case:
    generator = np.random.default_rng([2026, number])
    lists: dict[str, dict[str, float]] = {}
    truth: dict[str, dict[str, int]] = {}
    for user in (f"u{place:02}" for place in range(12)):
        length = int(generator.choice([0, 2, 5, 10, 14]))
        length = max(length, 1) if all_have_lists else length
        relevant = int(generator.choice([0, 1, 2, 4, 8]))
        relevant = max(relevant, 1) if all_have_truth else relevant
        items = generator.permutation(N_ITEMS)[:length]
        scores = -np.sort(-generator.choice(np.arange(1, 100), length, replace=False)) / 100
        if length:
            lists[user] = {
                ITEMS[item]: float(score) for item, score in zip(items, scores, strict=True)
            }
        if relevant:
            relevant_items = generator.permutation(N_ITEMS)[:relevant]
            truth[user] = {ITEMS[item]: int(generator.integers(1, 4)) for item in relevant_items}
    return Case(number, lists, truth)


def dense_cases() -> list[Dense]:
    """Make cases in which some users have no relevant items or few candidates."""
    return [_dense(number) for number in range(N_CASES)]


def _dense(number: int) -> Dense:
    generator = np.random.default_rng([2027, number])
    # The factors are integers, so their products are exact even in float32.
    users, items = (generator.integers(-40, 40, (n, 4)).astype(float) for n in (12, N_ITEMS))
    scores = users @ items.T
    while any(len(np.unique(row)) < N_ITEMS for row in scores):
        users = generator.integers(-40, 40, (12, 4)).astype(float)
        scores = users @ items.T
    share = generator.random((12, N_ITEMS))
    train = share < generator.choice([0.0, 0.1, 0.4], (12, 1))
    truth = np.where(share > generator.choice([0.7, 0.9, 1.0], (12, 1)), 1.0, 0.0)
    truth *= generator.integers(1, 4, truth.shape)
    return Dense(number, users, items, train, truth)
