"""The drop-in for pytrec_eval returns the same values as pytrec_eval-terrier 0.5.11."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recometer as rm
from recometer.compat import pytrec_eval

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1, "d9": -1}, "q2": {"d1": 1}, "q3": {"d4": 0}}
RUN = {
    "q1": {"d1": 0.5, "d2": 0.5, "d7": 0.9, "d3": 0.1},
    "q3": {"d4": 1.0, "d1": 2.0},
    "q9": {"d1": 1.0},
}
MEASURES = {"map", "ndcg", "P.1,3", "bpref", "set_map", "gm_map", "num_rel_ret", "num_ret"}

# The values that pytrec_eval-terrier 0.5.11 returns for query q1, with different options.
PRINTED: list[tuple[dict[str, Any], dict[str, float]]] = [
    (
        {},
        {
            "P_1": 0.0,
            "P_3": 0.3333333333333333,
            "bpref": 0.0,
            "gm_map": -0.8754687373539001,
            "map": 0.41666666666666663,
            "ndcg": 0.543791241910304,
            "num_rel_ret": 2.0,
            "num_ret": 4.0,
            "set_map": 0.5,
        },
    ),
    (
        {"relevance_level": 2},
        {
            "P_1": 0.0,
            "P_3": 0.3333333333333333,
            "bpref": 0.0,
            "gm_map": -1.0986122886681098,
            "map": 0.3333333333333333,
            "ndcg": 0.543791241910304,
            "num_rel_ret": 1.0,
            "num_ret": 4.0,
            "set_map": 0.25,
        },
    ),
    (
        {"judged_docs_only_flag": True},
        {
            "P_1": 0.0,
            "P_3": 0.6666666666666666,
            "bpref": 0.0,
            "gm_map": -0.5389965007326871,
            "map": 0.5833333333333333,
            "ndcg": 0.66967181649423,
            "num_rel_ret": 2.0,
            "num_ret": 3.0,
            "set_map": 0.6666666666666666,
        },
    ),
]


@pytest.mark.parametrize(("options", "numbers"), PRINTED)
def test_values_equal_those_of_pytrec_eval(
    options: dict[str, Any], numbers: dict[str, float]
) -> None:
    values = pytrec_eval.RelevanceEvaluator(QRELS, MEASURES, **options).evaluate(RUN)
    assert list(values) == ["q1", "q3"]
    assert values["q1"] == pytest.approx(numbers, abs=1e-12)
    values_without_documents = dict.fromkeys(numbers, 0.0) | {"gm_map": -11.512925464970229}
    values_without_documents["num_ret"] = 1.0 if "judged_docs_only_flag" in options else 2.0
    assert values["q3"] == pytest.approx(values_without_documents, abs=1e-12)


def test_measures_without_cutoffs_get_the_cutoffs_of_trec_eval() -> None:
    values = pytrec_eval.RelevanceEvaluator(QRELS, {"success", "set"}).evaluate(RUN)["q1"]
    assert {"success_1", "success_5", "success_10"} < set(values)
    assert {"set_P", "set_recall", "set_F", "set_map", "num_q"} < set(values)


def test_queries_without_documents_have_no_values() -> None:
    evaluator = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "num_ret"})
    assert evaluator.evaluate({}) == {}
    assert evaluator.evaluate({"q1": {}}) == {"q1": {"map": 0.0, "num_ret": 0.0}}


def test_values_of_queries_are_aggregated_as_in_pytrec_eval() -> None:
    total = pytrec_eval.compute_aggregated_measure
    assert total("map", [0.5, 1.0]) == 0.75
    assert total("num_ret", [2.0, 3.0]) == 5.0
    assert total("gm_map", [0.0, 0.0]) == 1.0


def test_lines_of_runs_and_qrels_are_parsed() -> None:
    run = pytrec_eval.parse_run(["q1 Q0 d1 1 2.5 me\n", "q1 Q0 d2 2 1.5 me\n"])
    assert run == {"q1": {"d1": 2.5, "d2": 1.5}}
    assert pytrec_eval.parse_qrel(["q1 0 d1 2\n"]) == {"q1": {"d1": 2}}
    with pytest.raises(rm.InputError, match="Line 2: 'd1' occurs twice"):
        pytrec_eval.parse_qrel(["q1 0 d1 2\n", "q1 0 d1 1\n"])
    with pytest.raises(rm.InputError, match="Line 1 has 3 fields, but must have 4"):
        pytrec_eval.parse_qrel(["q1 0 d1\n"])


@pytest.mark.parametrize("measure", ["infAP", "map.5", "ndcgcut"])
def test_unknown_measure_is_refused(measure: str) -> None:
    with pytest.raises(rm.UnknownNameError, match=f"has no measure '{measure}'"):
        pytrec_eval.RelevanceEvaluator(QRELS, {measure})


def draw_case(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Draw qrels, a run with many ties, and options."""
    rng = np.random.default_rng(seed)
    documents = [f"d{number}" for number in range(20)] + ["ä", "z\U0001f600", "z\uffee"]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in ("q1", "q2", "q3", "q4"):
        judged_documents = rng.permutation(documents)[: rng.integers(0, 9)].tolist()
        qrels[query] = {document: int(rng.choice([-1, 0, 1, 2])) for document in judged_documents}
        listed_documents = rng.permutation(documents)[: rng.integers(0, 23)].tolist()
        n_scores = rng.choice([3, 99])
        run[query] = {
            document: float(rng.integers(0, n_scores)) / 4 for document in listed_documents
        }
    return qrels, run, {"relevance_level": int(rng.integers(1, 3))}


@pytest.mark.parametrize("max_ties", [0, 2**18])
def test_places_of_sources_match_lists(monkeypatch, max_ties: int) -> None:
    """Ranking only the judged documents gives exactly the same values as reading complete lists."""
    monkeypatch.setattr(pytrec_eval, "MOST_TIED", max_ties)
    measures = pytrec_eval.supported_measures | {"P.3,7", "ndcg_cut_4"}
    for seed in range(12):
        qrels, run, options = draw_case(seed)
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures, **options)
        values = evaluator.evaluate(run)
        with monkeypatch.context() as patched:
            patched.setattr(pytrec_eval, "judged_ranks", lambda *_: None)
            assert values == evaluator.evaluate(run)


@pytest.mark.parametrize("score", [np.nan, np.inf, 1e308])
def test_nan_or_huge_scores_are_evaluated_as_lists(score: float) -> None:
    run = {"q": {"d1": score, "d2": 1.0, "d3": 1e308}}
    judged = {"q": {"d2": 1, "d3": 1}}
    assert pytrec_eval.judged_ranks(run, judged) is None
    if score == 1e308:
        values = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
        expected = rm.evaluate(rm.Lists(run), judged, metrics="map", protocol="trec_eval").mean()
        assert values == {"q": expected}


def test_scores_equal_in_single_precision_are_ordered_by_id(monkeypatch) -> None:
    """pytrec_eval-terrier 0.5.11 reads these scores in single precision, so it returns 0.5."""
    run, judged = {"q": {"d1": 0.99999999, "d3": 0.99999998}}, {"q": {"d1": 1}}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"})
    assert evaluator.evaluate(run) == {"q": {"recip_rank": 0.5}}
    monkeypatch.setattr(pytrec_eval, "judged_ranks", lambda *_: None)
    assert evaluator.evaluate(run) == {"q": {"recip_rank": 0.5}}


def test_documents_of_other_types_are_rejected() -> None:
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"d1": 1}}, {"map"})
    with pytest.raises(rm.InputTypeError):
        evaluator.evaluate({"q": {1: 0.5}})  # type: ignore[dict-item]
