"""Load the models' lists, and show individual users' lists with the models side by side."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import ragged, stats
from recometer.arrays import Array, Float64, Int64
from recometer.comparing.models import Model
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.matching import relevant_rows
from recometer.data.numbers import flag
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    python_or_command,
)
from recometer.evaluating.arguments import settled, test_of
from recometer.evaluating.sides import as_counted
from recometer.protocol import Protocol
from recometer.ranks import Ranks, TopLists
from recometer.report.inputs import Inputs
from recometer.report.model import Entry, InspectedUser, Inspector, UserLists
from recometer.sources.base import Request, Source
from recometer.sources.candidates import read_candidates, read_items
from recometer.stats.checks import check_whole

LOWEST = -1e300  # lower than any score


@dataclasses.dataclass(frozen=True, eq=False)
class ListSource:
    """A source of a model's lists, and the data for requests to it."""

    source: Source
    test: Interactions
    train: Interactions | None
    catalogue: Catalogue | None
    candidates: Any
    exclude: Any
    protocol: Protocol
    seed: int
    threads: int
    own: bool  # whether the source itself contains the labels

    def top(self, test: Interactions, k: int) -> TopLists:
        """Return the first k places of the lists for the users of `test`."""
        return self.source.top(self.request(test), k)

    def request(self, test: Interactions, *, scores: bool = False) -> Request:
        """Return a request for the users of `test`."""
        rules = settled(self.source, self.protocol, trained=self.train is not None)
        if scores:
            rules = dataclasses.replace(rules, score_above=LOWEST)
        catalogue: int | Array | None = None
        if self.catalogue is not None:
            numbers = self.catalogue.item_ids
            catalogue = self.catalogue.n_items if numbers is None else numbers
        chosen = self.candidates
        exclude = None if self.exclude is None else read_items(self.exclude, "exclude")
        return Request(
            test,
            self.train,
            rules,
            catalogue,
            None,
            self.threads,
            False,
            None if chosen is None else read_candidates(chosen, test),
            exclude,
            self.seed,
        )

    def of_users(self, positions: Int64) -> Interactions:
        """Return only the test interactions of the users at the given positions."""
        if self.own:
            return self.test
        if self.test.user_ids is not None:
            return self.test.select_users(np.unique(positions))
        # Without ids, users are identified by their positions, which must not change.
        chosen = np.zeros(self.test.n_users, bool)
        chosen[positions] = True
        lengths = np.where(chosen, np.diff(self.test.indptr), 0)
        return self.test.with_rows(
            ragged.indptr_of(lengths), np.repeat(chosen, np.diff(self.test.indptr))
        )


def list_sources(given: Inputs, lists: object, data: Mapping[str, Any]) -> dict[str, ListSource]:
    """Return the sources of lists, keyed by model: those that were passed or kept in results.

    Raises
    ------
    InputError
        If the test data for a source are not known.
    UnknownNameError
        If `lists` names a model that does not exist.
    InputTypeError
        If `lists` is not a mapping from names to sources.
    """
    sources = {} if lists is None else lists
    if not isinstance(sources, Mapping):
        raise InputTypeError(
            f"lists= is of type {type(lists).__name__}, expected a mapping from model names to "
            f"sources. Hint: lists={{'als': source}}."
        )
    names = [model.name for model in given.models]
    for name, source in sources.items():
        if name not in names:
            raise UnknownNameError(
                f"lists= contains {name!r}, which is not a model. {did_you_mean(name, names)}"
            )
        if not isinstance(source, Source):
            raise InputTypeError(
                f"lists= contains {type(source).__name__} for {name!r}, expected a source, such as "
                "rm.Lists(frame) or rm.Factors(users, items)."
            )
    kept = {model.name: _kept(model, data) for model in given.models}
    # A result that kept no test data uses the data that another result kept.
    other = next((one for one in kept.values() if one.get("test") is not None), {})
    found = {}
    for model in given.models:
        inputs = {**other, "source": None, **kept[model.name]}
        source = sources.get(model.name) or inputs["source"]
        if source is not None:
            found[model.name] = _known(model, source, inputs, given.options.threads)
    return found


def _kept(model: Model, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that a model's evaluation kept, overridden by the report's own inputs."""
    kept = dict(model.first.inputs_kept or {})
    return kept | {name: value for name, value in data.items() if value is not None}


def _known(model: Model, source: Source, inputs: Mapping[str, Any], threads: int) -> ListSource:
    own = source.facts.truth is not None
    test, train, catalogue = (inputs.get(name) for name in ("test", "train", "catalogue"))
    if test is None and not own:
        raise InputError(
            f"Showing the lists of {model.name!r} requires test, which is not available: the "
            "result was loaded from a file, or is large. Hint: "
            f"{python_or_command('test=...', '--test FILE')}, and "
            f"{python_or_command('train=...', '--train FILE')} if there was one."
        )
    return ListSource(
        source,
        test_of(source, None if own else test),
        None if train is None else read_interactions(train, "train", warns=False),
        catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        inputs.get("candidates"),
        inputs.get("exclude"),
        model.first.protocol,
        model.first.seed,
        threads,
        own,
    )


def places_of(known: ListSource, users: Array | Int64, k: int) -> dict[int, UserLists]:
    """Return the first k places of the users' lists, and the relevant items missing from them.

    `users` contains ids, or positions if there are no ids. The keys of the result are indices into
    `users`; users who are not in the test data are left out.
    """
    positions = _positions(known.test, users)
    there = np.flatnonzero(positions >= 0)
    if not len(there):
        return {}
    test = known.of_users(positions[there])
    tops = known.top(test, k)
    rows = _positions(test, np.asarray(users)[there])
    judged = test if known.own else _with_listed(test, tops, rows)
    ranks = known.source.rank(known.request(judged, scores=True))
    relevant = _relevant(known, test)
    return {
        int(number): _places_of_user(known, tops, ranks, int(row), relevant, k)
        for number, row in zip(there, rows, strict=True)
    }


def _positions(data: Interactions, users: Array, name: str = "test") -> Int64:
    """Return the positions of users in the test or training data, or -1 for unknown users."""
    if data.user_ids is None:
        positions = np.asarray(users, np.int64)
        return np.where(positions < data.n_users, positions, -1)
    what = "user ids of the report", f"user ids of {name}"
    return ids.match(np.asarray(users), data.user_ids, *what)


def _with_listed(test: Interactions, tops: TopLists, rows: Int64) -> Interactions:
    """Return the test data with added rows for all items listed for the users in `rows`."""
    listed = np.zeros(tops.items.shape, bool)
    listed[rows] = tops.items[rows] >= 0
    users = np.concatenate([ragged.users_of(test.indptr), np.nonzero(listed)[0]])
    if test.item_ids is None or tops.item_ids is None:
        items = np.concatenate([test.items.astype(np.int64), tops.items[listed]])
        n_items, item_ids = max(test.n_items, tops.n_items), None
    else:
        both = np.concatenate([test.item_ids, tops.item_ids])
        codes, item_ids = ids.encode(both, "item ids")
        items = np.concatenate(
            [codes[: test.n_items][test.items], codes[test.n_items :][tops.items[listed]]]
        )
        n_items = len(item_ids)
    keys = np.unique(users * n_items + items)
    users, items = keys // n_items, keys % n_items
    return Interactions(
        indptr=ragged.indptr_of(np.bincount(users, minlength=test.n_users)),
        items=items.astype(np.int32),
        n_items=n_items,
        user_ids=test.user_ids,
        item_ids=item_ids,
    )


def _relevant(known: ListSource, test: Interactions) -> dict[int, set[Any]]:
    """Return the relevant items of each user, or an empty dict if the ranks contain the labels."""
    if known.own:
        return {}
    test = as_counted(test, (), known.protocol)
    chosen = relevant_rows(test, known.protocol.relevant_from)
    found: dict[int, set[Any]] = {}
    for row, item in zip(
        ragged.users_of(test.indptr)[chosen].tolist(), test.items[chosen].tolist(), strict=True
    ):
        found.setdefault(row, set()).add(named(test.item_ids, item))
    return found


def _places_of_user(
    known: ListSource,
    tops: TopLists,
    ranks: Ranks,
    row: int,
    relevant: Mapping[int, set[Any]],
    k: int,
) -> UserLists:
    listed = [named(tops.item_ids, item) for item in tops.items[row, :k].tolist() if item >= 0]
    judged = _judged(known, ranks, row, relevant)
    places = tuple(
        (
            judged.get(item) or Entry(item, None, None, item in relevant.get(row, ()), tied=False)
        )._replace(rank=rank)
        for rank, item in enumerate(listed, start=1)
    )
    shown = set(listed)
    wanted = (
        [item for item, place in judged.items() if place.relevant]
        if known.own
        else relevant.get(row, set())
    )
    # Items that the source does not know have no row in the ranks.
    missed = [
        judged.get(item) or Entry(item, None, None, relevant=True, tied=False)
        for item in wanted
        if item not in shown
    ]
    missed.sort(key=lambda one: (one.rank is None, one.rank or 0, str(one.item)))
    return UserLists(places, tuple(missed))


def _judged(
    known: ListSource, ranks: Ranks, row: int, relevant: Mapping[int, set[Any]]
) -> dict[Any, Entry]:
    """Return the ranking's entries for a user's judged items, keyed by item."""
    judged: dict[Any, Entry] = {}
    for at in range(int(ranks.indptr[row]), int(ranks.indptr[row + 1])):
        item = named(ranks.item_ids, int(ranks.item[at])) if ranks.item[at] >= 0 else None
        above = int(ranks.above[at])
        score = None if ranks.score is None else float(ranks.score[at])
        wanted = bool(ranks.relevant[at]) if known.own else item in relevant.get(row, ())
        place = Entry(
            item,
            None if above < 0 else above + int(ranks.before[at]) + 1,
            score if score is not None and np.isfinite(score) else None,
            wanted,
            bool(ranks.tied[at]),
        )
        judged.setdefault(item, place)
    return judged


def named(item_ids: Array | None, position: int) -> Any:
    """Return an item's id, or its position if there are no ids."""
    return position if item_ids is None else item_ids[position : position + 1].tolist()[0]


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
    """Return the lists for the most improved, the most harmed, random and chosen users.

    Raises
    ------
    InputError
        If `n` or `depth` is not a whole number of at least 1.
    UnknownNameError
        If a chosen user does not exist.
    """
    for name, value in (("n_users", n), ("depth", depth)):
        check_whole(name, value, 1)
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
    note = f"The lists of {', '.join(missing)} are not available." if missing else ""
    return Inspector(who, models, metrics, depth, tuple(users), items.texts, given.users.n, note)


ORDER = ("chosen", "most harmed", "most improved", "random")


def _first(kinds: Sequence[str], change: float) -> tuple[int, float]:
    place = min(ORDER.index(kind) for kind in kinds)
    return place, -abs(change) if not math.isnan(change) and place in (1, 2) else 0.0


def _choose(
    given: Inputs, pair: tuple[str, str] | None, chosen: object, n: int, seed: int
) -> tuple[Kinds, Float64 | None]:
    """Return the positions of users to show, why each is shown, and all users' changes."""
    kinds: Kinds = {}

    def add(positions: Iterable[int], kind: str) -> None:
        for position in positions:
            kinds.setdefault(position, []).append(kind)

    add(_chosen_positions(given, chosen), "chosen")
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


def _chosen_positions(given: Inputs, chosen: Any) -> list[int]:
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
            f"There is no user {missing[0]!r} to show. Hint: user ids look like {example}."
        )
    return list(dict.fromkeys(known[str(one)] for one in wanted))


def _n_relevant(given: Inputs, position: int) -> int:
    """Return a user's number of relevant items, from any evaluation that includes the user."""
    each = [
        column[position]
        for model in given.models
        for column in given.users.spread(model, [run.n_relevant for run in model.runs], -1)
    ]
    return max(int(max(each)), 0)


def _lists(found: UserLists, items: _Items) -> UserLists:
    """Return lists with items as numbers, and with at most `MOST_MISSED` missed items."""

    def numbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(one._replace(item=items.number(one.item)) for one in entries)

    return UserLists(numbered(found.entries), numbered(found.missed[:MOST_MISSED]))


def _history(known: ListSource, user: Any, items: _Items) -> dict[str, Any]:
    train = known.train
    if train is None:
        return {"history": (), "n_history": 0}
    (position,) = _positions(train, user, "train").tolist()
    rows = np.arange(*train.indptr[position : position + 2]) if position >= 0 else np.arange(0)
    if train.times is not None:
        rows = rows[np.argsort(-train.times[rows], kind="stable")]
    shown = [named(train.item_ids, item) for item in train.items[rows[:MOST_HISTORY]].tolist()]
    return {"history": tuple(map(items.number, shown)), "n_history": len(rows)}


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
