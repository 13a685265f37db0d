"""Evaluator: an evaluation that is prepared once, for many models."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Literal

from recometer.data.interactions import read_interactions
from recometer.errors import InputTypeError
from recometer.evaluating.arguments import source_of, truth_beside, with_order
from recometer.evaluating.asked import DEFAULT_METRICS, read_asked
from recometer.evaluating.effects import warn_without_effect
from recometer.evaluating.folds import is_made, parts_of
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.making import evaluation_of, means_of
from recometer.evaluating.records import find_records
from recometer.evaluating.truth import Truth
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.evaluating.stream import Stream
    from recometer.protocol import Rules
    from recometer.sources.models import Recommender


class Evaluator:
    """What `evaluate` does, prepared once for many models.

    ``rm.Evaluator(test, ...)(source)`` is ``rm.evaluate(source, test, ...)``, to the last bit. What
    does not depend on the model is done once and kept: for training loops, searches of
    hyper-parameters, nightly runs.

    Parameters
    ----------
    test, train, candidates, exclude, metrics, protocol, catalogue, baseline, seed, threads
        As `recometer.evaluate` takes them, as well as `progress`, `chance` and single rules. They
        must not be changed while the evaluator is in use.

    Attributes
    ----------
    asked
        All arguments but test, read.
    truth
        Test, read, and what follows from it; None where the sources bring it.
    """

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
        baseline: Source | Evaluation | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | None = None,
        chance: bool = False,
        **rules: Unpack[Rules],
    ) -> None:
        options = {**locals()}  # all parameters, by their names
        for name in ("self", "test", "rules"):
            del options[name]
        if isinstance(test, Source):
            raise InputTypeError(
                f"test is a source ({test.describe()}). Hint: rm.Evaluator(test)(source)."
            )
        if is_made(test):
            test, options["train"] = parts_of(test, train)
        self.asked = read_asked(**options, rules=rules, parameters=[*options])
        self.truth = None
        if test is not None:
            self.truth = Truth.of(self.asked, read_interactions(test, "test"))

    def __call__(self, source: Source | Recommender) -> Evaluation:
        """Evaluate a model, as `recometer.evaluate` does."""
        return self.evaluated(source, time.perf_counter())

    def mean(self, source: Source | Recommender) -> dict[str, float]:
        """Return the means alone, those of ``evaluator(source).mean()``, in less time.

        No `Evaluation` is made: no fingerprints are taken of the source, and nothing is kept.
        """
        given = self.inputs(source)
        return means_of(given, find_records(given))

    def stream(
        self, *, item_ids: object = None, repeated: Literal["error", "first"] = "error"
    ) -> Stream:
        """Return an evaluation of what comes batch by batch; see `Stream` for the parameters."""
        from recometer.evaluating.stream import Stream

        return Stream(self, item_ids=item_ids, repeated=repeated)

    def of_known_users(self) -> Evaluator:
        """Return an evaluator in whose means only users count whom the source knows.

        For a part of the users: those of a batch, say, or of the first batches.
        """
        rules = self.asked.protocol.replace(no_list="undefined")
        asked = dataclasses.replace(self.asked, protocol=rules)
        object.__setattr__(asked, "by_hand", self.asked.by_hand)
        partial = copy.copy(self)
        partial.asked = asked
        if self.truth is not None:
            partial.truth = dataclasses.replace(self.truth, asked=asked)
        return partial

    def evaluated(self, source: object, begin: float) -> Evaluation:
        """Evaluate a model; `begin` is when its reading began."""
        given = self.inputs(source)
        read = time.perf_counter()
        records = find_records(given)
        ranked = time.perf_counter()
        return evaluation_of(given, records, read - begin, ranked - read)

    def inputs(self, given: object) -> Inputs:
        """Check a source, or make one of a model, and put it beside the truth."""
        asked, truth = self.asked, self.truth
        source = source_of(given, None if truth is None else truth.given, asked)
        trained = asked.train is not None
        warn_without_effect(source, asked.metrics, asked.protocol, asked.by_hand, trained=trained)
        settled = with_order(source, asked.protocol)
        brings_truth = truth is None
        own = truth_beside(source, given=not brings_truth)
        if truth is None:
            assert own is not None
            truth = Truth.of(asked, own)
        listed = source.listed_users() if asked.counts_listed_users else None
        if listed is not None:
            truth = truth.with_users(listed)
        return Inputs(source, truth, settled, brings_truth)
