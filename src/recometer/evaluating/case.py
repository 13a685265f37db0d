"""Evaluates a `Case`, which combines a source with its `Sides`.

This module requests the records, computes a `Part`, checks all users together, and returns either
the fields of an `Evaluation` or just its means.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import (
    Bool,
    Float64,
    Int64,
    UInt8,
    UInt32,
    UInt64,
    all_of,
    any_of,
)
from recometer.data import ids
from recometer.data.fingerprints import Fingerprinting
from recometer.data.matching import relevant_rows
from recometer.errors import InputError, argument_text, python_or_command
from recometer.evaluating.checks import (
    BlockFacts,
    Inputs,
    check_defects,
    check_facts,
    check_length,
    check_shifted,
    find_unknown,
)
from recometer.evaluating.requirements import Requirements
from recometer.evaluating.sides import Counts, Sides, arrays_of, inputs_of
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import Judged, ListedUsers
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedTogether, RatedUsers
from recometer.measuring.reasons import Reason
from recometer.measuring.settling import leave_out, with_repeated_rows
from recometer.measuring.side_data import (
    list_data,
    needed_by,
    ranks_of_groups,
    ranks_with,
    with_copies,
)
from recometer.metrics import ListData, Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, TopLists, UserFlag, raised
from recometer.remembered import cached_property
from recometer.results.evaluation import EvaluationRecord
from recometer.sources.base import Request, Source
from recometer.ties import WHOLE
from recometer.version import __version__

KEPT_BYTES = 2**28  # maximum size of inputs that a result keeps, in bytes


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One evaluation: a source, the sides, and the rules that apply."""

    source: Source
    sides: Sides
    protocol: Protocol  # adapted to the source by `adapt_protocol`
    brings_truth: bool  # whether the source contains the test data
    requirements: Requirements  # what the metrics need under the rules

    def check_ids(self) -> None:
        """Refuse ids of the source that look like positions; see `check_shifted`."""
        arguments = self.sides.arguments
        data = [None if self.brings_truth else self.sides.test_as_passed, arguments.train]
        check_shifted(self.source, data, self.protocol, arguments.user_rules)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The source and the data that were passed, keyed by argument."""
        return {"source": self.source, **inputs_of(self.sides.arguments, self.sides)}

    def describe_inputs(self, fingerprints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the description and the fingerprints of each argument."""
        texts = {"source": {"description": self.source.describe()}, **self.sides.descriptions}
        facts = {name: {**text, "fingerprints": fingerprints[name]} for name, text in texts.items()}
        # The source's threshold replaces the rule `relevant_from`, which `reading` describes.
        if self.source.facts.threshold:
            facts["test"].pop("reading", None)
        return facts

    def inputs_to_keep(self, arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the arguments needed to repeat the evaluation, or None if they are too large."""
        every = [
            array for group in arrays.values() for array in group.values() if array is not None
        ]
        n_bytes = sum(math.prod(array.shape) * array.dtype.itemsize for array in every)
        sources = [data for data in self.inputs.values() if isinstance(data, Source)]
        if n_bytes > KEPT_BYTES or not all(source.facts.sized for source in sources):
            return None
        # If the source contains the test data, the repeated evaluation takes no `test`.
        replaced = {"test": None} if self.brings_truth else {}
        return {**self.inputs, **self.sides.arguments.as_passed, **replaced}

    def inputs_for_messages(self) -> Inputs:
        """Return the inputs that errors and warnings mention."""
        source, sides, test = self.source, self.sides, self.sides.test
        few = range(test.n_users)[:3] if test.user_ids is None else test.user_ids[:3].tolist()
        value_range = None if test.values is None else test.value_range
        unknown = functools.partial(find_unknown, source, test)
        find = None if sides.arguments.expects_unknown else unknown
        return Inputs(source, sides.arguments.baseline, sides.candidates, few, value_range, find)


class Users(NamedTuple):
    """Facts about each user."""

    n_relevant: Int64
    n_candidates: Int64
    n_excluded: Int64
    depth: Int64
    flags: UInt32


OF_USERS = operator.attrgetter(*Users._fields)


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of a source. A record that no metric reads is None."""

    ranks: Ranks | None
    ratings: Ratings | None
    lists: TopLists | None
    baseline: TopLists | None
    judged: Judged | None  # each user's numbers of judged and relevant items, for list metrics
    users: Users
    counts: dict[str, int]  # counts of rows and users that a rule affected
    request: Request


def find_records(case: Case) -> Records:
    """Request the records that the metrics read, and check them."""
    rules, sides, source, needs = case.protocol, case.sides, case.source, case.requirements
    arguments, test, request = sides.arguments, sides.test, request_of(case)
    ratings, ranks, lists, baseline, judged = None, None, None, None, None
    if needs.of_ratings:
        ratings = _ratings(source, request, needs.of_ratings)
    if ratings is not None and not (ratings.repeats and needs.reads_ranks):
        ranks = ratings.ranks
    elif needs.of_rankings or case.brings_truth:
        ranks = source.rank(request)
        if needs.leaves_out:
            ranks = leave_out(ranks, rules)
    if needs.of_lists:
        lists, baseline = _lists(source, arguments.baseline, request, needs)
        judged = _judged(request, source, ranks if case.brings_truth else None)
    counts = {} if lists is None else dict(lists.counts)
    if ranks is None:
        assert lists is not None
        assert judged is not None
        unknown = np.full(lists.n_users, -1)
        users = Users(judged.n_relevant, unknown, unknown, unknown, lists.flags)
    else:
        users = Users(*OF_USERS(ranks))
        if needs.whole_ranking:
            check_length(ranks, needs.whole_ranking, test)
        counts |= ranks.counts
        if ranks.any_cutoff and needs.cutoff:
            known = raised(ranks.flags, UserFlag.KNOWN)
            n_short = int(np.count_nonzero(known & (ranks.n_candidates < needs.cutoff)))
            counts |= {"users_below_cutoff": n_short} if n_short else {}
        if needs.rprecision:
            max_cutoff = WHOLE if None in needs.rprecision else max(filter(None, needs.rprecision))
            short = ranks.ends_early & (ranks.depth < np.minimum(ranks.n_relevant, max_cutoff))
            counts |= {"users_below_relevant": int(short.sum())} if short.any() else {}
        if needs.side_data:
            ranks = ranks_with(
                ranks,
                needs.side_data,
                test=test,
                train=arguments.train,
                catalogue=arguments.catalogue,
                popularity=arguments.popularity,
            )
        if needs.each_row:
            ranks = with_copies(ranks, test, arguments.train)
            users = users._replace(
                n_relevant=with_repeated_rows(ranks, rules.repeated_test).n_relevant
            )
        if rules.defects:
            check_defects(ranks, needs.of_rankings, rules)
    return Records(ranks, ratings, lists, baseline, judged, users, counts, request)


def _ranked_groups(case: Case, ranks: Ranks, keys: UInt64 | None) -> list[RankedUsers]:
    """For each item group that metrics read, return the users with their judged items from it."""
    sides, arguments, needs = case.sides, case.sides.arguments, case.requirements
    assert arguments.catalogue is not None
    of_groups = ranks_of_groups(
        ranks,
        needs.groups,
        test=sides.test,
        train=arguments.train,
        catalogue=arguments.catalogue,
    )
    return [
        RankedUsers(of_group, arguments.seed, keys, group) for group, of_group in of_groups.items()
    ]


def _listed_users(case: Case, records: Records, lists: TopLists) -> list[ListedUsers]:
    """Return the users with their lists, first with all categories, then once per item group."""
    sides, arguments, needs = case.sides, case.sides.arguments, case.requirements
    data = list_data(
        lists,
        needs.side_data_of_lists,
        test=sides.test,
        train=arguments.train,
        relevant_from=records.request.protocol.relevant_from,
        ranks=records.ranks if case.brings_truth else None,
        catalogue=arguments.catalogue,
        baseline=records.baseline,
        in_train=_removed_rows(records.request, case.source),
        memory=sides.memory,
        popularity=arguments.popularity,
    )
    listed_users = [ListedUsers(data, records.judged)]
    for group in needs.groups_of_lists:
        assert arguments.catalogue is not None
        assert data.categories is not None
        column = arguments.catalogue.category_names.index(group)
        of_group = dataclasses.replace(data, categories=data.categories[:, [column]], kept={})
        listed_users.append(ListedUsers(of_group, records.judged, group))
    return listed_users


def request_of(case: Case) -> Request:
    """Return the request to the source."""
    sides, needs, arguments = case.sides, case.requirements, case.sides.arguments
    item_data, catalogue = arguments.catalogue, None
    if item_data is not None and item_data.lists_all:
        catalogue = item_data.n_items if item_data.item_ids is None else item_data.item_ids
    data = sides.test, arguments.train, needs.for_source, catalogue
    depth = None if needs.leaves_out or arguments.chance else needs.depth
    pace, items = (arguments.threads, arguments.progress), (sides.candidates, arguments.exclude)
    return Request(*data, depth, *pace, *items, arguments.seed, sides.memory, arguments.some_users)


def _judged(request: Request, source: Source, ranks: Ranks | None) -> Judged:
    """Count each user's judged and relevant items, from `ranks` if given."""
    if ranks is not None:
        return Judged(np.diff(ranks.indptr), ranks.n_relevant)
    test, rules = request.test, request.protocol
    removed = _removed_rows(request, source)
    remaining = np.ones(len(test), bool) if removed is None else ~removed
    relevant = relevant_rows(test, rules.relevant_from) & remaining
    rows, hits = (ragged.offsets(mask, test.indptr) for mask in (remaining, relevant))
    return Judged(np.diff(rows), np.diff(hits))


def _removed_rows(request: Request, source: Source) -> Bool | None:
    """Return a mask of the test rows to remove because they are in train; None to keep all."""
    if request.train is None or not source.facts.removes_train(request.protocol):
        return None
    return request.in_train()


def _ratings(source: Source, request: Request, metrics: Sequence[Metric]) -> Ratings:
    """Request ratings, and check that the metrics can be computed from them."""
    ratings = source.ratings(request)
    if ratings is None:
        hint = python_or_command(
            "rm.Pairs(frame, score=..., rating=...).",
            "--pairs FILE reads predicted ratings; --value names the column of the true ones.",
        )
        raise InputError(
            f"The metric {str(metrics[0])!r} needs predicted and true ratings, which the source "
            f"({source.describe()}) does not provide. Hint: {hint}"
        )
    for metric in metrics:
        if metric.definition.reads == "relevance" and ratings.threshold is None:
            raise InputError(
                f"The metric {str(metric)!r} needs the smallest rating of a relevant item, "
                f"which the source ({source.describe()}) does not state. Hint: "
                f"{python_or_command('rm.Pairs(..., threshold=3.5)', '--relevant-from 3.5')}."
            )
    return dataclasses.replace(ratings, ranks=leave_out(ratings.ranks, request.protocol))


def _lists(
    source: Source,
    baseline: Source | None,
    request: Request,
    needs: Requirements,
) -> tuple[TopLists, TopLists | None]:
    """Request lists from the source and the baseline, up to the largest cut-off."""
    depth = needs.depth_of_lists
    lists = source.top(request, depth)
    if baseline is None or "baseline" not in needs.side_data_of_lists:
        return lists, None
    baseline_lists = request.memory.find(
        "baseline",
        (depth, request.protocol),
        lambda: baseline.top(request, depth),
        same=(baseline, request.test),
    )
    return lists, baseline_lists


EXPECTED = {"ties": "expected", "constant_scores": "ties"}


def chance_of(
    measured: Sequence[RankedUsers], metrics: Sequence[Metric], protocol: Protocol, threads: int
) -> dict[str, Float64]:
    """Return the exact expected value of each metric over all orders of each user's candidates.

    All candidates form a single tie group, and the rule ``ties="expected"`` averages over its
    orders without drawing any (McSherry & Najork, "Computing information retrieval performance
    measures efficiently in the presence of tied scores", ECIR 2008). Undefined values are NaN.

    Raises InputError if no metric reads a ranking, if lists end before the last candidate, or if
    a rule reads the scores themselves.
    """
    ranked = [metric for metric in metrics if knows_chance(metric)]
    if not measured or not ranked:
        raise InputError(
            f"{argument_text('chance', True)} needs ranking metrics, such as ndcg@10: a random "
            "order does not change any others."
        )
    ranks = measured[0].ranks
    if ranks.ends_early.any():
        sources = python_or_command("rm.Factors, rm.Scores and rm.Pairs", "--factors and --pairs")
        raise InputError(
            f"{argument_text('chance', True)} needs all candidates to be ranked, but the lists "
            "end before the last candidate, so it is not known which other items could have been "
            f"listed. Hint: {sources} rank all candidates."
        )
    if ranks.score is not None:
        raise InputError(
            f"{argument_text('chance', True)} is about the order of the candidates, but the rule "
            "score_above reads the scores themselves. Hint: leave one of them out."
        )
    changed = [
        dataclasses.replace(m, rules=tuple(rule for rule in m.rules if rule[0] not in EXPECTED))
        for m in ranked
    ]
    tied = [RankedUsers(_all_tied(users.ranks), group=users.group) for users in measured]
    values, _ = compute(tied, changed, protocol.replace(**EXPECTED), threads)
    return dict(zip(map(str, ranked), values.values(), strict=True))


def knows_chance(metric: Metric) -> bool:
    """Return whether a metric has an expected value for a random order."""
    return metric.definition.record == "ranks" and metric.definition.averages_ties


def _all_tied(ranks: Ranks) -> Ranks:
    """Return the ranks that items would have if all candidates had the same score."""
    is_ranked = ranks.above >= 0  # -1 means not a candidate
    n_others = np.maximum(ranks.n_candidates[ranks.user] - 1, 0)
    place = np.arange(len(ranks.above)) - ranks.indptr[ranks.user]
    return dataclasses.replace(
        ranks,
        above=np.where(is_ranked, 0, ranks.above),
        tied=np.where(is_ranked, n_others, ranks.tied),
        before=np.where(is_ranked, place, ranks.before),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The values of a block of users, with further facts about these users.

    `rated`, `lists` and `list_data` are None unless metrics read them.
    """

    values: Mapping[str, Float64]
    reasons: Mapping[str, UInt8]
    users: Users
    counts: Mapping[str, int]  # counts of rows and users that a rule affected
    facts: BlockFacts
    chance: Mapping[str, Float64] = dataclasses.field(default_factory=dict)
    rated: RatedTogether | None = None
    over_rows: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lists: TopLists | None = None
    over_users: Mapping[str, float] = dataclasses.field(default_factory=dict)
    list_data: ListData | None = None


def measure(case: Case, records: Records) -> Part:
    """Compute all metrics for the users of a case."""
    sides, rules, needs = case.sides, case.protocol, case.requirements
    arguments, test, optional = sides.arguments, sides.test, dict[str, Any]()
    ranked, rated, listed = list[RankedUsers](), list[RatedUsers](), list[ListedUsers]()
    if records.ranks is not None and needs.of_rankings:
        keys = ids.user_keys(test.user_ids, test.n_users) if needs.at_random else None
        ranked.append(RankedUsers(records.ranks, arguments.seed, keys))
        if needs.groups:
            ranked += _ranked_groups(case, records.ranks, keys)
        if records.ratings is not None:
            rated.append(RatedUsers(records.ratings, arguments.seed, keys))
    if records.lists is not None:
        listed += _listed_users(case, records, records.lists)
    values, reasons = compute([*ranked, *rated, *listed], sides.metrics, rules, arguments.threads)
    if arguments.chance:
        optional["chance"] = chance_of(ranked, sides.metrics, rules, arguments.threads)
    if rated:
        optional["rated"] = together = rated[0].together(reasons)
        optional["over_rows"] = compute_for_all(together, needs.over_rows, rules)
    if listed:
        needed = needed_by(needs.over_users)
        unneeded = [name for name in ("train", "test", "baseline") if name not in needed]
        changes: dict[str, Any] = dict.fromkeys(unneeded)
        if "test" in unneeded:
            changes["relevant"] = None
        optional |= {
            "lists": records.lists,
            "over_users": compute_for_all(listed[0], needs.over_users, rules),
            # The result keeps these data, so drop the parts that it does not need.
            "list_data": dataclasses.replace(listed[0].data, **changes),
        }
    facts = _facts(case, records, values, reasons)
    return Part(values, reasons, records.users, records.counts, facts, **optional)


def _facts(
    case: Case, records: Records, values: Mapping[str, Float64], reasons: Mapping[str, UInt8]
) -> BlockFacts:
    users, ranks, test = records.users, records.ranks, case.sides.test
    known = raised(users.flags, UserFlag.KNOWN)
    judged = known & (users.n_relevant > 0)
    unusable = judged & raised(users.flags, UserFlag.NAN_SCORE, UserFlag.INFINITE_SCORE)
    early = known[:0] if ranks is None else ranks.ends_early
    places = users.depth[:0] if records.lists is None else records.lists.n_places
    compared = records.baseline is None or any_of(records.baseline.known)
    n_unknown = records.counts.get("users_unknown", 0)
    if n_unknown and not case.protocol.cold_start:
        n_unknown = int(np.count_nonzero(raised(users.flags, UserFlag.TRAINED) & ~known))
    undefined = {}
    for name, column in values.items():
        # If the first user has a value, which is nearly always the case, skip the search.
        if not len(column) or (math.isnan(column[0]) and all_of(np.isnan(column))):
            undefined[name] = np.bincount(reasons[name], minlength=max(Reason) + 1)
    masks = {"n_known": known, "n_judged": judged, "n_unusable": unusable, "n_early": early}
    lengths = {"depth": users.depth, "n_candidates": users.n_candidates, "n_listed": places}
    numbers = {name: int(np.count_nonzero(mask)) for name, mask in masks.items()}
    numbers |= {name: int(column.max(initial=0)) for name, column in lengths.items()}
    numbers |= {"n_users": test.n_users, "n_rows": len(test), "n_unknown": n_unknown}
    numbers |= {"n_relevant": int(users.n_relevant.sum()), "n_compared": int(compared)}
    numbers["n_any_cutoff"] = int(ranks is not None and ranks.any_cutoff)
    return BlockFacts(**numbers, undefined=undefined)


def fields_of(case: Case, begin: float) -> dict[str, Any]:
    """Evaluate a case, and return the fields of an `Evaluation`; `begin` is the start time."""
    read, sides, threads = time.perf_counter(), case.sides, case.sides.arguments.threads
    case.check_ids()
    records = find_records(case)
    ranked = time.perf_counter()
    arrays = {name: arrays_of(data) for name, data in case.inputs.items()}
    new = {name: named for name, named in arrays.items() if name not in sides.fingerprints}
    counts, test, train = list(sides.counts), sides.test, sides.arguments.train

    def count(counting: _kernel.Counting) -> None:
        if train is not None and not counts:
            counts.append(Counts.of(test, train, counting))

    with Fingerprinting(new, threads, count) as fingerprinting:
        part = measure(case, records)
        prints = {**sides.fingerprints, **fingerprinting.result()}
    sides.counts[:] = counts
    sides.fingerprints.update({name: prints[name] for name in new if name != "source"})
    fields = _fields(case, part)
    for activity, total in counts:
        mean = np.divide(total, activity, out=np.full(len(total), np.nan), where=activity > 0)
        fields |= {"activity": activity, "popularity": mean}
    return {
        **fields,
        "counts": dict(sorted({**part.counts, **sides.affected_rows}.items())),
        "definitions": case.requirements.definitions,
        "timings": {
            "reading": read - begin,
            "ranking": ranked - read,
            "metrics": time.perf_counter() - ranked,
            "total": time.perf_counter() - begin,
        },
        "versions": versions(),
        "inputs": case.describe_inputs(prints),
        "inputs_kept": case.inputs_to_keep(arrays),
    }


def means_of(case: Case) -> dict[str, float]:
    """Return the means that `Evaluation.mean` would return, without hashing any data."""
    case.check_ids()
    part = measure(case, find_records(case))
    empty: dict[str, Any] = {"definitions": {}, "timings": {}, "versions": {}, "inputs": {}}
    return EvaluationRecord(**_fields(case, part), **empty).mean()


def _fields(case: Case, part: Part) -> dict[str, Any]:
    """Check all users together, and return the fields of the result.

    The definitions, timings, versions and inputs are not included.
    """
    sides, protocol = case.sides, case.sides.arguments.protocol
    check_facts(part.facts, part.counts, case.requirements, protocol, case.inputs_for_messages)
    fields = {**vars(part), **part.users._asdict()}
    del fields["users"], fields["facts"]
    return {
        **fields,
        "user_ids": sides.test.user_ids,
        "metrics": sides.metrics,
        "protocol": protocol,
        "seed": sides.arguments.seed,
        "negative_gains": sides.negative_gains,
        "binary_gains": sides.binary_gains,
    }


def versions() -> dict[str, str]:
    """Return the versions of the software that values may depend on."""
    return {**_versions(), "instruction_set": _kernel.instruction_set()}


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
    }
