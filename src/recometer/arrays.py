"""Names of the types of arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
UInt8 = npt.NDArray[np.uint8]


def read_only(array: Array) -> Array:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
