"""The timed calls to recometer and to other libraries.

Each function prepares its inputs and returns a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _cases import ALL_METRICS, Data, K
from threadpoolctl import ThreadpoolController

import recometer as rm
from recometer.sources.base import Request

Call = Callable[[], object]
LARGE = 4096
USERS_AT_ONCE = 256


def evaluate(data: Data, threads: int, metrics: str = ALL_METRICS) -> Call:
    """Return a complete call to `evaluate`, from matrices to means."""

    def call() -> object:
        source = rm.Factors(data.users, data.items)
        return rm.evaluate(source, data.test, train=data.train, metrics=metrics, threads=threads)

    return call


def rank(data: Data, threads: int) -> Call:
    """Return a call that only ranks; the interactions are read beforehand."""
    source = rm.Factors(data.users, data.items)
    test, train = rm.Interactions.of(data.test), rm.Interactions.of(data.train)
    return lambda: source.rank(Request(test, train, threads=threads))  # no caches are used


def lists(data: Data, threads: int) -> Call:
    """Return a call that lists each user's top items, without training items and metrics."""
    source = rm.Factors(data.users, data.items)
    test, train = rm.Interactions.of(data.test), rm.Interactions.of(data.train)
    return lambda: source.top(Request(test, train, threads=threads), K)


def large_product(dtype: str) -> Call:
    """Return a large square matrix product, which shows the speed of the processor."""
    generator = np.random.default_rng(1)
    kind: Any = np.dtype(dtype)
    left, right = (generator.standard_normal((LARGE, LARGE), dtype=kind) for _ in range(2))
    out = np.empty_like(left)
    return lambda: np.dot(left, right, out=out)


def product(data: Data) -> Call:
    """Return the product of the factors alone, in blocks of users that reuse the same memory."""
    out = np.empty((USERS_AT_ONCE, len(data.items)), data.users.dtype)
    items = data.items.T

    def call() -> None:
        for start in range(0, len(data.users), USERS_AT_ONCE):
            block = data.users[start : start + USERS_AT_ONCE]
            np.matmul(block, items, out=out[: len(block)])

    return call


def faiss_lists(data: Data, threads: int) -> Call:
    """Return a call to faiss's search for top items, including training items; no metrics."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(data.items.shape[1])
    index.add(data.items)
    return lambda: index.search(data.users, K)


def implicit_metrics(data: Data, threads: int) -> Call:
    """Return a call that computes implicit's precision, MAP, NDCG and AUC at k."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k

    blas = ThreadpoolController()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # warnings about the threads limited below
        model = AlternatingLeastSquares(factors=data.items.shape[1], num_threads=threads)
    model.user_factors, model.item_factors = data.users, data.items

    def call() -> object:
        with blas.limit(limits=1, user_api="blas"):  # faster, and recommended by implicit
            return ranking_metrics_at_k(
                model, data.train, data.test, K=K, show_progress=False, num_threads=threads
            )

    return call


def recometrics_metrics(data: Data, threads: int) -> Call:
    """Return a call that computes all metrics of recometrics: ours except R-precision."""
    import recometrics

    dtype = data.users.dtype
    train, test = data.train.astype(dtype), data.test.astype(dtype)
    return lambda: recometrics.calc_reco_metrics(
        train, test, data.users, data.items, k=K, all_metrics=True, nthreads=threads
    )
