"""Tests that metrics are converted to flat names for experiment trackers, and back."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import evaluation

import recometer as rm
from recometer.errors import FileError, InputError
from recometer.evaluation import FoldedEvaluation
from recometer.metrics import METRICS, Metric, conventions
from recometer.results.flat import STATISTICS, FlatName
from recometer.results.folds import pool

# W&B can only sort and filter by names of this form; MLflow, TensorBoard and DVC accept more
# characters.
SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TEST = {"ann": ["song"], "bob": ["film"], "cat": ["book"]}
LISTS = {"ann": ["film", "song"], "bob": ["game", "book"]}


@st.composite
def variants(draw: st.DrawFn) -> str:
    """Draw a metric's name with some of its parameters and, if it takes one, a cut-off."""
    name = draw(st.sampled_from(sorted(METRICS)))
    parameters = {}
    for parameter in METRICS[name].parameters.values():
        if parameter.choices:
            values = st.sampled_from(sorted(parameter.choices))
        elif parameter.is_flag:
            values = st.booleans()
        else:
            low, high = max(parameter.above, 0.0), min(parameter.below, 1e30)
            values = st.floats(low, high, exclude_min=True, exclude_max=True)
        if draw(st.booleans()):
            parameters[parameter.name] = draw(values)
    cutoff = METRICS[name].with_parameters(METRICS[name].settled(parameters)).cutoff
    number = st.integers(1, 10**6)
    options = {"none": st.none(), "optional": st.none() | number, "required": number}
    return str(Metric(name, draw(options[cutoff]), parameters))


@examples(8)
@given(variants(), st.sampled_from(STATISTICS))
def test_every_metric_variant_has_a_safe_name_that_can_be_parsed(metric, statistic):
    name = str(FlatName(metric, statistic))
    assert SAFE.fullmatch(name)
    assert FlatName.read(name) == FlatName(metric, statistic)


LABELS = sorted(
    {
        re.sub(r"\[(.*?)\]", r"\1", entry.name).replace("{k}", "10").replace("{x}", "0.5")
        for convention in conventions.conventions()
        for entry in convention.entries
    }
)


def test_names_of_other_libraries_can_be_parsed():
    for label in LABELS:
        name = str(FlatName(label, "low"))
        assert SAFE.fullmatch(name)
        assert FlatName.read(name) == FlatName(label, "low")


# A strategy that draws strings of characters and words that occur in flat names.
LIKE_NAMES = st.lists(
    st.sampled_from([*"_@()=,-+. 5aÉx", "_at_", "_of_", "_low", "_x5f_", "_versus_", "with"])
).map("".join)
TEXTS = LIKE_NAMES | st.text()


@examples(8)
@given(TEXTS, st.sampled_from(STATISTICS), st.none() | TEXTS, st.none() | TEXTS)
def test_any_flat_name_can_be_parsed(metric, statistic, model, other_model):
    given_name = FlatName(metric, statistic, model, other_model if model is not None else None)
    name = str(given_name)
    assert re.fullmatch("[A-Za-z0-9_]*", name)
    assert FlatName.read(name) == given_name


@pytest.mark.parametrize("text", ["a_at", "a_x5f", "a_low", "a_", "a@", "5", "a_of", "a_p", ""])
def test_separators_and_strings_cannot_be_confused(text):
    for statistic in STATISTICS:
        for flat_name in (FlatName(text, statistic), FlatName("rr", statistic, text, text)):
            assert FlatName.read(str(flat_name)) == flat_name
        assert FlatName.read(str(FlatName(text, statistic, "1"))).metric == text


@examples(8)
@given(LIKE_NAMES)
def test_flat_names_are_parsed_exactly_or_refused(text):
    try:
        flat_name = FlatName.read(text)
    except InputError as error:
        assert "Hint" in str(error)  # noqa: PT017
    else:
        assert str(flat_name) == text


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("ndcg@10", "ndcg_at_10"),
        ("roc_auc", "roc_auc"),
        ("err@10(max_gain=4)", "err_at_10_with_max_gain_is_4"),
        ("rbp(p=0.95)", "rbp_with_p_is_0_95"),
        ("rr@10(all)", "rr_at_10_with_all"),
        ("f@5(beta=0.5,empty=undefined)", "f_at_5_with_beta_is_0_5_and_empty_is_undefined"),
        ("map_cut_5", "map_cut_5"),
    ],
)
def test_flat_names_are_readable(metric, name):
    assert str(FlatName(metric)) == name


@pytest.mark.parametrize(
    "name",
    ["ndcg@10", "val/ndcg_at_10", "_xffffff_", "a_versus_b", "a_of_b_of_c", "a_of_b_versus_c_of_d"],
)
def test_error_quotes_the_invalid_name(name):
    with pytest.raises(InputError, match=re.escape(repr(name))):
        FlatName.read(name)


def test_invalid_flat_names_cannot_be_constructed():
    with pytest.raises(InputError, match=r"no statistic 'lo'.*'low'"):
        FlatName("ndcg@10", "lo")
    with pytest.raises(InputError, match="model is missing"):
        FlatName("ndcg@10", other="als")


def test_flat_evaluation_contains_means_intervals_and_counts():
    result = rm.evaluate(rm.Lists(LISTS), TEST, metrics="rr recall@2 coverage@2", catalogue=4)
    flat = result.flat()
    for row in result.summary():
        for statistic in ("mean", "low", "high", "counted", "skipped"):
            value = flat.pop(str(FlatName(row.metric, statistic)))
            np.testing.assert_equal(value, getattr(row, statistic))
            assert type(value) is (int if statistic in ("counted", "skipped") else float)
    assert flat == {}


def test_flat_values_include_known_chance():
    scores = np.random.default_rng(0).random((5, 8))
    result = rm.evaluate(rm.Scores(scores), scores > 0.7, metrics="ndcg@3", chance=True)
    assert result.flat()["ndcg_at_3_chance"] == result.summary()[0].chance


def test_undefined_values_are_nan_in_python_and_null_in_json(tmp_path):
    result = evaluation({"ndcg@10": [np.nan, np.nan], "rr": [1.0, 0.5]})
    flat = result.flat(tmp_path / "metrics.json")
    assert np.isnan(flat["ndcg_at_10"])
    assert flat["ndcg_at_10_counted"] == 0
    saved = json.loads((tmp_path / "metrics.json").read_text())
    assert saved["ndcg_at_10"] is None
    assert saved == {name: None if np.isnan(value) else value for name, value in flat.items()}


def test_unwritable_file_is_reported(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        evaluation({"rr": [1.0, 0.5]}).flat(tmp_path / "missing" / "metrics.json")


def test_flat_values_of_folds_are_pooled():
    folds = [evaluation({"ndcg@10": [0.1, 0.5, 0.7]}), evaluation({"ndcg@10": [0.3, 0.5, 0.9]})]
    pooled = pool(folds, FoldedEvaluation)
    assert pooled.flat()["ndcg_at_10"] == pytest.approx(0.5)


def test_flat_comparison_contains_means_and_differences():
    rng = np.random.default_rng(0)
    test, noise = rng.random((40, 20)) < 0.2, rng.random((40, 20))
    better = rm.evaluate(rm.Scores(noise + 0.4 * test), test, metrics="ndcg@10 coverage@5")
    worse = rm.evaluate(rm.Scores(noise), test, metrics="ndcg@10 coverage@5")
    versus = rm.compare({"als 2": better, "bpr": worse}, baseline="bpr")
    flat = versus.flat()
    row = versus.row("ndcg@10", "als 2", "bpr")
    name = "ndcg_at_10_of_als_space_2_versus_bpr"
    assert flat[name] == row.difference
    assert [flat[f"{name}_{end}"] for end in ("low", "high")] == [row.low, row.high]
    assert flat[f"{name}_p_value"] == row.p_value
    assert flat[f"{name}_adjusted_p"] == row.adjusted_p
    assert flat[f"{name}_counted"] == row.n
    means = {standing.model: standing.mean for standing in versus.standings_of("ndcg@10")}
    assert flat["ndcg_at_10_of_bpr"] == means["bpr"]
    assert {FlatName.read(name).model for name in flat} == {"als 2", "bpr"}
