"""Make the package `recometer.split` callable: ``rm.split(...)`` calls its function `split`."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING

from recometer.split import splitting


class CallableModule(types.ModuleType):
    """A module that can be called like the function `split`."""

    __call__ = staticmethod(splitting.split)
    # Without this, `inspect.signature` would take the first parameter of `__call__` to be `self`.
    __signature__ = inspect.signature(splitting.split)


if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal, Protocol, TypedDict, TypeVar, overload

    import numpy as np
    import numpy.typing as npt
    import polars
    from typing_extensions import Unpack

    from recometer.data.interactions import Interactions
    from recometer.split.choices import (
        What,
        Who,
    )
    from recometer.split.filters import Filter
    from recometer.split.filters import SeenInTrain as Seen

    Frame = TypeVar("Frame")

    class Sparse(Protocol):
        """A sparse matrix."""

        def tocsr(self) -> Any:
            """Return the matrix in CSR format."""

    class Splitting:
        """The type of `split`, whose overloads give the type of the parts for each type of data.

        In annotations, use names from `recometer.split` itself, or ``rm.Split`` and ``rm.Folds``.
        """

        from recometer.split.checks import NoTestUsersError
        from recometer.split.choices import (
            ActiveAfter,
            After,
            AllUsers,
            ColdItems,
            Fraction,
            GivenUsers,
            KFold,
            Last,
            LastFraction,
            LeaveOneOut,
            Number,
            UserFolds,
            UsersFraction,
            UsersNumber,
            Windows,
        )
        from recometer.split.filters import Duplicates, KCore, MinCounts, SeenInTrain, ValuesFrom
        from recometer.split.result import Folds, Split, SplitProtocol

        class Options(TypedDict, total=False):
            """The options of `split`; a test ensures that they match its parameters."""

            who: Who
            filters: Filter | Seen | Iterable[Filter | Seen]
            untested: Literal["train", "apart"]
            min_train: int
            min_test: int
            seed: int
            threads: int | None
            user: str | Sequence[str] | None
            item: str | None
            value: object
            time: object

        folds = staticmethod(splitting.folds)

        @property
        def split(self) -> Splitting:
            """The module itself."""

        @overload
        def __call__(
            self, data: str | os.PathLike[str], what: What, **options: Unpack[Options]
        ) -> Split[polars.DataFrame | polars.LazyFrame]: ...

        @overload
        def __call__(
            self, data: polars.LazyFrame, what: What, **options: Unpack[Options]
        ) -> Split[polars.DataFrame]: ...

        @overload
        def __call__(
            self,
            data: Interactions | Mapping[Any, Any] | npt.NDArray[np.generic] | Sparse,
            what: What,
            **options: Unpack[Options],
        ) -> Split[Interactions]: ...

        @overload
        def __call__(self, data: Frame, what: What, **options: Unpack[Options]) -> Split[Frame]: ...

        def __call__(self, data: object, what: What, **options: Unpack[Options]) -> Split:
            """Split interactions; see `recometer.split.split`."""

    split = Splitting()
