"""Torch tensors on the CPU are read in place, and tensors on a device are processed there.

On a machine without a GPU, the tests for devices treat tensors on the CPU like tensors on a GPU;
see conftest.py.
"""

import kernel_twin
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import recometer as rm
from recometer import _kernel
from recometer.errors import DataWarning, InputError, InputTypeError
from recometer.ragged import users_of
from recometer.sources import _torch
from recometer.sources.base import Request

pytestmark = [pytest.mark.live, pytest.mark.integrations]

COLUMNS = ("indptr", "item", "above", "tied", "before", "n_candidates", "depth", "flags")
ALL = "precision@3 recall@3 ap@3 ndcg@3 rr roc_auc pr_auc rprecision"
N_USERS, N_ITEMS = 40, 300


@pytest.fixture(scope="module")
def case():
    """Draw test and training data, and factors whose products are exact and often tied."""
    rng = np.random.default_rng(4)
    users = rng.integers(-2, 3, (N_USERS, 3)).astype(np.float32)
    items = rng.integers(-2, 3, (N_ITEMS, 3)).astype(np.float32)
    kind = rng.random((N_USERS, N_ITEMS))
    return users, items, sp.csr_array(kind > 0.97), sp.csr_array(kind < 0.1)


def assert_same_values(left, right):
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)
        np.testing.assert_array_equal(left.reasons[name], right.reasons[name], err_msg=name)
    np.testing.assert_array_equal(left.n_candidates, right.n_candidates)


def test_tensors_on_the_cpu_are_not_copied(torch):
    users = torch.nn.Parameter(torch.ones(3, 2))
    items = torch.ones(2, 4).T
    arrays = rm.Factors(users, items).facts.arrays
    assert arrays["users"].ctypes.data == users.data_ptr()
    assert arrays["items"].ctypes.data == items.data_ptr()
    scores = torch.ones(3, 4)
    assert rm.Scores(scores).facts.arrays["matrix"].ctypes.data == scores.data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_tensors_on_the_cpu_are_ranked_like_arrays(torch, case, dtype):
    users, items, test, train = case
    expected = rm.evaluate(rm.Factors(users, items), test, train=train, metrics=ALL)
    tensors = [torch.tensor(matrix).to(getattr(torch, dtype)) for matrix in (users, items)]
    if dtype in ("float32", "float64"):
        source = rm.Factors(*tensors)
    else:
        with pytest.warns(DataWarning, match=f"converted from {dtype} to float"):
            source = rm.Factors(*tensors)
    assert_same_values(rm.evaluate(source, test, train=train, metrics=ALL), expected)


@pytest.mark.parametrize("ties", ["expected", "item", "item_desc", "random"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_on_a_device_give_the_same_values_as_on_the_cpu(
    torch, device, case, monkeypatch, ties, dtype
):
    users, items, test, train = case
    bias = np.random.default_rng(1).integers(0, 2, N_ITEMS)
    options = {"train": train, "metrics": ALL, "ties": ties}
    expected = rm.evaluate(rm.Factors(users, items, item_bias=bias), test, **options)
    monkeypatch.setattr(_torch, "BLOCK_BYTES", 8 * N_ITEMS * 7)
    left, right = (torch.tensor(matrix, dtype=getattr(torch, dtype)) for matrix in (users, items))
    source = rm.Factors(left.to(device), right.to(device), item_bias=torch.tensor(bias))
    assert_same_values(rm.evaluate(source, test, **options), expected)
    dtype_and_device = f"{dtype} on {left.to(device).device}"
    assert (
        source.describe()
        == f"Factors: {N_USERS} users x {N_ITEMS} items, 3 factors, {dtype_and_device}"
    )
    assert source._factors.users.data_ptr() == left.data_ptr() or device.type != "cpu"


def draw_interactions(rng, n_users, n_items, likes=0.1, **ids):
    """Draw random interactions for the test and training data."""
    kind = rng.random((n_users, n_items))
    return [
        rm.Interactions.of(sp.csr_array(rows), **ids)
        for rows in (kind > 1 - likes, kind < min(0.2, 1 - likes))
    ]


def assert_same_ranks(left, right):
    for name in COLUMNS:
        actual, expected = getattr(left, name), getattr(right, name)
        np.testing.assert_array_equal(actual, expected, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*were converted from:recometer.DataWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_ranks_and_lists_match_the_cpu_on_exact_scores(torch, device, monkeypatch, data):
    """Integer scores, which are exact and often tied, get the same ranks as on the CPU."""
    sizes = [st.integers(1, 70), st.integers(1, 270), st.integers(0, 40)]
    n_users, n_items, n_factors = (data.draw(size) for size in sizes)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    users, items = (
        rng.integers(-2, 3, (n, n_factors)).astype(np.float32) for n in (n_users, n_items)
    )
    options = {}
    if data.draw(st.booleans()):
        options["item_bias"] = rng.integers(-3, 4, n_items).astype(np.float32)
    ids = {}
    if data.draw(st.booleans()):
        # The test data contain users and items that the source does not know, and lack some that it
        # knows.
        options["user_ids"] = rng.permutation(n_users + 3)[:n_users]
        options["item_ids"] = rng.permutation(n_items + 9)[:n_items]
        assume(options["user_ids"].min() < n_users and options["item_ids"].min() < n_items)
        ids = {"user_ids": range(n_users), "item_ids": range(n_items)}
    likes = data.draw(st.sampled_from([0.02, 0.3]))
    test, train = draw_interactions(rng, n_users, n_items, likes, **ids)
    depth = data.draw(st.sampled_from([None, 1, 10]))
    request = Request(test, data.draw(st.sampled_from([None, train])), depth=depth)
    dtype = data.draw(st.sampled_from(["float32", "float64", "float16", "bfloat16"]))
    left, right = (
        torch.tensor(matrix, device=device).to(getattr(torch, dtype)) for matrix in (users, items)
    )
    right = right.T.contiguous().T  # store the tensor in column-major order
    if data.draw(st.booleans()):
        left = torch.stack([left, -left], dim=2)[:, :, 0]
    on_device, here = rm.Factors(left, right, **options), rm.Factors(users, items, **options)
    # Results must not depend on the number of users in a block.
    monkeypatch.setattr(_torch, "BLOCK_BYTES", data.draw(st.sampled_from([1, 8 * 2000, 2**26])))
    assert_same_ranks(on_device.rank(request), here.rank(request))
    lists, expected = (source.top(request, depth or 7) for source in (on_device, here))
    np.testing.assert_array_equal(lists.items, expected.items)
    np.testing.assert_array_equal(lists.cut_in_ties, expected.cut_in_ties)
    np.testing.assert_array_equal(lists.flags, expected.flags)


def test_ranks_agree_with_double_precision_up_to_rounding(torch, device):
    """Ranks may differ only where scores differ by less than the bound on rounding errors."""
    rng = np.random.default_rng(7)
    n_users, n_items = 40, 300
    users, items = (rng.normal(size=(n, 24)).astype(np.float32) for n in (n_users, n_items))
    test, train = draw_interactions(rng, n_users, n_items)
    on_device = rm.Factors(*(torch.tensor(matrix, device=device) for matrix in (users, items)))
    ranks = on_device.rank(Request(test, train))

    scores = users.astype(np.float64) @ items.T.astype(np.float64)
    scores[train.to_csr().toarray() != 0] = np.nan
    error = 24 * 2.0**-23 * (np.abs(users).astype(float) @ np.abs(items.T).astype(float)).max()
    user_of_row = users_of(ranks.indptr)
    ranked = ranks.above >= 0
    assert ranked.sum() > 800
    rows, judged_scores = (
        scores[user_of_row[ranked]],
        scores[user_of_row[ranked], ranks.item[ranked]][:, np.newaxis],
    )
    fewest, most_above = (
        (rows > judged_scores + error).sum(1),
        (rows > judged_scores - error).sum(1) - 1,
    )
    above, tied = ranks.above[ranked], ranks.tied[ranked]
    assert ((fewest <= above) & (above + tied <= most_above)).all()
    clear = fewest == most_above  # no other score is within the error bound
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(above[clear], fewest[clear])
    assert not tied[clear].any()


@pytest.mark.parametrize("ties", ["item", "item_desc", "random"])
def test_lists_agree_with_ranks(torch, device, ties):
    """Ranks and lists use the very same scores, so they agree even if scores are nearly equal."""
    rng = np.random.default_rng(7)
    users, items = (rng.normal(size=(n, 8)).astype(np.float32) for n in (30, 200))
    items[150:] = items[:50]
    test, train = draw_interactions(rng, 30, 200)
    source = rm.Factors(*(torch.tensor(matrix, device=device) for matrix in (users, items)))
    request = Request(test, train, rm.Protocol(ties=ties), seed=5)
    ranks, lists = source.rank(request), source.top(request, 20)
    user_of_row = users_of(ranks.indptr)
    place = ranks.above + (ranks.before if ties == "item" else ranks.tied - ranks.before)
    is_listed = (ranks.above >= 0) & (place < 20)
    if ties == "random":
        is_listed &= ranks.tied == 0
    assert is_listed.sum() > 20
    np.testing.assert_array_equal(
        lists.items[user_of_row[is_listed], place[is_listed]], ranks.item[is_listed]
    )


def test_rules_for_scores_apply_on_a_device(torch, device, case):
    users, items, test, train = case
    source = rm.Factors(*(torch.tensor(matrix, device=device) for matrix in (users, items)))
    options = {"train": train, "metrics": "recall@10", "score_above": 2.0}
    expected = rm.evaluate(rm.Scores(users @ items.T), test, **options)
    result = rm.evaluate(source, test, **options)
    np.testing.assert_array_equal(result["recall@10"], expected["recall@10"])


def test_read_only_arrays_can_be_combined_with_tensors_on_a_device(torch, device, case):
    """Arrays from a memory-mapped file, for example, are read-only."""
    users, items, test, train = case
    bias = np.arange(N_ITEMS, dtype=np.float32)
    arrays = [array.copy() for array in (users, bias)]
    for array in arrays:
        array.flags.writeable = False
    on_device = rm.Factors(arrays[0], torch.tensor(items, device=device), item_bias=arrays[1])
    expected = rm.evaluate(rm.Factors(users, items, item_bias=bias), test, train=train, metrics=ALL)
    assert_same_values(rm.evaluate(on_device, test, train=train, metrics=ALL), expected)


def test_candidates_on_a_device_give_the_same_values_as_on_the_cpu(torch, device, case):
    users, items, test, train = case
    is_candidate = np.random.default_rng(2).random((N_USERS, N_ITEMS)) < 0.5
    masked = np.where(np.arange(N_ITEMS) % 7, 0.0, -np.inf) + users @ items.T
    left, right, scores = (torch.tensor(matrix).to(device) for matrix in (users, items, masked))
    for options in (
        {"exclude": [3, 5, N_ITEMS - 1]},
        {"candidates": torch.arange(0, N_ITEMS, 2), "exclude": [4]},
        {"candidates": is_candidate},
        {"candidates": rm.SampledCandidates(20)},
    ):
        options = {"train": train, "metrics": ALL} | options
        for on_device, here in (
            (rm.Factors(left, right), rm.Factors(users, items)),
            (rm.Scores(scores), rm.Scores(masked)),
        ):
            assert_same_values(
                rm.evaluate(on_device, test, **options), rm.evaluate(here, test, **options)
            )


def test_fingerprints_do_not_depend_on_the_device(torch, device, case, monkeypatch):
    users, items, test, _ = case
    monkeypatch.setattr(_torch, "PIECE", 100)
    bias = np.arange(N_ITEMS, dtype=np.float32)
    result = rm.evaluate(
        rm.Factors(torch.tensor(users, device=device), items, item_bias=bias), test
    )
    expected = rm.evaluate(rm.Factors(users, items, item_bias=bias), test)
    assert result.inputs["source"]["fingerprints"] == expected.inputs["source"]["fingerprints"]
    scores = (users @ items.T).astype(int)
    result = rm.evaluate(rm.Scores(torch.tensor(scores, device=device).T.contiguous().T), test)
    expected = rm.evaluate(rm.Scores(scores), test)
    assert result.inputs["source"]["fingerprints"] == expected.inputs["source"]["fingerprints"]


def test_ids_may_be_in_any_order_on_a_device(torch, device, case):
    users, items, test, train = case
    rng = np.random.default_rng(1)
    # The test data contain users and items that the source does not know, and lack some that it
    # knows.
    row, column = rng.permutation(N_USERS + 5)[:N_USERS], rng.permutation(N_ITEMS + 9)[:N_ITEMS]
    ids = {"user_ids": row, "item_ids": column}
    test, train = (
        rm.Interactions.of(data, user_ids=range(N_USERS), item_ids=range(N_ITEMS))
        for data in (test, train)
    )
    options = {"train": train, "metrics": ALL}
    expected = rm.evaluate(rm.Factors(users, items, **ids), test, **options)
    tensors = torch.tensor(users, device=device), torch.tensor(items, device=device)
    assert_same_values(rm.evaluate(rm.Factors(*tensors, **ids), test, **options), expected)
    scores = tensors[0] @ tensors[1].T
    assert_same_values(rm.evaluate(rm.Scores(scores, **ids), test, **options), expected)


@pytest.mark.parametrize("nan_scores", ["undefined", "first", "last"])
def test_nan_and_infinite_scores_give_the_same_values_as_on_the_cpu(
    torch, device, case, nan_scores
):
    users, items, test, train = case
    options = {"train": train, "metrics": ALL, "nan_scores": nan_scores}
    scores = users @ items.T
    kind = np.random.default_rng(2).random(scores.shape)
    scores[kind < 0.1] = -np.inf
    scores[0, kind[0] > 0.9] = np.inf
    scores[1:20][kind[1:20] > 0.95] = np.nan
    expected = rm.evaluate(rm.Scores(scores), test, **options)
    tensor = torch.tensor(scores, device=device)
    assert_same_values(rm.evaluate(rm.Scores(tensor), test, **options), expected)
    np.testing.assert_array_equal(tensor.cpu().numpy(), scores)  # ranking must not modify the input
    function = rm.Scores(lambda rows: tensor[rows], n_users=N_USERS, n_items=N_ITEMS)
    assert_same_values(rm.evaluate(function, test, threads=3, **options), expected)


@pytest.mark.filterwarnings("ignore:.*have a NaN or infinite score:recometer.DataWarning")
@pytest.mark.parametrize("nan_scores", ["undefined", "first", "last"])
def test_nan_and_infinite_factors_give_the_same_values_as_on_the_cpu(
    torch, device, case, nan_scores
):
    users, items, test, train = case
    users, items = users.copy(), items.copy()
    users[0], users[1], users[2, 0] = np.nan, 3e38, -np.inf
    items[5] = np.nan
    user_bias = np.zeros(N_USERS)
    user_bias[3], user_bias[4] = np.inf, np.nan
    options = {"train": train, "metrics": ALL, "nan_scores": nan_scores}
    expected = rm.evaluate(rm.Factors(users, items, user_bias=user_bias), test, **options)
    tensors = torch.tensor(users, device=device), torch.tensor(items, device=device)
    result = rm.evaluate(rm.Factors(*tensors, user_bias=user_bias), test, **options)
    assert_same_values(result, expected)


@given(data=st.data())
def test_counts_of_torch_match_those_of_the_kernel(torch, data):
    """The scores include ties, NaN, infinities and excluded items; columns may be permuted."""
    n_users, n_items = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = [0.0, -0.0, 1.0, 2.0, np.nan, np.inf, -np.inf]
    scores = rng.choice(values, (n_users, n_items), p=[0.2, 0.1, 0.2, 0.2, 0.1, 0.1, 0.1])
    nan_rule = data.draw(st.sampled_from(_kernel.NanRule))
    columns = rng.permutation(n_items) if data.draw(st.booleans()) else None
    kind = rng.random((n_users, n_items))
    excluded, judged = sp.csr_array(kind < 0.2), sp.csr_array(kind > 0.5)
    user_of_row = np.repeat(np.arange(n_users), np.diff(judged.indptr))
    counts = _torch.rank_scores(
        torch.tensor(scores),
        columns,
        excluded.indptr.astype(np.int64),
        excluded.indices,
        user_of_row,
        judged.indices,
        nan_rule,
    )

    judged_scores = scores[
        user_of_row, judged.indices if columns is None else columns[judged.indices]
    ].copy()
    without_score = np.isneginf(judged_scores)
    if nan_rule == _kernel.NanRule.UNDEFINED:
        without_score |= np.isnan(judged_scores)
    else:
        judged_scores[np.isnan(judged_scores)] = (
            np.inf if nan_rule == _kernel.NanRule.FIRST else -np.inf
        )
    judged_scores[without_score] = np.nan
    above, tied, before = (np.zeros(len(user_of_row), np.int64) for _ in range(3))
    flags, no_candidates = np.zeros(n_users, np.uint32), np.zeros(n_users, np.int64)
    kernel_twin.rank_scores(
        scores=scores,
        columns=columns,
        excluded_indptr=excluded.indptr,
        excluded=excluded.indices,
        judged_indptr=judged.indptr,
        judged=judged.indices,
        judged_scores=judged_scores,
        above=above,
        tied=tied,
        before=before,
        limit=None,
        nan_rule=nan_rule,
        flags=flags,
        no_candidates=no_candidates,
    )
    above[without_score] = -1
    by_item = scores if columns is None else scores[:, columns]
    is_candidate = (by_item != -np.inf) & (kind >= 0.2)
    candidates = [row[of_user] for row, of_user in zip(by_item, is_candidate, strict=True)]
    if nan_rule != _kernel.NanRule.UNDEFINED:
        nan_is = np.inf if nan_rule == _kernel.NanRule.FIRST else -np.inf
        candidates = [np.where(np.isnan(row), nan_is, row) for row in candidates]
    constant = np.array([len(row) > 1 and bool((row == row[0]).all()) for row in candidates])
    assert [part.tolist() for part in counts] == [
        part.tolist() for part in (above, tied, before, flags, no_candidates, constant)
    ]


def test_tensors_are_read_as_interactions(torch, geometric):
    index = torch.tensor([[0, 1, 1], [3, 2, 3]])
    interactions = rm.Interactions.of(index, n_users=2, n_items=2, item_offset=2)
    assert interactions.to_csr().toarray().tolist() == [[0, 1], [1, 1]]
    weighted = rm.Interactions.of(
        index, n_users=2, n_items=2, item_offset=2, value=torch.tensor([1.0, 2.0, 3.0])
    )
    assert weighted.to_csr().toarray().tolist() == [[0, 1], [2, 3]]
    dense = rm.Interactions.of(torch.tensor([[0.0, 2.0]], requires_grad=True))
    assert dense.values.tolist() == [2.0]
    same_index = geometric.EdgeIndex(index, sparse_size=(2, 4))
    unchanged = rm.Interactions.of(same_index, n_users=2, n_items=2, item_offset=2)
    assert unchanged.to_csr().toarray().tolist() == [[0, 1], [1, 1]]


def test_invalid_tensors_on_a_device_are_refused(torch, device):
    ones = torch.ones(3, 2, device=device)
    with pytest.raises(InputTypeError, match=r"users of Factors is a tensor of torch.complex64"):
        rm.Factors(ones.to(torch.complex64), ones)
    with pytest.raises(InputTypeError, match=r"items of Factors .* layout torch.sparse_coo"):
        rm.Factors(ones, ones.to_sparse())
    with pytest.raises(InputError, match="items of Factors have shape \\(2,\\)"):
        rm.Factors(ones, ones[0])
    with pytest.raises(InputError, match=r"users have 2 factors, but items have 3 .* transposed"):
        rm.Factors(ones, ones.T)
    with pytest.raises(InputError, match="matrix of Scores has shape \\(2,\\)"):
        rm.Scores(ones[0])
    with pytest.raises(InputTypeError, match=r"matrix of numbers .* found dtype torch.complex64"):
        rm.Scores(ones.to(torch.complex64))
    source = rm.Scores(lambda rows: ones, n_users=2, n_items=2)
    with pytest.raises(InputError, match=r"returned shape \(3, 2\) for the user rows 0 to 1"):
        rm.evaluate(source, np.eye(2))


def test_invalid_tensors_on_the_cpu_are_refused(torch):
    ones = torch.ones(3, 2)
    with pytest.raises(InputTypeError, match=r"cannot be read as an array: .*to_dense"):
        rm.Factors(ones.to_sparse(), ones)
    with pytest.raises(InputTypeError, match="users of Factors are of dtype complex64"):
        rm.Factors(ones.to(torch.complex64), ones)


@pytest.mark.parametrize("seed", range(20))
def test_bipartite_graph_matches_its_dense_adjacency_matrix(torch, seed):
    check_graph(torch, torch.device("cpu"), seed)


@pytest.mark.parametrize("seed", range(20))
def test_bipartite_graph_on_a_device_matches_its_dense_adjacency_matrix(torch, device, seed):
    check_graph(torch, device, seed)


def check_graph(torch, device, seed):
    """Compare the metrics for a graph with those for its dense adjacency matrix."""
    generator = torch.Generator().manual_seed(seed)
    n_users, n_items = 30, 25
    emb = torch.randn(n_users + n_items, 4, generator=generator)
    index = torch.nonzero(torch.rand(n_users, n_items, generator=generator) < 0.25).T
    index[1] += n_users
    training = torch.rand(index.shape[1], generator=generator) < 0.5

    user_emb, item_emb = emb.to(device).split([n_users, n_items])
    edges = {"n_users": n_users, "n_items": n_items, "item_offset": n_users}
    test = rm.Interactions.of(index[:, ~training].to(device), **edges)
    train = rm.Interactions.of(index[:, training].to(device), **edges)
    result = rm.evaluate(
        rm.Factors(user_emb, item_emb), test, train=train, metrics="rprecision precision@5 recall@5"
    )

    adjacency = torch.zeros(2, n_users, n_items, dtype=torch.bool)
    adjacency[training.long(), index[0], index[1] - n_users] = True
    scores = (emb[:n_users].double() @ emb[n_users:].double().T).masked_fill(
        adjacency[1], -torch.inf
    )
    hits = adjacency[0].gather(1, scores.argsort(dim=1, descending=True)).double()
    n_relevant = adjacency[0].sum(1)
    within = torch.arange(n_items) < n_relevant[:, None]
    for name, expected in (
        ("rprecision", (hits * within).sum(1) / n_relevant),
        ("precision@5", (hits[:, :5].sum(1) / 5).where(n_relevant > 0, torch.nan)),
        ("recall@5", hits[:, :5].sum(1) / n_relevant),
    ):
        np.testing.assert_allclose(result[name], expected.numpy(), rtol=1e-12, err_msg=name)


def request_of(case, ties, **options):
    _, _, test, train = case
    matrices = (rm.Interactions.of(matrix) for matrix in (test, train))
    nan_scores = options.pop("nan_scores", "undefined")
    return Request(*matrices, rm.Protocol(ties=ties, nan_scores=nan_scores), seed=4, **options)


@pytest.mark.parametrize("ties", ["expected", "item_desc", "random"])
@pytest.mark.parametrize("k", [1, 10, 299, 400])
def test_lists_made_on_a_device_match_the_cpu(torch, device, case, monkeypatch, ties, k):
    users, items, *_ = case
    on_device = [torch.as_tensor(array, device=device) for array in (users, items)]
    monkeypatch.setattr(_torch, "BLOCK_BYTES", 7 * 4 * N_ITEMS)
    scores = users @ items.T
    request = request_of(case, ties)
    expected = rm.Factors(users, items).top(request, k)
    assert expected.cut_in_ties.any() == (k == 1 or k == 10)
    for source in (rm.Factors(*on_device), rm.Scores(torch.as_tensor(scores, device=device))):
        lists = source.top(request, k)
        np.testing.assert_array_equal(lists.items, expected.items)
        np.testing.assert_array_equal(lists.cut_in_ties, expected.cut_in_ties)
        np.testing.assert_array_equal(lists.flags, expected.flags)


@pytest.mark.parametrize("nan_scores", ["undefined", "first", "last"])
@pytest.mark.parametrize("ties", ["item", "item_desc", "random"])
def test_lists_from_nan_and_infinite_scores_match_the_cpu(torch, device, case, nan_scores, ties):
    rng = np.random.default_rng(8)
    scores = rng.integers(0, 4, (N_USERS, N_ITEMS)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    scores[:20][rng.random((20, N_ITEMS)) < 0.01] = np.nan
    scores[30, 7] = np.inf
    scores[35] = 2  # all scores of user 35 are equal
    request = request_of(case, ties, nan_scores=nan_scores)
    expected = rm.Scores(scores).top(request, 250)
    lists = rm.Scores(torch.as_tensor(scores, device=device)).top(request, 250)
    np.testing.assert_array_equal(lists.items, expected.items)
    np.testing.assert_array_equal(lists.cut_in_ties, expected.cut_in_ties)
    np.testing.assert_array_equal(lists.flags, expected.flags)


@pytest.mark.parametrize("metrics", ["ndcg@3 recall@3", ALL, "coverage@3 ndcg@3"])
@pytest.mark.parametrize("ties", ["expected", "random"])
def test_stream_on_a_device_gives_the_same_values_as_evaluate(torch, device, case, metrics, ties):
    users, items, test, train = case
    scores = users @ items.T
    evaluator = rm.Evaluator(test, train=train, metrics=metrics, ties=ties)
    stream = evaluator.stream()
    for rows in np.array_split(np.random.default_rng(0).permutation(N_USERS), 5):
        batch = torch.from_numpy(scores[rows]).to(device)
        before = batch.clone()
        stream.update(batch, users=torch.from_numpy(rows).to(device))
        assert torch.equal(batch, before)
    at_once, streamed = evaluator(rm.Scores(scores)), stream.compute()
    assert_same_values(at_once, streamed)
    assert at_once.over_users == streamed.over_users


def test_streams_accept_candidates_and_lists_on_a_device(torch, device, case):
    users, items, test, train = case
    scores = users @ items.T
    truth = test.toarray()
    stream = rm.Evaluator(metrics="ndcg@3 ap").stream()
    lists = rm.Evaluator(test, train=train, metrics="ndcg@3").stream()
    listed_items = torch.from_numpy(np.argsort(-scores, kind="stable")[:, :9].copy())
    for rows in np.array_split(np.arange(N_USERS), 3):
        batch = (torch.from_numpy(part[rows]).to(device) for part in (scores, truth))
        stream.update(*batch, users=torch.from_numpy(rows).to(device))
        lists.update(items=listed_items[rows].to(device), users=rows)
    groups = np.repeat(np.arange(N_USERS), N_ITEMS)
    pairs = rm.Pairs.of(truth.ravel(), scores.ravel(), groups)
    assert_same_values(stream.compute(), rm.evaluate(pairs, metrics="ndcg@3 ap"))
    expected = rm.evaluate(rm.Lists(listed_items), test, train=train, metrics="ndcg@3")
    np.testing.assert_array_equal(lists.compute()["ndcg@3"], expected["ndcg@3"])
