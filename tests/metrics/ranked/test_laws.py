"""Every ranking metric, for all values of its parameters, obeys the laws of `recometer.testing`."""

from __future__ import annotations

import pytest

from recometer.metrics import reading
from recometer.testing import LAWS, at_cutoffs

# Cut-off 9 is greater than the number of items; to save time, test it only without parameters.
EVERY = [
    metric
    for name in reading("ranks")
    for metric in at_cutoffs(name, 1, 3, 9)
    if metric.cutoff != 9 or not metric.parameters
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_ranking_metrics_obey_the_law(law):
    law(EVERY)
