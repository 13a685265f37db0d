"""Rows of a comparison on Spark, and its leaderboard, from sums over users."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.comparing import wording
from recometer.comparing.corrections import Correction, on_tukey
from recometer.comparing.models import Model
from recometer.comparing.pairs import (
    Options,
    bounds_for,
    of_runs,
    pair_notes,
    pair_row,
)
from recometer.comparing.rows import PairRow, Standing
from recometer.comparing.standings import Means, ordered
from recometer.errors import InputError
from recometer.evaluating.chance import knows_chance
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.spark import _clusters
from recometer.spark._differences import Compared, Differences, Each
from recometer.spark._frames import Frame
from recometer.spark._models import Models, evaluations
from recometer.spark._weighted import UNEQUAL
from recometer.spark.pooling import SparkFoldedEvaluation
from recometer.stats import Interval, Tukey
from recometer.stats.comparing import compare_grouped, decisive_test_grouped
from recometer.stats.means import interval_of
from recometer.stats.relative import relative_over_runs
from recometer.stats.runs import Moments, RunMoments, over_folds_of, over_runs_of
from recometer.stats.two_one_sided import (
    Equivalence,
    equivalence_grouped,
    equivalence_over_runs_of,
)

Bounds = tuple[float, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """The sums of the differences of all pairs of models, and what is made of them."""

    given: Models
    metrics: Sequence[str]
    joined: Frame
    sums: Differences
    places: Mapping[tuple[str, str, str], int]  # of a metric and a pair among the sums
    folds: Mapping[int, Sequence[Moments]]  # of each fold's differences, by place

    @classmethod
    def of(
        cls,
        given: Models,
        metrics: Sequence[str],
        cluster: object,
        shuffled: tuple[Sequence[str], Sequence[Model]],
    ) -> Pairs:
        """Add up the differences of all users.

        `shuffled` are the metrics and models of Tukey's test; `cluster` is as of `compare`.
        """
        joined, clustered = _clusters.joined(given.joined(metrics), cluster, given.first)
        seeds = next((model.name for model in given.runs if model.n_seeds > 1), None)
        if clustered and seeds is not None:
            raise InputError(
                f"{seeds} has several seeds: the variance between seeds is separated from that "
                "between users, not from that between clusters of users, or of sessions. Hint: one "
                "seed of each model; or cluster=False, which takes all as independent."
            )
        names = given.names
        each = [(name, *pair) for name in metrics for pair in given.pairs(name)]
        asked = Compared(
            [Each(metrics.index(name), names.index(a), names.index(b)) for name, a, b in each],
            [
                [_rules(given.metric(name), model.first.protocol) for model in given.runs]
                for name in metrics
            ],
            [model.n_seeds for model in given.runs],
            [at for at, model in enumerate(given.runs) if not model.by_chance],
            (
                [metrics.index(name) for name in shuffled[0]],
                [names.index(one.name) for one in shuffled[1]],
            ),
            clustered,
            given.by,
        )
        places = {key: place for place, key in enumerate(each)}
        sums = Differences.of(joined, asked)
        return cls(given, metrics, joined, sums, places, _of_folds(given, metrics, asked))

    def rows(self, options: Options) -> list[PairRow]:
        """Return the row of each pair by each metric."""
        return [row for name in self.metrics for row in self._rows(name, options)]

    def _rows(self, name: str, options: Options) -> list[PairRow]:
        metric = self.given.metric(name)
        ends = self.sums.ends(self.metrics.index(name))
        bounds, note = _bounds(self.given.bounds(name), ends)
        if options.interval == "gaffke" and not np.isfinite(bounds).all():
            raise InputError(
                f"interval='gaffke' needs a range, and {name} has none. {note} "
                "Hint: interval='bca', or metrics= without it."
            )
        protocols = {model.name: model.first.protocol for model in self.given.runs}
        found = []
        for pair in self.given.pairs(name):
            average = {rules_of(metric, protocols[one]).average for one in pair}
            row = self._row(metric, pair, bounds, options)
            intervals = row.interval, row.relative_interval
            said = pair_notes(average, intervals, row.test, row.runs)
            notes = (note, *said) if note else said
            found.append(dataclasses.replace(row, notes=notes))
        return found

    def _row(
        self, metric: Metric, pair: tuple[str, str], bounds: Bounds, options: Options
    ) -> PairRow:
        number = self.places[(str(metric), *pair)]
        cells, sums = self.sums.cells(number), self.sums.totals(number)
        n, clusters = cells.n, self.sums.clusters(number)
        difference = compare_grouped(
            cells.grouped(),
            n_only=(int(sums[2]), int(sums[3])),
            means=(float(sums[0] / n), float(sums[1] / n)) if n else (np.nan, np.nan),
            ratios=self.sums.ratios(number),
            clusters=clusters,
            largest=self.sums.largest_cluster(number),
            bounds=bounds,
            test=options.test,
            interval=options.interval,
            confidence=options.confidence,
        )
        deviation = float(np.sqrt(cells.squares / (n - 1))) if n > 1 else np.nan
        higher = metric.definition.higher_is_better
        row = pair_row(str(metric), pair, higher, difference, bounds, deviation)
        seeds = self.sums.runs(number)
        row = dataclasses.replace(
            row,
            unit=difference.unit if difference.test.test == "randomisation" else 0.0,
            equivalence=self._equivalence(number, str(metric), seeds, bounds, options),
        )
        if seeds is not None:
            return self._over_seeds(number, row, seeds)
        folds = self.folds.get(number, ())
        if not folds or min(one.n for one in folds) < 2:
            return row
        runs = over_folds_of(folds, confidence=options.confidence)
        return dataclasses.replace(row, runs=runs)

    def _over_seeds(self, number: int, row: PairRow, seeds: RunMoments) -> PairRow:
        """Return a row whose test and intervals are over users and seeds."""
        runs = over_runs_of(seeds, confidence=row.interval.confidence)
        test, interval = of_runs(runs, row.test)
        relative = row.relative_interval
        ratios = self.sums.ratios(number)
        if ratios is not None and np.isfinite(row.relative):
            relative = relative_over_runs(ratios, seeds, interval)
        return dataclasses.replace(
            row, test=test, interval=interval, relative_interval=relative, unit=0.0, runs=runs
        )

    def _equivalence(
        self,
        number: int,
        metric: str,
        seeds: RunMoments | None,
        bounds: Bounds,
        options: Options,
    ) -> Equivalence | None:
        margin, clusters = options.margin_of(metric), self.sums.clusters(number)
        if margin is None:
            return None
        if seeds is not None:
            return equivalence_over_runs_of(seeds, margin, alpha=options.alpha)
        differences = self.sums.cells(number).grouped()
        units, sums = (differences, differences) if clusters is None else clusters
        return equivalence_grouped(
            units,
            sums,
            margin,
            alpha=options.alpha,
            test="t" if options.test == "t" else "randomisation",
            bounds=bounds,
        )

    def tukey(self, primary: Sequence[str], options: Options) -> dict[str, Tukey]:
        """Return Tukey's test of each primary metric."""
        return {
            name: self.sums.tukey(self.metrics.index(name), alpha=options.alpha, seed=options.seed)
            for name in primary
        }

    def said(self, tests: Mapping[str, Tukey], options: Options) -> list[str]:
        """Return what is said of sessions, and of Tukey's test."""
        said, (n_users, n_clusters) = [], self.sums.n_rows
        if self.given.first.session is not None:
            said = wording.on_sessions(n_users, n_clusters if self.sums.asked.clustered else None)
        return [*said, *on_tukey(tests, options)]

    def standings(self, options: Options, correction: Correction) -> list[Standing]:
        """Return the models by each metric, best first, from another pass over the users."""
        return Board.of(self, correction).standings(options)


@dataclasses.dataclass(frozen=True, eq=False)
class Board:
    """The sums over the users whom all models have a value of."""

    pairs: Pairs
    sums: Differences

    @classmethod
    def of(cls, pairs: Pairs, correction: Correction) -> Board:
        """Add up the values of all models, and the differences of all pairs."""
        asked = pairs.sums.asked
        each: list[Each] = []
        for number, name in enumerate(pairs.metrics):
            knows = knows_chance(pairs.given.metric(name))
            valued = [at for at, one in enumerate(pairs.given.runs) if knows or not one.by_chance]
            each += [Each(number, at, None, everyone=True) for at in valued]
            both = [Each(number, *two) for two in itertools.combinations(asked.ranked, 2)]
            # Seeds are compared on all users that the two models have.
            each += [one._replace(everyone=not asked.has_seeds(one)) for one in both]
        shuffled = range(len(pairs.metrics)) if correction == "tukey" else []
        every = dataclasses.replace(asked, each=each, shuffled=(list(shuffled), asked.ranked))
        return cls(pairs, Differences.of(pairs.joined, every))

    def standings(self, options: Options) -> list[Standing]:
        """Return the models by each metric, best first."""
        return [
            one
            for number, name in enumerate(self.pairs.metrics)
            for one in self._of_metric(number, name, options)
        ]

    def _of_metric(self, number: int, name: str, options: Options) -> list[Standing]:
        asked, names = self.sums.asked, self.pairs.given.names
        of = {one[1:3]: key for key, one in enumerate(asked.each) if one.metric == number}
        ends = np.array([self._ends(of[at, None]) for at in asked.ranked])
        bounds, _ = _bounds(self.pairs.given.bounds(name), ends)
        p_values = np.ones((len(asked.ranked), len(asked.ranked)))
        for one, two in itertools.combinations(range(len(asked.ranked)), 2):
            p = self._p(of[asked.ranked[one], asked.ranked[two]], bounds, options)
            p_values[one, two] = p_values[two, one] = p
        tukey = None
        if asked.shuffled[0]:
            tukey = self.sums.tukey(number, alpha=options.alpha, seed=options.seed).p_values
        chance = {
            model.name: self._mean(of[at, None]) if (at, None) in of else np.nan
            for at, model in enumerate(self.pairs.given.runs)
            if model.by_chance
        }
        means = Means(
            np.array([self._mean(of[at, None]) for at in asked.ranked]),
            [self._interval(of[at, None], bounds, options) for at in asked.ranked],
            self.sums.cells(of[asked.ranked[0], None]).n,
            chance,
        )
        higher = self.pairs.given.metric(name).definition.higher_is_better
        ranked = [names[at] for at in asked.ranked]
        return ordered(name, ranked, means, p_values, tukey, higher=higher, options=options)

    def _mean(self, key: int) -> float:
        n = self.sums.cells(key).n
        return float(self.sums.totals(key)[0]) / n if n else np.nan

    def _ends(self, key: int) -> tuple[float, float]:
        cells = self.sums.cells(key)
        return (float(cells.low[0]), float(cells.high[-1])) if cells.n else (np.inf, -np.inf)

    def _interval(self, key: int, bounds: Bounds, options: Options) -> Interval:
        clusters = self.sums.clusters(key)
        values = self.sums.cells(key).grouped() if clusters is None else clusters[0]
        kind = options.interval if options.interval != "randomisation" else "auto"
        why = "" if clusters is None else UNEQUAL
        return interval_of(
            values,
            kind,
            bounds=bounds,
            confidence=options.confidence,
            why=why,
            of_clusters=clusters is not None and not isinstance(values.sizes, float),
        )

    def _p(self, key: int, bounds: Bounds, options: Options) -> float:
        """Return p of a pair, before it is adjusted."""
        seeds = self.sums.runs(key)
        if seeds is not None:
            return over_runs_of(seeds, confidence=options.confidence).p_value
        differences = self.sums.cells(key).grouped()
        units, sums = self.sums.clusters(key) or (differences, differences)
        largest = self.sums.largest_cluster(key)
        how: Any = {"bounds": bounds, "test": options.test, "interval": options.interval}
        return decisive_test_grouped(units, sums, largest, **how).p_value


def _of_folds(given: Models, metrics: Sequence[str], asked: Compared) -> dict[int, list[Moments]]:
    """Return what is known of the differences in each fold, by place, where both have folds."""
    n_folds = [_n_folds(model) for model in given.runs]
    places = [
        place
        for place, (_, one, other, _) in enumerate(asked.each)
        if other is not None and n_folds[one] == n_folds[other] > 1
    ]
    found: dict[int, list[Moments]] = {place: [] for place in places}
    for fold in range(max(n_folds)):
        own = [place for place in places if n_folds[asked.each[place].model] > fold]
        models = sorted({at for place in own for at in asked.each[place][1:3] if at is not None})
        if not own:
            break
        joined = given.joined(metrics, dict.fromkeys(models, fold))
        # In a fold, sessions of a user are told apart: rows are those of differences alone.
        alone = dataclasses.replace(
            asked, each=[asked.each[place] for place in own], shuffled=([], []), clustered=False
        )
        sums = Differences.only_first(joined, alone)
        for number, place in enumerate(own):
            found[place].append(sums.moments(number))
    return found


def _n_folds(model: Model) -> int:
    """Return how many folds were pooled; 0 for a random order, whose folds are not known."""
    first = evaluations(model)[0]
    if model.by_chance or not isinstance(first, SparkFoldedEvaluation):
        return 0
    return len(first.folds)


def _rules(metric: Metric, protocol: Protocol) -> Protocol:
    rules = rules_of(metric, protocol)
    return rules.replace(missing="skip") if rules.missing == "nan" else rules


def _bounds(bounds: Bounds, ends: np.ndarray) -> tuple[Bounds, str]:
    """Return bounds; infinite ones and a note if a value lies outside."""
    low, high = bounds
    values = [value for a, b in ends.tolist() for value in (min(low, a), max(high, b))]
    return bounds_for(bounds, values)
