"""Save splits in folders, as Parquet files and a JSON file with the settings."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from recometer import ragged
from recometer.arrays import Array
from recometer.data.interactions import Interactions
from recometer.data.paths import as_path, check_readable, is_replaced, unreadable
from recometer.data.storage import (
    DAMAGED,
    PLACEHOLDER,
    check_replaced,
    checksum_of,
    decode_ids,
    encode_ids,
    is_sealed,
    read_frame,
    seal,
)
from recometer.data.tensors import is_a
from recometer.errors import FileError, InputTypeError, python_or_command

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import polars as pl


VERSION = 1  # the version of the format; this code also reads all earlier versions
HEADER = "split.json"
PARTS = ("train", "test", "remainder")
FILES = tuple(f"{name}.parquet" for name in (*PARTS, "users", "all_users", "all_items"))
COMPLETE = ".recometer-new"  # the subfolder with a complete split that will replace the saved one


def check(folder: Path, inputs: Iterable[str] = ()) -> None:
    """Raise an error if saving a split in a folder would replace an input or unrelated files."""
    finish(folder)
    owned = _own_files(folder)
    paths = [folder / name for name in (HEADER, *FILES)]
    check_replaced(paths, lambda path: path.name in owned, inputs)
    # Saving replaces ordinary files at these paths, but never writes to a pipe or device.
    special = next((path for path in paths if not is_replaced(path)), None)
    if special is not None:
        raise FileError(
            f"{special} is not a regular file, so it is not replaced. Hint: choose an empty folder."
        )


def _own_files(folder: Path) -> set[str]:
    """Return the names of the files that belong to the split in a folder."""
    try:
        header = json.loads((folder / HEADER).read_bytes())
        names, kind = ["users", *header["parts"]], header["kind"]
        if isinstance(kind, dict):
            names += [f"all_{side}s" for side in ("user", "item") if kind[side] is not None]
    except (OSError, *DAMAGED):
        return set()
    return {HEADER, *(f"{name}.parquet" for name in names)}


def finish(folder: Path) -> None:
    """Replace the split in a folder with a new one, if one has been written in full.

    This is the last step of saving. After an interruption, the next access completes it.

    Raises
    ------
    FileError
        If the folder cannot be written to.
    """
    if as_path(folder / COMPLETE, "a split").is_dir():
        with locked(folder):
            _finish(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder while the block runs, so that no other process replaces the split in it.

    Where locks are not available (on Windows and in some network folders), checksums reveal that a
    split was replaced.
    """
    opened = None
    if fcntl is not None:
        with contextlib.suppress(OSError):
            opened = os.open(folder, os.O_RDONLY)
            fcntl.flock(opened, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if opened is not None:
            os.close(opened)


def _finish(folder: Path) -> None:
    new = folder / COMPLETE
    try:
        if new.is_symlink() or not new.is_dir():
            return
        owned = _own_files(new)
        if owned:  # without a header, which is moved last, no file is left to move
            for name in FILES:
                if name not in owned:
                    (folder / name).unlink(missing_ok=True)
            for name in (*FILES, HEADER):
                with contextlib.suppress(FileNotFoundError):  # the file was already moved
                    (new / name).replace(folder / name)
        new.rmdir()
    except FileNotFoundError:
        pass  # another process was faster
    except OSError as error:
        raise FileError(
            f"The split in {str(folder)!r} was saved, but the files of an earlier one could not be "
            f"replaced: {error}. Hint: make the folder writable and open it again."
        ) from error


def write(folder: Path, parts: Mapping[str, Any], users: Array, header: dict[str, Any]) -> None:
    """Write the parts of a split to temporary files, and then replace the old files with them."""
    check(folder)
    present = {name: part for name, part in parts.items() if part is not None}
    # Use a temporary folder, because the data may be read from the split that will be replaced.
    temporary = folder / f".recometer-{os.urandom(8).hex()}"
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        temporary.mkdir(parents=True)
        rows = isinstance(parts["train"], Interactions)
        kind = (_write_interactions if rows else _write_frames)(temporary, present)
        header = {"version": VERSION, "kind": kind, "parts": list(present), **header}
        header["users"], column = encode_ids(users)
        _write_frame(column.to_frame(), temporary / "users.parquet")
        header["files"] = {path.name: _checksum(path) for path in sorted(temporary.iterdir())}
        text = json.dumps({**header, "checksum": PLACEHOLDER}, indent=2) + "\n"
        (temporary / HEADER).write_bytes(seal(text.encode()))
        with locked(folder):
            _finish(folder)  # another process may just have written a split
            temporary.rename(folder / COMPLETE)
            _finish(folder)
    except FileError:
        raise
    except unreadable() as error:
        raise FileError(
            f"Cannot write the split to {str(folder)!r}: {error}. Hint: the folder must be "
            "writable and have enough space."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):  # keep the folder if it is not empty
            for path in new_folders:
                path.rmdir()


def _write_frame(frame: pl.DataFrame, path: Path) -> None:
    with path.open("wb") as file:  # Polars itself does not accept paths that are not UTF-8
        frame.write_parquet(file)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return checksum_of(file)


def _write_frames(folder: Path, parts: Mapping[str, Any]) -> str:
    import polars as pl

    kind = "lazy"
    sinks = []
    with contextlib.ExitStack() as opened:
        for name, part in parts.items():
            if not isinstance(part, pl.LazyFrame):
                kind = "frame"
                if is_a(part, "pandas", "DataFrame"):
                    kind = "pandas"
                part = _frame(part).lazy()
            file = opened.enter_context((folder / f"{name}.parquet").open("wb"))
            sinks.append(part.sink_parquet(file, lazy=True))
        pl.collect_all(sinks, engine="streaming")
    return kind


def _frame(part: Any) -> pl.DataFrame:
    """Return a part as a Polars frame that stays the same when it is written and read again."""
    import polars as pl

    hint = "Hint: convert the column before the split, for instance to strings" + python_or_command(
        "; splits of rm.Interactions.of(data) keep ids of any type.", "."
    )
    if is_a(part, "pandas", "DataFrame"):
        try:
            frame: pl.DataFrame = pl.from_pandas(part)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"The split cannot be written: {error}. {hint}") from error
        first = {str(name): column.dropna()[:1].tolist() for name, column in part.items()}
        wrong = [
            name
            for name, kind in frame.schema.items()
            if kind == pl.Binary and not all(isinstance(value, bytes) for value in first[name])
        ]
    else:
        frame = pl.DataFrame(part)
        wrong = [name for name, kind in frame.schema.items() if kind == pl.Object]
        if is_a(part, "pyarrow", "Table"):
            wrong = [field.name for field in part.schema if hasattr(field.type, "extension_name")]
    if wrong:
        raise InputTypeError(
            f"The column {wrong[0]!r} contains objects that Parquet files cannot store. {hint}"
        )
    return frame


def _write_interactions(folder: Path, parts: Mapping[str, Interactions]) -> dict[str, Any]:
    """Write the rows of each part, and all ids, including those without rows."""
    import polars as pl

    train = parts["train"]
    kind: dict[str, Any] = {"n_users": train.n_users, "n_items": train.n_items}
    columns: dict[str, pl.Series | None] = {}
    for side, ids in (("user", train.user_ids), ("item", train.item_ids)):
        kind[side], column = (None, None) if ids is None else encode_ids(ids)
        columns[side] = column
        if column is not None:
            _write_frame(column.alias(side).to_frame(), folder / f"all_{side}s.parquet")
    for name, part in parts.items():
        series = []
        positions: dict[str, Array] = {"user": ragged.users_of(part.indptr), "item": part.items}
        for side, codes in positions.items():
            column = columns[side]
            ids_of_rows = pl.Series(codes) if column is None else column.gather(pl.Series(codes))
            series.append(ids_of_rows.alias(side))
        for label, array in (("value", part.values), ("time", part.times)):
            if array is not None:
                series.append(pl.Series(label, array))
        _write_frame(pl.DataFrame(series), folder / f"{name}.parquet")
    return kind


@contextlib.contextmanager
def undamaged(folder: Path) -> Iterator[None]:
    """Replace any error raised in the block with one that says that the split is damaged."""
    try:
        yield
    except FileError:
        raise
    except unreadable() + DAMAGED as error:
        raise FileError(
            f"The split in {str(folder)!r} is damaged: {error}. Hint: {_hint()}"
        ) from error


def read(folder: Path) -> tuple[dict[str, Any], Array, dict[str, Any]]:
    """Return the parts by name, the tested users, and the header, as they were saved.

    Raise FileError if the folder contains no split, a damaged split, or one in a newer format.
    """
    finish(folder)
    with locked(folder):
        return _read(folder, _header(folder))


def _header(folder: Path) -> bytes:
    try:
        # Some editors insert a byte order mark before the text.
        return (folder / HEADER).read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError:
        if (folder / HEADER).exists():
            check_readable(folder / HEADER)
        if (folder / "fold_0" / HEADER).exists():
            raise FileError(
                f"{str(folder)!r} contains several folds. Hint: load one of them: "
                f"{str(folder / 'fold_0')!r}; rm.evaluate takes a list of several."
            ) from None
        raise FileError(f"There is no split in {str(folder)!r}. Hint: {_hint()}") from None


def _read(folder: Path, text: bytes) -> tuple[dict[str, Any], Array, dict[str, Any]]:
    with undamaged(folder):
        if not is_sealed(text):
            raise ValueError(f"{HEADER} does not match the checksum in it")
        header = json.loads(text)
        if header.pop("version") > VERSION:
            raise FileError(
                f"The split in {str(folder)!r} was written by a newer version of recometer, in a "
                "format that this version cannot read. Hint: pip install --upgrade recometer."
            )
        if unknown := [name for name in header["parts"] if name not in PARTS]:
            # Refuse other names: names become paths, which must not lead out of the folder.
            raise ValueError(f"no part is called {unknown[0]!r}")
        files = _Files(folder, header["files"])
        users = decode_ids(files.frame("users")["user"], header["users"])
        kind = header["kind"]
        parts: dict[str, Any] = dict.fromkeys(PARTS)
        if isinstance(kind, dict):
            parts.update(_read_interactions(files, header["parts"], kind))
        else:
            for name in header["parts"]:
                parts[name] = files.lazy(name) if kind == "lazy" else files.frame(name)
                if kind == "pandas":
                    parts[name] = parts[name].to_pandas()
    return parts, users, header


class _Files:
    """The files of a split, each of which stays open while it is verified and read.

    Two splits are therefore never mixed, even if another process replaces the split meanwhile.
    """

    def __init__(self, folder: Path, checksums: Mapping[str, str]) -> None:
        self._folder, self._checksums = folder, checksums

    def frame(self, name: str) -> pl.DataFrame:
        """Read a file of the split as a frame."""
        with self._verified(name) as file:
            return read_frame(self._folder / f"{name}.parquet", file)

    def lazy(self, name: str) -> pl.LazyFrame:
        """Return a lazy frame, which reads the verified file later."""
        import polars as pl

        with self._verified(name) as file:
            return pl.scan_parquet(file)

    def _verified(self, name: str) -> BinaryIO:
        path = self._folder / f"{name}.parquet"
        check_readable(path)
        file = path.open("rb")
        if checksum_of(file) != self._checksums[path.name]:
            file.close()
            raise ValueError(f"{path.name} does not match its checksum in {HEADER}")
        return file


def _read_interactions(
    files: _Files, parts: Sequence[str], kind: Mapping[str, Any]
) -> dict[str, Interactions]:
    ids: dict[str, Array | None] = {"user": None, "item": None}
    id_tables = {}
    for side in ids:
        if kind[side] is not None:
            table = files.frame(f"all_{side}s")
            ids[side] = decode_ids(table.to_series(), kind[side])
            id_tables[side] = table.with_columns(at=np.arange(len(table)))
    interactions = {}
    for name in parts:
        frame = files.frame(name)
        codes = {side: frame[side].to_numpy() for side in ids if side not in id_tables}
        for side, table in id_tables.items():
            places = frame.select(side).join(table, on=side, how="left", maintain_order="left")
            codes[side] = places["at"].to_numpy()
        interactions[name] = Interactions(
            indptr=ragged.indptr_of(np.bincount(codes["user"], minlength=kind["n_users"])),
            items=codes["item"].astype(np.int32),
            n_items=kind["n_items"],
            values=frame["value"].to_numpy() if "value" in frame.columns else None,
            times=frame["time"].to_numpy() if "time" in frame.columns else None,
            user_ids=ids["user"],
            item_ids=ids["item"],
        )
    return interactions


def _hint() -> str:
    return python_or_command(
        "rm.Split.load reads what split.save(folder) wrote.",
        "recometer split --out FOLDER writes splits.",
    )
