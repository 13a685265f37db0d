"""`recometer.compat.ranx` gives the same values as ranx on 10,000 queries in 3,334 calls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat import ranx as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
DOCUMENTS = [f"d{number:02}" for number in range(30)]
NAMES = ["precision", "recall", "hit_rate", "hits", "mrr", "map", "f1", "ndcg", "ndcg_burges"]
METRICS = [*NAMES, *(f"{name}@3" for name in NAMES), "dcg@5", "dcg_burges@7", "r-precision"]
METRICS += ["rbp.80", "rbp.95", "ndcg@5-l2", "recall-l3", "map@4-l2", "rbp.50-l2", "bpref"]
COLUMNS = ["q_id", "doc_id", "score"]


def case(generator: np.random.Generator) -> tuple[dict, dict]:
    """Draw qrels and a run, in which only lists of up to 15 documents have ties."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in ("q3", "q1", "q2"):
        judged = generator.permutation(DOCUMENTS)[: generator.integers(4, 12)].tolist()
        grades = [0, 0, 3, *generator.integers(0, 4, len(judged) - 3).tolist()]
        qrels[query] = dict(zip(judged, grades, strict=True))
        length = int(generator.integers(1, 26))
        scores = generator.permutation(1000)[:length] / 8
        if length < 16 and generator.random() < 0.5:
            scores = generator.integers(0, 4, length) / 4
        documents = generator.permutation(DOCUMENTS)[:length].tolist()
        if generator.random() < 0.9:
            run[query] = dict(zip(documents, scores.tolist(), strict=True))
    if generator.random() < 0.1:
        run["q9"] = {"d01": 1.0}
    if not run:
        run["q1"] = {"d01": 1.0}
    return qrels, run


def frame(queries: dict) -> pd.DataFrame:
    rows = [
        (query, *row)
        for query, values_of_documents in queries.items()
        for row in values_of_documents.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


@in_parts
def test_dropin_values_match_ranx(part: int) -> None:
    import ranx as theirs

    for number, generator in numbers(part):
        if number % 3:
            continue
        qrels, run = case(generator)
        options = {"return_mean": number % 9 > 0, "return_std": number % 9 == 6}
        options["make_comparable"] = True
        their_run = theirs.Run(run)
        expected = theirs.evaluate(theirs.Qrels(qrels), their_run, METRICS, **options)
        our_run = ours.Run(run)
        our_data = ours.Qrels(qrels), our_run
        if number % 2:
            our_data = ours.Qrels(frame(qrels)), ours.Run(frame(run))
        result = ours.evaluate(*our_data, METRICS, **options)
        plain = {name: np.asarray(values).tolist() if not isinstance(values, dict) else values
                 for name, values in expected.items()}  # fmt: skip
        assert_same(result, plain, number)
        if not number % 2:
            assert_same(our_run.mean_scores, their_run.mean_scores, number)
            their_scores = {name: dict(values) for name, values in their_run.scores.items()}
            assert_same(dict(our_run.scores), their_scores, number)


def test_single_metric_of_dicts_matches_ranx() -> None:
    import ranx as theirs

    _, generator = next(numbers(0))
    qrels, run = case(generator)
    run = {query: run.get(query, {"d01": 1.0}) for query in qrels}
    for name in ("ndcg@5", "map"):
        expected = theirs.evaluate(qrels, run, name)
        assert ours.evaluate(qrels, run, name) == pytest.approx(expected, abs=1e-12)
        assert ours.evaluate(theirs.Qrels(qrels), theirs.Run(run), name) == pytest.approx(expected)
