"""Finish an evaluation: check all users together, and return fields or means."""

from __future__ import annotations

import functools
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.data import ids
from recometer.data.fingerprints import Fingerprinting
from recometer.evaluating import checks
from recometer.evaluating.case import Case
from recometer.evaluating.checks import BlockFacts
from recometer.evaluating.part import Part, measure
from recometer.evaluating.records import Records, find_records
from recometer.evaluating.requirements import requirements_of
from recometer.evaluating.unknown import FindUnknown, find_unknown, warn_of_unknown
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.results.means import Averaging, means_with, together_of
from recometer.results.profiles import (
    USUAL_CUTOFF,
    Counts,
    FoundByPopularity,
    found_by_popularity,
)
from recometer.sources.base import Source
from recometer.version import __version__


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
    known |= {name: prints for name, prints in found.items() if name != "source"}
    check(case, part)
    activity, popularity = counts[0].profiles if counts else (None, None)
    return {
        **part.fields(),
        "user_ids": sides.test.user_ids,
        "metrics": sides.metrics,
        "protocol": arguments.protocol,
        "seed": arguments.seed,
        "counts": dict(sorted({**part.counts, **sides.settled}.items())),
        "definitions": sides.definitions,
        "timings": {
            "reading": reading,
            "ranking": ranking,
            "metrics": measuring,
            "total": reading + ranking + time.perf_counter() - begin,
        },
        "versions": versions(),
        "inputs": case.described({**known, "source": found["source"]}),
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
    """Start to count the relevant items that were found, see `found_by_popularity`."""
    test, arguments, ties = case.sides.test, case.sides.arguments, case.protocol.ties
    assert arguments.train is not None
    keys = ids.user_keys(test.user_ids, test.n_users) if ties == "random" else None
    cutoff = case.requirements.cutoff or USUAL_CUTOFF
    how = cutoff, ties, arguments.seed, keys, counting
    return found_by_popularity(ranks, test, arguments.train, of_train, *how)


def measured(case: Case) -> Part:
    """Measure all users of a case, and check them."""
    case.check_ids()
    part = measure(case, find_records(case))
    check(case, part)
    return part


def means_of(case: Case) -> dict[str, float]:
    """Return only the means, as `Evaluation.mean` does, without making an `Evaluation`."""
    sides, arguments, part = case.sides, case.sides.arguments, measured(case)
    averaging = Averaging(
        metrics={str(one): one for one in sides.metrics},
        values=part.values,
        reasons=part.reasons,
        n_relevant=part.users.n_relevant,
        n_candidates=part.users.n_candidates,
        depth=part.users.depth,
        protocol=arguments.protocol,
        seed=arguments.seed,
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
    check_facts(
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


def check_facts(
    facts: BlockFacts,
    counts: Mapping[str, int],
    *,
    source: Source,
    baseline: str,
    metrics: Sequence[Metric],
    rules: Protocol,
    stated: Protocol,
    candidates: object,
    examples: Sequence[object],
    value_range: tuple[float, float] | None,
    find: FindUnknown | None,
) -> None:
    """Raise the errors and warnings that depend on all users.

    Parameters
    ----------
    facts, counts
        The facts and counts of all users, see `Part`.
    source
        The source, or one of the same kind that describes it.
    baseline
        The description of the baseline.
    metrics
        All requested metrics.
    rules, stated
        The protocol as adapted to the source, and as stated by the user.
    candidates
        The argument of `evaluate`.
    examples
        The ids of a few users of test.
    value_range
        The smallest and the largest value of test. None if test has no values.
    find
        Returns examples of unknown users or items. None turns the warnings about them off.
    """
    needs = requirements_of(metrics, rules)
    if needs.of_lists:
        checks.warn_beyond_lists(facts.n_listed, needs.of_lists)
    if not facts.n_compared:
        raise checks.no_list(baseline)
    checks.check_known(facts, examples, source, stated)
    checks.check_overlaps(counts, facts.n_relevant, facts.n_rows, candidates)
    if facts.n_early and needs.cutoff > facts.depth:
        checks.warn_beyond_lists(facts.depth, needs.of_rankings)
    if "users_below_relevant" in counts:
        checks.warn_below_relevant(counts["users_below_relevant"], facts.n_users)
    if facts.n_any_cutoff and rules.deep_cutoffs != "undefined_below":
        checks.warn_beyond_rows(facts.n_candidates, source, needs.of_rankings)
    if find is not None:
        warn_of_unknown(source, counts, facts, rules, find)
    if facts.undefined:
        checks.warn_of_undefined(facts, value_range, rules.relevant_from)


def versions() -> dict[str, str]:
    """Return the versions of software that values may depend on."""
    return {**_versions(), "instruction_set": _kernel.instruction_set()}


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "recometer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
    }
