"""Evaluate Lightning modules on the whole catalogue at the end of each validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recometer.errors import InputError, need
from recometer.evaluator import Evaluator
from recometer.integrations._shared import Evaluating, check_evaluator, logged, logged_twice
from recometer.sources.models import from_model

pytorch: Any = need("lightning.pytorch", "RecometerCallback", "lightning", "lightning")
torch: Any = need("torch", "RecometerCallback", "lightning")

TEST = "test_"  # the prefix for the names of means that are logged in ``trainer.test``


class RecometerCallback(Evaluating, pytorch.Callback):  # type: ignore[misc]
    """Evaluate a module on the whole catalogue, and log the means.

    The evaluator's rules determine whether training items are left out. At the end of each
    validation, the callback logs the means under the names of `Evaluation.flat` with a prefix, such
    as ``val_ndcg_at_10``, so that ``EarlyStopping(monitor="val_ndcg_at_10", mode="max")`` and
    ``ModelCheckpoint`` can monitor them. Without validation, the callback logs them at the end of
    each training epoch. If there are several processes, only the first one evaluates the module,
    and all of them log its means.

    Parameters
    ----------
    evaluator
        An evaluator with the test data and the metrics:
        ``rm.Evaluator(test, train=train, metrics=...)``.
    source
        A function that takes the module and returns the source to evaluate, for instance ``lambda
        module: rm.Factors(module.users.weight, module.items.weight)``. With None, the module must
        have a method that `from_model` recognises: ``score_users(rows)`` (if the test data have no
        ids) or ``recommend(users, k)``.
    test
        Another evaluator for ``trainer.test``. Its means are logged with the prefix ``test_``.
    prefix
        The prefix for the names of means, such as ``"val_"`` or ``"val/"``.
    every_n_epochs
        The number of training epochs between evaluations.

    Attributes
    ----------
    result : Evaluation or None
        The latest evaluation, available only in the first process.

    Raises
    ------
    InputError
        If `every_n_epochs` is less than 1.
    InputTypeError
        If `evaluator` is not an evaluator with test data, `source` is not a function, or `prefix`
        is not a string.
    ModelError
        During an evaluation, if the function `source` raises an exception.
    MissingExtraError
        On import, if Lightning is not installed.

    Warns
    -----
    DataWarning
        At the end of training, if no epoch was evaluated.
    """

    source_needed = False

    def __init__(
        self,
        evaluator: Evaluator,
        source: Callable[[Any], Any] | None = None,
        *,
        test: Evaluator | None = None,
        prefix: str = "val_",
        every_n_epochs: int = 1,
    ) -> None:
        super().__init__()
        if test is not None:
            check_evaluator(test)
        self._take(evaluator, source, prefix, every_n_epochs)
        self.test = test

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Check that no other callback logs the same names.

        Raises
        ------
        InputError
            If another callback logs the same names.
        """
        for other in trainer.callbacks:
            if isinstance(other, RecometerCallback) and other is not self:
                for name in self._names(stage) & other._names(stage):
                    raise logged_twice(name)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Discard the evaluation from an earlier call to ``fit``."""
        self.result = None

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Warn if no epoch was evaluated."""
        if trainer.is_global_zero and trainer.current_epoch > 0:
            self._warn_if_never()

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the module and log the means, except in the sanity check before training."""
        if not trainer.sanity_checking and self._is_due(trainer):
            self._evaluate(trainer, pl_module, self.evaluator, self.prefix)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the module and log the means if there is no validation."""
        if not trainer.enable_validation and self._is_due(trainer):
            self._evaluate(trainer, pl_module, self.evaluator, self.prefix)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the module with the evaluator passed as ``test``, and log the means."""
        if self.test is not None:
            self._evaluate(trainer, pl_module, self.test, TEST)

    def _is_due(self, trainer: Any) -> bool:
        fitting = trainer.state.fn == "fit"
        return not fitting or (trainer.current_epoch + 1) % self.every_n_epochs == 0

    def _names(self, stage: str) -> set[str]:
        """Return the names under which the callback logs means in this stage."""
        evaluator, prefix = (self.test, TEST) if stage == "test" else (self.evaluator, self.prefix)
        metrics = () if evaluator is None else evaluator.arguments.metrics
        return set(logged(dict.fromkeys(map(str, metrics), 0.0), prefix))

    def _source(self, module: Any, evaluator: Evaluator) -> Any:
        if self.source is not None:
            return self._source_of(module)
        if not hasattr(module, "score_users"):
            return module
        assert evaluator.sides is not None
        test = evaluator.sides.test
        if test.user_ids is not None or test.item_ids is not None:
            raise InputError(
                "score_users(rows) takes positions, but test has ids of users or items. Hint: "
                "RecometerCallback(evaluator, lambda module: rm.from_model(module, user_ids=..., "
                "item_ids=...))."
            )
        return from_model(module, n_users=test.n_users, n_items=test.n_items)

    def _evaluate(self, trainer: Any, module: Any, evaluator: Evaluator, prefix: str) -> None:
        means: dict[str, float] | None = None
        if trainer.is_global_zero:
            modes = [(part, part.training) for part in module.modules()]
            module.eval()
            try:
                with torch.no_grad():
                    self.result = evaluator(self._source(module, evaluator))
            finally:
                for part, training in modes:
                    part.training = training
            means = self.result.mean()
        means = trainer.strategy.broadcast(means)
        assert means is not None
        module.log_dict(logged(means, prefix), on_step=False, on_epoch=True, batch_size=1)
