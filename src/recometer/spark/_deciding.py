"""Models that are evaluated on as many users as it takes to tell them apart, on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recometer.comparing.corrections import Correction
from recometer.comparing.models import named
from recometer.comparing.reading import (
    HINT,
    Followed,
    as_adjusted,
    check_options,
    check_several,
    decisive,
    unknown_before,
)
from recometer.comparing.result import Comparison
from recometer.comparing.sequences import Sequences
from recometer.comparison import compared
from recometer.errors import InputTypeError
from recometer.evaluating.asked import counts_listed
from recometer.evaluating.parts import check_bounded
from recometer.evaluating.reading import check_rules, reading_keys, with_users_read
from recometer.evaluating.until import Until
from recometer.spark._until import HIGHEST, Order, Ready, Values, check_values
from recometer.spark.evaluator import Evaluator
from recometer.stats.ends import check_confidence


def sources_of(models: object, evaluator: object) -> dict[str, Any]:
    """Return sources by the names of their models.

    InputTypeError: something else; or no evaluator of Spark.
    """
    if not isinstance(evaluator, Evaluator):
        raise InputTypeError(
            f"evaluator= is of type {type(evaluator).__name__}, expected an Evaluator of "
            f"recometer.spark. {HINT})."
        )
    return named(models, "Sources are compared by the names of their models", f"{HINT}).")


def compare_until(
    models: object,
    evaluator: Evaluator | None,
    until: Until,
    *,
    baseline: str | None,
    primary: str | Iterable[str] | None,
    confidence: float | None,
    correction: Correction,
    chance: bool,
    **options: Any,
) -> Comparison:
    """Read users until enough is known of the differences, and compare what they have.

    All parameters are those of `compare`. The values of the users who were read are collected.
    """
    check_options(evaluator, correction, chance, options)
    sources = sources_of(models, evaluator)
    assert evaluator is not None
    check_several(list(sources), baseline)
    ready = {name: evaluator.prepared(source) for name, source in sources.items()}
    first = next(iter(ready.values())).plan
    listed = counts_listed(first.metrics, first.protocol)
    if listed or any("test" not in one.plan.tables for one in ready.values()):
        raise unknown_before()
    check_rules(first.metrics, first.stated, has_sessions=first.of_users.has("session"))
    for metric in decisive(until, primary, first.metrics, first.stated):
        for one in ready.values():
            check_bounded(metric, one.plan.protocol, one.plan.source.like)
    level = first.stated.confidence if confidence is None else confidence
    given = {
        "baseline": baseline,
        "correction": as_adjusted(correction),
        "confidence": check_confidence(level),
    }
    results, sequences = _read(ready, until, primary, given)
    how = {**options, "baseline": baseline, "primary": primary, "confidence": confidence}
    how |= {"correction": correction, "chance": chance, "threads": None, "progress": False}
    return compared(results, sequences, **how)


def _read(
    ready: Mapping[str, Ready],
    until: Until,
    primary: str | Iterable[str] | None,
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], Sequences]:
    """Read users; return the evaluations of those that were read, and what holds of them."""
    jobs = {name: one.job() for name, one in ready.items()}
    # Whoever has a relevant item for one of the models: all that any of them leaves in test.
    removing = {
        name: one.plan.source.like.removes_train(one.plan.protocol) for name, one in ready.items()
    }
    whole = min(ready, key=lambda name: removing[name])
    plan = ready[whole].plan
    order = Order.of(plan, jobs[whole])
    try:
        metrics = decisive(until, primary, jobs[whole].given["metrics"], plan.stated)
        ranges = {one: order.range_of(one, plan.protocol) for one in metrics}
        followed = Followed(list(ready), ranges, order.n_users, until, **options)
        values = {name: Values(one, jobs[name], order, metrics) for name, one in ready.items()}
        n_read, reached = followed.read(lambda name, *ends: values[name].between(*ends))
        last = HIGHEST if n_read == order.n_users else values[whole].number(n_read)
        n_columns = len(jobs[whole].given["metrics"]) * len(ready)
        check_values(n_columns, n_read, plan.closure)
        read, results, place = order.users(last).select("u"), {}, np.zeros(0, np.int64)
        for name, one in ready.items():
            result = order.told(one.evaluated(one.plan.only(read), jobs[name]))
            try:
                found = result.collect()
            finally:
                result.unpersist()
            place = np.argsort(reading_keys(found.user_ids, found.n_users, found.seed))
            results[name] = with_users_read(found, place, order.n_users, until, reached, {})
    finally:
        order.unpersist()
    users_read = results[whole].users_read
    assert users_read is not None
    names = tuple(map(str, metrics))
    return results, Sequences(users_read, until, place, options["confidence"], names)
