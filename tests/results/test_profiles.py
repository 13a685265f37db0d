"""Tests of `by_popularity`, which counts relevant items and hits in bands of popularity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import recometer as rm

N_USERS, N_ITEMS, N_BANDS = 40, 25, 5
Matrix = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def data() -> dict[str, Matrix]:
    """Draw scores with many ties, training items of descending popularity, and test data."""
    rng = np.random.default_rng(3)
    popular = np.linspace(0.8, 0.02, N_ITEMS)
    train = rng.random((N_USERS, N_ITEMS)) < popular
    train[:, -3:] = False
    test = (rng.random((N_USERS, N_ITEMS)) < 0.3) & ~train
    scores = rng.integers(0, 4, (N_USERS, N_ITEMS))
    return {"scores": scores.astype(float), "train": train * 1.0, "test": test * 1.0}


def _band_of(train: Matrix) -> npt.NDArray[np.int64]:
    """Compute the band of each item by comparing the item with all other items."""
    users = train.sum(axis=0)
    above = np.array([users[users > own_count].sum() for own_count in users])
    return np.minimum((N_BANDS * above / users.sum()).astype(int), N_BANDS - 1)


def _evaluate(data: dict[str, Matrix], test: Matrix, **rules: Any) -> rm.Evaluation:
    source, train = rm.Scores(data["scores"]), data["train"]
    return rm.evaluate(source, test, train=train, metrics="recall@4 hit@2", **rules)


@pytest.mark.parametrize("ties", ["expected", "item"])
def test_each_band_matches_a_test_with_only_its_items(data: dict[str, Matrix], ties: str) -> None:
    profile = _evaluate(data, data["test"], ties=ties).by_popularity
    assert profile is not None
    assert profile.cutoff == 4
    bands, users = _band_of(data["train"]), data["train"].sum(axis=0)
    for band in range(N_BANDS):
        test_of_band = data["test"] * (bands == band)
        result = _evaluate(data, test_of_band, ties=ties, undefined=0.0)
        np.testing.assert_array_equal(profile.relevant[:, band], test_of_band.sum(axis=1))
        # A user's number of hits is the recall times the number of the user's relevant items.
        expected = result["recall@4"] * result.n_relevant
        np.testing.assert_allclose(profile.found[:, band], expected, rtol=1e-6)
        assert profile.ranges[band] == (users[bands == band].min(), users[bands == band].max())


@pytest.mark.parametrize(
    "ties", ["expected", "optimistic", "pessimistic", "random", "item", "item_desc"]
)
def test_bands_add_up_to_recall(data: dict[str, Matrix], ties: str) -> None:
    result = _evaluate(data, data["test"], ties=ties, undefined=0.0)
    assert result.by_popularity is not None
    n_found = result["recall@4"] * result.n_relevant
    np.testing.assert_allclose(result.by_popularity.found.sum(axis=1), n_found, rtol=1e-6)
    np.testing.assert_array_equal(result.by_popularity.relevant.sum(axis=1), result.n_relevant)


@pytest.mark.parametrize("ties", ["expected", "item", "random"])
def test_items_just_beyond_the_cutoff_do_not_count_as_hits(ties: str) -> None:
    scores, train = rm.Scores([[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]]), np.array([[0, 0, 0, 0, 0, 1.0]])
    test = np.array([[0, 0, 0, 1, 1, 0]])
    metrics = "recall@4 roc_auc"  # roc_auc requests the whole ranking, beyond the cut-off 4
    result = rm.evaluate(scores, test, train=train, metrics=metrics, ties=ties).by_popularity
    assert result is not None
    assert result.cutoff == 4
    assert (result.found.sum(), result.relevant.sum()) == (1, 2)


def test_items_missing_from_the_source_or_train_are_counted() -> None:
    train = {"ann": ["a", "b"], "bob": ["a"], "cid": ["a", "b", "c"]}
    lists = rm.Lists({"ann": ["c", "d"], "bob": ["b", "b"], "cid": ["e", "d"]})
    test = {"ann": ["c", "x"], "bob": ["b"], "cid": ["f", "x"]}
    with pytest.warns(rm.DataWarning, match="repeat an item"):
        result = rm.evaluate(lists, test, train=train, metrics="recall@2").by_popularity
    assert result is not None
    # Half of the training rows contain item a, a third contain item b, and a sixth contain item c.
    assert result.ranges == ((3, 3), (0, 0), (2, 2), (0, 0), (0, 1))
    np.testing.assert_array_equal(
        result.relevant, [[0, 0, 0, 0, 2], [0, 0, 1, 0, 0], [0, 0, 0, 0, 2]]
    )
    np.testing.assert_array_equal(result.found, [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0], [0] * 5])


def test_item_repeated_in_test_counts_once() -> None:
    train = {"ann": ["a", "b"], "bob": ["a"], "cid": ["c"]}
    test = {"cid": ["a", "a", "b"]}
    source = rm.Lists({"cid": ["a", "b"]})
    with pytest.warns(rm.DataWarning, match="1 of 3 interactions repeat a pair"):
        result = rm.evaluate(
            source, test, train=train, metrics="recall@1", repeated_test="counted"
        ).by_popularity
    assert result is not None
    assert result.relevant.sum() == 2
    assert result.found.sum() == 1


def test_item_repeated_in_a_list_counts_once() -> None:
    train = {"ann": ["c"], "bob": ["c", "a"]}
    result = rm.evaluate(
        rm.Lists({"ann": ["a", "a", "b"]}), {"ann": ["a", "b"]}, train=train,
        metrics="recall@3", duplicates="counted",
    ).by_popularity  # fmt: skip
    assert result is not None
    assert (result.found.sum(), result.relevant.sum()) == (2, 2)


def test_profiles_are_saved_and_selected_with_their_users(
    data: dict[str, Matrix], tmp_path: Path
) -> None:
    result = _evaluate(data, data["test"])
    result.save(tmp_path / "one.parquet")
    saved, original = rm.load(tmp_path / "one.parquet").by_popularity, result.by_popularity
    selected = result.of_users([3, 1]).by_popularity
    assert saved is not None
    assert original is not None
    assert selected is not None
    assert (saved.cutoff, saved.ranges) == (original.cutoff, original.ranges)
    np.testing.assert_array_equal(saved.relevant, original.relevant)
    np.testing.assert_array_equal(saved.found, original.found)
    np.testing.assert_array_equal(selected.found, original.found[[3, 1]])


def test_profiles_need_train_and_ranks(data: dict[str, Matrix]) -> None:
    source, test = rm.Scores(data["scores"]), data["test"]
    assert rm.evaluate(source, test, metrics="recall@4").by_popularity is None
    list_result = rm.evaluate(source, test, train=data["train"], metrics="coverage@3")
    assert list_result.by_popularity is None
    profile = rm.evaluate(source, test, train=data["train"], metrics="roc_auc").by_popularity
    assert profile is not None
    assert profile.cutoff == 10
