"""Split interactions into training and test data, and choose whom to test and what to hold out.

``split(data, who=UsersFraction(0.1), what=Last(1), filters=[KCore(5)])`` makes a `Split`, and
`folds` makes several. The package itself can also be called: ``recometer.split(data, ...)``.
"""

import sys
from typing import TYPE_CHECKING

from recometer.split.calling import CallableModule
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
from recometer.split.splitting import folds

if TYPE_CHECKING:
    from recometer.split.calling import split
else:
    from recometer.split.splitting import split

__all__ = [
    "ActiveAfter",
    "After",
    "AllUsers",
    "ColdItems",
    "Duplicates",
    "Folds",
    "Fraction",
    "GivenUsers",
    "KCore",
    "KFold",
    "Last",
    "LastFraction",
    "LeaveOneOut",
    "MinCounts",
    "NoTestUsersError",
    "Number",
    "SeenInTrain",
    "Split",
    "SplitProtocol",
    "UserFolds",
    "UsersFraction",
    "UsersNumber",
    "ValuesFrom",
    "Windows",
    "folds",
    "split",
]

sys.modules[__name__].__class__ = CallableModule
