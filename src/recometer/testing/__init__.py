"""Check the laws for metrics and sources, including your own, on small cases drawn at random.

`check_laws` checks a metric, and `check_source` checks a source of `Ranks`. `LAWS` are the laws for
ranking metrics, `LIST_LAWS` those for list metrics, `RATING_LAWS` those for metrics of predicted
ratings, and `SOURCE_LAWS` those for sources. The Hypothesis strategies `cases`, `list_cases`,
`rating_cases` and `source_cases` draw the inputs of these laws. `rank` ranks items by comparing
every pair.

Importing this package needs Hypothesis: ``pip install "recometer[test]"``.
"""

from recometer.errors import need

try:
    from recometer.testing.cases import (
        ListCase,
        RankingCase,
        RatingCase,
        cases,
        list_cases,
        observed,
        rank,
        rating_cases,
        variants,
    )
    from recometer.testing.laws import LAWS, LIST_LAWS, RATING_LAWS, at_cutoffs, check_laws
    from recometer.testing.source_laws import SOURCE_LAWS, SourceCase, check_source, source_cases
except ModuleNotFoundError:
    need("hypothesis", "recometer.testing", "test")
    raise


__all__ = [
    "LAWS",
    "LIST_LAWS",
    "RATING_LAWS",
    "SOURCE_LAWS",
    "ListCase",
    "RankingCase",
    "RatingCase",
    "SourceCase",
    "at_cutoffs",
    "cases",
    "check_laws",
    "check_source",
    "list_cases",
    "observed",
    "rank",
    "rating_cases",
    "source_cases",
    "variants",
]
