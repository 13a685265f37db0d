"""Metrics: pure functions of the ranking, their names, and when they are undefined.

Importing this package fills the registry: a new module of metrics is imported here.
"""

from recometer.metrics import binary, curves, graded, ratings
from recometer.metrics.registry import METRICS, Metric, MetricDefinition, metric, parse, reading

__all__ = [
    "METRICS",
    "Metric",
    "MetricDefinition",
    "binary",
    "curves",
    "graded",
    "metric",
    "parse",
    "ratings",
    "reading",
]
