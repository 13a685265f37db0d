"""The class `Catalogue`, which holds data about the items."""

from __future__ import annotations

import copy
import itertools
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.data import files, frames, ids
from recometer.data.cells import integers
from recometer.data.columns import (
    KINDS,
    check_column,
    check_unique,
    choose_columns,
    columns_of_groups,
)
from recometer.data.matching import both_have_ids
from recometer.data.numbers import all_numbers, as_array, plain
from recometer.errors import (
    InputError,
    InputTypeError,
    argument_text,
    brief,
    quantity,
)
from recometer.ragged import users_of

if TYPE_CHECKING:
    import scipy.sparse

Fetch = Callable[[str], Any]

MAX_ITEMS = 2**53  # float64 can represent all whole numbers up to this one
ROUNDING = 1e-9  # rounding errors may push a probability above 1 by this much
SEPARATOR = "|"  # separates an item's categories in a string


class Catalogue:
    """Data about the items: their ids, titles, categories, features and propensities.

    List metrics read it: ``rm.evaluate(..., catalogue=rm.Catalogue(frame, ...))``. It may
    contain items that a source does not know. It may also lack items that occur in lists; their
    data are then unknown.

    Parameters
    ----------
    items
        * the number of items, if the items are positions;
        * their ids: a list, an array, a series or a set;
        * a data frame from any library, a dict of columns, or the path of a Parquet, CSV or TSV
          file, with one row per item.
    item
        The id column. None selects the column with a common name, such as ``item_id`` or
        ``movieId``. False means that the items are the row positions.
    title
        The title column. None selects a column called title or name, if there is one; False selects
        none.
    categories
        The categories of each item: a column of lists, or of strings with ``|`` between the
        categories (``"Comedy|Drama"``; an empty string or a missing entry is not a category);
        one column of True and False (or 1 and 0) per category, named after the category; or a
        dense or sparse matrix [n_items, n_categories] of such entries. None selects a column
        called categories, genres or tags, if there is one; False selects none.
    features : optional
        Numbers that describe each item: a column of lists of equal length, several columns, or a
        matrix [n_items, n_features] (an array, a torch tensor or a sparse matrix). If an item has
        no list (or only NaN), its features are unknown.
    propensity : optional
        The probability that each item was observed (above 0 and at most 1), as a column or an
        array [n_items].

        Arrays and matrices must have one row per item, in the order of `items`.

    Attributes
    ----------
    item_ids : [n_items] or None
        Sorted and distinct; all other arrays are in this order. None if items are positions.
    n_items : int
    titles : object [n_items] or None
    categories : sparse bool [n_items, n_categories] or None
    category_names : tuple of str
        The column names of `categories`: sorted, or in the order in which they were passed.
    features : float64 [n_items, n_features], sparse of that shape, or None
    propensity : float64 [n_items] or None

    Raises
    ------
    InputError
        If there are no items, ids are missing or not distinct, the arguments differ in the number
        of items, or features or propensities are not finite.
    InputTypeError
        If the type of the data is not supported.
    ColumnError
        If a column does not exist, or several columns have common names for the same thing.
    FileError
        If a file cannot be read.

    Examples
    --------
    >>> import recometer as rm
    >>> catalogue = rm.Catalogue(
    ...     {"item_id": [7, 3], "title": ["Heat", "Toy Story"], "genres": ["Crime", "Comedy|Fun"]}
    ... )
    >>> catalogue
    <Catalogue: 2 items, titles, 3 categories>
    >>> catalogue.item_ids, catalogue.category_names
    (array([3, 7]), ('Comedy', 'Crime', 'Fun'))
    >>> catalogue.categories.toarray().astype(int)
    array([[1, 0, 1],
           [0, 1, 0]])
    """

    def __init__(
        self,
        items: object,
        *,
        item: str | bool | None = None,
        title: object = None,
        categories: object = None,
        features: object = None,
        propensity: object = None,
    ) -> None:
        items = frames.in_numpy(items, argument_text("catalogue"))
        table = NamedColumns.of(items)
        self.item_ids: Array | None = None
        order: Int64 | None = None
        if table is None:
            self.n_items: int = _size(items)
            if self.n_items < 0:
                order = self._take_ids(items)
            table = NamedColumns([], dict[str, Any]().__getitem__)
        elif item is False:
            self.n_items = len(table.fetch(table.names[0])) if table.names else 0
        else:
            chosen = choose_columns(table.names, {"item": item})["item"]
            assert chosen is not None
            table.used.append(chosen)
            order = self._take_ids(table.ids(chosen))
        if not self.n_items:
            raise InputError("The catalogue has no items.")
        self._order = order
        self.lists_all = True  # whether the catalogue has every item

        named = table.column(title, "title")
        self.titles: Array | None = None
        if named is not None:
            self.titles = self._aligned(_objects(named), "titles")
        self.categories: scipy.sparse.csr_array | None = None
        self.category_names: tuple[str, ...] = ()
        self._take_categories(table, categories)
        self.features: Float64 | scipy.sparse.csr_array | None = None
        if features is not None and features is not False:
            self._take_features(table, features)
        self.propensity: Float64 | None = None
        if propensity is not None and propensity is not False:
            if isinstance(propensity, str) and propensity in table.names:
                propensity = table.numbers(propensity, "propensities")
            self._take_propensity(table.column(propensity, "propensity"))

    @classmethod
    def of_groups(
        cls,
        item_groups: object,
        catalogue: object = None,
        *,
        column: str | None = None,
        item: str | None = None,
    ) -> Catalogue:
        """Return a catalogue that has the groups of the items as its categories.

        Parameters
        ----------
        item_groups, column, item
            As in `Evaluation.by_items`.
        catalogue
            The catalogue that supplies all other data, or anything that `Catalogue` takes as its
            `items`. Without it, the result may lack items.

        Raises
        ------
        InputError
            If there are no groups.
        InputTypeError
            If the type is not supported, or only one of the two arguments has ids.
        """
        groups = _of_groups(item_groups, column, item)
        if catalogue is None:
            result = copy.copy(groups)
            result.lists_all = False
            return result
        result = copy.copy(catalogue) if isinstance(catalogue, Catalogue) else cls(catalogue)
        result.categories = result._rows_of(groups)
        result.category_names = groups.category_names
        return result

    def _rows_of(self, other: Catalogue) -> scipy.sparse.csr_array:
        """Return another catalogue's categories, with rows in the order of this one's items."""
        import scipy.sparse

        if both_have_ids("item", "the catalogue", self.item_ids, "item_groups", other.item_ids):
            names = "item ids of the catalogue", "item ids of item_groups"
            row = ids.match(self.item_ids, other.item_ids, *names)
        else:
            row = np.where(np.arange(self.n_items) < other.n_items, np.arange(self.n_items), -1)
        assert other.categories is not None
        empty_row = scipy.sparse.csr_array((1, other.categories.shape[1]), dtype=bool)
        rows: Any = scipy.sparse.vstack([other.categories, empty_row], format="csr")
        return _sorted(rows[row])  # -1 selects the last row, which has no category

    def __len__(self) -> int:
        """Return the number of items."""
        return self.n_items

    def __repr__(self) -> str:
        return f"<Catalogue: {self.describe()}>"

    def describe(self) -> str:
        """Return a one-line description of the catalogue, such as ``"285 items, titles"``."""
        parts = [quantity(self.n_items, "item")]
        if self.titles is not None:
            parts.append("titles")
        if self.categories is not None:
            parts.append(quantity(self.categories.shape[1], "category", "categories"))
        if self.features is not None:
            parts.append(quantity(self.features.shape[1], "feature"))
        if self.propensity is not None:
            parts.append("propensities")
        return ", ".join(parts)

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that metrics depend on, keyed by name."""
        arrays: dict[str, object] = {
            "items": np.asarray(self.n_items) if self.item_ids is None else self.item_ids,
            "propensity": self.propensity,
        }
        for name in ("categories", "features"):
            matrix = getattr(self, name)
            if matrix is None or isinstance(matrix, np.ndarray):
                arrays[name] = matrix
            else:
                arrays |= {
                    f"{name}_{part}": getattr(matrix, part) for part in ("indptr", "indices")
                }
                arrays[name] = matrix.data
        return arrays

    def _take_ids(self, column: object) -> Int64 | None:
        """Sort the ids; return the order of the rows, or None if they are already sorted."""
        if isinstance(column, set | frozenset | range):
            column = list(column)
        codes, distinct = ids.encode(column, "item ids of the catalogue")
        if len(distinct) < len(codes):
            repeated = int(np.flatnonzero(np.bincount(codes) > 1)[0])
            raise InputError(
                f"The items of the catalogue must be distinct, but {ids.show(distinct, repeated)} "
                f"occurs {np.bincount(codes)[repeated]} times. Hint: pass one row per item."
            )
        self.item_ids, self.n_items = distinct, len(distinct)
        return None if (np.diff(codes) > 0).all() else np.argsort(codes)

    def _aligned(self, rows: Any, noun: str) -> Any:
        """Reorder rows (one per item) to match the sorted ids."""
        n = rows.shape[0]
        if n != self.n_items:
            raise InputError(
                f"The {noun} of the catalogue have {n:,} rows, but there are "
                f"{quantity(self.n_items, 'item')}. Hint: pass one row per item, in the order of "
                "the items."
            )
        return rows if self._order is None else rows[self._order]

    def _take_categories(self, table: NamedColumns, argument: Any) -> None:
        names: tuple[str, ...] = ()
        several = table.several(argument)
        if several is not None:
            names, columns = several, [plain(table.fetch(name)) for name in several]
            argument = np.column_stack(
                [_booleans(c, f"column {n!r}") for n, c in zip(names, columns, strict=True)]
            )
        else:
            argument = table.column(argument, "categories")
        if argument is None:
            return
        import scipy.sparse

        if scipy.sparse.issparse(argument) or getattr(argument, "ndim", 1) == 2:
            matrix: Any = (
                argument if scipy.sparse.issparse(argument) else _booleans(argument, "the matrix")
            )
            rows: Any = _sorted(matrix).astype(bool)
            rows.eliminate_zeros()
            names = names or tuple(map(str, range(rows.shape[1])))
        else:
            rows, names = _from_labels(_objects(argument))
        self.categories = _sorted(self._aligned(rows, "categories"))
        self.category_names = tuple(names)

    def _take_features(self, table: NamedColumns, argument: Any) -> None:
        import scipy.sparse

        several = table.several(argument)
        if several is not None:
            argument = np.column_stack([table.numbers(name, "features") for name in several])
        elif isinstance(argument, str):
            column = table.column(argument, "features")
            # Text files cannot contain lists.
            argument = (
                table.numbers(argument, "features")[:, np.newaxis]
                if table.text
                else _rows_of_lists(column, argument)
            )
        if scipy.sparse.issparse(argument):
            sparse: Any = _sorted(self._aligned(_sorted(argument), "features"))
            self.features = sparse.astype(np.float64)
            values = sparse.data[:, np.newaxis]
            row = users_of(sparse.indptr)
        else:
            dense = np.asarray(as_array(argument, "features="))
            if dense.ndim != 2 or dense.dtype.kind not in "fiub":
                raise InputTypeError(
                    f"features= has the shape {dense.shape} and the dtype {dense.dtype}, expected "
                    "numbers [n_items, n_features]. Hint: pass such an array, the name of a column "
                    "of lists, or the names of several columns."
                )
            dense = self.features = self._aligned(dense, "features").astype(np.float64)
            unknown = np.isnan(dense).all(axis=1)
            values = np.where(unknown[:, np.newaxis], 0, dense)
            row = np.arange(self.n_items)
        wrong = ~np.isfinite(values).all(axis=1)
        if wrong.any():
            raise InputError(
                f"The features of {np.count_nonzero(wrong):,} items are NaN or infinite; the first "
                f"is item {self._name(int(row[wrong][0]))}. Hint: fill them in, or set all "
                "features of an item to NaN if they are unknown."
            )

    def _take_propensity(self, propensities: Any) -> None:
        values = all_numbers(propensities, "propensities")
        if values.ndim != 1:
            raise InputError(
                f"propensity= has the shape {values.shape}, expected one number per item."
            )
        values = self._aligned(values, "propensities")
        # Rounding errors may push computed probabilities above 1.
        values = np.where((values > 1) & (values < 1 + ROUNDING), 1.0, values)
        wrong = ~((values > 0) & (values <= 1))
        if wrong.any():
            i = int(wrong.argmax())
            expected = "a number above 0."
            if values[i] > 1:
                expected = "at most 1: it is the probability that the item was observed. Hint: "
                expected += "divide counts by the number of users."
            raise InputError(
                f"The propensity of item {self._name(i)} is {values[i]:.12g}, expected {expected}"
            )
        self.propensity = values

    def _name(self, position: int) -> str:
        return str(position) if self.item_ids is None else ids.show(self.item_ids, position)


def _of_groups(item_groups: object, column: str | None, item: str | None) -> Catalogue:
    """Return a catalogue that has the groups of the items as its categories."""
    if isinstance(item_groups, str | os.PathLike) or frames.is_frame(item_groups):
        table = NamedColumns.of(item_groups)
        assert table is not None
        chosen, groups = columns_of_groups(table.names, "item", item, column)
        return Catalogue(table, item=chosen, title=False, categories=groups)
    if column is not None or item is not None:
        raise InputTypeError(
            "column= and item= name columns of a table, but the groups are of type "
            f"{type(item_groups).__name__}."
        )
    item_groups = frames.in_numpy(item_groups, "item_groups")
    if isinstance(item_groups, Mapping | list | tuple | np.ndarray):
        if not len(item_groups):
            raise InputError("item_groups is empty. Hint: pass the group of each item.")
        by_id = isinstance(item_groups, Mapping)
        labels = item_groups.values() if isinstance(item_groups, Mapping) else item_groups
        columns: dict[str, Any] = {"item": list(item_groups)} if by_id else {}
        columns["group"] = [[] if label is None else [str(label)] for label in labels]
        return Catalogue(columns, item="item" if by_id else False, title=False, categories="group")
    if not isinstance(item_groups, Catalogue):
        raise InputTypeError(
            f"item_groups is of type {type(item_groups).__name__}. Hint: pass a dict from item to "
            "group, an array with the group of each position, or rm.Catalogue(frame, "
            "categories=...)."
        )
    if item_groups.categories is None:
        raise InputError(
            "The catalogue in item_groups has no categories. Hint: rm.Catalogue(frame, "
            "categories=...)."
        )
    return item_groups


class NamedColumns:
    """Columns by name, from any kind of table."""

    def __init__(self, names: list[str], fetch: Fetch, *, text: bool = False) -> None:
        self.names = names
        self.fetch = fetch
        self.text = text  # whether all columns, numbers included, are strings
        self.used: list[str] = []

    @classmethod
    def of(cls, data: Any) -> NamedColumns | None:
        """Open a table unless it is already open; return None if the argument is not a table."""
        if isinstance(data, cls):
            return data
        if isinstance(data, str | os.PathLike):
            table = files.read_columns(data)
            text = str(data).lower().endswith(tuple(files.SEPARATORS))
            return cls(table.columns, table.get_column, text=text)
        if isinstance(data, Mapping):
            columns = {str(name): column for name, column in data.items()}
            return cls(list(columns), columns.__getitem__)
        if frames.is_frame(data):
            names, fetch = frames.open_frame(data)
            # Fetch in one call, because a lazy frame may return rows in a different order later.
            unique = [name for name in names if names.count(name) == 1]
            columns = dict(zip(unique, fetch(unique), strict=True))

            def get(name: str) -> Any:
                check_unique(name, names)
                return columns[name]

            return cls(names, get)
        return None

    def ids(self, name: str) -> Any:
        """Return a column of ids."""
        return integers(self.fetch(name)) if self.text else self.fetch(name)

    def numbers(self, name: str, noun: str) -> Float64:
        """Return a column of numbers."""
        column = self.fetch(name)
        if self.text:
            import polars as pl

            parsed = column.cast(pl.Float64, strict=False)
            column = parsed if parsed.null_count() == column.null_count() else column
        return all_numbers(column, f"{noun} (column {name!r})")

    def several(self, argument: Any) -> tuple[str, ...] | None:
        """Return a list of column names as a tuple; None if the argument is not such a list."""
        several = isinstance(argument, list | tuple) and argument and self.names
        if not several or not all(isinstance(name, str) for name in argument):
            return None
        wrong = [name for name in argument if name not in self.names]
        if len(wrong) == len(argument):
            return None  # the entries are labels, one per item
        for name in wrong:
            check_column("", name, self.names)
        return tuple(argument)

    def column(self, argument: object, option: str) -> Any:
        """Return the named column, the column with a common name, or the argument itself."""
        if argument is False:
            return None
        argument = frames.in_numpy(argument, f"{option}=")
        if isinstance(argument, str):
            check_column(option, argument, self.names)
            return self.fetch(argument)
        if argument is not None:
            if not hasattr(argument, "__len__") and not hasattr(argument, "__array__"):
                raise InputTypeError(
                    f"{argument_text(option)} is of type {type(argument).__name__}. Hint: pass the "
                    "name of a column, an entry for each item, or False for none."
                )
            return argument
        if option not in KINDS:
            return None
        unused = [name for name in self.names if name not in self.used]
        name = choose_columns(unused, {option: None}, required=())[option]
        return None if name is None else self.fetch(name)


def _size(items: object) -> int:
    """Return the number of items that was passed, or -1 if ids were passed."""
    if isinstance(items, numbers.Integral) and not isinstance(items, bool):
        if not 1 <= int(items) <= MAX_ITEMS:
            raise InputError(
                f"{argument_text('catalogue')} is {brief(items)}, expected a number of items from "
                f"1 to {MAX_ITEMS:,}."
            )
        return int(items)
    if not hasattr(items, "__len__"):
        raise InputTypeError(
            f"{argument_text('catalogue')} is of type {type(items).__name__}. Hint: pass the "
            "number of items, their ids as a list, an array or a column, or a rm.Catalogue."
        )
    return -1


def _objects(column: Any) -> Array:
    """Return the entries of a column, whatever their type, as an object array."""
    rows = column.to_list() if hasattr(column, "to_list") else list(column)
    objects = np.empty(len(rows), object)
    objects[:] = rows
    return objects


def _booleans(values: Any, noun: str) -> Bool:
    array = np.asarray(as_array(values, f"The categories ({noun})"))
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all():
        raise InputTypeError(
            f"The categories ({noun}) must be True and False, or 1 and 0, found {array.dtype}."
        )
    return array.astype(bool)


def _from_labels(rows: Array) -> tuple[scipy.sparse.csr_array, tuple[str, ...]]:
    """Make the category matrix and its column names from each row's labels (a string or a list)."""
    import scipy.sparse

    labels = [list(dict.fromkeys(_labels(row, n))) for n, row in enumerate(rows.tolist())]
    codes, names = ids.encode(list(itertools.chain.from_iterable(labels)), "categories")
    indptr, shape = np.cumsum([0, *map(len, labels)]), (len(rows), len(names))
    matrix = scipy.sparse.csr_array((np.ones(len(codes), bool), codes, indptr), shape=shape)
    return matrix, tuple(names.tolist())


def _labels(row: Any, number: int) -> Iterable[str]:
    if _is_missing(row):
        return []
    if isinstance(row, str):
        return [part.strip() for part in row.split(SEPARATOR) if part.strip()]
    if isinstance(row, Iterable):
        return [str(label) for label in row]
    if isinstance(row, numbers.Number):
        return [str(row)]
    raise InputTypeError(
        f"The categories in row {number} (counted from 0) are of type {type(row).__name__}. Hint: "
        f"pass a list of strings, or a string such as 'Comedy{SEPARATOR}Drama'."
    )


def _is_missing(entry: object) -> bool:
    return entry is None or (isinstance(entry, float) and entry != entry)


def _rows_of_lists(column: Any, name: str) -> Array:
    """Return a column of equally long lists as a matrix, with NaN where a list is missing."""
    if getattr(column, "ndim", 1) == 2:
        return np.asarray(column)
    rows = _objects(column)
    present = [i for i, row in enumerate(rows) if not _is_missing(row)]
    if present and isinstance(rows[present[0]], numbers.Number | str):
        return all_numbers(column, f"features (column {name!r})")[:, np.newaxis]
    lengths = [len(rows[i]) for i in present]
    if not lengths or min(lengths) < 1 or min(lengths) < max(lengths):
        found_lengths = "no list" if not lengths else f"lists of {min(lengths)} to {max(lengths)}"
        raise InputError(
            f"The features (column {name!r}) must be lists of equal length, found {found_lengths}."
        )
    matrix = np.full((len(rows), lengths[0]), np.nan)
    matrix[present] = np.array([np.asarray(rows[i], np.float64) for i in present])
    return matrix


def _sorted(matrix: Any) -> scipy.sparse.csr_array:
    """Return a matrix in CSR format, with sorted column indices in each row."""
    import scipy.sparse

    rows = scipy.sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows
