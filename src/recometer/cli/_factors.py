"""Factor models in files: NumPy arrays beside files of ids, or Parquet files that hold both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from recometer.arrays import Array
from recometer.cli._text import Note
from recometer.data import ids, sessions
from recometer.data.array_files import DAMAGED, open_array
from recometer.data.cells import integers
from recometer.data.columns import REQUIRED, common_names
from recometer.data.files import check_file, column_names, read_columns
from recometer.data.interactions import Interactions
from recometer.data.texts import DAMAGED as DAMAGED_TEXT
from recometer.data.texts import open_text
from recometer.data.unpacking import check_archive
from recometer.errors import ColumnError, FileError, InputError
from recometer.sources.factors import Factors

if TYPE_CHECKING:
    import polars as pl

USAGE = "USERS,ITEMS[,USER_IDS,ITEM_IDS] or NPZ[,USER_IDS,ITEM_IDS]"
POSITIONS = "positions"  # in place of a file of ids: the ids count the rows


def read_factors(
    paths: Sequence[str],
    test: Interactions | None,
    note: Note,
    columns: Mapping[str, str | None],
) -> Factors:
    """Read a factor model from files of the users, of the items, and of the ids of both.

    The last two may be missing or empty. Factors are a NumPy array (.npy, memory-mapped), or a
    Parquet file with a column of ids and the factors in one column of lists or in columns of
    numbers. Ids are text with one per line, a NumPy array, a column of a table, or the word
    ``positions``: they count the rows from 0. Those of test say whether ids in text are numbers,
    and whether they can be positions. In place of the first two there may be an archive of arrays
    (.npz), which are called as the parameters of `Factors` are.
    """
    if is_archive(paths[0]):
        return _from_archive(paths, test, note, columns)
    users, items, user_ids, item_ids = [*paths, "", ""][:4]
    sides = (
        ("user", users, user_ids, known_ids(test, "user")),
        ("item", items, item_ids, known_ids(test, "item")),
    )
    matrices, names = [], []
    for what, path, ids_path, known in sides:
        matrix, own = _matrix(Path(path), what, columns[what])
        matrices.append(matrix)
        if own is not None and ids_path:
            raise InputError(f"{path} has ids of its own. Hint: leave out {ids_path}.")
        if ids_path == POSITIONS:
            own = _positions(path, what, known, len(matrix))
            note(f"{path}: its rows are the {what}s 0 to {len(matrix) - 1:,}")
        elif ids_path:
            own = read_ids(Path(ids_path), what, columns[what], known)
        names.append(own)
    for (what, path, _, known), own in zip(sides, names, strict=True):
        if own is None and not (test is not None and known is None):
            _lacking(path, what, known)
    return Factors(matrices[0], matrices[1], user_ids=names[0], item_ids=names[1])


def is_archive(path: str) -> bool:
    """Return whether a file is an archive of arrays, by its name."""
    return path.lower().endswith(".npz")


def _from_archive(
    paths: Sequence[str],
    test: Interactions | None,
    note: Note,
    columns: Mapping[str, str | None],
) -> Factors:
    """Read a factor model from an archive of arrays, and perhaps files of ids."""
    path, *of_ids = paths
    check_file(Path(path))
    known = list(inspect.signature(Factors).parameters)
    try:
        check_archive(Path(path))
        with np.load(path, allow_pickle=False) as archive:
            unread = [name for name in archive.files if name not in known]
            given: dict[str, Any] = {name: archive[name] for name in known if name in archive.files}
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(
            f"{path} cannot be read as an archive of arrays: {error}. Hint: numpy.savez(path, "
            "user_factors=..., item_factors=..., user_ids=..., item_ids=...) writes one; arrays of "
            "Python objects are not read: give texts as user_ids.tolist()."
        ) from error
    for name in known[:2]:
        if name not in given:
            raise InputError(
                f"{path} holds no array {name!r}. Hint: the arrays are called {', '.join(known)}."
            )
    if unread:
        note(f"{path}: not read: {', '.join(unread)}")
    for what, factors, file in zip(REQUIRED, known, [*of_ids, "", ""], strict=False):
        ids_of_test = known_ids(test, what)
        name = f"{what}_ids"
        if file and name in given:
            raise InputError(f"{path} has {what} ids of its own. Hint: leave out {file}.")
        if file == POSITIONS:
            given[name] = _positions(path, what, ids_of_test, len(given[factors]))
        elif file:
            given[name] = read_ids(Path(file), what, columns[what], ids_of_test)
        elif name not in given and ids_of_test is not None:
            _lacking(path, what, ids_of_test)
    return Factors(given.pop(known[0]), given.pop(known[1]), **given)


def _lacking(path: str, what: str, known: Array | None) -> NoReturn:
    example = "" if known is None or not len(known) else f", such as {ids.show(known, 0)}"
    raise InputError(
        f"{path} has no {what} ids, but test has{example}: its rows are positions, and nothing "
        "says which is which. Hint: add files of ids, --factors "
        "NAME=USERS,ITEMS,USER_IDS,ITEM_IDS; or, if the ids count the rows from 0, --factors "
        f"NAME=USERS,ITEMS,{POSITIONS},{POSITIONS}."
    )


def known_ids(test: Interactions | None, what: str) -> Array | None:
    """Return the ids of test's users or items, if there is one that has ids."""
    found: Array | None = None if test is None else getattr(test, f"{what}_ids")
    return found


def read_ids(path: Path, what: str, column: str | None, known: Array | None) -> object:
    """Read ids of users or items: text with one per line, a NumPy array, or a table's column.

    That is the column that was asked for, one with a common name, or the only one. Where the ids
    of test (`known`) are texts, ids in text stay texts, even if written as numbers.
    """
    name = path.name.lower()
    if name.endswith(".npy"):
        return ids.as_ids(open_array(path, f"{what} ids"), f"{what} ids of {path}")
    if name.endswith(".txt"):
        return _from_text(path, known)
    own = _id_column(path, column_names(path), what, column)
    series = read_columns(path, [own])[own]
    return like(series, known)


def _matrix(path: Path, what: str, column: str | None) -> tuple[Array, object]:
    """Return factors, and their ids where the file has them."""
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
        f"{path} has an extension that is not read as factors. Hint: known are .npy and .parquet."
    )


def _from_parquet(path: Path, what: str, column: str | None) -> tuple[Array, object]:
    import polars as pl

    frame = read_columns(path)
    own = _id_column(path, frame.columns, what, column)
    rest = frame.drop(own)
    nested = [name for name in rest.columns if isinstance(rest[name].dtype, pl.List | pl.Array)]
    if nested:
        if len(nested) > 1:
            raise ColumnError(
                f"{path}: several columns hold lists: {', '.join(nested)}. Hint: keep the one "
                "with the factors."
            )
        return _from_lists(path, rest[nested[0]]), frame[own]
    wrong = [name for name in rest.columns if not rest[name].dtype.is_numeric()]
    if wrong or not rest.width:
        found = f"the column {wrong[0]!r} of {rest[wrong[0]].dtype}" if wrong else "ids alone"
        raise ColumnError(
            f"{path}: expected factors in addition to the ids (column {own!r}), found {found}. "
            "Hint: one column of lists, or a column of numbers for each factor."
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
            f"{lengths[odd] or 'no'} factors, the first row {lengths[0] or 'none'}. "
            "Hint: every row needs the same number."
        )
    width = int(lengths[0]) if len(lists) else 0
    if not width:
        return np.zeros((len(lists), 0))
    flat: Array = lists.explode().to_numpy()
    return flat.reshape(len(lists), width)


def _from_text(path: Path, known: Array | None) -> pl.Series:
    import polars as pl

    check_file(path)
    try:
        with open_text(path) as file:
            # Not splitlines(): it also splits at characters that an id may hold.
            lines = file.read().removesuffix("\n").split("\n")
    except FileError:
        raise
    except DAMAGED_TEXT as error:
        raise FileError(
            f"{path} cannot be read as text: {error}. Hint: it must be UTF-8."
        ) from None
    return like(pl.Series("id", lines, dtype=pl.String), known)


def like(series: pl.Series, known: Array | None) -> pl.Series:
    """Return ids as texts or numbers, as those of test are, if nothing is lost.

    Whole numbers become texts where those of test are; texts, if every one is written as a
    plain integer, become numbers unless those of test are texts.
    """
    import polars as pl

    if isinstance(series.dtype, pl.Struct):
        parts = series.struct.fields
        like_parts = sessions.split_pairs(known) if sessions.are_pairs(known) else (None, None)
        fields = [
            like(series.struct.field(p), one) for p, one in zip(parts, like_parts, strict=True)
        ]
        return pl.DataFrame(fields).to_struct(series.name)
    if sessions.are_pairs(known):
        known = sessions.split_pairs(known)[0]
    if known is not None and len(known) and ids.kind(known) == "str":
        return series.cast(pl.String) if series.dtype.is_integer() else series
    return integers(series) if series.dtype == pl.String else series


def _id_column(path: Path, names: list[str], what: str, column: str | None) -> str:
    """Find the column of ids: asked for, with a common name or called id, or the only one."""
    if column in names:
        return str(column)
    near = common_names(what, names) or [name for name in names if name.lower() == "id"]
    if len(near) == 1:
        return near[0]
    if len(names) == 1:
        return names[0]
    found = "several columns" if near else "no column"
    raise ColumnError(
        f"{path}: {found} could hold the {what} ids. Hint: --{what} names it. Columns: "
        f"{', '.join(names)}."
    )


def _positions(path: str, what: str, known: Array | None, n_rows: int) -> Array:
    """Return the numbers of the rows as their ids; refuse ids of test that cannot be such."""
    if known is None or not len(known):
        return np.arange(n_rows)
    if ids.kind(known) != "int":
        raise InputError(
            f"{POSITIONS}: the rows of {path} are the {what}s 0, 1, 2, ..., but the {what}s of "
            f"test are of type {ids.kind(known)}, such as {ids.show(known, 0)}. Hint: add files "
            "of ids: --factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS."
        )
    outside = (known < 0) | (known >= n_rows)
    if outside.any():
        raise InputError(
            f"{POSITIONS}: {path} has the {what}s 0 to {n_rows - 1:,}, but test has the {what} "
            f"{known[outside][0]}. Hint: are the ids of test numbered from 1, or not at all? "
            "Files of ids say which row is whose: --factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS."
        )
    return np.arange(n_rows)
