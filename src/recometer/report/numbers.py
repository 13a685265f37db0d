"""Compute the numbers in a report: standings, and counts of users in bins and groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64
from recometer.comparing.kinds import resolve
from recometer.comparing.rows import Standing, pair_name
from recometer.report.inputs import Inputs, chance_of
from recometer.report.model import Row, Standings
from recometer.results.groups import LEFT_OUT
from recometer.stats import Interval
from recometer.tasks import Ticker, run_tasks

N_BINS = 20  # the number of bins in a histogram


@dataclasses.dataclass(frozen=True)
class MetricNumbers:
    """The numbers for one metric; there are no rows if the metric has one value for all users."""

    standings: Standings
    values: tuple[Row, ...] = ()  # the number of users in each bin of values, for each model
    differences: tuple[Row, ...] = ()  # the number of users in each bin of differences, per pair
    counts: tuple[Row, ...] = ()  # the numbers of users better off, equal and worse off, per pair
    # The mean in each group of users, keyed by model or pair.
    groups: Mapping[str, tuple[Row, ...]] = dataclasses.field(default_factory=dict)


def all_numbers(
    inputs: Inputs, pairs: Sequence[tuple[str, str]], primary: Standings
) -> dict[str, MetricNumbers]:
    """Return the numbers for each metric; `primary` contains the standings on the first metric."""

    def numbers_of(metric: str, ticker: Ticker) -> MetricNumbers:
        ticker.advance()
        is_primary = metric == primary.metric
        return _numbers(inputs, pairs, primary if is_primary else standings_of(inputs, metric))

    numbers = run_tasks(numbers_of, inputs.metrics, threads=inputs.options.threads, progress=False)
    return dict(zip(inputs.metrics, numbers, strict=True))


def _numbers(
    inputs: Inputs, pairs: Sequence[tuple[str, str]], standings: Standings
) -> MetricNumbers:
    metric, higher = standings.metric, standings.higher_is_better
    if inputs.is_whole(metric):
        return MetricNumbers(standings)
    resolved = resolve(metric, inputs.models, inputs.users, inputs.options)
    values = {name: column.values for name, column in resolved.columns.items()}
    differences = {
        pair_name(model, other): values[model] - values[other]
        for model, other in pairs
        if model != other and inputs.options.paired
    }
    return MetricNumbers(
        standings,
        tuple(_histogram(values, resolved.bounds)),
        tuple(_difference_bins(differences, higher)),
        tuple(_counts(differences, higher)),
        _by_group(inputs, {**values, **differences}, higher),
    )


def standings_of(inputs: Inputs, metric: str) -> Standings:
    """Return the standings of all models on a metric, best first."""
    if inputs.comparison is not None:
        places = list(inputs.comparison.standings_of(metric))
        if inputs.is_whole(metric):
            places = [_with_interval(inputs, standing) for standing in places]
    else:
        (model,), n = inputs.models, 0
        mean = model.first.together.get(metric)
        if mean is None:
            mean = model.first.mean()[metric]
            n = int(np.count_nonzero(~np.isnan(inputs.users.values(model, metric))))
        standing = Standing(
            metric=metric,
            model=model.name,
            mean=mean,
            interval=Interval.unknown(inputs.options.confidence, n, ""),
            n=n,
            leads=not np.isnan(mean),
            best=False,
            rank_low=0,
            rank_high=0,
        )
        places = [_with_interval(inputs, standing)]
    higher = inputs.definition(metric).higher_is_better
    places.sort(key=lambda place: (np.isnan(place.mean), -place.mean if higher else place.mean))
    return Standings(metric, higher, tuple(places), chance_of(inputs, metric))


def _with_interval(inputs: Inputs, standing: Standing) -> Standing:
    """Set the number of users and, if the model was evaluated only once, the interval."""
    model = inputs.model(standing.model)
    n = standing.n or max(run.n_users for run in model.runs)
    if len(model.runs) > 1 or not model.has_metric(standing.metric):
        return dataclasses.replace(standing, n=n)
    interval = model.first.interval(standing.metric)
    return dataclasses.replace(standing, interval=interval, n=n)


def _histogram(columns: dict[str, Float64], bounds: tuple[float, float]) -> list[Row]:
    # fmin and fmax ignore NaN.
    low = min(float(np.fmin.reduce(column, initial=np.inf)) for column in columns.values())
    high = max(float(np.fmax.reduce(column, initial=-np.inf)) for column in columns.values())
    if not np.isfinite([low, high]).all():
        return []
    if np.isfinite(bounds).all():
        low, high = bounds
    edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    rows: list[Row] = []
    for name, column in columns.items():
        counts = _bin_counts(column, edges)
        rows += _bin_rows({"model": name}, counts, edges)
    return rows


def _bin_counts(column: Float64, edges: Float64) -> Array:
    """Count values in bins of equal width; values beyond the edges count in the outermost bins."""
    defined = column[~np.isnan(column)]
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    places = np.clip(((defined - edges[0]) / width).astype(np.int64), 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1)


def _bin_rows(labels: dict[str, Any], counts: Array, edges: Float64) -> list[Row]:
    total, highest = max(int(counts.sum()), 1), max(int(counts.max(initial=0)), 1)
    return [
        {
            **labels,
            "from": round(float(edges[index]), 6),
            "to": round(float(edges[index + 1]), 6),
            "users": count,
            "share": round(count / total, 6),
            "height": round(count / highest, 4),
        }
        for index, count in enumerate(counts.tolist())
        if count
    ]


def _difference_bins(differences: dict[str, Float64], higher: bool) -> list[Row]:
    """Return rows with the histogram of each pair's nonzero differences."""
    largest = max(
        (float(np.fmax.reduce(np.abs(d), initial=0)) for d in differences.values()), default=0
    )
    if not 0 < largest < np.inf:
        return []
    edges = np.linspace(-largest, largest, 2 * (N_BINS // 2) + 1)
    rows: list[Row] = []
    for name, column in differences.items():
        differing = column[column != 0]
        for row in _bin_rows({"pair": name}, _bin_counts(differing, edges), edges):
            gains = (row["from"] + row["to"] > 0) == higher
            rows.append({**row, "who": "better off" if gains else "worse off"})
    return rows


def _counts(differences: dict[str, Float64], higher: bool) -> list[Row]:
    rows: list[Row] = []
    for name, column in differences.items():
        above, below = int(np.count_nonzero(column > 0)), int(np.count_nonzero(column < 0))
        better, worse = (above, below) if higher else (below, above)
        equal = int(np.count_nonzero(column == 0))
        n = max(better + equal + worse, 1)
        begin = 0.0
        for outcome, users in (("better off", better), ("the same", equal), ("worse off", worse)):
            end = begin + users / n
            rows.append(
                {"pair": name, "who": outcome, "users": users, "share": users / n}
                | {"from": round(begin, 6), "to": round(end, 6)}
            )
            begin = end
    return rows


def _by_group(
    inputs: Inputs, columns: dict[str, Float64], higher: bool
) -> dict[str, tuple[Row, ...]]:
    """Return rows with the mean of each column in each group of users."""
    groups = inputs.groups
    if groups is None:
        return {}
    rows_of: dict[str, tuple[Row, ...]] = {}
    for name, column in columns.items():
        chosen = (groups.codes != LEFT_OUT) & ~np.isnan(column)
        codes = groups.codes[chosen]
        users = np.bincount(codes, minlength=len(groups.names))
        sums = np.bincount(codes, weights=column[chosen], minlength=len(groups.names))
        rows: list[Row] = []
        for group in np.flatnonzero(users).tolist():
            mean = float(sums[group] / users[group])
            outcome = "better off" if (mean > 0) == higher else "worse off"
            rows.append(
                {"group": groups.names[group], "model": name, "mean": round(mean, 6)}
                | {"users": int(users[group]), "who": outcome if mean else "the same"}
            )
        rows_of[name] = tuple(rows)
    return rows_of
