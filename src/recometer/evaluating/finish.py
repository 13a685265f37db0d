"""Finishes an evaluation: checks all users together, and returns fields or means."""

from __future__ import annotations

import functools
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.arrays import Float32, Int32
from recometer.data import ids
from recometer.data.fingerprints import Fingerprinting
from recometer.evaluating import checks
from recometer.evaluating.case import Case, Part, Records, find_records, measure
from recometer.evaluating.checks import find_unknown
from recometer.evaluating.sides import N_BANDS, Counts
from recometer.measuring.side_data import of_judged_items
from recometer.ranks import Ranks
from recometer.results.means import Averaging, means_with, together_of
from recometer.results.profiles import FoundByPopularity
from recometer.ties import places_of
from recometer.version import __version__

USUAL_CUTOFF = 10  # cut-off for counting found items by popularity, if no metric has a cut-off


def fields_of(case: Case, records: Records, reading: float, ranking: float) -> dict[str, Any]:
    """Return the fields of an `Evaluation`; `reading` and `ranking` are seconds."""
    begin, sides, arguments = time.perf_counter(), case.sides, case.sides.arguments
    known, train = sides.fingerprints, arguments.train
    arrays = {"source": case.source.facts.arrays, **({} if known else sides.arrays())}
    counts, popular = list(sides.counts), []

    def count(counting: _kernel.Counting) -> None:
        if train is None:
            return
        if not counts:
            counts.append(Counts.of(sides.test, train, counting))
        if records.ranks is not None and case.requirements.of_rankings:
            popular.append(_by_popularity(case, records.ranks, counts[0], counting))

    with Fingerprinting(arrays, arguments.threads, count) as fingerprinting:
        part = measure(case, records)
        measuring = time.perf_counter() - begin
        found = fingerprinting.result()
    sides.counts[:] = counts
    of_source = found.pop("source")
    known |= found
    check(case, part)
    activity, popularity = counts[0].profiles if counts else (None, None)
    return {
        **part.fields(),
        "user_ids": sides.test.user_ids,
        "metrics": sides.metrics,
        "protocol": arguments.protocol,
        "seed": arguments.seed,
        "counts": dict(sorted({**part.counts, **sides.settled}.items())),
        "definitions": case.requirements.definitions,
        "timings": {
            "reading": reading,
            "ranking": ranking,
            "metrics": measuring,
            "total": reading + ranking + time.perf_counter() - begin,
        },
        "versions": versions(),
        "inputs": case.described({**known, "source": of_source}),
        "inputs_kept": case.kept(),
        "negative_gains": sides.negative_gains,
        "binary_gains": sides.binary_gains,
        "activity": activity,
        "popularity": popularity,
        "by_popularity": popular[0]() if popular else None,
    }


def _by_popularity(
    case: Case, ranks: Ranks, of_train: Counts, counting: _kernel.Counting
) -> Callable[[], FoundByPopularity]:
    """Count each user's relevant items, and those within a cut-off, by popularity.

    If counting runs in the background, call the returned function only when it has finished.
    """
    test, arguments, ties = case.sides.test, case.sides.arguments, case.protocol.ties
    assert arguments.train is not None
    keys = ids.user_keys(test.user_ids, test.n_users) if ties == "random" else None
    cutoff = case.requirements.cutoff or USUAL_CUTOFF
    counted = ranks.relevant if ranks.repeated is None else ranks.relevant & ~ranks.repeated
    item, banded, n_items = of_judged_items(ranks, test, arguments.train)
    above, tied = places_of(ranks, counted, cutoff, ties, arguments.seed, keys)
    relevant: Int32 = np.empty((ranks.n_users, N_BANDS), np.int32)
    found: Float32 = np.empty(relevant.shape, np.float32)
    # The arrays of a user-defined source may be strided views of a table.
    counting.count_in_bands(
        indptr=np.ascontiguousarray(ranks.indptr),
        item=np.ascontiguousarray(item),
        counted=np.ascontiguousarray(counted),
        above=np.ascontiguousarray(above),
        tied=np.ascontiguousarray(tied),
        n_items=n_items,
        banded=banded,
        band=of_train.band,
        cutoff=cutoff,
        counts=relevant,
        within=found,
    )

    def result() -> FoundByPopularity:
        ranges = tuple(map(tuple, of_train.ranges.tolist()))
        return FoundByPopularity(cutoff, ranges, relevant, found)

    return result


def measured(case: Case) -> Part:
    """Measure all users of a case, and check them."""
    case.check_ids()
    part = measure(case, find_records(case))
    check(case, part)
    return part


def means_of(case: Case) -> dict[str, float]:
    """Return the means that `Evaluation.mean` would return, without making an `Evaluation`."""
    sides, arguments, part = case.sides, case.sides.arguments, measured(case)
    averaging = Averaging(
        metrics={str(one): one for one in sides.metrics},
        values=part.values,
        reasons=part.reasons,
        n_relevant=part.users.n_relevant,
        n_candidates=part.users.n_candidates,
        depth=part.users.depth,
        protocol=arguments.protocol,
        negative_gains=sides.negative_gains,
        binary_gains=sides.binary_gains,
        clusters=None,  # only intervals read them
    )
    over_all = part.over_users, part.over_rows
    together = together_of(sides.metrics, arguments.protocol, *over_all, None)
    return means_with(averaging, together, averaging.metrics, None)


def check(case: Case, part: Part) -> None:
    """Raise the errors and warnings that depend on all users."""
    sides, arguments, source = case.sides, case.sides.arguments, case.source
    test, facts = sides.test, part.facts
    checks.check_facts(
        facts,
        part.counts,
        source=source,
        baseline="" if facts.n_compared else sides.descriptions["baseline"]["description"],
        metrics=sides.metrics,
        rules=case.protocol,
        stated=arguments.protocol,
        candidates=sides.candidates,
        examples=range(test.n_users)[:3] if test.user_ids is None else test.user_ids[:3].tolist(),
        value_range=None if test.values is None else test.value_range,
        find=None if arguments.expects_unknown else lambda kind: find_unknown(source, test, kind),
    )


def versions() -> dict[str, str]:
    """Return the versions of the software that values may depend on."""
    return {**_versions(), "instruction_set": _kernel.instruction_set()}


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
    }
