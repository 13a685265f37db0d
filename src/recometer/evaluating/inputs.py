"""What `evaluate` is given, read and checked: the beginning of the road."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, read_interactions
from recometer.draws import seed_of
from recometer.errors import InputError
from recometer.evaluating.arguments import (
    baseline_of,
    protocol_of,
    source_of,
    test_of,
    with_order,
)
from recometer.evaluating.effects import warn_without_effect
from recometer.measuring import corrections
from recometer.measuring.side_data import Popularity, check_side_data, needed_by
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics
from recometer.metrics.registry import Metric, rules_of, with_largest_gain
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Source
from recometer.sources.candidates import (
    Candidates,
    Items,
    SampledCandidates,
    read_candidates,
    read_items,
)
from recometer.tasks import resolve_threads

KEPT_BYTES = 2**28  # of inputs that a result holds on to


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What `evaluate` was given, in one form; see its parameters."""

    source: Source
    test: Interactions  # with the users who count by the rule users="listed"
    train: Interactions | None
    candidates: Candidates | None
    exclude: Items | None
    catalogue: Catalogue | None
    baseline: Source | Evaluation | None
    metrics: tuple[Metric, ...]
    protocol: Protocol  # with what the source replaces, see `with_order`
    stated: Protocol  # without that, which would seem to replace the rules of metrics' names, too
    seed: int
    threads: int
    progress: bool | None
    as_given: Mapping[str, Any]  # what the evaluation is repeated with; test without more users
    brings_truth: bool  # whether test comes with the source
    chance: bool  # whether the value of a random order is asked for
    popularity: Popularity | None = None  # of the whole train, where train holds some users
    some_users: bool = False  # whether other users are evaluated elsewhere, and put together

    def reading(self, *records: str) -> list[Metric]:
        """Return the metrics that read one of some records."""
        return [metric for metric in self.metrics if metric.definition.record in records]

    def arrays(self) -> dict[str, Mapping[str, object]]:
        """Return what the fingerprints are taken of, by argument."""
        arrays: dict[str, Mapping[str, object]] = {
            "source": self.source.arrays(),
            "test": _arrays(self.as_given["test"]),
            "train": _arrays(self.train),
            "candidates": _arrays(self.candidates),
            "exclude": _arrays(self.exclude),
            "catalogue": {} if self.catalogue is None else self.catalogue.arrays(),
        }
        if isinstance(self.baseline, Source):
            arrays["baseline"] = self.baseline.arrays()
        elif self.baseline is not None and self.baseline.lists is not None:
            arrays["baseline"] = {"lists": self.baseline.lists.items}
        return arrays

    def described(self, fingerprints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return a description of each argument that was given, beside its fingerprints."""
        texts = {"source": self.source.describe(), "test": repr(self.as_given["test"])}
        for name in ("train", "candidates", "exclude"):
            if getattr(self, name) is not None:
                texts[name] = repr(getattr(self, name))
        if self.catalogue is not None:
            texts["catalogue"] = self.catalogue.describe()
        if isinstance(self.baseline, Source):
            texts["baseline"] = self.baseline.describe()
        elif self.baseline is not None:
            texts["baseline"] = self.baseline.inputs["source"]["description"]
        found: dict[str, dict[str, Any]] = {
            name: {"description": text, "fingerprints": fingerprints[name]}
            for name, text in texts.items()
        }
        if is_uniform(self.candidates) is not None:
            found["candidates"]["warning"] = warning_of(self.candidates, self.protocol)
        reading = self._reading()
        if reading:
            found["test"]["reading"] = reading
        return found

    def _reading(self) -> str:
        """Say how values of test above 1 were read, where nobody has said how they should be."""
        values, rules = self.test.values, self.protocol
        if values is None or rules.relevant_from is not None or values.max(initial=0) <= 1:
            return ""
        of_gain = [
            str(one)
            for one in self.reading("ranks")
            if one.definition.reads == "gain" and rules_of(one, rules).relevant_from is None
        ]
        shown = ", ".join(of_gain[:3]) + (", ..." if len(of_gain) > 3 else "")
        return (
            f"values of test are {values.min():g} to {values.max():g}: an item with any but 0 is "
            "relevant (the rule relevant_from says from which value on)"
            + (f", and its value is the gain of {shown}" if of_gain else "")
        )

    def duplicates(self) -> dict[str, int]:
        """Count the rows that repeat a pair of user and item, where there are any."""
        both = (("test", self.test), ("train", self.train))
        return {f"{name}_duplicates": n for name, one in both if one and (n := one.duplicates)}

    def kept(self) -> dict[str, Any] | None:
        """Return what repeats the evaluation, unless that would hold on to much memory."""
        sources = [one for one in (self.source, self.baseline) if isinstance(one, Source)]
        held = [one.held_bytes() for one in sources]
        for data in (self.test, self.train):
            held += [getattr(array, "nbytes", 0) for array in _arrays(data).values()]
        if None in held or sum(filter(None, held)) > KEPT_BYTES:
            return None
        # A source that brings the truth brings it again.
        test = None if self.brings_truth else self.as_given["test"]
        return {**self.as_given, "test": test, "train": self.train}


def read_inputs(
    given: object,
    test: object,
    *,
    train: object,
    candidates: object,
    exclude: object,
    metrics: Metrics,
    protocol: str | Protocol,
    catalogue: object,
    baseline: object,
    seed: int,
    threads: int | None,
    progress: bool | None,
    chance: bool,
    rules: Mapping[str, Any],
    parameters: Sequence[str],
) -> Inputs:
    """Read and check what `evaluate` is given; `parameters` are the names of its arguments."""
    stated = protocol_of(protocol, rules, parameters)
    requested = parse_under(metrics, stated)
    source, test, train = source_of(given, test, train, requested, stated)
    warn_without_effect(source, requested, stated, trained=train is not None)
    settled = with_order(source, stated)
    known_items = catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue)
    other = baseline_of(baseline)
    seed, threads = seed_of(seed), resolve_threads(threads)
    brings_truth = test is None
    truth = _not_empty(test_of(source, test))
    trained = None if train is None else read_interactions(train, "train", warns=False)
    chosen = read_candidates(candidates, truth)
    never = None if exclude is None else read_items(exclude, "exclude")
    corrections.check(requested, settled, is_uniform(chosen))
    given_test, truth = truth, as_counted(source, truth, requested, settled)
    requested = with_largest_gain(requested, largest_gain(truth))
    check_side_data(needed_by(requested), train=trained, baseline=other, catalogue=known_items)
    return Inputs(
        source=source,
        test=truth,
        train=trained,
        candidates=chosen,
        exclude=never,
        catalogue=known_items,
        baseline=other,
        metrics=tuple(requested),
        protocol=settled,
        stated=stated,
        seed=seed,
        threads=threads,
        progress=progress,
        as_given={
            "source": source,
            "test": given_test,
            "candidates": candidates,
            "exclude": exclude,
            "catalogue": known_items,
            "baseline": baseline,
        },
        brings_truth=brings_truth,
        chance=bool(chance),
    )


def _not_empty(test: Interactions) -> Interactions:
    """Refuse a test without users or interactions."""
    if test.n_users == 0 or len(test) == 0:
        raise InputError(
            f"test is empty: {test.n_users} users, {len(test)} interactions. "
            "Hint: is the split right, and the column of users?"
        )
    return test


def as_counted(
    source: Source, test: Interactions, metrics: Sequence[Metric], protocol: Protocol
) -> Interactions:
    """Add the users with a list where these count, too.

    Where each row counts that repeats a pair, its value is the mean of theirs, and not the sum.
    """
    each = any(rules_of(one, protocol).repeated_test != "once" for one in metrics)
    if each and test.values is not None and test.copies is not None:
        test = dataclasses.replace(test, values=test.values / test.copies)
    listed = source.listed_users()
    if listed is None or all(rules_of(one, protocol).users != "listed" for one in metrics):
        return test
    return test.with_users(listed)


def largest_gain(test: Interactions) -> float:
    """Return the largest value of test; 1 where there is none above 0."""
    if test.values is None:
        return 1.0
    largest = test.values.max(initial=0)
    if not np.isfinite(largest):
        largest = test.values[np.isfinite(test.values)].max(initial=0)
    return float(largest) or 1.0


def is_uniform(candidates: Candidates | None) -> bool | None:
    """Return whether users have uniformly drawn candidates; None: they have no sets at all."""
    if isinstance(candidates, SampledCandidates):
        return candidates.by == "uniform"
    return True if isinstance(candidates, Interactions) else None


def warning_of(candidates: Candidates | None, protocol: Protocol) -> str:
    """Say what values of candidate sets are worth."""
    if protocol.correction != "none":
        return (
            "The values are estimates of those of the whole catalogue, from the ranks among "
            f"sampled candidates (correction={protocol.correction!r}). Without candidates= they "
            "would be exact."
        )
    sampled = "these are" if isinstance(candidates, SampledCandidates) else "if these are"
    return (
        f"Ranked among candidates of each user, not the whole catalogue: {sampled} a sample, the "
        "values are too high, and may put systems in another order than the whole catalogue does "
        "(Krichene & Rendle 2020). Leave candidates= out, or see correction=."
    )


def _arrays(data: Candidates | None) -> dict[str, object]:
    if isinstance(data, Items):
        return {"items": data.ids}
    if not isinstance(data, Interactions):
        return {}
    names = ("indptr", "items", "values", "user_ids", "item_ids")
    return {name: getattr(data, name) for name in names}
