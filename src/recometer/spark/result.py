"""SparkEvaluation: the result of `recometer.spark.evaluate`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from recometer import rendering
from recometer.errors import InputError
from recometer.measuring.compute import compute_for_all
from recometer.measuring.reasons import OF_ONE_USER, Reason
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.results import summary
from recometer.results.evaluation import Evaluation
from recometer.results.means import TWO_FINITE, of_resamples
from recometer.results.naming import name_of, names_of
from recometer.results.summary import SummaryRow
from recometer.results.together import is_over_rows, together_of
from recometer.spark import _across
from recometer.spark._frames import Frame, quoted
from recometer.spark._job import BESIDE, OF_ALL, USERS
from recometer.spark._local import evaluation
from recometer.spark._ratios import Ratios
from recometer.spark._resampling import MOST_UNITS, TOO_MANY, Again
from recometer.spark._rows import OverRows
from recometer.spark._sums import WEIGHTS, MetricSums, Sums, beta_of
from recometer.spark._together import intervals_together
from recometer.spark._weighted import Weighted, interval_of_ratio, ratios_of
from recometer.stats import Interval
from recometer.stats.ends import check_confidence
from recometer.stats.grouping import Grouped, group
from recometer.stats.intervals import bootstrap
from recometer.stats.means import interval_of

Weights = Literal["users", "relevant", "pooled"] | None

NOT_DRAWN = f"{TOO_MANY} Hint: interval='percentile' is the same as 'bootstrap' without drawing."


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SparkEvaluation(rendering.Printed):
    """The result of an evaluation on Spark: every metric for every user, as a DataFrame.

    Means, intervals and counts come from sums, which are the only data sent to the driver.

    Attributes
    ----------
    metrics
        The requested metrics, in this order.
    protocol
        The rules that the numbers depend on.
    seed
        Seed of everything that is random.
    n_users : int
        Number of users of test.
    counts
        The decisions of rules, over all users.
    over_users
        The values of metrics that have one for all users, such as ``coverage@10``.
    definitions
        As in `Evaluation`.
    inputs
        A description of source, test, train and candidates.
    timings
        Seconds per step.
    kept : bool
        Whether Spark keeps the values of the users (``persist``), so that they are computed only
        once; see `unpersist`.
    """

    metrics: tuple[Metric, ...]
    protocol: Protocol
    seed: int
    over_users: Mapping[str, float]
    sums: Sums = dataclasses.field(repr=False)
    rows: Frame = dataclasses.field(repr=False)
    again: Again = dataclasses.field(repr=False)
    counts: Mapping[str, int]
    definitions: Mapping[str, Mapping[str, str]]
    inputs: Mapping[str, Mapping[str, Any]]
    timings: Mapping[str, float]
    kept: bool
    chance: bool
    user: str  # the name of the users' column
    session: str | None = None  # that of the column of their sessions
    _ratios: dict[tuple[str, str], Ratios] = dataclasses.field(default_factory=dict, repr=False)
    _wholes: dict[str, Interval] = dataclasses.field(default_factory=dict, repr=False)
    without_interval: ClassVar[str] = ""  # why what is one value for all users has none

    @property
    def n_users(self) -> int:
        """Number of users of test, those without a defined value included."""
        return self.sums.n_users

    def __len__(self) -> int:
        """Return the number of users."""
        return self.n_users

    def per_user(self, *, reasons: bool = False) -> Frame:
        """Return a DataFrame with the users, and a column per metric; undefined values are NaN.

        If test has sessions of users, there is a row per session, and a column of these.

        Parameters
        ----------
        reasons
            Whether to add a column ``"ndcg@10 reason"`` for each metric, with the code of the
            `Reason` why it is undefined, or 0 if it is defined; and further facts about each user.
        """
        chosen = [f"u AS {quoted(self.user)}"]
        if self.session is not None:
            chosen.append(f"s AS {quoted(self.session)}")
        for number, metric in enumerate(self.metrics):
            if str(metric) in self.over_users:
                continue
            chosen.append(f"m{number} AS {quoted(str(metric))}")
            if reasons:
                chosen.append(f"r{number} AS {quoted(f'{metric} reason')}")
        return self.values().selectExpr(*chosen, *(USERS if reasons else ()))

    def mean(self, weights: Weights = None) -> dict[str, float]:
        """Return the mean of each metric over the users for whom it is defined.

        Parameters
        ----------
        weights
            None, ``"users"``, ``"relevant"`` or ``"pooled"``, as in `Evaluation.mean`.
        """
        return {str(metric): self._mean(metric, weights) for metric in self._averaged(weights)}

    def interval(self, metric: str | Metric) -> Any:
        """Return the interval of a metric's mean, by the rules ``interval`` and ``confidence``.

        It is computed from counts of equal values. If a metric has more than some thousands of
        values, those with the same leading bits count as their mean. The ends then differ from
        those on one machine by less than a thousandth of the interval.

        Parameters
        ----------
        metric
            The name of the metric, or several cut-offs: ``"ndcg@1..20"``.

        Returns
        -------
        recometer.stats.Interval, or a dict by name for several cut-offs
        """
        names, several = names_of(metric, self._by_name, self.protocol)
        found = [self._interval(self._metric(name)) for name in names]
        return dict(zip(names, found, strict=True)) if several else found[0]

    def skipped(self, metric: str | Metric) -> dict[str, int]:
        """Return why a metric is undefined, with the number of users for each reason."""
        users = self._of(self._metric(metric)).reasons
        undefined = (reason for reason in Reason if reason != Reason.DEFINED and users[reason])
        return {reason.sentence: int(users[reason]) for reason in undefined}

    def summary(self, weights: Weights = None, interval: str | None = None) -> list[SummaryRow]:
        """Return a row per metric, with its mean, the interval, and the number of users.

        Parameters
        ----------
        weights
            As in `mean`.
        interval
            An interval that replaces that of the rule: ``"t"``, ``"bca"``, ...
        """
        protocol = self.protocol if interval is None else self.protocol.replace(interval=interval)
        rows = []
        for metric in self._averaged(weights):
            sums = self._of(metric)
            counted = 0 if self._is_nan(metric) else sums.cells.n + sums.n_infinite
            why = self.skipped(metric)
            if str(metric) in self.over_users:
                counted = int(sums.reasons[Reason.DEFINED])
            if is_over_rows(metric, self.protocol, weights):  # whoever has rows counts
                counted = int(sums.reasons[list(OF_ONE_USER)].sum())
                for reason in OF_ONE_USER:
                    why.pop(reason.sentence, None)
            found = self._interval(metric, weights, protocol)
            chance = sums.chance[0] / sums.chance[1] if sums.chance[1] else np.nan
            mean = self._mean(metric, weights)
            rows.append(
                SummaryRow(
                    str(metric),
                    mean,
                    found.low,
                    found.high,
                    counted,
                    self.n_users - counted,
                    why,
                    found.method,
                    found.note,
                    float(chance),
                )
            )
        return rows

    def collect(self) -> Evaluation:
        """Collect the values of all users on this machine, as `recometer.evaluate` returns them.

        You can save, compare and report the result. It lacks the further data of an evaluation on
        one machine (`lists`, `activity`, fingerprints of the inputs).
        """
        facts = self.sums.facts
        return evaluation(
            self.values().drop(*BESIDE, *OF_ALL).toArrow(),
            metrics=self.metrics,
            over_users=self.over_users,
            over_rows=self.over_rows,
            protocol=self.protocol,
            seed=self.seed,
            chance=self.chance,
            counts=self.counts,
            definitions=self.definitions,
            timings=self.timings,
            inputs={name: {"fingerprints": {}, **one} for name, one in self.inputs.items()},
            negative_gains=facts.get("negative", 0) > 0,
            binary_gains=facts.get("not_binary", 0) == 0,
        )

    def unpersist(self) -> None:
        """Make Spark forget the values of the users, which are computed again if needed."""
        if self.kept:
            self.rows.unpersist()

    def table(self) -> rendering.Table:
        """Return the table that ``print`` shows, for other formats."""
        notes = summary.notes(self.inputs, self.counts, self.protocol)
        over_rows = [str(m) for m in self.metrics if is_over_rows(m, self.protocol, None)]
        if over_rows:
            notes = [*summary.of_rows(over_rows, self.mean("users")), *notes]
        if self.session is not None:
            notes = [*summary.on_sessions(self.n_users, self.sums.facts["people"]), *notes]
        return summary.table(self.summary(), self.protocol, notes)

    @property
    def over_rows(self) -> dict[str, float]:
        """Metrics of ratings over the rows of all users together; see `Evaluation.over_rows`."""
        return {
            str(one): compute_for_all(OverRows(self._of(one).rows), [one], self.protocol)[str(one)]
            for one in self.metrics
            if one.definition.over_rows is not None
        }

    @property
    def together(self) -> dict[str, float]:
        """The means that are one value for all users; see `Evaluation.together`."""
        return together_of(self.metrics, self.protocol, self.over_users, self.over_rows, None)

    def known_metric(self, metric: str | Metric) -> Metric:
        """Return one of the requested metrics, by its name."""
        return self._metric(metric)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the users' values as plain values (for JSON)."""
        return summary.to_dict(self)  # type: ignore[arg-type]  # it has what is read there

    def __repr__(self) -> str:
        return f"<SparkEvaluation of {self.n_users} users: {', '.join(map(str, self.metrics))}>"

    def values(self) -> Frame:
        """Return the rows of users with columns by number: ``u``, ``m0``, ``r0``, ..."""
        of_all = " AND k IS NULL" if self.over_users or _across.about_pairs(self.metrics) else ""
        return self.rows.where(f"sums IS NULL AND error IS NULL{of_all}")

    def bounds(self, metric: str | Metric) -> tuple[float, float]:
        """Return the lowest and the highest possible value of a user, which may be infinite."""
        facts, known = self.sums.facts, self._metric(metric)
        return known.bounds(
            negative=facts.get("negative", 0) > 0, binary=facts.get("not_binary", 0) == 0
        )

    def _averaged(self, weights: Weights) -> list[Metric]:
        """Return the metrics that have a mean under some weights."""
        named = {} if weights is None else self.over_users
        return [metric for metric in self.metrics if str(metric) not in named]

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        return {str(one): one for one in self.metrics}

    def _metric(self, metric: str | Metric) -> Metric:
        return self._by_name[name_of(metric, self._by_name, self.protocol)]

    def _of(self, metric: Metric) -> MetricSums:
        return self.sums.metrics[str(metric)]

    def _is_nan(self, metric: Metric) -> bool:
        rules = rules_of(metric, self.protocol)
        return rules.missing == "nan" and self._of(metric).n_missing > 0

    def _mean(self, metric: Metric, weights: Weights) -> float:
        sums, rules = self._of(metric), rules_of(metric, self.protocol)
        if str(metric) in self.over_users:
            return self.over_users[str(metric)]
        if is_over_rows(metric, self.protocol, weights):
            return self.over_rows[str(metric)]
        if self._is_nan(metric):
            return np.nan
        if weights is None and rules.average == "parts":
            return _of_parts(metric, sums)
        wanted = self._weights(metric, weights)
        total, weight = sums.weighted[WEIGHTS.index(wanted)]
        if np.isnan(weight):
            raise InputError(
                f"There is no pooled mean of {str(metric)!r}: it is not a ratio whose denominators "
                "are kept. Hint: weights='relevant'."
            )
        return float(total / weight) if weight > 0 else np.nan

    def _interval(
        self, metric: Metric, weights: Weights = None, protocol: Protocol | None = None
    ) -> Interval:
        rules = rules_of(metric, protocol or self.protocol)
        sums, confidence = self._of(metric), self.protocol.confidence
        check_confidence(confidence)
        n, kind = sums.cells.n + sums.n_infinite, rules.interval
        if str(metric) in self.over_users or is_over_rows(metric, self.protocol, weights):
            if self.without_interval:
                return Interval.unknown(confidence, n, self.without_interval)
            return self._interval_together(str(metric))
        if weights is None and rules.average == "parts":
            note = "The interval of a mean of parts is not known."
            return Interval.unknown(confidence, n, note)
        if self._is_nan(metric):
            return Interval.unknown(confidence, n, "")
        if sums.n_infinite:
            return Interval.unknown(confidence, n, "A value is infinite: the mean has no interval.")
        bounds, grouped = self.bounds(metric), sums.cells.grouped()
        wanted = self._weights(metric, weights)
        if kind == "bootstrap":
            return _within(self._bootstrapped(metric, wanted), bounds, grouped)
        if wanted != "users" or self.session is not None:
            found = interval_of_ratio(self._ratio(metric, wanted), rules, wanted, bounds)
            return _within(found, bounds, grouped)
        found = interval_of(
            grouped,
            "auto" if kind == "gaffke" else kind,
            bounds=bounds,
            confidence=confidence,
        )
        return _within(found, bounds, grouped)

    def _interval_together(self, name: str) -> Interval:
        """Return the interval of a value of all users; those of all such metrics in one pass."""
        if name not in self._wholes:
            self._wholes.update(intervals_together(self))
        return self._wholes[name]

    def _bootstrapped(self, metric: Metric, weights: str) -> Interval:
        """Return the interval over resampled users: which are drawn depends on values alone."""
        n_users = self.n_users if self.session is None else self.sums.facts["people"]
        if n_users > MOST_UNITS:
            return Interval.unknown(self.protocol.confidence, n_users, NOT_DRAWN)
        found, columns = self._of(metric).cells.grouped(), []
        if weights != "users" or self.session is not None:
            ratio = self._ratio(metric, weights)
            found = group([]) if ratio is None else ratio.grouped()
        sizes = np.broadcast_to(found.sizes, found.values.shape)
        n, counts = found.n, found.counts.astype(np.int64)
        for own, other in ((found.values / sizes, np.nan), (sizes, 0.0)):
            columns.append(np.append(np.repeat(own, counts), np.full(n_users - n, other)))
        confidence = self.protocol.confidence
        (ends,) = bootstrap([columns[0]], confidence, self.seed, weights=[columns[1]])
        return of_resamples(ends, confidence, n, TWO_FINITE)

    def _ratio(self, metric: Metric, weights: str) -> Ratios | None:
        """Return what a mean is the ratio of; that of all metrics is found in one pass."""
        key = str(metric), weights
        if key not in self._ratios:
            asked = []
            for number, one in enumerate(self.metrics):
                sums = self._of(one)
                total, weight = sums.weighted[WEIGHTS.index(weights)]
                if str(one) not in self.over_users and not sums.n_infinite and weight > 0:
                    rules = rules_of(one, self.protocol)
                    asked.append(Weighted(number, one, rules, weights, float(total / weight)))
            found = ratios_of(self.values(), asked, sessions=self.session is not None)
            for number, ratios in found.items():
                self._ratios[str(self.metrics[number]), weights] = ratios
        return self._ratios.get(key)

    def _weights(self, metric: Metric, weights: Weights) -> str:
        """Return how users weigh in a mean: as it was asked for, or as the rule says."""
        rule = rules_of(metric, self.protocol).average
        wanted = rule if weights is None else weights
        if weights is None and wanted not in WEIGHTS:
            wanted = "users"
        if wanted not in WEIGHTS:
            raise InputError(
                f"weights={weights!r} does not exist on Spark. Hint: 'users', 'relevant', 'pooled' "
                "or None."
            )
        return wanted


def _within(found: Interval, bounds: tuple[float, float], values: Grouped) -> Interval:
    """Cut an interval off at the metric's bounds, except at one that a value is beyond."""
    lower = -np.inf if (values.values < bounds[0]).any() else bounds[0]
    upper = np.inf if (values.values > bounds[1]).any() else bounds[1]
    return found.within((lower, upper))


def _of_parts(metric: Metric, sums: MetricSums) -> float:
    """Return the F measure of the mean precision and the mean recall."""
    precision, recall, n = sums.parts
    square = beta_of(metric) ** 2
    below = square * precision + recall
    return float((1 + square) * precision * recall / below / n) if below > 0 and n else np.nan
