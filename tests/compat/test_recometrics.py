"""`calc_reco_metrics` returns the same values as the function of the same name in recometrics."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import recometrics
import scipy.sparse as sp
from recometrics_cases import as_csr, assert_equal, random_case, request_only, six_items

import recometer as rm
from recometer import DataWarning, InputError, InputTypeError, UnknownNameError
from recometer.compat.recometrics import (
    calc_reco_metrics,
    split_reco_train_test,
)

N_CASES = 240


@pytest.fixture
def example():
    return six_items()


def separate_ndcg(arguments, options):
    """Return NDCG@1 to NDCG@k, each computed by a separate call.

    recometrics' cumulative NDCG stays constant beyond the number of relevant items.
    """
    single = request_only("ndcg", "average_precision") | {
        name: options[name] for name in ("item_biases", "consider_cold_start", "nthreads")
    }
    single |= {"as_df": False, "min_items_pool": max(options["min_items_pool"], options["k"])}
    columns = [
        recometrics.calc_reco_metrics(*arguments, k=k, **single)["NDCG@K"]
        for k in range(1, options["k"] + 1)
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("batch", range(N_CASES // 10))
def test_values_equal_those_of_recometrics(batch):
    for seed in range(10 * batch, 10 * batch + 10):
        arguments, options = random_case(seed)
        theirs = recometrics.calc_reco_metrics(*arguments, **options)
        if options["cumulative"] and "NDCG@K" in theirs:
            # Replace only defined values.
            is_undefined = np.isnan(theirs["NDCG@K"])
            theirs["NDCG@K"] = np.where(is_undefined, np.nan, separate_ndcg(arguments, options))
        dtype = next(iter(theirs.values())).dtype
        assert_equal(calc_reco_metrics(*arguments, **options), theirs, dtype)


def test_cases_cover_defined_and_undefined_values():
    """In every column, about half of the values in the generated cases are NaN."""
    share = {}
    for seed in range(N_CASES):
        arguments, options = random_case(seed)
        theirs = recometrics.calc_reco_metrics(*arguments, **options)
        for label in theirs.keys() - {"K"}:
            share.setdefault((label, options["cumulative"]), []).append(
                np.isnan(theirs[label]).ravel()
            )
    assert len(share) == 20
    for values in share.values():
        assert 0.3 < np.concatenate(values).mean() < 0.7


def test_values_of_a_thousand_users_equal_those_of_recometrics():
    """Relevant items' scores are far from all other scores, so rounding cannot change ranks."""
    rng = np.random.default_rng(5)
    n_users, n_items = 40, 1000
    users = rng.normal(size=(n_users, 16)).astype(np.float32)
    items = rng.normal(size=(n_items, 16)).astype(np.float32)
    scores = users.astype(float) @ items.T.astype(float)
    train, test = [], []
    for row in scores:
        gaps = np.diff(np.sort(row))
        clear = np.argsort(row)[1:-1][np.minimum(gaps[1:], gaps[:-1]) > 1e-4]
        chosen_items = rng.choice(clear, 40, replace=False)
        train.append((chosen_items[:20], np.ones(20)))
        test.append((chosen_items[20:], rng.integers(1, 6, 20).astype(float)))
    arguments = as_csr(train, n_items), as_csr(test, n_items), users, items
    options = {"all_metrics": True, "as_df": False, "k": 10, "nthreads": 1}
    theirs = recometrics.calc_reco_metrics(*arguments, **options)
    assert_equal(calc_reco_metrics(*arguments, **options), theirs, np.float32)


def test_ties_without_noise_go_to_the_lower_item():
    """recometrics breaks ties by item number if it sorts all items or if there are at most 16."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n_users, n_items = 8, 12
        arguments = (
            None,
            as_csr(
                [
                    (rng.permutation(n_items)[:n], rng.integers(1, 6, n).astype(float))
                    for n in rng.integers(1, n_items - 1, n_users)
                ],
                n_items,
            ),
            rng.integers(-1, 2, (n_users, 2)).astype(float),
            rng.integers(-1, 2, (n_items, 2)).astype(float),
        )
        options = {
            "all_metrics": True,
            "as_df": False,
            "k": int(rng.integers(1, 6)),
            "break_ties_with_noise": False,
            "nthreads": 1,
        }
        theirs = recometrics.calc_reco_metrics(*arguments, **options)
        assert_equal(calc_reco_metrics(*arguments, **options), theirs, np.float64)


@pytest.mark.parametrize("ours", [calc_reco_metrics, split_reco_train_test])
def test_parameters_and_defaults_equal_those_of_recometrics(ours):
    theirs = getattr(recometrics, ours.__name__)

    def parameters(function):
        return [
            (p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()
        ]

    of_r = ("by_rows", "sort_indices", "names")
    shared = [entry for entry in parameters(ours) if entry[0] in of_r]
    assert all(kind == inspect.Parameter.KEYWORD_ONLY for _, _, kind in shared)
    assert [entry for entry in parameters(ours) if entry not in shared] == parameters(theirs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"all_metrics": True},
        {"k": 3, "rename_k": False, "recall": True, "hit": True},
        {"k": 3, "cumulative": True, "rr": True, "ndcg": False},
        {"k": 1, "cumulative": True},
        {"precision": False, "average_precision": False, "ndcg": False, "roc_auc": True},
    ],
)
def test_data_frame_matches_recometrics(example, options):
    theirs = recometrics.calc_reco_metrics(*example, nthreads=1, **options)
    pd.testing.assert_frame_equal(
        calc_reco_metrics(*example, nthreads=1, **options), theirs, rtol=1e-12
    )
    single = [None if matrix is None else matrix.astype(np.float32) for matrix in example]
    theirs = recometrics.calc_reco_metrics(*single, nthreads=1, **options)
    pd.testing.assert_frame_equal(
        calc_reco_metrics(*single, nthreads=1, **options), theirs, rtol=1e-6
    )


@pytest.mark.parametrize("cumulative", [False, True])
def test_dict_matches_recometrics(example, cumulative):
    options = {"k": 1, "all_metrics": True, "as_df": False, "cumulative": cumulative}
    theirs = recometrics.calc_reco_metrics(*example, nthreads=1, **options)
    assert_equal(calc_reco_metrics(*example, nthreads=1, **options), theirs, np.float64)


@pytest.mark.parametrize("types", ["ff", "fd", "df", "dd"])
def test_results_are_in_single_precision_only_if_both_factors_are(example, types):
    train, test, users, items = example
    users, items = users.astype(types[0]), items.astype(types[1])
    biases = np.array([0.5, 0, 0, 0, 0, 0.25])
    ours = calc_reco_metrics(train, test, users, items, item_biases=biases, as_df=False)
    assert ours["P@K"].dtype == (np.float32 if types == "ff" else np.float64)


def test_only_item_biases_are_computed_in_double_precision(example):
    train, test, _, items = example
    for biases in (items[:, 0].astype(np.float32), pd.Series(items[:, 0]), items[:, :1]):
        ours = calc_reco_metrics(train, test, None, None, item_biases=biases, as_df=False, k=2)
        theirs = recometrics.calc_reco_metrics(
            train, test, None, None, item_biases=biases, as_df=False, k=2
        )
        assert_equal(ours, theirs, np.float64)


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array", "lil_array"])
def test_any_sparse_format_is_accepted(example, form):
    train, test, users, items = example
    as_form = getattr(sp, form)
    expected = calc_reco_metrics(*example, k=3)
    ours = calc_reco_metrics(as_form(train), as_form(test), users, items, k=3)
    pd.testing.assert_frame_equal(ours, expected)


def test_dict_output_needs_no_pandas(example, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert calc_reco_metrics(*example, as_df=False, k=3)["K"] == 3
    with pytest.raises(rm.MissingExtraError, match=r"Hint: pip install .*pandas") as caught:
        calc_reco_metrics(*example)
    assert isinstance(caught.value, ImportError)


def test_import_loads_few_modules():
    heavy = "{'pandas', 'scipy', 'polars'}"
    code = f"import sys, recometer.compat.recometrics; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_seed_can_be_a_generator(example):
    for make in (np.random.default_rng, np.random.RandomState):
        random_state = make(3)
        draw = (
            random_state.integers
            if isinstance(random_state, np.random.Generator)
            else random_state.randint
        )
        seed = int(draw(np.iinfo(np.int32).max))
        train, test, _, items = example
        tied = np.ones((3, 1)), np.sign(items[:, :1])
        pd.testing.assert_frame_equal(
            calc_reco_metrics(train, test, *tied, seed=make(3), k=3, roc_auc=True),
            calc_reco_metrics(train, test, *tied, seed=seed, k=3, roc_auc=True),
        )


@pytest.mark.parametrize("nthreads", [1, 2, -1, None])
def test_threads_do_not_change_values(example, nthreads):
    pd.testing.assert_frame_equal(
        calc_reco_metrics(*example, nthreads=nthreads, all_metrics=True),
        calc_reco_metrics(*example, nthreads=1, all_metrics=True),
    )


def test_inputs_are_not_modified(example):
    _, test, users, items = example
    unsorted = sp.csr_array(([1.0, 2.0], [2, 0], [0, 2, 2, 2]), shape=test.shape)
    calc_reco_metrics(unsorted, test, users, items)
    calc_reco_metrics(None, unsorted, users, items)
    split_reco_train_test(unsorted, "all")
    assert unsorted.indices.tolist() == [2, 0]
    assert unsorted.data.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 7}, "k=7 exceeds the number of items \\(6"),
        ({"B": None}, "A and B must both be passed"),
        ({"A": None, "B": None}, "Hint: pass A and B, or item_biases"),
        ({"A": np.ones((3, 3))}, r"shapes \(3, 3\) and \(6, 2\)"),
        ({"A": np.ones(3)}, r"shapes \(3,\) and \(6, 2\)"),
        ({"A": np.ones((2, 2))}, "A has 2 users, but X_test has 3"),
        ({"B": np.ones((5, 2))}, "B has 5 items, but X_test has 6"),
        ({"item_biases": np.ones(5)}, "item_biases has 5 items, but X_test has 6"),
        ({"X_test": sp.csr_array((3, 6))}, "X_test is empty"),
        ({"X_train": sp.csr_array((2, 6))}, "X_train has 2 users, but X_test has 3"),
        (request_only(), "No metric was requested. Hint"),
    ],
)
def test_arguments_refused_by_recometrics_raise_input_errors(example, change, message):
    options = dict(zip(("X_train", "X_test", "A", "B"), example, strict=True)) | change
    with pytest.raises(ValueError):
        recometrics.calc_reco_metrics(**options)
    with pytest.raises(InputError, match=message):
        calc_reco_metrics(**options)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"k": 0}, InputError, "k=0 must be at least 1"),
        ({"k": "five"}, InputTypeError, "k='five' must be a whole number"),
        ({"min_pos_test": 0}, InputError, "min_pos_test=0 must be at least 1"),
        ({"min_items_pool": 0}, InputError, "min_items_pool=0 must be at least 1"),
        ({"nthreads": 0}, InputError, "Hint: nthreads=-1"),
        ({"nthreads": -10_000}, InputError, "leaves no thread"),
        ({"seed": -1}, InputError, "seed=-1 must be at least 0"),
        ({"X_test": np.ones((3, 6))}, InputTypeError, r"Hint: scipy.sparse.csr_array\(X_test\)"),
        ({"X_train": [[1]]}, InputTypeError, "X_train is of type list"),
        ({"X_train": sp.csr_array((3, 5))}, InputError, "X_train has 5 items, but X_test has 6"),
    ],
)
def test_errors_are_raised_where_recometrics_has_assertions(example, change, error, message):
    options = dict(zip(("X_train", "X_test", "A", "B"), example, strict=True)) | change
    with pytest.raises(error, match=message):
        calc_reco_metrics(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.ones((4, 2))}, "A has 4 users, but X_test has 3"),
        ({"B": np.ones((7, 2))}, "B has 7 items, but X_test has 6"),
        ({"item_biases": np.ones(7)}, "item_biases has 7 items, but X_test has 6"),
    ],
)
def test_more_rows_than_needed_are_ignored_with_a_warning(example, change, message):
    options = dict(zip(("X_train", "X_test", "A", "B"), example, strict=True))
    expected = calc_reco_metrics(**options, k=3)
    if "item_biases" not in change:
        ((name, extended),) = change.items()
        extended[: len(options[name])] = options[name]
    with pytest.warns(DataWarning, match=message) as caught:
        ours = calc_reco_metrics(**options | change, k=3)
    assert caught[0].filename == __file__
    pd.testing.assert_frame_equal(ours, expected)


R_NAMES = [
    *("p_at_k", "tp_at_k", "r_at_k", "ap_at_k", "tap_at_k", "ndcg_at_k", "hit_at_k", "rr_at_k"),
    *("roc_auc", "pr_auc"),
]  # from the documentation of the R package, version 0.1.6-3


@pytest.mark.parametrize("cumulative", [False, True])
def test_columns_can_be_named_as_in_the_r_package(cumulative):
    rng = np.random.default_rng(0)
    data = (
        None,
        sp.csr_array((rng.random((6, 9)) < 0.4) * 1.0),
        rng.random((6, 2)),
        rng.random((9, 2)),
    )
    options = {"k": 3, "all_metrics": True, "cumulative": cumulative}
    arrays = calc_reco_metrics(*data, **options, as_df=False, names="r")
    assert [*arrays] == [*R_NAMES, "k"]
    assert arrays["k"] == 3
    python = calc_reco_metrics(*data, **options)
    frame = calc_reco_metrics(*data, **options, names="r")
    np.testing.assert_array_equal(frame, python)
    places = range(1, 4) if cumulative else [3]
    assert [*frame.columns] == [
        name.replace("_k", f"_{place}")
        for name in R_NAMES
        for place in (places if name.endswith("_k") else [0])
    ]
    if not cumulative:
        not_renamed = calc_reco_metrics(*data, **options, names="r", rename_k=False)
        assert [*not_renamed.columns] == R_NAMES
    with pytest.raises(UnknownNameError, match="no names 'R'"):
        calc_reco_metrics(*data, **options, names="R")


def test_factors_can_be_passed_by_columns_as_in_r() -> None:
    """If factors are in the wrong orientation, the error suggests how to fix the call."""
    train, test = sp.csr_array(np.eye(3, 6)), sp.csr_array(np.eye(3, 6, 2))
    users, items = np.arange(6.0).reshape(3, 2), np.arange(12.0)[::-1].reshape(6, 2)
    rows = calc_reco_metrics(train, test, users, items, k=2, as_df=False)
    columns = calc_reco_metrics(
        train, test, users.T, items.T, k=2, as_df=False, by_rows=False, sort_indices=False
    )
    for name, values in rows.items():
        np.testing.assert_array_equal(columns[name], values)
    with pytest.raises(InputError, match=r"A has 2 users, but X_test has 3"):
        calc_reco_metrics(train, test, users.T, np.ones((6, 3)), k=2)
    with pytest.raises(InputError, match=r"shapes \(2, 3\) and \(2, 6\).*Hint: by_rows=False"):
        calc_reco_metrics(train, test, users.T, items.T, k=2)
    with pytest.raises(InputError, match=r"Hint: X_train.T"):
        calc_reco_metrics(train.T.tocsr(), test, users, items, k=2)


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize("k", [2, 3, 5, 6])
@pytest.mark.parametrize("least", [2, 3, 5, 7])
def test_protocol_matches_the_drop_in(k: int, least: int) -> None:
    """All metrics agree, even for users who have few candidates or only relevant ones."""
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(6, 3)), rng.normal(size=(8, 3))
    left, relevant = [5, 5, 3, 6, 2, 8], [2, 5, 2, 6, 1, 5]
    train = sp.csr_array((np.arange(8) >= np.array(left)[:, None]) * 1.0)
    test = sp.csr_array((np.arange(8) < np.array(relevant)[:, None]) * 1.0)
    dropin_result = calc_reco_metrics(
        train, test, users, items, k=k, all_metrics=True, min_items_pool=least, as_df=False
    )
    for name in ("P", "TP", "R", "AP", "TAP", "NDCG", "Hit", "RR", "ROC_AUC", "PR_AUC"):
        result = rm.evaluate(
            rm.Factors(users, items), test, train=train, metrics=f"{name}@{k}",
            protocol="recometrics", min_candidates=least,
        )  # fmt: skip
        expected = dropin_result[name if "AUC" in name else f"{name}@K"]
        np.testing.assert_allclose(result[f"{name}@{k}"], expected, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*undefined for all")
def test_users_with_too_few_items_for_the_cutoff_have_their_own_reason() -> None:
    result = rm.evaluate(
        rm.Factors([[1.0]], [[3.0], [2], [1], [5], [4]]), np.eye(1, 5), metrics="NDCG@6",
        protocol="recometrics",
    )  # fmt: skip
    assert result.skipped("NDCG@6") == {"fewer items to rank than the cut-off": 1}


@pytest.mark.parametrize("protocol", ["recometrics", "recometer"])
def test_no_user_counts_as_cold_start_without_train(protocol: str) -> None:
    source, test = rm.Scores([[3.0, 2, 1], [1, 2, 3]]), np.eye(2, 3)
    with pytest.warns(
        DataWarning, match="cold_start=False changes nothing here: there are no training data"
    ):
        result = rm.evaluate(source, test, metrics="rr", protocol=protocol, cold_start=False)
    assert result["rr"].tolist() == [1.0, 0.5]
