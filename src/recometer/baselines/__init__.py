"""Simple models to compare with.

Each function fits a model to the training data (`Interactions`, or anything that `Interactions.of`
takes) and returns a source for `recometer.evaluate` that has the same user and item ids. They only
need NumPy and SciPy.

==================  ======================================================================
`random_ranking`    every user's items in random order, which shows what chance achieves
`most_popular`      one ranking for all users, by the number of training users of an item
`item_knn`          items similar to those of the user (cosine similarity)
`truncated_svd`     a low-rank factorisation of the training matrix
`ease`              a linear autoencoder in closed form
==================  ======================================================================

For a user without training items, the last three give the same score to every item. An item without
training users gets the lowest score from `most_popular`. Neither raises an error. A model that is
fitted again on the same machine is the same to the last bit. On another machine, `truncated_svd`
and `ease` may differ by rounding, because the libraries for linear algebra do.
"""

from __future__ import annotations

from recometer.baselines._ease import ease
from recometer.baselines._factorisation import truncated_svd
from recometer.baselines._neighbours import item_knn
from recometer.baselines._simple import most_popular, random_ranking

__all__ = ["ease", "item_knn", "most_popular", "random_ranking", "truncated_svd"]
