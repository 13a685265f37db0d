"""What ranking on a device takes of its memory, and in which precision it multiplies."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import recometer as rm
from recometer._kernel import NanRule, TieOrder
from recometer.errors import InputError
from recometer.sources import _factor_device, _torch
from recometer.sources._factor_device import Scored
from recometer.sources._top import Shelf

pytestmark = [pytest.mark.live, pytest.mark.integrations]

LIMIT = 2**30  # bytes above the inputs
SMALLER = 64  # times, than blocks are outside of tests


@pytest.fixture
def peak(torch, tmp_path):
    """Return the function that calls another and returns the most bytes of tensors meanwhile."""

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
def test_the_memory_of_a_block_of_scores(torch, peak, monkeypatch, dtype, in_order):
    monkeypatch.setattr(_torch, "BLOCK_BYTES", _torch.BLOCK_BYTES // SMALLER)
    n_items, n_judged, n_excluded = 1000, 10, 5
    n_users = _torch.BLOCK_BYTES // 8 // n_items
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.integers(0, 5, (n_users, n_items)).astype(dtype))
    columns = None if in_order else rng.permutation(n_items)
    judged = np.tile(np.arange(n_judged, dtype=np.int32), n_users)
    excluded = np.tile(np.arange(20, 20 + n_excluded, dtype=np.int32), n_users)
    table = (scores, columns, np.arange(n_users + 1) * n_excluded, excluded)
    who = np.repeat(np.arange(n_users), n_judged)

    def rank():
        _torch.rank_scores(*table, who, judged, NanRule.FIRST)

    def top():
        shelf = Shelf.of(np.zeros(n_users, np.uint64), n_items, dtype)
        found = np.zeros(n_users, np.uint32), np.zeros(n_users, np.int64)
        _torch.top_scores(*table, TieOrder.ITEM_DESCENDING, shelf, NanRule.FIRST, *found)

    for function in (rank, top):
        taken = peak(function) + scores.nbytes
        assert scores.nbytes < taken < LIMIT / SMALLER


def test_the_memory_of_what_is_left_out(torch, peak, monkeypatch):
    pairs = _factor_device.PAIRS // SMALLER
    monkeypatch.setattr(_factor_device, "PAIRS", pairs)
    n_excluded = 100
    n_judged = 10 * pairs // n_excluded  # several portions
    judged, excluded = (
        Scored(np.zeros(n, np.int64), np.arange(n, dtype=np.int32), torch.rand(n))
        for n in (n_judged, n_excluded)
    )
    nobody = SimpleNamespace(tiles=SimpleNamespace(device="cpu"), _there=torch.as_tensor)
    taken = peak(lambda: _factor_device.Work._compared(nobody, judged, excluded, 1))
    assert judged.scores.nbytes < taken < LIMIT / SMALLER / 4


@pytest.mark.parametrize("set_to", ["ieee", "tf32", "none"])
def test_torch_multiplies_in_the_precision_that_is_asked_for(torch, set_to):
    """The setting of PyTorch does not matter, and stays as it is even after an error."""
    matmul = torch.backends.cuda.matmul
    before, seen = matmul.fp32_precision, []

    def look(allow_tf32):
        with _torch.multiplying(allow_tf32=allow_tf32):
            seen.append(matmul.fp32_precision)
            raise KeyError

    matmul.fp32_precision = set_to
    try:
        for allow_tf32 in (False, True):
            with pytest.raises(KeyError):
                look(allow_tf32)
            assert matmul.fp32_precision == set_to
    finally:
        matmul.fp32_precision = before
    assert seen == ["ieee", "tf32"]


@pytest.mark.parametrize("allow_tf32", [False, True])
def test_factors_are_multiplied_in_that_precision(torch, device, monkeypatch, allow_tf32):
    monkeypatch.setattr(_torch, "CUDA", device.type)
    asked = []
    with_torch, with_triton = _torch.multiplying, _factor_device.tiles_of

    def multiplying(*, allow_tf32):
        asked.append(allow_tf32)
        return with_torch(allow_tf32=allow_tf32)

    def tiles_of(*factors, allow_tf32):
        tiles = with_triton(*factors, allow_tf32=allow_tf32)
        if tiles is not None:
            asked.append(tiles._constants["PRECISION"] == "tf32")
        return tiles

    monkeypatch.setattr(_torch, "multiplying", multiplying)
    monkeypatch.setattr(_factor_device, "tiles_of", tiles_of)
    users, items = (torch.ones(3, 2, device=device) for _ in range(2))
    source = rm.Factors(users, items, allow_tf32=allow_tf32)
    where = f"float32 on {users.device}"
    assert source.describe().endswith(f"{where}, TF32" if allow_tf32 else where)
    rm.evaluate(source, np.eye(3), metrics="ndcg@1 coverage@1", constant_scores="ties")
    assert set(asked) == {allow_tf32}


def test_tf32_where_it_changes_nothing(torch, there):
    ones = torch.ones(3, 2)
    for users, kind in ((ones.numpy(), "float32"), (ones.to(there).double(), "float64 on .*")):
        with pytest.raises(InputError, match=f"allow_tf32=True is .* but these are {kind}. Hint:"):
            rm.Factors(users, users, allow_tf32=True)


def test_the_benchmark(torch):
    script = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "gpu.py")]
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "TRITON_INTERPRET": "0"}
    run = functools.partial(subprocess.run, env=environment, capture_output=True, text=True)
    done = run([*script, "--quick"], check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["seconds"]) == {"plain", "ranks", "evaluate", "topk"}
    assert found["share"] > 0
    assert found["topk / ranks"] > 0
    if not torch.cuda.is_available():
        done = run(script, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("benchmarks/gpu.py needs a CUDA device")
