"""Tensors of lists and edges, checked before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.compat import _checks
from recometer.errors import InputError, InputTypeError


def lists_of(tensor: Any) -> Array:
    lists = _checks.array_of("pred_index_mat", tensor)
    if lists.ndim != 2:
        raise InputError(
            f"pred_index_mat has the shape {lists.shape}, and must be [batch_size, k]."
        )
    check_whole("pred_index_mat", lists, -1)
    return lists.astype(np.int64, copy=False)  # an empty list has no integers


def edges_of(index: Any, n_sources: int) -> tuple[Array, Array]:
    try:
        source, item = index
    except Exception:  # which of them depends on what was given
        raise InputTypeError("edge_label_index must be [2, n_edges], or two arrays.") from None
    source, item = (_checks.array_of("edge_label_index", one) for one in (source, item))
    for one in (source, item):
        check_whole("edge_label_index", one, 0)
    if source.shape != item.shape or source.ndim != 1:
        raise InputError(
            f"edge_label_index has {source.shape} sources and {item.shape} destinations, and must "
            "be [2, n_edges]."
        )
    if source.max(initial=-1) >= n_sources:
        raise InputError(
            f"edge_label_index has the source {source.max()}, but pred_index_mat has "
            f"{n_sources:,} rows, which are counted from 0."
        )
    return source, item


def check_whole(name: str, array: Array, least: int) -> None:
    if array.size and array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} is of dtype {array.dtype}, expected whole numbers.")
    if array.min(initial=least) < least:
        raise InputError(f"{name} has {array.min()}, and must not be below {least}.")


def check_below(lists: Array, n: int) -> None:
    if lists.max(initial=-1) >= n:
        raise InputError(
            f"A list has the destination {lists.max()}, but there are {n:,}, counted from 0."
        )
    if lists.min(initial=0) < 0:
        raise InputError(
            "A list has the destination -1, which this metric would count as the last one. Hint: "
            "lists need as many destinations as there are columns."
        )


def column_of(name: str, tensor: Any) -> Array:
    column = _checks.array_of_numbers(name, tensor)
    if column.ndim != 1:
        raise InputError(f"{name} has the shape {column.shape}, and must be [n_destinations].")
    return column
