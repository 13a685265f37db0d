"""Adjust p-values for the number of comparisons."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from recometer import stats
from recometer.comparing.kinds import Options
from recometer.comparing.models import Model
from recometer.comparing.rows import PairRow, p_text
from recometer.errors import InputError, UnknownNameError, argument_text, did_you_mean
from recometer.stats import Tukey, several
from recometer.stats.planning import smallest_difference

Correction = several.Correction | Literal["tukey"]
KNOWN: tuple[str, ...] = (*get_args(several.Correction), "tukey")
POWER_WANTED = 0.8  # the power at which the smallest detectable difference is reported
WITHHELD = "Only the adjustment of p for the number of comparisons withholds a difference."


def check_correction(
    correction: str,
    test: str,
    models: Sequence[Model],
    primary: Sequence[str],
    together: Container[str],
) -> None:
    """Refuse a correction that does not exist, or that is impossible for these models and metrics.

    `together` are the metrics that have one value for all users.
    """
    if correction not in KNOWN:
        hint = did_you_mean(str(correction), KNOWN)
        raise UnknownNameError(f"There is no correction {correction!r}. {hint}")
    if correction != "tukey":
        return
    if test != "randomisation":
        raise InputError(
            f"{argument_text('correction', 'tukey')} is a test by randomisation, and does not go "
            f"with {argument_text('test', test)}. Hint: {argument_text('correction', 'holm')}."
        )
    seeds = next((model.name for model in models if model.n_seeds > 1), None)
    if seeds is not None:
        raise InputError(
            f"{argument_text('correction', 'tukey')} shuffles the models of each user and ignores "
            f"the variance between seeds, but {seeds} has several. Hint: "
            f"{argument_text('correction', 'holm')}."
        )
    whole = [name for name in primary if name in together]
    if whole:
        others = [name for name in primary if name not in whole]
        raise InputError(
            f"{argument_text('correction', 'tukey')} shuffles the values of each user, and "
            f"{', '.join(whole)} has one for all users. Hint: "
            f"{argument_text('primary', ' '.join(others) or 'ndcg@10')}."
        )


def adjusted(
    rows: Sequence[PairRow],
    primary: Sequence[str],
    correction: Correction,
    options: Options,
    tests: Mapping[str, Tukey],
    counted: Sequence[str],
) -> list[PairRow]:
    """Adjust p over the comparisons on primary metrics, and add the power at the adjusted level.

    Only comparisons of the models `counted` count. If the correction is Tukey's, `tests` has the
    result of Tukey's test for each metric.
    """
    own = np.array([row.metric in primary and {row.model, row.other} <= {*counted} for row in rows])
    p_values = np.array([row.p_value for row in rows])
    smallest = np.array([row.test.smallest_p for row in rows])
    p_values[~own] = np.nan
    smallest[np.isnan(p_values)] = np.nan
    n_tests = max(1, int(np.count_nonzero(~np.isnan(p_values))))
    if correction == "tukey":
        # Each metric has a test of its own, and the adjusted p is at least the p of the pair.
        p_values = np.maximum(p_values, _by_tukey(rows, tests, counted))
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
            notes = (*notes, WITHHELD)
        size = _smallest_difference(row, alpha if is_primary else options.alpha)
        if limit > options.alpha and row.test.n_differ:
            notes = (_on_smallest_p(row, limit, n_tests), *notes)
            size = np.nan
        result.append(
            dataclasses.replace(
                row, notes=notes, primary=is_primary, adjusted_p=p, smallest_difference=size
            )
        )
    return result


def _on_smallest_p(row: PairRow, limit: float, n_tests: int) -> str:
    """Say that a comparison could not have been significant, because so few users differ."""
    differ = f"{row.test.n_differ:,} {'user differs' if row.test.n_differ == 1 else 'users differ'}"
    after = ""
    if limit > row.test.smallest_p:
        after = f"; after correction over {n_tests} comparisons not below {p_text(limit)}"
    return (
        f"{differ}: p cannot fall below {p_text(row.test.smallest_p)}"
        f"{after}, so that nothing here can be resolved."
    )


def on_tukey(tests: Mapping[str, Tukey], metrics: Sequence[str], options: Options) -> list[str]:
    """Return a note for each metric on the differences that are significant by Tukey's test."""
    return [
        f"Tukey's test of {metric} ({test.method}): on the {test.n:,} users with a value from all "
        f"models, a difference of {test.critical_difference:.4f} between means is significant at "
        f"the level {options.alpha:g}."
        for metric, test in tests.items()
        if metric in metrics
    ]


def _by_tukey(
    rows: Sequence[PairRow], tests: Mapping[str, Tukey], names: Sequence[str]
) -> np.ndarray:
    return np.array(
        [
            tests[row.metric].p_values[names.index(row.model), names.index(row.other)]
            if row.metric in tests and row.model in names and row.other in names
            else np.nan
            for row in rows
        ]
    )


def _smallest_difference(row: PairRow, alpha: float) -> float:
    # `recometer.stats.power` does not know the power of Gaffke's bound.
    if not row.error > 0 or row.test.test == "gaffke" or alpha >= POWER_WANTED:
        return np.nan
    n = row.test.n  # users or clusters
    return smallest_difference(
        row.error * np.sqrt(n), n, wanted=POWER_WANTED, alpha=alpha, unit=row.unit
    )
