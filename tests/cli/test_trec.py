"""Tests that ``recometer evaluate`` prints the same values as trec_eval for TREC files."""

from __future__ import annotations

import gzip
import json
import pathlib
import re

import polars as pl
import pytest
from command_line import Result, run_command
from shared import SHARED

import recometer as rm
from recometer.metrics import METRICS

TREC = SHARED / "data" / "trec_eval"

# The recometer metric for each trec_eval measure that has a counterpart; {} is the cut-off.
NAMES = {
    "map": "ap",
    "map_cut_{}": "ap@{}",
    "Rprec": "rprecision",
    "Rprec_mult_1.00": "rprecision",
    "recip_rank": "rr",
    "P_{}": "precision@{}",
    "recall_{}": "recall@{}",
    "relative_P_{}": "tprecision@{}",
    "success_{}": "hit@{}",
    "ndcg": "ndcg",
    "ndcg_cut_{}": "ndcg@{}",
    "set_P": "precision",
    "set_recall": "recall",
    "set_relative_P": "precision(denominator=least)",
    "set_F": "f",
    "bpref": "bpref",
    "rbp": "rbp(p=0.9,graded)",
}

QRELS = """\
301 0 A 1
301 0 B 0
301 0 C 2
301 0 D -1
302 0 A 1
303 0 B 0
"""
RUN = """\
301 Q0 A 9 1.5 mine
301 Q0 D 8 1.5 mine and more
301 Q0 B 1 0.5 mine
301 Q0 C 2 0.25 mine
304 Q0 A 1 1 mine
"""


def evaluate(*arguments: object, stdin: bytes | None = None) -> Result:
    return run_command(["evaluate", *map(str, arguments)], input=stdin)


def topic_values(*arguments: object, stdin: bytes | None = None) -> dict[str, dict[str, float]]:
    """Return the values of each topic, and the means under the key "all", like trec_eval -q."""
    result = evaluate(*arguments, "--per-user", "--format", "json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    (content,) = json.loads(result.stdout)["models"].values()
    columns = content["per_user"]
    values = {
        topic: {name: columns[name][row] for name in columns if name != "user"}
        for row, topic in enumerate(columns["user"])
    }
    values["all"] = {name: row["mean"] for name, row in content["metrics"].items()}
    return values


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.test").write_text(QRELS, encoding="utf-8")
    (tmp_path / "run.txt").write_text(RUN.replace(" ", "\t"), encoding="utf-8")


def recometers_name(name: str) -> str | None:
    """Return recometer's name for a trec_eval metric, or None if there is none."""
    for theirs, ours in NAMES.items():
        match = re.fullmatch(re.escape(theirs).replace(r"\{\}", r"(\d+)"), name)
        if match and re.split(r"[@(]", ours)[0] in METRICS:
            return ours.format(*match.groups())
    return None


def test_files_are_recognised_by_their_contents(files) -> None:
    result = evaluate("--test", "qrels.test", "--run", "mine=run.txt", "-m", "rr")
    assert result.exit_code == 0
    assert "test: qrels.test (TREC qrels)\nmine: run.txt (TREC run)\n" in result.stderr


@pytest.mark.parametrize("end", [".run", ".trec", ".txt", ".run.gz", ".TXT.gz"])
def test_run_is_named_after_its_file_without_the_extension(files, end: str) -> None:
    content = RUN.encode()
    path = pathlib.Path(f"bm25.v2{end}")
    path.write_bytes(gzip.compress(content) if end.endswith(".gz") else content)
    result = evaluate("--test", "qrels.test", "--run", path, "-m", "rr", "--format", "json")
    assert list(json.loads(result.stdout)["models"]) == ["bm25.v2"]


def test_spellings_of_trec_eval_and_of_libraries_are_accepted(files) -> None:
    arguments = ("--test", "qrels.test", "--run", "run.txt")
    result = evaluate(*arguments, "--protocol", "Trec-Eval", "-m", "P.1,2", "--format", "json")
    (content,) = json.loads(result.stdout)["models"].values()
    assert list(content["metrics"]) == ["P_1", "P_2"]
    explained = run_command(["why", *arguments, "--metric", "ndcg@2", "--to", "RecBole"])
    assert explained.exit_code == 0
    assert "recbole: ndcg@2" in explained.stdout


def test_trec_files_can_be_combined_with_tables(files) -> None:
    """All ids are converted to the type of the test ids, unless that would change an id."""
    qrels = pl.DataFrame({"user": [301, 301, 302], "item": [1, 3, 1], "rating": [1, 2, 1]})
    run = pl.DataFrame({"user": [301] * 3, "item": [1, 2, 3], "score": [3.0, 2.0, 1.0]})
    train_rows = pl.DataFrame({"user": [301], "item": [2]})
    for name, frame in {"qrels": qrels, "run": run, "seen": train_rows}.items():
        frame.write_csv(f"{name}.csv")
        frame.write_parquet(f"{name}.parquet")
    lines = [f"{user} 0 {item} {value}\n" for user, item, value in qrels.iter_rows()]
    pathlib.Path("numbers.qrels").write_text("".join(lines), encoding="utf-8")
    lines = [f"{user} Q0 {item} 1 {score} mine\n" for user, item, score in run.iter_rows()]
    pathlib.Path("numbers.run").write_text("".join(lines), encoding="utf-8")
    pathlib.Path("seen.qrels").write_text("301 0 2 1\n", encoding="utf-8")
    tests = ("numbers.qrels", "qrels.csv", "qrels.parquet")
    trains = ("seen.qrels", "seen.csv", "seen.parquet")
    # Combine every format of the test file with every format of the lists.
    for first, test in enumerate(tests):
        for second, list_file in enumerate(("numbers.run", "run.csv", "run.parquet")):
            train = trains[(first + second) % 3]
            values = topic_values(
                *("--test", test, "--run", list_file, "--train", train, "-m", "rr ap"),
                *("--complete", "--value", "rating"),
            )
            values_by_user = {str(user): row for user, row in values.items()}
            assert values_by_user["301"] == {"rr": 1.0, "ap": 1.0}, (test, list_file, train)
    result = evaluate("--test", "qrels.csv", "--run", "run.txt")
    assert result.exit_code == 1
    assert "item ids of test are of type int" in result.stderr


def test_topics_without_a_list_are_left_out_unless_complete(files) -> None:
    arguments = ("--test", "qrels.test", "--run", "run.txt", "-m", "rr ap recall@1")
    values = topic_values(*arguments, "--ties", "item")
    assert values["301"] == {"rr": 1.0, "ap": 0.75, "recall@1": 0.5}
    assert values["302"] == {"rr": None, "ap": None, "recall@1": None}
    assert values["all"] == values["301"]
    assert topic_values(*arguments, "--ties", "item", "--no-complete") == values

    complete = topic_values(*arguments, "--ties", "item", "--complete")
    assert complete["302"] == {"rr": 0.0, "ap": 0.0, "recall@1": 0.0}
    assert complete["303"] == {"rr": None, "ap": None, "recall@1": None}  # no relevant items
    assert complete["all"] == {"rr": 0.5, "ap": 0.375, "recall@1": 0.25}
    as_rule = topic_values(*arguments, "--ties", "item", "--rule", "users=test")
    assert as_rule == complete


def test_topics_without_a_list_count_if_other_models_are_evaluated(files) -> None:
    lists = pl.DataFrame({"user": ["301", "301"], "item": ["A", "C"], "rank": [1, 2]})
    lists.write_csv("half.csv")
    arguments = ("--test", "qrels.test", "--run", "trec=run.txt", "--run", "csv=half.csv")
    arguments += ("-m", "rr recall@1", "--format", "json")
    for options, users, mentioned in (((), "test", True), (("--no-complete",), "known", False)):
        result = evaluate(*arguments, *options)
        assert result.exit_code == 0, result.stderr
        parsed = json.loads(result.stdout)["models"]
        assert {model["protocol"]["users"] for model in parsed.values()} == {users}
        n_counted = {model["metrics"]["rr"]["counted"] for model in parsed.values()}
        assert n_counted == {2 if users == "test" else 1}
        assert (
            "Warning: trec: because other models are not TREC runs, topics" in result.stderr
        ) == mentioned
    two_runs = evaluate(
        "--test", "qrels.test", "--run", "a=run.txt", "--run", "b=run.txt", "-m", "rr"
    )
    assert "beside" not in two_runs.stderr
    assert "known" in two_runs.stdout


def test_equal_scores_of_a_run_follow_the_tie_rule(files) -> None:
    arguments = ("--test", "qrels.test", "--run", "run.txt", "-m", "rr")
    assert topic_values(*arguments)["301"]["rr"] == 0.75
    assert topic_values(*arguments, "--ties", "item_desc")["301"]["rr"] == 0.5
    assert topic_values(*arguments, "--ties", "input")["301"]["rr"] == 1.0


def test_saved_protocol_overrides_the_default_for_runs(files) -> None:
    arguments = ("--test", "qrels.test", "--run", "mine=run.txt", "-m", "rr")
    assert evaluate(*arguments, "--complete", "--out", "saved").exit_code == 0
    values = topic_values(*arguments, "--protocol", "saved/mine.parquet")
    assert values["302"]["rr"] == 0.0
    assert rm.load("saved/mine.parquet").protocol.users == "test"


@pytest.mark.parametrize("compressed", [False, True])
def test_runs_and_qrels_are_read_from_standard_input(files, compressed: bool) -> None:
    form = ("--format-in", "trec")
    pack = gzip.compress if compressed else bytes
    by_name = topic_values("--test", "qrels.test", "--run", "run.txt", "-m", "ap")
    from_run = ("--test", "qrels.test", "--run", "-", "-m", "ap", *form)
    assert topic_values(*from_run, stdin=pack(RUN.encode())) == by_name
    from_test = ("--test", "-", "--run", "run.txt", "-m", "ap", *form)
    assert topic_values(*from_test, stdin=pack(QRELS.encode())) == by_name
    result = evaluate(*from_run, stdin=pack(RUN.encode()))
    assert "stdin: standard input (TREC run)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--test", "run.txt", "--run", "run.txt"),
            "run.txt is a TREC run, which contains recommendations",
        ),
        (("--test", "qrels.test", "--run", "qrels.test"), "qrels.test looks like TREC qrels"),
        (("--test", "qrels.test", "--run", "broken"), "line 2 is '301 Q0 A'"),
        (("--test", "prose", "--run", "run.txt"), "prose has an unsupported extension"),
        (("--test", "qrels.test", "--run", "other"), "user ids spelled the same in both files?"),
    ],
)
def test_unsuitable_files_are_refused(files, arguments: tuple[str, ...], message: str) -> None:
    for name, text in {
        "broken": RUN.splitlines()[0] + "\n301 Q0 A\n",
        "prose": "Once upon a time\n",
        "other": "t301 Q0 A 1 2 mine\n",
    }.items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
    result = evaluate(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert "rm." not in result.stderr.replace("trec_eval", "")


def test_standard_input_in_another_format_is_refused(files) -> None:
    arguments = ("--test", "-", "--run", "run.txt", "--format-in", "trec")
    result = evaluate(*arguments, stdin=b"user,item\n1,2\n")
    assert result.exit_code == 1
    assert "Standard input is not a TREC file." in result.stderr


@pytest.mark.shared
@pytest.mark.parametrize("by_own_name", [False, True])
@pytest.mark.parametrize(
    ("expected", "qrels", "run", "options", "fewest"),
    [
        ("out.test.a", "qrels.test", "results.test", (), 59),
        ("out.test.aq", "qrels.test", "results.test", (), 236),
        ("out.test.aqc", "qrels.test", "results.trunc", ("--complete",), 236),
        ("out.test.aqcM", "qrels.test", "results.trunc", ("--complete", "--depth", 100), 236),
        ("out.test.aql", "qrels.rel_level", "results.test", ("--relevant-from", 2), 236),
        ("out.test.meas_params", "qrels.test", "results.test", (), 44),
    ],
)
def test_every_measure_agrees_with_trec_eval(
    expected, qrels, run, options, fewest, by_own_name
) -> None:
    lines = [line.split() for line in (TREC / expected).read_text(encoding="utf-8").splitlines()]
    printed = {(topic, name): value for name, topic, value in lines}
    names = {name: recometers_name(name) for _, name in printed if recometers_name(name)}
    rules = ("--ties", "item_desc")
    if by_own_name:
        names, rules = {name: name for name in names}, ("--protocol", "trec_eval")
    values = topic_values(
        *("--test", TREC / qrels, "--run", TREC / run, *rules, *options),
        *("-m", " ".join(names.values())),
    )
    compared = 0
    for (topic, name), value in printed.items():
        if name in names:
            assert f"{values[topic][names[name]]:.4f}" == value, (topic, name)
            compared += 1
    assert compared >= fewest
