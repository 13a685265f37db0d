"""Conventions use other libraries' names, parameters and rules, and reproduce their values."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from convention_numbers import convention_of

import recometer as rm
from recometer.errors import UnknownNameError
from recometer.metrics import METRICS, Metric, parse
from recometer.metrics import conventions as conventions_module
from recometer.metrics.conventions import parse_under

LISTS = {"ann": [1, 2, 3], "bob": [1, 9], "eve": [4, 5]}
TEST = {"ann": {2: 1.0, 7: 2.0}, "bob": {1: 0.0}, "dan": {3: 1.0}}


def example(name: str) -> str:
    """Return a metric's name as a user would write it."""
    return name.replace("[", "").replace("]", "").replace("{k}", "5").replace("{x}", "0.5")


@pytest.mark.parametrize("convention", rm.conventions(), ids=lambda item: item.name)
def test_every_name_refers_to_one_metric(convention: rm.Convention) -> None:
    for entry in convention.entries:
        text = example(entry.name)
        for defects in (False, True):
            protocol = convention.protocol.replace(defects=defects)
            (metric,) = convention.parse(text, protocol)
            assert str(metric) == text.replace(" ", "") or str(metric) == text
            assert parse(metric.ours) == [Metric(metric.name, metric.cutoff, metric.parameters)]
            # The name must not refer to an earlier entry of the convention.
            assert convention.entry(text)[0] is entry
    assert len({entry.name for entry in convention.entries}) == len(convention.entries)


@pytest.mark.parametrize("convention", rm.conventions(), ids=lambda item: item.name)
def test_every_convention_describes_itself(convention: rm.Convention) -> None:
    text = convention.describe()
    assert text.startswith(f"{convention.name}: {convention.library} {convention.version}\n")
    rules = [f"  {sentence}" for sentence in convention.protocol.sentences()]
    title = "Rules that differ from recometer's:"
    assert "\n".join([title, *rules, "", "Metrics, and their names in recometer:\n"]) in text
    for entry, name in zip(convention.entries, convention.names, strict=True):
        assert f"\n  {name} = " in text
        (metric,) = convention.parse(example(entry.name))
        differences = convention.differences(metric)
        assert differences
        is_printed = f"    {entry.says}" in text.splitlines()
        assert (entry.says in differences) == is_printed == bool(entry.says)
    n_read = sum(entry.from_source for entry in convention.entries)
    assert text.count("Taken from the library's source code; not compared") == n_read
    assert ("\n\nWith defects=True, for all metrics: " in text) == bool(convention.defect_rules)


def test_defects_are_described_next_to_the_documented_behaviour() -> None:
    text = convention_of("evidently").describe()
    assert text.count("\n    With defects=True:") == 2
    assert "\n    With defects=True: ap@k(repeat_last)\n" in text
    assert "repeat_last:" not in text  # repeat_last is self-explanatory, so it has no description


def test_rejections_under_defects_are_described() -> None:
    text = convention_of("implicit").describe()
    assert (
        "\n\nWith defects=True, precision, map, ndcg, auc are refused for users with more places "
        "than" in text
    )
    ours = {name: convention_of("implicit").parse(f"{name}@2")[0] for name in ("ndcg", "auc")}
    last_differences = {
        name: convention_of("implicit").differences(metric)[-1] for name, metric in ours.items()
    }
    assert last_differences["ndcg"].startswith("If K exceeds the number of items")
    assert last_differences["auc"].startswith("If K exceeds the number of items")


def test_names_read_from_source_code_are_marked() -> None:
    read_from_source = {
        item.name: [entry.name for entry in item.entries if entry.from_source]
        for item in rm.conventions()
    }
    all_names = [entry.name for entry in convention_of("elliot").entries]
    assert {name: names for name, names in read_from_source.items() if names} == {
        "trec_eval": ["rbp"],
        "pytrec_eval": ["rbp"],
        "elliot": all_names,
    }


def test_conventions_of_single_precision_libraries_are_marked() -> None:
    names = {convention.name for convention in rm.conventions() if convention.float32}
    assert names == {"warprec", "pyg", "torchmetrics", "recbole", "keras_rs"}
    assert not rm.Convention("own", "Own", "1", rm.Protocol(), ()).float32


def test_defects_need_a_convention() -> None:
    for options in ({}, {"protocol": rm.Protocol(name="mine")}):
        with pytest.raises(
            rm.InputError, match=r"not the protocol of a library\. Hint: .*protocol='evidently'"
        ):
            rm.evaluate(rm.Lists(LISTS), TEST, defects=True, **options)
    options = {"metrics": "MAPKMetric@2", "protocol": "evidently", "defects": True}
    assert rm.evaluate(rm.Lists(LISTS), TEST, **options).protocol.defects


def test_names_of_the_library_and_of_recometer_can_be_mixed() -> None:
    lenskit = convention_of("lenskit")
    names = "NDCG@5,10 ndcg@3 Precision@1..2 RBP(patience = 0.5)@4"
    metrics = lenskit.parse(names)
    assert [str(metric) for metric in metrics] == [
        "NDCG@5", "NDCG@10", "ndcg@3", "Precision@1", "Precision@2", "RBP(patience = 0.5)@4",
    ]  # fmt: skip
    assert metrics[0].ours == "ndcg@5(gain=binary,discount=original)"
    assert metrics[2].ours == "ndcg@3(gain=binary,discount=original)"
    assert metrics[5].ours == "rbp@4(p=0.5)"
    # A value in parentheses replaces the library's, even if it is recometer's default.
    (ours,) = lenskit.parse("ndcg@3(discount=standard)")
    assert (str(ours), ours.ours) == ("ndcg@3", "ndcg@3(gain=binary)")
    # LensKit has no metric called tprecision, so the name is read as recometer's.
    assert lenskit.parse("tprecision@5") == parse("tprecision@5")


def test_cutoff_may_precede_or_follow_brackets() -> None:
    rectools = convention_of("rectools")
    for text in ("MAP(divide_by_k=True)@5", "MAP@5(divide_by_k=True)"):
        (metric,) = rectools.parse(text)
        assert (str(metric), metric.ours) == (text, "ap@5(denominator=k,by_place)")
    (metric,) = convention_of("ir_measures").parse("nDCG(dcg='exp-log2')@5")
    assert (metric.cutoff, metric.rules) == (5, (("decimals", 5),))


@pytest.mark.parametrize(
    ("name", "requested", "expected"),
    [
        ("recbole", "MRR@10", {"mrr@10": "rr@10"}),
        ("elliot", "hr@1..2", {"HR@1": "hit@1", "HR@2": "hit@2"}),
        ("elliot", "MAP@5, 10", {"MAP@5": "mean_precision@5", "MAP@10": "mean_precision@10"}),
        ("lenskit", "mrr@10", {"rr@10": "rr@10"}),
        ("lenskit", "nDCG@5", {"NDCG@5": "ndcg@5(gain=binary,discount=original)"}),
    ],
)
def test_names_of_the_library_take_precedence(
    name: str, requested: str, expected: dict[str, str]
) -> None:
    assert {str(metric): metric.ours for metric in convention_of(name).parse(requested)} == expected


@pytest.mark.parametrize(
    ("name", "requested", "message"),
    [
        ("elliot", "map@10", r"under elliot: it may be MAP@k \(mean_precision\) or ap\. Hint"),
        ("cornac", "Map@10", r"under cornac: it may be MAP \(pr_auc\) or ap\. Hint"),
        ("surprise", "Precision@5", r"it may be precision@k \(rated_precision\) or precision"),
    ],
)
def test_ambiguous_names_are_rejected(name: str, requested: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        convention_of(name).parse(requested)


def test_cutoffs_can_be_passed_in_a_dict() -> None:
    arguments = {"NDCG": [3, 5], "Precision(r_precision=True)": 4, "mrr": None}
    assert [str(metric) for metric in convention_of("rectools").parse(arguments)] == [
        "NDCG@3", "NDCG@5", "Precision@4(r_precision=True)", "rr",
    ]  # fmt: skip


def test_error_about_an_unknown_name_lists_the_known_names() -> None:
    with pytest.raises(rm.UnknownNameError, match=r"LensKit has no metric 'NDGC@5'.*NDCG\[@k\]"):
        convention_of("lenskit").parse("NDGC@5")
    with pytest.raises(rm.InputError, match=r"no number for its cut-off k. Hint: write NDCG@10"):
        convention_of("lenskit").parse("NDCG[@k]")
    with pytest.raises(rm.UnknownNameError, match=r"no protocol 'lenskti'.*'lenskit'"):
        rm.evaluate(rm.Lists(LISTS), TEST, metrics="rr", protocol="lenskti")


def test_result_keeps_its_convention(tmp_path) -> None:
    names = "Precision@2 NDCG(gain=rating)@2 ndcg@1"
    result = rm.evaluate(rm.Lists(LISTS), TEST, metrics=names, protocol="lenskit")
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet")
    assert loaded.protocol == result.protocol == convention_of("lenskit").protocol
    assert loaded.metrics == result.metrics
    assert loaded.mean() == result.mean()
    assert str(loaded) == str(result)
    assert "protocol: lenskit 2026.4.0" in str(result)
    repeated = rm.evaluate(
        rm.Lists(LISTS), TEST, metrics="Precision@2 NDCG(gain=rating)@2", protocol=loaded.protocol
    )
    assert repeated.mean()["Precision@2"] == result.mean()["Precision@2"]
    assert result["Precision@2"].shape == (4,)


@pytest.mark.parametrize("name", ["NDCG@2", "Precision@2"])  # Precision@2 also sets rules
def test_metrics_of_one_library_keep_their_meaning_under_another(name: str) -> None:
    metrics = convention_of("lenskit").parse(name)
    assert convention_of("elliot").parse([*metrics, *metrics]) == metrics
    assert convention_of("elliot").parse(map(str, metrics)) != metrics


def test_explicit_rules_replace_the_rules_of_names() -> None:
    lenskit = {"protocol": "lenskit", "metrics": "Precision@2"}
    result = rm.evaluate(rm.Lists(LISTS), {**TEST, "bob": {}}, **lenskit, no_relevant=0.25)
    assert result["Precision@2"][1] == 0.25


def test_metric_with_rules_works_under_several_protocols() -> None:
    metric = Metric("precision", 3, rules=(("no_relevant", 0.0),))
    for decimals, value in ((None, 1 / 3), (1, 0.3), (2, 0.33)):
        result = rm.evaluate(rm.Lists(LISTS), TEST, metrics=[metric], decimals=decimals)
        assert result["precision@3"][0] == value


@pytest.mark.parametrize(
    ("protocol", "message"), [("lenskit", "'20"), ("recometer", "recometer's")]
)
def test_version_of_a_convention_cannot_be_chosen(protocol: str, message: str) -> None:
    with pytest.raises(rm.InputError, match=rf"version='0\.1' cannot be chosen.*{message}"):
        rm.evaluate(rm.Lists(LISTS), TEST, protocol=protocol, version="0.1")


def test_defects_are_reproduced_only_on_request() -> None:
    source, test = rm.Lists({"a": [0, 1, 2], "b": [0, *range(3, 12)]}), {"a": [2], "b": [0]}
    arguments: dict[str, Any] = {"metrics": "MAPKMetric@10", "protocol": "evidently"}
    documented = rm.evaluate(source, test, **arguments)
    computed = rm.evaluate(source, test, **arguments, defects=True)
    assert documented.mean()["MAPKMetric@10"] == pytest.approx((1 / 3 + 1) / 2)
    assert computed.mean()["MAPKMetric@10"] == pytest.approx(1.8333, abs=1e-4)
    # Under recometer's own name, the metric is computed as documented, without the defect.
    with pytest.warns(rm.DataWarning, match="defects=True changes nothing here: these metrics are"):
        ours = rm.evaluate(source, test, metrics="ap@10", protocol="evidently", defects=True)
    assert ours.mean()["ap@10"] == documented.mean()["MAPKMetric@10"]


# Ann has two relevant items and one hit, Bob has no relevant items, Dan has no list, and Eve has a
# list but no test rows.
@pytest.mark.parametrize(
    ("rules", "mean"),
    [
        ({}, (1 / 3 + 0) / 2),
        ({"no_relevant": 0.0}, (1 / 3 + 0 + 0) / 3),
        ({"users": "known", "no_relevant": 0.0}, (1 / 3 + 0) / 2),
        ({"users": "relevant", "no_relevant": 0.0}, (1 / 3 + 0) / 2),
        ({"users": "known_relevant"}, 1 / 3),
        ({"users": "listed", "no_relevant": 0.0}, (1 / 3 + 0 + 0) / 3),
        ({"users": "positive", "no_relevant": 0.0}, 1 / 3),
        ({"missing": "zero"}, (1 / 3 + 0 + 0) / 3),
        ({"missing": "nan"}, math.nan),
        ({"no_list": "undefined"}, 1 / 3),
        ({"decimals": 1}, (0.3 + 0) / 2),
        ({"average": "relevant"}, 1 / 3 * 2 / 3),
        ({"average": "pooled"}, 1 / 3 / 2),
    ],
    ids=str,
)
def test_rules_decide_which_users_count_in_the_mean(rules: dict[str, Any], mean: float) -> None:
    result = rm.evaluate(rm.Lists(LISTS), TEST, metrics="precision@3", **rules)
    assert result.mean()["precision@3"] == pytest.approx(mean, nan_ok=True)
    (row,) = result.summary()
    assert row.counted + row.skipped == len(result)
    all_users = ["ann", "bob", "dan"] + ["eve"] * (rules.get("users") == "listed")
    assert result.user_ids.tolist() == all_users


def test_users_left_out_of_the_mean_keep_their_value() -> None:
    rules = {"users": "known_relevant", "no_relevant": 0.5}
    result = rm.evaluate(rm.Lists(LISTS), TEST, metrics="precision@3", **rules)
    assert result["precision@3"].tolist() == [1 / 3, 0.5, 0.0]
    assert result.summary()[0].reasons == {"the rule users= leaves the user out of the mean": 2}


def test_f_is_computed_from_mean_precision_and_recall() -> None:
    lists, test = {"a": [1, 2], "b": [3, 4]}, {"a": [1, 2, 5, 6], "b": [4]}
    names = "FBetaTopKMetric@2 PrecisionTopKMetric@2 RecallTopKMetric@2"
    result = rm.evaluate(rm.Lists(lists), test, metrics=names, protocol="evidently")
    mean = result.mean()
    p, r = mean["PrecisionTopKMetric@2"], mean["RecallTopKMetric@2"]
    assert mean["FBetaTopKMetric@2"] == pytest.approx(2 * p * r / (p + r))
    assert all(map(math.isnan, result.interval("FBetaTopKMetric@2")))


@pytest.mark.parametrize(
    ("duplicates", "precision", "recall"),
    [("removed", 1 / 4, 1 / 2), ("first", 1 / 4, 1 / 2), ("counted", 3 / 4, 3 / 2),
     ("joined", 3 / 4, 3 / 4)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*repeat an item")
@pytest.mark.filterwarnings("ignore:.*larger than every list")
@pytest.mark.parametrize("ids", [int, str])
def test_rule_duplicates_decides_how_repeated_items_count(
    ids, duplicates: str, precision: float, recall: float
) -> None:
    lists = rm.Lists({"a": [ids(i) for i in (1, 1, 2, 1)], "b": [ids(3)]})
    test = {"a": [ids(1), ids(9)], "b": [ids(3)]}
    result = rm.evaluate(lists, test, metrics="precision@4 recall@4 rr", duplicates=duplicates)
    assert result["precision@4"][0] == precision
    assert result["recall@4"][0] == recall
    assert result["rr"].tolist() == [1, 1]
    assert result.n_relevant.tolist() == [2, 1]


@pytest.mark.filterwarnings("ignore:.*repeat an item")
def test_repeated_item_keeps_its_place_under_the_rule_first() -> None:
    lists, test = rm.Lists({"a": [1, 1, 2]}), {"a": [2]}
    assert rm.evaluate(lists, test, metrics="rr")["rr"] == 1 / 2
    assert rm.evaluate(lists, test, metrics="rr", duplicates="first")["rr"] == 1 / 3


def test_unlisted_relevant_items_may_be_left_out() -> None:
    lists, test = rm.Lists({"a": [1, 2]}), {"a": [2, 3, 4]}
    assert rm.evaluate(lists, test, metrics="recall@2")["recall@2"] == 1 / 3
    left_out = rm.evaluate(
        lists,
        test,
        metrics="recall@2",
        unranked="left_out",
        all_relevant="computed",
        deep_cutoffs="computed",
    )
    assert left_out["recall@2"] == 1
    assert left_out.n_relevant.tolist() == [1]


def test_relevant_items_unknown_to_the_model_can_be_left_out() -> None:
    source = rm.Scores([[3.0, 2.0, 1.0]], item_ids=[1, 2, 3], user_ids=["a"])
    result = rm.evaluate(source, {"a": [2, 9]}, metrics="recall@2", unknown_items="left_out")
    assert result["recall@2"] == 1


SCORES = [0.5, -0.5, -1.0]


@pytest.mark.parametrize("make", [
    lambda: rm.Lists({"a": {1: 0.5, 2: -0.5, 3: -1.0}}),
    lambda: rm.Scores([[0.5, -0.5, -1.0]], item_ids=[1, 2, 3], user_ids=["a"]),
    lambda: rm.Pairs(pl.DataFrame({"user": ["a"] * 3, "item": [1, 2, 3], "score": SCORES}),
                     user="user", item="item", relevance=False),
])  # fmt: skip
def test_items_with_too_low_scores_are_not_hits(make) -> None:
    test = {"a": [1, 2]}
    assert rm.evaluate(make(), test, metrics="recall@2")["recall@2"] == 1
    for above, recall in ((0, 1 / 2), (-0.5, 1 / 2), (0.5, 0), (-0.6, 1)):
        result = rm.evaluate(make(), test, metrics="recall@2", score_above=above)
        assert result["recall@2"] == recall, above


def test_conflicting_score_rules_are_rejected() -> None:
    low, high = (Metric("precision", 1, rules=(("score_above", above),)) for above in (0.0, 0.2))
    arguments = {"source": rm.Scores(np.array([[0.1, -0.5]])), "test": np.array([[1.0, 0.0]])}
    assert rm.evaluate(**arguments, metrics=[low]).mean() == {"precision@1": 1}
    with pytest.raises(
        rm.InputError, match=r"Some metrics need the rule score_above to be 0\.[02]"
    ):
        rm.evaluate(**arguments, metrics=[low, high])


def test_rule_score_above_is_refused_without_scores() -> None:
    with pytest.raises(rm.InputError, match=r"score_above=0.0 needs the scores.*rm\.Scores"):
        rm.evaluate(rm.Lists({"a": [1, 2]}), {"a": [1]}, metrics="rr", score_above=0.0)
    lists, name = rm.Lists({"a": [1, 2]}), "RetrievalPrecision@2"
    result = rm.evaluate(lists, {"a": [1]}, metrics=name, protocol="torchmetrics")
    assert result.mean() == {name: 0.5}  # all scores are high enough


def test_training_items_can_be_kept_in_lists() -> None:
    lists, train, test = rm.Lists({"a": [1, 2]}), {"a": [1]}, {"a": [2]}
    assert rm.evaluate(lists, test, train=train, metrics="rr")["rr"] == 1
    result = rm.evaluate(lists, test, train=train, metrics="rr", seen="kept_in_lists")
    assert result["rr"] == 1 / 2


@pytest.mark.parametrize(
    ("ties", "places"),
    [("shared", [2, 2, 2]), ("item_desc_within", [2, 1, 3]), ("item_desc", [3, 2, 1])],
)
def test_tie_rules_of_other_libraries_order_tied_items(ties: str, places: list[int]) -> None:
    scores = np.full((3, 3), 0.5)
    result = rm.evaluate(
        rm.Scores(scores), np.eye(3), metrics="ap@2" if "within" in ties else "rr", ties=ties,
        constant_scores="ties", min_candidates=0,
    )  # fmt: skip
    (values,) = result.values.values()
    assert values.tolist() == [1 / place if place < 3 or "within" not in ties else 0
                               for place in places]  # fmt: skip


def test_rule_ties_input_is_refused_without_an_input_order() -> None:
    source = rm.Scores([[1.0, 1.0, 0.0]], item_ids=[1, 2, 3], user_ids=["a"])
    result = rm.evaluate(source, {"a": [2]}, metrics="mrr@2", protocol="ranx")
    assert result["mrr@2"] == 1 / 2
    with pytest.raises(rm.InputError, match=r"ties='input' keeps the order"):
        rm.evaluate(source, {"a": [2]}, metrics="rr", ties="input")


@pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")
def test_defects_are_refused_if_the_cutoff_exceeds_the_catalogue() -> None:
    source = rm.Scores([[0.9, 0.8, 0.7]], item_ids=[0, 1, 2], user_ids=["a"])
    arguments: dict[str, Any] = {"metrics": "precision@5", "protocol": "implicit"}
    assert rm.evaluate(source, {"a": [0]}, **arguments).mean() == {"precision@5": 1}
    with pytest.raises(rm.InputError, match=r"precision@5: defects=True is refused for users"):
        rm.evaluate(source, {"a": [0]}, **arguments, defects=True)
    # implicit counts item 0 again; since item 0 is irrelevant, the value is still correct.
    assert rm.evaluate(source, {"a": [1]}, **arguments, defects=True).mean() == {"precision@5": 1}
    lists = rm.Lists({"a": [0, 1, 2]})  # the number of items is unknown
    with pytest.raises(rm.InputError, match=r"Hint: .*use catalogue= to set the number of items"):
        rm.evaluate(lists, {"a": [1]}, **arguments, defects=True)
    result = rm.evaluate(lists, {"a": [1]}, **arguments, defects=True, catalogue=5)
    assert result.mean() == {"precision@5": 1}


def test_conventions_can_read_ratings() -> None:
    frame = {"user": ["a", "a", "b"], "item": [1, 2, 1], "score": [4.0, 2.0, 1.0]}
    frame["rating"] = [5.0, 4.0, 5.0]
    pairs = rm.Pairs(pl.DataFrame(frame), user="user", item="item", rating="rating", threshold=3.5)
    result = rm.evaluate(pairs, metrics="precision@2 recall@2", protocol="surprise")
    assert result["precision@2"].tolist() == [1, 0]
    assert result["recall@2"].tolist() == [1 / 2, 0]


def test_minus_infinity_makes_all_rows_relevant(tmp_path) -> None:
    result = rm.evaluate(rm.Lists({"a": [1]}), {"a": {1: -1.0}}, metrics="rr",
                         relevant_from=-math.inf)  # fmt: skip
    assert result["rr"] == 1
    result.save(tmp_path / "a.parquet")
    assert rm.load(tmp_path / "a.parquet").protocol == result.protocol
    with pytest.raises(rm.InputError, match="relevant_from=inf must be a number"):
        rm.evaluate(rm.Lists({"a": [1]}), {"a": [1]}, metrics="rr", relevant_from=math.inf)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("torchmetrics", "RetrievalNormalizedDCG@2"),
        ("rexmex", "normalized_discounted_cumulative_gain"),
    ],
)
def test_protocol_reproduces_names_with_their_own_rules(name: str, metric: str) -> None:
    """If a source's rows have no order, only the rule ties="input" is replaced."""
    source = rm.Scores(np.array([[1.0, 1.0, 1.0, 0.0], [2.0, 1.0, 1.0, 0.0]]))
    test = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    first = rm.evaluate(source, test, metrics=metric, protocol=name)
    second = rm.evaluate(source, test, metrics=metric, protocol=first.protocol)
    assert first.protocol == convention_of(name).protocol
    assert second.metrics == first.metrics
    np.testing.assert_array_equal(second[metric], first[metric])


@pytest.mark.filterwarnings("ignore:.*repeat an item", "ignore:.*larger than every list")
@pytest.mark.parametrize("duplicates", ["removed", "first", "counted", "joined"])
def test_repeated_items_outside_the_candidates_take_no_places(duplicates: str) -> None:
    """Item 0 is repeated but is not a candidate, so item 1 has rank 1."""
    result = rm.evaluate(
        rm.Lists({0: [0, 0, 1, 3]}),
        {0: [0, 1, 2]},
        metrics="ap",
        candidates=[1, 2, 3],
        unranked="left_out",
        duplicates=duplicates,
    )
    assert result.n_relevant.tolist() == [1]
    assert result.mean() == {"ap": 1.0}


@pytest.mark.filterwarnings("ignore:.*repeat an item", "ignore:.*larger than every list")
@pytest.mark.parametrize("metric", ["ips_recall", "ips_dcg", "snips_recall", "snips_dcg"])
def test_weighted_metrics_follow_the_rule_duplicates(metric: str) -> None:
    lists, test, train = rm.Lists({0: [0, 0, 1, 2]}), {0: [0, 1, 2]}, {0: [3], 1: [0, 1, 2, 3]}
    test[1] = [0]
    options = {"metrics": f"{metric}@4", "train": train}
    first_only = rm.evaluate(rm.Lists({0: [0, 1, 2]}), test, **options)
    assert rm.evaluate(lists, test, **options)[f"{metric}@4"][0] == first_only[f"{metric}@4"][0]
    first = rm.evaluate(lists, test, duplicates="first", **options)
    # The second occurrence of item 0 occupies a place, but is not a hit.
    assert 0 < first[f"{metric}@4"][0] <= first_only[f"{metric}@4"][0]
    counted_twice = rm.evaluate(lists, test, duplicates="counted", **options)
    assert counted_twice[f"{metric}@4"][0] > first[f"{metric}@4"][0]


@pytest.mark.filterwarnings("ignore:.*repeat an item", "ignore:.*larger than every list")
@pytest.mark.filterwarnings("ignore:The rule duplicates=")
@pytest.mark.parametrize("duplicates", ["removed", "first", "counted", "joined"])
@pytest.mark.parametrize("ties", ["random", "item"])
def test_coverage_does_not_depend_on_the_rule_duplicates(ties: str, duplicates: str) -> None:
    lists = rm.Lists({0: ["a", "a", "b"], 1: ["a"]})
    options = {"ties": ties, "duplicates": duplicates, "catalogue": 4}
    result = rm.evaluate(lists, {0: ["b"], 1: ["a"]}, metrics="coverage@2", **options)
    assert result.mean() == {"coverage@2": 0.5}


@pytest.mark.parametrize(
    ("lists", "catalogue", "covered"),
    [
        ({"a": [1, 2, 0]}, [1, 2], 1.0),
        ({"a": [1, 2, 0]}, [0, 1, 2], 3 / 4),
        ({"a": [1, 2]}, [1, 2, 3], 2 / 4),
        ({"a": [1, 2, 0], "b": [0, 3]}, [1, 2, 3, 4], 4 / 5),
    ],
)
@pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")
def test_padding_counts_as_an_item_in_recbole(
    lists: dict[str, list[int]], catalogue: list[int], covered: float
) -> None:
    """RecBole 1.2.1 numbers items from 1, and pads short lists with item 0."""
    result = rm.evaluate(
        rm.Lists(lists),
        {"a": [1], "b": [2]},
        metrics="itemcoverage@3 giniindex@3",
        protocol="recbole",
        catalogue=catalogue,
    )
    assert result.mean()["itemcoverage@3"] == pytest.approx(covered)


DEFECTS = [
    # In recpack 0.3.6, negative values can change the result.
    ("recpack", "RecallK@3", [-1, 2, 0, 3, -2], 1.0),
    ("recpack", "NDCGK@3", [-1, 2, 0, 1, -2], 0.8613531161467861),
    ("recpack", "DCGK@3", [-1, 2, 0, 1, -2], 0.8613531161467861),
    ("recpack", "ReciprocalRankK@3", [-1, 2, 0, 1, -2], 0.25),
    # In rectools 0.19.0, the cut-off may exceed the number of items.
    ("rectools", "Accuracy@8", [0, 1, 0, 1, 0], -0.2),
    ("rectools", "MCC@5", [0, 1, 0, 1, 0], 0.0),
]


@pytest.mark.parametrize(("protocol", "metric", "labels", "expected"), DEFECTS)
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_defects_are_reproduced_for_a_single_list(
    protocol: str, metric: str, labels: list[float], expected: float
) -> None:
    """The list contains items 0 to 4 in ascending order."""
    result = rm.evaluate(
        rm.Scores(np.array([[0.9, 0.8, 0.7, 0.6, 0.5]])),
        np.array([labels], float),
        metrics=metric,
        protocol=protocol,
        defects=True,
    )
    assert result.mean()[metric] == pytest.approx(expected, abs=1e-12)


def test_undefined_logarithm_gives_nan() -> None:
    """recpack 0.3.6 prints NaN for a user with the value -1 at rank 2, and also for the mean."""
    scores, test = rm.Scores(np.array([[0.9, 0.8], [0.9, 0.8]])), np.array([[2.0, -1.0], [1.0, 0]])
    result = rm.evaluate(scores, test, metrics="DCGK@2", protocol="recpack", defects=True)
    assert np.isnan(result["DCGK@2"]).tolist() == [True, False]
    assert np.isnan(result.mean()["DCGK@2"])


BEYOND = pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")


@BEYOND
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("Precision@2", 1.0),
        ("Recall@2", 1.0),
        ("MAP@5", 0.5),
        ("MRR@5", 0.5),
        ("NDCG@5", 0.4279725294690551),
        ("NDCG(divide_by_achievable=True)@5", 0.7737056144690833),
        ("PartialAUC@5", 0.6),
    ],
)
def test_values_of_rectools_for_equal_ranks_are_reproduced(metric: str, expected: float) -> None:
    """rectools 0.19.0 prints these values for ranks 1, 2, 2, 2; the last two items are relevant."""
    ranks = pl.DataFrame({"user": ["a"] * 4, "item": [0, 1, 2, 3], "rank": [1, 2, 2, 2]})
    result = rm.evaluate(rm.Lists(ranks), {"a": [2, 3]}, metrics=metric, protocol="rectools")
    assert result.mean()[metric] == pytest.approx(expected)


@BEYOND
def test_equal_scores_do_not_count_as_equal_ranks() -> None:
    rows = pl.DataFrame({"user": ["a"] * 3, "item": [7, 3, 5], "score": [2.0, 1.0, 1.0]})
    result = rm.evaluate(rm.Lists(rows), {"a": [5]}, metrics="MRR@5", protocol="rectools")
    assert result.mean() == {"MRR@5": pytest.approx(1 / 3)}
    rows = rows.with_columns(rank=pl.Series([1, 2, 2])).drop("score")
    as_ranked = rm.evaluate(rm.Lists(rows), {"a": [5]}, metrics="rr", ties="as_ranked")
    assert as_ranked["rr"] == [1 / 2]


def nearly_tied(kind: str) -> Any:
    """Return a source in which item 1 beats items 0 and 2 only in double precision."""
    rows = {"user": [0, 0, 0], "item": [0, 1, 2], "score": [0.5, 0.5 + 1e-10, 0.5]}
    if kind == "Scores":
        return rm.Scores([rows["score"]])
    if kind == "falling":
        return rm.Lists({0: {1: 0.5 + 1e-10, 0: 0.5, 2: 0.1}})
    return (rm.Lists if kind == "Lists" else rm.Pairs)(pl.DataFrame(rows))


@pytest.mark.parametrize("kind", ["Scores", "falling", "Lists", "Pairs"])
def test_single_precision_ties_follow_the_rule(kind: str) -> None:
    test = {0: [1]} if kind != "Scores" else np.array([[0, 1, 0]])
    options: dict[str, Any] = {"metrics": "rr", "ties": "pessimistic", "constant_scores": "ties"}
    assert rm.evaluate(nearly_tied(kind), test, **options)["rr"] == [1.0]
    rounded = rm.evaluate(nearly_tied(kind), test, single_precision=True, **options)
    assert rounded["rr"] == [1 / 2 if kind == "falling" else 1 / 3]


def test_scores_below_the_range_of_single_precision_rank_last() -> None:
    test = np.array([[1, 0, 0], [0, 1, 0]])
    for scores in ([-1e300, 1.0, 0.5], [-np.inf, 1.0, 0.5]):
        options: dict[str, Any] = {"metrics": "rr", "single_precision": True}
        result = rm.evaluate(rm.Scores(np.array([scores] * 2)), test, **options)
        assert result["rr"].tolist() == [0.0 if np.isinf(scores[0]) else 1 / 3, 1.0]
        assert result.n_candidates.tolist() == [2 if np.isinf(scores[0]) else 3] * 2


@pytest.mark.parametrize("protocol", ["trec_eval", "pytrec_eval", "ir_measures", "mteb"])
def test_scores_are_tied_if_a_library_reads_them_in_single_precision(protocol: str) -> None:
    lists = rm.Lists({"q": {"d1": 0.99999999, "d3": 0.99999998}})
    assert rm.evaluate(lists, {"q": {"d1": 1}}, metrics="ap", protocol=protocol)["ap"] == [0.5]


@pytest.mark.parametrize("scores", [[0.5] * 4, [0.5, 0.5 + 1e-10, 0.5, 0.5]])
def test_torchmetrics_averages_equal_scores_in_areas(scores: list[float]) -> None:
    pairs = rm.Pairs.of([1, 0, 1, 0], scores, [0] * 4)
    result = rm.evaluate(pairs, metrics="RetrievalAUROC", protocol="torchmetrics")
    assert result["RetrievalAUROC"] == [0.5]


def test_pyg_lists_with_padding_are_rejected_only_if_padding_is_a_hit() -> None:
    arguments: dict[str, Any] = {"metrics": "LinkPredMRR@2", "protocol": "pyg", "defects": True}
    lists = rm.Lists({0: [0, 1], 1: [3]})
    assert rm.evaluate(lists, {0: [1], 1: [5]}, **arguments)["LinkPredMRR@2"].tolist() == [0.5, 0.0]
    with pytest.raises(rm.InputError, match="with a list shorter than k"):
        rm.evaluate(lists, {0: [5], 1: [3]}, **arguments)


REFUSED = [
    # implicit counts item 0 again beyond the last item, PyTorch Geometric reads the padding of user
    # 1 as item 4, and Recommenders counts item 1 twice.
    ("implicit", {0: [0, 1, 2]}, [(0, 0)], "precision@3", "ndcg@4", "users with more places"),
    ("pyg", {0: [0, 1, 2], 1: [0]}, [(0, 4), (1, 4)], "LinkPredMRR@1", "LinkPredHitRatio@3",
     "users with a list shorter than k"),
    ("recommenders", {0: [0, 1, 2]}, [(0, 1), (0, 1)], "ndcg_at_k@1", "ndcg_at_k@2",
     "users with rows that repeat an item"),
    ("recommenders", {0: [0, 1, 1]}, [(0, 1)], "recall_at_k@3", "ndcg_at_k@3",
     "users with rows that repeat an item"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize(("name", "lists", "rows", "accepted", "refused", "message"), REFUSED)
def test_values_caused_by_defects_are_rejected(
    name: str,
    lists: dict[int, list[int]],
    rows: list[tuple[int, int]],
    accepted: str,
    refused: str,
    message: str,
) -> None:
    test = pl.DataFrame(rows, ["user", "item"], orient="row")
    arguments: dict[str, Any] = {"protocol": name, "catalogue": 3 if name == "implicit" else None}
    documented = rm.evaluate(rm.Lists(lists), test, metrics=f"{accepted} {refused}", **arguments)
    result = rm.evaluate(rm.Lists(lists), test, metrics=accepted, defects=True, **arguments)
    assert result.mean()[accepted] == documented.mean()[accepted]
    with pytest.raises(
        rm.InputError, match=rf"{refused}: defects=True is refused for {message}.*Hin"
    ):
        rm.evaluate(
            rm.Lists(lists), test, metrics=f"{accepted} {refused}", defects=True, **arguments
        )


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_explain_mentions_values_caused_by_defects() -> None:
    result = rm.evaluate(
        rm.Lists({0: [0, 1, 2]}), {0: [0]}, metrics="ndcg@2 ndcg@9", catalogue=3,
        deep_cutoffs="computed",
    )  # fmt: skip
    notes = rm.explain(result, "ndcg@9", protocol="implicit").table().notes
    assert notes[-1].startswith(
        "implicit prints a different number for users with more places than"
    )
    assert not rm.explain(result, "ndcg@2", protocol="implicit").notes
    theirs = convention_of("implicit").protocol.replace(defects=True)
    assert not rm.explain(result, "ndcg@2", protocol=theirs).notes
    with pytest.raises(rm.InputError, match=r"ndcg@9: defects=True is refused for users"):
        rm.explain(result, "ndcg@9", protocol=theirs)


CUMULATIVE = [0.0, 0.0, 0.190047, 0.175669, 0.228124, 0.228124, 0.228124, 0.228124]


def test_cumulative_columns_of_recometrics_are_reproduced() -> None:
    """With cumulative=True, recometrics 0.1.6.post13's NDCG ignores all places beyond R.

    R is the number of relevant items.
    """
    order = [3, 1, 7, 8, 9, 4, 10, 0, 2, 11, 5, 6]  # best first
    scores = np.empty((1, 12))
    scores[0, order] = -np.arange(12)
    test = np.array([[0, 0, 0, 0, 0, 3.0, 0, 2.0, 0, 1.0, 1.0, 2.0]])
    names = [f"NDCG(cumulative=True)@{k}" for k in range(1, 9)]
    result = rm.evaluate(
        rm.Scores(scores), test, metrics=names, protocol="recometrics", defects=True
    )
    assert list(result.mean().values()) == pytest.approx(CUMULATIVE, abs=1e-6)
    assert rm.evaluate(
        rm.Scores(scores), test, metrics="NDCG@8", protocol="recometrics"
    ).mean() == {"NDCG@8": pytest.approx(0.282954, abs=1e-6)}


def test_defect_of_recometrics_that_ignores_min_pos_test_is_reproduced() -> None:
    """In recometrics 0.1.6.post13, min_pos_test=6 keeps users with 4 or 5 relevant items."""
    scores, test = rm.Scores(np.arange(24.0).reshape(2, 12)), np.eye(2, 12)
    test[1, :6] = 1
    arguments: dict[str, Any] = {"metrics": "P@2", "protocol": "recometrics", "min_positives": 4}
    assert np.isnan(rm.evaluate(scores, test, **arguments)["P@2"]).tolist() == [True, False]
    with pytest.warns(rm.DataWarning, match="min_positives=4 changes nothing here: recometrics"):
        result = rm.evaluate(scores, test, **arguments, defects=True)
    assert not np.isnan(result["P@2"]).any()


@pytest.mark.parametrize("name", [item.name for item in rm.conventions()])
def test_recometers_metric_names_use_the_parameters_of_the_library(name: str) -> None:
    """Under a convention, ndcg@3 stands for the library's first metric with that name."""
    convention = convention_of(name)
    first = {entry.metric_name: entry for entry in reversed(convention.entries)}
    for own_name, entry in first.items():
        expected = entry.ours(3, entry.example_number, False)
        if expected.cutoff is not None and METRICS[own_name].cutoff == "none":
            continue  # the library's name already contains a cut-off
        text = own_name if expected.cutoff is None else f"{own_name}@3"
        (metric,) = parse_under(text, convention.protocol)
        assert (metric.name, dict(metric.parameters)) == (own_name, dict(expected.parameters))


def test_recometers_metric_names_use_the_rules_of_the_library() -> None:
    """As in recmetrics, only an item's first occurrence counts, even under recometer's own name."""
    recmetrics = convention_of("recmetrics")
    (metric,) = parse_under("ap@3", recmetrics.protocol)
    assert metric.rules == (("duplicates", "first"),)
    (plain,) = parse_under("ap@3", rm.Protocol())
    assert plain.rules == ()
    of_cutoffs = parse_under("ap ap@3", convention_of("recometrics").protocol)
    rules = [(("all_relevant", "undefined_beyond"),)] * 2
    assert [metric.rules for metric in of_cutoffs] == rules
    # With a cut-off of k, users need k candidates; without a cut-off, they need one.
    (area,) = parse_under("roc_auc", convention_of("recometrics").protocol)
    assert area.rules == (("min_candidates", 1),)


@pytest.mark.parametrize(
    ("protocol", "name", "printed"),
    [("xgboost", "ndcg@0", "ndcg"), ("ranx", "map@0", "map"), ("recbole", "recall@0", "recall")],
)
def test_error_quotes_an_invalid_cutoff_as_written(protocol, name, printed):
    with pytest.raises(
        rm.InputError, match=f"the metric '{printed}' must be .* write {printed}@10"
    ):
        rm.Evaluator(metrics=name, protocol=protocol)


@pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")
def test_implicit_defects_reject_auc_of_incomplete_lists() -> None:
    arguments = {"metrics": "auc@5", "protocol": "implicit", "defects": True, "catalogue": 4}
    complete_lists = rm.Lists({"a": [1, 2, 0, 3]})
    # K exceeds the number of items, so implicit counts the first item again. This cannot change the
    # AUC, because the list contains every item.
    assert rm.evaluate(complete_lists, {"a": [0]}, **arguments).mean() == {"auc@5": 1 / 3}
    for items in ([1, 2, 0], [1, 2, 3]):
        with pytest.raises(rm.InputError, match=r"auc@5: defects=True is refused for users"):
            rm.evaluate(rm.Lists({"a": items}), {"a": [0]}, **arguments)


@pytest.mark.parametrize(
    ("requested", "rules", "attribution"),
    [
        ("ndcg_cut.10", {}, "protocol='trec_eval', as ndcg@10(gain=positive)."),
        ("rr P.5,10", {}, "protocol='trec_eval', as precision@5 precision@10."),
        ("map_cut.3", {"protocol": "ranx"}, "protocol='trec_eval', as ap@3."),
        ("LinkPredMRR@2", {}, " It exists under protocol='pyg', as rr@2."),
    ],
)
def test_unknown_metric_error_suggests_the_convention_that_defines_it(
    requested: str, rules: dict[str, Any], attribution: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        rm.evaluate(rm.Lists(LISTS), TEST, metrics=requested, **rules)
    assert str(caught.value).endswith(attribution)


@pytest.mark.parametrize("rule", sorted(conventions_module.OF_THE_CALL))
def test_call_wide_rules_are_rejected_for_single_metrics(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("again", str(conventions_module.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "again", module)
    spec.loader.exec_module(module)
    text = module.TABLE.read_text(encoding="utf-8")
    module.TABLE = tmp_path / "conventions.toml"
    declaration = f'"LinkPredMRR@{{k}}" = {{ metric = "rr@{{k}}", {rule} = 2.0 }}'
    module.TABLE.write_text(text.replace('"LinkPredMRR@{k}" = "rr@{k}"', declaration), "utf-8")
    with pytest.raises(rm.InputError, match=rf"the rule {rule} for 'LinkPredMRR@.k.' of pyg, but"):
        module.conventions()


def test_areas_with_a_single_class_are_undefined_under_sklearn() -> None:
    """In scikit-learn 1.9.1, roc_auc_score([1, 1], [0.25, 0.5]) warns and returns NaN."""
    scores = rm.Scores(np.array([[0.25, 0.5], [0.25, 0.5], [0.5, 0.25]]))
    test = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    result = rm.evaluate(scores, test, metrics="roc_auc_score", protocol="sklearn")
    assert np.array_equal(result["roc_auc_score"], [math.nan, 1.0, 0.0], equal_nan=True)


def test_areas_of_users_with_only_relevant_items_are_undefined() -> None:
    """Cornac 3.0.1 prints NaN for users with only relevant items; RecBole 1.2.1 leaves them out."""
    scores, test = rm.Scores(np.array([[1.0, 2.0], [1.0, 2.0]])), np.array([[1, 1], [0, 1]])
    for name, area in (("cornac", "AUC"), ("recbole", "gauc")):
        result = rm.evaluate(scores, test, metrics=area, protocol=name)
        assert np.array_equal(result[area], [math.nan, 1.0], equal_nan=True)


def test_warning_about_short_lists_ignores_undefined_users() -> None:
    pairs = rm.Pairs.of([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    with pytest.warns(rm.DataWarning) as caught:
        rm.evaluate(pairs, metrics="P@10", protocol="recometrics")
    assert [str(warning.message) for warning in caught] == [
        "P@10: undefined for all 2 users: fewer items to rank than the cut-off."
    ]
