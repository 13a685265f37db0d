"""Parameters of metrics that are taken from test unless they are given: its largest gain."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from recometer.metrics.registry import METRICS, Metric


def left_to_test(metric: Metric) -> list[str]:
    """Return the parameters of a metric that are taken from test, as they are not given."""
    given, known = dict(metric.parameters), METRICS[metric.name].parameters
    return [name for name, one in known.items() if one.from_test and name not in given]


def with_largest_gain(metrics: Iterable[Metric], largest: float) -> list[Metric]:
    """Fill in the parameters that are taken from test, unless they are given."""
    settled = []
    for one in metrics:
        missing = dict.fromkeys(left_to_test(one), largest)
        pairs = (*one.parameters, *missing.items())
        settled.append(dataclasses.replace(one, parameters=pairs) if missing else one)
    return list(dict.fromkeys(settled))


def left_open(metric: Metric, asked: Metric) -> Metric:
    """Return a metric without the parameters that another one leaves to test."""
    if metric.name != asked.name:
        return metric
    left = left_to_test(asked)
    rest = tuple((name, value) for name, value in metric.parameters if name not in left)
    return dataclasses.replace(metric, parameters=rest)
