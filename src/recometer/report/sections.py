"""Make the charts of a report, with their numbers and their text.

A new chart needs a function with the decorator `in_section`. Unless it is drawn like another chart,
it also needs a function with the decorator `charts.drawing`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.comparing.rows import PairRow, Standing, pair_name
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.metrics.names import without_group
from recometer.report.headline import row_of
from recometer.report.inputs import Inputs
from recometer.report.lists import ListSource
from recometer.report.model import SAME, Chart, Field, Row, Standings
from recometer.report.numbers import MetricNumbers
from recometer.results.folds import FoldedRecord

MODEL = Field("model", "model")
MEAN = Field("mean", "mean", "number")
LOW, HIGH = Field("low", "low end", "number"), Field("high", "high end", "number")
USERS = Field("users", "users", "count")
SHARE = Field("share", "share", "share")
BIN = (Field("from", "from", "number"), Field("to", "to", "number"))
FEWEST_CUTOFFS = 3  # metrics with fewer cut-offs have no curve
LESS = "worse than the best"

N_POINTS = 60  # the number of points in a popularity curve
MOST_USERS = 20_000  # the popularity curve is based on at most this many users' lists
TRAIN = "training data"


@dataclasses.dataclass(frozen=True, eq=False)
class Content:
    """The models, best first, and the numbers for the charts."""

    inputs: Inputs
    numbers: Mapping[str, MetricNumbers]  # the numbers for each metric, keyed by its name
    pairs: Sequence[tuple[str, str]]  # the pairs of models compared in difference charts
    sources: Mapping[str, ListSource]  # the sources of the models' lists, keyed by model
    depth: int  # the number of places to show in each list

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the models, best first."""
        return tuple(model.name for model in self.inputs.models)


Maker = Callable[[Content], Iterable[Chart]]
MAKERS: list[tuple[str, Maker]] = []
"""The page's sections with charts, in order, and the functions that make the charts."""


def in_section(section: Literal["leaderboard", "users", "groups"]) -> Callable[[Maker], Maker]:
    """Return a decorator that registers a function for making a section's charts."""

    def register(make: Maker) -> Maker:
        MAKERS.append((section, make))
        return make

    return register


def charts_of(content: Content) -> tuple[Chart, ...]:
    """Return all charts that can be made from the content."""
    return tuple(
        dataclasses.replace(chart, section=section)
        for section, make in MAKERS
        for chart in make(content)
    )


@in_section("leaderboard")
def leaderboard(content: Content) -> Iterable[Chart]:
    """Yield the chart that `means` makes."""
    standings = [numbers.standings for numbers in content.numbers.values()]
    yield means(standings, content.inputs.options.confidence)


def means(standings: Sequence[Standings], confidence: float) -> Chart:
    """Return a chart of means and their intervals, with a row for each model."""
    return Chart(
        "leaderboard",
        "leaderboard",
        "Means and intervals",
        f"Point: mean over users; line: its {confidence:.0%} interval. Filled points are the best "
        "model and those without a shown difference from it; the dashed line, if there is one, is "
        "chance.",
        (
            MODEL,
            MEAN,
            LOW,
            HIGH,
            Field("verdict", "compared with the best"),
            Field("chance", "chance", "number"),
        ),
        {(ranking.metric,): tuple(_bars(ranking)) for ranking in standings},
        ("Metric",),
        len(standings[0].places),
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


@in_section("leaderboard")
def curves(content: Content) -> Iterable[Chart]:
    """Yield a chart of metrics' means at each cut-off, if there are enough cut-offs."""
    inputs, numbers = content.inputs, content.numbers
    families: dict[str, dict[int, str]] = {}
    for name in inputs.metrics:
        metric = inputs.first.known_metric(name)
        if metric.cutoff is not None:
            families.setdefault(f"{metric.variant}@k", {})[metric.cutoff] = name
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {}
    for family, by_cutoff in families.items():
        if len(by_cutoff) >= FEWEST_CUTOFFS:
            rows[(family,)] = tuple(
                {"k": k, "model": place.model}
                | {name: number(getattr(place, name)) for name in ("mean", "low", "high")}
                for k, metric in sorted(by_cutoff.items())
                for place in numbers[metric].standings.places
            )
    if rows:
        yield Chart(
            "cutoffs",
            "curves",
            "Metric against cut-off",
            "The mean at every cut-off k; the band is its interval.",
            (Field("k", "k", "count"), MODEL, MEAN, LOW, HIGH),
            rows,
            ("Metric",),
            models=tuple(model.name for model in inputs.models),
        )


@in_section("leaderboard")
def trade_off(content: Content) -> Iterable[Chart]:
    """Yield a chart of accuracy against beyond-accuracy metrics, with the Pareto front."""
    inputs, numbers = content.inputs, content.numbers
    accurate = [m for m in inputs.metrics if inputs.definition(m).record != "lists"]
    beyond = [m for m in inputs.metrics if inputs.definition(m).record == "lists"]
    if not accurate or not beyond or len(inputs.models) < 2:
        return
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {
        (metric, other): tuple(_points(numbers[metric].standings, numbers[other].standings))
        for metric in accurate
        for other in beyond
    }
    yield Chart(
        "tradeoff",
        "tradeoff",
        "Accuracy versus other qualities",
        "A model on the Pareto front (large, joined by a line) is not beaten in both metrics "
        "at once by any other model. Each axis runs in its metric's own direction.",
        (
            MODEL,
            Field("x", "accuracy", "number"),
            Field("y", "beyond", "number"),
            Field("front", "on the Pareto front", "flag"),
        ),
        rows,
        ("Across", "Up"),
        models=tuple(model.name for model in inputs.models),
    )


def _points(across: Standings, up: Standings) -> list[Row]:
    points = [(place.model, place.mean, up.place(place.model).mean) for place in across.places]
    points = [point for point in points if not math.isnan(point[1] + point[2])]
    signs = [1 if standings.higher_is_better else -1 for standings in (across, up)]

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


@in_section("leaderboard")
def repeats(content: Content) -> Iterable[Chart]:
    """Yield a chart with a dot for each fold or seed of each model."""
    inputs, order = content.inputs, content.order
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {}
    for metric in inputs.metrics:
        dots = [
            {"model": name, "run": run, "mean": number(mean)}
            for name in order
            for run, mean in _runs(inputs, name, metric)
        ]
        if dots:
            rows[(metric,)] = tuple(dots)
    if rows:
        yield Chart(
            "repeats",
            "dots",
            "Folds and seeds",
            "One dot per fold or training seed. The spread shows how far chance moves the mean.",
            (MODEL, Field("run", "fold or seed"), MEAN),
            rows,
            ("Metric",),
            len(order),
        )


@in_section("users")
def differences(content: Content) -> Iterable[Chart]:
    """Yield charts of how many users are better or worse off, and of each user's difference."""
    numbers = content.numbers
    metrics = tuple(metric for metric, result in numbers.items() if result.counts)
    if not metrics:
        return
    pairs = tuple(dict.fromkeys(row["pair"] for row in numbers[metrics[0]].counts))
    pair = Field("pair", "models")
    yield Chart(
        "winners",
        "winners",
        "Who wins, who loses",
        "The share of users who are better off, the same and worse off, per pair of models.",
        (pair, Field("who", "users who are"), USERS, SHARE),
        {(metric,): numbers[metric].counts for metric in metrics},
        ("Metric",),
        len(pairs),
    )
    yield Chart(
        "differences",
        "differences",
        "Differences per user",
        "How much each user gains or loses. Users with no difference are left out: "
        '"Who wins, who loses" counts them.',
        (pair, Field("who", "users who are"), *BIN, USERS),
        {
            (metric, name): tuple(row for row in numbers[metric].differences if row["pair"] == name)
            for metric in metrics
            for name in pairs
        },
        ("Metric", "Models"),
    )


@in_section("users")
def distributions(content: Content) -> Iterable[Chart]:
    """Yield a chart of the distribution of the users' values, with a row per model, best first."""
    numbers, order = content.numbers, content.order
    place = {model: index for index, model in enumerate(order)}
    rows: dict[tuple[str, ...], tuple[Row, ...]] = {
        (metric,): tuple(
            {**row, "line": place[row["model"]]}
            for row in sorted(result.values, key=lambda row: place[row["model"]])
        )
        for metric, result in numbers.items()
        if result.values
    }
    if rows:
        yield Chart(
            "values",
            "ridges",
            "Values per user",
            "The number of users per value, with one row of bars per model. The highest bar of "
            "each row fills its height.",
            (MODEL, *BIN, USERS, SHARE),
            rows,
            ("Metric",),
            len(order),
        )


@in_section("groups")
def groups(content: Content) -> Iterable[Chart]:
    """Yield charts of the models' differences and means by user group."""
    inputs, numbers = content.inputs, content.numbers
    grouping = inputs.groups
    metrics = tuple(metric for metric, result in numbers.items() if result.groups)
    if grouping is None or not metrics:
        return
    models = tuple(model.name for model in inputs.models)
    pairs = tuple(name for name in numbers[metrics[0]].groups if name not in models)
    group = Field("group", grouping.title)
    if pairs:
        yield Chart(
            "group_differences",
            "signed_bars",
            "Differences between models in groups of users",
            f"The mean difference between two models, by {grouping.title}.",
            (group, Field("mean", "mean difference", "signed"), USERS),
            {(metric, name): numbers[metric].groups[name] for metric in metrics for name in pairs},
            ("Metric", "Models"),
            len(grouping.names),
        )
    yield Chart(
        "groups",
        "by_group",
        "Models in groups of users",
        f"The mean of each model, by {grouping.title}.",
        (group, MODEL, MEAN, USERS),
        {(metric,): _rows_by_group(numbers[metric], models) for metric in metrics},
        ("Metric",),
        len(grouping.names),
        models,
    )


@in_section("groups")
def item_groups(content: Content) -> Iterable[Chart]:
    """Yield a chart of differences, or of a single model's means, by item group."""
    inputs, pairs = content.inputs, content.pairs
    rows: dict[tuple[str, ...], list[Row]] = {}
    for name in inputs.metrics:
        metric, group = without_group(name)[0], inputs.first.known_metric(name).group
        if not group:
            continue
        for pair in pairs:
            row = row_of(inputs, name, pair)
            cells = _group_row(group, row.difference, row) | {"verdict": row.verdict}
            rows.setdefault((metric, pair_name(*pair)), []).append(cells)
        if not pairs:
            (place,) = content.numbers[name].standings.places
            rows.setdefault((metric,), []).append(_group_row(group, place.mean, place))
    if not rows:
        return
    text, mean, verdict = "Point: the mean", [MEAN, LOW, HIGH], []
    if pairs:
        text = "Point: the mean difference between two models, filled if a difference is shown,"
        mean = [field._replace(kind="signed") for field in mean]
        verdict = [Field("verdict", "verdict")]
    options = [tuple(dict.fromkeys(values)) for values in zip(*rows, strict=True)]
    yield Chart(
        "item_groups",
        "item_groups",
        "Groups of items",
        f"{text} on a metric restricted to the items of a group; line: its "
        f"{inputs.options.confidence:.0%} interval.",
        (Field("group", "group of items"), *mean, *verdict, USERS),
        {
            key: tuple(row for row in rows.get(key, ()) if row["mean"] is not None)
            for key in itertools.product(*options)
        },
        ("Metric", "Models")[: len(options)],
        max(map(len, rows.values())),
    )


def _group_row(group: str, mean: float, row: PairRow | Standing) -> dict[str, Any]:
    ends = {"low": number(row.low), "high": number(row.high)}
    return {"group": group, "mean": number(mean), **ends, "users": row.n}


def _rows_by_group(numbers: MetricNumbers, models: Sequence[str]) -> tuple[Row, ...]:
    rows = [row for model in models for row in numbers.groups[model]]
    names = list(dict.fromkeys(row["group"] for row in rows))
    return tuple(sorted(rows, key=lambda row: names.index(row["group"])))


def _runs(inputs: Inputs, name: str, metric: str) -> list[tuple[str, float]]:
    model = inputs.model(name)
    runs = []
    if len(model.runs) > 1:
        runs = [(f"seed {n}", run.mean()[metric]) for n, run in enumerate(model.runs, start=1)]
    for run in model.runs:
        if isinstance(run, FoldedRecord):
            runs += [(f"fold {index}", fold.mean()[metric]) for index, fold in enumerate(run.folds)]
    return [(label, mean) for label, mean in runs if not math.isnan(mean)]


def number(value: float) -> float | None:
    """Return a number for JSON, or None if it is not finite."""
    return round(float(value), 8) if np.isfinite(value) else None


@in_section("groups")
def popularity(content: Content) -> Iterable[Chart]:
    """Yield a chart of the share of popular items in each model's recommendations."""
    inputs, sources, order, k = content.inputs, content.sources, content.order, content.depth
    train = next((source.train for source in sources.values() if source.train is not None), None)
    if train is None or not len(train):
        return
    counts = np.bincount(train.items, minlength=train.n_items)
    by_rank = np.argsort(-counts, kind="stable")
    curves = {TRAIN: counts[by_rank].astype(np.float64)}
    n_items = train.n_items
    for name in order:
        listed = _listed_items(inputs, name, sources.get(name), k)
        if listed is None:
            continue
        codes, n_unknown = _in_train(*listed, train)
        # Items that are not in the training data count as the least popular.
        listings = np.bincount(codes[codes >= 0], minlength=train.n_items)[by_rank]
        unknown = np.full(n_unknown, np.count_nonzero(codes < 0) / max(n_unknown, 1))
        curves[name] = np.concatenate([listings, unknown])
        n_items = max(n_items, len(curves[name]))
    if len(curves) == 1:
        return
    rows = tuple(
        row for name, curve in curves.items() for row in _curve_points(name, curve, n_items)
    )
    yield Chart(
        "popularity",
        "popularity",
        "Popularity of what is recommended",
        "Items from the most to the least popular in the training data, and the share of all "
        f"first {k} places that go to them. A curve above that of the training data recommends "
        "popular items more than users chose them; a straight line recommends all items equally "
        "often.",
        (
            Field("model", "model"),
            Field("items", "most popular items", "share"),
            Field("share", "share of recommendations", "share"),
        ),
        {(): rows},
        models=(*order, TRAIN),
    )


def _listed_items(
    inputs: Inputs, name: str, source: ListSource | None, k: int
) -> tuple[Int64, Array | None] | None:
    """Return the positions of all items that a model lists, repeats included, and the item ids."""
    lists = inputs.model(name).first.lists
    if lists is None or lists.depth < k:
        if source is None:
            return None if lists is None else (lists.items[lists.items >= 0], lists.item_ids)
        test = source.test
        if test.user_ids is not None and test.n_users > MOST_USERS and not source.has_labels:
            drawn = np.random.default_rng(0).choice(test.n_users, MOST_USERS, replace=False)
            test = test.select_users(np.sort(drawn))
        lists = source.top(test, k)
    items = lists.items[:, :k]
    return items[items >= 0], lists.item_ids


def _in_train(items: Int64, item_ids: Array | None, train: Interactions) -> tuple[Int64, int]:
    """Return the items' positions in the training data (or -1), and the number of missing items."""
    if item_ids is None or train.item_ids is None:
        codes = np.where(items < train.n_items, items, -1)
    else:
        places = ids.match(item_ids, train.item_ids, "item ids of lists", "item ids of train")
        codes = places[items]
    return codes, len(np.unique(items[codes < 0]))


def _curve_points(name: str, curve: Float64, n_items: int) -> list[Row]:
    total = curve.sum()
    if not total:
        return []
    shares = np.concatenate([[0.0], np.cumsum(curve) / total])
    # Points are denser among the most popular items.
    points = np.unique((n_items * np.linspace(0, 1, N_POINTS) ** 2).round().astype(np.int64))
    values = shares[np.minimum(points, len(shares) - 1)]
    return [
        {"model": name, "items": round(item / n_items, 5), "share": round(share, 5)}
        for item, share in zip(points.tolist(), values.tolist(), strict=True)
    ]
