"""Checks of who and what can be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from recometer.auditing._sides import Sides, of_rows, of_users
from recometer.auditing.findings import Finding, counted
from recometer.data import ids
from recometer.data.interactions import Interactions

UNDEFINED = "their metrics are undefined, and they are not in the mean"


def train_duplicates(sides: Sides) -> Finding:
    """Rows of train that repeat a pair of user and item."""
    return _duplicates("train", sides.train)


def test_duplicates(sides: Sides) -> Finding:
    """Rows of test that repeat a pair of user and item."""
    return _duplicates("test", sides.test)


def unseen_users(sides: Sides) -> Finding:
    """Users of test that train does not have."""
    chosen = sides.tested & (sides.trained == 0)
    everyone = len(sides.train) and chosen.any() and chosen.sum() == sides.tested.sum()
    alike = compare_ids(sides.test.user_ids, sides.train.user_ids) if everyone else ""
    return of_users(
        sides,
        chosen,
        "users of test without an interaction in train",
        "warning",
        on_unseen_users(alike),
        "Every user of test has interactions in train.",
    )


def unseen_items(sides: Sides) -> Finding:
    """Items of test that train does not have."""
    chosen = (sides.item_counts_of_test > 0) & ~sides.item_seen
    alike = "" if sides.seen.any() else compare_ids(sides.test.item_ids, sides.train.item_ids)
    return of_unseen_items(
        int(np.count_nonzero(chosen)),
        int(np.count_nonzero(sides.item_counts_of_test)),
        sides.examples(np.flatnonzero(chosen), sides.test.item_ids),
        alike,
    )


def on_unseen_users(alike: str) -> str:
    """Say which effect users without training have; if nobody has any, ask about ids."""
    found = (
        "Nothing is known of them (cold start): they get the same list as any unknown user, or "
        "none, and lower the mean, unless the rule cold_start leaves them out."
    )
    return f"{found} That is everyone: {alike}" if alike else found


def of_unseen_items(count: int, total: int, examples: tuple[Any, ...], alike: str) -> Finding:
    """Return the finding of unseen items; `alike` asks about ids where train has none of them."""
    found = "No model that learns only from interactions can tell whom they suit."
    return counted(
        count,
        total,
        examples,
        "items of test without an interaction in train",
        "warning",
        f"{found} That is all of them: {alike}" if alike else found,
        "Every item of test has interactions in train.",
    )


def unreachable(sides: Sides) -> Finding:
    """Relevant interactions with items that train does not have."""
    chosen = sides.relevant & ~sides.seen
    return of_rows(
        sides,
        chosen,
        "relevant interactions of test with such items",
        "warning",
        on_unreachable(int(np.count_nonzero(chosen)), int(np.count_nonzero(sides.relevant))),
        "Everything relevant in test could be found by a model of train's items.",
        among=sides.relevant,
    )


def on_unreachable(count: int, total: int) -> str:
    """Say how many of the relevant interactions can be found at most."""
    best = 1 - count / max(total, 1)
    return (
        "A model that lists only items of train misses them all: it finds at most "
        f"{best:.1%} of what is relevant."
    )


def users_without_relevant(sides: Sides) -> Finding:
    """Users of test who found nothing relevant."""
    return of_users(
        sides,
        sides.tested & (sides.count_users(sides.relevant) == 0),
        "users of test without a relevant interaction",
        "warning",
        f"They have nothing that could be found: {UNDEFINED}.",
        "Every user of test has something relevant there.",
    )


def users_emptied(sides: Sides) -> Finding:
    """Users of test whose relevant interactions are all in train too."""
    return of_users(
        sides,
        (sides.count_users(sides.relevant) > 0) & (sides.left == 0),
        "users of test whose relevant interactions are all in train",
        "warning",
        f"Once what is in train is left out, nothing can be found: {UNDEFINED}.",
        "No user of test loses everything relevant to train.",
    )


def users_without_candidates(sides: Sides) -> Finding:
    """Users of test for whom there is next to nothing to rank."""
    least = sides.rules.min_candidates
    return of_users(
        sides,
        (sides.left > 0) & (sides.candidates < least),
        f"users of test with fewer than {least:,} items left to rank",
        "warning",
        f"They have nearly every item in train already: {UNDEFINED} (the rule min_candidates).",
        "Everyone else has enough items to rank.",
    )


def users_few_relevant(sides: Sides) -> Finding:
    """Users of test who found something relevant, but less than is asked for."""
    least = sides.rules.min_positives
    enough = sides.candidates >= sides.rules.min_candidates
    return of_users(
        sides,
        (sides.left > 0) & (sides.left < least) & enough,
        f"users of test with fewer than {least:,} relevant interactions left",
        "warning",
        f"Too little to go by: {UNDEFINED} (the rule min_positives).",
        "Everyone else has enough that is relevant.",
    )


def untested_users(sides: Sides) -> Finding:
    """Users of train of whom nothing is in test."""
    chosen = np.diff(sides.train.indptr) > 0
    total = int(np.count_nonzero(chosen))
    chosen[sides.users[sides.tested & (sides.users >= 0)]] = False
    return counted(
        int(np.count_nonzero(chosen)),
        total,
        sides.examples(np.flatnonzero(chosen), sides.train.user_ids),
        "users of train without an interaction in test",
        "fact",
        "The result says nothing about them: it is that of the users of test.",
        "Every user of train is tested.",
    )


def _duplicates(side: str, data: Interactions) -> Finding:
    settled = "counted once" if data.values is None else "added up"
    return counted(
        data.duplicates,
        len(data) + data.duplicates,
        data.repeated,
        f"rows of {side} that repeat a pair of user and item",
        "warning",
        f"Here they were {settled}. If they are kept, they weigh "
        f"{'in training' if side == 'train' else 'in the metrics'} as often as they occur.",
        f"No pair of user and item is in {side} twice.",
    )


def compare_ids(of_test: ids.Ids | None, of_train: ids.Ids | None) -> str:
    """Ask whether ids are written alike."""
    if of_test is None or of_train is None:
        return "do the positions of both sides mean the same?"
    return (
        f"are ids written alike? Those of test are such as {ids.show(of_test, 0)}, those of train "
        f"such as {ids.show(of_train, 0)}."
    )
