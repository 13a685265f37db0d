"""Write the notes that accompany the tables of a comparison."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64
from recometer.comparing.kinds import Options
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import Correction, PairRow, p_text, pair_name
from recometer.data.ids import are_pairs
from recometer.errors import argument_text, python_or_command, quantity, rule_text
from recometer.stats import Tukey
from recometer.stats.ends import METHODS as INTERVALS
from recometer.stats.tests import OTHERS, TESTS

NUMBERED = re.compile(r"([\d,]*)(.*)", re.DOTALL)
MOST = 4  # lists with more entries are shortened
FEW = 0.02  # up to this share, unknown rows and users unknown to all models are not mentioned
METHODS = {
    "binomial": "exactly (binomial)",
    "convolution": "exactly (convolution)",
    "enumeration": "exactly (enumeration)",
    "saddlepoint": "by saddlepoint approximation",
    "student": "from Student's t distribution",
    "normal": "from the normal distribution",
    "gaffke": "from Gaffke's bound",
}
CORRECTIONS: dict[str, str] = {
    "holm": "by Holm's method",
    "benjamini-hochberg": "by Benjamini and Hochberg's method (rate of false discoveries)",
    "bonferroni": "by Bonferroni's method",
    "none": "not at all",
    "tukey": "by Tukey's test of all models by randomisation, times the number of metrics,",
}
WITHHELD = "Without the adjustment of p for the number of comparisons, a difference would be shown."


def on_methods(rows: Sequence[PairRow], options: Options) -> list[str]:
    """Say how p-values and intervals were computed, for rows that have a p."""
    sentences = {**OTHERS, **{name: test.sentence for name, test in TESTS.items()}}
    notes = []
    for test in dict.fromkeys(row.test.test for row in rows):
        of_test = [row for row in rows if row.test.test == test]
        methods = _grouped(of_test, lambda row: METHODS.get(row.test.method, row.test.method))
        notes.append(f"p: {sentences[test]}: {'; '.join(methods)}.")
    methods = _grouped(rows, lambda row: INTERVALS.get(row.interval.method, ""))
    if methods:
        notes.append(f"Intervals of differences ({options.confidence:.0%}): {'; '.join(methods)}.")
    methods = _grouped(rows, lambda row: INTERVALS.get(row.relative_interval.method, ""))
    if methods:
        notes.append(
            "relative: ratio of the means over users, minus 1 (not a mean of ratios); its "
            f"interval: {'; '.join(methods)}."
        )
    return notes


def on_correction(
    rows: Sequence[PairRow], primary: Sequence[str], chosen: bool, correction: Correction
) -> list[str]:
    """Say how p is adjusted, and for which comparisons."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    tested = [row for row in rows if row.primary and row.test.method != "none"]
    n_pairs = len({(row.model, row.other) for row in rows if row.primary})
    over = quantity(len(tested), "comparison")
    of = f"{quantity(len(primary), 'metric')}, {quantity(n_pairs, 'pair')} of models"
    text = f"adjusted p: {CORRECTIONS[correction]} over {over} ({of})."
    if not chosen and len(metrics) > 1:
        text += (
            f" All metrics are primary. Hint: {argument_text('primary')} selects the one "
            "that decides."
        )
    elif len(primary) < len(metrics):
        text += f" Primary: {', '.join(primary)}; p-values of other metrics are exploratory."
    return [text]


def on_tukey(tests: Mapping[str, Tukey], metrics: Sequence[str], options: Options) -> list[str]:
    """Say, for each metric, how large a difference must be to be significant by Tukey's test."""
    return [
        f"Tukey's test of {metric} ({test.method}): on the {test.n:,} users with a value from "
        f"every model, a difference of {test.critical_difference:.4f} between means is significant "
        f"at the level {options.alpha:g}."
        for metric, test in tests.items()
        if metric in metrics
    ]


def on_smallest_p(row: PairRow, limit: float, n_tests: int) -> str:
    """Say that a comparison could not have been significant, because so few users differ."""
    differ = f"{row.test.n_differ:,} {'user differs' if row.test.n_differ == 1 else 'users differ'}"
    corrected = ""
    if limit > row.test.smallest_p:
        corrected = f" (or below {p_text(limit)} after correction for {n_tests} comparisons)"
    return (
        f"{differ}: p cannot fall below {p_text(row.test.smallest_p)}"
        f"{corrected}, so no difference can be detected here."
    )


def on_sessions(users: Users, options: Options) -> list[str]:
    """If there are sessions, say whether tests treat every session as independent."""
    if not are_pairs(users.ids):
        return []
    over = "every session is treated as independent"
    if options.clusters is not None:
        n_clusters = len(np.unique(options.clusters))
        over = f"tests and intervals are based on their {n_clusters:,} clusters"
    return [f"{users.n:,} sessions of users: {over}."]


def on_seeds(models: Sequence[Model]) -> list[str]:
    """Say how many runs the models have."""
    single = ", ".join(model.name for model in models if len(model.runs) == 1)
    several = [f"{model.name} {len(model.runs)}" for model in models if len(model.runs) > 1]
    if not several:
        return [
            "There is one evaluation per model, so the intervals do not include the variation "
            "between training seeds."
        ]
    notes = [f"Seeds: {', '.join(several)}."]
    if single:
        notes.append(f"Only one seed: {single}. The variance between its seeds is unknown.")
    return notes


def on_runs(rows: Sequence[PairRow]) -> list[str]:
    """Say how much of the variance is due to seeds and folds."""
    notes = []
    for row in rows:
        if row.runs is None:
            continue
        runs = row.runs
        share = f"{runs.share_of_runs:.0%} of the variance of the difference"
        if row.test.test == "random effects":
            notes.append(f"{_pair(row)}: seeds make up {share}.")
        else:
            low, high = runs.interval
            notes.append(
                f"{_pair(row)}: over {runs.n_runs[0]} folds the difference is {runs.mean:+.4f}, "
                f"{low:+.4f} to {high:+.4f}, p {p_text(runs.p_value)} (random effects: folds are "
                "treated as a sample, too)."
            )
    return notes


def on_power(rows: Sequence[PairRow]) -> list[str]:
    """Say how large a true difference these users would reveal, with one line per metric."""
    notes = []
    for metric in dict.fromkeys(row.metric for row in rows):
        pairs = [row for row in rows if row.metric == metric and row.smallest_difference > 0]
        pairs = [row for row in pairs if row.primary] or pairs  # excluding comparisons with chance
        if not pairs:
            continue
        counts = sorted({row.test.n for row in pairs})
        n = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        users = f"{n} {'users' if all(row.test.n == row.n for row in pairs) else 'clusters'}"
        all_sizes = [row.smallest_difference for row in pairs]
        possible = [row.smallest_difference <= row.largest_difference for row in pairs]
        sizes = list(itertools.compress(all_sizes, possible))
        if not sizes:
            size = f"no difference that is possible in {metric} would be found with 80 % power"
            notes.append(f"Power: with {users}, {size}.")
            continue
        size = f"{min(sizes):.4f}"
        if not all(possible):
            size = f"{size} or more (depending on the pair; some pairs cannot differ by enough)"
        elif f"{max(sizes):.4f}" != size:
            size = f"{size} to {max(sizes):.4f} (depending on the pair)"
        seeds = any(row.test.test == "random effects" for row in pairs)
        exception = ", apart from the variance between seeds" if seeds else ""
        notes.append(
            f"Power: with {users}, a true difference of {size} in {metric} would be found with "
            f"80 % power{exception}."
        )
    return notes


def on_rows(rows: Sequence[PairRow]) -> list[str]:
    """Return each note of the rows once, preceded by the names of the rows that have it.

    Notes that differ only in their leading number are merged, as in "4 to 27 users differ".
    """
    of_note: dict[str, list[tuple[str, PairRow]]] = {}
    for row in rows:
        for note in row.notes:
            number, text = NUMBERED.fullmatch(note).groups()  # type: ignore[union-attr]
            of_note.setdefault(text, []).append((number, row))
    notes = []
    for text, entries in of_note.items():
        numbers = sorted({count for count, _ in entries}, key=lambda count: (len(count), count))
        number = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        notes.append(f"{_scope([row for _, row in entries], rows)}: {number}{text}")
    return notes


def on_standings(n_users: Iterable[int], options: Options, correction: Correction) -> list[str]:
    """Say what the signs and ranks of the leaderboard are based on.

    `n_users` contains the number of users behind each mean, for metrics with a value per user.
    """
    counts = sorted(set(n_users))
    users = f"{' or '.join(f'{n:,}' for n in counts)} user{'s' if counts != [1] else ''}"
    means = f"The means are over the {users} with a value from every model. " if counts else ""
    basis = "paired tests of all pairs, adjusted by Holm's method"
    if not options.paired:
        means = "Each mean is over the users of its own group. "
        basis = basis.replace("paired", "Welch's")
    if correction == "tukey":
        basis = "Tukey's test of all models by randomisation"
    return [
        f"{means}The marks and the ranks are based on {basis} ({options.confidence:.0%} for all "
        "ranks of a metric at once; Mogstad et al. 2024)."
    ]


def on_undefined(rows: Sequence[PairRow]) -> str:
    """Say how many users have a value from only one of two models; return "" if there are none."""
    affected = [row for row in rows if row.n_only_model + row.n_only_other]
    parts = [
        f"{_pair(row)}: {quantity(row.n_only_model, 'user')} with {row.model} alone, "
        f"{row.n_only_other:,} with {row.other} alone"
        for row in affected[:MOST]
    ]
    if not parts:
        return ""
    more = f"; and {len(affected) - MOST} more" if len(affected) > MOST else ""
    return (
        "Users with a value from only one of two models are left out "
        f"({'; '.join(parts)}{more}), which can favour a model. Hint: evaluate with "
        f"{rule_text('undefined', 0)} and {rule_text('constant_scores', 'ties')} to count them, if "
        "that is right for your purpose."
    )


def _pair(row: PairRow) -> str:
    return f"{row.metric}, {pair_name(row.model, row.other)}"


def _scope(subset: Sequence[PairRow], rows: Sequence[PairRow]) -> str:
    """Name the rows in `subset`. If they include all pairs of a metric, name the metric instead."""
    metrics = list(dict.fromkeys(row.metric for row in subset))
    n_of = {metric: sum(row.metric == metric for row in rows) for metric in metrics}
    if len(subset) == len(rows):
        return "All comparisons" if len(rows) > 1 else _pair(rows[0])
    if len(subset) == sum(n_of.values()):
        return _shortened(metrics)
    return _shortened([_pair(row) for row in subset], 1)


def _grouped(rows: Sequence[PairRow], method: Callable[[PairRow], str]) -> list[str]:
    """Return each method that `method` names, followed by its rows if there are several methods."""
    by_method: dict[str, list[PairRow]] = {}
    for row in rows:
        if method(row):
            by_method.setdefault(method(row), []).append(row)
    if len(by_method) == 1:
        return list(by_method)
    return [f"{name} ({_scope(own_rows, rows)})" for name, own_rows in by_method.items()]


def _shortened(names: Sequence[str], shown: int = MOST) -> str:
    """Return all names if there are few, otherwise the first ones and the number of the rest."""
    if len(names) <= MOST:
        return "; ".join(names)
    return f"{'; '.join(names[:shown])}; and {len(names) - shown} more"


def on_known_users(
    models: Sequence[Model], users: Users, metrics: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Say how many users and relevant rows each model does not know, and what difference it makes.

    Most users that a model does not know are new. A model that learns from a user's training items
    has no list for a new user, and therefore usually the value 0, whereas a list of popular items
    has a positive value. There are no sentences about users if all models know every user who
    counts, or if the same few users are unknown to all of them. A user counts if all models have a
    value for the user on at least one of the metrics.

    Returns
    -------
    sentences
        The numbers of unknown users and rows, and the means without these users.
    warning
        The sentences, followed by a hint, if two models change places when only the users known to
        all models count; otherwise empty.
    """
    models = [model for model in models if not model.by_chance]
    names, first = [model.name for model in models], models[0].first
    known = np.column_stack([users.known_to(model) for model in models])
    sentences, changes = [], False
    if not known.all():
        by_all: Bool = np.logical_and.reduce(known, axis=1)
        counts = np.zeros(len(known), bool)
        for metric in metrics:
            if metric in first.together:
                continue
            table = np.column_stack([users.values(model, metric) for model in models])
            valued = ~np.isnan(table).any(axis=1)
            counts |= valued
            sign = -1 if first.known_metric(metric).definition.higher_is_better else 1
            sentence, order_differs = _on_means(metric, names, table[valued], by_all[valued], sign)
            sentences.append(sentence)
            changes |= order_differs
        counted, n = known[counts], int(np.count_nonzero(counts))
        unknown = dict(zip(names, (n - np.count_nonzero(counted, axis=0)).tolist(), strict=True))
        if (counted == counted[:, :1]).all() and max(unknown.values()) <= FEW * n:
            sentences, changes = [], False
        else:
            sentences = [f"{_shares(unknown, n, 'users')}.", *sentences]
    n_rows = int(first.n_relevant.sum())
    rows = {model.name: model.first.counts.get("relevant_unranked", 0) for model in models}
    # Rows unknown to all models favour no model.
    if len(set(rows.values())) > 1 and max(rows.values()) > FEW * n_rows:
        sentences.append(f"{_shares(rows, n_rows, 'relevant test rows')}.")
    if not changes:
        return tuple(sentences), ""
    call = python_or_command("in evaluate", "of recometer evaluate")
    hint = (
        f"Hint: {rule_text('cold_start', False)} {call} leaves out users without training items, "
        f"and {python_or_command('result.by', '--by')} shows groups; see the page 'New users and "
        "new items'."
    )
    return tuple(sentences), " ".join((*sentences, hint))


def _on_means(
    metric: str, names: Sequence[str], table: Float64, by_all: Bool, sign: int
) -> tuple[str, bool]:
    """State the means over the users known to all models, and return whether the order changes."""
    n, n_known = len(table), int(np.count_nonzero(by_all))
    if not n_known:
        return (
            f"No user who is known to all models has a value of {metric} from each of them.",
            False,
        )
    means, known_means = ragged.column_sums(table) / n, ragged.column_sums(table[by_all]) / n_known
    texts = [
        ", ".join(f"{names[i]} {values[i]:.4f}" for i in np.argsort(sign * values, kind="stable"))
        for values in (means, known_means)
    ]
    sentence = f"{metric} over the {n_known:,} users known to all models: {texts[1]}."
    pairs = itertools.combinations(range(len(names)), 2)
    if not any((means[a] - means[b]) * (known_means[a] - known_means[b]) < 0 for a, b in pairs):
        return sentence, False
    return (
        f"{sentence} Over all {n:,} users, the order is different ({texts[0]}), because the means "
        "also depend on how many users each model knows."
    ), True


def _shares(unknown: Mapping[str, int], n: int, noun: str) -> str:
    """Return how many of n users or rows each model does not know, largest number first."""
    by_count: dict[int, list[str]] = {}
    for name, count in unknown.items():
        by_count.setdefault(count, []).append(name)
    parts: list[str] = []
    for count in sorted(by_count, reverse=True):
        names = ", ".join(by_count[count])
        if not parts:
            parts.append(f"{count:,} of {n:,} {noun} ({count / n:.1%}) are unknown to {names}")
        else:
            parts.append(f"{count:,} ({count / n:.1%}) to {names}" if count else f"none to {names}")
    return "; ".join(parts)
