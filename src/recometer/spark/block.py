"""Jobs that evaluate blocks of users on executors, using the code of `recometer.evaluate`."""

from __future__ import annotations

import dataclasses
import hashlib
import operator
import os
import pickle
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from recometer import errors
from recometer.arrays import Array
from recometer.data.ids import split_pairs
from recometer.data.interactions import Interactions, union
from recometer.errors import DataWarning, FileError, InputError, RecometerError
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.case import Case, Part, find_records, knows_chance, measure
from recometer.evaluating.checks import KINDS
from recometer.evaluating.requirements import requirements_of
from recometer.evaluating.sides import Sides, merge_rows
from recometer.measuring.listed import ListedUsers
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.sources.candidates import Candidates, Negatives
from recometer.spark import tables
from recometer.spark.sources import Output
from recometer.spark.tables import Frame, IdKinds, Table
from recometer.version import __version__

USERS = ("n_relevant", "n_candidates", "n_excluded", "depth", "flags")
# The parts of a block's note for metrics with a single value for all users or rows.
OF_ALL = ("over_users", "list_data", "over_rows", "rated")
CELLS = ("note", "users", "items")  # the columns that a job returns, all binary
CELL_USERS = 2**20  # maximum number of users per cell of values
BLOCK_BYTES = 2**24  # approximate size of a block of users in Arrow format

IN_CALL = 2**20  # maximum size in bytes of a job that is sent with the function, not as a file

_folders: list[tempfile.TemporaryDirectory[str]] = []  # Spark serves files from them until exit
_jobs: dict[str, Any] = {}  # the last job that this process has read, keyed by its name

Note = dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """A function that evaluates the users in a partition on an executor."""

    outputs: Mapping[str, Output]  # "source", and possibly "baseline"
    tables: Mapping[str, Table]  # "test", and possibly "train" and "candidates", without frames
    kinds: IdKinds
    arguments: Arguments  # without `train` and `baseline`
    metrics: tuple[Metric, ...]  # with the largest gain in the test data as a parameter if needed
    settled: Protocol  # the rules, adapted to the source
    candidates: Any  # None if there are none, or if they are in `tables`
    lists: bool  # whether all users are in one block, whose note has the parts `OF_ALL`

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the users' values and, for each block, a note with its contribution to the totals.

        Tables are sent as bytes, so that Spark has few cells to convert; see `packed`.
        """
        for table in blocks(batches, 2**62 if self.lists else BLOCK_BYTES):
            yield from self._block(table)

    @property
    def over_users(self) -> dict[int, Metric]:
        """The metrics with one value for all users, keyed by their positions in `metrics`."""
        return {n: m for n, m in enumerate(self.metrics) if m.definition.over_users}

    @property
    def of_users(self) -> dict[int, Metric]:
        """The metrics with a value for each user, keyed by their positions in `metrics`."""
        return {n: m for n, m in enumerate(self.metrics) if not m.definition.over_users}

    @property
    def by_chance(self) -> dict[int, Metric]:
        """The metrics also computed for a random order, keyed by their positions in `metrics`."""
        metrics = self.metrics if self.arguments.chance else ()
        return {n: m for n, m in enumerate(metrics) if knows_chance(m)}

    def _block(self, block: Any) -> Iterator[Any]:
        case = self._case(block)
        if not case.sides.test.n_users:
            return
        part = measure(case, find_records(case))
        note, items = _note(case, part), None
        if self.lists:
            note["lists"] = {name: getattr(part, name) for name in OF_ALL}
            n_rows = part.rated.size if part.rated is not None else 0
            if part.lists is not None:
                n_rows += part.lists.items.size
            if n_rows > tables.LIMIT:
                raise InputError(
                    f"lists=True would bring {n_rows:,} rows to the driver, more than "
                    f"{tables.LIMIT:,}. Hint: leave it out; or evaluate a sample of the users."
                )
        elif self.over_users:
            items = packed(self._of_items(case, part.list_data, note))
        yield row(note, items=items)
        users = self._rows(case, part)
        for begin in range(0, users.num_rows, CELL_USERS):
            yield row(users=packed(users.slice(begin, CELL_USERS)))

    def _case(self, block: Any) -> Case:
        """Return the evaluation of a block of users."""
        sources = {
            name: output.source(output.table.rows(block, name))
            for name, output in self.outputs.items()
        }
        sides = {
            name: Interactions.of(table.rows(block, name), **table.options)
            for name, table in self.tables.items()
        }
        source, brings_truth = sources["source"], "test" not in sides
        truth: Any = source.facts.truth if brings_truth else sides["test"]
        candidates = self.candidates
        if "candidates" in sides:
            sets = sides["candidates"]
            candidates = union(sets, truth) if isinstance(candidates, Negatives) else sets
        arguments = dataclasses.replace(
            self.arguments, train=sides.get("train"), baseline=sources.get("baseline")
        )
        test = merge_rows(truth, arguments.metrics, arguments.protocol, in_source=brings_truth)
        listed = source.facts.listed
        if listed and requirements_of(arguments.metrics, arguments.protocol).listed_users:
            test = test.with_users(listed())
        candidate_set = candidates if isinstance(candidates, Candidates) else None
        prepared = Sides(arguments, truth, test, candidate_set, self.metrics)
        requirements = requirements_of(self.metrics, self.settled)
        return Case(source, prepared, self.settled, brings_truth, requirements)

    def _rows(self, case: Case, part: Part) -> Any:
        """Return a table with a row per user: values, reasons and facts."""
        columns: dict[str, Any] = {"u": case.sides.test.user_ids}
        if self.kinds.session is not None:
            columns |= dict(zip("us", split_pairs(columns["u"]), strict=True))
        for number, metric in enumerate(self.metrics):
            name = str(metric)
            columns[f"m{number}"] = part.values.get(name)
            columns[f"r{number}"] = part.reasons[name].astype(np.int8)
            columns[f"c{number}"] = part.chance.get(name)
        columns |= {name: getattr(part.users, name).astype(np.int32) for name in USERS}
        return _table(self.columns, columns)

    def _of_items(self, case: Case, data: Any, note: Note) -> Any:
        """Return the sum x for each metric k and item i, and add the totals to the note."""
        item_ids = np.zeros(0, np.int64) if data.lists.item_ids is None else data.lists.item_ids
        listed, k, i, x = ListedUsers(data), [np.zeros(0, np.int32)], [item_ids[:0]], [np.zeros(0)]
        for number, metric in self.over_users.items():
            summed = listed.add_up(metric, rules_of(metric, case.protocol))
            note["totals"][str(metric)] = np.asarray(summed.totals, np.float64)
            if summed.items is not None:
                nonzero = np.flatnonzero(summed.items)
                k.append(np.full(len(nonzero), number, np.int32))
                i.append(item_ids[nonzero])
                x.append(summed.items[nonzero])
        columns = (np.concatenate(parts) for parts in (k, i, x))
        return _table(self.columns_of_items, dict(zip("kix", columns, strict=True)))

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the table with a row per user, and their Spark types."""
        types = {"u": self.kinds.user}
        if self.kinds.session is not None:
            types["s"] = self.kinds.session
        types |= {f"m{number}": "double" for number in self.of_users}
        types |= {f"r{number}": "tinyint" for number in range(len(self.metrics))}
        types |= {f"c{number}": "double" for number in self.by_chance}
        return types | dict.fromkeys(USERS, "int")

    @property
    def columns_of_items(self) -> dict[str, str]:
        """The columns of the table with a row per metric and item, and their Spark types."""
        return {"k": "int", "i": self.kinds.item, "x": "double"}


def _note(case: Case, part: Part) -> Note:
    """Return the contribution of a block of users to the totals; see `merged`."""
    sides, lists, test = case.sides, part.lists, case.sides.test
    sums = {"negative": int(sides.negative_gains)}
    if test.values is not None:
        sums["not binary"] = int(np.count_nonzero((test.values != 0) & (test.values != 1)))
    largest: dict[str, float] = {"value": test.value_range[1]}
    if lists is not None and lists.n_catalogue is not None:
        largest |= {"catalogue": lists.n_catalogue, "less catalogue": -lists.n_catalogue}
    data = [] if case.brings_truth else [sides.test_as_passed]
    data += [] if sides.arguments.train is None else [sides.arguments.train]
    least = {}
    for kind in KINDS:
        least[f"data {kind}"] = _least([getattr(side, f"{kind}_ids") for side in data])
        least[f"source {kind}"] = _least([case.source.facts.known_ids(kind)])
    return {
        "facts": {"facts": [part.facts]},
        "sums": sums,
        "counts": {**part.counts, **sides.affected_rows},
        "most": largest,
        "least": {name: low for name, low in least.items() if low is not None},
        "totals": {},
        "users": {"few": [] if test.user_ids is None else test.user_ids[:3].tolist()},
    }


def merged(notes: Iterable[bytes]) -> Note:
    """Combine the notes of all blocks (by maximum, minimum or sum), or raise a block's error."""
    operations = {"most": max, "least": min}
    combined: Note = {name: {} for name in ("facts", "sums", "counts", "most", "least", "totals")}
    combined["facts"]["facts"] = []
    for note in sorted(notes):
        for part, numbers in pickle.loads(note).items():  # noqa: S301  # from a `Job`
            if part == "error":
                ((name, message),) = numbers.items()
                raise getattr(errors, name, errors.InternalError)(message)
            combined_part, add = combined.setdefault(part, {}), operations.get(part, operator.add)
            for name, n in numbers.items():
                combined_part[name] = add(combined_part[name], n) if name in combined_part else n
    return combined


def _table(types: Mapping[str, str], columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    names = {"bigint": "int64", "int": "int32", "tinyint": "int8"}
    kinds = {name: pa.type_for_alias(names.get(kind, kind)) for name, kind in types.items()}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


def row(note: Mapping[str, Any] | None = None, **cells: bytes | None) -> Any:
    """Return a row with the columns `CELLS`, some of them empty; the note is pickled."""
    import pyarrow as pa

    if note is not None:
        cells["note"] = pickle.dumps(note)
    return pa.RecordBatch.from_pydict(
        {name: pa.array([cells.get(name)], pa.binary()) for name in CELLS}
    )


def packed(table: Any) -> bytes:
    """Convert an Arrow table to bytes, which `unpacked` reads."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(cells: Iterable[Any]) -> Iterator[Any]:
    """Yield the tables in the cells of an Arrow column."""
    import pyarrow as pa

    for cell in cells:
        yield pa.ipc.open_stream(cell.as_buffer()).read_all()


def blocks(batches: Iterable[Any], block_bytes: int = BLOCK_BYTES) -> Iterator[Any]:
    """Combine batches into tables of about `block_bytes`, without splitting a user's rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    size = 0
    for batch in batches:
        many = batch.column("many").drop_null()
        if len(many):
            user = batch.column("u").filter(batch.column("many").is_valid())[0].as_py()
            raise tables.too_many_rows(user, many[0].as_py())
        step = max(1, batch.num_rows * block_bytes // max(batch.nbytes, 1))
        for begin in range(0, batch.num_rows, step):
            waiting.append(batch.slice(begin, step))
            size += waiting[-1].nbytes
            if size >= block_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _least(sides: list[Array | None]) -> int | None:
    """Return the smallest id as an integer, or None; of string ids, only "0" and "1" count."""
    arrays = [ids for ids in sides if ids is not None and len(ids)]
    if any(ids.dtype == object for ids in arrays):
        return next((n for n in (0, 1) if any((ids == str(n)).any() for ids in arrays)), None)
    return min((int(ids.min()) for ids in arrays), default=None)


def run_job(job: Any, frame: Frame, shared: str | None = None) -> Frame:
    """Run a job on the batches of each partition; return a DataFrame with the columns `CELLS`.

    A large job is written to a file in the folder `shared`, which all executors can read. If
    `shared` is None, Spark copies the file to every executor.
    """
    from pyspark import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    plain = cloudpickle.dumps(job, protocol=5, buffer_callback=arrays.append)
    name, content, digest = f"recometer-{uuid.uuid4().hex}.job", None, b""
    if len(plain) + sum(array.raw().nbytes for array in arrays) <= IN_CALL:
        content = cloudpickle.dumps(job, protocol=5)
    elif shared is not None:
        name = os.path.join(os.path.abspath(shared), name)
        digest = _write(name, plain, arrays)
    else:
        if not _folders:
            _folders.append(tempfile.TemporaryDirectory(prefix="recometer-"))
        path = os.path.join(_folders[0].name, name)
        digest = _write(path, plain, arrays)
        frame.sparkSession.addArtifacts(path, file=True)
    run = _runner(content, name, digest, __version__, tables.INSTALL)
    return frame.mapInArrow(run, ", ".join(f"{cell} binary" for cell in CELLS))


def _runner(
    content: bytes | None, name: str, digest: bytes, version: str, install: str
) -> Callable[[Any], Iterator[Any]]:
    """Return a function that checks the version of recometer on an executor and runs the job."""

    def run(batches: Any) -> Iterator[Any]:
        # Spark pickles this function by value, so it must not use any name from this module.
        import pickle

        import pyarrow as pa

        try:
            from recometer.version import __version__

            installed = f"recometer {__version__}"
        except ImportError as error:
            installed = f"no recometer ({error})"
        if installed != f"recometer {version}":
            text = f"An executor has {installed}, but the driver has recometer {version}. {install}"
            note = pickle.dumps({"error": {"InputError": text}})
            cells = {"note": note, "users": None, "items": None}
            columns = {key: pa.array([cell], pa.binary()) for key, cell in cells.items()}
            yield pa.RecordBatch.from_pydict(columns)
            return
        from recometer.spark.block import results_of

        yield from results_of(content, name, digest, batches)

    return run


def results_of(content: bytes | None, name: str, digest: bytes, batches: Any) -> Iterator[Any]:
    """Run a pickled job on an executor; without `content`, load the job from the file `name`."""
    if name not in _jobs:
        job = pickle.loads(content) if content is not None else _read(name, digest)  # noqa: S301
        _jobs.clear()
        _jobs[name] = job
    warnings.simplefilter("ignore", DataWarning)  # the driver warns once, for all blocks
    try:
        yield from _jobs[name](batches)
    except RecometerError as error:
        # Return the error as a row: Spark would retry a failed task and bury the message.
        yield row({"error": {type(error).__name__: str(error)}})


def _write(path: str, plain: bytes, arrays: list[pickle.PickleBuffer]) -> bytes:
    """Write a pickled job and its arrays to a file, and return the SHA-256 of the job."""
    import pyarrow as pa

    schema = pa.schema([("bytes", pa.uint8())])
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for part in (memoryview(plain), *(array.raw() for array in arrays)):
                column = pa.array(np.asarray(part, np.uint8))
                writer.write(pa.record_batch([column], schema=schema))
    except OSError as error:
        raise FileError(
            f"The item factors could not be written to {path}: {os.strerror(error.errno or 0)}. "
            "Hint: shared= must name a folder with enough space that all executors can access."
        ) from None
    return hashlib.sha256(plain).digest()


def _read(name: str, digest: bytes) -> Any:
    """Load a job by mapping its file into memory; its arrays are views of the file."""
    import pyarrow as pa
    from pyspark import SparkFiles

    path = name if os.path.isabs(name) else SparkFiles.get(name)
    file = pa.ipc.open_file(pa.memory_map(path))
    plain, *arrays = (
        file.get_batch(number).column(0).to_numpy() for number in range(file.num_record_batches)
    )
    if hashlib.sha256(plain).digest() != digest:
        raise FileError(
            f"{path} differs from what the driver wrote. Hint: shared= must name a folder in which "
            "nobody else writes."
        )
    return pickle.loads(plain, buffers=arrays)  # noqa: S301
