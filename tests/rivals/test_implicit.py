"""implicit itself beside its convention."""

import numpy as np
import pytest
import scipy.sparse as sp
from _cases import CUTOFFS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_implicit(case: Dense) -> None:
    from implicit.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k

    model = AlternatingLeastSquares(factors=case.users.shape[1], num_threads=1)
    model.user_factors = case.users.astype(np.float32)
    model.item_factors = case.items.astype(np.float32)
    train = sp.csr_matrix(case.train.astype(np.float32))
    test = sp.csr_matrix(case.truth.astype(np.float32))
    found = {}
    for k in CUTOFFS:
        means = ranking_metrics_at_k(model, train, test, K=k, show_progress=False, num_threads=1)
        found |= {f"{name}@{k}": (None, mean) for name, mean in means.items()}
    check("implicit", rm.Factors(case.users, case.items), test, found, train=train)
