"""Comparisons of values that all users have together, over resampled users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recometer.comparing.models import Model
from recometer.comparing.pairs import Options
from recometer.comparing.rows import PairRow
from recometer.comparing.whole import BATCHES, compare_values, of_folds, untested
from recometer.comparing.whole_values import WholeValues, numbers_of, whole_values
from recometer.spark import _clusters
from recometer.spark._draws import Resamples
from recometer.spark._frames import Frame
from recometer.spark._resampling import MOST_UNITS, Drawn, placed
from recometer.spark._together import SAMPLE, resamples_for
from recometer.spark.pooling import SparkFoldedEvaluation
from recometer.spark.result import SparkEvaluation
from recometer.stats.intervals import UNKNOWN, ends_of

Pair = tuple[Model, Model]


def compare_together(
    metrics: Sequence[str], pairs: Sequence[Pair], cluster: object, options: Options
) -> list[PairRow]:
    """Compare pairs of models by values that all users have together, as one machine does."""
    found: list[PairRow] = []
    for pair in pairs:
        runs: list[Any] = [run for model in pair for run in model.runs]
        if any(model.batches for model in pair):
            found += [untested(name, pair, BATCHES, options.confidence) for name in metrics]
            continue
        folds = [run.folds for run in runs if isinstance(run, SparkFoldedEvaluation)]
        if folds:
            found += [of_folds(name, pair, folds, options.confidence) for name in metrics]
            continue
        split = len(pair[0].runs)
        of_lists = [name for name in metrics if name in runs[0].over_users]
        both = _Common.of(runs, cluster)
        drawn = both.drawn(runs, metrics, options.seed)
        for names in (of_lists, [name for name in metrics if name not in of_lists]):
            values = both.values(names, runs, drawn, split, options.confidence)
            found += [
                compare_values(name, pair, values[name], options.confidence) for name in names
            ]
    return found


class _Common:
    """The users whom several results have, and the units that they are drawn by."""

    def __init__(self, users: Frame, units: Sequence[str], n: int, n_units: int) -> None:
        self.users, self.units, self.n, self.n_units = users, units, n, n_units

    @classmethod
    def of(cls, runs: Sequence[SparkEvaluation], cluster: object) -> _Common:
        """Find them."""
        first = runs[0]
        by = ["u"] if first.session is None else ["u", "s"]
        users = first.values().select(*by)
        for run in runs[1:]:
            users = users.join(run.values().select(*by), by)
        found, clustered = _clusters.joined(users, cluster, first)
        units = ["g"] if clustered else by
        n = int(found.count())
        n_units = int(found.select("g").distinct().count()) if clustered else n
        return cls(found, units, n, n_units)

    def drawn(
        self, runs: Sequence[SparkEvaluation], metrics: Sequence[str], seed: int
    ) -> list[Drawn]:
        """Return the values of each run: of all common users, and of each resample."""
        n = max(resamples_for(runs[0], name, self.n) for name in metrics)
        enough = 1 < self.n_units <= MOST_UNITS
        resamples = Resamples(max(self.n_units, 1), n if enough else 0, seed)
        by = [name for name in self.users.columns if name in ("u", "s")]
        places = placed(self.users, self.units, self.n_units).select(*by, "q")
        return [run.again.values(metrics, places, resamples) for run in runs]

    def values(
        self,
        metrics: Sequence[str],
        runs: Sequence[SparkEvaluation],
        drawn: Sequence[Drawn],
        split: int,
        confidence: float,
    ) -> Mapping[str, WholeValues]:
        """Return the values of both models, and how far they vary with the users."""
        if not metrics:
            return {}

        def numbers(place: int) -> dict[str, float]:
            each = [{name: one[name][place] for name in metrics} for one in drawn]
            return numbers_of(metrics, each, split)

        centre, note = numbers(0), ""
        ends = dict.fromkeys(centre, UNKNOWN)
        if self.n_units > MOST_UNITS:
            note = SAMPLE
        elif self.n_units < 2:
            what = "clusters" if self.units == ["g"] else "users"
            note = f"Fewer than two {what}: there is nothing to resample."
        else:
            n = resamples_for(runs[0], metrics[0], self.n)
            ends = ends_of(centre, [numbers(place) for place in range(1, 1 + n)], confidence)
        return whole_values(metrics, centre, ends, (split, len(runs)), self.n, confidence, note)
