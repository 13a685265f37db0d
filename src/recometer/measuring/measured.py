"""What can be measured: some users, and what metrics of a kind read of them."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from recometer.arrays import Bool, Float64, Int64, UInt8
from recometer.metrics.registry import Metric, Record
from recometer.protocol import Protocol as Rules


class Together(Protocol):
    """What metrics with one value for all users read."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def size(self) -> int:
        """How much one value takes to compute: places in lists, or rows."""

    def users(self, chosen: Int64) -> Together:
        """Return some users alone."""

    def for_all(self, metrics: Sequence[Metric], rules: Rules, weights: Int64 | None) -> Float64:
        """Return the one value of all users, at several cut-offs: float64 [n_metrics].

        `weights` say how often each user counts.
        """


class Measured(abc.ABC):
    """Some users, and the record that metrics of a kind read of them.

    It answers who is undefined, and why; and computes. The rules are those of the metric: a name
    may change single ones.
    """

    record: ClassVar[Record]
    """What metrics must read."""

    @property
    @abc.abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @abc.abstractmethod
    def blocks(self) -> Iterator[slice]:
        """Cut the users into blocks, so that working memory does not grow with their number."""

    @abc.abstractmethod
    def users(self, block: slice) -> Measured:
        """Return some users alone, without copying what is known of them."""

    @abc.abstractmethod
    def reasons(self, metric: Metric, rules: Rules) -> UInt8:
        """Return the first `Reason` of each user, 0 without one; it must not be changed."""

    @abc.abstractmethod
    def compute(self, metrics: Sequence[Metric], rules: Rules) -> Float64:
        """Return values of the same metric at several cut-offs: float64 [n_users, n_metrics]."""

    @abc.abstractmethod
    def outside(self, metric: Metric, rules: Rules) -> Bool | None:
        """Tell who does not count in a mean, see `reasons.outside`."""

    @classmethod
    def bounded(cls, rules: Rules) -> bool:
        """Return whether values lie within the metric's bounds, except for rounding."""
        return True
