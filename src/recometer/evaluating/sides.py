"""Sides: test data, training data, and other data and counts that do not depend on the model."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer._kernel import Counting
from recometer.arrays import Array, Int64
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex, is_threshold, resolve_repeats
from recometer.errors import argument_text, rule_text, warn
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.checks import check_not_empty
from recometer.evaluating.requirements import requirements_of, rules_for_source
from recometer.measuring.side_data import warn_of_propensity
from recometer.metrics.registry import Metric, with_largest_gain
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.sources.base import Memory, Source
from recometer.sources.candidates import Candidates, Items, SampledCandidates, read_candidates
from recometer.tasks import any_in_blocks

OF_INTERACTIONS = ("indptr", "items", "values", "user_ids", "item_ids")
OF_ARGUMENTS = ("train", "exclude", "catalogue", "baseline")
FIELDS = operator.attrgetter(*OF_INTERACTIONS)


class Counts(NamedTuple):
    """Counts of each test user's training items, and of the training users of these items."""

    activity: Int64  # [n_users]: number of training items
    total: Int64  # [n_users]: total number of training users of these items

    @classmethod
    def of(cls, test: Interactions, train: Interactions, counting: Counting) -> Counts:
        """Make the counts; if counting runs in the background, the arrays are filled in later."""
        users = SourceIndex.of_data(train, "train").users_of(test)
        counts = cls(ragged.lengths(train.indptr, users), np.empty(test.n_users, np.int64))
        counting.count_items(
            indptr=train.indptr,
            items=train.items,
            users=users,
            counts=np.empty(train.n_items, np.int64),
            sums=counts.total,
        )
        return counts


@dataclasses.dataclass(frozen=True, eq=False)
class Sides:
    """The test data, and all facts about them that do not depend on a source.

    Expensive properties are computed only once, when they are first read.
    """

    arguments: Arguments
    test_as_passed: Interactions
    test: Interactions  # with repeated rows merged, and with the users that users="listed" adds
    candidates: Candidates | None
    metrics: tuple[Metric, ...]  # with parameters derived from test filled in
    memory: Memory = dataclasses.field(default_factory=Memory)  # caches data matched to sources
    # The first evaluation fills in the fingerprints of the arrays and the `Counts`.
    fingerprints: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    counts: list[Counts] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, arguments: Arguments, passed: Interactions, *, in_source: bool = False) -> Sides:
        """Check the test data (`in_source` or passed), and the arguments that need them."""
        candidates, metrics = arguments.as_passed["candidates"], arguments.metrics
        if candidates is not None:
            candidates = read_candidates(candidates, passed)
        check_not_empty(passed.n_users, len(passed))
        test = merge_rows(passed, metrics, arguments.protocol, in_source=in_source)
        if requirements_of(metrics, arguments.protocol).takes_largest_gain:
            metrics = tuple(with_largest_gain(metrics, _largest_gain(test)))
        if arguments.catalogue is not None:
            warn_of_propensity(metrics, arguments.catalogue)
        return cls(arguments, passed, test, candidates, metrics)

    def with_users(self, listed: Array) -> Sides:
        """Add users who have a list, as the rule users="listed" requires."""

        def add() -> Sides:
            test = self.test.with_users(listed)
            return dataclasses.replace(self, test=test, memory=Memory(), counts=[])

        return self.memory.find("listed", None, add, equal=(listed,))

    @cached_property
    def negative_gains(self) -> bool:
        """Whether test has gains below 0 that a metric counts."""
        lowest, protocol = self.test.value_range[0], self.arguments.protocol
        return lowest < 0 and requirements_of(self.metrics, protocol).negative_gains

    @cached_property
    def binary_gains(self) -> bool:
        """Whether every test value is 0 or 1."""
        gains, (low, high) = self.test.values, self.test.value_range
        if gains is None or low == high or low < 0 or high > 1:
            return low == high and low in (0, 1)
        return not any_in_blocks(len(gains), lambda rows: (gains[rows] != 0) & (gains[rows] != 1))

    @cached_property
    def descriptions(self) -> dict[str, dict[str, str]]:
        """A description of each argument, with a warning if necessary."""
        inputs, candidates = inputs_of(self.arguments, self), self.candidates
        texts = {name: _described(data) for name, data in inputs.items() if data is not None}
        if isinstance(candidates, SampledCandidates | Interactions):
            texts["candidates"]["warning"] = warning_of(candidates)
        if self.test.value_range[1] > 1 and not is_threshold(self.arguments.protocol.relevant_from):
            texts["test"]["reading"] = self._reading()
        return texts

    def _reading(self) -> str:
        """Return a sentence on how test values above 1 were read."""
        low, high = self.test.value_range
        relevant = "above 0" if self.arguments.protocol.relevant_from is None else "other than 0"
        read = [(str(metric), metric.definition) for metric in self.metrics]
        of_gain = [name for name, d in read if d.record == "ranks" and d.reads == "gain"]
        shown = ", ".join(of_gain[:3]) + (", ..." if len(of_gain) > 3 else "")
        return (
            f"test values range from {low:g} to {high:g}: an item with a value {relevant} "
            "is relevant (the rule relevant_from sets the threshold)"
            + (f", and its value is the gain of {shown}" if of_gain else "")
        )

    @cached_property
    def affected_rows(self) -> dict[str, int]:
        """The numbers of test and training rows that a rule affected."""
        test, train = self.test, self.arguments.train
        counts = {"test_duplicates": test.duplicates}
        if test.values is not None and test.value_range[0] < 0:
            counts["negative_values"] = int(np.count_nonzero(test.values < 0))
        if train is not None:
            counts |= {"train_duplicates": train.duplicates, "train_zeros": number_of_zeros(train)}
        return dict(filter(operator.itemgetter(1), counts.items()))


def inputs_of(arguments: Arguments, sides: Sides | None) -> dict[str, Any]:
    """Return the data, keyed by argument; test and candidates come from `sides`, if any."""
    inputs = {} if sides is None else {"test": sides.test_as_passed, "candidates": sides.candidates}
    return inputs | {name: getattr(arguments, name) for name in OF_ARGUMENTS}


def arrays_of(data: object) -> Mapping[str, object]:
    """Return the arrays of an argument, for fingerprints."""
    if isinstance(data, Interactions):
        return dict(zip(OF_INTERACTIONS, FIELDS(data), strict=True))
    if isinstance(data, Items):
        return {"items": data.ids}
    if isinstance(data, Catalogue):
        return data.arrays()
    return data.facts.arrays if isinstance(data, Source) else {}


def _described(data: Any) -> dict[str, str]:
    describes = isinstance(data, Catalogue | Source)
    return {"description": data.describe() if describes else repr(data)}


def number_of_zeros(data: Interactions) -> int:
    """Return the number of values that are 0."""
    if data.values is None or data.value_range[0] > 0:
        return 0
    return len(data) - int(np.count_nonzero(data.values))


def warn_of_zeros(count: int, protocol: Protocol) -> None:
    """Warn about values of 0 in train, because the rule `seen` still removes these items."""
    if count and protocol.seen != "kept":
        warn(
            f"{count:,} training "
            f"value{' is 0, but counts' if count == 1 else 's are 0, but count'} as seen: the "
            "items are removed, like all training items (the rule "
            f"{rule_text('seen', protocol.seen)}; in test, an item with a value of 0 is not "
            "relevant). Hint: if such a row means that nothing happened, leave it out of train."
        )


def merge_rows(
    test: Interactions, metrics: Sequence[Metric], protocol: Protocol, *, in_source: bool = False
) -> Interactions:
    """Return test data with one row per user-item pair; the rules determine its value.

    If a metric counts each row, the value is the mean of the repeated rows. Otherwise the rule
    `repeated_test` decides; by default, values are added up unless the user set a threshold. If the
    data are `in_source`, see also `keeps_rows`.
    """
    if in_source and keeps_rows(metrics, protocol):
        test = resolve_repeats(test, "largest")
    return resolve_repeats(test, requirements_of(metrics, protocol).repeated_test)


def keeps_rows(metrics: Sequence[Metric], protocol: Protocol) -> bool:
    """Return whether repeated rows of a source count as different items.

    They do for rating metrics, and under ``duplicates="joined"``.
    """
    of_ranks = [metric for metric in metrics if metric.definition.record != "ratings"]
    return not of_ranks or rules_for_source(of_ranks, protocol).duplicates == "joined"


def _largest_gain(test: Interactions) -> float:
    """Return the largest test value, or 1 if no value is above 0."""
    if test.values is None:
        return 1.0
    largest = max(test.value_range[1], 0)
    if not np.isfinite(largest):
        largest = test.values[np.isfinite(test.values)].max(initial=0)
    return float(largest) or 1.0


def warning_of(candidates: Candidates | None) -> str:
    """Return the warning that values are based on sets of candidates."""
    sampled = "since" if isinstance(candidates, SampledCandidates) else "if"
    return (
        f"Ranked among candidates of each user, not the whole catalogue: {sampled} these are a "
        "sample, the values are too high and may rank systems differently from the whole "
        f"catalogue (Krichene & Rendle 2020). Leave {argument_text('candidates')} out to rank all "
        "items."
    )
