"""The inspector, which shows the lists of single users with the models side by side."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import stats
from recometer.arrays import Float64, Int64
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions
from recometer.data.numbers import flag
from recometer.errors import InputError, UnknownNameError
from recometer.report.inputs import Inputs
from recometer.report.lists import ListSource, named, places_of
from recometer.report.model import Entry, InspectedUser, Inspector, UserLists

MOST_HISTORY = 50  # maximum number of training items shown per user
MOST_MISSED = 30
FEW_USERS = 40  # if there are at most this many users, all are shown

Kinds = dict[int, list[str]]


def inspector(
    given: Inputs,
    known: Mapping[str, ListSource],
    order: Sequence[str],
    pair: tuple[str, str] | None,
    *,
    chosen: object = (),
    n: int = 10,
    depth: int = 10,
    item_to_item: bool = False,
    seed: int = 0,
) -> Inspector | None:
    """Return the lists of the most improved, the most harmed, random and chosen users.

    Raises
    ------
    InputError
        If `n` or `depth` is not a whole number of at least 1.
    UnknownNameError
        If a chosen user does not exist.
    """
    for name, value in (("n_users", n), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise InputError(f"{name}={value!r} must be a whole number, at least 1.")
    who = "item" if flag("item_to_item", item_to_item) else "user"
    kinds, change = _choose(given, pair, chosen, n, seed)
    models = tuple(name for name in order if name in known)
    if not models:
        return None
    everyone = np.arange(given.users.n) if given.users.ids is None else given.users.ids
    positions = np.array(sorted(kinds), np.int64)
    found = {name: places_of(known[name], everyone[positions], depth) for name in models}
    metrics = tuple(metric for metric in given.metrics if not given.is_whole(metric))
    values = {
        metric: {model.name: given.users.values(model, metric)[positions] for model in given.models}
        for metric in metrics
    }
    items = _Items([known[name].catalogue for name in models])
    users = []
    for number, position in enumerate(positions.tolist()):
        of = {name: _lists(found[name][number], items) for name in models if number in found[name]}
        user = given.users.id(position)
        users.append(
            InspectedUser(
                id=str(user),
                title=items.title(user) if item_to_item else "",
                kinds=tuple(kinds[position]),
                change=float(change[position]) if change is not None else math.nan,
                values={
                    name: {metric: float(values[metric][name][number]) for metric in metrics}
                    for name in order
                },
                **_history(known[models[0]], everyone[position : position + 1], items),
                n_relevant=_n_relevant(given, position),
                lists=of,
            )
        )
    users.sort(key=lambda user: _first(user.kinds, user.change))
    missing = [name for name in order if name not in models]
    note = f"The lists of {', '.join(missing)} are not known." if missing else ""
    return Inspector(who, models, metrics, depth, tuple(users), items.texts, given.users.n, note)


ORDER = ("chosen", "most harmed", "most improved", "random")


def _first(kinds: Sequence[str], change: float) -> tuple[int, float]:
    place = min(ORDER.index(kind) for kind in kinds)
    return place, -abs(change) if not math.isnan(change) and place in (1, 2) else 0.0


def _choose(
    given: Inputs, pair: tuple[str, str] | None, chosen: object, n: int, seed: int
) -> tuple[Kinds, Float64 | None]:
    """Return the positions of users to show with the reasons, and the changes of all users."""
    kinds: Kinds = {}

    def add(positions: Iterable[int], kind: str) -> None:
        for position in positions:
            kinds.setdefault(position, []).append(kind)

    add(_positions(given, chosen), "chosen")
    metric = next((one for one in given.metrics if not given.is_whole(one)), None)
    change: Float64 | None = None
    some: Int64 = np.arange(given.users.n)
    if metric is not None:
        columns = [given.users.values(given.model(name), metric) for name in pair or ()]
        if columns:
            sign = 1 if given.definition(metric).higher_is_better else -1
            change = sign * (columns[0] - columns[1])
            lowest, highest = stats.most_changed(change, n)
            add(lowest.tolist(), "most harmed")
            add(highest.tolist(), "most improved")
        defined = ~np.isnan(given.users.values(given.models[0], metric))
        some = np.flatnonzero(defined)
    # Do not draw users who were already chosen.
    some = np.setdiff1d(some, list(kinds))
    if len(some) <= max(FEW_USERS, 2 * n):
        drawn = some
    else:
        drawn = np.sort(np.random.default_rng(seed).choice(some, 2 * n, replace=False))
    add(drawn.tolist(), "random")
    return kinds, change


def _positions(given: Inputs, chosen: Any) -> list[int]:
    """Return the positions of chosen users; the ids may also be strings."""
    if isinstance(chosen, str | bytes | int) or not isinstance(chosen, Iterable):
        chosen = [chosen]
    wanted = list(chosen)
    if not wanted:
        return []
    users = given.users
    if users.ids is None:
        known = {str(position): position for position in range(users.n)}
    else:
        texts = {str(one) for one in wanted}
        known = {str(one): at for at, one in enumerate(users.ids.tolist()) if str(one) in texts}
    missing = [one for one in wanted if str(one) not in known]
    if missing:
        example = users.show(0)
        raise UnknownNameError(
            f"There is no user {missing[0]!r} to show. Hint: users are called like {example}."
        )
    return list(dict.fromkeys(known[str(one)] for one in wanted))


def _n_relevant(given: Inputs, position: int) -> int:
    """Return the number of relevant items of a user, from any evaluation that has the user."""
    each = [
        column[position]
        for model in given.models
        for column in given.users.spread(model, [run.n_relevant for run in model.runs], -1)
    ]
    return max(int(max(each)), 0)


def _lists(found: UserLists, items: _Items) -> UserLists:
    """Return lists in which items are numbers, and at most `MOST_MISSED` missed items."""

    def numbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(one._replace(item=items.number(one.item)) for one in entries)

    return UserLists(numbered(found.entries), numbered(found.missed[:MOST_MISSED]))


def _history(known: ListSource, user: Any, items: _Items) -> dict[str, Any]:
    train = known.train
    if train is None:
        return {"history": (), "n_history": 0}
    rows = _rows_of(train, user)
    if train.times is not None:
        rows = rows[np.argsort(-train.times[rows], kind="stable")]
    shown = [named(train.item_ids, item) for item in train.items[rows[:MOST_HISTORY]].tolist()]
    return {"history": tuple(map(items.number, shown)), "n_history": len(rows)}


def _rows_of(train: Interactions, user: Any) -> Int64:
    if train.user_ids is None:
        position = int(user[0])
    else:
        found = ids.match(user, train.user_ids, "user ids of the report", "user ids of train")
        position = int(found[0])
    if not 0 <= position < train.n_users:
        return np.zeros(0, np.int64)
    return np.arange(train.indptr[position], train.indptr[position + 1])


class _Items:
    """Items with their titles, numbered in the order of first use."""

    def __init__(self, catalogues: Sequence[Catalogue | None]) -> None:
        self.texts: dict[int, tuple[str, str]] = {}
        self._numbers: dict[Any, int] = {}
        self._catalogue = next(
            (one for one in catalogues if one is not None and one.titles is not None), None
        )

    def number(self, item: Any) -> int:
        """Return the number of an item."""
        if item not in self._numbers:
            self._numbers[item] = len(self._numbers)
            self.texts[self._numbers[item]] = (str(item), self.title(item))
        return self._numbers[item]

    def title(self, item: Any) -> str:
        """Return the title of an item, or an empty string."""
        catalogue = self._catalogue
        if catalogue is None or catalogue.titles is None:
            return ""
        position = item
        if catalogue.item_ids is not None:
            place = int(np.searchsorted(catalogue.item_ids, item))
            same = place < len(catalogue.item_ids) and catalogue.item_ids[place] == item
            position = place if same else -1
        if not isinstance(position, int) or not 0 <= position < len(catalogue.titles):
            return ""
        title = catalogue.titles[position]
        return "" if title is None or title != title else str(title)
