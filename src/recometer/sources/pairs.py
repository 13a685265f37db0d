"""The source `Pairs`, which ranks scored user-item pairs that include the true labels."""

from __future__ import annotations

import copy
import dataclasses
import math
import numbers
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer._kernel import TieOrder
from recometer.arrays import Array, Bool, Float64, Int64, UInt32, begins
from recometer.data import ids, matching
from recometer.data.columns import choose_columns
from recometer.data.frames import is_frame, open_frame
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex, is_relevant
from recometer.data.numbers import all_numbers, as_array, sizes_of, without_mask
from recometer.draws import mix
from recometer.errors import (
    InputError,
    InputTypeError,
    argument_text,
    brief,
    python_or_command,
    rule_text,
    warn,
)
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, TopLists, UserFlag
from recometer.remembered import cached_property
from recometer.sources import _top_lists
from recometer.sources._top_lists import Best, Rule
from recometer.sources.alignment import Aligned, align, best_first, spread
from recometer.sources.base import Facts, Request, Source, rounded
from recometer.tasks import Ticker, run_tasks

UNREAD = {"deep_cutoffs": "cut-offs up to the number of a user's rows are always computed"}
REPEATED = "the rule duplicates decides whether repeated pairs are one item or several"
UNREAD_WITH_TRUTH = {f"repeated_test={value}": REPEATED for value in ("counted", "joined")}
ROWS_PER_TASK = 2**15  # sorting this many rows stays within the cache


class Pairs(Source):
    """Scored user-item pairs, each with its true label (a relevance or a rating).

    The candidates of a user are the user's rows, ranked by score. Rows that repeat a user-item pair
    count as a single candidate, with the best of their scores and the sum of their labels; a
    `DataWarning` says how many there are. The rules ``duplicates`` and ``repeated_test`` can change
    this. Rating metrics read every row. As in `Scores`, a row with a score of -inf is not a
    candidate, unless the rule ``infinite_scores`` ranks it. `evaluate` needs no test data:
    ``rm.evaluate(rm.Pairs(frame, ...), metrics=...)``. Because you choose the candidates, any
    metric accepts any cut-off, even one above the number of candidates.

    Parameters
    ----------
    frame
        A data frame (Polars, pandas, Arrow, DuckDB, ...) with a row per pair, in any order.
    user, item, score
        Columns of the frame. By default, columns with common names are used. With ``item=False``,
        or if there is no column of items, every row is a separate item, in the order of the frame.
        With ``user=["user", "session"]``, each session of a user is ranked separately, as in
        `Interactions.of`.
    relevance
        The column with the relevance of the item to the user.
    rating
        The column with the true rating, which `score` predicts. Rating metrics (rmse,
        rated_precision@k, ...) need it. By default, a column with a common name for relevance or
        rating is used. With ``relevance=False, rating=False``, the rows have no labels, and you
        pass test data to `evaluate` as usual.
    threshold
        A row is relevant if its label is at least this number, and recommended if its score is.
        Without a threshold, the rule ``relevant_from`` decides: by default, a row is relevant if
        its label is above 0. The metrics rated_precision and rated_recall need a threshold. If
        users have individual thresholds, subtract them from both columns, and pass 0.

    Notes
    -----
    Rows without a label (missing or NaN) are left out, and the result counts them. Leave out rows
    whose label marks padding, such as -100, before you make pairs. NaN scores follow the rule
    ``nan_scores``, and infinite scores the rule ``infinite_scores``.

    Raises
    ------
    InputError
        If there are no rows, if no row has a label, or if the threshold cannot be used.
    InputTypeError
        If the argument is not a frame, or the type of a column is not supported.
    ColumnError
        If a column does not exist, or if none or several of the columns have a common name.

    Examples
    --------
    >>> import polars as pl
    >>> import recometer as rm
    >>> frame = pl.DataFrame({
    ...     "user": ["ann"] * 4,
    ...     "item": ["book", "film", "game", "song"],
    ...     "rating": [5, 2, 4, 1],
    ...     "prediction": [4.5, 4.0, 3.0, 1.5],
    ... })
    >>> pairs = rm.Pairs(frame, threshold=3.5)
    >>> result = rm.evaluate(pairs, metrics="rated_precision@3 rated_recall@3 mae ap")
    >>> result.mean()
    {'rated_precision@3': 0.5, 'rated_recall@3': 0.5, 'mae': 1.0, 'ap': 0.8333333333333333}
    """

    def __init__(
        self,
        frame: Any,
        *,
        user: str | Sequence[str] | None = None,
        item: str | Literal[False] | None = None,
        score: str | None = None,
        relevance: str | Literal[False] | None = None,
        rating: str | Literal[False] | None = None,
        threshold: float | None = None,
    ) -> None:
        self.rows = from_frame(
            frame, user=user, item=item, score=score, relevance=relevance, rating=rating
        )
        check_rows(self.rows)
        self.threshold = read_threshold(self.rows, threshold)

    @classmethod
    def of_some_users(
        cls,
        frame: Any,
        *,
        threshold: float | None = None,
        every_item: Array | None = None,
        **columns: Any,
    ) -> Pairs:
        """Read the pairs of some users (or none); those of other users are read elsewhere.

        `columns` maps parameters of the class to column names. `every_item` contains the sorted,
        distinct ids of all users' items; None means the items in this frame.
        """
        options = dict.fromkeys(("user", "item", "score", "relevance", "rating"), False)
        rows = from_frame(frame, **{**options, **columns})
        if every_item is not None:
            assert rows.item_ids is not None
            item = ids.match(rows.item_ids, every_item, "item ids of Pairs")[rows.item]
            rows = dataclasses.replace(
                rows, item=item, item_ids=every_item, n_items=len(every_item)
            )
        return cls.of_rows(rows, threshold)

    @classmethod
    def of_rows(cls, rows: PairRows, threshold: float | None) -> Pairs:
        """Make pairs from rows that have been read already."""
        pairs = cls.__new__(cls)
        pairs.rows, pairs.threshold = rows, read_threshold(rows, threshold)
        return pairs

    @classmethod
    def of(
        cls,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        *,
        sizes: npt.ArrayLike | None = None,
        threshold: float | None = None,
    ) -> Pairs:
        """Make pairs from plain arrays.

        Parameters
        ----------
        relevance, scores : [n_rows]
        groups : [n_rows], optional
            The user (or query) of each row, in any order. None means a single user.
        sizes : int [n_users], optional
            Instead of `groups`, the number of rows of each user, if users' rows are adjacent.
            LightGBM calls this ``group``.
        threshold
            See the class.

        Raises
        ------
        InputError
            If the arrays have different lengths, or the sizes do not add up to their length.

        Examples
        --------
        >>> import recometer as rm
        >>> pairs = rm.Pairs.of([1, 1, 0, 0, 1], [0.4, 0.1, 0.2, 0.5, 0.3])
        >>> rm.evaluate(pairs, metrics="recall@3")["recall@3"]
        array([0.66666667])
        """
        truth, score = _numbers(relevance, "relevance"), _numbers(scores, "scores")
        if sizes is not None:
            if groups is not None:
                raise InputError(
                    "Pairs.of takes groups, one for each row, or sizes=, but not both."
                )
            n_rows = sizes_of(sizes, len(truth))
            groups = np.repeat(np.arange(len(n_rows)), n_rows)
        users = None if groups is None else ids.encode(groups, "groups")
        lengths = {"relevance": len(truth), "scores": len(score)}
        if users is not None:
            lengths["groups"] = len(users[0])
        if len(set(lengths.values())) > 1:
            lengths_text = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
            numbers = np.asarray([] if groups is None else groups)
            hint = ""
            if numbers.dtype.kind in "iu" and numbers.sum() == len(truth):
                hint = (
                    f" Hint: {argument_text('groups')} takes the user of each row; sizes= takes "
                    "the number of rows of each user."
                )
            raise InputError(f"Pairs.of takes arrays of equal length, found {lengths_text}.{hint}")
        rows = sorted_rows(users, None, score, truth, "relevance")
        check_rows(rows)
        return cls.of_rows(rows, threshold)

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        rows = self.rows
        items = "" if rows.item_ids is None else f", {rows.n_items:,} items"
        names = {"relevance": "relevance", "rating": "true ratings", None: "no labels"}
        bound = "" if self.threshold is None else f", relevant if at least {self.threshold:g}"
        return (
            f"Pairs: {len(rows.user):,} rows, {rows.n_users:,} users{items}, {names[rows.kind]}"
            f"{bound}"
        )

    def of_users(self, is_selected: Bool) -> Pairs:
        """Return only the pairs of the users marked in `is_selected` (bool [n_users])."""
        rows, chosen = self.rows, is_selected[self.rows.user]
        return self._with_rows(
            dataclasses.replace(
                rows,
                user=(np.cumsum(is_selected) - 1)[rows.user[chosen]],
                item=rows.item[chosen],
                score=rows.score[chosen],
                truth=None if rows.truth is None else rows.truth[chosen],
                user_ids=None if rows.user_ids is None else rows.user_ids[is_selected],
                n_users=int(np.count_nonzero(is_selected)),
            )
        )

    def _with_rows(self, rows: PairRows) -> Pairs:
        """Return a copy of these pairs with other rows."""
        part = copy.copy(self)
        vars(part).pop("facts", None)
        part.rows = rows
        return part

    @cached_property
    def facts(self) -> Facts:
        """The rows and their ids, the label of each pair, and the threshold."""
        rows, truth, threshold = self.rows, self._truth(), self.threshold
        names = ("user", "item", "score", "truth", "user_ids", "item_ids")
        arrays = {name: getattr(rows, name) for name in names}
        return Facts(
            {**arrays, "threshold": None if threshold is None else np.array(threshold)},
            truth=truth,
            repeats_items=self.n_repeated > 0,
            unread=UNREAD if truth is None else UNREAD | UNREAD_WITH_TRUTH,
            threshold=threshold is not None,
        )

    def _truth(self) -> Interactions | None:
        """Return the label of each pair: the sum over the rows that repeat the pair."""
        rows = self.rows
        if rows.truth is None:
            return None
        first = rows.first
        users = rows.user[first]
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.add.reduceat(rows.truth, first) if self.n_repeated else rows.truth
        return Interactions(
            indptr=ragged.indptr_of(np.bincount(users, minlength=rows.n_users)),
            items=rows.item[first].astype(np.int32),
            n_items=rows.n_items,
            values=values,
            user_ids=rows.user_ids,
            item_ids=rows.item_ids,
            duplicates=self.n_repeated,
            largest=np.maximum.reduceat(rows.truth, first) if self.n_repeated else None,
        )

    @property
    def n_repeated(self) -> int:
        """The number of rows that repeat a user-item pair."""
        return len(self.rows.user) - len(self.rows.first)

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each pair, or of each judged test item; see `Ranks`."""
        return self._unrepeated(request)._rank(request)[0]

    def _unrepeated(self, request: Request) -> Pairs:
        """Return a copy with each pair only once, unless the rule `duplicates` keeps all rows.

        The remaining rows get the labels of their pairs, unless each row is a separate item.
        """
        rows, rules = self.rows, request.protocol
        if not self.n_repeated or rows.truth is None or rules.duplicates == "joined":
            return self
        rules_key = rules.nan_scores, rules.repeated_test, rules.duplicates
        return request.memory.find(
            "pairs", rules_key, lambda: self._find_unrepeated(request), same=(self, request.test)
        )

    def _find_unrepeated(self, request: Request) -> Pairs:
        rows, first, rules, test = self.rows, self.rows.first, request.protocol, request.test
        if len(test) != len(first):  # test has different users from these pairs
            own = cast(Interactions, self.facts.truth)
            test = matching.resolve_repeats(own, rules.repeated_test)
        if self.threshold is not None and rules.repeated_test == "once":
            raise matching.threshold_error(self.n_repeated, len(first), "threshold=")
        matching.relevant_rows(test, rules.relevant_from)  # refuses thresholds for sums of labels
        assert test.values is not None
        n_rows = np.diff(first, append=len(rows.user))
        if rules.duplicates == "removed":
            if not request.some_users:
                self._warn_of_repeats(int(first[n_rows.argmax()]))
            best = np.fmax if rules.nan_scores == "last" else np.maximum
            unrepeated = dataclasses.replace(
                rows,
                user=rows.user[first],
                item=rows.item[first],
                score=best.reduceat(rows.score, first),
                truth=test.values,
            )
            return self._with_rows(unrepeated)
        return self._with_rows(dataclasses.replace(rows, truth=np.repeat(test.values, n_rows)))

    def _warn_of_repeats(self, row: int) -> None:
        rows = self.rows
        user = "0" if rows.user_ids is None else ids.show(rows.user_ids, int(rows.user[row]))
        assert rows.item_ids is not None
        warn(
            f"{self.n_repeated:,} of {len(rows.user):,} rows of Pairs repeat a user-item pair (the "
            f"first: user {user} and item {ids.show(rows.item_ids, int(rows.item[row]))}); each "
            "pair is ranked once, by its best score, and its labels are added up. Hint: "
            f"{rule_text('duplicates', 'joined')} ranks every row as a separate item; "
            f"{rule_text('repeated_test', 'largest')} takes the largest label."
        )

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted and true ratings, or None if there are none."""
        if self.rows.kind != "rating":
            return None
        ranks, rows = self._rank(request, every_row=True)
        threshold = self._threshold_under(request.protocol)
        of_users = None if threshold is None else np.full(ranks.n_users, threshold)
        return Ratings(ranks, self.rows.score[rows], of_users, repeats=self.n_repeated > 0)

    def _threshold_under(self, protocol: Protocol) -> float | None:
        rule = protocol.relevant_from
        if self.threshold is not None:
            # If a convention's rule is not a threshold, it does not apply to ratings.
            if rule is not None and not (protocol.version and rule in ("not_zero", -math.inf)):
                raise InputError(
                    f"Both threshold= of Pairs and {rule_text('relevant_from', rule)} define what "
                    "is relevant. Hint: leave one out."
                )
            return self.threshold
        return float(rule) if isinstance(rule, int | float) else None

    def top(self, request: Request, k: int) -> TopLists:
        """Return the items of each user's best k rows; see `TopLists`."""
        pairs = self
        if self.n_repeated:  # a list must not repeat an item
            removed = request.protocol.replace(duplicates="removed")
            pairs = self._unrepeated(dataclasses.replace(request, protocol=removed))
        return _top_lists.lists(pairs, request, k, pairs._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned, _, entries, places = self._place(request)
        aligned.flags[:] |= places.flags
        rows = np.flatnonzero(entries.candidate)
        user, item, above = entries.user[rows], entries.item[rows], places.above
        if aligned.numbers is not None:
            item = aligned.numbers[item].astype(np.int64)
        tie: Array = places.before
        if rule.order == TieOrder.ITEM_DESCENDING:
            tie = -tie
        if rule.unjudged_only:
            free = ~entries.judged[rows]
            user, item, above = user[free], item[free], above[free]
            tie = mix(rule.keys[user] ^ item.astype(np.uint64))
        order = np.lexsort((tie, above, user))
        user, item, above = user[order], item[order], above[order]
        place = np.arange(len(user)) - np.searchsorted(user, user)
        listed, last = place < k, place == k - 1
        items = np.full((aligned.n_users, min(k, int(place.max(initial=0)) + 1)), -1)
        items[user[listed], place[listed]] = item[listed]
        lowest = np.full(aligned.n_users, -1)
        lowest[user[last]] = above[last]
        cut = user[~listed & (above == lowest[user])]
        best = Best(items, np.bincount(cut, minlength=aligned.n_users))
        return _top_lists.make_lists(aligned, best, k, n_catalogue=aligned.n_items)

    def _place(
        self, request: Request, every_row: bool = False
    ) -> tuple[Aligned, Int64, Entries, Places]:
        """Return the aligned data, the rows of the test users, their entries, and their places.

        With `every_row`, -inf is a score like any other, as rating metrics require.
        """
        table, own = self.rows, self.facts.truth
        self._check(request, own is not None)
        # Rows that repeat a pair keep their own labels, which `_rank` reads.
        own = None if own is None else matching.resolve_repeats(own, "largest")
        aligned = align(table.index, dataclasses.replace(request, test=own or request.test))
        indptr, rows = ragged.take(table.indptr, aligned.rows)
        user, item = ragged.users_of(indptr), table.item[rows]
        in_test = ragged.numbered(aligned.judged_indptr, aligned.item, table.n_items)
        judged = ragged.among(ragged.pairs(user, item, table.n_items), in_test[aligned.item >= 0])
        # Training items have numbers only if they may be recommended to some user.
        number = item if aligned.numbers is None else aligned.numbers[item]
        in_train = ragged.numbered(aligned.excluded_indptr, aligned.excluded, aligned.n_items)
        excluded = ragged.among(ragged.pairs(user, number, aligned.n_items), in_train)
        excluded &= number >= 0
        candidate = (aligned.locate(user, item) >= 0) & ~excluded
        n_lowest = 0
        if request.protocol.infinite_scores != "ranked" and not every_row:
            lowest = candidate & np.isneginf(table.score[rows])
            candidate, n_lowest = candidate & ~lowest, int(np.count_nonzero(lowest))
        entries = Entries(user, item, judged, excluded, candidate, n_lowest)
        score = rounded(table.score[rows[entries.candidate]], request.protocol)
        places = places_of(entries.user[entries.candidate], score, aligned.n_users, request)
        return aligned, rows, entries, places

    def _rank(self, request: Request, every_row: bool = False) -> tuple[Ranks, Int64]:
        """Return the ranks and, if these pairs have labels, the row of each judged item."""
        table = self.rows
        aligned, rows, entries, places = self._place(request, every_row)
        n_candidates = places.n_candidates
        score = rounded(table.score[rows[entries.candidate]], request.protocol)

        overlap = aligned.counts.get("train_test_overlap", 0)
        item: npt.NDArray[np.integer]
        if table.truth is None:
            indptr, item = aligned.judged_indptr, aligned.item
            gain, relevant = aligned.gain, aligned.relevant
            keys = ragged.pairs(entries.user, entries.item, table.n_items)[entries.candidate]
            judged_keys = ragged.numbered(indptr, item, table.n_items)
            listed = ragged.among(judged_keys, keys) & (item >= 0)
            positions = np.where(listed, np.searchsorted(keys, judged_keys), -1)
        else:
            # Each row that is not in train is a judged item.
            judged, candidate = entries.judged, entries.candidate
            overlap = len(rows) - int(np.count_nonzero(judged))
            positions = np.where(candidate, np.cumsum(candidate) - 1, -1)[judged]
            rows, item = rows[judged], entries.item[judged]
            counts_of_rows = np.bincount(entries.user[judged], minlength=aligned.n_users)
            indptr, gain = ragged.indptr_of(counts_of_rows), table.truth[rows]
            threshold, rule = (
                self._threshold_under(request.protocol),
                request.protocol.relevant_from,
            )
            relevant = is_relevant(gain, rule) if threshold is None else gain >= threshold
        is_ranked = positions >= 0
        positions = positions[is_ranked]
        counted = places.above[positions], places.tied[positions], places.before[positions]
        above, tied, before = spread(is_ranked, len(is_ranked), *counted)
        order = best_first(indptr, above, before, request.threads)
        user = ragged.users_of(indptr)
        missed = relevant & ~is_ranked & (item >= 0) & (aligned.rows[user] >= 0)
        counts = aligned.counts | {
            "train_test_overlap": overlap,
            "rows_not_candidates": entries.n_lowest,
            "relevant_not_candidates": int(np.count_nonzero(missed)),
            "rows_without_truth": table.n_without_truth,
        }
        ranks = Ranks(
            indptr=indptr,
            item=item[order].astype(np.int64),
            above=above[order],
            tied=tied[order],
            before=before[order],
            gain=gain[order],
            relevant=relevant[order],
            n_relevant=np.bincount(user[relevant], minlength=aligned.n_users),
            n_candidates=n_candidates,
            n_excluded=np.bincount(entries.user[entries.excluded], minlength=aligned.n_users),
            depth=n_candidates,
            flags=aligned.flags | places.flags,
            counts={name: count for name, count in counts.items() if count},
            any_cutoff=True,
            item_ids=aligned.item_ids,
        )
        if table.truth is not None and request.protocol.duplicates in ("first", "counted"):
            ranks = _mark_repeats(ranks, table.n_items)
        if request.protocol.score_above is not None:
            scores = np.full(len(is_ranked), np.nan)
            scores[is_ranked] = score[positions]
            ranks = dataclasses.replace(ranks, score=scores[order])
        return ranks, order if table.truth is None else rows[order]

    def _check(self, request: Request, own: bool) -> None:
        for name in ("train", "candidates", "exclude"):
            if getattr(request, name) is not None and self.rows.item_ids is None:
                raise InputError(
                    f"{argument_text(name)} names items, but these Pairs have no items. Hint: pass "
                    f"{argument_text('item')} with their column."
                )
        if not own and self.n_repeated:
            truth = python_or_command("relevance= or rating=", "--value")
            raise InputError(
                f"{self.n_repeated:,} of the {len(self.rows.user):,} rows of Pairs repeat a "
                "user-item pair, so it is unclear which row is the test item. Hint: keep one row "
                f"of each pair, or add a column of labels ({truth})."
            )


def _mark_repeats(ranks: Ranks, n_items: int) -> Ranks:
    """Mark all but the best row of each pair as repeated; marked rows do not count as relevant."""
    _, best = np.unique(ragged.pairs(ranks.user, ranks.item, n_items), return_index=True)
    repeated = np.ones(len(ranks.item), bool)
    repeated[best] = False
    n_repeated = np.bincount(ranks.user[repeated & ranks.relevant], minlength=ranks.n_users)
    return dataclasses.replace(ranks, repeated=repeated, n_relevant=ranks.n_relevant - n_repeated)


class Entries(NamedTuple):
    """The rows of the test users, sorted by user and item."""

    user: Int64  # the test user of each row
    item: Int64  # positions among the sorted item ids
    judged: Bool  # whether the pair is in test but not in train
    excluded: Bool  # whether the pair is in train
    candidate: Bool
    n_lowest: int  # number of rows that are not candidates because of their score


class Places(NamedTuple):
    """The rank of each row among its user's rows, in the order of the rows; see `Ranks`."""

    above: Int64
    tied: Int64
    before: Int64
    n_candidates: Int64
    flags: UInt32


def places_of(user: Int64, score: Float64, n_users: int, request: Request) -> Places:
    """For each row, count the same user's rows that are above it, and those that tie with it."""
    protocol, nan = request.protocol, np.isnan(score)
    n_candidates = np.bincount(user, minlength=n_users)
    indptr = ragged.indptr_of(n_candidates)
    above, tied, before = (np.empty(len(user), np.int64) for _ in range(3))

    def count(users: slice, ticker: Ticker) -> None:
        ticker.advance()
        begin, end = int(indptr[users.start]), int(indptr[users.stop])
        distinct, code = np.unique(score[begin:end], return_inverse=True)
        fall = len(distinct) - code  # highest score first; np.unique sorts NaN as the highest
        if protocol.nan_scores != "first":
            fall[nan[begin:end]] = len(distinct) + 1
        key = user[begin:end] * (len(distinct) + 2) + fall
        order = np.argsort(key, kind="stable")  # tied rows stay in the order of the items
        new = begins(key[order])
        first = np.flatnonzero(new)
        group, rows = np.cumsum(new) - 1, begin + order
        above[rows] = begin + first[group] - indptr[user[rows]]
        tied[rows] = np.diff(first, append=end - begin)[group] - 1
        before[rows] = np.arange(end - begin) - first[group]

    blocks = ragged.blocks(indptr, ROWS_PER_TASK, n_users)
    run_tasks(count, blocks, label="Ranking", brief=len(blocks) == 1, **request.pace)
    flags = np.zeros(n_users, np.uint32)
    if protocol.nan_scores == "undefined":
        flags[user[nan]] |= np.uint32(UserFlag.NAN_SCORE)
    if protocol.infinite_scores == "undefined":
        flags[user[np.isposinf(score)]] |= np.uint32(UserFlag.INFINITE_SCORE)
    constant = (tied > 0) & (tied == n_candidates[user] - 1)
    flags[user[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
    return Places(above, tied, before, n_candidates, flags)


def read_threshold(rows: PairRows, threshold: object) -> float | None:
    """Return the threshold as a float; refuse anything but a finite number or None."""
    if threshold is None:
        return None
    if rows.truth is None:
        raise InputError(
            "threshold= says how large a label must be for a row to be relevant, but the rows have "
            "no labels. Hint: pass relevance= or rating=, or pass relevant_from= to evaluate."
        )
    if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real):
        raise InputTypeError(
            f"threshold={brief(threshold)} must be a number. Hint: if each user has a different "
            "threshold, subtract it from labels and scores, and pass threshold=0."
        )
    try:
        number = float(threshold)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"threshold={brief(threshold)} must be a finite number.")
    return number


Truth = Literal["relevance", "rating"]

TRUTHS: tuple[Truth, ...] = ("relevance", "rating")


@dataclasses.dataclass(frozen=True)
class PairRows:
    """Scored pairs, sorted by user, item, label and score, in this order."""

    user: Int64  # positions among the ids, or among all users
    item: Int64
    score: Float64  # NaN if missing
    truth: Float64 | None  # the labels: relevance or true ratings
    kind: Truth | None  # the kind of the labels, if there are any
    user_ids: Array | None  # sorted and distinct; None for positions
    item_ids: Array | None
    n_users: int
    n_items: int
    n_without_truth: int  # number of rows that were left out because they have no label

    @cached_property
    def index(self) -> SourceIndex:
        """The users and items of the pairs."""
        return SourceIndex("Pairs", self.n_users, self.n_items, self.user_ids, self.item_ids)

    @cached_property
    def indptr(self) -> Int64:
        """The row of each user's first pair, as int64 [n_users + 1]."""
        return ragged.indptr_of(np.bincount(self.user, minlength=self.n_users))

    @cached_property
    def first(self) -> Int64:
        """The first row of each pair."""
        return np.flatnonzero(begins(self.user * self.n_items + self.item))


def from_frame(data: Any, **options: object) -> PairRows:
    """Read a data frame; `options` maps option names of `recometer.Pairs` to values."""
    if not is_frame(data):
        raise InputTypeError(
            f"Pairs cannot be read from {type(data).__name__}. Hint: pass a data frame (Polars, "
            "pandas, Arrow, DuckDB); pandas.DataFrame(data) converts a dict of columns, or "
            "Surprise's predictions; Pairs.of(relevance, scores) takes arrays."
        )
    names, fetch = open_frame(data)
    # If the caller names the relevance or the rating column, do not search for the other one.
    if any(isinstance(options[option], str) for option in TRUTHS):
        options |= {option: options[option] or False for option in TRUTHS}
    column_names = choose_columns(names, options, required=("user", "score"), strict=("score",))
    chosen = {option: name for option, name in column_names.items() if name is not None}
    if "relevance" in chosen and "rating" in chosen:
        raise InputError(
            f"relevance={chosen['relevance']!r} and rating={chosen['rating']!r} both contain "
            "labels. Hint: name only one of them."
        )
    chosen_names = list(chosen.values())
    columns = dict(zip(chosen_names, fetch(chosen_names), strict=True))
    kind = next((option for option in TRUTHS if option in chosen), None)
    truth = None
    if kind is not None:
        truth = _numbers(columns[chosen[kind]], f"{kind}s (column {chosen[kind]!r})")
    items = None
    if "item" in chosen:
        items = ids.encode(columns[chosen["item"]], f"item ids (column {chosen['item']!r})")
    return sorted_rows(
        ids.encode(columns[chosen["user"]], f"user ids (column {chosen['user']!r})"),
        items,
        _numbers(columns[chosen["score"]], f"scores (column {chosen['score']!r})"),
        truth,
        kind,
    )


def sorted_rows(
    users: tuple[Int64, Array | None] | None,
    items: tuple[Int64, Array] | None,
    score: Float64,
    truth: Float64 | None,
    kind: Truth | None,
) -> PairRows:
    """Leave out rows without labels, and sort the rest, so that their order has no effect."""
    n = len(score)
    user, user_ids = users if users is not None else (np.zeros(n, np.int64), None)
    # Without items, each row is a separate item, in the order of the data.
    item, item_ids = items if items is not None else (np.arange(n), None)
    keep = np.ones(n, bool) if truth is None else ~np.isnan(truth)
    n_items = n if item_ids is None else len(item_ids)
    key = user * n_items + item
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((score, key) if truth is None else (score, truth, key))
    if not keep.all():
        order = order[keep[order]]
    return PairRows(
        user=user[order],
        item=item[order],
        score=score[order],
        truth=None if truth is None else truth[order],
        kind=kind,
        user_ids=user_ids,
        item_ids=item_ids,
        n_users=1 if user_ids is None else len(user_ids),
        n_items=n_items,
        n_without_truth=int(np.count_nonzero(~keep)),
    )


def check_rows(rows: PairRows) -> None:
    """Refuse pairs without rows, and pairs without labels."""
    if len(rows.user):
        return
    if not rows.n_without_truth:
        raise InputError("Pairs has no rows.")
    raise InputError(
        f"None of the {rows.n_without_truth:,} rows of Pairs has a true rating or relevance. Hint: "
        "is this the right column? Predictions on a test set have them, but predictions for new "
        "items do not."
    )


def _numbers(column: Any, noun: str) -> Float64:
    array = without_mask(as_array(column, f"The {noun}"))
    if array.ndim != 1:
        raise InputError(f"The {noun} must have one dimension, found shape {array.shape}.")
    return all_numbers(array, noun)
