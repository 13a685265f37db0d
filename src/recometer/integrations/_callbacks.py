"""What callbacks of training loops have in common: their arguments, and the source they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recometer.errors import InputError, InputTypeError, ModelError, RecometerError, brief
from recometer.evaluator import Evaluator
from recometer.stats.checks import check_whole


def check_arguments(prefix: object, every_n_epochs: object) -> None:
    """Refuse a prefix that is no text, and a number of epochs that is none."""
    check_whole("every_n_epochs", every_n_epochs, 1)
    if not isinstance(prefix, str):
        raise InputTypeError(f'prefix={brief(prefix)} must be a text. Hint: "val_", or "".')


def check_evaluator(evaluator: object) -> None:
    """Refuse what is no evaluator, and one without a test."""
    if not isinstance(evaluator, Evaluator) or evaluator.sides is None:
        raise InputTypeError(
            "RecometerCallback takes an evaluator with a test, found "
            f"{type(evaluator).__name__}. Hint: rm.Evaluator(test, train=train, metrics=...)."
        )


def check_source(source: object) -> None:
    """Refuse what is no function."""
    if not callable(source):
        raise InputTypeError(
            f"source= is of type {type(source).__name__}, expected a function of the model. "
            "Hint: lambda model: rm.Factors(...)."
        )


def source_from(function: Callable[[Any], Any], model: object) -> Any:
    """Return the source that the user's function makes from a model."""
    try:
        return function(model)
    except RecometerError:
        raise  # says itself what is wrong
    except Exception as error:
        raise ModelError(
            f"The function source= raised {type(error).__name__}: {error}. Hint: it is called "
            "with the model, and returns a source, such as rm.Factors(...)."
        ) from error


def logged_twice(name: str) -> InputError:
    """Return the error for a value that would replace another one of the same name."""
    return InputError(
        f"{name!r} is logged twice, and the second value would replace the first. Hint: "
        "RecometerCallback(..., prefix=...) gives each callback names of its own."
    )


def never_evaluated(every_n_epochs: int) -> str:
    """Return the warning that a whole training passed without an evaluation."""
    return (
        f"RecometerCallback evaluated nothing: no epoch was due by "
        f"every_n_epochs={every_n_epochs}. Hint: a smaller number, or more epochs."
    )
