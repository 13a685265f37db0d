"""Scores of factors on a device, in tiles, by kernels in Triton.

All scores come from `_tile`, in tiles of one size: wherever a user and an item meet, their score is
the same to the last bit, and items with the same factors are tied. Within a score, factor is added
to factor in their order, beginning with the item's bias.

This module imports Triton: only `_factor_device` imports it, where there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from recometer.arrays import Array, Int64

Tensor = Any

# A tile is small enough for registers and shared memory, and large enough to be bound by
# arithmetic.
SIZES = {"USERS": 64, "ITEMS": 128, "FACTORS": 32}
# Options of the compiler: 8 warps keep a tile in their registers; multiplications and additions
# are fused, as the kernel of the processor fuses them.
OPTIONS = {"num_warps": 8, "enable_fp_fusion": True}
JUDGED = 16  # judged items of a row: their counts stay in registers
TILES = 64  # that a program goes through, one after the other
ALIKE = tl.constexpr(2**16)


@triton.jit
def _tile(
    users, items, bias, user_rows, item_rows, n_factors, user_row, user_step, item_row, item_step,
    FACTORS: tl.constexpr, PRECISION: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Return the scores of some rows of users and of items."""
    scores = tl.zeros([user_rows.shape[0], item_rows.shape[0]], tl.float32)
    if HAS_BIAS:
        scores += tl.load(bias + item_rows)[None, :]
    for first in range(0, n_factors, FACTORS):
        factor = (first + tl.arange(0, FACTORS)).to(tl.int64)
        inside = factor < n_factors
        left = tl.load(
            users + user_rows[:, None] * user_row + factor[None, :] * user_step,
            mask=inside[None, :],
            other=0.0,
        )
        right = tl.load(
            items + item_rows[None, :] * item_row + factor[:, None] * item_step,
            mask=inside[:, None],
            other=0.0,
        )
        scores = tl.dot(left, right, scores, input_precision=PRECISION)
    return scores


@triton.jit(do_not_specialize=["n_users", "n_items"])
def _write(
    users, items, bias, n_factors, user_row, user_step, item_row, item_step,
    wanted, n_users, n_items, scores,
    USERS: tl.constexpr, ITEMS: tl.constexpr, FACTORS: tl.constexpr,
    PRECISION: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Write the scores of all items for some rows of users: [n_users, n_items]."""
    # The first dimension of a grid is the one that may be long.
    item = (tl.program_id(0) * ITEMS + tl.arange(0, ITEMS)).to(tl.int64)
    row = tl.program_id(1) * USERS + tl.arange(0, USERS)
    user = tl.load(wanted + row, mask=row < n_users, other=0)
    tile = _tile(
        users, items, bias, user, tl.where(item < n_items, item, 0), n_factors,
        user_row, user_step, item_row, item_step, FACTORS, PRECISION, HAS_BIAS,
    )  # fmt: skip
    cells = row.to(tl.int64)[:, None] * n_items + item[None, :]
    tl.store(scores + cells, tile, mask=(row < n_users)[:, None] & (item < n_items)[None, :])


@triton.jit(do_not_specialize=["n_pairs"])
def _write_pairs(
    users, items, bias, n_factors, user_row, user_step, item_row, item_step,
    pair_users, pair_items, n_pairs, scores,
    USERS: tl.constexpr, ITEMS: tl.constexpr, FACTORS: tl.constexpr,
    PRECISION: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Write the scores of pairs: the diagonals of tiles of the same size, so the same numbers."""
    row, column = tl.arange(0, USERS), tl.arange(0, ITEMS)
    first = tl.program_id(0) * USERS
    inside = first + row < n_pairs
    beside = (column < USERS) & (first + column < n_pairs)
    user = tl.load(pair_users + first + row, mask=inside, other=0)
    item = tl.load(pair_items + first + column, mask=beside, other=0)
    tile = _tile(
        users, items, bias, user, item, n_factors,
        user_row, user_step, item_row, item_step, FACTORS, PRECISION, HAS_BIAS,
    )  # fmt: skip
    diagonal = tl.where(row[:, None] == column[None, :], tile, 0.0)
    tl.store(scores + first + row, tl.sum(diagonal, 1), mask=inside)


@triton.jit(do_not_specialize=["begin", "end", "n_rows"])
def _count(
    users, items, bias, n_factors, user_row, user_step, item_row, item_step,
    item_rows, begin, end, row_users, row_starts, row_lengths, n_rows, own, places, above, tied,
    HAS_ROWS: tl.constexpr, BEFORE: tl.constexpr, JUDGED: tl.constexpr, TILES: tl.constexpr,
    USERS: tl.constexpr, ITEMS: tl.constexpr, FACTORS: tl.constexpr,
    PRECISION: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Add up how many items score above judged ones, and how many like them, from begin to end.

    BEFORE: those that score like them and stand before them, alone, in `tied`.
    """
    row = tl.program_id(0) * USERS + tl.arange(0, USERS)
    real = row < n_rows
    user = tl.load(row_users + row, mask=real, other=0)
    start = tl.load(row_starts + row, mask=real, other=0)
    length = tl.load(row_lengths + row, mask=real, other=0)
    slot = tl.arange(0, JUDGED)
    # Two numbers in one, as a program sees fewer than 2^16 items: how many are above, and, times
    # 2^16, how many are alike.
    counts = tl.zeros([USERS, JUDGED], tl.int32)
    first = begin + tl.program_id(1) * TILES * ITEMS
    for beginning in range(first, tl.minimum(first + TILES * ITEMS, end), ITEMS):
        place = beginning + tl.arange(0, ITEMS)
        if HAS_ROWS:
            item = tl.load(item_rows + place, mask=place < end, other=0).to(tl.int64)
        else:
            item = tl.where(place < end, place, 0).to(tl.int64)
        scores = _tile(
            users, items, bias, user, item, n_factors,
            user_row, user_step, item_row, item_step, FACTORS, PRECISION, HAS_BIAS,
        )  # fmt: skip
        scores = tl.where((place < end)[None, :], scores, -float("inf"))
        for j in range(tl.max(length, 0)):
            mine = tl.load(own + start + j, mask=j < length, other=float("inf"))[:, None]
            like = scores == mine
            if BEFORE:
                stands = tl.load(places + start + j, mask=j < length, other=0)
                like = like & (place[None, :] < stands[:, None])
                found = tl.where(like, ALIKE, 0)
            else:
                found = tl.where(scores > mine, 1, tl.where(like, ALIKE, 0))
            counts += tl.where((slot == j)[None, :], tl.sum(found, 1)[:, None], 0)
    cells = start[:, None] + slot[None, :]
    real_slot = slot[None, :] < length[:, None]
    # Sums of whole numbers: the same in every order.
    if not BEFORE:
        tl.atomic_add(above + cells, counts % ALIKE, mask=real_slot, sem="relaxed")
    tl.atomic_add(tied + cells, counts // ALIKE, mask=real_slot, sem="relaxed")


class Rows(NamedTuple):
    """What `_count` ranks at a time: a user, and at most JUDGED of its judged items."""

    users: Tensor  # int64 [n_rows], rows of the user factors
    starts: Tensor  # int64 [n_rows], where its judged items begin
    lengths: Tensor  # int32 [n_rows]


class Tiles:
    """The scores of factors on a device, which no memory holds unless asked for.

    Parameters
    ----------
    users, items : float32 tensors [n_users, n_factors], [n_items, n_factors]
    item_bias : float32 [n_items], optional
    allow_tf32
        Whether factors may be rounded to TF32 before they are multiplied.
    """

    judged_per_row, rows = JUDGED, Rows

    def __init__(
        self, users: Tensor, items: Tensor, item_bias: Array | None, allow_tf32: bool
    ) -> None:
        self.device, self.n_items = items.device, len(items)
        has_bias = item_bias is not None
        # Without a bias nothing is read from there.
        bias = torch.tensor(item_bias, device=self.device) if has_bias else items
        strides = (*users.stride(), *items.stride())
        self._factors = (users, items, bias, items.shape[1], *strides)
        precision = "tf32" if allow_tf32 else "ieee"
        self._constants = {**SIZES, "PRECISION": precision, "HAS_BIAS": has_bias}

    def scores(self, rows: Int64) -> Tensor:
        """Return the scores of all items for rows of users: float32 [len(rows), n_items]."""
        wanted = torch.as_tensor(rows, device=self.device)
        found = torch.empty((len(rows), self.n_items), device=self.device)
        grid = (
            triton.cdiv(self.n_items, SIZES["ITEMS"]),
            triton.cdiv(len(rows), SIZES["USERS"]),
        )
        self._launch(_write, grid, wanted, len(rows), self.n_items, found)
        return found

    def of_pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the scores of pairs of rows (int64 tensors): float32 [n_pairs]."""
        found = torch.empty(len(users), device=self.device)
        grid = (triton.cdiv(len(users), SIZES["USERS"]),)
        self._launch(_write_pairs, grid, users, items, len(users), found)
        return found

    def count(
        self, rows: Rows, item_rows: Tensor | None, places: range, own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Count the items that score above judged ones, and like them, themselves included.

        Parameters
        ----------
        rows
        item_rows : int32 tensor [n_items], or None
            The row of each item position. None if they are the same.
        places
            The positions of the items that are looked at.
        own : float32 tensor [n_judged]
            The scores of the judged items, as `of_pairs` gives them.

        Returns
        -------
        above, tied : int32 tensors [n_judged]
        """
        above = torch.zeros(len(own), dtype=torch.int32, device=self.device)
        tied = torch.zeros_like(above)
        self._count(rows, item_rows, places, own, (above, above, tied), before=False)
        return above, tied

    def count_before(
        self, rows: Rows, item_rows: Tensor | None, places: range, own: Tensor, judged: Tensor
    ) -> Tensor:
        """Count the items that score like judged ones and stand before them: int32 [n_judged].

        `judged` (int32 tensor [n_judged]) are their positions; the rest is what `count` takes.
        """
        before = torch.zeros(len(own), dtype=torch.int32, device=self.device)
        self._count(rows, item_rows, places, own, (judged, before, before), before=True)
        return before

    def _count(
        self,
        rows: Rows,
        item_rows: Tensor | None,
        places: range,
        own: Tensor,
        columns: tuple[Tensor, Tensor, Tensor],
        *,
        before: bool,
    ) -> None:
        per_program = TILES * SIZES["ITEMS"]
        grid = (triton.cdiv(len(rows.users), SIZES["USERS"]), triton.cdiv(len(places), per_program))
        has_rows = item_rows is not None
        # Without item rows nothing is read from there.
        table = (item_rows if has_rows else own, places.start, places.stop, *rows, len(rows.users))
        self._launch(
            _count, grid, *table, own, *columns,
            HAS_ROWS=has_rows, BEFORE=before, JUDGED=JUDGED, TILES=TILES,
        )  # fmt: skip

    def _launch(
        self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any
    ) -> None:
        if not min(grid):
            return
        # Triton launches on the current device, which need not be that of the factors.
        with torch.cuda.device_of(self._factors[1]):
            kernel[grid](*self._factors, *arguments, **constants, **self._constants, **OPTIONS)
