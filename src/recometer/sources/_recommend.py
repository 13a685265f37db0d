"""Models with a method recommend(...): called as its signature asks, their lists made a source."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recometer.arrays import Array
from recometer.data.frames import in_numpy, is_frame
from recometer.data.ids import as_ids
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError, ModelError
from recometer.sources.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse

# How parameters of recommend(...) are called, in lower case and without underscores.
MANY = {"users", "userids", "uids", "useridxs", "userindices", "useridx", "userindex", "userslist"}
ONE = {"user", "userid", "uid", "u"}
LENGTHS = {
    *("k", "n", "topk", "topn", "num", "size", "limit", "cutoff", "length", "numitems", "nitems"),
    *(
        "nrecommendations",
        "numrecommendations",
        "nrecs",
        "numrecs",
        "maxitems",
        "howmany",
        "number",
    ),
}
IMPLICIT = {"userid", "user_items", "N"}
FILTER = "filter_already_liked_items"  # of implicit
GRAPH = {"edge_index", "src_index", "dst_index", "k"}  # of PyTorch Geometric
LEFT_OUT = -1e38  # implicit scores what it left out by the lowest float32
WHAT = "What the model recommends"
UNDERSTOOD = (
    "recommend(userid, user_items, N) as in implicit, recommend(edge_index, src_index, dst_index, "
    "k) as in PyTorch Geometric, or recommend(users, k) of users (or one user) and a length"
)


class Wanted(NamedTuple):
    """Whose lists are asked for.

    Attributes
    ----------
    n : int
        The length of the lists.
    users : [n_users]
        Ids, or positions where `by_ids` is False.
    by_ids : bool
    item_ids
        Ids of the items that the model knows by position. None if it returns ids, or if all are
        positions.
    user_items : sparse [n_users, n_items] or None
        What users have already, for implicit.
    edge_index, n_items
        The graph, and how many of its nodes are items.
    seen : bool
        Whether what users have already may be recommended again.
    """

    n: int
    users: Array
    by_ids: bool
    item_ids: object = None
    user_items: scipy.sparse.csr_array | None = None
    edge_index: object = None
    n_items: int | None = None
    seen: bool = False


class Call(NamedTuple):
    """How a model's recommend(...) is called."""

    kind: str  # "implicit", "graph", or "users"
    users: str = ""  # the parameter of the users
    length: str = ""  # and that of the lists' length
    one: bool | None = None  # whether it takes a single user


def recommends(model: object) -> bool:
    """Return whether an object has a method recommend(...)."""
    return not isinstance(model, type) and callable(getattr(model, "recommend", None))


def signature_of(model: Any) -> str:
    """Return how a model's recommend(...) is declared, without types."""
    parameters = _parameters(model)
    if parameters is None:
        return "recommend(...)"
    plain = (one.replace(annotation=inspect.Parameter.empty) for one in parameters)
    return f"recommend({', '.join(map(str, plain))})"


def call_of(model: Any) -> Call:
    """Return how a model's recommend(...) is called, by the names of its parameters.

    Raises
    ------
    InputTypeError
        If the signature is not understood.
    """
    parameters = _parameters(model) or []
    by_name = {one.name: one for one in parameters}
    if by_name.keys() >= IMPLICIT:
        return Call("implicit")
    if by_name.keys() >= GRAPH:
        return Call("graph")
    plain = {one.name.lower().replace("_", ""): one.name for one in parameters}
    users = [name for word, name in plain.items() if word in MANY | ONE]
    lengths = [name for word, name in plain.items() if word in LENGTHS]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        one.name
        for one in parameters
        if one.default is inspect.Parameter.empty and one.kind not in kinds
    ]
    others = [name for name in needed if name not in (*users[:1], *lengths[:1])]
    if len(users) != 1 or len(lengths) != 1 or others:
        raise _not_understood(model, others if users and lengths else [])
    one = users[0].lower().replace("_", "") in ONE
    return Call("users", users[0], lengths[0], one)


def lists_of(model: Any, wanted: Wanted) -> Lists:
    """Call a model's recommend(...), and return its lists."""
    call = call_of(model)
    ids: dict[str, Any] = {
        "user_ids": wanted.users if wanted.by_ids else None,
        "item_ids": wanted.item_ids,
    }
    try:
        if call.kind == "implicit":
            return Lists(_of_implicit(model, wanted), **ids)
        if call.kind == "graph":
            n_users = len(wanted.users)
            return Lists(_of_graph(model, wanted, n_users), **ids, item_offset=n_users)
        found = _of_users(model, call, wanted)
    except (InputError, InputTypeError):
        raise
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__}.{signature_of(model)} raised {type(error).__name__}: {error}. "
            "Hint: call it as you do yourself, and pass what it returns to rm.Lists."
        ) from error
    return _read(found, call, wanted, f"{type(model).__name__}.{signature_of(model)}")


def _of_implicit(model: Any, wanted: Wanted) -> Array:
    if wanted.user_items is None:
        raise InputError(
            f"{type(model).__name__} recommends by what users have already. Hint: "
            "rm.from_model(model, n=100, user_items=train), the sparse matrix it was fitted to."
        )
    rows = np.arange(wanted.user_items.shape[0])
    options: dict[str, Any] = {"N": wanted.n}
    if FILTER in inspect.signature(model.recommend).parameters:
        options[FILTER] = not wanted.seen
    import scipy.sparse

    known = scipy.sparse.csr_matrix(wanted.user_items)  # it takes no sparse arrays
    items, scores = model.recommend(rows, known, **options)
    return np.where(np.asarray(scores) > LEFT_OUT, np.asarray(items), -1).astype(np.int64)


def _of_graph(model: Any, wanted: Wanted, n_users: int) -> Any:
    if wanted.edge_index is None or wanted.n_items is None:
        raise InputError(
            f"{type(model).__name__} recommends nodes of a graph. Hint: rm.from_model(model, "
            "n=100, edge_index=edge_index, n_users=n_users, n_items=n_items): the first n_users "
            "nodes are the users, then the items follow."
        )
    torch = sys.modules.get("torch")
    arange: Callable[..., Any] = np.arange if torch is None else torch.arange
    nodes = model.recommend(
        wanted.edge_index,
        src_index=arange(n_users),
        dst_index=arange(n_users, n_users + wanted.n_items),
        k=min(wanted.n, wanted.n_items),
    )
    return as_array(nodes, WHAT)


def _of_users(model: Any, call: Call, wanted: Wanted) -> Any:
    options = {call.length: wanted.n}
    if not call.one:
        users = wanted.users.tolist() if wanted.users.dtype == object else wanted.users
        return model.recommend(**{call.users: users}, **options)
    return [
        _one_list(model.recommend(**{call.users: user}, **options))
        for user in wanted.users.tolist()
    ]


def _one_list(found: Any) -> list[Any]:
    """Return the items of one user, whatever stands beside them."""
    items = _items(found)
    items = items.tolist() if hasattr(items, "tolist") else list(items)
    if items and all(isinstance(entry, tuple) and len(entry) == 2 for entry in items):
        return [item for item, _ in items]  # beside a score
    return items


def _items(found: Any) -> Any:
    """Return the items where scores of the same shape stand beside them."""
    if isinstance(found, tuple) and len(found) == 2:
        items, scores = (in_numpy(one, WHAT) for one in found)
        try:
            beside = np.shape(items) == np.shape(scores) and np.asarray(scores).dtype.kind == "f"
        except ValueError:  # lists of unequal lengths, beside which nothing else is given
            beside = True
        if beside:
            return items
    return in_numpy(found, WHAT)


def _read(found: Any, call: Call, wanted: Wanted, what: str) -> Lists:
    if isinstance(found, Mapping) or is_frame(found):
        return Lists(found)
    found = found if call.one else _items(found)
    if not isinstance(found, np.ndarray | Sequence) or isinstance(found, str):
        raise InputTypeError(
            f"{what} returned {type(found).__name__}. Hint: expected a list of items per user: an "
            "array [n_users, k], a list of lists, a dict, or a data frame."
        )
    if len(found) != len(wanted.users):
        raise InputError(
            f"{what} returned {len(found):,} lists for {len(wanted.users):,} users. Hint: a list "
            "for each, in the order of the users."
        )
    rows = [_one_list(row) for row in found]
    if wanted.by_ids and wanted.item_ids is None:
        users = wanted.users.tolist()
        padded = isinstance(found, np.ndarray) and found.dtype.kind == "i"
        return Lists(
            {
                user: [item for item in row if not (padded and item == -1)]
                for user, row in zip(users, rows, strict=True)
            }
        )
    width = max(map(len, rows), default=0)
    array = np.full((len(rows), width), -1, np.int64)
    for at, row in enumerate(rows):
        positions = as_ids(row, f"items that {what} returned")
        if positions.dtype == object:
            raise InputTypeError(
                f"{what} returned {row[0]!r} for an item, but items are positions. Hint: "
                "rm.from_model(model, n=..., user_ids=...) takes users and items as ids."
            )
        array[at, : len(row)] = positions
    users = wanted.users if wanted.by_ids else None
    return Lists(array, user_ids=users, item_ids=wanted.item_ids)


def _parameters(model: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(model.recommend).parameters.values())
    except (TypeError, ValueError):  # of compiled code, it may not be known
        return None


def _not_understood(model: Any, others: Sequence[str]) -> InputTypeError:
    more = f": nothing says what {', '.join(others)} should be" if others else ""
    if "dataset" in others:  # RecTools
        more += " (rm.Lists(model.recommend(users=users, dataset=dataset, k=100, ...)))"
    return InputTypeError(
        f"{type(model).__name__}.{signature_of(model)} is not understood{more}. Hint: known are "
        f"{UNDERSTOOD}; call it yourself, and rm.Lists takes what it returns, as a dict from user "
        "to items, a data frame, or an array [n_users, k]."
    )
