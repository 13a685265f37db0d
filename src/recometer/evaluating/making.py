"""From what a source gave to the fields of an `Evaluation`, or to means alone."""

from __future__ import annotations

import functools
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.data import ids
from recometer.data.fingerprints import Fingerprinting
from recometer.evaluating.chance import chance_of
from recometer.evaluating.checks import check_defined
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.records import Records, data_of_result, measured_by
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.rated import RatedUsers
from recometer.measuring.side_data import needed_by
from recometer.ranks import Ranks
from recometer.results.means import Averaging, means_with, together_of
from recometer.results.profiles import (
    USUAL_CUTOFF,
    Counts,
    FoundByPopularity,
    found_by_popularity,
)
from recometer.version import __version__

FindPopular = Callable[[], FoundByPopularity | None]


def fields_of(given: Inputs, records: Records, reading: float, ranking: float) -> dict[str, Any]:
    """Return the fields of an `Evaluation`; `reading` and `ranking` took so many seconds."""
    begin, truth, asked = time.perf_counter(), given.truth, given.asked
    known = truth.fingerprints
    arrays = {"source": given.source.arrays(), **({} if known else truth.arrays())}
    counted: list[tuple[Counts | None, FindPopular]] = []

    def count(counting: _kernel.Counting) -> None:
        of_train = truth.counts_by(counting)
        counted.append((of_train, _by_popularity(given, records.ranks, of_train, counting)))

    with Fingerprinting(arrays, asked.threads, count) as fingerprinting:
        measured = measure(given, records)
        measuring = time.perf_counter() - begin
        found = fingerprinting.result()
    [(of_train, find_popular)] = counted
    truth.prepare(of_train)
    known |= {name: prints for name, prints in found.items() if name != "source"}
    values, reasons = measured["values"], measured["reasons"]
    check_defined(values, reasons, truth.test, given.protocol.relevant_from)
    activity, popularity = truth.profiles
    return {
        **measured,
        **records.users._asdict(),
        "user_ids": truth.test.user_ids,
        "metrics": truth.metrics,
        "protocol": asked.protocol,
        "seed": asked.seed,
        "counts": {**records.counts, **truth.settled},
        "definitions": truth.definitions,
        "timings": {
            "reading": reading,
            "ranking": ranking,
            "metrics": measuring,
            "total": reading + ranking + time.perf_counter() - begin,
        },
        "versions": versions(),
        "inputs": given.described({**known, "source": found["source"]}),
        "inputs_kept": given.kept(),
        "negative_gains": truth.negative_gains,
        "binary_gains": truth.binary_gains,
        "activity": activity,
        "popularity": popularity,
        "by_popularity": find_popular(),
    }


def _by_popularity(
    given: Inputs, ranks: Ranks | None, of_train: Counts | None, counting: _kernel.Counting
) -> FindPopular:
    """Count found relevant items by popularity: see `found_by_popularity`.

    What is returned returns None without train or ranks.
    """
    truth, asked, ties = given.truth, given.asked, given.protocol.ties
    of_ranks = truth.of_rankings
    if asked.train is None or of_train is None or ranks is None or not of_ranks:
        return lambda: None
    keys = ids.user_keys(truth.test.user_ids, truth.test.n_users) if ties == "random" else None
    cutoff = max(metric.cutoff or 0 for metric in of_ranks) or USUAL_CUTOFF
    how = cutoff, ties, asked.seed, keys, counting
    return found_by_popularity(ranks, truth.test, asked.train, of_train, *how)


def means_of(given: Inputs, records: Records) -> dict[str, float]:
    """Measure what a source gave, and return the means alone: `Evaluation.mean` without it."""
    truth, asked, users = given.truth, given.asked, records.users
    measured = measure(given, records)
    values, reasons = measured["values"], measured["reasons"]
    check_defined(values, reasons, truth.test, given.protocol.relevant_from)
    averaging = Averaging(
        metrics={str(one): one for one in truth.metrics},
        values=measured["values"],
        reasons=measured["reasons"],
        n_relevant=users.n_relevant,
        n_candidates=users.n_candidates,
        depth=users.depth,
        protocol=asked.protocol,
        seed=asked.seed,
        negative_gains=truth.negative_gains,
        binary_gains=truth.binary_gains,
        clusters=None,  # which only intervals read
    )
    together = together_of(
        truth.metrics,
        asked.protocol,
        measured.get("over_users", {}),
        measured.get("over_rows", {}),
        None,
    )
    return means_with(averaging, together, averaging.metrics, None)


def measure(given: Inputs, records: Records) -> dict[str, Any]:
    """Compute all metrics: the fields of an `Evaluation` that hold values."""
    measured, rules = measured_by(given, records), given.protocol
    metrics, threads = given.truth.metrics, given.asked.threads
    values, reasons = compute(measured.values(), metrics, rules, threads)
    found: dict[str, Any] = {"values": values, "reasons": reasons}
    if given.asked.chance:
        found["chance"] = chance_of(records.ranks, metrics, rules, threads)
    if "ratings" in measured:
        over_rows = [metric for metric in metrics if metric.definition.over_rows]
        rated = measured["ratings"]
        assert isinstance(rated, RatedUsers)
        found["rated"] = together = rated.together(reasons)
        found["over_rows"] = compute_for_all(together, over_rows, rules)
    listed = measured.get("lists")
    if isinstance(listed, ListedUsers):
        over_users = [metric for metric in metrics if metric.definition.over_users]
        found |= {
            "lists": records.lists,
            "over_users": compute_for_all(listed, over_users, rules),
            "list_data": data_of_result(listed.data, needed_by(over_users)),
        }
    return found


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    return {**_versions(), "instruction_set": _kernel.instruction_set()}


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
    }
