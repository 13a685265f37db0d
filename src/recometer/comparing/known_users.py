"""Count the users and items that some models do not know, and compute means without these users."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64
from recometer.comparing.models import Model, Users
from recometer.errors import python_or_command, rule_text

FEW = 0.02  # up to this share, users unknown to all models and unknown rows are not mentioned
MOST = 4  # maximum number of metrics that a sentence names


def _hint() -> str:
    where = python_or_command("in evaluate", "of recometer evaluate")
    return (
        f"Hint: {rule_text('cold_start', False)} {where} leaves out users without training items, "
        f"and {python_or_command('result.by', '--by')} shows groups; see the page 'New users and "
        "new items'."
    )


@dataclasses.dataclass(frozen=True, eq=False)
class KnownMeans:
    """The means of one metric over all users, and over the users known to all models.

    Attributes
    ----------
    metric
        The name of the metric.
    n, n_known
        The number of users with a value from all models, and how many of them all models know.
    means, known
        The mean over all these users, and over those known to all models, by model and best first;
        NaN if there are no users.
    reversed
        Whether two models change places if only the users known to all models count.
    """

    metric: str
    n: int
    n_known: int
    means: Mapping[str, float]
    known: Mapping[str, float]
    reversed: bool


@dataclasses.dataclass(frozen=True, eq=False)
class KnownUsers:
    """Users who count in the means of a comparison, but are unknown to some models.

    Most such users are new. A model that learns from a user's training items has no list for
    them, and therefore usually the value 0, while a list of popular items has a positive value.

    Attributes
    ----------
    n
        The number of users who count.
    unknown : mapping of str to int
        For each model, how many of these users it does not know. Empty if all models know the same
        users, and nearly all of them.
    n_known
        The number of users known to all models.
    n_rows
        The number of relevant rows in the test data.
    unknown_rows : mapping of str to int
        For each model, how many of these rows have an item that it does not know. Empty if these
        rows are few, or equally many for all models.
    by_metric : tuple of KnownMeans
        The means on each metric with a value per user.
    """

    n: int
    unknown: Mapping[str, int]
    n_known: int
    n_rows: int
    unknown_rows: Mapping[str, int]
    by_metric: tuple[KnownMeans, ...]

    @property
    def reversed(self) -> tuple[KnownMeans, ...]:
        """The metrics on which models change places if only users known to all models count."""
        return tuple(one for one in self.by_metric if one.reversed)

    def sentences(self, metrics: Iterable[str]) -> list[str]:
        """Return how many users each model does not know, and the means without these users."""
        sentences = []
        if self.unknown:
            sentences.append(f"{_shares(self.unknown, self.n, 'users')}.")
            chosen = set(metrics)
            sentences += [self._on_means(each) for each in self.by_metric if each.metric in chosen]
            others = [each.metric for each in self.reversed if each.metric not in chosen]
            if others:
                more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
                sentences.append(f"The order also changes on {', '.join(others[:MOST])}{more}.")
        if self.unknown_rows:
            sentences.append(f"{_shares(self.unknown_rows, self.n_rows, 'relevant rows of test')}.")
        return sentences

    def warning(self) -> str:
        """Return a warning, or an empty string if no models change places without these users."""
        first = next(iter(self.reversed), None)
        if first is None:
            return ""
        return " ".join((*self.sentences([first.metric]), _hint()))

    def _on_means(self, one: KnownMeans) -> str:
        if not one.n_known:
            return f"No user has a value of {one.metric} from all models and is known to all."
        said = (
            f"{one.metric} over the {one.n_known:,} users known to all models: "
            f"{_values(one.known)}."
        )
        if not one.reversed:
            return said
        return (
            f"{said} Over all {one.n:,} users the order changes ({_values(one.means)}), because it "
            "also depends on how many users a model knows."
        )


def known_users(models: Sequence[Model], users: Users, metrics: Sequence[str]) -> KnownUsers | None:
    """Return how many users and items some models do not know.

    None if all models know all users who count, or if they lack the same few users. Random orders
    are left out. A user counts if all models have a value for the user on one of the metrics.
    """
    models = [model for model in models if not model.by_chance]
    names, first = [model.name for model in models], models[0].first
    n_rows = int(first.n_relevant.sum())
    rows = {model.name: model.first.counts.get("relevant_unranked", 0) for model in models}
    if len(set(rows.values())) < 2 or max(rows.values()) <= FEW * n_rows:
        rows = {}  # rows unknown to all models favour no model
    by_rows = KnownUsers(0, {}, 0, n_rows, rows, ()) if rows else None
    known = np.column_stack([users.known(model) for model in models])
    if known.all():
        return by_rows
    by_all: Bool = np.logical_and.reduce(known, axis=1)
    counts, means = np.zeros(len(known), bool), []
    for name in metrics:
        if name in first.together:
            continue
        table = np.column_stack([users.values(model, name) for model in models])
        valued = ~np.isnan(table).any(axis=1)
        counts |= valued
        higher = first.known_metric(name).definition.higher_is_better
        means.append(_means(name, names, table[valued], by_all[valued], higher))
    counted, n = known[counts], int(np.count_nonzero(counts))
    unknown = dict(zip(names, (n - np.count_nonzero(counted, axis=0)).tolist(), strict=True))
    if (counted == counted[:, :1]).all() and max(unknown.values()) <= FEW * n:
        return by_rows
    return KnownUsers(
        n, unknown, int(np.count_nonzero(by_all & counts)), n_rows, rows, tuple(means)
    )


def _means(
    metric: str, names: Sequence[str], table: Float64, by_all: Bool, higher: bool
) -> KnownMeans:
    """Return the means over all rows of a table, and over the rows of users known to all models."""
    means, known = _mean(table), _mean(table[by_all])
    turned = any(
        (means[one] - means[two]) * (known[one] - known[two]) < 0
        for one, two in itertools.combinations(range(len(names)), 2)
    )
    by_model, by_model_known = (
        {names[at]: float(each[at]) for at in np.argsort(-each if higher else each, kind="stable")}
        for each in (means, known)
    )
    n_known = int(np.count_nonzero(by_all))
    return KnownMeans(metric, len(table), n_known, by_model, by_model_known, turned)


def _mean(table: Float64) -> Float64:
    if not len(table):
        return np.full(table.shape[1], np.nan)
    return ragged.column_sums(table) / len(table)


def _shares(unknown: Mapping[str, int], n: int, what: str) -> str:
    """Return how many of n users or rows are unknown to which models, largest number first."""
    by_count: dict[int, list[str]] = {}
    for name, count in unknown.items():
        by_count.setdefault(count, []).append(name)
    parts: list[str] = []
    for count in sorted(by_count, reverse=True):
        names = ", ".join(by_count[count])
        if not parts:
            parts.append(f"{count:,} of {n:,} {what} ({count / n:.1%}) are unknown to {names}")
        else:
            parts.append(f"{count:,} ({count / n:.1%}) to {names}" if count else f"none to {names}")
    return "; ".join(parts)


def _values(means: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
