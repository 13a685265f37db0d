"""The interface of measured users: a record of a block of users, and what metrics read of it."""

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
    """The data that metrics with one value for all users read."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def size(self) -> int:
        """The work to compute one value: the number of places in lists, or of rows."""

    def users(self, chosen: Int64) -> Together:
        """Return some users alone."""

    def for_all(self, metrics: Sequence[Metric], rules: Rules, weights: Int64 | None) -> Float64:
        """Return the one value of all users, at several cut-offs: float64 [n_metrics].

        `weights` say how often each user counts.
        """


class Variant(NamedTuple):
    """Metrics that are computed together, usually one metric at several cut-offs.

    It holds everything that does not depend on the users, so that this is prepared only once.
    """

    metrics: tuple[Metric, ...]
    names: tuple[str, ...]
    rules: Rules
    over_users: bool  # whether there are only reasons per user, and one value for all
    as_found: bool  # whether defined values that count need no further step
    values: Callable[[Any], Float64]  # from the record to float64 [n_users, n_metrics]
    how: Any = None  # further preparation of one kind of `Measured`

    @classmethod
    def of(cls, metrics: Sequence[Metric], rules: Rules, how: Any = None) -> Variant:
        """Prepare the same metric at several cut-offs."""
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
    """A block of users, and a record that metrics of one kind read.

    It computes values, and says which users are undefined and why. The rules are those of the
    metric, whose name may change single ones.
    """

    record: ClassVar[Record]
    """What metrics must read."""
    n_users: int
    """Number of users."""

    @abc.abstractmethod
    def blocks(self) -> Iterator[slice]:
        """Cut the users into blocks, so that working memory does not grow with their number."""

    @abc.abstractmethod
    def users(self, block: slice) -> Measured:
        """Return a block of users as views, without copying."""

    @classmethod
    def variant(cls, metrics: Sequence[Metric], rules: Rules) -> Variant:
        """Settle what does not depend on the users, for a metric at several cut-offs."""
        return Variant.of(metrics, rules)

    @abc.abstractmethod
    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return the first `Reason` of each user for a metric, or 0, and whether any is set.

        The array must not be changed.
        """

    @abc.abstractmethod
    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics: float64 [n_users, n_metrics]."""

    @abc.abstractmethod
    def outside(self, variant: Variant) -> Bool | None:
        """Return which users do not count in a mean, see `reasons.outside`."""

    @classmethod
    def bounded(cls, rules: Rules) -> bool:
        """Return whether values lie within the metric's bounds, except for rounding."""
        return True
