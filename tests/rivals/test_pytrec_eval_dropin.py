"""`recometer.compat.pytrec_eval` gives the same values as pytrec_eval on 10,000 queries."""

from __future__ import annotations

import numpy as np
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat import pytrec_eval as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
DOCUMENTS = [f"d{number}" for number in range(24)]


def case(generator: np.random.Generator) -> tuple[dict, dict, dict]:
    """Draw options, qrels and a run with ties; the qrels and the run may lack some queries.

    No query has only negative judgements, because pytrec_eval 0.5 can hang on such queries.
    """
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in ("q1", "q2", "q3", "q4"):
        documents = [d for d in DOCUMENTS if generator.random() < generator.choice([0.1, 0.5])]
        if generator.random() < 0.9:
            qrels[query] = {d: int(generator.choice([-1, 0, 1, 2, 3])) for d in documents}
            if documents and max(qrels[query].values()) < 0:
                qrels[query][documents[0]] = 0
        listed_documents = generator.permutation(DOCUMENTS)[: generator.integers(0, 24)].tolist()
        if generator.random() < 0.9:
            run[query] = {d: float(generator.integers(0, 12)) / 4 for d in listed_documents}
    options = {
        "relevance_level": int(generator.choice([1, 1, 2])),
        "judged_docs_only_flag": bool(generator.random() < 0.3),
    }
    return qrels, run, options


@in_parts
def test_dropin_values_match_pytrec_eval(part: int) -> None:
    import pytrec_eval as theirs

    measures = ours.supported_measures | {"P.3,7", "ndcg_cut_4", "recall.2", "relative_P.6"}
    for number, generator in numbers(part):
        if number % 4:
            continue
        qrels, run, options = case(generator)
        expected = theirs.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
        result = ours.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
        assert_same(result, expected, number)
        for measure in ("map", "gm_map", "num_ret"):
            columns = (
                [values_of_query[measure] for values_of_query in values_by_query.values()]
                for values_by_query in (result, expected)
            )
            totals = [
                library.compute_aggregated_measure(measure, column) if column else 0.0
                for library, column in zip((ours, theirs), columns, strict=True)
            ]
            assert totals[0] == pytest.approx(totals[1], abs=1e-9)


def test_parsed_files_match_pytrec_eval() -> None:
    import pytrec_eval as theirs

    run = ["q1 Q0 d1 1 2.5 me\n", "q1 Q0 d2 2 1.5 me\n", "q2 Q0 d1 1 0.5 me\n"]
    qrels = ["q1 0 d1 1\n", "q2 0 d7 0\n"]
    assert ours.parse_run(run) == theirs.parse_run(run)
    assert ours.parse_qrel(qrels) == theirs.parse_qrel(qrels)
