"""Fingerprints of the inputs, which identify the data of a saved result."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from recometer import _kernel
from recometer.arrays import Array, UInt8, UInt64
from recometer.data.array_files import lies_in_file
from recometer.tasks import BRIEF_NUMBERS, POLL, was_started

PIECE = 2**20  # bytes per hash, which the definition of a fingerprint fixes
AT_ONCE = 2**22  # bytes hashed or copied at once, which delay a cancellation by up to 0.5 ms
ALONE = 2**26  # a single thread hashes up to this many bytes, which takes 5 ms
OBJECTS_AT_ONCE = 2**16
GLIMPSED = 2**10  # approximate number of values in a glimpse, which takes a few microseconds
_NEVER = threading.Event()
TEXT_KINDS = "OSTU"  # NumPy kinds whose bytes are pointers, or depend on the longest string


@runtime_checkable
class Piecewise(Protocol):
    """Numbers that are not in an array in memory, but can be read piece by piece in C order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def pieces(self) -> Iterator[Array]:
        """Yield the numbers as contiguous arrays."""


def fingerprint(array: npt.ArrayLike | Piecewise, cancelled: threading.Event | None = None) -> str:
    """Return a hash of an array's dtype, shape and values in C order.

    The values are written in little-endian order, and cut into pieces of 2**20 bytes; the last
    piece may be shorter. The fingerprint is the SHA-256 of: the name of the dtype in NumPy's
    notation (``<f8``; ``objects`` for strings and objects), a space, the shape as Python writes it,
    a space, and the XXH64 (seed 0) of each piece, 8 bytes little-endian. Strings and objects are
    written as Python writes lists of them, 2**16 to a list, in UTF-8.

    The fingerprint detects accidental differences. XXH64 does not resist an attacker who constructs
    colliding data, but it is several times faster than SHA-256 of everything, which would take
    longer than the ranking.

    Strides, byte order and the number of threads make no difference. Memory stays bounded: an array
    that is not contiguous, or is mapped from a file, is read piece by piece. Once the event
    `cancelled` is set, hashing stops, and the fingerprint is invalid.
    """
    if not isinstance(array, np.ndarray | Piecewise):
        array = np.asarray(array)
    digest = _digest(array)
    cancelled = _NEVER if cancelled is None else cancelled
    for whole in _pieces(array):
        digest.update(_hashes(whole, cancelled).astype("<u8", copy=False).data)
        if cancelled.is_set():
            break
    return digest.hexdigest()


def _digest(array: Array | Piecewise) -> hashlib._Hash:
    """Return the digest of the dtype and the shape."""
    kind = "objects" if array.dtype.kind in TEXT_KINDS else array.dtype.newbyteorder("<").str
    return hashlib.sha256(f"{kind} {array.shape} ".encode())


def _is_plain(array: npt.NDArray[np.generic]) -> bool:
    """Return whether the bytes of an array can be hashed without conversion."""
    kind, order = array.dtype.kind, array.dtype.str[0]
    return kind not in TEXT_KINDS and array.flags.c_contiguous and order in "<|"


def _pieces(array: Array | Piecewise) -> Iterable[UInt8]:
    """Return the bytes of an array in parts; all parts but the last consist of whole pieces."""
    is_text = array.dtype.kind in TEXT_KINDS
    if isinstance(array, np.ndarray) and _is_plain(array):
        return [array.reshape(-1).view(np.uint8)] if array.size else []
    parts = [array] if isinstance(array, np.ndarray) else array.pieces()
    streams = (_texts(part) if is_text else _bytes(part) for part in parts)
    return _whole_pieces(one for stream in streams for one in stream)


def glimpse(array: object) -> bytes:
    """Return some evenly spaced numbers of an array in memory, or all numbers of a short array.

    If most of the array changes, some of these numbers change, too. A fingerprint would detect any
    change, but takes too long to compute in every call. The result is empty for anything but arrays
    of numbers.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind in TEXT_KINDS or lies_in_file(array):
        return b""
    step: int = array.size // GLIMPSED + 1
    return array[::step].tobytes() if array.ndim else array.tobytes()


class Fingerprinting:
    """Takes fingerprints on separate threads, while other work goes on.

    This is a context manager. The threads end with the block, even if it raises an exception. If
    there is little to hash, `result` hashes it without threads.

    `inputs` has named groups of named arrays, for instance ``{"test": {"items": array}}``. None
    is ignored. At most `threads` threads hash large arrays in memory. `before` adds
    steps to the kernel's background thread, which run before any hashing. If there is little to
    hash, it is called with the kernel itself, which runs the same steps immediately.
    """

    def __init__(
        self,
        inputs: Mapping[str, Mapping[str, object]],
        threads: int = 1,
        before: Callable[[_kernel.Counting], object] = lambda _: None,
    ) -> None:
        self._groups = list(inputs)
        self._arrays = {
            (group, name): array
            for group, arrays in inputs.items()
            for name, array in arrays.items()
            if array is not None
        }
        self._threads = threads
        self._before = before
        self._background: _kernel.Background | None = None
        self._hashes: dict[tuple[str, str], UInt64] = {}  # hashes of arrays in memory
        # A thread fingerprints what the kernel cannot hash in place, such as strings.
        self._work: threading.Thread | None = None
        self._others: dict[tuple[str, str], str] | BaseException = {}
        self._cancelled, self._ended = threading.Event(), threading.Event()

    def __enter__(self) -> Fingerprinting:
        if sum(map(_size, self._arrays.values())) > BRIEF_NUMBERS:
            self._start_background()
            others = {key: a for key, a in self._arrays.items() if key not in self._hashes}
            if sum(map(_size, others.values())) > BRIEF_NUMBERS:
                work = threading.Thread(target=self._hash_others, args=(others,))
                if was_started(work):
                    self._work = work  # otherwise, `result` takes these fingerprints
        else:
            self._before(_kernel)
        return self

    def _start_background(self) -> None:
        """Start hashing arrays in memory; the threads of the kernel do not hold the GIL."""
        self._background, n_bytes = _kernel.Background(), 0
        self._before(self._background)
        for name, array in self._arrays.items():
            if not (isinstance(array, np.ndarray) and _is_plain(array)):
                continue
            data = array.reshape(-1).view(np.uint8)
            self._hashes[name], parts = _parts(data)
            for part, hashes in parts:
                self._background.hash_pieces(part, PIECE, hashes)
            n_bytes += len(data)
        self._background.start(1 if n_bytes <= ALONE else self._threads)

    def __exit__(self, *_: object) -> None:
        if self._background is not None:
            self._background.stop()
        if self._work is not None:
            self._cancelled.set()
            self._work.join()

    def _hash_others(self, arrays: Mapping[tuple[str, str], object]) -> None:
        try:
            self._others = {
                name: fingerprint(array, self._cancelled)  # type: ignore[arg-type]
                for name, array in arrays.items()
            }
        except BaseException as error:
            self._others = error
        finally:
            self._ended.set()

    def result(self) -> dict[str, dict[str, str]]:
        """Wait for the fingerprints, and return them in the same groups as the inputs."""
        # Wait in short steps, so that Ctrl-C works on every system.
        while self._background is not None and not self._background.wait(POLL):
            pass
        while self._work is not None and not self._ended.wait(POLL):
            pass
        if isinstance(self._others, BaseException):
            raise self._others
        digests: dict[str, dict[str, str]] = {group: {} for group in self._groups}
        for (group, name), array in self._arrays.items():
            if (group, name) in self._hashes:
                digest = _digest(np.asarray(array))
                digest.update(self._hashes[group, name].astype("<u8", copy=False).data)
                digests[group][name] = digest.hexdigest()
            elif self._work is None:
                digests[group][name] = fingerprint(array)  # type: ignore[arg-type]
            else:
                digests[group][name] = self._others[group, name]
        return digests


def _size(array: object) -> float:
    """Return the number of values to hash, or infinity for anything but an array."""
    return array.size if isinstance(array, np.ndarray) else math.inf


def _parts(data: UInt8) -> tuple[UInt64, list[tuple[UInt8, UInt64]]]:
    """Return an array for all hashes, and the parts to hash, each with its slice of that array."""
    hashes, at_once = np.zeros(-(-len(data) // PIECE), np.uint64), AT_ONCE // PIECE
    starts = range(0, len(hashes), at_once)
    return hashes, [
        (data[first * PIECE :][:AT_ONCE], hashes[first : first + at_once]) for first in starts
    ]


def _hashes(data: UInt8, cancelled: threading.Event) -> UInt64:
    """Return the hash of each piece of the data."""
    hashes, parts = _parts(data)
    for part, of_part in parts:
        if cancelled.is_set():
            break
        _kernel.hash_pieces(part, PIECE, of_part)
    return hashes


def _whole_pieces(stream: Iterable[UInt8]) -> Iterator[UInt8]:
    """Regroup the parts of a stream, so that all but the last consist of whole pieces."""
    rest = np.zeros(0, np.uint8)
    for part in stream:
        if len(rest):
            part = np.concatenate([rest, part])
        end = len(part) // PIECE * PIECE
        if end:
            yield part[:end]
        rest = part[end:].copy()  # the next part may be written into the same memory
    if len(rest):
        yield rest


def _bytes(array: npt.NDArray[np.generic]) -> Iterator[UInt8]:
    """Return the bytes of the values in C order, little-endian."""
    if _is_plain(array):
        yield array.reshape(-1).view(np.uint8)
    else:
        little = array.dtype.newbyteorder("<")
        copies = np.nditer(  # type: ignore[call-overload]  # the stubs lack "contig"
            [array],
            flags=["buffered", "external_loop", "zerosize_ok"],
            op_flags=[["readonly", "contig"]],
            op_dtypes=[little],
            order="C",
            casting="equiv",
            buffersize=max(1, AT_ONCE // array.dtype.itemsize),
        )
        for copy in copies:
            yield np.asarray(copy).view(np.uint8)


def _texts(array: npt.NDArray[np.generic]) -> Iterator[UInt8]:
    flat = array.reshape(-1)
    for begin in range(0, len(flat), OBJECTS_AT_ONCE):
        text = repr(flat[begin : begin + OBJECTS_AT_ONCE].tolist())
        yield np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
