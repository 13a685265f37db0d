"""scikit-learn itself beside its convention."""

import numpy as np
import pytest
from _cases import CUTOFFS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
WHOLE = ["roc_auc_score", "average_precision_score", "label_ranking_average_precision_score"]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_sklearn(case: Dense, ties: bool) -> None:
    from sklearn import metrics

    scores = np.round(case.scores / 500) if ties else case.scores
    users = range(len(scores))
    found = {}
    for name in ("ndcg_score", "dcg_score"):
        for k in CUTOFFS:
            score = getattr(metrics, name)
            values = {u: score(case.truth[[u]], scores[[u]], k=k) for u in users}
            found[f"{name}@{k}"] = (values, score(case.truth, scores, k=k))
    relevant = case.truth > 0
    for name in WHOLE:
        score = getattr(metrics, name)
        one_row = name.startswith("label")
        values = {
            u: score(relevant[[u]], scores[[u]]) if one_row else score(relevant[u], scores[u])
            for u in users
            if name != "roc_auc_score" or 0 < relevant[u].sum() < relevant.shape[1]
        }
        found[name] = (values, None)
    check("sklearn", rm.Scores(scores), case.truth, found)
