"""Evaluator: an evaluation that is prepared once, for many models."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Literal

from recometer.data import matching
from recometer.data.fingerprints import glimpse
from recometer.data.interactions import read_interactions
from recometer.data.sizes import size_in_words
from recometer.errors import InputError, InputTypeError
from recometer.evaluating.arguments import settled, source_of, truth_beside
from recometer.evaluating.asked import DEFAULT_METRICS, Asked, read_asked
from recometer.evaluating.effects import warn_without_effect
from recometer.evaluating.folds import is_made, parts_of
from recometer.evaluating.held import held_bytes
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.making import evaluation_of, means_of
from recometer.evaluating.records import find_records
from recometer.evaluating.truth import Truth, arrays_beside_test, number_of_zeros, warn_of_zeros
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.removed import without
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.evaluating.stream import Stream
    from recometer.protocol import Rules
    from recometer.sources.models import Recommender


class Evaluator:
    """An evaluation that is prepared once, for many models.

    ``rm.Evaluator(test, ...)(source)`` returns the same as ``rm.evaluate(source, test, ...)``, to
    the last bit. Work that does not depend on the model is done only once: test and train are read,
    checked, matched with each other and hashed, and the lists of the baseline and the data for
    metrics of lists are prepared. Sources with the same ids as the previous one are not matched
    with test and train again.

    Several threads may use an evaluator at the same time. You can copy and pickle it if its
    arguments can be; matches with sources are not included.

    Parameters
    ----------
    test, train, candidates, exclude, metrics, protocol, catalogue, baseline, seed, threads, \
    progress, chance, **rules
        As for `recometer.evaluate`. Their data are shared, not copied, and must not be changed
        while the evaluator is in use: an error says so if a change is noticed, and a change of a
        few numbers may not be. Without `test`, each source must contain the truth, and less is
        prepared. `test` may be a `Split`.

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        As for `recometer.evaluate`: here for faults of the arguments above, and in a call for
        faults of the source, or if the data of an argument were changed. After refusing a source,
        an evaluator can be used for the next one.

    Warns
    -----
    DataWarning
        As for `recometer.evaluate`. Warnings from matching test and train with a source appear
        only for the first of several sources with the same ids.

    Attributes
    ----------
    asked
        All arguments except test, after reading.
    truth
        Test after reading, and everything that follows from it. None if the sources contain it.

    Examples
    --------
    >>> import numpy as np, recometer as rm
    >>> evaluator = rm.Evaluator({"ann": ["song"]}, metrics="rr ndcg@2")
    >>> lists = [{"ann": ["song", "film"]}, {"ann": ["film", "song"]}]
    >>> [evaluator.mean(rm.Lists(one))["rr"] for one in lists]
    [1.0, 0.5]
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
        self.asked: Asked = read_asked(**options, rules=rules, parameters=[*options])
        if self.asked.train is not None:
            warn_of_zeros(number_of_zeros(self.asked.train), self.asked.protocol)
        self.truth: Truth | None = None
        if test is not None:
            how = self.asked.protocol
            refused = matching.is_threshold(how.relevant_from) and how.repeated_test == "once"
            given = read_interactions(test, "test", says_sums=not refused)
            self.truth = Truth.of(self.asked, given)
        self._glimpses = self._glimpsed()

    @without("until")
    def __call__(self, source: Source | Recommender) -> Evaluation:
        """Evaluate a model: a source, or a fitted model that `recometer.from_model` recognises."""
        return self.evaluated(source, time.perf_counter())

    def mean(self, source: Source | Recommender) -> dict[str, float]:
        """Return only the means, as ``evaluator(source).mean()`` does, in less time.

        No `Evaluation` is made, and the source is neither hashed nor kept.
        """
        given = self.inputs(source)
        return means_of(given, find_records(given))

    def stream(
        self,
        *,
        item_ids: object = None,
        repeated: Literal["error", "first"] = "error",
        ignore_label: object = None,
    ) -> Stream:
        """Return an evaluation that takes batches of output; see `Stream` for the parameters."""
        from recometer.evaluating.stream import Stream

        return Stream(self, item_ids=item_ids, repeated=repeated, ignore_label=ignore_label)

    def of_known_users(self) -> Evaluator:
        """Return an evaluator whose means are over the users that the source knows.

        Use it for a part of the users, such as those of a batch, or of the first batches.
        """
        rules = self.asked.protocol.replace(no_list="undefined")
        asked = dataclasses.replace(self.asked, protocol=rules, expects_unknown=True)
        object.__setattr__(asked, "by_hand", self.asked.by_hand)
        partial = copy.copy(self)
        partial.asked = asked
        if self.truth is not None:
            partial.truth = dataclasses.replace(self.truth, asked=asked)
        return partial

    @property
    def nbytes(self) -> int:
        """The memory of all its arrays in bytes.

        This includes arrays that it shares with its arguments, and the matches with sources, so
        that the first call with new ids adds to it. For texts, only the pointers are counted.
        """
        return held_bytes(self.asked, self.truth)

    def __repr__(self) -> str:
        users = "each source's own users"
        if self.truth is not None:
            users = f"{self.truth.test.n_users:,} users"
        metrics = ", ".join(map(str, self.asked.metrics))
        return f"<Evaluator of {users}: {metrics} ({size_in_words(self.nbytes)})>"

    def evaluated(self, source: object, begin: float) -> Evaluation:
        """Evaluate a model; `begin` is the time at which reading it began."""
        given = self.inputs(source)
        read = time.perf_counter()
        records = find_records(given)
        return evaluation_of(given, records, read - begin, time.perf_counter() - read)

    def inputs(self, given: object) -> Inputs:
        """Check a source, or make one from a model, and combine it with the truth."""
        asked, truth = self.asked, self.truth
        self._check_unchanged()
        source = source_of(given, None if truth is None else truth.given, asked)
        trained = asked.train is not None
        warn_without_effect(source, asked.metrics, asked.protocol, asked.by_hand, trained=trained)
        rules = settled(source, asked.protocol, trained=trained)
        brings_truth = truth is None
        own = truth_beside(source, given=not brings_truth)
        if truth is None:
            assert own is not None
            truth = Truth.of(asked, own, brought=True)
        listed = source.listed_users() if asked.counts_listed_users else None
        if listed is not None:
            truth = truth.with_users(listed)
        return Inputs(source, truth, rules, brings_truth)

    def _glimpsed(self) -> dict[str, dict[str, bytes]]:
        """Return glimpses of all arrays, by argument."""
        asked, truth = self.asked, self.truth
        arrays = arrays_beside_test(asked, None) if truth is None else truth.arrays()
        return {
            argument: {name: glimpse(array) for name, array in named.items()}
            for argument, named in arrays.items()
        }

    def _check_unchanged(self) -> None:
        """Refuse to go on with arrays that their owner has changed."""
        for argument, seen in self._glimpsed().items():
            for name, found in seen.items():
                if found != self._glimpses[argument][name]:
                    raise InputError(
                        f"{argument} was changed after the evaluator was made: its {name} are not "
                        "those that were read, checked and matched. Hint: make another "
                        "rm.Evaluator, or give it a copy."
                    )
