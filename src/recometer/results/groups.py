"""Metrics for groups of users, and the differences between the groups."""

from __future__ import annotations

import dataclasses
import numbers
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data import ids
from recometer.data.columns import columns_of_groups
from recometer.data.frames import in_numpy, is_frame, open_frame
from recometer.errors import (
    InputError,
    InputTypeError,
    argument_text,
    brief,
    python_or_command,
)
from recometer.remembered import cached_property
from recometer.rendering import Column, Printed, Table
from recometer.results.summary import (
    COUNTED,
    MEAN,
    SummaryRow,
    cell,
    fitting,
    four_digits,
    interval_column,
    legend,
    metric_column,
    on_intervals,
)

if TYPE_CHECKING:
    import polars

LEFT_OUT = -1  # the code of a user without a group


@dataclasses.dataclass(frozen=True)
class SegmentRow:
    """The mean of a metric over the users of a group.

    Attributes
    ----------
    metric, group
        The names of the metric and of the group.
    users
        The number of users in the group.
    mean
        The mean over the users with a defined value; NaN if there are none.
    low, high
        The ends of the mean's interval. NaN if there is none; `note` then gives the reason.
    counted
        The number of users who count in the mean.
    method, note
        How the interval was computed, and a remark about it, if any.
    """

    metric: str
    group: str
    users: int
    mean: float
    low: float
    high: float
    counted: int
    method: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class Segments(Printed):
    """The metrics for groups of users; see `Evaluation.by`.

    Attributes
    ----------
    rows : tuple of SegmentRow
        The rows, ordered by metric and then by group.
    groups : tuple of str
        The groups, in sorted order or from the lowest to the highest quantile.
    left_out : int
        The number of users without a group.
    confidence : float
        The confidence level of the intervals.
    not_kept : tuple of str
        Metrics that are missing because they have one value for all users and the result was loaded
        from a file, which does not contain the lists from which they are computed.
    """

    rows: tuple[SegmentRow, ...]
    groups: tuple[str, ...]
    left_out: int
    confidence: float
    not_kept: tuple[str, ...] = ()

    def gap(self) -> dict[str, float]:
        """Return, for each metric, the largest difference between the means of two groups."""
        return {
            metric: ends[1].mean - ends[0].mean if ends else float("nan")
            for metric, ends in self._ends.items()
        }

    def ratio(self) -> dict[str, float]:
        """Return, for each metric, the smallest mean divided by the largest: 1 if all are equal.

        It is NaN if a mean is negative, or if all means are 0.
        """
        ratios = {}
        for metric, ends in self._ends.items():
            low, high = (row.mean for row in ends) if ends else (float("nan"), float("nan"))
            ratios[metric] = low / high if low >= 0 and high > 0 else float("nan")
        return ratios

    def frame(self) -> polars.DataFrame:
        """Return a Polars frame: a row per metric and group."""
        import polars as pl

        names = [field.name for field in dataclasses.fields(SegmentRow)]
        return pl.DataFrame({name: [getattr(row, name) for row in self.rows] for name in names})

    def table(self) -> Table:
        """Return the table that ``print`` shows; several metrics get a column each."""
        return self.tables()[-1]

    def tables(self, width: int | None = None) -> list[Table]:
        """Return tables that are no wider than `width`, if possible."""
        if len(self._ends) == 1:
            tables = [self.data()]
        else:
            tables = fitting(self._side_by_side, list(self._ends), width)
        return [*tables[:-1], dataclasses.replace(tables[-1], notes=list(self._notes()))]

    def data(self) -> Table:
        """Return a row per metric and group."""
        users = Column("users", show="{:,}".format, number=True)
        interval = interval_column(self.confidence)
        return Table([Column("metric"), Column("group"), users, MEAN, interval, COUNTED], self.rows)

    def _side_by_side(self, metrics: Sequence[str]) -> Table:
        """Return a row per group, and the gap between the groups for each metric."""
        lines: dict[str, dict[str, str]] = {name: {"group": name} for name in self.groups}
        for row in self.rows:
            line = lines[row.group]
            line["users"] = f"{row.users:,}"
            line[row.metric] = cell(row.mean, row.low, row.high)
        summaries: list[dict[str, str]] = []
        if len(self.groups) > 1:
            for name, by_metric in (("gap", self.gap()), ("ratio", self.ratio())):
                texts = {metric: four_digits(value) for metric, value in by_metric.items()}
                summaries.append({"group": name, "users": "", **texts})
        columns = [Column("group"), *map(metric_column, ("users", *metrics))]
        return Table(columns, [*lines.values(), *summaries])

    def __repr__(self) -> str:
        return f"<Segments: {len(self.groups)} groups of users, {len(self._ends)} metrics>"

    @cached_property
    def _ends(self) -> dict[str, tuple[SegmentRow, SegmentRow] | None]:
        """The rows of the groups with the smallest and the largest mean, for each metric."""
        by_metric: dict[str, list[SegmentRow]] = {}
        for row in self.rows:
            by_metric.setdefault(row.metric, [])
            if not np.isnan(row.mean):
                by_metric[row.metric].append(row)

        mean = operator.attrgetter("mean")
        return {
            metric: (min(rows, key=mean), max(rows, key=mean)) if rows else None
            for metric, rows in by_metric.items()
        }

    def _notes(self) -> Iterator[str]:
        ratios, gaps = self.ratio(), self.gap()
        yield from on_intervals(self.rows, self.confidence, remarks=False)
        if len(self._ends) > 1:
            yield (
                f"{legend(self.confidence)}; gap: the highest mean minus the lowest; ratio: the "
                "lowest divided by the highest."
            )
        for metric, ends in self._ends.items():
            if len(self._ends) == 1 and ends and ends[0].group != ends[1].group:
                low, high = ends[0].group, ends[1].group
                yield (
                    f"{metric}: gap {gaps[metric]:.4f}, ratio {ratios[metric]:.4f} "
                    f"(lowest: {low}, highest: {high})"
                )
        if self.not_kept:
            yield (
                f"left out, because there is one value for all users: {', '.join(self.not_kept)} "
                "(a saved result does not keep the lists)"
            )
        if self.left_out:
            yield f"users without a group (left out): {self.left_out:,}"


def segments_of(
    summary_of: Callable[[Int64], Sequence[SummaryRow]],
    codes: Int64,
    names: Sequence[str],
    confidence: float,
    not_kept: tuple[str, ...],
) -> Segments:
    """Return every metric for each group; `codes` and `names` are as returned by `read_groups`.

    `summary_of` takes the positions of users and returns their summary, with a row per metric.
    """
    summed = operator.attrgetter("mean", "low", "high", "counted", "method", "note")
    members = [np.flatnonzero(codes == code) for code in range(len(names))]
    rows = tuple(
        SegmentRow(row.metric, name, len(chosen), *summed(row))
        for of_metric in zip(*map(summary_of, members), strict=True)
        for row, name, chosen in zip(of_metric, names, members, strict=True)
    )
    left_out = int(np.count_nonzero(codes == LEFT_OUT))
    return Segments(rows, tuple(names), left_out, confidence, not_kept)


def quantiles(name: str, values: Float64 | Int64 | None, n: object) -> tuple[Int64, list[str]]:
    """Divide the users into n groups of about equal size; equal values stay together.

    The result is each user's group number (`LEFT_OUT` if the value is NaN), and the names of the
    groups, lowest first. These names begin with `name`.
    """
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 2:
        raise InputError(f"quantiles={n!r} must be a whole number, at least 2.")
    if values is None:
        raise InputError(
            f"{argument_text('groups', name)} needs the users' training items, but there are no "
            "training data. Hint: "
            f"{python_or_command('rm.evaluate(..., train=...)', '--train FILE')}."
        )
    n = min(int(n), len(values) + 1)  # further groups would be empty
    known = ~np.isnan(values)
    if not known.any():
        raise InputError(
            f"{argument_text('groups', name)} needs the users' training items, but none of the "
            f"{len(values):,} users has any. Hint: are user ids spelled the same in train and test?"
        )
    edges = np.unique(np.quantile(values[known], np.arange(1, n) / n, method="inverted_cdf"))
    bins = np.searchsorted(edges, values, side="left")
    used, codes = np.unique(bins[known], return_inverse=True)
    result_codes = np.full(len(values), LEFT_OUT)
    result_codes[known] = codes
    names = []
    for code in range(len(used)):
        inside = values[result_codes == code]
        low, high = f"{inside.min():,.6g}", f"{inside.max():,.6g}"
        names.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
    return result_codes, names


def read_groups(
    groups: Any, user_ids: Array | None, n_users: int, column: str | None, user: str | None
) -> tuple[Int64, list[str]]:
    """Read the group of each user, in the forms that `Evaluation.by` takes, and number the groups.

    The result is each user's group number (`LEFT_OUT` for users without a group), and the sorted
    names of the groups.
    """
    users: Any = None
    groups = in_numpy(groups, "groups")
    if is_frame(groups):
        names, fetch = open_frame(groups)
        users, groups = fetch(list(columns_of_groups(names, "user", user, column)))
    elif isinstance(groups, str):
        raise InputError(
            f"{argument_text('groups', groups)} does not exist. Hint: pass 'activity', "
            "'popularity', or each user's group as an array, a dict or a data frame."
        )
    elif column is not None or user is not None:
        raise InputTypeError(
            f"column= and {argument_text('user')} name columns of a data frame, but groups is of "
            f"type {type(groups).__name__}."
        )
    elif isinstance(groups, Mapping):
        users, groups = list(groups), list(groups.values())
    elif not hasattr(groups, "__len__") or isinstance(groups, Set):
        raise InputTypeError(
            f"groups is of type {type(groups).__name__}. Hint: pass 'activity', 'popularity', "
            "or each user's group as an array, a dict or a data frame."
        )
    labels = _labels(groups)
    if users is None:
        if len(labels) != n_users:
            raise InputError(
                f"groups has {len(labels):,} entries, but there are {n_users:,} users. "
                "Hint: pass one for each of result.user_ids, or a dict from user to group."
            )
        of_user = labels
    else:
        positions = _positions(users, user_ids, n_users)
        of_user = [None if row < 0 else labels[row] for row in positions.tolist()]
    present = {label for label in of_user if label is not None}
    # Sort groups of mixed types as strings.
    try:
        ordered = sorted(present)
    except TypeError:
        ordered = sorted(present, key=str)
    numbers = {label: code for code, label in enumerate(ordered)}
    codes = [LEFT_OUT if label is None else numbers[label] for label in of_user]
    if not ordered:
        raise InputError(
            f"None of the {n_users:,} users has a group. Hint: pass the groups of the test users, "
            "by the same ids; result.by_items(groups) takes groups of items."
        )
    return np.array(codes, np.int64), [str(label) for label in ordered]


def refuse_items(groups: object, inputs: Mapping[str, Any] | None) -> None:
    """Refuse a dict whose keys are items of the evaluation instead of users."""
    if inputs is None or not isinstance(groups, Mapping):
        return
    n_known = {}
    for kind in ("user", "item"):
        known_ids: set[Any] = set()
        for data in (inputs["test"], inputs["train"], inputs["catalogue"]):
            own = getattr(data, f"{kind}_ids", None)
            known_ids.update(range(getattr(data, f"n_{kind}s", 0)) if own is None else own.tolist())
        own = inputs["source"].facts.known_ids(kind)
        known_ids.update([] if own is None else own.tolist())
        n_known[kind] = sum(key in known_ids for key in groups)
    if n_known["user"] < n_known["item"] == len(groups):
        raise InputError(
            f"The {len(groups):,} keys of groups are items; {n_known['user']:,} of them are also "
            "users. Hint: result.by_items(groups) takes groups of items. For groups of users, pass "
            "only test users."
        )


def _labels(groups: Any) -> list[Any]:
    """Return the labels as a list, with None for missing ones."""
    shape = np.shape(groups) if hasattr(groups, "tolist") else (len(groups),)
    if len(shape) != 1:
        raise InputError(
            f"groups is an array of shape {shape}, expected one dimension. Hint: pass one group "
            "per user; result.by(...) divides the users in one way at a time."
        )
    labels = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    wrong = next((label for label in labels if not isinstance(label, Hashable)), None)
    if wrong is not None:
        raise InputTypeError(
            f"The group of a user is of type {type(wrong).__name__} ({brief(wrong)}). Hint: pass a "
            "string or a number for each user."
        )
    # NaN and NaT do not equal themselves; pandas' NA cannot be converted to a bool.
    return [
        None if type(value).__name__ == "NAType" or value != value else value for value in labels
    ]


def _positions(users: Sequence[Any], user_ids: Array | None, n_users: int) -> Int64:
    """Return the position in `users` of each user of the result, or -1 if there is none."""
    of_groups = ids.as_ids(users, "user ids of groups")
    of_result = np.arange(n_users) if user_ids is None else ids.drop_sessions(user_ids, of_groups)
    return ids.match(of_result, of_groups, "user ids of the result", "user ids of groups")


def read_clusters(cluster: object, user_ids: Array | None, n_users: int) -> Int64 | None:
    """Return each user's cluster number, or None if users are independent.

    Parameters
    ----------
    cluster
        The cluster of each user, in the same forms as groups in `Evaluation.by`. If ids have
        sessions, None means that users are the clusters, and False means that sessions are
        independent.
    user_ids, n_users
        The users of the result.

    Raises
    ------
    InputError, InputTypeError
        If a user has no cluster, or the argument does not assign clusters to users.
    """
    if cluster is False:
        return None
    if cluster is None:
        return ids.clusters_of(user_ids)
    codes, _ = read_groups(cluster, user_ids, n_users, None, None)
    without = np.flatnonzero(codes == LEFT_OUT)
    if len(without):
        first = int(without[0])
        shown = str(first) if user_ids is None else ids.show(user_ids, first)
        raise InputError(
            f"{len(without):,} of {n_users:,} users have no cluster, for instance {shown}. Hint: a "
            "single user can be a cluster."
        )
    return codes
