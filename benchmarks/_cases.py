"""The sizes and data of the benchmark cases, which are the same for all contestants."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

K = 10
CUTOFFS = ("precision", "tprecision", "recall", "ap", "tap", "ndcg", "hit", "rr")
CUTOFF_METRICS = " ".join(f"{name}@{K}" for name in CUTOFFS)
ALL_METRICS = f"{CUTOFF_METRICS} roc_auc pr_auc rprecision"


@dataclasses.dataclass(frozen=True)
class Case:
    """The size of a problem with random factors, training items and test items."""

    name: str
    n_users: int = 8_192
    n_items: int = 50_000
    n_factors: int = 64
    n_relevant: int = 10
    n_train: int = 51
    dtype: str = "float32"
    mapped: bool = False  # whether the item factors are in a memory-mapped file

    def but(self, name: str, **changes: Any) -> Case:
        """Return a copy of this case with some changes."""
        return dataclasses.replace(self, name=name, **changes)

    @property
    def size(self) -> str:
        """Describe the size."""
        return (
            f"{self.n_users:,} users x {self.n_items:,} items, {self.n_factors} factors, "
            f"{self.dtype}, {self.n_train} training and {self.n_relevant} relevant items a user"
        )


BASE = Case("base")


@dataclasses.dataclass(frozen=True)
class Data:
    """The inputs of a case. `train` and `test` are CSR matrices of float32 ones."""

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    train: Any
    test: Any

    @property
    def operations(self) -> int:
        """Return the number of floating-point operations in the product of the factors."""
        return 2 * len(self.users) * self.items.size

    def first_users(self, n_users: int) -> Data:
        """Return the same data for the first users only."""
        return Data(self.users[:n_users], self.items, self.train[:n_users], self.test[:n_users])


def make(case: Case, seed: int = 1) -> Data:
    """Return normally distributed factors and uniformly distributed items."""
    generator = np.random.default_rng(seed)
    users = _normal(generator, case.n_users, case)
    items = _mapped(generator, case) if case.mapped else _normal(generator, case.n_items, case)
    return Data(users, items, *_random_split(generator, case))


def of_length_1(data: Data) -> Data:
    """Return the data with factors of length 1, so that all items have the same bound."""
    users, items = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (data.users, data.items)
    )
    return dataclasses.replace(data, users=users, items=items)


def trained(case: Case, seed: int = 1) -> tuple[Data, dict[str, float]]:
    """Return fitted factors and the quality of the model.

    Each user draws distinct items with probabilities proportional to
    ``popularity[i] * exp(taste[u] . style[i])``, where popularity is log-normal (sigma 1.5) and
    tastes have 16 normally distributed dimensions (sigma 0.8). A random part of the items is test;
    implicit's AlternatingLeastSquares is fitted to the rest. With these sigmas, the model is about
    as good as published models on data of this size: recall@20 is 0.12 and hit@10 is 0.60 for 8,192
    users and 40,000 items.
    """
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    generator = np.random.default_rng(seed)
    taste = 0.8 * generator.standard_normal((case.n_users, 16), dtype=np.float32)
    style = generator.standard_normal((case.n_items, 16), dtype=np.float32)
    popularity = 1.5 * generator.standard_normal(case.n_items, dtype=np.float32)
    drawn = np.empty((case.n_users, case.n_train + case.n_relevant), np.int64)
    for start in range(0, case.n_users, 256):
        block = slice(start, start + 256)
        # The largest log-probabilities with Gumbel noise are a sample without replacement.
        keys = taste[block] @ style.T + popularity
        noise = generator.standard_exponential(keys.shape, dtype=np.float32)
        keys -= np.log(np.maximum(noise, np.finfo(np.float32).tiny))
        width = drawn.shape[1]
        drawn[block] = np.argpartition(-keys, width, axis=1)[:, :width]
    train, test = _split(generator.permuted(drawn, axis=1), case)
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(case.n_factors, iterations=10, random_state=seed)
        model.fit(train, show_progress=False)
    data = Data(model.user_factors, model.item_factors, train, test)

    import recometer as rm

    result = rm.evaluate(
        rm.Factors(data.users, data.items), test, train=train, metrics=f"recall@20 hit@{K}"
    )
    return data, result.mean()


def read_ml1m(shared: Path) -> Data | None:
    """Return the factors of an ALS model of MovieLens 1M, or None if they are missing."""
    folder = shared / "data" / "ml1m_als"
    if not folder.is_dir():
        return None
    train, test = (
        sp.csr_matrix(sp.load_npz(folder / f"{part}.npz"), dtype=np.float32)
        for part in ("train", "test")
    )
    users, items = (np.load(folder / f"ml-1m_{side}_factors.npy") for side in ("user", "item"))
    return Data(users, items, train, test)


def _normal(generator: np.random.Generator, n: int, case: Case) -> npt.NDArray[Any]:
    dtype: Any = np.dtype(case.dtype)
    return generator.standard_normal((n, case.n_factors), dtype=dtype)


def _mapped(generator: np.random.Generator, case: Case) -> npt.NDArray[Any]:
    with tempfile.NamedTemporaryFile() as file:  # the memory map outlives the name
        for start in range(0, case.n_items, 100_000):
            _normal(generator, min(100_000, case.n_items - start), case).tofile(file)
        file.flush()
        return np.memmap(file.name, case.dtype, mode="r", shape=(case.n_items, case.n_factors))


def _random_split(generator: np.random.Generator, case: Case) -> tuple[Any, Any]:
    shape = (case.n_users, case.n_train + case.n_relevant)
    drawn = generator.integers(case.n_items, size=shape)
    while True:
        drawn.sort(axis=1)
        repeated = np.zeros(shape, bool)
        repeated[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
        if not repeated.any():
            break
        drawn[repeated] = generator.integers(case.n_items, size=np.count_nonzero(repeated))
    return _split(generator.permuted(drawn, axis=1), case)


def _split(drawn: npt.NDArray[np.int64], case: Case) -> tuple[Any, Any]:
    return _matrix(drawn[:, : case.n_train], case), _matrix(drawn[:, case.n_train :], case)


def _matrix(columns: npt.NDArray[np.int64], case: Case) -> Any:
    per_user = columns.shape[1]
    indptr = np.arange(case.n_users + 1) * per_user
    ones = np.ones(columns.size, np.float32)
    shape = (case.n_users, case.n_items)
    return sp.csr_matrix((ones, np.sort(columns, axis=1).ravel(), indptr), shape=shape)
