"""Small rankings for tests, the definitions of all metrics written out, and their laws.

Everything here is slow and obvious, and shares no code with what it checks: `rank` counts
by comparing every pair, `by_definition` reads one explicit order of the items, and
`mean_over_orders` averages that over every order of the tied ones. `cases` and `metrics` are
Hypothesis strategies. `LAWS` hold for every metric, including your own, which `check_laws` checks.
For metrics of lists there are `list_cases`, `list_by_definition` and `LIST_LAWS`, and for those of
predicted ratings `rating_cases`, `rating_by_definition` and `RATING_LAWS`. `check_source` checks a
source of `Ranks`, by `SOURCE_LAWS`.
Importing this package needs Hypothesis: ``pip install "recometer[test]"``.
"""

from recometer.errors import RecometerError


class MissingHypothesisError(RecometerError, ImportError):
    """The laws need Hypothesis, which is not installed."""


try:
    from recometer.testing.definitions import by_definition, mean_over_orders
    from recometer.testing.laws import LAWS, check_laws
    from recometer.testing.list_cases import ListCase, list_cases
    from recometer.testing.list_definitions import list_by_definition
    from recometer.testing.list_laws import LIST_LAWS
    from recometer.testing.rankings import (
        Case,
        cases,
        copies,
        metrics,
        observed,
        orders,
        rank,
        variants,
    )
    from recometer.testing.rating_cases import RatingCase, rating_cases
    from recometer.testing.rating_definitions import (
        rating_by_definition,
        rating_mean_over_orders,
    )
    from recometer.testing.rating_laws import RATING_LAWS
    from recometer.testing.source_laws import (
        SOURCE_LAWS,
        SourceCase,
        check_source,
        source_cases,
    )
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise MissingHypothesisError(
        "recometer.testing draws its cases with Hypothesis, which is not installed. "
        'Hint: pip install "recometer[test]".'
    ) from None

__all__ = [
    "LAWS",
    "LIST_LAWS",
    "RATING_LAWS",
    "SOURCE_LAWS",
    "Case",
    "ListCase",
    "MissingHypothesisError",
    "RatingCase",
    "SourceCase",
    "by_definition",
    "cases",
    "check_laws",
    "check_source",
    "copies",
    "list_by_definition",
    "list_cases",
    "mean_over_orders",
    "metrics",
    "observed",
    "orders",
    "rank",
    "rating_by_definition",
    "rating_cases",
    "rating_mean_over_orders",
    "source_cases",
    "variants",
]
