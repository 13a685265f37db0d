"""Parquet with more rows than memory gives the evaluation that it gives in memory."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import assert_same

import recometer as rm
from recometer.errors import InputError, RecometerError
from recometer.metrics import reading
from recometer.sources.base import Source

N_USERS, N_ITEMS = 30, 40
CATEGORIES = {item: [f"c{item % 3}", f"d{item % 5}"] for item in range(N_ITEMS)}
OF_RANKS = [
    name if definition.cutoff == "none" else f"{name}@1,3,10"
    for name, definition in reading("ranks").items()
]
OF_LISTS = [f"{name}@3" for name in reading("lists")]
WHOLE = ["coverage@5(numerator=trained)", "coverage@5(users=relevant)", "gini@2,7"]
METRICS = {"ranks": OF_RANKS, "lists": OF_LISTS, "both": [*OF_RANKS, *OF_LISTS, *WHOLE]}


def drawn(rng: np.random.Generator, n: int, named: bool, graded: bool) -> pl.DataFrame:
    """Return rows of which some repeat a pair, of a few users and items that nobody knows."""
    frame = pl.DataFrame(
        {
            "user_id": rng.integers(0, N_USERS + 3, n),
            "item_id": rng.integers(0, N_ITEMS + 4, n),
            "rating": rng.integers(0, 4, n).astype(np.float64) if graded else np.ones(n),
            "timestamp": rng.integers(0, 10**9, n),
        }
    )
    return with_names(frame) if named else frame


def with_names(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.format("u{}", "user_id").alias("user_id"), pl.format("i{}", "item_id").alias("item_id")
    )


def write(folder: Path, frame: pl.DataFrame, n_files: int) -> Path:
    """Write rows to several files, so that most users are in all of them."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.parquet"):
        path.unlink()
    for number in range(n_files):
        frame[number::n_files].write_parquet(folder / f"part-{number}.parquet", row_group_size=50)
    return folder


def source_of(kind: str, rng: np.random.Generator, named: bool) -> Source:
    """Return a source of some users and items, in an order of its own."""
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    ids: dict[str, Any] = {"user_ids": users, "item_ids": items}
    if named:
        ids = {"user_ids": [f"u{u}" for u in users], "item_ids": [f"i{i}" for i in items]}
    scores = rng.integers(0, 12, (N_USERS, N_ITEMS)).astype(np.float64)
    scores[0] = 3.0
    if kind == "factors":
        return rm.Factors(scores, np.eye(N_ITEMS), **ids)
    if kind == "streamed factors":
        return rm.Factors(scores, np.eye(N_ITEMS), **ids, memory="20 kB")
    if kind == "scores":
        scores[1, 2] = np.nan
        return rm.Scores(scores, **ids)
    if kind == "function":
        return rm.Scores(lambda rows: scores[rows], n_users=N_USERS, n_items=N_ITEMS, **ids)
    if kind == "lists":
        best = np.argsort(-scores, axis=1, kind="stable")[:, :12]
        return rm.Lists(best, **ids)
    return rm.Factors(None, None, item_bias=scores[0], item_ids=ids["item_ids"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return [tmp_path_factory.mktemp("rows") / side for side in ("test", "train")]


def lists_in(
    folder: Path, rng: np.random.Generator, named: bool, memory: int | None = 6000
) -> rm.Lists:
    """Return lists in files, some of users who are not in test; some repeat an item."""
    path = folder.with_name("lists")
    path.parent.mkdir(exist_ok=True)
    frame = drawn(rng, 400, False, graded=False).drop("timestamp", "rating")
    frame = frame.filter(pl.col("item_id") < N_ITEMS)  # of the catalogue
    frame = with_names(frame) if named else frame
    frame = frame.with_columns(rank=pl.int_range(pl.len()).over("user_id") + 1)
    return rm.Lists(write(path, frame, 2), rank="rank", memory=memory)


KINDS = ["factors", "streamed factors", "scores", "function", "lists", "list files", "popular"]


@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(KINDS),
    metrics=st.sampled_from(list(METRICS)),
    rules=st.fixed_dictionaries(
        {
            "ties": st.sampled_from(["expected", "item_desc", "random", "pessimistic"]),
            "relevant_from": st.sampled_from([None, 2]),
            "seen": st.sampled_from(["removed", "kept"]),
            "nan_scores": st.sampled_from(["undefined", "last"]),
            "repeated_test": st.sampled_from(["once", "counted"]),
            "users": st.sampled_from(["all", "listed"]),
        }
    ),
    named=st.booleans(),
    graded=st.booleans(),
    more=st.sampled_from(
        ["nothing", "candidates", "exclude", "chance", "sets", "set files", "drawn"]
    ),
    n_files=st.sampled_from([1, 3]),
    memory=st.sampled_from([4000, 15_000, "1MB"]),
)
@examples(0.4)
def test_blocks_change_nothing(
    folders, seed, kind, metrics, rules, named, graded, more, n_files, memory
):
    rng = np.random.default_rng(seed)
    source = (
        source_of(kind, rng, named) if kind != "list files" else lists_in(folders[0], rng, named)
    )
    paths = [
        write(folder, drawn(rng, n, named, graded), n_files)
        for folder, n in zip(folders, (200, 500), strict=True)
    ]
    items = [f"i{item}" if named else item for item in range(0, N_ITEMS + 9, 2)]
    catalogue = pl.DataFrame({"item_id": list(CATEGORIES), "categories": list(CATEGORIES.values())})
    features = rng.random((N_ITEMS, 2)).tolist()
    catalogue = catalogue.with_columns(propensity=0.5, features=pl.Series(features))
    if named:
        catalogue = catalogue.with_columns(item_id=pl.format("i{}", "item_id"))
    options: dict[str, Any] = {"metrics": METRICS[metrics], **rules, "threads": 2}
    options |= {
        "catalogue": rm.Catalogue(catalogue, features="features"),
        "baseline": source_of("popular", rng, named),
    }
    if more == "chance":
        options |= {"chance": "list" not in kind, "metrics": "ndcg@3 rr"}
    elif more in ("sets", "set files"):
        frame = drawn(rng, 300, named, graded=False).drop("timestamp", "rating")
        folder = write(folders[0].with_name("sets"), frame.unique(maintain_order=True), n_files)
        in_files = rm.Interactions.of(folder, memory=5000)
        options |= {"candidates": frame if more == "sets" else in_files, "exclude": items[:3]}
    elif more == "drawn":
        how = ["uniform", "popularity"][seed % 2]
        options["candidates"] = rm.SampledCandidates(1 + seed % 30, by=how, seed=seed % 3)
    elif more != "nothing":
        options[more] = items
    # Lists do not rank all items.
    of_lists = kind in ("lists", "list files")
    if kind == "list files" and metrics != "lists" and more != "chance":
        options["metrics"] = [one for one in METRICS[metrics] if "@" in one]
    check_same(source, paths, memory, refused=of_lists, **options)


def check_same(
    source: Source, paths: list[Path], memory: Any, *, refused: bool = False, **options: Any
) -> list[str]:
    """Check that values, errors and warnings are those of memory; return the warnings."""
    columns = options.pop("columns", {})
    found, said = [], []
    for budget in (None, memory):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            sides = [rm.Interactions.of(path, **columns, memory=budget) for path in paths]
            given: dict[str, Any] = dict(zip(("test", "train"), sides, strict=False)) | options
            sets = options.get("candidates")
            if budget is None and isinstance(sets, rm.Interactions):
                given["candidates"] = dataclasses.replace(sets, memory=None)
            try:
                result = rm.evaluate(source, **given)
                found.append((result, rm.Evaluator(**given).mean(source), result.inputs))
            except RecometerError as error:
                found.append((type(error), str(error)))
        said.append(sorted({str(warning.message) for warning in heard}))
    if isinstance(found[0][0], rm.Evaluation):
        assert found[1][2] == found[0][2]
        found = [(without_rows(one[0]), *one[1:]) for one in found]
    else:
        assert refused, found[0]
    assert_same(found[1], found[0])
    assert said[1] == said[0]
    return said[0]


def without_rows(result: rm.Evaluation) -> rm.Evaluation:
    """Leave out rows of train that intervals do not read, and what was computed on the way."""
    if result.list_data is None:
        return result
    return dataclasses.replace(
        result, list_data=dataclasses.replace(result.list_data, train=None, kept={})
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    rng = np.random.default_rng(8)
    folder = tmp_path_factory.mktemp("paths")
    return [
        write(folder / side, drawn(rng, n, True, True), 3)
        for side, n in (("test", 200), ("train", 500))
    ]


def named_factors(users: str = "u", items: str = "i") -> rm.Factors:
    rng = np.random.default_rng(9)
    return rm.Factors(
        rng.standard_normal((N_USERS, 4)),
        rng.standard_normal((N_ITEMS, 4)),
        user_ids=[f"{users}{number}" for number in range(N_USERS)],
        item_ids=[f"{items}{number}" for number in range(N_ITEMS)],
    )


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": {"u1": ["i1", "i2"], "u2": ["i4", "i9"]}},
        {"candidates": rm.SampledCandidates(5, by="popularity")},
        {"candidates": rm.SampledCandidates(5)},
        {"metrics": "ndcg@60 coverage@60"},
        {"metrics": "ndcg@3", "protocol": "trec_eval"},
    ],
    ids=["sets", "popular", "sampled", "beyond", "convention"],
)
def test_what_depends_on_all_users_is_the_same(paths, options):
    check_same(named_factors(), paths, 12_000, **options)


def sets_of(n_items: int) -> pl.DataFrame:
    """Return candidates of users, most of whom share no item, and some of whom nobody knows."""
    users = np.repeat(np.arange(N_USERS + 2), 3)
    items = (users + np.tile([0, 1, 17], N_USERS + 2)) % n_items
    return with_names(pl.DataFrame({"user_id": users, "item_id": items}))


@pytest.mark.parametrize("how", ["frame", "files", "negatives", "drawn", "popular"])
def test_candidates_of_each_user_are_ranked_in_blocks(tmp_path, paths, how):
    asked: list[int] = []

    def scores(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return np.random.default_rng(4).standard_normal((N_USERS, N_ITEMS))[rows]

    ids = {"user_ids": [f"u{n}" for n in range(N_USERS)], "item_ids": [f"i{n}" for n in range(40)]}
    source = rm.Scores(scores, n_users=N_USERS, n_items=N_ITEMS, **ids)
    sets = sets_of(N_ITEMS + 5)
    candidates: object = sets
    if how == "files":
        candidates = rm.Interactions.of(write(tmp_path / "sets", sets, 2), memory=5000)
    elif how == "negatives":
        candidates = rm.Negatives(sets)
    elif how != "frame":
        way = "popularity" if how == "popular" else "uniform"
        candidates = rm.SampledCandidates(6, by=way)
    metrics = "ndcg@3 coverage@3 serendipity@3(expected=rank)"
    check_same(source, paths, 8000, candidates=candidates, metrics=metrics, exclude=["i3", "x"])
    assert max(asked[-3:]) < N_USERS / 3  # the last are those in blocks


def test_metrics_of_lists_in_files(tmp_path, paths):
    rng = np.random.default_rng(6)
    sides = [lists_in(tmp_path / name / "of", rng, True) for name in ("some", "others")]
    catalogue = pl.DataFrame({"item_id": [f"i{n}" for n in range(N_ITEMS)]})
    categories = pl.Series([CATEGORIES[n] for n in range(N_ITEMS)])
    options: dict[str, Any] = {
        "catalogue": rm.Catalogue(catalogue.with_columns(categories=categories)),
        "metrics": "ndcg@3 coverage@4 gini@4 novelty@3 subtopic_recall@3 unexpectedness@3 "
        "serendipity@3(expected=rank) ild@3(distance=categories)",
    }
    check_same(sides[0], paths, 8000, **options, baseline=sides[1])
    check_same(named_factors(), paths, 8000, **options, baseline=sides[1])


@pytest.mark.parametrize("memory", [6000, None])
def test_users_with_a_list_count_whom_test_lacks(tmp_path, memory):
    rng = np.random.default_rng(7)
    frame = drawn(rng, 200, True, True).filter(pl.col("user_id").is_in(["u3", "u5", "u8", "u25"]))
    sides = [write(tmp_path / name, frame[number::2], 2) for number, name in enumerate("ab")]
    lists = lists_in(tmp_path / "lists", rng, True, memory=memory)
    options: dict[str, Any] = {
        "metrics": "ndcg@3 coverage@3 novelty@3",
        "users": "listed",
        "catalogue": N_ITEMS,
    }
    check_same(lists, sides, 2000, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test, train = (rm.Interactions.of(path, memory=2000) for path in sides)
        found = rm.evaluate(lists, test, train=train, **options)
    assert found.n_users > 20 > test.n_users


@pytest.mark.parametrize("users", ["u", "v"])
def test_sets_without_a_candidate_are_refused_alike(paths, users):
    sets = {f"{users}{number}": [f"x{number}", "x3"] for number in range(N_USERS)}
    check_same(named_factors(), paths, 8000, candidates=sets, refused=True)


def test_users_whose_sets_are_left_empty_are_told_alike(paths):
    options = {"candidates": {"u3": ["i4"], "u4": ["i5"]}, "exclude": ["i4"]}
    check_same(named_factors(), paths, 8000, metrics="ndcg@3 coverage@3", **options)


@pytest.mark.parametrize(
    "source",
    [
        lambda: named_factors(users="v"),
        lambda: rm.Factors(
            np.full((1, 2), np.nan), np.ones((2, 2)), user_ids=["u1"], item_ids=["i1", "i2"]
        ),
        lambda: rm.Factors(np.ones((1, 2)), np.ones((2, 2)), user_ids=[1], item_ids=[1, 2]),
        lambda: rm.Scores(np.ones((3, 4))),
    ],
    ids=["no user", "no score", "other ids", "no ids"],
)
def test_what_does_not_fit_is_refused_alike(paths, source):
    check_same(source(), paths, 12_000, refused=True)


def test_a_source_without_an_item_of_test_is_refused(paths):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test, train = (rm.Interactions.of(path, memory=12_000) for path in paths)
    with pytest.raises(InputError, match=r"Factors knows none of the .* items of test, such as 'i"):
        rm.evaluate(named_factors(items="j"), test, train=train)


def test_warnings_are_of_all_users(tmp_path, paths):
    rng = np.random.default_rng(3)
    frame = drawn(rng, 300, True, True).unique(["user_id", "item_id"], maintain_order=True)
    strangers = frame.with_columns(user_id=pl.format("x{}", "user_id"))
    unknown = frame.with_columns(item_id=pl.format("x{}", "item_id"))
    for name, train, expected in (
        ("strangers", strangers, "train has none of the 33 users of test"),
        ("unknown", unknown, "Factors knows none of the items that users of test have in train"),
        ("same", frame, "rows of test are in train, too"),
    ):
        sides = [write(tmp_path / f"{name}-{n}", one, 2) for n, one in enumerate((frame, train))]
        heard = check_same(named_factors(), sides, 12_000, metrics="ndcg@3 coverage@3")
        assert any(expected in one for one in heard), name


def test_sessions_of_a_user_may_be_in_several_blocks(tmp_path):
    rng = np.random.default_rng(5)
    frame = drawn(rng, 300, True, True).with_columns(session=pl.Series(rng.integers(0, 4, 300)))
    frame = frame.unique(["user_id", "session", "item_id"], maintain_order=True)
    sides = [write(tmp_path / name, frame[number::2], 2) for number, name in enumerate("ab")]
    sessions = {"user": ["user_id", "session"], "value": "rating"}
    check_same(named_factors(), sides, 12_000, columns=sessions, metrics="ndcg@3 novelty@3")
    train = {f"u{user}": [f"i{user}", "i3"] for user in range(N_USERS)}
    check_same(named_factors(), sides[:1], 12_000, columns=sessions, train=train, metrics="ndcg@3")


def test_one_side_may_lie_in_files(paths):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = [rm.Interactions.of(path) for path in paths]
        files = [rm.Interactions.of(path, memory=12_000) for path in paths]
        expected = rm.evaluate(named_factors(), whole[0], train=whole[1])
        for test, train in ((files[0], whole[1]), (whole[0], files[1])):
            assert_same(rm.evaluate(named_factors(), test, train=train), expected)


def test_intervals_are_the_same(paths):
    names = "ndcg@3 coverage@5(numerator=trained) coverage@5(users=relevant) gini@3 novelty@3"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for memory in (None, 12_000):
            test, train = (rm.Interactions.of(path, memory=memory) for path in paths)
            result = rm.evaluate(named_factors(), test, train=train, metrics=names, catalogue=40)
            found.append([str(row) for row in result.summary()])
    assert found[1] == found[0]


def test_items_of_train_that_the_source_lacks_have_their_popularity():
    source = rm.Factors([[1.0]], [[2.0], [1.0]], user_ids=["ann"], item_ids=["film", "song"])
    train = {"ann": ["game"], "bob": ["game"], "eve": ["game", "film"]}
    test = {"ann": ["game", "film"]}
    result = rm.evaluate(source, test, train=train, metrics="recall@1", seen="kept")
    assert result.by_popularity is not None
    # The game has most rows of train, so that it is in the first band.
    assert result.by_popularity.relevant[0, 0] == 1
