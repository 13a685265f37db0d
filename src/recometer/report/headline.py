"""Write the headline of a report: the best model, how certain that is, and the users who lose."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from recometer.auditing import Audit
from recometer.comparing.compared import UserChange
from recometer.comparing.compared import changes as changes_of
from recometer.comparing.kinds import UserPair, resolve, resolve_whole
from recometer.comparing.rows import NO_DIFFERENCE, PairRow
from recometer.errors import quantity
from recometer.report.inputs import Inputs
from recometer.report.model import Headline, Standings

MOST_NAMED = 6  # the maximum number of metrics or models that a sentence names
BASELINE, CHANCE = 1, 2  # sort keys; all other models have the key 0


def main_pair(inputs: Inputs, standings: Standings) -> tuple[str, str] | None:
    """Return the two best models; the baseline or chance is second only if nothing else is left."""
    names = [place.model for place in standings.places]
    if len(names) < 2:
        return None
    # `sorted` is stable, so models stay ordered from best to worst.
    models = sorted(names, key=lambda name: inputs.model(name).by_chance)
    rivals = sorted(models[1:], key=lambda name: _reference_kind(inputs, name))
    return models[0], rivals[0]


def _reference_kind(inputs: Inputs, name: str) -> int:
    """Return `BASELINE` for the baseline, `CHANCE` for a random order, and 0 for other models."""
    baseline = inputs.comparison.baseline if inputs.comparison is not None else None
    return CHANCE if inputs.model(name).by_chance else BASELINE * (name == baseline)


def pairs_of(inputs: Inputs, pair: tuple[str, str] | None) -> list[tuple[str, str]]:
    """Return the pairs of models for which the report shows which users are better or worse off.

    Models are paired with the baseline or, without one, the best model. The main pair is first.
    """
    if pair is None:
        return []
    names = [model.name for model in inputs.models if not model.by_chance]
    baseline = inputs.comparison.baseline if inputs.comparison is not None else None
    if baseline is None:
        pairs = [(pair[0], other) for other in names if other != pair[0]]
    else:
        pairs = [(model, baseline) for model in names if model != baseline]
    return list(dict.fromkeys([pair, *pairs]))


def headline(
    inputs: Inputs, standings: Standings, pair: tuple[str, str] | None, audit: Audit | str
) -> Headline:
    """Return the headline; any leaks that the audit found are mentioned first."""
    leaks = [f"Caution: {audit.verdict}"] if not isinstance(audit, str) and audit.leaks else []
    if pair is None:
        return _single_model(standings, leaks)
    metric, (winner, other) = standings.metric, pair
    row = row_of(inputs, metric, pair)
    places = [place for place in standings.places if not inputs.model(place.model).by_chance]
    significant = not standings.place(other).best
    tied = [place.model for place in places if place.best and place.model != winner]
    size = f"{size_of(row, metric)} over {quantity(row.n, 'user')}"
    verdict = verdict_of(row, size, significant=significant)
    if significant and tied:
        verdict += f" No difference from {winner} is shown for {_joined(tied)}."
    harmed = _most_harmed(inputs, metric, pair)
    sizes = None if inputs.comparison is None else inputs.comparison.sample_ratio
    mismatch = [str(sizes)] if sizes is not None and sizes.mismatch else []
    known_users = () if inputs.comparison is None else inputs.comparison.known_users
    sentences = [*leaks, *mismatch, *known_users]
    sentences += _on_direction(standings) + _on_references(inputs, standings, pair)
    sentences += _on_secondary(inputs, metric, pair)
    if not row.for_all_users and row.n_better + row.n_equal + row.n_worse:
        are = "is" if row.n_better == 1 else "are"
        sentences.append(
            f"{quantity(row.n_better, 'user')} {are} better off with {winner} than with {other}, "
            f"{row.n_equal:,} the same, {row.n_worse:,} worse off."
        )
    if harmed is not None:
        sentences.append(
            f"Most harmed: user {harmed.user}, {metric} {harmed.value_other:.4f} with {other}, "
            f"{harmed.value:.4f} with {winner}."
        )
    return Headline(
        verdict,
        winner,
        certain=not tied,
        sentences=tuple(sentences),
        difference=None if math.isnan(row.difference) else row,
        harmed="" if harmed is None else str(harmed.user),
    )


def size_of(row: PairRow, unit: str) -> str:
    """Return a difference as text: size (in the given `unit`), relative size, and interval."""
    share = "" if math.isnan(row.relative) else f" ({abs(row.relative):.1%})"
    return f"{abs(row.difference):.4f} {unit}{share} {_ends(row)}"


def verdict_of(row: PairRow, size: str, *, significant: bool) -> str:
    """Return the main sentence; it says that a model beats another only if `significant`."""
    winner, other = row.model, row.other
    if math.isnan(row.difference):
        return f"{winner} and {other} cannot be compared on {row.metric}."
    if row.difference == 0:
        return f"{winner} and {other} are level: {size}."
    if not significant:
        return f"{winner} leads {other} by {size}, but no difference between them is shown."
    if 0.0 in row.interval:
        return (
            f"{winner} is ahead of {other} by {size}: the test finds a difference, but its size "
            "is uncertain."
        )
    return f"{winner} beats {other} by {size}."


def _single_model(standings: Standings, leaks: Sequence[str]) -> Headline:
    (place,) = standings.places
    interval = "" if math.isnan(place.low) else f" [{place.low:.4f}, {place.high:.4f}]"
    mean = f"{place.mean:.4f} {standings.metric}{interval}"
    verdict = f"{place.model}: {mean} over {quantity(place.n, 'user')}."
    if math.isnan(place.mean):
        verdict = f"{place.model}: {standings.metric} is undefined for all users."
    sentences = [*leaks, *_on_direction(standings)]
    sentences += _on_chance(standings, place.model)
    sentences.append(
        "There is only one model. Compare it with another one, such as a list of the most popular "
        "items, to see how good this is."
    )
    return Headline(verdict, place.model, certain=None, sentences=tuple(sentences))


def row_of(inputs: Inputs, metric: str, pair: tuple[str, str]) -> PairRow:
    """Return the comparison of two models on a metric, with the options of the whole comparison."""
    rows = inputs.comparison.rows if inputs.comparison is not None else ()
    for row in rows:
        if (row.metric, row.model, row.other) == (metric, *pair):
            return row
    if not inputs.is_whole(metric):
        row = _user_pair(inputs, metric, pair).row()
    else:
        models = [inputs.model(name) for name in pair]
        row = resolve_whole([metric], models, inputs.users, inputs.options)[metric].row(*pair)
    return dataclasses.replace(row, primary=False)  # because p is not adjusted


def _user_pair(inputs: Inputs, metric: str, pair: tuple[str, str]) -> UserPair:
    models = [inputs.model(name) for name in pair]
    return resolve(metric, models, inputs.users, inputs.options).pair(*pair)


def _ends(row: PairRow) -> str:
    if math.isnan(row.low):
        return "[no interval]"
    ends = sorted((row.low, row.high) if row.difference >= 0 else (-row.low, -row.high))
    return f"[{ends[0]:.4f}, {ends[1]:.4f}]"


def _on_direction(standings: Standings) -> list[str]:
    return [] if standings.higher_is_better else [f"Lower values of {standings.metric} are better."]


def _on_references(inputs: Inputs, standings: Standings, pair: tuple[str, str]) -> list[str]:
    """Return sentences that compare the best model with the baseline and with a random order."""
    sentences, best = [], pair[0]
    for place in standings.places:
        kind = _reference_kind(inputs, place.model)
        if kind and place.model not in pair:
            name = "a random order (chance)" if kind == CHANCE else f"the baseline {place.model}"
            sentences.append(_against(row_of(inputs, standings.metric, (best, place.model)), name))
        elif kind and place.model == best:
            sentences.append(f"{best} is the baseline: no other model has a better mean.")
    if not any(inputs.model(place.model).by_chance for place in standings.places):
        sentences += _on_chance(standings, best)
    return sentences


def _against(row: PairRow, name: str) -> str:
    """Return a sentence that compares a model with another one, described by `name`."""
    if math.isnan(row.difference):
        return f"{row.model} and {name} cannot be compared on {row.metric}."
    side = "above" if row.difference > 0 else "below"
    size = f"{abs(row.difference):.4f} {row.metric} {_ends(row)} {side} {name}"
    p = row.p_value if math.isnan(row.adjusted_p) else row.adjusted_p
    doubt = f": {NO_DIFFERENCE}" if p > 1 - row.interval.confidence else ""
    return f"{row.model} is {size}{doubt}."


def _on_chance(standings: Standings, best: str) -> list[str]:
    if math.isnan(standings.chance):
        return []
    mean = standings.place(best).mean
    return [
        f"A random order of the same candidates has {standings.chance:.4f}; {best} has {mean:.4f}."
    ]


def _on_secondary(inputs: Inputs, primary: str, pair: tuple[str, str]) -> list[str]:
    """Return a sentence that says how the pair differs in the secondary metrics.

    If models were compared only with the baseline, the sentence compares the best model with it.
    """
    metrics: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    comparison = inputs.comparison
    rows = () if comparison is None else comparison.rows
    pairs = {frozenset((row.model, row.other)) for row in rows}
    if comparison is not None and comparison.baseline is not None and set(pair) not in pairs:
        pair = pair[0], comparison.baseline
    for row in rows:
        if row.metric == primary or {row.model, row.other} != set(pair):
            continue
        verdict = row.verdict if row.verdict in ("better", "worse") else ""
        if row.model != pair[0]:
            verdict = {"better": "worse", "worse": "better"}.get(verdict, "")
        metrics[verdict].append(row.metric)
    words = (("better", "is better in"), ("worse", "is worse in"), ("", "shows no difference in"))
    parts = [f"{does} {_joined(compact(metrics[kind]))}" for kind, does in words if metrics[kind]]
    if not parts:
        return []
    text = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return [f"Compared with {pair[1]}, {pair[0]} {text}."]


def _most_harmed(inputs: Inputs, metric: str, pair: tuple[str, str]) -> UserChange | None:
    if inputs.is_whole(metric) or not inputs.options.paired:
        return None
    harmed = changes_of(_user_pair(inputs, metric, pair), 1).harmed
    return harmed[0] if harmed else None


def compact(metrics: Iterable[str]) -> list[str]:
    """Return names of metrics, with their cut-offs merged: ``"recall@1..10"``, ``"rr@1,10"``."""
    families: dict[tuple[str, str], list[int]] = {}
    for name in metrics:
        prefix, at, suffix = name.partition("@")
        digits = suffix[: len(suffix) - len(suffix.lstrip("0123456789"))]
        key = (prefix + at, suffix[len(digits) :])
        families.setdefault(key, []).extend([int(digits)] if digits else [])
    names = []
    for (prefix, suffix), cutoffs in families.items():
        ordered = sorted(cutoffs)
        if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
            names.append(f"{prefix}{ordered[0]}..{ordered[-1]}{suffix}")
        else:
            names.append(f"{prefix}{','.join(map(str, cutoffs))}{suffix}")
    return names


def _joined(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return ", ".join(names)
