"""Scored candidates with the truth beside them, batch by batch: where each of them landed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64, begins
from recometer.data.interactions import Interactions
from recometer.errors import InputError
from recometer.ranks import Ranks, Ratings
from recometer.remembered import cached_property
from recometer.sources.base import Facts, Request, Source
from recometer.sources.kept import Came, ItemCodes, Kept
from recometer.sources.pairs import UNREAD, UNREAD_WITH_TRUTH, Pairs


class StreamedPairs:
    """Where candidates landed that came batch by batch, with the truth beside their scores.

    The users of a batch are ranked among its rows, and all rows of a user come in one batch.

    Parameters
    ----------
    ranked, rated
        Whether metrics read ranks, and ratings.
    """

    def __init__(self, *, ranked: bool, rated: bool) -> None:
        self._reads_ranks, self._reads_ratings = ranked, rated
        self._ranked: Kept[Ranks] = Kept(Ranks)
        self._rated: Kept[Ratings] = Kept(Ratings, {"ranks": Ranks})
        self._came = Came()
        self._n_users = 0
        self._items: ItemCodes | None = None
        self._largest = 0.0  # gain, also of rows that are in train
        self._n_repeated = 0  # rows that repeat a pair
        self._words, self._says = "", False  # see `CountedPairs`

    @property
    def n_users(self) -> int:
        """How many users came."""
        return self._n_users

    @property
    def names_users(self) -> bool | None:
        """Whether users have ids, or None before the first batch."""
        return bool(len(self._came)) if self._n_users else None

    def came(self, user_ids: Array) -> Bool:
        """Return which of some users came before: bool [n]."""
        return self._came.among(user_ids)

    def add(self, batch: Pairs, request: Request) -> None:
        """Rank a batch of candidates; `request` is that of the batch, whose users are new."""
        test = request.test
        self._check(test)
        if test.item_ids is not None and self._items is None:
            self._items = ItemCodes()
        ratings = batch.ratings(request) if self._reads_ratings else None
        if ratings is not None:
            self._rated.add(dataclasses.replace(ratings, ranks=self._as_kept(ratings.ranks)))
        if ratings is None or self._reads_ranks:
            self._ranked.add(self._as_kept(batch.rank(request)))
        self._n_repeated += batch.n_repeated
        if test.user_ids is not None:
            self._came.add(test.user_ids)
        if test.values is not None:
            self._largest = max(self._largest, float(test.values.max(initial=0)))
        self._n_users += test.n_users
        self._words = batch.truth_under(request.protocol)
        self._says = batch.facts.replaces_relevant_from(request.protocol)

    def _check(self, test: Interactions) -> None:
        """Refuse a batch that names users or items if the earlier ones did not."""
        if not self._n_users:
            return
        for what, before, now in (
            ("users", self.names_users, test.user_ids is not None),
            ("items", self._items is not None, test.item_ids is not None),
        ):
            if before is not now:
                raise InputError(
                    f"Some batches name their {what}, and others do not. Hint: all of them do, or "
                    "none."
                )

    def _as_kept(self, ranks: Ranks) -> Ranks:
        """Return ranks whose items are codes, or nothing at all where rows are the items."""
        if self._items is None:
            return dataclasses.replace(ranks, item=np.zeros_like(ranks.item))
        codes = self._items.add(ranks.item_ids)
        return dataclasses.replace(ranks, item=codes[ranks.item], item_ids=None)

    def source(self) -> CountedPairs:
        """Return what came so far as a source.

        The users are in the order of their ids, or as they came where they have none.
        """
        if not self._n_users:
            raise InputError(
                "No batch was added yet, so there is nothing to measure. Hint: "
                "stream.update(scores, relevance)."
            )
        order, user_ids = np.arange(self._n_users), None
        if self.names_users:
            user_ids = self._came.ids
            order = np.argsort(user_ids, kind="stable")
            user_ids = user_ids[order]
        places, item_ids = None, None
        if self._items is not None:
            places, item_ids = self._items.among(np.zeros(0, object))

        def finished(ranks: Ranks) -> Ranks:
            items = np.arange(len(ranks.item)) if places is None else places[ranks.item]
            return dataclasses.replace(ranks, item=items, item_ids=item_ids)

        ratings: Ratings | None = None
        if self._rated:
            ratings = self._rated.together().users(order)
            ranks = finished(ratings.ranks)
            ratings = dataclasses.replace(ratings, ranks=ranks, repeats=self._n_repeated > 0)
        if self._ranked:
            ranks = finished(self._ranked.together().users(order))
        if self._largest > ranks.gain.max(initial=0):
            raise InputError(
                f"The largest truth, {self._largest:g}, is that of rows that are in train. Hint: "
                "leave out the rows of train before they come."
            )
        return CountedPairs(
            ranks, ratings, user_ids, self._words, says=self._says, n_repeated=self._n_repeated
        )

    def state(self) -> dict[str, Any]:
        """Return what is kept, as arrays and numbers."""
        return {
            "ranked": self._ranked.state(),
            "rated": self._rated.state(),
            "users": self._came.ids if self.names_users else self._n_users,
            "items": None if self._items is None else self._items.ids,
            "largest": self._largest,
            "words": (self._words, self._says),
            "repeated": self._n_repeated,
        }

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids of users who came to another one, too."""
        users = state["users"]
        if self._n_users and (isinstance(users, int) == self.names_users):
            raise InputError("The users of one stream have ids, those of the other have none.")
        return np.zeros(0, np.int64) if isinstance(users, int) else users[self._came.among(users)]

    def take(self, state: Mapping[str, Any]) -> None:
        """Add what `state` of another one returned; of users in both, ours stays."""
        users = state["users"]
        n_users = users if isinstance(users, int) else len(users)
        if not n_users:
            return
        stays = np.arange(n_users)
        if not isinstance(users, int):
            stays = np.flatnonzero(~self._came.among(users))
            self._came.add(users[stays])
        codes = None
        if state["items"] is not None:
            self._items = self._items or ItemCodes()
            codes = self._items.add(state["items"])
        ranked: Kept[Ranks] = Kept(Ranks)
        rated: Kept[Ratings] = Kept(Ratings, {"ranks": Ranks})
        ranked.take(state["ranked"])
        rated.take(state["rated"])
        if ranked:
            self._ranked.add(_recoded(ranked.together().users(stays), codes))
        if rated:
            ratings = rated.together().users(stays)
            ratings = dataclasses.replace(ratings, ranks=_recoded(ratings.ranks, codes))
            self._rated.add(ratings)
        self._n_users += len(stays)
        self._largest = max(self._largest, state["largest"])
        self._words, self._says = state["words"]
        self._n_repeated += state["repeated"]

    @property
    def nbytes(self) -> int:
        """The memory of what is kept."""
        return self._ranked.nbytes + self._rated.nbytes + self._came.nbytes


class CountedPairs(Source):
    """Candidates of whom is known where they landed, with the truth.

    `words` are for `describe`, `says` whether thresholds said what is relevant, and `n_repeated`
    how many rows repeated a pair.
    """

    def __init__(
        self,
        ranks: Ranks,
        ratings: Ratings | None,
        user_ids: Array | None,
        words: str,
        *,
        says: bool,
        n_repeated: int,
    ) -> None:
        self._ranks, self._ratings, self._user_ids = ranks, ratings, user_ids
        self._words, self._says, self._n_repeated = words, says, n_repeated

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        ranks = self._ranks
        n_rows = len(ranks.item) + ranks.n_excluded.sum()  # those in train are not judged
        return f"Pairs, streamed: {n_rows:,} rows, {ranks.n_users:,} users{self._words}"

    @cached_property
    def facts(self) -> Facts:
        """What was counted, and the truth."""
        names = ("indptr", "above", "tied", "before", "gain", "relevant")
        return Facts(
            {"user_ids": self._user_ids, **{n: getattr(self._ranks, n) for n in names}},
            truth=self._truth(),
            repeats_items=self._n_repeated > 0,
            unread=UNREAD | UNREAD_WITH_TRUTH,
            threshold=self._says,
            sized=False,
        )

    def _truth(self) -> Interactions:
        """Return the truth of each pair; where rows repeat a pair, the highest."""
        ranks = self._ranks
        order, item = np.arange(len(ranks.item)), ranks.item
        if ranks.item_ids is not None:
            key = ragged.numbered(ranks.indptr, item, len(ranks.item_ids))
            order = np.lexsort((-ranks.gain, key))
            order = order[begins(key[order])]
        return Interactions(
            indptr=ragged.indptr_of(np.bincount(ranks.user[order], minlength=ranks.n_users)),
            items=item[order].astype(np.int32),
            n_items=len(item) if ranks.item_ids is None else len(ranks.item_ids),
            values=ranks.gain[order],
            user_ids=self._user_ids,
            item_ids=ranks.item_ids,
            duplicates=self._n_repeated,
        )

    def rank(self, request: Request) -> Ranks:
        """Return where each row landed; see `Ranks`."""
        return self._ranks

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted beside true ratings, or None without ratings."""
        return self._ratings


def _recoded(ranks: Ranks, codes: Int64 | None) -> Ranks:
    return ranks if codes is None else dataclasses.replace(ranks, item=codes[ranks.item])
