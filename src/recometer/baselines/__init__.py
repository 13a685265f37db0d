"""Simple models to read an evaluation against.

Each is fitted on the training data, `Interactions` or what `Interactions.of` takes, carries
their user and item ids, and returns a source for `recometer.evaluate`. They need nothing but
NumPy and SciPy.

==================  ======================================================================
`random_ranking`    every user's items in random order: what luck alone reaches
`most_popular`      one ranking for all users, by the number of training users of an item
`item_knn`          items similar to those of the user (cosine similarity)
`truncated_svd`     a low-rank factorisation of the training matrix
`ease`              a linear autoencoder in closed form
==================  ======================================================================

A user without training items gets the same score for every item from the last three, an
item without training users the lowest one from popularity; nothing fails on either. Fitted
again on the same machine, a model has the same bits; elsewhere `truncated_svd` and `ease` may
differ by rounding, as the libraries for linear algebra do.
"""

from __future__ import annotations

from recometer.baselines._ease import ease
from recometer.baselines._factorisation import truncated_svd
from recometer.baselines._neighbours import item_knn
from recometer.baselines._simple import most_popular, random_ranking

__all__ = ["ease", "item_knn", "most_popular", "random_ranking", "truncated_svd"]
