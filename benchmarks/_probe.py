"""Measurements in a separate process: memory, Ctrl-C, other instruction sets, imports.

`probe` runs this file as a script, which prints its measurements as JSON.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _cases import Case, make
from _rivals import evaluate, large_product, rank
from _timing import side_by_side
from threadpoolctl import threadpool_limits

SAMPLE = 0.001  # seconds between two samples of a process's memory
INTERRUPT_AFTER = (0.02, 0.1, 0.3, 0.6, 1.0, 1.5)  # seconds of work before Ctrl-C


def probe(
    task: str, case: Case, threads: int, repeats: int = 1, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a task of this module in a new process.

    Returns
    -------
    dict
        "share": times of `evaluate`, the ranks alone and a large product.
        "memory": seconds of `evaluate`, and bytes: the peak above the inputs, less the outputs.
        "interrupt": seconds from Ctrl-C to the end of the call, for several moments.
    """
    settings = json.dumps(dataclasses.asdict(case))
    command = [sys.executable, __file__, task, settings, str(threads), str(repeats)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    ) as child:
        measurements = {"memory": _watch, "interrupt": _interrupt}.get(task, _wait)(child)
    if child.returncode:
        raise SystemExit(f"{task} of {case.name!r} failed: see above.")
    return measurements


def import_seconds(repeats: int) -> list[list[float]]:
    """Return the seconds of successive imports.

    NumPy is imported first, then recometer, then the modules that the first evaluation of factors
    needs.
    """
    code = (
        "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); "
        "import recometer; c = time.perf_counter(); "
        "recometer.Factors, recometer.Interactions, recometer.evaluate; d = time.perf_counter(); "
        "print(b - a, c - b, d - c)"
    )
    command = [sys.executable, "-c", code]
    lines = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        for _ in range(repeats + 1)
    ]
    # The first run may compile bytecode.
    return [list(map(float, column)) for column in zip(*lines[1:], strict=True)]


# The following functions run in the parent process.


def _read(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    line = child.stdout.readline()
    message: dict[str, Any] = json.loads(line) if line else {}
    return message


def _answer(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def _wait(child: subprocess.Popen[str]) -> dict[str, Any]:
    return _read(child)


def _watch(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Sample the memory that belongs to the child, without memory-mapped files."""
    measurements = _read(child)
    if not measurements:
        return measurements
    before, ended, peak = _anonymous(child.pid), threading.Event(), 0

    def read() -> None:
        measurements.update(_read(child))
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    _answer(child)
    while not ended.wait(SAMPLE):
        peak = max(peak, _anonymous(child.pid))
    reader.join()
    if "outputs" in measurements:
        measurements["peak"] = peak - before - measurements["outputs"]
        _answer(child)
        measurements.update(_read(child))
    return measurements


def _anonymous(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return int(kilobytes[0]) * 1024 if kilobytes else 0


def _interrupt(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Send SIGINT, like Ctrl-C, and measure how long the child takes to return."""
    latencies, alive = [], 0
    for delay in INTERRUPT_AFTER:
        if not _read(child):
            break
        _answer(child)
        _read(child)
        time.sleep(delay)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        back = _read(child)
        if back.get("interrupted"):
            latencies.append(back["at"] - sent)
            alive = max(alive, back["threads"])
        _answer(child)
    return {"seconds": latencies, "threads": alive}


# The following functions run in the child process.


def _say(**found: object) -> None:
    print(json.dumps(found), flush=True)


def _share(case: Case, threads: int, repeats: int) -> None:
    data = make(case)
    times = side_by_side(
        {
            "evaluate": evaluate(data, threads),
            "rank": rank(data, threads),
            "large product": large_product(case.dtype),
        },
        repeats,
    )
    _say(**{name: dataclasses.asdict(timed) for name, timed in times.items()})


def _memory(case: Case, threads: int, repeats: int) -> None:
    data = make(case)
    # Import lazily imported modules, and start threads that stay alive.
    evaluate(data.first_users(threads * 2), threads)()
    call = evaluate(data, threads)
    gc.collect()
    # Free memory that is kept for the next allocation would hide later allocations.
    ctypes.CDLL(None).malloc_trim(0)
    _say(ready=True)
    sys.stdin.readline()
    start = time.perf_counter()
    result = call()
    seconds = [time.perf_counter() - start]
    outputs = sum(
        array.nbytes
        for value in vars(result).values()
        for array in (value.values() if isinstance(value, dict) else [value])
        if isinstance(array, np.ndarray)
    )
    # The peak is known, so further calls only measure time.
    _say(ended=True, outputs=outputs)
    sys.stdin.readline()
    for _ in range(repeats - 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    _say(seconds=seconds)


def _be_interrupted(case: Case, threads: int, repeats: int) -> None:
    # Restore the handler, since processes that a shell starts in the background ignore this signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    data = make(case)
    call = evaluate(data, threads)
    for _ in INTERRUPT_AFTER:
        _say(ready=True)
        sys.stdin.readline()
        finished = False
        try:
            _say(started=True)
            call()
            finished = True
            signal.pause()  # the call ended before the signal, so wait for it here
        except KeyboardInterrupt:
            at = time.monotonic()
        _say(interrupted=not finished, at=at, threads=threading.active_count() - 1)
        sys.stdin.readline()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["share", "memory", "interrupt"])
    parser.add_argument("case", type=json.loads)
    parser.add_argument("threads", type=int)
    parser.add_argument("repeats", type=int)
    options = parser.parse_args()
    task = {"share": _share, "memory": _memory, "interrupt": _be_interrupted}[options.task]
    with threadpool_limits(options.threads):
        task(Case(**options.case), options.threads, options.repeats)


if __name__ == "__main__":
    _main()
