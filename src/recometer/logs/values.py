"""Values of policies with their intervals, and the policies compared pairwise."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from recometer.arrays import Float64
from recometer.comparing.rows import PairRow, difference_columns, percent, plain_mean
from recometer.errors import UnknownNameError, brief, did_you_mean
from recometer.logs.policies import LOGGED
from recometer.rendering import Column, Printed, Table
from recometer.stats import Interval, adjust, paired_t
from recometer.stats.grouping import group
from recometer.stats.means import NEGATIVE, NOT_ABOVE_0, relative_interval, student
from recometer.stats.several import Correction
from recometer.tasks import on_all_threads

if TYPE_CHECKING:
    from recometer.comparing.gates import GateReport, Undecided
    from recometer.report.result import Report

ESTIMATORS = ("dr", "snips", "clipped_ips", "ips", "direct")  # the most robust first


@dataclasses.dataclass(frozen=True)
class Weights:
    """Whether the log supports a policy; a weight is target probability / propensity.

    Attributes
    ----------
    effective_users, effective_impressions
        (Σ W)² / Σ W² of the summed weights of users, and of the weights of impressions: as many
        equal weights would give the same variance (Kish 1965).
    largest : tuple of float
        The largest weights, decreasing.
    largest_share
        The share of the largest weight in the sum of all weights.
    mean, mean_interval
        The mean weight, which is 1 (less `unsupported`) if the propensities are right.
    unsupported
        The share of the policy's probability on items that the logged policy never shows; NaN
        unless all logging probabilities are given.
    """

    effective_users: float
    effective_impressions: float
    largest: tuple[float, ...]
    largest_share: float
    mean: float
    mean_interval: Interval
    unsupported: float

    @property
    def expected(self) -> float:
        """Return what the mean weight should be."""
        return 1.0 if np.isnan(self.unsupported) else 1.0 - self.unsupported

    @property
    def as_expected(self) -> bool:
        """Return whether the interval of the mean weight contains what it should be."""
        return self.expected in self.mean_interval

    def plain(self) -> dict[str, Any]:
        """Return the values of a row."""
        found = {**vars(self), "mean_weight": self.mean}
        found["mean_weight_low"], found["mean_weight_high"] = self.mean_interval
        return found


UNKNOWN = Weights(
    np.nan, np.nan, (), np.nan, np.nan, Interval.unknown(np.nan, 0, ""), np.nan
).plain()


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The value of a policy, as an estimator finds it.

    Attributes
    ----------
    policy, estimator
    value
        Reward per impression, or per slate.
    interval
        See docs/logs.md for what it covers.
    per_user : float64 [n_users]
        Linearised values of users, whose mean is the value (the delta method).
    """

    policy: str
    estimator: str
    value: float
    interval: Interval
    per_user: Float64 = dataclasses.field(repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class PolicyValues(Printed):
    """The values of policies, estimated from a log of another one.

    ``values["new", "snips"]`` is an `Estimate`, and ``values["new"]`` is the one of the first
    estimator. ``"logged"`` is the mean reward of the log itself.

    Attributes
    ----------
    estimates : dict of Estimate
        By policy and estimator.
    weights : dict of Weights
        By policy: read these first.
    n_impressions, n_users, n_units
        The numbers of impressions, of users, and of slates (or impressions).
    unit
        What a value is per: ``"impression"`` or ``"slate"``.
    maximise, confidence, clip
        As given.
    negative
        Whether any reward is negative, in which case there are no relative differences.
    """

    estimates: dict[tuple[str, str], Estimate]
    weights: dict[str, Weights]
    n_impressions: int
    n_users: int
    n_units: int
    unit: str
    maximise: bool
    confidence: float
    clip: float | None
    negative: bool

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        policy, estimator = (key, self.estimators[0]) if isinstance(key, str) else key
        known("There is no policy", policy, self.policies)
        return self.estimates[
            policy, known("There are no values by the estimator", estimator, self.estimators)
        ]

    @property
    def estimators(self) -> list[str]:
        """The estimators, the primary one first."""
        return list(dict.fromkeys(estimator for _, estimator in self.estimates))

    @property
    def policies(self) -> list[str]:
        """The policies, ``"logged"`` first."""
        return list(dict.fromkeys(policy for policy, _ in self.estimates))

    def compare(
        self, *, baseline: str | None = None, correction: Correction = "holm"
    ) -> PolicyComparison:
        """Compare the policies pairwise on the same log, over the same users.

        The difference of two estimates is the mean of the differences of the users' linearised
        values; its interval is Student's, and p that of the paired t test. p is adjusted over the
        comparisons on the first estimator.

        Parameters
        ----------
        baseline
            Compare with this policy only, for instance ``"logged"``. None compares all pairs.
        correction
            As for `recometer.stats.adjust`.

        Raises
        ------
        UnknownNameError
            If there is no such policy or correction.
        """
        pairs = [(one, other) for other, one in itertools.combinations(self.policies, 2)]
        if baseline is not None:
            known("There is no policy", baseline, self.policies)
            pairs = [(one, baseline) for one in self.policies if one != baseline]
        wanted = [(name, *pair) for name in self.estimators for pair in pairs]
        rows = on_all_threads(lambda one: self.row(*one), wanted)
        p_values = [row.p_value if row.primary else np.nan for row in rows]
        adjusted = adjust(p_values, correction).tolist()
        rows = [
            dataclasses.replace(row, adjusted_p=p) for row, p in zip(rows, adjusted, strict=True)
        ]
        return PolicyComparison(tuple(rows), self, baseline, correction)

    def row(self, estimator: str, policy: str, other: str) -> PairRow:
        """Return the difference of two policies, without an adjusted p."""
        x, y = (self.estimates[name, estimator].per_user for name in (policy, other))
        n, mean, mean_other = len(x), float(x.mean()), float(y.mean())
        differences = group(x - y)
        interval = student(differences, self.confidence)
        if self.negative or not mean_other > 0:
            note = NEGATIVE if self.negative else NOT_ABOVE_0
            relative, ends = np.nan, Interval.unknown(self.confidence, n, note)
        else:
            relative = mean / mean_other - 1
            ends = relative_interval(group(x, y), interval)
        return PairRow(
            metric=estimator,
            model=policy,
            other=other,
            higher_is_better=self.maximise,
            n=n,
            mean=mean,
            mean_other=mean_other,
            difference=float((x - y).mean()),
            interval=interval,
            relative=relative,
            relative_interval=ends,
            test=paired_t(differences),
            primary=estimator == self.estimators[0],
        )

    def report(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Report:
        """Make a report that compares all policies with the log; see `PolicyComparison.report`."""
        return self.compare(baseline=LOGGED).report(path, **options)

    def table(self) -> Table:
        """Return the values, with the weights in CSV and JSON."""
        rows = [
            {
                **vars(one),
                "low": one.interval.low,
                "high": one.interval.high,
                "method": one.interval.method,
                **(self.weights[one.policy].plain() if one.policy in self.weights else UNKNOWN),
            }
            for one in self.estimates.values()
        ]
        columns = [
            Column("policy"),
            Column("estimator"),
            Column("value", show=plain_mean, number=True),
            self._ends("low", "high"),
            Column("method", hidden=True),
            *(dataclasses.replace(one, hidden=True) for one in self._of_weights()),
        ]
        better = "higher" if self.maximise else "lower"
        notes = [f"Values are rewards per {self.unit}; {better} is better."]
        if "direct" in self.estimators:
            notes.append(
                "The interval of direct does not contain the error of the predicted rewards."
            )
        if self.clip is not None:
            notes.append(f"clipped_ips has weights of at most {self.clip:g}.")
        return Table(columns, rows, notes)

    def weights_table(self) -> Table:
        """Return the weights, which say whether to trust the values."""
        rows = [{"policy": name, **one.plain()} for name, one in self.weights.items()]
        slates = f"{self.n_units:,} slates, " if self.unit == "slate" else ""
        head = [f"{self.n_impressions:,} impressions, {slates}{self.n_users:,} users"]
        return Table([Column("policy"), *self._of_weights()], rows, self.remarks(), head)

    def _of_weights(self) -> list[Column]:
        return [
            Column("effective users", ("effective_users",), "{:,.0f}".format, number=True),
            Column("impressions", ("effective_impressions",), "{:,.0f}".format, number=True),
            Column("largest weights", ("largest",), _in_digits, number=True),
            Column("largest_share", hidden=True),
            Column("mean weight", ("mean_weight",), plain_mean, number=True),
            self._ends("mean_weight_low", "mean_weight_high"),
            Column(
                "unsupported",
                show=lambda share: "" if np.isnan(share) else f"{share:.1%}",
                number=True,
                hidden=all(np.isnan(one.unsupported) for one in self.weights.values()),
            ),
        ]

    def _ends(self, low: str, high: str) -> Column:
        return Column(f"{self.confidence:.0%} interval", (low, high), _to, number=True)

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return the weights, which say whether to trust the values, and the values."""
        return [self.weights_table(), self.table()]

    def remarks(self) -> list[str]:
        """Return sentences on mean weights that are not what they should be."""
        return [
            f"The mean weight of {name} should be {one.expected:.4g}, but its interval is "
            f"{_to(*one.mean_interval)}: the propensities do not belong to this log, or the policy "
            "shows items that the log never does."
            for name, one in self.weights.items()
            if not one.as_expected
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        table = self.table()
        return {
            "weights": self.weights_table().records(),
            "values": table.records(),
            "impressions": self.n_impressions,
            "users": self.n_users,
            "unit": self.unit,
            "maximise": self.maximise,
            "confidence": self.confidence,
            "notes": [*self.remarks(), *table.notes],
        }


@dataclasses.dataclass(frozen=True)
class PolicyComparison(Printed):
    """Policies compared pairwise on the same log. ``print`` shows their weights and values first.

    Attributes
    ----------
    rows : tuple of PairRow
        The metric of a row is an estimator, and its models are policies. Relative intervals are
        Fieller's; only p of the first estimator is adjusted.
    values : PolicyValues
    baseline : str or None
    correction
    """

    rows: tuple[PairRow, ...]
    values: PolicyValues
    baseline: str | None
    correction: str
    # A comparison of models also has these, which gates read.
    models: ClassVar = ()
    known_users: ClassVar = None
    sample_ratio: ClassVar = None

    @property
    def confidence(self) -> float:
        """Return the coverage of intervals."""
        return self.values.confidence

    def known(self, estimator: str) -> str:
        """Return the name of an estimator that has values; refuse any other."""
        return known("There are no values by the estimator", estimator, self.values.estimators)

    def higher_is_better(self, _: str) -> bool:
        """Return whether a higher value is better."""
        return self.values.maximise

    def table(self) -> Table:
        """Return a row per estimator and pair of policies."""
        _, _, *shown = difference_columns(self.confidence, margin=False)
        columns = [
            Column("estimator", ("metric",)),
            Column("policy", ("model",)),
            *shown[:-3],
            Column("relative", show=percent, number=True),
            *(Column(name, hidden=True) for name in ("relative_low", "relative_high")),
            *shown[-3:],
        ]
        n, first = sum(row.primary for row in self.rows), self.values.estimators[0]
        note = (
            f"p is adjusted ({self.correction}) over the {n:,} comparisons on {first}; intervals "
            "are not adjusted."
        )
        return Table(columns, self.rows, [note])

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the weights, the values, and the differences."""
        return [*self.values.tables(width), self.table()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        return {**self.values.to_dict(), "comparison": super().to_dict()}

    def gate(self, gates: str | Sequence[str], undecided: Undecided | None = None) -> GateReport:
        """Check bounds for the difference to the baseline: ``"snips >= -1%"``, ``"dr >= 0"``.

        Parameters, verdicts and errors are those of `recometer.Comparison.gate`; the metrics are
        estimators.
        """
        from recometer.comparing.gates import check_gates

        found = check_gates(cast("Any", self), gates, undecided)
        return dataclasses.replace(found, said=tuple(self.values.remarks()))

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        gates: GateReport | None = None,
    ) -> Report:
        """Make a report: whether the log can answer, values, differences, and what `gate` returned.

        The path, the title and errors are those of `recometer.Comparison.report`.
        """
        from recometer.logs.page import content
        from recometer.report.result import made

        return made(lambda: content(self, title, gates), path)


def known(lacking: str, name: str, names: Collection[str]) -> str:
    """Return a name that is known; `lacking` begins the message about another one."""
    if name not in names:
        raise UnknownNameError(f"{lacking} {brief(name)}. {did_you_mean(str(name), names)}")
    return name


def _to(low: float, high: float) -> str:
    return "unknown" if np.isnan(low) else f"{plain_mean(low)} to {plain_mean(high)}"


def _in_digits(largest: Sequence[float]) -> str:
    return ", ".join(f"{weight:.3g}" for weight in largest)
