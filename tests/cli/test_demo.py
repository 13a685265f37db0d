"""Tests of ``recometer demo`` on the included data, on a user's files and on unusual files."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from command_line import Result, run_command

import recometer as rm
from recometer import baselines, datasets
from recometer.split import Fraction, split

MODELS = ("random", "most popular", "item-kNN", "truncated SVD", "EASE")


def demo(*arguments: object) -> Result:
    return run_command(["demo", *map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture(scope="module")
def shipped() -> Result:
    return demo()


def leaderboard(result: Result) -> dict[str, list[str]]:
    """Return the first table as a dict that maps each model to the other cells of its row."""
    table = result.stdout.partition("\nmodel ")[2].partition("\n\n")[0]
    rows = [re.split(r"  +", line) for line in table.splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def file(tmp_path: pathlib.Path):
    """Return a function that writes text to a file and returns its path."""

    def write(text: str, name: str = "data.csv") -> pathlib.Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def rows(header: str, seed: int = 0, n_users: int = 40, n_items: int = 30) -> str:
    """Return CSV text with this header and random users, items, values (1 to 5) and times."""
    generator = np.random.default_rng(seed)
    lines = [
        f"user-{user},item-{item},{generator.integers(1, 6)},{generator.integers(10**6)}"
        for user in range(n_users)
        for item in range(n_items)
        if generator.random() < 0.3
    ]
    return "\n".join([header, *lines, ""])


# Tests on the included data


def test_shipped_data_is_complete() -> None:
    interactions = datasets.msweb()
    assert (len(interactions), interactions.n_users, interactions.n_items) == (98_653, 32_710, 285)
    assert interactions.values is None
    items = datasets.msweb_items()
    assert items.columns == ["item_id", "title"]
    assert set(items["item_id"]) == set(interactions.item_ids.tolist())


def test_shipped_data_is_attributed(shipped: Result) -> None:
    root = pathlib.Path(datasets.__file__).parent
    attribution = (root / "msweb" / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for text in (attribution, one_line(shipped.stdout)):
        for part in ("Anonymous Microsoft Web Data", "Breese", "Heckerman", "Kadie", "CC BY 4.0"):
            assert part in text


def test_demo_prints_a_leaderboard(shipped: Result) -> None:
    assert shipped.exit_code == 0
    assert shipped.stderr == ""
    assert "98,653 interactions of 32,710 users with 285 items" in shipped.stdout
    assert "a random 25% of each user's interactions (seed 0), 28,059" in shipped.stdout
    table = leaderboard(shipped)
    assert list(table) == ["EASE", "truncated SVD", "item-kNN", "most popular", "random"]
    for cells in table.values():
        assert all(re.fullmatch(r"0\.\d{4} ±\.\d{4}", cell) for cell in cells[:3])
        n_counted, skipped, *seconds = cells[3:]
        assert int(n_counted.replace(",", "")) + int(skipped.replace(",", "")) == 32_710
        assert all(re.fullmatch(r"\d+\.\d\d s", cell) for cell in seconds)
    assert "Skipped 9,994 of 32,710 users: no relevant item to find." in shipped.stdout
    assert max(map(len, shipped.stdout.splitlines())) <= 100


def test_demo_prints_the_same_values_as_evaluate(shipped: Result) -> None:
    parts = split(datasets.msweb(), Fraction(0.25), min_test=0, seed=0)
    train, test = parts.train, parts.test
    source = baselines.most_popular(train)
    for column, row in enumerate(
        rm.evaluate(source, test, train=train, metrics="ndcg@10 recall@10 roc_auc").summary()
    ):
        half = f"{(row.high - row.low) / 2:.4f}".removeprefix("0")
        assert leaderboard(shipped)["most popular"][column] == f"{row.mean:.4f} ±{half}"


def test_demo_is_repeatable_and_depends_on_the_seed(file) -> None:
    path = file(rows("user_id,item_id,rating,x"))
    first, second, other_seed = (
        leaderboard(demo("--data", path, "--seed", seed, "--threads", threads))
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )
    means = [{model: cells[:5] for model, cells in t.items()} for t in (first, second, other_seed)]
    assert means[0] == means[1] != means[2]


# Tests on a user's own files


def test_columns_are_detected_and_reported(file) -> None:
    result = demo("--data", file(rows("userId,movieId,rating,timestamp")))
    assert result.exit_code == 0
    text = one_line(result.stdout)
    assert "columns: user 'userId', item 'movieId', value 'rating', time 'timestamp'" in text
    assert "values 1 to 5" in text
    assert "the last 25% of each user's interactions by time" in text
    assert sorted(leaderboard(result)) == sorted(MODELS)


def test_columns_can_be_named_for_demo(file) -> None:
    path = file(rows("who,what,much,rating"))
    options = ("--user", "who", "--item", "what", "--value", "none", "--time", "none")
    result = demo("--data", path, *options)
    assert result.exit_code == 0
    assert "(columns: user 'who', item 'what')" in one_line(result.stdout)
    assert "a random 25%" in result.stdout
    assert "values" not in result.stdout.partition("Split")[0]


def test_demo_accepts_a_parquet_file_and_metrics(tmp_path: pathlib.Path) -> None:
    import polars as pl

    path = tmp_path / "data.parquet"
    frame = pl.DataFrame({"user": np.repeat(np.arange(30), 8), "item": np.arange(240) * 7 % 53})
    frame.write_parquet(path)
    result = demo("--data", path, "-m", "precision@1..6 rr")
    assert result.exit_code == 0
    assert "a random 25%" in result.stdout
    tables = [line.split() for line in result.stdout.splitlines() if line.startswith("model")]
    metrics = [name for header in tables for name in header if "@" in name or name == "rr"]
    assert metrics == [*(f"precision@{k}" for k in range(1, 7)), "rr"]
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_demo_leaves_out_ease_for_a_large_catalogue(file, monkeypatch) -> None:
    # Replace the other models, which would be slow with so many items.
    for model in ("item_knn", "truncated_svd"):
        monkeypatch.setattr(baselines, model, lambda train, **_: baselines.most_popular(train))
    lines = [f"{user},{(user * 40 + k) % 10_001}" for user in range(300) for k in range(40)]
    result = demo("--data", file("\n".join(["user,item", *lines])), "-m", "ndcg@10 recall@10")
    assert result.exit_code == 0
    assert sorted(leaderboard(result)) == sorted(set(MODELS) - {"EASE"})
    assert (
        "Left out: EASE. EASE needs an items x items matrix: 0.8 GB for 10,001 items; the "
        "limit is 10,000 items (0.8 GB)." in one_line(result.stdout)
    )


def test_best_means_are_highlighted_on_a_terminal(file) -> None:
    path = file(rows("user,item,rating,time"))
    environment = {"FORCE_COLOR": "1", "COLUMNS": "100"}
    result = run_command(["demo", "--data", str(path)], env=environment)
    assert result.exit_code == 0
    assert result.stdout.count("\x1b[1;32m") == 3
    assert "\x1b" not in demo("--data", path).stdout


# Tests on unusual files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is empty. Hint: the first line must name the columns\."),
        ("user,item\n", r"has no rows\. Hint: every row is one interaction\."),
        ("1,2\n3,4\n", r"seems to have no header: its first line is 1, 2\."),
        ("who,what\n1,2\n", r"pass --user with its name\. Columns: who, what\."),
        ("user,item,rating,count\n1,2,3,4\n", "pass --value .* or --value none for none"),
        ("user,item,rating\n1,2,x\n", r"'rating' holds 'x'\. Hint: expected a number \(or "),
        (
            "user,item,rating\n1,1,0\n1,2,0\n",
            r"All values in .* are 0, so nothing is relevant\. Hint: name another column with",
        ),
        (
            "user,item\n1,1\n2,2\n3,1\n",
            r"no user has more than 1, and 25% of that rounds to 0.* check that --user",
        ),
        ("user,item,value\n1,1,inf\n1,2,1\n1,3,1\n1,4,1\n", "1 training values are infinite"),
    ],
)
def test_unusable_files_cause_a_clear_error(file, text: str, message: str) -> None:
    result = demo("--data", file(text), "--seed", 2)
    assert result.exit_code == 1
    assert re.search(message, result.stderr)
    # With so few users, undefined values may cause warnings.
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Warning: ")]
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")


def test_error_about_an_unknown_column_lists_the_columns(file) -> None:
    result = demo("--data", file(rows("user,item,rating,time")), "--item", "itme")
    assert result.exit_code == 1
    assert "--item itme: no file has such a column. Hint: Did you mean" in result.stderr
    assert "Known: user, item, rating, time" in result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # With a single user, models cannot learn from other users.
        (
            "user,item\n" + "".join(f"ann,{item}\n" for item in range(20)),
            r"1 of 1 user: all candidates have the same score, .* \(most popular, item-kNN,",
        ),
        # The cut-off is larger than the number of items.
        (
            "user,item\n" + "".join(f"{u},{i}\n" for u in range(9) for i in range(6) if u % 5 != i),
            r"no more candidates than the cut-off: every ranking has the same value \(.*recall@10",
        ),
        # Some users have only one interaction.
        (
            rows("user,item,value,time", n_users=20) + "".join(f"u{u},item-1,1,5\n" for u in "abc"),
            "Skipped 3 of 23 users: no relevant item to find",
        ),
    ],
)
def test_small_data_is_evaluated_as_far_as_possible(file, text: str, reason: str) -> None:
    result = demo("--data", file(text))
    assert result.exit_code == 0
    assert re.search(reason, one_line(result.stdout))


def test_duplicate_rows_cause_a_warning(file) -> None:
    text = rows("user,item,value,time")
    result = demo("--data", file(text + text.splitlines()[1] + "\n"))
    assert result.exit_code == 0
    assert re.match(r"Warning: data: 1 of \d+ interactions repeat a user-item pair", result.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--user", "who"), 2, "it also needs the option --data"),
        (("--threads", "0"), 2, "--threads"),
        (("--metrics", "ndgc@10"), 2, "Did you mean 'ndcg'"),
        (("--metrics", "recall@0"), 2, "cut-off .0. of the metric .recall."),
    ],
)
def test_wrong_options_exit_with_2(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = demo(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.search(message, one_line(result.stderr))


def test_demo_writes_a_report(file, tmp_path, monkeypatch):

    monkeypatch.setattr("recometer.report.page.vega", lambda: "window.vegaEmbed = null;")
    rows = [f"{user},{(user * step) % 17}" for user in range(60) for step in (1, 2, 3, 5, 7, 11)]
    data = file("user_id,item_id\n" + "\n".join(dict.fromkeys(rows)) + "\n")
    out = tmp_path / "demo.html"
    result = demo("--data", data, "--report", out)
    assert result.exit_code == 0, result.output
    assert f"written: {out}" in result.stdout
    text = out.read_text(encoding="utf-8")
    assert all(model in text for model in MODELS)
    assert '"tradeoff"' in text
    refused = demo("--data", data, "--report", data)
    assert refused.exit_code == 2
    assert ".html or .md" in refused.stderr
