"""The sums over users' impressions, and the policy values that are computed from them."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from recometer import stats
from recometer.arrays import Array, Float64
from recometer.comparing.rows import PairRow, difference_columns, percent, plain_mean
from recometer.data.ids import as_ids, encode
from recometer.errors import InputError, UnknownNameError, argument_text, brief, did_you_mean
from recometer.rendering import Column, Printed, Table
from recometer.stats import Interval
from recometer.stats.checks import check_bounds, check_number
from recometer.stats.ends import check_confidence
from recometer.stats.grouping import group
from recometer.stats.means import student
from recometer.tasks import on_all_threads

if TYPE_CHECKING:
    from recometer.comparing.gates import GateReport, Undecided
    from recometer.report.result import Report

LOGGED = "logged"  # the name of the logging policy
LARGEST = 3  # the number of weights in `Weights.largest`


class Policy(NamedTuple):
    """A policy's numbers for each impression of a log, as float64 [n], or None if unknown."""

    probability: Float64  # the probability with which the policy shows the logged item
    predicted: Float64 | None = None  # the predicted reward of the logged item
    value: Float64 | None = None  # the expected predicted reward under the policy
    # The total probability that the policy gives to items that the logging policy never shows.
    unsupported: Float64 | None = None


def _weighted(_: Policy, weight: Float64, reward: Float64, __: object) -> Float64:
    return weight * reward


# The estimators, the most robust one first, with their terms as functions of the policy, the
# weights, the rewards and `clip`. An estimate is the mean of its term over impressions, except for
# snips, which divides the sum of its term by the sum of the weights.
TERMS: dict[str, Callable[[Any, Float64, Float64, Any], Float64]] = {
    "dr": lambda policy, w, r, _: w * (r - policy.predicted) + policy.value,
    "snips": _weighted,
    "clipped_ips": lambda _, w, r, clip: np.minimum(w, clip) * r,
    "ips": _weighted,
    "direct": lambda policy, *_: policy.value,
}
# A `PairRow` of policies copies only these fields of a `Difference`, because linearised values do
# not show which users are better off.
PAIR_FIELDS = (
    *("n", "mean", "mean_other", "difference", "interval"),
    *("relative", "relative_interval", "test"),
)


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a policy, which show whether the log supports it.

    The weight of an impression is target probability / propensity.

    Attributes
    ----------
    policy
    effective_users
        The effective number of users: (Σ W)² / Σ W², where W is the sum of a user's weights. That
        many users with equal weights would give the same variance (Kish 1965).
    largest : tuple of float
        The largest weights, in descending order.
    mean, interval
        The mean weight and its interval. The mean should be 1 - `unsupported` if the propensities
        are right.
    unsupported
        The share of the policy's probability that goes to items that the logging policy never
        shows; NaN unless all logging probabilities are known.
    """

    policy: str
    effective_users: float
    largest: tuple[float, ...]
    mean: float
    interval: Interval
    unsupported: float


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An estimate of the value of a policy.

    Attributes
    ----------
    policy, estimator
    value
        The reward per impression, or per slate.
    interval
        The confidence interval of `value`; docs/logs.md says what it covers.
    per_user : float64 [n_users]
        The users' linearised values (by the delta method), whose mean is `value`.
    """

    policy: str
    estimator: str
    value: float
    interval: Interval
    per_user: Float64 = dataclasses.field(repr=False, compare=False)


@dataclasses.dataclass(frozen=True, eq=False)
class UserSums:
    """The sums over each user's impressions, from which estimates follow; ``+`` adds blocks."""

    user_ids: Array
    positions: Float64  # the positions of items in slates; a single 0 if there are none
    # float64 [n_positions, n_users], keyed by a policy and either an estimator, "weight" or
    # "unsupported". The policy "logged" has the sums of "rows", "units" (slates, or rows if there
    # are no slates) and "reward".
    sums: dict[tuple[str, str], Float64]
    largest: dict[str, tuple[float, ...]]  # the largest weights of each policy, in descending order
    reward_ends: tuple[float, float]  # the lowest and the highest reward in the log
    estimators: tuple[str, ...]
    clip: float | None
    unit: str  # "slate" or "impression": estimates are rewards per unit

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return list(self.largest)

    def __add__(self, other: UserSums) -> UserSums:
        """Return the sums of both blocks; a user may be in both, but a slate must be in only one.

        Raises
        ------
        InputError
            If the blocks differ in policies, estimators or clip, or if only one has slates.
        """
        for what in ("policies", "estimators", "clip", "unit"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                raise InputError(
                    f"The blocks must have the same {what}, found {mine} and {theirs}. Hint: pass "
                    "the same arguments for each block."
                )
        blocks = (self, other)
        all_ids = np.concatenate([as_ids(block.user_ids, "users") for block in blocks])
        codes, ids = encode(all_ids, "users")
        positions = np.union1d(self.positions, other.positions)
        # The unsupported probability may be known for only one block.
        shared = [key for key in self.sums if key in other.sums]
        sums = {key: np.zeros((len(positions), len(ids))) for key in shared}
        for block, users in zip(blocks, np.split(codes, [len(self.user_ids)]), strict=True):
            cells = np.ix_(np.searchsorted(positions, block.positions), users)
            for key, total in sums.items():
                total[cells] += block.sums[key]
        lows, highs = zip(self.reward_ends, other.reward_ends, strict=True)
        return dataclasses.replace(
            self,
            user_ids=ids,
            positions=positions,
            sums=sums,
            largest={
                name: tuple(sorted((*weights, *other.largest[name]), reverse=True)[:LARGEST])
                for name, weights in self.largest.items()
            },
            reward_ends=(min(lows), max(highs)),
        )

    def values(
        self,
        *,
        maximise: bool = True,
        min_effective: float = 50,
        confidence: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> PolicyValues:
        """Return the estimates. The parameters are the same as for `Impressions.evaluate`."""
        check_confidence(confidence)
        check_number("min_effective", min_effective)
        n_users = len(self.user_ids)
        if n_users < 2:
            raise InputError(
                f"The log has {n_users} user, but intervals are over users, whose impressions are "
                "not independent. Hint: there must be at least two users; if sessions or days are "
                f"independent, {argument_text('user')} may name their column."
            )
        ends = None if reward_range is None else self._clipped_ends(reward_range)
        weights = on_all_threads(lambda name: self._weights(name, confidence), self.policies)
        for weight in weights:
            if weight.effective_users < min_effective and self.estimators != ("direct",):
                raise InputError(
                    f"The policy {weight.policy!r} has an effective sample of "
                    f"{weight.effective_users:.1f} of {n_users:,} users, fewer than "
                    f"{argument_text('min_effective', min_effective)}: a few impressions would "
                    "decide its value. Hint: use a policy closer to the logging policy, or a "
                    "longer log."
                )

        def estimate(key: tuple[str, str]) -> Estimate:
            per_user = self._per_user(*key)
            if ends is not None and key[1] == "clipped_ips" and key[0] != LOGGED:
                sums, rows = self.sums[key][0], self.sums[LOGGED, "rows"][0]
                interval = bernstein(sums, rows, ends, confidence)
            else:
                interval = student(group(per_user), confidence)
            return Estimate(*key, float(per_user.mean()), interval, per_user)

        policies = [LOGGED, *self.policies]
        keys = [(policy, estimator) for estimator in self.estimators for policy in policies]
        return PolicyValues(
            sums=self,
            estimates=dict(zip(keys, on_all_threads(estimate, keys), strict=True)),
            weights={weight.policy: weight for weight in weights},
            maximise=bool(maximise),
            confidence=confidence,
        )

    def total(self, what: str) -> int:
        """Return the number of ``"rows"`` or of ``"units"`` in the whole log."""
        return int(self.sums[LOGGED, what].sum())

    def _user_sums(self, name: str, key: str) -> Float64:
        """Return each user's sum over all positions."""
        return np.asarray(self.sums[name, key].sum(axis=0))

    def _per_user(self, name: str, estimator: str) -> Float64:
        """Return the users' linearised values, whose mean is the estimate."""
        units = self._user_sums(LOGGED, "units")
        if name == LOGGED:
            return _linear(self._user_sums(LOGGED, "reward"), units)
        if estimator != "snips":
            return _linear(self._user_sums(name, estimator), units)
        total = np.zeros(len(units))
        columns = (self.sums[name, "snips"], self.sums[name, "weight"], self.sums[LOGGED, "rows"])
        for reward, weight, rows in zip(*columns, strict=True):
            if not weight.sum() > 0:
                return np.full(len(units), np.nan)
            per_row, share = _linear(reward, weight), _linear(rows, units)
            # Add the linearised product of the two means. Without slates, every share is 1.
            total += per_row * share.mean() + per_row.mean() * (share - share.mean())
        return total

    def _weights(self, name: str, confidence: float) -> Weights:
        weight, rows = self._user_sums(name, "weight"), self._user_sums(LOGGED, "rows")
        total, squares, n = float(weight.sum()), float(weight @ weight), float(rows.sum())
        effective = total**2 / squares if squares > 0 else 0.0
        interval = student(group(_linear(weight, rows)), confidence)
        unsupported = float(self.sums.get((name, "unsupported"), np.array(np.nan)).sum()) / n
        return Weights(name, effective, self.largest[name], total / n, interval, unsupported)

    def _clipped_ends(self, reward_range: tuple[float, float]) -> tuple[float, float]:
        """Return the lowest and the highest possible product of clipped weight and reward."""
        if "clipped_ips" not in self.estimators or self.clip is None or self.unit == "slate":
            raise InputError(
                "reward_range= gives the empirical Bernstein interval of clipped_ips, without "
                "slates. Hint: use clip= and no slates, or leave out reward_range."
            )
        low, high = check_bounds(reward_range)
        if not -np.inf < low <= self.reward_ends[0] <= self.reward_ends[1] <= high < np.inf:
            raise InputError(
                f"The rewards range from {self.reward_ends[0]:g} to {self.reward_ends[1]:g}, but "
                f"reward_range={brief(reward_range)}. Hint: pass the lowest and the highest "
                "possible reward, two finite numbers."
            )
        return min(0.0, self.clip * low), max(0.0, self.clip * high)


@dataclasses.dataclass(frozen=True)
class PolicyValues(Printed):
    """The values of policies, estimated from the log of another policy.

    ``values["new", "snips"]`` is an `Estimate`, and ``values["new"]`` uses the first estimator.
    The value of ``"logged"`` is the mean reward of the log. `compare` adds differences.

    Attributes
    ----------
    estimates : dict of Estimate
        The estimates, keyed by policy and estimator.
    weights : dict of Weights
        The weights of each policy, which you should read first.
    maximise, confidence
        As passed to `Impressions.evaluate`.
    rows : tuple of PairRow
        The differences; empty before `compare`. In a row, `metric` is the estimator, and `model`
        and `other` are the policies. Relative intervals are computed by Fieller's method.
    baseline
        The `baseline` that was passed to `compare`.
    """

    sums: UserSums = dataclasses.field(repr=False)
    estimates: dict[tuple[str, str], Estimate]
    weights: dict[str, Weights]
    maximise: bool
    confidence: float
    rows: tuple[PairRow, ...] = ()
    baseline: str | None = None
    # Gates read these attributes of model comparisons, so they must exist here, too.
    models: ClassVar = ()
    known_users: ClassVar = ()
    sample_ratio: ClassVar = None

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        policy, estimator = (key, self.estimators[0]) if isinstance(key, str) else key
        check_name("There is no policy", policy, self.policies)
        return self.estimates[policy, self.known(estimator)]

    @property
    def estimators(self) -> list[str]:
        """The estimators, the primary one first."""
        return list(self.sums.estimators)

    @property
    def policies(self) -> list[str]:
        """The policies, ``"logged"`` first."""
        return [LOGGED, *self.weights]

    def known(self, estimator: str) -> str:
        """Return the name of an estimator, or raise an error if it has no values."""
        return check_name("There are no values by the estimator", estimator, self.estimators)

    def compare(self, *, baseline: str | None = None) -> PolicyValues:
        """Return a copy with the differences between the policies, paired by user.

        The difference between two estimates is the mean difference between the users' linearised
        values, with Student's t interval and the p-value of a paired t test. p-values are
        adjusted by Holm's method over the comparisons that use the first estimator.

        Parameters
        ----------
        baseline
            The policy, such as ``"logged"``, with which all others are compared. None compares all
            pairs.

        Raises
        ------
        UnknownNameError
            If the policy does not exist.
        """
        pairs = [(policy, other) for other, policy in itertools.combinations(self.policies, 2)]
        if baseline is not None:
            check_name("There is no policy", baseline, self.policies)
            pairs = [(policy, baseline) for policy in self.policies if policy != baseline]
        combinations = [(name, *pair) for name in self.estimators for pair in pairs]
        rows = on_all_threads(lambda combination: self.row(*combination), combinations)
        first = [row for row in rows if row.primary]
        adjusted = stats.adjust([row.p_value for row in first], "holm").tolist()
        rows[: len(first)] = [
            dataclasses.replace(row, adjusted_p=p) for row, p in zip(first, adjusted, strict=True)
        ]
        return dataclasses.replace(self, rows=tuple(rows), baseline=baseline)

    def row(self, estimator: str, policy: str, other: str) -> PairRow:
        """Return the difference between two policies, without an adjusted p-value."""
        difference = stats.compare(
            *(self.estimates[name, estimator].per_user for name in (policy, other)),
            bounds=None if self.sums.reward_ends[0] < 0 else (0.0, np.inf),
            test="t",
            confidence=self.confidence,
        )
        return PairRow(
            **{name: getattr(difference, name) for name in PAIR_FIELDS},
            metric=estimator,
            model=policy,
            other=other,
            higher_is_better=self.maximise,
            primary=estimator == self.estimators[0],
        )

    def table(self) -> Table:
        """Return the table of values or, after `compare`, of differences."""
        return self.tables()[-1]

    def _values_table(self) -> Table:
        columns = [
            Column("policy"),
            Column("estimator"),
            Column("value", show=plain_mean, number=True),
            self._ends(),
            Column("method", hidden=True),
        ]
        better = "higher" if self.maximise else "lower"
        notes = [f"Values are rewards per {self.sums.unit}; {better} is better."]
        if "direct" in self.estimators:
            notes.append(
                "The interval of direct does not account for errors in the predicted rewards."
            )
        if self.sums.clip is not None:
            notes.append(f"clipped_ips has weights of at most {self.sums.clip:g}.")
        return Table(columns, [*map(_row, self.estimates.values())], notes)

    def _weights_table(self) -> Table:
        columns = [
            Column("policy"),
            Column("effective users", ("effective_users",), "{:,.0f}".format, number=True),
            Column(
                "largest weights",
                ("largest",),
                lambda largest: ", ".join(f"{weight:.3g}" for weight in largest),
                number=True,
            ),
            Column("mean weight", ("mean",), plain_mean, number=True),
            self._ends(),
            Column(
                "unsupported",
                show=lambda share: "" if np.isnan(share) else f"{share:.1%}",
                number=True,
                hidden=all(np.isnan(weight.unsupported) for weight in self.weights.values()),
            ),
        ]
        sums = self.sums
        units = f"{sums.total('units'):,} slates, " if sums.unit == "slate" else ""
        head = [f"{sums.total('rows'):,} impressions, {units}{len(sums.user_ids):,} users"]
        return Table(columns, [*map(_row, self.weights.values())], self.remarks(), head)

    def _differences_table(self) -> Table:
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
        return Column(f"{self.confidence:.0%} interval", ("low", "high"), _range_text, number=True)

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return the tables of weights, of values and, after `compare`, of differences."""
        differences = [self._differences_table()] if self.rows else []
        return [self._weights_table(), self._values_table(), *differences]

    def remarks(self) -> list[str]:
        """Return a sentence for each mean weight whose interval excludes the expected mean."""
        remarks = []
        for name, weights in self.weights.items():
            expected = 1.0 if np.isnan(weights.unsupported) else 1.0 - weights.unsupported
            if expected not in weights.interval:
                remarks.append(
                    f"The mean weight of {name} should be {expected:.4g}, but its interval is "
                    f"{_range_text(*weights.interval)}: the propensities do not match this log, or "
                    "the policy shows items that the logging policy never shows."
                )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as Python objects that can be written as JSON."""
        weights, table = self.tables()[:2]
        content = {
            "weights": weights.records(),
            "values": table.records(),
            "impressions": self.sums.total("rows"),
            "users": len(self.sums.user_ids),
            "unit": self.sums.unit,
            "maximise": self.maximise,
            "confidence": self.confidence,
            "notes": [*self.remarks(), *table.notes],
        }
        return {**content, "comparison": super().to_dict()} if self.rows else content

    def higher_is_better(self, _: str) -> bool:
        """Return whether a higher value is better."""
        return self.maximise

    def gate(self, gates: str | Sequence[str], undecided: Undecided | None = None) -> GateReport:
        """Check bounds on the difference from the baseline, such as ``"snips >= -1%"``.

        The parameters, verdicts and errors are the same as for `recometer.Comparison.gate`, with
        estimators in place of metrics.
        """
        from recometer.comparing.gates import check_gates

        report = check_gates(cast("Any", self), gates, undecided)
        return dataclasses.replace(report, said=tuple(self.remarks()))

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        gates: GateReport | None = None,
    ) -> Report:
        """Make a report of the weights, values and differences, and of the results of `gate`.

        Without `compare`, the report compares all policies with ``"logged"``. The path and the
        errors are the same as for `recometer.Comparison.report`.
        """
        from recometer.logs.page import content
        from recometer.report.result import make_report

        compared = self if self.rows else self.compare(baseline=LOGGED)
        return make_report(lambda: content(compared, gates), path)


def check_name(message: str, name: str, names: Collection[str]) -> str:
    """Return a name, or raise an error that begins with `message` if the name is unknown."""
    if name not in names:
        raise UnknownNameError(f"{message} {brief(name)}. {did_you_mean(str(name), names)}")
    return name


def _row(result: Weights | Estimate) -> dict[str, Any]:
    """Return a row of a table, with the ends and the method of the interval."""
    interval = result.interval
    return {**vars(result), "low": interval.low, "high": interval.high, "method": interval.method}


def _range_text(low: float, high: float) -> str:
    return "unknown" if np.isnan(low) else f"{plain_mean(low)} to {plain_mean(high)}"


def _linear(values: Float64, sizes: Float64) -> Float64:
    """Return linearised values of U users, whose mean is the ratio A / B of the sums.

    A and B are the sums of the values a and of the sizes b. By the delta method, the linearised
    value of a user is A / B + U (a - b A / B) / B.
    """
    total = sizes.sum()
    ratio = values.sum() / total
    return np.asarray(ratio + len(values) * (values - ratio * sizes) / total)


def bernstein(
    sums: Float64, sizes: Float64, ends: tuple[float, float], confidence: float
) -> Interval:
    """Return the empirical Bernstein interval of a mean over rows, with users as samples.

    The interval contains all θ for which the mean of z = sums - θ sizes differs from 0 by at most
    √(2 V L / U) + 7 B L / (3 (U - 1)), with L = log(4 / (1 - confidence)). V is the variance of z
    over U users, and B is the largest size times the width of `ends`, the range of a row's value.
    Maurer & Pontil 2009, theorem 4, applied to both sides.
    """
    n = len(sums)
    scale = np.log(4 / (1 - confidence))
    add = 7 * float(sizes.max()) * (ends[1] - ends[0]) * scale / (3 * (n - 1))
    x, y = float(sums.mean()), float(sizes.mean())
    (xx, xy), (_, yy) = np.cov(sums, sizes) * (2 * scale / n)

    def end(side: int) -> float:
        # Square the equation side (θ y - x) - add = √(xx - 2 θ xy + θ² yy); take the outer root.
        shift = x + side * add
        a, b, c = y**2 - yy, -2 * (y * shift - xy), shift**2 - xx
        if a <= 0:
            return side * np.inf
        root = np.sqrt(max(0.0, b**2 - 4 * a * c))
        return float((-b + side * root) / (2 * a))

    return Interval(end(-1), end(1), "bernstein", confidence, n).within(ends)
