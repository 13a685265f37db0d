"""Reads all arguments except the source once, for any number of evaluations."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recometer.data.catalogue import Catalogue
from recometer.data.fingerprints import glimpse
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.matching import is_threshold
from recometer.data.numbers import flag, seed_of
from recometer.errors import InputError, InputTypeError, argument_text
from recometer.evaluating.arguments import (
    Arguments,
    adapt_protocol,
    check_source,
    included_test,
    is_split,
    parts_of,
    protocol_of,
)
from recometer.evaluating.case import Case, means_of
from recometer.evaluating.requirements import requirements_of
from recometer.evaluating.sides import Sides, arrays_of, inputs_of, number_of_zeros, warn_of_zeros
from recometer.evaluating.unused_rules import changed_rules, warn_without_effect
from recometer.measuring.side_data import check_side_data
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import DEFAULT_METRICS, Metrics, read_once
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.sources.base import Source
from recometer.sources.candidates import read_items
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from recometer.protocol import Rules
    from recometer.sources.models import Recommender


class Preparation:
    """All arguments except the source, read only once; the base class of `recometer.Evaluator`."""

    is_kept = False
    """Whether the user keeps the object, and may change the data before a later call."""

    sides: Sides | None = None  # None without test

    def __init__(
        self,
        test: object = None,
        *,
        train: object = None,
        candidates: object = None,
        exclude: object = None,
        metrics: Metrics = DEFAULT_METRICS,
        protocol: str | Protocol = "recometer",
        catalogue: object = None,
        baseline: Source | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | None = None,
        chance: bool = False,
        **rules: Unpack[Rules],
    ) -> None:
        if isinstance(test, Source):
            raise InputTypeError(
                f"test is a source ({test.describe()}). Hint: rm.Evaluator(test)(source)."
            )
        if is_split(test):
            test, train = parts_of(test, train)
        stated = protocol_of(protocol, rules, [*(Preparation.__init__.__kwdefaults__ or ())])
        requested = read_once(parse_under, metrics, stated)
        items = catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue)
        if not isinstance(baseline, Source | None):
            raise InputTypeError(
                f"{argument_text('baseline')} is of type {type(baseline).__name__}, expected "
                "another source, such as rm.baselines.most_popular(train)."
            )
        how = seed_of(seed), resolve_threads(threads), progress, flag("chance", chance)
        trained = None if train is None else read_interactions(train, "train", warns=False)
        needs = requirements_of(requested, stated)
        if needs.side_data or needs.side_data_of_lists:
            check_side_data(requested, train=trained, baseline=baseline, catalogue=items)
        excluded = None if exclude is None else read_items(exclude, "exclude")
        data = trained, excluded, items, baseline
        as_passed = {"candidates": candidates, "exclude": exclude}
        self.arguments = Arguments(requested, stated, *data, *how, as_passed, changed_rules(stated))
        if trained is not None:
            warn_of_zeros(number_of_zeros(trained), stated)
        if test is not None:
            refused = is_threshold(stated.relevant_from) and stated.repeated_test == "once"
            test_data = read_interactions(test, "test", warn_sums=not refused)
            self.sides = Sides.of(self.arguments, test_data)
        self._glimpses = self._glimpsed() if self.is_kept else {}

    def mean(self, source: Source | Recommender) -> dict[str, float]:
        """Return only the means, as ``evaluator(source).mean()`` does, but in less time.

        The source is neither hashed nor kept.
        """
        return means_of(self.case(source))

    def of_known_users(self) -> Self:
        """Return an evaluator whose means include only the users that the source knows.

        Use it for a source that covers only some users, such as those in the first batches.
        """
        rules = self.arguments.protocol.replace(no_list="undefined")
        arguments = dataclasses.replace(self.arguments, protocol=rules, expects_unknown=True)
        partial = copy.copy(self)
        partial.arguments = arguments
        if self.sides is not None:
            partial.sides = dataclasses.replace(self.sides, arguments=arguments)
        return partial

    def case(self, model: object) -> Case:
        """Check a source, or make one from a model, and combine it with the sides."""
        arguments, sides = self.arguments, self.sides
        if self.is_kept:
            self._check_unchanged()
        if isinstance(model, Source):
            source = model
        else:
            test = None if sides is None else sides.test_as_passed
            source = source_of(model, test, arguments.train, arguments.metrics, arguments.protocol)
        trained = arguments.train is not None
        if arguments.user_rules:
            stated, user_rules = arguments.protocol, arguments.user_rules
            warn_without_effect(source, arguments.metrics, stated, user_rules, trained=trained)
        rules = adapt_protocol(source, arguments.protocol, trained=trained)
        facts, brings_truth = source.facts, sides is None
        if sides is None or facts.truth is not None:
            truth = included_test(source, test_passed=not brings_truth)
            assert truth is not None
            sides = Sides.of(arguments, truth, in_source=True)
        needs = requirements_of(sides.metrics, rules)
        if facts.listed is not None and needs.listed_users:
            sides = sides.with_users(facts.listed())
        return Case(source, sides, rules, brings_truth, needs)

    def _glimpsed(self) -> dict[str, dict[str, bytes]]:
        """Return a `glimpse` of each array, keyed by argument."""
        return {
            argument: {name: glimpse(array) for name, array in arrays_of(data).items()}
            for argument, data in inputs_of(self.arguments, self.sides).items()
        }

    def _check_unchanged(self) -> None:
        """Raise an error if the user has changed an array."""
        for argument, arrays in self._glimpsed().items():
            for name, current in arrays.items():
                if current != self._glimpses[argument][name]:
                    raise InputError(
                        f"{argument} was changed after the evaluator was made: its {name} differ "
                        "from those that were read and checked. Hint: make another rm.Evaluator, "
                        "or pass it a copy."
                    )


def check_evaluable(argument: object, test: object) -> None:
    """Refuse an argument that is neither a source nor a model, before reading any data."""
    if not isinstance(argument, Source | type) and not isinstance(test, Source):
        from recometer.sources.models import is_model

        if is_model(argument):
            return
    check_source(argument, test)


def source_of(
    model: object,
    test: Interactions | None,
    train: Interactions | None,
    metrics: Sequence[Metric],
    protocol: Protocol,
) -> Source:
    """Wrap a fitted model in a source.

    Raises InputTypeError for anything else, with a hint on how to make a source.
    """
    from recometer.sources.models import for_test, is_model

    if isinstance(model, type) or not is_model(model):
        return check_source(model, test)
    if test is None:
        raise InputError("test is missing. Hint: rm.evaluate(model, test).")
    cutoffs = [metric.cutoff for metric in metrics]
    n = None if None in cutoffs else max(filter(None, cutoffs))
    return for_test(model, test, train, n, keep_seen=protocol.seen != "removed")
