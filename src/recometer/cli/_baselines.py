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


BASELINES: dict[str, Callable[[Interactions, int, bool | None], Source]] = {
    "random": lambda train, seed, progress: baselines.random_ranking(train, seed=seed),
    "popular": lambda train, seed, progress: baselines.most_popular(train),
    "knn": lambda train, seed, progress: baselines.item_knn(
        train, neighbours=NEIGHBOURS, progress=progress
    ),
    "svd": lambda train, seed, progress: baselines.truncated_svd(
        train, factors=n_factors(train), normalise=True, seed=seed, progress=progress
    ),
    "ease": lambda train, seed, progress: baselines.ease(
        train, regularisation=REGULARISATION, progress=progress
    ),
}
"""How each is fitted to the training data, with a seed; and whether to show how far it is."""
