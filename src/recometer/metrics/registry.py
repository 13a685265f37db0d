"""The registry of metrics, and their names: ``ndcg@10``, ``recall@5,10``, ``ap@1..20``."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from recometer.ties import WHOLE, Property

__all__ = ["MAX_CUTOFFS", "METRICS", "Metric", "MetricDefinition", "metric", "parse", "reading"]

# The first argument depends on the record that is read: see `MetricDefinition`.
Function = Callable[[Any, npt.NDArray[np.int64]], npt.NDArray[np.float64]]
Record = Literal["ranks", "ratings"]
Needs = Literal["rows", "relevant", "recommended", "variance", "pairs"]

MAX_CUTOFFS = 10_000
"""The most cut-offs that one range may stand for."""


@dataclasses.dataclass(frozen=True)
class MetricDefinition:
    """What the registry states of a metric.

    Attributes
    ----------
    name
        As in ``name@10``.
    function
        ``function(groups, cutoffs)``, or ``function(predictions, cutoffs)`` of the record
        ``"ratings"``: the formula for every user, as float64 [n_users, n_cutoffs]; a ratio
        without denominator is 0 there. The cut-offs are an int64 array, in which
        `recometer.ties.WHOLE` means the whole ranking. Where the metric is undefined is
        settled elsewhere (`recometer.metrics.undefined`).
    title, formula, source
        For people: the metric's full name, its formula and literature.
    lower, upper
        Bounds of the value.
    higher_is_better
        Direction.
    monotone
        The value never falls when an item trades places with a worse one above it.
    order_free
        The order within the first k places does not matter.
    cutoff
        Whether ``@k`` is ``"required"``, ``"optional"`` or taken by ``"none"``.
    reads
        The property of an item that is read: its ``"relevance"`` or its ``"gain"``.
    defined_when_all_relevant
        Whether the metric still says something where every candidate is relevant.
    needs_whole_ranking
        Whether a list that ends before the last candidate cannot give the metric.
    record
        What is read: ``"ranks"`` (`recometer.ties.Groups`) or ``"ratings"``
        (`recometer.metrics.ratings.Predictions`).
    needs
        What a metric of ratings is undefined without: ``"rows"``, ``"relevant"`` or
        ``"recommended"`` ones, a ``"variance"`` of the true ratings, or ``"pairs"`` of rows
        that differ in them.
    over_rows
        Whether there is a value over the rows of all users, too.
    """

    name: str
    function: Function
    title: str
    formula: str
    source: str
    lower: float
    upper: float
    higher_is_better: bool
    monotone: bool
    order_free: bool
    cutoff: Literal["required", "optional", "none"]
    reads: Property
    defined_when_all_relevant: bool
    needs_whole_ranking: bool
    record: Record
    needs: Needs
    over_rows: bool


METRICS: dict[str, MetricDefinition] = {}
"""Every metric, by name."""


def reading(record: Record) -> dict[str, MetricDefinition]:
    """Return the metrics that read a record, by name."""
    return {name: each for name, each in METRICS.items() if each.record == record}


def metric(
    *,
    title: str,
    formula: str,
    source: str,
    cutoff: Literal["required", "optional", "none"],
    lower: float = 0.0,
    upper: float = 1.0,
    higher_is_better: bool = True,
    monotone: bool = True,
    order_free: bool = False,
    reads: Property = "relevance",
    defined_when_all_relevant: bool = False,
    needs_whole_ranking: bool = False,
    record: Record = "ranks",
    needs: Needs = "rows",
    over_rows: bool = False,
) -> Callable[[Function], Function]:
    """Register the function below as the metric of its name; see `MetricDefinition`."""

    def register(function: Function) -> Function:
        name = function.__name__
        METRICS[name] = MetricDefinition(
            name=name,
            function=function,
            title=title,
            formula=formula,
            source=source,
            lower=lower,
            upper=upper,
            higher_is_better=higher_is_better,
            monotone=monotone,
            order_free=order_free,
            cutoff=cutoff,
            reads=reads,
            defined_when_all_relevant=defined_when_all_relevant,
            needs_whole_ranking=needs_whole_ranking,
            record=record,
            needs=needs,
            over_rows=over_rows,
        )
        return function

    return register


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric at one cut-off; ``str(Metric("ndcg", 10))`` is ``"ndcg@10"``.

    Parameters
    ----------
    name
        A name in `METRICS`.
    cutoff
        How many of the first places are read; None: the whole ranking.

    Raises
    ------
    UnknownNameError
        There is no such metric.
    InputError
        The cut-off is no whole number from 1 on; or it is missing, or not taken.
    """

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.name not in METRICS:
            raise UnknownNameError(
                f"There is no metric {self.name!r}. {did_you_mean(str(self.name), METRICS)}"
            )
        takes = METRICS[self.name].cutoff
        if self.cutoff is None:
            if takes == "required":
                raise InputError(
                    f"The metric {self.name!r} needs a cut-off. "
                    f"Hint: write {self.name}@10 for the first 10 places."
                )
            return
        if takes == "none":
            raise InputError(
                f"The metric {self.name!r} reads the whole ranking, but was given the cut-off "
                f"{self.cutoff}. Hint: write {self.name} alone."
            )
        try:
            cutoff = operator.index(self.cutoff)
        except TypeError:
            raise _bad_cutoff(self.name, self.cutoff) from None
        if isinstance(self.cutoff, bool) or not 1 <= cutoff < WHOLE:
            raise _bad_cutoff(self.name, self.cutoff)
        object.__setattr__(self, "cutoff", cutoff)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @property
    def definition(self) -> MetricDefinition:
        """What the registry states of it."""
        return METRICS[self.name]


def parse(metrics: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """Read names of metrics.

    Parameters
    ----------
    metrics
        Names with spaces between: ``"recall@5,10 ndcg@1..3 roc_auc"``; several cut-offs have
        commas between, and ``1..3`` stands for 1, 2 and 3. Or a list of such names, or of
        `Metric`.

    Returns
    -------
    list of Metric
        In the order given, each once.

    Raises
    ------
    UnknownNameError
        A metric that does not exist.
    InputError
        No metric, or a cut-off that its metric does not take.
    InputTypeError
        Something that is no name.

    Examples
    --------
    >>> [str(metric) for metric in parse("recall@5,10 ndcg@1..3 roc_auc")]
    ['recall@5', 'recall@10', 'ndcg@1', 'ndcg@2', 'ndcg@3', 'roc_auc']
    """
    if isinstance(metrics, str | Metric):
        metrics = [metrics]
    elif not isinstance(metrics, Iterable):
        raise _not_a_name(metrics)
    found: dict[Metric, None] = {}
    for entry in metrics:
        if isinstance(entry, Metric):
            found[entry] = None
        elif isinstance(entry, str):
            for name in entry.split():
                found.update(dict.fromkeys(_parse_one(name)))
        else:
            raise _not_a_name(entry)
    if not found:
        raise InputError("No metric was asked for. Hint: name one or more, such as 'ndcg@10'.")
    return list(found)


def _parse_one(text: str) -> Iterable[Metric]:
    name, at, cutoffs = text.partition("@")
    if not at:
        return [Metric(name)]
    if name not in METRICS or METRICS[name].cutoff == "none":
        return [Metric(name, 1)]  # raises what fits
    return [
        Metric(name, cutoff) for part in cutoffs.split(",") for cutoff in _parse_part(name, part)
    ]


def _parse_part(name: str, part: str) -> Iterable[int]:
    """Read a cut-off or a range."""
    first, dots, last = part.partition("..")
    if not dots:
        return [_parse_cutoff(name, part)]
    low, high = _parse_cutoff(name, first), _parse_cutoff(name, last)
    if low > high:
        raise InputError(
            f"The range {name}@{part} runs backwards. Hint: write {name}@{high}..{low}."
        )
    if high - low >= MAX_CUTOFFS:
        raise InputError(
            f"The range {name}@{part} stands for {high - low + 1:,} cut-offs, more than "
            f"{MAX_CUTOFFS:,}. Hint: name those that are needed, as in {name}@{low},{high}."
        )
    return range(low, high + 1)


def _parse_cutoff(name: str, text: str) -> int:
    # Longer numbers are beyond int64; int() takes signs, spaces and other scripts' digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise _bad_cutoff(name, text)
    cutoff = int(text)
    if not 1 <= cutoff < WHOLE:
        raise _bad_cutoff(name, text)
    return cutoff


def _bad_cutoff(name: str, found: object) -> InputError:
    return InputError(
        f"The cut-off {str(found)!r} of the metric {name!r} must be a whole number from 1 to "
        f"{WHOLE - 1}. Hint: write {name}@10, {name}@5,10 or {name}@1..10; names of metrics "
        f"have spaces between."
    )


def _not_a_name(found: object) -> InputTypeError:
    return InputTypeError(
        f"Metrics are named by text, but {found!r} is of type {type(found).__name__}. "
        f"Hint: write 'ndcg@10 recall@5,10'."
    )
