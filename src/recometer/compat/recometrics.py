"""Drop-in for the package recometrics 0.1.6, with the same parameters, names and results.

Parameters have the same meaning as in recometrics, and ``docs/from_recometrics.md`` lists the
intended differences. Numbers out of range and mismatched shapes raise an `InputError`, and
arguments of the wrong type raise an `InputTypeError`. A `DataWarning` says which rows are ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.compat import _shared
from recometer.data.interactions import Interactions
from recometer.data.numbers import flag
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    need,
    warn,
)
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.reasons import Reason
from recometer.metrics import METRICS, Metric
from recometer.metrics.conventions import CUTOFF
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.sources.base import Request
from recometer.sources.factors import Factors
from recometer.split import Fraction, GivenUsers, NoTestUsersError, UsersNumber
from recometer.split.checks import check_share
from recometer.split.choices import holdout_sizes
from recometer.split.data import open_data
from recometer.split.splitting import split
from recometer.split.table import Table
from recometer.tasks import resolve_threads
from recometer.ties import WHOLE, resolve

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

__all__ = [
    "NoTestUsersError",
    "calc_reco_metrics",
    "split_reco_train_test",
]

CONVENTION = _shared.convention_of("recometrics")
# The metric in each column, in the order of the columns. Areas with a cut-off are omitted, because
# they share the columns of the areas without one. Names with parameters are omitted, too.
METRIC_OF = {
    entry.name.replace(CUTOFF, "K"): entry.metric_name
    for entry in CONVENTION.entries
    if (CUTOFF in entry.name) == (CUTOFF in entry.metric) and "(" not in entry.name
}
Names = Literal["python", "r"]
AREAS = {label for label in METRIC_OF if not label.endswith("@K")}


def calc_reco_metrics(
    X_train: Any,
    X_test: Any,
    A: Array | None,
    B: Array | None,
    k: int = 5,
    item_biases: npt.ArrayLike | None = None,
    as_df: bool = True,
    precision: bool = True,
    trunc_precision: bool = False,
    recall: bool = False,
    average_precision: bool = True,
    trunc_average_precision: bool = False,
    ndcg: bool = True,
    hit: bool = False,
    rr: bool = False,
    roc_auc: bool = False,
    pr_auc: bool = False,
    all_metrics: bool = False,
    rename_k: bool = True,
    break_ties_with_noise: bool = True,
    min_pos_test: int = 1,
    min_items_pool: int = 2,
    consider_cold_start: bool = True,
    cumulative: bool = False,
    nthreads: int | None = -1,
    seed: int | np.random.RandomState | np.random.Generator = 1,
    *,
    by_rows: bool = True,
    sort_indices: bool = True,
    names: Names = "python",
) -> pd.DataFrame | dict[str, Any]:
    """Calculate metrics of recommendations for each user, like ``recometrics.calc_reco_metrics``.

    Three parameters come from the R package: with ``by_rows=False``, `A` has a column per user and
    `B` a column per item; `sort_indices` has no effect, because indices need not be sorted; and
    ``names="r"`` names the columns p_at_k, tp_at_k, ..., roc_auc, pr_auc and k. With
    ``break_ties_with_noise=False``, tied items are ranked in the order of their columns.

    Returns
    -------
    DataFrame or dict
        A frame with a row per user, in float32 if `A` and `B` are float32, and otherwise in
        float64. With ``as_df=False``, a dict of arrays [n_users] (or [n_users, k] if cumulative,
        except for the areas) and `k` itself. A user's metrics are NaN where recometrics returns
        NaN; see `undefined_values`.

    Raises
    ------
    MissingExtraError
        If ``as_df=True`` and pandas is not installed.
    """
    requested = (
        precision, trunc_precision, recall, average_precision, trunc_average_precision, ndcg, hit,
        rr, roc_auc, pr_auc,
    )  # fmt: skip
    flags = zip(METRIC_OF, requested, strict=True)
    labels = [label for label, is_on in flags if is_on or all_metrics]
    if not labels:
        raise InputError("No metric was requested. Hint: pass all_metrics=True, for instance.")
    if names not in get_args(Names):
        raise UnknownNameError(
            f"There are no names {names!r}. {did_you_mean(str(names), get_args(Names))}"
        )
    if as_df:  # fail before any work if pandas is missing
        need("pandas", "as_df=True (the default)", "pandas")
    test = _shared.sparse_rows("X_test", X_test)
    if test.nnz == 0:
        raise InputError("X_test is empty. Hint: every user would be without a relevant item.")
    n_items = test.shape[1]
    k = whole_number("k", k, least=1)
    if k > n_items:
        raise InputError(f"k={k} exceeds the number of items ({n_items}). Hint: pass k={n_items}.")
    protocol = Protocol(
        name="recometrics",
        ties="random" if break_ties_with_noise else "item",
        min_positives=whole_number("min_pos_test", min_pos_test, least=1),
        min_candidates=max(k, 2, whole_number("min_items_pool", min_items_pool, least=1)),
        cold_start=bool(consider_cold_start) or X_train is None,
    )
    threads, drawn_seed = threads_of(nthreads), seed_of(seed)
    flag("sort_indices", sort_indices)
    if not flag("by_rows", by_rows) and A is not None and B is not None:
        A, B = np.asarray(A).T, np.asarray(B).T
    source, dtype = factors_of(A, B, item_biases, test.shape)

    ranks = source.rank(
        Request(
            test=Interactions.of(test.astype(dtype)),
            train=None if X_train is None else _training(X_train, test.shape),
            protocol=protocol,
            depth=None if AREAS & set(labels) else k,
            threads=threads,
        )
    )
    # A stored zero counts as relevant in recometrics, with a gain of zero.
    n_relevant = np.diff(ranks.indptr)
    ranks = dataclasses.replace(
        ranks,
        relevant=np.ones(len(ranks.item), dtype=bool),
        n_relevant=n_relevant,
        n_rankable=None if ranks.n_rankable is None else n_relevant,
    )
    cutoffs = np.arange(1 if cumulative else k, k + 1, dtype=np.int64)
    values = _values(ranks, labels, cutoffs, protocol, drawn_seed)
    for label, is_undefined in undefined_values(ranks, labels, k, cumulative, protocol).items():
        values[label][is_undefined] = np.nan
    columns = {
        label: (array if cumulative and label not in AREAS else array[:, 0]).astype(dtype)
        for label, array in values.items()
    }
    if not as_df:
        return {_column_name(label, names): entry for label, entry in {**columns, "K": k}.items()}
    frame = _frame(columns, k, rename_k)
    return frame.rename(columns=lambda label: _column_name(label, names))


def undefined_values(
    ranks: Ranks, labels: Collection[str], k: int, cumulative: bool, protocol: Protocol
) -> dict[str, Bool]:
    """For each column, return a mask (bool [n_users]) of the values that recometrics sets to NaN.

    In `ranks`, every judged item is relevant. `labels` contains all requested columns, because
    some rules depend on which other columns are requested. `protocol` contains the rules for all
    columns: the minimum number of relevant items, the minimum number of items to rank (at least k),
    and the treatment of cold-start users and of scores that are NaN, infinite or all equal.
    """
    requested = set(labels)
    ranked = RankedUsers(ranks)
    reason, _ = ranked.reasons(ranked.variant([Metric("roc_auc")], protocol), 0)
    all_relevant = reason == Reason.ALL_RELEVANT
    nothing_at_all = (reason != Reason.DEFINED) & ~all_relevant
    no_choice = ranks.n_candidates == k  # the first k places hold all candidates

    if "NDCG@K" not in requested:
        nothing_at_all |= all_relevant
    if not requested & {"AP@K", "TAP@K", "RR@K", *AREAS}:
        nothing_at_all |= no_choice
    # If all candidates are in the first k places, P, TP, R and Hit at k are NaN. However,
    # recometrics returns their cumulative values if it computes a metric that depends on the order
    # of these places.
    ordered = {"AP@K", "TAP@K", "NDCG@K"}
    walked = requested & {*ordered, "P@K", "TP@K", "R@K"} and requested & {*ordered, "RR@K"}
    kept_without_choice = {"AP@K", "TAP@K", "RR@K"} | (
        requested if cumulative and walked else set()
    )
    undefined = {}
    for label in labels:
        if label == "NDCG@K":
            no_value = ranked.reasons(ranked.variant([Metric("ndcg", k)], protocol), 0)[0] != 0
        elif label in AREAS:
            no_value = all_relevant
        elif label in kept_without_choice:
            no_value = all_relevant & ~no_choice
        else:
            no_value = all_relevant | no_choice
        undefined[label] = nothing_at_all | no_value
    return undefined


def _training(X_train: Any, shape: tuple[int, int]) -> Interactions:
    train = _shared.sparse_rows("X_train", X_train)
    n_users, n_items = shape
    if train.shape[1] != n_items:
        hint = " Hint: X_train.T." if train.shape[::-1] == shape else ""
        raise InputError(f"X_train has {train.shape[1]} items, but X_test has {n_items}.{hint}")
    return Interactions.of(shortened(train, n_users, "X_train", "users"))


def _values(
    ranks: Ranks, labels: list[str], cutoffs: Int64, protocol: Protocol, seed: int
) -> dict[str, Float64]:
    """Return the values by label, as float64 [n_users, n_cutoffs] (for areas, [n_users, 1])."""
    definitions = {label: METRICS[METRIC_OF[label]] for label in labels}
    groups = {
        reads: resolve(ranks, protocol.ties, by=reads, seed=seed)
        for reads in {definition.reads for definition in definitions.values()}
    }
    whole_ranking = np.array([WHOLE], dtype=np.int64)
    return {
        label: definition.function(
            groups[definition.reads], whole_ranking if label in AREAS else cutoffs
        )
        for label, definition in definitions.items()
    }


def _column_name(label: str, names: Names) -> str:
    """Return the name of a column; ``"NDCG@5"`` is named ``ndcg_at_5`` in R."""
    return label if names == "python" else label.replace("@", "_at_").lower()


def _frame(columns: dict[str, Array], k: int, rename_k: bool) -> pd.DataFrame:
    import pandas as pd

    renamed: dict[str, Array] = {}
    for label, array in columns.items():
        if array.ndim == 2:
            renamed |= {f"{label[:-1]}{place + 1}": array[:, place] for place in range(k)}
        else:
            renamed[label.replace("@K", f"@{k}") if rename_k else label] = array
    return pd.DataFrame(renamed)


Rows = TypeVar("Rows", "Array", "csr_array[Any]")


def whole_number(name: str, value: Any, least: int) -> int:
    """Return an integer of at least `least`; fractions are truncated, as in recometrics."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name}={value!r} must be a whole number.") from None
    if number < least:
        raise InputError(f"{name}={value!r} must be at least {least}.")
    return number


def seed_of(seed: Any) -> int:
    """Return the seed; if `seed` is a random generator, the seed is drawn from it."""
    largest = np.iinfo(np.int32).max
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(largest))
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(largest))
    return whole_number("seed", seed, least=0)


def threads_of(nthreads: Any) -> int:
    """Return the number of threads; as in joblib, -1 means all processors, and -2 all but one."""
    if nthreads is None:
        return 1
    threads = whole_number("nthreads", nthreads, least=-(2**31))
    if threads < 0:
        threads += resolve_threads(None) + 1
    if threads < 1:
        raise InputError(
            f"nthreads={nthreads} leaves no thread to work with. "
            "Hint: nthreads=-1 uses all processors."
        )
    return threads


def shortened(rows: Rows, length: int, name: str, unit: str) -> Rows:
    """Return the first `length` rows; warn if there are more, raise an error if there are fewer."""
    n_rows = rows.shape[0]
    if n_rows < length:
        raise InputError(
            f"{name} has {n_rows} {unit}, but X_test has {length}. "
            f"Hint: {name} needs a row for each of them."
        )
    if n_rows > length:
        warn(
            f"{name} has {n_rows} {unit}, but X_test has {length}: the remaining ones are ignored."
        )
    return rows[:length]


def factors_of(
    A: Array | None, B: Array | None, item_biases: npt.ArrayLike | None, shape: tuple[int, int]
) -> tuple[Factors, np.dtype[Any]]:
    """Return the model as a source, and the dtype of its scores."""
    n_users, n_items = shape
    if (A is None) != (B is None):
        raise InputError("A and B must both be passed, or both be None.")
    users, items = np.asarray(A), np.asarray(B)
    dtype = np.dtype(np.float32 if users.dtype == items.dtype == np.float32 else np.float64)
    biases = None
    if item_biases is not None:
        flat = np.asarray(item_biases, dtype=dtype).reshape(-1)
        biases = shortened(flat, n_items, "item_biases", "items")
    if A is None:
        if biases is None:
            raise InputError("There is nothing to rank by. Hint: pass A and B, or item_biases.")
        return Factors(None, None, item_bias=biases), dtype
    match = users.ndim == items.ndim == 2 and users.shape[1] == items.shape[1]
    if not match:
        raise InputError(
            f"A and B have the shapes {users.shape} and {items.shape}, but must be [n_users, "
            "n_factors] and [n_items, n_factors]. Hint: by_rows=False takes A.T and B.T."
        )
    users = shortened(users, n_users, "A", "users").astype(dtype, copy=False)
    items = shortened(items, n_items, "B", "items").astype(dtype, copy=False)
    return Factors(users, items, item_bias=biases), dtype


def split_reco_train_test(
    X: Any,
    split_type: str = "separated",
    users_test_fraction: float | None = 0.1,
    max_test_users: float | None = 10000,
    items_test_fraction: float = 0.3,
    min_items_pool: int = 2,
    min_pos_test: int = 1,
    consider_cold_start: bool = False,
    seed: int = 1,
) -> tuple[Any, ...]:
    """Split interactions into training and test data, like ``recometrics.split_reco_train_test``.

    The users and items drawn with a given `seed` differ from those in recometrics. Stored zeros
    count as interactions.

    Returns
    -------
    tuple
        The parts, as csr_arrays with n_items columns (float32 if `X` is float32, and otherwise
        float64):

        * "separated": ``X_rem`` (the other users), ``X_train``, ``X_test`` (the test users)
          and ``users_test`` (their rows in X in ascending order, int32);
        * "joined": ``X_train`` (the test users, then the other users), ``X_test``, ``users_test``;
        * "all": ``X_train``, ``X_test``.

    Raises
    ------
    NoTestUsersError
        If no user can be a test user, for instance because every user has at least n_items - 1
        interactions. A NoTestUsersError is a RuntimeError.
    """
    from scipy.sparse import csr_array

    matrix = csr_array(X)
    if matrix.nnz == 0:
        raise InputError(f"X is empty: it has the shape {matrix.shape} and no entries.")
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    n_users, n_items = matrix.shape
    check_share("items_test_fraction", items_test_fraction)
    minimums = {"min_items_pool": min_items_pool, "min_pos_test": min_pos_test}
    for name, number in minimums.items():
        minimums[name] = whole_number(name, number, least=0)
        if minimums[name] >= n_items:
            raise InputError(f"{name}={number!r} must be below the number of items, {n_items}.")
    if split_type not in ("all", "separated", "joined"):
        raise InputError(
            f"split_type={split_type!r} does not exist. Hint: use 'all', 'separated' or 'joined'."
        )
    data = open_data(Interactions.of(matrix), {})
    options: dict[str, Any] = {"min_test": 0, "seed": whole_number("seed", seed, least=0)}
    if split_type != "all":
        n_drawn = _number_of_users(n_users, users_test_fraction, max_test_users)
        least_train = 0 if flag("consider_cold_start", consider_cold_start) else 1
        possible = _possible_users(data.table, items_test_fraction, least_train, **minimums)
        who = UsersNumber(min(n_drawn, int(np.count_nonzero(possible))))
        users = np.flatnonzero(who.tested(data.table, possible, options["seed"]))
        untested = "apart" if split_type == "separated" else "train"
        options |= {"who": GivenUsers(users), "untested": untested}
    parts = split(data, Fraction(items_test_fraction), **options)
    train, test = (_to_scipy(part, matrix.dtype) for part in (parts.train, parts.test))
    if split_type == "all":
        return train, test
    other_users, rows = np.setdiff1d(np.arange(n_users), users), users.astype(np.int32)
    if parts.remainder is not None:
        remainder = _to_scipy(parts.remainder, matrix.dtype)[other_users]
        return remainder, train[users], test[users], rows
    return train[np.concatenate([users, other_users])], test[users], rows


def _number_of_users(n_users: int, share: float | None, largest: float | None) -> int:
    """Return how many users to draw; a `largest` of None, 0 or infinity sets no limit."""
    if n_users < 2:
        raise InputError(
            f"X has {n_users} user, but drawing needs at least two. Hint: split_type='all'."
        )
    limited = largest and largest != np.inf
    limit = whole_number("max_test_users", largest, least=1) if limited else n_users
    if share is None:
        if limit > n_users:
            warn(
                f"max_test_users={largest} is above the number of users, {n_users}: all users are "
                "drawn."
            )
        return min(limit, n_users)
    target = n_users * check_share("users_test_fraction", share)
    if target < 1:
        warn(f"users_test_fraction={share} of {n_users} users is less than one: one user is drawn.")
    return min(max(1, round(target)), limit)


def _possible_users(
    table: Table, share: float, least_train: int, min_items_pool: int, min_pos_test: int
) -> Bool:
    """Return a mask of the users who can be test users: bool [n_users]."""
    n_rows, n_items = table.users.counts, table.items.n_known
    n_test = holdout_sizes(n_rows, share)
    n_train = n_rows - n_test
    possible: Bool = (n_rows > 0) & (n_rows < n_items - 1) & (n_items - n_train >= min_items_pool)
    possible &= (n_test >= min_pos_test) & (n_train >= least_train)
    if not possible.any():
        raise NoTestUsersError(
            f"None of the {table.users.n_known} users can be a test user with "
            f"{min_pos_test=}, {min_items_pool=}, items_test_fraction={share}, "
            f"consider_cold_start={not least_train}. Hint: loosen one of them."
        )
    return possible


def _to_scipy(interactions: Interactions, dtype: np.dtype[Any]) -> csr_array[Any]:
    matrix: csr_array[Any] = interactions.to_csr().astype(dtype)
    # Like recometrics, use 32-bit indices if possible, because many libraries accept nothing else.
    if matrix.nnz < 2**31:
        matrix.indptr = matrix.indptr.astype(np.int32)
        matrix.indices = matrix.indices.astype(np.int32)
    return matrix
