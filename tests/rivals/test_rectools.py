"""recometer's convention for RecTools gives the same values as RecTools."""

import pandas as pd
import pytest
from _cases import CUTOFFS, ITEMS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
OPTIONS = {
    "Precision": {},
    "Precision(r_precision=True)": {"r_precision": True},
    "Recall": {},
    "HitRate": {},
    "F1Beta": {},
    "MAP": {},
    "MAP(divide_by_k=True)": {"divide_by_k": True},
    "NDCG": {},
    "NDCG(divide_by_achievable=True)": {"divide_by_achievable": True},
    "MRR": {},
    "PartialAUC": {},
    "PAP": {},
    "Accuracy": {},
    "MCC": {},
}


@pytest.mark.parametrize("case", cases(), ids=str)
def test_values_match_rectools(case: Case) -> None:
    from rectools import metrics

    lists = pd.DataFrame(
        [
            (user, item, rank)
            for user, items in case.lists.items()
            for rank, item in enumerate(items, 1)
        ],
        columns=["user_id", "item_id", "rank"],
    )
    pairs = [(user, item) for user, items in case.truth.items() for item in items]
    truth = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    library_values = {}
    for name, options in OPTIONS.items():
        kind = name.partition("(")[0]
        arguments = [lists, truth, ITEMS] if kind in ("Accuracy", "MCC") else [lists, truth]
        for k in CUTOFFS:
            metric = getattr(metrics, kind)(k, **options)
            values = metric.calc_per_user(*arguments).to_dict()
            library_values[f"{name}@{k}"] = (values, metric.calc(*arguments))
    check("rectools", rm.Lists(lists), truth, library_values, catalogue=ITEMS)
