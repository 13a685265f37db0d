"""A user with ties gets the same values whether or not users without ties are evaluated too."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import recometer as rm
from recometer.protocol import TieRule

METRICS = (
    "ndcg@3 dcg(gain=exponential) ap ap@2 rr hit@2 precision@3 recall roc_auc pr_auc rprecision "
    "partial_auc@2 err@3(max_gain=3) rbp mcc@2 mean_rank bpref"
)
USERS, ITEMS = [f"u{number:02}" for number in range(40)], list("abcdefgh")
OF_SCORES = [rule for rule in get_args(TieRule) if rule not in ("input", "as_ranked")]


@pytest.mark.parametrize("ties", OF_SCORES)
def test_values_of_users_with_ties_do_not_depend_on_users_without_ties(ties: TieRule) -> None:
    generator = np.random.default_rng(0)
    scores = generator.permuted(np.tile(np.arange(8.0), (40, 1)), axis=1)
    gains = np.where(generator.random((40, 8)) < 0.4, generator.integers(1, 4, (40, 8)), 0)
    # A judged item of user 7 is tied with an unjudged item, and user 8 has two tied judged items.
    scores[7], gains[7] = [6, 6, 5, 4, 3, 2, 1, 0], [2, 0, 1, 0, 0, 3, 0, 0]
    scores[8], gains[8] = [6, 5, 4, 4, 3, 2, 1, 0], [1, 0, 3, 1, 0, 0, 0, 2]
    test = {
        user: {item: int(gain) for item, gain in zip(ITEMS, row, strict=True) if gain}
        for user, row in zip(USERS, gains, strict=True)
    }
    source = rm.Scores(scores, user_ids=USERS, item_ids=ITEMS)
    together = rm.evaluate(source, test, metrics=METRICS, ties=ties)
    for number in (6, 7, 8, 9):
        user = USERS[number]
        single = rm.evaluate(source, {user: test[user]}, metrics=METRICS, ties=ties)
        for metric, value in single.values.items():
            np.testing.assert_array_equal(together[metric][number], value[0], err_msg=metric)


def test_tie_at_the_deepest_cutoff_is_resolved_as_for_a_single_user() -> None:
    scores = np.random.default_rng(0).permuted(np.tile(np.arange(8.0), (40, 1)), axis=1)
    scores[7] = [5, 5, 6, 7, 3, 2, 1, 0]
    source = rm.Scores(scores, user_ids=USERS, item_ids=ITEMS)
    test = {user: ["a"] for user in USERS}
    together = rm.evaluate(source, test, metrics="recall@1,3")
    single = rm.evaluate(source, {USERS[7]: ["a"]}, metrics="recall@1,3")
    for metric, value in single.values.items():
        np.testing.assert_array_equal(together[metric][7], value[0], err_msg=metric)
