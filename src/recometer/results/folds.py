"""Pool the evaluations of several folds into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recometer.arrays import Array, Float64, Int64, UInt8, mean_of
from recometer.data.ids import encode, match
from recometer.results.evaluation import EvaluationRecord
from recometer.stats.ends import Interval

if TYPE_CHECKING:
    import polars as pl

Folded = TypeVar("Folded", bound="FoldedRecord")

ONE_EACH = (
    "There is no interval, because each fold has a single value and folds are not independent."
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FoldedRecord(EvaluationRecord):
    """The pooled evaluations of several folds; see `recometer.evaluation.FoldedEvaluation`."""

    folds: tuple[EvaluationRecord, ...] = ()

    def per_fold(self) -> pl.DataFrame:
        """Return a Polars frame with the columns ``fold``, ``users``, and the mean of each metric.

        ``users`` is the number of users with a relevant item.
        """
        import polars as pl

        users = [int(np.count_nonzero(fold.n_relevant)) for fold in self.folds]
        means = [fold.mean() for fold in self.folds]
        columns = {name: [mean[name] for mean in means] for name in means[0]}
        return pl.DataFrame({"fold": range(len(means)), "users": users, **columns})


def pool(folds: Sequence[EvaluationRecord], kind: type[Folded]) -> Folded:
    """Return the evaluation of all folds together; the folds must have the same metrics.

    `kind` is the class of the result.
    """
    first = folds[0]
    places, n_users, user_ids = _places(folds)

    def gather(name: str, start: int, combine: np.ufunc) -> Any:
        combined = np.full(n_users, start, getattr(first, name).dtype)
        for fold, place in zip(folds, places, strict=True):
            combined[place] = combine(combined[place], getattr(fold, name))
        return combined

    values, reasons = _values(folds, places, n_users, "values")
    chance = _values(folds, places, n_users, "chance")[0] if first.chance else {}
    names = [field.name for field in dataclasses.fields(EvaluationRecord) if field.init]
    fields = {name: getattr(first, name) for name in names}
    fields |= {
        "values": values,
        "reasons": reasons,
        "chance": chance,
        "user_ids": user_ids,
        "n_relevant": gather("n_relevant", 0, np.add),
        "n_candidates": gather("n_candidates", -1, np.maximum),
        "n_excluded": gather("n_excluded", -1, np.maximum),
        "depth": gather("depth", -1, np.maximum),
        "flags": gather("flags", 0, np.bitwise_or),
        "over_rows": means_of([fold.over_rows for fold in folds]),
        "negative_gains": any(fold.negative_gains for fold in folds),
        "binary_gains": all(fold.binary_gains for fold in folds),
        # Fields that are only meaningful for a single fold.
        **dict.fromkeys(("activity", "popularity")),
        **dict.fromkeys(("lists", "list_data", "rated", "inputs_kept")),
        "counts": dict(sorted(_added(fold.counts for fold in folds).items())),
        "timings": _added(fold.timings for fold in folds),
        "over_users": means_of([fold.over_users for fold in folds]),
        "inputs": {
            f"fold {number}: {name}": described
            for number, fold in enumerate(folds)
            for name, described in fold.inputs.items()
        },
        "folds": tuple(folds),
    }
    pooled = kind(**fields)
    # Folds are not independent, so metrics with one value per fold have no interval.
    unknown = Interval.unknown(first.protocol.confidence, pooled.n_users, ONE_EACH)
    pooled._intervals.update(dict.fromkeys(first.together, unknown))
    return pooled


def means_of(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each named value over the folds."""
    same = np.ones(len(values))
    return {name: mean_of(np.array([fold[name] for fold in values]), same) for name in values[0]}


def _added(numbers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the numbers with the same name; not every name occurs in every fold."""
    total: dict[str, Any] = {}
    for fold in numbers:
        for name, number in fold.items():
            total[name] = total.get(name, 0) + number
    return total


def _values(
    folds: Sequence[EvaluationRecord], places: Sequence[Int64], n_users: int, field: str
) -> tuple[dict[str, Float64], dict[str, UInt8]]:
    """Average each user's values over the folds where they are defined; also return the reasons."""
    first = folds[0]
    values: dict[str, Float64] = {}
    reasons: dict[str, UInt8] = {}
    for name in first.reasons:
        total, times = np.zeros(n_users), np.zeros(n_users)
        # If no fold defines the value, use the value and the reason of the last fold in which the
        # user has a relevant item, or else those of the first fold.
        fallback, reason = np.full(n_users, np.nan), np.zeros(n_users, np.uint8)
        for fold, place in zip(folds, places, strict=True):
            own_reason = fold.reasons[name]
            # Metrics with one value for all users have no values per user.
            column = getattr(fold, field).get(name, fallback[place])
            total[place] += np.where(own_reason == 0, column, 0.0)
            times[place] += own_reason == 0
            replaces = (own_reason != 0) & ((fold.n_relevant > 0) | (reason[place] == 0))
            fallback[place[replaces]] = column[replaces]
            reason[place[replaces]] = own_reason[replaces]
        reasons[name] = np.where(times > 0, 0, reason).astype(np.uint8)
        if name in getattr(first, field):
            values[name] = np.where(times > 0, total / np.maximum(times, 1), fallback)
    return values, reasons


def _places(folds: Sequence[EvaluationRecord]) -> tuple[list[Int64], int, Array | None]:
    """Return each fold's users as positions among all users; also count and list the latter."""
    user_ids = [fold.user_ids for fold in folds if fold.user_ids is not None]
    if not user_ids:
        n_users = max(fold.n_users for fold in folds)
        return [np.arange(fold.n_users) for fold in folds], n_users, None
    _, ids = encode(np.concatenate(user_ids), "user ids of the folds")
    noun = "user ids of a fold"
    return [match(own, ids, noun, "user ids of all folds") for own in user_ids], len(ids), ids
