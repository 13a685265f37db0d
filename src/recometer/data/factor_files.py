"""Reads factor models from NumPy arrays with separate id files, or from Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from recometer.arrays import Array
from recometer.data import ids
from recometer.data.array_files import DAMAGED, open_array
from recometer.data.cells import integers
from recometer.data.columns import REQUIRED, common_names
from recometer.data.files import column_names, open_text, read_columns
from recometer.data.interactions import Interactions
from recometer.data.paths import check_file
from recometer.data.unpacking import check_archive
from recometer.errors import ColumnError, FileError, InputError, python_or_command

if TYPE_CHECKING:
    import polars as pl

POSITIONS = "positions"  # passed instead of an id file if the ids are the row numbers
ARRAYS = ("user_factors", "item_factors", "user_bias", "item_bias", "user_ids", "item_ids")
Note = Callable[[str], object]


def read_factors(
    paths: Sequence[str],
    test: Interactions | None,
    columns: Mapping[str, str | None],
    note: Note,
) -> dict[str, Any]:
    """Read the arguments of `Factors` from files; see `Factors.from_files`.

    `columns` maps ``"user"`` and ``"item"`` to the names of their id columns, or to None. `note` is
    called with notes for the user.
    """
    if is_archive(paths[0]):
        arrays = _from_archive(paths[0], note)
        sources, of_ids = (paths[0], paths[0]), paths[1:]
    else:
        arrays, sources, of_ids = {}, (paths[0], paths[1]), paths[2:]
        for kind, path in zip(REQUIRED, sources, strict=True):
            arrays[f"{kind}_factors"], row_ids = _matrix(Path(path), kind, columns[kind])
            if row_ids is not None:
                arrays[f"{kind}_ids"] = row_ids
    for kind, path, ids_path in zip(REQUIRED, sources, [*of_ids, "", ""], strict=False):
        test_ids, name, n_rows = (
            ids_of_test(test, kind),
            f"{kind}_ids",
            len(arrays[f"{kind}_factors"]),
        )
        if ids_path and name in arrays:
            owner = f"{kind} ids" if is_archive(path) else "ids"
            raise InputError(f"{path} already contains {owner}. Hint: leave out {ids_path}.")
        if ids_path == POSITIONS:
            arrays[name] = _positions(path, kind, test_ids, n_rows)
            if not is_archive(path):
                note(f"{path}: its rows are the {kind}s 0 to {n_rows - 1:,}")
        elif ids_path:
            arrays[name] = read_ids(Path(ids_path), kind, columns[kind], test_ids)
        elif name not in arrays and test_ids is not None:
            _refuse_positions(path, kind, test_ids)
    return arrays


def is_archive(path: str) -> bool:
    """Return whether a file is an archive of arrays, judging by its name."""
    return path.lower().endswith(".npz")


def _from_archive(path: str, note: Note) -> dict[str, Any]:
    """Return the arrays in an archive that are arguments of `Factors`."""
    check_file(Path(path))
    try:
        check_archive(Path(path))
        with np.load(path, allow_pickle=False) as archive:
            unread = [name for name in archive.files if name not in ARRAYS]
            arrays = {name: archive[name] for name in ARRAYS if name in archive.files}
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(
            f"{path} cannot be read as an archive of arrays: {error}. Hint: numpy.savez(path, "
            "user_factors=..., item_factors=..., user_ids=..., item_ids=...) writes one; arrays of "
            "Python objects are not read: pass strings as user_ids.tolist()."
        ) from error
    for name in ARRAYS[:2]:
        if name not in arrays:
            raise InputError(
                f"{path} holds no array {name!r}. Hint: the arrays are called {', '.join(ARRAYS)}."
            )
    if unread:
        note(f"{path}: not read: {', '.join(unread)}")
    return arrays


def _refuse_positions(path: str, kind: str, test_ids: Array) -> NoReturn:
    example = f", such as {ids.show(test_ids, 0)}" if len(test_ids) else ""
    files, positions = _usage()
    raise InputError(
        f"{path} has no {kind} ids, but test has them{example}: its rows are positions, which "
        f"cannot be matched to ids. Hint: add ID files, {files}; or, if the ids count the rows "
        f"from 0, {positions}."
    )


def _usage() -> tuple[str, str]:
    """Return how to pass id files and how to pass positions, for use in hints."""
    call = python_or_command("Factors.from_files({})", "--factors NAME={}")
    listed = python_or_command(", ", ",")
    files = ("USERS", "ITEMS", "USER_IDS", "ITEM_IDS")
    word = python_or_command(repr(POSITIONS), POSITIONS)
    return call.format(listed.join(files)), call.format(listed.join((*files[:2], word, word)))


def _matrix(path: Path, kind: str, column: str | None) -> tuple[Array, object]:
    """Return the factors and, if the file has any, the ids of their rows."""
    if path.name.lower().endswith(".npy"):
        array = open_array(path, "factors")
        if array.ndim != 2:
            raise InputError(
                f"{path} holds an array of shape {array.shape}. Hint: factors have the shape "
                f"[n_{kind}s, n_factors]."
            )
        return array, None
    if path.name.lower().endswith(".parquet"):
        return _from_parquet(path, kind, column)
    check_file(path)
    raise FileError(
        f"{path} has an extension that is not supported for factors. Hint: supported are .npy and "
        ".parquet."
    )


def _from_parquet(path: Path, kind: str, column: str | None) -> tuple[Array, object]:
    import polars as pl

    frame = read_columns(path)
    key = id_column(path, frame.columns, kind, column)
    factors = frame.drop(key)
    nested = [
        name for name in factors.columns if isinstance(factors[name].dtype, pl.List | pl.Array)
    ]
    if len(nested) > 1:
        raise ColumnError(
            f"{path}: several columns hold lists: {', '.join(nested)}. Hint: keep the one with the "
            "factors."
        )
    if nested:
        return _from_lists(path, factors[nested[0]]), frame[key]
    wrong = [name for name in factors.columns if not factors[name].dtype.is_numeric()]
    if wrong or not factors.width:
        content = f"the column {wrong[0]!r} of {factors[wrong[0]].dtype}" if wrong else "ids alone"
        raise ColumnError(
            f"{path}: expected factors in addition to the ids (column {key!r}), found {content}. "
            "Hint: use one column of lists, or a column of numbers for each factor."
        )
    return factors.to_numpy(), frame[key]


def _from_lists(path: Path, column: pl.Series) -> Array:
    import polars as pl

    lists = column.cast(pl.List(column.dtype.inner))  # type: ignore[attr-defined]
    lengths = lists.list.len()
    if lists.null_count() or lengths.n_unique() > 1:
        odd = int((lengths != lengths[0]).fill_null(True).arg_true()[0]) if len(lists) else 0
        raise InputError(
            f"{path}: row {odd} (counted from 0) of column {column.name!r} holds "
            f"{lengths[odd] or 'no'} factors, but the first row holds {lengths[0] or 'none'}. "
            "Hint: every row needs the same number."
        )
    width = int(lengths[0]) if len(lists) else 0
    if not width:
        return np.zeros((len(lists), 0))
    flat: Array = lists.explode().to_numpy()
    return flat.reshape(len(lists), width)


def _positions(path: str, kind: str, test_ids: Array | None, n_rows: int) -> Array:
    """Return the row numbers as ids; raise an error if the test ids cannot be row numbers."""
    if test_ids is None or not len(test_ids):
        return np.arange(n_rows)
    if ids.kind(test_ids) != "int":
        raise InputError(
            f"{POSITIONS}: the rows of {path} are the {kind}s 0, 1, 2, ..., but the test {kind}s "
            f"are of type {ids.kind(test_ids)}, such as {ids.show(test_ids, 0)}. Hint: add ID "
            f"files: {_usage()[0]}."
        )
    outside = (test_ids < 0) | (test_ids >= n_rows)
    if outside.any():
        raise InputError(
            f"{POSITIONS}: {path} has {kind}s 0 to {n_rows - 1:,}, but test has {kind} "
            f"{test_ids[outside][0]}. Hint: are the test ids numbered from 1, or not numbered? ID "
            f"files list the ids of the rows: {_usage()[0]}."
        )
    return np.arange(n_rows)


def ids_of_test(test: Interactions | None, kind: str) -> Array | None:
    """Return the user or item ids of the test data; None if there are no test data or no ids."""
    return None if test is None else {"user": test.user_ids, "item": test.item_ids}[kind]


def read_ids(path: Path, kind: str, column: str | None, test_ids: Array | None) -> object:
    """Read user or item ids from text with one id per line, a NumPy array or a table.

    In a table, the ids are in `column` or, failing that, in the column with a common name or the
    only column. If `test_ids` are strings, ids in text files stay strings, even if they look like
    numbers.
    """
    name = path.name.lower()
    if name.endswith(".npy"):
        return ids.as_ids(open_array(path, f"{kind} ids"), f"{kind} ids of {path}")
    if name.endswith(".txt"):
        return _from_text(path, test_ids)
    key = id_column(path, column_names(path), kind, column)
    return adapt(read_columns(path, [key])[key], test_ids)


def _from_text(path: Path, test_ids: Array | None) -> pl.Series:
    import polars as pl

    check_file(path)
    with open_text(path) as file:
        # Do not use splitlines(), which also splits at characters that ids may contain.
        lines = file.read().removesuffix("\n").split("\n")
    return adapt(pl.Series("id", lines, dtype=pl.String), test_ids)


def id_column(path: Path, names: list[str], kind: str, column: str | None) -> str:
    """Return `column` if present; else the column with a common name (or "id") or the only one."""
    if column in names:
        return str(column)
    candidates = common_names(kind, names) or [name for name in names if name.lower() == "id"]
    if len(candidates) == 1:
        return candidates[0]
    if len(names) == 1:
        return names[0]
    noun = "several columns" if candidates else "no column"
    raise ColumnError(
        f"{path}: {noun} could hold the {kind} ids. Hint: name the right one with "
        f"{python_or_command(f'{kind}=', f'--{kind}')}. Columns: {', '.join(names)}."
    )


def adapt(series: pl.Series, test_ids: Array | None) -> pl.Series:
    """Convert ids to strings or numbers to match the test ids, if no information is lost.

    Whole numbers become strings if the test ids are strings. Otherwise, strings become numbers
    if all of them are written as plain integers.
    """
    import polars as pl

    if isinstance(series.dtype, pl.Struct):
        parts = series.struct.fields
        test_parts = ids.split_pairs(test_ids) if ids.are_pairs(test_ids) else (None, None)
        fields = [
            adapt(series.struct.field(p), test_part)
            for p, test_part in zip(parts, test_parts, strict=True)
        ]
        return pl.DataFrame(fields).to_struct(series.name)
    if ids.are_pairs(test_ids):
        test_ids = ids.split_pairs(test_ids)[0]
    if test_ids is not None and len(test_ids) and ids.kind(test_ids) == "str":
        return series.cast(pl.String) if series.dtype.is_integer() else series
    return integers(series) if series.dtype == pl.String else series


def frame_like(columns: Mapping[str, Any], test: Interactions | None) -> pl.DataFrame:
    """Make a data frame; convert its user and item ids to the types of the test ids."""
    import polars as pl

    id_columns = {kind: adapt(columns[kind], ids_of_test(test, kind)) for kind in REQUIRED}
    return pl.DataFrame({**columns, **id_columns})


def same_kinds(source_ids: object, test_ids: Array | None) -> bool:
    """Return whether both sides have ids of the same types; True if either side has no ids."""
    if not isinstance(source_ids, np.ndarray) or test_ids is None:
        return True
    if not len(source_ids) or not len(test_ids):
        return True
    return ids.kinds(source_ids) == ids.kinds(ids.drop_sessions(test_ids, source_ids))
