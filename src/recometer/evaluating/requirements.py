"""Determines what metrics need from a source, test data and side data under the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recometer.errors import InputError
from recometer.evaluating.unused_rules import given_by_hand
from recometer.measuring.settling import COUNT_EACH
from recometer.measuring.side_data import needed_by
from recometer.metrics.registry import (
    METRICS,
    Metric,
    SideData,
    parameters_from_test,
    rules_of,
)
from recometer.protocol import Protocol, RepeatedTest

MOST_KEPT = 64


class Requirements(NamedTuple):
    """What metrics require under the rules; cached by `requirements_of`."""

    of_rankings: tuple[Metric, ...]  # metrics that read ranks or ratings
    of_ratings: tuple[Metric, ...]
    of_lists: tuple[Metric, ...]
    over_rows: tuple[Metric, ...]  # rating metrics with one value over the rows of all users
    over_users: tuple[Metric, ...]  # list metrics with one value for all users
    reads_ranks: bool  # whether any metric reads ranks rather than ratings or lists
    side_data: Mapping[SideData, Metric]  # each kind, with a ranking metric that needs it
    side_data_of_lists: Mapping[SideData, Metric]
    depth: int | None  # number of top places that ranking metrics read; None for all
    cutoff: int  # the largest cut-off of ranking metrics, or 0 without cut-offs
    depth_of_lists: int
    whole_ranking: tuple[str, ...]  # names of metrics that need the whole ranking
    rprecision: tuple[int | None, ...]  # cut-offs of R-precision
    takes_largest_gain: bool  # whether a parameter is set to the largest gain in test
    listed_users: bool  # whether users with a list count even if they are not in test
    each_row: bool  # whether a ranking metric counts every row of a repeated pair
    repeated_test: RepeatedTest  # the rule for the values of repeated test pairs
    negative_gains: bool  # whether a metric counts gains below 0
    at_random: bool  # whether tied items are ordered at random
    for_source: Protocol  # the protocol that a source must follow for all metrics
    groups: tuple[str, ...]  # groups of items to which ranking metrics are restricted
    groups_of_lists: tuple[str, ...]
    leaves_out: bool  # whether unranked items may be left out of test
    # For each metric (named without its cut-off): the formula, the source, and the meaning of the
    # parameters.
    definitions: Mapping[str, Mapping[str, str]]


_found: dict[tuple[object, ...], tuple[Sequence[Metric], Requirements]] = {}


def requirements_of(metrics: Sequence[Metric], protocol: Protocol) -> Requirements:
    """Return the requirements of metrics, cached by metrics and rules."""
    # Compare metrics by identity, because equal metrics may have different definitions. Each entry
    # keeps its metrics, so that identities stay unique.
    key = (*map(id, metrics), protocol)
    found = _found.get(key)
    if found is None:
        if len(_found) >= MOST_KEPT:
            _found.clear()
        found = _found[key] = (tuple(metrics), _find(metrics, protocol))
    return found[1]


def _find(metrics: Sequence[Metric], protocol: Protocol) -> Requirements:
    of_ratings, of_lists = (_reading(metrics, record) for record in ("ratings", "lists"))
    of_rankings = tuple(one for one in metrics if one.definition.record != "lists")
    over_users = tuple(one for one in of_lists if one.definition.over_users)
    depths = [one.depth for one in of_rankings]
    rules = [rules_of(one, protocol) for one in metrics]
    of_rows = [one.repeated_test for one in rules if one.repeated_test in COUNT_EACH]
    repeated_test = of_rows[0] if of_rows else protocol.repeated_test
    if repeated_test == "once" and "relevant_from" not in given_by_hand(protocol):
        repeated_test = "summed"
    return Requirements(
        of_rankings,
        of_ratings,
        of_lists,
        tuple(one for one in of_ratings if one.definition.over_rows),
        over_users,
        len(of_rankings) > len(of_ratings),
        needed_by(of_rankings),
        needed_by(of_lists),
        None if None in depths else max(filter(None, depths), default=None),
        max((one.cutoff or 0 for one in of_rankings), default=0),
        max((one.cutoff or 1 for one in of_lists), default=0),
        tuple(str(one) for one in of_rankings if one.definition.needs_whole_ranking),
        tuple(one.cutoff for one in of_rankings if one.name == "rprecision"),
        any(map(parameters_from_test, metrics)),
        any(one.users == "listed" for one in rules),
        any(rules_of(one, protocol).repeated_test in COUNT_EACH for one in of_rankings),
        repeated_test,
        any(one.negative_gains == "counted" for one in rules),
        any(rules_of(one, protocol).ties == "random" for one in of_rankings),
        rules_for_source(of_rankings, protocol),
        _groups_of(of_rankings),
        _groups_of(of_lists),
        protocol.unranked != "misses" or protocol.unknown_items != "misses",
        definitions_of(metrics),
    )


def definitions_of(metrics: Iterable[Metric]) -> dict[str, dict[str, str]]:
    """Return the formulas and sources of metrics, and the meanings of their parameters."""
    found = {}
    for metric in metrics:
        definition = METRICS[metric.name]
        found[metric.variant] = {
            "title": definition.title,
            "formula": definition.formula,
            "source": definition.source,
            **metric.meanings,
        }
    return found


def _groups_of(metrics: Iterable[Metric]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.group for one in metrics if one.group))


def _reading(metrics: Iterable[Metric], record: str) -> tuple[Metric, ...]:
    return tuple(one for one in metrics if one.definition.record == record)


def rules_for_source(metrics: Iterable[Metric], protocol: Protocol) -> Protocol:
    """Return the protocol that a source must follow; raise InputError if the metrics disagree."""
    changed: dict[str, Any] = {}
    for rule in ("score_above", "duplicates"):
        wanted = {getattr(rules_of(metric, protocol), rule) for metric in metrics}
        wanted -= {protocol.declared[rule].default}
        if rule == "duplicates" and len(wanted) > 1:  # keep repeats if any metric counts them
            wanted = {"counted"}
        if len(wanted) > 1:
            values = " and ".join(map(str, wanted))
            raise InputError(f"Some metrics need the rule {rule} to be {values}.")
        if wanted:
            changed[rule] = wanted.pop()
    return protocol.replace(**changed) if changed else protocol
