"""Metrics: pure functions of the ranking, their names, and when they are undefined.

Importing this package fills the registry: a new module of metrics is imported here. The
decorator `metric` registers a metric of your own, see docs/own_metric.md.
"""

from recometer.metrics import (
    binary,
    categories,
    confusion,
    counterfactual,
    curves,
    diversity,
    graded,
    mean_precision,
    novelty,
    other_lists,
    positions,
    ratings,
    spread,
    stopping,
)
from recometer.metrics._list_data import ListData, Side
from recometer.metrics._sums import place_sums
from recometer.metrics.diversity import mean_over_pairs
from recometer.metrics.names import parse
from recometer.metrics.parameters import Parameter
from recometer.metrics.registry import (
    METRICS,
    Metric,
    MetricDefinition,
    metric,
    reading,
)
from recometer.ties import Groups

__all__ = [
    "METRICS",
    "Groups",
    "ListData",
    "Metric",
    "MetricDefinition",
    "Parameter",
    "Side",
    "binary",
    "categories",
    "confusion",
    "counterfactual",
    "curves",
    "diversity",
    "graded",
    "mean_over_pairs",
    "mean_precision",
    "metric",
    "novelty",
    "other_lists",
    "parse",
    "place_sums",
    "positions",
    "ratings",
    "reading",
    "spread",
    "stopping",
]
