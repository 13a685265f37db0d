"""Run GIL-releasing tasks on several threads, with support for progress, Ctrl-C and errors."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import numbers
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recometer.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
R = TypeVar("R")

POLL = 0.1  # seconds between checks of the workers, by which progress bars and Ctrl-C may lag
LONGEST_START = 2.0  # maximum number of seconds that a thread may take to start
BLOCK = 2**15  # number of rows of a column that fit into a processor's caches
ROWS_PER_TASK = 2**18
ROWS_LOOKED_AT = 2**21  # number of rows that one thread scans before a second thread would help
BRIEF = 2**15  # number of rows or places that the kernel finishes before a second thread would help
BRIEF_NUMBERS = 2**17  # the same limit for numbers that are read only once, such as scores
PATIENCE = 0.5  # seconds of work after which a progress bar is worth showing


class Cancelled(Exception):
    """Raised inside a task to stop it, because its result is no longer needed."""


_here = threading.local()  # holds the ticker of the task that runs on the thread


def check_cancelled() -> None:
    """Raise Cancelled in a task whose result is no longer needed; do nothing outside tasks.

    Long computations that have no access to the ticker call this function.
    """
    ticker: Ticker | None = getattr(_here, "ticker", None)
    if ticker is not None:
        ticker.advance()


class Ticker:
    """A handle through which a running task reports progress; raises an exception on cancellation.

    `report`, unless it is None, is called with the weight of the work done since the last call.
    """

    def __init__(self, report: Callable[[float], None] | None, cancelled: threading.Event) -> None:
        self.reported = 0.0
        self._report = report
        self._cancelled = cancelled

    def advance(self, weight: float = 0.0) -> None:
        """Report the weight of the work done since the last call; call this about every 50 ms.

        Raises Cancelled if the work was interrupted or another task failed. Tasks must not catch
        it.
        """
        if self._cancelled.is_set():
            raise Cancelled
        self.reported += weight
        if self._report is not None:
            self._report(weight)


_SILENT = Ticker(None, threading.Event())  # reports nothing, and is never cancelled


def run_tasks(
    function: Callable[[T, Ticker], R],
    tasks: Sequence[T],
    *,
    weights: Sequence[float] | None = None,
    threads: int = 1,
    progress: bool | None = None,
    label: str = "Working",
    brief: bool = False,
) -> list[R]:
    """Call a function on every task, on several threads.

    The calling thread only waits, so that Ctrl-C is noticed while kernels run, even with one
    thread. When this returns or raises, all its threads have ended.

    Parameters
    ----------
    weights
        The amount of work of each task, in any unit. None means that all tasks require the same
        amount of work. Work that a task does not report counts as done when the task ends.
    threads
        Maximum number of tasks that run at the same time. Tasks start in the given order.
    progress
        Whether to show a progress bar, labelled `label`. None shows one only if standard error is a
        terminal and the work takes a while.
    brief
        Whether all tasks together take a few milliseconds at most. The calling thread then runs a
        single task itself, because starting another thread would take longer; Ctrl-C has to wait
        until the task ends.

    Returns
    -------
    list
        The results, in the order of the tasks.

    Raises
    ------
    BaseException
        The first exception that a task raised, or KeyboardInterrupt; the other tasks stop
        at their next `Ticker.advance`.
    """
    if not tasks:
        return []
    inline = brief and len(tasks) == 1
    if inline and not progress:
        return [function(tasks[0], _SILENT)]
    weights = [1.0] * len(tasks) if weights is None else weights
    n_workers = min(threads, len(tasks))
    work = _Work(function, list(zip(tasks, weights, strict=True)), n_workers)
    workers = [
        threading.Thread(target=work.run, name=f"recometer-{number}")
        for number in range(0 if inline else n_workers)
    ]
    bar = _Bar(label, float(sum(weights)), progress)
    try:
        bar.update(0.0)
        started = list(itertools.takewhile(was_started, workers))  # the system may refuse more
        if len(started) < len(workers):
            work.reduce_workers(max(1, len(started)))
        workers = started
        if inline or not workers:
            work.run()
        # Thread.join is unsafe: before Python 3.13, Ctrl-C during a join marks a running thread as
        # ended.
        while not work.wait(POLL):
            check_cancelled()  # the calling thread may itself be running a task
            bar.update(work.done)
    finally:
        work.cancelled.set()
        try:
            for worker in workers:
                _join(worker)
        finally:
            bar.close(work.done)
    work.raise_error()
    return [work.results[position] for position in range(len(tasks))]


def was_started(worker: threading.Thread) -> bool:
    """Start a thread; return whether the system allowed it."""
    try:
        worker.start()
    except RuntimeError as error:  # "can't start new thread"
        if isinstance(error.__context__, KeyboardInterrupt):
            # Ctrl-C interrupted Thread.start, which then failed to release a lock of the thread
            raise error.__context__ from None
        return False
    return True


def _join(worker: threading.Thread) -> None:
    """Wait for a thread, even if Ctrl-C interrupted its start, because it may still start later."""
    end = time.monotonic() + LONGEST_START
    while worker in threading.enumerate() and not worker.is_alive() and time.monotonic() < end:
        time.sleep(POLL / 10)
    if worker.is_alive():
        worker.join()


def on_all_threads(function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
    """Call a function on every task, on as many threads as this process has processors.

    Like `run_tasks`, but without showing progress.
    """
    if len(tasks) == 1:
        return [function(tasks[0])]

    def run(task: T, ticker: Ticker) -> R:
        ticker.advance()
        return function(task)

    return run_tasks(run, tasks, threads=resolve_threads(None), progress=False)


def even_parts(n: int, least: int) -> list[slice]:
    """Cut n rows into parts of at least `least` rows, with at most one part per processor."""
    n_parts = max(1, min(resolve_threads(None), n // least))
    bounds = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]


def each_block(
    n: int,
    function: Callable[[slice], R],
    rows: int | None = None,
    per_task: int = ROWS_PER_TASK,
) -> list[R]:
    """Split n rows into blocks, call a function on each block, and return the results in order.

    All processors are used. By default, blocks are short enough to stay in a processor's caches
    during several passes. For a single pass, `rows` may be up to `ROWS_PER_TASK`. Threads take
    `per_task` rows at a time.
    """
    size = BLOCK if rows is None else rows

    def task(first: int) -> list[R]:
        last = min(first + per_task, n)
        return [function(slice(row, min(row + size, last))) for row in range(first, last, size)]

    by_task = on_all_threads(task, range(0, n, per_task))
    return [result for results in by_task for result in results]


def any_in_blocks(n: int, function: Callable[[slice], Any]) -> bool:
    """Call a function on slices that cover n rows; return whether it returns True for any row."""
    by_block = each_block(n, lambda rows: bool(function(rows).any()), ROWS_PER_TASK, ROWS_LOOKED_AT)
    return any(by_block)


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads to use, at least 1.

    None uses all available processors: those in the affinity mask, up to the limit of the control
    group (container).
    """
    if threads is None:
        return _available_processors()
    if isinstance(threads, bool) or not isinstance(threads, numbers.Integral) or threads < 1:
        raise InputError(
            f"threads={threads!r} must be a whole number of at least 1. "
            "Hint: threads=None uses all processors of this process."
        )
    return int(threads)


class _Work(Generic[T, R]):
    """The state shared by the worker threads of one call."""

    def __init__(
        self, function: Callable[[T, Ticker], R], tasks: Sequence[tuple[T, float]], n_workers: int
    ) -> None:
        self.cancelled = threading.Event()
        self.done = 0.0
        self.results: dict[int, R] = {}
        self._function = function
        self._tasks = iter(enumerate(tasks))
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._working = self._n_workers = n_workers
        # Held until the last worker ends. It is not an Event, because Ctrl-C inside Event.wait may
        # leave the event's lock held: the worker that sets the event would then wait forever.
        self._unfinished = threading.Lock()
        self._unfinished.acquire()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for all workers, and return whether all have ended.

        Call this method again until it returns True.
        """
        return self._unfinished.acquire(timeout=seconds)

    def reduce_workers(self, n_workers: int) -> None:
        """Continue with fewer threads, because some could not be started."""
        self._end(self._n_workers - n_workers)

    def run(self) -> None:
        """Work as one of the threads: take tasks until none is left or one fails."""
        try:
            self._run()
        finally:
            self._end(1)

    def _end(self, n_workers: int) -> None:
        with self._lock:
            self._working -= n_workers
            if self._working == 0 and n_workers:
                self._unfinished.release()

    def _run(self) -> None:
        while (entry := self._next()) is not None:
            position, (task, weight) = entry
            ticker, outer = Ticker(self._report, self.cancelled), getattr(_here, "ticker", None)
            _here.ticker = ticker
            try:
                self.results[position] = self._function(task, ticker)
            except BaseException as error:
                with self._lock:
                    # An error after a cancellation is a consequence of it (mostly Cancelled).
                    if not self.cancelled.is_set():
                        self._error = error
                        self.cancelled.set()
                return
            finally:
                _here.ticker = outer
            self._report(weight - ticker.reported)

    def raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # Break the cycle of error, traceback and frame, which would keep arrays alive.
                del error

    def _next(self) -> tuple[int, tuple[T, float]] | None:
        with self._lock:
            return None if self.cancelled.is_set() else next(self._tasks, None)

    def _report(self, weight: float) -> None:
        with self._lock:
            self.done += weight


@contextlib.contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show a label on a terminal during work of unknown length, if it takes a while."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(label)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    shown = was_started(timer)
    try:
        yield
    finally:
        timer.cancel()
        if shown:
            timer.join()  # it may be starting the label right now
        status.stop()


class _Bar:
    """A progress bar on standard error, drawn only by the waiting thread."""

    def __init__(self, label: str, total: float, progress: bool | None) -> None:
        self._label = label
        self._total = total
        if progress is None:
            is_terminal = sys.stderr is not None and sys.stderr.isatty()
            self._show_from = time.monotonic() + PATIENCE if is_terminal else float("inf")
        else:
            self._show_from = float("-inf") if progress else float("inf")
        self._transient = progress is None
        self._rich: tuple[Progress, Any] | None = None

    def update(self, done: float) -> None:
        if self._rich is None and time.monotonic() >= self._show_from:
            self._rich = self._open()
        if self._rich is not None:
            display, bar = self._rich
            display.update(bar, completed=done)
            display.refresh()

    def close(self, done: float) -> None:
        if self._rich is not None:
            display, bar = self._rich
            # Rounding may leave the sum just below the total, which would make the bar look
            # unfinished.
            ended = math.isclose(done, self._total)
            display.update(bar, completed=self._total if ended else done)
            display.stop()

    def _open(self) -> tuple[Progress, Any]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

        display = Progress(
            "[progress.description]{task.description}",
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=self._transient,
        )
        bar = display.add_task(self._label, total=self._total)
        display.start()
        return display, bar


def _available_processors() -> int:
    if hasattr(os, "process_cpu_count"):
        processors = os.process_cpu_count() or 1
    elif hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    else:
        processors = os.cpu_count() or 1
    return max(1, min(processors, _own_limit()))


@functools.cache
def _own_limit() -> int:
    """Return the number of processors that control groups allow this process; cached."""
    return _control_group_limit(control_groups())


def control_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[Path]:
    """Return the directories of the Linux control groups (version 2) that this process is in."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    own = next((PurePosixPath(line[3:]) for line in lines if line.startswith("0::")), None)
    return [] if own is None else [root / path.relative_to("/") for path in (own, *own.parents)]


def memory() -> int:
    """Return the memory of this machine, or of its container, in bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in control_groups():
        with contextlib.suppress(OSError, ValueError):  # the file is missing or says "max"
            limits.append(int((group / "memory.max").read_text()))
    return min(limits)


def _control_group_limit(groups: Iterable[Path]) -> int:
    """Return the number of processors that control groups allow a process."""
    limit = sys.maxsize
    for group in groups:
        with contextlib.suppress(OSError, ValueError):  # the file is missing or says "max"
            quota, period = map(int, (group / "cpu.max").read_text().split())
            limit = min(limit, max(1, -(-quota // period)))
    return limit
