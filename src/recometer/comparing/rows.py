"""Rows of a comparison: two models by a metric, and a model among all; how both are shown."""

from __future__ import annotations

import dataclasses
import math

from recometer.rendering import Column
from recometer.stats import Equivalence, Interval, Runs, TestResult

__all__ = [
    "NO_DIFFERENCE",
    "PAIR",
    "SIGNS",
    "PairRow",
    "Standing",
    "difference_columns",
    "p_text",
    "pair_name",
    "standing_text",
    "user_columns",
]


SMALLEST_P = 1e-300  # shown
NO_DIFFERENCE = "no difference shown"  # neither a difference nor equivalence
SIGNS = (
    "* is the best mean of a metric. ≈ marks a mean for which no difference from the best one "
    "is shown.",
    "Behind each mean stand the ranks that are possible.",
)
"""What `standing_text` shows."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PairRow:
    """Two models by one metric, on the users that both have a value for.

    Attributes
    ----------
    metric, model, other
        Differences are those of `model` minus `other`.
    higher_is_better
        Direction of the metric.
    n
        Users compared.
    n_only_model, n_only_other
        Users that only one of the two has a value for; they are left out.
    mean, mean_other
        Over the users compared.
    difference, interval
        Difference of the means, with its interval.
    relative, relative_interval
        (mean of model) / (mean of other) - 1, a ratio of means over users; NaN where the other's
        mean is not above 0.
    test
        p-value of the null hypothesis that the two do not differ.
    primary
        Whether it is one of the comparisons that p is adjusted over: by primary metrics, and not
        with chance, unless that is the baseline.
    adjusted_p
        p adjusted for all of these comparisons; NaN of others.
    smallest_adjusted_p
        What `adjusted_p` cannot fall below, whatever the values of the users who differ.
    n_better, n_equal, n_worse
        Users better off with `model`, equally well and worse off, by the metric's direction.
    standardised
        Mean of the users' differences divided by their standard deviation.
    probability_better, probability_interval
        Chance that a random user is better off with `model`; a tie counts half.
    deviation
        Standard deviation of the users' differences.
    unit
        What the users' differences are multiples of, where the test is coarser for it; otherwise 0.
    error
        Standard error of the difference, over users, or over clusters of them.
    smallest_difference
        The true difference that this test set shows with a power of 80 %, at the level of one of
        as many comparisons. Above `largest_difference` there is none.
    largest_difference
        The largest difference that two values can have; infinite where the metric has no range.
    equivalence
        The outcome of two one-sided tests, where a margin was given.
    runs
        For several seeds or folds, the variance between them beside that between users.
    notes
        What a reader has to know.
    """

    metric: str
    model: str
    other: str
    higher_is_better: bool
    n: int
    n_only_model: int = 0
    n_only_other: int = 0
    mean: float
    mean_other: float
    difference: float
    interval: Interval
    relative: float
    relative_interval: Interval
    test: TestResult
    primary: bool = True
    adjusted_p: float = math.nan
    smallest_adjusted_p: float = math.nan
    n_better: int = 0
    n_equal: int = 0
    n_worse: int = 0
    standardised: float = math.nan
    probability_better: float = math.nan
    probability_interval: Interval | None = None
    deviation: float = math.nan
    unit: float = 0.0
    error: float = math.nan
    smallest_difference: float = math.nan
    largest_difference: float = math.inf
    equivalence: Equivalence | None = None
    runs: Runs | None = None
    notes: tuple[str, ...] = ()

    @property
    def low(self) -> float:
        """Return the lower end of the difference."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Return the upper end of the difference."""
        return self.interval.high

    @property
    def relative_low(self) -> float:
        """Return the lower end of the relative difference."""
        return self.relative_interval.low

    @property
    def relative_high(self) -> float:
        """Return the upper end of the relative difference."""
        return self.relative_interval.high

    @property
    def p_value(self) -> float:
        """Return p before it is adjusted."""
        return self.test.p_value

    @property
    def equivalence_p(self) -> float:
        """Return p of the two one-sided tests; NaN without a margin."""
        return math.nan if self.equivalence is None else self.equivalence.p_value

    @property
    def for_all_users(self) -> bool:
        """Return whether the metric has one value for all users, and none for each."""
        return self.probability_interval is None

    @property
    def verdict(self) -> str:
        """Return ``"better"``, ``"worse"``, ``"equivalent"``, `NO_DIFFERENCE`, or nothing."""
        p = self.adjusted_p if self.primary else self.p_value
        if p <= 1 - self.interval.confidence:
            return "better" if (self.difference > 0) == self.higher_is_better else "worse"
        if self.equivalence is not None and self.equivalence.equivalent:
            return "equivalent"
        return "" if math.isnan(p) else NO_DIFFERENCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Standing:
    """A model by one metric, among all models.

    Attributes
    ----------
    metric, model
    mean, interval
        Over the users that all models have a value for.
    n
        How many these are.
    leads
        Whether the mean is the best one.
    best
        Whether the model is the best one, or no difference from it is shown.
    rank_low, rank_high
        Interval of its rank; those of all models of the metric hold at once. 0: a random order
        (``chance=True``), which is not ranked.
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
    def low(self) -> float:
        """Return the lower end of the mean's interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Return the upper end of the mean's interval."""
        return self.interval.high


def p_text(p: float) -> str:
    """Return a p-value as people read it."""
    if math.isnan(p):
        return ""
    if p < SMALLEST_P:  # what rounding leaves of it is not a statement
        return f"<{SMALLEST_P:.0e}"
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"


def signed(value: float) -> str:
    """Return a difference with its sign."""
    return "" if math.isnan(value) else f"{value:+.4f}"


def percent(value: float) -> str:
    """Return a relative difference."""
    return "" if math.isnan(value) else f"{value:+.1%}"


def standing_text(standing: Standing) -> str:
    """Return a mean, its sign, and its rank: ``"0.1234* 1-2"``; see `SIGNS`."""
    if math.isnan(standing.mean):
        return "undefined"
    low, high = standing.rank_low, standing.rank_high
    if low == 0:
        return f"{standing.mean:.4f}  -"
    rank = f"{low}" if low == high else f"{low}-{high}"
    sign = "*" if standing.leads else "≈" if standing.best else " "
    return f"{standing.mean:.4f}{sign} {rank}"


def difference_columns(confidence: float, *, margin: bool) -> list[Column]:
    """Return the columns of differences between models."""

    def ends(low: float, high: float) -> str:
        return "" if math.isnan(low) else f"{low:+.4f} to {high:+.4f}"

    shown = [
        *PAIR,
        Column("mean", show=plain_mean, number=True),
        Column("difference", show=signed, number=True),
        Column(f"{confidence:.0%} interval", ("low", "high"), ends, number=True),
        Column("p", ("p_value",), p_text, number=True),
        Column("adjusted p", ("adjusted_p",), p_text, number=True),
    ]
    if margin:
        shown.append(Column("p equivalent", ("equivalence_p",), p_text, number=True))
    return [*shown, Column("verdict")]


def plain_mean(value: float) -> str:
    """Return a mean."""
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def user_columns(confidence: float) -> list[Column]:
    """Return the columns of relative differences and of how users differ."""

    def ends(low: float, high: float) -> str:
        return "" if math.isnan(low) else f"{low:+.1%} to {high:+.1%}"

    def number(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.3f}"

    def users(n_better: int, n_equal: int, n_worse: int, n: int) -> str:
        return f"{n_better:,} / {n_equal:,} / {n_worse:,}" if n_better + n_equal + n_worse else ""

    return [
        *PAIR,
        Column("relative", show=percent, number=True),
        Column(f"{confidence:.0%} interval", ("relative_low", "relative_high"), ends, number=True),
        Column("effect", ("standardised",), number, number=True),
        Column("P(better)", ("probability_better",), number, number=True),
        Column(
            "better / equal / worse", ("n_better", "n_equal", "n_worse", "n"), users, number=True
        ),
        Column("users", ("n",), "{:,}".format, number=True),
    ]


PAIR = (Column("metric"), Column("model"), Column("compared with", ("other",)))


def pair_name(model: str, other: str) -> str:
    """Return how two models are named whose difference is meant."""
    return f"{model} minus {other}"
