"""Recognises and converts tensors and arrays of other libraries without importing the libraries."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.errors import InputTypeError

CPU, MPS, META = "cpu", "mps", "meta"  # torch's names for device types
SPARSE = ("torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc")


def is_a(value: object, library: str, *classes: str) -> bool:
    """Return whether a value is an instance of a class; its library need not be installed."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, tuple(getattr(module, c) for c in classes))


def is_tensor(value: object) -> bool:
    """Return whether a value is a torch tensor."""
    return not isinstance(value, np.ndarray) and is_a(value, "torch", "Tensor")


def off_cpu(value: object) -> bool:
    """Return whether a value is a tensor on a device other than the CPU; refuse meta tensors."""
    if not is_tensor(value):
        return False
    tensor: Any = value
    if tensor.device.type == META:
        raise InputTypeError(
            f"A tensor of shape {tuple(tensor.shape)} is on the device {tensor.device}, which "
            'stores no numbers. Hint: create the model on a device that does, such as "cpu".'
        )
    return bool(tensor.device.type != CPU)


def is_sparse(tensor: Any) -> bool:
    """Return whether a tensor is sparse, in a layout that SciPy also supports."""
    return str(getattr(tensor, "layout", "")) in SPARSE


def to_scipy(tensor: Any) -> Any:
    """Return a sparse tensor as a sparse array; repeated entries are not added up."""
    import scipy.sparse

    if str(tensor.layout) == "torch.sparse_coo":
        # .indices() works only after repeated entries have been added up.
        index, values = to_numpy(tensor._indices()), to_numpy(tensor._values())
        return scipy.sparse.coo_array((values, tuple(index)), shape=tuple(tensor.shape))
    by_row = str(tensor.layout) == "torch.sparse_csr"
    names = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
    indptr, indices = (to_numpy(getattr(tensor, name)()) for name in names)
    make = scipy.sparse.csr_array if by_row else scipy.sparse.csc_array
    return make((to_numpy(tensor.values()), indices, indptr), shape=tuple(tensor.shape))


def dtype_name(array: Any) -> str:
    """Return the dtype of an array or a tensor as a string, such as ``"float32"``."""
    return _name_of(array.dtype)


@functools.cache
def _name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def dtype_and_device(array: Any) -> str:
    """Describe the dtype and device of an array: ``"float32"``, ``"float32 on cuda:0"``."""
    return f"{dtype_name(array)} on {array.device}" if off_cpu(array) else dtype_name(array)


def to_numpy(tensor: Any) -> Array:
    """Convert a tensor to an array, which shares its memory if the tensor is on the CPU.

    A dtype that NumPy lacks (bfloat16) becomes float32, which represents its numbers exactly.
    Sparse and quantised tensors are refused.
    """
    off_cpu(tensor)  # raises an error for tensors without data
    tensor = tensor.detach().cpu()
    if str(getattr(tensor, "dtype", "")) == "torch.bfloat16":
        tensor = tensor.float()
    try:
        array: Array = np.asarray(tensor.numpy())
    except (TypeError, RuntimeError) as error:
        raise InputTypeError(
            f"A tensor ({getattr(tensor, 'dtype', '')}, {getattr(tensor, 'layout', '')}) cannot be "
            f"read as an array: {error} Hint: tensor.to_dense() makes it dense."
        ) from error
    return array


def from_any_library(values: Any) -> Array:
    """Convert an array of a library other than torch, or a list, to NumPy."""
    array: Array
    try:
        array = np.asanyarray(values)
    except Exception:  # NumPy cannot read data on another device, or of a type that it lacks
        if not hasattr(values, "__dlpack__"):
            raise
        array = _from_dlpack(values)
    if array.dtype == object and not array.ndim and hasattr(values, "__dlpack__"):
        array = _from_dlpack(values)
    # Float types that libraries add to NumPy look like records without fields.
    plain = array.dtype.kind == "V" and array.dtype.names is None
    added = plain and np.can_cast(array.dtype, np.float32)
    return array.astype(np.float32) if added else array


def _from_dlpack(values: Any) -> Array:
    array: Array
    try:
        array = np.from_dlpack(values)
    except Exception as error:  # each library has its own exception for other devices
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            raise InputTypeError(
                f"NumPy {np.__version__} cannot read this array ({error}). Hint: if it is on "
                "another device, move it to the CPU, or install NumPy 2.1 or later."
            ) from error
        array = np.from_dlpack(values, device="cpu")
    return array


def is_nested(value: object) -> bool:
    """Return whether a value is a nested tensor, which has no shape."""
    return is_tensor(value) and value.is_nested  # type: ignore[attr-defined]
