"""The expected value of each metric for a random order of the candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from recometer.arrays import Float64
from recometer.errors import InputError, argument_text, python_or_command
from recometer.measuring.compute import compute
from recometer.measuring.ranked import RankedUsers
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks

EXPECTED = {"ties": "expected", "constant_scores": "ties"}


def chance_of(
    ranks: Ranks | None, metrics: Sequence[Metric], protocol: Protocol, threads: int
) -> dict[str, Float64]:
    """Return the exact expected value of each metric over all orders of a user's candidates.

    All candidates are one group of ties, over whose orders the rule ``ties="expected"`` averages
    (McSherry & Najork, "Computing information retrieval performance measures efficiently in the
    presence of tied scores", ECIR 2008), without drawing any. Undefined values are NaN.

    Raises InputError if no metric reads a ranking, if lists end before the last candidate, or if
    a rule reads the scores themselves.
    """
    ranked = [one for one in metrics if knows_chance(one)]
    if ranks is None or not ranked:
        raise InputError(
            f"{argument_text('chance', True)} needs metrics of rankings, such as ndcg@10: a random "
            "order changes no other."
        )
    if ranks.ends_early.any():
        whole = python_or_command("rm.Factors, rm.Scores and rm.Pairs", "--factors and --pairs")
        raise InputError(
            f"{argument_text('chance', True)} needs all candidates to be ranked, but lists end "
            "early: which of the other items could have been listed is not known. Hint: "
            f"{whole} rank all."
        )
    if ranks.score is not None:
        raise InputError(
            f"{argument_text('chance', True)} is about the order of the candidates, but the rule "
            "score_above reads the scores themselves. Hint: leave one of them out."
        )
    changed = [
        dataclasses.replace(one, rules=tuple(rule for rule in one.rules if rule[0] not in EXPECTED))
        for one in ranked
    ]
    tied = RankedUsers(_all_tied(ranks))
    values, _ = compute([tied], changed, protocol.replace(**EXPECTED), threads)
    return dict(zip(map(str, ranked), values.values(), strict=True))


def knows_chance(metric: Metric) -> bool:
    """Return whether the metric has an expected value for a random order."""
    return metric.definition.record == "ranks" and metric.definition.averages_ties


def _all_tied(ranks: Ranks) -> Ranks:
    """Return the ranks if all candidates had the same score."""
    known = ranks.above >= 0  # -1: not a candidate
    others = np.maximum(ranks.n_candidates[ranks.user] - 1, 0)
    place = np.arange(len(ranks.above)) - ranks.indptr[ranks.user]
    return dataclasses.replace(
        ranks,
        above=np.where(known, 0, ranks.above),
        tied=np.where(known, others, ranks.tied),
        before=np.where(known, place, ranks.before),
    )
