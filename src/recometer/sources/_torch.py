"""Counts with torch, on the device where the tensors are; this module never imports torch.

All items are ranked for one block of users at a time. The score of a judged item is read from the
scores of the block, so it is exactly the number that the other scores are compared with.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recometer._kernel import NanRule, TieOrder
from recometer.arrays import Array, Bool, Int32, Int64, UInt32
from recometer.data.tensors import (
    MPS,
    dtype_name,
    is_tensor,
    off_cpu,
    to_numpy,
)
from recometer.errors import InputError, InputTypeError
from recometer.ragged import users_of
from recometer.ranks import UserFlag
from recometer.sources._top_lists import Shelf

Tensor = Any

# Memory on the device, in bytes, for the scores of a block or for a comparison.
BLOCK_BYTES = 64 * 2**20
PIECE = 2**25  # number of bytes that a fingerprint copies from the device at a time

# The precision of matrix products is set per process, so only one thread at a time may change it.
_setting = threading.Lock()


class Counts(NamedTuple):
    """The counts of `rank_scores`: the first three per judged item, the others per user."""

    above: Int64
    tied: Int64
    before: Int64
    flags: UInt32
    no_candidates: Int64
    constant: Bool | None = None  # whether all candidates tie; None if unchecked


def as_numbers(array: Any, noun: str, device: Any = None) -> Tensor:
    """Return a tensor or array as float32 or float64 on a device, without a copy if possible."""
    torch = sys.modules["torch"]
    # torch cannot share the memory of a read-only array.
    tensor = array if is_tensor(array) else torch.tensor(array, device="cpu")
    device = device or tensor.device
    if tensor.layout != torch.strided or tensor.is_complex() or tensor.is_quantized:
        raise InputTypeError(
            f"{noun} is a tensor of {tensor.dtype} with layout {tensor.layout}, expected a dense "
            "one of float32 or float64."
        )
    small = tensor.is_floating_point() and tensor.dtype != torch.float64
    if not small and device.type == MPS:
        raise InputTypeError(
            f"{noun} is {dtype_name(tensor)}, which would be ranked in float64, but the device "
            f"{device} does not support float64. Hint: convert it to float32, or move all tensors "
            "to the CPU with .cpu(), where float64 is used."
        )
    return tensor.detach().to(device, torch.float32 if small else torch.float64)


def to_device(users: object, items: object) -> tuple[Tensor, Tensor] | None:
    """Return both matrices as tensors of one dtype on one device; None if both are on the CPU."""
    devices = [matrix.device for matrix in (users, items) if off_cpu(matrix)]  # type: ignore[attr-defined]
    if not devices:
        return None
    if devices[0] != devices[-1]:
        raise InputError(
            f"users of Factors are on {devices[0]}, but items are on {devices[-1]}. Hint: move one "
            "of them, for instance items.to(users.device)."
        )
    left, right = (
        as_numbers(matrix, f"{name} of Factors", devices[0])
        for name, matrix in (("users", users), ("items", items))
    )
    dtype = sys.modules["torch"].promote_types(left.dtype, right.dtype)
    return left.to(dtype), right.to(dtype)


@contextlib.contextmanager
def full_precision(device: Any) -> Iterator[None]:
    """Make torch multiply in the precision of the factors, whatever its settings."""
    torch = sys.modules["torch"]
    backends = torch.backends
    with contextlib.ExitStack() as stack:
        stack.enter_context(_setting)
        if hasattr(backends.cuda.matmul, "fp32_precision"):  # since torch 2.9
            for place in (backends.cuda.matmul, backends.mkldnn.matmul):
                before, place.fp32_precision = place.fp32_precision, "none"
                # If the setting was inherited before, restore the inheritance.
                inherited = place.fp32_precision == before
                stack.callback(setattr, place, "fp32_precision", "none" if inherited else before)
                place.fp32_precision = "ieee"
        else:
            matmul = backends.cuda.matmul
            stack.callback(setattr, matmul, "allow_tf32", matmul.allow_tf32)
            matmul.allow_tf32 = False
        if torch.amp.is_autocast_available(device.type):
            stack.enter_context(torch.autocast(device.type, enabled=False))
        yield


def scorer(users: Tensor, items: Tensor, item_bias: Array | None) -> Callable[[Int64], Tensor]:
    """Return a function that takes user rows and returns a tensor of their scores."""
    torch = sys.modules["torch"]
    bias = None if item_bias is None else torch.tensor(item_bias, device=items.device)

    def score(rows: Int64) -> Tensor:
        chosen = users[torch.as_tensor(rows, device=users.device)]
        with full_precision(items.device):
            scores = chosen @ items.T if bias is None else torch.addmm(bias, chosen, items.T)
        # Any infinity makes the user's metrics undefined, but -inf would mean "not a candidate".
        return scores.masked_fill_(scores == -torch.inf, torch.inf)

    return score


def rank_scores(
    scores: Tensor,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    user_rows: Int64,
    judged: Int32,
    nan_rule: NanRule,
) -> Counts:
    """Count the candidates above each judged item, tied with it, and tied before it.

    For each judged item, `user_rows` is its row in `scores`, and `judged` is its position. For the
    other parameters, see the kernel's `rank_scores`; `scores` are changed in place. `above` is -1
    if the item is not a candidate, or its score is NaN.
    """
    torch = sys.modules["torch"]
    scores, candidate, flags, absent = _settle(scores, columns, excluded_indptr, excluded, nan_rule)
    n_items = scores.shape[1]
    lowest = scores.masked_fill(~candidate, torch.inf).amin(1)
    highest = scores.masked_fill(~candidate, -torch.inf).amax(1)
    constant = (lowest == highest) & (candidate.sum(1) > 1)
    # NaN is neither above nor equal to any score.
    scores.masked_fill_(~candidate, torch.nan)

    users, items = _on_device(scores, user_rows), _on_device(scores, judged)
    own = scores[users, items]
    above, tied, before = (torch.zeros_like(items) for _ in range(3))
    positions = torch.arange(n_items, device=scores.device)
    size = max(1, BLOCK_BYTES // (scores.element_size() * n_items))
    for start in range(0, len(items), size):
        part = slice(start, start + size)
        rows, own_scores = scores[users[part]], own[part, None]
        above[part] = (rows > own_scores).sum(1)
        equal = rows == own_scores
        tied[part] = equal.sum(1) - 1
        if bool((tied[part] > 0).any()):
            before[part] = (equal & (positions < items[part, None])).sum(1)
    lost = own.isnan()
    above.masked_fill_(lost, -1)
    tied.masked_fill_(lost, 0)
    return Counts(
        to_numpy(above),
        to_numpy(tied),
        to_numpy(before),
        to_numpy(flags).astype(np.uint32),
        to_numpy(absent.sum(1)),
        to_numpy(constant),
    )


def top_scores(
    scores: Tensor,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    order: TieOrder,
    shelf: Shelf,
    nan_rule: NanRule,
    flags: UInt32,
    no_candidates: Int64,
) -> None:
    """Fill in each user's best candidates, breaking ties by ascending or descending position.

    The parameters are those of the kernel's `top_scores`. Among equal scores, `torch.topk` chooses
    arbitrarily, so it is only used to find the score at the last place.
    """
    torch = sys.modules["torch"]
    scores, candidate, bits, absent = _settle(scores, columns, excluded_indptr, excluded, nan_rule)
    flags |= to_numpy(bits).astype(np.uint32)
    no_candidates += to_numpy(absent.sum(1))
    candidate &= ~scores.isnan()
    scores.masked_fill_(~candidate, -torch.inf)
    falling = order == TieOrder.ITEM_DESCENDING
    if falling:
        scores, candidate = scores.flip(1), candidate.flip(1)
    n_users, n_items = scores.shape
    k = shelf.items.shape[1]
    last = scores.topk(k, dim=1).values[:, -1:]
    chosen = scores > last
    equal = (scores == last) & candidate
    n_free = candidate.sum(1).clamp(max=k) - chosen.sum(1)
    shelf.n_cut[:] = to_numpy(equal.sum(1) - n_free)
    chosen |= equal & (equal.cumsum(1) <= n_free[:, None])

    n = chosen.sum(1)
    user, item = chosen.nonzero(as_tuple=True)
    place = torch.arange(len(user), device=scores.device) - (n.cumsum(0) - n)[user]
    items = torch.full((n_users, k), -1, dtype=torch.int64, device=scores.device)
    best = torch.full((n_users, k), -torch.inf, dtype=scores.dtype, device=scores.device)
    items[user, place] = n_items - 1 - item if falling else item
    best[user, place] = scores[user, item]
    # A stable sort keeps equal scores in their order, and empty places at the end.
    best, by_score = best.sort(dim=1, descending=True, stable=True)
    shelf.items[:], shelf.scores[:] = to_numpy(items.gather(1, by_score)), to_numpy(best)
    shelf.n[:] = to_numpy(n)


def _on_device(scores: Tensor, array: Array) -> Tensor:
    """Return positions as a tensor on the device of the scores."""
    torch = sys.modules["torch"]
    return torch.as_tensor(array.astype(np.int64, copy=False), device=scores.device)


def _settle(
    scores: Tensor,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    nan_rule: NanRule,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Apply the rules for scores that are not finite.

    Returns the scores and a mask of the candidates (both with one column per item position), the
    users' flags, and a mask of the items that are not excluded but have a score of -inf.
    """
    torch = sys.modules["torch"]
    if columns is not None:
        scores = scores[:, _on_device(scores, columns)]
    candidate = torch.ones_like(scores, dtype=torch.bool)
    candidate[_on_device(scores, users_of(excluded_indptr)), _on_device(scores, excluded)] = False
    absent = candidate & (scores == -torch.inf)
    candidate &= ~absent
    nan = candidate & scores.isnan()
    infinite = (candidate & scores.isinf()).any(1)
    flags = infinite * int(UserFlag.INFINITE_SCORE)
    if nan_rule == NanRule.UNDEFINED:
        flags = flags + nan.any(1) * int(UserFlag.NAN_SCORE)
    else:
        scores.masked_fill_(nan, torch.inf if nan_rule == NanRule.FIRST else -torch.inf)
    return scores, candidate, flags, absent


class Pieces:
    """A tensor on a device, copied to the CPU piece by piece for its fingerprint.

    A NumPy array with the same numbers has the same fingerprint.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = to_numpy(tensor[:0]).dtype

    def pieces(self) -> Iterator[Array]:
        """Yield the rows in order, as contiguous parts."""
        row = max(1, self._tensor[:1].numel()) * self.dtype.itemsize
        size = max(1, PIECE // row)
        for start in range(0, len(self._tensor), size):
            yield np.ascontiguousarray(to_numpy(self._tensor[start : start + size]))
