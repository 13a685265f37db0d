"""Small rankings, computed by comparing all pairs of items, and strategies that draw them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64
from recometer.metrics import METRICS
from recometer.metrics.parameters import Value
from recometer.protocol import RelevantFrom
from recometer.ranks import Ranks, UserFlag


def rank(
    scores: npt.ArrayLike,
    gains: npt.ArrayLike,
    excluded: npt.ArrayLike | None = None,
    unranked: npt.ArrayLike | None = None,
    *,
    relevant_from: RelevantFrom = None,
) -> Ranks:
    """Rank a few items for a few users.

    Parameters
    ----------
    scores : float [n_users, n_items], or [n_items] for one user
    gains : float, of the same shape
        The values in the test data, with NaN for items that were not judged.
    excluded : bool, of the same shape, optional
        Whether an item is a training item, which is neither a candidate nor judged.
    unranked : bool, of the same shape, optional
        Whether an item is unknown to the source, and thus not a candidate.
    relevant_from : float or str, optional
        As in `Protocol`.
    """
    scores = np.atleast_2d(np.asarray(scores, np.float64))
    gains = np.atleast_2d(np.asarray(gains, np.float64))
    excluded = np.atleast_2d(_mask(excluded, scores))
    unranked = np.atleast_2d(_mask(unranked, scores))
    n_users, n_items = scores.shape
    rows: list[tuple[int, int, int, int, float, bool]] = []
    indptr, n_relevant, n_candidates, flags = [0], [], [], []
    for user in range(n_users):
        score = scores[user].tolist()
        candidates = [i for i in range(n_items) if not excluded[user, i] and not unranked[user, i]]
        judged = []
        for item in range(n_items):
            gain = float(gains[user, item])
            if math.isnan(gain) or excluded[user, item]:
                continue
            above, tied, before = -1, 0, 0
            if not unranked[user, item]:
                above = sum(score[other] > score[item] for other in candidates)
                equal = [o for o in candidates if score[o] == score[item] and o != item]
                tied, before = len(equal), sum(other < item for other in equal)
            judged.append((item, above, tied, before, gain, is_relevant(gain, relevant_from)))
        judged.sort(key=lambda row: (row[1] < 0, row[1], row[3]))
        rows += judged
        indptr.append(len(rows))
        n_relevant.append(sum(row[5] for row in judged))
        n_candidates.append(len(candidates))
        constant = len({score[i] for i in candidates}) == 1
        flags.append(
            UserFlag.KNOWN
            | (UserFlag.TRAINED if excluded[user].any() else 0)
            | (UserFlag.CONSTANT_SCORES if constant else 0)
        )
    columns: list[tuple[float, ...]] = list(zip(*rows, strict=True)) or [()] * 6
    return Ranks(
        indptr=np.array(indptr, np.int64),
        item=np.array(columns[0], np.int64),
        above=np.array(columns[1], np.int64),
        tied=np.array(columns[2], np.int64),
        before=np.array(columns[3], np.int64),
        gain=np.array(columns[4], np.float64),
        relevant=np.array(columns[5], np.bool_),
        n_relevant=np.array(n_relevant, np.int64),
        n_candidates=np.array(n_candidates, np.int64),
        n_excluded=excluded.sum(axis=1, dtype=np.int64),
        depth=np.array(n_candidates, np.int64),
        flags=np.array(flags, np.uint32),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class RankingCase:
    """A small evaluation: the arguments of `rank`, all of them arrays [n_users, n_items]."""

    scores: Float64
    gains: Float64
    excluded: Bool
    unranked: Bool

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.scores)

    def users(self, which: Sequence[int]) -> RankingCase:
        """Return a case with only some of the users, in this order."""
        rows = list(which)
        return RankingCase(
            self.scores[rows], self.gains[rows], self.excluded[rows], self.unranked[rows]
        )

    def ranks(self, *, relevant_from: RelevantFrom = None) -> Ranks:
        """Rank the items, and set their popularities and propensities; see `observed`."""
        return observed(
            rank(self.scores, self.gains, self.excluded, self.unranked, relevant_from=relevant_from)
        )

    def orders(self, user: int) -> Iterator[list[int]]:
        """Return every order of a user's candidates that agrees with the scores."""
        candidates = np.flatnonzero(~self.excluded[user] & ~self.unranked[user])
        return orders({int(item): float(self.scores[user, item]) for item in candidates})


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    min_users: int = 1,
    max_users: int = 3,
    max_items: int = 5,
    gains: st.SearchStrategy[float] | None = None,
) -> RankingCase:
    """Draw a `RankingCase` with many ties and all special kinds of items.

    Parameters
    ----------
    min_users, max_users, max_items
        The size of the case. Five items have at most 120 orders.
    gains
        Values in the test data; NaN stands for items that were not judged. By default, some values
        are negative or 0.
    """
    if gains is None:
        gains = st.sampled_from([math.nan, 1.0, 0.0, 2.0, 0.5, -1.0])
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))

    def table(elements: st.SearchStrategy[float] | st.SearchStrategy[bool]) -> list[list[float]]:
        row = st.lists(elements, min_size=n_items, max_size=n_items)
        return draw(st.lists(row, min_size=n_users, max_size=n_users))

    seldom = st.sampled_from([False, False, False, False, True])
    return RankingCase(
        scores=np.array(table(st.sampled_from([0.0, 1.0, 2.0, 3.0])), np.float64),
        gains=np.array(table(gains), np.float64),
        excluded=np.array(table(seldom), np.bool_),
        unranked=np.array(table(seldom), np.bool_),
    )


def variants(name: str) -> list[dict[str, Value]]:
    """Return sets of parameters of a metric: the defaults, and sets in which one value differs.

    For numbers, the values that differ are `Parameter.examples`.
    """
    parameters = METRICS[name].parameters
    given: dict[str, Value] = {
        parameter.name: parameter.examples[0]
        for parameter in parameters.values()
        if parameter.from_test
    }
    found: list[dict[str, Value]] = [given]
    for parameter in parameters.values():
        values: list[Value] = [*parameter.choices, *parameter.examples]
        if parameter.is_flag:
            values.append(True)
        found += [given | {parameter.name: value} for value in values]
    return found


def orders(scores: Mapping[int, float]) -> Iterator[list[int]]:
    """Yield every order of the items by descending score, with tied items in all orders."""
    ties = [
        [item for item in scores if scores[item] == score]
        for score in sorted(set(scores.values()), reverse=True)
    ]
    for parts in itertools.product(*map(itertools.permutations, ties)):
        yield [item for part in parts for item in part]


def is_relevant(gain: float, relevant_from: RelevantFrom) -> bool:
    """Return whether an item with this gain is relevant."""
    if relevant_from is None:
        return gain > 0
    return gain != 0 if relevant_from == "not_zero" else gain >= relevant_from


def observed(ranks: Ranks) -> Ranks:
    """Set the popularity and the propensity of each item to ``1 / (1 + abs(gain))``.

    Better items thus have lower propensities, so weighting by propensity agrees with the gains.
    """
    chance = 1 / (1 + np.abs(ranks.gain))
    return dataclasses.replace(ranks, popularity=chance, propensity=chance)


def _mask(mask: npt.ArrayLike | None, like: Float64) -> Bool:
    return np.zeros(like.shape, np.bool_) if mask is None else np.asarray(mask, np.bool_)
