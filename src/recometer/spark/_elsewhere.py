"""Arguments of one machine that Spark has no use for: they are refused, with the way out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from recometer.errors import InputError

Made = TypeVar("Made", bound=Callable[..., Any])

IDS = "users and items have ids, in columns. Hint: leave it out"
RUNNING = {
    "threads": "a task has one thread, and Spark runs as many tasks at a time as executors have "
    "cores. Hint: leave it out",
    "progress": "Spark shows the progress of its jobs itself. Hint: leave it out; see "
    "spark.ui.showConsoleProgress, and the web interface of Spark",
}


def refusing(why: Mapping[str, str]) -> Callable[[Made], Made]:
    """Refuse arguments that a function or a class does not take; `why` has the reasons by name."""

    def checking(function: Callable[..., Any]) -> Any:
        refused = why.keys() - inspect.signature(function).parameters.keys()

        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for name in refused & options.keys():
                raise InputError(f"{name}= is not for Spark: {why[name]}.")
            return function(*args, **options)

        return checked

    def of(made: Made) -> Made:
        if isinstance(made, type):
            made.__init__ = checking(made.__init__)  # type: ignore[misc]
            return made
        found: Made = checking(made)
        return found

    return of
