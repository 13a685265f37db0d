"""Ask a slow function for the next result while the last one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from recometer.tasks import POLL, Ticker

if TYPE_CHECKING:
    from concurrent.futures import Future

A = TypeVar("A")
R = TypeVar("R")


class Prefetch(Generic[A, R]):
    """Calls a function on one argument after the other, one ahead of those who take results.

    All calls come from one thread, so the function need not be safe for threads, and may use
    what belongs to a thread. There are never more results in memory than takers at work, and
    one. A context manager: its thread ends with the block.

    Parameters
    ----------
    function
        Called once per argument, in their order.
    arguments
    """

    def __init__(self, function: Callable[[A], R], arguments: Iterable[A]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # loads logging; few sources need it

        self._function = function
        self._arguments = iter(arguments)
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recometer-function")
        self._next: tuple[A, Future[R]] | None = None

    def __enter__(self) -> Prefetch[A, R]:
        self._next = self._ask()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def take(self, ticker: Ticker) -> tuple[A, R]:
        """Return the next argument and its result; the one after it is asked for at once.

        Raises IndexError where there are no more, what the function raised, and Cancelled where
        the work was interrupted, or another task failed, while the function was busy.
        """
        from concurrent.futures import wait

        with self._lock:
            if self._next is None:
                raise IndexError("All results are taken.")
            argument, future = self._next
            self._next = self._ask()
        ticker.advance()
        while not wait([future], POLL).done:
            ticker.advance()
        return argument, future.result()

    def _ask(self) -> tuple[A, Future[R]] | None:
        for argument in self._arguments:
            return argument, self._thread.submit(self._function, argument)
        return None
