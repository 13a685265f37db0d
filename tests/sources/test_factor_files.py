"""Tests that factors in files, whether used in place or converted, behave like arrays."""

import contextlib
import dataclasses
import functools
import os
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, FileError
from recometer.sources import factors as factor_source
from recometer.sources.base import Request
from recometer.sources.candidates import read_candidates

KINDS = ["whole", "skewed", "constant", "special"]
STORED = [np.float32, np.float64, np.float16, np.int8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("factors")


def draw_factors(rng, kind, shape, dtype):
    """Draw factors with ties, very different norms, equal entries, or NaN and infinite entries."""
    rows = rng.standard_normal(shape)
    if kind == "whole" or np.dtype(dtype).kind == "i":
        rows = rng.integers(-1, 2, shape)
    elif kind == "skewed":
        rows *= np.exp(2 * rng.standard_normal((shape[0], 1)))
    elif kind == "constant":
        rows[:] = 1
    elif kind == "special":
        rows[rng.integers(shape[0], size=2), rng.integers(shape[1])] = rng.choice([np.nan, np.inf])
    return rows.astype(dtype)


def in_file(folder, name, array, order="C"):
    """Write an array to a file; return its path."""
    path = folder / f"{name}.npy"
    np.save(path, np.asarray(array, order=order))
    return path


def interactions(rng, n_users, n_items, share, with_ids):
    stored = rng.random((n_users, n_items)) < share
    stored[0, 0] = True
    if not with_ids:
        return rm.Interactions.of(stored.astype(float))
    return rm.Interactions.of(
        {f"u{u}": [f"i{i}" for i in np.flatnonzero(row)] for u, row in enumerate(stored)}
    )


def ranks_and_lists(source, request, k):
    """Return the ranks and lists of a source, with items ordered by norm where possible."""
    with small_problems():
        ranks = source.rank(dataclasses.replace(request, depth=k))
        lists = source.top(request, k or 3)
    return dataclasses.asdict(ranks), dataclasses.asdict(lists)


@contextlib.contextmanager
def small_problems():
    """Order items by norm even in small problems."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name in ("MIN_ITEMS", "MIN_USERS"):
            patch.setattr(factor_source, name, 0)
        patch.setattr(factor_source, "MAX_MEDIAN", np.inf)
        yield


@given(
    seed=st.integers(0, 2**31),
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    stored=st.tuples(st.sampled_from(STORED), st.sampled_from(STORED)),
    shape=st.sampled_from([(3, 40, 2), (20, 700, 1), (9, 300, 5), (2, 130, 33)]),
    k=st.sampled_from([None, 1, 3, 200]),
    rules=st.fixed_dictionaries(
        {
            "ties": st.sampled_from(["expected", "item_desc", "random"]),
            "nan_scores": st.sampled_from(["undefined", "first", "last"]),
        }
    ),
    candidates=st.sampled_from(["all", "some", "own", "excluded"]),
    with_ids=st.booleans(),
    bias=st.sampled_from(["none", "numbers", "special"]),
    order=st.sampled_from("CF"),
)
@examples(2)
def test_factors_in_files_are_ranked_like_arrays(
    folder, seed, kinds, stored, shape, k, rules, candidates, with_ids, bias, order
):
    rng = np.random.default_rng(seed)
    n_users, n_items, n_factors = shape
    users = draw_factors(rng, kinds[0], (n_users, n_factors), stored[0])
    items = draw_factors(rng, kinds[1], (n_items, n_factors), stored[1])
    options = {}
    if with_ids:
        options["user_ids"] = [f"u{user}" for user in rng.permutation(n_users)]
        options["item_ids"] = [f"i{item}" for item in rng.permutation(n_items)]
    if bias != "none":
        options["item_bias"] = rng.standard_normal(n_items).round(1)
        options["user_bias"] = rng.standard_normal(n_users)
    if bias == "special":
        options["user_bias"][-1] = np.nan
    test = interactions(rng, n_users, n_items, 0.05, with_ids)
    request = Request(
        test, interactions(rng, n_users, n_items, 0.1, with_ids), rm.Protocol(**rules), threads=2
    )
    candidate_ids = [f"i{i}" if with_ids else i for i in range(n_items) if rng.random() < 0.7] + [
        "i0" if with_ids else 0
    ]
    if candidates == "own":
        candidates_of_users = interactions(rng, n_users, n_items, 0.2, with_ids)
        request = dataclasses.replace(request, candidates=candidates_of_users)
    elif candidates == "some":
        request = dataclasses.replace(request, candidates=read_candidates(candidate_ids))
    elif candidates == "excluded":
        request = dataclasses.replace(request, exclude=read_candidates(candidate_ids[:5]))
    files = in_file(folder, "users", users, order), in_file(folder, "items", items, order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        expected = ranks_and_lists(rm.Factors(users, items, **options), request, k)
        from_files = ranks_and_lists(rm.Factors(*files, **options), request, k)
    for actual, in_memory in zip(from_files, expected, strict=True):
        for name, value in in_memory.items():
            np.testing.assert_array_equal(actual[name], value, err_msg=name)


@pytest.fixture(scope="module")
def model(folder):
    """Return user and item factors of different dtypes, files with these factors, and test data."""
    rng = np.random.default_rng(1)
    users, items = rng.standard_normal((40, 8)), rng.standard_normal((900, 8))
    users, items = users.astype(np.float32), items.astype(np.float16)
    files = in_file(folder, "model_users", users), in_file(folder, "model_items", items)
    return users, items, *files, rm.Interactions.of((rng.random((40, 900)) < 0.02).astype(float))


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
@pytest.mark.parametrize("mapped", [False, True])
def test_evaluation_of_files_equals_evaluation_of_arrays(model, mapped):
    users, items, user_file, item_file, test = model
    if mapped:
        user_file, item_file = (np.load(path, mmap_mode="r") for path in (user_file, item_file))
    options = {"metrics": "ndcg@10 roc_auc coverage@5", "threads": 2}
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    part = rm.evaluate(
        rm.Factors(user_file, str(item_file) if not mapped else item_file), test, **options
    )
    for name, values in expected.values.items():
        np.testing.assert_array_equal(part.values[name], values)
    assert part.mean() == expected.mean()
    assert part.inputs == expected.inputs


def test_conversion_of_files_causes_the_same_warning_as_for_arrays(model):
    users, items, user_file, item_file, _ = model
    for pair in ((users, items), (user_file, item_file)):
        with pytest.warns(DataWarning, match="items of Factors were converted from float16 to flo"):
            source = rm.Factors(*pair)
        assert source.describe().endswith("float32, items converted from float16")


@pytest.mark.filterwarnings("ignore:.* of Factors were converted:UserWarning")
@pytest.mark.parametrize(
    ("users", "items", "converts"),
    [
        ("float32", "float32", (False, False)),
        ("float64", "float64", (False, False)),
        ("float64", "float32", (False, True)),
        ("float32", "float64", (True, False)),
        ("float16", "float16", (True, True)),
        (">f4", "float32", (True, False)),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_in_files_are_memory_mapped_or_converted(folder, users, items, converts, order):
    arrays = (np.ones((4, 3), users), np.ones((5, 3), items))
    files = [in_file(folder, name, array, order) for name, array in zip("ui", arrays, strict=True)]
    factors = rm.Factors(*files)._factors
    for stored, converted in zip((factors.users, factors.items), converts, strict=True):
        assert isinstance(stored, np.memmap) != converted


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_users_who_finish_early_do_not_stop_others(folder):
    items = np.zeros((900, 8), np.float16)
    items[:10, 0] = items[-3:, 1] = 2  # these items tie, but are in the first and the last block
    items[400] = 1
    judged = np.zeros((2, len(items)))
    judged[:, 400] = 1
    request = Request(rm.Interactions.of(judged), depth=5)
    with small_problems():
        source = rm.Factors(np.eye(2, 8, dtype=np.float32), in_file(folder, "left", items))
        assert source.rank(request).above.tolist() == [-1, 3]


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_nan_scores_beyond_the_depth_are_noticed(folder):
    items = np.zeros((900, 8), np.float16)
    items[:10] = 2
    items[-1, 0] = np.nan
    judged = np.zeros((2, len(items)))
    judged[:, 400] = 1
    source = rm.Factors(np.ones((2, 8), np.float32), in_file(folder, "nan", items))
    with small_problems():
        ranks = source.rank(Request(rm.Interactions.of(judged), depth=5))
    assert (ranks.flags & np.uint32(rm.UserFlag.NAN_SCORE)).all()


def write_unreadable(folder, name):
    """Write a file that cannot be read as factors; return its path."""
    path = folder / name
    if name == "archive.npz":
        np.savez(path, users=np.eye(3))
    elif name == "renamed.npy":
        write_unreadable(folder, "archive.npz").rename(path)
    elif name == "objects.npy":
        np.save(path, np.array([[{}]], object), allow_pickle=True)
    elif name == "cut.npy":
        np.save(path, np.eye(3))
        path.write_bytes(path.read_bytes()[:-8])
    elif name == "folder.npy":
        path.mkdir()
    elif name != "missing.npy":
        path.write_bytes(b"1.0 2.0")
    return path


@pytest.mark.parametrize("source", [lambda path: rm.Factors(path, path), rm.Scores])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.npy", r"There is no file .*missing\.npy"),
        ("folder.npy", r"folder\.npy is not a file"),
        ("table.parquet", r"table\.parquet is not a \.npy file, .*Hint: numpy\.save"),
        (
            "archive.npz",
            r"cannot be mapped.*numpy\.save\('archive\.npy', numpy\.load\('archive\.npz'\)",
        ),
        ("renamed.npy", r"renamed\.npy is an archive of arrays\. Hint: rename it to renamed\.npz"),
        ("objects.npy", r"objects\.npy cannot be read as a NumPy array: .*Python objects"),
        ("cut.npy", r"cut\.npy cannot be read as a NumPy array: "),
        ("text.npy", r"text\.npy cannot be read as a NumPy array: "),
    ],
)
def test_files_without_an_array_are_rejected(tmp_path, source, name, message):
    path = write_unreadable(tmp_path, name)
    for file in (path, str(path)):
        with pytest.raises(FileError, match=message):
            source(file)


def truncate(path):
    with open(path, "r+b") as file:
        file.truncate(200)


def overwrite(path):
    np.save(path, np.zeros((300, 40), np.float32))


def overwrite_at_another_time(path):
    """Overwrite a file with zeros, but keep its size, and give it a later modification time."""
    stat = path.stat()
    path.write_bytes(bytes(stat.st_size))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def delete(path):
    path.unlink()
    np.save(path, np.zeros((1, 1)))


def from_paths(users, items, scores):
    return rm.Factors(users, items), rm.Scores(scores)


def from_mappings(users, items, scores):
    users, items, scores = (np.load(path, mmap_mode="r") for path in (users, items, scores))
    return rm.Factors(users[:], items.T.T), rm.Scores(np.asarray(scores))


@pytest.mark.parametrize("sources", [from_paths, from_mappings])
@pytest.mark.parametrize("change", [truncate, overwrite, overwrite_at_another_time])
def test_error_is_raised_if_a_file_changes(tmp_path, change, sources):
    rng = np.random.default_rng(0)
    factors = rng.random((30, 8)).astype(np.float32)
    paths = [in_file(tmp_path, name, factors) for name in ("users", "items")]
    paths.append(in_file(tmp_path, "scores", factors @ factors.T))
    test = np.eye(30)
    for source, path in zip(sources(*paths), paths[1:], strict=True):
        evaluate_source = functools.partial(rm.evaluate, source, test)
        evaluate_source()
        change(path)
        with pytest.raises(FileError, match="written to, or shrank") as caught:
            evaluate_source()
        assert path.name in str(caught.value)
        with pytest.raises(FileError, match="written to"):
            evaluate_source(metrics="coverage@3")


def test_file_deleted_before_ranking_can_still_be_read(tmp_path):
    rng = np.random.default_rng(0)
    test = np.eye(30, 30, 1)[:29]
    path = in_file(tmp_path, "scores", rng.random((29, 30)))
    source = rm.Scores(path)
    before = rm.evaluate(source, test).mean()
    delete(path)
    assert rm.evaluate(source, test).mean() == before


def test_results_follow_changes_to_a_writable_mapping(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "scores.npy", "w+", np.float64, (3, 4))
    mapped[:] = [4, 3, 2, 1]
    source, test = rm.Scores(mapped), np.eye(3, 4)
    first = np.mean([1, 1 / 2, 1 / 3])
    assert rm.evaluate(source, test).mean()["rr@10"] == pytest.approx(first)
    mapped[:] = [1, 2, 3, 4]
    mapped.flush()
    for model in (source, pickle.loads(pickle.dumps(source))):
        last = np.mean([1 / 4, 1 / 3, 1 / 2])
        assert rm.evaluate(model, test).mean()["rr@10"] == pytest.approx(last)


def test_error_is_raised_if_a_file_is_truncated_during_ranking(tmp_path):
    path = in_file(tmp_path, "scores", np.ones((30, 2000)))

    class Interrupted(rm.Scores):
        def batch(self, rows):
            scores = super().batch(rows).copy()
            truncate(path)
            return scores

    with pytest.raises(FileError, match="was written to, or shrank"):
        rm.evaluate(Interrupted(path), np.eye(30, 2000))


@pytest.mark.parametrize("form", ["npy", "parquet", "npz", "positions"])
def test_from_files_equals_factors_in_memory(form: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    user_ids, item_ids = [f"u{n}" for n in range(4)], [str(n + 10) for n in range(6)]
    test = {"u0": ["10", "12"], "u3": ["15"]}
    paths = {
        "npy": ["users.npy", "items.npy", "users.txt", "items.npy.ids.parquet"],
        "parquet": ["users.parquet", "items.parquet"],
        "npz": ["model.npz"],
        "positions": ["users.npy", "items.npy", "positions", "positions"],
    }[form]
    np.save("users.npy", users)
    np.save("items.npy", items)
    arrays: dict = {"user_ids": user_ids, "item_ids": item_ids}
    np.savez("model.npz", user_factors=users, item_factors=items, **arrays)
    tmp_path.joinpath("users.txt").write_text("\n".join(user_ids) + "\n", encoding="utf-8")
    pl.DataFrame({"item_id": [int(name) for name in item_ids]}).write_parquet(
        "items.npy.ids.parquet"
    )
    for side, factors, ids in (("user", users, user_ids), ("item", items, item_ids)):
        frame = pl.DataFrame({f"{side}_id": ids, "factors": factors.tolist()})
        frame.write_parquet(f"{side}s.parquet")
    if form == "positions":
        test, arrays = {0: [0, 2], 3: [5]}, {"user_ids": range(4), "item_ids": range(6)}
    loaded = rm.Factors.from_files(*paths, test=test)
    expected = rm.evaluate(rm.Factors(users, items, **arrays), test, metrics="rr ndcg@2")
    assert rm.evaluate(loaded, test, metrics="rr ndcg@2").mean() == expected.mean()


def test_from_files_needs_ids_if_test_has_some(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("users.npy", np.eye(2))
    with pytest.raises(rm.InputError, match=r"Factors\.from_files\(USERS, ITEMS, 'positions'"):
        rm.Factors.from_files("users.npy", "users.npy", test={"ann": ["a"]})
