"""``rm.split(...)``: the package of splits, which is called as its function `split`."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from recometer.split import modes, splitting

Given = ParamSpec("Given")
Made = TypeVar("Made")


class CallableModule(types.ModuleType):
    """A module that is called as `split` is."""

    __call__ = staticmethod(splitting.split)
    # Python takes the first parameter of an object that is called for the object.
    __signature__ = inspect.signature(splitting.split)


if TYPE_CHECKING:

    class Splitting(Generic[Given, Made]):
        """What types know of ``rm.split``, since a module cannot be called in their eyes.

        Annotations take names from `recometer.split` itself, or ``rm.Split`` and ``rm.Folds``.
        """

        from recometer.split.checks import NoTestUsersError
        from recometer.split.filters import Duplicates, KCore, MinCounts, SeenInTrain, ValuesFrom
        from recometer.split.result import Folds, Split, SplitProtocol
        from recometer.split.what import (
            After,
            ColdItems,
            Fraction,
            KFold,
            Last,
            LastFraction,
            LeaveOneOut,
            Number,
            Windows,
        )
        from recometer.split.who import (
            ActiveAfter,
            AllUsers,
            GivenUsers,
            UserFolds,
            UsersFraction,
            UsersNumber,
        )

        all = staticmethod(modes.all)
        folds = staticmethod(splitting.folds)
        joined = staticmethod(modes.joined)
        separated = staticmethod(modes.separated)
        split = staticmethod(splitting.split)

        def __init__(self, function: Callable[Given, Made]) -> None: ...

        def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Made:
            """Split interactions, see `recometer.split.split`."""
            ...

    split = Splitting(splitting.split)
