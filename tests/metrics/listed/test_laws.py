"""Laws that hold for every metric of lists, with every value of its parameters."""

from __future__ import annotations

import pytest

from recometer.metrics import METRICS, mean_over_pairs, metric, reading
from recometer.testing import LIST_LAWS, check_laws
from recometer.testing.laws import at_cutoffs

EVERY = [each for name in reading("lists") for each in at_cutoffs(name, 2, 7)]


@pytest.mark.parametrize("law", LIST_LAWS, ids=lambda law: law.__name__)
def test_law(law):
    law(EVERY)


def test_a_distance_of_ones_own():
    @metric(
        formula="mean over pairs of whether the categories differ",
        record="lists",
        side=("categories",),
        without=("pairs",),
        order_free=True,
    )
    def different(data, cutoffs):
        """Share of the pairs of items whose categories differ."""
        table = data.categories.toarray()
        return mean_over_pairs(
            data, cutoffs, lambda one, other: (table[one] != table[other]).any(axis=1)
        )

    try:
        check_laws("different")
    finally:
        del METRICS["different"]
