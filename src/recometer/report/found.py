"""Which relevant items models find: by groups of users, and by the popularity of the item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recometer.arrays import Bool, Float64
from recometer.comparing.models import Model
from recometer.comparing.rows import pair_name
from recometer.report.given import LEFT_OUT, Given, Groups
from recometer.report.model import Chart, Choice, Field, Row
from recometer.results.profiles import FoundByPopularity

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
