"""Every rating metric obeys the laws of `recometer.testing`; wrongly declared metrics do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, settings

from recometer.metrics import METRICS, metric, reading
from recometer.testing import RATING_LAWS, at_cutoffs, check_laws

EVERY = [variant for name in reading("ratings") for variant in at_cutoffs(name, 1, 2, 4, 9)]


@pytest.mark.parametrize("law", RATING_LAWS, ids=lambda law: law.__name__)
def test_rating_metrics_obey_the_law(law):
    law(EVERY)


def largest_error(predictions, cutoffs):
    """Return the largest error in each user's rows."""
    error = np.zeros(predictions.n_users)
    np.maximum.at(error, predictions.user, np.abs(predictions.predicted - predictions.actual))
    return np.repeat(error[:, np.newaxis], len(cutoffs), axis=1)


def largest_of_all(predictions, cutoffs):
    """Return the largest error of all users as every user's value, which breaks a law."""
    largest = largest_error(predictions, cutoffs)
    return np.full_like(largest, largest.max(initial=0))


@pytest.fixture
def unshrunk():
    """Disable shrinking of counterexamples, which would take too long."""
    settings.register_profile("before", settings.default)
    settings.register_profile("unshrunk", settings.default, phases=[Phase.generate])
    settings.load_profile("unshrunk")
    yield
    settings.load_profile("before")


@pytest.mark.parametrize(
    ("function", "facts", "broken"),
    [
        (largest_error, {}, None),
        (largest_error, {"higher_is_better": True}, "true_ratings_are_the_best_predictions"),
        (largest_error, {"upper": 1}, "formulas_leave_the_range_by_rounding_only"),
        (largest_of_all, {}, "a_user_does_not_depend_on_the_others"),
    ],
)
@pytest.mark.usefixtures("unshrunk")
def test_laws_detect_wrong_declarations_of_a_custom_metric(function, facts, broken):
    name = function.__name__
    declared = {"cutoff": "none", "reads": "gain", "monotone": False} | facts
    declared = {"upper": math.inf, "higher_is_better": False} | declared
    metric(formula="max of abs(predicted - true)", record="ratings", **declared)(function)
    try:
        if broken is None:
            check_laws(name)
        else:
            with pytest.raises(AssertionError, match=name) as raised:
                check_laws(name)
            assert broken in [entry.name for entry in raised.traceback]
    finally:
        del METRICS[name]
