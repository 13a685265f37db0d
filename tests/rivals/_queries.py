"""Random queries with one row per document, for comparisons with boosted-tree libraries."""

from __future__ import annotations

import dataclasses

import numpy as np

N_CASES = 50
CUTOFFS = (1, 3, 5, 10)


@dataclasses.dataclass(frozen=True)
class Queries:
    """Documents with labels and scores, grouped by query.

    Attributes
    ----------
    sizes : int [n_queries]
        The number of documents in each query. At least one query has 12 documents.
    query, label : int [n_rows]
        The query and the label of each document. Labels range from 0 to 3; in some queries, all
        labels are 0, and in some, none are.
    score : float64 [n_rows]
        The score of each document. Every second case has ties, half of which exist only in
        float32.
    """

    number: int
    sizes: np.ndarray
    query: np.ndarray
    label: np.ndarray
    score: np.ndarray

    def __str__(self) -> str:
        return f"case {self.number}"


def queries() -> list[Queries]:
    """Return `N_CASES` random cases."""
    return [_case(number) for number in range(N_CASES)]


def _case(number: int) -> Queries:
    generator = np.random.default_rng([2028, number])
    sizes = np.append(generator.choice([1, 2, 3, 6, 12, 20], 7), 12)
    query = np.repeat(np.arange(len(sizes)), sizes)
    share = generator.choice([0, 0.3, 0.6, 1.0], len(sizes))[query]
    label = np.where(generator.random(len(query)) < share, generator.integers(1, 4, len(query)), 0)
    steps = 4 if number % 2 else 4096
    score = generator.integers(-2 * steps, 2 * steps, len(query)) / steps
    if number % 4 == 1:
        score += 1e-12 * generator.integers(0, 3, len(query))
    return Queries(number, sizes, query, label, score)
