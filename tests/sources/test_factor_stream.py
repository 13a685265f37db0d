"""Factors that are read part by part: no number changes, whatever the parts."""

import contextlib
import dataclasses
import re
import warnings

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, InputError
from recometer.ranks import UserFlag
from recometer.sources import _assemble, _factor_order, _factor_stream
from recometer.sources.base import Request
from recometer.sources.candidates import read_candidates

KINDS = ["whole", "skewed", "constant", "special"]
STORED = [np.float32, np.float64, np.float16, np.int8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("factors")


def drawn(rng, kind, shape, dtype):
    """Factors with ties and lengths of all kinds, and some that are no numbers."""
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


def in_file(folder, name, array):
    """Return an array as a memory-mapped file."""
    path = folder / f"{name}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def interactions(rng, n_users, n_items, share, named):
    chosen = rng.random((n_users, n_items)) < share
    chosen[0, 0] = True
    if not named:
        return rm.Interactions.of(chosen.astype(float))
    return rm.Interactions.of(
        {f"u{u}": [f"i{i}" for i in np.flatnonzero(row)] for u, row in enumerate(chosen)}
    )


def found(source, request, k):
    """Return all that a source finds, with the order by lengths wherever that is possible."""
    with by_length():
        ranks = source.rank(dataclasses.replace(request, depth=k))
        lists = source.top(request, k or 3)
    return dataclasses.asdict(ranks), dataclasses.asdict(lists)


@contextlib.contextmanager
def by_length():
    """Let the order by lengths always pay, and have room."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name in ("LEAST_ITEMS", "LEAST_USERS"):
            patch.setattr(_factor_order, name, 0)
        patch.setattr(_factor_order, "MOST_ALIKE", np.inf)
        patch.setattr(_factor_stream, "BYTES_PER_LENGTH", 1e-6)
        patch.setattr(_factor_stream, "PIECE", 600)
        yield


def least_memory(make, request):
    """Return the least memory that is enough, as the error says it."""
    with pytest.raises(InputError, match="are the least") as error:
        make(1).rank(request)
    number, unit = re.search(r"about ([\d.,]+) (\w+) are the least", str(error.value)).groups()
    return f"{float(number.replace(',', '')) + 0.5}{unit}"


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
    offered=st.sampled_from(["all", "some", "own", "excluded"]),
    named=st.booleans(),
    bias=st.sampled_from(["none", "numbers", "special"]),
    times=st.sampled_from([0, 1.5, 4]),
)
@examples(2)
def test_parts_change_nothing(
    folder, seed, kinds, stored, shape, k, rules, offered, named, bias, times
):
    rng = np.random.default_rng(seed)
    n_users, n_items, n_factors = shape
    users = drawn(rng, kinds[0], (n_users, n_factors), stored[0])
    items = drawn(rng, kinds[1], (n_items, n_factors), stored[1])
    options = {}
    if named:
        options["user_ids"] = [f"u{user}" for user in rng.permutation(n_users)]
        options["item_ids"] = [f"i{item}" for item in rng.permutation(n_items)]
    if bias != "none":
        options["item_bias"] = rng.standard_normal(n_items).round(1)
        options["user_bias"] = rng.standard_normal(n_users)
    if bias == "special":
        options["user_bias"][-1] = np.nan
    test = interactions(rng, n_users, n_items, 0.05, named)
    request = Request(
        test, interactions(rng, n_users, n_items, 0.1, named), rm.Protocol(**rules), threads=2
    )
    some = [f"i{i}" if named else i for i in range(n_items) if rng.random() < 0.7] + [
        "i0" if named else 0
    ]
    if offered == "own":
        chosen = interactions(rng, n_users, n_items, 0.2, named)
        request = dataclasses.replace(request, candidates=chosen)
    elif offered == "some":
        request = dataclasses.replace(request, candidates=read_candidates(some))
    elif offered == "excluded":
        request = dataclasses.replace(request, exclude=read_candidates(some[:5]))
    files = in_file(folder, "users", users), in_file(folder, "items", items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        plain = rm.Factors(users, items, **options)

        def make(memory):
            return rm.Factors(*files, **options, memory=memory)

        memory = 1
        if offered != "own":
            with by_length():
                memory = least_memory(make, dataclasses.replace(request, depth=k or 3))
            memory = int(float(memory[:-2]) * 1000 * max(times, 1))
        streamed = make(memory)
        expected = found(plain, request, k)
        mine = found(streamed, request, k)
    for one, other in zip(mine, expected, strict=True):
        for name, value in other.items():
            np.testing.assert_array_equal(one[name], value, err_msg=name)


@pytest.fixture(scope="module")
def model(folder):
    """Factors in files, of two dtypes, with a test."""
    rng = np.random.default_rng(1)
    users, items = rng.standard_normal((40, 8)), rng.standard_normal((900, 8))
    users, items = users.astype(np.float32), items.astype(np.float16)
    files = in_file(folder, "model_users", users), in_file(folder, "model_items", items)
    return users, items, *files, rm.Interactions.of((rng.random((40, 900)) < 0.02).astype(float))


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_an_evaluation_is_the_same_in_every_respect(model):
    users, items, user_file, item_file, test = model
    options = {"metrics": "ndcg@10 roc_auc coverage@5", "threads": 2}
    whole = rm.evaluate(rm.Factors(users, items.astype(np.float32)), test, **options)
    part = rm.evaluate(rm.Factors(user_file, item_file, memory="20 kB"), test, **options)
    for name, values in whole.values.items():
        np.testing.assert_array_equal(part.values[name], values)
    assert part.mean() == whole.mean()
    for name in ("users", "items"):
        fingerprints = [one.inputs["source"]["fingerprints"][name] for one in (part, whole)]
        assert fingerprints[0] == fingerprints[1]


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_the_least_memory_is_enough_and_half_of_it_is_not(model):
    _, _, user_file, item_file, test = model
    request = Request(test)
    memory = least_memory(lambda memory: rm.Factors(user_file, item_file, memory=memory), request)
    least = int(float(memory[:-2]) * 1000)
    rm.Factors(user_file, item_file, memory=least).rank(request)
    with pytest.raises(InputError, match=r"to rank 900 items with 8 factors.*Hint: a larger"):
        rm.Factors(user_file, item_file, memory=least // 2).rank(request)


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
@pytest.mark.parametrize(
    ("n_items", "n_factors", "threads", "ids", "least"),
    [
        # Half of it is for what is known of each item: 8 bytes, or 24 in another order.
        (900, 8, 1, False, 2 * 8 * 900),
        (900, 8, 1, True, 2 * 24 * 900),
        # A quarter is for the tasks, each with a user's factors twice, and a judged item.
        (10, 64, 8, False, 4 * 8 * (2 * 256 + 64 + 64)),
    ],
)
def test_the_least_memory_is_told(folder, n_items, n_factors, threads, ids, least):
    rng = np.random.default_rng(n_items)
    items = in_file(folder, "least", rng.standard_normal((n_items, n_factors)).astype(np.float16))
    users = np.ones((2, n_factors), np.float32)
    options = {"user_ids": [0, 1], "item_ids": rng.permutation(n_items)} if ids else {}
    test = {0: [1], 1: [2]} if ids else np.eye(2, n_items)
    source = rm.Factors(users, items, **options, memory=1)
    with pytest.raises(InputError, match=f"about {1.01 * least / 1000:.1f} kB are the least"):
        source.rank(Request(rm.Interactions.of(test), threads=threads))


def in_parts(monkeypatch, users, items, judged, depth):
    """Rank in parts, to a depth; return also where each part begins that was read."""
    begins = []
    native = _factor_stream.StreamedWork._load

    def load(self, part, once):
        native(self, part, once)
        begins.append(part.start)

    monkeypatch.setattr(_factor_stream.StreamedWork, "_load", load)
    test = np.zeros((len(users), len(items)))
    test[np.arange(len(users)), judged] = 1
    request = Request(rm.Interactions.of(test), depth=depth)
    ranks = rm.Factors(users, items, memory="20 kB").rank(request)
    assert len(set(begins)) > 2
    return ranks.above.tolist(), begins


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_a_user_with_nothing_left_within_the_depth_does_not_end_that_of_others(monkeypatch):
    items = np.zeros((900, 8), np.float16)
    items[:10, 0] = items[-3:, 1] = 2  # in the first part, and in the last
    items[400] = 1
    above, _ = in_parts(monkeypatch, np.eye(2, 8, dtype=np.float32), items, [400, 400], depth=5)
    assert above == [-1, 3]


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_parts_are_not_read_for_users_with_nothing_left_within_the_depth(monkeypatch):
    items = np.zeros((900, 8), np.float16)
    items[:10] = 2
    above, begins = in_parts(monkeypatch, np.ones((2, 8), np.float32), items, [400, 500], depth=5)
    assert above == [-1, -1]
    # What is known of all items, and the factors of a part, fit together.
    assert 8 * len(items) + 4 * 8 * begins[1] <= 20_000
    # All of them for the scores of the judged items, then the first alone.
    assert begins == [*sorted(set(begins)), 0]


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
def test_a_score_that_is_no_number_is_noticed_for_users_with_nothing_left_within_the_depth():
    items = np.zeros((900, 8), np.float16)
    items[:10] = 2
    items[-1, 0] = np.nan
    judged = np.zeros((2, len(items)))
    judged[:, 400] = 1
    source = rm.Factors(np.ones((2, 8), np.float32), items, memory="20 kB")
    ranks = source.rank(Request(rm.Interactions.of(judged), depth=5))
    assert (ranks.flags & np.uint32(UserFlag.NAN_SCORE)).all()


def test_what_is_in_memory_is_not_copied(monkeypatch, model):
    users, items, *_, test = model
    shown = []
    native = _factor_stream.StreamedWork._load

    def load(self, part, once):
        native(self, part, once)
        shown.append(self.items["items"])

    monkeypatch.setattr(_factor_stream.StreamedWork, "_load", load)
    own = items.astype(np.float32)
    rm.Factors(users, own, memory="30 kB").rank(Request(test))
    assert len(shown) > 2
    assert all(np.shares_memory(one, own) for one in shown)


@pytest.mark.parametrize("size", [30_000, np.int64(30_000), "30kB", "30 KB", "0.03mb", "29.3KiB"])
def test_sizes_are_bytes_or_texts_with_a_unit(model, size):
    users, items, *_, test = model
    rm.Factors(users, items.astype(np.float32), memory=size).rank(Request(test))


def test_a_bar_shows_both_passes(model, capsys):
    users, items, *_, test = model
    source = rm.Factors(users, items.astype(np.float32), memory="20 kB")
    source.rank(Request(test, threads=2, progress=True))
    said = capsys.readouterr().err
    for label in ("Reading", "Ranking"):
        assert re.search(rf"{label}.* 100%", said)


@pytest.mark.filterwarnings("ignore:items of Factors were converted:UserWarning")
@pytest.mark.parametrize("progress", [False, True])
def test_work_within_a_part_has_no_bar_of_its_own(monkeypatch, model, capsys, progress):
    monkeypatch.setattr(_assemble, "BRIEF", 0)
    _, _, users, items, test = model
    source = rm.Factors(users, items, memory="20 kB")
    source.rank(Request(test, threads=2, progress=progress, depth=5))
    bars = re.findall(r"(\w+)[^\n\r]* 100%", capsys.readouterr().err)
    assert set(bars) == ({"Reading", "Ranking"} if progress else set())
