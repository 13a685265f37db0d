"""recometer's convention for RecPack gives the same values as RecPack."""

import pytest
import scipy.sparse as sp
from _cases import CUTOFFS, ITEMS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["NDCGK", "DCGK", "HitK", "PrecisionK", "RecallK", "CalibratedRecallK", "ReciprocalRankK"]


@pytest.mark.parametrize("case", cases(), ids=str)
def test_values_match_recpack(case: Case) -> None:
    from recpack import metrics

    users = sorted({*case.lists, *case.truth})
    predicted, true = (sp.lil_matrix((len(users), len(ITEMS))) for _ in range(2))
    for row, user in enumerate(users):
        for item, score in case.lists.get(user, {}).items():
            predicted[row, ITEMS.index(item)] = score
        for item in case.truth.get(user, {}):
            true[row, ITEMS.index(item)] = 1
    library_values = {}
    for name in NAMES:
        for k in CUTOFFS:
            metric = getattr(metrics, name)(k)
            metric.calculate(true.tocsr(), predicted.tocsr())
            library_values[f"{name}@{k}"] = (None, metric.value)
    check("recpack", rm.Lists(case.lists), case.truth, library_values)
