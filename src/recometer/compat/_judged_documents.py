"""The ranks of judged documents in runs, without numbering all documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Float64, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import relevant_rows
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Facts, Request, Source

LARGEST = 1e300  # if the sum of scores is smaller, all scores are finite
MOST_TIED = 2**18  # maximum number of documents with equal scores to compare one by one
MOST_PADDED = 4  # maximum number of places per document in the padded table of runs


class JudgedDocuments(Source):
    """The ranks of each query's judged documents in its run, which is ordered by scores.

    Parameters
    ----------
    test
        The judged documents, numbered from 0 on within each query, and their grades.
    above, tied, before : int64 [n_judged]
        As in `Ranks`, in the order of test.
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
        """Rank judged documents; None unless ids are strings, and scores finite and rarely equal.

        A grade below 0 means that a document was not judged. Such documents are left out, unless
        the query has no other documents.
        """
        lists = list(run.values())
        if not (_are_plain(lists) and _are_texts([run, *(judged[query] for query in run)])):
            return None
        grades = _Grades(run, judged)
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        scores = _sorted_rows(lists, lengths)
        if scores is None:
            return None
        there = np.flatnonzero(~np.isnan(grades.scores))
        wanted, user = -grades.scores[there], grades.user[there]
        n = len(grades.scores)
        above, tied, before = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
        above[there] = _count_below(scores, lengths, user, wanted, equal=False)
        tied[there] = _count_below(scores, lengths, user, wanted, equal=True) - above[there] - 1
        several = np.flatnonzero(tied)
        if lengths[grades.user[several]].sum() > MOST_TIED:
            return None
        for row in several.tolist():
            document, score = grades.documents[row], grades.scores.item(row)
            of = lists[grades.user.item(row)]
            equal = (_single(list(of.values())) == score).tolist()
            before[row] = sum(other < document for other in itertools.compress(of, equal))
        return cls(grades.test(), above, tied, before, lengths)

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged document; see `Ranks`."""
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
        """Return one line that describes what is evaluated."""
        return f"Runs: {len(self._lengths):,} queries, {int(self._lengths.sum()):,} documents"

    @property
    def facts(self) -> Facts:
        """The arrays of the source, and the judged documents as the truth."""
        arrays = {"above": self._above, "tied": self._tied, "before": self._before}
        return Facts(arrays, truth=self._test)


class _Grades:
    """The judged documents of the queries in a run, with their grades and scores."""

    def __init__(
        self, run: Mapping[str, Mapping[str, float]], judged: Mapping[str, Mapping[str, int]]
    ) -> None:
        documents: list[str] = []
        grades: list[int] = []
        scores: list[float | None] = []
        lengths = []
        for query, of in run.items():
            known = judged[query]
            documents += known
            grades += known.values()
            scores += map(of.get, known)
            lengths.append(len(known))
        grade = np.array(grades, np.float64)
        indptr = ragged.indptr_of(np.array(lengths, np.int64))
        user = ragged.users_of(indptr)
        seen = grade >= 0
        nothing_seen = np.bincount(user[seen], minlength=len(lengths))[user] == 0
        kept = seen | nothing_seen
        self.documents = list(itertools.compress(documents, kept.tolist()))
        self.grades: Float64 = np.where(seen, grade, 0.0)[kept]
        # NaN if the document is not in the run.
        self.scores: Float64 = _single(np.array(scores, np.float64))[kept]
        self.indptr, self.user = ragged.offsets(kept, indptr), user[kept]

    def test(self) -> Interactions:
        """Return the judged documents, numbered from 0 on within each query."""
        items = np.arange(len(self.user)) - self.indptr[self.user]
        return Interactions(
            indptr=self.indptr,
            items=items.astype(np.int32),
            n_items=int(items.max(initial=0)) + 1,
            values=self.grades,
        )


def _are_texts(lists: Iterable[Mapping[str, object]]) -> bool:
    """Return whether all keys are strings."""
    try:
        for of in lists:
            "".join(of)  # joining is much faster than checking each key
    except TypeError:
        return False
    return True


def _are_plain(lists: Sequence[Mapping[str, float]]) -> bool:
    """Return whether all documents are strings, and all scores finite numbers."""
    try:
        finite = all(-LARGEST < sum(of.values()) < LARGEST for of in lists)
    except TypeError:
        return False
    return finite and _are_texts(lists)


def _sorted_rows(lists: Sequence[Mapping[str, float]], lengths: Int64) -> Float64 | None:
    """Return a table with the negated scores of each list, ascending and padded with NaN.

    Return None if the table would take too much memory.
    """
    n, longest = len(lists), int(lengths.max(initial=0))
    total = int(lengths.sum())
    if n * longest > MOST_PADDED * total + MOST_TIED:
        return None
    every = itertools.chain.from_iterable(of.values() for of in lists)
    scores = -_single(np.fromiter(every, np.float64, total))
    if total == n * longest:
        rows = scores.reshape(n, longest)
    else:
        rows = np.full((n, longest), np.nan)
        rows[np.arange(longest) < lengths[:, np.newaxis]] = scores
    rows.sort(axis=1)
    return rows


def _single(scores: Float64 | list[float]) -> Float64:
    """Round scores to single precision, in which trec_eval compares them."""
    with np.errstate(over="ignore"):
        return np.asarray(scores, np.float64).astype(np.float32).astype(np.float64)


def _count_below(
    rows: Float64, lengths: Int64, user: Int64, wanted: Float64, *, equal: bool
) -> Int64:
    """Count the numbers in a user's row below (or if `equal`, up to) a number, by bisection."""
    low, high = np.zeros(len(user), np.int64), lengths[user]
    flat, begin, last = rows.reshape(-1), user * rows.shape[1], max(rows.shape[1] - 1, 0)
    for _ in range(rows.shape[1].bit_length()):
        middle = (low + high) >> 1
        there = flat[begin + np.minimum(middle, last)]
        below = (there <= wanted if equal else there < wanted) & (middle < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    return low
