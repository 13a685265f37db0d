"""FoldedEvaluation: the evaluations of several folds, and all of them pooled."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Float64, Int64, UInt8
from recometer.data.ids import encode, match
from recometer.results.evaluation import Evaluation
from recometer.stats import Interval

if TYPE_CHECKING:
    import polars as pl


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FoldedEvaluation(Evaluation):
    """Several folds pooled: the value of a user is the mean over the folds that define it.

    Every user counts once, no matter how many folds test the user. Intervals of means are therefore
    over users, who are independent of each other, whereas folds are not. Numbers of relevant items
    are added up over folds; for other numbers of a user, the largest is kept. A metric of all users
    together is the mean over folds. `save` stores the pooled values.

    Attributes
    ----------
    folds : tuple of Evaluation
        The evaluation of each fold.
    """

    folds: tuple[Evaluation, ...] = ()

    def per_fold(self) -> pl.DataFrame:
        """Return a Polars frame: the columns ``fold`` and ``users``, and each metric's mean.

        ``users`` is the number of users with a relevant item.
        """
        users = [int(np.count_nonzero(fold.n_relevant)) for fold in self.folds]
        return per_fold([fold.mean() for fold in self.folds], users)


def per_fold(means: Sequence[Mapping[str, float]], users: Sequence[int]) -> pl.DataFrame:
    """Return the frame of `FoldedEvaluation.per_fold`."""
    import polars as pl

    columns = {name: [mean[name] for mean in means] for name in means[0]}
    return pl.DataFrame({"fold": range(len(means)), "users": users, **columns})


def pool(folds: Sequence[Evaluation]) -> FoldedEvaluation:
    """Return the evaluation of all folds together; the folds have the same metrics."""
    first = folds[0]
    places, n_users, user_ids = _places(folds)

    def gather(name: str, start: int, combine: np.ufunc) -> Any:
        combined = np.full(n_users, start, getattr(first, name).dtype)
        for fold, place in zip(folds, places, strict=True):
            combined[place] = combine(combined[place], getattr(fold, name))
        return combined

    values, reasons = _values(folds, places, n_users, "values")
    chance = _values(folds, places, n_users, "chance")[0] if first.chance else {}
    counts: dict[str, int] = {}
    timings: dict[str, float] = {}
    for fold in folds:
        for key, number in fold.counts.items():
            counts[key] = counts.get(key, 0) + number
        for key, seconds in fold.timings.items():
            timings[key] = timings.get(key, 0.0) + seconds
    given = {field.name: getattr(first, field.name) for field in dataclasses.fields(Evaluation)}
    given.pop("_intervals")
    given |= {
        "values": values,
        "reasons": reasons,
        "chance": chance,
        "user_ids": user_ids,
        "n_relevant": gather("n_relevant", 0, np.add),
        "n_candidates": gather("n_candidates", -1, np.maximum),
        "n_excluded": gather("n_excluded", -1, np.maximum),
        "depth": gather("depth", -1, np.maximum),
        "flags": gather("flags", 0, np.bitwise_or),
        "counts": counts,
        "timings": timings,
        "inputs": {
            f"fold {number}: {name}": described
            for number, fold in enumerate(folds)
            for name, described in fold.inputs.items()
        },
        "over_users": {
            name: float(np.mean([fold.over_users[name] for fold in folds]))
            for name in first.over_users
        },
        "over_rows": {
            name: float(np.mean([fold.over_rows[name] for fold in folds]))
            for name in first.over_rows
        },
        "negative_gains": any(fold.negative_gains for fold in folds),
        "binary_gains": all(fold.binary_gains for fold in folds),
        # What only a single fold has.
        **dict.fromkeys(("activity", "popularity", "by_popularity", "users_read")),
        **dict.fromkeys(("lists", "list_data", "rated", "inputs_kept")),
        "folds": tuple(folds),
    }
    pooled = FoldedEvaluation(**given)
    # Folds are not independent: what is one value for all users of a fold has no interval.
    note = "One value per fold, and folds are not independent: it has no interval."
    unknown = Interval.unknown(first.protocol.confidence, pooled.n_users, note)
    pooled._intervals.update(dict.fromkeys(first.together, unknown))
    return pooled


def _values(
    folds: Sequence[Evaluation], places: Sequence[Int64], n_users: int, field: str
) -> tuple[dict[str, Float64], dict[str, UInt8]]:
    """Return the mean over the folds that define a user's value, and why none does."""
    first = folds[0]
    values: dict[str, Float64] = {}
    reasons: dict[str, UInt8] = {}
    for name in first.reasons:
        total, times = np.zeros(n_users), np.zeros(n_users)
        # Where no fold defines it: what it counts as, and why, in the last fold that says most.
        instead, reason = np.full(n_users, np.nan), np.zeros(n_users, np.uint8)
        for fold, place in zip(folds, places, strict=True):
            why = fold.reasons[name]
            # With one value for all users, none is theirs.
            column = getattr(fold, field).get(name, instead[place])
            total[place] += np.where(why == 0, column, 0.0)
            times[place] += why == 0
            says_more = (why != 0) & ((fold.n_relevant > 0) | (reason[place] == 0))
            instead[place[says_more]] = column[says_more]
            reason[place[says_more]] = why[says_more]
        reasons[name] = np.where(times > 0, 0, reason).astype(np.uint8)
        if name in getattr(first, field):
            values[name] = np.where(times > 0, total / np.maximum(times, 1), instead)
    return values, reasons


def _places(folds: Sequence[Evaluation]) -> tuple[list[Int64], int, Array | None]:
    """Return where the users of each fold stand among all, how many there are, and their ids."""
    known = [fold.user_ids for fold in folds if fold.user_ids is not None]
    if not known:
        n_users = max(fold.n_users for fold in folds)
        return [np.arange(fold.n_users) for fold in folds], n_users, None
    _, ids = encode(np.concatenate(known), "user ids of the folds")
    what = "user ids of a fold"
    return [match(one, ids, what, "user ids of all folds") for one in known], len(ids), ids
