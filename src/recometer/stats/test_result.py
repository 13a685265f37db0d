"""The outcome of a test."""

from __future__ import annotations

import dataclasses

__all__ = ["TestResult", "on_nothing"]


@dataclasses.dataclass(frozen=True)
class TestResult:
    """The result of a paired test.

    Attributes
    ----------
    p_value
        The two-sided p-value. NaN if there is none, which `note` then explains; 0 if it is below
        the smallest floating-point number, about 1e-308.
    test
        ``"randomisation"``, ``"t"``, ``"wilcoxon"`` or ``"sign"``; ``"gaffke"`` where p is the
        smallest level at which Gaffke's interval excludes 0.
    method
        How p was computed: ``"binomial"``, ``"convolution"``, ``"enumeration"`` (all three are
        exact), ``"saddlepoint"``, ``"student"``, ``"normal"``, ``"gaffke"``, or
        ``"none"``.
    n
        Number of users (or clusters of rows) compared.
    n_differ
        How many of them differ.
    smallest_p
        The lower bound of p for this number of users who differ, whatever the values; 0 if there
        is no such limit.
    note
        What a reader has to know; empty if there is nothing to say.
    """

    __test__ = False  # not a case for pytest, in spite of its name

    p_value: float
    test: str
    method: str
    n: int
    n_differ: int
    smallest_p: float
    note: str = ""

    @property
    def exact(self) -> bool:
        """Return whether p is exact, except for rounding."""
        return self.method in ("binomial", "convolution", "enumeration")


def on_nothing(n: int) -> str:
    """Return that none of n users differs."""
    found = f"None of the {n:,} users differs" if n > 1 else "The only user does not differ"
    return f"{found}, so that nothing can be told apart."
