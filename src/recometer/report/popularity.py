"""How popular the items are that models recommend, beside those of train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.report.given import Given
from recometer.report.lists import Known
from recometer.report.model import Chart, Field, Row

N_POINTS = 60  # of a curve
MOST_USERS = 20_000  # whose lists are asked for
TRAIN = "training data"


def popularity(
    given: Given, known: Mapping[str, Known], order: Sequence[str], k: int
) -> Chart | None:
    """Return, for each model, the share of what it recommends that the most popular items take."""
    train = next((one.train for one in known.values() if one.train is not None), None)
    if train is None or not len(train):
        return None
    counts = np.bincount(train.items, minlength=train.n_items)
    by_rank = np.argsort(-counts, kind="stable")
    curves = {TRAIN: counts[by_rank].astype(np.float64)}
    n_items = train.n_items
    for name in order:
        listed = _listed(given, name, known.get(name), k)
        if listed is None:
            continue
        codes, n_unknown = _in_train(*listed, train)
        # Items that train lacks are the least popular ones.
        own = np.bincount(codes[codes >= 0], minlength=train.n_items)[by_rank]
        unknown = np.full(n_unknown, np.count_nonzero(codes < 0) / max(n_unknown, 1))
        curves[name] = np.concatenate([own, unknown])
        n_items = max(n_items, len(curves[name]))
    if len(curves) == 1:
        return None
    rows = tuple(row for name, curve in curves.items() for row in _points(name, curve, n_items))
    return Chart(
        "popularity",
        "popularity",
        "Popularity of what is recommended",
        f"Items from the most to the least popular in train, and the share of all first {k} places "
        "that go to them. A curve above that of the training data recommends popular items more "
        "than users chose them; a straight line would recommend all items alike.",
        (
            Field("model", "model"),
            Field("items", "most popular items", "share"),
            Field("share", "share of recommendations", "share"),
        ),
        {(): rows},
        models=(*order, TRAIN),
    )


def _listed(
    given: Given, name: str, known: Known | None, k: int
) -> tuple[Int64, Array | None] | None:
    """Return the items of a model's lists, one after the other, and the ids of their numbers."""
    lists = given.model(name).first.lists
    if lists is None or lists.depth < k:
        if known is None:
            return None if lists is None else (lists.items[lists.items >= 0], lists.item_ids)
        test = known.test
        if test.user_ids is not None and test.n_users > MOST_USERS and not known.own:
            drawn = np.random.default_rng(0).choice(test.n_users, MOST_USERS, replace=False)
            test = test.select_users(np.sort(drawn))
        lists = known.top(test, k)
    items = lists.items[:, :k]
    return items[items >= 0], lists.item_ids


def _in_train(items: Int64, item_ids: Array | None, train: Interactions) -> tuple[Int64, int]:
    """Return the items' numbers in train, -1 for those that it lacks, and how many these are."""
    if item_ids is None or train.item_ids is None:
        codes = np.where(items < train.n_items, items, -1)
    else:
        places = ids.match(item_ids, train.item_ids, "item ids of lists", "item ids of train")
        codes = places[items]
    return codes, len(np.unique(items[codes < 0]))


def _points(name: str, curve: Float64, n_items: int) -> list[Row]:
    total = curve.sum()
    if not total:
        return []
    shares = np.concatenate([[0.0], np.cumsum(curve) / total])
    # More points where the most popular items are.
    at = np.unique((n_items * np.linspace(0, 1, N_POINTS) ** 2).round().astype(np.int64))
    values = shares[np.minimum(at, len(shares) - 1)]
    return [
        {"model": name, "items": round(item / n_items, 5), "share": round(share, 5)}
        for item, share in zip(at.tolist(), values.tolist(), strict=True)
    ]
