"""What can be measured: some users, and what metrics of a kind read of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8
from recometer.metrics.registry import Metric, Record
from recometer.protocol import Protocol as Rules
from recometer.ties import WHOLE


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


class Variant(NamedTuple):
    """Metrics that are computed at once, mostly one at several cut-offs, under their rules.

    What does not depend on who is measured is settled here, once for all calls.
    """

    metrics: tuple[Metric, ...]
    names: tuple[str, ...]
    rules: Rules
    over_users: bool  # whether they have no value of a user, but reasons
    as_found: bool  # whether a value stays as it was found where it is defined and counts
    values: Callable[[Any], Float64]  # from what they read to float64 [n_users, n_metrics]
    how: Any = None  # what a kind of `Measured` has found out beside

    @classmethod
    def of(cls, metrics: Sequence[Metric], rules: Rules, how: Any = None) -> Variant:
        """Settle it for the same metric at several cut-offs."""
        first = metrics[0]
        definition = first.definition
        cutoffs = [WHOLE if metric.cutoff is None else metric.cutoff for metric in metrics]
        return cls(
            tuple(metrics),
            tuple(map(str, metrics)),
            rules,
            definition.over_users,
            not definition.may_be_nan and rules.decimals is None,
            first.at(np.array(cutoffs, np.int64)),
            how,
        )


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

    @classmethod
    def variant(cls, metrics: Sequence[Metric], rules: Rules) -> Variant:
        """Settle what does not depend on the users, for a metric at several cut-offs."""
        return Variant.of(metrics, rules)

    @abc.abstractmethod
    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return the first `Reason` of each user by one of the metrics, 0 without one.

        It must not be changed. And whether a user has one.
        """

    @abc.abstractmethod
    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics: float64 [n_users, n_metrics]."""

    @abc.abstractmethod
    def outside(self, variant: Variant) -> Bool | None:
        """Tell who does not count in a mean, see `reasons.outside`."""

    @classmethod
    def bounded(cls, rules: Rules) -> bool:
        """Return whether values lie within the metric's bounds, except for rounding."""
        return True
