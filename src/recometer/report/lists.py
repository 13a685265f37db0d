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
from recometer.evaluating.arguments import adapt_protocol, test_of
from recometer.evaluating.sides import merge_rows
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
    has_labels: bool  # whether the source itself contains the labels

    def top(self, test: Interactions, k: int) -> TopLists:
        """Return the first k places of the lists for the users of `test`."""
        return self.source.top(self.request(test), k)

    def request(self, test: Interactions, *, scores: bool = False) -> Request:
        """Return a request for the users of `test`."""
        rules = adapt_protocol(self.source, self.protocol, trained=self.train is not None)
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
        if self.has_labels:
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


def list_sources(inputs: Inputs, lists: object, data: Mapping[str, Any]) -> dict[str, ListSource]:
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
    passed_sources = {} if lists is None else lists
    if not isinstance(passed_sources, Mapping):
        raise InputTypeError(
            f"lists= is of type {type(lists).__name__}, expected a mapping from model names to "
            f"sources. Hint: lists={{'als': source}}."
        )
    names = [model.name for model in inputs.models]
    for name, source in passed_sources.items():
        if name not in names:
            raise UnknownNameError(
                f"lists= contains {name!r}, which is not a model. {did_you_mean(name, names)}"
            )
        if not isinstance(source, Source):
            raise InputTypeError(
                f"lists= contains {type(source).__name__} for {name!r}, expected a source, such as "
                "rm.Lists(frame) or rm.Factors(users, items)."
            )
    kept_inputs = {model.name: _kept_inputs(model, data) for model in inputs.models}
    # A result that kept no test data uses the data that another result kept.
    other = next((kept for kept in kept_inputs.values() if kept.get("test") is not None), {})
    sources = {}
    for model in inputs.models:
        arguments = {**other, "source": None, **kept_inputs[model.name]}
        source = passed_sources.get(model.name) or arguments["source"]
        if source is not None:
            sources[model.name] = _load(model, source, arguments, inputs.options.threads)
    return sources


def _kept_inputs(model: Model, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that a model's evaluation kept, overridden by the report's own inputs."""
    inputs = dict(model.first.inputs_kept or {})
    return inputs | {name: value for name, value in data.items() if value is not None}


def _load(model: Model, source: Source, inputs: Mapping[str, Any], threads: int) -> ListSource:
    has_labels = source.facts.truth is not None
    test, train, catalogue = (inputs.get(name) for name in ("test", "train", "catalogue"))
    if test is None and not has_labels:
        raise InputError(
            f"Showing the lists of {model.name!r} requires test, which is not available: the "
            "result was loaded from a file, or is large. Hint: "
            f"{python_or_command('test=...', '--test FILE')}, and "
            f"{python_or_command('train=...', '--train FILE')} if there was one."
        )
    return ListSource(
        source,
        test_of(source, None if has_labels else test),
        None if train is None else read_interactions(train, "train", warns=False),
        catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue),
        inputs.get("candidates"),
        inputs.get("exclude"),
        model.first.protocol,
        model.first.seed,
        threads,
        has_labels,
    )


def places_of(source: ListSource, users: Array | Int64, k: int) -> dict[int, UserLists]:
    """Return the first k places of the users' lists, and the relevant items missing from them.

    `users` contains ids, or positions if there are no ids. The keys of the result are indices into
    `users`; users who are not in the test data are left out.
    """
    positions = _positions(source.test, users)
    present = np.flatnonzero(positions >= 0)
    if not len(present):
        return {}
    test = source.of_users(positions[present])
    lists = source.top(test, k)
    rows = _positions(test, np.asarray(users)[present])
    judged = test if source.has_labels else _with_listed(test, lists, rows)
    ranks = source.source.rank(source.request(judged, scores=True))
    relevant = _relevant_items(source, test)
    return {
        int(number): _places_of_user(source, lists, ranks, int(row), relevant, k)
        for number, row in zip(present, rows, strict=True)
    }


def _positions(data: Interactions, users: Array, name: str = "test") -> Int64:
    """Return the positions of users in the test or training data, or -1 for unknown users."""
    if data.user_ids is None:
        positions = np.asarray(users, np.int64)
        return np.where(positions < data.n_users, positions, -1)
    nouns = "user ids of the report", f"user ids of {name}"
    return ids.match(np.asarray(users), data.user_ids, *nouns)


def _with_listed(test: Interactions, lists: TopLists, rows: Int64) -> Interactions:
    """Return the test data with added rows for all items listed for the users in `rows`."""
    listed = np.zeros(lists.items.shape, bool)
    listed[rows] = lists.items[rows] >= 0
    users = np.concatenate([ragged.users_of(test.indptr), np.nonzero(listed)[0]])
    if test.item_ids is None or lists.item_ids is None:
        items = np.concatenate([test.items.astype(np.int64), lists.items[listed]])
        n_items, item_ids = max(test.n_items, lists.n_items), None
    else:
        all_ids = np.concatenate([test.item_ids, lists.item_ids])
        codes, item_ids = ids.encode(all_ids, "item ids")
        items = np.concatenate(
            [codes[: test.n_items][test.items], codes[test.n_items :][lists.items[listed]]]
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


def _relevant_items(source: ListSource, test: Interactions) -> dict[int, set[Any]]:
    """Return the relevant items of each user, or an empty dict if the ranks contain the labels."""
    if source.has_labels:
        return {}
    test = merge_rows(test, (), source.protocol)
    chosen = relevant_rows(test, source.protocol.relevant_from)
    items_of: dict[int, set[Any]] = {}
    for row, item in zip(
        ragged.users_of(test.indptr)[chosen].tolist(), test.items[chosen].tolist(), strict=True
    ):
        items_of.setdefault(row, set()).add(named(test.item_ids, item))
    return items_of


def _places_of_user(
    source: ListSource,
    lists: TopLists,
    ranks: Ranks,
    row: int,
    relevant: Mapping[int, set[Any]],
    k: int,
) -> UserLists:
    listed = [named(lists.item_ids, item) for item in lists.items[row, :k].tolist() if item >= 0]
    judged = _judged_entries(source, ranks, row, relevant)
    places = tuple(
        (
            judged.get(item) or Entry(item, None, None, item in relevant.get(row, ()), tied=False)
        )._replace(rank=rank)
        for rank, item in enumerate(listed, start=1)
    )
    listed_set = set(listed)
    relevant_items = (
        [item for item, place in judged.items() if place.relevant]
        if source.has_labels
        else relevant.get(row, set())
    )
    # Items that the source does not know have no row in the ranks.
    missed = [
        judged.get(item) or Entry(item, None, None, relevant=True, tied=False)
        for item in relevant_items
        if item not in listed_set
    ]
    missed.sort(key=lambda entry: (entry.rank is None, entry.rank or 0, str(entry.item)))
    return UserLists(places, tuple(missed))


def _judged_entries(
    source: ListSource, ranks: Ranks, row: int, relevant: Mapping[int, set[Any]]
) -> dict[Any, Entry]:
    """Return the ranking's entries for a user's judged items, keyed by item."""
    judged: dict[Any, Entry] = {}
    for index in range(int(ranks.indptr[row]), int(ranks.indptr[row + 1])):
        item = named(ranks.item_ids, int(ranks.item[index])) if ranks.item[index] >= 0 else None
        above = int(ranks.above[index])
        score = None if ranks.score is None else float(ranks.score[index])
        hit = bool(ranks.relevant[index]) if source.has_labels else item in relevant.get(row, ())
        place = Entry(
            item,
            None if above < 0 else above + int(ranks.before[index]) + 1,
            score if score is not None and np.isfinite(score) else None,
            hit,
            bool(ranks.tied[index]),
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
    inputs: Inputs,
    sources: Mapping[str, ListSource],
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
    noun = "item" if flag("item_to_item", item_to_item) else "user"
    kinds, change = _choose(inputs, pair, chosen, n, seed)
    models = tuple(name for name in order if name in sources)
    if not models:
        return None
    everyone = np.arange(inputs.users.n) if inputs.users.ids is None else inputs.users.ids
    positions = np.array(sorted(kinds), np.int64)
    lists = {name: places_of(sources[name], everyone[positions], depth) for name in models}
    metrics = tuple(metric for metric in inputs.metrics if not inputs.is_whole(metric))
    values = {
        metric: {
            model.name: inputs.users.values(model, metric)[positions] for model in inputs.models
        }
        for metric in metrics
    }
    items = _Items([sources[name].catalogue for name in models])
    users = []
    for number, position in enumerate(positions.tolist()):
        user_lists = {
            name: _numbered(lists[name][number], items) for name in models if number in lists[name]
        }
        user = inputs.users.id(position)
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
                **_history(sources[models[0]], everyone[position : position + 1], items),
                n_relevant=_n_relevant(inputs, position),
                lists=user_lists,
            )
        )
    users.sort(key=lambda user: _first(user.kinds, user.change))
    missing = [name for name in order if name not in models]
    note = f"The lists of {', '.join(missing)} are not available." if missing else ""
    return Inspector(noun, models, metrics, depth, tuple(users), items.texts, inputs.users.n, note)


ORDER = ("chosen", "most harmed", "most improved", "random")


def _first(kinds: Sequence[str], change: float) -> tuple[int, float]:
    place = min(ORDER.index(kind) for kind in kinds)
    return place, -abs(change) if not math.isnan(change) and place in (1, 2) else 0.0


def _choose(
    inputs: Inputs, pair: tuple[str, str] | None, chosen: object, n: int, seed: int
) -> tuple[Kinds, Float64 | None]:
    """Return the positions of users to show, why each is shown, and all users' changes."""
    kinds: Kinds = {}

    def add(positions: Iterable[int], kind: str) -> None:
        for position in positions:
            kinds.setdefault(position, []).append(kind)

    add(_chosen_positions(inputs, chosen), "chosen")
    metric = next((name for name in inputs.metrics if not inputs.is_whole(name)), None)
    change: Float64 | None = None
    eligible: Int64 = np.arange(inputs.users.n)
    if metric is not None:
        columns = [inputs.users.values(inputs.model(name), metric) for name in pair or ()]
        if columns:
            sign = 1 if inputs.definition(metric).higher_is_better else -1
            change = sign * (columns[0] - columns[1])
            lowest, highest = stats.most_changed(change, n)
            add(lowest.tolist(), "most harmed")
            add(highest.tolist(), "most improved")
        defined = ~np.isnan(inputs.users.values(inputs.models[0], metric))
        eligible = np.flatnonzero(defined)
    # Do not draw users who were already chosen.
    eligible = np.setdiff1d(eligible, list(kinds))
    if len(eligible) <= max(FEW_USERS, 2 * n):
        drawn = eligible
    else:
        drawn = np.sort(np.random.default_rng(seed).choice(eligible, 2 * n, replace=False))
    add(drawn.tolist(), "random")
    return kinds, change


def _chosen_positions(inputs: Inputs, chosen: Any) -> list[int]:
    """Return the positions of chosen users; the ids may also be strings."""
    if isinstance(chosen, str | bytes | int) or not isinstance(chosen, Iterable):
        chosen = [chosen]
    chosen_ids = list(chosen)
    if not chosen_ids:
        return []
    users = inputs.users
    if users.ids is None:
        positions = {str(position): position for position in range(users.n)}
    else:
        texts = {str(user) for user in chosen_ids}
        positions = {str(u): i for i, u in enumerate(users.ids.tolist()) if str(u) in texts}
    missing = [user for user in chosen_ids if str(user) not in positions]
    if missing:
        example = users.show(0)
        raise UnknownNameError(
            f"There is no user {missing[0]!r} to show. Hint: user ids look like {example}."
        )
    return list(dict.fromkeys(positions[str(user)] for user in chosen_ids))


def _n_relevant(inputs: Inputs, position: int) -> int:
    """Return a user's number of relevant items, from any evaluation that includes the user."""
    counts = [
        column[position]
        for model in inputs.models
        for column in inputs.users.spread(model, [run.n_relevant for run in model.runs], -1)
    ]
    return max(int(max(counts)), 0)


def _numbered(lists: UserLists, items: _Items) -> UserLists:
    """Return lists with items as numbers, and with at most `MOST_MISSED` missed items."""

    def numbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(entry._replace(item=items.number(entry.item)) for entry in entries)

    return UserLists(numbered(lists.entries), numbered(lists.missed[:MOST_MISSED]))


def _history(source: ListSource, user: Any, items: _Items) -> dict[str, Any]:
    train = source.train
    if train is None:
        return {"history": (), "n_history": 0}
    (position,) = _positions(train, user, "train").tolist()
    rows = np.arange(*train.indptr[position : position + 2]) if position >= 0 else np.arange(0)
    if train.times is not None:
        rows = rows[np.argsort(-train.times[rows], kind="stable")]
    latest = [named(train.item_ids, item) for item in train.items[rows[:MOST_HISTORY]].tolist()]
    return {"history": tuple(map(items.number, latest)), "n_history": len(rows)}


class _Items:
    """Items with their titles, numbered in the order of first use."""

    def __init__(self, catalogues: Sequence[Catalogue | None]) -> None:
        self.texts: dict[int, tuple[str, str]] = {}
        self._numbers: dict[Any, int] = {}
        self._catalogue = next(
            (c for c in catalogues if c is not None and c.titles is not None), None
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
