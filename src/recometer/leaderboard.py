"""Leaderboard: the evaluations of several models, side by side."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from recometer.errors import InputError, InputTypeError, quantity, visible, warn
from recometer.evaluation import Evaluation
from recometer.metrics.conventions import describe
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.rendering import Column, Printed, Table
from recometer.rendering.formats import number
from recometer.results.evaluation import fingerprints
from recometer.results.flat import FlatName
from recometer.results.groups import Segments
from recometer.results.summary import (
    CHANCE,
    COUNTS,
    SummaryRow,
    cell,
    columns,
    fitting,
    legend,
    metric_column,
    on_intervals,
    span,
)
from recometer.tracking import Tracked, safe_name
from recometer.version import __version__

MODEL = Column("model")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Tracked, Printed):
    """Models evaluated on the same test data, ordered by the first metric, best first.

    ``print(leaderboard)`` shows a row per model and a column per metric, and ``to_latex()`` returns
    a table for a paper with the best means in bold. `to_csv` and `to_json` write all digits; a CSV
    file has a row per model and metric. A single model is shown like an `Evaluation`, with a row
    per metric.

    Attributes
    ----------
    results : mapping of str to Evaluation
        The evaluation of each model, keyed by its name.
    seconds : mapping of str to mapping of str to float
        For each model, the seconds that each step took; each step becomes a column. May be empty.
    with_users : bool
        Whether to show the values of every user as well; the CSV output then contains only these
        values.
    groups : object
        Groups of users to show as well, in any form that `Evaluation.by` accepts. The CSV output
        then contains only these groups.

    Raises
    ------
    InputError
        If there is no model, or if the models were evaluated with different metrics.
    InputTypeError
        If the argument is not a mapping from names to evaluations.

    Examples
    --------
    >>> import recometer as rm
    >>> test = {"ann": ["song"], "bob": ["film"]}
    >>> als = rm.evaluate(rm.Lists({"ann": ["song"], "bob": ["book", "film"]}), test, metrics="rr")
    >>> bpr = rm.evaluate(rm.Lists({"ann": ["film", "song"], "bob": ["book"]}), test, metrics="rr")
    >>> print(rm.Leaderboard({"bpr": bpr, "als": als}).to_markdown())  # doctest: +ELLIPSIS
    | model | rr | counted | skipped |
    | --- | ---: | ---: | ---: |
    | als | **0.7500 ±.6402** | 2 | 0 |
    | bpr | 0.2500 ±.6402 | 2 | 0 |
    ...
    """

    results: Mapping[str, Evaluation]
    seconds: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    with_users: bool = False
    groups: object = None

    def __post_init__(self) -> None:
        results = self.results
        if not isinstance(results, Mapping) or not all(
            isinstance(result, Evaluation) for result in results.values()
        ):
            raise InputTypeError(
                "A leaderboard takes a dict from the names of models to evaluations. Hint: "
                'rm.Leaderboard({"als": result, "bpr": other}).'
            )
        if not results:
            raise InputError("A leaderboard needs at least one evaluation.")
        (first, *others) = results
        for other in others:
            differing = set(self._metrics) ^ {str(metric) for metric in results[other].metrics}
            if differing:
                raise InputError(
                    f"{first} and {other} were evaluated with different metrics: only one of them "
                    f"has {min(differing)}. Hint: evaluate both with the same metrics."
                )
            if fingerprints(results[first], "test") != fingerprints(results[other], "test"):
                warn(
                    f"{first} and {other} were evaluated on different test data, so their means "
                    "say nothing about which is better."
                )

    @cached_property
    def rows(self) -> dict[str, dict[str, SummaryRow]]:
        """The rows of each model's summary, by model (best first) and metric name."""
        summaries = {
            model: {row.metric: row for row in result.summary()}
            for model, result in self.results.items()
        }
        return {model: summaries[model] for model in self._best_first(summaries, self._metrics[0])}

    @cached_property
    def segments(self) -> dict[str, Segments]:
        """Each model's user groups, best model first; empty if no groups were requested."""
        if self.groups is None:
            return {}
        return {model: self.results[model].by(self.groups) for model in self.rows}

    def table(self) -> Table:
        """Return all models and metrics in one table."""
        return self._tables()[-1]

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the tables of users, means and groups, no wider than `width` if possible."""
        return [*self._tables(width), *side_by_side(self.segments, width)]

    def _tables(self, width: int | None = None) -> list[Table]:
        """Return the tables of users and of means."""
        users = [self._users(people=True)] if self.with_users else []
        if len(self.results) == 1:
            return [*users, next(iter(self.results.values())).table()]
        *before, last = fitting(self._means, self._metrics, width)
        notes = [*self._interval_notes(), *self._skipped(), *self._counts(), *self._protocols()]
        return [*users, *before, dataclasses.replace(last, notes=notes)]

    def data(self) -> Table:
        """Return a row per model and metric, or per model and user if users are shown."""
        if self.with_users:
            return self._users(people=False)
        if self.segments:
            tables = {model: segments.data() for model, segments in self.segments.items()}
            rows = [{"model": m, **vars(row)} for m, table in tables.items() for row in table.rows]
            return Table([MODEL, *next(iter(tables.values())).columns], rows)
        rows = [
            {"model": model, **vars(row)}
            for model, result in self.results.items()
            for row in result.summary()
        ]
        return Table([MODEL, *columns(self._first.protocol)], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as JSON-compatible Python objects."""
        models = {}
        for model, result in self.results.items():
            content = result.to_dict(per_user=self.with_users)
            content = {"source": content["inputs"].get("source"), **content}
            models[model] = {name: content[name] for name in content if name != "recometer"}
            if self.segments:
                models[model]["groups"] = self.segments[model].to_dict()
        described = {name: entry["description"] for name, entry in self._first.inputs.items()}
        return {
            "recometer": __version__,
            "test": described.get("test"),
            "train": described.get("train"),
            "seed": self._first.seed,
            "models": models,
        }

    def flat_values(self) -> Iterator[tuple[FlatName, float]]:
        """Yield the values of `flat`, with their names."""
        several = len(self.results) > 1
        for model, result in self.results.items():
            for name, value in result.flat_values():
                yield dataclasses.replace(name, model=model) if several else name, value

    def _save_artifacts(self, folder: str, prefix: str) -> None:
        used_names: set[str] = set()  # lower-case names, because some file systems ignore case
        for model, result in self.results.items():
            first = name = f"{prefix}{safe_name(model)}"
            number = 1
            while name.lower() in used_names:
                number += 1
                name = f"{first}_{number}"
            used_names.add(name.lower())
            result.save(os.path.join(folder, f"{name}.parquet"))

    def __repr__(self) -> str:
        return visible(f"<Leaderboard of {', '.join(self.results)}: {', '.join(self._metrics)}>")

    @property
    def _first(self) -> Evaluation:
        return next(iter(self.results.values()))

    @property
    def _metrics(self) -> list[str]:
        return [str(metric) for metric in self._first.metrics]

    @property
    def _steps(self) -> list[str]:
        return list(dict.fromkeys(step for seconds in self.seconds.values() for step in seconds))

    def _best_first(
        self, summaries: Mapping[str, Mapping[str, SummaryRow]], metric: str
    ) -> list[str]:
        """Sort models by a metric's mean; models with an undefined mean come last."""
        higher = self._first.known_metric(metric).definition.higher_is_better

        def place(model: str) -> tuple[bool, float]:
            mean = summaries[model][metric].mean
            return math.isnan(mean), -mean if higher else mean

        return sorted(summaries, key=place)

    def _means(self, metrics: Sequence[str]) -> Table:
        """Return a table of the given metrics, with the best means highlighted."""
        steps = self._steps
        lines, best = [], set()
        for model, of_model in self.rows.items():
            rows = [of_model[metric] for metric in metrics]
            line: dict[str, Any] = {"model": model}
            line |= {row.metric: cell(row.mean, row.low, row.high) for row in rows}
            line["counted"] = span([row.counted for row in rows])
            line["skipped"] = span([row.skipped for row in rows])
            seconds = self.seconds.get(model, {})
            line |= {step: f"{seconds[step]:.2f} s" if step in seconds else "" for step in steps}
            lines.append(line)
        lines += self._by_chance(metrics)
        for column, metric in enumerate(metrics, start=1):
            best_mean = self.rows[self._best_first(self.rows, metric)[0]][metric].mean
            means = [of_model[metric].mean for of_model in self.rows.values()]
            best |= {(place, column) for place, mean in enumerate(means) if mean == best_mean}
        shown = [*metrics, "counted", "skipped", *steps]
        return Table([MODEL, *map(metric_column, shown)], lines, best=best)

    def _by_chance(self, metrics: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row with the values for a random order, or a row per model if these differ."""
        chances = {
            model: {metric: of_model[metric].chance for metric in metrics}
            for model, of_model in self.rows.items()
            if any(not math.isnan(row.chance) for row in of_model.values())
        }
        texts = {
            model: {name: "" if math.isnan(mean) else number(mean) for name, mean in means.items()}
            for model, means in chances.items()
        }
        same = len({tuple(line.values()) for line in texts.values()}) == 1
        empty = dict.fromkeys(("counted", "skipped", *self._steps), "")
        if same:
            return [{"model": "(chance)", **empty, **next(iter(texts.values()))}]
        return [{"model": f"(chance, {name})", **empty, **line} for name, line in texts.items()]

    def _users(self, people: bool) -> Table:
        """Return a row per model and user, with numbers rounded if they are for people to read."""

        def show(value: float | None) -> str:
            return "undefined" if value is None else number(value)

        rows: list[dict[str, Any]] = []
        for model, result in self.results.items():
            frame = result.per_user().fill_nan(None)
            rows += [{"model": model, **row} for row in frame.iter_rows(named=True)]
        metrics = [name for name in self._metrics if name in self._first.values]
        numbers = [Column(name, show=show if people else str, number=True) for name in metrics]
        shown = dict.fromkeys(name for row in rows for name in row if name in ("user", "session"))
        user_columns = [Column(name, number=people) for name in shown]
        return Table([MODEL, *user_columns, *numbers], rows)

    def _interval_notes(self) -> list[str]:
        result = self._first
        confidence = result.protocol.confidence
        together = [name for name in self._metrics if name in result.together]
        exception = f", or one value for all users ({', '.join(together)})" if together else ""
        rows = [row for of_model in self.rows.values() for row in of_model.values()]
        has_chance = any(not math.isnan(row.chance) for row in rows)
        chance = [CHANCE] if has_chance else []
        return [f"{legend(confidence, exception)}.", *chance, *on_intervals(rows, confidence)]

    def _skipped(self) -> list[str]:
        """Explain why users are skipped, and for which models and metrics."""
        skipped: dict[tuple[str, int], list[tuple[str, str]]] = {}
        for model, of_model in self.rows.items():
            for metric, row in of_model.items():
                for reason, users in row.reasons.items():
                    skipped.setdefault((reason, users), []).append((model, metric))
        n_users = self._first.n_users
        same_users = all(result.n_users == n_users for result in self.results.values())
        total = f" of {quantity(n_users, 'user')}" if same_users else " users"
        return [
            f"Skipped {users:,}{total}: {reason}{self._scope(cases)}."
            for (reason, users), cases in skipped.items()
        ]

    def _scope(self, cases: Sequence[tuple[str, str]]) -> str:
        """Name the models and metrics that a note applies to; empty if it applies to all."""
        if len(cases) == len(self.rows) * len(self._metrics):
            return ""
        by_models: dict[tuple[str, ...], list[str]] = {}
        for model in dict.fromkeys(model for model, _ in cases):
            metrics = tuple(metric for owner, metric in cases if owner == model)
            by_models.setdefault(metrics, []).append(model)
        parts = []
        for metrics, models in by_models.items():
            names = [] if len(models) == len(self.rows) else [", ".join(models)]
            names += [] if len(metrics) == len(self._metrics) else [", ".join(metrics)]
            parts.append(": ".join(names))
        return f" ({'; '.join(parts)})"

    def _counts(self) -> list[str]:
        """Report how many rows, users or items each rule affected, and for which models."""
        names = dict.fromkeys(name for result in self.results.values() for name in result.counts)
        return [
            f"{COUNTS.get(name, name)}: {text}"
            for name in names
            if (text := self._by_model(lambda result, name=name: result.counts.get(name, 0)))  # type: ignore[misc]
        ]

    def _protocols(self) -> list[str]:
        """Name the rules that differ from the defaults, and the models that use them."""
        if {describe(result.protocol) for result in self.results.values()} == {
            Protocol().describe()
        }:
            return []
        return [f"protocol: {self._by_model(lambda result: describe(result.protocol))}"]

    def _by_model(self, fact_of: Callable[[Evaluation], Any]) -> str:
        """Return the values as text, each followed by the models that have it, unless all do."""
        models_by_text: dict[str, list[str]] = {}
        for model, result in self.results.items():
            value = fact_of(result)
            if value:
                text = f"{value:,}" if isinstance(value, int) else value
                models_by_text.setdefault(text, []).append(model)
        return "; ".join(
            text if len(models) == len(self.results) else f"{text} ({', '.join(models)})"
            for text, models in models_by_text.items()
        )


def side_by_side(segments: Mapping[str, Segments], width: int | None = None) -> list[Table]:
    """Return tables with a row per group and model, and a column per metric; [] without models."""
    all_segments = list(segments.values())
    if len(all_segments) <= 1:
        return [table for model_segments in all_segments for table in model_segments.tables(width)]
    metrics = list(dict.fromkeys(row.metric for row in all_segments[0].rows))

    def make(chosen: Sequence[str]) -> Table:
        columns = [Column("group"), Column("model"), *map(metric_column, ("users", *chosen))]
        return Table(columns, list(lines.values()))

    lines: dict[tuple[str, str], dict[str, Any]] = {
        (group, model): {"group": group, "model": model}
        for group in dict.fromkeys(
            group for model_segments in all_segments for group in model_segments.groups
        )
        for model, model_segments in segments.items()
        if group in model_segments.groups
    }
    for model, model_segments in segments.items():
        for row in model_segments.rows:
            line = lines[row.group, model]
            line["users"] = f"{row.users:,}"
            line[row.metric] = cell(row.mean, row.low, row.high)
    *before, last = fitting(make, metrics, width)
    left_out = max(model_segments.left_out for model_segments in all_segments)
    notes = [f"users without a group (left out): {left_out:,}"] if left_out else []
    return [*before, dataclasses.replace(last, notes=notes)]
