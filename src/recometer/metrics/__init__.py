"""Metrics as pure functions, their names, and the conditions under which they are undefined.

Importing this package fills the registry, so every module that defines metrics must be imported
here. To register your own metric, use the decorator `metric`; see docs/own_metric.md.
"""

# The documentation and the commands list metrics in the order of these imports.
from recometer.metrics.ranked import (
    binary,
    confusion,
    counterfactual,
    curves,
    graded,
    mean_precision,
    positions,
    stopping,
)

# isort: split
from recometer.metrics import rated as ratings

# isort: split
from recometer.metrics.listed import (
    categories,
    diversity,
    invented,
    novelty,
    other_lists,
    repetition,
    spread,
)

# isort: split
from recometer.metrics.listed.data import ListData, Side
from recometer.metrics.listed.diversity import mean_over_pairs
from recometer.metrics.names import parse
from recometer.metrics.parameters import Parameter
from recometer.metrics.registry import METRICS, Metric, MetricDefinition, metric, reading
from recometer.metrics.sums import place_sums
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
    "invented",
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
    "repetition",
    "spread",
    "stopping",
]
