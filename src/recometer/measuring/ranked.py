"""Computes users' values from the ranks of their judged items."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8, UInt64, all_of, any_of, begins, steps
from recometer.measuring import settling
from recometer.measuring.compute import Measured, Variant
from recometer.measuring.reasons import Reason, mark, mark_scores, mark_unknown, users_outside
from recometer.measuring.settling import Settling
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol, RelevantFrom, TieRule
from recometer.ragged import blocks
from recometer.ranks import Ranks, UserFlag, raised
from recometer.remembered import cached_property
from recometer.ties import WHOLE, Groups, Property, resolve, sum_by_user, worth_of

# Users are measured in blocks, so that working memory does not grow with their number.
BLOCK_USERS = 2**16
BLOCK_JUDGED = 2**18
# The properties that replace other properties if negative gains count as 0.
POSITIVE: dict[Property, Property] = {
    "gain": "positive_gain",
    "exponential": "positive_exponential",
}
FEW_TIED = 1 / 8  # up to this share, users with ties are measured separately, which is faster


class RankedUsers(Measured):
    """Users whose values are computed from the ranks of their judged items.

    For `seed` and `user_keys`, see `recometer.ties.resolve`. If `ranks` has only the judged items
    of one group, `group` is that group's name.
    """

    record = "ranks"

    def __init__(
        self, ranks: Ranks, seed: int = 0, user_keys: UInt64 | None = None, group: str = ""
    ) -> None:
        self.ranks, self.n_users, self.group = ranks, ranks.n_users, group
        self.seed, self.user_keys = seed, user_keys
        # Avoid reference cycles, so that the memory of a block is freed immediately.
        self._settled: dict[Settling, Ranks] = {}
        self._applied: dict[int, _Rules] = {}  # keyed by the id of their `protocol`
        self._groups: dict[_Grouping, Groups] = {}

    def blocks(self) -> list[slice]:
        """Cut the users into blocks with a bounded number of users and of judged items."""
        return blocks(self.ranks.indptr, BLOCK_JUDGED, BLOCK_USERS)

    def users(self, block: slice) -> RankedUsers:
        """Return a block of users as views, without copying."""
        if block == slice(0, self.n_users):
            return self
        return RankedUsers(self.ranks.users(block), *self._seeds(block))

    @classmethod
    def variant(cls, metrics: Sequence[Metric], rules: Protocol) -> Variant:
        """Prepare what does not depend on the users, for a metric at several cut-offs."""
        reads = metrics[0].definition.reads
        plain = _Reading.of(metrics, rules, "relevance") if reads == "gain" else None
        if rules.negative_gains == "zero":
            reads = POSITIVE.get(reads, reads)
        return Variant.of(metrics, rules, _Reading.of(metrics, rules, reads, plain))

    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return each user's first `Reason` (or 0), and whether any user has a reason."""
        reading = self._reading(variant)
        return self._ruled(reading).reasons(reading.facts[number])

    def outside(self, variant: Variant) -> Bool | None:
        """Return a mask of users who do not count towards a mean."""
        return self._ruled(variant.prepared).outside

    @classmethod
    def bounded(cls, rules: Protocol) -> bool:
        """Return whether all values are within the metric's bounds, except for rounding."""
        # If items count more than once, values may exceed a bound.
        counts_once = rules.duplicates != "counted" and rules.repeated_test != "joined"
        return counts_once and rules.ties not in ("shared", "as_ranked")

    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics, as float64 [n_users, n_metrics]."""
        if self._parts is not None:
            rows, untied, tied = self._parts
            values = untied.compute(variant)
            if tied.tied_within(variant):
                values = values.copy()
                values[rows] = tied.compute(variant)
            return values
        return variant.values(self.groups(variant))

    def tied_within(self, variant: Variant) -> bool:
        """Return whether any judged item is tied within the places that the metrics read."""
        depths = [WHOLE if metric.depth is None else metric.depth for metric in variant.metrics]
        ranks = self._settled_by(self._reading(variant).groups.settling)
        return any_of(ranks.tied[ranks.above < max(depths)])

    def groups(self, variant: Variant) -> Groups:
        """Return the tie groups that metrics read under their rules."""
        rules = self._reading(variant).groups
        if rules not in self._groups:
            ranks, keys = self._settled_by(rules.settling), self.user_keys
            if rules.settling.repeated_test == "joined":
                settling.check_places(ranks, rules.ties)
            options = rules.ties, rules.reads, self.seed, keys, rules.relevant_from, rules.within
            self._groups[rules] = resolve(ranks, *options)
        return self._groups[rules]

    def _reading(self, variant: Variant) -> _Reading:
        """Return how metrics read the ranks; without test values, gains equal relevance."""
        reading: _Reading = variant.prepared
        if reading.without_values is not None and self._one_property:
            return reading.without_values
        return reading

    def _settled_by(self, rules: Settling) -> Ranks:
        """Return the ranks that metrics read under their rules."""
        ranks = self.ranks
        if rules.score_above is None and ranks.repeated is None and ranks.copies is None:
            return ranks
        if rules not in self._settled:
            self._settled[rules] = settling.settle(ranks, rules)
        return self._settled[rules]

    def _ruled(self, reading: _Reading) -> _Rules:
        rules = reading.rules
        if id(rules) not in self._applied:
            self._applied[id(rules)] = _Rules(self._settled_by(reading.groups.settling), rules)
        return self._applied[id(rules)]

    @cached_property
    def _parts(self) -> tuple[Int64, RankedUsers, RankedUsers] | None:
        """Return the positions of users with ties, all users ignoring ties, and users with ties.

        Return None if no users, or too many, have ties.
        """
        ranks = self.ranks
        if not any_of(ranks.tied):
            return None
        rows = (ranks.tied != 0).nonzero()[0]
        user = ranks.indptr.searchsorted(rows, side="right") - 1
        users = user[begins(user)]
        if len(users) > FEW_TIED * self.n_users:
            return None
        none = np.zeros_like(ranks.tied)
        untied = RankedUsers(dataclasses.replace(ranks, tied=none, before=none), *self._seeds())
        return users, untied, RankedUsers(ranks.users(users), *self._seeds(users))

    def _seeds(self, users: slice | Int64 = slice(None)) -> tuple[int, UInt64]:
        """Return the seed for random draws, and the keys of a block of users."""
        keys = self.user_keys
        every = np.arange(self.n_users, dtype=np.uint64) if keys is None else keys
        return self.seed, every[users]

    @cached_property
    def _one_property(self) -> bool:
        """Whether gains and relevance have the same tie groups, which are then computed once."""
        gain, relevant = self.ranks.gain, self.ranks.relevant
        return all_of(gain == (1 if all_of(relevant) else relevant))


class _Grouping(NamedTuple):
    """The rules that turn ranks into tie groups, except for the seed of random draws."""

    ties: TieRule
    reads: Property
    relevant_from: RelevantFrom
    within: int | None  # the cut-off, if the groups depend on it
    settling: Settling


class _Facts(NamedTuple):
    """The properties of a metric that decide for which users it is undefined."""

    order_free: bool
    cutoff: int | None  # None if no reason depends on the cut-off
    needs_candidates: bool
    defined_when_all_relevant: bool
    reads: Property


@functools.lru_cache(maxsize=64)
def _interned(rules: Protocol) -> Protocol:
    """Return the same object for equal rules, so that caches can use its identity."""
    return rules


class _Reading(NamedTuple):
    """Everything about how metrics read ranks that does not depend on the users."""

    groups: _Grouping
    rules: Protocol
    facts: tuple[_Facts, ...]  # one per metric
    without_values: _Reading | None  # for test data without values, whose gains equal relevance

    @classmethod
    def of(
        cls,
        metrics: Sequence[Metric],
        rules: Protocol,
        reads: Property,
        without_values: _Reading | None = None,
    ) -> _Reading:
        """Prepare a metric at several cut-offs, or at one if the cut-off affects tie orders."""
        cutoff, definition = metrics[0].cutoff, metrics[0].definition
        within = cutoff if rules.ties == "item_desc_within" else None
        by_cutoff = "undefined_below", "undefined_beyond"
        needs_cutoff = rules.deep_cutoffs in by_cutoff or rules.all_relevant in by_cutoff
        facts = tuple(
            _Facts(
                definition.order_free,
                metric.cutoff if definition.order_free or needs_cutoff else None,
                definition.needs_candidates,
                definition.defined_when_all_relevant,
                reads,
            )
            for metric in metrics
        )
        how = Settling(rules.score_above, rules.duplicates, rules.repeated_test)
        grouping = _Grouping(rules.ties, reads, rules.relevant_from, within, how)
        return cls(grouping, _interned(rules), facts, without_values)


class _Rules:
    """The rules for undefined values, applied to a block of users."""

    def __init__(self, ranks: Ranks, protocol: Protocol) -> None:
        self.ranks, self.protocol = ranks, protocol
        self.known = raised(ranks.flags, UserFlag.KNOWN)
        self.counted = self.known & (ranks.n_candidates >= 0)  # users with known n_candidates
        self.results: dict[_Facts, tuple[UInt8, bool]] = {}
        self.gain_masks: dict[Property, tuple[Bool, Bool]] = {}

    def reasons(self, facts: _Facts) -> tuple[UInt8, bool]:
        """Return each user's first reason (or 0), and whether any user has a reason."""
        if facts in self.results:
            return self.results[facts]
        result = self.for_all_metrics.copy()
        if facts.needs_candidates:
            mark(result, self.ranks.n_candidates <= 0, Reason.NO_CANDIDATES)
        rules, n, cutoff = self.protocol, self.ranks.n_candidates, facts.cutoff
        free = facts.order_free and not self.ranks.any_cutoff and rules.deep_cutoffs != "computed"
        # Skip this in the usual case that all users have more candidates than the cut-off.
        if free and (cutoff is None or cutoff >= self.fewest_candidates):
            shallow = self.counted & (n <= (self.ranks.depth if cutoff is None else cutoff))
            mark(result, shallow, Reason.CUTOFF_TOO_DEEP)
        if cutoff is not None and rules.deep_cutoffs == "undefined_below":
            mark(result, self.counted & (n < cutoff), Reason.FEW_FOR_CUTOFF)
        computed = facts.defined_when_all_relevant or rules.all_relevant == "computed"
        if not computed and self.all_relevant is not None:
            beyond = cutoff if rules.all_relevant == "undefined_beyond" else None
            affected = self.all_relevant if beyond is None else self.all_relevant & (n > beyond)
            mark(result, affected, Reason.ALL_RELEVANT)
        if facts.reads not in ("relevance", "judgement", "judgement_from_zero"):
            without_gain, not_finite = self.gains(facts.reads)
            mark(result, not_finite, Reason.GAIN_NOT_FINITE)
            if self.protocol.no_relevant != "computed":
                mark(result, without_gain, Reason.NO_GAIN)
        self.results[facts] = result, any_of(result)
        return self.results[facts]

    @cached_property
    def for_all_metrics(self) -> UInt8:
        """The reasons that do not depend on the metric."""
        ranks, protocol = self.ranks, self.protocol
        result = np.zeros(ranks.n_users, np.uint8)
        mark_unknown(result, self.known, protocol)
        if protocol.no_relevant != "computed":
            mark(result, ranks.n_relevant == 0, Reason.NO_RELEVANT)
        # An unknown user has only misses, and nothing to rank.
        few = self.counted & (ranks.n_candidates < protocol.min_candidates)
        mark(result, few, Reason.FEW_CANDIDATES)
        if protocol.min_positives > 1:  # having no relevant items is a separate reason
            mark(result, ranks.n_relevant < protocol.min_positives, Reason.FEW_RELEVANT)
        if not protocol.cold_start:
            mark(result, ~raised(ranks.flags, UserFlag.TRAINED), Reason.COLD_START)
        mark_scores(result, ranks.flags, protocol)
        return result

    @cached_property
    def outside(self) -> Bool | None:
        """The users who do not count towards any mean, or None if all count."""
        return users_outside(self.known, self._have_relevant, self._have_rows, self.protocol)

    def _have_relevant(self) -> Bool:
        return self.ranks.n_relevant > 0

    def _have_rows(self) -> Bool:
        return steps(self.ranks.indptr) > 0

    @cached_property
    def fewest_candidates(self) -> int:
        """The smallest number of candidates of any user, or -1 if any number is unknown."""
        n = self.ranks.n_candidates
        return int(n.item(n.argmin()))

    @cached_property
    def all_relevant(self) -> Bool | None:
        """A mask of users with only relevant candidates, or None if there are none."""
        ranks = self.ranks
        if ranks.n_rankable is not None:
            all_relevant = self.counted & (ranks.n_rankable >= ranks.n_candidates)
            return all_relevant if any_of(all_relevant) else None
        # Relevant candidates may lie beyond the end of a list.
        all_relevant = self.counted & (ranks.n_relevant >= ranks.n_candidates)
        if not any_of(all_relevant):
            return None
        all_relevant &= self._count(ranks.relevant & (ranks.above >= 0)) >= ranks.depth
        return all_relevant

    def gains(self, reads: Property) -> tuple[Bool, Bool]:
        """Return masks of users with no positive gain, and of users with no finite sum of gains."""
        if reads not in self.gain_masks:
            _, gain = worth_of(self.ranks, reads, self.protocol.relevant_from)
            not_finite = np.zeros(self.ranks.n_users, bool)
            size = np.abs(gain)
            # If there is a NaN, argmax finds it.
            if len(size) and not math.isfinite(size.item(size.argmax()) * len(size)):
                not_finite = ~np.isfinite(sum_by_user(self.user, size, len(not_finite)))
            self.gain_masks[reads] = self._count(gain > 0) == 0, not_finite
        return self.gain_masks[reads]

    def _count(self, rows: Bool) -> Int64:
        if all_of(rows):
            return steps(self.ranks.indptr)
        return np.bincount(self.user[rows], minlength=self.ranks.n_users)

    @cached_property
    def user(self) -> Int64:
        """The user of each judged item."""
        return self.ranks.user
