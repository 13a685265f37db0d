"""Timing side by side: never two things at once, and not while others use the processors."""

from __future__ import annotations

import dataclasses
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# Seconds before each call: waiting threads of BLAS and OpenMP keep a processor busy for a while,
# and allocators keep memory that the next one would find ready (Polars' for half a second).
PAUSE = 1.0
QUIET = 0.05  # share of the processors that other processes may use
PATIENCE = 3  # quiet repeats are looked for in this multiple of the repeats
WAIT = 120.0  # seconds at most that all rounds wait for quiet


@dataclasses.dataclass(frozen=True)
class Timed:
    """How long something took, and how busy other processes kept the processors meanwhile."""

    seconds: list[float]
    others: list[float]

    @property
    def median(self) -> float:
        """Return the median of the seconds."""
        return statistics.median(self.seconds)


Times = dict[str, Timed]


def side_by_side(
    contestants: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    warm_up: bool = True,
    wait: float = WAIT,
) -> Times:
    """Time each in turn, in an order drawn anew for each round.

    Who is next finds the memory that the one before gave back: a fixed order would favour one of
    them. A round waits a while for other processes to be quiet. Where they used more than 5 % of
    the processors nevertheless, it is repeated; the quietest rounds count.
    """
    if warm_up:
        for call in contestants.values():
            call()
    shuffle = random.Random(0)
    rounds: list[dict[str, tuple[float, float]]] = []
    quiet = 0
    while quiet < repeats and len(rounds) < PATIENCE * repeats:
        wait -= _wait_for_quiet(wait)
        order = shuffle.sample(sorted(contestants), len(contestants))
        rounds.append({name: _time(contestants[name]) for name in order})
        quiet += _disturbance(rounds[-1]) <= QUIET
    kept = sorted(rounds, key=_disturbance)[:repeats]
    return {
        name: Timed([one[name][0] for one in kept], [one[name][1] for one in kept])
        for name in contestants
    }


def _wait_for_quiet(seconds: float) -> float:
    start, others = time.monotonic(), 1.0
    while others > QUIET and time.monotonic() - start < seconds:
        _, others = _time(lambda: time.sleep(1.0))
    return time.monotonic() - start


def _disturbance(times: Mapping[str, tuple[float, float]]) -> float:
    return max(others for _, others in times.values())


def _time(call: Callable[[], object]) -> tuple[float, float]:
    time.sleep(PAUSE)
    busy, own, start = _busy_seconds(), _own_seconds(), time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    others = _busy_seconds() - busy - (_own_seconds() - own)
    return seconds, max(0.0, round(others / seconds / (os.cpu_count() or 1), 3))


def _busy_seconds() -> float:
    """Return the processor time that all processes used, also of other virtual machines."""
    try:
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:  # not Linux
        return _own_seconds()
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = ticks
    busy = user + nice + system + interrupts + soft_interrupts + stolen
    return busy / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
