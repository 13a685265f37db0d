"""Removed arguments, options, commands and names, and what to use instead."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from recometer.errors import InputTypeError

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

DATA_SETS = (
    "scipy.stats.friedmanchisquare(*means.T) tests whether models differ over data sets, and "
    "autorank says which ones do."
)
PUBLISHED = (
    "published means do not say whether models differ; recometer compare does, from the values of "
    "each user. Evaluate the models again, on the lists or the split of the authors."
)
DEFINITIONS = (
    "check_laws checks a metric; the definitions of recometer's own metrics are among the tests in "
    "its source, in tests/helpers/."
)
ALL_USERS = (
    "evaluate all users, which takes less time than reading them in random order, or a random "
    "sample of the users of test."
)

WEIGHTS = (
    "result.mean(weights) takes a weight for each user; LightGBM and XGBoost weight queries by "
    "RankingMetrics of recometer.integrations."
)
GROUPS = (
    "groups= of rm.Pairs.of has the user of each row, and sizes= the number of rows of each, which "
    "LightGBM calls group."
)

# Each entry says what to do instead. This table has Python arguments, by name.
ARGUMENTS: dict[str, str] = {
    "memory": "factors and scores that are larger than memory are ranked in place in .npy files, "
    "rm.Factors('users.npy', 'items.npy') and rm.Scores('scores.npy'); lists and interactions that "
    "are go to recometer.spark with a local session, master('local[*]'), which spills to disk.",
    "mode": "one rule decides gates: passed, failed or undecided; undecided='pass' or 'fail' turns "
    "the third outcome into one of the others.",
    "short_lists": (
        "the missing places of a list with fewer than k items are misses. The drop-ins "
        "recometer.compat.implicit and recometer.compat.pyg fill them as these libraries do."
    ),
    "until": ALL_USERS,
    "evaluator": "evaluate each source: compare({'als': evaluator(als), 'pop': evaluator(pop)}).",
    "group": GROUPS,
    "qid": GROUPS,
    "weight": WEIGHTS,
    "weights": WEIGHTS,
}
# Values of rules, by (rule, value).
VALUES: dict[tuple[str, str], str] = {
    ("repeated_test", "multiplied"): (
        "'joined' counts each row of test that repeats a pair, at the place of the item."
    ),
}
# Names in the package, without "recometer.".
NAMES: dict[str, str] = {
    "stats.Friedman": DATA_SETS,
    "stats.Published": PUBLISHED,
    "stats.friedman": DATA_SETS,
    "stats.published": PUBLISHED,
    "testing.Case": "it is called RankingCase.",
    "testing.by_definition": DEFINITIONS,
    "testing.copies": "ranks.users(np.tile(np.arange(ranks.n_users), n)) repeats all users.",
    "testing.list_by_definition": DEFINITIONS,
    "testing.mean_over_orders": DEFINITIONS,
    "testing.metrics": "Hypothesis draws names by sampled_from(sorted(recometer.metrics.METRICS)).",
    "testing.rating_by_definition": DEFINITIONS,
    "testing.rating_mean_over_orders": DEFINITIONS,
    "Until": ALL_USERS,
}
# Options and commands of the command line.
OPTIONS: dict[str, str] = {
    "--gate-mode": "one rule decides gates: passed, failed or undecided; --undecided pass or fail "
    "turns the third outcome into one of the others.",
    "--until": ALL_USERS,
    "--memory": "factors in .npy files, --factors users.npy,items.npy, are ranked in place and may "
    "be larger than memory; runs, test and train that are go to recometer.spark in Python, with a "
    "local session, master('local[*]'), which spills to disk.",
}
COMMANDS: dict[str, str] = {"significance": PUBLISHED}


def no_attribute(name: str, package: str = "") -> AttributeError | ImportError:
    """Return the error for a missing attribute of recometer or of a package in it.

    The package's ``__getattr__`` raises it.
    """
    inside = f"{package}." if package else ""
    hint = f". Hint: {NAMES[inside + name]}" if inside + name in NAMES else ""
    module = f"recometer.{package}".rstrip(".")
    # `from package import name` would replace the message of an AttributeError and lose the hint.
    # Such an import reaches this function from `_handle_fromlist`.
    if hint and sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"{module} has no {name!r} any more{hint}")
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def without(
    *names: str,
) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Make a function refuse removed arguments, with a message that says what to use instead."""

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        @functools.wraps(function)
        def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Returned:
            for name in names:
                if name in options:
                    called = function.__qualname__.removesuffix(".__init__")
                    raise InputTypeError(
                        f"{called} has no argument {name!r}. Hint: {ARGUMENTS[name]}"
                    )
            return function(*args, **options)

        return checked

    return decorate
