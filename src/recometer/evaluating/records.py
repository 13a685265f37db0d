"""Request the records that the metrics read from a source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64, UInt32
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids, relevant_rows
from recometer.errors import InputError
from recometer.evaluating.case import Case
from recometer.evaluating.checks import (
    below_relevant,
    check_correction,
    check_defects,
    check_length,
    short_of_cutoffs,
)
from recometer.measuring.listed import Judged, ListedUsers
from recometer.measuring.measured import Measured
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.measuring.settling import leave_out, with_repeated_rows
from recometer.measuring.side_data import Popularity, list_data, needed_by, ranks_with, with_copies
from recometer.metrics import Metric
from recometer.metrics.conventions import asked_of_source
from recometer.metrics.registry import rules_of
from recometer.ranks import Ranks, Ratings, TopLists
from recometer.results.evaluation import EvaluationRecord
from recometer.sources.base import Request, Source


class Users(NamedTuple):
    """Facts about each user."""

    n_relevant: Int64
    n_candidates: Int64
    n_excluded: Int64
    depth: Int64
    flags: UInt32


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of a source; None if no metric reads them."""

    ranks: Ranks | None
    ratings: Ratings | None
    lists: TopLists | None
    baseline: TopLists | None
    judged: Judged | None  # facts of test about the users, for metrics of lists
    users: Users
    counts: dict[str, int]  # rows and users that a rule affected
    request: Request  # the request to the source


def find_records(case: Case) -> Records:
    """Request the records that the metrics read, and check them."""
    rules, sides, arguments, source = case.protocol, case.sides, case.arguments, case.source
    test, of_ranks, of_lists = sides.test, sides.of_rankings, sides.of_lists
    request = request_of(case)
    ratings, ranks = _ratings(source, request, sides.metrics), None
    if ratings is not None:
        ratings = dataclasses.replace(ratings, ranks=leave_out(ratings.ranks, rules))
    if ratings is not None and not (ratings.repeats and sides.reads_ranks):
        ranks = ratings.ranks
    elif of_ranks or case.brings_truth:
        ranks = leave_out(source.rank(request), rules)
    lists, baseline, judged = None, None, None
    if of_lists:
        lists, baseline = _lists(source, arguments.baseline, request, of_lists)
        judged = _judged(request, source, ranks if case.brings_truth else None)
    users = _users(ranks, lists, judged)
    counts = {} if lists is None else dict(lists.counts)
    if ranks is not None:
        check_length(ranks, of_ranks, test)
        counts |= {**ranks.counts, **short_of_cutoffs(ranks, of_ranks)}
        counts |= below_relevant(ranks, of_ranks)
        check_correction(ranks, source, rules)
        ranks = ranks_with(
            ranks,
            sides.side_data,
            test=test,
            train=arguments.train,
            catalogue=arguments.catalogue,
            popularity=arguments.popularity,
        )
        if sides.counts_repeated_rows:
            ranks = with_copies(ranks, test, arguments.train)
            users = users._replace(
                n_relevant=with_repeated_rows(ranks, rules.repeated_test).n_relevant
            )
        check_defects(ranks, of_ranks, rules)
    return Records(ranks, ratings, lists, baseline, judged, users, counts, request)


def measured_by(case: Case, records: Records) -> dict[str, Measured]:
    """Return the users to measure, by the kind of record."""
    found: dict[str, Measured] = {}
    sides, arguments = case.sides, case.arguments
    of_ranks, test = sides.of_rankings, sides.test
    if records.ranks is not None and of_ranks:
        at_random = any(rules_of(metric, case.protocol).ties == "random" for metric in of_ranks)
        keys = ids.user_keys(test.user_ids, test.n_users) if at_random else None
        found["ranks"] = RankedUsers(records.ranks, arguments.seed, keys)
        if records.ratings is not None:
            found["ratings"] = RatedUsers(records.ratings, arguments.seed, keys)
    if records.lists is not None:
        rules = records.request.protocol
        data = list_data(
            records.lists,
            needed_by(sides.of_lists),
            test=test,
            train=arguments.train,
            relevant_from=rules.relevant_from,
            ranks=records.ranks if case.brings_truth else None,
            catalogue=arguments.catalogue,
            baseline=records.baseline,
            in_train=_removed_rows(records.request, case.source),
            memory=sides.memory,
            popularity=arguments.popularity,
        )
        found["lists"] = ListedUsers(data, records.judged)
    return found


def request_of(case: Case) -> Request:
    """Return the request to the source; sources with the same rules share it."""
    known, rules = case.sides.requests, case.protocol
    if rules not in known:
        known[rules] = _request(case)
    return known[rules]


def _request(case: Case) -> Request:
    rules, arguments, of_ranks = case.protocol, case.arguments, case.sides.of_rankings
    forgets = rules.unranked != "misses" or rules.unknown_items != "misses"
    return Request(
        case.sides.test,
        arguments.train,
        asked_of_source(of_ranks, rules),
        _numbered(arguments.catalogue),
        None if rules.correction != "none" or forgets or arguments.chance else _depth(of_ranks),
        arguments.threads,
        arguments.progress,
        case.sides.candidates,
        arguments.exclude,
        arguments.seed,
        case.sides.memory,
        arguments.some_users,
        _whole_popularity(arguments.popularity),
    )


def _whole_popularity(popularity: Popularity | None) -> tuple[Array | None, Int64] | None:
    """Return the popularity of items in the whole train, if train has only some users."""
    return None if popularity is None else (popularity.item_ids, popularity.users)


def _judged(request: Request, source: Source, ranks: Ranks | None) -> Judged:
    """Count the judged and the relevant items of each user, in `ranks` if they are given."""
    if ranks is not None:
        return Judged(np.diff(ranks.indptr), ranks.n_relevant)
    test, rules = request.test, request.protocol
    gone = _removed_rows(request, source)
    stays = np.ones(len(test), bool) if gone is None else ~gone
    relevant = relevant_rows(test, rules.relevant_from) & stays
    rows, hits = (ragged.offsets(which, test.indptr) for which in (stays, relevant))
    return Judged(np.diff(rows), np.diff(hits))


def _removed_rows(request: Request, source: Source) -> Bool | None:
    """Return which rows of test are removed because they are in train, or None if no row is."""
    if request.train is None or not source.facts.removes_train(request.protocol):
        return None
    return request.in_train()


def _users(ranks: Ranks | None, lists: TopLists | None, judged: Judged | None) -> Users:
    if ranks is not None:
        return Users(
            ranks.n_relevant, ranks.n_candidates, ranks.n_excluded, ranks.depth, ranks.flags
        )
    assert lists is not None
    assert judged is not None
    unknown = np.full(lists.n_users, -1)
    return Users(judged.n_relevant, unknown, unknown, unknown, lists.flags)


def _numbered(catalogue: Catalogue | None) -> int | Array | None:
    """Return the ids of the items of a catalogue, or their number if it has no ids."""
    if catalogue is None:
        return None
    return catalogue.n_items if catalogue.item_ids is None else catalogue.item_ids


def _ratings(source: Source, request: Request, metrics: Iterable[Metric]) -> Ratings | None:
    """Request ratings if a metric reads them."""
    wanted = [metric for metric in metrics if metric.definition.record == "ratings"]
    if not wanted:
        return None
    ratings = source.ratings(request)
    if ratings is None:
        raise InputError(
            f"The metric {str(wanted[0])!r} reads predicted and true ratings, which the source "
            f"({source.describe()}) does not give. Hint: rm.Pairs(frame, score=..., rating=...)."
        )
    for metric in wanted:
        if metric.definition.reads == "relevance" and ratings.threshold is None:
            raise InputError(
                f"The metric {str(metric)!r} needs to know from which rating on an item is "
                f"relevant, and the source ({source.describe()}) does not say. Hint: "
                "rm.Pairs(..., threshold=3.5)."
            )
    return ratings


def _lists(
    source: Source,
    baseline: Source | EvaluationRecord | None,
    request: Request,
    metrics: Sequence[Metric],
) -> tuple[TopLists, TopLists | None]:
    """Request lists from the source and the baseline, as long as the largest cut-off."""
    depth = max(metric.cutoff or 1 for metric in metrics)
    lists = source.top(request, depth)
    if baseline is None or "baseline" not in needed_by(metrics):
        return lists, None
    if not isinstance(baseline, Source):
        return lists, _of_evaluation(baseline, request.test, depth)
    found = request.memory.find(
        "baseline",
        (depth, request.protocol),
        lambda: baseline.top(request, depth),
        same=(baseline, request.test),
    )
    return lists, found


def _of_evaluation(baseline: EvaluationRecord, test: Interactions, depth: int) -> TopLists:
    """Return the lists of an evaluation for the users of test."""
    lists = baseline.lists
    assert lists is not None
    if lists.depth < min(depth, lists.n_items):
        raise InputError(
            f"The evaluation in baseline= keeps lists of {lists.depth} places, but {depth} are "
            f"read. Hint: ask there for a metric of lists at {depth}, or pass the source itself."
        )
    what = "baseline"
    if not both_have_ids("user", what, baseline.user_ids, "test", test.user_ids):
        if test.n_users != baseline.n_users:
            raise InputError(
                f"The evaluation in baseline= has {baseline.n_users:,} users, test has "
                f"{test.n_users:,}. Hint: evaluate both on the same test."
            )
        return lists.users(np.arange(test.n_users))
    assert test.user_ids is not None
    assert baseline.user_ids is not None
    users = ids.match(test.user_ids, baseline.user_ids, "user ids of test", f"user ids of {what}")
    return lists.users(users)


def _depth(metrics: Iterable[Metric]) -> int | None:
    depths = [metric.depth for metric in metrics]
    known = [depth for depth in depths if depth is not None]
    return max(known) if known and len(known) == len(depths) else None
