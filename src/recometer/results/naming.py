"""Find the metrics of a result by any of their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.metrics.conventions import parse_under
from recometer.metrics.largest_gain import left_open
from recometer.metrics.names import Metrics
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol


def names_of(
    metric: str | Metric, known: Mapping[str, Metric], protocol: Protocol
) -> tuple[list[str], bool]:
    """Return the names in `known` that are meant, and whether they are written as several.

    `metric` is what `recometer.evaluate` takes: another name of a metric, several cut-offs
    (``ndcg@1..1``, too), ``rbp(p=0.8)`` for rbp, ``err@10`` for ``err@10(max_gain=3)``.
    UnknownNameError: it was not asked for. InputError: it may be several of them, or has a cut-off
    or a parameter's value that the metric does not take.
    """
    text = str(metric)
    if text in known:
        return [text], False
    try:
        asked = parse_under(text, protocol)
    except UnknownNameError:
        asked = []
    found = [_as_known(one, known) for one in asked]
    missing = next((name for name in found if name not in known), None)
    if missing is not None or not found:
        name = text if missing is None or len(found) == 1 else missing
        raise UnknownNameError(
            f"This evaluation has no metric {name!r}. {did_you_mean(name, known)}"
        )
    head = text.partition("(")[0]
    return found, len(found) > 1 or ".." in head or "," in head


def name_of(metric: str | Metric, known: Mapping[str, Metric], protocol: Protocol) -> str:
    """Return the one name in `known` that is meant, see `names_of`; InputError for several."""
    names, several = names_of(metric, known, protocol)
    if several:
        raise InputError(
            f"{str(metric)!r} names several metrics: {', '.join(names)}. Hint: ask one."
        )
    return names[0]


def names_among(asked: Metrics, known: Iterable[Metric], protocol: Protocol) -> list[str]:
    """Return the names that metrics have in `known`, each once; others keep their own name."""
    among = {str(one): one for one in known}
    return list(dict.fromkeys(_as_known(one, among) for one in parse_under(asked, protocol)))


def _as_known(asked: Metric, known: Mapping[str, Metric]) -> str:
    """Return the name of a metric among those known, where a parameter may be that of test."""
    name = str(asked)
    if name in known:
        return name
    fitting = [one for one, metric in known.items() if str(left_open(metric, asked)) == name]
    if len(fitting) > 1:
        raise InputError(
            f"The metric {name!r} is not clear: it may be {' or '.join(fitting)}. Hint: write one "
            "of these."
        )
    return fitting[0] if fitting else name
