"""Evaluator: the arguments of an evaluation on Spark, for many models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recometer.errors import InputTypeError
from recometer.evaluating.asked import DEFAULT_METRICS
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.removed import without
from recometer.spark._elsewhere import RUNNING, refusing
from recometer.spark._sources import CLOSURE
from recometer.spark.evaluation import evaluate
from recometer.spark.pooling import is_made, tables_of_split
from recometer.spark.result import SparkEvaluation
from recometer.spark.splitting import SparkSplit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules


@refusing(RUNNING)
class Evaluator:
    """An evaluation that is stated once, for many models.

    ``rs.Evaluator(test, ...)(source)`` returns the same as ``rs.evaluate(source, test, ...)``.

    Parameters
    ----------
    test, train, candidates, exclude, metrics, protocol, catalogue, baseline, seed, chance, \
    closure, partitions, keep, **rules
        As for `evaluate`; test may be a `SparkSplit`, which brings its train. Nothing is read
        before the evaluator is called.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> evaluator = rs.Evaluator(test, train=train, metrics="ndcg@10")  # doctest: +SKIP
    >>> evaluator(model).mean()  # doctest: +SKIP
    {'ndcg@10': 0.31}
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
        baseline: object = None,
        seed: int = 0,
        chance: bool = False,
        closure: str | int = CLOSURE,
        partitions: int | None = None,
        keep: bool = True,
        **rules: Unpack[Rules],
    ) -> None:
        options = {**locals()}  # all parameters, by their names
        for name in ("self", "test", "rules"):
            del options[name]
        if is_made(test):
            if not isinstance(test, SparkSplit):
                raise InputTypeError(
                    "An evaluator has one test, found several splits. Hint: rs.evaluate(sources, "
                    "folds)."
                )
            test, options["train"] = tables_of_split(test, train)
        self.test, self.options, self.rules = test, options, rules

    @without("until")
    def __call__(self, source: object) -> SparkEvaluation:
        """Evaluate a source."""
        return evaluate(source, self.test, **self.options, **self.rules)

    def __repr__(self) -> str:
        return f"<Evaluator on Spark: {self.options['metrics']}>"
