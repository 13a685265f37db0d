"""An `Evaluator` always returns exactly the same values as `evaluate`."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
import threading
import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm

N_USERS, N_ITEMS = 12, 15
USERS = [f"u{row:02}" for row in range(N_USERS)]
ITEMS = [f"i{(7 * row) % N_ITEMS:02}" for row in range(N_ITEMS)]
OF_RATINGS = "rmse mae"
RANKED = (
    "ndcg@3 ndcg@5(gain=exponential) recall@1..4 precision@3 ap@5 rr hit@2 tap@3 "
    "roc_auc pr_auc rprecision f@3 bpref"
)
LISTED = "coverage@3 novelty@3 personalization@3 overlap@3 category_entropy@3"


def to_dict(matrix, users=USERS, items=ITEMS):
    """Convert the nonzero entries of a matrix to a dict of dicts with ids as keys."""
    return {
        user: {items[item]: float(row[item]) for item in np.flatnonzero(row)}
        for user, row in zip(users, matrix, strict=True)
    }


class Data:
    """Test and training data, with a method `source` that creates a new model on each call."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.rng = rng
        kind = rng.random((N_USERS, N_ITEMS))
        self.test = np.where(kind < 0.2, rng.integers(1, 4, kind.shape), 0).astype(float)
        self.test[0, 0] = 1
        self.train = (kind > 0.8).astype(float)
        self.catalogue = rm.Catalogue(
            pl.DataFrame({"item": ITEMS, "kind": [["a", "b"][i % 2] for i in range(N_ITEMS)]}),
            item="item",
            categories="kind",
        )

    def scores(self):
        return self.rng.integers(0, 6, (N_USERS, N_ITEMS)).astype(float)

    def lists(self, k=6):
        return {
            user: [ITEMS[column] for column in self.rng.permutation(N_ITEMS)[:k]] for user in USERS
        }

    def source(self, kind):
        """Create a source of this kind, such as "factors"."""
        scores = self.scores()
        ids = {"user_ids": USERS, "item_ids": ITEMS}
        if kind == "factors":
            return rm.Factors(scores, np.eye(N_ITEMS), **ids)
        if kind == "scores":
            return rm.Scores(scores, **ids)
        if kind == "function":
            return rm.Scores(lambda rows: scores[rows], **ids)
        if kind == "lists":
            return rm.Lists(self.lists())
        if kind == "fewer items":
            return rm.Factors(scores, np.eye(N_ITEMS)[:9], user_ids=USERS, item_ids=ITEMS[:9])
        if kind == "other users":
            known_users = [*USERS[:7], "nobody"]
            return rm.Scores(scores[:8], user_ids=known_users, item_ids=ITEMS)
        if kind == "other order":
            return rm.Scores(scores, user_ids=USERS[::-1], item_ids=ITEMS[::-1])
        frame = pl.DataFrame({"user": np.repeat(USERS, N_ITEMS), "item": ITEMS * N_USERS})
        frame = frame.with_columns(score=scores.ravel())
        return rm.Pairs(frame, score="score", relevance=False, rating=False)


KINDS = (
    *("factors", "scores", "function", "lists", "pairs"),
    *("fewer items", "other users", "other order"),
)


def equal_results(result, expected):
    """Return whether two evaluations are equal to the last bit, except for their duration."""
    return not {
        field.name
        for field in dataclasses.fields(result)
        if field.name not in ("timings", "rated", "list_data", "inputs_kept", "_intervals")
        and comparable(getattr(result, field.name)) != comparable(getattr(expected, field.name))
    }


def comparable(value):
    """Convert arrays to bytes, so that == compares them as a whole."""
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            repr(value.tolist()) if value.dtype == object else (value.tobytes()),
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: comparable(getattr(value, field.name)) for field in fields_of(value)}
    if isinstance(value, dict) or hasattr(value, "items"):
        return {name: comparable(entry) for name, entry in value.items()}
    return repr(value) if isinstance(value, float) else value


def fields_of(value):
    return dataclasses.fields(value)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        yield


@given(st.integers(0, 2**32), st.lists(st.sampled_from(KINDS), min_size=2, max_size=3))
def test_evaluator_matches_evaluate(seed, kinds):
    """The same evaluator evaluates several models of different kinds."""
    data = Data(seed)
    options = {"train": to_dict(data.train), "metrics": "ndcg@3 recall@1..4 ap@5 rr@5 coverage@3"}
    options["catalogue"] = ITEMS
    test = to_dict(data.test)
    evaluator = rm.Evaluator(test, **options)
    for kind in kinds:
        source = data.source(kind)
        expected = rm.evaluate(source, test, **options)
        assert equal_results(evaluator(source), expected), kind
        assert repr(evaluator.mean(source)) == repr(expected.mean()), kind


@pytest.mark.parametrize("kind", KINDS)
def test_evaluator_matches_evaluate_with_all_side_data(kind):
    data = Data()
    test = to_dict(data.test)
    metrics = f"{RANKED if kind != 'lists' else 'ndcg@3 recall@1..4'} {LISTED}"
    options = {
        "train": to_dict(data.train),
        "metrics": metrics,
        "catalogue": data.catalogue,
        "baseline": rm.Lists(data.lists()),
    }
    evaluator = rm.Evaluator(test, **options)
    for _ in range(2):
        source = data.source(kind)
        expected = rm.evaluate(source, test, **options)
        result = evaluator(source)
        assert equal_results(result, expected)
        assert repr(evaluator.mean(source)) == repr(expected.mean())
    assert str(result) == str(expected)


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": rm.SampledCandidates(5, seed=1)},
        {"candidates": ITEMS[::2]},
        {"exclude": ITEMS[:3]},
        {"ties": "random", "seed": 3},
        {"seen": "kept"},
        {"relevant_from": 2},
        {"chance": True},
        {"users": "listed"},
        {"undefined": 0, "constant_scores": "ties"},
    ],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize("kind", ["factors", "other users"])
def test_evaluator_matches_evaluate_under_rules_that_change_rankings(kind, options):
    data = Data()
    test, options = to_dict(data.test), {**options, "train": to_dict(data.train), "metrics": RANKED}
    evaluator = rm.Evaluator(test, **options)
    for _ in range(2):
        source = data.source(kind)
        assert equal_results(evaluator(source), rm.evaluate(source, test, **options))


@pytest.mark.parametrize("convention", [convention.name for convention in rm.conventions()])
def test_evaluator_matches_evaluate_under_every_convention(convention):
    data = Data()
    test = to_dict(data.test)
    metrics = ["ndcg@3", "recall@3", "precision@3", "ap@3"]
    for kind in ("scores", "lists"):
        source = data.source(kind)
        try:
            expected = rm.evaluate(source, test, metrics=metrics, protocol=convention)
        except rm.RecometerError as error:
            with pytest.raises(type(error)):
                rm.Evaluator(test, metrics=metrics, protocol=convention)(source)
            continue
        evaluator = rm.Evaluator(test, metrics=metrics, protocol=convention)
        evaluator(data.source(kind))
        assert equal_results(evaluator(source), expected)


def test_evaluator_matches_evaluate_on_lists_of_varying_users():
    data = Data()
    test = to_dict(data.test)
    evaluator = rm.Evaluator(test, metrics="recall@3", users="listed")
    for user in ("new", "newer", "new"):
        source = rm.Lists({**data.lists(), user: ITEMS[:3]})
        result = evaluator(source)
        assert user in result.user_ids
        assert equal_results(result, rm.evaluate(source, test, metrics="recall@3", users="listed"))


def test_evaluator_matches_evaluate_on_labelled_sources():
    rows = pl.DataFrame(
        {"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5.0, 1.0, 4.0, 4.5]}
    )
    evaluator = rm.Evaluator(metrics=f"{OF_RATINGS} ndcg@2", relevant_from=4)
    for scores in ([1.0, 2.0, 3.0, 4.0], [4.0, 2.0, 1.0, 4.0]):
        source = rm.Pairs(rows.with_columns(score=pl.Series(scores)), rating="rating")
        expected = rm.evaluate(source, metrics=f"{OF_RATINGS} ndcg@2", relevant_from=4)
        assert equal_results(evaluator(source), expected)
        assert evaluator.mean(source) == expected.mean()
    assert "each source" in repr(evaluator)


def test_evaluator_notices_ids_that_change_in_place():
    """The evaluator does not copy the caller's array of ids, so it notices later changes."""
    data = Data()
    items = np.arange(N_ITEMS)
    test = rm.Interactions.of(sp.csr_array(data.test), user_ids=range(N_USERS), item_ids=items)
    evaluator = rm.Evaluator(test, metrics="ndcg@3")
    source_ids = items.copy()
    for _ in range(2):
        source = rm.Scores(data.scores(), user_ids=range(N_USERS), item_ids=source_ids)
        assert equal_results(evaluator(source), rm.evaluate(source, test, metrics="ndcg@3"))
        source_ids[:] = source_ids[::-1].copy()


def test_evaluator_matches_evaluate_on_several_threads():
    data = Data()
    test, options = (
        to_dict(data.test),
        {"train": to_dict(data.train), "metrics": f"{RANKED} coverage@3"},
    )
    sources = [data.source(kind) for kind in KINDS if kind != "lists"] * 2
    expected = {id(source): rm.evaluate(source, test, **options) for source in sources}
    evaluator, wrong = rm.Evaluator(test, **options), []

    def work(part):
        for source in part:
            if not equal_results(evaluator(source), expected[id(source)]):
                wrong.append(source)
            if repr(evaluator.mean(source)) != repr(expected[id(source)].mean()):
                wrong.append(source)

    threads = [threading.Thread(target=work, args=(sources[start::4],)) for start in range(4)]
    threads += [threading.Thread(target=work, args=(sources[::-1][:5],))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_rejected_source_does_not_change_later_results():
    data = Data()
    test = to_dict(data.test)
    evaluator = rm.Evaluator(test, metrics="ndcg@3")
    source = data.source("factors")
    expected = evaluator(source)
    for bad, error in (
        (rm.Factors(data.scores(), np.eye(N_ITEMS)), rm.InputError),
        (rm.Scores(data.scores(), user_ids=USERS, item_ids=range(N_ITEMS)), rm.InputTypeError),
        (rm.Scores(np.full((N_USERS, N_ITEMS), np.nan), user_ids=USERS, item_ids=ITEMS), None),
        (data.scores(), rm.InputTypeError),
    ):
        with pytest.raises(error or rm.InputError):
            evaluator(bad)
        with pytest.raises(error or rm.InputError):
            evaluator.mean(bad)
        assert equal_results(evaluator(source), expected)


def test_evaluator_raises_the_same_errors_as_evaluate():
    data = Data()
    test = to_dict(data.test)
    bad = rm.Scores(np.full((N_USERS, N_ITEMS), np.nan), user_ids=USERS, item_ids=ITEMS)
    with pytest.raises(rm.InputError) as error:
        rm.evaluate(bad, test)
    with pytest.raises(rm.InputError) as expected:
        rm.Evaluator(test)(bad)
    assert str(error.value) == str(expected.value)


def test_evaluator_accepts_models_with_a_recommend_method():
    data = Data()
    lists = data.lists()

    class Model:
        def recommend(self, users, k):
            return {user: lists[user][:k] for user in users}

    test = to_dict(data.test)
    assert equal_results(rm.Evaluator(test)(Model()), rm.evaluate(Model(), test))


def test_evaluator_takes_training_data_from_a_split():
    data = Data()
    users, items = np.nonzero(data.test + data.train)
    frame = pl.DataFrame({"user": users, "item": items, "time": np.arange(len(users))})
    split = rm.split(frame, rm.split.Last(1))
    source = rm.baselines.most_popular(split.train)
    assert equal_results(rm.Evaluator(split)(source), rm.evaluate(source, split))
    with pytest.raises(rm.InputError, match="contains its own"):
        rm.Evaluator(split, train=split.train)
    with pytest.raises(rm.InputTypeError, match=r"needs a single split, but .* has several"):
        rm.Evaluator([split, split])


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda evaluator: pickle.loads(pickle.dumps(evaluator))]
)
def test_evaluator_can_be_copied_and_pickled(duplicate):
    data = Data()
    test = to_dict(data.test)
    evaluator = rm.Evaluator(test, train=to_dict(data.train), metrics=f"{RANKED} coverage@3")
    source = data.source("factors")
    expected = evaluator(source)
    assert equal_results(duplicate(evaluator)(source), expected)


def test_ids_of_earlier_models_do_not_accumulate():
    rng = np.random.default_rng(0)
    test = rm.Interactions.of({user: list(range(0, 2000, 7)) for user in range(50)})
    evaluator = rm.Evaluator(test, metrics="ndcg@10 coverage@10")
    scores, sizes = rng.random((50, 2000)), []
    tracemalloc.start()
    for n in range(8):
        evaluator(rm.Scores(scores, user_ids=range(50), item_ids=np.arange(2000) + n))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(sizes[3:]) < 1.2 * sizes[2]


def test_evaluator_takes_the_same_parameters_as_evaluate():
    ours, theirs = (
        dict(inspect.signature(function).parameters) for function in (rm.Evaluator, rm.evaluate)
    )
    del theirs["source"]  # the source is passed when the evaluator is called
    assert ours == theirs


def remove_every_second_entry(matrix):
    matrix.data[::2] = 0
    matrix.eliminate_zeros()  # modifies the matrix in place


def evaluate_stream(evaluator, scores):
    stream = evaluator.stream()
    stream.update(scores, users=np.arange(60))
    return stream.compute()


CHANGES = {
    "items": lambda matrix: matrix.indices.fill(2**31 - 1),
    "values": lambda matrix: np.multiply(matrix.data, 3, out=matrix.data),
    "rows taken out": remove_every_second_entry,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("side", ["test", "train", "candidates"])
@pytest.mark.parametrize("kind", ["factors", "scores", "lists", "stream"])
def test_evaluator_refuses_arrays_that_have_changed_since(kind, side, change):
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(60, 3)), rng.normal(size=(50, 3))
    scores = users @ items.T
    source = {
        "factors": lambda: rm.Factors(users, items),
        "scores": lambda: rm.Scores(scores),
        "lists": lambda: rm.Lists(np.argsort(-scores, axis=1)[:, :10]),
        "stream": lambda: rm.Scores(scores),
    }[kind]()
    sides = {"train": None, "candidates": None}
    sides |= {"test": sp.csr_array((rng.random((60, 50)) < 0.1) * 2.0)}
    if side != "test":
        sides[side] = sp.csr_array((rng.random((60, 50)) < 0.3) * 1.0)
    evaluator = rm.Evaluator(**sides, metrics="rr ndcg@5 coverage@3", catalogue=50)
    before = evaluator(source).mean()
    assert evaluator(source).mean() == before
    change(sides[side])
    with pytest.raises(rm.InputError, match=f"^{side} was changed after the evaluator was made"):
        evaluate_stream(evaluator, scores) if kind == "stream" else evaluator(source)
