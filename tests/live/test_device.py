"""Ranking on a device uses bounded memory, and matrix products have the right precision."""

import functools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import recometer as rm
from recometer import _kernel
from recometer.errors import InputTypeError
from recometer.sources import _torch
from recometer.sources._top_lists import Shelf

pytestmark = [pytest.mark.live, pytest.mark.integrations]

LIMIT = 2**30  # ranking a block of scores may take up to this many bytes
SMALLER = 64  # the tests divide the block size by this number


@pytest.fixture
def peak(torch, tmp_path):
    """Return a function that measures the peak tensor memory of a call, in bytes."""

    def measured(function):
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            function()
        path = tmp_path / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        changes = [event["args"] for event in events if event["name"] == "[memory]"]
        before = changes[0]["Total Allocated"] - changes[0]["Bytes"]
        return max(change["Total Allocated"] for change in changes) - before

    return measured


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("in_order", [True, False])
def test_memory_for_a_block_of_scores_is_bounded(torch, peak, monkeypatch, dtype, in_order):
    monkeypatch.setattr(_torch, "BLOCK_BYTES", _torch.BLOCK_BYTES // SMALLER)
    n_items, n_judged, n_excluded = 1000, 10, 5
    n_users = _torch.BLOCK_BYTES // 8 // n_items
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.integers(0, 5, (n_users, n_items)).astype(dtype))
    columns = None if in_order else rng.permutation(n_items)
    judged = np.tile(np.arange(n_judged, dtype=np.int32), n_users)
    excluded = np.tile(np.arange(20, 20 + n_excluded, dtype=np.int32), n_users)
    table = (scores, columns, np.arange(n_users + 1) * n_excluded, excluded)
    user_of_row = np.repeat(np.arange(n_users), n_judged)

    def rank():
        _torch.rank_scores(*table, user_of_row, judged, _kernel.NanRule.FIRST)

    def top():
        shelf = Shelf.of(np.zeros(n_users, np.uint64), n_items, dtype)
        outputs = np.zeros(n_users, np.uint32), np.zeros(n_users, np.int64)
        _torch.top_scores(
            *table, _kernel.TieOrder.ITEM_DESCENDING, shelf, _kernel.NanRule.FIRST, *outputs
        )

    for function in (rank, top):
        memory = peak(function) + scores.nbytes
        assert scores.nbytes < memory < LIMIT / SMALLER


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_size_of_a_block_is_bounded(torch, device, monkeypatch, dtype):
    """No matrix product, for ranks or for lists, is larger than a block."""
    monkeypatch.setattr(_torch, "BLOCK_BYTES", 8 * 7 * 50)
    users, items = (torch.ones(n, 2, dtype=getattr(torch, dtype), device=device) for n in (30, 50))
    blocks, scorer = [], _torch.scorer

    def scorer_of(*arrays, **options):
        score = scorer(*arrays, **options)

        def noted(rows):
            blocks.append(len(rows))
            return score(rows)

        return noted

    monkeypatch.setattr(_torch, "scorer", scorer_of)
    source = rm.Factors(users, items)
    rm.evaluate(source, np.eye(30, 50), metrics="ndcg@1 coverage@1", constant_scores="ties")
    assert blocks == [7, 7, 7, 7, 2] * 2  # the blocks of ranks, then the blocks of lists


@pytest.mark.parametrize("set_to", ["ieee", "tf32", "none"])
def test_torch_multiplies_in_the_requested_precision(torch, set_to):
    """recometer overrides PyTorch's global precision setting, and restores it even after errors."""
    places = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    before, settings = [place.fp32_precision for place in places], []

    def record_settings():
        with _torch.full_precision(torch.device("cpu")):
            settings.append({place.fp32_precision for place in places})
            raise KeyError

    for place in places:
        place.fp32_precision = set_to
    try:
        with pytest.raises(KeyError):
            record_settings()
        assert [place.fp32_precision for place in places] == [set_to, set_to]
    finally:
        for place, precision in zip(places, before, strict=True):
            place.fp32_precision = precision
    assert settings == [{"ieee"}]


def test_inherited_precision_stays_inherited(torch):
    """If matmul inherits its precision, it still follows the global setting after an evaluation."""
    backends, before = torch.backends, torch.backends.fp32_precision
    assert backends.cuda.matmul.fp32_precision == before == "none"
    try:
        for above in ("tf32", "ieee"):
            backends.fp32_precision = above
            with _torch.full_precision(torch.device("cpu")):
                pass
            assert backends.cuda.matmul.fp32_precision == above
    finally:
        backends.fp32_precision = before


def test_older_torch_versions_use_the_older_setting(torch, monkeypatch):
    matmul = SimpleNamespace(allow_tf32=True)
    monkeypatch.setattr(torch.backends.cuda, "matmul", matmul)
    with _torch.full_precision(torch.device("cpu")):
        assert matmul.allow_tf32 is False
    assert matmul.allow_tf32 is True


def test_concurrent_evaluations_set_the_precision_in_turn(torch):
    """The precision is set for the whole process, so concurrent evaluations take turns."""
    matmul, entered, settings = torch.backends.cuda.matmul, threading.Event(), []

    def evaluate_concurrently():
        entered.set()
        with _torch.full_precision(torch.device("cpu")):
            settings.append(matmul.fp32_precision)

    thread = threading.Thread(target=evaluate_concurrently)
    with _torch.full_precision(torch.device("cpu")):
        thread.start()
        entered.wait()
        thread.join(0.05)
        assert matmul.fp32_precision == "ieee"
        assert not settings
    thread.join()
    assert settings == ["ieee"]


def test_autocast_does_not_affect_products(torch, device):
    """Models are often evaluated under autocast, which must not make torch multiply in 16 bits."""
    users, items = torch.tensor([[1.0]]), torch.tensor([[1.0], [1.001], [1.002], [0.999]])
    source = rm.Factors(users.to(device), items.to(device))
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert (users @ items.T).unique().numel() < 4 or device.type != "cpu"
        result = rm.evaluate(source, np.array([[1, 0, 0, 0]]), metrics="rr")
    assert result["rr"].tolist() == [1 / 3]


def test_factors_are_multiplied_in_their_precision(torch, device, monkeypatch):
    requests, full_precision = [], _torch.full_precision

    def noted(device):
        requests.append(device)
        return full_precision(device)

    monkeypatch.setattr(_torch, "full_precision", noted)
    users, items = (torch.ones(3, 2, device=device) for _ in range(2))
    source = rm.Factors(users, items)
    assert source.describe().endswith(f"float32 on {users.device}")
    rm.evaluate(source, np.eye(3), metrics="ndcg@1 coverage@1", constant_scores="ties")
    assert set(requests) == {items.device}


def test_float64_is_refused_on_a_device_without_float64(torch, device, monkeypatch):
    """MPS does not support float64, to which recometer would also convert integers."""
    monkeypatch.setattr(_torch, "MPS", device.type)
    ones = torch.ones(3, 2, device=device)
    refused = f"which would be ranked in float64, but the device {ones.device} .* Hint: .* float32"
    for item_factors, kind in (
        (ones.double(), "float64"),
        (ones.int(), "int32"),
        (np.ones((3, 2)), "float64"),
    ):
        with pytest.raises(InputTypeError, match=f"items of Factors is {kind}, {refused}"):
            rm.Factors(ones, item_factors)
        with pytest.raises(InputTypeError, match=f"users of Factors is {kind}, {refused}"):
            rm.Factors(item_factors, ones)
    scores = rm.Scores(torch.eye(3, device=device).double())
    with pytest.raises(InputTypeError, match=f"The matrix of Scores is float64, {refused}"):
        rm.evaluate(scores, np.eye(3))
    bias = np.array([0.0, 0.5, 0.25])
    for users in (ones, np.ones((3, 2), np.float32)):
        source = rm.Factors(users, ones, item_bias=bias)
        result = rm.evaluate(source, np.eye(3), metrics="rr")
        assert result["rr"].tolist() == [1 / 3, 1, 1 / 2]


def test_benchmark_prints_its_times(torch):
    script = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "gpu.py")]
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    run = functools.partial(subprocess.run, env=environment, capture_output=True, text=True)
    process = run([*script, "--quick"], check=False)
    assert process.returncode == 0, process.stderr
    parsed = json.loads(process.stdout)
    assert set(parsed["seconds"]) == {"plain", "ranks", "evaluate", "topk"}
    assert parsed["share"] > 0
    assert parsed["topk / ranks"] > 0
    if not torch.cuda.is_available():
        process = run(script, check=False)
        assert process.returncode == 1
        assert process.stderr.startswith("benchmarks/gpu.py needs a CUDA device")
