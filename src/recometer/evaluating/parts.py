"""Some of the users of an evaluation: what all of them share is prepared once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64, Int64
from recometer.data import matching
from recometer.data.fingerprints import Fingerprinting
from recometer.data.interactions import Interactions
from recometer.errors import InputError, Unwarned
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.making import evaluation_of
from recometer.evaluating.records import find_records, measured_by, request_of
from recometer.evaluating.truth import as_counted
from recometer.measuring.compute import compute
from recometer.measuring.listed import ListedUsers
from recometer.measuring.measured import Measured
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.measuring.reasons import entering
from recometer.measuring.side_data import Popularity, needed_by
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.ranks import Ranks, TopLists
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Part, Request, Source
from recometer.sources.memory import Memory
from recometer.sources.pairs import Pairs

MEASURED: dict[str, type[Measured]] = {
    "ranks": RankedUsers,
    "ratings": RatedUsers,
    "lists": ListedUsers,
}


class Parts:
    """An evaluation of a model that is made for some users after the other.

    A user's values are those that an evaluation of all users gives, to the last bit. What is
    matched is matched once for all users, and what was ranked is kept for the evaluation of all
    that were read.
    """

    def __init__(self, given: Inputs) -> None:
        self._given = given
        self._named = _named(given)
        self._kept = _Kept(self._named.source)
        self._read: list[Int64] = []
        self._memory = Memory()
        self._whole = request_of(_with(self._named, some_users=True))
        truth = self._named.truth
        train = truth.asked.train
        self._in_train = None
        self._popularity = None
        # Ranks alone read what is matched for all users; others match train with each part.
        of_ranks = all(
            one.definition.record == "ranks" and not one.definition.side for one in truth.metrics
        )
        if train is not None and not of_ranks:
            self._in_train = matching.places_of_users(train, truth.test, "train")
            if "train" in needed_by(truth.metrics):
                self._popularity = Popularity.of(train)

    @property
    def test(self) -> Interactions:
        """What is evaluated; users have ids, which are their positions where they had none."""
        return self._named.truth.test

    def values(self, users: Int64, metrics: Sequence[Metric]) -> dict[str, Float64]:
        """Return the values that count in means for users not read before; NaN if none counts.

        `users` are places in test, ascending; values are [n_users].

        Raises
        ------
        InputError
            If, by the rules, a value may lie beyond the range of its metric.
        """
        given = self._part(users)
        with Unwarned():  # of all that are read together is warned later
            records = find_records(given)
            measured = measured_by(given, records)
            found, reasons = compute(
                measured.values(), metrics, given.protocol, given.asked.threads
            )
        self._read.append(users)
        for metric in metrics:
            check_bounded(metric, given.protocol, self._named.source)
        return {
            str(one): entering(found[str(one)], reasons[str(one)], rules_of(one, given.protocol))
            for one in metrics
        }

    def read(self, users: Int64) -> None:
        """Read some more users, whose values are not asked for before those of all."""
        with Unwarned():
            find_records(self._part(users))
        self._read.append(users)

    def evaluation(self, reading: float, ranking: float) -> Evaluation:
        """Return the evaluation of all users that were read, by their ids.

        `reading` and `ranking` are the seconds that it took.
        """
        whole, read = self._given.truth, np.concatenate(self._read)
        given = self._of(np.sort(read), some_users=False)
        again = given
        if not given.brings_truth:
            again = dataclasses.replace(given, source=self._kept.again(np.argsort(read)))
        prints = self._fingerprints()
        given.truth.fingerprints.update(prints)
        result = evaluation_of(again, find_records(again), reading, ranking)
        return dataclasses.replace(
            result,
            inputs=self._given.described(prints),
            inputs_kept=given.kept() if self._repeats() else None,
            negative_gains=whole.negative_gains,
            binary_gains=whole.binary_gains,
        )

    def _fingerprints(self) -> dict[str, dict[str, str]]:
        """Return the fingerprints of the inputs, as an evaluation of all users has them."""
        truth = self._given.truth
        arrays = {"source": self._given.source.arrays()}
        arrays |= {} if truth.fingerprints else truth.arrays()
        with Fingerprinting(arrays, truth.asked.threads) as found:
            prints = found.result()
        truth.fingerprints.update({name: one for name, one in prints.items() if name != "source"})
        return {**truth.fingerprints, **prints}

    def _repeats(self) -> bool:
        """Tell whether what is kept with a result repeats the evaluation of some users."""
        truth = self._given.truth
        by_position = truth.asked.baseline is not None and truth.test.user_ids is None
        sets = isinstance(truth.candidates, Interactions)
        return truth.given is truth.test and not by_position and not sets

    def has_relevant(self) -> Bool:
        """Return which users have an item in test that is relevant to the source."""
        return has_relevant(self._named, self._whole)

    def _part(self, users: Int64) -> Inputs:
        given = self._of(users, some_users=True)
        if not given.brings_truth:
            given = dataclasses.replace(given, source=self._kept)
        return given

    def _of(self, users: Int64, *, some_users: bool) -> Inputs:
        """Return the inputs for some users; `some_users` says that other users follow."""
        named, asked = self._named, self._named.truth.asked
        source, test, part, train = named.source, None, None, asked.train
        if named.brings_truth:
            which = np.zeros(self.test.n_users, bool)
            which[users] = True
            assert isinstance(source, Pairs)
            source = source.of_users(which)
            test = source.test()
        if test is None:
            test = named.truth.test.select_users(users)
            part = Part(self._whole, users, test, self._memory)
        if some_users and self._in_train is not None and train is not None:
            train = matching.known_users(train, self._in_train[users])
        changed = dataclasses.replace(
            asked,
            train=train,
            popularity=self._popularity,
            some_users=some_users,
            part=part if some_users else None,
        )
        counted = as_counted(test, asked.metrics, named.protocol) if named.brings_truth else test
        truth = named.truth.of_some(changed, test, counted)
        return dataclasses.replace(named, source=source, truth=truth)


def has_relevant(given: Inputs, request: Request) -> Bool:
    """Return which users have an item in test that is relevant to the source.

    `request` is what the source is asked for.
    """
    test, rules = given.truth.test, given.protocol
    relevant = matching.relevant_rows(test, rules.relevant_from)
    if request.train is not None and given.source.removes_train(rules):
        relevant &= ~request.in_train()
    return np.diff(ragged.offsets(relevant, test.indptr)) > 0


def check_bounded(metric: Metric, protocol: Protocol, source: Source) -> None:
    """Refuse rules by which a value may lie beyond the range of its metric.

    Raises
    ------
    InputError
        If there are such rules.
    """
    rules = rules_of(metric, protocol)
    if "duplicates" in source.unread_rules(listed=False):
        rules = rules.replace(duplicates="removed")  # there are none
    if not MEASURED[metric.definition.record].bounded(rules):
        raise InputError(
            f"By these rules, values of {metric} may lie beyond its range: items count more than "
            "once, or share places. Hint: until= needs the own rules duplicates, repeated_test and "
            "ties."
        )


def _with(given: Inputs, *, some_users: bool) -> Inputs:
    asked = dataclasses.replace(given.asked, some_users=some_users)
    return dataclasses.replace(
        given, truth=dataclasses.replace(given.truth, asked=asked, requests={})
    )


def _named(given: Inputs) -> Inputs:
    """Use positions as ids if users do not have ids, so that a part of them keeps these.

    What is drawn for a user depends on the id, or the position, so that nothing changes.
    """
    truth, asked, test = given.truth, given.asked, given.truth.test
    if test.user_ids is not None:
        return given
    places = np.arange(test.n_users)

    def named(data: Interactions, what: str) -> Interactions:
        matching.users_in(data, test, what)  # refuses what does not fit
        return dataclasses.replace(data, user_ids=places)

    source, baseline = given.source, asked.baseline
    train = None if asked.train is None else named(asked.train, "train")
    sets = truth.candidates
    if isinstance(sets, Interactions):
        sets = named(sets, "candidates")
    if isinstance(baseline, Evaluation) and baseline.user_ids is None:
        baseline = dataclasses.replace(baseline, user_ids=np.arange(baseline.n_users))
    elif isinstance(baseline, Source):
        baseline = _source_named(baseline, places)
    changed = dataclasses.replace(asked, train=train, baseline=baseline)
    whole = dataclasses.replace(
        truth,
        asked=changed,
        given=dataclasses.replace(truth.given, user_ids=np.arange(truth.given.n_users)),
        test=dataclasses.replace(test, user_ids=places),
        candidates=sets,
        memory=Memory(),
        requests={},
    )
    return dataclasses.replace(given, source=_source_named(source, places), truth=whole)


def _source_named(source: Source, places: Int64) -> Source:
    """Return a source whose users have ids; refuse one that cannot be told whose rows are whose."""
    found = source.with_user_ids(places)
    if found is None:
        raise InputError(
            f"Users have no ids, and the source ({source.describe()}) knows them by position only, "
            "so that some of them cannot be evaluated alone. Hint: user_ids= of the source and of "
            "test."
        )
    return found


class _Kept(Source):
    """A source that keeps what it ranks for some users after the other."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ranks: list[Ranks] = []
        self._lists: list[TopLists] = []
        self.has_input_order = source.has_input_order

    def rank(self, request: Request) -> Ranks:
        """Rank them, and keep the ranks."""
        self._ranks.append(self._source.rank(request))
        return self._ranks[-1]

    def top(self, request: Request, k: int) -> TopLists:
        """Return the lists of the users, and keep them."""
        self._lists.append(self._source.top(request, k))
        return self._lists[-1]

    def removes_train(self, protocol: Protocol) -> bool:
        """Tell whether the source removes the items of train."""
        return self._source.removes_train(protocol)

    def describe(self) -> str:
        """Describe the source."""
        return self._source.describe()

    def arrays(self) -> Mapping[str, object]:
        """Return nothing, since the arrays of the source are known."""
        return {}

    def held_bytes(self) -> int | None:
        """Return the memory that the source holds."""
        return self._source.held_bytes()

    def again(self, order: Int64) -> Source:
        """Return a source that repeats what was kept, for users in another order."""
        return _Again(self._source, self._ranks, self._lists, order)


class _Again(_Kept):
    """A source that gives out once more what was kept.

    Where more is counted than what matching settles, it is found anew: in lists and pairs, which
    takes little time.
    """

    def __init__(
        self, source: Source, ranks: Sequence[Ranks], lists: Sequence[TopLists], order: Int64
    ) -> None:
        super().__init__(source)
        self._ranks, self._lists, self._order = [*ranks], [*lists], order

    def rank(self, request: Request) -> Ranks:
        """Return the ranks of all that were read."""
        counts = self._source.matched(request)
        if counts is None:
            return self._source.rank(request)
        found = Ranks.concat(self._ranks).users(self._order)
        return dataclasses.replace(found, counts=counts)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the lists of all that were read."""
        counts = self._source.matched(request)
        if counts is None:
            return self._source.top(request, k)
        found = TopLists.concat(self._lists).users(self._order)
        cut = int(np.count_nonzero(found.cut_in_ties))
        more = {"cut_in_ties": cut} if cut else {}
        return dataclasses.replace(found, counts={**counts, **more})
