"""Build the content of a report from a comparison or an evaluation."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from recometer.auditing import Audit
from recometer.auditing import audit as run_audit
from recometer.comparing.compared import Compared
from recometer.comparing.wording import on_power
from recometer.errors import (
    InputError,
    InputTypeError,
    RecometerError,
    argument_text,
    python_or_command,
)
from recometer.metrics.names import parse
from recometer.report.headline import MOST_NAMED, compact, headline, main_pair, pairs_of
from recometer.report.inputs import Inputs, read_inputs
from recometer.report.lists import ListSource, inspector, list_sources
from recometer.report.model import Chart, Facts, ReportModel, Standings
from recometer.report.numbers import all_numbers, standings_of
from recometer.report.sections import Content, charts_of
from recometer.results.evaluation import EvaluationRecord
from recometer.results.summary import COUNTS
from recometer.version import __version__

DEPTH, LONGEST = 10, 50  # the number of places shown per list, and the maximum for scored pairs
MOST_AUDITED = 5_000_000  # training data with more rows are audited only if audit=True


def build(
    result: Compared | EvaluationRecord,
    *,
    name: str = "model",
    title: str | None = None,
    lists: object = None,
    test: object = None,
    train: object = None,
    catalogue: object = None,
    candidates: object = None,
    exclude: object = None,
    audit: Audit | bool | None = None,
    groups: object = None,
    users: object = (),
    n_users: int = 10,
    depth: int | None = None,
    item_to_item: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> ReportModel:
    """Return the content of a report; see `recometer.reporting.Reported.report`."""
    data = {
        "test": test,
        "train": train,
        "catalogue": catalogue,
        "candidates": candidates,
        "exclude": exclude,
    }
    inputs = read_inputs(result, name, groups, threads)
    primary = inputs.metrics[0]
    standings = standings_of(inputs, primary)
    order = tuple(place.model for place in standings.places)
    # All sections show the models in this order.
    best_first = tuple(sorted(inputs.models, key=lambda model: order.index(model.name)))
    inputs = dataclasses.replace(inputs, models=best_first)
    pair = main_pair(inputs, standings)
    pairs = pairs_of(inputs, pair)
    numbers = all_numbers(inputs, pairs, standings)
    sources = list_sources(inputs, lists, data)
    split_audit = _audit(audit, sources)
    k = depth_of(sources) if depth is None else depth
    charts = charts_of(Content(inputs, numbers, pairs, sources, k))
    inspected = inspector(
        inputs,
        sources,
        order,
        pair,
        chosen=users,
        n=n_users,
        depth=k,
        item_to_item=item_to_item,
        seed=seed,
    )
    all_standings = {metric: entry.standings for metric, entry in numbers.items()}
    return ReportModel(
        title=title or _title(order, pair),
        subtitle=_subtitle(inputs),
        models=order,
        metrics=inputs.metrics,
        headline=headline(inputs, standings, pair, split_audit),
        standings=tuple(all_standings.values()),
        charts=charts,
        audit=split_audit,
        inspector=inspected,
        protocol=facts(inputs, all_standings),
        notes=tuple(_notes(inputs)),
        missing=tuple(_missing(inputs, charts, sources)),
        call=call_of(inputs),
        version=__version__,
    )


def depth_of(sources: Mapping[str, ListSource]) -> int:
    """Return the number of places to show: `DEPTH`, or up to `LONGEST` for scored pairs."""
    if sources and all(source.has_labels for source in sources.values()):
        longest = max(int(np.diff(source.test.indptr).max()) for source in sources.values())
        return min(max(longest, DEPTH), LONGEST)
    return DEPTH


def _audit(audit: Audit | bool | None, sources: Mapping[str, ListSource]) -> Audit | str:
    """Return the given audit, a new audit of the split, or the reason why there is none."""
    if isinstance(audit, Audit):
        return audit
    if audit is not None and not isinstance(audit, bool):
        raise InputTypeError(
            f"audit= is of type {type(audit).__name__}. Hint: pass rm.audit(train, test), True "
            "or False."
        )
    source = next((source for source in sources.values() if source.train is not None), None)
    if audit is False:
        return _not_audited("audit=False left it out")
    if source is None or source.train is None:
        if audit:
            raise InputError(
                "audit=True needs train and test, which are not available here. Hint: "
                "audit=rm.audit(train, test)."
            )
        return _not_audited("the report was made without train and test")
    if audit is None and len(source.train) > MOST_AUDITED:
        return _not_audited(f"train has more than {MOST_AUDITED:,} rows")
    return run_audit(source.train, source.test, relevant_from=source.protocol.relevant_from)


def _not_audited(reason: str) -> str:
    hint = python_or_command(
        "report(..., audit=rm.audit(train, test))", ("--split, or --train and --test")
    )
    return f"The split was not audited: {reason}. Hint: {hint}."


def _title(order: tuple[str, ...], pair: tuple[str, str] | None) -> str:
    if pair is None:
        return f"How good is {order[0]}?"
    if len(order) == 2:
        return f"{order[0]} or {order[1]}?"
    return f"{len(order)} models compared"


def _subtitle(inputs: Inputs) -> str:
    description = inputs.first.inputs.get("test", {}).get("description", "")
    if description.startswith("Interactions("):
        description = description.removeprefix("Interactions(").removesuffix(")")
    else:
        description = f"{inputs.users.n:,} users" + (f", {description}" if description else "")
    names = compact(inputs.metrics)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"Test: {description}. Metrics: {', '.join(names[:MOST_NAMED])}{more}."


def _notes(inputs: Inputs) -> list[str]:
    """Return the notes on the comparison, without notes on the power of secondary metrics."""
    comparison = inputs.comparison
    if comparison is None:
        return list(inputs.first.table().notes)
    secondary = set(on_power([row for row in comparison.rows if not row.primary]))
    return [note for note in comparison.table().notes if note not in secondary]


def _missing(
    inputs: Inputs, charts: tuple[Chart, ...], sources: Mapping[str, ListSource]
) -> Iterator[str]:
    """Yield a sentence on each part that the report lacks, with a hint on how to get it."""
    names = {chart.name for chart in charts}
    if not sources:
        lists = python_or_command(
            "report(..., lists={'als': source}, test=test, train=train)",
            "--run, --test and --train",
        )
        yield (
            "No lists for individual users, and no popularity of the recommended items: results "
            f"loaded from files do not contain the lists. Hint: {lists}."
        )
    elif "popularity" not in names:
        train = python_or_command("train=...", "--train FILE")
        yield f"No popularity of the recommended items: there are no training data. Hint: {train}."
    if "cutoffs" not in names:
        yield f"No curve over cut-offs. Hint: {argument_text('metrics', 'ndcg@1..20')}."
    if "tradeoff" not in names and inputs.comparison is not None:
        metrics = argument_text("metrics", "ndcg@10 coverage@10 novelty@10")
        yield (
            "No chart of accuracy versus other qualities: no list metric was evaluated. Hint: "
            f"{metrics}."
        )
    if "groups" not in names:
        hint = python_or_command(
            "groups=..., or rm.evaluate(..., train=train)", "--by FILE, or --train FILE"
        )
        yield f"No groups of users: the training data are not available. Hint: {hint}."
    if "repeats" not in names:
        yield (
            "No folds and seeds: each model was evaluated once. It is unknown how far another "
            "training seed would move the means."
        )


SHORT = 16  # the number of characters to which fingerprints are shortened


def facts(inputs: Inputs, standings: Mapping[str, Standings]) -> tuple[Facts, ...]:
    """Return the tables about the protocol, except for empty ones."""
    parts = (
        _formulas(inputs.first),
        _rules(inputs.first),
        _means(standings),
        _undefined(inputs),
        _counts(inputs),
        _data(inputs),
        _versions(inputs),
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
            note = "not recometer's default" if name in differing else ""
            rows.append((name, str(value), protocol.sentence(name), note))
    name = protocol.name or "custom"
    return Facts("Rules", ("rule", "value", "meaning", ""), tuple(rows), f"Protocol: {name}.")


def _means(standings: Mapping[str, Standings]) -> Facts:
    def text(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.6g}"

    rows = tuple(
        (
            metric,
            place.model,
            *map(text, (place.mean, place.low, place.high, ranking.chance)),
            f"{place.n:,}",
            place.rank,
        )
        for metric, ranking in standings.items()
        for place in ranking.places
    )
    headings = ("metric", "model", "mean", "low", "high", "chance", "users", "ranks")
    return Facts("All means", headings, rows)


def _undefined(inputs: Inputs) -> Facts:
    rows = [
        (model.name, metric, f"{users:,}", reason)
        for model in inputs.models
        for metric in inputs.metrics
        if metric in model.first.reasons
        for reason, users in model.first.skipped(metric).items()
    ]
    return Facts(
        "Users without a value",
        ("model", "metric", "users", "why"),
        tuple(rows),
        "Means of a comparison are over the users with a value from every model.",
    )


def _counts(inputs: Inputs) -> Facts:
    rows = [
        (model.name, COUNTS.get(name, name), f"{count:,}")
        for model in inputs.models
        for name, count in model.first.counts.items()
        if count
    ]
    return Facts("What the rules affected", ("model", "what", "count"), tuple(rows))


def _data(inputs: Inputs) -> Facts:
    rows = []
    for model in inputs.models:
        for name, details in model.first.inputs.items():
            prints = " ".join(
                f"{part}:{digest[:SHORT]}" for part, digest in _texts(details.get("fingerprints"))
            )
            text = "; ".join(
                str(details[key]) for key in ("description", "reading", "warning") if key in details
            )
            rows.append((model.name, name, text, prints))
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


def _versions(inputs: Inputs) -> Facts:
    rows = tuple(
        (
            model.name,
            " ".join(f"{key} {value}" for key, value in model.first.versions.items()),
            str(model.first.seed),
            f"{model.first.timings.get('total', math.nan):.2f} s",
        )
        for model in inputs.models
    )
    return Facts("Versions", ("model", "versions", "seed", "time of evaluation"), rows)


def call_of(inputs: Inputs) -> str:
    """Return Python code that recreates the report, with names in place of the inputs."""
    result = inputs.first
    names = [
        name
        for name in ("train", "candidates", "exclude", "catalogue", "baseline")
        if name in result.inputs
    ]
    arguments = ["source", "test", *(f"{name}={name}" for name in names)]
    arguments.append(f"metrics={_metric_names(map(str, result.metrics))!r}")
    rules = result.protocol
    if rules.name and rules.name != "recometer":
        arguments.append(f"protocol={rules.name!r}")
    elif rules.differing():
        arguments += [f"{name}={getattr(rules, name)!r}" for name in rules.differing()]
    arguments += [f"seed={result.seed}"] * bool(result.seed)
    arguments += ["chance=True"] * bool(result.chance)
    called = ",\n        ".join(arguments)
    comparison = inputs.comparison
    if comparison is None:
        return f"result = rm.evaluate(\n        {called},\n)\nresult.report('report.html')"
    options = [f"metrics={_metric_names(comparison.metrics)!r}"]
    options += [f"baseline={comparison.baseline!r}"] * (comparison.baseline is not None)
    options += [f"primary={' '.join(comparison.primary)!r}"] * comparison.chosen
    paired = comparison.options.paired
    options += ["paired=False"] * (not paired)
    test = "randomisation" if paired else "welch"
    for name, default in (("test", test), ("seed", 0)):
        value = getattr(comparison.options, name)
        options += [f"{name}={value!r}"] * (value != default)
    options += [f"correction={comparison.correction!r}"] * (comparison.correction != "holm")
    models = ", ".join(repr(model.name) for model in inputs.models)
    return (
        f"# sources: the output of each of these models: {models}\n"
        f"results = {{\n    name: rm.evaluate(\n        {called},\n    )\n"
        "    for name, source in sources.items()\n}\n"
        f"rm.compare(results, {', '.join(options)}).report('report.html')"
    )


def _metric_names(metrics: Iterable[str]) -> str:
    """Return the names of metrics as one string, shortened if the meaning stays the same."""
    names = list(metrics)
    shortened = " ".join(compact(names))
    with contextlib.suppress(RecometerError):
        if {str(metric) for metric in parse(shortened)} == set(names):
            return shortened
    return " ".join(names)
