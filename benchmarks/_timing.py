"""Interleaved timing: one call at a time, while no other process uses the processors."""

from __future__ import annotations

import dataclasses
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# The pause before each call, in seconds. Waiting BLAS and OpenMP threads keep a processor busy for
# a while, and allocators keep memory that would be ready for the next call (Polars' for half a
# second).
PAUSE = 1.0
QUIET = 0.05  # the share of processor time that other processes may use
PATIENCE = 3  # run at most this multiple of the repeats to find quiet rounds
WAIT = 120.0  # seconds that all rounds together may wait for other processes


@dataclasses.dataclass(frozen=True)
class Timed:
    """The times of a call, and how busy other processes kept the processors."""

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
    """Time several calls in turn, in a new random order for each round.

    Each call can reuse the memory that the previous one released, so a fixed order would favour
    some calls. A round waits a while until other processes are quiet. If they still use more than
    5 % of the processors, the round is repeated. The quietest rounds count.
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
    quietest = sorted(rounds, key=_disturbance)[:repeats]
    return {
        name: Timed(
            [times_of_round[name][0] for times_of_round in quietest],
            [times_of_round[name][1] for times_of_round in quietest],
        )
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
    """Return the processor time of all processes, including other virtual machines."""
    try:
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:  # not on Linux
        return _own_seconds()
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = ticks
    busy = user + nice + system + interrupts + soft_interrupts + stolen
    return busy / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
