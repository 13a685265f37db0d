"""What a published table can tell: means of models, and the number of users."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from recometer import stats
from recometer.comparing.models import check_baseline, pairs_of
from recometer.comparing.rows import PAIR, p_text
from recometer.errors import InputError, UnknownNameError
from recometer.metrics.names import parse
from recometer.rendering import Column, Printed, Table

BINARY = ("hit",)  # metrics whose values of users are 0 or 1


@dataclasses.dataclass(frozen=True)
class PublishedRow:
    """Two models of a published table by one metric.

    Attributes
    ----------
    metric, model, other
    mean, mean_other
        As published.
    difference
        The first minus the second.
    smallest_p, largest_p
        Between which p lies, whatever the users' values were.
    p_if_independent
        What p would be if the models' values had nothing to do with each other.
    certain_difference
        The least difference that is significant whatever the values were; NaN if there is none.
    verdict
        ``"significant"``, ``"not significant"`` or ``"cannot be told"``.
    """

    metric: str
    model: str
    other: str
    mean: float
    mean_other: float
    difference: float
    smallest_p: float
    largest_p: float
    p_if_independent: float
    certain_difference: float
    verdict: str


@dataclasses.dataclass(frozen=True)
class PublishedTable(Printed):
    """What a published table can tell of its models.

    Attributes
    ----------
    rows : tuple of PublishedRow
    n
        Number of users.
    alpha
        Level of significance of each comparison, after Bonferroni's correction.
    n_comparisons
    """

    rows: tuple[PublishedRow, ...]
    n: int
    alpha: float
    n_comparisons: int

    def table(self) -> Table:
        """Return a row per metric and pair."""
        columns = [
            *PAIR,
            Column("mean", show="{:.4f}".format, number=True),
            Column("difference", show="{:+.4f}".format, number=True),
            Column("p", ("smallest_p", "largest_p"), _between, number=True),
            Column("if independent", ("p_if_independent",), p_text, number=True),
            Column("certain from", ("certain_difference",), _certain, number=True),
            Column("verdict"),
            Column("mean_other", hidden=True),
        ]
        notes = [
            f"{self.n:,} users. p of a paired test lies between these two, whatever the users' "
            "values were: the means do not say how the models go together user by user.",
            "if independent: p if the models had nothing to do with each other; models of the same "
            "users mostly go together, and p is smaller then.",
            "certain from: differences that are significant whatever the values were.",
        ]
        if self.n_comparisons > 1:
            notes.append(
                f"Level of each comparison: {self.alpha:.2g} (Bonferroni, {self.n_comparisons} "
                "comparisons)."
            )
        return Table(columns, self.rows, notes)


def published_table(
    means: Mapping[str, Mapping[str, float]],
    n: int,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    bounds: tuple[float, float] | None = None,
) -> PublishedTable:
    """Return what published means can tell.

    Parameters
    ----------
    means
        Per model, the mean of each metric; NaN where none was published.
    n
        Number of users; metrics that are means over fewer need a table of their own.
    baseline
        The model that all others are compared with. None compares every pair.
    alpha
        Level of significance, of all comparisons together.
    bounds
        The lowest and the highest value of a user. None takes those of the metric.

    Raises
    ------
    InputError
        If there are fewer than two models, or a metric does not have a range.
    UnknownNameError
        If the baseline or a metric does not exist.
    """
    names = list(means)
    if len(names) < 2:
        raise InputError(f"A table of {len(names)} models has nothing to compare.")
    check_baseline(baseline, names)
    pairs = pairs_of(names, baseline)
    wanted = [
        (metric, one, two)
        for metric in means[names[0]]
        for one, two in pairs
        if not math.isnan(means[one][metric] + means[two][metric])
    ]
    level = alpha / max(1, len(wanted))
    rows = []
    for metric, one, two in wanted:
        ends, binary = _range(metric, bounds)
        first, second = means[one][metric], means[two][metric]
        found = stats.published(first, second, n, bounds=ends, binary=binary, alpha=level)
        fields = dataclasses.asdict(found)
        rows.append(PublishedRow(metric, one, two, first, second, **fields))
    return PublishedTable(tuple(rows), n, level, len(wanted))


def _range(metric: str, bounds: tuple[float, float] | None) -> tuple[tuple[float, float], bool]:
    """Return the range of a metric, and whether its values are at the ends alone."""
    if bounds is not None:
        return bounds, False
    try:
        known = parse(metric)[0]
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error} Or give the range of a user's value: bounds=(0, 1)."
        ) from error
    low, high = known.bounds(negative=False, binary=False)
    if known.definition.over_users:
        raise InputError(
            f"{metric} is one value for all users, and no mean of theirs, so that nothing can be "
            "told from it. Hint: leave the column out."
        )
    if not -math.inf < low < high < math.inf:
        raise InputError(
            f"{metric} has no known range, so nothing can be told from its means. Hint: give the "
            "range of a user's value: bounds=(0, 1)."
        )
    return (low, high), known.name in BINARY


def _between(low: float, high: float) -> str:
    return f"{p_text(low)} to {p_text(high)}"


def _certain(difference: float) -> str:
    return "none" if math.isnan(difference) else f"{difference:.4f}"
