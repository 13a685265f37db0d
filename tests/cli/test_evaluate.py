"""Tests of ``recometer evaluate``, which prints tables, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from command_line import Result, run_command

import recometer as rm
from recometer.cli import main

METRICS = "ndcg@5 recall@5,10 roc_auc"
NAMES = ["ndcg@5", "recall@5", "recall@10", "roc_auc"]


def evaluate(*arguments: object, stdin: bytes | None = None, **environment: str) -> Result:
    return run_command(
        ["evaluate", *map(str, arguments)], input=stdin, env={"COLUMNS": "100"} | environment
    )


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a separate process."""
    command = [sys.executable, "-m", "recometer", "evaluate", *map(str, arguments)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, capture_output=True, env=environment, check=False, **options)  # type: ignore[call-overload,no-any-return]


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def folder(
    files: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """Work in a folder with fresh copies of the files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Write files with 20 users and 30 items, which are identified by position."""
    path = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        _write_files()
    return path


def _write_files() -> None:
    generator = np.random.default_rng(5)
    users = generator.normal(size=(20, 4)).astype(np.float32)
    items = generator.normal(size=(30, 4)).astype(np.float32)
    np.save("users.npy", users)
    np.save("items.npy", items)
    np.save("other.npy", generator.normal(size=(30, 4)).astype(np.float32))
    kind = generator.random((20, 30)) + 0.05 * (users @ items.T)
    for name, cells in (("train", kind < 0.2), ("test", kind > 0.8)):
        user, item = np.nonzero(cells)
        frame = pl.DataFrame(
            {"user_id": user, "movieId": item, "rating": generator.integers(1, 6, len(user))}
        )
        frame.write_parquet(f"{name}.parquet")
        frame.write_csv(f"{name}.csv")
        frame.write_csv(f"{name}.tsv", separator="\t")
    _write_lists(users @ items.T)
    pathlib.Path("items.txt").write_text("".join(f"{i}\n" for i in range(30)), encoding="utf-8")
    pathlib.Path("users.txt").write_text("".join(f"{u}\n" for u in range(20)), encoding="utf-8")


def _write_lists(scores: np.ndarray) -> None:
    """Write four files with a list of 8 items for each user.

    als.parquet contains scores, ranked.csv contains ranks, fewer.csv lacks the list of one user,
    and odd.csv contains scores and ranks under unusual names. No list contains training items.
    """
    train = pl.read_parquet("train.parquet")
    scores = scores.astype(np.float64)
    scores[train["user_id"], train["movieId"]] = -np.inf
    top = np.argsort(-scores, axis=1)[:, :8]
    lists = pl.DataFrame(
        {
            "user_id": np.repeat(np.arange(20), 8),
            "movieId": top.ravel(),
            "prediction": np.take_along_axis(scores, top, axis=1).ravel(),
            "rank": np.tile(np.arange(1, 9), 20),
        }
    )
    lists.drop("rank").write_parquet("als.parquet")
    lists.drop("prediction").sample(fraction=1, shuffle=True, seed=1).write_csv("ranked.csv")
    lists.drop("rank").filter(pl.col("user_id") != 3).write_csv("fewer.csv")
    lists.rename({"prediction": "points", "rank": "better"}).write_csv("odd.csv")


BASIC = ("--test", "test.parquet", "--train", "train.parquet", "-m", METRICS)
MF = ("--factors", "mf=users.npy,items.npy,users.txt,items.txt")
BY_POSITION = ("--factors", "mf=users.npy,items.npy,positions,positions")
OTHER = ("--factors", "other=users.npy,other.npy,users.txt,items.txt")


def expected(items: str = "items.npy", **rules: object) -> rm.Evaluation:
    """Return the evaluation that the library computes from the same files."""
    ids = {"user_ids": np.arange(20), "item_ids": np.arange(30)}
    return rm.evaluate(
        rm.Factors(np.load("users.npy"), np.load(items), **ids),
        rm.Interactions.of("test.parquet"),
        train="train.parquet",
        metrics=METRICS,
        **rules,  # type: ignore[arg-type]
    )


def means(result: Result) -> dict[str, dict[str, float]]:
    """Return the means from JSON output, per model and metric."""
    assert result.exit_code == 0, result.stderr
    models = json.loads(result.stdout)["models"]
    return {
        model: {name: row["mean"] for name, row in content["metrics"].items()}
        for model, content in models.items()
    }


# Output formats


def test_result_of_one_model_is_printed_as_in_python(folder) -> None:
    result = evaluate(*BASIC, *MF)
    assert result.exit_code == 0
    assert one_line(result.stdout) == one_line(str(expected()))


def test_train_values_are_read_as_in_the_library(folder) -> None:
    assert evaluate(*BASIC, *MF, "--out", "saved").exit_code == 0
    results = {"command": rm.load("saved/mf.parquet"), "library": expected()}
    assert {row.verdict for row in rm.compare(results).rows} == {"no difference shown"}
    train = pl.read_parquet("train.parquet")
    train.with_columns(rating=pl.lit(0)).write_parquet("train.parquet")
    result = evaluate(*BASIC, *MF)
    assert f"{len(train):,} training values are 0, but count as seen" in one_line(result.stderr)


def test_several_models_are_printed_with_the_best_first(folder) -> None:
    result = evaluate(*BASIC, *OTHER, *MF)
    assert result.exit_code == 0
    header, first, second, *rest = result.stdout.splitlines()
    assert header.split() == ["model", *NAMES, "counted", "skipped"]
    assert (first.split()[0], second.split()[0]) == ("mf", "other")
    assert f"{expected().mean()['ndcg@5']:.4f}" in first
    assert "95% interval" in " ".join(rest)


def test_best_means_are_highlighted_on_a_terminal(folder) -> None:
    result = evaluate(*BASIC, *OTHER, *MF, FORCE_COLOR="1", TERM="xterm")
    assert f"\x1b[1;32m{expected().mean()['ndcg@5']:.4f}" in result.stdout


def test_results_are_printed_as_json(folder) -> None:
    result = evaluate(*BASIC, *MF, *OTHER, "--format", "json", "--seed", 7)
    content = json.loads(result.stdout)
    assert list(content["models"]) == ["mf", "other"]
    assert content["seed"] == 7
    assert content["recometer"] == rm.__version__
    mf, library = content["models"]["mf"], expected()
    assert rm.Protocol(**mf["protocol"]) == rm.Protocol()
    assert mf["users"] == library.n_users
    assert mf["counts"] == library.counts
    assert list(mf["metrics"]) == NAMES
    for row in library.summary():
        interval = mf["metrics"][row.metric]
        assert (interval["mean"], interval["low"], interval["high"]) == (
            row.mean,
            row.low,
            row.high,
        )
        assert (interval["counted"], interval["skipped"]) == (row.counted, row.skipped)


def test_results_are_printed_as_csv(folder) -> None:
    result = evaluate(*BASIC, *MF, *OTHER, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["model"], row["metric"]) for row in rows] == [
        (model, name) for model in ("mf", "other") for name in NAMES
    ]
    for row, summary in zip(rows, expected().summary(), strict=False):
        assert [float(row[part]) for part in ("mean", "low", "high", "counted", "skipped")] == [
            summary.mean,
            summary.low,
            summary.high,
            summary.counted,
            summary.skipped,
        ]


@pytest.mark.parametrize("models", [MF, (*MF, *OTHER)])
def test_results_are_printed_as_markdown(folder, models) -> None:
    result = evaluate(*BASIC, *models, "--format", "markdown")
    table, *notes = result.stdout.split("\n\n")
    header, rule, *rows = table.splitlines()
    assert notes
    assert set(rule) <= set("|-: ")
    assert {line.count("|") for line in (header, rule, *rows)} == {header.count("|")}
    assert f"{expected().mean()['ndcg@5']:.4f}" in result.stdout


def test_values_per_user_are_printed_in_every_format(folder) -> None:
    library = expected()
    (folder / "more.csv").write_text(
        (folder / "test.csv").read_text("utf-8") + "99,3,1\n", encoding="utf-8"
    )
    arguments = ("--test", "more.csv", *BASIC[2:], "--per-user", "--rule", "users=known")
    content = json.loads(evaluate(*arguments, *MF, "--format", "json").stdout)
    columns = content["models"]["mf"]["per_user"]
    assert columns["user"] == [*library.user_ids.tolist(), 99]
    assert columns["recall@10"] == [*library["recall@10"].tolist(), None]

    text = evaluate(*arguments, *MF, *OTHER, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["model", "user", *NAMES]
    mf = [row for row in rows if row["model"] == "mf"]
    assert [int(row["user"]) for row in mf] == columns["user"]
    assert [float(row["ndcg@5"]) for row in mf[:-1]] == library["ndcg@5"].tolist()
    assert mf[-1]["ndcg@5"] == ""
    assert len(rows) == 2 * len(mf)

    table = evaluate(*arguments, *MF).stdout
    first = next(line for line in table.splitlines() if line.startswith("mf"))
    assert first.split() == [
        "mf",
        str(library.user_ids[0]),
        *(f"{library[name][0]:.4f}" for name in NAMES),
    ]
    assert "undefined" in table
    assert "95% interval" in table


def test_undefined_means_are_null_or_empty(folder) -> None:
    arguments = (*BASIC, *MF, "--relevant-from", 100)
    row = json.loads(evaluate(*arguments, "--format", "json").stdout)["models"]["mf"]
    recall = row["metrics"]["recall@5"]
    assert (recall["mean"], recall["low"], recall["counted"]) == (None, None, 0)
    assert recall["reasons"] == {"no relevant item to find": recall["skipped"]}
    lines = evaluate(*arguments, "--format", "csv").stdout.splitlines()
    assert lines[1].startswith("mf,ndcg@5,")
    assert lines[2].startswith("mf,recall@5,,,,,0,")


def test_metrics_can_be_passed_in_several_options(folder) -> None:
    data = ("--test", "test.parquet", *MF, "--format", "csv")
    one_by_one = evaluate(*data, "-m", "recall@10 rr", "--metrics", "ndcg@5")
    assert one_by_one.exit_code == 0
    assert one_by_one.stdout == evaluate(*data, "-m", "recall@10 rr ndcg@5").stdout


def test_out_writes_the_evaluation_of_each_model(folder) -> None:
    result = evaluate(*BASIC, *MF, *OTHER, "--out", "new/results")
    assert result.exit_code == 0
    results = folder / "new" / "results"
    assert sorted(os.listdir(results)) == ["mf.parquet", "other.parquet"]
    loaded = rm.load(results / "other.parquet")
    assert loaded.mean() == expected("other.npy").mean()
    assert "written: new/results: mf.parquet, other.parquet\n" in result.stderr


def test_out_replaces_only_earlier_output(folder) -> None:
    for _ in range(2):
        assert evaluate(*BASIC, *MF, "--out", "again").exit_code == 0
    (folder / "other.parquet").write_bytes((folder / "train.parquet").read_bytes())
    lists = [path for path in folder.iterdir() if path.suffix == ".parquet"]
    before = {path.name: path.read_bytes() for path in lists}
    (folder / "linked").mkdir()
    (folder / "linked" / "mf.parquet").hardlink_to(folder / "train.parquet")
    test = ("--test", "test.parquet", "--train", "train.parquet")
    factors = MF[1].partition("=")[2]
    for arguments, message in (
        ((*test, "--factors", f"train={factors}", "--out", "."), "train.parquet is an input"),
        ((*test, *MF, "--out", "linked"), "linked/mf.parquet is an input"),
        ((*test, *MF, "--out", "again", "--protocol", "again/mf.parquet"), "is an input"),
        ((*test, "--factors", f"other={factors}", "--out", "."), "other.parquet exists"),
    ):
        result = evaluate(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr.replace(os.sep, "/")
        assert "Hint: choose an empty folder." in result.stderr
    assert {path.name: path.read_bytes() for path in lists} == before


def test_out_must_name_a_folder(folder) -> None:
    result = evaluate(*BASIC, *MF, "--out", "")
    assert result.exit_code == 2
    assert "does not name a folder" in result.stderr
    assert not (folder / "mf.parquet").exists()


# Input


@pytest.mark.parametrize(
    ("extension", "by"),
    [
        *((extension, "name") for extension in ("parquet", "csv", "tsv")),
        *((extension, "standard input") for extension in ("parquet", "csv", "tsv")),
        *((extension, "gzip on standard input") for extension in ("csv", "tsv")),
    ],
)
def test_test_file_of_any_format_gives_the_same_means(folder, extension: str, by: str) -> None:
    path, stdin, form = f"test.{extension}", None, ()
    if by != "name":
        stdin, path, form = (folder / path).read_bytes(), "-", ("--format-in", extension)
    if by.startswith("gzip"):
        stdin = gzip.compress(stdin)
    arguments = ("--test", path, *BASIC[2:], *MF, "--format", "json", *form)
    result = evaluate(*arguments, stdin=stdin)
    assert means(result)["mf"] == expected().mean()
    source_name = path if by == "name" else "standard input"
    assert f"test: {source_name} (user 'user_id', item 'movieId', value 'rating')" in result.stderr


def test_standard_input_requires_a_format(folder) -> None:
    # A header with more commas than tabs looks like CSV.
    text = (folder / "test.tsv").read_text("utf-8").replace("rating", "a,b,c,d,e")
    arguments = ("--test", "-", *BASIC[2:], *MF, "--format", "json", "--value", "a,b,c,d,e")
    refused = evaluate(*arguments, stdin=text.encode())
    assert refused.exit_code == 2
    message = " ".join(re.sub("[│╭╮╰╯─]", " ", refused.stderr).split())
    assert (
        "--format-in: it is required, because the format of - cannot be inferred: csv, tsv"
        in message
    )
    result = evaluate(*arguments, "--format-in", "tsv", stdin=text.encode())
    assert means(result)["mf"] == expected().mean()


def test_error_about_factors_without_ids_suggests_positions(folder) -> None:
    result = evaluate(*BASIC, "--factors", "mf=users.npy,items.npy")
    assert result.exit_code == 1
    assert "users.npy has no user ids, but test has them, such as 0" in result.stderr
    assert "--factors NAME=USERS,ITEMS,positions,positions" in result.stderr
    # Ids that start at 1 are not positions.
    shifted = pl.read_parquet("test.parquet").with_columns(pl.col("user_id") + 1)
    shifted.write_parquet("test.parquet")
    result = evaluate(*BASIC, *BY_POSITION)
    assert result.exit_code == 1
    assert "users.npy has users 0 to 19, but test has user 20" in result.stderr


def test_factors_by_position_are_reported(folder) -> None:
    result = evaluate(*BASIC, *BY_POSITION)
    assert "users.npy: its rows are the users 0 to 19" in result.stderr


def write_factor_files(folder: pathlib.Path) -> dict[str, str]:
    """Write shuffled item factors with ids; return the value of --factors for each kind of file."""
    order = np.random.default_rng(1).permutation(30)
    items = np.load("items.npy")[order]
    np.save("shuffled.npy", items)
    np.save("order.npy", order)
    lines = "".join(f"{i}\n" for i in order)
    (folder / "order.txt").write_text(lines, encoding="utf-8")
    (folder / "order.csv").write_text("item_id\n" + lines, encoding="utf-8")
    pl.DataFrame({"name": ["x"] * 30, "movie": order}).write_parquet("order.parquet")
    pl.DataFrame({"id": order, "features": items.tolist()}).with_columns(
        pl.col("features").cast(pl.List(pl.Float32))
    ).write_parquet("lists.parquet")
    pl.DataFrame(items).with_columns(pl.Series("item", order)).write_parquet("columns.parquet")
    pl.DataFrame({"item": order, "factors": items}).write_parquet("arrays.parquet")
    return {
        "npy": "users.npy,shuffled.npy,positions,order.npy",
        "txt": "users.npy,shuffled.npy,users.txt,order.txt",
        "csv": "users.npy,shuffled.npy,users.txt,order.csv",
        "parquet": "users.npy,shuffled.npy,positions,order.parquet",
        "lists": "users.npy,lists.parquet,positions,",
        "columns": "users.npy,columns.parquet,users.txt,",
        "arrays": "users.npy,arrays.parquet,positions,",
    }


@pytest.mark.parametrize("kind", ["npy", "txt", "csv", "parquet", "lists", "columns", "arrays"])
def test_ids_of_factors_are_read_from_any_file(folder, kind: str) -> None:
    files = write_factor_files(folder)[kind]
    result = evaluate(*BASIC, "--factors", f"mf={files}", "--format", "json")
    assert means(result)["mf"] == pytest.approx(expected().mean(), abs=1e-12)


def test_text_ids_stay_text_if_test_has_text_ids(folder) -> None:
    for name in ("test", "train"):
        pl.read_parquet(f"{name}.parquet").cast(
            {"user_id": pl.String, "movieId": pl.String}
        ).write_parquet(f"{name}.parquet")
    files = "mf=users.npy,items.npy,users.txt,items.txt"
    result = evaluate(*BASIC, "--factors", files, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert means(result)["mf"]["roc_auc"] > 0.5

    result = evaluate(*BASIC, *BY_POSITION)
    assert result.exit_code == 1
    assert "positions: the rows of users.npy are the users 0, 1, 2, ..." in result.stderr
    assert "the test users are of type str, such as '0'" in result.stderr
    assert "--factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS" in result.stderr


def test_column_names_can_differ_between_files(folder) -> None:
    library = expected()
    pl.read_parquet("test.parquet").rename({"user_id": "who", "movieId": "what"}).write_parquet(
        "test.parquet"
    )
    result = evaluate(*BASIC, *MF, "--user", "who", "--item", "what", "--format", "json")
    assert means(result)["mf"] == library.mean()
    assert "test: test.parquet (user 'who', item 'what', value 'rating')" in result.stderr
    assert "train: train.parquet (user 'user_id', item 'movieId', value 'rating')" in result.stderr


def test_value_none_ignores_the_values_of_test(folder) -> None:
    result = evaluate(*BASIC, *MF, "--value", "none", "--relevant-from", 1, "--format", "json")
    assert result.exit_code == 0
    assert "value" not in result.stderr.splitlines()[0]


# Lists

LISTS = ("--test", "test.parquet", "--train", "train.parquet", "-m", "ndcg@5 recall@8 ap@8 rr@8")


@pytest.mark.parametrize("path", ["als.parquet", "ranked.csv"])
def test_lists_of_a_model_give_the_same_values_as_its_factors(folder, path: str) -> None:
    actual = means(evaluate(*LISTS, "--run", path, *MF, "--format", "json"))
    assert list(actual) == [path.partition(".")[0], "mf"]
    assert actual[path.partition(".")[0]] == pytest.approx(actual["mf"], abs=1e-12)


def test_list_columns_are_reported(folder) -> None:
    result = evaluate(*LISTS, "--run", "als.parquet", "--run", "b=ranked.csv")
    assert "als: als.parquet (user 'user_id', item 'movieId', score 'prediction')" in result.stderr
    assert "b: ranked.csv (user 'user_id', item 'movieId', rank 'rank')" in result.stderr


def test_list_columns_can_be_named(folder) -> None:
    expected_means = means(evaluate(*LISTS, "--run", "als.parquet", "--format", "json"))["als"]
    for option in (("--score", "points"), ("--rank", "better")):
        result = evaluate(
            *LISTS, "--run", "a=odd.csv", "--run", "ranked.csv", *option, "-q", "--format", "json"
        )
        for model_means in means(result).values():
            assert model_means == expected_means
    # Read as scores, the ranks in the column "better" put the worst item first.
    result = evaluate(*LISTS, "--run", "a=odd.csv", "--score", "better", "--format", "json")
    assert means(result)["a"]["ndcg@5"] != expected_means["ndcg@5"]
    assert "a: odd.csv (user 'user_id', item 'movieId', score 'better')" in result.stderr


def test_named_rank_column_orders_the_lists_whatever_the_order_of_the_rows(folder) -> None:
    pl.read_csv(folder / "odd.csv").reverse().write_csv(folder / "reversed.csv")
    results = [
        evaluate(*LISTS, "--run", f"a={file}.csv", "--rank", "better", "--format", "json")
        for file in ("odd", "reversed")
    ]
    assert means(results[0]) == means(results[1])
    assert "a: reversed.csv (user 'user_id', item 'movieId', rank 'better')" in results[1].stderr


def test_row_order_is_reported_with_a_warning(folder) -> None:
    frame = pl.read_parquet(folder / "als.parquet").rename({"prediction": "utility"})
    frame.write_csv(folder / "unnamed.csv")
    run = (*LISTS, "--run", "a=unnamed.csv")
    result = evaluate(*run)
    assert "(user 'user_id', item 'movieId', in the order of the rows)" in result.stderr
    text = " ".join(result.stderr.split())
    assert "--score utility ranks by that column, highest first; --rank none, --score none" in text
    for options in (("--score", "utility"), ("--score", "none", "--rank", "none")):
        assert "ranks by that column" not in evaluate(*run, *options).stderr


@pytest.mark.parametrize("path", ["als.parquet", "ranked.csv"])
def test_lists_are_read_from_standard_input(folder, path: str) -> None:
    by_name = means(evaluate(*LISTS, "--run", f"a={path}", "--format", "json"))
    stdin = (folder / path).read_bytes()
    form = ("--format", "json", "--format-in", path.rpartition(".")[2])
    result = evaluate(*LISTS, "--run", "a=-", *form, stdin=stdin)
    assert means(result) == by_name
    assert "a: standard input (user 'user_id', " in result.stderr
    result = evaluate(*LISTS, "--run", "-", *form, stdin=stdin)
    assert list(means(result)) == ["stdin"]


def test_flat_values_match_python(folder: pathlib.Path) -> None:
    for _ in range(2):  # the second run replaces the file
        assert evaluate(*BASIC, *MF, "--flat", "flat.json", "--out", "saved").exit_code == 0
    parsed = json.loads(pathlib.Path("flat.json").read_text(encoding="utf-8"))
    assert parsed == rm.load("saved/mf.parquet").flat()
    refused = evaluate(*BASIC, *MF, "--flat", "test.parquet")
    assert "test.parquet is an input" in one_line(refused.stderr)
    assert evaluate(*BASIC, *MF, *OTHER, "--flat", "all.json", "--out", "saved").exit_code == 0
    both = {name: rm.load(f"saved/{name}.parquet") for name in ("mf", "other")}
    assert json.loads(pathlib.Path("all.json").read_text()) == rm.Leaderboard(both).flat()


@pytest.mark.parametrize("content", ["{", "[1]", '{"ndcg@10": 1}', "mine", "[" * 10**5])
def test_flat_values_do_not_replace_another_file(folder: pathlib.Path, content: str) -> None:
    pathlib.Path("mine.json").write_text(content, encoding="utf-8")
    result = evaluate(*BASIC, *MF, "--flat", "mine.json")
    assert result.exit_code == 1
    assert "mine.json exists, and was not written by recometer" in result.stderr
    assert pathlib.Path("mine.json").read_text(encoding="utf-8") == content


def test_users_without_a_list_count_as_misses_unless_left_out(folder) -> None:
    arguments = (*LISTS, "--run", "fewer.csv", "--format", "json")
    with_all_lists = json.loads(evaluate(*LISTS, "--run", "als.parquet", "--format", "json").stdout)
    users = with_all_lists["models"]["als"]["users"]
    for option, n_counted in (
        ((), users),
        (("--complete",), users),
        (("--no-complete",), users - 1),
    ):
        content = json.loads(evaluate(*arguments, *option).stdout)["models"]["fewer"]
        assert content["metrics"]["rr@8"]["counted"] == n_counted
        assert content["counts"]["users_unknown"] == 1


def test_lists_can_be_truncated(folder) -> None:
    frame = pl.read_parquet("als.parquet")
    frame.group_by("user_id", maintain_order=True).head(2).write_parquet("short.parquet")
    arguments = ("--test", "test.parquet", "-m", "precision recall ap ndcg rr")
    result = evaluate(*arguments, "--run", "als.parquet", "--depth", 2, "--format", "json")
    short = evaluate(*arguments, "--run", "short.parquet", "--format", "json")
    assert means(result)["als"] == means(short)["short"]
    assert json.loads(result.stdout)["models"]["als"]["source"].endswith(", cut at 2")


@pytest.mark.parametrize("catalogue", ["30", "items.txt", "ids.parquet"])
def test_catalogue_enables_the_rule_for_deep_cutoffs(folder, catalogue: str) -> None:
    pl.DataFrame({"movieId": np.arange(30)}).write_parquet("ids.parquet")
    arguments = ("--test", "test.parquet", "--run", "als.parquet", "-m", "recall@8 recall@40")
    result = evaluate(*arguments, "--format", "json")
    assert means(result)["als"]["recall@40"] == means(result)["als"]["recall@8"]
    result = evaluate(*arguments, "--catalogue", catalogue, "--format", "json")
    assert means(result)["als"]["recall@40"] is None


def test_metrics_of_lists_are_printed_in_every_format(folder) -> None:
    genres = [f"g{i % 3}|g{i % 4}" for i in range(30)]
    pl.DataFrame({"movieId": np.arange(30), "genres": genres}).write_csv("items.csv")
    metrics = "coverage@5 category_entropy@5 overlap@5 ndcg@5"
    arguments = ("--test", "test.parquet", "--train", "train.parquet", "-m", metrics, *MF)
    side = ("--catalogue", "items.csv", "--baseline")
    for baseline, form in (("mf", "json"), ("als.parquet", "json")):
        result = evaluate(*arguments, "--run", "als.parquet", *side, baseline, "--format", form)
        assert result.exit_code == 0, result.stderr
        assert "catalogue: items.csv (30 items, 4 categories)" in result.stderr
        actual = means(result)
        assert list(actual["mf"]) == metrics.split()
        assert actual["mf" if baseline == "mf" else "als"]["overlap@5"] == 1
    for form in ("table", "csv", "markdown"):
        result = evaluate(*arguments, *side, "mf", "--format", form, "--per-user")
        assert result.exit_code == 0, result.stderr
    table = evaluate(*arguments, "--run", "als.parquet", *side, "mf").stdout
    assert "coverage@5" in table
    result = evaluate(*arguments, "--catalogue", "items.csv")
    assert result.exit_code == 1
    assert "'overlap@5' needs other lists to compare with" in result.stderr
    assert "pass --baseline" in result.stderr


def test_columns_of_the_catalogue_can_be_named(folder) -> None:
    columns = {"movieId": np.arange(30), "kind": [f"g{i % 3}" for i in range(30)]}
    columns |= {"x": np.arange(30) % 7.0, "y": np.arange(30) % 5.0, "seen": np.full(30, 0.5)}
    pl.DataFrame(columns).write_csv("items.csv")
    lists = [[float(i % 7), float(i % 5)] for i in range(30)]
    pl.DataFrame({**columns, "embedding": lists}).write_parquet("items.parquet")
    metrics = "ild@5 category_entropy@5 ips_recall@5(propensity=given)"
    arguments = ("--test", "test.parquet", "-m", metrics, *MF, "--format", "json")
    named_columns = ("--categories", "kind", "--propensity", "seen", "--features")
    first = evaluate(*arguments, "--catalogue", "items.csv", *named_columns, "x,y")
    assert first.exit_code == 0, first.stderr
    assert all(means(first)["mf"].values())
    second = evaluate(*arguments, "--catalogue", "items.parquet", *named_columns, "embedding")
    assert means(first) == means(second)


@pytest.mark.parametrize(
    ("metric", "arguments", "code", "message"),
    [
        ("ild@5", ("--catalogue", "items.txt"), 1, "pass --catalogue FILE --features COLUMN"),
        ("category_entropy@5", (), 1, "pass --catalogue FILE --categories COLUMN"),
        ("ips_recall@5(propensity=given)", (), 1, "pass --catalogue FILE --propensity COLUMN"),
        ("overlap@5", (), 1, "pass --baseline (a model's name, or a file)"),
        ("overlap@5", ("--baseline", "mff"), 1, "no such model. Hint: the models are 'mf'"),
        (
            "ild@5",
            ("--catalogue", "30", "--features", "x"),
            2,
            "--catalogue FILE --features COLUMN",
        ),
        ("ild@5", ("--features", "x"), 2, "names a column of the table of items"),
        ("ild@5", ("--catalogue", "items.txt", "--features", "x"), 1, "items.txt is not a table"),
    ],
)
def test_error_about_missing_side_data_names_the_option(
    folder, metric, arguments, code, message
) -> None:
    result = evaluate("--test", "test.parquet", *MF, "-m", metric, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_counts_of_several_models_mention_the_model(folder) -> None:
    result = evaluate(*LISTS, "--run", "fewer.csv", *MF, "--relevant-from", 2)
    assert "test users that the source does not know: 1 (fewer)" in result.stdout
    assert "protocol: recometer relevant_from=2.0\n" in result.stdout


def test_warnings_mention_the_model(folder) -> None:
    result = evaluate(*LISTS[:4], "-m", "recall@20", "--run", "als.parquet", *MF, "--quiet")
    assert result.stderr.startswith(
        "Warning: als: recall@20: the cut-off is larger than every list"
    )
    assert len(result.stderr.splitlines()) == 1


# Rules


def test_rules_apply_as_in_python(folder) -> None:
    rules = ("--relevant-from", 3, "--ties", "item", "--rule", "undefined=0")
    rules += ("--rule", "cold_start=false", "--rule", "min_positives=2")
    result = evaluate(*BASIC, *MF, *rules, "--format", "json")
    library = expected(
        relevant_from=3.0, ties="item", undefined=0, cold_start=False, min_positives=2
    )
    assert means(result)["mf"] == library.mean()
    protocol = json.loads(result.stdout)["models"]["mf"]["protocol"]
    assert rm.Protocol(**protocol) == library.protocol


def test_protocol_of_a_saved_evaluation_reproduces_it(folder) -> None:
    assert evaluate(*BASIC, *MF, "--relevant-from", 3, "--out", "saved").exit_code == 0
    result = evaluate(*BASIC, *MF, "--protocol", "saved/mf.parquet", "--format", "json")
    assert means(result)["mf"] == expected(relevant_from=3.0).mean()


def test_number_of_threads_does_not_change_values(folder) -> None:
    outputs = {evaluate(*BASIC, *MF, "--threads", n, "--format", "json").stdout for n in (1, 2)}
    assert len(outputs) == 1


# Tests of standard error and exit codes


def test_quiet_leaves_standard_error_to_warnings_and_errors(folder) -> None:
    assert evaluate(*BASIC, *MF, "--quiet").stderr == ""
    doubled = (folder / "test.csv").read_text("utf-8")
    (folder / "test.csv").write_text(doubled + doubled.splitlines()[1] + "\n", encoding="utf-8")
    result = evaluate("--test", "test.csv", *MF, "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: test: 1 of ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to test on. Hint: --test or --split"),
        (("--test", "test.csv"), "there is no model to evaluate"),
        (("--test", "test.csv", "--factors", "users.npy"), "is not [NAME=]USERS,ITEMS"),
        (("--test", "test.csv", "--factors", "a=b,c,d"), "is not [NAME=]USERS,ITEMS"),
        (("--test", "test.csv", "--factors", "=a,b"), "has no name before '='"),
        ((*BASIC, *MF, *MF), "two models are called 'mf'"),
        (
            (*BASIC, *MF, "--ties", "luck"),
            "--ties luck: the rule has no such value. Hint: use one of",
        ),
        ((*BASIC, *MF, "--protocol", "trec"), "there is no protocol 'trec'"),
        ((*BASIC, *MF, "--rule", "undefined"), "'undefined' is not RULE=VALUE"),
        ((*BASIC, *MF, "--rule", "tie=item"), "There is no rule 'tie'. Hint: Did you mean 'ties'"),
        ((*BASIC, *MF, "--rule", "ties=item", "--ties", "item"), "'ties' is set twice"),
        ((*BASIC, *MF, "--format", "yaml"), "Invalid value for '--format'"),
        ((*BASIC, *MF, "--format-in", "csv"), "it applies only to standard input"),
        (("--test", "-", "--train", "-", *MF), "can be read only once"),
        (("--test", "-", "--run", "-"), "can be read only once"),
        ((*BASIC, "--factors", "mf=-,-", "--format-in", "npy"), "can be read only once"),
        ((*BASIC, "--run", "als="), "'als=' names no file"),
        ((*BASIC, "--run", "=als.csv"), "has no name before '='"),
        ((*BASIC, "--run", "als.csv", "--run", "x/als.csv"), "two models are called 'als'"),
        ((*BASIC, *MF, "--rank", "a", "--score", "b"), "--rank and --score cannot be combined"),
        ((*BASIC, *MF, "--depth", "0"), "Invalid value for '--depth'"),
        ((*BASIC, *MF, "--complete", "--rule", "users=known"), "'users' is set twice"),
        ((*BASIC, *MF, "--threads", "0"), "Invalid value for '--threads'"),
        ((*BASIC, *MF, "-m", "ndgc@10"), "There is no metric 'ndgc'. Hint: Did you mean 'ndcg'"),
        ((*BASIC, *MF, "-m", "recall@0"), "The cut-off '0' of the metric 'recall'"),
    ],
)
def test_wrong_usage_exits_with_2(folder, arguments: tuple[str, ...], message: str) -> None:
    result = evaluate(*arguments, NO_COLOR="1", TERM="dumb", COLUMNS="400")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in one_line(result.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--test", "tset.csv", *MF), "There is no file tset.csv. Hint: Did you mean 'test.csv'"),
        (("--test", ".", *MF), "The files of . cannot be read as one table: "),
        (("--test", "users.npy", *MF), "users.npy has an unsupported extension"),
        (("--test", "test.csv", "--train", "no.csv", *MF), "There is no file no.csv"),
        ((*BASIC, "--factors", "mf=user.npy,items.npy"), "mf: There is no file user.npy. Hint:"),
        ((*BASIC, "--factors", "mf=users.npy,test.csv"), "test.csv has an extension that is not"),
        ((*BASIC, "--factors", "mf=users.npy,text.npy"), "text.npy cannot be read as a NumPy"),
        ((*BASIC, "--factors", "mf=users.npy,flat.npy"), "flat.npy holds an array of shape (3,)"),
        (
            (*BASIC, "--factors", "mf=users.npy,narrow.npy,positions,positions"),
            "mf: users have 4 factors, but items have 3",
        ),
        (
            (*BASIC, "--factors", "mf=users.npy,items.npy,positions,users.txt"),
            "mf: Factors has 30 items",
        ),
        ((*BASIC, "--factors", "mf=users.npy,ids.parquet"), "factors in addition to the ids"),
        ((*BASIC, "--factors", "mf=users.npy,ragged.parquet"), "row 1 (counted from 0) of column"),
        ((*BASIC, "--factors", "mf=users.npy,empty.parquet,positions,"), "but items have 0"),
        ((*BASIC, "--factors", "mf=users.npy,two.parquet"), "several columns hold lists: a, b"),
        (
            (*BASIC, "--factors", "mf=users.npy,items.npy,positions,odd.parquet"),
            "no column could hold the",
        ),
        (
            (*BASIC, "--factors", "mf=users.npy,lists.parquet,positions,items.txt"),
            "lists.parquet already contains ids",
        ),
        ((*BASIC, *MF, "--user", "usr"), "--user usr: no file has such a column. Hint: Did you"),
        ((*BASIC, *MF, "--value", "score"), "There is no column 'score'"),
        (("--test", "two.csv", *MF), "Hint: pass --value with the name of one, or --value none"),
        (("--test", "plain.csv", *MF), "plain.csv seems to have no header"),
        (("--test", "none.csv", *MF), "none.csv has no rows"),
        (("--test", "far.csv", *MF), "is known to the source (Factors: 20 users x 30 items"),
        ((*BASIC, "--run", "no.csv"), "no: There is no file no.csv"),
        ((*BASIC, "--run", "users.npy"), "users.npy: users.npy has an unsupported extension"),
        ((*BASIC, "--run", "als.parquet"), "als: roc_auc needs the whole ranking"),
        ((*BASIC, "--run", "als.parquet"), "pass --catalogue (the number of items"),
        ((*LISTS, "--run", "odd.csv", "--score", "pionts"), "--score pionts: no file has such"),
        ((*LISTS, "--run", "texts.csv"), "texts: The user ids of test are of type int"),
        ((*LISTS, "--run", "far.csv"), "does --user name the user column"),
        (
            (*LISTS[:4], *MF, "-m", "rmse"),
            "--pairs FILE reads predicted ratings",
        ),
        ((*LISTS, *MF, "--ties", "input"), "mf: --ties input keeps the order"),
        ((*LISTS, "--run", "als.parquet", "--catalogue", "no.txt"), "There is no file no.txt"),
        ((*BASIC, *MF, "--out", "test.csv"), "--out test.csv: the folder cannot be created"),
        ((*BASIC, *MF, "--protocol", "test.parquet"), "not a saved evaluation"),
        (("--test", "missing.csv", *MF), "There is no file missing.csv."),
    ],
)
def test_errors_about_files_are_printed_in_one_line(
    folder, arguments: tuple[str, ...], message: str
) -> None:
    np.save("flat.npy", np.ones(3))
    lists = {"lists": [[1.0], [2.0]], "ragged": [[1.0], [1.0, 2.0]], "empty": []}
    for name, column in lists.items():
        frame = pl.DataFrame(
            {"id": range(len(column)), "factors": column},
            {"id": pl.Int64, "factors": pl.List(pl.Float64)},
        )
        frame.write_parquet(f"{name}.parquet")
    pl.DataFrame({"id": [1], "a": [[1.0]], "b": [[1.0]]}).write_parquet("two.parquet")
    pl.DataFrame({"x": [1], "y": [2]}).write_parquet("odd.parquet")
    pl.DataFrame({"item_id": [1, 2]}).write_parquet("ids.parquet")
    np.save("narrow.npy", np.ones((30, 3), np.float32))
    for name, text in {
        "text.npy": "1,2,3",
        "two.csv": "user,item,rating,count\n1,2,3,4\n",
        "plain.csv": "1,2,3\n4,5,6\n",
        "none.csv": "user,item\n",
        "far.csv": "user,item\n100,1\n",
        "texts.csv": "user,item\nann,1\n",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    result = evaluate(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    error = result.stderr.splitlines()[-1]
    assert error.startswith("Error: ")
    assert message in error
    assert "=False" not in error
    assert not re.search(r"\brm\.(?!Pairs does, in Python)|\b[a-z_]+=\.\.\.", error)


def test_empty_standard_input_is_refused(folder) -> None:
    result = evaluate("--test", "-", "--format-in", "csv", *MF, stdin=b"")
    assert result.exit_code == 1
    assert "Error: Standard input is empty." in result.stderr


def test_errors_name_standard_input_as_their_source(folder) -> None:
    result = evaluate("--test", "-", "--format-in", "csv", *MF, stdin=b"who,what\n1,2\n")
    assert result.exit_code == 1
    assert "Error: standard input: No column has a common name for users." in result.stderr


# Tests in a separate process


def test_module_reads_standard_input_from_a_pipe(folder) -> None:
    result = run(
        *("--test", "-", *BASIC[2:], *MF, "--format", "json", "--format-in", "csv"),
        input=(folder / "test.csv").read_bytes(),
    )
    assert result.returncode == 0
    assert b"Traceback" not in result.stderr
    content = json.loads(result.stdout)
    assert content["models"]["mf"]["metrics"]["ndcg@5"]["mean"] == expected().mean()["ndcg@5"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")
def test_closed_output_pipe_causes_no_traceback(folder) -> None:
    command = [sys.executable, "-m", "recometer", "evaluate", *BASIC, *MF]
    command += ["-m", "ndcg@1..600", "--per-user", "--format", "csv", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_leaves_no_copy_of_standard_input(folder) -> None:
    # Children of a background job ignore Ctrl-C, so the script restores the Ctrl-C handler.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from recometer.cli import main; main()"
    )
    copies = folder / "copies"
    copies.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", script, "evaluate", "--test", "-", "--format-in", "csv", *MF],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(copies)},
    ) as process:
        deadline = time.monotonic() + 20
        while not list(copies.glob("*/stdin")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b"Interrupted.\n"
        assert process.wait(timeout=20) == 130
    assert list(copies.iterdir()) == []


def test_options_are_completed(monkeypatch, capsys) -> None:
    monkeypatch.setenv("_RECOMETER_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "recometer evaluate --rel")
    with pytest.raises(SystemExit):
        main([])
    assert "--relevant-from" in capsys.readouterr().out


def test_row_errors_name_the_file(folder) -> None:
    (folder / "gap.csv").write_text("user_id,movieId\n1,2\n,3\n")
    result = evaluate(*LISTS, "--run", "als.parquet", "--train", "gap.csv")
    assert result.exit_code == 1
    assert "gap.csv: " in result.stderr
    assert "row 1" in one_line(result.stderr)


def test_positions_mistaken_for_ids_are_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test.csv").write_text("user,item\n1,7\n2,8\n3,9\n")
    (tmp_path / "run.csv").write_text("user,item,rank\n0,7,1\n1,8,1\n2,9,1\n")
    arguments = ["--test", tmp_path / "test.csv", "--run", tmp_path / "run.csv", "-m", "rr"]
    refused = evaluate(*arguments)
    assert refused.exit_code == 1
    assert "positions seem to be used as ids" in one_line(refused.stderr)
    assert "--rule shifted_ids=kept confirms that" in one_line(refused.stderr)
    result = evaluate(*arguments, "--rule", "shifted_ids=kept")
    assert result.exit_code == 0
    assert "shifted_ids='kept'" in result.stdout
    assert "1 of 3 test users (33%) are unknown to the model" in one_line(result.stderr)
