"""When a metric has no value for a user, and why; and the computing of all values.

The only place that settles it: the functions of metrics know the formulas alone.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64, Int64, UInt8, UInt64
from recometer.errors import InternalError
from recometer.measuring import corrections, settling
from recometer.metrics.rated import Predictions, over_rows
from recometer.metrics.registry import Metric, MetricDefinition, rules_of
from recometer.protocol import Protocol, TieRule
from recometer.ranks import Ranks, Ratings, UserFlag
from recometer.tasks import Ticker, run_tasks
from recometer.ties import WHOLE, Groups, Property, resolve, sum_by_user, worth_of

# Users are taken in blocks, so that working memory does not grow with their number.
BLOCK_USERS = 2**16
BLOCK_JUDGED = 2**18


class Reason(enum.IntEnum):
    """Why a metric is undefined for a user; where several hold, the first."""

    sentence: str

    def __new__(cls, code: int, sentence: str) -> Reason:
        """Attach the sentence that explains a code."""
        reason = int.__new__(cls, code)
        reason._value_ = code
        reason.sentence = sentence
        return reason

    DEFINED = 0, "the metric is defined"
    UNKNOWN_USER = 1, "the source does not know the user"
    NO_RELEVANT = 2, "no relevant item to find"
    FEW_CANDIDATES = 3, "fewer items to rank than min_candidates"
    FEW_RELEVANT = 4, "fewer relevant items than min_positives"
    COLD_START = 5, "no training item, and cold_start is off"
    NAN_SCORE = 6, "a candidate's score is NaN"
    INFINITE_SCORE = 7, "a candidate's score is infinite"
    CONSTANT_SCORES = 8, "all candidates have the same score, so nothing was ranked"
    CUTOFF_TOO_DEEP = 9, "no more candidates than the cut-off: every ranking has the same value"
    ALL_RELEVANT = 10, "every candidate is relevant"
    NO_GAIN = 11, "no item has a positive gain"
    GAIN_NOT_FINITE = 12, "the gains are NaN or infinite, or too large to be added up"
    NO_CANDIDATES = 13, "the number of candidates is unknown, or there is none"
    NOTHING_DRAWN = 14, "no candidate but the items of test, so there is nothing to correct with"
    WITHOUT_LIST = 15, "the source has no list for the user"
    ONE_KIND = 16, "what is compared is all relevant, or not at all"
    NOT_COUNTED = 17, "the rule users= leaves the user out of the mean"
    # Of ratings.
    NO_RATINGS = 20, "the user has no row with a true rating"
    NOTHING_RECOMMENDED = 21, "no predicted rating reaches the threshold"
    NO_VARIANCE = 22, "all true ratings are the same"
    NO_PAIRS = 23, "no two true ratings differ"
    # Of lists.
    NO_LIST = 30, "the user's list is empty"
    ONE_ITEM = 31, "fewer than two listed items"
    NOTHING_SEEN = 32, "no listed item is in train"
    NO_HISTORY = 33, "the user has nothing in train"
    NO_BASELINE = 34, "the baseline has no list for the user"
    NO_CATEGORY = 35, "no listed item has a category"
    NO_HISTORY_CATEGORY = 36, "nothing that the user has in train has a category"
    NO_RELEVANT_CATEGORY = 37, "no relevant item of the user has a category"
    NO_FEATURES = 38, "a listed item has no features"
    NO_HIT = 39, "no listed item is relevant"


def compute(
    ranks: Ranks,
    metrics: Sequence[Metric],
    protocol: Protocol,
    seed: int = 0,
    user_keys: UInt64 | None = None,
    ratings: Ratings | None = None,
    threads: int = 1,
) -> tuple[dict[str, Float64], dict[str, UInt8]]:
    """Compute metrics for every user.

    Parameters
    ----------
    ranks
        Where each judged item landed.
    metrics
        As `recometer.metrics.parse` returns them.
    protocol
        `ties`, `undefined` and the rules for undefined values are read.
    seed, user_keys
        See `recometer.ties.resolve`.
    ratings
        Needed by metrics that read them; its `ranks` are `ranks`.
    threads
        How many threads to use; the values do not depend on it.

    Returns
    -------
    values : dict of str to float64 [n_users]
        By the metric's name, such as ``"ndcg@10"``, in the order asked for.
    reasons : dict of str to uint8 [n_users]
        The `Reason` why a value is undefined, 0 where it is defined.
    """
    names = [str(metric) for metric in metrics]
    values = {name: np.empty(ranks.n_users) for name in names}
    why = {name: np.empty(ranks.n_users, np.uint8) for name in names}
    variants: dict[Hashable, list[tuple[str, Metric]]] = {}
    for name, metric in zip(names, metrics, strict=True):
        key: Hashable = (metric.variant, metric.rules)
        if rules_of(metric, protocol).ties == "item_desc_within":
            key = metric  # its order depends on the cut-off
        variants.setdefault(key, []).append((name, metric))

    def one_block(block: slice, ticker: Ticker | None = None) -> None:
        _compute_block(
            ranks.users(block),
            variants.values(),
            protocol,
            seed,
            None if user_keys is None else user_keys[block],
            {name: column[block] for name, column in values.items()},
            {name: column[block] for name, column in why.items()},
            None if ratings is None else ratings.users(block),
        )
        if ticker is not None:
            ticker.advance()

    if user_keys is None and protocol.ties == "random":
        user_keys = np.arange(ranks.n_users, dtype=np.uint64)
    blocks = list(_blocks(ranks))
    if min(threads, len(blocks)) > 1:
        run_tasks(one_block, blocks, threads=threads, progress=False)
    else:
        for block in blocks:
            one_block(block)
    return values, why


def reasons(ranks: Ranks, metric: Metric, protocol: Protocol) -> UInt8:
    """Say for every user why a metric is undefined.

    Returns
    -------
    uint8 [n_users]
        A `Reason`, 0 where the metric is defined.
    """
    return _Rules(ranks, protocol).reasons(metric)


def _compute_block(
    ranks: Ranks,
    variants: Iterable[list[tuple[str, Metric]]],
    protocol: Protocol,
    seed: int,
    user_keys: UInt64 | None,
    values: dict[str, Float64],
    why: dict[str, UInt8],
    ratings: Ratings | None,
) -> None:
    """Fill in the values and reasons of a block of users."""
    corrected = protocol.correction != "none"
    rating_rules = None if ratings is None else _RatingRules(ratings, protocol)

    # Without values in test there is but one property, and its groups are found once.
    one_property = np.array_equal(ranks.gain, ranks.relevant)

    @functools.cache
    def settled(score_above: float | None, duplicates: str, padded_to: int | None) -> Ranks:
        return settling.settle(ranks, score_above, duplicates, padded_to)

    @functools.cache
    def rules_under(own: Protocol, *facts: Any) -> _Rules:
        return _Rules(settled(*facts), own)

    @functools.cache
    def groups_by(reads: Property, ties: TieRule, cutoff: int | None, *facts: Any) -> Groups:
        if reads == "gain" and one_property:
            return groups_by("relevance", ties, cutoff, *facts)
        chosen = settled(*facts)
        return resolve(chosen, ties, reads, seed, user_keys, protocol.relevant_from, cutoff)

    for wanted in variants:
        _, first = wanted[0]
        definition, own = first.definition, rules_of(first, protocol)
        padded_to = first.cutoff if own.short_lists == "first_item" else None
        facts = (own.score_above, own.duplicates, padded_to)
        rules = rules_under(dataclasses.replace(own, name=""), *facts)
        within = first.cutoff if own.ties == "item_desc_within" else None
        cutoffs = [WHOLE if metric.cutoff is None else metric.cutoff for _, metric in wanted]
        reasons_of = rules.reasons
        if definition.record == "ranks":
            record: Groups | Predictions = groups_by(definition.reads, own.ties, within, *facts)
        else:
            if rating_rules is None:
                raise InternalError(f"The metric {first.name!r} was asked for without ratings.")
            reasons_of = rating_rules.reasons
            ranked = None
            if definition.reads == "relevance":
                ranked = groups_by("relevance", own.ties, None, *facts)
            record = rating_rules.predictions(definition, ranked)
        depths = np.array(cutoffs, np.int64)
        # Items that count more than once may lead beyond a bound.
        once = own.duplicates not in ("counted", "joined") and own.short_lists == "misses"
        within_bounds = once and own.ties != "shared" and not corrected
        if corrected:
            groups = groups_by(definition.reads, own.ties, within, *facts)
            table = corrections.compute(first.name, ranks, groups, depths, protocol)
        else:
            table = first.compute(record, depths)
        for column, (name, metric) in enumerate(wanted):
            reason = reasons_of(metric)
            column_values = values[name]
            if not within_bounds:
                column_values[:] = table[:, column]
            else:
                # Sums over tied groups may pass a bound by their rounding.
                lower, upper = definition.lower, definition.upper
                np.clip(table[:, column], lower, upper, out=column_values)
            if definition.may_be_nan:
                reason = reason.copy()
                _mark(reason, np.isnan(column_values), Reason.ONE_KIND)
            if reason.any():
                replace_undefined(column_values, reason, own)
            if own.decimals is not None:
                column_values[:] = np.round(column_values, own.decimals)
            why[name][:] = reason
            left_out = rules.left_out(column_values)
            if left_out is not None:
                why[name][left_out] = Reason.NOT_COUNTED


def entering(values: Float64, reasons: UInt8, protocol: Protocol) -> Float64:
    """Return the values of the users who count in a metric's mean; NaN for the others.

    By the rules `users` and `missing`; one NaN among them makes all NaN where the rule
    `missing` says so.
    """
    outside = reasons == Reason.NOT_COUNTED
    if protocol.missing == "skip":
        return np.where(outside, np.nan, values) if outside.any() else values
    undefined = np.isnan(values)
    if protocol.missing == "nan" and (undefined & ~outside).any():
        return np.full(len(values), np.nan)
    return np.where(outside, np.nan, np.where(undefined, 0.0, values))


def replace_undefined(values: Float64, reason: UInt8, protocol: Protocol) -> None:
    """Put in what the rules give instead of undefined values."""
    values[reason != 0] = np.nan if protocol.undefined == "nan" else protocol.undefined
    if not isinstance(protocol.no_relevant, str):
        values[(reason == Reason.NO_RELEVANT) | (reason == Reason.NO_GAIN)] = protocol.no_relevant
    # Those who do not count at all do not count as a number either.
    values[(reason == Reason.UNKNOWN_USER) | (reason == Reason.WITHOUT_LIST)] = np.nan


class _Rules:
    """The rules for undefined values, applied to some users."""

    def __init__(self, ranks: Ranks, protocol: Protocol) -> None:
        corrected = protocol.correction != "none"
        self.ranks = corrections.whole(ranks) if corrected else ranks
        self.nothing_drawn = corrections.nothing_drawn(ranks) if corrected else None
        self.protocol = protocol
        self.known = self._flag(UserFlag.KNOWN)
        self.counted = self.known & (ranks.n_candidates >= 0)  # their candidates, that is
        self.found: dict[tuple[object, ...], UInt8] = {}
        self.gains_found: dict[Property, tuple[Bool, Bool]] = {}

    def reasons(self, metric: Metric) -> UInt8:
        """Return the first rule that holds for each user, 0 where none does."""
        definition, cutoff = metric.definition, metric.cutoff
        key = (
            definition.order_free,
            cutoff if definition.order_free else None,
            definition.needs_candidates,
            definition.defined_when_all_relevant,
            definition.reads,
        )
        if key not in self.found:
            self.found[key] = self._reasons(definition, cutoff)
        return self.found[key]

    def _reasons(self, definition: MetricDefinition, cutoff: int | None) -> UInt8:
        result = self.for_all_metrics.copy()
        if definition.needs_candidates:
            _mark(result, self.ranks.n_candidates <= 0, Reason.NO_CANDIDATES)
        free = definition.order_free and not self.ranks.any_cutoff
        if free and self.protocol.deep_cutoffs == "undefined":
            n, depth = self.ranks.n_candidates, self.ranks.depth
            shallow = self.counted & (n <= (depth if cutoff is None else cutoff))
            _mark(result, shallow, Reason.CUTOFF_TOO_DEEP)
        computed = definition.defined_when_all_relevant or self.protocol.all_relevant == "computed"
        if not computed:
            _mark(result, self.all_relevant, Reason.ALL_RELEVANT)
        if definition.reads not in ("relevance", "judgement"):
            without_gain, not_finite = self.gains(definition.reads)
            _mark(result, not_finite, Reason.GAIN_NOT_FINITE)
            if self.protocol.no_relevant != "computed":
                _mark(result, without_gain, Reason.NO_GAIN)
        return result

    @functools.cached_property
    def for_all_metrics(self) -> UInt8:
        """The rules that do not depend on the metric."""
        ranks, protocol = self.ranks, self.protocol
        result = np.zeros(ranks.n_users, np.uint8)
        if protocol.users == "known":
            _mark(result, ~self.known, Reason.UNKNOWN_USER)
        if protocol.no_list == "undefined":
            _mark(result, ~self.known, Reason.WITHOUT_LIST)
        if protocol.no_relevant != "computed":
            _mark(result, ranks.n_relevant == 0, Reason.NO_RELEVANT)
        if self.nothing_drawn is not None:
            _mark(result, self.known & self.nothing_drawn, Reason.NOTHING_DRAWN)
        # A user whom the source does not know has misses only: there is nothing to rank.
        few = self.counted & (ranks.n_candidates < protocol.min_candidates)
        _mark(result, few, Reason.FEW_CANDIDATES)
        if protocol.min_positives > 1 or protocol.no_relevant != "computed":
            _mark(result, ranks.n_relevant < protocol.min_positives, Reason.FEW_RELEVANT)
        if not protocol.cold_start:
            _mark(result, ~self._flag(UserFlag.TRAINED), Reason.COLD_START)
        _mark(result, self._flag(UserFlag.NAN_SCORE), Reason.NAN_SCORE)
        _mark(result, self._flag(UserFlag.INFINITE_SCORE), Reason.INFINITE_SCORE)
        if protocol.constant_scores == "undefined":
            _mark(result, self._flag(UserFlag.CONSTANT_SCORES), Reason.CONSTANT_SCORES)
        return result

    def left_out(self, values: Float64) -> Bool | None:
        """Whether the rule `users` leaves a user out of the mean of some values; None: nobody."""
        left_out = self.outside
        if self.protocol.users == "positive":
            left_out = ~(values > 0)
        skipped = self.protocol.missing == "skip" and self.protocol.average != "parts"
        if left_out is not None and skipped:
            left_out = left_out & ~np.isnan(values)  # the others have a reason already
        return left_out

    @functools.cached_property
    def outside(self) -> Bool | None:
        """Who does not count in any mean; None: everybody does."""
        ranks, users = self.ranks, self.protocol.users
        if users in ("test", "known"):
            # Where they would count as a number: those without any row are not in test.
            number = self.protocol.no_relevant != "undefined"
            return np.diff(ranks.indptr) == 0 if number else None
        outside: Bool = np.zeros(ranks.n_users, bool)
        if users in ("known_relevant", "listed"):
            outside |= ~self.known
        if users in ("relevant", "known_relevant"):
            outside |= ranks.n_relevant == 0
        return outside

    @functools.cached_property
    def all_relevant(self) -> Bool:
        """Whether every candidate is relevant."""
        ranks = self.ranks
        if ranks.n_rankable is not None:
            return self.counted & (ranks.n_rankable >= ranks.n_candidates)
        # Beyond the end of a list relevant candidates may have been left out.
        all_relevant = self.counted & (ranks.n_relevant >= ranks.n_candidates)
        if all_relevant.any():
            all_relevant &= self._count(ranks.relevant & (ranks.above >= 0)) >= ranks.depth
        return all_relevant

    def gains(self, reads: Property) -> tuple[Bool, Bool]:
        """Whether no gain is positive; whether the gains do not have a finite sum."""
        if reads not in self.gains_found:
            _, gain = worth_of(self.ranks, reads, self.protocol.relevant_from)
            not_finite = np.zeros(self.ranks.n_users, bool)
            largest = max(-float(gain.min(initial=0)), float(gain.max(initial=0)))
            if not math.isfinite(largest * len(gain)):
                not_finite = ~np.isfinite(sum_by_user(self.user, np.abs(gain), len(not_finite)))
            self.gains_found[reads] = self._count(gain > 0) == 0, not_finite
        return self.gains_found[reads]

    def _flag(self, flag: UserFlag) -> Bool:
        raised: Bool = (self.ranks.flags & np.uint32(flag)) != 0
        return raised

    def _count(self, rows: Bool) -> Int64:
        if rows.all():
            return np.diff(self.ranks.indptr)
        return np.bincount(self.user[rows], minlength=self.ranks.n_users)

    @functools.cached_property
    def user(self) -> Int64:
        """The user of each judged item."""
        return ragged.users_of(self.ranks.indptr)


class _RatingRules:
    """The rules for undefined values of metrics that read ratings, applied to some users.

    Those about rankings do not hold here: one row is enough.
    """

    def __init__(self, ratings: Ratings, protocol: Protocol) -> None:
        self.ranks = ratings.ranks
        self.protocol = protocol
        self.all_rows = Predictions.of(ratings, nan_first=protocol.nan_scores == "first")

    def predictions(self, definition: MetricDefinition, ranked: Groups | None) -> Predictions:
        """Return what a metric reads, with the tie groups of the relevant rows."""
        if definition.reads == "gain":
            return self.finite
        return dataclasses.replace(self.all_rows, ranked=ranked)

    def reasons(self, metric: Metric) -> UInt8:
        """Return the first rule that holds for each user, 0 where none does."""
        definition, flags = metric.definition, self.ranks.flags
        result = np.zeros(self.ranks.n_users, np.uint8)
        if self.protocol.users == "known":
            _mark(result, (flags & UserFlag.KNOWN) == 0, Reason.UNKNOWN_USER)
        _mark(result, self.all_rows.n_rows == 0, Reason.NO_RATINGS)
        if not self.protocol.cold_start:
            _mark(result, (flags & UserFlag.TRAINED) == 0, Reason.COLD_START)
        if definition.reads == "gain":
            nan, infinite, too_large = self.not_finite
            _mark(result, nan, Reason.NAN_SCORE)
            _mark(result, infinite, Reason.INFINITE_SCORE)
            _mark(result, too_large, Reason.GAIN_NOT_FINITE)
        _mark(result, (flags & UserFlag.NAN_SCORE) != 0, Reason.NAN_SCORE)
        _mark(result, (flags & UserFlag.INFINITE_SCORE) != 0, Reason.INFINITE_SCORE)
        has = self.predictions(definition, None).has(definition.needs)
        _mark(result, ~has, WITHOUT[definition.needs])
        return result

    @functools.cached_property
    def finite(self) -> Predictions:
        """The rows of the users whose numbers are all finite."""
        return self.all_rows.of_users(~np.any(self.not_finite, axis=0))

    @functools.cached_property
    def not_finite(self) -> tuple[Bool, Bool, Bool]:
        """Who has NaN predictions, infinite ones, or numbers without a finite sum of squares."""
        rows = self.all_rows
        nan, infinite = np.isnan(rows.predicted), np.isinf(rows.predicted)
        with np.errstate(over="ignore"):
            size = rows.total(4 * (np.where(nan, 0, rows.predicted) ** 2 + rows.actual**2))
        return (
            rows.total(nan.astype(np.float64)) > 0,
            rows.total(infinite.astype(np.float64)) > 0,
            ~np.isfinite(size),
        )


WITHOUT = {
    "rows": Reason.NO_RATINGS,
    "relevant": Reason.NO_RELEVANT,
    "recommended": Reason.NOTHING_RECOMMENDED,
    "variance": Reason.NO_VARIANCE,
    "pairs": Reason.NO_PAIRS,
}


def compute_over_rows(
    ratings: Ratings, metrics: Sequence[Metric], protocol: Protocol
) -> dict[str, float]:
    """Compute metrics of ratings over the rows of all users, where they have such a value.

    Users with predictions or true ratings that are NaN or infinite are left out.

    Returns
    -------
    dict of str to float
        By the metric's name; NaN where it is undefined.
    """
    rules = _RatingRules(ratings, protocol)
    wanted = [metric for metric in metrics if metric.definition.over_rows]
    return {str(metric): over_rows(metric.name, rules.finite) for metric in wanted}


def _mark(result: UInt8, where: Bool, reason: Reason) -> None:
    result[where & (result == 0)] = reason


def _blocks(ranks: Ranks) -> Iterator[slice]:
    """Cut the users into blocks with a bounded number of users and of judged items."""
    first = 0
    while first < ranks.n_users:
        full = np.searchsorted(ranks.indptr, ranks.indptr[first] + BLOCK_JUDGED, side="right") - 1
        last = min(max(int(full), first + 1), first + BLOCK_USERS, ranks.n_users)
        yield slice(first, last)
        first = last
