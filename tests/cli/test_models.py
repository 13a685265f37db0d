"""Tests that ``recometer evaluate`` agrees with the library on every kind of model and data."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from command_line import Result, run_command

import recometer as rm
from recometer.cli._models import BASELINES
from recometer.split import KFold, folds


def run(*arguments: object) -> Result:
    return run_command([*map(str, arguments)], env={"COLUMNS": "100"})


def one_line(text: str) -> str:
    return " ".join(text.split())


def means(*arguments: object) -> dict[str, dict[str, float]]:
    """Return the mean of each metric for every model in the output of ``evaluate``."""
    result = run("evaluate", *arguments, "--format", "json", "-q")
    assert result.exit_code == 0, result.output
    models = json.loads(result.stdout)["models"]
    return {
        model: {metric: row["mean"] for metric, row in model_result["metrics"].items()}
        for model, model_result in models.items()
    }


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Work in a folder with training and test files for 30 users and 20 items."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(3)
    users, items = np.nonzero(generator.random((30, 20)) < 0.4)
    frame = pl.DataFrame({"user": [f"u{u}" for u in users], "item": items + 100})
    held_out = generator.random(len(users)) < 0.3
    frame.filter(~held_out).write_parquet("train.parquet")
    frame.filter(held_out).write_parquet("test.parquet")
    frame.write_parquet("all.parquet")
    return tmp_path


DATA = ("--test", "test.parquet", "--train", "train.parquet", "-m", "ndcg@5 recall@5")


def expected(source: rm.Source, **options: Any) -> dict[str, float]:
    train = rm.Interactions.of("train.parquet")
    result = rm.evaluate(source, "test.parquet", train=train, metrics="ndcg@5 recall@5", **options)
    return result.mean()


IN_PYTHON = {
    "random": rm.baselines.random_ranking,
    "popular": rm.baselines.most_popular,
    "knn": rm.baselines.item_knn,
    "svd": rm.baselines.truncated_svd,
    "ease": rm.baselines.ease,
}


def lists(seed: int) -> pl.DataFrame:
    """Return a list of ten items for each user."""
    generator = np.random.default_rng(seed)
    rows = [(f"u{u}", item) for u in range(30) for item in generator.permutation(20)[:10] + 100]
    users, items = zip(*rows, strict=True)
    return pl.DataFrame({"user": users, "item": items, "rank": list(range(1, 11)) * 30})


@pytest.mark.usefixtures("folder")
class TestBaselines:
    @pytest.mark.parametrize("rated", [False, True])
    def test_baselines_match_python(self, rated: bool) -> None:
        """Baselines use their default settings, whether or not the training data have ratings."""
        if rated:
            rows = pl.read_parquet("train.parquet")
            rating = pl.Series("rating", np.arange(len(rows)) % 5 + 1.0)
            rows.with_columns(rating).write_parquet("train.parquet")
        actual = means(*DATA, "--baselines", ",".join(BASELINES))
        train = rm.Interactions.of("train.parquet")
        assert actual == {
            name: pytest.approx(expected(fit(train))) for name, fit in IN_PYTHON.items()
        }
        assert actual.keys() == set(BASELINES)

    def test_baseline_can_accompany_runs_and_be_their_reference(self) -> None:
        lists(0).write_csv("als.csv")
        actual = means(
            *DATA[:4], "-m", "overlap@5", "--run", "als.csv", "--baselines", "popular, knn",
            "--baseline", "popular",
        )  # fmt: skip
        assert actual["popular"] == {"overlap@5": 1.0}
        assert set(actual) == {"als", "popular", "knn"}

    def test_unknown_baselines_and_missing_train_are_refused(self) -> None:
        result = run("evaluate", *DATA, "--baselines", "poplar")
        assert result.exit_code == 2
        assert "there is no baseline 'poplar'. Hint: did you mean 'popular'" in one_line(
            result.stderr
        ).replace("Did", "did")
        result = run("evaluate", "--test", "test.parquet", "--baselines", "popular")
        assert (result.exit_code, "fitted to --train" in one_line(result.stderr)) == (2, True)


@pytest.mark.usefixtures("folder")
class TestFolds:
    def test_folds_are_fitted_and_pooled(self) -> None:
        split = run("split", "all.parquet", "--what", "folds=3", "--out", "split")
        assert split.exit_code == 0, split.output
        actual = means("--split", "split", "-m", "recall@5", "--baselines", "popular", "--out", "r")
        made_here = folds(pl.read_parquet("all.parquet"), KFold(3), seed=0)
        result = rm.evaluate(
            lambda fold: rm.baselines.most_popular(fold.train), made_here, metrics="recall@5"
        )
        assert actual["popular"] == pytest.approx(result.mean())
        assert rm.load("r/popular.parquet").mean() == pytest.approx(result.mean())
        assert [rm.load(f"r/fold_{n}/popular.parquet").mean() for n in range(3)] == [
            pytest.approx(fold.mean()) for fold in result.folds
        ]
        # Running the same command again replaces the output.
        repeated = run(
            "evaluate", "--split", "split", "-m", "recall@5", "--baselines", "popular",
            "--out", "r",
        )  # fmt: skip
        assert repeated.exit_code == 0, repeated.output

    def test_each_fold_can_have_its_own_files_of_a_model(self) -> None:
        run("split", "all.parquet", "--what", "folds=2", "--out", "split")
        for fold in range(2):
            lists(fold).write_csv(f"als_{fold}.csv")
        actual = means("--split", "split", "-m", "recall@5", "--run", "als=als_{fold}.csv")
        means_of_folds = [
            means("--split", f"split/fold_{n}", "-m", "recall@5", "--run", f"als=als_{n}.csv")
            for n in range(2)
        ]
        assert 0 < actual["als"]["recall@5"] < 1
        low, high = sorted(fold_means["als"]["recall@5"] for fold_means in means_of_folds)
        assert low <= actual["als"]["recall@5"] <= high

    def test_wrong_usage_of_folds_is_refused(self) -> None:
        run("split", "all.parquet", "--what", "folds=2", "--out", "split")
        lists(0).write_csv("als.csv")
        result = run("evaluate", "--split", "split", "--run", "als.csv")
        assert result.exit_code == 2
        assert "als has the same files in every fold. Hint: {fold}" in one_line(result.stderr)
        result = run("evaluate", *DATA, "--run", "als=als_{fold}.csv")
        assert (result.exit_code, "but there are no folds" in one_line(result.stderr)) == (2, True)
        result = run(
            "why", "--split", "split", "--baselines", "popular", "-m", "rr", "--to", "ranx"
        )
        assert result.exit_code == 2
        assert "only one fold can be explained at a time. Hint: --split FOLDER/fold_0" in one_line(
            result.stderr
        )

    def test_output_does_not_replace_a_file_of_a_fold(self) -> None:
        run("split", "all.parquet", "--what", "folds=2", "--out", "split")
        for fold in range(2):
            lists(fold).write_parquet(f"split/fold_{fold}/als.parquet")
        result = run(
            "evaluate", "--split", "split", "--run", "als=split/fold_{fold}/als.parquet",
            "--out", "split",
        )  # fmt: skip
        assert result.exit_code == 1
        assert "is an input, and would be replaced" in one_line(result.stderr)


@pytest.mark.usefixtures("folder")
class TestPairs:
    @pytest.fixture
    def frame(self) -> pl.DataFrame:
        generator = np.random.default_rng(5)
        frame = pl.DataFrame(
            {
                "user": np.repeat(np.arange(12), 8),
                "item": np.tile(np.arange(8), 12),
                "rating": generator.integers(1, 6, 96),
                "prediction": generator.normal(3, 1, 96).round(2),
            }
        )
        frame.write_csv("ratings.csv")
        frame.write_parquet("ratings.parquet")
        return frame

    @pytest.mark.parametrize("name", ["ratings.csv", "ratings.parquet"])
    def test_predicted_ratings_are_evaluated_as_in_python(
        self, name: str, frame: pl.DataFrame
    ) -> None:
        metrics = ["rmse", "mae", "ndcg@3"]
        actual = means("--pairs", f"svd={name}", "-m", " ".join(metrics))
        assert actual["svd"] == pytest.approx(rm.evaluate(rm.Pairs(frame), metrics=metrics).mean())

    def test_relevant_from_sets_the_threshold_of_pairs(self, frame: pl.DataFrame) -> None:
        actual = means("--pairs", "ratings.csv", "-m", "rated_recall@3", "--relevant-from", "3.5")
        result = rm.evaluate(rm.Pairs(frame, threshold=3.5), metrics="rated_recall@3")
        assert actual["ratings"] == pytest.approx(result.mean())

    def test_columns_of_pairs_can_be_named(self, frame: pl.DataFrame) -> None:
        frame.rename({"rating": "truth", "prediction": "p"}).write_csv("odd.csv")
        actual = means("--pairs", "odd.csv", "-m", "mse", "--value", "truth", "--score", "p")
        assert actual["odd"] == pytest.approx(rm.evaluate(rm.Pairs(frame), metrics="mse").mean())

    def test_pairs_without_labels_are_evaluated_on_test(self) -> None:
        scored = lists(1).with_columns(score=1.0 / pl.col("rank")).drop("rank")
        scored.write_csv("ranker.csv")
        pairs = rm.Pairs(scored, relevance=False, rating=False)
        assert means(*DATA, "--pairs", "ranker.csv")["ranker"] == pytest.approx(expected(pairs))

    def test_why_explains_a_mean_of_pairs(self, frame: pl.DataFrame) -> None:
        result = run("why", "--pairs", "ratings.csv", "-m", "ndcg@3", "--to", "ranx")
        assert result.exit_code == 0, result.output
        mean = rm.evaluate(rm.Pairs(frame), metrics="ndcg@3").mean()["ndcg@3"]
        assert f"ndcg@3 = {mean:.4f}" in result.stdout

    def test_missing_and_ambiguous_columns_of_pairs_are_refused(self, frame: pl.DataFrame) -> None:
        for dropped, message in (
            ("rating", "no column holds the labels. Hint: name it with --value, or pass --test"),
            ("prediction", "no column holds the scores. Hint: name it with --score"),
        ):
            frame.drop(dropped).write_csv("less.csv")
            result = run("evaluate", "--pairs", "less.csv", "-m", "rr")
            assert (result.exit_code, message in one_line(result.stderr)) == (1, True)
        frame.with_columns(label=pl.lit(1)).write_csv("two.csv")
        result = run("evaluate", "--pairs", "two.csv", "-m", "rr")
        assert "could both hold the labels. Hint: name the right one with --value" in one_line(
            result.stderr
        )


@pytest.mark.usefixtures("folder")
class TestCandidates:
    def test_candidates_negatives_and_exclusions_match_python(self) -> None:
        test = pl.read_parquet("test.parquet")
        generator = np.random.default_rng(0)
        negatives = pl.DataFrame(
            {
                "user": np.repeat(test["user"].unique().sort().to_numpy(), 3),
                "item": generator.integers(100, 120, 3 * test["user"].n_unique()),
            }
        ).unique()
        negatives.write_csv("negatives.csv")
        pl.DataFrame({"item": [101, 105, 107]}).write_csv("items.csv")
        pathlib.Path("items.txt").write_text("101\n105\n107\n", encoding="utf-8")
        popular = rm.baselines.most_popular(rm.Interactions.of("train.parquet", value=False))
        for option, candidates in (
            (("--candidates", "negatives.csv"), {"candidates": negatives}),
            (("--negatives", "negatives.csv"), {"candidates": rm.Negatives(negatives)}),
            (("--candidates", "items.csv"), {"candidates": [101, 105, 107]}),
            (("--exclude", "items.txt"), {"exclude": [101, 105, 107]}),
        ):
            actual = means(*DATA, "--baselines", "popular", *option)
            expected_means = expected(popular, **candidates)
            assert actual["popular"]["ndcg@5"] == pytest.approx(expected_means["ndcg@5"]), option

    def test_candidates_and_negatives_cannot_be_combined(self) -> None:
        result = run("evaluate", *DATA, "--baselines", "popular", "--candidates", "test.parquet",
                     "--negatives", "test.parquet")  # fmt: skip
        assert (result.exit_code, "Give only one." in one_line(result.stderr)) == (2, True)


@pytest.mark.usefixtures("folder")
class TestGroups:
    def test_groups_come_from_activity_or_from_a_file(self) -> None:
        result = run("evaluate", *DATA, "--baselines", "popular,knn", "--by", "activity",
                     "--out", "out", "--format", "json", "-q")  # fmt: skip
        assert result.exit_code == 0, result.output
        rows = json.loads(result.stdout)["models"]["knn"]["groups"]["rows"]
        segments = rm.load("out/knn.parquet").by("activity")
        assert [(row["group"], row["mean"]) for row in rows] == [
            (row.group, pytest.approx(row.mean)) for row in segments.rows
        ]
        users = pl.read_parquet("test.parquet")["user"].unique().sort()
        ages = (
            pl.DataFrame({"user": users})
            .with_row_index("size")
            .with_columns(
                age=pl.when(pl.col("size") % 2 == 0).then(pl.lit("old")).otherwise(pl.lit("young"))
            )
        )
        ages.write_csv("ages.csv")
        shown_result = run("show", "out", "--by", "age=ages.csv")
        assert shown_result.exit_code == 0, shown_result.output
        lines = [line.split()[:2] for line in shown_result.stdout.splitlines()]
        assert sorted(line for line in lines if line and line[0] in ("old", "young")) == [
            ["old", "knn"], ["old", "popular"], ["young", "knn"], ["young", "popular"],
        ]  # fmt: skip
        table = run("show", "out", "--by", "age=ages.csv", "--format", "csv")
        assert table.stdout.splitlines()[0].startswith("model,metric,group")
        unnamed = run("show", "out", "--by", "ages.csv")
        assert unnamed.exit_code == 1
        expected = "user column ('user'), the columns are: 'size', 'age'. Hint: name it"
        assert expected in one_line(unnamed.stderr)
        by_the_user_column = run("show", "out", "--by", "user=ages.csv")
        assert by_the_user_column.exit_code == 1
        assert "no column 'user'. Hint: Did you mean 'size'?" in one_line(by_the_user_column.stderr)


def test_archives_and_sparse_matrices_are_evaluated_as_in_python(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)
    kind = generator.random((15, 25))
    scipy.sparse.save_npz("train.npz", scipy.sparse.csr_array(kind < 0.2))
    scipy.sparse.save_npz("test.npz", scipy.sparse.csr_array(kind > 0.8))
    users, items = generator.normal(size=(15, 4)), generator.normal(size=(25, 4))
    np.save("users.npy", users)
    np.save("items.npy", items)
    np.savez("model.npz", user_factors=users, item_factors=items)
    actual = means(
        "--test", "test.npz", "--train", "train.npz", "-m", "rr",
        "--factors", "mf=users.npy,items.npy", "--factors", "model.npz",
    )  # fmt: skip
    computed = rm.evaluate(rm.Factors(users, items), kind > 0.8, train=kind < 0.2, metrics="rr")
    assert actual == {"mf": computed.mean(), "model": computed.mean()}
    np.savez("odd.npz", users=users, item_factors=items)
    result = run("evaluate", "--test", "test.npz", "--factors", "odd.npz")
    assert result.exit_code == 1
    assert "holds no array 'user_factors'. Hint: the arrays are called user_factors" in one_line(
        result.stderr
    )
    result = run("evaluate", "--test", "test.npz", "--run", "model.npz")
    assert (result.exit_code, "--factors reads arrays" in one_line(result.stderr)) == (1, True)
    texts = np.array([f"user {row}" for row in range(15)], dtype=object)
    np.savez("odd.npz", user_factors=users, item_factors=items, user_ids=texts)
    result = run("evaluate", "--test", "test.npz", "--factors", "odd.npz")
    assert (result.exit_code, "user_ids.tolist()" in one_line(result.stderr)) == (1, True)
    for text in ("test.npz", "mf.npz"):
        pathlib.Path(text).write_bytes(b"PK no archive")
    result = run("evaluate", "--test", "test.npz", "--factors", "model.npz")
    assert (result.exit_code, "as a sparse matrix" in one_line(result.stderr)) == (1, True)


def test_answers_of_a_language_model_are_evaluated_as_in_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    items = pl.DataFrame({"item": [1, 2, 3], "title": ["Heat", "Up", "Alien"]})
    answers = pl.DataFrame({"user": [7, 8], "response": ["1. Up\n2. Heat", '["Alien", "Alien"]']})
    items.write_csv("items.csv")
    answers.write_csv("llm.csv")
    pl.DataFrame({"user": [7, 8], "item": [1, 3]}).write_csv("test.csv")
    arguments = "--answers", "llm.csv", "--catalogue", "items.csv", "--test", "test.csv"
    metrics = "valid@2 repeated_items@2 rr"
    source = rm.Lists.from_text(answers, items)
    expected = rm.evaluate(source, {7: [1], 8: [3]}, metrics=metrics, catalogue=items).mean()
    assert means(*arguments, "-m", metrics)["llm"] == expected
    assert expected == {"valid@2": 0.75, "repeated_items@2": 0.25, "rr": 0.75}
    cut = means(*arguments, "-m", "rr", "--depth", 1)["llm"]
    assert cut == {"rr": 0.5}
    checked = run("check", *arguments)
    assert "places_repeated" in checked.output
