"""The speed and memory of ranking factors on a CUDA device, compared with torch.topk.

Run: python benchmarks/gpu.py           # 100,000 users x 1,000,000 items x 64 factors, float32
     python benchmarks/gpu.py --quick   # tests the script at a tiny size, even without a device

The script needs torch. Times are elapsed times: medians of rounds that run all calls in turn, after
a warm-up round. The measurements are:

plain        operations per second of torch's product of two large matrices, float32 without TF32
ranks        `Factors.rank` for all users: test and train prepared, all items scored and counted
evaluate     a complete `rm.evaluate`, including metrics and intervals
topk         torch.topk of the product for blocks of users: no excluded items, no metrics
share        operations per second of the product within `ranks`, relative to plain
memory       the peak that torch allocates on the device while ranking, beyond existing tensors
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import recometer as rm
from recometer.data import tensors
from recometer.sources.base import Request

RESULTS = Path(__file__).with_name("results") / "gpu.json"
METRICS = "ndcg@10 recall@10 ap rr roc_auc"
K = 10  # the number of places that topk finds
BLOCK_BYTES = 2**30  # the size of the scores that are passed to topk at once


@dataclasses.dataclass(frozen=True)
class Size:
    """The size of a measurement."""

    users: int = 100_000
    items: int = 1_000_000
    factors: int = 64
    judged: int = 10  # the number of test items per user
    train: int = 50
    side: int = 8_192  # the side length of the matrices of the plain product
    rounds: int = 5


QUICK = Size(users=300, items=500, factors=8, judged=3, train=5, side=64, rounds=1)


def drawn(rng: np.random.Generator, size: Size) -> tuple[rm.Interactions, rm.Interactions]:
    """Return test and train: distinct random items for each user."""
    n_rows = size.judged + size.train
    gaps = rng.integers(1, size.items // n_rows, (size.users, n_rows))
    items = (rng.integers(0, size.items, (size.users, 1)) + gaps.cumsum(axis=1)) % size.items
    items = items[:, rng.permutation(n_rows)]
    users = np.broadcast_to(np.arange(size.users)[:, np.newaxis], items.shape)
    test, train = (
        rm.Interactions.of(
            np.stack([users[:, part].ravel(), items[:, part].ravel()]),
            n_users=size.users,
            n_items=size.items,
        )
        for part in (slice(size.judged), slice(size.judged, None))
    )
    return test, train


class Device:
    """The device of the tensors. To test the script, the CPU can replace a CUDA device."""

    def __init__(self) -> None:
        self.real = torch.cuda.is_available()
        self.where = torch.device("cuda" if self.real else "cpu")
        if not self.real:
            # Make recometer rank the tensors as if they were on a device.
            tensors.CPU = "none"

    def seconds(self, work: Callable[[], object]) -> float:
        """Return the elapsed time of some work."""
        self.wait()
        begin = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - begin

    def wait(self) -> None:
        """Wait until the device has finished its work."""
        if self.real:
            torch.cuda.synchronize()

    def bytes_above(self, work: Callable[[], object]) -> int | None:
        """Return the peak number of bytes that some work allocates, or None if not on CUDA."""
        if not self.real:
            return None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return int(torch.cuda.max_memory_allocated() - before)

    def describe(self) -> dict[str, Any]:
        """Return the name of the device and the version of torch."""
        name = torch.cuda.get_device_name() if self.real else "none: tried on the processor"
        return {"device": name, "torch": torch.__version__}


def measure(size: Size, device: Device) -> dict[str, Any]:
    """Return all measurements, keyed by the names above."""
    torch.set_float32_matmul_precision("highest")
    rng, generator = np.random.default_rng(0), torch.Generator(device.where).manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, device=device.where)

    users, items = normal(size.users, size.factors), normal(size.items, size.factors)
    square = normal(size.side, size.side)
    test, train = drawn(rng, size)
    source = rm.Factors(users, items)

    def topk() -> None:
        for block in users.split(max(1, BLOCK_BYTES // (4 * size.items))):
            (block @ items.T).topk(K, dim=1)

    works: dict[str, Callable[[], object]] = {
        "plain": lambda: square @ square,
        "ranks": lambda: source.rank(Request(test, train)),
        "evaluate": lambda: rm.evaluate(source, test, train=train, metrics=METRICS),
        "topk": topk,
    }
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(size.rounds):
        for name, work in works.items():
            times[name].append(device.seconds(work))
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    plain = 2 * size.side**3 / median["plain"]
    ours = 2 * size.users * size.items * size.factors / median["ranks"]
    return {
        **device.describe(),
        "size": dataclasses.asdict(size),
        "seconds": times,
        "plain, operations per second": plain,
        "share": ours / plain,
        "topk / ranks": median["topk"] / median["ranks"],
        "topk / evaluate": median["topk"] / median["evaluate"],
        "memory": device.bytes_above(works["ranks"]),
    }


def main() -> None:
    """Measure and print; save results measured on a device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="test the script at a tiny size")
    quick: bool = parser.parse_args().quick
    device = Device()
    if not (quick or device.real):
        sys.exit(
            "benchmarks/gpu.py needs a CUDA device, and torch finds none here. "
            "Hint: --quick tries the script on the processor."
        )
    measurements = measure(QUICK if quick else Size(), device)
    print(json.dumps(measurements, indent=2))
    if not quick:
        RESULTS.write_text(json.dumps(measurements, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
