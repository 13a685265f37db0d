"""Sources that rank only judged documents, or count every place of a repeated item."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer.arrays import Array, Float64, Int64, UInt64
from recometer.data.interactions import Interactions
from recometer.data.matching import find_rows, relevant_rows
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Facts, Request, Source

Single = npt.NDArray[np.float32]
MOST_TIED = 2**18  # `of` searches for tied documents in runs of at most this total length


class JudgedDocuments(Source):
    """A source that knows the ranks of each query's judged documents in a run.

    Parameters
    ----------
    test
        The judged documents, numbered from 0 within each query, and their grades.
    above, tied, before : int64 [n_judged]
        The positions of the judged documents, as in `Ranks`, in the order of `test`.
    lengths : int64 [n_queries]
        The number of documents in each run.
    """

    def __init__(
        self, test: Interactions, above: Int64, tied: Int64, before: Int64, lengths: Int64
    ) -> None:
        self._test, self._lengths = test, lengths
        self._above, self._tied, self._before = above, tied, before

    @classmethod
    def of(
        cls, run: Mapping[str, Mapping[str, float]], judged: Mapping[str, Mapping[str, int]]
    ) -> JudgedDocuments | None:
        """Rank the judged documents, or return None if the run does not allow it.

        Ids must be strings, and scores must be finite and rarely equal.

        A grade below 0 means that a document was not judged. Such documents are left out, unless
        the qrels of the query contain no others.
        """
        lists, truths = list(run.values()), [judged[query] for query in run]
        try:
            "".join(itertools.chain(run, *lists, *truths))  # faster than checking each id
            for scores_of_query in lists:
                sum(scores_of_query.values())  # unlike NumPy, raises an error for strings
        except TypeError:
            return None
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        first = ragged.indptr_of(lengths)
        every = itertools.chain.from_iterable(documents.values() for documents in lists)
        scores = _single(np.fromiter(every, np.float64, int(first[-1])))
        if not np.isfinite(scores).all():
            return None
        keys = _keys(ragged.users_of(first), scores)
        test, documents, wanted = _judgements(lists, truths)
        user, rows = ragged.users_of(test.indptr), np.flatnonzero(~np.isnan(wanted))
        keys_of_rows, in_order = _keys(user[rows], wanted[rows]), keys.copy()
        for begin, end in itertools.pairwise(first.tolist()):  # much faster than a single sort
            in_order[begin:end].sort()
        above, tied, before = (np.full(len(user), number) for number in (-1, 0, 0))
        left, right = (in_order.searchsorted(keys_of_rows, side) for side in ("left", "right"))
        above[rows], tied[rows] = left - first[user[rows]], right - left - 1
        several = np.flatnonzero(tied[rows])
        if lengths[user[rows[several]]].sum() > MOST_TIED:
            return None
        for row, key in zip(rows[several].tolist(), keys_of_rows[several], strict=True):
            query, document = int(user[row]), documents[row]
            equal = (keys[first[query] : first[query + 1]] == key).tolist()
            others = itertools.compress(lists[query], equal)
            before[row] = sum(other < document for other in others)
        return cls(test, above, tied, before, lengths)

    def rank(self, request: Request) -> Ranks:
        """Return the ranks of the judged documents."""
        test, n = self._test, len(self._lengths)
        order = np.empty(len(self._above), np.int64)
        _kernel.best_first(test.indptr, self._above, self._before, order)
        relevant = relevant_rows(test, request.protocol.relevant_from)
        assert test.values is not None
        return Ranks(
            indptr=test.indptr,
            item=test.items[order].astype(np.int64),
            above=self._above[order],
            tied=self._tied[order],
            before=self._before[order],
            gain=test.values[order],
            relevant=relevant[order],
            n_relevant=np.diff(ragged.offsets(relevant, test.indptr)),
            n_candidates=np.full(n, -1),
            n_excluded=np.zeros(n, np.int64),
            depth=self._lengths,
            flags=np.full(n, UserFlag.KNOWN, np.uint32),
        )

    def describe(self) -> str:
        """Return a one-line description of what is evaluated."""
        return f"Runs: {len(self._lengths):,} queries, {int(self._lengths.sum()):,} documents"

    @property
    def facts(self) -> Facts:
        """The arrays of the source, and the judged documents as its test data."""
        arrays = {"above": self._above, "tied": self._tied, "before": self._before}
        return Facts(arrays, truth=self._test)


class CountedPlaces(Source):
    """Lists in which an item counts at each of its places, and -1 is padding.

    Parameters
    ----------
    lists : integers [n_users, k]
        Item numbers, best first.
    n_items : int
    filler : float64 [n_users], optional
        Each user's gain for the padding -1, as if it were a relevant item; 0 makes it a miss.
    truth
        The test data, if they come with the lists.
    """

    def __init__(
        self,
        lists: Array,
        n_items: int,
        filler: Float64 | None = None,
        truth: Interactions | None = None,
    ) -> None:
        self.lists, self.n_items, self.filler, self.truth = lists, n_items, filler, truth

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item is ranked, with a row for each place of a repeated item."""
        test, (n_users, k) = request.test, self.lists.shape
        n_judged = len(test.items)
        indptr = np.arange(n_users + 1, dtype=np.int64) * k
        items = self.lists.astype(np.int32).reshape(-1)
        row_of_place = find_rows(indptr, items, test.indptr, test.items)
        at = np.flatnonzero(row_of_place >= 0)
        found, (user, place) = row_of_place[at], np.divmod(at, k)
        missed = np.flatnonzero(np.bincount(found, minlength=n_judged) == 0)
        rows = np.concatenate([found, missed])
        above = np.concatenate([place, np.full(len(missed), -1)])
        owner = np.concatenate([user, ragged.users_of(test.indptr)[missed]])
        gains = np.ones(n_judged) if test.values is None else test.values
        gain, item = gains[rows], test.items[rows].astype(np.int64)
        if self.filler is not None:
            user, place = np.nonzero((self.lists < 0) & (self.filler[:, np.newaxis] > 0))
            owner, above = np.append(owner, user), np.append(above, place)
            gain = np.append(gain, self.filler[user])
            item, rows = (np.append(one, np.full(len(user), -1)) for one in (item, rows))
            order = np.lexsort((above, above < 0, owner))
        else:
            # Found rows come first in each user's rows, because the sort is stable.
            order = np.argsort(owner, kind="stable")
        rows, repeated = rows[order], None
        if len(rows) > n_judged:  # some items are at several places
            repeated = np.ones(len(rows), dtype=bool)
            first = np.unique(rows, return_index=True)[1]
            repeated[first[rows[first] >= 0]] = False
        n_relevant = np.diff(test.indptr)
        return Ranks(
            indptr=ragged.indptr_of(np.bincount(owner, minlength=n_users)),
            item=item[order],
            above=above[order],
            tied=np.zeros(len(rows), np.int64),
            before=np.zeros(len(rows), np.int64),
            gain=gain[order],
            relevant=np.ones(len(rows), dtype=bool),
            n_relevant=n_relevant,
            n_candidates=np.full(n_users, self.n_items),
            n_excluded=np.zeros(n_users, np.int64),
            depth=np.full(n_users, k),
            flags=np.full(n_users, UserFlag.KNOWN, np.uint32),
            repeated=repeated,
            n_rankable=n_relevant,
            copies=None if test.copies is None else np.where(rows < 0, 1, test.copies[rows]),
        )

    def describe(self) -> str:
        """Return a one-line description of what is evaluated."""
        return f"Lists: {self.lists.shape[0]:,} users, {self.lists.shape[1]:,} places"

    @property
    def facts(self) -> Facts:
        """The lists, the gains of padding, and the test data if they come with the lists."""
        arrays = {"lists": self.lists, "filler": self.filler}
        return Facts(arrays, truth=self.truth, input_order=True)


def _judgements(
    lists: Sequence[Mapping[str, float]], truths: Sequence[Mapping[str, int]]
) -> tuple[Interactions, list[str], Single]:
    """Return the judged documents, their ids, and their scores (NaN if they are not in the run)."""
    grades, scores = (
        np.array([*itertools.chain.from_iterable(column)], np.float64)
        for column in (
            (truth.values() for truth in truths),
            (map(of.get, truth) for of, truth in zip(lists, truths, strict=True)),
        )
    )
    indptr = ragged.indptr_of(np.fromiter(map(len, truths), np.int64, len(truths)))
    user, seen = ragged.users_of(indptr), grades >= 0
    kept = seen | (np.bincount(user[seen], minlength=len(truths)) == 0)[user]
    documents = [*itertools.compress(itertools.chain.from_iterable(truths), kept.tolist())]
    indptr, user = ragged.offsets(kept, indptr), user[kept]
    items = np.arange(len(user)) - indptr[user]
    test = Interactions(
        indptr=indptr,
        items=items.astype(np.int32),
        n_items=int(items.max(initial=0)) + 1,
        values=np.where(seen, grades, 0.0)[kept],
    )
    return test, documents, _single(scores[kept])


def _single(scores: Float64) -> Single:
    """Round scores to single precision, in which trec_eval compares them."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _keys(user: Int64, scores: Single) -> UInt64:
    """Return integers whose ascending order is by user, and for each user by descending score."""
    bits = (np.float32(0) - scores).view(np.uint32)  # 0 and -0 become equal
    # Floats sort like their bits once the bits of negative floats are inverted, and the sign bit of
    # all other floats is set.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    return (user.astype(np.uint64) << np.uint64(32)) | bits
