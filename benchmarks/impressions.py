"""The speed of off-policy estimates, and with --coverage their bias and the intervals' coverage.

From 10 million impressions of a million users in memory, the script estimates the values of two
policies by two estimators, and compares the policies. It prints a table.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _table import HEADERS, Measure, markdown, seconds

import recometer as rm

SECONDS, GIB = 5.0, 2.0
COLUMNS = {"user": "user", "item": "item", "reward": "click", "propensity": "shown"}
ESTIMATORS = ("ips", "clipped_ips", "snips", "direct", "dr")
# The number of users, and how much the two policies differ: the largest weight is 2.5 for a
# difference of 0.3, and 14.9 for 0.9.
WORLDS = ((50, 0.3), (200, 0.3), (1_000, 0.3), (200, 0.9), (1_000, 0.9), (5_000, 0.9))
N_ITEMS, PER_USER, CLIP = 10, 5, 10
APPEAL = np.linspace(-2.5, 0.5, N_ITEMS)


def drawn(n: int, n_users: int) -> dict[str, np.ndarray]:
    """Return a log in columns, with the probabilities of two policies."""
    rng = np.random.default_rng(0)
    shown = rng.random(n)
    shown *= 0.9
    shown += 0.1
    return {
        "user": rng.integers(0, n_users, n),
        "item": rng.integers(0, 1_000, n),
        "click": (rng.random(n, np.float32) < 0.1).astype(np.int8),
        "shown": shown,
        "one": np.minimum(1, shown * 1.1),
        "other": 0.9 * shown,
    }


def peak() -> float:
    """Return the peak resident memory of this process, in GiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 2**20


def speed(n: int) -> None:
    """Measure the time and the memory, which includes the columns of the log."""
    frame = drawn(n, max(100, n // 10))
    start = time.perf_counter()
    log = rm.Impressions(frame, **COLUMNS)
    log.evaluate({"one": "one", "other": "other"}).compare(baseline="logged")
    duration = time.perf_counter() - start
    table = [
        Measure(f"{n:,} impressions (s)", seconds(duration), "", duration, SECONDS, True),
        Measure(f"{n:,} impressions (GiB)", f"{peak():.2f} GiB", "", peak(), GIB, True),
    ]
    print(markdown(HEADERS, [measure.cells() for measure in table]))


def clicks(taste: np.ndarray, item: np.ndarray | int) -> np.ndarray:
    """Return the probability that users with the given taste click an item."""
    return np.asarray(1 / (1 + np.exp(-(APPEAL[item] + taste))))


def coverage(repeats: int) -> None:
    """Simulate logs whose policy has a known value."""
    rows = []
    tastes = np.random.default_rng(1).normal(0, 0.8, 400_000)
    for n_users, sharp in WORLDS:
        logging = np.exp(-sharp * np.arange(N_ITEMS) / 3)
        logging /= logging.sum()
        target, predicted = logging[::-1], 0.8 / (1 + np.exp(-APPEAL))
        truth = sum(target[k] * clicks(tastes, k).mean() for k in range(N_ITEMS))
        estimates = np.empty((repeats, len(ESTIMATORS), 3))
        effective = []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            user = np.repeat(np.arange(n_users), PER_USER)
            taste = rng.normal(0, 0.8, n_users)[user]
            item = rng.choice(N_ITEMS, len(user), p=logging)
            click = (rng.random(len(user)) < clicks(taste, item)).astype(float)
            columns = {"user": user, "item": item, "click": click, "shown": logging[item]}
            policy = {
                "target_probability": target[item],
                "predicted_reward": predicted[item],
                "policy_value": np.full(len(user), target @ predicted),
            }
            values = rm.Impressions(columns, **COLUMNS).evaluate(
                {"new": policy}, estimators=ESTIMATORS, clip=CLIP, min_effective=0
            )
            effective.append(values.weights["new"].effective_users)
            for at, name in enumerate(ESTIMATORS):
                estimate = values["new", name]
                estimates[seed, at] = estimate.value, *estimate.interval
        row = [f"{n_users:,} ({np.median(effective):,.0f})", f"{(target / logging).max():.1f}"]
        for value, low, high in estimates.transpose(1, 2, 0):
            inside = np.mean((low <= truth) & (truth <= high))
            row.append(f"{value.mean() / truth - 1:+.1%}, {value.std() / truth:.1%}, {inside:.3f}")
        rows.append(row)
    print(markdown(["users (effective)", "largest weight", *ESTIMATORS], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--repeats", type=int, default=500, help="simulated logs per row")
    options = parser.parse_args()
    if options.coverage:
        coverage(options.repeats)
    else:
        speed(options.rows)


if __name__ == "__main__":
    main()
