"""Reading users in random order, until enough is known of the mean over all of them."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from recometer.arrays import Array, Float64, Int64, UInt64
from recometer.data import ids, sessions
from recometer.draws import mix, mixed_seed
from recometer.errors import InputError
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.parts import Parts
from recometer.evaluating.until import Until, bounds_of, check_bounds, check_metric
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.results.users_read import UsersRead
from recometer.stats import ConfidenceSequence, Interval

STREAM = np.uint64(0x5EED_0F_0E_4DE4)  # apart from what else the seed draws

MARGIN = 0.85  # of the users that seem to be needed: mostly, somewhat fewer are enough
EXACT = "All users were read: this is their mean."


def evaluate_until(given: Inputs, until: Until, begin: float) -> Evaluation:
    """Evaluate users in random order, until the mean of a metric is known well enough.

    `begin` is when the reading of the data began.
    """
    check_of_one(until)
    read = time.perf_counter()
    check_readable(given)
    metric = until.metric_of(given.truth.metrics, given.asked.protocol)
    bounds = check_bounds(metric, bounds_here(metric, given))
    parts = Parts(given)
    order = reading_order(given, [parts])
    sequence = ConfidenceSequence(
        bounds,
        given.protocol.confidence,
        len(order),
        aim=until.width,
        relative=until.relative,
        some_undefined=True,
    )

    def values_of(start: int, stop: int) -> Float64:
        return values_in_order(parts, order[start:stop], [metric])[str(metric)]

    n_read, reached = read_until(sequence, until, values_of)
    if n_read < len(order) and not reached:
        parts.read(np.sort(order[n_read:]))
        n_read = len(order)
    result = parts.evaluation(read - begin, time.perf_counter() - read)
    known = {str(metric): sequence} if n_read < len(order) else {}
    return with_users_read(result, order[:n_read], len(order), until, reached, known)


def check_of_one(until: Until) -> None:
    """Refuse a question about several models."""
    if until.width is None:
        raise InputError(
            f"until={until.text!r} is a question about several models. Hint: compare(..., "
            "until='decided'); of one model, until='ndcg@10 ± 0.002'."
        )


def read_until(
    sequence: ConfidenceSequence, until: Until, values_of: Callable[[int, int], Float64]
) -> tuple[int, bool]:
    """Follow the values of users in their order, until enough is known of their mean.

    Parameters
    ----------
    sequence
        What is known; its population are all users.
    values_of
        Returns the values of the users from one place in the order to another.

    Returns
    -------
    n_read
        How many users were followed. If more would take nearly all, these are not followed: the
        mean of all is known then, and no interval is asked for.
    reached
        Whether enough is known.
    """
    n_users, n_read = sequence.population, 0
    assert n_users is not None
    found: list[Float64] = []
    while n_read < n_users:
        needed = users_needed(sequence, found, until) if found else 0.0
        stop = until.next_number(n_read, n_users, needed)
        if found and stop == n_users:
            break
        found.append(values_of(n_read, stop))
        sequence.add(found[-1])
        n_read = stop
        if _is_narrow(sequence, until):
            return n_read, True
    return n_read, False


def check_readable(given: Inputs) -> None:
    """Refuse metrics that a part of the users cannot tell, and users who depend on each other."""
    truth = given.truth
    has_sessions = sessions.clusters_of(truth.test.user_ids) is not None
    check_rules(truth.metrics, given.asked.protocol, has_sessions=has_sessions)


def check_rules(metrics: Sequence[Metric], protocol: Protocol, *, has_sessions: bool) -> None:
    """Refuse what `check_readable` refuses."""
    for metric in metrics:
        check_metric(metric, protocol)
    if has_sessions:
        raise InputError(
            "test has sessions of users, which depend on each other: until= reads users one by "
            "one. Hint: test with one row of users, without sessions."
        )


def reading_order(given: Inputs, models: Sequence[Parts]) -> Int64:
    """Return the users that may count, in the random order in which they are read.

    It depends on the seed and the users' ids alone. Users without a relevant item are left out
    where they count in no mean of any of some models, which have the same test.
    """
    test = models[0].test
    keys = reading_keys(test.user_ids, test.n_users, given.asked.seed)
    order: Int64 = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    if not given.brings_truth and need_relevant(given.truth.metrics, given.protocol):
        order = order[np.any([parts.has_relevant() for parts in models], axis=0)[order]]
    if not len(order):
        raise nobody_to_read()
    return order


def reading_keys(user_ids: Array | None, n_users: int, seed: int) -> UInt64:
    """Return the numbers in whose order users are read: uint64 [n_users]."""
    keys = ids.user_keys(user_ids, n_users)
    return mix(mix(mixed_seed(seed) ^ STREAM) ^ keys)


def need_relevant(metrics: Sequence[Metric], protocol: Protocol) -> bool:
    """Return whether users without a relevant item count in no mean of these metrics."""
    return all(
        one.definition.record == "ranks"
        and (own.undefined, own.no_relevant, own.missing) == ("nan", "undefined", "skip")
        for one, own in ((one, rules_of(one, protocol)) for one in metrics)
    )


def nobody_to_read() -> InputError:
    """Return the error for a test in which nobody has a relevant item."""
    return InputError(
        "No user of test has a relevant item, so that there is nobody to read. Hint: see the rule "
        "relevant_from, and whether test is in train."
    )


def values_in_order(parts: Parts, batch: Int64, metrics: Sequence[Metric]) -> dict[str, Float64]:
    """Return the values of some users in the order in which they are read."""
    ascending = np.sort(batch)
    place = np.searchsorted(ascending, batch)
    found = parts.values(ascending, metrics)
    return {name: column[place] for name, column in found.items()}


def with_users_read(
    result: Evaluation,
    read: Int64,
    n_users: int,
    until: Until,
    reached: bool,
    known: Mapping[str, ConfidenceSequence],
) -> Evaluation:
    """Add what was read, and the intervals of all metrics.

    `read` are the users that were, in their order, of `n_users`; `known` are the sequences that
    were followed.
    """
    place, metrics, rules = np.searchsorted(np.sort(read), read), result.metrics, result.protocol
    if len(read) == n_users:
        columns = {str(one): result.counted_values(str(one)) for one in metrics}
        counted = {name: int((~np.isnan(one)).sum()) for name, one in columns.items()}
        intervals = exact_intervals(result.mean(), counted, rules.confidence)
    else:
        ranges = {
            one: bounds_of(one, rules, negative=result.negative_gains, binary=result.binary_gains)
            for one in metrics
        }
        intervals = intervals_read(
            ranges, rules, n_users, known, lambda name: result.counted_values(name)[place]
        )
    reached = reached and len(read) < n_users
    found = UsersRead(until.text, len(read), n_users, reached, intervals)
    return dataclasses.replace(result, users_read=found)


def exact_intervals(
    means: Mapping[str, float], counted: Mapping[str, int], confidence: float
) -> dict[str, Interval]:
    """Return the intervals of metrics if all users were read: their means."""
    return {
        name: Interval(means[name], means[name], "betting", confidence, n, EXACT)
        for name, n in counted.items()
    }


def intervals_read(
    ranges: Mapping[Metric, tuple[float, float] | None],
    protocol: Protocol,
    n_users: int,
    known: Mapping[str, ConfidenceSequence],
    values_of: Callable[[str], Float64],
) -> dict[str, Interval]:
    """Return the intervals of metrics over all users, from those that were read.

    Parameters
    ----------
    ranges
        The range of each metric; those without one have no interval.
    known
        The sequences that were followed.
    values_of
        Returns the values that count in the mean of a metric, in the order of reading.
    """
    intervals = {}
    for metric, bounds in ranges.items():
        name = str(metric)
        sequence = known.get(name)
        if sequence is None:
            if bounds is None:
                continue
            sequence = ConfidenceSequence(
                bounds, protocol.confidence, n_users, aim="any", some_undefined=True
            )
            sequence.add(values_of(name))
        intervals[name] = sequence.interval
    return intervals


def bounds_here(metric: Metric, given: Inputs) -> tuple[float, float] | None:
    """Return the range of a metric under test and the rules, or None if it is unknown."""
    truth = given.truth
    return bounds_of(
        metric, given.protocol, negative=truth.negative_gains, binary=truth.binary_gains
    )


def users_needed(sequence: ConfidenceSequence, found: Sequence[Float64], until: Until) -> float:
    """Return how many users make the interval narrow, roughly: 0 if that is not known.

    Bets for a width w that is to be reached have it after about n users where w^2 is the variance
    of the values times 2 log(2 / alpha) (1 / n - 1 / N).
    """
    values, n_users = np.concatenate(found), sequence.population
    known = values[~np.isnan(values)]
    wanted = _wanted(sequence, until)
    if n_users is None or len(known) < 2 or not 0 < wanted < math.inf:
        return 0.0
    share = len(known) / len(values)
    spread = 2 * math.log(2 / (1 - sequence.confidence)) * float(known.var()) / share
    if spread == 0.0:
        return 0.0
    return MARGIN / (1 / n_users + wanted**2 / spread)


def _wanted(sequence: ConfidenceSequence, until: Until) -> float:
    assert until.width is not None
    return until.width * (abs(sequence.mean) if until.relative else 1.0)


def _is_narrow(sequence: ConfidenceSequence, until: Until) -> bool:
    """Tell whether half of the interval is at most as wide as requested."""
    found = sequence.interval
    return math.isfinite(found.width) and found.width / 2 <= _wanted(sequence, until)
