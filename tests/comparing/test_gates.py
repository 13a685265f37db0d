"""Gates: by how much a model may be worse than the baseline."""

from __future__ import annotations

import pathlib
from xml.etree import ElementTree

import numpy as np
import pytest
from results import evaluation

import recometer as rm
from recometer import stats
from recometer.comparing.gates import MODES, Gate
from recometer.comparing.junit import junit

OLD = np.round(np.random.default_rng(3).random(2_000), 2)
ACTIVITY = np.arange(2_000) % 100


def made(change: float, spread: float = 0.1) -> rm.Evaluation:
    noise = np.random.default_rng(round(1_000 * abs(change))).standard_normal(len(OLD))
    values = np.clip(OLD + change + spread * noise, 0, 1)
    return evaluation({"rr": values.tolist()}, activity=ACTIVITY)


@pytest.fixture(scope="module")
def compared() -> rm.Comparison:
    old = evaluation({"rr": OLD.tolist()}, activity=ACTIVITY)
    models = {"old": old, "better": made(0.03), "worse": made(-0.03), "same": made(0.0)}
    return rm.compare(models, baseline="old")


def verdicts(comparison: rm.Comparison, gate: str, mode: str) -> dict[str, str]:
    return {row.model: row.verdict for row in comparison.gate(gate, mode).rows}  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_clear_is_clear_in_every_mode(compared: rm.Comparison, mode: str) -> None:
    for gate in ("rr >= -1.5%", "rr >= -0.0075"):
        found = verdicts(compared, gate, mode)
        assert (found["better"], found["worse"]) == ("passed", "failed")


def test_modes_differ_where_chance_decides(compared: rm.Comparison) -> None:
    row = compared.row("rr", "same")
    inside = f"rr >= {row.difference - 1e-4:.6f}"
    assert verdicts(compared, inside, "point")["same"] == "passed"
    assert verdicts(compared, inside, "interval")["same"] == "failed"
    assert verdicts(compared, inside, "test")["same"] == "passed"
    assert verdicts(compared, inside, "strict")["same"] == "undecided"
    assert verdicts(compared, inside, "sequential")["same"] == "undecided"
    keeps = f"rr >= {row.low - 1e-6:.6f}"
    assert verdicts(compared, keeps, "interval")["same"] == "passed"
    relative = f"rr >= {100 * row.relative_low - 1e-3:.4f}%"
    assert verdicts(compared, relative, "interval")["same"] == "passed"


def test_the_test_is_one_of_the_bound(compared: rm.Comparison) -> None:
    report = compared.gate("rr >= -2%", "test")
    values = compared.per_user("rr", means=False)
    expected = stats.adjust(
        [
            stats.randomisation(values[name].to_numpy() - 0.98 * values["old"].to_numpy()).p_value
            for name in ("better", "worse", "same")
        ]
    )
    assert [row.p_value for row in report.rows] == pytest.approx(expected.tolist())


def test_a_sequence_grows_with_batches_and_errs_seldom() -> None:
    def batches(values: np.ndarray) -> list[rm.Evaluation]:
        return [
            evaluation({"rr": values[at].tolist()}, user_ids=at)
            for at in np.split(np.arange(1_200), 4)
        ]

    new, old = batches(np.clip(OLD[:1_200] - 0.1, 0, 1)), batches(OLD[:1_200])
    widths = []
    for n in range(1, 5):
        compared = rm.compare({"new": new[:n], "old": old[:n]}, baseline="old")
        (row,) = compared.gate("rr >= 0", "sequential").rows
        assert row.n == 300 * n
        widths.append(row.high - row.low)
    assert widths == sorted(widths, reverse=True)
    # What was seen of the first batches stays as it was.
    order = compared.users.order(compared.model("new"))
    assert set(order[:300].tolist()) == set(range(300))
    assert row.verdict == "failed"


def test_lower_is_better_turns_the_sign() -> None:
    one, two = made(0.2), evaluation({"rr": OLD.tolist()})
    values = {"new": one["rr"], "old": two["rr"]}
    models = {name: evaluation({"rmse": of.tolist()}) for name, of in values.items()}
    compared = rm.compare(models, baseline="old")
    assert verdicts(compared, "rmse <= 1%", "strict") == {"new": "failed"}
    assert verdicts(compared, "rmse <= 0.9", "interval") == {"new": "passed"}
    with pytest.raises(rm.InputError, match="Lower is better for rmse, so its gate"):
        compared.gate("rmse >= -1%")


def test_who_is_harmed_is_named(compared: rm.Comparison) -> None:
    report = compared.gate("rr >= -0.5%")
    (row,) = (row for row in report.rows if row.model == "worse")
    text = str(report).replace("\n  ", " ")
    assert f"Most harmed users: {row.changes.harmed[0].user!r}" in text
    assert row.segment.group.startswith("activity ")
    assert f"Most harmed segment: {row.segment.group}" in text
    assert report.verdict == "failed"
    assert not report.passed


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
    failed = {
        (suite.get("name"), case.get("name"))
        for suite in root
        for case in suite
        if case.find("failure") is not None
    }
    assert failed == {
        (f"{row.model} against old", str(row.gate))
        for row in report.rows
        if row.verdict != "passed"
    }
    assert root.get("failures") == str(len(failed))


def test_a_gate_is_written_as_it_is_read(compared: rm.Comparison) -> None:
    for text in ("rr >= -0.5%", "rr >= 0.02", "rr >= 1e-05"):
        assert str(compared.gate(text).rows[0].gate) == text
    assert compared.gate(Gate("rr", -0.5, False)).passed


@pytest.mark.parametrize(
    ("gate", "mode", "error", "message"),
    [
        ("rr > 0", "interval", rm.InputError, "cannot be read"),
        ("rr >= much", "interval", rm.InputError, "cannot be read"),
        ("ap >= 0", "interval", rm.UnknownNameError, "'ap' was not compared"),
        ("rr >= 0", "intervall", rm.UnknownNameError, "Did you mean 'interval'"),
        ([], "interval", rm.InputError, "No gate"),
    ],
)
def test_bad_gates(
    compared: rm.Comparison, gate: str, mode: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compared.gate(gate, mode)  # type: ignore[arg-type]


def test_a_gate_needs_a_baseline(compared: rm.Comparison) -> None:
    models = {model.name: model.first for model in compared.models}
    with pytest.raises(rm.InputError, match="Hint: baseline= names"):
        rm.compare(models).gate("rr >= 0")


def test_what_is_not_known_does_not_pass() -> None:
    models = {"new": evaluation({"rr": [0.5, 0.2]}), "old": evaluation({"rr": [0.0, 0.0]})}
    compared = rm.compare(models, baseline="old")
    (row,) = compared.gate("rr >= -1%").rows
    assert row.verdict == "failed"
    assert "not above 0" in row.note
    assert compared.gate("rr >= -1%", "strict").verdict == "undecided"


def test_a_confidence_sequence_follows_users_who_are_independent() -> None:
    models = {"old": evaluation({"rr": OLD.tolist()}), "new": made(0.01)}
    found = rm.compare(models, baseline="old", cluster=np.arange(len(OLD)) // 2)
    with pytest.raises(rm.InputError, match="have to be independent"):
        found.gate("rr >= -1%", "sequential")


def test_chance_is_held_against_no_gate() -> None:
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


def test_a_confidence_sequence_is_of_one_seed() -> None:
    models = {"old": evaluation({"rr": OLD.tolist()}), "new": [made(0.01), made(0.02)]}
    with pytest.raises(rm.InputError, match="several seeds"):
        rm.compare(models, baseline="old").gate("rr >= -1%", "sequential")
