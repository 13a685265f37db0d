"""Simple models to compare with.

Each function fits a model to the training data (`Interactions`, or anything that `Interactions.of`
takes) and returns a source for `recometer.evaluate` with the same user and item ids. The functions
need only NumPy and SciPy.

==================  ======================================================================
`random_ranking`    every user's items in random order, which shows what chance achieves
`most_popular`      one ranking for all users, by the number of training users of an item
`item_knn`          items similar to the user's items (cosine similarity)
`truncated_svd`     a low-rank factorisation of the training matrix
`ease`              a linear autoencoder in closed form
==================  ======================================================================

For a user without training items, the last three models give every item the same score.
`most_popular` gives items without training users the lowest score. Neither case raises an error.
Fitting a model again on the same machine gives the same model, bit for bit. On another machine,
`truncated_svd` and `ease` may differ by rounding errors, because linear algebra libraries differ.
"""

from __future__ import annotations

from recometer.baselines._ease import ease
from recometer.baselines._factorisation import truncated_svd
from recometer.baselines._neighbours import item_knn
from recometer.baselines._simple import most_popular, random_ranking

__all__ = ["ease", "item_knn", "most_popular", "random_ranking", "truncated_svd"]
