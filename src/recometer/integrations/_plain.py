"""Load pickles of numbers, strings, arrays and ids, and reject anything that could run code."""

from __future__ import annotations

import io
import pickle
from typing import Any

from recometer.errors import InputError

# These functions and classes rebuild arrays and ids. None of them calls its arguments.
KNOWN = {
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},  # NumPy 1
    "numpy.core.numeric": {"_frombuffer"},
    "numpy": {"ndarray", "dtype"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "uuid": {"UUID", "SafeUUID"},
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in KNOWN.get(module, ()):
            raise InputError(
                f"A state holds {module}.{name}, which is not loaded: it could run as code. Hint: "
                "load check-points that this metric wrote; ids may be numbers, strings, bytes, "
                "dates, decimals and UUIDs."
            )
        return super().find_class(module, name)


def loads(text: bytes) -> Any:
    """Load a pickle that contains only plain values, such as numbers, strings and lists.

    Raises
    ------
    InputError
        If the pickle is damaged or contains a value that is not plain.
    """
    try:
        return _Plain(io.BytesIO(text)).load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle may raise any exception
        raise InputError(
            f"A state is damaged ({type(error).__name__}: {error}). Hint: load unchanged "
            "check-points that this metric wrote."
        ) from error
