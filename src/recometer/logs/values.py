"""Values of policies with their intervals, and the policies compared pairwise."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing.rows import PairRow, difference_columns, percent, plain_mean
from recometer.errors import UnknownNameError, brief, did_you_mean
from recometer.logs.policies import LOGGED
from recometer.rendering import Column, Printed, Table
from recometer.stats import Interval
from recometer.tasks import on_all_threads

if TYPE_CHECKING:
    from recometer.comparing.gates import GateReport, Undecided
    from recometer.report.result import Report

# Linearised values do not tell which users are better off, so that pairs have only these.
OF_PAIRS = (
    *("n", "mean", "mean_other", "difference", "interval"),
    *("relative", "relative_interval", "test"),
)


@dataclasses.dataclass(frozen=True)
class Weights:
    """Whether the log supports a policy; a weight is target probability / propensity.

    Attributes
    ----------
    policy
    effective_users, effective_impressions
        (Σ W)² / Σ W² of the summed weights of users, and of the weights of impressions: as many
        equal weights would give the same variance (Kish 1965).
    largest : tuple of float
        The largest weights, decreasing.
    mean, interval
        The mean weight, which is 1 (less `unsupported`) if the propensities are right.
    unsupported
        The share of the policy's probability on items that the logged policy never shows; NaN
        unless all logging probabilities are given.
    """

    policy: str
    effective_users: float
    effective_impressions: float
    largest: tuple[float, ...]
    mean: float
    interval: Interval
    unsupported: float


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

    ``values["new", "snips"]`` is an `Estimate`, and ``values["new"]`` is that of the first
    estimator. ``"logged"`` is the mean reward of the log itself. `compare` adds differences.

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
        The arguments of `Impressions.evaluate`.
    negative
        Whether any reward is negative, in which case there are no relative differences.
    rows : tuple of PairRow
        The differences, after `compare`: `metric` is the estimator, `model` and `other` are the
        policies. Relative intervals are Fieller's.
    baseline
        The argument of `compare`.
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
    rows: tuple[PairRow, ...] = ()
    baseline: str | None = None
    # A comparison of models also has these, which gates read.
    models: ClassVar = ()
    known_users: ClassVar = None
    sample_ratio: ClassVar = None

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        policy, estimator = (key, self.estimators[0]) if isinstance(key, str) else key
        known("There is no policy", policy, self.policies)
        return self.estimates[policy, self.known(estimator)]

    @property
    def estimators(self) -> list[str]:
        """The estimators, the primary one first."""
        return list(dict.fromkeys(estimator for _, estimator in self.estimates))

    @property
    def policies(self) -> list[str]:
        """The policies, ``"logged"`` first."""
        return [LOGGED, *self.weights]

    def known(self, estimator: str) -> str:
        """Return the name of an estimator that has values; refuse any other."""
        return known("There are no values by the estimator", estimator, self.estimators)

    def compare(self, *, baseline: str | None = None) -> PolicyValues:
        """Return the values with the differences of all pairs of policies, over the same users.

        The difference of two estimates is the mean of the differences of the users' linearised
        values; its interval is Student's, and p that of the paired t test. Over the comparisons on
        the first estimator, p is adjusted by Holm's method.

        Parameters
        ----------
        baseline
            Compare with this policy only, for instance ``"logged"``. None compares all pairs.

        Raises
        ------
        UnknownNameError
            If there is no such policy.
        """
        pairs = [(one, other) for other, one in itertools.combinations(self.policies, 2)]
        if baseline is not None:
            known("There is no policy", baseline, self.policies)
            pairs = [(one, baseline) for one in self.policies if one != baseline]
        asked = [(name, *pair) for name in self.estimators for pair in pairs]
        rows = on_all_threads(lambda one: self.row(*one), asked)
        first = [row for row in rows if row.primary]
        adjusted = stats.adjust([row.p_value for row in first], "holm").tolist()
        rows[: len(first)] = [
            dataclasses.replace(row, adjusted_p=p) for row, p in zip(first, adjusted, strict=True)
        ]
        return dataclasses.replace(self, rows=tuple(rows), baseline=baseline)

    def row(self, estimator: str, policy: str, other: str) -> PairRow:
        """Return the difference of two policies, without an adjusted p."""
        found = stats.compare(
            *(self.estimates[name, estimator].per_user for name in (policy, other)),
            bounds=None if self.negative else (0.0, np.inf),
            test="t",
            confidence=self.confidence,
        )
        return PairRow(
            **{name: getattr(found, name) for name in OF_PAIRS},
            metric=estimator,
            model=policy,
            other=other,
            higher_is_better=self.maximise,
            primary=estimator == self.estimators[0],
        )

    def table(self) -> Table:
        """Return the differences if the policies are compared, or else the values."""
        return self.differences_table() if self.rows else self.values_table()

    def values_table(self) -> Table:
        """Return the values."""
        columns = [
            Column("policy"),
            Column("estimator"),
            Column("value", show=plain_mean, number=True),
            self._ends(),
            Column("method", hidden=True),
        ]
        better = "higher" if self.maximise else "lower"
        notes = [f"Values are rewards per {self.unit}; {better} is better."]
        if "direct" in self.estimators:
            notes.append(
                "The interval of direct does not contain the error of the predicted rewards."
            )
        if self.clip is not None:
            notes.append(f"clipped_ips has weights of at most {self.clip:g}.")
        return Table(columns, [*map(_row, self.estimates.values())], notes)

    def weights_table(self) -> Table:
        """Return the weights, which say whether to trust the values."""
        slates = f"{self.n_units:,} slates, " if self.unit == "slate" else ""
        columns = [
            Column("policy"),
            Column("effective users", ("effective_users",), "{:,.0f}".format, number=True),
            Column("impressions", ("effective_impressions",), "{:,.0f}".format, number=True),
            Column("largest weights", ("largest",), _in_digits, number=True),
            Column("mean weight", ("mean",), plain_mean, number=True),
            self._ends(),
            Column(
                "unsupported",
                show=lambda share: "" if np.isnan(share) else f"{share:.1%}",
                number=True,
                hidden=all(np.isnan(of.unsupported) for of in self.weights.values()),
            ),
        ]
        head = [f"{self.n_impressions:,} impressions, {slates}{self.n_users:,} users"]
        return Table(columns, [*map(_row, self.weights.values())], self.remarks(), head)

    def differences_table(self) -> Table:
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
        n = sum(row.primary for row in self.rows)
        note = (
            f"p is adjusted (holm) over the {n:,} comparisons on "
            f"{self.estimators[0]}; intervals are not adjusted."
        )
        return Table(columns, self.rows, [note])

    def _ends(self) -> Column:
        return Column(f"{self.confidence:.0%} interval", ("low", "high"), _to, number=True)

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return the weights, which say whether to trust the values, values and differences."""
        differences = [self.differences_table()] if self.rows else []
        return [self.weights_table(), self.values_table(), *differences]

    def remarks(self) -> list[str]:
        """Return sentences on mean weights that are not what they should be."""
        remarks = []
        for name, of in self.weights.items():
            expected = 1.0 if np.isnan(of.unsupported) else 1.0 - of.unsupported
            if expected not in of.interval:
                remarks.append(
                    f"The mean weight of {name} should be {expected:.4g}, but its interval is "
                    f"{_to(*of.interval)}: the propensities do not belong to this log, or the "
                    "policy shows items that the log never does."
                )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        table = self.values_table()
        found = {
            "weights": self.weights_table().records(),
            "values": table.records(),
            "impressions": self.n_impressions,
            "users": self.n_users,
            "unit": self.unit,
            "maximise": self.maximise,
            "confidence": self.confidence,
            "notes": [*self.remarks(), *table.notes],
        }
        return {**found, "comparison": super().to_dict()} if self.rows else found

    def higher_is_better(self, _: str) -> bool:
        """Return whether a higher value is better."""
        return self.maximise

    def gate(self, gates: str | Sequence[str], undecided: Undecided | None = None) -> GateReport:
        """Check bounds for the difference to the baseline: ``"snips >= -1%"``, ``"dr >= 0"``.

        Parameters, verdicts and errors are those of `recometer.Comparison.gate`; the metrics are
        estimators.
        """
        from recometer.comparing.gates import check_gates

        found = check_gates(cast("Any", self), gates, undecided)
        return dataclasses.replace(found, said=tuple(self.remarks()))

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        gates: GateReport | None = None,
    ) -> Report:
        """Make a report: whether the log can answer, values, differences, and what `gate` returned.

        Values that are not compared yet are compared with the log. The path, the title and errors
        are those of `recometer.Comparison.report`.
        """
        from recometer.logs.page import content
        from recometer.report.result import made

        compared = self if self.rows else self.compare(baseline=LOGGED)
        return made(lambda: content(compared, title, gates), path)


def known(lacking: str, name: str, names: Collection[str]) -> str:
    """Return a name that is known; `lacking` begins the message about another one."""
    if name not in names:
        raise UnknownNameError(f"{lacking} {brief(name)}. {did_you_mean(str(name), names)}")
    return name


def _row(of: Weights | Estimate) -> dict[str, Any]:
    """Return the row of a table, with the ends of the interval."""
    interval = of.interval
    return {**vars(of), "low": interval.low, "high": interval.high, "method": interval.method}


def _to(low: float, high: float) -> str:
    return "unknown" if np.isnan(low) else f"{plain_mean(low)} to {plain_mean(high)}"


def _in_digits(largest: Sequence[float]) -> str:
    return ", ".join(f"{weight:.3g}" for weight in largest)
