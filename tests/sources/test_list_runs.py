"""Tests of tables that contain the lists of several runs."""

import polars as pl
import pytest

import recometer as rm
from recometer.errors import ColumnError, DataWarning

TEST = {"ann": ["x"], "bob": ["y"]}
ROWS = {
    "user": ["ann", "ann", "bob", "bob"] * 2,
    "item": ["x", "y", "y", "z", "z", "x", "z", "x"],
    "rank": [1, 2] * 4,
    "algorithm": ["als"] * 4 + ["bpr"] * 4,
}
VALUES_OF_RUNS = {"als": [1.0, 1.0], "bpr": [0.5, 0.0]}
REPEATED_RANKS = r"4 rows repeat a rank of their user \(the first: user 'ann' and rank 1\)"
HINT = r"column 'algorithm' distinguishes 'als', 'bpr': rm\.Lists\.each\(data, by='algorithm'\)"


def values(runs):
    return {
        run: rm.evaluate(lists, TEST, metrics="rr")["rr"].tolist() for run, lists in runs.items()
    }


def sources(tmp_path, frame):
    frame.write_csv(tmp_path / "runs.csv")
    frame.write_parquet(tmp_path / "runs.parquet")
    files = [tmp_path / "runs.csv", tmp_path / "runs.parquet"]
    return [frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), *files]


def test_mixed_runs_with_ranks_cause_a_warning_and_can_be_separated(tmp_path):
    frame = pl.DataFrame(ROWS)
    for data in sources(tmp_path, frame):
        with pytest.warns(DataWarning, match=f"{REPEATED_RANKS}.*{HINT}"):
            rm.Lists(data)
        assert values(rm.Lists.each(data, by="algorithm")) == VALUES_OF_RUNS


def test_mixed_runs_with_scores_cause_a_warning_and_can_be_separated(tmp_path):
    frame = pl.DataFrame(ROWS).with_columns(score=-pl.col("rank")).drop("rank")
    for data in sources(tmp_path, frame):
        with pytest.warns(
            DataWarning, match=r"According to column 'algorithm' .* belong to several runs"
        ):
            rm.Lists(data)
        assert values(rm.Lists.each(data, by="algorithm")) == VALUES_OF_RUNS


def test_runs_are_read_by_score_if_a_score_column_is_named():
    frame = pl.DataFrame(ROWS).with_columns(score=pl.col("rank"))
    runs = rm.Lists.each(frame, by="algorithm", score="score")
    assert values(runs) == {"als": [0.5, 0.5], "bpr": [1.0, 0.0]}


def test_repeated_ranks_cause_a_warning_even_without_a_column_of_runs():
    frame = pl.DataFrame(ROWS).drop("algorithm")
    with pytest.warns(DataWarning, match=rf"{REPEATED_RANKS}.*if runs are mixed: .*by='COLUMN'\)"):
        rm.Lists(frame)


def test_unmixed_runs_cause_no_warning():
    frame = pl.DataFrame(ROWS)
    rm.Lists(frame.filter(algorithm="als"))
    # Each of the two models provides the lists of some users, so no user's lists are mixed.
    rm.Lists(frame.filter((pl.col("user") == "ann") == (pl.col("algorithm") == "als")))
    # Two items share rank 2, and there is no rank 3.
    ties = {"user": [1] * 4 + [2] * 4, "item": [1, 2, 3, 4] * 2, "rank": [1, 2, 2, 4] * 2}
    assert rm.Lists(pl.DataFrame(ties)).describe() == "Lists: 2 lists, 8 entries, up to 4 each"


@pytest.mark.parametrize(
    ("n_runs", "printed"), [(3, r"\(0, 1, 2\)"), (4, r"\(0, 1, 2, ... \(4 in all\)\)")]
)
def test_runs_may_be_named_by_numbers(n_runs, printed):
    runs = [run for run in range(n_runs) for _ in range(2)]
    columns = {"user": ["ann"] * len(runs), "item": ["x", "y"] * n_runs, "run": runs}
    with pytest.warns(DataWarning, match=f"According to column 'run' {printed}, .* several runs"):
        rm.Lists(pl.DataFrame(columns), score=False)
    by_run = rm.Lists.each(pl.DataFrame(columns), by="run")  # run numbers cause no warning
    assert list(by_run) == list(range(n_runs))
    assert all("2 entries" in lists.describe() for lists in by_run.values())


def test_options_of_lists_apply_to_each_run():
    frame = pl.DataFrame(ROWS).rename({"user": "who", "rank": "slot"})
    runs = rm.Lists.each(frame, by="algorithm", user="who", rank="slot", depth=1)
    assert values(runs) == {"als": [1.0, 1.0], "bpr": [0.0, 0.0]}


def test_runs_that_cannot_be_separated_are_refused(tmp_path):
    with pytest.raises(ColumnError, match=r"no column 'algoritm'.*Did you mean 'algorithm'"):
        rm.Lists.each(pl.DataFrame(ROWS), by="algoritm")
    pl.DataFrame(ROWS).write_csv(tmp_path / "runs.csv")
    with pytest.raises(rm.InputTypeError, match="by= must be the name of a column, found list"):
        rm.Lists.each(tmp_path / "runs.csv", by=["algorithm"])
    with pytest.raises(rm.InputTypeError, match="by= must be the name of a column, found list"):
        rm.Lists.each(pl.DataFrame(ROWS), by=["algorithm"])
    with pytest.raises(rm.InputTypeError, match="The runs in dict cannot be separated"):
        rm.Lists.each({"ann": ["x"]}, by="algorithm")
    with pytest.raises(rm.InputError, match=r"runs \(column 'algorithm'\) .* row 1"):
        rm.Lists.each(pl.DataFrame({**ROWS, "algorithm": ["als", *[None] * 7]}), by="algorithm")
