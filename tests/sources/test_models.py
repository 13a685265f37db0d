"""Fitted models of other libraries: look-alikes stand for them here, the real ones in tests/live.

A look-alike has the module and the names that a model is recognised by, and nothing else.
"""

import sys
import types

import numpy as np
import pytest

import recometer as rm
from recometer.errors import InputError, InputTypeError, ModelError

METRICS = "ndcg@3 recall@5 roc_auc rr"
N_USERS, N_ITEMS = 12, 30
TEST = np.random.default_rng(7).random((N_USERS, N_ITEMS)) < 0.15


def of(module, name, *bases, **attributes):
    """Return an instance of a class that says to come from a module."""
    return type(name, bases, {"__module__": module, **attributes})()


def factors(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def same(source, expected, test=TEST):
    left, right = (rm.evaluate(one, test, metrics=METRICS) for one in (source, expected))
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)


# implicit


class GpuMatrix:
    """What implicit keeps the factors of a GPU in."""

    def __init__(self, array):
        self.array = array

    def to_numpy(self):
        return self.array


@pytest.mark.parametrize("matrix", [np.asarray, GpuMatrix])
def test_implicit(matrix):
    users, items = factors(N_USERS, 4), np.flipud(factors(N_ITEMS, 4))
    base = type("MatrixFactorizationBase", (), {"__module__": "implicit.cpu.matrix"})
    model = of("my.project", "Mine", base, user_factors=matrix(users), item_factors=matrix(items))
    source = rm.from_model(model)
    assert isinstance(source, rm.Factors)
    same(source, rm.Factors(users, items))


def test_implicit_with_ids():
    users, items = factors(N_USERS, 4), factors(N_ITEMS, 4)
    model = of(
        "implicit.cpu.als", "AlternatingLeastSquares", user_factors=users, item_factors=items
    )
    ids = {"user_ids": range(100, 100 + N_USERS), "item_ids": range(N_ITEMS)}
    test = rm.Interactions.of(TEST, **ids)
    same(rm.from_model(model, **ids), rm.Factors(users, items, **ids), test)


def test_implicit_that_is_not_fitted_or_has_no_factors():
    model = of("implicit.cpu.bpr", "BayesianPersonalizedRanking", user_factors=None, item_factors=1)
    with pytest.raises(
        InputError, match=r"BayesianPersonalizedRanking of implicit\) is not fitted"
    ):
        rm.from_model(model)
    model = of("implicit.nearest_neighbours", "CosineRecommender", similarity=1)
    with pytest.raises(InputTypeError, match=r"no user_factors .* by hand: .*model\.similarity"):
        rm.from_model(model)
    with pytest.raises(InputError, match="edge_index= does not apply to CosineRecommender of"):
        rm.from_model(model, edge_index=np.zeros((2, 1)))


# LightFM


class Representations:
    """Representations as LightFM gives them: sums over features, or those of the rows."""

    def __init__(self):
        self.item_embeddings, self.item_biases = factors(N_ITEMS, 4), factors(N_ITEMS)
        self.user_embeddings, self.user_biases = factors(N_USERS, 4), factors(N_USERS)

    def get_item_representations(self, features=None):
        weights = np.eye(N_ITEMS, dtype=np.float32) if features is None else features
        return weights @ self.item_biases, weights @ self.item_embeddings

    def get_user_representations(self, features=None):
        weights = np.eye(N_USERS, dtype=np.float32) if features is None else features
        return weights @ self.user_biases, weights @ self.user_embeddings


def test_lightfm():
    model = of("lightfm.lightfm", "LightFM", Representations)
    source = rm.from_model(model)
    assert isinstance(source, rm.Factors)
    biases = {"user_bias": model.user_biases, "item_bias": model.item_biases}
    same(source, rm.Factors(model.user_embeddings, model.item_embeddings, **biases))
    features = 2 * np.eye(N_ITEMS, dtype=np.float32)
    source = rm.from_model(model, item_features=features)
    biases["item_bias"] = 2 * model.item_biases
    same(source, rm.Factors(model.user_embeddings, 2 * model.item_embeddings, **biases))
    model.item_embeddings = None
    with pytest.raises(InputError, match="LightFM of lightfm\\) is not fitted"):
        rm.from_model(model)


# Surprise


class PredictionImpossible(Exception):
    pass


class Estimates:
    """Estimates in every form that Surprise has: numbers, with details, or impossible."""

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


def test_surprise():
    model = surprise().fit()
    source = rm.from_model(model)
    assert source.describe() == "Scores: KNNBasic of surprise, 12 users x 30 items"
    ids = {
        "user_ids": [f"user {N_USERS - user}" for user in range(N_USERS)],
        "item_ids": [f"item {item * 7 % N_ITEMS}" for item in range(N_ITEMS)],
    }
    test = rm.Interactions.of(TEST, **ids)
    same(source, rm.Scores(model.scores, **ids), test)


def test_surprise_that_fails_or_is_not_fitted():
    model = surprise()
    with pytest.raises(InputError, match="KNNBasic of surprise\\) is not fitted"):
        rm.from_model(model)
    model.fit().estimate = lambda user, item: 1 // 0
    test = {f"user {user}": ["item 1"] for user in (3, 4)}
    with pytest.raises(ModelError, match=r"ZeroDivisionError for the users 'user \d', 'user \d'"):
        rm.evaluate(rm.from_model(model), test)


# torch and PyTorch Geometric


class Module:
    """What recometer asks of torch.nn.Module, and of torch."""

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
def test_torch_module():
    model = TwoTowers()
    source = rm.from_model(model, n_users=N_USERS, n_items=N_ITEMS)
    assert source.describe() == "Scores: TwoTowers.score_users, 12 users x 30 items"
    same(source, rm.Scores(model.scores))
    assert set(model.states) == {(False, True)}
    assert model.training  # as it was
    assert not model.frozen.training
    assert not NoGrad.active
    with pytest.raises(InputError, match=r"needs n_users=\.\.\."):
        rm.from_model(model)


@pytest.mark.usefixtures("torch")
def test_torch_module_without_the_method():
    with pytest.raises(InputTypeError, match=r"\.Module is not recognised.*score_users\(users\)"):
        rm.from_model(Module())


class Embeddings(Module):
    num_nodes = N_USERS + N_ITEMS

    def get_embedding(self, edge_index, edge_weight=None):
        self.states.append((self.training, NoGrad.active))
        return factors(self.num_nodes, 4) * edge_index.shape[1] + (edge_weight or 0)


@pytest.mark.usefixtures("torch")
def test_lightgcn():
    model = of("torch_geometric.nn.models.lightgcn", "LightGCN", Embeddings)
    edges = np.zeros((2, 3), int)
    source = rm.from_model(model, edge_index=edges, n_users=N_USERS)
    nodes = factors(N_USERS + N_ITEMS, 4) * 3
    same(source, rm.Factors(nodes[:N_USERS], nodes[N_USERS:]))
    assert model.states == [(False, True)]
    source = rm.from_model(
        model, edge_index=edges, edge_weight=2.0, n_users=N_USERS, n_items=N_ITEMS - 4
    )
    expected = rm.Factors(nodes[:N_USERS] + 2, nodes[N_USERS:-4] + 2)
    same(source, expected, TEST[:, :-4])


@pytest.mark.usefixtures("torch")
def test_mistakes_with_lightgcn():
    model = of("torch_geometric.nn.models.lightgcn", "LightGCN", Embeddings)
    with pytest.raises(InputError, match=r"LightGCN needs edge_index=\.\.\."):
        rm.from_model(model, n_users=N_USERS)
    for sizes in ({"n_users": 0}, {"n_users": 42}, {"n_users": 12, "n_items": 31}):
        with pytest.raises(InputError, match="do not fit: the graph of this LightGCN has 42 nodes"):
            rm.from_model(model, edge_index=np.zeros((2, 0)), **sizes)


# Anything else


def test_unknown_models():
    with pytest.raises(InputTypeError) as error:
        rm.from_model(of("their.library", "Model", user_factors=1))
    for part in ("their.library.Model", "implicit", "LightFM", "Surprise", "LightGCN", "torch"):
        assert part in str(error.value)
    assert "Hint: wrap it by hand: rm.Factors(user_factors, item_factors)" in str(error.value)
    with pytest.raises(InputTypeError, match=r"LightFM is a class\. Hint"):
        rm.from_model(type(of("lightfm.lightfm", "LightFM")))
    # A module that only begins like a known one.
    with pytest.raises(InputTypeError, match="not recognised"):
        rm.from_model(of("implicitly.mine", "Model"))


# Models where a source should stand.


def implicits(userid, user_items, N=10, filter_already_liked_items=True):
    raise AssertionError("nobody calls it")


def rectools(users, dataset, k, filter_viewed):
    raise AssertionError("nobody calls it")


def graphs(edge_index, src_index=None, dst_index=None, k=1):
    raise AssertionError("nobody calls it")


def others(user, number):
    raise AssertionError("nobody calls it")


@pytest.mark.parametrize(
    ("recommend", "says"),
    [
        (implicits, r"Hint: its lists .*model\.recommend\(np\.arange.*rm\.Lists\(items\)"),
        (rectools, r"Hint: its lists .*rm\.Lists\(model\.recommend\(users=users, dataset"),
        (graphs, r"Hint: its lists .*rm\.Lists\(nodes, item_offset=n_users\)"),
        (others, r"Hint: its lists .*rm\.Lists\(lists\) .* model\.recommend\(user, number\)"),
    ],
)
def test_a_model_that_recommends_says_how_it_is_evaluated(recommend, says):
    model = of("their.library", "Model", recommend=staticmethod(recommend))
    with pytest.raises(InputTypeError, match=rf"must be a source, found Model\. {says}"):
        rm.evaluate(model, TEST)
    with pytest.raises(InputTypeError, match=rf"their\.library\.Model is not recognised\. {says}"):
        rm.from_model(model)


def test_a_model_that_is_recognised_where_a_source_should_stand():
    model = of("implicit.cpu.als", "AlternatingLeastSquares", recommend=staticmethod(implicits))
    with pytest.raises(InputTypeError, match=r"Hint: rm\.from_model\(model\) makes a source"):
        rm.evaluate(model, TEST)


def test_neighbours_of_implicit_are_evaluated_by_their_lists():
    model = of(
        "implicit.nearest_neighbours", "CosineRecommender", recommend=staticmethod(implicits)
    )
    with pytest.raises(InputTypeError, match=r"no user_factors .*its lists .*rm\.Lists\(items\)"):
        rm.from_model(model)
