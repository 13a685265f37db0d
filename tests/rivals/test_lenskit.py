"""LensKit itself beside its convention."""

import pytest
from _cases import CUTOFFS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["NDCG", "DCG", "Precision", "Recall", "Hit", "RecipRank", "RBP"]


@pytest.mark.parametrize("case", cases(all_have_lists=True), ids=str)
def test_lenskit(case: Case) -> None:
    from lenskit import metrics
    from lenskit.data import ItemList

    found = {}
    for name in NAMES:
        for k in (*CUTOFFS, None):
            metric = getattr(metrics, name)(n=k)
            values = {}
            for user, listed in case.lists.items():
                items, scores = zip(*listed.items(), strict=True)
                recommended = ItemList(item_ids=items, scores=scores, ordered=True)
                truth = ItemList(item_ids=list(case.truth.get(user, {})))
                values[user] = metric.measure_list(recommended, truth)
            found[name + (f"@{k}" if k else "")] = (values, None)
    check("lenskit", rm.Lists(case.lists), case.truth, found)
