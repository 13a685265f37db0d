"""Fingerprints of the inputs, which identify the data behind a saved result."""

from __future__ import annotations

import hashlib
import itertools
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

PIECE = 2**20  # bytes per hash; part of the definition of a fingerprint
AT_ONCE = 2**22  # bytes hashed or copied at once; this delays cancellation by up to 0.5 ms
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


def fingerprint(array: npt.ArrayLike | Piecewise, cancelled: threading.Event = _NEVER) -> str:
    """Return a hash of an array's dtype, shape and values in C order.

    The values are written in little-endian order and cut into pieces of 2**20 bytes; the last
    piece may be shorter. The fingerprint is the SHA-256 of the dtype's name in NumPy's notation
    (``<f8``; ``objects`` for strings and objects), a space, the shape as Python writes it, a space,
    and the XXH64 (seed 0) of each piece as 8 little-endian bytes. Strings and objects are
    split into lists of 2**16 entries, and each list is written as its Python repr, in UTF-8.

    The fingerprint detects accidental differences. XXH64 does not resist an attacker who constructs
    colliding data, but it is several times faster than SHA-256 of everything, which would take
    longer than the ranking.

    Strides, byte order and the number of threads make no difference. Memory use is bounded: an
    array that is not contiguous, or is mapped from a file, is read piece by piece. Once the event
    `cancelled` is set, hashing stops, and the fingerprint is invalid.
    """
    if not isinstance(array, np.ndarray | Piecewise):
        array = np.asarray(array)
    if isinstance(array, np.ndarray) and _is_plain(array):
        return _digest(array, [_hashes(array, _kernel, cancelled)])
    parts = [array] if isinstance(array, np.ndarray) else array.pieces()
    bytes_of = _texts if array.dtype.kind in TEXT_KINDS else _bytes
    pieces = _whole_pieces(data for part in parts for data in bytes_of(part))
    hashes = (_hashes(data, _kernel, cancelled) for data in pieces)
    return _digest(array, itertools.takewhile(lambda _: not cancelled.is_set(), hashes))


def _digest(array: Array | Piecewise, hashes: Iterable[UInt64]) -> str:
    """Return the SHA-256 of the dtype, the shape and the hashes of all pieces."""
    kind = "objects" if array.dtype.kind in TEXT_KINDS else array.dtype.newbyteorder("<").str
    digest = hashlib.sha256(f"{kind} {array.shape} ".encode())
    for block in hashes:
        digest.update(block.astype("<u8", copy=False).data)
    return digest.hexdigest()


def _is_plain(array: npt.NDArray[np.generic]) -> bool:
    """Return whether the bytes of an array can be hashed without conversion."""
    kind, order = array.dtype.kind, array.dtype.str[0]
    return kind not in TEXT_KINDS and array.flags.c_contiguous and order in "<|"


def glimpse(array: object) -> bytes:
    """Return evenly spaced numbers from an array in memory, or all numbers if there are few.

    If most of the array changes, some of these numbers change, too. A fingerprint would detect any
    change, but would take too long to compute in every call. The result is empty for anything but
    arrays of numbers in memory.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind in TEXT_KINDS or lies_in_file(array):
        return b""
    step: int = array.size // GLIMPSED + 1
    return array[::step].tobytes() if array.ndim else array.tobytes()


class Fingerprinting:
    """Computes fingerprints on separate threads while other work goes on.

    This is a context manager. The threads end with the block, even if it raises an exception. If
    there is little to hash, `result` does the work without threads.

    `inputs` has named groups of named arrays, for instance ``{"test": {"items": array}}``. Arrays
    that are None are ignored. At most `threads` threads hash large arrays in memory. `before` adds
    steps that the kernel's background thread runs before any hashing. If there is little to hash,
    `before` is called with the kernel itself, which runs the same steps immediately.
    """

    _background: _kernel.Background | None = None
    _work: threading.Thread | None = None  # hashes what the kernel cannot read, such as strings

    def __init__(
        self,
        inputs: Mapping[str, Mapping[str, object]],
        threads: int = 1,
        before: Callable[[_kernel.Counting], object] = lambda _: None,
    ) -> None:
        self._inputs, self._threads, self._before = inputs, threads, before
        self._digests: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Fingerprinting:
        arrays = [array for group in self._inputs.values() for array in group.values()]
        if sum(map(_size, arrays)) > BRIEF_NUMBERS:
            self._start()
        else:
            self._before(_kernel)
        return self

    def _start(self) -> None:
        """Start hashing arrays in memory; the kernel's threads do not hold the GIL."""
        self._background, n_bytes = _kernel.Background(), 0
        self._before(self._background)
        self._hashes: dict[tuple[str, str], tuple[Array, UInt64]] = {}
        other_arrays: dict[tuple[str, str], object] = {}
        for group, arrays in self._inputs.items():
            for name, array in arrays.items():
                if isinstance(array, np.ndarray) and _is_plain(array):
                    self._hashes[group, name] = array, _hashes(array, self._background)
                    n_bytes += array.nbytes
                elif array is not None:
                    other_arrays[group, name] = array
        self._background.start(1 if n_bytes <= ALONE else self._threads)
        if sum(map(_size, other_arrays.values())) > BRIEF_NUMBERS:
            self._cancelled, self._ended = threading.Event(), threading.Event()
            self._error: BaseException | None = None
            work = threading.Thread(target=self._hash_others, args=(other_arrays,))
            if was_started(work):
                self._work = work  # otherwise, `result` computes these fingerprints

    def __exit__(self, *_: object) -> None:
        if self._background is not None:
            self._background.stop()
        if self._work is not None:
            self._cancelled.set()
            self._work.join()

    def _hash_others(self, arrays: Mapping[tuple[str, str], object]) -> None:
        try:
            for name, array in arrays.items():
                self._digests[name] = fingerprint(array, self._cancelled)  # type: ignore[arg-type]
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def result(self) -> dict[str, dict[str, str]]:
        """Wait for the fingerprints, and return them grouped like the inputs."""
        if self._background is not None:
            self._wait(self._background)
        digests: dict[str, dict[str, str]] = {}
        for group, arrays in self._inputs.items():
            digests[group] = {}
            for name, array in arrays.items():
                if array is not None:
                    digest = self._digests.get((group, name)) or fingerprint(array)  # type: ignore[arg-type]
                    digests[group][name] = digest
        return digests

    def _wait(self, background: _kernel.Background) -> None:
        # Wait in short steps, so that Ctrl-C works on every system.
        while not background.wait(POLL):
            pass
        if self._work is not None:
            while not self._ended.wait(POLL):
                pass
            if self._error is not None:
                raise self._error
        self._digests |= {n: _digest(array, [hash_]) for n, (array, hash_) in self._hashes.items()}


def _size(array: object) -> float:
    """Return the number of values to hash, or infinity for anything but an array."""
    return array.size if isinstance(array, np.ndarray) else 0 if array is None else math.inf


def _hashes(array: Array, hashing: _kernel.Counting, cancelled: threading.Event = _NEVER) -> UInt64:
    """Return the hashes of a plain array's pieces; a `Background` fills them in later."""
    data = array.reshape(-1).view(np.uint8)
    hashes, at_once = np.zeros(-(-len(data) // PIECE), np.uint64), AT_ONCE // PIECE
    for first in range(0, len(hashes), at_once):
        if cancelled.is_set():
            break
        part = data[first * PIECE :][:AT_ONCE]
        hashing.hash_pieces(part, PIECE, hashes[first : first + at_once])
    return hashes


def _whole_pieces(stream: Iterable[UInt8]) -> Iterator[UInt8]:
    """Regroup a stream so that every part but the last consists of whole pieces."""
    remainder = np.zeros(0, np.uint8)
    for part in stream:
        if len(remainder):
            part = np.concatenate([remainder, part])
        end = len(part) // PIECE * PIECE
        if end:
            yield part[:end]
        remainder = part[end:].copy()  # the next part may reuse this memory
    if len(remainder):
        yield remainder


def _bytes(array: npt.NDArray[np.generic]) -> Iterator[UInt8]:
    """Yield the bytes of the values in C order, little-endian."""
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
