"""Tests of `recometer.tasks`, which runs work on threads and reacts to Ctrl-C."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import recometer as rm
from recometer import tasks
from recometer.errors import InputError
from recometer.tasks import Ticker, check_cancelled, resolve_threads, run_tasks

INTERRUPTED = """
import sys, threading, time
from recometer.tasks import run_tasks

def function(task, ticker):
    print("started\\n", end="", flush=True)  # a single write, since two threads print
    while True:
        time.sleep(0.02)
        ticker.advance()

try:
    run_tasks(function, range(8), threads=int(sys.argv[1]))
except KeyboardInterrupt:
    print("alive", threading.active_count(), flush=True)
    sys.exit(3)
"""


def running_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("recometer")]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n_tasks", [0, 1, 5, 40])
def test_results_are_returned_in_the_order_of_the_tasks(threads: int, n_tasks: int) -> None:
    def square(task: int, ticker: tasks.Ticker) -> int:
        time.sleep(0.001 * (task % 3))
        return task * task

    assert run_tasks(square, range(n_tasks), threads=threads) == [t * t for t in range(n_tasks)]
    assert running_threads() == []


@pytest.mark.parametrize("n_tasks", [0, 1, 3])
def test_single_brief_task_starts_no_thread(n_tasks: int, capsys) -> None:
    def current_thread(task: int, ticker: tasks.Ticker) -> threading.Thread:
        ticker.advance(0.5)
        return threading.current_thread()

    thread_ids = run_tasks(
        current_thread, range(n_tasks), threads=2, brief=True, progress=True, label="Ranking"
    )
    assert len(thread_ids) == n_tasks
    assert (threading.main_thread() in thread_ids) == (n_tasks == 1)
    assert ("100%" in capsys.readouterr().err) == (n_tasks > 0)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_brief_work_raises_the_error_of_its_task(error: type[BaseException]) -> None:
    def raising_task(task: int, ticker: tasks.Ticker) -> None:
        raise error("the cause")

    with pytest.raises(error, match="the cause") as caught:
        run_tasks(raising_task, [0], brief=True)
    assert caught.traceback[-1].name == "raising_task"


def test_number_of_tasks_at_once_equals_the_number_of_threads() -> None:
    meet = threading.Barrier(3)
    running, most_running, lock = 0, 0, threading.Lock()

    def function(task: int, ticker: tasks.Ticker) -> None:
        nonlocal running, most_running
        with lock:
            running += 1
            most_running = max(most_running, running)
        meet.wait(timeout=10)  # this fails unless three tasks wait at the same time
        with lock:
            running -= 1

    run_tasks(function, range(6), threads=3)
    assert most_running == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_first_exception_stops_all_tasks_and_keeps_its_traceback(threads: int) -> None:
    begun = []

    def raising_task() -> None:
        raise ZeroDivisionError("the cause")

    def function(task: int, ticker: tasks.Ticker) -> None:
        begun.append(task)
        if task == 1:
            raising_task()
        for _ in range(2 if threads == 1 else 10_000):
            time.sleep(0.001)
            ticker.advance()

    with pytest.raises(ZeroDivisionError, match="the cause") as caught:
        run_tasks(function, range(100), threads=threads)
    assert caught.traceback[-1].name == "raising_task"
    assert len(begun) <= 1 + threads
    assert running_threads() == []


def test_results_are_released_after_an_error() -> None:
    import gc
    import weakref

    references = []

    def function(task: int, ticker: tasks.Ticker) -> None:
        array = np.zeros(1)
        references.append(weakref.ref(array))
        raise InputError("no")

    gc.disable()
    try:
        with pytest.raises(InputError) as caught:
            run_tasks(function, [0], threads=1)
        del caught
        assert references[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_the_work_and_leaves_no_thread(threads: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5  # on an idle machine, this takes 0.5 seconds
    assert process.returncode == 3, errors
    assert output.splitlines()[-1] == "alive 1"
    assert errors == ""


def test_ctrl_c_during_the_start_of_a_thread_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C inside Thread.start may surface as a RuntimeError about a lock, as simulated here."""

    def start(thread: threading.Thread) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(lambda task, ticker: task, range(3), threads=2)


def test_work_continues_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert run_tasks(lambda task, ticker: -task, range(3), threads=2) == [0, -1, -2]


def test_tasks_run_outside_the_main_thread() -> None:
    results: list[int] = []

    def outer() -> None:
        results.extend(run_tasks(lambda task, ticker: -task, range(5), threads=2))

    thread = threading.Thread(target=outer)
    thread.start()
    thread.join(timeout=20)
    assert results == [0, -1, -2, -3, -4]


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_shown_on_request(threads: int, capsys: pytest.CaptureFixture[str]) -> None:
    def function(task: int, ticker: tasks.Ticker) -> None:
        for _ in range(10):
            ticker.advance(task / 10)

    run_tasks(
        function, range(20), weights=range(20), threads=threads, progress=True, label="Ranking"
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Ranking" in captured.err
    assert "100%" in captured.err


@pytest.mark.parametrize("progress", [None, False])
def test_progress_is_not_shown_without_a_terminal(
    progress: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run_tasks(lambda task, ticker: time.sleep(0.35), range(2), threads=1, progress=progress)
    assert capsys.readouterr() == ("", "")


def test_only_long_work_shows_progress_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")

    def function(task: int, ticker: tasks.Ticker) -> None:
        time.sleep(0.2)
        ticker.advance(1)

    monkeypatch.setattr(tasks, "PATIENCE", 100)
    run_tasks(function, range(2), threads=1, label="Ranking")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(tasks, "PATIENCE", 0.05)
    run_tasks(function, range(4), threads=1, label="Ranking")
    assert "Ranking" in capsys.readouterr().err


def test_number_of_weights_must_match_tasks() -> None:
    with pytest.raises(ValueError):
        run_tasks(lambda task, ticker: None, range(3), weights=[1, 2])


@pytest.mark.parametrize("threads", [0, -2, 1.5, True, "2", np.float32(1)])
def test_invalid_numbers_of_threads_are_refused(threads: object) -> None:
    with pytest.raises(InputError, match=r"threads=.* whole number of at least 1.*Hint"):
        resolve_threads(threads)  # type: ignore[arg-type]


def test_numbers_of_threads_are_resolved_to_python_integers() -> None:
    assert resolve_threads(3) == 3
    assert type(resolve_threads(np.int64(2))) is int  # type: ignore[arg-type]
    assert resolve_threads(None) >= 1


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"a/b": "max 100000", "a": "250000 100000"}, 3),
        ({"a/b": "50000 100000"}, 1),
        ({"": "400000 100000", "a/b": "800000 100000"}, 4),
        ({"a": "max 100000"}, sys.maxsize),
        ({}, sys.maxsize),
    ],
)
def test_control_groups_limit_the_number_of_threads(
    tmp_path, limits: dict[str, str], expected: int
) -> None:
    membership = tmp_path / "membership"
    membership.write_text("1:cpu:/old\n0::/a/b\n")
    for group, limit in limits.items():
        (tmp_path / "root" / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / group / "cpu.max").write_text(limit + "\n")
    groups = tasks.control_groups(membership, tmp_path / "root")
    assert tasks._control_group_limit(groups) == expected
    assert tasks.control_groups(tmp_path / "missing", tmp_path / "root") == []
    assert tasks._control_group_limit([]) == sys.maxsize


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience", "is_shown"), [(0.0, True), (60.0, False)])
def test_terminal_shows_work_of_unknown_length(
    patience: float, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(tasks, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", terminal)
    split = rm.split.split({user: [1, 2, 3] for user in range(5)}, rm.split.Number(1))
    rm.audit(split)
    with tasks.waiting("Looking"):
        time.sleep(0.2 if is_shown else 0)
    assert ("Looking" in terminal.getvalue()) == is_shown


def test_waiting_prints_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with tasks.waiting("Looking"):
        time.sleep(0)
    assert capsys.readouterr().err == ""


def test_nested_tasks_stop_if_another_task_fails() -> None:
    """One task fails while the tasks inside another task call `check_cancelled`."""
    begun, ended = threading.Event(), []

    def long(_: int, ticker: Ticker) -> None:
        begun.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.01)
        finally:
            ended.append("inner")

    def nested(task: int, ticker: Ticker) -> None:
        if task == 0:
            run_tasks(long, range(2), threads=2, progress=False)
        begun.wait()
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        run_tasks(nested, range(2), threads=2, progress=False)
    assert ended == ["inner", "inner"]
    check_cancelled()  # outside of tasks, this call has no effect
