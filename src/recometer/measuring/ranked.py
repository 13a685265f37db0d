"""Users measured by where their judged items landed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8, UInt64, all_of, any_of, steps
from recometer.measuring import corrections, settling
from recometer.measuring import reasons as why
from recometer.measuring.measured import Measured
from recometer.measuring.reasons import Reason, mark
from recometer.measuring.settling import Settling
from recometer.metrics.registry import Metric, MetricDefinition
from recometer.protocol import Protocol
from recometer.ranks import Ranks, UserFlag, raised
from recometer.remembered import cached_property
from recometer.ties import WHOLE, Groups, Property, resolve, sum_by_user, worth_of

# Users are taken in blocks, so that working memory does not grow with their number.
BLOCK_USERS = 2**16
BLOCK_JUDGED = 2**18


class RankedUsers(Measured):
    """Users measured by where their judged items landed.

    `seed` and `user_keys` are those of `recometer.ties.resolve`.
    """

    record = "ranks"

    def __init__(self, ranks: Ranks, seed: int = 0, user_keys: UInt64 | None = None) -> None:
        self.ranks = ranks
        self.seed = seed
        self.user_keys = user_keys
        # Nothing that is kept refers to what keeps it: the memory of a block is free at once.
        self._settled: dict[Hashable, Ranks] = {}
        self._known: dict[int, _Known] = {}  # by the identity of rules, which it keeps
        self._groups: dict[Hashable, Groups] = {}

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.ranks.n_users

    def blocks(self) -> Iterator[slice]:
        """Cut the users into blocks with a bounded number of users and of judged items."""
        first, n_users, indptr = 0, self.n_users, self.ranks.indptr
        while first < n_users:
            full = indptr.searchsorted(indptr[first] + BLOCK_JUDGED, side="right") - 1
            last = min(max(int(full), first + 1), first + BLOCK_USERS, n_users)
            yield slice(first, last)
            first = last

    def users(self, block: slice) -> RankedUsers:
        """Return some users alone, without copying what is known of them."""
        if block == slice(0, self.n_users):
            return self
        keys = self.user_keys
        keys = np.arange(block.start, block.stop, dtype=np.uint64) if keys is None else keys[block]
        return RankedUsers(self.ranks.users(block), self.seed, keys)

    def reasons(self, metric: Metric, rules: Protocol) -> UInt8:
        """Return the first `Reason` that holds for each user, 0 where none does."""
        return self._ruled(metric, rules).reasons(metric, self._reads(metric))

    def outside(self, metric: Metric, rules: Protocol) -> Bool | None:
        """Tell who does not count in a mean."""
        return self._ruled(metric, rules).outside

    @classmethod
    def bounded(cls, rules: Protocol) -> bool:
        """Return whether values lie within the metric's bounds, except for rounding."""
        # Items that count more than once may lead beyond a bound.
        once = rules.duplicates not in ("counted", "joined") and rules.short_lists == "misses"
        once = once and rules.repeated_test in ("once", "counted")
        return once and rules.ties not in ("shared", "as_ranked") and rules.correction == "none"

    def compute(self, metrics: Sequence[Metric], rules: Protocol) -> Float64:
        """Return values of the same metric at several cut-offs: float64 [n_users, n_metrics]."""
        first = metrics[0]
        cutoffs = [WHOLE if metric.cutoff is None else metric.cutoff for metric in metrics]
        groups, depths = self.groups(first, rules), np.array(cutoffs, np.int64)
        if rules.correction != "none":
            return corrections.compute(first.name, self.ranks, groups, depths, rules)
        return first.compute(groups, depths)

    def groups(self, metric: Metric, rules: Protocol) -> Groups:
        """Return the tie groups that a metric reads, under its rules."""
        reads = self._reads(metric)
        within = metric.cutoff if rules.ties == "item_desc_within" else None
        how = (rules.ties, reads, self.seed, self.user_keys, rules.relevant_from, within)
        key = (rules.ties, reads, rules.relevant_from, within, self._settling(metric, rules))
        if key not in self._groups:
            self._groups[key] = resolve(self.settled(metric, rules), *how)
        return self._groups[key]

    def _reads(self, metric: Metric) -> Property:
        """Return what a metric reads; without values in test, gains are relevance."""
        reads: Property = metric.definition.reads
        return "relevance" if reads == "gain" and self._one_property else reads

    def settled(self, metric: Metric, rules: Protocol) -> Ranks:
        """Return the ranks that a metric reads, under its rules."""
        how = self._settling(metric, rules)
        if how not in self._settled:
            self._settled[how] = settling.settle(self.ranks, how)
        return self._settled[how]

    def _ruled(self, metric: Metric, rules: Protocol) -> _Rules:
        known = self._of(rules)
        cutoff = metric.cutoff if known.reads_cutoff else None
        found = known.applied.get(cutoff)
        if found is None:
            found = known.applied[cutoff] = _Rules(self.settled(metric, rules), rules)
        return found

    def _settling(self, metric: Metric, rules: Protocol) -> Settling:
        """Return the argument for `settling.settle`."""
        known = self._of(rules)
        cutoff = metric.cutoff if known.reads_cutoff else None
        found = known.settlings.get(cutoff)
        if found is None:
            own = (rules.score_above, rules.duplicates, rules.repeated_test, rules.short_lists)
            found = known.settlings[cutoff] = Settling(*own, cutoff)
        return found

    def _of(self, rules: Protocol) -> _Known:
        known = self._known.get(id(rules))
        if known is None:
            known = self._known[id(rules)] = _Known(rules, settling.reads_cutoff(rules), {}, {})
        return known

    @cached_property
    def _one_property(self) -> bool:
        """Whether the groups of gains are those of relevance, and found once."""
        return all_of(self.ranks.gain == self.ranks.relevant)


class _Known(NamedTuple):
    """What is known of some rules, by the cut-off if what is ranked depends on that."""

    rules: Protocol
    reads_cutoff: bool
    settlings: dict[int | None, Settling]  # what `settling.settle` takes
    applied: dict[int | None, _Rules]


class _Rules:
    """The rules for undefined values, applied to some users."""

    def __init__(self, ranks: Ranks, protocol: Protocol) -> None:
        corrected = protocol.correction != "none"
        self.ranks = corrections.whole(ranks) if corrected else ranks
        self.nothing_drawn = corrections.nothing_drawn(ranks) if corrected else None
        self.protocol = protocol
        self.known = raised(ranks.flags, UserFlag.KNOWN)
        self.counted = self.known & (ranks.n_candidates >= 0)  # their candidates, that is
        self.found: dict[tuple[object, ...], UInt8] = {}
        self.gains_found: dict[Property, tuple[Bool, Bool]] = {}

    def reasons(self, metric: Metric, reads: Property) -> UInt8:
        """Return the first rule that holds for each user, 0 where none does."""
        definition, cutoff = metric.definition, metric.cutoff
        key = (
            definition.order_free,
            cutoff if definition.order_free else None,
            definition.needs_candidates,
            definition.defined_when_all_relevant,
            reads,
        )
        if key not in self.found:
            self.found[key] = self._reasons(definition, cutoff, reads)
        return self.found[key]

    def _reasons(self, definition: MetricDefinition, cutoff: int | None, reads: Property) -> UInt8:
        result = self.for_all_metrics.copy()
        if definition.needs_candidates:
            mark(result, self.ranks.n_candidates <= 0, Reason.NO_CANDIDATES)
        free = definition.order_free and not self.ranks.any_cutoff
        if free and self.protocol.deep_cutoffs == "undefined":
            n, depth = self.ranks.n_candidates, self.ranks.depth
            shallow = self.counted & (n <= (depth if cutoff is None else cutoff))
            mark(result, shallow, Reason.CUTOFF_TOO_DEEP)
        computed = definition.defined_when_all_relevant or self.protocol.all_relevant == "computed"
        if not computed:
            mark(result, self.all_relevant, Reason.ALL_RELEVANT)
        if reads not in ("relevance", "judgement"):
            without_gain, not_finite = self.gains(reads)
            mark(result, not_finite, Reason.GAIN_NOT_FINITE)
            if self.protocol.no_relevant != "computed":
                mark(result, without_gain, Reason.NO_GAIN)
        return result

    @cached_property
    def for_all_metrics(self) -> UInt8:
        """The rules that do not depend on the metric."""
        ranks, protocol = self.ranks, self.protocol
        result = np.zeros(ranks.n_users, np.uint8)
        why.mark_unknown(result, self.known, protocol)
        why.mark_none(result, ranks.n_relevant, protocol)
        if self.nothing_drawn is not None:
            mark(result, self.known & self.nothing_drawn, Reason.NOTHING_DRAWN)
        # A user whom the source does not know has misses only: there is nothing to rank.
        few = self.counted & (ranks.n_candidates < protocol.min_candidates)
        mark(result, few, Reason.FEW_CANDIDATES)
        why.mark_few(result, ranks.n_relevant, protocol)
        why.mark_cold(result, ranks.flags, protocol)
        why.mark_scores(result, ranks.flags, protocol)
        return result

    @cached_property
    def outside(self) -> Bool | None:
        """Who does not count in any mean; None if everybody counts."""
        ranks = self.ranks
        return why.outside(
            self.known,
            lambda: ranks.n_relevant > 0,
            lambda: steps(ranks.indptr) > 0,
            self.protocol,
        )

    @cached_property
    def all_relevant(self) -> Bool:
        """Whether every candidate is relevant."""
        ranks = self.ranks
        if ranks.n_rankable is not None:
            return self.counted & (ranks.n_rankable >= ranks.n_candidates)
        # Beyond the end of a list relevant candidates may have been left out.
        all_relevant = self.counted & (ranks.n_relevant >= ranks.n_candidates)
        if any_of(all_relevant):
            all_relevant &= self._count(ranks.relevant & (ranks.above >= 0)) >= ranks.depth
        return all_relevant

    def gains(self, reads: Property) -> tuple[Bool, Bool]:
        """Return which users have no positive gain, and whose gains do not have a finite sum."""
        if reads not in self.gains_found:
            _, gain = worth_of(self.ranks, reads, self.protocol.relevant_from)
            not_finite = np.zeros(self.ranks.n_users, bool)
            size = np.abs(gain)
            # NaN is the largest of all.
            if len(size) and not math.isfinite(size.item(size.argmax()) * len(size)):
                not_finite = ~np.isfinite(sum_by_user(self.user, size, len(not_finite)))
            self.gains_found[reads] = self._count(gain > 0) == 0, not_finite
        return self.gains_found[reads]

    def _count(self, rows: Bool) -> Int64:
        if all_of(rows):
            return steps(self.ranks.indptr)
        return np.bincount(self.user[rows], minlength=self.ranks.n_users)

    @cached_property
    def user(self) -> Int64:
        """The user of each judged item."""
        return self.ranks.user
