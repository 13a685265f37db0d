"""The result of `evaluate`: each user's values and their summary."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from recometer import rendering
from recometer.arrays import Array, Float64, Int64, UInt8, UInt32, read_only
from recometer.data import ids
from recometer.data.numbers import flag, numbers
from recometer.data.rows import user_positions
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.measuring.compute import Together, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.rated import RatedTogether
from recometer.measuring.reasons import OF_ONE_USER, Reason, values_in_mean
from recometer.metrics.conventions import describe, parse_under
from recometer.metrics.listed.data import ListData
from recometer.metrics.names import Metrics, without_group
from recometer.metrics.registry import Metric, rules_of, without_test_parameters
from recometer.protocol import Protocol
from recometer.ranks import TopLists
from recometer.remembered import cached_property
from recometer.rendering.formats import number
from recometer.results import saved, summary
from recometer.results.flat import FlatName, Statistic
from recometer.results.means import (
    Weights,
    denominators,
    intervals_over_users,
    mean_of_parts,
    together_of,
    weighted,
    within_bounds,
)
from recometer.results.saved import PER_USER, PROFILE
from recometer.results.summary import COUNTS, SummaryRow
from recometer.stats.ends import Interval
from recometer.stats.grouping import LARGEST
from recometer.stats.means import interval
from recometer.version import __version__

if TYPE_CHECKING:
    import polars
    from typing_extensions import Self

    from recometer.results.groups import Segments

NOT_KEPT = (
    "A saved result contains the users' values, but not the rows. Hint: mean(weights='users') is "
    "the mean over users."
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationRecord(rendering.Printed):
    """The result of `evaluate`; see `recometer.Evaluation`, which adds reports and tracking."""

    values: Mapping[str, Float64]
    reasons: Mapping[str, UInt8]
    user_ids: Array | None
    n_relevant: Int64
    n_candidates: Int64
    n_excluded: Int64
    depth: Int64
    flags: UInt32
    metrics: tuple[Metric, ...]
    protocol: Protocol
    seed: int
    counts: Mapping[str, int]
    definitions: Mapping[str, Mapping[str, str]]
    timings: Mapping[str, float]
    versions: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, Any]]
    over_rows: Mapping[str, float] = dataclasses.field(default_factory=dict)
    negative_gains: bool = True
    binary_gains: bool = False
    activity: Int64 | None = None
    popularity: Float64 | None = None
    over_users: Mapping[str, float] = dataclasses.field(default_factory=dict)
    chance: Mapping[str, Float64] = dataclasses.field(default_factory=dict)
    lists: TopLists | None = dataclasses.field(default=None, repr=False)
    # The data from which the intervals of `over_users` and `over_rows` are computed.
    list_data: ListData | None = dataclasses.field(default=None, repr=False)
    rated: RatedTogether | None = dataclasses.field(default=None, repr=False)
    inputs_kept: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    _intervals: dict[str, Interval] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        fields = vars(self)
        for name in ("values", "reasons", "chance"):
            columns = fields[name]
            fields[name] = dict(zip(columns, map(read_only, columns.values()), strict=True))
        for name in (*PER_USER, *PROFILE):
            if fields[name] is not None:
                fields[name] = read_only(fields[name])

    @property
    def n_users(self) -> int:
        """Number of test users, including users without a defined value."""
        return len(self.n_relevant)

    @cached_property
    def clusters(self) -> Int64 | None:
        """An integer for each session that identifies its user; None if there are no sessions."""
        return ids.clusters_of(self.user_ids)

    def __len__(self) -> int:
        """Return the number of users."""
        return self.n_users

    def __contains__(self, metric: object) -> bool:
        """Return whether the result has the metrics that a name (or synonym) stands for."""
        try:
            names_of(metric, self._by_name, self.protocol)  # type: ignore[arg-type]
        except (UnknownNameError, InputError):
            return False
        return True

    def __getitem__(self, metric: str | Metric) -> Float64:
        """Return the values of a metric.

        Parameters
        ----------
        metric
            ``"ndcg@10"``, or several cut-offs: ``"ndcg@1..10"``, ``"recall@5,10"``. As in
            `evaluate`, case does not matter, and synonyms work as well, such as ``"MRR"`` for rr.

        Returns
        -------
        float64 [n_users], or [n_users, n_cutoffs] for several cut-offs

        Raises
        ------
        UnknownNameError
            If the result does not have the metric. The message lists its metrics.
        InputError
            If the metric has one value for all users.
        """
        names, several = names_of(metric, self._by_name, self.protocol)
        for name in names:
            if name in self.over_users:
                raise InputError(
                    f"{name!r} has one value for all users, {self.over_users[name]:.4f}. Hint: "
                    f"use result.mean()[{name!r}]."
                )
        columns = [self.values[name] for name in names]
        return np.column_stack(columns) if several else columns[0]

    def mean(self, weights: Weights = None) -> dict[str, float]:
        """Return the mean of each metric over the users with a defined value.

        Rating errors such as rmse are computed over the rows of all users, as is usual;
        ``weights="users"`` returns their means over users.

        `summary` also returns the number of users with a defined value, and the interval of the
        mean.

        Parameters
        ----------
        weights
            None follows the rule `average`. ``"users"`` gives every user the same weight.
            ``"relevant"`` weights users by their numbers of relevant items (for roc_auc, this is
            known as GAUC). ``"pooled"`` divides the sum of the users' numerators by the sum of
            their denominators, for metrics that are ratios, such as precision, recall and ap; for
            predicted ratings, it returns the mean over all rows. You can also pass an array of
            non-negative numbers [n_users].

        Returns
        -------
        dict of str to float
            A mean is NaN if no user has a value. Metrics with one value for all users are included,
            unless you pass weights.

        Raises
        ------
        InputError
            If the weights do not match the users, or a metric does not have a pooled mean.
        """
        over_all = self.over_users, self.over_rows
        together = together_of(self.metrics, self.protocol, *over_all, weights)
        names = [name for name in map(str, self.metrics) if weights is None or name in self.values]
        return {
            name: together[name] if name in together else self._mean_over_users(name, weights)
            for name in names
        }

    @property
    def together(self) -> dict[str, float]:
        """The values of metrics with one value for all users, such as coverage and rating errors.

        These are `over_users`, and the entries of `over_rows` that the rule ``average`` selects.
        """
        return together_of(self.metrics, self.protocol, self.over_users, self.over_rows, None)

    @overload
    def interval(self, metric: Metric) -> Interval: ...

    @overload
    def interval(self, metric: str) -> Any: ...

    def interval(self, metric: str | Metric) -> Interval | dict[str, Interval]:
        """Return the interval of a metric's mean, under the rules ``interval`` and ``confidence``.

        Parameters
        ----------
        metric
            The name of the metric, which may contain several cut-offs, as in ``"ndcg@1..20"``.

        Returns
        -------
        recometer.stats.Interval, or a dict with the keys of `mean` for several cut-offs
            Use ``low, high = interval`` for the ends. `method` and `note` explain how it was
            computed, or why there is none. For a metric with one value for all users, see
            `stats.intervals.resampled`. The ends are clipped to the bounds of the metric, unless a
            user's value is outside the bounds.
        """
        names, several = names_of(metric, self._by_name, self.protocol)
        intervals = self._all_intervals(names)
        return dict(zip(names, intervals, strict=True)) if several else intervals[0]

    def skipped(self, metric: str | Metric) -> dict[str, int]:
        """Return the reasons why a metric is undefined, and the number of users for each."""
        users = np.bincount(self.reasons[self._name_of(metric)], minlength=max(Reason) + 1)
        undefined = (reason for reason in Reason if reason != Reason.DEFINED and users[reason])
        return {reason.sentence: int(users[reason]) for reason in undefined}

    def summary(self, *, cluster: object = None) -> list[SummaryRow]:
        """Return a row per metric, with its mean, interval and number of users.

        Parameters
        ----------
        cluster
            The cluster of each user, as in `recometer.compare`. Intervals are then based on whole
            clusters of users.
        """
        if cluster is not None:
            from recometer.results.groups import read_clusters

            clusters = read_clusters(cluster, self.user_ids, self.n_users)
            return self._under_clusters(clusters).summary()
        means, together = self.mean(), self.together
        rows = []
        for name, ends in zip(means, self._all_intervals(means), strict=True):
            reasons = self.skipped(name)
            no_value = self.reasons[name] != 0
            if name not in together:
                no_value = np.isnan(self.counted_values(name))
            elif name in self.values:  # means over rows include users without a value
                no_value = ~np.isin(self.reasons[name], OF_ONE_USER)
                for reason in OF_ONE_USER:
                    reasons.pop(reason.sentence, None)
            skipped = int(np.count_nonzero(no_value))
            users = self.n_users - skipped, skipped, reasons
            chance = math.nan
            if name in self.chance:  # over the users who count in the metric's mean
                left_out = np.isnan(self.counted_values(name))
                chances = np.where(left_out, np.nan, self.chance[name])
                chance = weighted(chances, self.counted_weights(name))
            mean, low, high = means[name], ends.low, ends.high
            row = SummaryRow(name, mean, low, high, *users, ends.method, ends.note, chance)
            rows.append(row)
        return rows

    def by(
        self,
        groups: object,
        *,
        column: str | None = None,
        user: str | None = None,
        quantiles: int = 4,
        cluster: object = None,
    ) -> Segments:
        """Return every metric for each group of users, and the differences between the groups.

        Parameters
        ----------
        groups
            The group of each user: a sequence or array [n_users], in the order of `user_ids`;
            a dict from user to group; or a data frame with a column of users and a column of
            groups. Users without a group, or with a missing group, are left out and counted.
            ``"activity"`` divides users into quantiles of their number of training items, and
            ``"popularity"`` into quantiles of the mean popularity (number of training users) of
            these items.
        column, user
            The names of the group column and of the user column in the data frame. By default,
            users are read from the column with a common name, such as ``user_id``, and groups from
            the only other column.
        quantiles
            The number of groups for ``"activity"`` and ``"popularity"``, at least 2. There are
            fewer groups if many users have the same value, because such users stay together.
        cluster
            As in `summary`.

        Returns
        -------
        Segments

        Raises
        ------
        InputError
            If an array has the wrong length, no user has a group, or training data are needed but
            missing.
        InputTypeError
            If the argument does not assign groups to users.

        Examples
        --------
        >>> import numpy as np, recometer as rm
        >>> scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
        >>> test = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]])
        >>> result = rm.evaluate(rm.Scores(scores), test, metrics="rr")
        >>> print(result.by(["old", "new", "old", "new"]))
        metric  group  users    mean      95% interval  counted
        rr      new        2  0.6667  0.0892 to 0.9916        2
        rr      old        2  1.0000  0.1581 to 1.0000        2
        <BLANKLINE>
        95% interval: Gaffke's (rr); Clopper and Pearson's (rr)
        rr: gap 0.3333, ratio 0.6667 (lowest: new, highest: old)
        """
        # Import on use, because few results are divided into groups.
        from recometer.results.groups import quantiles as quantiles_of
        from recometer.results.groups import (
            read_clusters,
            read_groups,
            refuse_items,
            segments_of,
        )

        if isinstance(groups, str) and groups in PROFILE:
            codes, names = quantiles_of(groups, getattr(self, groups), quantiles)
        else:
            refuse_items(groups, self.inputs_kept)
            codes, names = read_groups(groups, self.user_ids, self.n_users, column, user)
        of_ids = cluster is None or cluster is False  # `summary` reads clusters from the ids
        clusters = None if of_ids else read_clusters(cluster, self.user_ids, self.n_users)

        def summary_of(chosen: Int64) -> list[SummaryRow]:
            own = cluster if clusters is None else clusters[chosen]
            return self.of_users(chosen).summary(cluster=own)

        not_kept = tuple(self.over_users) if self.list_data is None else ()
        return segments_of(summary_of, codes, names, self.protocol.confidence, not_kept)

    def of_users(self, positions: npt.ArrayLike) -> Self:
        """Return the evaluation restricted to the given users.

        Parameters
        ----------
        positions : integers [m], or bool [n_users]
            Positions of the users, or a mask. Counts over all users do not change. Metrics with one
            value for all users are computed again; for a loaded evaluation, they are left out.

        Raises
        ------
        InputError, InputTypeError
            If a position does not exist, a mask has the wrong length, or the type is not supported.
        """
        chosen = user_positions(positions, self.n_users)
        changes: dict[str, Any] = {
            field: {name: column[chosen] for name, column in getattr(self, field).items()}
            for field in ("values", "reasons", "chance")
        }
        changes["lists"] = None if self.lists is None else self.lists.users(chosen)
        changes |= self._recomputed(chosen)
        names = map(str, changes.get("metrics", self.metrics))
        changes["reasons"] = {name: changes["reasons"][name] for name in names}
        for name in (*PER_USER, *PROFILE, "user_ids"):
            array = getattr(self, name)
            changes[name] = None if array is None else array[chosen]
        return dataclasses.replace(self, **changes)

    def per_user(self) -> polars.DataFrame:
        """Return a Polars frame: the columns ``user`` (and ``session``), and a column per metric.

        Without ids, ``user`` contains positions. Ids of a type that Polars lacks become strings.
        """
        import polars as pl

        users = np.arange(self.n_users) if self.user_ids is None else self.user_ids
        return pl.DataFrame({**ids.id_columns(users), **self.values})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a single Parquet file, which `recometer.load` reads.

        The columns contain the users' values and the reasons for undefined ones. The metadata
        describe the evaluation (protocol, seed, definitions, versions, counts and the fingerprints
        of the inputs), as JSON under the key ``recometer``.

        Raises
        ------
        FileError
            If the file cannot be written.
        InputTypeError
            If user ids have a type that cannot be stored.
        """
        together = self.together
        intervals = dict(zip(together, self._all_intervals(together), strict=True))
        saved.write(vars(self), path, intervals)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read an evaluation that `save` wrote; see `recometer.load`."""
        fields, intervals = saved.read(path)
        result = cls(**fields)
        result._intervals.update(intervals)
        return result

    def __repr__(self) -> str:
        return f"<Evaluation of {self.n_users} users: {', '.join(self.reasons)}>"

    def _name_of(self, metric: str | Metric) -> str:
        if isinstance(metric, str) and metric in self._by_name:
            return metric
        return name_of(metric, self._by_name, self.protocol)

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        return {str(metric): metric for metric in self.metrics}

    def _rules(self, name: str) -> Protocol:
        return rules_of(self._by_name[name], self.protocol)

    def known_metric(self, metric: str | Metric) -> Metric:
        """Return the evaluated metric that has this name."""
        return self._by_name[self._name_of(metric)]

    def bounds(self, metric: str | Metric) -> tuple[float, float]:
        """Return the lowest and the highest possible value for a user; they may be infinite."""
        parsed = self.known_metric(metric)
        return parsed.bounds(negative=self.negative_gains, binary=self.binary_gains)

    def counted_values(self, metric: str | Metric) -> Float64:
        """Return the values that count in a metric's mean, and NaN for other users."""
        name = self._name_of(metric)
        return values_in_mean(self.values[name], self.reasons[name], self._rules(name))

    def counted_weights(self, metric: str | Metric, weights: Weights = None) -> Float64:
        """Return the users' weights in a metric's mean, by default those of the rule `average`."""
        name, by_rule = self._name_of(metric), weights is None
        weights = self._rules(name).average if weights is None else weights
        if not isinstance(weights, str):
            of_users = numbers(weights, "weights")
            fits = of_users is not None and of_users.shape == (self.n_users,)
            if of_users is None or not fits or not ((of_users >= 0) & (of_users < np.inf)).all():
                raise InputError(
                    f"weights must be {self.n_users:,} finite numbers that are at least 0, one for "
                    "each user in the order of user_ids."
                )
            return of_users
        if weights == "relevant":
            return self.n_relevant.astype(np.float64)
        if weights == "pooled":
            return denominators(self._by_name[name], self.n_relevant, self.n_candidates)
        if weights == "users" or by_rule:  # other values of the rule give equal weights
            return np.ones(self.n_users)
        raise InputError(
            f"weights={weights!r} is not supported. Hint: use 'users', 'relevant', 'pooled', None, "
            "or one number per user."
        )

    def _mean_over_users(self, name: str, weights: Weights) -> float:
        weight, values = self.counted_weights(name, weights), self.counted_values(name)
        if weights is None and self._rules(name).average == "parts":
            weight = weight * (self.reasons[name] != Reason.NOT_COUNTED)
            metric = self._by_name[name]
            return mean_of_parts(metric, values, weight, self.n_relevant, self.depth)
        return weighted(values, weight)

    def _interval_over_users(self, name: str, weights: Float64 | None) -> Interval:
        """Return the interval of a mean, within the metric's bounds; NaN if unknown."""
        kind, confidence = self.protocol.interval, self.protocol.confidence
        values, bounds = self.counted_values(name), self.bounds(name)
        if (np.abs(values) > LARGEST).any():
            n = int(np.count_nonzero(~np.isnan(values)))
            note = f"A value is infinite, or above {LARGEST:g}: the mean has no interval."
            result = Interval.unknown(confidence, n, note)
        else:
            result = interval(
                values,
                "auto" if kind == "gaffke" else kind,
                bounds=bounds,
                confidence=confidence,
                weights=weights,
                clusters=self.clusters,
            )
        if self._rules(name).average == "parts":
            note = "No interval is known for a mean of parts."
            return Interval.unknown(confidence, result.n, note)
        return within_bounds(result, bounds, values)

    def _all_intervals(self, names: Iterable[str]) -> list[Interval]:
        computed, together = self._intervals, self.together
        missing = [name for name in names if name not in computed]
        per_user = [name for name in missing if name not in together]
        averages = {self._rules(name).average for name in per_user}
        for name in per_user:
            weights = self.counted_weights(name) if averages - {"users", "usual"} else None
            computed[name] = self._interval_over_users(name, weights)
        for_all_users = {name: together[name] for name in missing if name in together}
        computed |= self._intervals_together(for_all_users)
        return [computed[name] for name in names]

    def table(self) -> rendering.Table:
        """Return the table that ``print`` shows, for use in other formats."""
        return summary.table(self.summary(), self.protocol, self._notes())

    def to_dict(self, *, per_user: bool = False) -> dict[str, Any]:
        """Return the result as JSON-compatible Python objects.

        With `per_user`, they include the values of individual users.
        """
        content: dict[str, Any] = {
            "recometer": __version__,
            "inputs": {name: described["description"] for name, described in self.inputs.items()},
            "seed": self.seed,
            "users": self.n_users,
            "protocol": self.protocol.to_dict(),
            "counts": dict(self.counts),
            "over_rows": dict(self.over_rows),
            "metrics": {
                row.metric: {
                    name: rendering.plain(value)
                    for name, value in vars(row).items()
                    if name != "metric"
                }
                for row in self.summary()
            },
        }
        if flag("per_user", per_user):
            frame = self.per_user().fill_nan(None)
            content["per_user"] = rendering.plain(frame.to_dict(as_series=False))
        return content

    def flat_values(self) -> Iterator[tuple[FlatName, float]]:
        """Yield the values of `flat`, with their names."""
        statistics: tuple[Statistic, ...] = ("mean", "low", "high", "counted", "skipped")
        if self.chance:
            statistics += ("chance",)
        for row in self.summary():
            for statistic in statistics:
                yield FlatName(row.metric, statistic), getattr(row, statistic)

    def read_together(self, metric: str) -> Together | None:
        """Return the data for a metric with one value for all users; None if they were not kept."""
        if metric not in self.over_users:
            return self.rated
        return None if self.list_data is None else ListedUsers(self.list_data)

    def _intervals_together(self, values: Mapping[str, float]) -> dict[str, Interval]:
        """Return intervals for the values in `together`, computed from resampled users."""
        intervals: dict[str, Interval] = {}
        by_record: dict[bool, list[Metric]] = {}
        for metric in self.metrics:
            if str(metric) in values:
                by_record.setdefault(str(metric) in self.over_users, []).append(metric)
        for metrics in by_record.values():
            read = self.read_together(str(metrics[0]))
            if read is None:
                unknown = Interval.unknown(self.protocol.confidence, self.n_users, NOT_KEPT)
                intervals |= {str(metric): unknown for metric in metrics}
            else:
                own = {str(metric): values[str(metric)] for metric in metrics}
                settings = self.protocol, self.seed, self.clusters
                intervals |= intervals_over_users(read, metrics, own, *settings)
        return intervals

    def _recomputed(self, chosen: Int64) -> dict[str, Any]:
        """Recompute the metrics that have one value for all users, using only the `chosen` users.

        Return the fields that change.
        """
        changes: dict[str, Any] = {"over_rows": dict.fromkeys(self.over_rows, float("nan"))}
        if self.rated is not None:
            changes["rated"] = rated = self.rated.users(chosen)
            affected = [metric for metric in self.metrics if str(metric) in self.over_rows]
            changes["over_rows"] = compute_for_all(rated, affected, self.protocol)
        affected = [metric for metric in self.metrics if str(metric) in self.over_users]
        if self.list_data is not None:
            changes["list_data"] = data = self.list_data.users(chosen)
            changes["over_users"] = compute_for_all(ListedUsers(data), affected, self.protocol)
        elif affected:
            # The data for recomputing these metrics were not kept.
            changes["over_users"] = {}
            changes["metrics"] = tuple(metric for metric in self.metrics if metric not in affected)
        return changes

    def _under_clusters(self, clusters: Int64 | None) -> Self:
        """Return a copy of the evaluation with intervals over clusters of users."""
        changed = dataclasses.replace(self)
        # Set the cached property `clusters`, which is otherwise read from the ids of sessions.
        numbered = None if clusters is None else np.unique(clusters, return_inverse=True)[1]
        vars(changed)["clusters"] = numbered
        return changed

    def _notes(self) -> list[str]:
        """Return the notes to print below a table."""
        notes: list[str] = []
        clusters = self.clusters
        if clusters is not None:
            notes.append(
                f"{len(clusters):,} sessions of {len(np.unique(clusters)):,} users: every session "
                "has the same weight, and intervals are over users"
            )
        over_rows = [name for name in self.together if name in self.over_rows]
        if over_rows:
            means = self.mean("users")
            values = " ".join(f"{name} {number(means[name])}" for name in over_rows)
            notes.append(
                f"over the rows of all users: {', '.join(over_rows)} (mean over users: {values})"
            )
        return notes + notes_on(self.inputs, self.counts, self.protocol)


def fingerprints(result: EvaluationRecord, name: str) -> dict[str, Any]:
    """Return the fingerprints of one input of a result, separately for each fold (if any).

    The inputs are ``"test"``, ``"train"``, ``"candidates"`` and ``"exclude"``.
    """
    return {
        key: described.get("fingerprints")
        for key, described in result.inputs.items()
        if key == name or key.endswith(f": {name}")
    }


def names_of(
    metric: str | Metric, evaluated: Mapping[str, Metric], protocol: Protocol
) -> tuple[list[str], bool]:
    """Return the names in `evaluated` that `metric` matches, and whether it names several.

    `metric` may have any form that `recometer.evaluate` takes: a synonym, several cut-offs (also
    ``ndcg@1..1``), ``rbp(p=0.8)`` for rbp, or ``err@10`` for ``err@10(max_gain=3)``.

    Raises UnknownNameError if the metric was not evaluated, and InputError if it is ambiguous, or
    has a cut-off or a parameter value that the metric does not take.
    """
    text = str(metric)
    if text in evaluated:
        return [text], False
    try:
        parsed = parse_under(text, protocol)
    except UnknownNameError:
        parsed = []
    names = [_name_among(entry, evaluated) for entry in parsed]
    missing = next((name for name in names if name not in evaluated), None)
    if missing is not None or not names:
        name = text if missing is None or len(names) == 1 else missing
        raise UnknownNameError(
            f"This evaluation has no metric {name!r}. {did_you_mean(name, evaluated)}"
        )
    head = without_group(text)[0].partition("(")[0]
    return names, len(names) > 1 or ".." in head or "," in head


def name_of(metric: str | Metric, evaluated: Mapping[str, Metric], protocol: Protocol) -> str:
    """Return the only matching name in `evaluated` (see `names_of`); refuse several names."""
    names, several = names_of(metric, evaluated, protocol)
    if several:
        raise InputError(
            f"{str(metric)!r} stands for several metrics: {', '.join(names)}. Hint: choose one."
        )
    return names[0]


def names_among(requested: Metrics, evaluated: Iterable[Metric], protocol: Protocol) -> list[str]:
    """Return distinct metric names, as spelled in `evaluated`; unknown metrics keep their names."""
    by_name = {str(metric): metric for metric in evaluated}
    parsed = parse_under(requested, protocol)
    return list(dict.fromkeys(_name_among(metric, by_name) for metric in parsed))


def _name_among(metric: Metric, by_name: Mapping[str, Metric]) -> str:
    """Return a metric's name in `by_name`, where parameters from test data may be filled in."""
    name = str(metric)
    if name in by_name:
        return name
    fitting = [
        key for key, other in by_name.items() if str(without_test_parameters(other, metric)) == name
    ]
    if len(fitting) > 1:
        raise InputError(
            f"The metric {name!r} is ambiguous: it may be {' or '.join(fitting)}. Hint: write one "
            "of these."
        )
    return fitting[0] if fitting else name


def notes_on(
    inputs: Mapping[str, Mapping[str, Any]], counts: Mapping[str, int], protocol: Protocol
) -> list[str]:
    """Return notes on the inputs, the counts and the rules of a result."""
    notes = [f"{name}: {described['description']}" for name, described in inputs.items()]
    notes += [described["reading"] for described in inputs.values() if "reading" in described]
    notes += [
        f"Warning: {described['warning']}"
        for described in inputs.values()
        if "warning" in described
    ]
    notes += [f"{COUNTS.get(name, name)}: {count:,}" for name, count in counts.items() if count]
    if protocol != Protocol():
        notes.append(f"protocol: {describe(protocol)}")
    return notes
