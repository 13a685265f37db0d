"""Checks of the arguments of drop-ins."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError, brief


def whole(name: str, number: Any, least: int = 1) -> int:
    """Check that a whole number is large enough and fits into 63 bits, and return it."""
    is_whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not is_whole or not least <= number < 2**63:
        raise InputError(
            f"{name}={brief(number)} must be a whole number of at least {least} (below 2^63)."
        )
    return int(number)


def dict_of_dicts(name: str, data: Any, example: str) -> None:
    """Raise an error unless `data` is a dict of dicts of numbers."""
    if not isinstance(data, Mapping):
        raise InputTypeError(f"{name} is of type {type(data).__name__}, expected {example}.")
    for key, of in data.items():
        if type(of) is not dict and not isinstance(of, Mapping):
            raise InputTypeError(
                f"{name} has {type(of).__name__} for {brief(key)}, expected a dict as in {example}."
            )


def several(name: str, given: Any, of: type = object) -> list[Any]:
    """Return the members of a sequence, which must all have the same type."""
    wrong = f"{name} is of type {type(given).__name__}, expected a list or set."
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputTypeError(wrong)
    try:
        found = list(given)
    except (
        Exception
    ) as error:  # some objects with __iter__ refuse to iterate, such as sparse matrices
        raise InputTypeError(wrong) from error
    for one in found:
        if not isinstance(one, of):
            raise InputTypeError(
                f"{name} has {brief(one)} of type {type(one).__name__}, expected {of.__name__}."
            )
    return found


def one_of(name: str, given: Any, known: Iterable[str | None]) -> None:
    """Raise an error unless an option has one of the known values."""
    known = list(known)
    if not isinstance(given, str | None) or given not in known:
        raise InputError(f"{name}={brief(given)} must be one of {known}.")


def sparse_rows(name: str, matrix: Any, kind: str = "csr_array") -> Any:
    """Return a sparse matrix or array as the SciPy type `kind`, with compressed rows."""
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        or_array = " or array" if kind == "csr_array" else ""
        raise InputTypeError(
            f"{name} is of type {type(matrix).__name__}, and must be a sparse matrix{or_array}. "
            f"Hint: scipy.sparse.{kind}({name})."
        )
    return getattr(scipy.sparse, kind)(matrix)


def shape_of(name: str, array: Array, axes: str) -> None:
    """Raise an error unless an array has the dimensions named in `axes`: ``"n_users, k"``."""
    if array.ndim != axes.count(",") + 1:
        raise InputError(f"{name} has the shape {array.shape}, and must be [{axes}].")


def array_of_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return values as a rectangular array of numbers."""
    try:
        found = np.asarray(as_array(values, name))
        if found.dtype.kind == "O" and any(one is None for one in found.flat):
            raise TypeError("None is not a number")
        if found.dtype.kind not in "biuf":
            found = found.astype(
                np.float64, casting="same_kind" if found.dtype != "O" else "unsafe"
            )
    except Exception as error:  # a conversion to an array may raise any exception
        raise InputTypeError(f"{name} must be numbers, in rows of one length: {error}.") from None
    return found
