"""`parse` reads the names of metrics, or explains why it cannot."""

from __future__ import annotations

import subprocess
import sys
import typing

import numpy as np
import pytest
from convention_numbers import convention_of
from drawn_metrics import metrics
from hypothesis import given
from hypothesis import strategies as st

from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.metrics import METRICS, Metric, Parameter, parse, reading
from recometer.metrics import metric as register
from recometer.metrics.names import MAX_CUTOFFS
from recometer.metrics.registry import SIDE_DATA, SideData, canonical, with_largest_gain
from recometer.testing import variants

SMOOTHING = Parameter("Added to k.", above=0, examples=(2,))


def test_every_module_of_metrics_is_imported():
    """A metric whose module is never imported would be missing from the registry."""
    script = (
        "import pkgutil, recometer.metrics as metrics; before = set(metrics.METRICS)\n"
        "for each in pkgutil.walk_packages(metrics.__path__, 'recometer.metrics.'):\n"
        "    __import__(each.name)\n"
        "print(len(before), *(set(metrics.METRICS) - before))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    number, *not_imported = result.stdout.decode().split()
    assert int(number) > 50
    assert not not_imported, "Hint: import the module in recometer/metrics/__init__.py"


def test_every_name_refers_to_one_registered_metric():
    for name, definition in METRICS.items():
        for registered_name in (name, *definition.other_names):
            for spelling in (
                registered_name,
                registered_name.upper(),
                registered_name.replace("_", "-"),
                registered_name.title(),
            ):
                assert canonical(spelling) == name
        for unclear_name in definition.unclear_names:
            with pytest.raises(UnknownNameError, match="is ambiguous"):
                canonical(unclear_name)


def test_alternative_names_resolve_to_the_declared_name():
    assert Metric("MRR", 10) == Metric("rr", 10)
    assert Metric("MRR", 10).name == "rr"


def test_ambiguous_name_is_rejected():
    @register(formula="1", other_names=("mrr",))
    def NDCG(groups, cutoffs):
        raise AssertionError

    try:
        assert canonical("NDCG") == "NDCG"
        assert canonical("ndcg") == "ndcg"
        for name, names in (("Ndcg", "ndcg or NDCG"), ("mrr", "rr or NDCG")):
            with pytest.raises(UnknownNameError, match=f"'{name}' is ambiguous: it may be {names}"):
                parse(f"{name}@10")
    finally:
        del METRICS["NDCG"]


def test_every_kind_of_side_data_is_described():
    assert set(SIDE_DATA) == set(typing.get_args(SideData))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_complete_definition(name):
    definition = METRICS[name]
    assert definition.name == name
    assert definition.title
    assert definition.formula
    assert definition.source
    assert definition.lower < definition.upper
    assert definition.function.__doc__
    for parameter in definition.parameters.values():
        assert parameter.sentence
        assert parameter.choices or parameter.is_flag or parameter.examples
    for parameters in variants(name):
        definition_with_parameters = definition.with_parameters(parameters.items())
        assert definition_with_parameters.lower < definition_with_parameters.upper
    # A metric that ignores the order within the cut-off would be meaningless without a cut-off.
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
        ("hit@9223372036854775806", ["hit@9223372036854775806"]),
        ("f@10(beta=0.5)", ["f@10(beta=0.5)"]),
        ("f@10(beta=1)", ["f@10"]),
        ("f@10(beta=1e-1) f@10(beta=0.10)", ["f@10(beta=0.1)"]),
        ("f@5,10(beta=2.0)", ["f@5(beta=2)", "f@10(beta=2)"]),
        ("ndcg@1..2(gain=exponential)", ["ndcg@1(gain=exponential)", "ndcg@2(gain=exponential)"]),
        (
            "ndcg@3(ideal=list, gain=binary) rr",
            ["ndcg@3(gain=binary,ideal=list)", "rr"],
        ),
        ("ndcg@3(gain=linear,discount=standard)", ["ndcg@3"]),
        ("rr(all)", ["rr(all)"]),
        ("rr(all=true) rr(all=false)", ["rr(all)", "rr"]),
        ("rbp(graded,p=0.9)", ["rbp(p=0.9,graded)"]),
        ("err@5(max_gain=4)", ["err@5(max_gain=4)"]),
        ("roc_auc@10(domain=list)", ["roc_auc@10(domain=list)"]),
        ("NDCG@10 Recall@5", ["ndcg@10", "recall@5"]),
        ("mrr@10 HR@10 map@10 auc", ["rr@10", "hit@10", "ap@10", "roc_auc"]),
        ("hit_rate@5 HitRate@5 hit-rate@5 hit@5", ["hit@5"]),
        ("F1@5(beta=2) MRR(all)", ["f@5(beta=2)", "rr(all)"]),
        ("ndcg@10, recall@10", ["ndcg@10", "recall@10"]),
        ("ndcg@5,10,recall@5,roc_auc", ["ndcg@5", "ndcg@10", "recall@5", "roc_auc"]),
        ("ndcg@5, 10, 1..2, rr", ["ndcg@5", "ndcg@10", "ndcg@1", "ndcg@2", "rr"]),
        ({"ndcg": [5, 10], "recall": 20}, ["ndcg@5", "ndcg@10", "recall@20"]),
        ({"MRR": None, "auc": None, "ap": (None, 3)}, ["rr", "roc_auc", "ap", "ap@3"]),
        ({"hit": range(1, 4), "ap": "2,5..6"}, ["hit@1", "hit@2", "hit@3", "ap@2", "ap@5", "ap@6"]),
        ({"f(beta=2)": np.array([1, 2])}, ["f@1(beta=2)", "f@2(beta=2)"]),
        ({"ndcg": np.int64(5), "rr": np.array(3)}, ["ndcg@5", "rr@3"]),
        ("rr(all), rbp(p=0.9, graded), ap", ["rr(all)", "rbp(p=0.9,graded)", "ap"]),
    ],
)
def test_parse_reads_names_cutoffs_and_parameters(text, names):
    assert [str(metric) for metric in parse(text)] == names


def test_metrics_with_equal_parameters_are_equal():
    assert parse("ndcg@10") == [Metric("ndcg", 10)]
    assert {Metric("ndcg", np.int64(10))} == {Metric("ndcg", 10)}
    assert type(Metric("ndcg", np.int64(10)).cutoff) is int
    assert Metric("ndcg").definition is METRICS["ndcg"]


def test_parameters_of_a_metric_are_normalised():
    metric = Metric("ndcg", 10, {"ideal": "k", "gain": "binary", "discount": "standard"})
    assert metric == parse("ndcg@10(gain=binary,ideal=k)")[0]
    assert metric.parameters == (("gain", "binary"), ("ideal", "k"))
    assert {metric, Metric("ndcg", 10, metric.parameters)} == {metric}
    assert metric.variant == "ndcg(gain=binary,ideal=k)"
    assert Metric("f", 5, {"beta": np.float64(2)}) == Metric("f", 5, {"beta": 2})
    assert metric.definition.reads == "relevance"
    assert metric.definition.cutoff == "required"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f@10(bta=2)", r"'f' has no parameter 'bta'\. Hint: Did you mean 'beta'.*beta \(a number"),
        ("ndcg@10(x=1)", r"no parameter 'x'.*gain \(linear, binary, .*; default linear\)"),
        ("hit@10(beta=2)", r"The metric 'hit' takes no parameters, but was given 'beta'"),
        ("ndcg@10()", r"has no parameter ''"),
        ("ndgc@10(gain=binary)", r"no metric 'ndgc'"),
    ],
)
def test_unknown_parameters_are_refused(text, message):
    with pytest.raises(UnknownNameError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ndcg@10(gain=exponental)",
            r"gain=exponental: gain must be linear, binary, .*Did you mean 'exponential'",
        ),
        ("f@10(beta=0)", r"does not take beta=0: beta must be a number above 0"),
        ("f@10(beta=nan)", r"does not take beta=nan"),
        ("f@10(beta=1_0)", r"does not take beta=1_0"),
        ("f@10(beta)", r"does not take beta=true"),
        ("rbp(p=1)", r"does not take p=1: p must be a number between 0 and 1"),
        ("rr(all=3)", r"does not take all=3.*Hint: write rr\(all\)"),
        ("f@10(beta=2,beta=3)", r"'beta' of the metric 'f' is given twice"),
        ("f(beta=2)@10", r"closing bracket.*as in f@10\(beta=2\)"),
        ("f@10(beta=2", r"closing bracket.*as in f@10\(\.\.\.\)"),
        ("f@10(beta=2)x", r"closing bracket.*as in f@10\(\.\.\.\)"),
        ("ndcg(ideal=k)", r"'ndcg' needs a cut-off"),
        ("roc_auc@10(negatives=all)", r"'roc_auc' reads the whole ranking"),
    ],
)
def test_invalid_parameters_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


@pytest.mark.parametrize("value", [None, True, [2.0], "two", "٢"])
def test_non_numeric_parameter_is_refused(value):
    with pytest.raises(InputError, match="'f' does not take beta="):
        Metric("f", 10, {"beta": value})


def test_none_is_accepted_if_it_is_the_default():
    assert Metric("gini", 10, {"patience": None}) == Metric("gini", 10)


def test_parameters_must_be_a_mapping():
    with pytest.raises(InputTypeError, match="must be a mapping"):
        Metric("f", 10, 3)


def test_missing_largest_gain_is_filled_in():
    metrics = parse("err@10 err@5(max_gain=3) ndcg@2")
    filled = [str(metric) for metric in with_largest_gain(metrics, 4.0)]
    assert filled == ["err@10(max_gain=4)", "err@5(max_gain=3)", "ndcg@2"]


def test_custom_metric_can_be_registered():
    @register(formula="hits(k) / (k + smoothing)", parameters={"smoothing": SMOOTHING})
    def smooth(groups, cutoffs, *, smoothing=1):
        return METRICS["hits"].function(groups, cutoffs) / (cutoffs + smoothing)

    try:
        assert [str(metric) for metric in parse("smooth@3(smoothing=2)")] == [
            "smooth@3(smoothing=2)"
        ]
        definition = METRICS["smooth"]
        assert definition.title == "smooth"
        assert definition.higher_is_better
        assert definition.monotone
        assert definition.averages_ties
        assert not definition.may_be_nan
    finally:
        del METRICS["smooth"]


def test_parameter_without_limits_accepts_any_number():
    shift = {"shift": Parameter("It is added.", examples=(1,))}

    @register(formula="hits(k) + shift", upper=np.inf, parameters=shift)
    def shifted(groups, cutoffs, *, shift=1):
        return METRICS["hits"].function(groups, cutoffs) + shift

    try:
        assert [str(metric) for metric in parse("shifted@3(shift=-2) shifted@3(shift=-0)")] == [
            "shifted@3(shift=-2)",
            "shifted@3(shift=0)",
        ]
    finally:
        del METRICS["shifted"]


def test_existing_name_is_rejected():
    with pytest.raises(InputError, match=r"The metric 'ndcg' already exists.*my_ndcg"):

        @register(formula="1")
        def ndcg(groups, cutoffs):
            raise AssertionError


def test_parameters_must_match_the_function():
    with pytest.raises(InputError, match=r"declares the parameters \['smoothing'\], but its.*\[\]"):

        @register(formula="1", parameters={"smoothing": SMOOTHING})
        def smooth(groups, cutoffs):
            raise AssertionError


@given(st.lists(metrics(max_cutoff=2**62), min_size=1, unique=True))
def test_parse_and_str_are_inverses(metrics):
    assert parse(" ".join(map(str, metrics))) == metrics
    assert parse([str(metric) for metric in metrics]) == metrics
    assert parse(metrics) == metrics


@given(st.integers(1, 1000), st.integers(0, 30))
def test_range_includes_both_ends(first, length):
    cutoffs = [metric.cutoff for metric in parse(f"ap@{first}..{first + length}")]
    assert cutoffs == list(range(first, first + length + 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", r"There is no metric 'ndgc'\. Hint: Did you mean 'ndcg'"),
        ("NDCG10", r"There is no metric 'NDCG10'\. Hint: write the cut-off after an @: ndcg@10\."),
        ("hit_rate_at_5", "write the cut-off after an @: hit@5"),
        ("ndgc10", "Did you mean 'ndcg'"),
        ("precison@5,10", r"Did you mean 'precision'"),
        ("GAUC", r"metric 'GAUC' is ambiguous\. Hint: use roc_auc; result\.mean\(weights"),
        ("arhr@10", r"metric 'arhr' is ambiguous\. Hint: .*rr\(all\)"),
        ("ndgc@10", r"Did you mean 'ndcg' or '\w+' or '\w+'\? The command .* lists all; "),
        ("xyzzy", r"no metric 'xyzzy'\. Hint: The command .* in recometer\.metrics\.METRICS\.$"),
        ("@10", r"no metric ''"),
    ],
)
def test_unknown_metrics_are_refused(text, message):
    with pytest.raises(UnknownNameError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@0", r"cut-off '0' of the metric 'ndcg' must be a whole number, at least 1.*Hint: "),
        ("ndcg@-1", r"cut-off '-1'"),
        ("ndcg@2.5", r"cut-off '2.5'"),
        ("ndcg@", r"cut-off ''"),
        ("ndcg@5,", r"cut-off ''"),
        ("ndcg@five", r"cut-off 'five'"),
        ("ndcg@5@6", r"cut-off '5@6'"),
        ("ndcg@5,, ap@5", r"cut-off ''"),
        ("ndcg@1...3", r"cut-off '\.3'"),
        ("ndcg@..3", r"cut-off ''"),
        ("ndcg@+3", r"cut-off '\+3'"),
        ("ndcg@٣", r"cut-off '٣'"),
        ("ndcg@" + "9" * 5000, r"at least 1 .and less than 2.63."),
        ("ndcg@9223372036854775807", r"at least 1 .and less than 2.63."),
        ("ndcg@10..1", r"range ndcg@10\.\.1 runs backwards\. Hint: write ndcg@1\.\.10"),
        ("ap@1..10000000", r"contains 10,000,000 cut-offs, more than 10,000\. Hint: "),
        ("mcc", r"'mcc' needs a cut-off\. Hint: write mcc@10"),
        ("tap", r"'tap' needs a cut-off"),
        ("tprecision", r"'tprecision' needs a cut-off"),
        ("roc_auc@10", r"'roc_auc' reads the whole ranking.*Hint: write roc_auc alone"),
        ("pr_auc@0", r"'pr_auc' reads the whole ranking"),
        ("", r"No metric was requested\. Hint: "),
        ([], r"No metric was requested"),
        ({}, r"No metric was requested"),
        ({"ndcg": []}, r"'ndcg' has no cut-off: \[\] is empty\. Hint: write None"),
        ({"ndcg": [5, 0]}, r"cut-off '0' of the metric 'ndcg'"),
        ({"ndcg": True}, r"cut-off 'True' of the metric 'ndcg'"),
        ({"ndcg": [2.5]}, r"cut-off '2.5' of the metric 'ndcg'"),
        ({"ndcg": ["5"]}, r"cut-off '5' of the metric 'ndcg'"),
        ({"ndcg": "5 recall@3"}, r"cut-off '5 recall@3' of the metric 'ndcg'"),
        ({"ndcg": {"k": 5}}, r"cut-off 'k' of the metric 'ndcg'"),
        ({"ndcg": range(1, 10**12)}, r"'ndcg' has more than 10,000 cut-offs"),
        ({"ndcg@5": 10}, r"'ndcg@5' is a key with cut-offs, .*Hint: write metrics={'ndcg'"),
        ({"ndcg rr": 10}, r"'ndcg rr' is a key with cut-offs"),
        ({"": 10}, r"'' is a key with cut-offs"),
        ({"roc_auc": 10}, r"'roc_auc' reads the whole ranking"),
        ({"mcc": None}, r"'mcc' needs a cut-off"),
    ],
)
def test_invalid_cutoffs_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


def test_widest_range_is_accepted():
    assert len(parse(f"ap@1..{MAX_CUTOFFS}")) == MAX_CUTOFFS
    assert len(parse({"ap": range(1, MAX_CUTOFFS + 1)})) == MAX_CUTOFFS
    with pytest.raises(InputError, match="more than"):
        parse(f"ap@1..{MAX_CUTOFFS + 1}")


@pytest.mark.parametrize("cutoff", [0, -1, True, 2.5, "10", 2**63 - 1, 2**63])
def test_invalid_cutoffs_of_metric_objects_are_refused(cutoff):
    with pytest.raises(InputError, match="must be a whole number, at least 1"):
        Metric("ndcg", cutoff)


@pytest.mark.parametrize("value", [None, 5, [5], [None, "ap"], [b"ap"], {5: 5}])
def test_names_must_be_strings(value):
    with pytest.raises(InputTypeError, match=r"must be a string, but .*Hint: write 'ndcg@10"):
        parse(value)


@pytest.mark.parametrize(
    "read_metrics", [parse, convention_of("ranx").parse], ids=["ours", "a convention"]
)
def test_names_follow_the_current_registry(read_metrics):
    def newest(groups, cutoffs):
        raise NotImplementedError

    def register_as(**facts):
        register(formula="1", **facts)(newest)

    try:
        for wrong, right, cutoff in (
            ("newest@2", "newest", "none"),
            ("newest", "newest@2", "required"),
            ("newest@2", "newest", "none"),
        ):
            register_as(cutoff=cutoff)
            (metric,) = read_metrics(right)
            assert metric.definition is METRICS["newest"]
            assert read_metrics(right) == read_metrics(right)
            with pytest.raises(InputError):
                read_metrics(wrong)
    finally:
        del METRICS["newest"]
    with pytest.raises(UnknownNameError):
        read_metrics("newest")


def test_metrics_can_be_selected_by_the_data_they_read():
    assert {"coverage", "novelty", "gini"} <= set(reading("lists"))
    without_side_data = set(reading("lists", side=False))
    assert "personalization" in without_side_data
    assert not {"coverage", "novelty", "gini"} & without_side_data
