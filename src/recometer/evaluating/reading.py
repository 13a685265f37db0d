"""Reading users in random order, until enough is known of the mean over all of them."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.data import ids, sessions
from recometer.data.interactions import Interactions
from recometer.draws import mix, mixed_seed
from recometer.errors import InputError
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.parts import Parts
from recometer.evaluating.until import Until, bounds_of, check_bounds, check_metric
from recometer.metrics.registry import Metric, rules_of
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
    if until.decided or until.width is None:
        raise InputError(
            f"until={until.text!r} is a question about several models. Hint: rm.compare(..., "
            "until='decided'); of one model, until='ndcg@10 ± 0.002'."
        )
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
    reached, n_read = False, 0
    found: list[Float64] = []
    for batch in batches(order, until, lambda: users_needed(sequence, found, until)):
        n_read += len(batch)
        if n_read == len(order) > len(batch):  # the mean of all is known, and no interval asked for
            parts.read(np.sort(batch))
            break
        found.append(values_in_order(parts, batch, [metric])[str(metric)])
        sequence.add(found[-1])
        reached = _is_narrow(sequence, until)
        if reached:
            break
    result = parts.evaluation(read - begin, time.perf_counter() - read)
    known = {str(metric): sequence} if n_read < len(order) else {}
    return with_users_read(result, parts.test, order[:n_read], len(order), until, reached, known)


def check_readable(given: Inputs) -> None:
    """Refuse metrics that a part of the users cannot tell, and users who depend on each other."""
    test, asked = given.truth.test, given.asked
    for metric in given.truth.metrics:
        check_metric(metric, asked.protocol)
    if sessions.clusters_of(test.user_ids) is not None:
        raise InputError(
            "test has sessions of users, which depend on each other: until= reads users one by "
            "one. Hint: test with one row of users, without sessions."
        )
    if asked.protocol.short_lists == "previous_user":
        raise InputError(
            "By the rule short_lists='previous_user' a user's values depend on the user before. "
            "Hint: until= needs another rule."
        )


def reading_order(given: Inputs, models: Sequence[Parts]) -> Int64:
    """Return the users that may count, in the random order in which they are read.

    It depends on the seed and the users' ids alone. Users without a relevant item are left out
    where they count in no mean of any of some models, which have the same test.
    """
    test, rules = models[0].test, [rules_of(one, given.protocol) for one in given.truth.metrics]
    keys = ids.user_keys(test.user_ids, test.n_users)
    drawn = mix(mix(mixed_seed(given.asked.seed) ^ STREAM) ^ keys)
    order: Int64 = np.argsort(drawn, kind="stable").astype(np.int64, copy=False)
    need_relevant = not given.brings_truth and all(
        one.definition.record == "ranks"
        and (own.undefined, own.no_relevant, own.missing) == ("nan", "undefined", "skip")
        for one, own in zip(given.truth.metrics, rules, strict=True)
    )
    if need_relevant:
        order = order[np.any([parts.has_relevant() for parts in models], axis=0)[order]]
    if not len(order):
        raise InputError(
            "No user of test has a relevant item, so that there is nobody to read. Hint: see the "
            "rule relevant_from, and whether test is in train."
        )
    return order


def batches(
    order: Int64, until: Until, needed: Callable[[], float] = lambda: 0.0
) -> Iterator[Int64]:
    """Cut the users into batches; there is a look after each of them.

    `needed` is asked before each how many users are needed, as far as is known.
    """
    n_read = 0
    while n_read < len(order):
        stop = until.next_number(n_read, len(order), needed() if n_read else 0.0)
        yield order[n_read:stop]
        n_read = stop


def values_in_order(parts: Parts, batch: Int64, metrics: Sequence[Metric]) -> dict[str, Float64]:
    """Return the values of some users in the order in which they are read."""
    ascending = np.sort(batch)
    place = np.searchsorted(ascending, batch)
    found = parts.values(ascending, metrics)
    return {name: column[place] for name, column in found.items()}


def with_users_read(
    result: Evaluation,
    test: Interactions,
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
    place = np.searchsorted(np.sort(read), read)
    intervals = {}
    for metric in result.metrics:
        name = str(metric)
        if len(read) == n_users:
            mean, counted = result.mean()[name], result.counted_values(name)
            n = int(np.count_nonzero(~np.isnan(counted)))
            intervals[name] = Interval(mean, mean, "betting", result.protocol.confidence, n, EXACT)
            continue
        sequence = known.get(name)
        if sequence is None:
            bounds = bounds_of(
                metric,
                result.protocol,
                negative=result.negative_gains,
                binary=result.binary_gains,
            )
            if bounds is None:
                continue
            sequence = ConfidenceSequence(
                bounds, result.protocol.confidence, n_users, aim="any", some_undefined=True
            )
            sequence.add(result.counted_values(name)[place])
        intervals[name] = sequence.interval
    reached = reached and len(read) < n_users
    found = UsersRead(until.text, len(read), n_users, reached, intervals)
    return dataclasses.replace(result, users_read=found)


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
