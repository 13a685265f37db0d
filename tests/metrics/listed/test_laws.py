"""Every list metric, for all values of its parameters, obeys the laws of `recometer.testing`."""

from __future__ import annotations

import numpy as np
import pytest

from recometer.metrics import METRICS, mean_over_pairs, metric, reading
from recometer.testing import LIST_LAWS, ListCase, at_cutoffs, check_laws

EVERY = [variant for name in reading("lists") for variant in at_cutoffs(name, 2, 7)]


@pytest.mark.parametrize("law", LIST_LAWS, ids=lambda law: law.__name__)
def test_list_metrics_obey_the_law(law):
    law(EVERY)


def test_custom_distance_obeys_the_laws():
    @metric(
        formula="mean over pairs of whether the categories differ",
        record="lists",
        side=("categories",),
        without=("pairs",),
        order_free=True,
    )
    def different(data, cutoffs):
        """Return the share of item pairs whose categories differ."""
        table = data.categories.toarray()
        return mean_over_pairs(
            data, cutoffs, lambda left, right: (table[left] != table[right]).any(axis=1)
        )

    try:
        check_laws("different")
    finally:
        del METRICS["different"]


def test_distances_are_averaged_over_the_pairs_of_each_list():
    """The six pairs of items 0, 1, 2 and 3 have the distances 1, 2, 3, 1, 2 and 1."""
    case = ListCase(
        n_items=6, lists=[[0, 1, 2, 3], [5, 0], [4]], baseline=[[]] * 3, train=[{}] * 3,
        test=[{}] * 3, unlisted=[], categories=[frozenset()] * 6, n_categories=1,
        features=[[1.0]] * 6, n_catalogue=6,
    )  # fmt: skip
    cutoffs = np.array([1, 2, 4])
    distances = mean_over_pairs(
        case.data(), cutoffs, lambda left, right: np.abs(left - right) * 1.0
    )
    np.testing.assert_allclose(distances, [[0, 1, 10 / 6], [0, 5, 5], [0, 0, 0]])
