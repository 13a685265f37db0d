"""Metrics for other libraries' fitted models agree with the hits in the models' own lists."""

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm
from recometer.errors import InputError, InputTypeError

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Method expects CSR input"),
]

N_USERS, N_ITEMS, K = 60, 40, 5


@pytest.fixture(scope="module")
def data():
    """Draw training and test data from random user and item factors."""
    rng = np.random.default_rng(0)
    affinity = rng.normal(size=(N_USERS, 4)) @ rng.normal(size=(4, N_ITEMS))
    kind = affinity + rng.normal(size=affinity.shape)
    train = (kind > 1.5) & (rng.random(affinity.shape) < 0.7)
    test = (kind > 1.5) & ~train
    return sp.csr_matrix(train.astype(np.float32)), sp.csr_matrix(test.astype(np.float32))


def hits_in(lists, test):
    """Return the number of hits in each user's list."""
    return np.array([test[user, row].sum() for user, row in enumerate(lists)])


def check(result, lists, test):
    """Compare precision at K with the number of hits in the lists that the library returns."""
    defined = ~np.isnan(result[f"precision@{K}"])
    assert defined.sum() > N_USERS / 2
    expected = hits_in(lists, test) / K
    np.testing.assert_allclose(result[f"precision@{K}"][defined], expected[defined])


@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        ("als", "AlternatingLeastSquares", {"iterations": 5}),
        ("bpr", "BayesianPersonalizedRanking", {"iterations": 20}),
        ("lmf", "LogisticMatrixFactorization", {"iterations": 20}),
    ],
)
def test_factor_models_of_implicit_are_evaluated(implicit, data, module, name, options):
    train, test = data
    make = getattr(getattr(implicit, module), name)
    model = make(factors=8, random_state=0, num_threads=1, use_gpu=False, **options)
    with pytest.raises(InputError, match="is not fitted"):
        rm.from_model(model)
    model.fit(train, show_progress=False)
    source = rm.from_model(model)
    assert isinstance(source, rm.Factors)
    lists, _ = model.recommend(np.arange(N_USERS), train, N=K, filter_already_liked_items=True)
    check(rm.evaluate(source, test, train=train, metrics=f"precision@{K}"), lists, test)


def test_neighbour_models_of_implicit_are_evaluated(implicit, data):
    train, test = data
    model = implicit.nearest_neighbours.CosineRecommender(K=N_ITEMS, num_threads=1)
    model.fit(train, show_progress=False)
    with pytest.raises(InputTypeError, match="For item neighbours: lambda rows"):
        rm.from_model(model)
    # Follow the hint in the error message.
    source = rm.Scores(
        lambda rows: (train[rows] @ model.similarity).toarray(), n_users=N_USERS, n_items=N_ITEMS
    )
    lists, _ = model.recommend(np.arange(N_USERS), train, N=K, filter_already_liked_items=True)
    check(rm.evaluate(source, test, train=train, metrics=f"precision@{K}"), lists, test)
    # Also evaluate the model itself, and the lists that from_model requests from it.
    for source_or_model in (model, rm.from_model(model, n=K, user_items=train)):
        check(
            rm.evaluate(source_or_model, test, train=train, metrics=f"precision@{K}"), lists, test
        )


@pytest.mark.parametrize("features", [False, True])
def test_lightfm_models_are_evaluated(lightfm, data, features):
    train, test = data
    model = lightfm.LightFM(no_components=8, loss="warp", random_state=0)
    with pytest.raises(InputError, match="is not fitted"):
        rm.from_model(model)
    arguments = {}
    if features:
        # An item's features identify the item itself and its group, which is one of three.
        groups = sp.csr_matrix(np.eye(3)[np.arange(N_ITEMS) % 3])
        arguments["item_features"] = sp.hstack([sp.eye(N_ITEMS), groups]).astype(np.float32).tocsr()
    model.fit(train.tocoo(), epochs=5, num_threads=1, **arguments)
    source = rm.from_model(model, **arguments)
    assert isinstance(source, rm.Factors)

    users, items = np.indices((N_USERS, N_ITEMS), dtype=np.int32)
    scores = model.predict(users.ravel(), items.ravel(), **arguments).reshape(N_USERS, N_ITEMS)
    lists = np.where(train.toarray() > 0, -np.inf, scores).argsort(axis=1)[:, ::-1][:, :K]
    check(rm.evaluate(source, test, train=train, metrics=f"precision@{K}"), lists, test)


@pytest.fixture(scope="module")
def ratings(surprise):
    """Return a Surprise trainset, and the ratings held out for testing."""
    rng = np.random.default_rng(1)
    scores = np.clip(rng.normal(3, 1, (20, 15)).round(), 1, 5)
    rows = [
        (f"user {user}", f"item {item}", scores[user, item], None)
        for user in range(20)
        for item in range(15)
        if rng.random() < 0.6
    ]
    rows = [rows[position] for position in rng.permutation(len(rows))]
    data = surprise.Dataset(reader=surprise.Reader())
    return data.construct_trainset(rows[:130]), rows[130:]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SVD", {"random_state": 0}),
        ("SVDpp", {"random_state": 0}),
        ("NMF", {"random_state": 0}),
        ("KNNBasic", {"verbose": False}),
        ("KNNWithMeans", {"verbose": False, "min_k": 3}),
        ("KNNBaseline", {"verbose": False, "sim_options": {"user_based": False}}),
        ("SlopeOne", {}),
        ("CoClustering", {"random_state": 0}),
        ("BaselineOnly", {"verbose": False}),
    ],
)
def test_surprise_models_are_evaluated(surprise, ratings, name, options):
    trainset, held_out = ratings
    model = getattr(surprise, name)(**options)
    with pytest.raises(InputError, match="is not fitted"):
        rm.from_model(model)
    model.fit(trainset)
    source = rm.from_model(model)

    users = [trainset.to_raw_uid(user) for user in range(trainset.n_users)]
    items = [trainset.to_raw_iid(item) for item in range(trainset.n_items)]
    train = {user: [] for user in users}
    for user, item, _ in trainset.all_ratings():
        train[users[user]].append(items[item])
    test = {user: [row[1] for row in held_out if row[0] == user and row[2] >= 4] for user in users}
    result = rm.evaluate(source, test, train=train, metrics="rr")
    scores = [[model.predict(user, item, clip=False).est for item in items] for user in users]
    by_hand = rm.Scores(scores, user_ids=users, item_ids=items)
    expected = rm.evaluate(by_hand, test, train=train, metrics="rr")
    np.testing.assert_array_equal(result["rr"], expected["rr"])
    assert (~np.isnan(result["rr"])).sum() > 5


def test_lightgcn_embeddings_are_evaluated(torch, geometric, data):
    train, test = data
    torch.manual_seed(0)
    model = geometric.nn.LightGCN(N_USERS + N_ITEMS, embedding_dim=8, num_layers=2)
    user, item = (torch.tensor(side, dtype=torch.long) for side in train.nonzero())
    edges = torch.stack([user, item + N_USERS])
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(20):
        rank = (
            model(edge_index, edges),
            model(edge_index, torch.stack([edges[0], edges[1].roll(1)])),
        )
        optimizer.zero_grad()
        model.recommendation_loss(*rank, node_id=edges.unique()).backward()
        optimizer.step()

    nodes = model.get_embedding(edge_index)
    source = rm.Factors(nodes[:N_USERS], nodes[N_USERS:])
    result = rm.evaluate(source, test, metrics=f"precision@{K}")
    items = torch.arange(N_USERS, N_USERS + N_ITEMS)
    lists = model.recommend(edge_index, src_index=torch.arange(N_USERS), dst_index=items, k=K)
    check(result, (lists - N_USERS).numpy(), test)


@pytest.mark.parametrize("threads", [1, 3])
def test_torch_module_is_evaluated_in_evaluation_mode(torch, data, threads):
    train, test = data
    states = []

    class TwoTowers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.users = torch.nn.Embedding(N_USERS, 8)
            self.items = torch.nn.Embedding(N_ITEMS, 8)
            self.dropout = torch.nn.Dropout(0.5)
            self.frozen = torch.nn.BatchNorm1d(8).eval()

        def score_users(self, users):
            states.append((self.training, torch.is_grad_enabled()))
            return self.frozen(self.dropout(self.users(users))) @ self.items.weight.T

    model = TwoTowers()
    source = rm.from_model(model, n_users=N_USERS, n_items=N_ITEMS)
    result = rm.evaluate(source, test, train=train, metrics=f"precision@{K}", threads=threads)
    assert set(states) == {(False, False)}
    assert model.training
    assert model.dropout.training
    assert not model.frozen.training
    assert torch.is_grad_enabled()
    model.eval()
    scores = (
        model.score_users(torch.arange(N_USERS))
        .detach()
        .masked_fill(torch.tensor(train.toarray() > 0), -torch.inf)
    )
    check(result, scores.topk(K).indices.numpy(), test)
