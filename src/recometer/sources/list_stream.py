"""Lists that come batch by batch: where judged items landed in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Int64, any_of
from recometer.data import ids, matching
from recometer.data.interactions import Interactions
from recometer.errors import InputError, RecometerError
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.sources._list_batches import IndexedLists, NamedLists, takes_indices
from recometer.sources._list_catalogue import items_of
from recometer.sources._list_table import ListTable
from recometer.sources.base import Facts, Kind, Request
from recometer.sources.candidates import SampledCandidates
from recometer.sources.kept import NO_BATCH, ItemCodes, Kept, Strangers, alike
from recometer.sources.lists import Lists
from recometer.sources.memory import Memory

# Counts of the lists themselves; all others are known from test, train and candidates.
OF_LISTS = (
    "cut_in_ties",
    "list_duplicates",
    "list_items_uncatalogued",
    "list_not_candidates",
    "list_repeats",
    "list_train_items",
    "list_users_ignored",
    "relevant_not_candidates",
    "relevant_unranked",
    "users_unknown",
)
ANY_ITEMS = int(np.iinfo(np.int32).max)
PENDING_ENTRIES = 2**18  # of lists that wait until they are ranked together


class StreamedLists(Lists):
    """Where judged items landed in lists that came batch by batch; of the lists, what is asked for.

    Batches are ranked for their users alone, and wait for it until they are many: a call costs
    more than a short list. What they take from test, train and the catalogue is the same for all,
    so that neither their order nor their sizes change anything.

    Parameters
    ----------
    request
        What will be asked for; see `rank` and `top`.
    ranked
        Whether `rank` will be asked.
    k
        The number of places that `top` will be asked for. None means that it will not be called.
    counts_others
        Whether users count who have a list, and are not in test.
    """

    def __init__(
        self, request: Request, ranked: bool, k: int | None, counts_others: bool = False
    ) -> None:
        if isinstance(request.candidates, Interactions | SampledCandidates):
            raise InputError(
                "candidates= are sets of each user, which lists are not read for batch by batch. "
                "Hint: evaluate all lists in one call; one list of candidates for all users can "
                "be given, and scores take any."
            )
        self._asked, self._k = dataclasses.replace(request, progress=False), k
        self._counts_others, self._takes_indices = counts_others, takes_indices(request)
        # What was found for all users at once, and of no other batch.
        self._alone: tuple[Ranks | None, TopLists | None] | None = None
        self._facts: tuple[int, Facts] | None = None  # and of how many lists
        self._is_ranked, self._n_lists, self._ignored = ranked, 0, 0
        self._widest = self._repeats = 0  # of lists that are kept; in lists that are not
        self._came = np.zeros(request.test.n_users, bool)
        self.strangers = Strangers()
        self._ids: list[Array] = []  # of the users whose records are kept, part by part
        self._ranked: Kept[Ranks] = Kept(Ranks, alike=alike)
        self._listed: Kept[TopLists] = Kept(TopLists)
        self._items = ItemCodes()
        self._pending: list[NamedLists] = []
        self._indexed: IndexedLists | None = None  # others that wait
        self._n_waiting = 0  # their entries

    @cached_property
    def _request(self) -> Request:
        """The request for batches, whose users have ids."""
        # What is found for a batch is of no use to whoever asks for the whole.
        return dataclasses.replace(_named(self._asked), memory=Memory())

    @cached_property
    def _user_ids(self) -> Array:
        """The ids of the users of test, or their positions."""
        test = self._asked.test
        return np.arange(test.n_users) if test.user_ids is None else test.user_ids

    @property
    def came(self) -> Bool:
        """Whose lists came: bool [n_users], of the users of test."""
        return self._came

    def add(self, batch: Lists, users: Array, places: Int64) -> None:
        """Add a batch of lists.

        Parameters
        ----------
        batch
            Its users have ids; those of a test without ids are its positions.
        users
            The ids of the users with a list.
        places : int64 [n]
            Where these stand in test, -1 for those who are not in it.
        """
        added = NamedLists(batch, users, places)
        # What is wrong with all of them shows in the first one, and an item that does not exist
        # in the largest.
        exist = added.lists.n_positions <= self._request.test.n_items
        if not (self._n_lists and added.is_whole and exist):
            self._rank(added)
            return
        others = self._pending and self._pending[0].kind != batch.kind
        if others or self._n_waiting + added.n_entries > PENDING_ENTRIES:
            self._rank_pending()
        self._pending.append(added)
        self._n_waiting += added.n_entries
        self._came[places] = True

    def take_indices(self, items: Array, places: Int64) -> bool:
        """Add lists of positions of items, if that is all that there is to them.

        Parameters
        ----------
        items : int64 or int32 [n, k], padded with -1
        places : int64 [n]
            Where the users stand in test.

        Returns
        -------
        bool
            Whether they were added. If not, `add` says why, or does what has to be done.
        """
        if not self._takes_indices or not items.size:
            return False
        indexed = self._indexed
        if indexed is None or not indexed.has_room(items):
            if indexed is not None:
                self._rank_pending()
            n, length = items.shape
            most = min(max(n, PENDING_ENTRIES // (length + 1)), len(self._came))
            n_items = min(self._asked.test.n_items, ANY_ITEMS)
            indexed = self._indexed = IndexedLists(most, length, n_items, self._came)
        return indexed.add(items, places)

    def take_more(self, items: Array, places: Array) -> bool:
        """Add lists as `take_indices` does, of any shape and type, if there is room for them."""
        return self._indexed is not None and self._indexed.add(items, places)

    def _rank_pending(self) -> None:
        """Rank the batches that wait; of one that is refused, say so, and keep the others."""
        indexed, self._indexed = self._indexed, None
        if indexed is not None and indexed.n_lists:
            try:
                if indexed.n_lists == len(self._came):
                    self._rank_all(indexed.of_all(self._asked))
                else:
                    self._rank(indexed.together(self._request))
            except RecometerError:
                # Reading the batches one after the other tells which one it is.
                self._pending += indexed.batches(self._request)
        pending, self._pending, self._n_waiting = self._pending, [], 0
        if pending:
            try:
                self._rank(NamedLists.of(pending))
            except RecometerError:
                pass  # of which batch, the next lines find out
            else:
                return
        for number, one in enumerate(pending):
            try:
                self._rank(one)
            except RecometerError as error:
                self._came[one.places] = False
                self._pending = pending[number + 1 :]
                self._n_waiting = sum(left.n_entries for left in self._pending)
                raise type(error)(f"In a batch that came before: {error}") from error

    def _rank(self, added: NamedLists) -> None:
        """Rank a batch of lists, and keep what is asked for."""
        self._keep_alone()
        batch, users, places = added
        known = places >= 0
        others = users[~known] if self._counts_others else users[:0]
        request = self._narrowed(np.sort(places[known]), others)
        listed = batch.facts.known_ids("item")
        if not request.test.n_users:
            if listed is not None:
                self._items.add(listed)
            self._n_lists += len(users)
            self._ignored += len(users)
            if request.protocol.duplicates != "removed":  # they are counted whoever has them
                anybody = self._narrowed(np.zeros(1, np.int64), others)
                self._repeats += batch.rank(anybody).counts.get("list_repeats", 0)
            return
        ranks = lists = None
        if self._is_ranked:
            ranks = batch.rank(request)
        if self._k is not None:
            lists = batch.top(request, self._k)
        # Whatever is refused was refused: now all of it is kept.
        assert request.test.user_ids is not None
        self._ids.append(request.test.user_ids)
        self._came[places[known]] = True
        if listed is not None:
            self._items.add(listed)
        self._keep(ranks, lists)
        self._n_lists += len(users)

    def _rank_all(self, batch: Lists) -> None:
        """Rank lists of positions of all users of test, in their order: as in one call."""
        ranks = batch.rank(self._asked) if self._is_ranked else None
        lists = None if self._k is None else batch.top(self._asked, self._k)
        self._alone = ranks, lists
        if self._n_lists:  # of users who are not in test
            self._keep_alone()
        self._n_lists += batch.n_lists

    def _keep_alone(self) -> None:
        """Add what a batch of all users gave to what other batches gave."""
        if self._alone is not None:
            self._keep(*self._alone)
            self._ids, self._alone = [self._user_ids], None

    def _keep_all(self) -> None:
        self._rank_pending()
        self._keep_alone()

    def _keep(self, ranks: Ranks | None, lists: TopLists | None) -> None:
        if ranks is not None:
            self._ranked.add(self._as_kept(ranks, _of_lists(ranks.counts)))
        if lists is not None:
            counts = _of_lists(lists.counts)
            self._listed.add(dataclasses.replace(self._coded(lists), counts=counts))

    def _narrowed(self, places: Int64, others: Array) -> Request:
        """Return the request for some users of test alone, and some who are not in it."""
        request = self._request
        test = request.test.select_users(places)
        if len(others):
            return dataclasses.replace(request, test=test.with_users(others))
        train = request.train
        if train is not None:
            train = matching.known_users(train, matching.places_of_users(train, test, "train"))
        return dataclasses.replace(request, test=test, train=train)

    def _of_test(self, item_ids: Array | None) -> Int64 | None:
        """Return the place of each item among those of test, None where they are the same."""
        own = self._asked.test.item_ids
        if own is None:
            return None
        assert item_ids is not None  # lists know the items of test
        return ids.match(item_ids, own, "item ids of Lists", "item ids of test")

    def _coded(self, lists: TopLists) -> TopLists:
        """Return lists that know items by their codes, padded to one width."""
        self._widest = max(self._widest, lists.depth)
        assert self._k is not None
        items = np.full((lists.n_users, self._k), -1)
        items[:, : lists.depth] = lists.items
        if lists.item_ids is not None:
            distinct, inverse = np.unique(items, return_inverse=True)
            codes = np.full(len(distinct), -1)
            codes[distinct >= 0] = self._items.add(lists.item_ids[distinct[distinct >= 0]])
            items = codes[inverse].reshape(items.shape)
        return dataclasses.replace(
            lists,
            items=items,
            n_items=ANY_ITEMS,
            n_catalogue=None,
            item_ids=None,
            uncatalogued=None,
        )

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item landed; see `Ranks`."""
        self._rank_pending()
        if self._alone is not None:
            found, _ = self._alone
            assert found is not None
            return found
        base = nobody(request.test).rank(_named(request))
        which, absent = self._order(_named(request).test)
        ranks = self._ranked.together(self._as_kept(base.users(absent), {})).users(which)
        counts = self._counts(base.counts, ranks.counts, self._of_absent(request, absent))
        item, item_ids, own = ranks.item, base.item_ids, request.test.item_ids
        if own is not None:
            assert item_ids is not None  # lists know the items of test
            _, item_ids = self._items.among(item_ids)
            item = ids.match(own, item_ids, "item ids of test")[item]
        return dataclasses.replace(ranks, item=item, counts=counts, item_ids=item_ids)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list; see `TopLists`."""
        self._rank_pending()
        if self._alone is not None:
            _, found = self._alone
            assert found is not None
            return found
        base = nobody(request.test).top(_named(request), k)
        which, absent = self._order(_named(request).test)
        none = dataclasses.replace(
            base.users(absent),
            items=np.full((len(absent), k), -1),
            n_items=ANY_ITEMS,
            n_catalogue=None,
            item_ids=None,
            uncatalogued=None,
            counts={},
        )
        lists = self._listed.together(none).users(which)
        items, n_items, item_ids = lists.items, base.n_items, base.item_ids
        if item_ids is not None:
            places, item_ids = self._items.among(item_ids)
            items, n_items = np.append(places, -1)[items], len(item_ids)
        lacking = base.uncatalogued
        if lacking is not None and request.catalogue is not None:
            assert not isinstance(request.catalogue, int)
            listed = np.unique(items[items >= 0])
            lacking = listed[~items_of(request.catalogue, item_ids, n_items)[listed]]
        return dataclasses.replace(
            lists,
            items=items[:, : max(base.depth, self._widest)],
            n_items=n_items,
            item_ids=item_ids,
            counts=self._counts(base.counts, lists.counts, self._of_absent(request, absent)),
            n_catalogue=base.n_catalogue,
            uncatalogued=lacking,
        )

    def _order(self, test: Interactions) -> tuple[Int64, Int64]:
        """Return where each user of test stands: among what is kept, then those who are absent."""
        assert test.user_ids is not None
        kept = _joined(self._ids, test.user_ids)
        which = ids.match(test.user_ids, kept, "user ids of test", "user ids of the lists")
        absent = np.flatnonzero(which < 0)
        which[absent] = len(kept) + np.arange(len(absent))
        return which, absent

    def _of_absent(self, request: Request, absent: Int64) -> dict[str, int]:
        """Count what the users of test who did not come add."""
        if not len(absent):
            return {}
        test = _named(request).test.select_users(absent)
        alone = dataclasses.replace(_named(request), test=test)
        counts = nobody(request.test).rank(alone).counts
        names = "relevant_not_candidates", "relevant_unranked"
        return {"users_unknown": len(absent), **{name: counts.get(name, 0) for name in names}}

    def _counts(
        self, base: Mapping[str, int], counted: Mapping[str, int], absent: Mapping[str, int]
    ) -> dict[str, int]:
        """Put counts that do not depend on lists beside those that do."""
        found = {name: count for name, count in base.items() if name not in OF_LISTS}
        more = {**absent, "list_users_ignored": self._ignored}
        if "list_repeats" in counted:
            more["list_repeats"] = self._repeats
        for name, count in (*counted.items(), *more.items()):
            found[name] = found.get(name, 0) + count
        last = [(name, found.pop(name, 0)) for name in ("list_repeats", "cut_in_ties")]
        return {name: count for name, count in (*sorted(found.items()), *last) if count}

    def _as_kept(self, ranks: Ranks, counts: Mapping[str, int]) -> Ranks:
        """Return ranks whose items are those of test, and other counts with them."""
        item, places = ranks.item, self._of_test(ranks.item_ids)
        if places is not None:
            item = places[item]
        return dataclasses.replace(ranks, item=item, item_ids=None, counts=counts)

    def _listed_users(self) -> Array:
        """Return the ids (or positions) of users with a list, of all who are not in test."""
        return np.sort(_joined(self._ids, self._user_ids))

    def _known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of the users who came, in test or not, or of the listed items."""
        test = self._asked.test
        if kind == "user":
            user_ids = test.user_ids
            return None if user_ids is None else self.strangers.beside(user_ids[self._came])
        if test.item_ids is None:
            return None
        self._keep_all()
        return ids.as_ids(self._items.ids, "item ids of Lists")

    def state(self) -> dict[str, Any]:
        """Return what is kept, as arrays and numbers."""
        self._keep_all()
        return {
            "n_lists": self._n_lists,
            "ignored": self._ignored,
            "widest": self._widest,
            "repeats": self._repeats,
            "users": np.flatnonzero(self._came),
            "ids": list(self._ids),
            "ranked": self._ranked.state(),
            "listed": self._listed.state(),
            "items": self._items.ids,
            "strangers": self.strangers.state(),
        }

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids of users who came to another one, too."""
        both: Array = self._user_ids[state["users"][self._came[state["users"]]]]
        return both

    def take(self, state: Mapping[str, Any]) -> None:
        """Add what `state` of another one returned; of users in both, ours stays."""
        self._keep_all()
        theirs, ours = (_joined(parts, self._user_ids) for parts in (state["ids"], self._ids))
        new = ids.match(theirs, ours, "user ids", "user ids") < 0
        stays = np.flatnonzero(new)
        codes = self._items.add(state["items"])
        ranked: Kept[Ranks] = Kept(Ranks, alike=alike)
        listed: Kept[TopLists] = Kept(TopLists)
        for kept, name in ((ranked, "ranked"), (listed, "listed")):
            kept.take(state[name])
        if state["ranked"]:
            self._ranked.add(ranked.together().users(stays))
        if state["listed"]:
            lists = listed.together().users(stays)
            items = np.append(codes, -1)[lists.items] if len(codes) else lists.items
            self._listed.add(dataclasses.replace(lists, items=items))
        self._ids.append(theirs[stays])
        self._n_lists += state["n_lists"] - len(self.in_both(state))
        self._came[state["users"]] = True
        for part in state["strangers"]:
            self.strangers.add(part)
        self._ignored += state["ignored"]
        self._repeats += state["repeats"]
        self._widest = max(self._widest, state["widest"])

    @property
    def nbytes(self) -> int:
        """The memory of what is kept."""
        self._keep_all()
        users = sum(part.nbytes for part in self._ids)
        return self._ranked.nbytes + self._listed.nbytes + users + self._came.nbytes

    def describe(self) -> str:
        """Return one line that describes what is evaluated, once it was ranked."""
        return f"Lists, streamed: {self._n_lists:,} lists"

    @property
    def facts(self) -> Facts:
        """What was counted so far."""
        self._rank_pending()
        if self._facts is None or self._facts[0] != self._n_lists:
            self._facts = self._n_lists, self._found_facts()
        return self._facts[1]

    def _found_facts(self) -> Facts:
        if self._alone is None:
            users = _joined(self._ids, self._user_ids)
            order = np.argsort(users, kind="stable")
            users = users[order]
            ranks = self._ranked.together().users(order) if self._ranked else None
        else:
            users, ranks = self._user_ids, self._alone[0]
        found: dict[str, object] = {"user_ids": users}
        if ranks is not None:
            names = ["indptr", "item", "above", "depth"]
            names += ["tied", "before"] if any_of(ranks.tied) else []
            found |= {name: getattr(ranks, name) for name in names}
        return Facts(
            found,
            known=self._known_ids,
            listed=self._listed_users,
            input_order=True,
            repeats_items=True,
            sized=False,
            of_unknown=NO_BATCH,
        )


def nobody(test: Interactions) -> Lists:
    """Return lists of nobody, which know all that does not depend on any list."""
    first = np.zeros(1, np.int64) if test.user_ids is None else test.user_ids[:1]
    n_items = 0 if test.item_ids is None else len(test.item_ids)
    none = np.zeros(2, np.int64), np.zeros(0, np.int32), n_items, None, first, test.item_ids
    return Lists.of_table(ListTable(*none), None)


def _named(request: Request) -> Request:
    """Give the users of a request their positions as ids, where they have none."""
    if request.test.user_ids is not None:
        return request
    users = np.arange(request.test.n_users)
    test, train = dataclasses.replace(request.test, user_ids=users), request.train
    if train is not None and train.user_ids is None:
        matching.users_in(train, request.test, "train")  # refuses other numbers of users
        train = dataclasses.replace(train, user_ids=np.arange(train.n_users))
    return dataclasses.replace(request, test=test, train=train)


def _joined(parts: list[Array], like: Array) -> Array:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else like[:0]


def _of_lists(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name in OF_LISTS}
