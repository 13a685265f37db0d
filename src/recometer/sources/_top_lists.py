"""The first places of each user's ranking, for all sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer._kernel import TieOrder
from recometer.arrays import Array, Bool, Int32, Int64, UInt64
from recometer.data import ids
from recometer.draws import mix, mixed_seed
from recometer.ranks import Ranks, TopLists, UserFlag, drawn_places
from recometer.sources.alignment import Aligned
from recometer.sources.base import Request, Source

UNDEFINED = UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE


@dataclasses.dataclass(frozen=True)
class Rule:
    """The order of equal scores."""

    order: TieOrder
    keys: UInt64  # seeds of the users' random orders
    # Whether to leave out judged items, because their places are already drawn. The other items
    # fill the free places in their random order.
    unjudged_only: bool = False

    def apply_to(self, aligned: Aligned) -> Aligned:
        """Return the aligned data without the items that the rule leaves out."""
        return exclude_judged(aligned) if self.unjudged_only else aligned


class Best(NamedTuple):
    """The best candidates of each user."""

    # [n_users, k]: items, numbered as in `Aligned`, best first, padded with -1.
    items: npt.NDArray[np.integer]
    n_cut: Int64  # number of candidates that tie with the last item but are not in the list


class Shelf(NamedTuple):
    """The best candidates found so far for a block of users; the kernel fills them in."""

    keys: UInt64  # see `Rule`
    scores: Array  # float32 or float64 [n_users, k]
    items: Int32  # [n_users, k]
    n: Int64  # number of items so far
    n_cut: Int64  # see `Best`

    @classmethod
    def of(cls, keys: UInt64, k: int, dtype: npt.DTypeLike) -> Shelf:
        """Make an empty shelf for the users with these keys."""
        n = len(keys)
        n_found, n_cut = np.zeros(n, np.int64), np.zeros(n, np.int64)
        return cls(keys, np.empty((n, k), dtype), np.full((n, k), -1, np.int32), n_found, n_cut)

    def users(self, block: slice) -> Shelf:
        """Return the shelf of the users in `block`, which shares memory with this one."""
        return Shelf._make(column[block] for column in self)

    def native(self) -> dict[str, Any]:
        """Return the fields as arguments for the kernel."""
        return dict(zip(("keys", "top_scores", "top_items", "n", "left"), self, strict=True))

    def find_constant(self, n_candidates: Int64) -> Bool:
        """Return a mask of users whose candidates all have the same score, as bool [n_users]."""
        last = self.scores[np.arange(len(self.n)), self.n - 1]
        equal = self.scores[:, 0] == last
        constant: Bool = equal & (n_candidates > 1) & (self.n + self.n_cut == n_candidates)
        return constant


def lists(
    source: Source, request: Request, k: int, best: Callable[[Request, int, Rule], TopLists]
) -> TopLists:
    """Return the first places of each user's ranking under any rule for ties; see `Source.top`.

    `best` finds the first places under a single order of equal scores.
    """
    first, *drawn = rules(request)
    lists = best(request, k, first)
    if not drawn:
        return lists
    unjudged = best(request, k, drawn[0])
    ranks = source.rank(dataclasses.replace(request, depth=k))
    return dataclasses.replace(lists, items=put_judged(unjudged.items, ranks, request))


def rules(request: Request) -> list[Rule]:
    """Return the orders of equal scores under which `lists` needs the first places.

    There are two orders if the rule for ties is ``"random"``. The second one is for items that are
    not in test; `lists` puts the judged items at the places drawn for them.
    """
    test, ties = request.test, request.protocol.ties
    keys = np.zeros(test.n_users, np.uint64)
    if ties == "item_desc":
        return [Rule(TieOrder.ITEM_DESCENDING, keys)]
    if ties != "random":
        return [Rule(TieOrder.ITEM, keys)]
    drawn = mix(mixed_seed(request.seed) ^ ids.user_keys(test.user_ids, test.n_users))
    return [Rule(TieOrder.ITEM, keys), Rule(TieOrder.RANDOM, drawn, unjudged_only=True)]


def cut_at_random(
    source: Source,
    request: Request,
    k: int,
    depth: int,
    best: Callable[[Request, int, Rule], TopLists],
) -> TopLists:
    """Return the first places under the rule ``"random"``, with lists cut at `depth`.

    If the cut splits a group of equal scores, the items with lower ids stay. Judged items then get
    randomly drawn places; the other items fill the free places, ordered by id.
    """
    top_lists = best(request, max(k, depth), rules(request)[0])
    ranks = source.rank(dataclasses.replace(request, depth=None))
    items = put_judged(drop_judged(top_lists, ranks), ranks, request)
    return dataclasses.replace(top_lists, items=items[:, : min(k, depth)])


def put_judged(unjudged: Int64, ranks: Ranks, request: Request) -> Int64:
    """Put judged items at the places drawn for them, and fill the other places with `unjudged`.

    `unjudged` holds items that are not judged, as int64 [n_users, k], best first, padded with -1.
    """
    user, k, test = ragged.users_of(ranks.indptr), unjudged.shape[1], request.test
    keys = ids.user_keys(test.user_ids, test.n_users)
    place = drawn_places(ranks, user, request.seed, keys)
    undefined = (ranks.flags & np.uint32(UNDEFINED)) != 0
    rows = (ranks.above >= 0) & (place < k) & ~undefined[user]
    items = np.full(unjudged.shape, -1)
    items[user[rows], place[rows]] = ranks.item[rows]
    free = items < 0
    number = np.cumsum(free, axis=1) - 1  # numbers the free places from 0
    items[free] = np.take_along_axis(unjudged, number, axis=1)[free]
    items[undefined] = -1
    return items


def drop_judged(lists: TopLists, ranks: Ranks) -> Int64:
    """Return lists without judged items, as int64 [n_users, k]; later items move up."""
    items, n_items = lists.items, lists.n_items
    numbers = np.sort(ragged.numbered(ranks.indptr, ranks.item, n_items)[ranks.item >= 0])
    listed = ragged.pairs(np.arange(len(items))[:, np.newaxis], items, n_items)
    keep = (items >= 0) & ~ragged.among(listed, numbers)
    order = np.argsort(~keep, axis=1, kind="stable")
    return np.take_along_axis(np.where(keep, items, -1), order, axis=1)


def exclude_judged(aligned: Aligned) -> Aligned:
    """Exclude judged items, as if they were in train."""
    is_candidate = aligned.judged >= 0
    judged = ragged.numbered(aligned.judged_indptr, aligned.judged, aligned.n_items)[is_candidate]
    excluded = ragged.numbered(aligned.excluded_indptr, aligned.excluded, aligned.n_items)
    both = np.sort(np.concatenate([excluded, judged]))
    changes: dict[str, Any] = {
        "excluded_indptr": ragged.indptr_of(
            np.bincount(both // aligned.n_items, minlength=aligned.n_users)
        ),
        "excluded": (both % aligned.n_items).astype(np.int32),
    }
    if aligned.candidates is not None:
        indptr, items = aligned.candidates
        keep = ~ragged.among(ragged.numbered(indptr, items, aligned.n_items), judged)
        changes["candidates"] = ragged.offsets(keep, indptr), items[keep]
    return aligned.copy_with(**changes)


def make_lists(
    aligned: Aligned,
    best: Best,
    k: int,
    *,
    known: Bool | None = None,
    counts: dict[str, int] | None = None,
    n_catalogue: int | None,
) -> TopLists:
    """Make TopLists from the best candidates, after all rules for scores have been applied.

    `best` may have fewer than `k` columns. `known` marks the users with a list, by default the
    users that the source knows. `counts` default to those of `aligned`. For `n_catalogue`, see
    `TopLists`; if users have sets of candidates, it is replaced by the number of items in these.
    """
    known = aligned.rows >= 0 if known is None else known
    flags = np.where(known, aligned.flags, aligned.flags & np.uint32(UserFlag.TRAINED))
    ranked = known & ((flags & np.uint32(UNDEFINED)) == 0)
    # Lists are never longer than the catalogue, even if k is larger.
    items = np.full((aligned.n_users, max(min(k, aligned.n_items), best.items.shape[1])), -1)
    items[:, : best.items.shape[1]] = best.items
    items[~ranked] = -1
    n_items = len(aligned.numbers) if aligned.numbers is not None else aligned.n_items
    if aligned.numbers is not None:
        positions = np.append(np.flatnonzero(aligned.numbers >= 0), -1)
        items = positions[items]  # -1 stays -1
    cut = ranked & (best.n_cut > 0)
    counts = dict(aligned.counts if counts is None else counts)
    if cut.any():
        counts["cut_in_ties"] = int(np.count_nonzero(cut))
    return TopLists(
        items,
        n_items,
        known,
        cut,
        counts,
        flags.astype(np.uint32),
        aligned.item_ids,
        n_catalogue if aligned.n_in_sets is None else aligned.n_in_sets,
    )
