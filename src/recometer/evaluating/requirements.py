"""Determines what metrics need from a source, test data and side data under the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recometer.errors import InputError
from recometer.evaluating.unused_rules import changed_rules
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

CACHE_SIZE = 64


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


_cache: dict[tuple[object, ...], tuple[Sequence[Metric], Requirements]] = {}


def requirements_of(metrics: Sequence[Metric], protocol: Protocol) -> Requirements:
    """Return the requirements of metrics, cached by metrics and rules."""
    # Compare metrics by identity, because equal metrics may have different definitions. Each entry
    # keeps its metrics, so that identities stay unique.
    key = (*map(id, metrics), protocol)
    entry = _cache.get(key)
    if entry is None:
        if len(_cache) >= CACHE_SIZE:
            _cache.clear()
        entry = _cache[key] = (tuple(metrics), _find(metrics, protocol))
    return entry[1]


def _find(metrics: Sequence[Metric], protocol: Protocol) -> Requirements:
    of_ratings, of_lists = (_reading(metrics, record) for record in ("ratings", "lists"))
    of_rankings = tuple(metric for metric in metrics if metric.definition.record != "lists")
    over_users = tuple(metric for metric in of_lists if metric.definition.over_users)
    depths = [metric.depth for metric in of_rankings]
    protocols = [rules_of(metric, protocol) for metric in metrics]
    of_rows = [rules.repeated_test for rules in protocols if rules.repeated_test in COUNT_EACH]
    repeated_test = of_rows[0] if of_rows else protocol.repeated_test
    if repeated_test == "once" and "relevant_from" not in changed_rules(protocol):
        repeated_test = "summed"
    return Requirements(
        of_rankings,
        of_ratings,
        of_lists,
        tuple(metric for metric in of_ratings if metric.definition.over_rows),
        over_users,
        len(of_rankings) > len(of_ratings),
        needed_by(of_rankings),
        needed_by(of_lists),
        None if None in depths else max(filter(None, depths), default=None),
        max((metric.cutoff or 0 for metric in of_rankings), default=0),
        max((metric.cutoff or 1 for metric in of_lists), default=0),
        tuple(str(metric) for metric in of_rankings if metric.definition.needs_whole_ranking),
        tuple(metric.cutoff for metric in of_rankings if metric.name == "rprecision"),
        any(map(parameters_from_test, metrics)),
        any(rules.users == "listed" for rules in protocols),
        any(rules_of(metric, protocol).repeated_test in COUNT_EACH for metric in of_rankings),
        repeated_test,
        any(rules.negative_gains == "counted" for rules in protocols),
        any(rules_of(metric, protocol).ties == "random" for metric in of_rankings),
        rules_for_source(of_rankings, protocol),
        _groups_of(of_rankings),
        _groups_of(of_lists),
        protocol.unranked != "misses" or protocol.unknown_items != "misses",
        definitions_of(metrics),
    )


def definitions_of(metrics: Iterable[Metric]) -> dict[str, dict[str, str]]:
    """Return the formulas and sources of metrics, and the meanings of their parameters."""
    definitions = {}
    for metric in metrics:
        definition = METRICS[metric.name]
        definitions[metric.variant] = {
            "title": definition.title,
            "formula": definition.formula,
            "source": definition.source,
            **metric.meanings,
        }
    return definitions


def _groups_of(metrics: Iterable[Metric]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(metric.group for metric in metrics if metric.group))


def _reading(metrics: Iterable[Metric], record: str) -> tuple[Metric, ...]:
    return tuple(metric for metric in metrics if metric.definition.record == record)


def rules_for_source(metrics: Iterable[Metric], protocol: Protocol) -> Protocol:
    """Return the protocol that a source must follow; raise InputError if the metrics disagree."""
    changed: dict[str, Any] = {}
    for rule in ("score_above", "duplicates"):
        settings = {getattr(rules_of(metric, protocol), rule) for metric in metrics}
        settings -= {protocol.declared[rule].default}
        if rule == "duplicates" and len(settings) > 1:  # keep repeats if any metric counts them
            settings = {"counted"}
        if len(settings) > 1:
            values = " and ".join(map(str, settings))
            raise InputError(f"Some metrics need the rule {rule} to be {values}.")
        if settings:
            changed[rule] = settings.pop()
    return protocol.replace(**changed) if changed else protocol
