"""Defines why values are undefined, what replaces them, and which users count towards means."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np

from recometer.arrays import Bool, Float64, UInt8, UInt32, any_of
from recometer.protocol import Protocol
from recometer.ranks import UserFlag, raised


class Reason(enum.IntEnum):
    """Why a metric is undefined for a user. If several reasons apply, the first one is kept."""

    sentence: str

    def __new__(cls, code: int, sentence: str) -> Reason:
        """Attach the sentence that explains the code."""
        reason = int.__new__(cls, code)
        reason._value_ = code
        reason.sentence = sentence
        return reason

    DEFINED = 0, "the metric is defined"
    UNKNOWN_USER = 1, "the user is unknown to the source"
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
    GAIN_NOT_FINITE = 12, "the gains, or ratings, are NaN or infinite, or too large to be added up"
    NO_CANDIDATES = 13, "the number of candidates is unknown, or there is none"
    WITHOUT_LIST = 15, "the source has no list for the user"
    ONE_KIND = 16, "all of the compared items are relevant, or none is"
    NOT_COUNTED = 17, "the rule users= leaves the user out of the mean"
    FEW_FOR_CUTOFF = 18, "fewer items to rank than the cut-off"
    # Reasons why rating metrics are undefined.
    NO_RATINGS = 20, "the user has no row with a true rating"
    NOTHING_RECOMMENDED = 21, "no predicted rating reaches the threshold"
    NO_VARIANCE = 22, "all true ratings are the same"
    NO_PAIRS = 23, "no two true ratings differ"
    NOT_PROBABILITY = 24, "a prediction is not a probability: it is below 0 or above 1"
    # Reasons why list metrics are undefined.
    NO_LIST = 30, "the user's list is empty"
    ONE_ITEM = 31, "fewer than two listed items"
    NOTHING_SEEN = 32, "no listed item is a training item"
    NO_HISTORY = 33, "the user has no training items"
    NO_BASELINE = 34, "the baseline has no list for the user"
    NO_CATEGORY = 35, "no listed item has a category"
    NO_HISTORY_CATEGORY = 36, "none of the user's training items has a category"
    NO_RELEVANT_CATEGORY = 37, "no relevant item of the user has a category"
    NO_FEATURES = 38, "a listed item has no features"
    NO_HIT = 39, "no listed item is relevant"


OF_SCORES = (UserFlag.NAN_SCORE, UserFlag.INFINITE_SCORE, UserFlag.CONSTANT_SCORES)
# Reasons that concern only the user's own value: metrics over all rows still count the user.
OF_ONE_USER = (Reason.DEFINED, Reason.NO_VARIANCE, Reason.NO_PAIRS, Reason.ONE_KIND)


def mark(result: UInt8, mask: Bool, reason: Reason) -> None:
    """Set the reason of the users in `mask` who do not yet have a reason."""
    if any_of(mask):
        result[mask & (result == 0)] = reason


def mark_unknown(result: UInt8, known: Bool, rules: Protocol) -> None:
    """Mark users without a list, unless the rules count them as misses."""
    if rules.users == "known":
        mark(result, ~known, Reason.UNKNOWN_USER)
    if rules.no_list == "undefined":
        mark(result, ~known, Reason.WITHOUT_LIST)


def mark_scores(result: UInt8, flags: UInt32, rules: Protocol | None) -> None:
    """Mark users whose scores cannot be ranked, or do not count as a ranking under the rules."""
    if not any_of(raised(flags, *OF_SCORES)):
        return
    mark(result, raised(flags, UserFlag.NAN_SCORE), Reason.NAN_SCORE)
    mark(result, raised(flags, UserFlag.INFINITE_SCORE), Reason.INFINITE_SCORE)
    if rules is not None and rules.constant_scores == "undefined":
        mark(result, raised(flags, UserFlag.CONSTANT_SCORES), Reason.CONSTANT_SCORES)


def replace_undefined(values: Float64, reason: UInt8, rules: Protocol) -> None:
    """Replace undefined values according to the rules."""
    values[reason != 0] = np.nan if rules.undefined == "nan" else rules.undefined
    if rules.undefined == "nan" and isinstance(rules.no_relevant, str):
        return
    if not isinstance(rules.no_relevant, str):
        values[(reason == Reason.NO_RELEVANT) | (reason == Reason.NO_GAIN)] = rules.no_relevant
    # Values of users who do not count stay undefined.
    values[(reason == Reason.UNKNOWN_USER) | (reason == Reason.WITHOUT_LIST)] = np.nan


def users_outside(
    known: Bool, has_relevant: Callable[[], Bool], has_rows: Callable[[], Bool], rules: Protocol
) -> Bool | None:
    """Return a mask of the users that the rule `users` excludes from means; None if all count.

    This depends on whether the source has a list for the user, and on whether the user has test
    items and relevant items. `has_relevant` and `has_rows` are called only if the rule needs them.
    """
    users = rules.users
    if users in ("test", "known"):
        # Users without rows are not in test.
        return ~has_rows() if rules.no_relevant != "undefined" else None
    outside: Bool = np.zeros(len(known), bool)
    if users in ("known_relevant", "listed"):
        outside |= ~known
    if users in ("relevant", "known_relevant"):
        outside |= ~has_relevant()
    return outside


def users_left_out(outside: Bool | None, values: Float64, rules: Protocol) -> Bool | None:
    """Return a mask of users left out of a mean by the rule `users`, or None if there are none."""
    removed = ~(values > 0) if rules.users == "positive" else outside
    if removed is not None and rules.missing == "skip" and rules.average != "parts":
        removed = removed & ~np.isnan(values)  # undefined values already have a reason
    return removed


def values_in_mean(values: Float64, reasons: UInt8, rules: Protocol) -> Float64:
    """Return the values that count towards a metric's mean, and NaN for other users.

    The rules `users` and `missing` decide which values count. Under ``missing="nan"``, one NaN
    makes all values NaN.
    """
    not_counted = reasons == Reason.NOT_COUNTED
    if rules.missing == "skip":
        return np.where(not_counted, np.nan, values) if any_of(not_counted) else values
    undefined = np.isnan(values)
    if rules.missing == "nan" and any_of(undefined & ~not_counted):
        return np.full(len(values), np.nan)
    return np.where(not_counted, np.nan, np.where(undefined, 0.0, values))
