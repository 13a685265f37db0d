"""The baselines that the command line fits, by the names that it gives them."""

from __future__ import annotations

from collections.abc import Callable

from recometer import baselines
from recometer.data.interactions import Interactions
from recometer.sources.base import Source

BASELINES: dict[str, Callable[[Interactions, int, bool | None], Source]] = {
    "random": lambda train, seed, progress: baselines.random_ranking(train, seed=seed),
    "popular": lambda train, seed, progress: baselines.most_popular(train),
    "knn": lambda train, seed, progress: baselines.item_knn(train, progress=progress),
    "svd": lambda train, seed, progress: baselines.truncated_svd(
        train, seed=seed, progress=progress
    ),
    "ease": lambda train, seed, progress: baselines.ease(train, progress=progress),
}
"""How each is fitted to the training data, with a seed; and whether to show how far it is.

All else is as in Python, so that both give the same numbers.
"""
