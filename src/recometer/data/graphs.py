"""Bipartite graphs of PyTorch Geometric: edge stores, and graphs with one kind of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recometer.arrays import Array
from recometer.data.columns import choose_columns
from recometer.data.frames import is_array
from recometer.data.numbers import as_array
from recometer.errors import InputError

LABELLED = "edge_label_index"
OTHERWISE = ("edge_attr", "edge_weight")  # values, where no attribute has a common name for them


class Edges(NamedTuple):
    """The edges of a graph, users first.

    Attributes
    ----------
    edge_index : int [2, n_edges]
    value, time : [n_edges] or None
    size : tuple of int or None
        The numbers of users and of items. None if the graph does not say.
    """

    edge_index: Array
    value: Array | None
    time: Array | None
    size: tuple[int, int] | None


def is_graph(data: object) -> bool:
    """Return whether this is a graph or an edge store, by its attributes."""
    if isinstance(data, type):
        return False
    return hasattr(data, "edge_types") or any(hasattr(data, n) for n in ("edge_index", LABELLED))


def edges_of(data: Any, *, labelled: bool, value: object, time: object) -> Edges:
    """Return the edges of a graph.

    Parameters
    ----------
    data
        An edge store, or a graph with one kind of edges (beside their reverse, ``"rev_..."``).
    labelled
        Whether ``edge_label_index`` and ``edge_label`` are read where the store has them, as
        ``RandomLinkSplit`` makes them; otherwise ``edge_index``.
    value, time
        Names of attributes. None takes those with common names, if there are any; False takes none.

    Raises
    ------
    InputError
        If there are several kinds of edges, or no edges.
    ColumnError
        If an attribute does not exist, or several have common names.
    """
    store = _only_store(data)
    attributes = _attributes(store)
    by_label = LABELLED in attributes and (labelled or "edge_index" not in attributes)
    if not by_label and "edge_index" not in attributes:
        raise InputError(
            "The graph has no edge_index. Hint: SparseTensor's (adj_t) become one by "
            "torch.stack(adj_t.t().coo()[:2])."
        )
    index = attributes[LABELLED if by_label else "edge_index"]
    rows = {
        name: array.reshape(-1)
        for name, array in attributes.items()
        if array.ndim and array.size == len(array) == index.shape[1]
    }
    if by_label:
        value = "edge_label" if value is None and "edge_label" in rows else value
        rows = {name: array for name, array in rows.items() if "label" in name or name == time}
    found = choose_columns(list(rows), {"value": value, "time": time}, required=())
    if found["value"] is None and value is None:
        found["value"] = next((name for name in OTHERWISE if name in rows), None)
    values, times = (rows[name] if name else None for name in (found["value"], found["time"]))
    return Edges(index, values, times, _size(store))


def _only_store(data: Any) -> Any:
    """Return the edge store of a graph that has one."""
    if not hasattr(data, "edge_types"):
        return data
    kinds = [kind for kind in data.edge_types if not kind[1].startswith("rev_")]
    if len(kinds) != 1:
        found = ", ".join(map(repr, kinds)) or "none"
        raise InputError(
            f"The graph has {len(kinds)} kinds of edges: {found}. Hint: pass the one between users "
            f"and items, data[{', '.join(map(repr, kinds[0] if kinds else ('user', '...')))}]."
        )
    return data[kinds[0]]


def _attributes(store: Any) -> dict[str, Array]:
    """Return what a store holds, by name: arrays and tensors alone."""
    keys = store.keys() if callable(getattr(store, "keys", None)) else vars(store)
    names = [key for key in keys if isinstance(key, str)]
    values = {
        name: store[name] if isinstance(store, Mapping) else getattr(store, name) for name in names
    }
    return {name: as_array(one, name) for name, one in values.items() if is_array(one)}


def _size(store: Any) -> tuple[int, int] | None:
    """Return the numbers of nodes on both sides of the edges, as far as they are known."""
    size = getattr(store, "size", None)
    # A graph of one kind of nodes has users and items among them, and cannot say how many.
    found = size() if callable(size) and hasattr(store, "is_bipartite") else None
    if not isinstance(found, tuple) or len(found) != 2 or None in found:
        return None
    if not store.is_bipartite():
        return None
    return int(found[0]), int(found[1])
