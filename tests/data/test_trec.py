"""Tests that TREC runs and qrels are read as trec_eval reads them."""

import gzip

import pytest

import recometer as rm

RUN = """301 Q0 D-3 1 2.5 mine
301\tQ0\tD-1  7   2.5\tmine more words
302 Q0 7 1 1e-3 mine

301 Q0 D-2 3 9 mine
"""
QRELS = """301 0 D-1 1
301 0 D-2 0
301 0 D-3 -1
302 0 7 2\r
"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "results.test"
    path.write_text(RUN)
    return path


@pytest.fixture
def qrels(tmp_path):
    path = tmp_path / "qrels.test"
    path.write_text(QRELS)
    return path


def test_qrels_leave_out_negative_judgements(qrels):
    data = rm.Interactions.of(qrels)
    assert data.user_ids.tolist() == ["301", "302"]
    assert data.item_ids.tolist() == ["7", "D-1", "D-2"]
    # In qrels, a negative value marks a document that nobody judged, and 0 an irrelevant document.
    assert data.values.tolist() == [1.0, 0.0, 2.0]


def test_ratings_with_times_are_not_read_as_qrels(tmp_path):
    path = tmp_path / "u.data"
    path.write_text("196\t242\t3\t881250949\n")
    with pytest.raises(rm.FileError, match="unsupported extension"):
        rm.Interactions.of(path)


def test_run_is_ranked_by_score(run, qrels):
    result = rm.evaluate(rm.Lists(run), qrels, metrics="rr ndcg")
    assert result["rr"].tolist() == pytest.approx([(1 / 2 + 1 / 3) / 2, 1.0])
    assert result.user_ids.tolist() == ["301", "302"]


def test_item_desc_orders_equal_scores_like_trec_eval(run, qrels):
    # Equal scores are ordered by descending document id, so D-3 comes before D-1.
    result = rm.evaluate(rm.Lists(run), qrels, metrics="rr", ties="item_desc")
    assert result["rr"].tolist() == [1 / 3, 1.0]


def test_relevant_from_applies_to_qrels(run, qrels):
    result = rm.evaluate(rm.Lists(run), qrels, metrics="rr", relevant_from=2, undefined=0)
    assert result["rr"].tolist() == [0.0, 1.0]


def test_compressed_runs_and_qrels_are_read(tmp_path, run, qrels):
    for path in (run, qrels):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    packed = rm.evaluate(
        rm.Lists(tmp_path / "results.test.gz"), tmp_path / "qrels.test.gz", metrics="rr"
    )
    assert packed["rr"].tolist() == rm.evaluate(rm.Lists(run), qrels, metrics="rr")["rr"].tolist()


def test_runs_and_qrels_are_not_confused(run, qrels):
    with pytest.raises(rm.FileError, match=r"TREC qrels.*as test"):
        rm.Lists(qrels)
    with pytest.raises(rm.FileError, match=r"TREC run.*rm\.Lists"):
        rm.Interactions.of(run)


def test_column_options_are_refused_for_runs_and_qrels(run, qrels):
    with pytest.raises(rm.InputError, match="score= does not apply to a TREC run"):
        rm.Lists(run, score="score")
    with pytest.raises(rm.InputError, match="value= does not apply to qrels"):
        rm.Interactions.of(qrels, value="value")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("301 Q0 D-9 1 high mine", "line 6 is '301 Q0 D-9 1 high mine'"),
        ("301 Q0 D-9 1 2.5", "line 6.*expected topic Q0 document rank score run"),
    ],
)
def test_invalid_lines_in_a_run_are_refused(run, line, message):
    run.write_text(RUN + line)
    with pytest.raises(rm.FileError, match=message):
        rm.Lists(run)


@pytest.mark.parametrize("line", ["301 0 D-9", "301 0 D-9 0.5", "301 0 D-9 1 more"])
def test_invalid_lines_in_qrels_are_refused(qrels, line):
    qrels.write_text(QRELS + line)
    with pytest.raises(rm.FileError, match=r"line 5.*expected topic 0 document relevance"):
        rm.Interactions.of(qrels)


def test_files_of_unknown_kind_are_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("this is a text of some length\n")
    for read in (rm.Lists, rm.Interactions.of):
        with pytest.raises(rm.FileError, match="TREC"):
            read(path)
    with pytest.raises(rm.FileError, match="There is no file"):
        rm.Lists(tmp_path / "missing.run")


def test_damaged_runs_are_refused(tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(RUN.encode())[:20])
    with pytest.raises(rm.FileError, match="cannot be read"):
        rm.Lists(path)
    path.write_bytes(b"301 Q0 \xff 1 2.5 mine\n")
    with pytest.raises(rm.FileError, match="cannot be read"):
        rm.Lists(path)
