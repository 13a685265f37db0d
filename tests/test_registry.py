"""Names of metrics: what parse() reads, and what it says about what it cannot read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.metrics import METRICS, Metric, parse
from recometer.metrics.registry import MAX_CUTOFFS
from recometer.testing import metrics


def test_all_metrics_are_registered():
    assert set(METRICS) == {
        "precision", "tprecision", "recall", "hit", "rr", "ap", "tap", "ndcg", "rprecision",
        "roc_auc", "pr_auc",
        "rmse", "mae", "mse", "r2", "explained_variance", "fcp", "rated_precision", "rated_recall",
    }  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_definitions_are_complete(name):
    definition = METRICS[name]
    assert definition.name == name
    assert definition.title
    assert definition.formula
    assert definition.source
    assert definition.lower < definition.upper
    assert definition.function.__doc__
    # What the order within the cut-off does not change needs a cut-off to say something.
    assert not (definition.order_free and definition.cutoff == "none")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ndcg@10", ["ndcg@10"]),
        ("ndcg", ["ndcg"]),
        ("recall@5,10 roc_auc", ["recall@5", "recall@10", "roc_auc"]),
        ("ndcg@1..3", ["ndcg@1", "ndcg@2", "ndcg@3"]),
        ("recall@10,5,10 recall@5 ap recall@5", ["recall@10", "recall@5", "ap"]),
        ("hit@1..2,10\n\trr@3..3", ["hit@1", "hit@2", "hit@10", "rr@3"]),
        (["ndcg@10 ap@5", Metric("rr", 2), "ndcg@10"], ["ndcg@10", "ap@5", "rr@2"]),
        (Metric("roc_auc"), ["roc_auc"]),
        ("hit@007", ["hit@7"]),
    ],
)
def test_parse(text, names):
    assert [str(metric) for metric in parse(text)] == names


def test_a_metric_is_a_value():
    assert parse("ndcg@10") == [Metric("ndcg", 10)]
    assert {Metric("ndcg", np.int64(10))} == {Metric("ndcg", 10)}
    assert type(Metric("ndcg", np.int64(10)).cutoff) is int
    assert Metric("ndcg").definition is METRICS["ndcg"]


@settings(deadline=None)
@given(st.lists(metrics(max_cutoff=2**62), min_size=1, unique=True))
def test_parse_and_str_are_inverses(wanted):
    assert parse(" ".join(map(str, wanted))) == wanted
    assert parse([str(metric) for metric in wanted]) == wanted
    assert parse(wanted) == wanted


@settings(deadline=None)
@given(st.integers(1, 1000), st.integers(0, 30))
def test_a_range_holds_both_ends(first, length):
    cutoffs = [metric.cutoff for metric in parse(f"ap@{first}..{first + length}")]
    assert cutoffs == list(range(first, first + length + 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ndgc@10", r"There is no metric 'ndgc'\. Hint: Did you mean 'ndcg'"),
        ("precison@5,10", r"Did you mean 'precision'"),
        ("map@10", r"no metric 'map'\. Hint: Did you mean .*'ap'.*Known: .*roc_auc"),
        ("NDCG@10", r"no metric 'NDCG'\. Hint: Did you mean 'ndcg'"),
        ("xyzzy", r"no metric 'xyzzy'\. Hint: Known: precision, "),
        ("@10", r"no metric ''"),
    ],
)
def test_unknown_metrics(text, says):
    with pytest.raises(UnknownNameError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ndcg@0", r"cut-off '0' of the metric 'ndcg' must be a whole number from 1.*Hint: "),
        ("ndcg@-1", r"cut-off '-1'"),
        ("ndcg@2.5", r"cut-off '2.5'"),
        ("ndcg@", r"cut-off ''"),
        ("ndcg@5,", r"cut-off ''"),
        ("ndcg@five", r"cut-off 'five'"),
        ("ndcg@5@6", r"cut-off '5@6'"),
        ("ndcg@5,ap@5", r"cut-off 'ap@5'.*names of metrics have spaces between"),
        ("ndcg@1...3", r"cut-off '\.3'"),
        ("ndcg@..3", r"cut-off ''"),
        ("ndcg@+3", r"cut-off '\+3'"),
        ("ndcg@٣", r"cut-off '٣'"),
        ("ndcg@" + "9" * 5000, r"must be a whole number from 1 to 9223372036854775806"),
        ("ndcg@9223372036854775807", r"from 1 to 9223372036854775806"),
        ("ndcg@10..1", r"range ndcg@10\.\.1 runs backwards\. Hint: write ndcg@1\.\.10"),
        ("ap@1..10000000", r"stands for 10,000,000 cut-offs, more than 10,000\. Hint: "),
        ("hit", r"'hit' needs a cut-off\. Hint: write hit@10"),
        ("tap", r"'tap' needs a cut-off"),
        ("tprecision", r"'tprecision' needs a cut-off"),
        ("roc_auc@10", r"'roc_auc' reads the whole ranking.*Hint: write roc_auc alone"),
        ("pr_auc@0", r"'pr_auc' reads the whole ranking"),
        ("", r"No metric was asked for\. Hint: "),
        ([], r"No metric was asked for"),
    ],
)
def test_unfit_cutoffs(text, says):
    with pytest.raises(InputError, match=says):
        parse(text)


def test_the_widest_range():
    assert len(parse(f"ap@1..{MAX_CUTOFFS}")) == MAX_CUTOFFS
    with pytest.raises(InputError, match="more than"):
        parse(f"ap@1..{MAX_CUTOFFS + 1}")


@pytest.mark.parametrize("cutoff", [0, -1, True, 2.5, "10", 2**63])
def test_unfit_cutoffs_of_a_metric(cutoff):
    with pytest.raises(InputError, match="must be a whole number from 1"):
        Metric("ndcg", cutoff)


@pytest.mark.parametrize("found", [None, 5, [5], [None, "ap"], [b"ap"]])
def test_what_is_no_name(found):
    with pytest.raises(InputTypeError, match=r"named by text, but .*Hint: write 'ndcg@10"):
        parse(found)
