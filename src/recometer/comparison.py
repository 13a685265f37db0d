"""Find out whether models really differ, and by how much: `compare` and `Comparison`."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import stats
from recometer.arrays import Array
from recometer.comparing import wording
from recometer.comparing.compared import Compared, known_metric
from recometer.comparing.gates import GateReport, Undecided, check_gates
from recometer.comparing.kinds import Options, resolve, resolve_whole
from recometer.comparing.models import (
    Model,
    Users,
    by_chance,
    check_comparable,
    on_unpaired,
    read_allow,
    read_models,
)
from recometer.comparing.rows import (
    POWER_WANTED,
    Correction,
    PairRow,
    Standing,
    difference_columns,
    rank_models,
    user_columns,
)
from recometer.data.numbers import flag, seed_of
from recometer.errors import (
    InputError,
    UnknownNameError,
    argument_text,
    brief,
    did_you_mean,
    python_or_command,
    visible,
    warn,
)
from recometer.rendering import Column, Table
from recometer.reporting import Reported
from recometer.results.evaluation import EvaluationRecord, names_among
from recometer.results.flat import FlatName
from recometer.results.folds import FoldedRecord
from recometer.results.groups import read_clusters
from recometer.stats import SampleRatio, Tukey
from recometer.stats.ends import check_confidence
from recometer.stats.planning import smallest_difference
from recometer.stats.tests import Test, check_test, documented
from recometer.tasks import resolve_threads
from recometer.tracking import Tracked
from recometer.version import __version__

if TYPE_CHECKING:
    import polars


Results = EvaluationRecord | str | os.PathLike[str]
Several = Mapping[str, Results | Sequence[Results]] | Sequence[Results]


class Comparison(Compared, Tracked, Reported):
    """The result of `compare`, with the models side by side and in pairs.

    ``print(comparison)`` shows the leaderboard and the comparison on the primary metrics (or the
    first metric): differences, intervals, p-values, and how many users gain and lose. Each of the
    other metrics gets one line. `to_markdown`, `to_latex` and `to_html` show the same. For the
    result of `full`, all of these show every pair on every metric. `to_json` and `to_csv` always
    contain everything, in full precision.

    Attributes
    ----------
    models : tuple of Model
        The models that were compared.
    baseline : str or None
        The name of the baseline.
    metrics, primary : tuple of str
        The names of all compared metrics, and of the primary metrics.
    rows : tuple of PairRow
        A row for each metric and pair of models.
    standings : tuple of Standing
        The leaderboard: for each metric, every model with its possible ranks, best first.
    correction
        The correction of p-values for the number of comparisons.
    options
        The options of the comparison, such as `test` and `confidence`.
    users : Users
        All users, in the order of `per_user`.
    notes : tuple of str
        Notes on inputs and rules that were allowed to differ, metrics that were left out, and more.
    chosen : bool
        Whether primary metrics were chosen. If not, all metrics are primary.
    known_users : tuple of str
        Sentences about users who count although some models do not know them, and about the means
        of the primary metrics (or the first metric) without these users. Empty if all models know
        the same users, and only a few users are unknown.
    sample_ratio : recometer.stats.SampleRatio or None
        The actual and the planned sizes of groups of different users; None if users are paired.
    in_full : bool
        Whether tables show all pairs on all metrics, as after `full`.
    """

    def gate(self, gates: str | Sequence[str], undecided: Undecided | None = None) -> GateReport:
        """Check bounds on how much every model except chance differs from the baseline.

        A gate is passed if the lower end of the interval reaches the bound, failed if the upper
        end is below the bound, and undecided otherwise. Use `power` to find out how many users are
        needed to decide an undecided gate.

        Parameters
        ----------
        gates
            ``"ndcg@10 >= -5%"`` bounds the relative difference, and ``"coverage@10 >= -0.02"``
            the absolute difference. Use ``<=`` if lower values are better; the two ends of the
            interval then swap roles.
        undecided
            How an undecided gate counts in JUnit XML and in the report's ``passed``: ``"pass"`` or
            ``"fail"``. Its verdict stays ``"undecided"``.

        Raises
        ------
        InputError
            If a gate cannot be read, or there is no baseline.
        UnknownNameError
            If a metric was not compared, or if `undecided` has another value.
        """
        return check_gates(self, gates, undecided)

    def data(self) -> Table:
        """Return a table with a row per metric and pair that contains all values."""
        columns = difference_columns(self.confidence, margin=self.options.margin is not None)
        more = ("mean_other", "n_only_model", "n_only_other", "primary", "smallest_difference")
        return Table(
            [*columns, *user_columns(self.confidence), *(Column(name) for name in more)], self.rows
        )

    def frame(self) -> polars.DataFrame:
        """Return a Polars frame with a row per metric and pair."""
        import polars as pl

        return pl.DataFrame(self.data().records(), infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as JSON-compatible Python objects."""
        return {
            "recometer": __version__,
            "models": {model.name: len(model.runs) for model in self.models},
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "primary": list(self.primary),
            "test": self.options.test,
            "correction": self.correction,
            "confidence": self.confidence,
            "standings": [dataclasses.asdict(row) for row in self.standings],
            "comparisons": [
                {**dataclasses.asdict(row), "p_value": row.p_value, "verdict": row.verdict}
                for row in self.rows
            ],
            "known_users": list(self.known_users),
            "sample_ratio": self.sample_ratio and dataclasses.asdict(self.sample_ratio),
            "notes": self.said(self.metrics),
        }

    def flat_values(self) -> Iterator[tuple[FlatName, float]]:
        """Yield the names and values that `flat` returns."""
        lines: list[Any] = [(row, None, row.mean, ()) for row in self.standings]
        lines += [(row, row.other, row.difference, ("p_value", "adjusted_p")) for row in self.rows]
        for row, other, mean, more in lines:
            values = {"mean": mean, "low": row.low, "high": row.high, "counted": row.n}
            values |= {name: getattr(row, name) for name in more}
            for statistic, value in values.items():
                yield FlatName(row.metric, statistic, row.model, other), value  # type: ignore[arg-type]

    def _save_artifacts(self, folder: str, prefix: str) -> None:
        self.to_json(os.path.join(folder, f"{prefix}comparison.json"))

    def __repr__(self) -> str:
        names = ", ".join(model.name for model in self.models)
        return visible(f"<Comparison of {names}: {', '.join(self.metrics)}>")


def compare(
    models: Several,
    *,
    baseline: str | None = None,
    metrics: str | Iterable[str] | None = None,
    primary: str | Iterable[str] | None = None,
    paired: bool = True,
    ratio: str | None = None,
    test: Test | None = None,
    confidence: float | None = None,
    correction: Correction = "holm",
    margin: float | Mapping[str, float] | None = None,
    allow: str | Iterable[str] = (),
    cluster: object = None,
    chance: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Comparison:
    """Test whether models differ, and estimate by how much, based on each user's values.

    Models are compared in pairs, on the users with a value from both. Intervals and p-values
    are computed without resampling (`recometer.stats`), except for metrics with one value for all
    users.

    Parameters
    ----------
    models
        A dict of evaluations, or of paths to files written by `Evaluation.save`, keyed by the
        models' names; a list of evaluations or paths; or a `Leaderboard`. All evaluations must use
        the same test data. A model may also have a list of evaluations on the same users, one for
        each training seed. The variance between seeds is then added to the variance between users
        (`recometer.stats.over_runs`).
    baseline
        The model that all others are compared with. None compares every pair.
    metrics
        The metrics to compare. None compares all metrics, which must then be the same for all
        models.
    primary
        The metrics that decide which model is best. P-values are adjusted for the number of
        comparisons on these metrics. None means all metrics.
    paired
        Whether the models have the same users. False compares groups of different users, as in an
        A/B test, by Welch's t test (`recometer.stats.compare_groups`), and checks the sizes of the
        groups. Means are weighted according to the rule ``average``. Metrics computed from all
        users' lists together, such as coverage, depend on the number of users and are left out.
    ratio
        The planned sizes of groups of different users, if they are not equal: a number for each
        group in the order of the models, such as ``"9:1"``.
    test
        None means ``"randomisation"``, or Welch's test if the models have different users. The
        tests for models with the same users are {tests} The interval is derived from the test. If
        the metric has a range, and either all users differ by the same amount, or fewer than 30
        users differ and at least half do not, the interval is Gaffke's, and p follows from it.
    confidence
        The confidence level of the intervals; the significance level is 1 - confidence. None uses
        the confidence level in the evaluations' protocol.
    correction
        The correction for the number of comparisons: ``"holm"``, ``"benjamini-hochberg"``,
        ``"bonferroni"`` or ``"none"``. ``"tukey"`` is Tukey's honestly significant difference by
        randomisation over all models (`recometer.stats.tukey`), for each metric; p-values are then
        multiplied by the number of primary metrics.
    margin
        The size below which differences do not matter: a number, or a number for each metric. A
        margin adds two one-sided tests of equivalence.
    allow
        What may differ between the evaluations: ``"test"``, ``"train"``, ``"candidates"``,
        ``"exclude"``, ``"protocol"``, or a rule of the protocol.
    cluster
        The cluster of each user, in any form that `Evaluation.by` accepts for groups. Use it if
        users are not independent of each other, for instance because they are sessions of the same
        person: tests and intervals then treat whole clusters as independent. If the test data
        contain sessions of users (``user=["user", "session"]``), None uses the users as clusters,
        and False treats every session as independent.
    chance
        Whether to add a model ``"chance"``, which is a random order of the same candidates. Its
        values are those that ``rm.evaluate(..., chance=True)`` computed for the first model. It is
        left out for metrics on which a random order has no value (coverage, ...), and a note lists
        these. The random order is not ranked. Unless it is the baseline, comparisons with it do not
        count when p-values are adjusted.
    seed
        The seed for drawing users with replacement, for metrics with one value for all users.
    threads
        Maximum number of threads. None uses all available processors. The result does not depend
        on it.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two models, if they have no user in common, or if their metrics,
        test data, candidates or protocols differ.
    InputTypeError
        If the models are not evaluations, if user ids have different types, or if an argument has
        an unsupported type.
    UnknownNameError
        If a baseline, metric, test or correction does not exist.

    Warns
    -----
    DataWarning
        If some users are left out because only one of two models has a value for them, if two
        models change places when only the users known to all models count, or if groups of
        different users do not have the planned sizes.

    Examples
    --------
    >>> import numpy as np, recometer as rm
    >>> rng = np.random.default_rng(0)
    >>> test = rng.random((200, 50)) < 0.1
    >>> noise = rng.random((200, 50))
    >>> good, bad = rm.Scores(noise + 0.4 * test), rm.Scores(noise)
    >>> results = {name: rm.evaluate(one, test, metrics="ndcg@10")
    ...            for name, one in [("good", good), ("bad", bad)]}
    >>> row, = rm.compare(results, baseline="bad").rows
    >>> row.verdict, row.n, row.test.method
    ('better', 199, 'saddlepoint')
    """
    paired, chance = flag("paired", paired), flag("chance", chance)
    if test is None:
        test = "randomisation" if paired else "welch"
    read = read_models(models)
    if not paired:
        _check_unpaired(read, test, chance)
    elif ratio is not None:
        wrong = argument_text("ratio", ratio)
        raise InputError(f"{wrong} is for groups of different users. Hint: {on_unpaired()}")
    else:
        check_test(test)
    if chance:
        read.append(by_chance(read))
    names = [model.name for model in read]
    if baseline is not None and str(baseline) not in names:
        raise UnknownNameError(
            f"The baseline {brief(baseline)} is not one of the models. "
            f"{did_you_mean(str(baseline), names)}"
        )
    baseline = None if baseline is None else str(baseline)
    users, first, allowed = Users.of(read, paired=paired), read[0].first, read_allow(allow)
    notes = check_comparable(read, users, allowed, paired=paired)
    counted = [m.name for m in read if not m.by_chance or m.name == baseline]
    compared = _metrics(read, metrics)
    left_out: list[str] = []
    if chance:
        compared, left_out = _with_chance(compared, read[-1], is_baseline=baseline == "chance")
    if not paired:
        compared, left_out = _of_users(compared, first, chosen=metrics is not None)
    decisive = compared
    if primary is not None:
        evaluated = [metric for metric in first.metrics if str(metric) in compared]
        primary_names = names_among(primary, evaluated, first.protocol)
        decisive = [known_metric(name, compared, first) for name in primary_names]
    _check_correction(correction, test, read, decisive, first.together)
    if confidence is None:
        confidence = first.protocol.confidence
    if isinstance(margin, Mapping):
        margin = {known_metric(name, compared, first): value for name, value in margin.items()}
    options = Options(
        test=test,
        confidence=check_confidence(confidence),
        margin=margin,
        clusters=_clusters(cluster, users, read),
        seed=seed_of(seed),
        threads=resolve_threads(threads),
        paired=paired,
    )
    sizes = None if paired else _sample_ratio(users, options, ratio)
    rows, standings, tests = _compare_all(
        read, baseline, compared, users, options, counted if correction == "tukey" else []
    )
    _check_users(rows)
    main_metrics = decisive if primary is not None else compared[:1]
    known_users, warning = wording.on_known_users(read, users, main_metrics) if paired else ((), "")
    result = Comparison(
        models=tuple(read),
        baseline=baseline,
        metrics=tuple(compared),
        primary=tuple(decisive),
        rows=tuple(_adjusted(rows, decisive, correction, options, tests, counted)),
        standings=tuple(standings),
        correction=correction,
        options=options,
        users=users,
        notes=(
            *([] if sizes is None else [str(sizes)]),
            *notes,
            *left_out,
            *wording.on_sessions(users, options),
            *(wording.on_tukey(tests, decisive, options) if tests else []),
        ),
        chosen=primary is not None,
        known_users=known_users,
        sample_ratio=sizes,
    )
    mismatch = str(sizes) if sizes is not None and sizes.mismatch else ""
    for text in (mismatch, wording.on_undefined(result.rows), warning):
        if text:
            warn(text)
    return result


def _metrics(models: Sequence[Model], metrics: str | Iterable[str] | None) -> list[str]:
    """Return the metrics that all models have; the model ``"chance"`` may lack some of them."""
    models = [model for model in models if not model.by_chance]
    first = models[0]
    own = [str(metric) for metric in first.first.metrics]
    if metrics is not None:
        names = names_among(metrics, first.first.metrics, first.first.protocol)
        for model, name in itertools.product(models, names):
            if not model.has_metric(name):
                hint = did_you_mean(name, model.first.reasons)
                raise UnknownNameError(f"{model.name} has no metric {name!r}. {hint}")
        return names
    for model in models[1:]:
        other = [str(metric) for metric in model.first.metrics]
        differing = set(own) ^ set(other)
        if differing:
            common = [name for name in own if name in other]
            remedy = (
                f"{argument_text('metrics', ' '.join(common))} compares what both have"
                if common
                else "evaluate both with the same metrics"
            )
            raise InputError(
                f"{first.name} and {model.name} were evaluated with different metrics: only one of "
                f"them has {', '.join(sorted(differing))}. Hint: {remedy}."
            )
    return own


def _with_chance(
    metrics: list[str], chance: Model, *, is_baseline: bool
) -> tuple[list[str], list[str]]:
    """Return the metrics to compare if one model is a random order, and notes on that order."""
    remaining = [name for name in metrics if chance.has_metric(name)]
    names = ", ".join(name for name in metrics if name not in remaining)
    if not is_baseline:
        note = (
            "chance: a random order of the same candidates. It is not ranked, and p of comparisons "
            "with it is neither adjusted nor counted."
        )
        lacking = f"chance is left out for {names}: a random order has no value there."
        return metrics, [lacking, note] if names else [note]
    if not remaining:
        raise InputError(
            f"The baseline is chance, and a random order has no value for {names}. Hint: use "
            "another baseline, or ranking metrics, such as ndcg@10."
        )
    note = f"Left out: {names}. The baseline, a random order, has no value there."
    return remaining, [note] if names else []


def _check_unpaired(models: Sequence[Model], test: str, chance: bool) -> None:
    """Reject paired tests, random orders, seeds and folds, which all need the same users."""
    if test != "welch":
        raise InputError(
            f"{argument_text('test', test)} is for models with the same users; groups of "
            "different users are compared by Welch's t test. Hint: leave it out."
        )
    if chance:
        raise InputError(
            f"{argument_text('chance', True)} adds a random order for users of the first model, "
            "but the groups have different users. Hint: compare each group with chance by itself."
        )
    for model in models:
        if len(model.runs) > 1 or isinstance(model.first, FoldedRecord):
            raise InputError(
                f"{model.name} has several seeds or folds, which are for models on the same data. "
                "Hint: evaluate each group once, on all of its users."
            )


def _of_users(
    metrics: list[str], first: EvaluationRecord, *, chosen: bool
) -> tuple[list[str], list[str]]:
    """Return the metrics on which groups of any size are comparable, and notes on the others."""
    left_out = [name for name in metrics if name in first.over_users]
    remaining, names = [name for name in metrics if name not in left_out], ", ".join(left_out)
    reason = "they depend on the number of users, which differs between groups"
    if left_out and (chosen or not remaining):
        raise InputError(
            f"Groups of different users cannot be compared on {names}: {reason}. Hint: "
            f"{argument_text('metrics', ' '.join(remaining) or 'ndcg@10')}."
        )
    return remaining, [f"Left out: {names}; {reason}."] if left_out else []


def _sample_ratio(users: Users, options: Options, ratio: str | None) -> SampleRatio:
    """Compare the groups' sizes with the planned ones; groups must not share users or clusters."""
    units = np.arange(users.n) if options.clusters is None else options.clusters
    groups = {
        name: np.unique(units if place is None else units[place])
        for name, (place,) in users.places.items()
    }
    sizes = stats.sample_ratio({name: len(own) for name, own in groups.items()}, ratio)
    every, counts = np.unique(np.concatenate([*groups.values()]), return_counts=True)
    shared = every[counts > 1]
    if len(shared):
        noun, example = "clusters of users", ""
        if options.clusters is None:
            noun, example = "users", f", for instance {users.show(int(shared[0]))}"
        call = python_or_command("paired=True", "leave out --unpaired, which")
        raise InputError(
            f"{len(shared):,} {noun} are in several groups{example}, so the groups are not "
            f"independent. Hint: {call} compares models on the same users; if few users changed "
            "groups, evaluate each group without them."
        )
    return sizes


def _clusters(cluster: object, users: Users, models: Sequence[Model]) -> Array | None:
    if cluster is None and users.ids is None:
        return None
    clusters = read_clusters(cluster, users.ids, users.n)
    seeds = next((model.name for model in models if len(model.runs) > 1), None)
    if clusters is not None and seeds is not None:
        call = python_or_command("cluster=False", "evaluate users instead of sessions")
        raise InputError(
            f"{seeds} has several seeds: the variance between seeds can be separated from the "
            "variance between users, but not between clusters of users or sessions. Hint: use one "
            f"seed of each model; or {call}, which treats all of them as independent."
        )
    return clusters


def _compare_all(
    models: Sequence[Model],
    baseline: str | None,
    metrics: Sequence[str],
    users: Users,
    options: Options,
    counted: Sequence[str],
) -> tuple[list[PairRow], list[Standing], dict[str, Tukey]]:
    """Return the rows of the comparison, the standings of the leaderboard, and Tukey's tests.

    Metrics are handled one at a time, so that only one metric's values are copied at once.
    `counted` contains the models to compare by Tukey's test; it is empty for other corrections.
    """
    names = [model.name for model in models]
    pairs = list(itertools.combinations(names, 2))
    if baseline is not None:
        pairs = [(name, baseline) for name in names if name != baseline]
    together = [name for name in metrics if name in models[0].first.together]
    of_whole = resolve_whole(together, models, users, options) if together else {}
    rows: list[PairRow] = []
    standings: list[Standing] = []
    tests: dict[str, Tukey] = {}
    for metric in metrics:
        of: Any = of_whole.get(metric)
        if of is None:
            of = resolve(metric, models, users, options, code=len(pairs) > 1)
        evaluated = {model.name for model in models if model.has_metric(metric)}
        own, board = of.compare([pair for pair in pairs if evaluated.issuperset(pair)])
        rows += own
        tukey = None
        if counted and metric not in of_whole:
            tukey = of.tukey(of.ranked)
            tests[metric] = tukey if counted == of.ranked else of.tukey(counted)
        standings += rank_models(
            metric,
            names,
            *board,
            higher_is_better=of.definition.higher_is_better,
            confidence=options.confidence,
            tukey=tukey and tukey.p_values,
        )
    return rows, standings, tests


def _check_correction(
    correction: str,
    test: str,
    models: Sequence[Model],
    primary: Sequence[str],
    together: Container[str],
) -> None:
    """Reject a correction that does not exist, or that is impossible for these models and metrics.

    `together` are the metrics that have one value for all users.
    """
    if correction not in wording.CORRECTIONS:
        hint = did_you_mean(str(correction), wording.CORRECTIONS)
        raise UnknownNameError(f"There is no correction {correction!r}. {hint}")
    if correction != "tukey":
        return
    if test != "randomisation":
        raise InputError(
            f"{argument_text('correction', 'tukey')} is a test by randomisation, and cannot be "
            f"combined with {argument_text('test', test)}. Hint: "
            f"{argument_text('correction', 'holm')}."
        )
    seeds = next((model.name for model in models if len(model.runs) > 1), None)
    if seeds is not None:
        raise InputError(
            f"{argument_text('correction', 'tukey')} shuffles the models of each user and ignores "
            f"the variance between seeds, but {seeds} has several. Hint: "
            f"{argument_text('correction', 'holm')}."
        )
    for_all_users = [name for name in primary if name in together]
    if for_all_users:
        per_user = [name for name in primary if name not in for_all_users]
        raise InputError(
            f"{argument_text('correction', 'tukey')} shuffles the values of each user, but "
            f"{', '.join(for_all_users)} has one value for all users. Hint: "
            f"{argument_text('primary', ' '.join(per_user) or 'ndcg@10')}."
        )


def _adjusted(
    rows: Sequence[PairRow],
    primary: Sequence[str],
    correction: Correction,
    options: Options,
    tests: Mapping[str, Tukey],
    counted: Sequence[str],
) -> list[PairRow]:
    """Adjust p for the number of primary comparisons, and add the smallest detectable differences.

    Comparisons on primary metrics count only if both models are in `counted`. If the correction is
    Tukey's, `tests` contains the result of Tukey's test for each metric.
    """
    own = np.array([row.metric in primary and {row.model, row.other} <= {*counted} for row in rows])
    p_values = np.array([row.p_value for row in rows])
    smallest = np.array([row.test.smallest_p for row in rows])
    p_values[~own] = np.nan
    smallest[np.isnan(p_values)] = np.nan
    n_tests = max(1, int(np.count_nonzero(~np.isnan(p_values))))
    if correction == "tukey":
        # Each metric has its own test, and the adjusted p is never below the pair's own p.
        together = [row.metric in tests and {row.model, row.other} <= {*counted} for row in rows]
        tukey = [
            tests[row.metric].p_values[counted.index(row.model), counted.index(row.other)]
            if joint
            else np.nan
            for row, joint in zip(rows, together, strict=True)
        ]
        p_values = np.maximum(p_values, tukey)
        p_values, limits = (np.minimum(p * len(primary), 1.0) for p in (p_values, smallest))
    else:
        p_values, limits = (stats.adjust(p, correction) for p in (p_values, smallest))
    alpha = options.alpha if correction == "none" else options.alpha / n_tests
    result = []
    for row, is_primary, p, limit in zip(
        rows, own.tolist(), p_values.tolist(), limits.tolist(), strict=True
    ):
        notes = row.notes
        if is_primary and row.p_value <= options.alpha < p and 0.0 not in row.interval:
            notes = (*notes, wording.WITHHELD)
        size = _smallest_difference(row, alpha if is_primary else options.alpha)
        if limit > options.alpha and row.test.n_differ:
            notes = (wording.on_smallest_p(row, limit, n_tests), *notes)
            size = np.nan
        result.append(
            dataclasses.replace(
                row, notes=notes, primary=is_primary, adjusted_p=p, smallest_difference=size
            )
        )
    return result


def _smallest_difference(row: PairRow, alpha: float) -> float:
    # `recometer.stats.power` cannot compute the power of Gaffke's bound.
    if not row.error > 0 or row.test.test == "gaffke" or alpha >= POWER_WANTED:
        return np.nan
    n = row.test.n  # users or clusters
    return smallest_difference(
        row.error * np.sqrt(n), n, wanted=POWER_WANTED, alpha=alpha, unit=row.unit
    )


def _check_users(rows: Sequence[PairRow]) -> None:
    """Raise an error if no user has a value from both models of a pair on any metric."""
    largest: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row.for_all_users:
            largest[row.model, row.other] = max(row.n, largest.get((row.model, row.other), 0))
    for (model, other), n in largest.items():
        if not n:
            raise InputError(
                f"{model} and {other} have no user in common with a value from both. Hint: "
                "check that they were evaluated on the same users; summary() and skipped() show "
                f"why values are undefined. {on_unpaired()}"
            )


documented(compare)
