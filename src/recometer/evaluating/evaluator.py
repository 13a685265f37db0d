"""Evaluator: an evaluation that is prepared once, for many models."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import TYPE_CHECKING, Literal

from recometer.data.interactions import read_interactions
from recometer.errors import InputTypeError
from recometer.evaluating.arguments import source_of, truth_beside, with_order
from recometer.evaluating.asked import DEFAULT_METRICS, Asked, read_asked
from recometer.evaluating.effects import warn_without_effect
from recometer.evaluating.folds import is_made, parts_of
from recometer.evaluating.held import held_bytes, in_words
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
    """An evaluation that is prepared once, for many models.

    ``rm.Evaluator(test, ...)(source)`` is ``rm.evaluate(source, test, ...)``, to the last bit. What
    does not depend on the model is done once and kept: test and train are read, checked, matched
    with each other and hashed; what baselines list and what metrics of lists read is found; and
    sources with the same ids as the one before are not matched with test and train again.

    Several threads may use it at once. It can be copied and pickled, as far as its arguments can;
    what was matched with sources stays behind.

    Parameters
    ----------
    test, train, candidates, exclude, metrics, protocol, catalogue, baseline, seed, threads, \
    progress, chance, **rules
        As `recometer.evaluate` takes them. What they hold is shared and not copied, and must not
        be changed while the evaluator is in use. Without `test`, each source must bring the truth
        itself, and less is prepared. `test` may be a `Split`.

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        As `recometer.evaluate`: here what has to do with the arguments above, and in a call what
        has to do with the source. An evaluator that has refused a source takes the next one.

    Warns
    -----
    DataWarning
        As `recometer.evaluate`; what matching test and train with a source shows, only for the
        first of several sources with the same ids.

    Attributes
    ----------
    asked
        All arguments but test, read.
    truth
        Test, read, and what follows from it; None where the sources bring it.

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
        self.truth: Truth | None = None
        if test is not None:
            self.truth = Truth.of(self.asked, read_interactions(test, "test"))

    def __call__(self, source: Source | Recommender) -> Evaluation:
        """Evaluate a model: a source, or a fitted model that `recometer.from_model` knows."""
        return self.evaluated(source, time.perf_counter())

    def mean(self, source: Source | Recommender) -> dict[str, float]:
        """Return the means alone, those of ``evaluator(source).mean()``, in less time.

        No `Evaluation` is made, the source is not hashed, and nothing of it is kept.
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

    @property
    def nbytes(self) -> int:
        """The memory of all arrays that it holds, in bytes.

        Those that it shares with what it was given are among them; what was matched with sources
        is, too, so that the first call for a kind of source adds to it. Of texts, what points to
        them is counted.
        """
        return held_bytes(self.asked, self.truth)

    def __repr__(self) -> str:
        users = "each source's own users"
        if self.truth is not None:
            users = f"{self.truth.test.n_users:,} users"
        metrics = ", ".join(map(str, self.asked.metrics))
        return f"<Evaluator of {users}: {metrics} ({in_words(self.nbytes)})>"

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
