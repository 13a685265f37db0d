"""Values of policies with their intervals, and the policies compared pairwise."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recometer.arrays import Float64
from recometer.errors import InputError, UnknownNameError, argument_text, brief, did_you_mean
from recometer.rendering import Column, Printed, Table
from recometer.stats import Interval, adjust, paired_t
from recometer.stats.grouping import group
from recometer.stats.means import student
from recometer.stats.relative import NEGATIVE, NOT_ABOVE_0, relative_interval
from recometer.stats.several import Correction

if TYPE_CHECKING:
    from recometer.comparing.gates import Gate, GateReport

LOGGED = "logged"
ESTIMATORS = {
    "ips": "inverse propensity scoring",
    "clipped_ips": "inverse propensity scoring with clipped weights",
    "snips": "self-normalised inverse propensity scoring",
    "direct": "the direct method",
    "dr": "doubly robust",
}


@dataclasses.dataclass(frozen=True)
class Weights:
    """Whether the log supports a policy; a weight is target probability / propensity.

    Attributes
    ----------
    effective_users, effective_impressions
        (Σ W)² / Σ W² of the summed weights of users, and of the weights of impressions: as many
        equal weights would give the same variance.
    largest : tuple of float
        The largest weights, decreasing.
    largest_share
        The share of the largest one in the sum.
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
    def as_expected(self) -> bool:
        """Return whether the interval of the mean weight contains what it should be."""
        return (1.0 if np.isnan(self.unsupported) else 1.0 - self.unsupported) in self.mean_interval


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The value of a policy by an estimator.

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

    ``values["new", "snips"]`` is an `Estimate`, and ``values["new"]`` the one by the first
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
        Whether a reward is negative, so that differences are not relative to anything.
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
        self.known_policy(policy)
        self.known(estimator)
        return self.estimates[policy, estimator]

    @property
    def estimators(self) -> list[str]:
        """The estimators, the primary one first."""
        return list(dict.fromkeys(estimator for _, estimator in self.estimates))

    @property
    def policies(self) -> list[str]:
        """The policies, ``"logged"`` first."""
        return list(dict.fromkeys(policy for policy, _ in self.estimates))

    def known(self, estimator: str) -> str:
        """Return an estimator, if there are values by it."""
        if estimator not in self.estimators:
            raise UnknownNameError(
                f"There are no values by the estimator {brief(estimator)}. "
                f"{did_you_mean(str(estimator), self.estimators)}"
            )
        return estimator

    def known_policy(self, policy: str) -> str:
        """Return the name of a policy, if there is one."""
        if policy not in self.policies:
            raise UnknownNameError(
                f"There is no policy {brief(policy)}. {did_you_mean(str(policy), self.policies)}"
            )
        return policy

    def compare(
        self, *, baseline: str | None = None, correction: Correction = "holm"
    ) -> PolicyComparison:
        """Compare the policies pairwise on the same log, by the same users.

        The difference of two estimates is the mean of the differences of the users' linearised
        values; its interval is Student's, and p that of the paired t test. p is adjusted over the
        comparisons by the first estimator.

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
        if baseline is not None:
            self.known_policy(baseline)
        if baseline is None:
            pairs = [(one, other) for other, one in itertools.combinations(self.policies, 2)]
        else:
            pairs = [(one, baseline) for one in self.policies if one != baseline]
        rows = [
            self._difference(estimator, one, other)
            for estimator in self.estimators
            for one, other in pairs
        ]
        primary = [row.estimator == self.estimators[0] for row in rows]
        adjusted = adjust(
            [row.p_value if own else np.nan for row, own in zip(rows, primary, strict=True)],
            correction,
        ).tolist()
        rows = [
            dataclasses.replace(row, adjusted_p=p, verdict=self._verdict(row, p))
            for row, p in zip(rows, adjusted, strict=True)
        ]
        return PolicyComparison(tuple(rows), self, baseline, correction)

    def _difference(self, estimator: str, one: str, other: str) -> PolicyRow:
        x, y = (self.estimates[name, estimator].per_user for name in (one, other))
        interval = student_of(x - y, self.confidence)
        mean = float(y.mean())
        if self.negative or not mean > 0:
            relative = np.nan
            ends = Interval.unknown(
                self.confidence, self.n_users, NEGATIVE if self.negative else NOT_ABOVE_0
            )
        else:
            relative = float(x.mean()) / mean - 1
            ends = relative_interval(group(x, y), interval)
        return PolicyRow(
            estimator, one, other, float((x - y).mean()), interval, relative, ends,
            paired_t(group(x - y)).p_value, np.nan, "",
        )  # fmt: skip

    def _verdict(self, row: PolicyRow, adjusted_p: float) -> str:
        level = adjusted_p if row.estimator == self.estimators[0] else row.p_value
        if 0.0 in row.interval or not level <= 1 - self.confidence:
            return "undecided"
        return "better" if (row.difference > 0) == self.maximise else "worse"

    def table(self) -> Table:
        """Return the values, with the weights in CSV and JSON."""
        rows = [
            {
                **vars(one),
                "low": one.interval.low,
                "high": one.interval.high,
                "method": one.interval.method,
                **_plain(self.weights.get(one.policy)),
            }
            for one in self.estimates.values()
        ]
        ends = (f"{self.confidence:.0%} interval", ("low", "high"), _ends)
        columns = [
            Column("policy"),
            Column("estimator"),
            Column("value", show=_number, number=True),
            Column(*ends, number=True),
            Column("method", hidden=True),
            *(Column(name, hidden=True) for name in _plain(None)),
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

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return the weights, which say whether to trust the values, and the values."""
        return [self._weights_table(), self.table()]

    def _weights_table(self) -> Table:
        rows = [{"policy": name, **_plain(one)} for name, one in self.weights.items()]
        known = any(not np.isnan(one.unsupported) for one in self.weights.values())
        columns = [
            Column("policy"),
            Column("effective users", ("effective_users",), "{:,.0f}".format, number=True),
            Column("impressions", ("effective_impressions",), "{:,.0f}".format, number=True),
            Column("largest weights", ("largest",), _weights, number=True),
            Column("mean weight", ("mean_weight",), _number, number=True),
            Column(
                f"{self.confidence:.0%} interval",
                ("mean_weight_low", "mean_weight_high"),
                _ends,
                number=True,
            ),
            Column(
                "unsupported",
                ("unsupported",),
                lambda share: "" if np.isnan(share) else f"{share:.1%}",
                number=True,
                hidden=not known,
            ),
        ]
        slates = f"{self.n_units:,} slates, " if self.unit == "slate" else ""
        head = [f"{self.n_impressions:,} impressions, {slates}{self.n_users:,} users"]
        return Table(columns, rows, self.remarks(), head)

    def remarks(self) -> list[str]:
        """Return sentences on mean weights that are not what they should be."""
        return [
            f"The mean weight of {name} should be "
            f"{1 if np.isnan(one.unsupported) else 1 - one.unsupported:.4g}, but its interval is "
            f"{_ends(*one.mean_interval)}: the propensities do not belong to this log, or the "
            "policy shows items that the log never does."
            for name, one in self.weights.items()
            if not one.as_expected
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        table = self.table()
        return {
            "weights": self._weights_table().records(),
            "values": table.records(),
            "impressions": self.n_impressions,
            "users": self.n_users,
            "unit": self.unit,
            "maximise": self.maximise,
            "confidence": self.confidence,
            "notes": [*self.remarks(), *table.notes],
        }


@dataclasses.dataclass(frozen=True)
class PolicyRow:
    """The difference between two policies by an estimator.

    Attributes
    ----------
    estimator, policy, other
    difference, interval
        The value of `policy` minus that of `other`.
    relative, relative_interval
        The ratio of the two minus 1, and all θ for which the mean of policy - (1 + θ) other is not
        excluded (Fieller); NaN if rewards can be negative.
    p_value, adjusted_p
        Of the paired t test; adjusted over the comparisons by the first estimator, NaN for others.
    verdict
        ``"better"``, ``"worse"`` or ``"undecided"``.
    """

    estimator: str
    policy: str
    other: str
    difference: float
    interval: Interval
    relative: float
    relative_interval: Interval
    p_value: float
    adjusted_p: float
    verdict: str


@dataclasses.dataclass(frozen=True)
class PolicyComparison(Printed):
    """Policies compared pairwise on the same log.

    Attributes
    ----------
    rows : tuple of PolicyRow
    values : PolicyValues
    baseline : str or None
    correction
    """

    rows: tuple[PolicyRow, ...]
    values: PolicyValues
    baseline: str | None
    correction: str

    def table(self) -> Table:
        """Return a row per estimator and pair of policies."""
        rows = [
            {
                **vars(row),
                "low": row.interval.low,
                "high": row.interval.high,
                "relative_low": row.relative_interval.low,
                "relative_high": row.relative_interval.high,
            }
            for row in self.rows
        ]
        columns = [
            *(Column(name) for name in ("estimator", "policy", "other")),
            Column("difference", show="{:+.4f}".format, number=True),
            Column(
                f"{self.values.confidence:.0%} interval",
                ("low", "high"),
                lambda low, high: _ends(low, high, "+"),
                number=True,
            ),
            Column("relative", show=_share, number=True, spare=True),
            Column("p", ("p_value",), _p, number=True, spare=True),
            Column("adjusted p", ("adjusted_p",), _p, number=True),
            Column("verdict"),
            Column("relative_low", hidden=True),
            Column("relative_high", hidden=True),
        ]
        n = sum(row.estimator == self.values.estimators[0] for row in self.rows)
        notes = [
            f"p is adjusted ({self.correction}) over the {n:,} comparisons by "
            f"{self.values.estimators[0]}; intervals are not adjusted.",
        ]
        return Table(columns, rows, [*self.values.remarks(), *notes])

    def known(self, estimator: str) -> str:
        """Return an estimator, if it was computed."""
        return self.values.known(estimator)

    def higher_is_better(self, _: str) -> bool:
        """Return whether a higher value is better."""
        return self.values.maximise

    def gate(self, gates: str | Gate | Sequence[str | Gate]) -> GateReport:
        """Check bounds for the difference to the baseline: ``"snips >= -1%"``, ``"dr >= 0"``.

        A gate is passed if the whole interval keeps the bound, failed if none of it does, and
        otherwise undecided, as in `recometer.compare`.

        Raises
        ------
        InputError
            If there is no baseline, or a gate cannot be read or contradicts `maximise`.
        UnknownNameError
            If there are no values by an estimator.
        """
        from recometer.comparing.gates import Gate, GateReport, GateRow, read_gate

        if self.baseline is None:
            raise InputError(
                "A gate bounds the difference to a baseline, but there is no baseline. Hint: "
                f"{argument_text('baseline', LOGGED)}, or another policy."
            )
        given = [gates] if isinstance(gates, str | Gate) else list(gates)
        read = [read_gate(one, cast("Any", self)) if isinstance(one, str) else one for one in given]
        rows = []
        for gate, row in itertools.product(read, self.rows):
            if row.estimator != gate.metric:
                continue
            found = row.relative if gate.relative else row.difference
            interval = row.relative_interval if gate.relative else row.interval
            rows.append(
                GateRow(
                    gate,
                    row.policy,
                    gate.decide(interval),
                    found,
                    interval.low,
                    interval.high,
                    interval.method,
                    self.values.n_users,
                    fewest_users=None,
                    most_users=None,
                    changes=None,
                    segment=None,
                    note=interval.note,
                )
            )
        said = tuple(self.values.remarks())
        return GateReport(tuple(rows), self.baseline, self.values.confidence, None, said)


def _plain(weights: Weights | None) -> dict[str, Any]:
    of = weights or Weights(
        np.nan, np.nan, (), np.nan, np.nan, Interval.unknown(0.95, 0, ""), np.nan
    )
    return {
        "effective_users": of.effective_users,
        "effective_impressions": of.effective_impressions,
        "largest": of.largest,
        "largest_share": of.largest_share,
        "mean_weight": of.mean,
        "mean_weight_low": of.mean_interval.low,
        "mean_weight_high": of.mean_interval.high,
        "unsupported": of.unsupported,
    }


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:+.1%}"


def _p(value: float) -> str:
    return "" if np.isnan(value) else "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _ends(low: float, high: float, sign: str = "") -> str:
    return "unknown" if np.isnan(low) else f"{low:{sign}.4f} to {high:{sign}.4f}"


def _weights(largest: Sequence[float]) -> str:
    return ", ".join(f"{weight:.3g}" for weight in largest)


def effective(weights: Float64) -> float:
    """Return the effective sample size (Σ w)² / Σ w² (Kish 1965); 0 if all weights are 0."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def student_of(per_user: Float64, confidence: float) -> Interval:
    """Return Student's t interval of the mean of users' values."""
    if np.isnan(per_user).any():
        return Interval.unknown(confidence, len(per_user), "All weights are 0.")
    return student(group(per_user), confidence)


def bernstein(
    sums: Float64, sizes: Float64, ends: tuple[float, float], confidence: float
) -> Interval:
    """Return the empirical Bernstein interval of a mean of rows, over users.

    All θ for which the mean of z = sums - θ sizes is at most √(2 V L / U) + 7 B L / (3 (U - 1))
    from 0, with L = log(4 / (1 - confidence)). V is the variance of z over U users, and B the
    largest size times the range of a row. Maurer & Pontil 2009, theorem 4, for both sides.
    """
    n = len(sums)
    scale = np.log(4 / (1 - confidence))
    add = 7 * float(sizes.max()) * (ends[1] - ends[0]) * scale / (3 * (n - 1))
    x, y = float(sums.mean()), float(sizes.mean())
    (xx, xy), (_, yy) = np.cov(sums, sizes) * (2 * scale / n)

    def end(side: int) -> float:
        # side (θ y - x) - add = √(xx - 2 θ xy + θ² yy), squared; the root beyond (x ± add) / y.
        shift = x + side * add
        a, b, c = y**2 - yy, -2 * (y * shift - xy), shift**2 - xx
        if a <= 0:
            return side * np.inf
        root = np.sqrt(max(0.0, b**2 - 4 * a * c))
        return float((-b + side * root) / (2 * a))

    found = Interval(end(-1), end(1), "bernstein", confidence, n)
    return found.within(ends)
