"""The baseline models agree with slow, direct implementations of their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import baselines
from recometer.errors import InputError

MODELS = {
    "random_ranking": baselines.random_ranking,
    "most_popular": baselines.most_popular,
    "item_knn": baselines.item_knn,
    "truncated_svd": lambda train: baselines.truncated_svd(train, factors=3),
    "truncated_svd, normalised": lambda train: baselines.truncated_svd(
        train, factors=3, normalise=True
    ),
    "ease": baselines.ease,
}


def scores(source: rm.Factors | rm.Scores, n_users: int) -> np.ndarray:
    """Return a source's scores for all users and items as an array [n_users, n_items]."""
    if isinstance(source, rm.Scores):
        return source.batch(np.arange(n_users))
    arrays = source.facts.arrays
    if arrays["item_bias"] is not None:
        return np.tile(arrays["item_bias"], (n_users, 1))
    return arrays["users"] @ arrays["items"].T


def matrix_of(seed: int, n_users: int = 12, n_items: int = 9) -> np.ndarray:
    """Return a random matrix with an empty row and an empty column."""
    generator = np.random.default_rng(seed)
    matrix = generator.uniform(0.5, 5, (n_users, n_items))
    matrix *= generator.random((n_users, n_items)) < 0.4
    matrix[1] = 0
    matrix[:, 2] = 0
    return matrix


def slow_cosine(matrix: np.ndarray, neighbours: int) -> np.ndarray:
    """Return the similarities that `item_knn` keeps; row j contains those of item j."""
    n_items = matrix.shape[1]
    kept_similarities = np.zeros((n_items, n_items))
    for j in range(n_items):
        similar = []
        for i in range(n_items):
            product = sum(matrix[u, j] * matrix[u, i] for u in range(len(matrix)))
            if i != j and product > 0:
                square = (matrix[:, j] ** 2).sum() * (matrix[:, i] ** 2).sum()
                similar.append((-product / np.sqrt(square), i))
        for negative, i in sorted(similar)[:neighbours]:
            kept_similarities[j, i] = -negative
    return kept_similarities


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("neighbours", [1, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_item_knn_matches_its_formula(seed: int, neighbours: int, binary: bool) -> None:
    matrix = matrix_of(seed)
    if binary:
        matrix = np.sign(matrix)
    actual = scores(baselines.item_knn(rm.Interactions.of(matrix), neighbours=neighbours), 12)
    expected = matrix @ slow_cosine(matrix, neighbours)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
    assert not actual[1].any()


def test_item_knn_ignores_negative_similarities_and_stored_zeros() -> None:
    import scipy.sparse as sp

    matrix = np.array([[1.0, -2.0, 1.0], [3.0, 1.0, 0.0]])
    stored = sp.csr_array((matrix.ravel(), np.tile(np.arange(3), 2), [0, 3, 6]), shape=(2, 3))
    actual = scores(baselines.item_knn(rm.Interactions.of(stored)), 2)
    np.testing.assert_allclose(actual, matrix @ slow_cosine(matrix, 3), rtol=1e-12)


def test_item_knn_does_not_depend_on_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    train = rm.Interactions.of(matrix_of(0, 40, 30))
    at_once = scores(baselines.item_knn(train, neighbours=4), 40)
    monkeypatch.setattr(baselines, "BLOCK_ENTRIES", 70)
    assert np.array_equal(scores(baselines.item_knn(train, neighbours=4), 40), at_once)


def test_item_knn_prefers_lower_items_among_equal_similarities() -> None:
    # Users 0 and 1 interacted with all four items, so items 1, 2 and 3 are equally similar to item
    # 0.
    matrix = np.array([[1.0, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]])
    model = baselines.item_knn(rm.Interactions.of(matrix), neighbours=1)
    only_item_0 = scores(model, 3)[2]
    assert np.flatnonzero(only_item_0).tolist() == [1]


@pytest.mark.parametrize("shape", [(12, 9), (9, 12)])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("factors", [1, 4, 9])
def test_truncated_svd_is_the_closest_matrix_of_its_rank(
    factors: int, normalise: bool, shape: tuple[int, int]
) -> None:
    matrix = matrix_of(3, *shape)
    norms = np.linalg.norm(matrix, axis=0) if normalise else np.ones(shape[1])
    norms[norms == 0] = 1
    left, values, right = np.linalg.svd(matrix / norms)
    expected = (left[:, :factors] * values[:factors]) @ right[:factors] * norms
    train = rm.Interactions.of(matrix)
    source = baselines.truncated_svd(train, factors=factors, normalise=normalise)
    np.testing.assert_allclose(scores(source, len(matrix)), expected, atol=1e-12)
    assert source.facts.arrays["items"].shape == (shape[1], factors)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
def test_iteration_agrees_with_full_eigendecomposition(
    monkeypatch: pytest.MonkeyPatch, normalise: bool, transposed: bool
) -> None:
    matrix = matrix_of(4, 40, 30)
    train = rm.Interactions.of(matrix.T.copy() if transposed else matrix)
    exact = baselines.truncated_svd(train, factors=5, normalise=normalise).facts.arrays
    monkeypatch.setattr(baselines, "DENSE_SIZE", 10)
    for seed in (0, 1):
        model = baselines.truncated_svd(train, factors=5, normalise=normalise, seed=seed)
        np.testing.assert_allclose(model.facts.arrays["items"], exact["items"], atol=1e-9)
        np.testing.assert_allclose(model.facts.arrays["users"], exact["users"], atol=1e-9)
    assert (exact["items"][np.abs(exact["items"]).argmax(axis=0), range(5)] > 0).all()


@pytest.mark.parametrize(("n_items", "factors"), [(3, 1), (40, 10), (400, 64)])
def test_truncated_svd_keeps_fewer_factors_for_few_items(n_items: int, factors: int) -> None:
    train = np.random.default_rng(0).random((500, n_items)) + 0.5
    items = baselines.truncated_svd(train).facts.arrays["items"]
    assert np.shape(items) == (n_items, factors)


def test_truncated_svd_reproduces_a_matrix_of_lower_rank() -> None:
    matrix = np.outer([1.0, 2, 3, 0], [1.0, 1, 2])
    source = baselines.truncated_svd(rm.Interactions.of(matrix), factors=3)
    np.testing.assert_allclose(scores(source, 4), matrix, atol=1e-12)
    assert not source.facts.arrays["items"][:, 1:].any()


@pytest.mark.parametrize("regularisation", [0.5, 100.0])
@pytest.mark.parametrize("block", [2, 4, 512])
def test_ease_matches_its_formula(
    monkeypatch: pytest.MonkeyPatch, block: int, regularisation: float
) -> None:
    monkeypatch.setattr(baselines, "BLOCK", block)
    matrix = matrix_of(5)
    inverse = np.linalg.inv(matrix.T @ matrix + regularisation * np.eye(9))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    source = baselines.ease(rm.Interactions.of(matrix), regularisation=regularisation)
    np.testing.assert_allclose(scores(source, 12), matrix @ weights, rtol=1e-10, atol=1e-12)


def test_weights_of_ease_minimise_the_squared_error() -> None:
    """Each column of EASE's weights solves the ridge regression of an item on all other items."""
    matrix = matrix_of(6)
    actual = scores(baselines.ease(rm.Interactions.of(matrix), regularisation=2.0), 12)
    for item in range(9):
        other_items = np.delete(matrix, item, axis=1)
        gram = other_items.T @ other_items + 2.0 * np.eye(8)
        best = other_items @ np.linalg.solve(gram, other_items.T @ matrix[:, item])
        np.testing.assert_allclose(actual[:, item], best, atol=1e-12)


def test_ease_error_states_the_memory_needed() -> None:
    train = rm.Interactions.of({"ann": ["a", "b", "c"]})
    with pytest.raises(InputError, match=r"0\.0 GB for 3 items; the limit is 2 .* max_items=3"):
        baselines.ease(train, max_items=2)
    data_of_many_items = rm.Interactions(
        indptr=np.zeros(2, np.int64), items=np.zeros(0, np.int32), n_items=50_000
    )
    with pytest.raises(
        InputError, match=(r"20\.0 GB for 50,000 items; the limit is 10,000 items \(0\.8 GB\)")
    ):
        baselines.ease(data_of_many_items)


def test_most_popular_scores_items_by_their_number_of_users() -> None:
    train = rm.Interactions.of({"ann": {"a": 40.0, "b": 1.0, "c": 0.0}, "bob": {"b": 2.0}})
    source = baselines.most_popular(train)
    assert scores(source, 1).tolist() == [[1.0, 2.0, 0.0]]


def test_random_ranking_is_uniform_per_user_and_seed() -> None:
    train = rm.Interactions(indptr=np.zeros(401, np.int64), items=np.zeros(0, np.int32), n_items=50)
    first, second = (scores(baselines.random_ranking(train, seed=seed), 400) for seed in (0, 1))
    assert 0 <= first.min() < 0.001 < 0.999 < first.max() < 1
    correlations = np.corrcoef(np.vstack([first[:20], second[:20]]))
    assert np.abs(correlations[~np.eye(40, dtype=bool)]).max() < 0.6
    # Each item ranks first for 8 users on average; 24 is a generous upper limit.
    assert np.bincount(first.argmax(axis=1), minlength=50).max() < 25


def test_random_ranking_of_a_user_does_not_depend_on_other_users() -> None:
    two_users = rm.Interactions.of({"bob": ["x", "y"], "dan": ["z"]})
    four_users = rm.Interactions.of({"ann": ["y"], "bob": ["x", "y"], "cid": ["z"], "dan": ["z"]})
    actual = scores(baselines.random_ranking(four_users), 4)
    assert np.array_equal(scores(baselines.random_ranking(two_users), 2), actual[[1, 3]])


def test_random_split_and_ranking_with_the_same_seed_are_independent() -> None:
    """The split and the ranking hash the same numbers, but must not be correlated."""
    from recometer.split import Fraction, split

    generator = np.random.default_rng(0)
    data = rm.Interactions.of((generator.random((400, 60)) < 0.2).astype(float))
    parts = split(data, Fraction(0.3), min_test=0, seed=7)
    train, test = parts.train, parts.test
    result = rm.evaluate(
        baselines.random_ranking(train, seed=7), test, train=train, metrics="roc_auc"
    )
    assert abs(result.mean()["roc_auc"] - 0.5) < 0.02


@pytest.mark.parametrize("model", MODELS)
def test_two_fits_are_identical_to_the_last_bit(model: str) -> None:
    train = rm.Interactions.of(matrix_of(7))
    first, second = (scores(MODELS[model](train), 12) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("model", MODELS)
def test_baselines_keep_the_ids_of_train(model: str) -> None:
    train = rm.Interactions.of(
        {"bob": ["y", "z"], "ann": ["x", "y"], "dan": ["z", "y"], "cid": ["w", "x"]}
    )
    source = MODELS[model](train)
    assert source.facts.arrays["item_ids"].tolist() == ["w", "x", "y", "z"]
    if model != "most_popular":
        assert source.facts.arrays["user_ids"].tolist() == ["ann", "bob", "cid", "dan"]
    result = rm.evaluate(source, {"ann": ["z"], "cid": ["y"]}, train=train, metrics="rr")
    assert result.user_ids.tolist() == ["ann", "cid"]
    assert np.isfinite(result["rr"]).all()


@pytest.mark.parametrize(
    "model", ["item_knn", "truncated_svd", "truncated_svd, normalised", "ease"]
)
def test_users_without_training_items_have_undefined_values_with_a_reason(model: str) -> None:
    matrix = matrix_of(8)
    test = np.zeros_like(matrix)
    test[:3, 0] = 1
    matrix[:, 0] = 0
    matrix[3:, 0] = 1
    result = rm.evaluate(
        MODELS[model](rm.Interactions.of(matrix)), test, train=matrix, metrics="rr"
    )
    assert np.isnan(result["rr"][:3]).tolist() == [False, True, False]
    assert any("the same score" in reason for reason in result.skipped("rr"))


@pytest.mark.parametrize("model", MODELS)
def test_all_models_except_the_random_one_score_0_without_interactions(model: str) -> None:
    empty = rm.Interactions(indptr=np.zeros(5, np.int64), items=np.zeros(0, np.int32), n_items=4)
    actual = scores(MODELS[model](empty), 4)
    assert actual.shape == (4, 4)
    if model != "random_ranking":
        assert not actual.any()


@examples(0.5)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_any_small_matrix_can_be_fitted(n_users: int, n_items: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-1, 3, (n_users, n_items)) * 1.0
    train = rm.Interactions.of(matrix)
    for source in (
        baselines.item_knn(train, neighbours=2),
        baselines.ease(train, regularisation=1.0),
        baselines.truncated_svd(train, factors=min(n_users, n_items)),
        baselines.truncated_svd(train, factors=min(n_users, n_items), normalise=True),
    ):
        assert np.isfinite(scores(source, n_users)).all()
    full = baselines.truncated_svd(train, factors=min(n_users, n_items))
    np.testing.assert_allclose(scores(full, n_users), matrix, atol=1e-6)


def test_learned_models_beat_popularity_and_chance() -> None:
    """Each user likes one of five kinds of items, each with more and less popular items."""
    generator = np.random.default_rng(0)
    n_users, n_items = 600, 60
    kind = generator.integers(0, 5, n_users)
    likes = np.where(np.arange(n_items) % 5 == kind[:, None], 0.5, 0.03)
    popularity = np.linspace(1.0, 0.4, n_items)
    data = rm.Interactions.of((generator.random((n_users, n_items)) < likes * popularity) * 1.0)
    from recometer.split import Fraction, split

    parts = split(data, Fraction(0.3), min_test=0, seed=0)
    train, test = parts.train, parts.test
    means = {
        name: rm.evaluate(source, test, train=train, metrics="ndcg@10").mean()["ndcg@10"]
        for name, source in {
            "random": baselines.random_ranking(train),
            "popular": baselines.most_popular(train),
            "knn": baselines.item_knn(train),
            "svd": baselines.truncated_svd(train, factors=5, normalise=True),
            "ease": baselines.ease(train, regularisation=20.0),
        }.items()
    }
    assert means["random"] * 1.3 < means["popular"]
    for model in ("knn", "svd", "ease"):
        assert means["popular"] * 1.5 < means[model]


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda t: baselines.item_knn(t, neighbours=0), "neighbours=0 must be a whole number, 1"),
        (lambda t: baselines.item_knn(t, neighbours=2.5), r"neighbours=2\.5 must be"),
        (
            lambda t: baselines.truncated_svd(t, factors=3),
            "exceeds the 2 singular values .* factors=2",
        ),
        (lambda t: baselines.truncated_svd(t, factors=True), "factors=True must be"),
        (
            lambda t: baselines.ease(t, regularisation=0),
            "regularisation=0 must be a number above 0",
        ),
        (lambda t: baselines.ease(t, regularisation=float("nan")), "regularisation=nan must be"),
        (lambda t: baselines.ease(t, max_items=0), "max_items=0 must be"),
        (lambda t: baselines.truncated_svd(t, factors=1, seed=0.5), r"seed=0\.5 must be a whole"),
        (
            lambda t: baselines.random_ranking(t, seed=-1),
            "seed=-1 must be a whole number, at least 0",
        ),
    ],
)
def test_invalid_arguments_are_refused(fit: object, message: str) -> None:
    train = rm.Interactions.of(np.ones((2, 3)))
    with pytest.raises(InputError, match=message):
        fit(train)  # type: ignore[operator]


@pytest.mark.parametrize("name", baselines.__all__)
def test_baselines_accept_any_form_of_interactions(name: str) -> None:
    fit, options = getattr(baselines, name), {"factors": 2} if name == "truncated_svd" else {}
    train = {"ann": ["tea", "jam"], "bob": ["tea"], "eve": ["milk"]}
    test = {"ann": ["milk"], "bob": ["jam"], "eve": ["tea"]}
    result, expected = (
        rm.evaluate(
            fit(train_form, **options), test, train=train, metrics="ndcg@2", constant_scores="ties"
        )
        for train_form in (train, rm.Interactions.of(train))
    )
    np.testing.assert_array_equal(result["ndcg@2"], expected["ndcg@2"])


def test_infinite_training_values_are_refused() -> None:
    train = rm.Interactions.of(np.array([[1.0, np.inf], [1.0, 0.0]]))
    with pytest.raises(InputError, match="1 training values are infinite"):
        baselines.ease(train)


def test_sources_describe_their_model_and_its_options() -> None:
    train = rm.Interactions.of(np.ones((2, 3)))
    assert "EASE, regularisation 250, 2 users x 3 items" in baselines.ease(train).describe()
    assert "item-kNN, 7 neighbours" in baselines.item_knn(train, neighbours=7).describe()
    assert "random ranking, seed 5" in baselines.random_ranking(train, seed=5).describe()


@pytest.mark.parametrize("name", ["item_knn", "truncated_svd", "ease"])
def test_fit_shows_a_progress_bar(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baselines, "BLOCK", 3)
    monkeypatch.setattr(baselines, "BLOCK_ENTRIES", 8)
    monkeypatch.setattr(baselines, "DENSE_SIZE", 0)
    train, test = matrix_of(3), matrix_of(4)
    options = {"factors": 2} if name == "truncated_svd" else {}
    fit = getattr(baselines, name)
    with_bar = fit(train, progress=True, **options)
    assert "Fitting " in capsys.readouterr().err
    silent = fit(train, progress=False, **options)
    assert capsys.readouterr().err == ""
    # Standard error is not a terminal here, so there is no progress bar by default.
    assert fit(train, **options) is not None
    assert capsys.readouterr().err == ""
    first, second = (rm.evaluate(source, test, metrics="ndcg@3") for source in (with_bar, silent))
    np.testing.assert_array_equal(first["ndcg@3"], second["ndcg@3"])


@pytest.mark.parametrize("name", ["item_knn", "truncated_svd", "ease"])
def test_progress_of_a_fit_adds_up_to_its_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is reported in steps that never add up to more than the total work."""
    monkeypatch.setattr(baselines, "BLOCK", 3)
    monkeypatch.setattr(baselines, "BLOCK_ENTRIES", 8)
    monkeypatch.setattr(baselines, "DENSE_SIZE", 0)
    reports: list[tuple[float, float, int]] = []

    class Counting:
        reported, steps = 0.0, 0

        def advance(self, weight: float) -> None:
            assert weight > 0
            self.reported += weight
            self.steps += 1

    def fitted(fit: Any, work: float, *_: object) -> object:
        ticker = Counting()
        model = fit(ticker)
        reports.append((ticker.reported, work, ticker.steps))
        return model

    monkeypatch.setattr(baselines, "fitted", fitted)
    getattr(baselines, name)(matrix_of(3), **({"factors": 2} if name == "truncated_svd" else {}))
    ((reported, work, steps),) = reports
    assert steps > 2
    if name == "truncated_svd":
        assert 0 < reported < work
    else:
        assert reported == pytest.approx(work)
