"""Tests of the intended differences from recometrics, as listed in docs/from_recometrics.md."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import recometrics
import scipy.sparse as sp
from recometrics_cases import as_csr, assert_equal, many_users, request_only, six_items

from recometer import DataWarning, InputError
from recometer.compat.recometrics import calc_reco_metrics, split_reco_train_test

pytestmark = pytest.mark.filterwarnings("ignore:the training data are empty")


@pytest.fixture
def example():
    return six_items()


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("hit",), ["Hit@K"]),
        (("rr",), ["RR@K"]),
        (("hit", "rr", "roc_auc"), ["Hit@K", "RR@K", "ROC_AUC"]),
    ],
)
@pytest.mark.parametrize("cumulative", [False, True])
def test_hit_and_rr_can_be_requested_alone(names, labels, cumulative):
    """recometrics returns uninitialised memory if only hit or RR is requested."""
    options = {"as_df": False, "nthreads": 1, "cumulative": cumulative}
    all_columns = recometrics.calc_reco_metrics(*many_users(), all_metrics=True, **options)
    ours = calc_reco_metrics(*many_users(), **request_only(*names), **options)
    assert_equal(ours, {label: all_columns[label] for label in [*labels, "K"]}, np.float64)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("recall", "R@K"),
        ("trunc_precision", "TP@K"),
        ("trunc_average_precision", "TAP@K"),
        ("pr_auc", "PR_AUC"),
    ],
)
def test_any_metric_can_be_requested_alone(name, label):
    with pytest.raises(ValueError, match="at least one metric"):
        recometrics.calc_reco_metrics(*many_users(), **request_only(name))
    all_columns = recometrics.calc_reco_metrics(*many_users(), all_metrics=True, as_df=False)
    ours = calc_reco_metrics(*many_users(), **request_only(name), as_df=False)
    assert_equal(ours, {label: all_columns[label], "K": 5}, np.float64)


def test_pr_auc_does_not_need_roc_auc():
    """recometrics only sorts the first k items, but computes PR-AUC over all items."""
    theirs = recometrics.calc_reco_metrics(*many_users(), pr_auc=True)
    right = recometrics.calc_reco_metrics(*many_users(), pr_auc=True, roc_auc=True)
    assert (theirs["PR_AUC"] - right["PR_AUC"]).abs().max() > 0.01
    ours = calc_reco_metrics(*many_users(), pr_auc=True)
    pd.testing.assert_series_equal(ours["PR_AUC"], right["PR_AUC"], rtol=1e-12)


def test_min_pos_test_leaves_out_users_with_fewer_test_items(example):
    theirs = recometrics.calc_reco_metrics(*example, k=3, min_pos_test=2)
    assert not theirs["P@3"].isna().any()
    ours = calc_reco_metrics(*example, k=3, min_pos_test=2)
    assert ours["P@3"].isna().tolist() == [False, True, False]


def test_cumulative_ndcg_equals_ndcg_at_each_k(example):
    """In recometrics, cumulative NDCG stays constant beyond the number of relevant items."""
    theirs = recometrics.calc_reco_metrics(*example, k=3, cumulative=True)
    assert theirs["NDCG@3"][1] == theirs["NDCG@1"][1] == 0.0
    ours = calc_reco_metrics(*example, k=3, cumulative=True)
    for k in (1, 2, 3):
        single = recometrics.calc_reco_metrics(*example, k=k)[f"NDCG@{k}"]
        pd.testing.assert_series_equal(ours[f"NDCG@{k}"], single, rtol=1e-12)
    assert ours["NDCG@3"][1] > 0.5


def test_zero_threads_means_one_thread(example):
    with pytest.raises(TypeError):
        recometrics.calc_reco_metrics(*example, nthreads=None)
    pd.testing.assert_frame_equal(
        calc_reco_metrics(*example, nthreads=None), calc_reco_metrics(*example)
    )


def test_cumulative_frame_can_contain_areas(example):
    options = {"k": 2, "cumulative": True, "roc_auc": True, "pr_auc": True}
    with pytest.raises(IndexError):
        recometrics.calc_reco_metrics(*example, **options)
    ours = calc_reco_metrics(*example, **options)
    columns = ["P@1", "P@2", "AP@1", "AP@2", "NDCG@1", "NDCG@2", "ROC_AUC", "PR_AUC"]
    assert list(ours.columns) == columns
    theirs = recometrics.calc_reco_metrics(*example, **options, as_df=False)
    np.testing.assert_allclose(ours["ROC_AUC"], theirs["ROC_AUC"], rtol=1e-12)


def test_k_may_be_1_without_noise(example):
    options = {"k": 1, "break_ties_with_noise": False}
    assert recometrics.calc_reco_metrics(*example, **options).isna().all(axis=None)
    ours = calc_reco_metrics(*example, **options)
    theirs = recometrics.calc_reco_metrics(*example, k=1)
    pd.testing.assert_frame_equal(ours[["AP@1", "NDCG@1"]], theirs[["AP@1", "NDCG@1"]])


def test_ties_in_the_first_places_are_ordered_without_noise(example):
    train, test, users, items = example
    items[1] = items[0]
    options = {"k": 2, "break_ties_with_noise": False}
    assert recometrics.calc_reco_metrics(train, test, users, items, **options).iloc[0].isna().all()
    ours = calc_reco_metrics(train, test, users, items, **options)
    assert ours["P@2"][0] == 0.5  # item 0 is relevant, but item 1 is not
    assert ours["AP@2"][0] == 0.5


@pytest.mark.parametrize("noise", [False, True])
def test_nan_score_is_detected_anywhere(example, noise):
    train, test, users, items = example
    items[5] = np.nan
    if not noise:
        theirs = recometrics.calc_reco_metrics(
            train, test, users, items, k=2, break_ties_with_noise=False
        )
        assert not theirs.iloc[0].isna().any()
    train = train.tolil()
    train[2, 5] = 1.0  # excludes item 5, whose score is NaN, for user 2
    ours = calc_reco_metrics(
        train.tocsr(),
        test - sp.csr_array(([1.0], ([2], [5])), shape=test.shape),
        users,
        items,
        k=2,
        break_ties_with_noise=noise,
    )
    assert ours.isna().all(axis=1).tolist() == [True, True, False]


def test_x_train_of_a_joined_split_has_more_rows_than_x_test():
    interactions = sum(many_users()[:2])
    X_train, X_test, users_test = recometrics.split_reco_train_test(
        interactions, "joined", users_test_fraction=0.5
    )
    _, _, users, items = many_users()
    users = users[users_test]
    with pytest.raises(ValueError), pytest.warns(UserWarning, match="more rows"):
        recometrics.calc_reco_metrics(X_train, X_test, users, items)
    with pytest.warns(DataWarning, match="X_train has 30 users, but X_test has 15"):
        ours = calc_reco_metrics(X_train, X_test, users, items, all_metrics=True)
    theirs = recometrics.calc_reco_metrics(
        X_train[:15], X_test, users, items, all_metrics=True, nthreads=1
    )
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-12)


def test_items_in_train_are_removed_from_test(example):
    train, test, users, items = example
    train_and_test = train.tolil()
    train_and_test[2, 1] = 1.0
    theirs = recometrics.calc_reco_metrics(
        train_and_test.tocsr(), test, users, items, k=2, roc_auc=True
    )
    assert theirs["ROC_AUC"][2] < -1e18
    ours = calc_reco_metrics(train_and_test.tocsr(), test, users, items, k=2, all_metrics=True)
    remaining = test.tolil()
    remaining[2, 1] = 0.0
    expected = recometrics.calc_reco_metrics(
        train_and_test.tocsr(), remaining.tocsr(), users, items, k=2, all_metrics=True
    )
    pd.testing.assert_frame_equal(ours, expected, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1.0), ("float64", 1e5)])
def test_ties_of_large_scores_are_broken(dtype, scale):
    """In recometrics, the noise of 1e-12 is lost to rounding."""
    scores = np.array([1, 1, 1, 1, 0, 0])
    test = sp.csr_array(np.array([[1.0, 0, 1, 0, 0, 0]]))
    factors = np.ones((1, 1), dtype), (scores[:, None] * scale).astype(dtype)
    options = {"k": 2, "as_df": False, "roc_auc": True, "nthreads": 1}
    theirs, ours = (
        {
            float(f(None, test, *factors, seed=seed, **options)["ROC_AUC"][0])
            for seed in range(1, 40)
        }
        for f in (recometrics.calc_reco_metrics, calc_reco_metrics)
    )
    assert len(theirs) == 1
    assert ours == {0.5, 0.625, 0.75, 0.875, 1.0}


def test_noise_does_not_reorder_scores_that_differ():
    """In recometrics, noise reorders scores that differ by less than 1e-12."""
    biases = np.array([0, 1e-13, 2e-13, 3e-13, 1, 2])
    test = sp.csr_array(np.array([[1.0, 0, 1, 0, 0, 0]]))
    options = {"item_biases": biases, "k": 2, "as_df": False, "roc_auc": True, "nthreads": 1}
    theirs, ours = (
        {
            float(f(None, test, None, None, seed=seed, **options)["ROC_AUC"][0])
            for seed in range(1, 20)
        }
        for f in (recometrics.calc_reco_metrics, calc_reco_metrics)
    )
    assert len(theirs) > 1
    assert ours == {0.125}


def test_random_order_depends_only_on_the_seed_and_the_row():
    users, items = np.ones((50, 1)), np.repeat([1.0, 0.0], 10)[:, None]
    test = sp.csr_array(np.eye(50, 20, dtype=float) + np.eye(50, 20, k=-20) + np.eye(50, 20, k=-40))
    options = {"k": 5, "all_metrics": True}
    ours = calc_reco_metrics(None, test, users, items, seed=1, **options)
    same_seed = calc_reco_metrics(None, test, users, items, seed=1, **options)
    first_rows = calc_reco_metrics(None, test[:20], users[:20], items, seed=1, **options)
    other_seed = calc_reco_metrics(None, test, users, items, seed=2, **options)
    pd.testing.assert_frame_equal(ours, same_seed)
    pd.testing.assert_frame_equal(ours[:20], first_rows)
    assert (ours["RR@5"] != other_seed["RR@5"]).any()


def test_repeated_entries_are_summed_with_a_warning(example):
    _, _, users, items = example
    repeated = sp.csr_array(([1.0, 1.0], [2, 2], [0, 2, 2, 2]), shape=(3, 6))
    summed = sp.csr_array(([2.0], [2], [0, 1, 1, 1]), shape=(3, 6))
    with pytest.warns(DataWarning):
        ours = calc_reco_metrics(None, repeated, users, items, k=3)
    pd.testing.assert_frame_equal(ours, calc_reco_metrics(None, summed, users, items, k=3))


def test_nan_in_x_test_is_refused(example):
    train, test, users, items = example
    test.data[0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        calc_reco_metrics(train, test, users, items)


def test_split_rounds_in_single_precision_like_recometrics():
    """recometrics converts items_test_fraction to float32, in which 5 * 0.9 is below 4.5."""
    double = as_csr([(np.arange(5), np.ones(5))], 9)
    single = double.astype(np.float32)
    held_out = [
        [split(X, "all", items_test_fraction=0.9)[1].nnz for X in (double, single)]
        for split in (recometrics.split_reco_train_test, split_reco_train_test)
    ]
    assert held_out == [[5, 4], [5, 5]]
