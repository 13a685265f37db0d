"""recometer's convention for ranx gives the same values as ranx."""

import pytest
from _cases import CUTOFFS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["precision", "recall", "hit_rate", "hits", "mrr", "map", "f1"]
NAMES += ["ndcg", "ndcg_burges", "dcg", "dcg_burges"]
METRICS = [f"{name}@{k}" for name in NAMES for k in CUTOFFS] + ["r-precision", "map", "mrr"]


@pytest.mark.parametrize("case", cases(), ids=str)
def test_values_match_ranx(case: Case) -> None:
    from ranx import Qrels, Run, evaluate

    run = Run(case.lists)
    means = evaluate(Qrels(case.truth), run, METRICS, make_comparable=True)
    library_values = {metric: (run.scores[metric], means[metric]) for metric in METRICS}
    check("ranx", rm.Lists(case.lists), case.truth, library_values)
