"""Group and count equal values, so that later computations process fewer numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Float64
from recometer.errors import InputError, InputTypeError
from recometer.remembered import cached_property
from recometer.tasks import check_cancelled

LARGEST = 1e75  # values above this are refused, because sums of their cubes may overflow
SORTED_UP_TO = 2_048  # up to this number of values, sorting is faster than grouping into cells
N_CELLS = (2_048, 65_536)  # the numbers of cells that are tried, one after the other
LOST_VARIANCE = 1e-6  # grouping into cells may lose at most this share of the variance
FAR_USERS = 1_000  # `_without_far_users` clips the residuals of this many users on each side
SAME = 1e-12  # differences below this share of the largest value count as rounding errors
LOOKED_AT = 10_000  # the levels of a column are the distinct values among its first 10,000
MOST_LEVELS = 64  # the maximum number of levels of a column, so that there are few pairs of levels
BLOCK = 2**15  # the number of users per block, so that temporary arrays fit into processor caches


@dataclasses.dataclass(frozen=True, eq=False)
class Grouped:
    """The users' values, in groups of equal or nearly equal values.

    Each user has a value x and a size y. The statistic is ``sum(x) / sum(y)``: the mean of x if
    every y is 1, and otherwise a ratio of means.

    Attributes
    ----------
    values : float64 [n_groups]
        The x of each group, in ascending order if all sizes are 1.
    counts : float64 [n_groups]
        The number of users in each group.
    sizes : float64 [n_groups], or 1.0
        The y of each group.
    n
        The number of users.
    estimate
        The statistic; NaN if there are no users.
    n_above, n_below
        The numbers of users with x above and below 0. Both are 0 if users have sizes.
    sum_of_squares
        The sum of the squared residuals x - estimate · y over the users, not over the groups.
    exact
        Whether all users of a group have the same value except for rounding. Otherwise, each
        group covers a narrow range of values and stores their mean; in total, this loses at most a
        millionth of the variance.
    """

    values: Float64
    counts: Float64
    sizes: Float64 | float
    n: int
    estimate: float
    n_above: int
    n_below: int
    sum_of_squares: float
    exact: bool

    @cached_property
    def residuals(self) -> Float64:
        """Return x - estimate · y for each group."""
        return self.values - self.estimate * self.sizes

    @cached_property
    def skewness(self) -> float:
        """Return the standardised third cumulant of the sum of residuals; 0 if they are all 0."""
        largest = np.abs(self.residuals).max(initial=0.0)
        if not largest:
            return 0.0
        z = self.residuals / largest  # scaled so that powers do not underflow
        return float((self.counts @ z**3) / (self.counts @ z**2) ** 1.5)

    @property
    def constant(self) -> bool:
        """Return whether all residuals are 0, except for rounding."""
        largest = np.abs(self.values).max(initial=0.0)
        return bool(self.sum_of_squares <= self.n * (1e-14 * largest) ** 2)

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the residuals; NaN for fewer than two users."""
        return float(np.sqrt(self.sum_of_squares / (self.n - 1))) if self.n > 1 else np.nan

    @property
    def standard_error(self) -> float:
        """Return the standard error of the statistic; NaN for fewer than two users.

        The error is √(n / (n - 1) · Σ residual²) / Σ y (Cochran, Sampling Techniques, 1977, 6.3).
        """
        if self.n < 2:
            return np.nan
        total = float(np.sum(self.counts * self.sizes))
        return float(np.sqrt(self.n / (self.n - 1) * self.sum_of_squares)) / total


def _numbers(values: npt.ArrayLike, name: str, expected: str) -> Float64:
    """Return values as a float64 array, with NaN in place of masked values."""
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be {expected}: {error}.") from None


def matrix(values: npt.ArrayLike, name: str) -> Float64:
    """Return values as a two-dimensional array of numbers, or raise an error."""
    rows = _numbers(values, name, "rows of numbers")
    if rows.ndim != 2:
        raise InputError(f"{name} must be rows of numbers, but has the shape {rows.shape}.")
    return rows


def column(values: npt.ArrayLike, name: str = "values") -> Float64:
    """Return values as a one-dimensional array of finite numbers or NaN, or raise an error."""
    numbers = _numbers(values, name, "numbers, a value for each user")
    if numbers.ndim != 1:
        raise InputError(
            f"{name} must be one column, a value for each user, but has the shape {numbers.shape}."
        )
    # Checking the smallest and the largest value needs no temporary array, and allows NaN.
    if max(-np.fmin.reduce(numbers, initial=0.0), np.fmax.reduce(numbers, initial=0.0)) > LARGEST:
        row = int(np.nanargmax(np.abs(numbers)))
        if np.isinf(numbers[row]):
            raise InputError(
                f"{name}[{row}] is {numbers[row]}, so the mean has neither an interval nor a "
                "test. Hint: to leave a user out, pass NaN."
            )
        raise InputError(
            f"{name}[{row}] is {numbers[row]:g}, which is too large: above {LARGEST:g}, sums of "
            "cubes may overflow. Hint: divide all values by the same number."
        )
    return numbers


def labels_of(clusters: npt.ArrayLike, n: int) -> npt.NDArray[np.generic]:
    """Check that each of n rows has a cluster, and return the clusters as an array."""
    if np.ma.is_masked(clusters):
        raise InputError(
            "clusters is an array with masked entries, but every row needs a cluster. Hint: leave "
            "these rows out, or give each of them a cluster of its own."
        )
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise InputError(
            f"clusters must have one entry for each of the {n:,} rows, but has the shape "
            f"{labels.shape}."
        )
    return labels


def by_cluster(clusters: npt.ArrayLike, *columns: Float64) -> list[Float64]:
    """Return each column's sum in each cluster, with the clusters in ascending order.

    No value may be NaN.
    """
    labels = labels_of(clusters, len(columns[0]))
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(
            f"clusters cannot be sorted: {error}. Hint: pass a number or a string for each row."
        ) from None
    return [ragged.sums_of(codes, column, len(names)) for column in columns]


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """The users' checked values, with codes if many users share a few distinct values (levels).

    Attributes
    ----------
    values : float64 [n_users]
        The value of each user, or NaN if there is none.
    complete
        Whether every user has a value.
    lowest, highest
        The lowest and the highest value, or inf and -inf if there are no values.
    levels : float64 [n_levels] or None
        The distinct values in ascending order, with NaN last. None for few users or many levels.
    codes : uint8 [n_users] or None
        The index of each user's value in `levels`.
    """

    values: Float64
    complete: bool
    lowest: float
    highest: float
    levels: Float64 | None = None
    codes: npt.NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, values: npt.ArrayLike | Column, name: str = "values") -> Column:
        """Check values with `column` and wrap them in a `Column`; return a `Column` unchanged."""
        if isinstance(values, Column):
            return values
        x = column(values, name)
        lowest, highest = np.fmin.reduce(x, initial=np.inf), np.fmax.reduce(x, initial=-np.inf)
        return cls(x, not np.isnan(x.min(initial=np.inf)), float(lowest), float(highest))

    @property
    def n(self) -> int:
        """Return the number of users with a value."""
        return len(self.values) if self.complete else int(np.count_nonzero(~np.isnan(self.values)))

    def coded(self) -> Column:
        """Return the column with levels and codes, or unchanged for few users or many levels.

        Levels and codes save time if the column is compared several times.
        """
        x = self.values
        if len(x) <= LOOKED_AT:
            return self
        levels = np.unique(x[:LOOKED_AT])
        if len(levels) > MOST_LEVELS:
            return self
        codes = np.full(len(x), len(levels) - 1, np.uint8)
        for block in _blocks(len(x)):
            values, code = x[block], codes[block]
            # Comparing with each level in turn is faster than a binary search.
            for level in levels[:-1]:
                code -= values <= level
            if not np.array_equal(levels[code], values, equal_nan=True):
                return self
        return dataclasses.replace(self, levels=levels, codes=codes)


def crossed(first: Column, second: Column) -> tuple[Float64, Float64, Float64] | None:
    """Return the distinct pairs of levels and their counts, or None if a column has no levels."""
    if first.levels is None or second.levels is None:
        return None
    assert first.codes is not None
    assert second.codes is not None
    n_levels = len(second.levels)
    times = np.zeros(len(first.levels) * n_levels, np.int64)
    for block in _blocks(len(first.codes)):
        cells = first.codes[block].astype(np.intp) * n_levels + second.codes[block]
        times += np.bincount(cells, minlength=len(times))
    used = np.flatnonzero(times)
    return (
        first.levels[used // n_levels],
        second.levels[used % n_levels],
        times[used].astype(np.float64),
    )


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]


def group(values: npt.ArrayLike | Grouped, sizes: npt.ArrayLike | None = None) -> Grouped:
    """Group the users' values x and sizes y, unless they are already grouped.

    If `sizes` is None, all sizes are 1. The sum of the sizes must be above 0. Users with NaN in
    `values` or `sizes` are left out.
    """
    if isinstance(values, Grouped):
        return values
    x = column(values)
    y = None if sizes is None else column(sizes, "sizes")
    if y is not None and len(x) != len(y):
        raise InputError(
            f"values and sizes must have the same length, but have {len(x):,} and {len(y):,} "
            "entries."
        )
    unknown = np.isnan(x) if y is None else np.isnan(x) | np.isnan(y)
    if unknown.any():
        x, y = x[~unknown], None if y is None else y[~unknown]
    return group_checked(x, y)


def group_checked(x: Float64, y: Float64 | None = None, times: Float64 | None = None) -> Grouped:
    """Group columns of finite numbers that have the same length; see `group`.

    `times` is the number of users in each row; None means one user per row.
    """
    n = len(x) if times is None else int(times.sum())
    if n == 0:
        return Grouped(x, x, 1.0 if y is None else y, 0, np.nan, 0, 0, 0.0, True)
    total_size = float(n) if y is None else total(y, times)
    if not total_size > 0:
        raise InputError(
            f"The sizes of the {n:,} users add up to {total_size:g}, so there is nothing to "
            "divide by. Hint: a relative difference needs a baseline whose mean is above 0."
        )
    estimate = total(x, times) / total_size
    if y is None:
        chosen = slice(None) if n <= SORTED_UP_TO else x != 0
        to_sort = x[chosen]
        counts = np.ones(len(to_sort)) if times is None else times[chosen]
        if counts.sum() <= SORTED_UP_TO:
            return _sorted(to_sort, counts, n, estimate)
    users = _Users(x, y, times, estimate)
    if n > SORTED_UP_TO:
        for n_cells in N_CELLS:
            cells = users.in_cells(n_cells)
            if cells is not None:
                return cells
    return users.ungrouped()


def total(values: Float64, times: Float64 | None) -> float:
    """Return the sum of the values, each multiplied by its entry in `times` unless that is None."""
    return float(values.sum() if times is None else values @ times)


def _sorted(x: Float64, times: Float64, n: int, estimate: float) -> Grouped:
    """Group n values by sorting. The n - Σ times values that are not in `x` are all 0."""
    values, codes = np.unique(x, return_inverse=True)
    counts: Float64 = np.bincount(codes, times, len(values)).astype(np.float64)
    zeros = n - int(times.sum())
    if zeros:
        place = int(np.searchsorted(values, 0.0))
        values, counts = np.insert(values, place, 0.0), np.insert(counts, place, zeros)
    zero = SAME * float(np.abs(values[[0, -1]]).max())
    above, below = (int(counts[side].sum()) for side in (values > zero, values < -zero))
    squares = float(counts @ (values - estimate) ** 2)
    return Grouped(values, counts, 1.0, n, estimate, above, below, squares, exact=True)


class _Users:
    """Values of many users, read block by block so that temporary arrays fit into the caches."""

    def __init__(
        self, x: Float64, y: Float64 | None, times: Float64 | None, estimate: float
    ) -> None:
        self.x, self.y, self.times, self.estimate = x, y, times, estimate
        self.n = len(x) if times is None else int(times.sum())
        self.blocks = _blocks(len(x))
        self.lowest, self.highest, self.sum_of_squares = np.inf, -np.inf, 0.0
        for block in self.blocks:
            e = self._residuals(block)
            self.lowest = min(self.lowest, float(e.min()))
            self.highest = max(self.highest, float(e.max()))
            self.sum_of_squares += total(np.square(e, out=e), self._times(block))
        # the largest |x| if there are no sizes
        self.largest = max(abs(self.lowest + estimate), abs(self.highest + estimate))

    def ungrouped(self) -> Grouped:
        """Return one group per row."""
        counts = np.ones(len(self.x)) if self.times is None else self.times
        if self.y is not None:
            return self._grouped(self.x, counts, self.y, exact=True)
        order = np.argsort(self.x, kind="stable")
        return self._grouped(self.x[order], counts[order], 1.0, exact=True)

    def in_cells(self, n_cells: int) -> Grouped | None:
        """Group users into cells of equal width, or return None if this loses too much variance."""
        one_each = self._one_value_each(n_cells)
        length = n_cells + 2
        all_counts, sums, sizes = (np.zeros(length) for _ in range(3))
        for block in self.blocks:
            cells, times = self._cells(block, n_cells), self._times(block)
            all_counts += np.bincount(cells, times, length)
            if one_each is None:
                x = self.x[block]
                sums += np.bincount(cells, x if times is None else x * times, length)
            if self.y is not None:
                own = self.y[block]
                sizes += np.bincount(cells, own if times is None else own * times, length)
        used = np.flatnonzero(all_counts)
        counts = all_counts[used]
        means = sums[used] / counts if one_each is None else one_each[used]
        y = 1.0 if self.y is None else sizes[used] / counts
        group = self._grouped(means, counts, y, exact=one_each is not None)
        hidden = self.sum_of_squares - float(counts @ group.residuals**2)
        return group if hidden <= LOST_VARIANCE * _without_far_users(group) else None

    def _one_value_each(self, n_cells: int) -> Float64 | None:
        """Return the only value (up to rounding) in each cell, or None if a cell has several."""
        if self.y is not None:
            return None
        # For most metrics, the first users already suffice to find a cell with several values.
        for blocks in ([slice(0, LOOKED_AT)], self.blocks):
            one_each = np.empty(n_cells + 2)
            for block in blocks:
                one_each[self._cells(block, n_cells)] = self.x[block]
            for block in blocks:
                off = one_each[self._cells(block, n_cells)]
                off -= self.x[block]
                if max(float(off.max()), -float(off.min())) > SAME * self.largest:
                    return None
        return one_each

    def _grouped(
        self, values: Float64, counts: Float64, sizes: Float64 | float, *, exact: bool
    ) -> Grouped:
        n_above = n_below = 0
        if self.y is None:
            zero = SAME * self.largest
            n_above, n_below = self._count(np.greater, zero), self._count(np.less, -zero)
        squares = self.sum_of_squares
        return Grouped(
            values, counts, sizes, self.n, self.estimate, n_above, n_below, squares, exact
        )

    def _count(self, compare: np.ufunc, limit: float) -> int:
        """Return how many users have values above or below a limit."""
        count = 0.0
        for block in self.blocks:
            beyond, times = compare(self.x[block], limit), self._times(block)
            count += np.count_nonzero(beyond) if times is None else float(times[beyond].sum())
        return int(count)

    def _times(self, block: slice) -> Float64 | None:
        return None if self.times is None else self.times[block]

    def _residuals(self, block: slice, less: float = 0.0) -> Float64:
        check_cancelled()
        if self.y is None:
            return self.x[block] - (self.estimate + less)
        e = self.y[block] * -self.estimate
        e += self.x[block]
        if less:
            e -= less
        return e

    def _cells(self, block: slice, n_cells: int) -> npt.NDArray[np.intp]:
        """Return the cell of each user, from 0 to `n_cells`.

        A residual that rounding moves below the lowest residual goes into cell 0.
        """
        e = self._residuals(block, self.lowest)
        spread = self.highest - self.lowest
        e *= n_cells / spread if spread > 1e-290 else 0.0
        return e.astype(np.intp)


def _without_far_users(cells: Grouped) -> float:
    """Return the sum of squared residuals after clipping those of the farthest users on each side.

    A single outlier may account for most of the variance, although the interval's end
    on the other side hardly depends on it.
    """
    order = np.argsort(cells.residuals, kind="stable")
    residuals, users = cells.residuals[order], np.cumsum(cells.counts[order])
    low, high = residuals[np.searchsorted(users, [FAR_USERS, cells.n - FAR_USERS])]
    return float(cells.counts @ np.clip(cells.residuals, low, high) ** 2)
