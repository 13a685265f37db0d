"""How the drop-in functions for recometrics read their arguments."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array
from recometer.errors import DataWarning, InputError, InputTypeError
from recometer.sources.factors import Factors
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rows = TypeVar("Rows", "Array", "csr_array[Any]")


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`; fractions are cut off, as in recometrics."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name}={value!r} must be a whole number.") from None
    if number < least:
        raise InputError(f"{name}={value!r} must be at least {least}.")
    return number


def seed_of(seed: Any) -> int:
    """Return a seed; a generator of random numbers draws one."""
    largest = np.iinfo(np.int32).max
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(largest))
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(largest))
    return whole("seed", seed, least=0)


def threads_of(nthreads: Any) -> int:
    """Return the number of threads; negative ones count down from all processors, as in joblib."""
    if nthreads is None:
        return 1
    threads = whole("nthreads", nthreads, least=-(2**31))
    if threads < 0:
        threads += resolve_threads(None) + 1
    if threads < 1:
        raise InputError(
            f"nthreads={nthreads} leaves no thread to work with. "
            "Hint: nthreads=-1 uses all processors."
        )
    return threads


def sparse_rows(matrix: Any, name: str) -> csr_array[Any]:
    """Return a sparse matrix or array by rows, unchanged or converted."""
    from scipy.sparse import csr_array, issparse

    understood: bool = issparse(matrix)
    if not understood:
        raise InputTypeError(
            f"{name} is of type {type(matrix).__name__}, and must be a sparse matrix or array. "
            f"Hint: scipy.sparse.csr_array({name})."
        )
    rows: csr_array[Any] = csr_array(matrix)
    return rows


def shortened(rows: Rows, length: int, name: str, unit: str) -> Rows:
    """Return the first `length` rows; warn if there are more, raise an error if there are fewer."""
    found = rows.shape[0]
    if found < length:
        raise InputError(
            f"{name} has {found} {unit}, and X_test has {length}. "
            f"Hint: {name} needs a row for each of them."
        )
    if found > length:
        warnings.warn(
            f"{name} has {found} {unit}, and X_test has {length}: the others are ignored.",
            DataWarning,
            stacklevel=4,
        )
    return rows[:length]


def factors_of(
    A: Array | None, B: Array | None, item_biases: npt.ArrayLike | None, shape: tuple[int, int]
) -> tuple[Factors, np.dtype[Any]]:
    """Return the model, and the type in which everything is computed."""
    n_users, n_items = shape
    if (A is None) != (B is None):
        raise InputError("A and B must both be given, or both be None.")
    users, items = np.asarray(A), np.asarray(B)
    dtype = np.dtype(np.float32 if users.dtype == items.dtype == np.float32 else np.float64)
    biases = None
    if item_biases is not None:
        flat = np.asarray(item_biases, dtype=dtype).reshape(-1)
        biases = shortened(flat, n_items, "item_biases", "items")
    if A is None:
        if biases is None:
            raise InputError("There is nothing to rank by. Hint: pass A and B, or item_biases.")
        return Factors(None, None, item_bias=biases), dtype
    if users.ndim != 2 or items.ndim != 2 or users.shape[1] != items.shape[1]:
        raise InputError(
            f"A and B have the shapes {users.shape} and {items.shape}, and must be "
            "[n_users, n_factors] and [n_items, n_factors]."
        )
    users = shortened(users, n_users, "A", "users").astype(dtype, copy=False)
    items = shortened(items, n_items, "B", "items").astype(dtype, copy=False)
    return Factors(users, items, item_bias=biases), dtype
