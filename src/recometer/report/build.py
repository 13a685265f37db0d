"""Build the content of a report from a comparison or an evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from recometer.auditing import Audit
from recometer.auditing import audit as run_audit
from recometer.comparing.compared import Compared
from recometer.comparing.wording import on_power
from recometer.errors import InputError, InputTypeError, argument_text, python_or_command
from recometer.report.facts import call_of, facts
from recometer.report.headline import MOST_NAMED, compact, headline, main_pair, pairs_of
from recometer.report.inputs import Inputs, read_inputs
from recometer.report.inspection import inspector
from recometer.report.lists import ListSource, list_sources
from recometer.report.model import Chart, ReportModel
from recometer.report.numbers import all_numbers, standings_of
from recometer.report.sections import Content, charts_of
from recometer.results.evaluation import EvaluationRecord
from recometer.version import __version__

DEPTH, LONGEST = 10, 50  # places shown per list, and the maximum for scored pairs
MOST_AUDITED = 5_000_000  # without audit=True, a larger train is not audited


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
    """Return the length of the shown lists: `DEPTH`, or up to `LONGEST` for scored pairs."""
    if known and all(one.own for one in known.values()):
        longest = max(int(np.diff(one.test.indptr).max()) for one in known.values())
        return min(max(longest, DEPTH), LONGEST)
    return DEPTH


def _audit(wanted: Audit | bool | None, known: Mapping[str, ListSource]) -> Audit | str:
    """Return the passed audit, or audit train and test; a string is the reason for no audit."""
    if isinstance(wanted, Audit):
        return wanted
    if wanted is not None and not isinstance(wanted, bool):
        raise InputTypeError(
            f"audit= is of type {type(wanted).__name__}. Hint: audit=rm.audit(train, test), or "
            "True and False."
        )
    one = next((one for one in known.values() if one.train is not None), None)
    if wanted is False:
        return _not_audited("audit=False left it out")
    if one is None or one.train is None:
        if wanted:
            raise InputError(
                "audit=True looks at train and test, which are not known here. Hint: "
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
    """Return notes on the comparison; only the metrics that decide have notes on power."""
    comparison = given.comparison
    if comparison is None:
        return list(given.first.table().notes)
    seldom = set(on_power([row for row in comparison.rows if not row.primary], comparison.options))
    return [note for note in comparison.table().notes if note not in seldom]


def _missing(
    given: Inputs, charts: tuple[Chart, ...], known: Mapping[str, ListSource]
) -> Iterator[str]:
    """Name the parts that are not shown, and how to get them."""
    there = {chart.name for chart in charts}
    if not known:
        lists = python_or_command(
            "report(..., lists={'als': source}, test=test, train=train)",
            "--run, --test and --train",
        )
        yield (
            "No lists of single users, and no popularity of what is recommended: results that were "
            f"loaded from files do not keep the lists. Hint: {lists}."
        )
    elif "popularity" not in there:
        train = python_or_command("train=...", "--train FILE")
        yield f"No popularity of what is recommended: there is no train. Hint: {train}."
    if "cutoffs" not in there:
        yield f"No curve over cut-offs. Hint: {argument_text('metrics', 'ndcg@1..20')}."
    if "tradeoff" not in there and given.comparison is not None:
        metrics = argument_text("metrics", "ndcg@10 coverage@10 novelty@10")
        yield f"No accuracy against the rest: no metric of lists was evaluated. Hint: {metrics}."
    if "groups" not in there:
        way = python_or_command(
            "groups=..., or rm.evaluate(..., train=train)", "--by FILE, or --train FILE"
        )
        yield f"No groups of users: train is not known. Hint: {way}."
    elif "found" not in there:
        yield (
            "No share of relevant items found by their popularity: not all models were evaluated "
            "with the same train, the same largest cut-off and a metric of ranks, by a version of "
            "recometer that keeps it. Hint: evaluate all of them again in the same way."
        )
    if "repeats" not in there:
        yield (
            "No folds and seeds: each model was evaluated once. How far another seed of its "
            "training would move the means is not known."
        )
