"""Gates limit how much worse than the baseline a model may be."""

from __future__ import annotations

import pathlib
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from results import evaluation

import recometer as rm
from recometer.comparing.gates import junit

OLD = np.round(np.random.default_rng(3).random(2_000), 2)
ACTIVITY = np.arange(2_000) % 100


def changed_model(change: float, spread: float = 0.1) -> rm.Evaluation:
    noise = np.random.default_rng(round(1_000 * abs(change))).standard_normal(len(OLD))
    values = np.clip(OLD + change + spread * noise, 0, 1)
    return evaluation({"rr": values.tolist()}, activity=ACTIVITY)


@pytest.fixture(scope="module")
def compared() -> rm.Comparison:
    old = evaluation({"rr": OLD.tolist()}, activity=ACTIVITY)
    models = {
        "old": old,
        "better": changed_model(0.03),
        "worse": changed_model(-0.03),
        "same": changed_model(0.0),
    }
    return rm.compare(models, baseline="old")


def verdicts(comparison: rm.Comparison, gate: str) -> dict[str, str]:
    return {row.model: row.verdict for row in comparison.gate(gate).rows}


def test_clear_gates_pass_or_fail(compared: rm.Comparison) -> None:
    for gate in ("rr >= -1.5%", "rr >= -0.0075"):
        verdict_of_model = verdicts(compared, gate)
        assert (verdict_of_model["better"], verdict_of_model["worse"]) == ("passed", "failed")


def test_ends_of_the_interval_decide_a_gate(compared: rm.Comparison) -> None:
    row = compared.row("rr", "same")
    for low, high, sign in (
        (row.low, row.high, ""),
        (100 * row.relative_low, 100 * row.relative_high, "%"),
    ):
        assert verdicts(compared, f"rr >= {low - 1e-5:.9f}{sign}")["same"] == "passed"
        assert verdicts(compared, f"rr >= {low + 1e-5:.9f}{sign}")["same"] == "undecided"
        assert verdicts(compared, f"rr >= {high - 1e-5:.9f}{sign}")["same"] == "undecided"
        assert verdicts(compared, f"rr >= {high + 1e-5:.9f}{sign}")["same"] == "failed"
    for bound, verdict in (
        (row.low, "passed"),
        (row.high, "undecided"),
    ):  # the interval includes its ends
        (decided_row,) = (
            gate_row
            for gate_row in compared.gate(f"rr >= {bound:.17g}").rows
            if gate_row.model == "same"
        )
        assert decided_row.verdict == verdict


def test_undecided_gates_count_as_requested(compared: rm.Comparison) -> None:
    row = compared.row("rr", "same")
    pair = rm.compare(
        {"old": compared.model("old").first, "same": changed_model(0.0)}, baseline="old"
    )
    gate = f"rr >= {row.difference - 1e-4:.6f}"
    plain = pair.gate(gate)
    assert (plain.verdict, plain.passed, plain.undecided) == ("undecided", False, None)
    for undecided, passed in (("pass", True), ("fail", False)):
        report = pair.gate(gate, undecided=undecided)  # type: ignore[arg-type]
        assert (report.verdict, report.passed) == ("undecided", passed)
        assert report.rows == plain.rows
        assert f"Undecided gates count as {undecided}ed." in str(report)
        assert report.to_dict()["passed"] is passed
        # `undecided` does not change the verdicts of decided gates.
        assert compared.gate("rr >= -1.5%", undecided=undecided).verdict == "failed"  # type: ignore[arg-type]
        assert not compared.gate("rr >= -1.5%", undecided=undecided).passed  # type: ignore[arg-type]
        assert compared.gate("rr >= -90%", undecided=undecided).passed  # type: ignore[arg-type]


def test_equal_models_are_undecided_instead_of_failed() -> None:
    outcomes = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        old = np.clip(generator.normal(0.5, 0.25, 500), 0, 1)
        new = np.clip(old + generator.normal(0, 0.15, 500), 0, 1)
        models = {"new": evaluation({"rr": new.tolist()}), "old": evaluation({"rr": old.tolist()})}
        outcomes.append(rm.compare(models, baseline="old").gate("rr >= -0.5%").verdict)
    assert outcomes.count("undecided") >= 36
    assert outcomes.count("failed") <= 2


def test_gates_of_seeds_and_of_metrics_for_all_users_may_be_undecided() -> None:
    models = {
        "old": evaluation({"rr": OLD.tolist()}, activity=ACTIVITY),
        "new": [changed_model(0.0), changed_model(0.001)],
    }
    seeds = rm.compare(models, baseline="old")
    assert verdicts(seeds, f"rr >= {seeds.rows[0].difference - 1e-6:.17g}") == {"new": "undecided"}
    generator = np.random.default_rng(1)
    test = generator.random((60, 30)) < 0.1
    lists = {
        name: rm.evaluate(rm.Scores(generator.random((60, 30))), test, metrics="coverage@2")
        for name in ("old", "new")
    }
    assert verdicts(rm.compare(lists, baseline="old"), "coverage@2 >= 0") == {"new": "undecided"}


def test_gates_of_metrics_where_lower_is_better_use_an_upper_bound() -> None:
    first, second = changed_model(0.2), evaluation({"rr": OLD.tolist()})
    values = {"new": first["rr"], "old": second["rr"]}
    models = {name: evaluation({"rmse": column.tolist()}) for name, column in values.items()}
    compared = rm.compare(models, baseline="old")
    assert verdicts(compared, "rmse <= 1%") == {"new": "failed"}
    assert verdicts(compared, "rmse <= 0.9") == {"new": "passed"}
    row = compared.rows[0]
    for bound, verdict in (
        (row.high, "passed"),
        (row.high - 1e-6, "undecided"),
        (row.low, "undecided"),
        (row.low - 1e-6, "failed"),
    ):
        actual = compared.gate(f"rmse <= {bound:.17g}").verdict
        assert actual == verdict
    with pytest.raises(rm.InputError, match="Lower is better for rmse, so its gate"):
        compared.gate("rmse >= -1%")


def test_junit_has_a_case_per_gate_and_model(
    compared: rm.Comparison, tmp_path: pathlib.Path
) -> None:
    report = compared.gate(["rr >= -0.5%", "rr >= -0.9"])
    path = tmp_path / "junit.xml"
    assert junit(report, path) + "\n" == path.read_text(encoding="utf-8")
    root = ElementTree.parse(path).getroot()
    assert [suite.get("name") for suite in root] == [
        f"{name} against old" for name in ("better", "worse", "same")
    ]

    def cases(kind: str) -> set[tuple[str | None, str | None]]:
        return {
            (suite.get("name"), case.get("name"))
            for suite in root
            for case in suite
            if case.find(kind) is not None
        }

    def rows(verdict: str) -> set[tuple[str, str]]:
        return {
            (f"{row.model} against old", str(row.gate))
            for row in report.rows
            if row.verdict == verdict
        }

    assert cases("failure") == rows("failed") == {("worse against old", "rr >= -0.5%")}
    assert cases("skipped") == rows("undecided") == {("same against old", "rr >= -0.5%")}
    assert cases("system-out") == rows("passed")
    assert (root.get("failures"), root.get("skipped")) == ("1", "1")
    for undecided, failures in (("pass", "1"), ("fail", "2")):
        mapped = compared.gate(["rr >= -0.5%", "rr >= -0.9"], undecided)  # type: ignore[arg-type]
        root = ElementTree.fromstring(junit(mapped))
        assert (root.get("failures"), root.get("skipped")) == (failures, "0")
        assert len(cases("failure")) == int(failures)
        assert not cases("skipped")


def test_printed_gate_can_be_parsed_again(compared: rm.Comparison) -> None:
    for text in ("rr >= -0.5%", "rr >= 0.02", "rr >= 1e-05"):
        assert str(compared.gate(text).rows[0].gate) == text


@pytest.mark.parametrize(
    ("gate", "undecided", "error", "message"),
    [
        ("rr > 0", None, rm.InputError, "cannot be read"),
        ("rr >= much", None, rm.InputError, "cannot be read"),
        ("ap >= 0", None, rm.UnknownNameError, "'ap' was not compared"),
        ("rr >= 0", "strict", rm.UnknownNameError, "must be 'pass', 'fail' or None"),
        ([], None, rm.InputError, "No gate"),
    ],
)
def test_invalid_gates_are_refused(
    compared: rm.Comparison, gate: str, undecided: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compared.gate(gate, undecided)  # type: ignore[arg-type]


def test_gate_without_a_baseline_is_refused(compared: rm.Comparison) -> None:
    models = {model.name: model.first for model in compared.models}
    with pytest.raises(rm.InputError, match="Hint: baseline= names"):
        rm.compare(models).gate("rr >= 0")


def test_gates_with_unknown_differences_do_not_pass() -> None:
    models = {"new": evaluation({"rr": [0.5, 0.2]}), "old": evaluation({"rr": [0.0, 0.0]})}
    compared = rm.compare(models, baseline="old")
    (row,) = compared.gate("rr >= -1%").rows
    assert row.verdict == "undecided"
    assert "not above 0" in row.note
    assert "unknown" in compared.gate("rr >= -1%").to_markdown().splitlines()[4]
    assert not compared.gate("rr >= -1%").passed


def test_gates_do_not_apply_to_chance() -> None:
    generator = np.random.default_rng(1)
    test, noise = generator.random((80, 30)) < 0.1, generator.random((80, 30))
    models = {
        name: rm.evaluate(rm.Scores(noise + strength * test), test, metrics="ndcg@5", chance=True)
        for name, strength in (("old", 0.5), ("new", 0.6))
    }
    report = rm.compare(models, baseline="old", chance=True).gate("ndcg@5 >= -1%")
    assert [row.model for row in report.rows] == ["new"]
    against = rm.compare(models, baseline="chance", chance=True).gate("ndcg@5 >= 10%")
    assert [row.model for row in against.rows] == ["old", "new"]


def test_gate_on_a_metric_outside_the_comparison_is_refused():
    scores = np.eye(3)
    result = rm.evaluate(rm.Scores(scores), scores, metrics="rr")
    versus = rm.compare({"a": result, "b": result}, baseline="a")
    with pytest.raises(rm.UnknownNameError, match="hit@1"):
        versus.gate("hit@1 >= 0")


def test_control_characters_are_visible_in_gates_and_junit() -> None:
    name = "a\x1b[31mred\x07\nb"
    scores = [0.9, 0.1, 0.5, 0.4, 0.8, 0.2]
    models = {name: evaluation({"rr": scores}), "base\x00": evaluation({"rr": scores[::-1]})}
    report = rm.compare(models, baseline="base\x00").gate(["rr >= -5%", "rr >= -2"])
    texts = [junit(report), str(report), *(text for row in report.rows for text in row.sentences())]
    for text in texts:
        assert not re.search("[\x00-\x09\x0b-\x1f]", text)
    assert ElementTree.fromstring(texts[0])[0].get("name") == (
        r"a\x1b[31mred\x07\nb against base\x00"
    )
    with pytest.raises(rm.UnknownNameError, match=r"a\\x1b\[31mred\\x07\\nb"):
        rm.compare(models, baseline="c")
