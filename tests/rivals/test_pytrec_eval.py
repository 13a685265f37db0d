"""recometer's convention for trec_eval gives the same values as pytrec_eval."""

import pytest
from _cases import CUTOFFS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
AT = ",".join(map(str, CUTOFFS))
MEASURES = {f"{name}.{AT}" for name in ("P", "recall", "map_cut", "ndcg_cut", "success")}
MEASURES |= {"map", "recip_rank", "Rprec", "ndcg", "bpref", "set_F", "set_P", "set_recall"}


@pytest.mark.parametrize("case", cases(), ids=str)
def test_values_match_pytrec_eval(case: Case) -> None:
    import pytrec_eval

    values = pytrec_eval.RelevanceEvaluator(case.truth, MEASURES).evaluate(case.lists)
    names = sorted({name for of_user in values.values() for name in of_user})
    assert len(names) == 5 * len(CUTOFFS) + 8
    per_user = {name: {user: measures[name] for user, measures in values.items()} for name in names}
    library_values = {
        name: (column, pytrec_eval.compute_aggregated_measure(name, list(column.values())))
        for name, column in per_user.items()
    }
    check("trec_eval", rm.Lists(case.lists), case.truth, library_values)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_values_match_pytrec_eval_with_ties(case: Case) -> None:
    """The runs have ties, including scores that are equal only in single precision."""
    import pytrec_eval

    lists = {
        user: {
            item: round(score, 1) + 1e-10 * position
            for position, (item, score) in enumerate(scores_or_values.items())
        }
        for user, scores_or_values in case.lists.items()
    }
    values = pytrec_eval.RelevanceEvaluator(case.truth, MEASURES).evaluate(lists)
    names = sorted({name for of_user in values.values() for name in of_user})
    library_values = {
        name: ({user: scores_or_values[name] for user, scores_or_values in values.items()}, None)
        for name in names
    }
    check("trec_eval", rm.Lists(lists), case.truth, library_values)
