"""The charts of a report, except those that need the lists: their numbers and words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from recometer.arrays import Bool, Float64
from recometer.comparing.models import Model
from recometer.comparing.rows import pair_name
from recometer.report.given import LEFT_OUT, Given, Groups
from recometer.report.model import SAME, Chart, Choice, Field, Row, Standings
from recometer.report.numbers import MetricNumbers
from recometer.results.folds import FoldedRecord
from recometer.results.profiles import FoundByPopularity

MODEL = Field("model", "model")
MEAN = Field("mean", "mean", "number")
LOW, HIGH = Field("low", "low end", "number"), Field("high", "high end", "number")
USERS = Field("users", "users", "count")
SHARE = Field("share", "share", "share")
BIN = (Field("from", "from", "number"), Field("to", "to", "number"))
FEWEST_CUTOFFS = 3  # that make a curve
LESS = "worse than the best"


def leaderboard_chart(numbers: Mapping[str, MetricNumbers], confidence: float) -> Chart:
    """Return means with their intervals, a row per model."""
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {
        (metric,): tuple(_bars(one.standings)) for metric, one in numbers.items()
    }
    return Chart(
        "leaderboard",
        "leaderboard",
        "Means and intervals",
        f"Point: mean over users; line: its {confidence:.0%} interval. Filled points are the best "
        "model, and those for which no difference from it is shown; dashed: chance, where it is "
        "known.",
        (
            MODEL,
            MEAN,
            LOW,
            HIGH,
            Field("verdict", "beside the best"),
            Field("chance", "chance", "number"),
        ),
        rows,
        (Choice("Metric", tuple(numbers)),),
        len(next(iter(numbers.values())).standings.places),
    )


def _bars(standings: Standings) -> list[Row]:
    chance = None if math.isnan(standings.chance) else standings.chance
    return [
        {
            "model": place.model,
            "mean": number(place.mean),
            "low": number(place.low),
            "high": number(place.high),
            "verdict": SAME if place.best or place.leads else LESS,
            "chance": chance,
        }
        for place in standings.places
        if not math.isnan(place.mean)
    ]


def curves(given: Given, numbers: Mapping[str, MetricNumbers]) -> Chart | None:
    """Return metrics against their cut-offs, for those with several."""
    families: dict[str, dict[int, str]] = {}
    for name in given.metrics:
        metric = given.first.known_metric(name)
        if metric.cutoff is not None:
            families.setdefault(f"{metric.variant}@k", {})[metric.cutoff] = name
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {}
    for family, of in families.items():
        if len(of) >= FEWEST_CUTOFFS:
            rows[(family,)] = tuple(
                {"k": k, "model": place.model}
                | {name: number(getattr(place, name)) for name in ("mean", "low", "high")}
                for k, metric in sorted(of.items())
                for place in numbers[metric].standings.places
            )
    if not rows:
        return None
    return Chart(
        "cutoffs",
        "curves",
        "Metric against cut-off",
        "The mean at every cut-off k; the band is its interval.",
        (Field("k", "k", "count"), MODEL, MEAN, LOW, HIGH),
        rows,
        (Choice("Metric", tuple(family for (family,) in rows)),),
        models=tuple(model.name for model in given.models),
    )


def trade_off(given: Given, numbers: Mapping[str, MetricNumbers]) -> Chart | None:
    """Return accuracy against what lies beyond it, with the Pareto front."""
    accurate = [m for m in given.metrics if given.definition(m).record != "lists"]
    beyond = [m for m in given.metrics if given.definition(m).record == "lists"]
    if not accurate or not beyond or len(given.models) < 2:
        return None
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {
        (one, other): tuple(_points(numbers[one].standings, numbers[other].standings))
        for one in accurate
        for other in beyond
    }
    return Chart(
        "tradeoff",
        "tradeoff",
        "Accuracy against the rest",
        "A model on the Pareto front (large, joined by a line) is not beaten in both metrics at "
        "once by any other model. Axes run in the metric's own direction.",
        (
            MODEL,
            Field("x", "accuracy", "number"),
            Field("y", "beyond", "number"),
            Field("front", "on the Pareto front", "flag"),
        ),
        rows,
        (Choice("Across", tuple(accurate)), Choice("Up", tuple(beyond))),
        models=tuple(model.name for model in given.models),
    )


def _points(across: Standings, up: Standings) -> list[Row]:
    points = [(place.model, place.mean, up.place(place.model).mean) for place in across.places]
    points = [point for point in points if not math.isnan(point[1] + point[2])]
    signs = [1 if one.higher_is_better else -1 for one in (across, up)]

    def beaten(point: tuple[str, float, float]) -> bool:
        mine = [sign * value for sign, value in zip(signs, point[1:], strict=True)]
        for other in points:
            theirs = [sign * value for sign, value in zip(signs, other[1:], strict=True)]
            if theirs != mine and all(t >= m for t, m in zip(theirs, mine, strict=True)):
                return True
        return False

    return [
        {"model": name, "x": number(x), "y": number(y), "front": not beaten((name, x, y))}
        for name, x, y in points
    ]


def distributions(numbers: Mapping[str, MetricNumbers], order: Sequence[str]) -> Chart | None:
    """Return how the users' values are spread, a row per model in this order."""
    place = {model: at for at, model in enumerate(order)}
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {
        (metric,): tuple(
            {**row, "line": place[row["model"]]}
            for row in sorted(one.values, key=lambda row: place[row["model"]])
        )
        for metric, one in numbers.items()
        if one.values
    }
    if not rows:
        return None
    return Chart(
        "values",
        "ridges",
        "Values of users",
        "How many users have which value: a row of bars per model, the highest bar of each row "
        "being as high as the row.",
        (MODEL, *BIN, USERS, SHARE),
        rows,
        (Choice("Metric", tuple(metric for (metric,) in rows)),),
        len(order),
    )


def differences(numbers: Mapping[str, MetricNumbers]) -> list[Chart]:
    """Return who wins and who loses: users counted, and how large their differences are."""
    metrics = tuple(metric for metric, one in numbers.items() if one.counts)
    if not metrics:
        return []
    pairs = tuple(dict.fromkeys(row["pair"] for row in numbers[metrics[0]].counts))
    pair = Field("pair", "models")
    counted = Chart(
        "winners",
        "winners",
        "Who wins, who loses",
        "The share of users who are better off, the same and worse off, per pair of models.",
        (pair, Field("who", "users who are"), USERS, SHARE),
        {(metric,): numbers[metric].counts for metric in metrics},
        (Choice("Metric", metrics),),
        len(pairs),
    )
    large = Chart(
        "differences",
        "differences",
        "Differences of users",
        "How much each user gains or loses. Users with no difference are left out: "
        '"Who wins, who loses" counts them.',
        (pair, Field("who", "users who are"), *BIN, USERS),
        {
            (metric, one): tuple(row for row in numbers[metric].differences if row["pair"] == one)
            for metric in metrics
            for one in pairs
        },
        (Choice("Metric", metrics), Choice("Models", pairs)),
    )
    return [counted, large]


def groups(given: Given, numbers: Mapping[str, MetricNumbers]) -> list[Chart]:
    """Return differences between two models in groups of users, and all models' means there."""
    known = given.groups
    metrics = tuple(metric for metric, one in numbers.items() if one.groups)
    if known is None or not metrics:
        return []
    models = tuple(model.name for model in given.models)
    pairs = tuple(name for name in numbers[metrics[0]].groups if name not in models)
    group = Field("group", known.title)
    means = Chart(
        "groups",
        "by_group",
        "Models in groups of users",
        f"The mean of each model, by {known.title}.",
        (group, MODEL, MEAN, USERS),
        {
            (metric,): tuple(row for at in _groups_at(numbers[metric], models) for row in at)
            for metric in metrics
        },
        (Choice("Metric", metrics),),
        len(known.names),
        models,
    )
    if not pairs:
        return [means]
    differences = Chart(
        "group_differences",
        "signed_bars",
        "Differences between models in groups of users",
        f"The mean difference between two models, by {known.title}.",
        (group, Field("mean", "mean difference", "signed"), USERS),
        {(metric, one): numbers[metric].groups[one] for metric in metrics for one in pairs},
        (Choice("Metric", metrics), Choice("Models", pairs)),
        len(known.names),
    )
    return [differences, means]


def _groups_at(of: MetricNumbers, models: Sequence[str]) -> list[tuple[Row, ...]]:
    """Return the rows of all models, group by group."""
    rows = [row for model in models for row in of.groups[model]]
    names = dict.fromkeys(row["group"] for row in rows)
    return [tuple(row for row in rows if row["group"] == name) for name in names]


def repeats(given: Given, order: Sequence[str]) -> Chart | None:
    """Return folds and seeds as dots."""
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {}
    for metric in given.metrics:
        found = [
            {"model": name, "run": run, "mean": number(mean)}
            for name in order
            for run, mean in _runs(given, name, metric)
        ]
        if found:
            rows[(metric,)] = tuple(found)
    if not rows:
        return None
    return Chart(
        "repeats",
        "dots",
        "Folds and seeds",
        "A dot per fold, or per seed of the training: how far chance in both moves the mean.",
        (MODEL, Field("run", "fold or seed"), MEAN),
        rows,
        (Choice("Metric", tuple(metric for (metric,) in rows)),),
        len(order),
    )


def _runs(given: Given, name: str, metric: str) -> list[tuple[str, float]]:
    model = given.model(name)
    found = []
    if len(model.runs) > 1:
        what = "batch" if model.batches else "seed"
        found = [(f"{what} {at}", run.mean()[metric]) for at, run in enumerate(model.runs, start=1)]
    for run in model.runs:
        if isinstance(run, FoldedRecord):
            found += [(f"fold {at}", fold.mean()[metric]) for at, fold in enumerate(run.folds)]
    return [one for one in found if not math.isnan(one[1])]


def number(value: float) -> float | None:
    """Return a number as JSON has it."""
    return round(float(value), 8) if np.isfinite(value) else None


Cells = tuple[Float64, Float64]  # relevant items, and those found: [n_groups, n_bands]
OF_ITEM = Field("popularity", "training users of the item")
RELEVANT = Field("items", "relevant items", "count")


def found(given: Given, pairs: Sequence[tuple[str, str]]) -> list[Chart]:
    """Return the share of relevant items that models find, and differences between two of them."""
    groups = given.groups
    models = [model for model in given.models if not model.by_chance]
    kept = [one for model in models for one in _kept(model)]
    first = kept[0]
    if groups is None or first is None:
        return []
    if any(one is None or (one.cutoff, one.ranges) != (first.cutoff, first.ranges) for one in kept):
        return []
    cells = _cells_of(given, models, groups)
    relevant = next(iter(cells.values()))[0]
    shares = {
        name: np.divide(items, of, out=np.full_like(items, np.nan), where=of > 0)
        for name, (of, items) in cells.items()
    }
    differences = {
        pair_name(one, other): shares[one] - shares[other]
        for one, other in pairs
        if one in shares and other in shares
    }
    bands = [f"{low:,} to {high:,}" if low < high else f"{low:,}" for low, high in first.ranges]
    how = (
        f"of the relevant items in test that are among a model's first {first.cutoff:,}: by the "
        "user's group and by how popular the item is. Each column has the items of about a fifth "
        "of the rows of train, the most popular ones first."
    )

    def chart(name: str, kind: str, title: str, text: str, of: dict[str, Float64]) -> Chart:
        share = Field("share", "difference" if kind == "heat_signed" else "share found", "share")
        return Chart(
            name,
            kind,
            title,
            f"{text} {how}",
            (OF_ITEM, Field("group", groups.title), share, RELEVANT),
            {(one,): tuple(_rows(of[one], relevant, groups.names, bands)) for one in of},
            (Choice("Model" if kind == "heat" else "Models", tuple(of)),),
            int(np.count_nonzero(relevant.any(axis=1))),
        )

    title, more = "Relevant items found, by user and by popularity", "Who finds more of them"
    charts = [chart("found", "heat", title, "The share", shares)]
    if differences:
        text = "The difference between two models in the share"
        charts.insert(0, chart("found_differences", "heat_signed", more, text, differences))
    return charts


def _cells_of(given: Given, models: Sequence[Model], groups: Groups) -> dict[str, Cells]:
    """Return the items of each model, over the users that all of them have a value for."""
    metric = next(one for one in given.metrics if given.definition(one).record != "lists")
    defined = [~np.isnan(given.users.values(model, metric)) for model in models]
    counted = np.logical_and.reduce(defined) & (groups.codes != LEFT_OUT)
    return {model.name: _cells(given, model, groups, counted) for model in models}


def _kept(model: Model) -> list[FoundByPopularity | None]:
    return [run.by_popularity for run in model.runs]


def _cells(given: Given, model: Model, groups: Groups, counted: Bool) -> Cells:
    """Return how many items were relevant and found, the mean over seeds."""
    codes, n_groups = groups.codes[counted], len(groups.names)
    sums = []
    for name in ("relevant", "found"):
        # There is a column per run and band; batches have users of their own.
        columns = zip(*(getattr(one, name).T for one in _kept(model)), strict=True)
        band_sums = [
            np.bincount(
                codes,
                weights=np.sum(given.users.spread(model, of_runs, 0), axis=0)[counted],
                minlength=n_groups,
            )
            for of_runs in columns
        ]
        sums.append(np.column_stack(band_sums) / model.n_seeds)
    return sums[0], sums[1]


def _rows(
    values: Float64, relevant: Float64, groups: Sequence[str], bands: Sequence[str]
) -> list[Row]:
    return [
        {
            "group": groups[group],
            "popularity": bands[band],
            "share": round(float(values[group, band]), 6),
            "items": round(float(relevant[group, band])),
        }
        for group in range(len(groups))
        for band in range(len(bands))
        if relevant[group, band]
    ]
