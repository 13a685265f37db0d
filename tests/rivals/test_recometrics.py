"""recometer's convention for recometrics gives the same values as recometrics."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from _cases import CUTOFFS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = pytest.mark.rivals


@pytest.mark.parametrize("values", [None, (-2, 1, 3)])
@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_recometrics(case: Dense, values: tuple[int, ...] | None) -> None:
    """recometrics counts items with negative values as relevant, too."""
    import recometrics

    train, test = sp.csr_matrix(case.train.astype(float)), sp.csr_matrix(case.truth)
    if values is not None:
        test.data[:] = np.resize(values, test.nnz)
    library_values = {}
    for k in CUTOFFS:
        frame = recometrics.calc_reco_metrics(
            train,
            test,
            case.users,
            case.items,
            k=k,
            all_metrics=True,
            break_ties_with_noise=False,
            nthreads=1,
        )
        for name, column in frame.items():
            # recometrics leaves out users with fewer than k candidates, so even AUCs depend on k.
            label = name if "@" in name else f"{name}@{k}"
            library_values[label] = (column.to_dict(), None)
    assert len(library_values) == 10 * len(CUTOFFS)
    check("recometrics", rm.Factors(case.users, case.items), test, library_values, train=train)
