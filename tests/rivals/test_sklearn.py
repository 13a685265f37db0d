"""recometer's convention for scikit-learn gives the same values as scikit-learn."""

import numpy as np
import pytest
from _cases import CUTOFFS, Dense, dense_cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
WHOLE = ["roc_auc_score", "average_precision_score", "label_ranking_average_precision_score"]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_scikit_learn(case: Dense, ties: bool) -> None:
    from sklearn import metrics

    scores = np.round(case.scores / 500) if ties else case.scores
    users = range(len(scores))
    library_values = {}
    for name in ("ndcg_score", "dcg_score"):
        for k in CUTOFFS:
            score = getattr(metrics, name)
            values = {u: score(case.truth[[u]], scores[[u]], k=k) for u in users}
            library_values[f"{name}@{k}"] = (values, score(case.truth, scores, k=k))
    relevant = case.truth > 0
    for name in WHOLE:
        score = getattr(metrics, name)
        one_row = name.startswith("label")
        values = {
            u: score(relevant[[u]], scores[[u]]) if one_row else score(relevant[u], scores[u])
            for u in users
            if name != "roc_auc_score" or 0 < relevant[u].sum() < relevant.shape[1]
        }
        library_values[name] = (values, None)
    check("sklearn", rm.Scores(scores), case.truth, library_values)


@pytest.mark.parametrize("case", dense_cases(), ids=str)
def test_values_match_scikit_learn_with_negative_labels(case: Dense) -> None:
    """The test uses negative gains for DCG, and labels of -1 and 1 for the other metrics."""
    from sklearn import metrics

    scores, odd = np.round(case.scores / 500), np.arange(case.truth.shape[1]) % 2 == 1
    users = range(len(scores))
    signed = np.where(odd, -case.truth, case.truth)
    library_values = {}
    for k in CUTOFFS:
        of_users = {u: metrics.dcg_score(signed[[u]], scores[[u]], k=k) for u in users}
        library_values[f"dcg_score@{k}"] = (of_users, metrics.dcg_score(signed, scores, k=k))
    check("sklearn", rm.Scores(scores), signed, library_values)

    label = np.where(case.truth > 0, 1, -1)
    users_with_both = [u for u in users if 0 < (label[u] > 0).sum() < label.shape[1]]
    library_values = {
        name: ({u: getattr(metrics, name)(label[u], scores[u]) for u in users_with_both}, None)
        for name in ("roc_auc_score", "average_precision_score")
    }
    labels_of_both = np.where(np.isin(users, users_with_both)[:, np.newaxis], label, 0)
    library_values["average_precision_score"][0].update(
        {u: 0.0 for u in users if u not in users_with_both}
    )
    check("sklearn", rm.Scores(scores), labels_of_both, library_values)
