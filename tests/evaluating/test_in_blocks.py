"""Parquet with more rows than memory gives the evaluation that it gives in memory."""

from __future__ import annotations

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
from recometer.errors import InputError
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


KINDS = ["factors", "streamed factors", "scores", "function", "lists", "popular"]


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
        }
    ),
    named=st.booleans(),
    graded=st.booleans(),
    more=st.sampled_from(["nothing", "candidates", "exclude", "chance"]),
    n_files=st.sampled_from([1, 3]),
    memory=st.sampled_from([2500, 9000, "1MB"]),
)
@examples(1)
def test_blocks_change_nothing(
    folders, seed, kind, metrics, rules, named, graded, more, n_files, memory
):
    rng = np.random.default_rng(seed)
    source = source_of(kind, rng, named)
    paths = [
        write(folder, drawn(rng, n, named, graded), n_files)
        for folder, n in zip(folders, (200, 500), strict=True)
    ]
    items = [f"i{item}" if named else item for item in range(0, N_ITEMS + 9, 2)]
    catalogue = pl.DataFrame({"item_id": list(CATEGORIES), "categories": list(CATEGORIES.values())})
    catalogue = catalogue.with_columns(propensity=0.5)
    if named:
        catalogue = catalogue.with_columns(item_id=pl.format("i{}", "item_id"))
    options: dict[str, Any] = {"metrics": METRICS[metrics], **rules, "threads": 2}
    options |= {"catalogue": rm.Catalogue(catalogue), "baseline": source_of("popular", rng, named)}
    options |= {"nothing": {}, "chance": {"chance": metrics != "lists" and kind != "lists"}}.get(
        more, {more: items}
    )
    if more == "chance" and rules["relevant_from"] is None:
        options["metrics"] = ["ndcg@3", "roc_auc"]
    found, said = [], []
    for budget in (None, memory):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            test, train = (rm.Interactions.of(path, memory=budget) for path in paths)
            try:
                result = rm.evaluate(source, test, train=train, **options)
                evaluator = rm.Evaluator(test, train=train, **options)
                found.append((result, evaluator.mean(source), result.inputs))
            except InputError as error:
                found.append(str(error))
        said.append(sorted({str(warning.message) for warning in heard}))
    assert_same(found[1], found[0])
    assert said[1] == said[0]
