"""Factors ranked by kernels of Triton: on a device, or interpreted where there is none."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, InternalError
from recometer.ragged import users_of
from recometer.sources import _factor_device
from recometer.sources.base import Request

pytestmark = [pytest.mark.live, pytest.mark.integrations]

COMPILED = Path(__file__).with_name("compiled.py")
COLUMNS = ("indptr", "item", "above", "tied", "before", "n_candidates", "depth", "flags")


@pytest.fixture
def kernels(triton, monkeypatch):
    """Return the module of the kernels, in small portions: several tiles, programs and tasks."""
    from recometer.sources import _triton

    monkeypatch.setattr(_triton, "TILES", 2)
    monkeypatch.setattr(_factor_device, "SCORES_PER_TASK", 2**14)
    monkeypatch.setattr(_factor_device, "PAIRS", 2000)
    monkeypatch.setattr(_factor_device, "FIRST_PORTION", 50)
    return _triton


@pytest.fixture
def fused(kernels, there, monkeypatch):
    """Return the device; what would rank without the kernels is gone."""
    monkeypatch.setattr(_factor_device, "rank_batches", None)
    return there


def drawn(rng, n_users, n_items, likes=0.1, **ids):
    """Return test and train of random interactions."""
    kind = rng.random((n_users, n_items))
    return [
        rm.Interactions.of(sp.csr_array(rows), **ids)
        for rows in (kind > 1 - likes, kind < min(0.2, 1 - likes))
    ]


def same_ranks(left, right):
    for name in COLUMNS:
        found, expected = getattr(left, name), getattr(right, name)
        np.testing.assert_array_equal(found, expected, err_msg=name)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15
)
@given(data=st.data())
def test_the_ranks_are_those_of_the_processor_on_exact_scores(torch, fused, data):
    """Scores of small whole numbers are the same in any arithmetic, and often tied."""
    sizes = [st.integers(1, 70), st.integers(1, 270), st.integers(1, 40)]
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
        # Some users and items of test are strangers to the source, and the other way round.
        options["user_ids"] = rng.permutation(n_users + 3)[:n_users]
        options["item_ids"] = rng.permutation(n_items + 9)[:n_items]
        ids = {"user_ids": range(n_users), "item_ids": range(n_items)}
    likes = data.draw(st.sampled_from([0.02, 0.3]))
    test, train = drawn(rng, n_users, n_items, likes, **ids)
    depth = data.draw(st.sampled_from([None, 1, 10]))
    request = Request(test, data.draw(st.sampled_from([None, train])), depth=depth)
    left, right = torch.tensor(users, device=fused), torch.tensor(items.T.copy(), device=fused)
    if data.draw(st.booleans()):
        left = torch.stack([left, -left], dim=2)[:, :, 0]  # any strides
    there = rm.Factors(left, right.T, **options)
    same_ranks(there.rank(request), rm.Factors(users, items, **options).rank(request))


def test_items_that_nobody_may_be_recommended(torch, fused):
    rng = np.random.default_rng(3)
    users, items = (rng.integers(-2, 3, (n, 5)).astype(np.float32) for n in (30, 400))
    test, train = drawn(rng, 30, 400)
    there = rm.Factors(*(torch.tensor(matrix, device=fused) for matrix in (users, items)))
    for options in ({"exclude": [3, 5, 399]}, {"candidates": np.arange(1, 400, 3)}):
        options |= {"train": train, "metrics": "ndcg@10 rr roc_auc"}
        found, expected = (
            rm.evaluate(source, test, **options) for source in (there, rm.Factors(users, items))
        )
        for name in expected.values:
            np.testing.assert_array_equal(found[name], expected[name])


def test_ranks_of_random_factors_against_double_precision(torch, fused):
    """Scores may be rounded, by at most a known error; items with the same factors are tied."""
    rng = np.random.default_rng(7)
    n_users, n_items = 40, 300
    users, items = (rng.normal(size=(n, 24)).astype(np.float32) for n in (n_users, n_items))
    items[rng.permutation(n_items)[:60]] = items[:60]  # a fifth has twins, triplets, ...
    test, train = drawn(rng, n_users, n_items)
    there = rm.Factors(*(torch.tensor(matrix, device=fused) for matrix in (users, items)))
    ranks = there.rank(Request(test, train))

    scores = users.astype(np.float64) @ items.T.astype(np.float64)
    scores[train.to_csr().toarray() != 0] = np.nan
    error = 24 * 2.0**-23 * (np.abs(users).astype(float) @ np.abs(items.T).astype(float)).max()
    who = users_of(ranks.indptr)
    ranked = ranks.above >= 0
    assert ranked.sum() > 800
    rows, own = scores[who[ranked]], scores[who[ranked], ranks.item[ranked]][:, np.newaxis]
    fewest, most = (rows > own + error).sum(1), (rows > own - error).sum(1) - 1
    above, tied, before = (getattr(ranks, name)[ranked] for name in ("above", "tied", "before"))
    assert ((fewest <= above) & (above + tied <= most)).all()

    same = (items[:, np.newaxis] == items).all(2)[ranks.item[ranked]] & ~np.isnan(rows)
    assert (tied >= same.sum(1) - 1).all()
    earlier = np.arange(n_items) < ranks.item[ranked][:, np.newaxis]
    clear = fewest + same.sum(1) == most + 1  # nothing else is near
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(above[clear], fewest[clear])
    np.testing.assert_array_equal(tied[clear], same.sum(1)[clear] - 1)
    np.testing.assert_array_equal(before[clear], (same & earlier).sum(1)[clear])


@pytest.mark.parametrize("ties", ["item", "item_desc", "random"])
def test_lists_agree_with_ranks(torch, kernels, there, ties):
    """Scores that are close are the same numbers in both."""
    rng = np.random.default_rng(7)
    users, items = (rng.normal(size=(n, 8)).astype(np.float32) for n in (30, 200))
    items[150:] = items[:50]
    test, train = drawn(rng, 30, 200)
    source = rm.Factors(*(torch.tensor(matrix, device=there) for matrix in (users, items)))
    request = Request(test, train, rm.Protocol(ties=ties), seed=5)
    ranks, lists = source.rank(request), source.top(request, 20)
    who = users_of(ranks.indptr)
    place = ranks.above + (ranks.before if ties == "item" else ranks.tied - ranks.before)
    seen = (ranks.above >= 0) & (place < 20)
    if ties == "random":
        seen &= ranks.tied == 0
    assert seen.sum() > 20
    np.testing.assert_array_equal(lists.items[who[seen], place[seen]], ranks.item[seen])


def test_the_kernels_are_not_needed(torch, there, monkeypatch):
    """Torch alone finds the same without Triton, and where Triton cannot score."""
    rng = np.random.default_rng(1)
    users, items = (rng.integers(-2, 3, (n, 4)).astype(np.float32) for n in (20, 90))
    test, train = drawn(rng, 20, 90)
    request = Request(test, train)
    expected = rm.Factors(users, items).rank(request)
    left, right = (torch.tensor(matrix, device=there) for matrix in (users, items))
    same_ranks(rm.Factors(left.double(), right.double()).rank(request), expected)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "triton" else find_spec(name)
    )
    monkeypatch.setattr(_factor_device, "Work", None)
    same_ranks(rm.Factors(left, right).rank(request), expected)


def test_a_rule_that_reads_scores(torch, kernels, there):
    rng = np.random.default_rng(1)
    users, items = (rng.integers(-2, 3, (n, 4)).astype(np.float32) for n in (20, 90))
    test, train = drawn(rng, 20, 90)
    source = rm.Factors(*(torch.tensor(matrix, device=there) for matrix in (users, items)))
    options = {"train": train, "metrics": "recall@10", "score_above": 2.0}
    expected = rm.evaluate(rm.Scores(users @ items.T), test, **options)
    found = rm.evaluate(source, test, **options)
    np.testing.assert_array_equal(found["recall@10"], expected["recall@10"])


def test_triton_that_does_not_run_is_said_aloud(torch, kernels, there, monkeypatch):
    rng = np.random.default_rng(1)
    users, items = (rng.integers(-2, 3, (n, 4)).astype(np.float32) for n in (20, 90))
    request = Request(*drawn(rng, 20, 90))

    def broken(*_):
        raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr(kernels.Tiles, "of_pairs", broken)
    source = rm.Factors(*(torch.tensor(matrix, device=there) for matrix in (users, items)))
    with pytest.warns(DataWarning, match=r"RuntimeError: Failed to find C compiler\..* by torch"):
        ranks = source.rank(request)
    same_ranks(ranks, rm.Factors(users, items).rank(request))


def test_a_judged_item_that_does_not_meet_its_own_score(torch, kernels, fused, monkeypatch):
    """A compiler that scores differently in one kernel and in the other would make wrong ranks."""
    rng = np.random.default_rng(1)
    users, items = (rng.normal(size=(n, 4)).astype(np.float32) for n in (20, 90))
    of_pairs = kernels.Tiles.of_pairs
    monkeypatch.setattr(
        kernels.Tiles, "of_pairs", lambda *pairs: torch.nextafter(of_pairs(*pairs), torch.ones(()))
    )
    source = rm.Factors(*(torch.tensor(matrix, device=fused) for matrix in (users, items)))
    with pytest.raises(InternalError, match="did not find its own score"):
        source.rank(Request(*drawn(rng, 20, 90)))


@pytest.mark.parametrize(("capability", "precision"), [(80, "ieee"), (90, "tf32")])
def test_what_the_compiler_makes_of_the_kernel(triton, tmp_path, capability, precision):
    """Kernels for absent cards use only fused multiply-adds, unless TF32 is requested."""
    from recometer.sources import _triton

    command = [sys.executable, "-W", "error", COMPILED, str(capability), precision]
    environment = {"PYTHONPATH": ":".join(sys.path), "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(kernels) == 4
    for found in kernels:
        assert found["bytes"] > 0
        assert found["float atomics"] == found["products"] == 0
        if precision == "ieee":
            assert found["fused"] >= 256
            # A score is one sum, in the order of the factors, wherever it stands in a tile.
            assert found["chains"] == [_triton.SIZES["FACTORS"]]
            assert found["tf32"] == 0
        else:
            assert found["fused"] == 0
            assert found["tf32"] > 0
