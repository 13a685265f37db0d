"""The part of `evaluate` that asks for lists, and measures them."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Float64, UInt8
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids, in_train, relevant_rows
from recometer.errors import InputError
from recometer.evaluating.checks import check_baseline, check_lists
from recometer.measuring.compute import Reason
from recometer.measuring.listed import compute_lists, compute_over_users, list_reasons
from recometer.measuring.side_data import list_data, needed_by
from recometer.metrics import ListData, Metric
from recometer.metrics.registry import rules_of
from recometer.ranks import Ranks, TopLists
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Request, Source


class FoundLists(NamedTuple):
    """The lists of the source and, where a metric reads them, of the baseline.

    `removes_train`: what is in train is neither listed nor judged.
    """

    lists: TopLists
    baseline: TopLists | None
    removes_train: bool


class ListValues(NamedTuple):
    """What metrics of lists found.

    Attributes
    ----------
    values : dict of str to float64 [n_users]
        Of metrics with a value per user.
    reasons : dict of str to uint8 [n_users]
        Of all; for one value for all users, who does not count in it.
    over_users : dict of str to float
    data : ListData
        What `over_users` were computed from.
    """

    values: dict[str, Float64]
    reasons: dict[str, UInt8]
    over_users: dict[str, float]
    data: ListData


def find_lists(
    source: Source,
    baseline: Source | Evaluation | None,
    request: Request,
    metrics: Sequence[Metric],
) -> FoundLists:
    """Ask for lists as long as metrics read them."""
    depth = max(metric.cutoff or 1 for metric in metrics)
    lists = source.top(request, depth)
    check_lists(lists, metrics)
    removes = source.removes_train(request.protocol)
    if baseline is None or "baseline" not in needed_by(metrics):
        return FoundLists(lists, None, removes)
    if isinstance(baseline, Source):
        found, what = baseline.top(request, depth), baseline.describe()
    else:
        found = _of_evaluation(baseline, request.test, depth)
        what = baseline.inputs["source"]["description"]
    check_baseline(found, what)
    return FoundLists(lists, found, removes)


def measure_lists(
    found: FoundLists,
    metrics: Sequence[Metric],
    request: Request,
    catalogue: Catalogue | None,
    ranks: Ranks | None,
) -> ListValues:
    """Compute metrics of lists; `ranks` where the source brings the truth itself."""
    needed = needed_by(metrics)
    test, protocol = request.test, request.protocol
    data = list_data(
        found.lists,
        needed,
        test=test,
        train=request.train,
        relevant=relevant_rows(test, protocol.relevant_from),
        ranks=ranks,
        catalogue=catalogue,
        baseline=found.baseline,
        removes_train=found.removes_train,
    )
    over = [metric for metric in metrics if metric.definition.over_users]
    relevant = relevant_rows(test, protocol.relevant_from)
    values, reasons = compute_lists(data, [m for m in metrics if m not in over], protocol)
    if request.train is not None and found.removes_train:
        relevant &= ~in_train(test, request.train)
    has_relevant = np.diff(ragged.offsets(relevant, test.indptr)) > 0
    for metric in metrics:
        users = rules_of(metric, protocol).users
        if metric not in over and users in ("listed", "known_relevant"):
            reasons[str(metric)][~found.lists.known] = Reason.NOT_COUNTED
        if metric not in over and users in ("relevant", "known_relevant"):
            reasons[str(metric)][~has_relevant] = Reason.NOT_COUNTED
    for metric in over:
        why = list_reasons(data, metric, protocol)
        # An empty list counts: as one that is not full, for instance.
        reasons[str(metric)] = np.where(why == Reason.NO_LIST, 0, why).astype(np.uint8)
    over_users = compute_over_users(data, over, protocol)
    return ListValues(values, reasons, over_users, _only_for(data, needed_by(over)))


def _only_for(data: ListData, needed: Container[str]) -> ListData:
    """Leave out what is known of each user and not needed: it is kept with the result."""
    gone = [name for name in ("train", "test", "baseline") if name not in needed]
    changes: dict[str, None] = dict.fromkeys(gone)
    if "test" in gone:
        changes["relevant"] = None
    return dataclasses.replace(data, **changes)  # type: ignore[arg-type]


def _of_evaluation(baseline: Evaluation, test: Interactions, depth: int) -> TopLists:
    """Return the lists of an evaluation for the users of test."""
    lists = baseline.lists
    assert lists is not None
    if lists.depth < depth:
        raise InputError(
            f"The evaluation in baseline= keeps lists of {lists.depth} places, but {depth} are "
            f"read. Hint: ask there for a metric of lists at {depth}, or pass the source itself."
        )
    what = "baseline"
    if not both_have_ids("user", what, baseline.user_ids, "test", test.user_ids):
        if test.n_users != baseline.n_users:
            raise InputError(
                f"The evaluation in baseline= has {baseline.n_users:,} users, test has "
                f"{test.n_users:,}. Hint: evaluate both on the same test."
            )
        return lists.users(np.arange(test.n_users))
    assert test.user_ids is not None
    assert baseline.user_ids is not None
    users = ids.match(test.user_ids, baseline.user_ids, "user ids of test", f"user ids of {what}")
    return lists.users(users)
