"""Checks factors and biases, and converts them to one dtype for the kernel or a device."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Int64, UInt32, laid_out, slices
from recometer.data.array_files import MappedFiles, in_place, lies_in_file
from recometer.data.numbers import as_array, in_float64
from recometer.data.tensors import dtype_name
from recometer.errors import InputError, InputTypeError, brief, warn
from recometer.ranks import UserFlag
from recometer.sources import _torch

PIECE = 2**20  # number of bytes to convert at a time when all rows are read


class Converted:
    """A matrix in a file that is converted while it is read; the whole matrix is never copied.

    Parameters
    ----------
    given : [n_rows, n_columns]
        Numbers of any dtype and strides.
    dtype
        The dtype to convert them to.
    """

    def __init__(self, given: Array, dtype: npt.DTypeLike) -> None:
        self.given = given
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape: tuple[int, ...] = given.shape
        self.itemsize = self.dtype.itemsize

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, rows: slice | Int64) -> Array:
        """Return some rows in the form that the kernel reads."""
        return laid_out(self.given[rows], self.dtype)

    def pieces(self) -> Iterator[Array]:
        """Yield all rows in order, a part at a time, for the fingerprint."""
        for piece in slices(len(self), PIECE // max(1, self.shape[1] * self.itemsize)):
            yield self[piece]


@dataclasses.dataclass(frozen=True)
class FactorArrays:
    """The factors and biases of a model, all in one dtype: float32 or float64."""

    # [n_users, n_factors]: an array that the kernel reads, `Converted`, or a tensor on a device. It
    # has no rows if everybody gets the same ranking.
    users: Any
    items: Any  # [n_items, n_factors], on the same device as `users`
    user_bias: Array | None
    item_bias: Array | None
    n_users: int | None  # None if everybody gets the same ranking
    converted: str = ""  # names the converted arrays in the description
    files: MappedFiles = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        matrices = (getattr(one, "given", one) for one in (self.users, self.items))
        files = MappedFiles([*matrices, self.user_bias, self.item_bias])
        object.__setattr__(self, "files", files)

    @classmethod
    def of(cls, users: Any, items: Any, user_bias: Any, item_bias: Any) -> FactorArrays:
        """Read the arguments of `Factors`."""
        if (users is None) != (items is None):
            names = ("user_factors", "item_factors")
            given, missing = names[::-1] if users is None else names
            raise InputError(
                f"Factors has {given}, but {missing} is None. Hint: give both, or neither, with "
                "item_bias=... for the same ranking for all users."
            )
        if users is None:
            return cls._for_everybody(item_bias)
        users, items = in_place(users, "factors of users"), in_place(items, "factors of items")
        users, items, converted = _matrices(users, items)
        n_users, dtype = len(users), np.dtype(dtype_name(items))
        own = _bias(item_bias, "item", len(items), dtype)
        return cls(users, items, _bias(user_bias, "user", n_users, dtype), own, n_users, converted)

    @classmethod
    def _for_everybody(cls, item_bias: Any) -> FactorArrays:
        if item_bias is None:
            raise InputError(
                "Factors(None, None) has nothing to rank by. Hint: item_bias=... is the score of "
                "each item in a ranking that is the same for all users."
            )
        bias = _vector(item_bias, "item_bias")
        dtype = np.dtype(np.float32 if bias.dtype == np.float32 else np.float64)
        in_float64(bias, "item biases")  # refuses integers that are too large
        bias = laid_out(bias, dtype)
        without_factors = np.zeros((len(bias), 0), dtype)
        return cls(without_factors[:0], without_factors, None, bias, None)

    def flag_user_bias(self, rows: Int64, flags: UInt32) -> None:
        """Flag users whose bias is not finite, because the computed scores leave it out."""
        if self.user_bias is None:
            return
        bias = self.user_bias[rows]
        # If the bias is NaN, all scores of the user are NaN, which no rule can rank.
        flags[np.isnan(bias)] |= np.uint32(UserFlag.NAN_SCORE)
        flags[np.isinf(bias)] |= np.uint32(UserFlag.INFINITE_SCORE)

    def finite_up_to(self, item: float | None = None) -> bool:
        """Return whether all scores must be finite if no item has a factor above `item`.

        By default, `item` is the largest factor of an item.
        """
        item = largest(self.items) if item is None else item
        n_factors = self.items.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            bound = n_factors * largest(self.users) * item
            bound += largest(self.item_bias) + largest(self.user_bias)
        return bool(bound < float(np.finfo(dtype_name(self.items)).max) / 4)


def _matrices(users: Any, items: Any) -> tuple[Any, Any, str]:
    """Return both matrices in one dtype, and a note on the conversion.

    Arrays are in the form that the kernel reads. If one of the two is a tensor on a device, both
    become tensors there.
    """
    on_device = _torch.factors(users, items)
    if on_device:
        left, right = on_device
    else:
        left, right = _numbers(users, "users"), _numbers(items, "items")
    for name, matrix in (("users", left), ("items", right)):
        if matrix.ndim != 2:
            raise InputError(
                f"{name} of Factors have shape {tuple(matrix.shape)}, expected two dimensions: "
                f"[n_{name}, n_factors]."
            )
    if left.shape[1] != right.shape[1]:
        hint = ""
        if {*left.shape} & {*right.shape}:
            hint = " Hint: is one of them transposed? Rows are users and items."
        raise InputError(
            f"users have {counted(left.shape[1], 'factor')}, but items have {right.shape[1]:,} "
            f"(shapes {tuple(left.shape)} and {tuple(right.shape)}).{hint}"
        )
    if not on_device:
        small = all(m.dtype.kind == "f" and m.dtype.itemsize < 8 for m in (left, right))
        dtype = np.float32 if small else np.float64
        left, right = _readable(left, dtype), _readable(right, dtype)
    converted = ""
    for name, given in (("users", users), ("items", items)):
        # Converting a list needs no warning, because it has no dtype.
        if hasattr(given, "dtype"):
            before, after = dtype_name(given), dtype_name(left)
            if before != after:
                warn(
                    f"{name} of Factors were converted from {before} to {after}: both factors are "
                    "taken as float32, or both as float64."
                )
                converted += f", {name} converted from {before}"
    return left, right, converted


def _readable(array: Array, dtype: npt.DTypeLike) -> Array | Converted:
    """Return a matrix in a form that the kernel reads: unchanged, or else converted.

    The kernel reads any strides that are multiples of the element size.
    """
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    if array.dtype == dtype and whole and array.flags.aligned:
        return array
    return Converted(array, dtype) if lies_in_file(array) else array.astype(dtype)


def _numbers(given: Any, name: str) -> Array:
    if hasattr(given, "toarray"):
        raise InputTypeError(
            f"{name} of Factors are sparse ({type(given).__name__}). Hint: .toarray() makes a "
            "matrix of them."
        )
    array = as_array(given, f"{name} of Factors")
    if isinstance(array, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} of Factors are a masked array. Hint: .filled(value) says what masked "
            "entries are."
        )
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{name} of Factors are of dtype {array.dtype}, expected float32 or float64. Hint: "
            f"numpy.asarray({name}, numpy.float32) converts anything that can be read as numbers."
        )
    return array


def _vector(values: npt.ArrayLike, name: str) -> Array:
    if isinstance(values, str | os.PathLike):
        raise InputTypeError(
            f"{name} of Factors is a path ({brief(values)}), but only the factors are read "
            f"from files. Hint: {name}=numpy.load(path)."
        )
    array = as_array(values, f"{name} of Factors")
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} of Factors is of dtype {array.dtype}, expected numbers.")
    if array.ndim != 1:
        raise InputError(f"{name} of Factors has shape {array.shape}, expected one dimension.")
    return array


def largest(array: Any) -> float:
    """Return the largest absolute value of an array; NaN if it contains NaN."""
    if isinstance(array, Converted):
        array = array.given
    if array is None or 0 in array.shape:
        return 0.0
    return float(np.maximum(float(array.max()), -float(array.min())))


def _bias(values: npt.ArrayLike | None, of: str, n: int, dtype: np.dtype[Any]) -> Array | None:
    if values is None:
        return None
    array = _vector(values, f"{of}_bias")
    if len(array) != n:
        raise InputError(
            f"{of}_bias of Factors has {len(array):,} entries, but there are {counted(n, of)}."
        )
    return laid_out(array, dtype)


def counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
