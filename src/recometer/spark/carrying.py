"""How a job reaches the executors: what is large travels as a file, once to each, and is mapped.

Spark pickles only a function that needs no recometer, and says in one line if there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import pickle
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from recometer.errors import FileError
from recometer.spark.tables import INSTALL, Frame
from recometer.version import __version__

IN_CALL = 2**20  # bytes up to which a job travels with the function
ALIGNED = 64
SIZE = 8  # bytes of the place where the arrays end and the rest begins

_folders: list[tempfile.TemporaryDirectory[str]] = []  # from which Spark serves files to the end
_jobs: dict[str, Any] = {}  # of this process: the last one, by name


def carried(job: Any, frame: Frame, shared: str | None) -> Callable[[Any], Any]:
    """Return the function for `mapInArrow` that runs a job on the batches of a partition.

    Parameters
    ----------
    job
        Is called with the batches.
    frame
        A DataFrame of the session.
    shared
        A folder that all executors see, where the file lies; None lets Spark copy it to each.
    """
    from pyspark import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    plain = cloudpickle.dumps(job, protocol=5, buffer_callback=arrays.append)
    views = [one.raw() for one in arrays]
    name, content, digest = f"recometer-{uuid.uuid4().hex}.job", None, b""
    if len(plain) + sum(one.nbytes for one in views) <= IN_CALL:
        content = cloudpickle.dumps(job, protocol=5)
    elif shared is not None:
        name = os.path.join(os.path.abspath(shared), name)
        digest = _write(name, plain, views)
    else:
        path = os.path.join(_folder(), name)
        digest = _write(path, plain, views)
        frame.sparkSession.addArtifacts(path, file=True)
    return _runner(content, name, digest, __version__, INSTALL)


def _runner(
    content: bytes | None, name: str, digest: bytes, version: str, install: str
) -> Callable[[Any], Iterator[Any]]:
    def run(batches: Any) -> Iterator[Any]:
        # Pickled by value: nothing of this module is needed where it runs.
        import pickle

        import pyarrow as pa

        try:
            from recometer.version import __version__ as found
        except ImportError as error:
            found = f"no recometer ({error})"
        if found != version:
            text = f"An executor has {found}, the driver has recometer {version}. {install}"
            if not found.startswith("no "):
                text = text.replace("has ", "has recometer ", 1)
            cells = {
                "note": pickle.dumps({"error": {"InputError": text}}),
                "users": None,
                "items": None,
            }
            columns = {key: pa.array([cell], pa.binary()) for key, cell in cells.items()}
            yield pa.RecordBatch.from_pydict(columns)
            return
        from recometer.spark.carrying import job_of

        yield from job_of(content, name, digest)(batches)

    return run


def job_of(content: bytes | None, name: str, digest: bytes) -> Any:
    """Return a job where it runs: pickled in `content`, or mapped from the file of this name."""
    if name not in _jobs:
        # Pickled by the driver of the same job.
        found = pickle.loads(content) if content is not None else _read(name, digest)  # noqa: S301
        _jobs.clear()
        _jobs[name] = found
    return _jobs[name]


def _folder() -> str:
    if not _folders:
        _folders.append(tempfile.TemporaryDirectory(prefix="recometer-"))
    return _folders[0].name


def _write(path: str, plain: bytes, views: list[memoryview]) -> bytes:
    """Write arrays, each at a multiple of `ALIGNED`, and then what refers to them.

    Returns the SHA-256 of the latter, which is unpickled.
    """
    try:
        with open(path, "wb") as file:
            file.write(bytes(ALIGNED))
            ends = []
            for view in views:
                begin = file.tell()
                file.write(view)
                ends.append((begin, file.tell()))
                file.write(bytes(-file.tell() % ALIGNED))
            begin = file.tell()
            pickled = pickle.dumps((plain, ends))
            file.write(pickled)
            file.seek(0)
            file.write(begin.to_bytes(SIZE, "little"))
            return hashlib.sha256(pickled).digest()
    except OSError as error:
        raise FileError(
            f"The item factors could not be written to {path}: {error.strerror}. Hint: shared= "
            "names a folder with enough space that all executors see."
        ) from None


def _read(name: str, digest: bytes) -> Any:
    from pyspark import SparkFiles

    path = name if os.path.isabs(name) else SparkFiles.get(name)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "rb"))
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    begin = int.from_bytes(content[:SIZE], "little")
    if hashlib.sha256(content[begin:]).digest() != digest:
        raise FileError(
            f"{path} is not what the driver wrote. Hint: shared= names a folder in which nobody "
            "else writes."
        )
    plain, ends = pickle.loads(content[begin:])  # noqa: S301
    return pickle.loads(plain, buffers=[content[a:b] for a, b in ends])  # noqa: S301
