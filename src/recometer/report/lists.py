"""Load the models' lists, and collect the lists of chosen users in full."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int64
from recometer.comparing.models import Model
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.matching import relevant_rows
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
from recometer.report.model import Entry, UserLists
from recometer.sources.base import Request, Source
from recometer.sources.candidates import read_candidates, read_items

LOWEST = -1e300  # a number below all scores


@dataclasses.dataclass(frozen=True, eq=False)
class ListSource:
    """A source of a model's lists, and the data of its requests."""

    source: Source
    test: Interactions
    train: Interactions | None
    catalogue: Catalogue | None
    candidates: Any
    exclude: Any
    protocol: Protocol
    seed: int
    threads: int
    own: bool  # whether the source contains its own labels

    def top(self, test: Interactions, k: int) -> TopLists:
        """Return the first k places of the lists for the users of `test`."""
        return self.source.top(self.request(test), k)

    def request(self, test: Interactions, *, scores: bool = False) -> Request:
        """Return the request for the users of `test`."""
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
        """Return test with only the rows of the users at the given positions."""
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
    """Return the sources of lists by model: those that were passed, and those kept in results.

    Raises
    ------
    UnknownNameError
        If there is a source for a model that does not exist.
    InputTypeError
        If an object is not a source.
    """
    sources = {} if lists is None else lists
    if not isinstance(sources, Mapping):
        raise InputTypeError(
            f"lists= is of type {type(lists).__name__}, expected a mapping by the model's name. "
            "Hint: lists={'als': source}."
        )
    names = [model.name for model in given.models]
    for name, source in sources.items():
        if name not in names:
            raise UnknownNameError(f"lists= names no model {name!r}. {did_you_mean(name, names)}")
        if not isinstance(source, Source):
            raise InputTypeError(
                f"lists= has {type(source).__name__} for {name!r}, expected a source, such as "
                "rm.Lists(frame) or rm.Factors(users, items)."
            )
    kept = {model.name: _kept(model, data) for model in given.models}
    # Results without test use the test and train of another result on the same data.
    other = next((one for one in kept.values() if one.get("test") is not None), {})
    found = {}
    for model in given.models:
        inputs = {**other, "source": None, **kept[model.name]}
        source = sources.get(model.name) or inputs["source"]
        if source is not None:
            found[model.name] = _known(model, source, inputs, given.options.threads)
    return found


def _kept(model: Model, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that a model's evaluation keeps, or that were passed for the report."""
    kept = dict(model.first.inputs_kept or {})
    return kept | {name: value for name, value in data.items() if value is not None}


def _known(model: Model, source: Source, inputs: Mapping[str, Any], threads: int) -> ListSource:
    own = source.facts.truth is not None
    test, train, catalogue = (inputs.get(name) for name in ("test", "train", "catalogue"))
    if test is None and not own:
        raise InputError(
            f"The lists of {model.name!r} are shown with test, which is not known: the result was "
            "loaded from a file, or is large. Hint: "
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
    """Return the first k places of the given users' lists, and the relevant items that they miss.

    `users` contains ids, or positions if there are no ids. The keys of the result are indices into
    `users`; users who are not in test are left out.
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


def _positions(test: Interactions, users: Array) -> Int64:
    if test.user_ids is None:
        found = np.asarray(users, np.int64)
        return np.where(found < test.n_users, found, -1)
    return ids.match(np.asarray(users), test.user_ids, "user ids of the report", "user ids of test")


def _with_listed(test: Interactions, tops: TopLists, rows: Int64) -> Interactions:
    """Return test with additional rows for the items recommended to the given users."""
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
    """Return the ranks of a user's judged items, by item."""
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
    """Return an item's id, or its position."""
    return position if item_ids is None else item_ids[position : position + 1].tolist()[0]
