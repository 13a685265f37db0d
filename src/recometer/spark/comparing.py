"""compare on Spark: pairs of models, from sums of the differences of their users."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from recometer.comparing import wording
from recometer.comparing.compared import known_metric, margin_of, primary_of
from recometer.comparing.corrections import Correction, adjusted, check_correction
from recometer.comparing.known_users import KnownUsers, counted_users
from recometer.comparing.models import Model
from recometer.comparing.pairs import IntervalKind, Options, check_users
from recometer.comparing.result import ComparisonTables
from recometer.comparing.rows import PairRow, Standing
from recometer.comparing.standings import standings_of_whole
from recometer.draws import seed_of
from recometer.errors import UnknownNameError, warn
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.removed import without
from recometer.spark._elsewhere import RUNNING, refusing
from recometer.spark._models import Given, Models, evaluations
from recometer.spark._pairs import Pairs
from recometer.spark._pairs_together import compare_together
from recometer.stats.comparing import Test
from recometer.stats.ends import check_confidence


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SparkComparison(ComparisonTables):
    """The result of `compare` on Spark: models side by side, and pairs of them.

    Attributes
    ----------
    models : tuple of str
    baseline : str or None
    metrics, primary : tuple of str
    rows : tuple of recometer.comparing.rows.PairRow
        One for each metric and pair, as in `Comparison`.
    correction
    options
        How pairs were compared.
    notes : tuple of str
        What holds for the whole comparison.
    chosen : bool
        Whether the primary metrics were chosen.
    pairs
        The sums over users that everything follows from.
    known_users : recometer.comparing.known_users.KnownUsers or None
        As in `Comparison`, without means over the users whom all models know.
    """

    models: tuple[str, ...]
    baseline: str | None
    metrics: tuple[str, ...]
    primary: tuple[str, ...]
    rows: tuple[PairRow, ...]
    correction: Correction
    options: Options
    notes: tuple[str, ...] = ()
    chosen: bool
    pairs: Pairs = dataclasses.field(repr=False)
    cluster: object = dataclasses.field(default=None, repr=False)
    known_users: KnownUsers | None = None

    @cached_property
    def standings(self) -> tuple[Standing, ...]:  # type: ignore[override]
        """The leaderboard: per metric every model, best first, with the ranks that it can have.

        Spark reads the users again for it, when it is first asked for.
        """
        given = self.pairs.given
        found = self.pairs.standings(self.options, self.correction)
        whole = [name for name in self.metrics if name not in self.pairs.metrics]
        both, rows = given.model_pairs(every=True), list(self.rows)
        if whole and self.baseline is not None and len(both) > len(given.model_pairs()):
            rows = compare_together(whole, both, self.cluster, self.options)
        for name in whole:
            own = [row for row in rows if row.metric == name]
            found += standings_of_whole(name, given.runs, own, self.options) if own else []
        order = [one for name in self.metrics for one in found if one.metric == name]
        return tuple(order)

    def standings_of(self, metric: str) -> tuple[Standing, ...]:
        """Return the leaderboard of one metric, best first; see `standings`."""
        name = self._known(metric)
        return tuple(one for one in self.standings if one.metric == name)

    def _known(self, metric: str) -> str:
        return known_metric(metric, self.metrics, self.pairs.given.runs[0].first)

    def row(self, metric: str, model: str, other: str) -> PairRow:
        """Return the row of two models by a metric."""
        name = self._known(metric)
        for one in self.rows:
            if (one.metric, one.model, one.other) == (name, model, other):
                return one
        known = [f"{one.metric}: {one.model} less {one.other}" for one in self.rows]
        raise UnknownNameError(f"There is no such row. Hint: {'; '.join(known)}.")

    def _models(self) -> Sequence[Model]:
        return self.pairs.given.runs

    def __repr__(self) -> str:
        return f"<SparkComparison of {', '.join(map(str, self.models))}: {', '.join(self.metrics)}>"


@refusing(RUNNING)
@without("evaluator", "until")
def compare(
    models: Given,
    *,
    baseline: str | None = None,
    metrics: str | Iterable[str] | None = None,
    primary: str | Iterable[str] | None = None,
    test: Test = "randomisation",
    interval: IntervalKind = "auto",
    confidence: float | None = None,
    correction: Correction = "holm",
    margin: float | Mapping[str, float] | None = None,
    allow: str | Iterable[str] = (),
    cluster: object = None,
    chance: bool = False,
    seed: int = 0,
) -> SparkComparison:
    """Test whether models differ, and estimate by how much, from sums that Spark computes.

    Models are compared in pairs, on the users for whom both have a value. Differences, p-values
    and intervals are those of `recometer.compare`. If differences have more than some thousands
    of values, those with the same leading bits count as their mean, which changes intervals and
    p-values by less than a thousandth.

    Parameters
    ----------
    models
        A dict from the names of models to results of `evaluate` on the same test, or a list of
        results. A model may be a list of results. If they have the same users, they are seeds (the
        model was trained several times), and the variance between them is added to the variance
        between users, as in `recometer.compare`. If they have different users, they are batches of
        one evaluation.
    baseline
        The model that all others are compared with. None compares every pair.
    metrics
        The metrics to compare. None compares all metrics of the first model.
    primary, test, interval, confidence, correction, margin, chance
        As in `recometer.compare`.
    allow
        The rules of the protocol that may differ between the evaluations, or ``"protocol"`` for
        all. Whether data differ is not known.
    cluster
        A DataFrame with a column of users and one of their clusters, if users are not independent
        of each other. If test has sessions of users, None takes the users as clusters, and False
        takes every session as independent.
    seed
        Seed of the orders that ``correction="tukey"`` draws for up to 100 users who differ, and
        of the users that are drawn for metrics with one value for all of them.

    Returns
    -------
    SparkComparison

    Raises
    ------
    InputError
        If there are fewer than two models, protocols differ, or there are no users in common.
    InputTypeError
        If the models are not results of Spark.
    UnknownNameError
        If a baseline, metric, test, interval or correction does not exist.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> print(rs.compare({"als": first, "bpr": second}, baseline="als"))  # doctest: +SKIP
    """
    given = Models.of(models, baseline, chance, allow)
    first, baseline = given.first, given.baseline
    compared, notes = given.metrics(metrics)
    decisive = compared if primary is None else primary_of(primary, compared, given.runs[0].first)
    counted = [one for one in given.runs if not one.by_chance or one.name == baseline]
    check_correction(correction, test, counted, decisive, first.together)
    level = first.protocol.confidence if confidence is None else confidence
    of = margin_of(margin, compared, given.runs[0].first)
    options = Options(test, interval, check_confidence(level), of, None, seed_of(seed), 1)
    shuffled = decisive if correction == "tukey" else []
    of_users = [name for name in compared if name not in first.together]
    pairs = Pairs.of(given, of_users, cluster, (shuffled, counted))
    rows = _rows(given, compared, pairs, cluster, options)
    tests = pairs.tukey(decisive, options) if correction == "tukey" else {}
    return SparkComparison(
        models=tuple(given.names),
        baseline=baseline,
        metrics=tuple(compared),
        primary=tuple(decisive),
        rows=tuple(adjusted(rows, decisive, correction, options, tests, counted)),
        correction=correction,
        options=options,
        notes=(
            *given.notes,
            *notes,
            *wording.on_chance(given.runs, counted),
            *pairs.said(tests, options),
        ),
        chosen=primary is not None,
        pairs=pairs,
        cluster=cluster,
        known_users=_known_users(given),
    )


def _known_users(given: Models) -> KnownUsers | None:
    """Return how many users and relevant rows are unknown to each model, where such users count.

    Who they are is known on the executors alone, and so there are no means without them.
    """
    rules, usual = given.first.protocol, Protocol()
    if not rules.cold_start or (rules.users, rules.no_list) != (usual.users, usual.no_list):
        return None
    runs = {model.name: evaluations(model) for model in given.runs if not model.by_chance}
    once = {model.name: model.batches for model in given.runs}
    parts = {name: found if once[name] else found[:1] for name, found in runs.items()}
    n = sum(run.n_users for run in next(iter(parts.values())))
    counts = {
        name: sum(run.counts.get("users_unknown", 0) for run in found)
        for name, found in parts.items()
    }
    return counted_users(counts, n)


def _rows(
    given: Models, compared: Sequence[str], pairs: Pairs, cluster: object, options: Options
) -> list[PairRow]:
    """Return the rows of the metrics compared, in their order, and warn of undefined values."""
    whole = [name for name in compared if name in given.first.together]
    found = pairs.rows(options)
    if whole:
        found += compare_together(whole, given.model_pairs(), cluster, options)
    rows = [row for name in compared for row in found if row.metric == name]
    check_users(rows)
    undefined = wording.on_undefined(rows)
    if undefined:
        warn(undefined)
    return rows
