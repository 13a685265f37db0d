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
    of: Compared | EvaluationRecord,
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
    given = read_inputs(of, name, groups, threads)
    primary = given.metrics[0]
    standings = standings_of(given, primary)
    order = tuple(place.model for place in standings.places)
    # All sections show the models in this order.
    best_first = tuple(sorted(given.models, key=lambda model: order.index(model.name)))
    given = dataclasses.replace(given, models=best_first)
    pair = main_pair(given, standings)
    pairs = pairs_of(given, pair)
    numbers = all_numbers(given, pairs, standings)
    known = list_sources(given, lists, data)
    found_audit = _audit(audit, known)
    k = depth_of(known) if depth is None else depth
    charts = charts_of(Content(given, numbers, pairs, known, k))
    inspected = inspector(
        given,
        known,
        order,
        pair,
        chosen=users,
        n=n_users,
        depth=k,
        item_to_item=item_to_item,
        seed=seed,
    )
    all_standings = {metric: one.standings for metric, one in numbers.items()}
    return ReportModel(
        title=title or _title(order, pair),
        subtitle=_subtitle(given),
        models=order,
        metrics=given.metrics,
        headline=headline(given, standings, pair, found_audit),
        standings=tuple(all_standings.values()),
        charts=charts,
        audit=found_audit,
        inspector=inspected,
        protocol=facts(given, all_standings),
        notes=tuple(_notes(given)),
        missing=tuple(_missing(given, charts, known)),
        call=call_of(given),
        version=__version__,
    )


def depth_of(known: Mapping[str, ListSource]) -> int:
    """Return the number of places to show: `DEPTH`, or up to `LONGEST` for scored pairs."""
    if known and all(one.own for one in known.values()):
        longest = max(int(np.diff(one.test.indptr).max()) for one in known.values())
        return min(max(longest, DEPTH), LONGEST)
    return DEPTH


def _audit(wanted: Audit | bool | None, known: Mapping[str, ListSource]) -> Audit | str:
    """Return the given audit, a new audit of the split, or the reason why there is none."""
    if isinstance(wanted, Audit):
        return wanted
    if wanted is not None and not isinstance(wanted, bool):
        raise InputTypeError(
            f"audit= is of type {type(wanted).__name__}. Hint: pass rm.audit(train, test), True "
            "or False."
        )
    one = next((one for one in known.values() if one.train is not None), None)
    if wanted is False:
        return _not_audited("audit=False left it out")
    if one is None or one.train is None:
        if wanted:
            raise InputError(
                "audit=True needs train and test, which are not available here. Hint: "
                "audit=rm.audit(train, test)."
            )
        return _not_audited("the report was made without train and test")
    if wanted is None and len(one.train) > MOST_AUDITED:
        return _not_audited(f"train has more than {MOST_AUDITED:,} rows")
    return run_audit(one.train, one.test, relevant_from=one.protocol.relevant_from)


def _not_audited(why: str) -> str:
    way = python_or_command(
        "report(..., audit=rm.audit(train, test))", ("--split, or --train and --test")
    )
    return f"The split was not audited: {why}. Hint: {way}."


def _title(order: tuple[str, ...], pair: tuple[str, str] | None) -> str:
    if pair is None:
        return f"How good is {order[0]}?"
    if len(order) == 2:
        return f"{order[0]} or {order[1]}?"
    return f"{len(order)} models compared"


def _subtitle(given: Inputs) -> str:
    described = given.first.inputs.get("test", {}).get("description", "")
    if described.startswith("Interactions("):
        described = described.removeprefix("Interactions(").removesuffix(")")
    else:
        described = f"{given.users.n:,} users" + (f", {described}" if described else "")
    names = compact(given.metrics)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"Test: {described}. Metrics: {', '.join(names[:MOST_NAMED])}{more}."


def _notes(given: Inputs) -> list[str]:
    """Return the notes on the comparison, without notes on the power of secondary metrics."""
    comparison = given.comparison
    if comparison is None:
        return list(given.first.table().notes)
    seldom = set(on_power([row for row in comparison.rows if not row.primary]))
    return [note for note in comparison.table().notes if note not in seldom]


def _missing(
    given: Inputs, charts: tuple[Chart, ...], known: Mapping[str, ListSource]
) -> Iterator[str]:
    """Yield a sentence on each part that the report lacks, with a hint on how to get it."""
    there = {chart.name for chart in charts}
    if not known:
        lists = python_or_command(
            "report(..., lists={'als': source}, test=test, train=train)",
            "--run, --test and --train",
        )
        yield (
            "No lists for individual users, and no popularity of the recommended items: results "
            f"loaded from files do not contain the lists. Hint: {lists}."
        )
    elif "popularity" not in there:
        train = python_or_command("train=...", "--train FILE")
        yield f"No popularity of the recommended items: there are no training data. Hint: {train}."
    if "cutoffs" not in there:
        yield f"No curve over cut-offs. Hint: {argument_text('metrics', 'ndcg@1..20')}."
    if "tradeoff" not in there and given.comparison is not None:
        metrics = argument_text("metrics", "ndcg@10 coverage@10 novelty@10")
        yield (
            "No chart of accuracy versus other qualities: no list metric was evaluated. Hint: "
            f"{metrics}."
        )
    if "groups" not in there:
        way = python_or_command(
            "groups=..., or rm.evaluate(..., train=train)", "--by FILE, or --train FILE"
        )
        yield f"No groups of users: the training data are not available. Hint: {way}."
    if "repeats" not in there:
        yield (
            "No folds and seeds: each model was evaluated once. It is unknown how far another "
            "training seed would move the means."
        )


SHORT = 16  # the number of characters to which fingerprints are shortened


def facts(given: Inputs, standings: Mapping[str, Standings]) -> tuple[Facts, ...]:
    """Return the tables about the protocol, except for empty ones."""
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
            said = "not recometer's default" if name in differing else ""
            rows.append((name, str(value), protocol.sentence(name), said))
    name = protocol.name or "custom"
    return Facts("Rules", ("rule", "value", "meaning", ""), tuple(rows), f"Protocol: {name}.")


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
        "Means of a comparison are over the users with a value from every model.",
    )


def _counts(given: Inputs) -> Facts:
    rows = [
        (model.name, COUNTS.get(name, name), f"{count:,}")
        for model in given.models
        for name, count in model.first.counts.items()
        if count
    ]
    return Facts("What the rules affected", ("model", "what", "count"), tuple(rows))


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
    """Return Python code that recreates the report, with names in place of the inputs."""
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
