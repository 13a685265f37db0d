"""Parses metric names: ``recall@5,10``, ``ap@1..20``, ``f@10(beta=2)``."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, SupportsIndex

from recometer.errors import InputError, InputTypeError, argument_text
from recometer.metrics.cutoffs import bad_cutoff
from recometer.metrics.parameters import Value
from recometer.metrics.registry import METRICS, Metric, MetricDefinition, canonical
from recometer.ties import WHOLE

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
# Names are separated by spaces, and by commas that precede a letter, except within the brackets of
# parameters and groups.
NAMES = re.compile(r"(?:[^\s(\[,]|,(?!\s*[^\W\d])|\([^)]*\)|\[[^\]]*\]|[(\[])+")
# Matches a parameter with several values, as in ndcg@10(gain=[0,1,3]) and
# ndcg@10(label_gain=0,1,3).
TABLE_OF_GAINS = re.compile(r"=\s*[\[{]|,\s*[\d.]+\s*(,|$)")
# A space may follow a comma between the cut-offs of one name.
BETWEEN_CUTOFFS = re.compile(r"\[[^\]]*\]|(?<=\d),\s+(?=\d+(?:\.\.\d+)?(?:[,\s(\[]|$))")
# Matches recall@10[new]. A name in a convention may end with [@k], which is not a group.
WITH_GROUP = re.compile(r"(.+)\[([^\[\]@][^\[\]]*)\]", re.DOTALL)

MAX_CUTOFFS = 10_000
"""The largest number of cut-offs in a range."""
MAX_OF_GROUPS = 1000
"""The largest number of metrics that `of_groups` returns."""
# The cache of parsed names holds at most MOST_NAMES names, each with at most FEW_CUTOFFS cut-offs.
MOST_NAMES, FEW_CUTOFFS = 1000, 100

# Maps metric names to cut-offs; None means the whole ranking.
CutoffsOf = Mapping[str, SupportsIndex | str | Iterable[SupportsIndex | None] | None]
Metrics = str | Metric | Iterable[str | Metric] | CutoffsOf


def parse(metrics: Metrics) -> list[Metric]:
    """Read metric names.

    Parameters
    ----------
    metrics
        Names separated by spaces or commas: ``"recall@5,10 ndcg@1..3 roc_auc"``. Several cut-offs
        are separated by commas, and ``1..3`` means 1, 2 and 3. Parameters come last, in brackets:
        ``"f@5,10(beta=0.5)"``. A list of such names, or of `Metric` objects, works as well, as does
        a dict from names to cut-offs, ``{"ndcg": [5, 10], "rr": None}``. The dict gives the
        cut-offs of a metric as a number, several numbers, a range, a string such as ``"1..20"``, or
        None for no cut-off. Synonyms of metric names are accepted, in upper or lower case; see
        `registry.canonical`.

    Returns
    -------
    list of Metric
        The metrics in the order of the argument, without repeats and under their names in
        recometer: ``"MRR@10"`` becomes ``rr@10``.

    Raises
    ------
    UnknownNameError
        If a metric, or one of its parameters, does not exist.
    InputError
        If the argument contains no metric, or a metric does not accept the cut-off or the value of
        a parameter.
    InputTypeError
        If the argument, or one of its entries, is neither a name nor a `Metric`.

    Examples
    --------
    >>> [str(metric) for metric in parse("recall@5,10 ndcg@1..3 roc_auc")]
    ['recall@5', 'recall@10', 'ndcg@1', 'ndcg@2', 'ndcg@3', 'roc_auc']
    >>> [str(metric) for metric in parse("NDCG@10, MRR, hit_rate@5, 10")]
    ['ndcg@10', 'rr', 'hit@5', 'hit@10']
    >>> [str(metric) for metric in parse({"ndcg": [5, 10], "f(beta=2)": 5, "rr": None})]
    ['ndcg@5', 'ndcg@10', 'f@5(beta=2)', 'rr']
    """
    parsed: dict[Metric, None] = {}
    for request in names_in(metrics):
        parsed.update(
            dict.fromkeys([request] if isinstance(request, Metric) else read_name(_read, request))
        )
    if not parsed:
        raise InputError("No metric was requested. Hint: name one or more, such as 'ndcg@10'.")
    return list(parsed)


def names_in(metrics: Metrics) -> Iterator[str | Metric]:
    """Split the argument of `parse` into metrics and single names, which stay strings.

    Raises
    ------
    InputError
        If a dict contains invalid cut-offs, or names that already have cut-offs.
    InputTypeError
        If the argument, or one of its entries, is neither a name nor a `Metric`.
    """
    if isinstance(metrics, Mapping):
        for name, cutoffs in metrics.items():
            yield from _with_cutoffs(name, cutoffs)
        return
    if isinstance(metrics, str | Metric):
        metrics = [metrics]
    elif not isinstance(metrics, Iterable):
        raise _not_a_name(metrics)
    for entry in metrics:
        if isinstance(entry, Metric):
            yield entry
        elif isinstance(entry, str):
            joined = BETWEEN_CUTOFFS.sub(lambda match: match[0] if "[" in match[0] else ",", entry)
            yield from NAMES.findall(joined)
        else:
            raise _not_a_name(entry)


def _with_cutoffs(name: object, cutoffs: object) -> Iterator[str]:
    """Yield a metric name with each of its cut-offs, such as ``ndcg@5``.

    `name` and `cutoffs` are one entry of a dict of metrics.
    """
    if not isinstance(name, str):
        raise _not_a_name(name)
    if "@" in name or len(NAMES.findall(name)) != 1:
        raise InputError(
            f"{name!r} is a key with cut-offs, so it must be a single name without cut-offs. "
            "Hint: write "
            "metrics={'ndcg': [5, 10], 'rr': None}, or "
            f"{argument_text('metrics', 'ndcg@5,10 rr')}."
        )
    plain, group = without_group(name.strip())
    head, bracket, parameters = plain.partition("(")
    suffix = bracket + parameters + (f"[{group}]" if group else "")
    for cutoff in _listed(head, cutoffs):
        yield (head if cutoff is None else f"{head}@{cutoff}") + suffix


def _listed(name: str, cutoffs: object) -> list[int | None]:
    """Return the cut-offs that a dict of metrics lists for a name."""
    if isinstance(cutoffs, str):
        return [*parse_cutoffs(name, cutoffs)]
    if isinstance(cutoffs, Iterable) and getattr(cutoffs, "ndim", None) != 0:
        several = list(itertools.islice(cutoffs, MAX_CUTOFFS + 1))
    else:
        several = [cutoffs]
    if not several:
        raise InputError(
            f"{name!r} has no cut-off: {cutoffs!r} is empty. Hint: write None for the whole "
            "ranking, or leave the metric out."
        )
    if len(several) > MAX_CUTOFFS:
        raise InputError(
            f"{name!r} has more than {MAX_CUTOFFS:,} cut-offs. Hint: write only those you need."
        )
    checked: list[int | None] = []
    for cutoff in several:
        if isinstance(cutoff, bool) or not (cutoff is None or hasattr(cutoff, "__index__")):
            raise bad_cutoff(name, cutoff)
        checked.append(None if cutoff is None else operator.index(cutoff))
    return checked


def split(text: str) -> tuple[str, str | None, tuple[tuple[str, Value], ...]]:
    """Split a name into parts: ``"f@5,10(beta=2)"`` is ``("f", "5,10", (("beta", "2"),))``."""
    head, bracket, tail = text.partition("(")
    name, sign, cutoffs = head.partition("@")
    return name, cutoffs if sign else None, _parse_parameters(text, head, tail) if bracket else ()


class _Cache:
    """A cache of parsed names, and the metrics that were registered when they were parsed."""

    parsed: ClassVar[dict[tuple[object, ...], tuple[Metric, ...]]] = {}
    metrics: ClassVar[list[MetricDefinition]] = []


def without_group(text: str) -> tuple[str, str]:
    """Split off the group of items: ``"recall@10[new]"`` is ``("recall@10", "new")``."""
    match = WITH_GROUP.fullmatch(text)
    return (text, "") if match is None else (match[1], match[2])


def of_groups(metrics: Sequence[Metric], groups: Sequence[str]) -> list[Metric]:
    """Return each metric restricted to each group of items, and the metric `share` of each group.

    Raises
    ------
    InputError
        If no metric can be restricted, a group's name contains square brackets, or there are more
        than `MAX_OF_GROUPS` metrics.
    """
    # If no metric can be restricted, keep one, which `Metric` then refuses with an error message.
    restrictable = [metric for metric in metrics if metric.definition.takes_group] or metrics[:1]
    for group in groups:
        if WITH_GROUP.fullmatch(f"m[{group}]") is None:
            raise InputError(
                f"{group!r} cannot be the name of a group of items. Hint: use a name without "
                "square brackets that does not begin with @."
            )
    cutoffs = dict.fromkeys(metric.cutoff for metric in restrictable if metric.cutoff is not None)
    requested = dict.fromkeys([*restrictable, *(Metric("share", cutoff) for cutoff in cutoffs)])
    if len(requested) * len(groups) > MAX_OF_GROUPS:
        raise InputError(
            f"{len(groups):,} groups of items result in {len(requested) * len(groups):,} metrics, "
            f"which is more than {MAX_OF_GROUPS:,}. Hint: form larger groups, for instance ranges "
            "of a number."
        )
    return list(dict.fromkeys(_in_group(metric, group) for metric in requested for group in groups))


def read_name(read: Callable[..., Iterable[Metric]], text: str, *flags: bool) -> Iterable[Metric]:
    """Read a name without its group of items, and then add the group to each metric."""
    plain, group = without_group(text)
    metrics = read_once(read, plain, *flags)
    return [_in_group(metric, group) for metric in metrics] if group else metrics


def _in_group(metric: Metric, group: str) -> Metric:
    """Return a metric restricted to a group of items, and add the group to its label, if any."""
    label = f"{metric.label}[{group}]" if metric.label else ""
    return dataclasses.replace(metric, group=group, label=label)


def read_once(
    read: Callable[..., Iterable[Metric]], names: Metrics, *arguments: Hashable
) -> tuple[Metric, ...]:
    """Return the result of `read`; if the names are text, cache it until METRICS changes."""
    if not isinstance(names, str):  # other forms may not be hashable
        return tuple(read(names, *arguments))
    registered = list(METRICS.values())
    if _Cache.metrics != registered or len(_Cache.parsed) > MOST_NAMES:
        # This order of assignments keeps other threads from using outdated entries.
        _Cache.parsed = {}
        _Cache.metrics = registered
    cache = _Cache.parsed
    key = read, names, *arguments
    result = cache.get(key)
    if result is None:
        result = tuple(read(names, *arguments))
        if len(result) <= FEW_CUTOFFS:
            cache[key] = result
    return result


def _read(text: str) -> Iterable[Metric]:
    name, cutoffs, parameters = split(text)
    if cutoffs is None:
        return [Metric(name, None, parameters)]
    name = canonical(name)
    definition = METRICS[name]
    if definition.with_parameters(definition.settled(parameters)).cutoff == "none":
        return [Metric(name, 1, parameters)]  # raises an error, because it takes no cut-off
    return [Metric(name, cutoff, parameters) for cutoff in parse_cutoffs(name, cutoffs)]


def parse_cutoffs(name: str, text: str) -> list[int]:
    """Read cut-offs such as ``"5,10"`` and ``"1..3"``; `name` is for error messages."""
    return [cutoff for part in text.split(",") for cutoff in _parse_part(name, part)]


def _parse_parameters(text: str, head: str, tail: str) -> tuple[tuple[str, Value], ...]:
    inside, bracket, after = tail.partition(")")
    if TABLE_OF_GAINS.search(inside):
        raise InputError(
            f"A parameter takes one value, but {text!r} gives one of them several. Hint: to use a "
            "table of gains, pass np.take(table, label) as the values of test; ndcg@10 reads them "
            "unchanged (under protocol='lightgbm', ndcg(label_gain=label)@10 does)."
        )
    if not bracket or after or "(" in inside:
        order = f"{head}{after}({inside})" if after.startswith("@") else f"{head}(...)"
        raise InputError(
            f"The parameters of {text!r} must end with a single closing bracket. "
            f"Hint: the cut-off comes first and the parameters last, as in {order}."
        )
    pairs: list[tuple[str, Value]] = []
    for part in inside.split(","):
        name, equals, value = part.partition("=")
        # A name without a value switches a flag on.
        pairs.append((name.strip(), value.strip() if equals else "true"))
    return tuple(pairs)


def _parse_part(name: str, part: str) -> Iterable[int]:
    """Read a cut-off or a range."""
    first, dots, last = part.partition("..")
    if not dots:
        return [_parse_cutoff(name, part)]
    low, high = _parse_cutoff(name, first), _parse_cutoff(name, last)
    if low > high:
        raise InputError(
            f"The range {name}@{part} runs backwards. Hint: write {name}@{high}..{low}."
        )
    if high - low >= MAX_CUTOFFS:
        raise InputError(
            f"The range {name}@{part} contains {high - low + 1:,} cut-offs, more than "
            f"{MAX_CUTOFFS:,}. Hint: write only those you need, as in {name}@{low},{high}."
        )
    return range(low, high + 1)


def _parse_cutoff(name: str, text: str) -> int:
    # Longer numbers exceed int64. int() would also accept signs, spaces and non-ASCII digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise bad_cutoff(name, text)
    cutoff = int(text)
    if not 1 <= cutoff < WHOLE:
        raise bad_cutoff(name, text)
    return cutoff


def _not_a_name(value: object) -> InputTypeError:
    return InputTypeError(
        f"The name of a metric must be a string, but {value!r} is of type {type(value).__name__}. "
        f"Hint: write 'ndcg@10 recall@5,10'."
    )
