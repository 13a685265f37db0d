"""Tests that implausibly large user positions are refused before memory is allocated."""

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm

LAST = 2**31 - 2


@pytest.mark.parametrize(
    "options",
    [
        {"data": sp.coo_array(([1.0], ([LAST], [0])), shape=(LAST + 1, 3))},
        {"data": np.array([[LAST], [0]]), "n_users": LAST + 1, "n_items": 3},
        {"data": {LAST: [0]}, "n_users": LAST + 1, "n_items": 3},
    ],
    ids=["sparse", "edges", "dict"],
)
def test_implausibly_large_user_positions_are_refused(options):
    with pytest.raises(
        rm.InputError, match=r"users are the positions 0 to .* only 1 entries\. Hint: if"
    ):
        rm.Interactions.of(**options)
