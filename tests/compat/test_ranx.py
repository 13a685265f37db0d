"""The drop-in for ranx returns the same values as ranx 0.3.21, for dicts and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.compat.ranx import Qrels, Run, evaluate

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 1, "d5": 3, "d4": 0}}
RUN = {"q2": {"d4": 1.0, "d1": 2.0}, "q1": {"d1": 0.5, "d2": 0.6, "d7": 0.9, "d3": 0.1}}

# The means that ranx 0.3.21 returns for evaluate(Qrels(QRELS), Run(RUN), list(MEANS),
# return_std=True).
MEANS = {
    "ndcg@3": 0.3277526595460605,
    "map": 0.4583333333333333,
    "mrr@2": 0.5,
    "rbp.80": 0.2792,
    "recall@2-l2": 0.0,
    "precision": 0.5,
}
STD_OF_RBP = 0.07920000000000002
# The means that ranx 0.3.21 returns for Run({"q2": RUN["q2"]}) with make_comparable=True.
OF_ONE_QUERY = {
    "ndcg@3": 0.13770577618809332,
    "map": 0.25,
    "mrr@2": 0.5,
    "rbp.80": 0.09999999999999998,
    "recall@2-l2": 0.0,
    "precision": 0.25,
}


def frame(queries: dict[str, dict[str, Any]], names: list[str]) -> pl.DataFrame:
    rows = [
        (query, *row)
        for query, values_of_documents in queries.items()
        for row in values_of_documents.items()
    ]
    return pl.DataFrame(rows, names, orient="row")


def forms() -> list[tuple[Any, Any]]:
    default, other_names = ["q_id", "doc_id", "score"], ["query", "text", "number"]
    own_run = frame(RUN, other_names).to_pandas()
    return [
        (QRELS, RUN),
        (Qrels.from_dict(QRELS), Run.from_dict(RUN, name="mine")),
        (frame(QRELS, default), frame(RUN, default)),
        (
            Qrels.from_df(frame(QRELS, other_names), *other_names),
            Run.from_df(own_run, *other_names),
        ),
    ]


@pytest.mark.parametrize(("qrels", "run"), forms())
def test_means_equal_those_of_ranx(qrels: Any, run: Any) -> None:
    assert evaluate(qrels, run, list(MEANS)) == pytest.approx(MEANS, abs=1e-12)
    assert evaluate(qrels, run, "map") == pytest.approx(MEANS["map"], abs=1e-12)


def test_values_of_queries_are_in_the_order_of_their_ids() -> None:
    result = evaluate(QRELS, RUN, ["map", "mrr@2"], return_mean=False)
    np.testing.assert_allclose(result["map"], [0.4166666666666667, 0.5])
    assert result["mrr@2"].tolist() == [0.0, 1.0]
    spread = evaluate(QRELS, RUN, "rbp.80", return_std=True)
    assert spread == pytest.approx({"mean": MEANS["rbp.80"], "std": STD_OF_RBP}, abs=1e-12)


def test_run_keeps_its_results() -> None:
    run = Run(RUN)
    evaluate(Qrels(QRELS), run, ["map", "mrr@2"], return_std=True)
    assert run.mean_scores["map"] == pytest.approx(MEANS["map"])
    assert run.std_scores["mrr@2"] == 0.5
    assert run.scores["mrr@2"] == {"q1": 0.0, "q2": 1.0}


def test_queries_missing_on_one_side_are_refused_unless_made_comparable() -> None:
    run = {"q2": RUN["q2"], "q7": {"d1": 1.0}}
    with pytest.raises(rm.InputError, match=r"2 queries are only in.*'q1'.*make_comparable"):
        evaluate(QRELS, run, "map")
    result = evaluate(QRELS, run, list(MEANS), make_comparable=True)
    assert result == pytest.approx(OF_ONE_QUERY, abs=1e-12)
    assert evaluate(QRELS, {"q1": {}, "q2": {}}, "map") == 0.0


@pytest.mark.parametrize("as_frames", [False, True])
def test_run_without_any_judged_query_counts_as_empty(as_frames: bool) -> None:
    """Like ranx 0.3.21, the drop-in returns only zeros, both as means and as values per query."""
    qrels: Any = {"q1": {"d1": 1}, "q2": {"d2": 2}}
    run: Any = {"q9": {"d1": 1.0}}
    if as_frames:
        names = ["q_id", "doc_id", "score"]
        qrels, run = frame(qrels, names), frame(run, names)
    result = evaluate(qrels, run, ["ndcg@3", "mrr"], make_comparable=True)
    assert result == {"ndcg@3": 0.0, "mrr": 0.0}
    values = evaluate(qrels, run, "mrr", make_comparable=True, return_mean=False)
    assert values.tolist() == [0.0, 0.0]
    empty = {"q9": {"d1": 1.0}, "q1": {}}
    if not as_frames:
        assert evaluate(qrels, empty, "mrr", make_comparable=True) == 0.0


def test_trec_files_are_read_like_dicts(tmp_path: Any) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text(
        "".join(
            f"{q} 0 {d} {g}\n"
            for q, values_of_documents in QRELS.items()
            for d, g in values_of_documents.items()
        )
    )
    run.write_text(
        "".join(
            f"{q} Q0 {d} 1 {s} me\n"
            for q, values_of_documents in RUN.items()
            for d, s in values_of_documents.items()
        )
    )
    result = evaluate(Qrels.from_file(str(qrels)), Run.from_file(str(run)), list(MEANS))
    assert result == pytest.approx(MEANS, abs=1e-12)
    assert Run.from_file(str(run)).to_dict() == RUN
    assert len(Qrels.from_file(str(qrels))) == 2


def test_unknown_metrics_and_data_are_refused() -> None:
    with pytest.raises(rm.UnknownNameError, match=r"ranx has no metric 'ndgc@3'"):
        evaluate(QRELS, RUN, "ndgc@3")
    with pytest.raises(rm.InputError, match="level of 'map-l0'"):
        evaluate(QRELS, RUN, "map-l0")
    with pytest.raises(rm.InputTypeError, match="Qrels takes a dict of dicts or a data frame"):
        evaluate([1, 2], RUN, "map")
