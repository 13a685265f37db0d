"""A result summed up: a row per metric, and the table and the notes that ``print`` shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recometer import rendering
from recometer.metrics.conventions import describe
from recometer.protocol import Protocol

# What a count says, with the rule that settled it. Others are shown by their name.
COUNTS = {
    "users_unknown": "users of test that the source does not know",
    "items_unknown": "items of test that the source does not know (they rank last)",
    "relevant_unranked": "relevant rows of test with such items",
    "relevant_not_candidates": "relevant rows of test that are no candidates (misses)",
    "rows_not_candidates": "rows of pairs that are no candidates (not ranked)",
    "list_not_candidates": "entries of lists that are no candidates (the rest moves up)",
    "candidates_unknown": "candidates that the source does not know (ignored)",
    "exclude_unknown": "items to exclude that the source does not know (ignored)",
    "candidates_short": "users for whom fewer candidates could be drawn than asked for",
    "users_without_candidates": "users of test without a candidate",
    "list_users_ignored": "users with a list that are not in test (ignored)",
    "list_duplicates": "entries of lists that repeat an item (counted once, at its first place)",
    "list_repeats": "entries of lists that repeat an item (see the rule duplicates)",
    "list_train_items": "entries of lists that are also in train (the rest moves up)",
    "list_items_uncatalogued": "items of lists that the catalogue lacks (added to it)",
    "cut_in_ties": "users whose list is cut among equal scores (the lower ids stay)",
    "train_test_overlap": "rows of test that are also in train (left out of test)",
    "rows_without_truth": "rows of the source without a true rating or relevance (left out)",
    "users_below_cutoff": "users with fewer rows than a cut-off (the missing places are misses)",
    "test_duplicates": "rows of test that repeat a pair of user and item (settled)",
    "train_duplicates": "rows of train that repeat a pair of user and item (settled)",
}


@dataclasses.dataclass(frozen=True)
class SummaryRow:
    """A metric over all users.

    Attributes
    ----------
    metric
        Its name, for instance ``"ndcg@10"``.
    mean
        Over the users for whom it is defined; NaN if there is none.
    low, high
        Ends of the mean's interval; NaN for fewer than two users.
    counted, skipped
        Users that are in the mean, and that are not.
    reasons
        Why it is undefined, with the number of users: those that are skipped, or that
        count as the number of the rule ``undefined``.
    """

    metric: str
    mean: float
    low: float
    high: float
    counted: int
    skipped: int
    reasons: Mapping[str, int]


def table(rows: Iterable[SummaryRow], protocol: Protocol, below: Iterable[str]) -> rendering.Table:
    """Return the table of a result: a line per metric, and the notes below."""
    headers = ["metric", "mean", f"{protocol.confidence:.0%} interval", "counted"]
    headers += ["skipped", "why"]
    number = protocol.undefined
    settled = "" if number == "nan" else f" (counted as {number:g})"
    lines = []
    for row in rows:
        why = "; ".join(f"{users:,}{settled}: {reason}" for reason, users in row.reasons.items())
        interval = "" if np.isnan(row.low) else f"{row.low:.4f} to {row.high:.4f}"
        mean, counted, skipped = f"{row.mean:.4f}", f"{row.counted:,}", f"{row.skipped:,}"
        lines.append((row.metric, mean, interval, counted, skipped, why))
    return rendering.Table(headers, lines, ("mean", headers[2], "counted", "skipped"), list(below))


def notes(
    inputs: Mapping[str, Mapping[str, Any]],
    over_rows: Mapping[str, float],
    counts: Mapping[str, int],
    protocol: Protocol,
) -> list[str]:
    """Return what a result was computed from, what was settled, and by which rules."""
    found = [f"{name}: {described['description']}" for name, described in inputs.items()]
    found += [described["reading"] for described in inputs.values() if "reading" in described]
    if over_rows:
        values = " ".join(f"{name} {value:.4f}" for name, value in over_rows.items())
        found.append(f"over the rows of all users: {values}")
    found += [
        f"Warning: {described['warning']}"
        for described in inputs.values()
        if "warning" in described
    ]
    found += [f"{COUNTS.get(name, name)}: {count:,}" for name, count in counts.items() if count]
    if protocol != Protocol():
        found.append(f"protocol: {describe(protocol)}")
    return found
