"""recometer's convention for implicit gives the same values as implicit."""

import numpy as np
import pytest
import scipy.sparse as sp
from _cases import CUTOFFS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_implicit(case: Dense, signed: bool) -> None:
    """implicit treats every item with a stored value as relevant, even if the value is negative."""
    truth = case.truth * np.where(np.arange(case.truth.shape[1]) % 2 == 1, -1, 1)
    _compare(case.users, case.items, case.train, truth if signed else case.truth)


@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_implicit_with_ties(case: Dense) -> None:
    """The test skips a cut-off if it splits a tie, since implicit may then list any tied item."""
    items = case.items.copy()
    items[0] = items[22]
    _compare(case.users, items, case.train, case.truth)


def _compare(
    users: np.ndarray, items: np.ndarray, train_items: np.ndarray, truth: np.ndarray
) -> None:
    from implicit.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k

    model = AlternatingLeastSquares(factors=users.shape[1], num_threads=1)
    model.user_factors = users.astype(np.float32)
    model.item_factors = items.astype(np.float32)
    train = sp.csr_matrix(train_items.astype(np.float32))
    test = sp.csr_matrix(truth.astype(np.float32))
    scores = -np.sort(-np.where(train_items, -np.inf, users @ items.T))
    library_values = {}
    for k in CUTOFFS:
        last, next_one = scores[:, k - 1], scores[:, k]
        if ((last == next_one) & np.isfinite(last)).any():
            continue
        means = ranking_metrics_at_k(model, train, test, K=k, show_progress=False, num_threads=1)
        library_values |= {f"{name}@{k}": (None, mean) for name, mean in means.items()}
    check("implicit", rm.Factors(users, items), test, library_values, train=train)
