"""The code on pages that need torch runs as written; tests/test_snippets.py runs other pages."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from snippets import blocks_of

import recometer as rm

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore")]
N_USERS, N_ITEMS = 30, 20


@pytest.fixture
def interactions() -> tuple[np.ndarray, np.ndarray]:
    """Draw training and test data."""
    generator = np.random.default_rng(0)
    likes, later = (generator.random((N_USERS, N_ITEMS)) < 0.3 for _ in range(2))
    return likes & ~later, likes & later


def test_module_on_the_page_about_models_is_evaluated(
    interactions: tuple[np.ndarray, np.ndarray],
) -> None:
    import torch

    names: dict[str, object] = {"torch": torch}
    exec(compile(blocks_of("models.md")[0], "models.md", "exec"), names)
    model = names["TwoTowers"]()
    model.user_tower = torch.nn.Embedding(N_USERS, 4)
    model.item_tower = torch.nn.Embedding(N_ITEMS, 4)
    model.register_buffer("all_items", torch.arange(N_ITEMS))
    source = rm.from_model(model, n_users=N_USERS, n_items=N_ITEMS)
    train, test = interactions
    result = rm.evaluate(source, test, train=train, metrics="ndcg@5")
    users, items = (tower.weight.detach() for tower in (model.user_tower, model.item_tower))
    expected = rm.evaluate(rm.Factors(users, items), test, train=train, metrics="ndcg@5")
    np.testing.assert_array_equal(result["ndcg@5"], expected["ndcg@5"])


def test_code_on_the_page_about_gpus_runs(interactions: tuple[np.ndarray, np.ndarray]) -> None:
    """The code on the page about GPUs also runs on a CPU."""
    import torch

    train, test = interactions
    model = SimpleNamespace(
        user_embedding=torch.nn.Embedding(N_USERS, 4), item_embedding=torch.nn.Embedding(N_ITEMS, 4)
    )
    names = {"model": model, "train": train, "test": test}
    exec(compile(blocks_of("gpu.md")[0], "gpu.md", "exec"), names)
    assert 0 < names["result"].mean()["recall@10"] <= 1
