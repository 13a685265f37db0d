"""Tests of `rm.from_model` with stand-ins for other libraries' models.

A stand-in has only the module name and the attributes by which recometer recognises a model. The
tests in tests/live use the real libraries.
"""

import sys
import types

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import recometer as rm
from recometer.errors import InputError, InputTypeError, ModelError

METRICS = "ndcg@3 recall@5 roc_auc rr"
N_USERS, N_ITEMS = 12, 30
TEST = np.random.default_rng(7).random((N_USERS, N_ITEMS)) < 0.15


def of(module, name, *bases, **attributes):
    """Return an instance of a new class that pretends to be defined in the given module."""
    return type(name, bases, {"__module__": module, **attributes})()


def factors(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def assert_same(source, expected, test=TEST):
    left, right = (rm.evaluate(model, test, metrics=METRICS) for model in (source, expected))
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)


# implicit


class GpuMatrix:
    """A stand-in for the class that contains implicit's factors on a GPU."""

    def __init__(self, array):
        self.array = array

    def to_numpy(self):
        return self.array


@pytest.mark.parametrize("matrix", [np.asarray, GpuMatrix])
def test_factors_of_implicit_are_read(matrix):
    users, items = factors(N_USERS, 4), np.flipud(factors(N_ITEMS, 4))
    base = type("MatrixFactorizationBase", (), {"__module__": "implicit.cpu.matrix"})
    model = of("my.project", "Mine", base, user_factors=matrix(users), item_factors=matrix(items))
    source = rm.from_model(model)
    assert isinstance(source, rm.Factors)
    assert_same(source, rm.Factors(users, items))


def test_factors_of_implicit_accept_ids():
    users, items = factors(N_USERS, 4), factors(N_ITEMS, 4)
    model = of(
        "implicit.cpu.als", "AlternatingLeastSquares", user_factors=users, item_factors=items
    )
    ids = {"user_ids": range(100, 100 + N_USERS), "item_ids": range(N_ITEMS)}
    test = rm.Interactions.of(TEST, **ids)
    assert_same(rm.from_model(model, **ids), rm.Factors(users, items, **ids), test)


def test_unfitted_and_factorless_implicit_models_are_refused():
    model = of("implicit.cpu.bpr", "BayesianPersonalizedRanking", user_factors=None, item_factors=1)
    with pytest.raises(
        InputError, match=r"BayesianPersonalizedRanking of implicit\) is not fitted"
    ):
        rm.from_model(model)
    model = of("implicit.nearest_neighbours", "CosineRecommender", similarity=1)
    with pytest.raises(InputTypeError, match=r"no user_factors .* by hand: .*model\.similarity"):
        rm.from_model(model)
    with pytest.raises(InputError, match="n_users= does not apply to CosineRecommender of"):
        rm.from_model(model, n_users=3)


@pytest.mark.parametrize(
    "model",
    [
        of("implicit.als", "ALS", user_factors=factors(3, 2), item_factors=factors(4, 2)),
        of("lightfm.lightfm", "LightFM", item_embeddings=factors(4, 2)),
        of("surprise.prediction_algorithms.algo_base", "AlgoBase"),
    ],
)
def test_options_of_other_models_are_refused(model):
    with pytest.raises(InputError, match=f"n= does not apply to {type(model).__name__} of"):
        rm.from_model(model, n=10)


# LightFM


class Representations:
    """A stand-in for LightFM whose representations are weighted sums of its embeddings."""

    def __init__(self):
        self.item_embeddings, self.item_biases = factors(N_ITEMS, 4), factors(N_ITEMS)
        self.user_embeddings, self.user_biases = factors(N_USERS, 4), factors(N_USERS)

    def get_item_representations(self, features=None):
        weights = np.eye(N_ITEMS, dtype=np.float32) if features is None else features
        return weights @ self.item_biases, weights @ self.item_embeddings

    def get_user_representations(self, features=None):
        weights = np.eye(N_USERS, dtype=np.float32) if features is None else features
        return weights @ self.user_biases, weights @ self.user_embeddings


def test_lightfm_models_are_read_as_factors():
    model = of("lightfm.lightfm", "LightFM", Representations)
    source = rm.from_model(model)
    assert isinstance(source, rm.Factors)
    biases = {"user_bias": model.user_biases, "item_bias": model.item_biases}
    assert_same(source, rm.Factors(model.user_embeddings, model.item_embeddings, **biases))
    features = 2 * np.eye(N_ITEMS, dtype=np.float32)
    source = rm.from_model(model, item_features=features)
    biases["item_bias"] = 2 * model.item_biases
    assert_same(source, rm.Factors(model.user_embeddings, 2 * model.item_embeddings, **biases))
    model.item_embeddings = None
    with pytest.raises(InputError, match="LightFM of lightfm\\) is not fitted"):
        rm.from_model(model)


# Surprise


class PredictionImpossible(Exception):
    pass


class Estimates:
    """A stand-in for a Surprise model whose `estimate` returns a number or a tuple, or raises."""

    def fit(self):
        self.trainset = types.SimpleNamespace(
            n_users=N_USERS,
            n_items=N_ITEMS,
            to_raw_uid=lambda user: f"user {N_USERS - user}",
            to_raw_iid=lambda item: f"item {item * 7 % N_ITEMS}",
        )
        self.scores = np.random.default_rng(5).normal(3.5, 2, (N_USERS, N_ITEMS))
        self.scores[2, 3:9] = 3.25
        return self

    def estimate(self, user, item):
        assert type(user) is int
        assert type(item) is int
        if user == 2 and 3 <= item < 9:
            raise PredictionImpossible("Not enough neighbors.")
        score = self.scores[user, item]
        return (score, {"actual_k": 3}) if user == 3 else score

    def default_prediction(self):
        return 3.25


def surprise():
    base = type(
        "AlgoBase", (Estimates,), {"__module__": "surprise.prediction_algorithms.algo_base"}
    )
    return of("surprise.prediction_algorithms.knns", "KNNBasic", base)


def test_surprise_models_are_read_as_scores():
    model = surprise().fit()
    source = rm.from_model(model)
    assert source.describe() == "Scores: KNNBasic of surprise, 12 users x 30 items"
    ids = {
        "user_ids": [f"user {N_USERS - user}" for user in range(N_USERS)],
        "item_ids": [f"item {item * 7 % N_ITEMS}" for item in range(N_ITEMS)],
    }
    test = rm.Interactions.of(TEST, **ids)
    assert_same(source, rm.Scores(model.scores, **ids), test)


def test_unfitted_and_failing_surprise_models_are_reported():
    model = surprise()
    with pytest.raises(InputError, match="KNNBasic of surprise\\) is not fitted"):
        rm.from_model(model)
    model.fit().estimate = lambda user, item: 1 // 0
    test = {f"user {user}": ["item 1"] for user in (3, 4)}
    with pytest.raises(ModelError, match=r"ZeroDivisionError for the users 'user \d', 'user \d'"):
        rm.evaluate(rm.from_model(model), test)


# Tests of torch and PyTorch Geometric models


class Module:
    """A stand-in for torch.nn.Module, with the methods that recometer uses."""

    def __init__(self):
        self.training = True
        self.frozen = types.SimpleNamespace(training=False)
        self.scores = np.random.default_rng(6).normal(size=(N_USERS, N_ITEMS))
        self.states = []

    def modules(self):
        return [self, self.frozen]

    def parameters(self):
        return iter([types.SimpleNamespace(device="gpu")])

    def buffers(self):
        return iter([])

    def eval(self):
        self.training = self.frozen.training = False


class NoGrad:
    active = False

    def __enter__(self):
        NoGrad.active = True

    def __exit__(self, *error):
        NoGrad.active = False


def as_tensor(array, device):
    assert device == "gpu"
    return array


@pytest.fixture
def torch(monkeypatch):
    fake = types.SimpleNamespace(
        nn=types.SimpleNamespace(Module=Module),
        Tensor=type("Tensor", (), {}),
        no_grad=NoGrad,
        as_tensor=as_tensor,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)


class TwoTowers(Module):
    def score_users(self, users):
        self.states.append((self.training, NoGrad.active))
        return self.scores[users]


@pytest.mark.usefixtures("torch")
def test_torch_modules_are_scored_in_evaluation_mode():
    model = TwoTowers()
    source = rm.from_model(model, n_users=N_USERS, n_items=N_ITEMS)
    assert source.describe() == "Scores: TwoTowers.score_users, 12 users x 30 items"
    assert_same(source, rm.Scores(model.scores))
    assert set(model.states) == {(False, True)}
    assert model.training  # recometer has restored the mode
    assert not model.frozen.training
    assert not NoGrad.active
    with pytest.raises(InputError, match=r"needs n_users=\.\.\."):
        rm.from_model(model)
    with pytest.raises(InputError, match="n= does not apply to a torch module with score_users"):
        rm.from_model(model, n=3, n_users=N_USERS, n_items=N_ITEMS)


@pytest.mark.usefixtures("torch")
def test_torch_module_without_score_users_is_refused():
    with pytest.raises(InputTypeError, match=r"\.Module is not recognised.*score_users\(users\)"):
        rm.from_model(Module())


# Tests of unknown models


def test_unknown_models_are_refused():
    with pytest.raises(InputTypeError) as error:
        rm.from_model(of("their.library", "Model", user_factors=1))
    for part in ("their.library.Model", "implicit", "LightFM", "Surprise", "torch"):
        assert part in str(error.value)
    assert "Hint: wrap it by hand: rm.Factors(user_factors, item_factors)" in str(error.value)
    with pytest.raises(InputTypeError, match=r"LightFM is a class\. Hint"):
        rm.from_model(type(of("lightfm.lightfm", "LightFM")))
    # The name of this class's module begins with the name of a supported library.
    with pytest.raises(InputTypeError, match="not recognised"):
        rm.from_model(of("implicitly.mine", "Model"))


# Tests of models that recometer recognises by their `recommend` method

KINDS_OF_IDS = {"positions": (0, 0), "ids": (100, 1000)}


# The positions of the items that the stand-in recommends to each user, best first.
LISTS = np.argsort(np.random.default_rng(3).random((N_USERS, N_ITEMS)), axis=1)
SCORES = np.linspace(1, 0, N_ITEMS)


def takes_all_users(form):
    """Return a `recommend` method that takes many users; `form` converts the items [n_users, k]."""

    def recommend(self, user_ids, k=10):
        rows = np.asarray(user_ids) % 100
        return form(LISTS[rows, :k] + self.first_item, list(user_ids))

    return recommend


def takes_one_user(form):
    def recommend(self, user_id, n_items):
        return form((LISTS[user_id % 100, :n_items] + self.first_item).tolist())

    return recommend


FORMS = {
    "array": takes_all_users(lambda items, users: items),
    "lists": takes_all_users(lambda items, users: items.tolist()),
    "with scores": takes_all_users(lambda items, users: (items, np.ones(items.shape))),
    "dict": takes_all_users(lambda items, users: dict(zip(users, items.tolist(), strict=True))),
    "frame": takes_all_users(
        lambda items, users: pl.DataFrame({"user": users, "item": items.tolist()})
    ),
    "one: list": takes_one_user(lambda items: items),
    "one: pairs": takes_one_user(lambda items: list(zip(items, SCORES.tolist(), strict=False))),
    "one: two lists": takes_one_user(lambda items: (items, SCORES[: len(items)].tolist())),
}


@pytest.mark.parametrize(
    ("form", "kind"),
    [(form, "ids") for form in FORMS]
    # A dict or a frame contains ids instead of positions.
    + [(form, "positions") for form in FORMS if form not in ("dict", "frame")],
)
def test_recommend_may_return_lists_in_many_forms(form, kind):
    first_user, first_item = KINDS_OF_IDS[kind]
    ids = {"user_ids": np.arange(N_USERS) + first_user, "item_ids": np.arange(N_ITEMS) + first_item}
    if kind == "positions":
        ids = {}
    test = rm.Interactions.of(TEST, **ids)
    model = of("their.library", "Model", recommend=FORMS[form], first_item=first_item)
    expected = rm.evaluate(rm.Lists(LISTS[:, :5], **ids), test, metrics="ndcg@3 hit@5")
    users = {"user_ids": ids["user_ids"]} if ids else {"n_users": N_USERS}
    for source in (model, rm.from_model(model, n=5, **users)):
        result = rm.evaluate(source, test, metrics="ndcg@3 hit@5")
        for name in expected.values:
            np.testing.assert_array_equal(result[name], expected[name])


@pytest.mark.parametrize("ids", [["ann", "bob"], [7, 8]])
def test_model_receives_text_ids_as_a_list_and_numbers_as_an_array(ids):
    requests = []

    def recommend(self, user_ids, k):
        requests.append(user_ids)
        return np.ones((len(user_ids), k), np.int64)

    model = of("their.library", "Model", recommend=recommend)
    rm.from_model(model, n=1, user_ids=ids)
    assert type(requests[0]) is (list if ids == ["ann", "bob"] else np.ndarray)
    assert list(requests[0]) == ids


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 2], [0]],
        ([1, 2], [0]),
        ([[1, 2], [0]], [[0.5, 0.1], [0.9]]),  # the second list contains scores
        ([1, 2], [0, -1]),
        np.array([[1, 2], [0, -1]]),
    ],
)
def test_recommended_lists_may_differ_in_length(answer):
    def recommend(users, k, verbose=False, *extra, **options):
        return answer

    model = of("their.library", "Model", recommend=staticmethod(recommend))
    source = rm.from_model(model, n=2, n_users=2)
    for item, hits in enumerate(([0, 1], [1, 0], [1, 0])):
        result = rm.evaluate(source, np.eye(3)[[item, item]], metrics="hit@2")
        assert result["hit@2"].tolist() == hits


def test_minus_one_is_padding_in_arrays_but_an_id_in_lists():
    for answer, hit in ((np.array([[5, -1], [6, 8]]), 0), ([[5, -1], [6, 8]], 1)):
        model = of(
            "their.library", "Model", recommend=staticmethod(lambda users, k, lists=answer: lists)
        )
        source = rm.from_model(model, n=2, user_ids=[7, 8])
        for item, hits in ((-1, [hit, 0]), (5, [1, 0]), (8, [0, 1])):
            result = rm.evaluate(source, {7: [item], 8: [item]}, metrics="hit@2")
            assert result["hit@2"].tolist() == hits


def test_longer_lists_are_requested_from_a_model_that_recommends_train_items():
    train = np.zeros_like(TEST)
    # The training data contain the first four items that the model recommends to each user.
    np.put_along_axis(train, LISTS[:, :4], True, axis=1)
    model = of("their.library", "Model", recommend=FORMS["array"], first_item=0)
    options = {"train": train, "metrics": "recall@3"}
    result = rm.evaluate(model, TEST & ~train, **options)
    expected = rm.evaluate(rm.Lists(LISTS), TEST & ~train, **options)
    np.testing.assert_array_equal(result["recall@3"], expected["recall@3"])
    assert "up to 7 each" in result.inputs["source"]["description"]
    without_train = rm.evaluate(model, TEST, metrics="recall@3")
    assert "up to 3 each" in without_train.inputs["source"]["description"]
    empty_train = rm.evaluate(model, TEST, train=np.zeros_like(TEST), metrics="recall@3")
    assert "up to 3 each" in empty_train.inputs["source"]["description"]


def implicit_model(calls):
    def recommend(userid, user_items, N=10, filter_already_liked_items=True):
        calls.append((N, filter_already_liked_items))
        np.testing.assert_array_equal(userid, np.arange(N_USERS))
        scores = np.where(user_items.toarray() > 0, -np.finfo(np.float32).max, 0.0)
        scores = scores[:, LISTS[0]] + SCORES
        order = np.argsort(-scores, axis=1)[:, :N]
        return LISTS[0][order], np.take_along_axis(scores, order, axis=1)

    names = ("implicit.nearest_neighbours", "CosineRecommender")
    return of(*names, recommend=staticmethod(recommend), similarity=1)


def test_implicit_neighbour_models_are_read_by_their_lists():
    train = scipy.sparse.csr_array((np.random.default_rng(0).random(TEST.shape) < 0.8) & ~TEST)
    calls = []
    model = implicit_model(calls)
    test = scipy.sparse.csr_array(TEST.astype(float))
    lists = np.tile(LISTS[0], (N_USERS, 1))
    expected = rm.evaluate(rm.Lists(lists), test, train=train, metrics="recall@8")
    ids = {"user_ids": range(100, 100 + N_USERS), "item_ids": range(50, 50 + N_ITEMS)}
    sides = [rm.Interactions.of(side, **ids) for side in (test, train)]
    source_with_ids = rm.from_model(model, n=8, user_items=train, **ids)
    for source, test_data, train_data in ((model, test, train), (source_with_ids, *sides)):
        result = rm.evaluate(source, test_data, train=train_data, metrics="recall@8")
        np.testing.assert_array_equal(result["recall@8"], expected["recall@8"])
    assert calls == [(8, True), (8, True)]
    rm.evaluate(model, test, train=train, metrics="recall@5", seen="kept")
    assert calls[-1] == (5, False)
    with pytest.raises(InputError, match=r"by their rows .*user_items=train, user_ids="):
        rm.evaluate(model, sides[0], train=sides[1], metrics="recall@5")
    with pytest.raises(
        InputTypeError, match=r"no user_factors .*rm\.from_model\(model, n=100, user_i"
    ):
        rm.from_model(model)


def test_items_masked_by_implicit_are_not_listed():
    def recommend(userid, user_items, N):
        scores = np.array([[1, -np.finfo(np.float32).max], [1, 0.5]], np.float32)
        return np.array([[2, 0], [1, 2]]), scores

    model = of("implicit.mine", "Model", recommend=staticmethod(recommend))
    source = rm.from_model(model, n=2, user_items=scipy.sparse.csr_array(np.eye(2, 3)))
    for item in range(3):
        result = rm.evaluate(source, np.eye(3)[[item, item]], metrics="hit@2")
        assert result["hit@2"].tolist() == [item == 2, item > 0]


@pytest.mark.parametrize("kept_side", ["user_factors", "item_factors"])
def test_implicit_model_with_one_factor_matrix_is_read_by_its_lists(kept_side):
    train = scipy.sparse.csr_array(~TEST)
    test = scipy.sparse.csr_array(TEST.astype(float))
    model = implicit_model([])
    expected = rm.evaluate(model, test, train=train, metrics="recall@3")
    setattr(type(model), kept_side, np.ones((N_ITEMS, 2)))
    result = rm.evaluate(model, test, train=train, metrics="recall@3")
    np.testing.assert_array_equal(result["recall@3"], expected["recall@3"])


def test_implicit_neighbour_models_need_user_items_and_n():
    model = implicit_model([])
    with pytest.raises(rm.InputError, match="recommends based on what users already have"):
        rm.from_model(model, n=5)
    with pytest.raises(rm.InputError, match="n=None must be the length of the lists"):
        rm.from_model(model, user_items=scipy.sparse.csr_array(TEST.astype(float)))
    with pytest.raises(rm.InputTypeError, match="has no user_factors and item_factors"):
        rm.from_model(model)


@pytest.mark.parametrize(
    ("recommend", "message"),
    [
        (
            lambda dataset, users, k, filter_viewed: None,
            r"dataset, users, k, filter_viewed\) has unsupported parameters.*RecTo",
        ),
        (
            lambda user, temperature, k=10: None,
            r"recommend\(user, temperature, k=10\) has unsupported parameters: it is unclear what "
            r"temperature should be",
        ),
        (
            lambda users, uid, k: None,
            r"has unsupported parameters: it is unclear what uid should be",
        ),
        (lambda users, n, k: None, r"has unsupported parameters: it is unclear what k should be"),
        (
            lambda: None,
            r"recommend\(\) has unsupported parameters\. Hint: supported are recommend\(userid",
        ),
        (dict, r"recommend\(.*\) has unsupported parameters"),
    ],
)
def test_unsupported_signatures_of_recommend_are_refused(recommend, message):
    model = of("their.library", "Model", recommend=staticmethod(recommend))
    message = message.replace("RecTo", r"rm\.Lists\(model\.recommend\(users=users, dataset")
    for call in (rm.from_model, lambda model: rm.evaluate(model, TEST, metrics="ndcg@5")):
        with pytest.raises(InputTypeError, match=rf"Model\..*{message}"):
            call(model)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            lambda users, k: 7,
            InputTypeError,
            "returned int. Hint: expected a list of items per user",
        ),
        (lambda users, k: np.zeros((2, k), int), InputError, "returned 2 lists for 12 users"),
        (
            lambda users, k: [["a"]] * len(users),
            InputTypeError,
            "'a' for an item, but items are pos",
        ),
        (
            lambda users, k: [[(0, 0.5), 1]] * len(users),
            InputTypeError,
            r"mix int \(for instance 1\) and tuple",
        ),
        (lambda users, k: 1 / 0, ModelError, "raised ZeroDivisionError: division by zero"),
    ],
)
def test_invalid_output_of_recommend_is_refused(answer, error, message):
    model = of("their.library", "Model", recommend=staticmethod(answer))
    with pytest.raises(error, match=message):
        rm.evaluate(model, TEST, metrics="ndcg@5")


def test_models_with_recommend_need_n_and_users():
    model = of("their.library", "Model", recommend=FORMS["array"], first_item=0)
    with pytest.raises(
        InputError, match=r"n=None must be the length of the lists of Model\.recommend\(user_ids"
    ):
        rm.from_model(model, n_users=3)
    with pytest.raises(
        InputError, match=r"For which users should .* return lists.* user_ids=.*n_users="
    ):
        rm.from_model(model, n=3)
    with pytest.raises(InputError, match="n_items= does not apply to Model"):
        rm.from_model(model, n=3, n_users=3, n_items=1)
    with pytest.raises(InputError, match=r"whole ranking\. Hint: .*n=100"):
        rm.evaluate(model, TEST, metrics="rr ndcg@10")
    with pytest.raises(InputError, match="test is missing"):
        rm.evaluate(model, metrics="ndcg@10")


def test_model_with_factors_needs_no_further_arguments():
    users, items = factors(N_USERS, 4), factors(N_ITEMS, 4)
    names = ("implicit.cpu.als", "AlternatingLeastSquares")
    model = of(*names, user_factors=users, item_factors=items, recommend=lambda *_: 1 / 0)
    assert_same(model, rm.Factors(users, items))
