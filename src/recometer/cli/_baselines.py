"""The baselines that the command line fits, by the names that it gives them."""

from __future__ import annotations

from collections.abc import Callable

from recometer import baselines
from recometer.data.interactions import Interactions
from recometer.sources.base import Source

NEIGHBOURS = 100
FACTORS = 64
REGULARISATION = 250.0


def n_factors(train: Interactions) -> int:
    """Return how many factors are fitted: with all of them, they would repeat train."""
    return max(1, min(FACTORS, train.n_users // 4, train.n_items // 4))


BASELINES: dict[str, Callable[[Interactions, int], Source]] = {
    "random": lambda train, seed: baselines.random_ranking(train, seed=seed),
    "popular": lambda train, seed: baselines.most_popular(train),
    "knn": lambda train, seed: baselines.item_knn(train, neighbours=NEIGHBOURS),
    "svd": lambda train, seed: baselines.truncated_svd(
        train, factors=n_factors(train), normalise=True, seed=seed
    ),
    "ease": lambda train, seed: baselines.ease(train, regularisation=REGULARISATION),
}
"""How each is fitted to the training data, with a seed."""
