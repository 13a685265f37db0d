"""Splits and folds as arguments of `evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from recometer.data.interactions import Interactions
from recometer.errors import InputError, InputTypeError, ModelError, RecometerError

if TYPE_CHECKING:
    from recometer.split.result import Folds, Split


def is_made(test: object) -> TypeGuard[Split | Folds | Sequence[Split]]:
    """Return whether test is a `Split`, `Folds`, or a list of `Split`."""
    # Do not import the module: that takes time, and a `Split` exists only if it is imported.
    module = sys.modules.get("recometer.split.result")
    if module is None:
        return False
    if isinstance(test, list | tuple):
        return bool(test) and all(isinstance(one, module.Split) for one in test)
    return isinstance(test, module.Split | module.Folds)


def are_folds(test: object) -> TypeGuard[Folds | Sequence[Split]]:
    """Return whether test has several splits: `Folds`, or a list of `Split`."""
    return is_made(test) and not hasattr(test, "interactions")


def check_no_train(made: object, train: object) -> None:
    """Refuse train if test is a split, which contains its own training data."""
    if train is not None:
        raise InputError(
            f"train was given, but {type(made).__name__} brings its own. Hint: leave train out."
        )


def parts_of(
    made: Split | Folds | Sequence[Split], train: object
) -> tuple[Interactions, Interactions]:
    """Return test and train of a split."""
    check_no_train(made, train)
    if not hasattr(made, "interactions"):
        raise InputTypeError(
            f"An Evaluator has one test, and {type(made).__name__} has several splits. Hint: one "
            "for each, [rm.Evaluator(split) for split in folds]; or rm.evaluate(function, folds)."
        )
    plain = made.interactions()
    return plain.test, plain.train


def each_fold(source: object, made: Any) -> Iterator[tuple[object, Any]]:
    """Yield the source and the split of each fold; splits are made one at a time.

    `source` is a function that returns the source of a split, or a list with a source per fold.
    """
    if callable(source):
        for number, one in enumerate(made):
            yield _made_by(source, one, number), one
        return
    if not isinstance(source, list | tuple):
        raise InputTypeError(
            "Folds are evaluated with an output of a model for each, found one of type "
            f"{type(source).__name__}. Hint: give a list, or a function that is called with "
            "each split and returns a source."
        )
    if len(source) != len(made):
        raise InputError(
            f"There are {len(source)} sources for {len(made)} folds. Hint: give one per "
            "fold, or a function that is called with each split and returns a source."
        )
    yield from zip(source, made, strict=True)


def _made_by(function: Callable[[Any], object], one: object, number: int) -> object:
    """Call the user's function with a fold, and return its source."""
    try:
        return function(one)
    except RecometerError:
        raise  # it already has a good message
    except Exception as error:
        raise ModelError(
            f"The function that returns a source raised {type(error).__name__} for fold {number} "
            f"(counted from 0): {error}. Hint: calling it with next(iter(folds)) shows where."
        ) from error
