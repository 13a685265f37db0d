"""Laws for metrics and sources, including your own, and strategies that draw small cases.

`check_laws` checks a metric, and `check_source` checks a source of `Ranks`. The laws are `LAWS` for
metrics of rankings, `LIST_LAWS` for metrics of lists, `RATING_LAWS` for metrics of predicted
ratings, and `SOURCE_LAWS` for sources. The Hypothesis strategies `cases`, `list_cases`,
`rating_cases` and `source_cases` draw their inputs; `rank` ranks a few items by comparing every
pair.

Importing this package needs Hypothesis: ``pip install "recometer[test]"``.
"""

from recometer.errors import RecometerError


class MissingHypothesisError(RecometerError, ImportError):
    """Raised if Hypothesis, which the laws need, is not installed."""


try:
    from recometer.testing.laws import LAWS, LIST_LAWS, RATING_LAWS, check_laws
    from recometer.testing.lists import ListCase, list_cases
    from recometer.testing.rankings import RankingCase, cases, observed, orders, rank, variants
    from recometer.testing.ratings import RatingCase, rating_cases
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
    "ListCase",
    "MissingHypothesisError",
    "RankingCase",
    "RatingCase",
    "SourceCase",
    "cases",
    "check_laws",
    "check_source",
    "list_cases",
    "observed",
    "orders",
    "rank",
    "rating_cases",
    "source_cases",
    "variants",
]
