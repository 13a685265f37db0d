"""Request the records that the metrics read from a source."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64, UInt32
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids, relevant_rows
from recometer.errors import InputError, argument_text, python_or_command
from recometer.evaluating.case import Case
from recometer.evaluating.checks import (
    below_relevant,
    check_correction,
    check_defects,
    check_length,
    short_of_cutoff,
)
from recometer.evaluating.requirements import Requirements
from recometer.measuring.listed import Judged, ListedUsers
from recometer.measuring.measured import Measured
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.measuring.settling import leave_out, with_repeated_rows
from recometer.measuring.side_data import list_data, ranks_with, with_copies
from recometer.metrics import Metric
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
    rules, sides, source, needs = case.protocol, case.sides, case.source, case.requirements
    arguments, test, request = sides.arguments, sides.test, request_of(case)
    ratings, ranks = None, None
    if needs.of_ratings:
        ratings = _ratings(source, request, needs.of_ratings)
    if ratings is not None and not (ratings.repeats and needs.reads_ranks):
        ranks = ratings.ranks
    elif needs.of_rankings or case.brings_truth:
        ranks = source.rank(request)
        if needs.leaves_out:
            ranks = leave_out(ranks, rules)
    lists, baseline, judged = None, None, None
    if needs.of_lists:
        lists, baseline = _lists(source, arguments.baseline, request, needs)
        judged = _judged(request, source, ranks if case.brings_truth else None)
    users = _users(ranks, lists, judged)
    counts = {} if lists is None else dict(lists.counts)
    if ranks is not None:
        if needs.whole_ranking:
            check_length(ranks, needs.whole_ranking, test)
        counts |= ranks.counts
        if ranks.any_cutoff and needs.cutoff:
            counts |= short_of_cutoff(ranks, needs.cutoff)
        if needs.rprecision:
            counts |= below_relevant(ranks, needs.rprecision)
        if rules.correction != "none":
            check_correction(ranks, source, rules)
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


def measured_by(case: Case, records: Records) -> dict[str, Measured]:
    """Return the users to measure, by the kind of record."""
    found: dict[str, Measured] = {}
    sides, needs = case.sides, case.requirements
    arguments, test = sides.arguments, sides.test
    if records.ranks is not None and needs.of_rankings:
        keys = ids.user_keys(test.user_ids, test.n_users) if needs.at_random else None
        found["ranks"] = RankedUsers(records.ranks, arguments.seed, keys)
        if records.ratings is not None:
            found["ratings"] = RatedUsers(records.ratings, arguments.seed, keys)
    if records.lists is not None:
        rules = records.request.protocol
        data = list_data(
            records.lists,
            needs.side_data_of_lists,
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
    sides, rules, needs = case.sides, case.protocol, case.requirements
    found = sides.requests.get(rules)
    if found is None:
        arguments = sides.arguments
        items, popularity = arguments.catalogue, arguments.popularity
        catalogue: int | Array | None = None
        if items is not None:
            catalogue = items.n_items if items.item_ids is None else items.item_ids
        reads_all = rules.correction != "none" or needs.leaves_out or arguments.chance
        found = sides.requests[rules] = Request(
            sides.test,
            arguments.train,
            needs.for_source,
            catalogue,
            None if reads_all else needs.depth,
            arguments.threads,
            arguments.progress,
            sides.candidates,
            arguments.exclude,
            arguments.seed,
            sides.memory,
            arguments.some_users,
            None if popularity is None else (popularity.item_ids, popularity.users),
        )
    return found


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


def _ratings(source: Source, request: Request, metrics: Sequence[Metric]) -> Ratings:
    """Request ratings."""
    ratings = source.ratings(request)
    if ratings is None:
        hint = python_or_command(
            "rm.Pairs(frame, score=..., rating=...).",
            "--pairs FILE reads predicted ratings; --value names the column of the true ones.",
        )
        raise InputError(
            f"The metric {str(metrics[0])!r} reads predicted and true ratings, which the source "
            f"({source.describe()}) does not give. Hint: {hint}"
        )
    for metric in metrics:
        if metric.definition.reads == "relevance" and ratings.threshold is None:
            raise InputError(
                f"The metric {str(metric)!r} needs to know from which rating on an item is "
                f"relevant, and the source ({source.describe()}) does not say. Hint: "
                f"{python_or_command('rm.Pairs(..., threshold=3.5)', '--relevant-from 3.5')}."
            )
    return dataclasses.replace(ratings, ranks=leave_out(ratings.ranks, request.protocol))


def _lists(
    source: Source,
    baseline: Source | EvaluationRecord | None,
    request: Request,
    needs: Requirements,
) -> tuple[TopLists, TopLists | None]:
    """Request lists from the source and the baseline, as long as the largest cut-off."""
    depth = needs.depth_of_lists
    lists = source.top(request, depth)
    if baseline is None or "baseline" not in needs.side_data_of_lists:
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
            f"The evaluation in {argument_text('baseline')} keeps lists of {lists.depth} places, "
            f"but {depth} are read. Hint: ask there for a metric of lists at {depth}, or pass the "
            "source itself."
        )
    what = "baseline"
    if not both_have_ids("user", what, baseline.user_ids, "test", test.user_ids):
        if test.n_users != baseline.n_users:
            raise InputError(
                f"The evaluation in {argument_text('baseline')} has {baseline.n_users:,} users, "
                f"test has {test.n_users:,}. Hint: evaluate both on the same test."
            )
        return lists.users(np.arange(test.n_users))
    assert test.user_ids is not None
    assert baseline.user_ids is not None
    users = ids.match(test.user_ids, baseline.user_ids, "user ids of test", f"user ids of {what}")
    return lists.users(users)
