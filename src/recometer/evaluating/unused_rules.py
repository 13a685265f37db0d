"""Finds rules that the user set, but that do not change the requested metrics.

A warning names such rules. It does not name the rules of a convention, which are meant for all
kinds of data that its library takes, lists as well as matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from recometer.errors import rule_text, warn
from recometer.metrics.conventions import find_convention, parse_under
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.sources.base import Source

OF_RANKINGS = "it applies to rankings, which these metrics do not read"
OF_MEANS = "there is one value for all users, not a mean"
TRUE_RATINGS = "rating metrics need only one row, at any rank"
AS_LISTED = "list metrics read the listed items, independently of test"

OF_GAINS = "it applies to gains, which these metrics do not read"

OF_ALL_USERS = "it applies to metrics with one value for all users"
LISTS = {
    "negative_gains": OF_GAINS,
    "min_candidates": OF_RANKINGS,
    "deep_cutoffs": OF_RANKINGS,
    "all_relevant": OF_RANKINGS,
    "unranked": AS_LISTED,
    "unknown_items": AS_LISTED,
    "score_above": OF_RANKINGS,
    "duplicates": "list metrics read each item once",
    "repeated_test": "list metrics read whether an item is in test",
}

# For each record that metrics read, the rules that do not change values, reasons or means, and why;
# "all users" stands for metrics with one value for all users. All other rules have an effect.
UNREAD: Mapping[str, Mapping[str, str]] = {
    "ranks": {"percent": OF_ALL_USERS},
    "ratings": {
        "negative_gains": OF_GAINS,
        "constant_scores": TRUE_RATINGS,
        "min_positives": TRUE_RATINGS,
        "min_candidates": TRUE_RATINGS,
        "no_list": "every user with a true rating has a prediction",
        "deep_cutoffs": TRUE_RATINGS,
        "all_relevant": TRUE_RATINGS,
        "percent": OF_ALL_USERS,
        "duplicates": "repeated pairs keep all their rows",
        "repeated_test": "repeated pairs keep all their rows",
    },
    "lists": {**LISTS, "percent": OF_ALL_USERS},
    "all users": {
        **LISTS,
        "relevant_from": AS_LISTED,
        "min_positives": AS_LISTED,
        "interval": "such intervals always come from resampling users",
        "no_relevant": AS_LISTED,
        "missing": OF_MEANS,
        "average": OF_MEANS,
    },
}
# Values of the rule `users` that only leave users out of a mean; "known" and "listed" also change
# whose lists are read.
USERS_OF_MEANS = ("all", "relevant", "known_relevant", "positive")


@functools.cache
def usual_protocol(kind: type[Protocol]) -> Protocol:
    """Return the default rules of a class of protocols (cached)."""
    return kind()


@functools.lru_cache(maxsize=64)
def changed_rules(protocol: Protocol) -> tuple[str, ...]:
    """Return the rules of a protocol that differ from its convention, or from the defaults."""
    convention = find_convention(protocol.name)
    kind: Any = type(protocol)  # mypy thinks that the cached function's argument is unhashable
    usual = usual_protocol(kind) if convention is None else convention.protocol
    return tuple(rule for rule in protocol.to_dict() if protocol.differs(rule, usual))


def warn_without_effect(
    source: Source,
    metrics: Sequence[Metric],
    protocol: Protocol,
    rules: Sequence[str],
    *,
    trained: bool,
) -> None:
    """Warn about rules that the user set, but that do not change the requested metrics.

    `rules` is from `changed_rules`; `trained` says whether there are training data.
    """
    convention = find_convention(protocol.name)
    definitions = [metric.definition for metric in metrics]
    kinds = dict.fromkeys("all users" if d.over_users else d.record for d in definitions)
    for rule in rules:
        reasons, reason = [_reason(source, kind, rule, protocol) for kind in kinds], ""
        if protocol.defects and convention is not None and rule in convention.defect_rules:
            reason = f"{convention.library} does not follow it ({rule_text('defects', True)})"
        elif rule in ("seen", "cold_start") and not trained:
            reason = "there are no training data"
        elif rule == "seen" and source.facts.removes_train(protocol):
            reason = f"{type(source).__name__} are not lists: training items are not ranked"
        elif rule == "defects" and protocol.defects:
            names = [metric.label or str(metric) for metric in metrics]
            refused = convention is not None and any(map(convention.refused_for, metrics))
            documented = parse_under(names, protocol.replace(defects=False)) == list(metrics)
            if documented and not refused:
                reason = "these metrics are computed as documented"
        elif all(reasons):
            reason = "; ".join(dict.fromkeys(filter(None, reasons)))
        if reason:
            text = rule_text(rule, getattr(protocol, rule))
            warn(f"The rule {text} changes nothing here: {reason}.")


def _reason(source: Source, kind: str, rule: str, protocol: Protocol) -> str | None:
    """Return why a rule does not change the metrics, or None if it does."""
    if rule == "average" and protocol.average == "users" and kind in ("ranks", "lists"):
        return "every user already counts equally"
    if kind == "all users" and rule == "users":
        return OF_MEANS if protocol.users in USERS_OF_MEANS else None
    facts, of_lists = source.facts, kind in ("lists", "all users")
    if rule == "duplicates" and not facts.repeats_items and facts.listed is not None:
        return "repeats in generated lists keep their places as misses"
    if rule == "duplicates" and not facts.repeats_items:
        return f"{type(source).__name__} cannot repeat items, unlike lists"
    if rule == "constant_scores" and facts.listed is not None and of_lists:
        return "lists are read in the order given"
    of_value = facts.unread.get(f"{rule}={getattr(protocol, rule)}")
    return of_value or facts.unread.get(rule) or UNREAD[kind].get(rule)
