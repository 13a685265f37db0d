"""Drop-in for rectools.metrics.calc_metrics, which takes RecTools' metric objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recometer.compat._shared import convention_of, evaluated, unknown
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError
from recometer.evaluation import Evaluation
from recometer.sources.lists import Lists

__all__ = ["calc_metrics"]

USER, ITEM, RANK = "user_id", "item_id", "rank"  # the same names as in rectools.Columns
# These attributes of RecTools' metrics, shown with their defaults, become parameters in brackets
# after the metric's name.
OPTIONS: dict[str, dict[str, Any]] = {
    "Precision": {"r_precision": False},
    "F1Beta": {"beta": 1.0},
    "MAP": {"divide_by_k": False},
    "NDCG": {"divide_by_achievable": False, "log_base": 2},
    "AvgRecPopularity": {"normalize": False},
}
OF_LISTS = {"MeanInvUserFreq", "AvgRecPopularity", "CatalogCoverage"}
OF_TRAIN = {"MeanInvUserFreq", "AvgRecPopularity"}
OF_CATALOGUE = {"Accuracy", "MCC", "CatalogCoverage"}
KNOWN = ["Precision", "Recall", "HitRate", "F1Beta", "MAP", "NDCG", "MRR", "PartialAUC", "PAP"]
KNOWN += ["Accuracy", "MCC", *sorted(OF_TRAIN), "CatalogCoverage"]


def calc_metrics(
    metrics: Mapping[str, Any],
    reco: Any,
    interactions: Any = None,
    prev_interactions: Any = None,
    catalog: Any = None,
    ref_reco: Any = None,
) -> dict[str, float]:
    """Calculate metrics of recommendations, like ``rectools.metrics.calc_metrics``.

    `metrics` contains RecTools' metric objects, such as ``NDCG(k=10)``, whose classes and
    attributes are read. `reco` has the columns ``user_id``, ``item_id`` and ``rank``. `ref_reco`
    must be None, because the metric Intersection is not available. Other unavailable metrics and
    options, and metrics whose data are missing, raise an UnknownNameError or InputError.

    Examples
    --------
    >>> import polars as pl
    >>> from recometer.compat.rectools import calc_metrics
    >>> class HitRate:  # stands in for RecTools' class
    ...     __module__, k = "rectools.metrics.classification", 1
    >>> reco = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [7, 8, 9], "rank": [1, 2, 1]})
    >>> test = pl.DataFrame({"user_id": [1, 2], "item_id": [7, 7]})
    >>> calc_metrics({"hit": HitRate()}, reco, test)
    {'hit': 0.5}
    """
    if ref_reco is not None:
        raise InputError("ref_reco does not apply: metrics of intersections are not supported.")
    if not isinstance(metrics, Mapping):
        raise InputTypeError(f"metrics is of type {type(metrics).__name__}, expected a dict.")
    names = {key: _name_of(metric) for key, metric in metrics.items()}
    data = {"interactions": interactions, "prev_interactions": prev_interactions}
    for key, metric in metrics.items():
        _check_arguments(key, type(metric).__name__, {**data, "catalog": catalog})
    lists = Lists(reco, user=USER, item=ITEM, rank=RANK)
    values: dict[str, float] = {}
    for of_lists in (False, True):
        group = {key: n for key, n in names.items() if (n.split("(")[0].split("@")[0] in OF_LISTS)
                is of_lists}  # fmt: skip
        if group:
            result = _evaluated(lists, group, of_lists, catalog, **data)
            means = result.mean()
            values |= {key: float(means[name]) for key, name in group.items()}
    return {key: values[key] for key in metrics}


def _evaluated(
    lists: Lists,
    names: Mapping[str, str],
    of_lists: bool,
    catalog: Any,
    interactions: Any,
    prev_interactions: Any,
) -> Evaluation:
    # `evaluate` needs test data even if every metric reads only the lists.
    test = prev_interactions if interactions is None else interactions
    options: dict[str, Any] = {}
    if of_lists and prev_interactions is not None:
        options["train"] = _pairs(prev_interactions)
    if catalog is not None:
        items = as_array(catalog, "catalog")
        options["catalogue"] = ids.encode(items, "items of catalog")[1]
    if test is None:
        listed = lists.facts.listed
        assert listed is not None
        import polars as pl

        test = pl.DataFrame({USER: listed()[:1], ITEM: options["catalogue"][:1]})
    return evaluated("rectools", lists, _pairs(test), {*names.values()}, threads=None, **options)


def _pairs(frame: Any) -> Interactions:
    return Interactions.of(frame, user=USER, item=ITEM, value=False, time=False)


def _check_arguments(key: str, kind: str, arguments: Mapping[str, Any]) -> None:
    needed = {
        "interactions": kind not in OF_LISTS,
        "prev_interactions": kind in OF_TRAIN,
        "catalog": kind in OF_CATALOGUE,
    }
    for name, is_needed in needed.items():
        if is_needed and arguments[name] is None:
            raise InputError(f"{kind} ({key!r}) needs {name}=.")


def _name_of(metric: Any) -> str:
    """Return the name of a RecTools metric in the convention."""
    kind = type(metric).__name__
    if not type(metric).__module__.startswith("rectools.") or kind not in KNOWN:
        raise unknown("RecTools", "metric", kind, KNOWN)
    if getattr(metric, "debias_config", None) is not None:
        raise InputError(f"{kind} has a debias_config, which is not supported.")
    handling = getattr(metric, "insufficient_handling", "ignore")
    if str(getattr(handling, "value", handling)) not in ("ignore", "InsufficientHandling.IGNORE"):
        raise InputError(
            f"{kind} has insufficient_handling={handling!r}: only 'ignore' is supported."
        )
    brackets = [
        f"{option}={value if not isinstance(value, float) else f'{value:g}'}"
        for option, default in OPTIONS.get(kind, {}).items()
        if (value := getattr(metric, option, default)) != default
    ]
    if kind == "CatalogCoverage":
        brackets = [f"normalize={getattr(metric, 'normalize', False)}"]
    name = kind + (f"({','.join(brackets)})" if brackets else "")
    name += f"@{metric.k}"
    convention = convention_of("rectools")
    if convention.entry(name)[0] is None:
        raise unknown("RecTools", "metric", name, convention.names)
    return name
