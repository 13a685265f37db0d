"""Small rankings for tests, the definitions of all metrics written out, and their laws.

Everything here is slow and obvious, and shares no code with what it checks: `rank` counts
by comparing every pair, `by_definition` reads one explicit order of the items, and
`mean_over_orders` averages that over every order of the tied ones. `cases` and `metrics` are
Hypothesis strategies, and `LAWS` what holds for every metric, one of your own included:
`check_laws`. Importing this package needs Hypothesis.
"""

from recometer.testing.definitions import by_definition, mean_over_orders
from recometer.testing.laws import LAWS, check_laws
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

__all__ = [
    "LAWS",
    "Case",
    "by_definition",
    "cases",
    "check_laws",
    "copies",
    "mean_over_orders",
    "metrics",
    "observed",
    "orders",
    "rank",
    "variants",
]
