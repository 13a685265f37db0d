"""Which metrics of a result a name stands for, however it is written."""

from __future__ import annotations

from collections.abc import Collection

from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.metrics.conventions import parse_under
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol


def names_of(
    metric: str | Metric, known: Collection[str], protocol: Protocol
) -> tuple[list[str], bool]:
    """Return the names in `known` that are meant, and whether they are written as several.

    `metric` is what `recometer.evaluate` takes: another name of a metric, several cut-offs
    (``ndcg@1..1``, too), ``rbp(p=0.8)`` for rbp. UnknownNameError: it was not asked for.
    InputError: a cut-off or a parameter's value that the metric does not take.
    """
    text = str(metric)
    if text in known:
        return [text], False
    try:
        found = [str(one) for one in parse_under(text, protocol)]
    except UnknownNameError:
        found = []
    missing = next((name for name in found if name not in known), None)
    if missing is not None or not found:
        name = text if missing is None or len(found) == 1 else missing
        raise UnknownNameError(
            f"This evaluation has no metric {name!r}. {did_you_mean(name, known)}"
        )
    head = text.partition("(")[0]
    return found, len(found) > 1 or ".." in head or "," in head


def name_of(metric: str | Metric, known: Collection[str], protocol: Protocol) -> str:
    """Return the one name in `known` that is meant, see `names_of`; InputError for several."""
    names, several = names_of(metric, known, protocol)
    if several:
        raise InputError(
            f"{str(metric)!r} names several metrics: {', '.join(names)}. Hint: ask one."
        )
    return names[0]
