"""Code shared by the drop-ins, such as argument checks and evaluation under a convention."""

from __future__ import annotations

import functools
import numbers
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Float64
from recometer.data.interactions import Interactions
from recometer.data.matching import find_rows
from recometer.data.numbers import as_array
from recometer.errors import (
    DataWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    brief,
    did_you_mean,
)
from recometer.evaluation import Evaluation, evaluate
from recometer.measuring.compute import compute
from recometer.measuring.ranked import RankedUsers
from recometer.metrics.conventions import Convention, find_convention
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Source

Function = TypeVar("Function", bound=Callable[..., Any])


def convention_of(name: str) -> Convention:
    """Return the convention called `name`, which must exist."""
    convention = find_convention(name)
    assert convention is not None
    return convention


def evaluated(
    convention: str,
    source: Source,
    test: object,
    metrics: Iterable[str],
    *,
    threads: int | None = 1,
    **options: Any,
) -> Evaluation:
    """Evaluate a source under the convention of a library, including the library's defects.

    Like the library, a drop-in never warns, and never checks whether ids look like positions.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return evaluate(
            source,
            test,
            metrics=list(metrics),
            protocol=convention,
            threads=threads,
            progress=False,
            defects=True,
            shifted_ids="kept",
            **options,
        )


def values_of(
    convention: str, ranks: Ranks, metrics: Iterable[str], **rules: Any
) -> Mapping[str, Float64]:
    """Return the users' values for each metric under the convention of a library.

    Names and rules are parsed only once, because there may be many batches.
    """
    parsed, protocol = _parsed(convention, tuple(sorted(metrics)), tuple(sorted(rules.items())))
    return compute(RankedUsers(ranks), parsed, protocol)[0]


@functools.lru_cache(maxsize=64)
def _parsed(
    convention: str, metrics: tuple[str, ...], rules: tuple[tuple[str, Any], ...]
) -> tuple[list[Metric], Protocol]:
    listed = convention_of(convention)
    protocol = listed.protocol.replace(**dict(rules))
    return listed.parse(metrics, protocol), protocol


def counted_ranks(
    test: Interactions, lists: Array, n_items: int, filler: Float64 | None = None
) -> Ranks:
    """Return the ranks of the judged items in lists where a repeated item counts every time.

    The judged items are those in the test data, and all of them are relevant. The lists (integers
    [n_users, k]) contain item numbers, best first. The padding -1 is a miss, unless `filler`
    (float64 [n_users]) contains a positive gain for the user: the padding then counts as a relevant
    item with this gain.
    """
    (n_users, k), n_judged = lists.shape, len(test.items)
    indptr = np.arange(n_users + 1, dtype=np.int64) * k
    items = lists.astype(np.int32).reshape(-1)
    row_of_place = find_rows(indptr, items, test.indptr, test.items)
    places = np.flatnonzero(row_of_place >= 0)
    rows_found, (user, place) = row_of_place[places], np.divmod(places, k)
    missed = np.flatnonzero(np.bincount(rows_found, minlength=n_judged) == 0)
    rows = np.concatenate([rows_found, missed])
    above = np.concatenate([place, np.full(len(missed), -1)])
    owner = np.concatenate([user, ragged.users_of(test.indptr)[missed]])
    gains = np.ones(n_judged) if test.values is None else test.values
    gain, item = gains[rows], test.items[rows].astype(np.int64)
    if filler is not None and lists.min(initial=0) < 0:
        user, place = np.nonzero((lists < 0) & (filler[:, np.newaxis] > 0))
        owner, above = np.append(owner, user), np.append(above, place)
        gain = np.append(gain, filler[user])
        item, rows = (np.append(column, np.full(len(user), -1)) for column in (item, rows))
        order = np.lexsort((above, above < 0, owner))
    else:
        # Each user's found rows come before the missed ones, because the sort is stable.
        order = np.argsort(owner, kind="stable")
    rows, repeated = rows[order], None
    if len(rows) > n_judged:  # some items occur more than once
        repeated = np.ones(len(rows), dtype=bool)
        first = np.unique(rows, return_index=True)[1]
        repeated[first[rows[first] >= 0]] = False
    n_relevant = np.diff(test.indptr)
    return Ranks(
        indptr=ragged.indptr_of(np.bincount(owner, minlength=n_users)),
        item=item[order],
        above=above[order],
        tied=np.zeros(len(rows), np.int64),
        before=np.zeros(len(rows), np.int64),
        gain=gain[order],
        relevant=np.ones(len(rows), dtype=bool),
        n_relevant=n_relevant,
        n_candidates=np.full(n_users, n_items),
        n_excluded=np.zeros(n_users, np.int64),
        depth=np.full(n_users, k),
        flags=np.full(n_users, UserFlag.KNOWN, np.uint32),
        repeated=repeated,
        n_rankable=n_relevant,
        copies=None if test.copies is None else np.where(rows < 0, 1, test.copies[rows]),
    )


def ids_of(result: Evaluation) -> list[Any]:
    """Return the ids of the users, or their positions if there are no ids."""
    return [*range(len(result))] if result.user_ids is None else result.user_ids.tolist()


def tensor(value: Any) -> Any:
    """Convert a value to a float32 tensor, or to NumPy's float32 if torch is not imported."""
    torch = sys.modules.get("torch")
    return np.float32(value) if torch is None else torch.as_tensor(np.float32(value))


def unknown(library: str, noun: str, name: object, names: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that a drop-in does not know."""
    return UnknownNameError(
        f"The drop-in for {library} has no {noun} {name!r}. {did_you_mean(str(name), list(names))}"
    )


def row(name: str, doc: str) -> Callable[[Function], Function]:
    """Return a decorator that sets the name and the docstring of a generated function.

    `python tests/helpers/dropin_stubs.py` writes stubs of the generated functions for editors.
    """

    def rename(function: Function) -> Function:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        return function

    return rename


def whole_number(name: str, number: Any, least: int = 1) -> int:
    """Check that a number is an integer from `least` to 2^63 - 1, and return it."""
    is_whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not is_whole or not least <= number < 2**63:
        raise InputError(
            f"{name}={brief(number)} must be a whole number of at least {least} (below 2^63)."
        )
    return int(number)


def dict_of_dicts(name: str, data: Any, example: str) -> None:
    """Raise an error unless `data` is a dict of dicts."""
    if not isinstance(data, Mapping):
        raise InputTypeError(f"{name} is of type {type(data).__name__}, expected {example}.")
    for key, of in data.items():
        if type(of) is not dict and not isinstance(of, Mapping):
            raise InputTypeError(
                f"{name} has {type(of).__name__} for {brief(key)}, expected a dict as in {example}."
            )


def members_of(name: str, value: Any, kind: type = object) -> list[Any]:
    """Return the members of a sequence, which must all be of the type `kind`."""
    message = f"{name} is of type {type(value).__name__}, expected a list or set."
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputTypeError(message)
    try:
        members = list(value)
    except Exception as error:  # some iterables, such as sparse matrices, refuse to iterate
        raise InputTypeError(message) from error
    for member in members:
        if not isinstance(member, kind):
            raise InputTypeError(
                f"{name} has {brief(member)} of type {type(member).__name__}, expected "
                f"{kind.__name__}."
            )
    return members


def check_choice(name: str, value: Any, choices: Iterable[str | None]) -> None:
    """Raise an error unless the value of an option is one of the choices."""
    choices = list(choices)
    if not isinstance(value, str | None) or value not in choices:
        raise InputError(f"{name}={brief(value)} must be one of {choices}.")


def sparse_rows(name: str, matrix: Any, kind: str = "csr_array") -> Any:
    """Convert a sparse matrix or array to `kind`, the name of one of SciPy's CSR classes."""
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        or_array = " or array" if kind == "csr_array" else ""
        raise InputTypeError(
            f"{name} is of type {type(matrix).__name__}, but must be a sparse matrix{or_array}. "
            f"Hint: scipy.sparse.{kind}({name})."
        )
    return getattr(scipy.sparse, kind)(matrix)


def shape_of(name: str, array: Array, axes: str) -> None:
    """Raise an error unless an array has the dimensions named in `axes`, such as "n_users, k"."""
    if array.ndim != axes.count(",") + 1:
        raise InputError(f"{name} has the shape {array.shape}, but must be [{axes}].")


def array_of_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return values as a rectangular array of numbers."""
    try:
        array = np.asarray(as_array(values, name))
        if array.dtype.kind == "O" and any(entry is None for entry in array.flat):
            raise TypeError("None is not a number")
        if array.dtype.kind not in "biuf":
            array = array.astype(
                np.float64, casting="same_kind" if array.dtype != "O" else "unsafe"
            )
    except Exception as error:  # a conversion to an array may raise any exception
        raise InputTypeError(f"{name} must be numbers, in rows of equal length: {error}.") from None
    return array
