"""Sides: test, train and the other data that do not depend on the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.arrays import Array, Float64, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import settled_repeats
from recometer.errors import warn
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.checks import check_not_empty
from recometer.evaluating.unused_rules import given_by_hand
from recometer.measuring import corrections
from recometer.measuring.settling import COUNT_EACH
from recometer.measuring.side_data import needed_by, warn_of_propensity
from recometer.metrics.conventions import asked_of_source
from recometer.metrics.largest_gain import with_largest_gain
from recometer.metrics.registry import METRICS, Metric, SideData, rules_of
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.results.profiles import Counts, profiles
from recometer.sources.base import Request, Source
from recometer.sources.candidates import Candidates, Items, SampledCandidates, read_candidates
from recometer.sources.memory import Memory
from recometer.tasks import any_in_blocks

OF_INTERACTIONS = ("indptr", "items", "values", "user_ids", "item_ids")


@dataclasses.dataclass(frozen=True, eq=False)
class Sides:
    """Test, and all facts about it that do not depend on a source.

    Properties that take time are computed once, when they are first read.
    """

    arguments: Arguments
    given: Interactions
    test: Interactions  # repeated rows merged, and with users added by users="listed"
    candidates: Candidates | None
    metrics: tuple[Metric, ...]  # with the largest gain of test, if their formula reads it
    memory: Memory = dataclasses.field(default_factory=Memory)  # matches with sources
    requests: dict[Protocol, Request] = dataclasses.field(default_factory=dict)  # by rules
    # Fingerprints of `arrays`, filled by the first evaluation.
    fingerprints: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, arguments: Arguments, given: Interactions, *, brought: bool = False) -> Sides:
        """Check test and the arguments that depend on it; `brought`: a source contains test."""
        chosen = read_candidates(arguments.as_given["candidates"], given)
        corrections.check(arguments.metrics, arguments.protocol, is_uniform(chosen))
        check_not_empty(given.n_users, len(given))
        counted = as_brought if brought else as_counted
        test = counted(given, arguments.metrics, arguments.protocol)
        metrics = tuple(with_largest_gain(arguments.metrics, _largest_gain(test)))
        warn_of_propensity(metrics, arguments.catalogue)
        return cls(arguments, given, test, chosen, metrics)

    def with_users(self, listed: Array) -> Sides:
        """Add the users with a list, by the rule users="listed"."""

        def add() -> Sides:
            test = self.test.with_users(listed)
            return dataclasses.replace(self, test=test, memory=Memory(), requests={})

        return self.memory.find("listed", None, add, equal=(listed,))

    @cached_property
    def of_rankings(self) -> tuple[Metric, ...]:
        """The metrics that read ranks or ratings."""
        return self._of_records("ranks", "ratings")

    @cached_property
    def of_lists(self) -> tuple[Metric, ...]:
        """The metrics that read lists."""
        return self._of_records("lists")

    @cached_property
    def reads_ranks(self) -> bool:
        """Whether a metric reads ranks, and not only ratings or lists."""
        return bool(self._of_records("ranks"))

    def _of_records(self, *records: str) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.definition.record in records)

    @cached_property
    def side_data(self) -> dict[SideData, Metric]:
        """The side data that metrics of rankings need, each with the first metric that needs it."""
        return needed_by(self.of_rankings)

    @cached_property
    def counts_repeated_rows(self) -> bool:
        """Whether a metric of rankings counts every row of test that repeats a pair."""
        rules = (rules_of(metric, self.arguments.protocol) for metric in self.of_rankings)
        return any(one.repeated_test in COUNT_EACH for one in rules)

    @cached_property
    def profiles(self) -> tuple[Int64, Float64] | tuple[None, None]:
        """The activity and popularity of `Evaluation`; None without train."""
        return (None, None) if self.counts is None else profiles(self.counts)

    @cached_property
    def counts(self) -> Counts | None:
        """Counts of train, or None without train."""
        return self._counted(_kernel)

    def counts_by(self, counting: _kernel.Counting) -> Counts | None:
        """Return `counts`, or start to count in the background; see `prepare`."""
        return self.counts if "counts" in vars(self) else self._counted(counting)

    def _counted(self, counting: _kernel.Counting) -> Counts | None:
        train = self.arguments.train
        return None if train is None else Counts.of(self.test, train, counting)

    @cached_property
    def negative_gains(self) -> bool:
        """Whether a metric counts gains below 0."""
        rules = (rules_of(metric, self.arguments.protocol) for metric in self.metrics)
        counted = any(one.negative_gains == "counted" for one in rules)
        return counted and self.test.value_range[0] < 0

    @cached_property
    def binary_gains(self) -> bool:
        """Whether every value of test is 0 or 1."""
        gains, (low, high) = self.test.values, self.test.value_range
        if gains is None or low == high or low < 0 or high > 1:
            return low == high and low in (0, 1)
        return not any_in_blocks(len(gains), lambda one: (gains[one] != 0) & (gains[one] != 1))

    def prepare(self, counts: Counts | None) -> None:
        """Compute all properties that an `Evaluation` shows.

        `counts` is the finished result of `counts_by`.
        """
        vars(self).setdefault("counts", counts)
        _ = self.profiles, self.descriptions, self.definitions, self.settled
        _ = self.negative_gains, self.binary_gains, self.held_bytes

    def arrays(self) -> dict[str, Mapping[str, object]]:
        """Return the arrays to fingerprint, by argument."""
        return {"test": _arrays(self.given), **arrays_beside_test(self.arguments, self.candidates)}

    @cached_property
    def descriptions(self) -> dict[str, dict[str, str]]:
        """A description of each argument, and a warning where it applies."""
        arguments, baseline = self.arguments, self.arguments.baseline
        texts = {"test": repr(self.given)}
        given = {
            "train": arguments.train,
            "candidates": self.candidates,
            "exclude": arguments.exclude,
        }
        texts |= {name: repr(one) for name, one in given.items() if one is not None}
        if arguments.catalogue is not None:
            texts["catalogue"] = arguments.catalogue.describe()
        if isinstance(baseline, Source):
            texts["baseline"] = baseline.describe()
        elif baseline is not None:
            texts["baseline"] = baseline.inputs["source"]["description"]
        found = {name: {"description": text} for name, text in texts.items()}
        if is_uniform(self.candidates) is not None:
            found["candidates"]["warning"] = warning_of(self.candidates, arguments.protocol)
        reading = self._reading()
        if reading:
            found["test"]["reading"] = reading
        return found

    @cached_property
    def definitions(self) -> dict[str, dict[str, str]]:
        """The formula and the source of each metric, and the meaning of its parameters."""
        return definitions_of(self.metrics)

    def _reading(self) -> str:
        """Return a sentence on how values of test above 1 were read, if no rule says so."""
        (low, high), rules = self.test.value_range, self.arguments.protocol
        if isinstance(rules.relevant_from, int | float) or high <= 1:
            return ""
        relevant = "above 0" if rules.relevant_from is None else "other than 0"
        of_gain = [str(one) for one in self._of_records("ranks") if one.definition.reads == "gain"]
        shown = ", ".join(of_gain[:3]) + (", ..." if len(of_gain) > 3 else "")
        return (
            f"values of test are {low:g} to {high:g}: an item with one {relevant} is "
            "relevant (the rule relevant_from says from which value on)"
            + (f", and its value is the gain of {shown}" if of_gain else "")
        )

    @cached_property
    def settled(self) -> dict[str, int]:
        """Counts of rows of test and train that a rule affected."""
        test, train = self.test, self.arguments.train
        found = {"test_duplicates": test.duplicates, "negative_values": number_below_0(test)}
        if train is not None:
            found |= {"train_duplicates": train.duplicates, "train_zeros": number_of_zeros(train)}
        return {name: count for name, count in found.items() if count}

    @cached_property
    def held_bytes(self) -> int:
        """The memory that test and train take."""
        arrays = (*_arrays(self.given).values(), *_arrays(self.arguments.train).values())
        return sum(getattr(array, "nbytes", 0) for array in arrays)


def arrays_beside_test(
    arguments: Arguments, candidates: Candidates | None
) -> dict[str, Mapping[str, object]]:
    """Return the arrays of all arguments except test, by argument."""
    arrays: dict[str, Mapping[str, object]] = {
        "train": _arrays(arguments.train),
        "candidates": _arrays(candidates),
        "exclude": _arrays(arguments.exclude),
        "catalogue": {} if arguments.catalogue is None else arguments.catalogue.arrays(),
    }
    if isinstance(arguments.baseline, Source):
        arrays["baseline"] = arguments.baseline.facts.arrays
    elif arguments.baseline is not None and arguments.baseline.lists is not None:
        arrays["baseline"] = {"lists": arguments.baseline.lists.items}
    return arrays


def definitions_of(metrics: Sequence[Metric]) -> dict[str, dict[str, str]]:
    """Return the formula and the source of metrics, and the meaning of their parameters."""
    parts, found = ("title", "formula", "source"), {}
    for metric in metrics:
        definition = METRICS[metric.name]
        found[metric.variant] = {part: getattr(definition, part) for part in parts}
        found[metric.variant] |= metric.meanings
    return found


def number_below_0(data: Interactions) -> int:
    """Return how many values are below 0."""
    if data.values is None or data.value_range[0] >= 0:
        return 0
    return int(np.count_nonzero(data.values < 0))


def number_of_zeros(data: Interactions) -> int:
    """Return how many values are 0."""
    if data.values is None or data.value_range[0] > 0:
        return 0
    return len(data) - int(np.count_nonzero(data.values))


def warn_of_zeros(count: int, protocol: Protocol) -> None:
    """Warn of values of 0 in train, because the rule `seen` removes their items nevertheless."""
    if count and protocol.seen != "kept":
        warn(
            f"{count:,} value{' of train is' if count == 1 else 's of train are'} 0, and count as "
            "seen: their items are removed as all items of train are (the rule "
            f"seen={protocol.seen!r}; in test, an item with a value of 0 is not relevant). "
            "Hint: if such a row says that nothing happened, leave it out of train."
        )


def as_counted(test: Interactions, metrics: Sequence[Metric], protocol: Protocol) -> Interactions:
    """Return test with one row per pair, whose value follows the rules.

    If a metric counts each row, the value is the mean of the repeated rows. Otherwise the rule
    `repeated_test` decides; by default, values are added up unless the user set a threshold.
    """
    each = [one for one in metrics if rules_of(one, protocol).repeated_test in COUNT_EACH]
    rule = rules_of(each[0], protocol).repeated_test if each else protocol.repeated_test
    if rule == "once" and "relevant_from" not in given_by_hand(protocol):
        rule = "summed"
    return settled_repeats(test, rule)


def as_brought(test: Interactions, metrics: Sequence[Metric], protocol: Protocol) -> Interactions:
    """Return the test of a source with one row per pair, see `as_counted`."""
    if rows_stay(metrics, protocol):
        test = settled_repeats(test, "largest")
    return as_counted(test, metrics, protocol)


def rows_stay(metrics: Sequence[Metric], protocol: Protocol) -> bool:
    """Return whether repeated rows of a source count as different items.

    They do for metrics of ratings, and under ``duplicates="joined"``.
    """
    of_ranks = [one for one in metrics if one.definition.record != "ratings"]
    return not of_ranks or asked_of_source(of_ranks, protocol).duplicates == "joined"


def _largest_gain(test: Interactions) -> float:
    """Return the largest value of test, or 1 if no value is above 0."""
    if test.values is None:
        return 1.0
    largest = max(test.value_range[1], 0)
    if not np.isfinite(largest):
        largest = test.values[np.isfinite(test.values)].max(initial=0)
    return float(largest) or 1.0


def is_uniform(candidates: Candidates | None) -> bool | None:
    """Return whether candidates are drawn uniformly, or None if users have no sets."""
    if isinstance(candidates, SampledCandidates):
        return candidates.by == "uniform"
    return True if isinstance(candidates, Interactions) else None


def warning_of(candidates: Candidates | None, protocol: Protocol) -> str:
    """Return the warning about values that come from sets of candidates."""
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


def _arrays(data: Candidates | None) -> dict[str, Any]:
    if isinstance(data, Items):
        return {"items": data.ids}
    if not isinstance(data, Interactions):
        return {}
    return {name: getattr(data, name) for name in OF_INTERACTIONS}
