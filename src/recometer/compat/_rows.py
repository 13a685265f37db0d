"""Makes functions that differ only in name, metric and docstring, from rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def row(name: str, doc: str) -> Callable[[Function], Function]:
    """Return a decorator that gives a function the name and the docstring of a row.

    Editors cannot follow this, so `python tests/helpers/dropin_stubs.py` writes stubs for them.
    """

    def named(function: Function) -> Function:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        return function

    return named
