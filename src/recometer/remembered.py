"""Properties that are computed once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` without its lock.

        Before Python 3.12, all instances share one lock. Threads therefore wait for each other, and
        a process that is forked while the lock is held waits for it forever.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """Return the value, computed on first access."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
