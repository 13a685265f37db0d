"""recometer's convention for XGBoost gives the same values as XGBoost."""

import numpy as np
import pytest
from _compare import check
from _queries import CUTOFFS, Queries, queries

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("case", queries(), ids=str)
def test_values_match_xgboost(case: Queries) -> None:
    of_grades = values(case, case.label, "rank:ndcg", names("ndcg"))
    linear = values(case, case.label, "rank:ndcg", ["ndcg", "ndcg@5"], ndcg_exp_gain=False)
    for name, mean in linear.items():
        of_grades[name.replace("ndcg", "ndcg(ndcg_exp_gain=False)")] = mean
    relevant = (case.label > 0).astype(int)
    measures = [*names("map"), "pre", *(f"pre@{k}" for k in CUTOFFS)]
    of_relevant = values(case, relevant, "rank:map", measures)
    for label, printed in ((case.label, of_grades), (relevant, of_relevant)):
        means = {name: (None, mean) for name, mean in printed.items()}
        check("xgboost", rm.Pairs.of(label, case.score, case.query), None, means)


@pytest.mark.parametrize("case", queries(), ids=str)
def test_values_match_xgboost_with_negative_labels(case: Queries) -> None:
    """The negative labels are small, since XGBoost only accepts a positive ideal DCG."""
    unseen = (case.label == 0) & np.isin(case.query, case.query[case.label > 0])
    label = np.where(unseen & (np.arange(len(unseen)) % 2 == 0), -1 / 16, case.label)
    linear = values(case, label, "rank:ndcg", ["ndcg", "ndcg@5"], ndcg_exp_gain=False)
    library_values = {
        name.replace("ndcg", "ndcg(ndcg_exp_gain=False)"): (None, mean)
        for name, mean in linear.items()
    }
    source = rm.Pairs.of(label, case.score, case.query)
    check("xgboost", source, None, library_values, tolerance=1e-6)


def names(metric: str) -> list[str]:
    return [metric, f"{metric}-", *(f"{metric}@{k}{end}" for k in CUTOFFS for end in ("", "-"))]


def values(
    case: Queries, label: np.ndarray, objective: str, measures: list[str], **parameters: object
) -> dict[str, float]:
    """Let XGBoost evaluate the scores, which are the initial scores of a model without trees."""
    import xgboost

    data = xgboost.DMatrix(np.zeros((len(label), 1)), label=label, base_margin=case.score)
    data.set_group(case.sizes)
    settings = {"objective": objective, "eval_metric": measures, "nthread": 1, **parameters}
    printed = xgboost.train(settings, data, num_boost_round=0).eval(data, name="case")
    pairs = (part.rsplit(":", 1) for part in printed.split("\t")[1:])
    return {name.removeprefix("case-"): float(value) for name, value in pairs}
