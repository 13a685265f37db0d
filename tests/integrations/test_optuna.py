"""Optuna searches optimise the worse end of a confidence interval, and prune trials based on it."""

from __future__ import annotations

import numpy as np
import pytest
from results import evaluation

import recometer as rm
from recometer import InputError
from recometer.integrations.optuna import IntervalPruner, cautious, report

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

GENERATOR = np.random.default_rng(0)
TEST = GENERATOR.random((300, 60)) < 0.1
NOISE = GENERATOR.random((300, 60))
EVALUATOR = rm.Evaluator(TEST, metrics="ndcg@10 mean_rank coverage@5", catalogue=60)


def evaluate_epoch(quality, epoch):
    """Evaluate a model that improves from epoch to epoch."""
    return EVALUATOR(rm.Scores(NOISE + quality * (epoch + 1) / 4 * TEST))


def search(optuna, metric, direction, pruner, n_trials=12):
    """Run a study; return the study and each trial's evaluations."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    results = {}

    def objective(trial):
        quality = trial.suggest_float("quality", 0, 0.6)
        for epoch in range(4):
            result = evaluate_epoch(quality, epoch)
            results.setdefault(trial.number, []).append(result)
            value = report(trial, result, metric, epoch)
        return value

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction=direction, pruner=pruner, sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study, results


@pytest.mark.parametrize(
    ("metric", "direction", "end"),
    [("ndcg@10", "maximize", "low"), ("mean_rank", "minimize", "high")],
)
def test_worse_end_is_reported_and_certainly_worse_trials_are_pruned(
    optuna, metric, direction, end
):
    study, results = search(optuna, metric, direction, IntervalPruner(1))
    states = [trial.state.name for trial in study.trials]
    assert {"PRUNED", "COMPLETE"} == set(states)
    for trial in study.trials:
        expected = [
            getattr(evaluation_of_step.interval(metric), end)
            for evaluation_of_step in results[trial.number]
        ]
        assert list(trial.intermediate_values.values()) == expected
    best = max(study.trials, key=lambda trial: trial.params["quality"])
    assert study.best_trial.number == best.number
    for trial in study.trials:
        step = trial.last_step
        interval = results[trial.number][-1].interval(metric)
        before = [
            results[other_trial][step].interval(metric)
            for other_trial in range(trial.number)
            if len(results[other_trial]) > step
        ]
        higher = direction == "maximize"
        worse = [
            interval.high < other_interval.low if higher else interval.low > other_interval.high
            for other_interval in before
        ]
        assert any(worse) == (trial.state.name == "PRUNED")
        assert step >= 1


def test_optunas_own_pruners_prune_by_the_reported_end(optuna):
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0)
    study, _ = search(optuna, "ndcg@10", "maximize", pruner)
    assert sum(trial.state.name == "PRUNED" for trial in study.trials) > 2
    assert study.best_value == cautious(evaluate_epoch(study.best_params["quality"], 3), "ndcg@10")


def test_all_trials_end_without_pruning(optuna):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", pruner=IntervalPruner())

    def objective(trial):
        return report(trial, evaluate_epoch(0.5 / (trial.number + 1), 0), "ndcg@10", 0, prune=False)

    study.optimize(objective, n_trials=3)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3


def test_study_with_the_wrong_direction_is_rejected(optuna):
    study = optuna.create_study(direction="minimize")
    with pytest.raises(InputError, match='direction="maximize"'):
        report(study.ask(), evaluate_epoch(0.5, 0), "ndcg@10", 0)


def test_report_on_a_fixed_trial_returns_the_lower_end(optuna):
    result = evaluate_epoch(0.5, 0)
    trial = optuna.trial.FixedTrial({"quality": 0.5})
    assert report(trial, result, "ndcg@10", 0) == result.interval("ndcg@10").low


def test_values_reported_without_an_interval_are_rejected(optuna):
    study = optuna.create_study(direction="maximize", pruner=IntervalPruner())
    trial = study.ask()
    trial.report(0.5, 0)
    with pytest.raises(InputError, match="Hint: report"):
        trial.should_prune()


def test_trial_with_an_undefined_value_is_pruned(optuna):
    study = optuna.create_study(direction="maximize", pruner=IntervalPruner())
    undefined = evaluation({"ndcg@10": [np.nan, np.nan]})
    with pytest.raises(optuna.TrialPruned):
        report(study.ask(), undefined, "ndcg@10", 0)


def test_metric_without_an_interval_is_refused(optuna):
    single_user = evaluation({"ndcg@10": [0.5]}, protocol=rm.Protocol(interval="t"))
    with pytest.raises(InputError, match="has no interval"):
        cautious(single_user, "ndcg@10")


def test_invalid_trials_and_steps_are_rejected(optuna):
    result = evaluate_epoch(0.5, 0)
    study = optuna.create_study(direction="maximize")
    for step in (-1, 1.5, True, None, "one"):
        with pytest.raises(InputError, match=f"step={step!r} must be a whole number, at least 0"):
            report(study.ask(), result, "ndcg@10", step)
    with pytest.raises(rm.InputTypeError, match="trial is of type NoneType"):
        report(None, result, "ndcg@10", 0)
    several = optuna.create_study(directions=["maximize", "minimize"])
    with pytest.raises(InputError, match="The study has 2 objectives"):
        report(several.ask(), result, "ndcg@10", 0)


@pytest.mark.filterwarnings("ignore:The reported value is ignored")
def test_first_of_two_reports_for_a_step_counts(optuna):
    study = optuna.create_study(direction="maximize", pruner=IntervalPruner())
    report(study.ask(), evaluate_epoch(0.3, 0), "ndcg@10", np.int64(0))
    trial = study.ask()
    assert report(trial, evaluate_epoch(0.3, 0), "ndcg@10", 0) > 0
    report(trial, evaluation({"ndcg@10": [0.0, 0.0, 0.0]}), "ndcg@10", 0)
