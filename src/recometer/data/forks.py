"""Checks whether Polars still works in this process, because its threads do not survive a fork."""

from __future__ import annotations

import os
import re

from recometer.errors import InputError

THREAD = re.compile(r"polars-\d+$")  # the names of Polars' worker threads
_lost = False


def check_threads() -> None:
    """Raise an error if Polars would wait forever for threads that were lost in a fork.

    Raises
    ------
    InputError
        If this process was forked from a process that had used Polars.
    """
    if _lost:
        raise InputError(
            "This process was forked from one in which Polars had been used. Its threads are gone, "
            "and Polars would wait for them forever. Hint: start new processes, with "
            "multiprocessing.get_context('spawn') or DataLoader(..., "
            "multiprocessing_context='spawn'); or pass only NumPy arrays and sparse matrices, "
            "which do not need Polars."
        )


def _remember() -> None:
    """Before a fork, record whether Polars has threads, which the child will lack."""
    global _about_to_lose  # noqa: PLW0603  # one value per process
    _about_to_lose = _lost or any(map(THREAD.match, _threads()))


def _forget() -> None:
    """Record, in the child process, that the threads are lost."""
    global _lost  # noqa: PLW0603  # one value per process
    _lost = _about_to_lose


def _threads() -> list[str]:
    """Return the names of this process's threads; none if the system does not list them."""
    names = []
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
    except OSError:
        pass  # not Linux, or a thread has just ended
    return names


_about_to_lose = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_remember, after_in_child=_forget)
