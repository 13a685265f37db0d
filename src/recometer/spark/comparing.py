"""compare on Spark: the values of users are collected, and compared as on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from recometer.comparing.models import named
from recometer.comparison import Comparison
from recometer.comparison import compare as compare_here
from recometer.removed import without
from recometer.spark.result import SparkEvaluation
from recometer.spark.tables import RUNNING, acted, is_frame, refusing

JOBS = 8  # of Spark at the same time: it shares the cores among them


@refusing({name: RUNNING[name] for name in ("threads", "progress")})
@without("evaluator", "until")
def compare(
    models: Mapping[str, Any] | Sequence[Any], *, cluster: object = None, **options: Any
) -> Comparison:
    """Test whether models differ, and estimate by how much, from the values of every user.

    The driver collects the values of all models (`SparkEvaluation.collect`, with its limit), and
    `recometer.compare` does the rest.

    Parameters
    ----------
    models
        A dict from the names of models to results of `evaluate` on the same test, or a list of
        results; and what else `recometer.compare` takes. Data on Spark have no fingerprints:
        whether models were evaluated on the same data is not known.
    cluster
        As in `recometer.compare`, or a DataFrame of Spark with the users and their clusters.
    **options
        As in `recometer.compare`.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> print(rs.compare({"als": first, "bpr": second}, baseline="als"))  # doctest: +SKIP
    """
    hint = "Hint: rs.compare({'als': first, 'bpr': second})."
    entries = named(models, "Models are compared by their results", hint)
    with ThreadPoolExecutor(JOBS) as pool:

        def collecting(given: Any) -> Any:
            if isinstance(given, list | tuple):
                return [*map(collecting, given)]
            return pool.submit(given.collect) if isinstance(given, SparkEvaluation) else given

        waiting = {name: collecting(one) for name, one in entries.items()}
        here: Any = cluster
        if is_frame(cluster):
            here = acted(here.toArrow)
    given = {name: _collected(one) for name, one in waiting.items()}
    return compare_here(given, cluster=here, **options)


def _collected(given: Any) -> Any:
    if isinstance(given, list):
        return [*map(_collected, given)]
    return given.result() if isinstance(given, Future) else given
