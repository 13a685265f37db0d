"""The check of how the source stands against a random order of the same candidates."""

from __future__ import annotations

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.auditing.findings import Finding, Level, unchecked
from recometer.checking._looked import Looked
from recometer.errors import RecometerError
from recometer.evaluation import evaluate
from recometer.results.evaluation import EvaluationRecord

CONFIDENCE = 0.95


def no_better_than_chance(looked: Looked) -> Finding:
    """Count the users whose relevant items are ranked no higher than a random order would."""
    what = "users whose relevant items are no higher than in a random order (roc_auc)"
    try:
        result = _evaluated(looked)
    except RecometerError as error:
        return unchecked(what, str(error).split(" Hint:")[0])
    ndcg, auc = (str(metric) for metric in result.metrics)
    row = result.summary()[0]
    low, high = _difference(result[ndcg], result.chance[ndcg])
    statistics = {"mean": row.mean, "chance": row.chance, "low": low, "high": high}
    low_users = np.flatnonzero(result[auc] <= result.chance[auc])
    level: Level = "problem" if high <= 0 else "warning" if low <= 0 else "fact"
    verdict = {
        "problem": "That is worse than chance. Hint: do users and items of the source and of test "
        "mean the same, and are higher scores better?",
        "warning": "This cannot be told apart from chance. Hint: more users of test (n_users=None "
        "looks at all of them), or a better model.",
    }.get(level, "")
    return Finding(
        name="",
        what=what,
        level=level,
        count=len(low_users),
        total=int(np.count_nonzero(~np.isnan(result[auc]))),
        examples=looked.examples(low_users),
        sentence=(
            f"{ndcg} is {row.mean:.4f}; a random order of the same candidates has "
            f"{row.chance:.4f} (95% interval of the difference: {low:+.4f} to {high:+.4f}). "
            f"{verdict}"
        ).rstrip(),
        statistics=statistics,
    )


def _difference(values: Float64, chance: Float64) -> stats.Interval:
    """Return the interval of the mean difference, within what it can be for these users."""
    known = ~np.isnan(values)
    if not known.any():
        return stats.Interval.unknown(CONFIDENCE, 0, "No user has a value.")
    bounds = -float(chance[known].max()), 1 - float(chance[known].min())
    return stats.interval(values - chance, bounds=bounds, confidence=CONFIDENCE)


def _evaluated(looked: Looked) -> EvaluationRecord:
    given, asked = looked.given, looked.given.arguments
    return evaluate(
        given.source,
        None if given.brings_truth else looked.test,
        **asked.as_given,
        train=asked.train,
        metrics=f"ndcg@{looked.k} roc_auc",
        protocol=asked.protocol,
        seed=asked.seed,
        threads=asked.threads,
        progress=False,
        chance=True,
    )
