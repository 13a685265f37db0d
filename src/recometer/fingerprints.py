"""Fingerprints of the inputs, by which a saved result knows what it was computed from."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Fingerprinting", "Piecewise", "fingerprint"]

PIECE = 2**25  # bytes hashed at once: how late (20 ms) a cancellation may be noticed
COPY = 2**20  # bytes copied at once, of an array that cannot be hashed as it lies
OBJECTS_AT_ONCE = 2**16
TEXT_KINDS = "OSTU"  # NumPy kinds whose bytes are pointers, or depend on the longest text


@runtime_checkable
class Piecewise(Protocol):
    """Numbers that are no array, and are brought here in C order, piece by piece."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def pieces(self) -> Iterator[npt.NDArray[Any]]:
        """Yield contiguous arrays."""


def fingerprint(array: npt.ArrayLike | Piecewise, cancelled: threading.Event | None = None) -> str:
    """Return the SHA-256 of an array: of its kind, its shape and its values in C order.

    Strides and byte order make no difference. Memory stays bounded, whatever the array:
    what is not contiguous, or lies in a file, is read piece by piece.

    Parameters
    ----------
    array
        An array of any dtype, or numbers that come piece by piece. Texts and objects are
        hashed by their `repr`.
    cancelled
        Once set, the rest of the array is left out (the fingerprint is then worthless).

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    if not isinstance(array, Piecewise):
        array = np.asarray(array)
    text = array.dtype.kind in TEXT_KINDS
    kind = "objects" if text else array.dtype.newbyteorder("<").str
    digest = hashlib.sha256(f"{kind} {array.shape} ".encode())
    parts = [array] if isinstance(array, np.ndarray) else array.pieces()
    for part in parts:
        for piece in _texts(part) if text else _pieces(part):
            if cancelled is not None and cancelled.is_set():
                return digest.hexdigest()
            digest.update(piece)
    return digest.hexdigest()


class Fingerprinting:
    """Takes fingerprints on a thread of its own, while other work goes on.

    A context manager; the thread ends with the block, whatever happens in it.

    Parameters
    ----------
    inputs
        Named groups of named arrays, for instance ``{"test": {"items": array}}``. Arrays
        that are None are left out.
    """

    def __init__(self, inputs: Mapping[str, Mapping[str, object]]) -> None:
        self._inputs = inputs
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._result: dict[str, dict[str, str]] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recometer-fingerprints")

    def __enter__(self) -> Fingerprinting:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cancelled.set()
        self._thread.join()

    def result(self) -> dict[str, dict[str, str]]:
        """Wait for the fingerprints, and return them in the groups of the inputs."""
        while not self._ended.wait(0.1):  # short waits, so that Ctrl-C is noticed anywhere
            pass
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        try:
            self._result = {
                group: {
                    name: fingerprint(array, self._cancelled)  # type: ignore[arg-type]
                    for name, array in arrays.items()
                    if array is not None
                }
                for group, arrays in self._inputs.items()
            }
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


def _pieces(array: npt.NDArray[np.generic]) -> Iterator[memoryview]:
    little = array.dtype.newbyteorder("<")
    if array.flags.c_contiguous and array.dtype == little:
        flat = array.reshape(-1).view(np.uint8)
        for begin in range(0, len(flat), PIECE):
            yield flat[begin : begin + PIECE].data
    else:
        copies = np.nditer(  # type: ignore[call-overload]  # the stubs lack "contig"
            [array],
            flags=["buffered", "external_loop", "zerosize_ok"],
            op_flags=[["readonly", "contig"]],
            op_dtypes=[little],
            order="C",
            casting="equiv",
            buffersize=max(1, COPY // array.dtype.itemsize),
        )
        for copy in copies:
            yield np.asarray(copy).view(np.uint8).data


def _texts(array: npt.NDArray[np.generic]) -> Iterator[bytes]:
    flat = array.reshape(-1)
    for begin in range(0, len(flat), OBJECTS_AT_ONCE):
        yield repr(flat[begin : begin + OBJECTS_AT_ONCE].tolist()).encode("utf-8", "surrogatepass")
