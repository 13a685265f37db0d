"""Code shared by the integrations, such as argument checks and metric names for loggers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from recometer.errors import InputError, InputTypeError, ModelError, RecometerError, brief, warn
from recometer.evaluation import Evaluation
from recometer.evaluator import Evaluator
from recometer.results.flat import FlatName
from recometer.stats.checks import check_whole


def wrong_type(label: str, argument: object, expected: str) -> InputTypeError:
    """Return the error for an argument of an unexpected type."""
    return InputTypeError(f"{label} is of type {type(argument).__name__}, expected {expected}")


def logged(means: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Return the means, keyed by the names that loggers receive, such as ``val_ndcg_at_10``."""
    return {f"{prefix}{FlatName(name)}": mean for name, mean in means.items()}


class Evaluating:
    """The base class of training callbacks: it checks their arguments and makes their sources."""

    source_needed: ClassVar[bool] = True
    """Whether the user must pass a function that makes a source from the model."""
    result: Evaluation | None

    def _take(
        self,
        evaluator: Evaluator,
        source: Callable[[Any], Any] | None,
        prefix: str,
        every_n_epochs: int,
    ) -> None:
        """Check the arguments, and store them as attributes."""
        check_evaluator(evaluator)
        if not callable(source) and (self.source_needed or source is not None):
            raise wrong_type(
                "source=", source, "a function of the model. Hint: lambda model: rm.Factors(...)."
            )
        check_whole("every_n_epochs", every_n_epochs, 1)
        if not isinstance(prefix, str):
            raise InputTypeError(
                f'prefix={brief(prefix)} must be a string. Hint: use "val_", or "".'
            )
        self.evaluator, self.source = evaluator, source
        self.prefix, self.every_n_epochs = prefix, every_n_epochs
        self.result = None

    def _source_of(self, model: object) -> Any:
        """Return the source that the user's function makes from a model."""
        assert self.source is not None
        try:
            return self.source(model)
        except RecometerError:
            raise  # its message is already clear
        except Exception as error:
            raise ModelError(
                f"The function source= raised {type(error).__name__}: {error}. Hint: it is called "
                "with the model, and returns a source, such as rm.Factors(...)."
            ) from error

    def _warn_if_never(self) -> None:
        """Warn if training ended without an evaluation."""
        if self.result is None:
            warn(
                "RecometerCallback evaluated nothing, because training ended before epoch "
                f"{self.every_n_epochs} (every_n_epochs). Hint: use a smaller number or train "
                "longer."
            )


def check_evaluator(evaluator: object) -> None:
    """Raise an error unless `evaluator` is an `Evaluator` with test data."""
    if not isinstance(evaluator, Evaluator) or evaluator.sides is None:
        raise InputTypeError(
            "RecometerCallback needs an evaluator with test data, found "
            f"{type(evaluator).__name__}. Hint: rm.Evaluator(test, train=train, metrics=...)."
        )


def logged_twice(name: str) -> InputError:
    """Return the error for a value that would replace an earlier one logged under the same name."""
    return InputError(
        f"{name!r} is logged twice, and the second value would replace the first. Hint: "
        "RecometerCallback(..., prefix=...) gives each callback its own names."
    )
