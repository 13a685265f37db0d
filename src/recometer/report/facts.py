"""The full protocol: metrics, data, rules, formulas, and the call that repeats the evaluation."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recometer.errors import RecometerError
from recometer.metrics.names import parse
from recometer.report.headline import compact
from recometer.report.inputs import Inputs
from recometer.report.model import Facts, Standings
from recometer.results.evaluation import EvaluationRecord
from recometer.results.summary import COUNTS

SHORT = 16  # number of characters shown of a fingerprint


def facts(given: Inputs, standings: Mapping[str, Standings]) -> tuple[Facts, ...]:
    """Return the tables of the protocol that have rows."""
    parts = (
        _formulas(given.first),
        _rules(given.first),
        _means(standings),
        _undefined(given),
        _counts(given),
        _data(given),
        _versions(given),
    )
    return tuple(part for part in parts if part.rows)


def _formulas(result: EvaluationRecord) -> Facts:
    rows = []
    for name, definition in result.definitions.items():
        meanings = [
            f"{key}: {text}"
            for key, text in definition.items()
            if key not in ("title", "formula", "source")
        ]
        formula = "; ".join([definition.get("formula", ""), *meanings])
        rows.append((name, definition.get("title", ""), formula, definition.get("source", "")))
    return Facts("Formulas", ("metric", "name", "formula", "source"), tuple(rows))


def _rules(result: EvaluationRecord) -> Facts:
    protocol = result.protocol
    differing = set(protocol.differing())
    rows = []
    for name, declared in protocol.declared.items():
        if declared.says:
            value = getattr(protocol, name)
            said = "not recometer's own" if name in differing else ""
            rows.append((name, str(value), protocol.sentence(name), said))
    name = protocol.name or "of its own"
    return Facts("Rules", ("rule", "value", "what it says", ""), tuple(rows), f"Protocol: {name}.")


def _means(standings: Mapping[str, Standings]) -> Facts:
    def text(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.6g}"

    rows = tuple(
        (
            metric,
            place.model,
            *map(text, (place.mean, place.low, place.high, one.chance)),
            f"{place.n:,}",
            place.rank,
        )
        for metric, one in standings.items()
        for place in one.places
    )
    headings = ("metric", "model", "mean", "low", "high", "chance", "users", "ranks")
    return Facts("All means", headings, rows)


def _undefined(given: Inputs) -> Facts:
    rows = [
        (model.name, metric, f"{users:,}", reason)
        for model in given.models
        for metric in given.metrics
        if metric in model.first.reasons
        for reason, users in model.first.skipped(metric).items()
    ]
    return Facts(
        "Users without a value",
        ("model", "metric", "users", "why"),
        tuple(rows),
        "Means of a comparison are over the users with a value from all models.",
    )


def _counts(given: Inputs) -> Facts:
    rows = [
        (model.name, COUNTS.get(name, name), f"{count:,}")
        for model in given.models
        for name, count in model.first.counts.items()
        if count
    ]
    return Facts("What the rules settled", ("model", "what", "count"), tuple(rows))


def _data(given: Inputs) -> Facts:
    rows = []
    for model in given.models:
        for name, described in model.first.inputs.items():
            prints = " ".join(
                f"{part}:{digest[:SHORT]}" for part, digest in _texts(described.get("fingerprints"))
            )
            said = "; ".join(
                str(described[key])
                for key in ("description", "reading", "warning")
                if key in described
            )
            rows.append((model.name, name, said, prints))
    headings = ("model", "what", "description", f"SHA-256, first {SHORT} digits")
    return Facts("Data", headings, tuple(rows))


def _texts(fingerprints: Any) -> Iterator[tuple[str, str]]:
    if isinstance(fingerprints, Mapping):
        for name, value in fingerprints.items():
            if isinstance(value, Mapping):
                yield from _texts(value)
            elif value is not None:
                yield str(name), str(value)
    elif fingerprints:
        yield "all", str(fingerprints)


def _versions(given: Inputs) -> Facts:
    rows = tuple(
        (
            model.name,
            " ".join(f"{key} {value}" for key, value in model.first.versions.items()),
            str(model.first.seed),
            f"{model.first.timings.get('total', math.nan):.2f} s",
        )
        for model in given.models
    )
    return Facts("Versions", ("model", "versions", "seed", "time of evaluation"), rows)


def call_of(given: Inputs) -> str:
    """Return Python code that repeats everything, naming the inputs."""
    result = given.first
    names = [
        name
        for name in ("train", "candidates", "exclude", "catalogue", "baseline")
        if name in result.inputs
    ]
    arguments = ["source", "test", *(f"{name}={name}" for name in names)]
    arguments.append(f"metrics={_written(map(str, result.metrics))!r}")
    rules = result.protocol
    if rules.name and rules.name != "recometer":
        arguments.append(f"protocol={rules.name!r}")
    elif rules.differing():
        arguments += [f"{name}={getattr(rules, name)!r}" for name in rules.differing()]
    arguments += [f"seed={result.seed}"] * bool(result.seed)
    arguments += ["chance=True"] * bool(result.chance)
    called = ",\n        ".join(arguments)
    comparison = given.comparison
    if comparison is None:
        return f"result = rm.evaluate(\n        {called},\n)\nresult.report('report.html')"
    options = [f"metrics={_written(comparison.metrics)!r}"]
    options += [f"baseline={comparison.baseline!r}"] * (comparison.baseline is not None)
    options += [f"primary={' '.join(comparison.primary)!r}"] * comparison.chosen
    paired = comparison.options.paired
    options += ["paired=False"] * (not paired)
    test = "randomisation" if paired else "welch"
    for name, default in (("test", test), ("seed", 0)):
        value = getattr(comparison.options, name)
        options += [f"{name}={value!r}"] * (value != default)
    options += [f"correction={comparison.correction!r}"] * (comparison.correction != "holm")
    models = ", ".join(repr(model.name) for model in given.models)
    return (
        f"# sources: the output of each of these models: {models}\n"
        f"results = {{\n    name: rm.evaluate(\n        {called},\n    )\n"
        "    for name, source in sources.items()\n}\n"
        f"rm.compare(results, {', '.join(options)}).report('report.html')"
    )


def _written(metrics: Iterable[str]) -> str:
    """Return the names of metrics as one string, shortened if the meaning stays the same."""
    names = list(metrics)
    shortened = " ".join(compact(names))
    with contextlib.suppress(RecometerError):
        if {str(one) for one in parse(shortened)} == set(names):
            return shortened
    return " ".join(names)
