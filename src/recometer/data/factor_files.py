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
        for what, path in zip(REQUIRED, sources, strict=True):
            arrays[f"{what}_factors"], own = _matrix(Path(path), what, columns[what])
            if own is not None:
                arrays[f"{what}_ids"] = own
    for what, path, ids_path in zip(REQUIRED, sources, [*of_ids, "", ""], strict=False):
        known, name, n_rows = known_ids(test, what), f"{what}_ids", len(arrays[f"{what}_factors"])
        if ids_path and name in arrays:
            owner = f"{what} ids" if is_archive(path) else "ids"
            raise InputError(f"{path} already contains {owner}. Hint: leave out {ids_path}.")
        if ids_path == POSITIONS:
            arrays[name] = _positions(path, what, known, n_rows)
            if not is_archive(path):
                note(f"{path}: its rows are the {what}s 0 to {n_rows - 1:,}")
        elif ids_path:
            arrays[name] = read_ids(Path(ids_path), what, columns[what], known)
        elif name not in arrays and known is not None:
            _lacking(path, what, known)
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


def _lacking(path: str, what: str, known: Array) -> NoReturn:
    example = f", such as {ids.show(known, 0)}" if len(known) else ""
    files, positions = _ways()
    raise InputError(
        f"{path} has no {what} ids, but test has them{example}: its rows are positions, which "
        f"cannot be matched to ids. Hint: add ID files, {files}; or, if the ids count the rows "
        f"from 0, {positions}."
    )


def _ways() -> tuple[str, str]:
    """Return how to pass id files and how to pass positions, for use in hints."""
    call = python_or_command("Factors.from_files({})", "--factors NAME={}")
    listed = python_or_command(", ", ",")
    files = ("USERS", "ITEMS", "USER_IDS", "ITEM_IDS")
    word = python_or_command(repr(POSITIONS), POSITIONS)
    return call.format(listed.join(files)), call.format(listed.join((*files[:2], word, word)))


def _matrix(path: Path, what: str, column: str | None) -> tuple[Array, object]:
    """Return the factors and, if the file has any, the ids of their rows."""
    if path.name.lower().endswith(".npy"):
        array = open_array(path, "factors")
        if array.ndim != 2:
            raise InputError(
                f"{path} holds an array of shape {array.shape}. Hint: factors have the shape "
                f"[n_{what}s, n_factors]."
            )
        return array, None
    if path.name.lower().endswith(".parquet"):
        return _from_parquet(path, what, column)
    check_file(path)
    raise FileError(
        f"{path} has an extension that is not supported for factors. Hint: supported are .npy and "
        ".parquet."
    )


def _from_parquet(path: Path, what: str, column: str | None) -> tuple[Array, object]:
    import polars as pl

    frame = read_columns(path)
    own = id_column(path, frame.columns, what, column)
    rest = frame.drop(own)
    nested = [name for name in rest.columns if isinstance(rest[name].dtype, pl.List | pl.Array)]
    if len(nested) > 1:
        raise ColumnError(
            f"{path}: several columns hold lists: {', '.join(nested)}. Hint: keep the one with the "
            "factors."
        )
    if nested:
        return _from_lists(path, rest[nested[0]]), frame[own]
    wrong = [name for name in rest.columns if not rest[name].dtype.is_numeric()]
    if wrong or not rest.width:
        content = f"the column {wrong[0]!r} of {rest[wrong[0]].dtype}" if wrong else "ids alone"
        raise ColumnError(
            f"{path}: expected factors in addition to the ids (column {own!r}), found {content}. "
            "Hint: use one column of lists, or a column of numbers for each factor."
        )
    return rest.to_numpy(), frame[own]


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


def _positions(path: str, what: str, known: Array | None, n_rows: int) -> Array:
    """Return the row numbers as ids; raise an error if the test ids cannot be row numbers."""
    if known is None or not len(known):
        return np.arange(n_rows)
    if ids.kind(known) != "int":
        raise InputError(
            f"{POSITIONS}: the rows of {path} are the {what}s 0, 1, 2, ..., but the test {what}s "
            f"are of type {ids.kind(known)}, such as {ids.show(known, 0)}. Hint: add ID files: "
            f"{_ways()[0]}."
        )
    outside = (known < 0) | (known >= n_rows)
    if outside.any():
        raise InputError(
            f"{POSITIONS}: {path} has {what}s 0 to {n_rows - 1:,}, but test has {what} "
            f"{known[outside][0]}. Hint: are the test ids numbered from 1, or not numbered? ID "
            f"files list the ids of the rows: {_ways()[0]}."
        )
    return np.arange(n_rows)


def known_ids(test: Interactions | None, what: str) -> Array | None:
    """Return the user or item ids of the test data; None if there are no test data or no ids."""
    return None if test is None else {"user": test.user_ids, "item": test.item_ids}[what]


def read_ids(path: Path, what: str, column: str | None, known: Array | None) -> object:
    """Read user or item ids from text with one id per line, a NumPy array or a table.

    In a table, the ids are in `column` or, failing that, in the column with a common name or the
    only column. If the test ids (`known`) are strings, ids in text files stay strings, even if they
    look like numbers.
    """
    name = path.name.lower()
    if name.endswith(".npy"):
        return ids.as_ids(open_array(path, f"{what} ids"), f"{what} ids of {path}")
    if name.endswith(".txt"):
        return _from_text(path, known)
    own = id_column(path, column_names(path), what, column)
    return like(read_columns(path, [own])[own], known)


def _from_text(path: Path, known: Array | None) -> pl.Series:
    import polars as pl

    check_file(path)
    with open_text(path) as file:
        # Do not use splitlines(), which also splits at characters that ids may contain.
        lines = file.read().removesuffix("\n").split("\n")
    return like(pl.Series("id", lines, dtype=pl.String), known)


def id_column(path: Path, names: list[str], what: str, column: str | None) -> str:
    """Return `column` if present; else the column with a common name (or "id") or the only one."""
    if column in names:
        return str(column)
    near = common_names(what, names) or [name for name in names if name.lower() == "id"]
    if len(near) == 1:
        return near[0]
    if len(names) == 1:
        return names[0]
    which = "several columns" if near else "no column"
    raise ColumnError(
        f"{path}: {which} could hold the {what} ids. Hint: name the right one with "
        f"{python_or_command(f'{what}=', f'--{what}')}. Columns: {', '.join(names)}."
    )


def like(series: pl.Series, known: Array | None) -> pl.Series:
    """Convert ids to strings or numbers to match the test ids, if no information is lost.

    Whole numbers become strings if the test ids are strings. Otherwise, strings become numbers
    if all of them are written as plain integers.
    """
    import polars as pl

    if isinstance(series.dtype, pl.Struct):
        parts = series.struct.fields
        like_parts = ids.split_pairs(known) if ids.are_pairs(known) else (None, None)
        fields = [
            like(series.struct.field(p), known_part)
            for p, known_part in zip(parts, like_parts, strict=True)
        ]
        return pl.DataFrame(fields).to_struct(series.name)
    if ids.are_pairs(known):
        known = ids.split_pairs(known)[0]
    if known is not None and len(known) and ids.kind(known) == "str":
        return series.cast(pl.String) if series.dtype.is_integer() else series
    return integers(series) if series.dtype == pl.String else series


def frame_like(columns: Mapping[str, Any], test: Interactions | None) -> pl.DataFrame:
    """Make a data frame; convert its user and item ids to the types of the test ids."""
    import polars as pl

    alike = {what: like(columns[what], known_ids(test, what)) for what in REQUIRED}
    return pl.DataFrame({**columns, **alike})


def same_kinds(ids_of_source: object, known: Array | None) -> bool:
    """Return whether both sides have ids of the same types; True if either side has no ids."""
    if not isinstance(ids_of_source, np.ndarray) or known is None:
        return True
    if not len(ids_of_source) or not len(known):
        return True
    return ids.kinds(ids_of_source) == ids.kinds(ids.as_named_by(known, ids_of_source))
