"""Report and prune Optuna trials based on the confidence interval of a metric's mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from recometer.errors import InputError, need
from recometer.evaluation import Evaluation
from recometer.integrations._shared import wrong_type
from recometer.metrics.registry import Metric
from recometer.stats.checks import check_whole

if TYPE_CHECKING:
    import optuna

__all__ = ["IntervalPruner", "cautious", "report"]

# The trial attribute that stores the better end of the interval at each step.
HOPEFUL = "recometer: hopeful ends"


def cautious(result: Evaluation, metric: str | Metric) -> float:
    """Return the worse end of a mean's confidence interval; the true mean is probably better.

    If higher values are better, this is the lower end. Among many trials, the one with the best
    mean is often just lucky. If your objective returns this end instead of the mean, the search
    prefers models whose means are more certain.

    Returns
    -------
    float
        The end of the interval, or NaN if the mean is undefined.

    Raises
    ------
    InputError
        If the mean has no interval. The message says why it has none.
    InputTypeError
        If the result is not an evaluation.
    """
    return _ends(result, metric)[0]


def report(
    trial: optuna.Trial,
    result: Evaluation,
    metric: str | Metric,
    step: int,
    *,
    prune: bool = True,
) -> float:
    """Report the worse end of a metric's interval, and let the pruner stop the trial.

    Parameters
    ----------
    trial
    result
        The evaluation at this step, for instance after an epoch.
    metric
        A metric of the evaluation, with at most one cut-off.
    step
        The number of the step, as in ``trial.report``. Only the first report of a step counts.
    prune
        Whether to let the study's pruner stop the trial.

    Returns
    -------
    float
        The worse end, as in `cautious`. Your objective should return the value of the last step.

    Raises
    ------
    optuna.TrialPruned
        If the pruner stops the trial.
    InputError
        If there is no interval, if there are several cut-offs, if the study optimises in the
        opposite direction or in several directions, or if the step is not a whole number of at
        least 0.
    InputTypeError
        If `trial` is not a trial, or `result` is not an evaluation.
    MissingExtraError
        If Optuna is not installed.
    """
    optuna = need("optuna", "report", "optuna")
    check_whole("step", step, 0)
    if not hasattr(trial, "set_user_attr"):
        passed = "the trial that Optuna passes to the objective. Hint: study.optimize(objective)."
        raise wrong_type("trial", trial, passed)
    worse, better = _ends(result, metric)
    _check_direction(trial, result, metric)
    # Like Optuna, ignore repeated reports of a step.
    hopeful = {str(int(step)): better, **trial.user_attrs.get(HOPEFUL, {})}
    trial.set_user_attr(HOPEFUL, hopeful)
    trial.report(worse, int(step))
    if prune and trial.should_prune():
        raise optuna.TrialPruned(f"{metric} is {worse:.4f} to {better:.4f} at step {step}")
    return worse


class IntervalPruner:
    """A pruner for trials that use `report`; it stops those that are almost certainly worse.

    A trial is pruned if the better end of its interval is worse than the worse end of another
    trial's interval at the same step. Optuna's own pruners compare only the worse ends.

    Parameters
    ----------
    warmup_steps
        The first step at which trials may be pruned.

    Raises
    ------
    InputError
        If `warmup_steps` is not a whole number of at least 0.

    Notes
    -----
    Pass the pruner to ``optuna.create_study(pruner=IntervalPruner())``. The values of two models
    for the same users are usually correlated, so their difference is more certain than either mean.
    This pruner ignores the correlation, so it prunes late, but rarely wrongly.
    """

    def __init__(self, warmup_steps: int = 0) -> None:
        check_whole("warmup_steps", warmup_steps, 0)
        self.warmup_steps = warmup_steps

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Return whether to prune a trial."""
        step = trial.last_step
        if step is None or step < self.warmup_steps:
            return False
        hopeful = trial.user_attrs.get(HOPEFUL, {}).get(str(step))
        if hopeful is None:
            raise InputError(
                "IntervalPruner gets intervals only from recometer.integrations.optuna.report. "
                "Hint: report(trial, result, metric, step) instead of trial.report(value, step)."
            )
        if math.isnan(hopeful):
            return True
        values = [
            other.intermediate_values[step]
            for other in study.get_trials(deepcopy=False)
            if other.number != trial.number and step in other.intermediate_values
        ]
        sign = 1 if study.direction.name == "MAXIMIZE" else -1
        return any(sign * hopeful < sign * other for other in values)


def _ends(result: Evaluation, metric: str | Metric) -> tuple[float, float]:
    """Return the worse and the better end of the confidence interval of a metric's mean."""
    if not isinstance(result, Evaluation):
        expected = "an Evaluation. Hint: pass what rm.evaluate returned."
        raise wrong_type("The result", result, expected)
    parsed = result.known_metric(metric)
    interval = result.interval(parsed)
    if math.isnan(interval.low) and not math.isnan(result.mean()[str(parsed)]):
        raise InputError(f"The mean of {parsed} has no interval: {interval.note}")
    ends = interval.low, interval.high
    return ends if parsed.definition.higher_is_better else ends[::-1]


def _check_direction(trial: Any, result: Evaluation, metric: str | Metric) -> None:
    study = getattr(trial, "study", None)  # a FixedTrial has no study
    if study is None:
        return
    parsed = result.known_metric(metric)
    direction = "maximize" if parsed.definition.higher_is_better else "minimize"
    if len(study.directions) > 1:
        raise InputError(
            f"The study has {len(study.directions)} objectives, but Optuna prunes only trials with "
            "one. Hint: the objective may return cautious(result, metric) for several metrics."
        )
    if study.direction.name.lower() != direction:
        raise InputError(
            f"The study has the wrong direction for {parsed}. Hint: "
            f'optuna.create_study(direction="{direction}").'
        )
