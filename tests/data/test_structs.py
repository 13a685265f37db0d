"""Lists may contain structs, as `recommendForAllUsers` of Spark's ALS returns them."""

import collections

import duckdb
import polars as pl
import pytest

import recometer as rm

# User 1 has no recommendations. Those of user 2 are not sorted by rating.
FRAME = pl.DataFrame(
    {
        "user_id": [1, 2, 3],
        "recommendations": [
            [],
            [{"movieId": 3, "rating": 0.5}, {"movieId": 4, "rating": 0.9}],
            [{"movieId": 3, "rating": 0.5}, {"movieId": 4, "rating": 0.1}],
        ],
    }
)
TEST = {1: [3], 2: [4], 3: [4]}
Row = collections.namedtuple("Row", "movieId rating")


def of_rows():
    """Return named rows, like those in frames of Spark's toPandas."""
    frame = FRAME.to_pandas()
    frame["recommendations"] = [
        [Row(**entry) for entry in entries] for entries in FRAME["recommendations"].to_list()
    ]
    return frame


KINDS = {
    "polars": lambda: FRAME,
    "lazy": FRAME.lazy,
    "pandas": FRAME.to_pandas,
    "pandas of Spark": of_rows,
    "arrow": FRAME.to_arrow,
    "duckdb": lambda: duckdb.from_arrow(FRAME.to_arrow()),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_frames(make) -> None:
    result = rm.evaluate(rm.Lists(make()), TEST, metrics="rr")
    assert result["rr"].tolist() == [0, 1, 0.5]


def test_files(tmp_path) -> None:
    for number, rows in enumerate((FRAME[:1], FRAME[1:])):
        rows.write_parquet(tmp_path / f"{number}.parquet")
    assert rm.evaluate(rm.Lists(tmp_path), TEST, metrics="rr")["rr"].tolist() == [0, 1, 0.5]


def test_runs(tmp_path) -> None:
    runs_in_one_frame = pl.concat(
        [FRAME.with_columns(model=pl.lit(name)) for name in ("als", "other")]
    )
    assert [*rm.Lists.each(runs_in_one_frame, by="model")] == ["als", "other"]


def test_interactions() -> None:
    data = rm.Interactions.of(FRAME)
    assert data.to_csr().toarray().tolist() == [[0, 0], [0.5, 0.9], [0.5, 0.1]]


def test_only_lists_of_items_are_unpacked() -> None:
    tags = [[{"id": 1, "name": "new"}], [{"id": 2, "name": "old"}]]
    catalogue = rm.Catalogue(pl.DataFrame({"item_id": [7, 8], "labels": tags, "title": ["A", "B"]}))
    assert catalogue.titles.tolist() == ["A", "B"]


@pytest.mark.parametrize("make", [lambda frame: frame, pl.DataFrame.lazy, pl.DataFrame.to_arrow])
def test_arrays_of_structs(make) -> None:
    of_two = FRAME[1:].with_columns(
        pl.col("recommendations").cast(pl.Array(FRAME.schema["recommendations"].inner, 2))
    )
    result = rm.evaluate(rm.Lists(make(of_two)), TEST, metrics="rr")
    assert result["rr"].tolist() == [0, 1, 0.5]


@pytest.mark.parametrize("make", [lambda frame: frame, pl.DataFrame.to_pandas])
def test_missing_entries_are_refused(make) -> None:
    holes = pl.DataFrame({"user_id": [1], "recommendations": [[None, {"movieId": 3, "rating": 1}]]})
    with pytest.raises(rm.InputError, match=r"column 'movieId'\) have no value in row 0"):
        rm.Lists(make(holes))
