"""Evaluate Keras models on the whole catalogue during training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recometer.errors import need, warn
from recometer.evaluator import Evaluator
from recometer.integrations._shared import Evaluating, logged, logged_twice

keras: Any = need("keras", "RecometerCallback", "keras")


class RecometerCallback(Evaluating, keras.callbacks.Callback):  # type: ignore[misc]
    """Evaluate a model on the whole catalogue, and add the means to the epoch's logs.

    Put this callback before those that read the logs: ``callbacks=[RecometerCallback(...),
    keras.callbacks.EarlyStopping(monitor="val_ndcg_at_10", mode="max")]``.

    Parameters
    ----------
    evaluator
        An evaluator with the test data and the metrics:
        ``rm.Evaluator(test, train=train, metrics=...)``.
    source
        A function that takes the model and returns the source to evaluate, for instance ``lambda
        model: rm.Factors(model.users.get_weights()[0], model.items.get_weights()[0])``, or
        ``rm.Scores(function, ...)`` with a function that calls ``model.predict``.
    prefix
        The prefix that is added to the names of `Evaluation.flat`, as in ``val_ndcg_at_10``.
    every_n_epochs
        The number of epochs between evaluations. In other epochs, the logs repeat the latest means,
        because callbacks that monitor them need a value.

    Attributes
    ----------
    result : Evaluation or None
        The latest evaluation in the current call to ``fit``.

    Raises
    ------
    InputError
        If `every_n_epochs` is less than 1.
    InputTypeError
        If `evaluator` is not an evaluator with test data, `source` is not a function, or `prefix`
        is not a string.
    MissingExtraError
        On import, if Keras is not installed.

    Warns
    -----
    DataWarning
        At the end of training, if no epoch was evaluated, and in ``model.evaluate``, where the
        callback has no effect.
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
        self._take(evaluator, source, prefix, every_n_epochs)
        self._fits = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Discard the evaluation from an earlier call to ``fit``."""
        self.result, self._fits = None, True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Warn if no epoch was evaluated."""
        self._fits = False
        self._warn_if_never()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Warn if called by ``model.evaluate`` rather than by the validation in ``fit``."""
        if not self._fits:
            warn(
                "RecometerCallback evaluates at the end of epochs of fit(), and has no effect in "
                "evaluate(). Hint: evaluator(source(model))."
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluate the model if an evaluation is due, and add the latest means to the logs.

        Raises
        ------
        InputError
            If the logs already contain one of the names, for instance from another callback.
        ModelError
            If the function `source` raises an exception.
        """
        if (epoch + 1) % self.every_n_epochs == 0:
            self.result = self.evaluator(self._source_of(self.model))
        if self.result is None or logs is None:
            return
        values = logged(self.result.mean(), self.prefix)
        for name in values:
            if name in logs:
                raise logged_twice(name)
        logs.update(values)
