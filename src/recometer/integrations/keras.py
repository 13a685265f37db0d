"""Keras: an evaluation on the whole catalogue at the end of each epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recometer.errors import InputError, InputTypeError, need
from recometer.evaluating.evaluator import Evaluator
from recometer.results.evaluation import Evaluation
from recometer.results.flat import FlatName

keras: Any = need("keras", "RecometerCallback", "keras")


class RecometerCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Evaluate a model on the whole catalogue, and add the means to the logs of the epoch.

    Put it before callbacks that read the logs: ``callbacks=[RecometerCallback(...),
    keras.callbacks.EarlyStopping(monitor="val_ndcg_at_10", mode="max")]``.

    Parameters
    ----------
    evaluator
        Defines what is measured: ``rm.Evaluator(test, train=train, metrics=...)``.
    source
        A function that takes the model and returns the source to evaluate, for instance ``lambda
        model: rm.Factors(model.users.get_weights()[0], model.items.get_weights()[0])``, or
        ``rm.Scores(function, ...)`` with a function that calls ``model.predict``.
    prefix
        The prefix of the names, which are those of `Evaluation.flat`: ``val_ndcg_at_10``.
    every_n_epochs
        The number of epochs between evaluations. In other epochs, the logs have the latest means,
        because callbacks that monitor them need a value.

    Attributes
    ----------
    result : Evaluation or None
        The latest evaluation.

    Raises
    ------
    InputError
        If `every_n_epochs` is less than 1.
    InputTypeError
        If `evaluator` is not an evaluator with a test, or `source` is not a function.
    MissingExtraError
        On import, if Keras is not installed.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        source: Callable[[Any], Any],
        *,
        prefix: str = "val_",
        every_n_epochs: int = 1,
    ) -> None:
        super().__init__()
        if not isinstance(evaluator, Evaluator) or evaluator.truth is None:
            raise InputTypeError(
                "RecometerCallback takes an evaluator with a test, found "
                f"{type(evaluator).__name__}. Hint: rm.Evaluator(test, train=train, metrics=...)."
            )
        if not callable(source):
            raise InputTypeError(
                f"source= is of type {type(source).__name__}, expected a function of the model. "
                "Hint: lambda model: rm.Factors(...)."
            )
        if not isinstance(every_n_epochs, int) or every_n_epochs < 1:
            raise InputError(
                f"every_n_epochs={every_n_epochs!r} must be a whole number, 1 or more."
            )
        self.evaluator, self.source = evaluator, source
        self.prefix, self.every_n_epochs = prefix, every_n_epochs
        self.result: Evaluation | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluate, and add the means to the logs."""
        if (epoch + 1) % self.every_n_epochs == 0:
            self.result = self.evaluator(self.source(self.model))
        if self.result is not None and logs is not None:
            for name, mean in self.result.mean().items():
                logs[f"{self.prefix}{FlatName(name)}"] = mean
