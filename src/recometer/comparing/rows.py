"""The rows of a comparison, for pairs of models and for the leaderboard, and their columns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.rendering import Column
from recometer.rendering.formats import number
from recometer.stats import Difference, Equivalence, Interval, Runs, several

Correction = several.Correction | Literal["tukey"]
POWER_WANTED = 0.8  # the power at which the smallest detectable difference is reported
SMALLEST_P = 1e-300  # p-values below this number are shown as "<1e-300"
NO_DIFFERENCE = "no difference shown"  # the models are not shown to be equivalent either
SIGNS = (
    "* marks the best mean of a metric; ≈ marks means not shown to differ from it.",
    "Each mean is followed by the model's possible ranks.",
)
"""The explanation of the signs in `standing_text`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairRow(Difference):
    """Two models on one metric, compared on the users with a value from both.

    A row has the attributes of `recometer.stats.Difference` and those below. If lower values of the
    metric are better, `n_better`, `n_worse` and `probability_better` count lower values as better.
    If `few` is true, gates are undecided, unless the interval is Gaffke's.

    Attributes
    ----------
    metric, model, other
        The metric and the models. Differences are `model` minus `other`.
    higher_is_better
        Whether higher values of the metric are better.
    for_all_users
        Whether the metric has one value for all users instead of a value per user.
    primary
        Whether this comparison counts when p-values are adjusted. All comparisons on primary
        metrics do, except those with chance, which count only if chance is the baseline.
    adjusted_p
        p, adjusted for the number of primary comparisons; NaN for other comparisons.
    smallest_difference
        The smallest true difference that this test set can detect with a power of 80 %, at the
        significance level adjusted for the number of comparisons. If it is above
        `largest_difference`, the test set cannot detect any difference with this power. NaN if too
        few users differ to determine it.
    largest_difference
        The largest possible difference between two values; infinite if the metric has no range.
    equivalence
        The result of the two one-sided tests; None without a margin.
    runs
        For several seeds or folds, the mean difference, with an interval that accounts for the
        variance between seeds or folds as well as between users; otherwise None.
    notes
        Remarks on this comparison.
    """

    metric: str
    model: str
    other: str
    higher_is_better: bool
    for_all_users: bool = False
    primary: bool = True
    adjusted_p: float = math.nan
    smallest_difference: float = math.nan
    largest_difference: float = math.inf
    equivalence: Equivalence | None = None
    runs: Runs | None = None
    notes: tuple[str, ...] = ()

    @property
    def relative_low(self) -> float:
        """Return the lower end of the interval of the relative difference."""
        return self.relative_interval.low

    @property
    def relative_high(self) -> float:
        """Return the upper end of the interval of the relative difference."""
        return self.relative_interval.high

    @property
    def decides_gates(self) -> bool:
        """Return whether enough users differ for the interval to decide gates.

        Gaffke's interval can always decide them, because it allows for users outside the sample.
        """
        return not self.few or self.interval.method in ("gaffke", "clopper-pearson")

    @property
    def p_value(self) -> float:
        """Return the unadjusted p."""
        return self.test.p_value

    @property
    def equivalence_p(self) -> float:
        """Return p of the two one-sided tests; NaN without a margin."""
        return math.nan if self.equivalence is None else self.equivalence.p_value

    @property
    def verdict(self) -> str:
        """Return ``"better"``, ``"worse"``, ``"equivalent"``, `NO_DIFFERENCE` or an empty string.

        A difference counts as shown if the interval excludes 0 and p (adjusted for primary metrics)
        is at most 1 - confidence.
        """
        p = self.adjusted_p if self.primary else self.p_value
        if p <= 1 - self.interval.confidence and 0.0 not in self.interval:
            return "better" if (self.difference > 0) == self.higher_is_better else "worse"
        if self.equivalence is not None and self.equivalence.equivalent:
            return "equivalent"
        return "" if math.isnan(p) else NO_DIFFERENCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Standing:
    """A model's place on the leaderboard for one metric.

    Attributes
    ----------
    metric, model
        The names of the metric and of the model.
    mean, interval
        The mean over the users with a value from every model, and its interval.
    n
        The number of users in this mean.
    leads
        Whether no model has a better mean.
    best
        Whether the model is the best, or not significantly different from the best.
    rank_low, rank_high
        The ends of the interval for the model's rank. The intervals for all models hold
        simultaneously. Both ends are 0 for a random order (``chance=True``), which is not ranked.
    """

    metric: str
    model: str
    mean: float
    interval: Interval
    n: int
    leads: bool
    best: bool
    rank_low: int
    rank_high: int

    @property
    def rank(self) -> str:
        """Return the possible ranks as text: ``"1"``, ``"1-2"``, or ``""`` without a rank."""
        low, high = self.rank_low, self.rank_high
        return "" if low == 0 else f"{low}" if low == high else f"{low}-{high}"

    @property
    def low(self) -> float:
        """Return the lower end of the mean's interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Return the upper end of the mean's interval."""
        return self.interval.high


def rank_models(
    metric: str,
    names: Sequence[str],
    means: Sequence[float],
    p_values: Sequence[float],
    intervals: Sequence[Interval],
    n: Sequence[int],
    *,
    higher_is_better: bool,
    confidence: float,
    tukey: Float64 | None = None,
) -> list[Standing]:
    """Rank models on a metric, best first.

    Adjusted p-values of all pairs determine the ranks (`recometer.stats.rank_intervals`).
    `p_values` contains the unadjusted p-values of all pairs of ranked models, in the order of
    `itertools.combinations`. They are adjusted by Holm's method; but if `tukey` (float64 [n_ranked,
    n_ranked]) contains the p-values of Tukey's test, the adjusted p-value of a pair is the larger
    of that test's p-value and the unadjusted one. Random orders come last in `names`, `means` and
    `n`; they have neither an interval nor a rank, because other models do not compete with them.
    """
    n_ranked = len(intervals)
    adjusted = np.full((n_ranked, n_ranked), np.nan)
    adjusted[np.triu_indices(n_ranked, 1)] = p_values
    adjusted = stats.adjust(adjusted, "holm") if tukey is None else np.maximum(adjusted, tukey)
    adjusted = np.fmax(adjusted, adjusted.T)
    ranking = stats.rank_intervals(
        means[:n_ranked], adjusted, alpha=1 - confidence, higher_is_better=higher_is_better
    )
    # NaN only if all means are NaN
    lead = (np.fmax if higher_is_better else np.fmin).reduce(means[:n_ranked])
    rows = [
        Standing(
            metric=metric,
            model=name,
            mean=mean,
            interval=intervals[position]
            if position < n_ranked
            else Interval.unknown(confidence, n[0], "A random order is not ranked."),
            n=n[position],
            leads=position < n_ranked and bool(mean == lead),
            best=position < n_ranked and bool(ranking.best[position]) and not math.isnan(mean),
            rank_low=int(ranking.low[position]) if position < n_ranked else 0,
            rank_high=int(ranking.high[position]) if position < n_ranked else 0,
        )
        for position, (name, mean) in enumerate(zip(names, means, strict=True))
    ]
    sign = -1 if higher_is_better else 1
    return sorted(rows, key=lambda row: math.inf if math.isnan(row.mean) else sign * row.mean)


def p_text(p: float) -> str:
    """Return a p-value as text."""
    if math.isnan(p):
        return ""
    if p < SMALLEST_P:  # the digits of such a small p are mere rounding error
        return f"<{SMALLEST_P:.0e}"
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"


def signed(value: float) -> str:
    """Return a difference as text, with its sign; an empty string for NaN."""
    return "" if math.isnan(value) else number(value, "+")


def percent(value: float) -> str:
    """Return a relative difference as text, in percent; an empty string for NaN."""
    return "" if math.isnan(value) else f"{value:+.1%}"


def standing_text(standing: Standing) -> str:
    """Return a mean with its sign and its rank, such as ``"0.1234* 1-2"``; see `SIGNS`."""
    if math.isnan(standing.mean):
        return "undefined"
    if not standing.rank:
        return f"{number(standing.mean)}  -"
    sign = "*" if standing.leads else "≈" if standing.best else " "
    return f"{number(standing.mean)}{sign} {standing.rank}"


def interval_column(confidence: float) -> Column:
    """Return the column for the interval of a difference."""

    def ends(low: float, high: float) -> str:
        return "" if math.isnan(low) else f"{signed(low)} to {signed(high)}"

    return Column(f"{confidence:.0%} interval", ("low", "high"), ends, number=True)


def difference_columns(confidence: float, *, margin: bool, adjusted: bool = False) -> list[Column]:
    """Return the columns for differences between models.

    If all rows have an adjusted p, the unadjusted p may be left out when space is short.
    """
    shown = [
        *PAIR,
        Column("mean", show=plain_mean, number=True, spare=True),
        Column("difference", show=signed, number=True),
        interval_column(confidence),
        Column("p", ("p_value",), p_text, number=True, spare=adjusted),
        Column("adjusted p", ("adjusted_p",), p_text, number=True),
    ]
    if margin:
        shown.append(Column("p equivalent", ("equivalence_p",), p_text, number=True))
    return [*shown, Column("verdict")]


def plain_mean(value: float) -> str:
    """Return a mean as text; "undefined" for NaN."""
    return "undefined" if math.isnan(value) else number(value)


def user_columns(confidence: float, *, paired: bool = True) -> list[Column]:
    """Return columns for relative differences and, if paired, numbers of users who gain or lose."""

    def ends(low: float, high: float) -> str:
        if math.isnan(low):
            return ""
        return f"{low:+.1%} to {high:+.1%}" if math.isfinite(high) else f"{low:+.1%}, no upper end"

    def number(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.3f}"

    def users(n_better: int, n_equal: int, n_worse: int, n: int) -> str:
        return f"{n_better:,} / {n_equal:,} / {n_worse:,}" if n_better + n_equal + n_worse else ""

    pairs = [
        Column("P(better)", ("probability_better",), number, number=True, spare=True),
        Column(
            "better / equal / worse", ("n_better", "n_equal", "n_worse", "n"), users, number=True
        ),
    ]
    return [
        *PAIR,
        Column("relative", show=percent, number=True),
        Column(f"{confidence:.0%} interval", ("relative_low", "relative_high"), ends, number=True),
        Column("effect", ("standardised",), number, number=True, spare=True),
        *(pairs if paired else []),
        Column("users", ("n",), "{:,}".format, number=True, spare=True),
    ]


PAIR = (Column("metric"), Column("model"), Column("compared with", ("other",)))


def pair_name(model: str, other: str) -> str:
    """Return the name of the difference between two models."""
    return f"{model} minus {other}"
