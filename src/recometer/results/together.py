"""What stands for a mean where all users have one value together.

Metrics of lists such as coverage have no other; errors of predicted ratings are those over the rows
of all users, as tables have them, unless the mean over users is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from recometer.arrays import Int64
from recometer.measuring.compute import compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.measured import Together
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.results.means import Weights, intervals_over_users
from recometer.stats import Interval

if TYPE_CHECKING:
    from recometer.results.evaluation import Evaluation


NOT_KEPT = (
    "A file keeps the users' values and not the rows. Hint: weights='users' gives the mean over "
    "users."
)


def is_over_rows(metric: Metric, protocol: Protocol, weights: Weights) -> bool:
    """Return whether the mean of a metric is its value over the rows of all users."""
    if metric.definition.over_rows is None:
        return False
    how = rules_of(metric, protocol).average if weights is None else weights
    return isinstance(how, str) and how in ("usual", "pooled")


def values_together(result: Evaluation, weights: Weights) -> dict[str, float]:
    """Return the values of all users together under some weights; NaN if they were not kept."""
    return together_of(
        result.metrics, result.protocol, result.over_users, result.over_rows, weights
    )


def together_of(
    metrics: Iterable[Metric],
    protocol: Protocol,
    over_users: Mapping[str, float],
    over_rows: Mapping[str, float],
    weights: Weights,
) -> dict[str, float]:
    """Return these values for what was measured, see `Evaluation`."""
    found = {} if weights is not None else dict(over_users)
    for metric in metrics if over_rows else ():
        name = str(metric)
        if name in over_rows and is_over_rows(metric, protocol, weights):
            found[name] = over_rows[name]
    return found


def read_together(result: Evaluation, name: str) -> Together | None:
    """Return what such a metric is computed from, or None if it was not kept."""
    if name not in result.over_users:
        return result.rated
    return None if result.list_data is None else ListedUsers(result.list_data)


def intervals_together(result: Evaluation, values: Mapping[str, float]) -> dict[str, Interval]:
    """Return the intervals of such values, from resampled users."""
    found: dict[str, Interval] = {}
    by_record: dict[bool, list[Metric]] = {}
    for metric in result.metrics:
        if str(metric) in values:
            by_record.setdefault(str(metric) in result.over_users, []).append(metric)
    for metrics in by_record.values():
        read = read_together(result, str(metrics[0]))
        if read is None:
            unknown = Interval.unknown(result.protocol.confidence, result.n_users, NOT_KEPT)
            found |= {str(metric): unknown for metric in metrics}
        else:
            own = {str(metric): values[str(metric)] for metric in metrics}
            found |= intervals_over_users(
                read, metrics, own, result.protocol, result.seed, result.clusters
            )
    return found


def of_some_users(result: Evaluation, chosen: Int64) -> dict[str, Any]:
    """Return the fields that say what some users have together, computed anew."""
    changes: dict[str, Any] = {"over_rows": dict.fromkeys(result.over_rows, float("nan"))}
    if result.rated is not None:
        changes["rated"] = rated = result.rated.users(chosen)
        asked = [metric for metric in result.metrics if str(metric) in result.over_rows]
        changes["over_rows"] = compute_for_all(rated, asked, result.protocol)
    asked = [metric for metric in result.metrics if str(metric) in result.over_users]
    if result.list_data is not None:
        changes["list_data"] = data = result.list_data.users(chosen)
        changes["over_users"] = compute_for_all(ListedUsers(data), asked, result.protocol)
    elif asked:
        # Nothing is left to compute them from.
        changes["over_users"] = {}
        changes["metrics"] = tuple(one for one in result.metrics if one not in asked)
    return changes
