"""recometer's convention for LensKit gives the same values as LensKit."""

import importlib.metadata

import numpy as np
import pytest
from _cases import CUTOFFS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES: list[tuple[str, dict[str, str]]] = [
    *((name, {}) for name in ("NDCG", "DCG", "Precision", "Recall", "Hit", "RecipRank", "RBP")),
    *((name, {"gain": "rating"}) for name in ("NDCG", "DCG")),
]


@pytest.mark.parametrize("case", cases(all_have_lists=True), ids=str)
def test_values_match_lenskit(case: Case) -> None:
    from lenskit import metrics
    from lenskit.data import ItemList

    library_values = {}
    for name, options in NAMES:
        for k in (*CUTOFFS, None):
            metric = getattr(metrics, name)(n=k, **options)
            values = {}
            for user, scored_items in case.lists.items():
                items, scores = zip(*scored_items.items(), strict=True)
                recommended = ItemList(item_ids=items, scores=scores, ordered=True)
                of_user = case.truth.get(user, {})
                ratings = np.array(list(of_user.values()), float)
                truth = ItemList(item_ids=list(of_user), rating=ratings)
                values[user] = metric.measure_list(recommended, truth)
            gain = "(gain=rating)" if options else ""
            library_values[name + gain + (f"@{k}" if k else "")] = (values, None)
    year = importlib.metadata.version("lenskit").partition(".")[0]
    check(
        "lenskit_2025" if year == "2025" else "lenskit",
        rm.Lists(case.lists),
        case.truth,
        library_values,
    )
