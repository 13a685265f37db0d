"""The checks of an audit, which find leakage, repeated rows, cold-start users and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recometer.auditing.facts import Facts
from recometer.auditing.findings import Finding, Level, counted, unchecked
from recometer.errors import argument_text

UNDEFINED = "their metrics are undefined, and they are not in the mean"


class Check(NamedTuple):
    """A check that turns a count in `Facts.matches` into a finding.

    `what` describes the counted rows, users or items. The finding's sentence is `meaning` if there
    are any, and `clear` if there are none. `what` and `meaning` are templates that `_numbers` fills
    in. `total` names the number that the count is a part of, and `statistics` names the finding's
    additional numbers.
    """

    name: str
    what: str
    level: Level
    meaning: str
    clear: str
    total: str = "test"
    statistics: tuple[str, ...] = ()

    def finding(self, facts: Facts, numbers: Mapping[str, Any]) -> Finding:
        """Return the finding, or one that says which sides lack the times that the check needs."""
        what, total = self.what.format_map(numbers), numbers[self.total]
        if self.name not in facts.matches:
            have = "have" if len(facts.untimed) > 1 else "has"
            why = f"{' and '.join(facts.untimed)} {have} no times."
            return unchecked(what, why, total, name=self.name)
        n, examples = facts.matches[self.name]
        statistics = {name: numbers[name] for name in self.statistics if name in numbers}
        meaning = self.meaning.format_map(numbers)
        return counted(
            n, total, examples, what, self.level, meaning, self.clear, statistics, name=self.name
        )


# Findings are reported in this order.
CHECKS = (
    Check(
        "overlap",
        "test interactions that are also in the training data",
        "leakage",
        "The model has already seen them. If they count as hits, they flatter the model; if they "
        "are left out, as evaluate does with {train_argument}, there is less test data."
        "{with_same_time}",
        "No user-item pair is on both sides.",
        statistics=("same_time",),
    ),
    Check(
        "older_than_own_training",
        "test interactions older than the user's newest training interaction",
        "leakage",
        "The model has seen what these users did later, and predicts the past from the future: "
        "the result is better than it will be in use.",
        "No test interaction is older than its user's newest training interaction.",
    ),
    Check(
        "older_than_training",
        "test interactions older than the newest training interaction of any user",
        "leakage",
        "The model has seen tastes and items from after the time on which it is tested: "
        "{training_newer:,} training interactions ({newer_share:.1%}) are newer than the oldest "
        "test interaction. Splitting all users at the same time avoids this.",
        "No test interaction is older than the newest training interaction.",
        statistics=("training_newer",),
    ),
    Check(
        "same_time",
        "test interactions at the time of the user's newest training interaction",
        "fact",
        "The times do not show which came first: a rule decided which of them are in test.",
        "The times show what came first.",
    ),
    *(
        Check(
            f"{side}_duplicates",
            f"{side} rows that repeat a user-item pair",
            "warning",
            f"Here they were {{{side}_settled}}. If they are kept, each repeat counts again {use}.",
            f"No user-item pair occurs twice in {side}.",
            total=f"{side}_rows",
        )
        for side, use in (("train", "in training"), ("test", "in the metrics"))
    ),
    Check(
        "unseen_users",
        "test users without a training interaction",
        "warning",
        "Nothing is known about them (cold start): they get the same list as any unknown user, or "
        "none, and lower the mean, unless the rule cold_start leaves them out.{if_all_users}",
        "Every test user has training interactions.",
        total="tested",
    ),
    Check(
        "unseen_items",
        "test items without a training interaction",
        "warning",
        "No model that learns only from interactions can tell which users they suit.{if_all_items}",
        "Every test item has training interactions.",
        total="items_tested",
    ),
    Check(
        "unreachable",
        "relevant test interactions with such items",
        "warning",
        "A model that lists only training items misses them all: it finds at most {best:.1%} of "
        "the relevant items.",
        "A model that lists only training items can find every relevant test item.",
        total="relevant",
    ),
    Check(
        "users_without_relevant",
        "test users without a relevant interaction",
        "warning",
        f"They have nothing that could be found: {UNDEFINED}.",
        "Every test user has a relevant interaction.",
        total="tested",
    ),
    Check(
        "users_emptied",
        "test users whose relevant interactions are all in the training data",
        "warning",
        f"Once the training items are left out, there is nothing left to find: {UNDEFINED}.",
        "No test user's relevant interactions are all in the training data.",
        total="tested",
    ),
    Check(
        "users_without_candidates",
        "test users with fewer than {min_candidates:,} items left to rank",
        "warning",
        f"Nearly every item is already one of their training items: {UNDEFINED} (the rule "
        "min_candidates).",
        "Everyone else has enough items to rank.",
        total="tested",
    ),
    Check(
        "users_few_relevant",
        "test users with fewer than {min_positives:,} relevant interactions left",
        "warning",
        f"They have too few relevant items: {UNDEFINED} (the rule min_positives).",
        "Everyone else has enough relevant interactions.",
        total="tested",
    ),
    Check(
        "untested_users",
        "training users without a test interaction",
        "fact",
        "The result says nothing about them: it only covers the test users.",
        "Every training user is tested.",
        total="users_trained",
    ),
)
LEAKAGE = tuple(check.name for check in CHECKS if check.level == "leakage")
"""The names of the findings that can be leakage."""


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of all checks."""
    numbers = _numbers(facts)
    return tuple(check.finding(facts, numbers) for check in CHECKS)


def _numbers(facts: Facts) -> dict[str, Any]:
    """Return the numbers and phrases that fill the templates of `Check`, keyed by name."""
    counts, n_found = facts.counts, {name: matches.n for name, matches in facts.matches.items()}
    numbers: dict[str, Any] = {
        **counts,
        "train_argument": argument_text("train"),
        "with_same_time": "",
        "newer_share": counts.get("training_newer", 0) / counts["train"],
        "if_all_users": "",
        "if_all_items": "",
        "best": 1 - n_found["unreachable"] / max(counts["relevant"], 1),
        "min_candidates": facts.rules.min_candidates,
        "min_positives": facts.rules.min_positives,
    }
    if "same_time" in counts:
        same = f" {counts['same_time']:,} of them have the same time on both sides."
        numbers["with_same_time"] = same
    if n_found["unseen_users"] == counts["tested"]:
        numbers["if_all_users"] = f" That is everyone: {_ask_about(facts, 'user')}"
    if n_found["unseen_items"] == counts["items_tested"]:
        numbers["if_all_items"] = f" That is all of them: {_ask_about(facts, 'item')}"
    for side in ("train", "test"):
        numbers[f"{side}_rows"] = counts[side] + n_found[f"{side}_duplicates"]
        numbers[f"{side}_settled"] = "added up" if side in facts.valued else "counted once"
    return numbers


def _ask_about(facts: Facts, kind: str) -> str:
    """Return a question that asks the user whether ids are written the same way on both sides."""
    of_test, of_train = facts.first("test", kind), facts.first("train", kind)
    if of_test is None or of_train is None:
        return "do positions mean the same on both sides?"
    return (
        f"are ids spelled the same way? Test ids look like {of_test}, training ids like {of_train}."
    )
