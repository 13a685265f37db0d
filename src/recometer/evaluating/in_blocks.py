"""Evaluations whose rows lie in files: of some users after the others, put together."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Int32, Int64, any_of
from recometer.data import matching
from recometer.data.interactions import Interactions
from recometer.errors import Unwarned
from recometer.evaluating.chance import chance_of
from recometer.evaluating.checks import check_baseline, warn_beyond_lists
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.lists_together import FoundLists, ListsTogether
from recometer.evaluating.making import assembled, by_popularity, means_with_values, measure_lists
from recometer.evaluating.records import (
    Users,
    check_all,
    depth_of_lists,
    find_records,
    measured_by,
    removed_rows,
    request_of,
)
from recometer.measuring.compute import compute
from recometer.measuring.listed import Judged, ListedUsers
from recometer.measuring.side_data import Popularity, list_data, needed_by
from recometer.ranks import TopLists, UserFlag, raised
from recometer.results.evaluation import Evaluation
from recometer.results.profiles import FoundByPopularity
from recometer.sources.base import Apart, Source
from recometer.sources.candidates import Items, SampledCandidates, check_sets
from recometer.sources.list_stream import nobody
from recometer.sources.lists import Lists
from recometer.sources.memory import Memory
from recometer.tasks import Ticker, run_tasks

# Bytes of memory per row of test, of train and of candidates, while the users of a block are ranked
# and measured.
PER_TEST_ROW, PER_TRAIN_ROW, PER_CANDIDATE = 192, 64, 96

# Counts of items of the arguments, which are the same for all users; and the counts that are named
# last, in this order, as blocks need not have all of them: those of lists, and of other sources.
OF_ITEMS = ("candidates_unknown", "exclude_unknown")
LAST_OF_LISTS = ("list_repeats", "cut_in_ties", "users_below_cutoff")
OF_CANDIDATES = ("relevant_not_candidates", "users_without_candidates", "candidates_short")
LAST = (*OF_ITEMS, *OF_CANDIDATES, *LAST_OF_LISTS)


def blocks_of(given: Inputs) -> Sequence[Apart] | None:
    """Return the blocks of users that are evaluated one after the other; None for all at once.

    Users are in blocks if rows lie in files, take more than the memory that was given, and a user's
    values do not depend on those of others.
    """
    truth = given.truth
    sides = (truth.test, given.asked.train, _sets(given))
    budgets = [one.memory for one in sides if one is not None and one.memory]
    apart = not given.brings_truth and truth.test.user_ids is not None
    if not budgets or not apart:
        return None
    sizes = ragged.indptr_of(_sizes(given))
    found = ragged.blocks(sizes, min(budgets), max(1, truth.test.n_users))
    return given.source.apart(request_of(given), found) if len(found) > 1 else None


def _sizes(given: Inputs) -> Int64:
    """Return how many bytes of memory the rows of each user of test take."""
    test, train, sets = given.truth.test, given.asked.train, _sets(given)
    n_rows: Int64 = np.diff(test.indptr)
    sizes = PER_TEST_ROW * n_rows
    if train is not None:
        users = matching.users_in(train, test, "train")
        sizes += PER_TRAIN_ROW * ragged.lengths(train.indptr, users)
    if sets is not None:
        users = matching.users_in(sets, test, "candidates")
        sizes += PER_CANDIDATE * ragged.lengths(sets.indptr, users)
    drawn = given.truth.candidates
    if isinstance(drawn, SampledCandidates):
        sizes += PER_CANDIDATE * (n_rows + drawn.n)
    return sizes


def _sets(given: Inputs) -> Interactions | None:
    """Return the candidates of each user, if they were given."""
    candidates = given.truth.candidates
    return candidates if isinstance(candidates, Interactions) else None


class _Block(NamedTuple):
    """What is kept of a block of users: nothing that has an entry per row."""

    users: Users
    counts: Mapping[str, int]
    judged: Judged | None
    by_popularity: FoundByPopularity | None
    n_relevant: Int64  # of each user, a repeated pair once
    early: bool  # whether a ranking ends before the last candidate


class InBlocks:
    """An evaluation of all users, of whom only a block is in memory at a time.

    All that an `Evaluation` has of its users is the same, to the last bit.
    """

    def __init__(self, given: Inputs, blocks: Sequence[Apart]) -> None:
        self._given, self._cuts = given, blocks
        users = np.concatenate([block.users for block in blocks])
        self._order: Int64 = np.argsort(users)  # of the users, one block after the other
        truth, train, sets = given.truth, given.asked.train, _sets(given)
        self._places: Int64 | None = None
        self._places_of_sets: Int64 | None = None
        self._popularity: Popularity | None = None
        self._offered: Int32 | None = None
        self._of_baseline: TopLists | None = None
        self._trained = np.zeros(0 if train is None else train.n_items, bool)  # items of train
        self._judged = np.zeros(truth.test.n_items, bool)  # items of test
        if train is not None:
            self._places = matching.places_of_users(train, truth.test, "train")
            drawn = isinstance(truth.candidates, SampledCandidates)
            if drawn or "train" in needed_by(truth.metrics):
                self._popularity = Popularity.of(train)
        if sets is not None:
            self._places_of_sets = matching.places_of_users(sets, truth.test, "candidates")
            self._offered = self._found_in(sets, self._places_of_sets)
        self._columns: dict[str, dict[str, Array]] = {}  # values, reasons, chance
        self._blocks: list[_Block] = []
        self._lists, self._baselines = ListsTogether(), ListsTogether()
        self._seconds = {"ranking": 0.0, "measuring": 0.0}

    def evaluation(self, reading: float) -> Evaluation:
        """Return the evaluation of all users; `reading` is the seconds that it took."""
        measured, users, counts = self._found()
        found = self._together([one.by_popularity for one in self._blocks])
        return assembled(
            self._given,
            users,
            counts,
            lambda: measured,
            lambda *_: lambda: found,
            reading=reading,
            **self._seconds,
        )

    def mean(self) -> dict[str, float]:
        """Return the means alone."""
        measured, users, _ = self._found()
        return means_with_values(self._given, users, measured)

    def _found(self) -> tuple[dict[str, Any], Users, dict[str, int]]:
        """Return what is measured, what is known of the users, and what the rules settled."""
        test, asked = self._given.truth.test, self._given.asked
        with Unwarned():  # refuses items of which the source knows none
            self._unknown(test, np.arange(test.n_items), some_users=False)
        # One after the other: a block is as large as may be.
        run_tasks(
            self._add,
            self._cuts,
            weights=[float(ragged.lengths(test.indptr, cut.users).sum()) for cut in self._cuts],
            threads=1,
            progress=asked.progress,
            label="Ranking",
        )
        columns = zip(*(one.users for one in self._blocks), strict=True)
        users = Users(*(np.concatenate(column)[self._order] for column in columns))
        counts = self._counts()
        lists, baseline = self._lists.of(self._order), self._baselines.of(self._order)
        self._check(users, counts, lists, baseline)
        measured: dict[str, Any] = dict(self._columns)
        if lists is not None:
            own = {name: n for name, n in counts.items() if name in lists.counts}
            lists = dataclasses.replace(lists, counts=own)
            listed = self._listed(lists, baseline)
            measured |= {**measure_lists(self._given, listed), "lists": lists}
        return measured, users, counts

    def _add(self, block: Apart, ticker: Ticker) -> None:
        """Rank the items of some users, and measure that."""
        ticker.advance()
        begin = time.perf_counter()
        given = self._of(block)
        truth, asked, rules = given.truth, given.asked, given.protocol
        with Unwarned():  # of all users is warned later
            records = find_records(given)
        ranked = time.perf_counter()
        measured = measured_by(given, records)
        values, reasons = compute(measured.values(), truth.metrics, rules, asked.threads)
        self._put("values", block.users, values)
        self._put("reasons", block.users, reasons)
        if asked.chance:
            drawn = chance_of(records.ranks, truth.metrics, rules, asked.threads)
            self._put("chance", block.users, drawn)
        ranks, request = records.ranks, records.request
        found = _Block(
            records.users,
            records.counts,
            records.judged,
            by_popularity(given, ranks, self._given.truth.counts, _kernel)(),
            (records.users if ranks is None else ranks).n_relevant,
            ranks is not None and any_of(ranks.ends_early),
        )
        self._blocks.append(found)
        for together, lists in ((self._lists, records.lists), (self._baselines, records.baseline)):
            if lists is not None:
                together.add(lists)
        gone = request.protocol.seen != "kept" and request.train is not None
        self._judged[truth.test.items[~request.in_train()] if gone else truth.test.items] = True
        if asked.train is not None:
            self._trained[asked.train.items] = True
        self._seconds["ranking"] += ranked - begin
        self._seconds["measuring"] += time.perf_counter() - ranked

    def _put(self, what: str, users: Int64, found: Mapping[str, Array]) -> None:
        """Keep the values of some users in columns of all of them."""
        n_users = self._given.truth.test.n_users
        columns = self._columns.setdefault(what, {})
        for name, column in found.items():
            if name not in columns:
                columns[name] = np.empty(n_users, column.dtype)
            columns[name][users] = column

    def _of(self, block: Apart) -> Inputs:
        """Return the inputs of some users."""
        given, truth, asked = self._given, self._given.truth, self._given.asked
        train = asked.train
        if train is not None and self._places is not None:
            train = matching.known_users(train, self._places[block.users])
        test = truth.test.select_users(block.users)
        changed = dataclasses.replace(
            asked,
            train=train,
            popularity=self._popularity,
            offered=self._offered,
            baseline=self._baseline_of(block.users),
            some_users=True,
            progress=False,
        )
        some, sets = truth.of_some(changed, test, test), _sets(given)
        if sets is not None and self._places_of_sets is not None:
            own = matching.known_users(sets, self._places_of_sets[block.users])
            some = dataclasses.replace(some, candidates=own)
        return dataclasses.replace(given, source=block.source, truth=some)

    def _baseline_of(self, users: Int64) -> Source | Evaluation | None:
        """Return the baseline for some users; lists in files are read for all users at once."""
        baseline, truth = self._given.asked.baseline, self._given.truth
        in_files = isinstance(baseline, Lists) and baseline.in_files
        if not in_files or "baseline" not in needed_by(truth.of_lists):
            return baseline
        assert isinstance(baseline, Lists)
        if self._of_baseline is None:
            depth = depth_of_lists(truth.of_lists)
            self._of_baseline = baseline.top(request_of(self._given), depth)
        return FoundLists(baseline, self._of_baseline.users(users))

    def _found_in(self, data: Interactions, places: Int64) -> Int32:
        """Return the items that users at some places have, ascending."""
        found = np.zeros(data.n_items, bool)
        for block in self._cuts:
            _, rows = ragged.take(data.indptr, places[block.users])
            found[data.items[rows]] = True
        return np.flatnonzero(found).astype(np.int32)

    def _unknown(self, data: Interactions, items: Array, *, some_users: bool) -> int:
        """Return how many items of test or train the source does not know."""
        assert self._given.truth.test.user_ids is not None
        candidates = self._given.truth.candidates
        stand_in = Interactions(
            indptr=np.array([0, len(items)]),
            items=items.astype(np.int32),
            n_items=data.n_items,
            user_ids=self._given.truth.test.user_ids[:1],
            item_ids=data.item_ids,
        )
        request = dataclasses.replace(
            request_of(self._given),
            test=stand_in,
            train=None,
            candidates=candidates if isinstance(candidates, Items) else None,
            memory=Memory(),
            some_users=some_users,
        )
        found = self._given.source.matched(request)
        if found is None and some_users:  # of lists
            found = nobody(stand_in).rank(request).counts
        return (found or {}).get("items_unknown", 0)

    def _counts(self) -> dict[str, int]:
        """Add up what rules settled in all blocks."""
        parts = [one.counts for one in self._blocks]
        total = sum(map(Counter, parts), Counter())
        last = LAST_OF_LISTS if isinstance(self._given.source, Lists) else LAST
        found = {name: total[name] for name in sorted(total.keys() - set(last))}
        found |= {name: total[name] for name in last if name in total}
        for name in OF_ITEMS:
            if name in found:
                found[name] = parts[0][name]
        if "items_unknown" in found:
            judged = np.flatnonzero(self._judged)
            found["items_unknown"] = self._unknown(self._given.truth.test, judged, some_users=True)
        return found

    def _listed(self, lists: TopLists, baseline: TopLists | None) -> ListedUsers:
        """Return the users with all that values of all users together are computed from."""
        truth, asked = self._given.truth, self._given.asked
        of_lists, request = truth.of_lists, request_of(self._given)
        read = needed_by([metric for metric in of_lists if metric.definition.over_users])
        train = None if asked.train is None else _without_rows(asked.train)
        test, in_train = _without_rows(truth.test), None
        if "test" in read:
            test, in_train = truth.test, removed_rows(request, self._given.source)
        data = list_data(
            lists,
            needed_by(of_lists),
            test=test,
            train=train,
            relevant_from=request.protocol.relevant_from,
            ranks=None,
            catalogue=asked.catalogue,
            baseline=baseline,
            in_train=in_train,
            memory=Memory(),
            popularity=self._popularity,
        )
        return ListedUsers(data, self._together([one.judged for one in self._blocks]))

    def _together(self, parts: Sequence[Any]) -> Any:
        """Put records of all blocks together, None where there are none."""
        return None if parts[0] is None else type(parts[0]).concat(parts).users(self._order)

    def _check(
        self,
        users: Users,
        counts: Mapping[str, int],
        lists: TopLists | None,
        baseline: TopLists | None,
    ) -> None:
        """Check and warn of what only all users together tell."""
        given, truth, train = self._given, self._given.truth, self._given.asked.train
        if train is not None and self._places is not None:
            matching.warn_of_strangers(self._places, train, truth.test, "train")
            trained = np.flatnonzero(self._trained)
            removed = request_of(given).protocol.seen != "kept"
            removed &= not isinstance(given.source, Lists)
            if removed and len(trained) == self._unknown(train, trained, some_users=True) > 0:
                matching.warn_of_unknown_train(type(given.source).__name__)
        sets = _sets(given)
        if sets is not None and self._places_of_sets is not None:
            matching.warn_of_strangers(self._places_of_sets, sets, truth.test, "candidates")
        if not isinstance(truth.candidates, Items | None):
            n_known = int(np.count_nonzero(raised(users.flags, UserFlag.KNOWN)))
            check_sets(counts.get("users_without_candidates", 0), n_known)
        if lists is not None:
            warn_beyond_lists(int(lists.lengths.max(initial=0)), truth.of_lists)
        if baseline is not None:
            check_baseline(baseline, truth.descriptions["baseline"]["description"])
        n_relevant = np.concatenate([one.n_relevant for one in self._blocks])
        users = users._replace(n_relevant=n_relevant[self._order])
        if isinstance(given.source, Lists):
            given.source.warn_of_parts(counts)
        early = any(one.early for one in self._blocks)
        check_all(given, users, counts if truth.of_rankings else None, early=early)


def _without_rows(data: Interactions) -> Interactions:
    """Return data with the same users and items, and no rows."""
    indptr = np.zeros(data.n_users + 1, np.int64)
    return data.with_rows(indptr, np.zeros(0, np.int64), duplicates=0, repeated=())
