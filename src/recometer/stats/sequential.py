"""Intervals that you may look at after every batch of users."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, InputTypeError, brief
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import column

__all__ = ["ConfidenceSequence"]

Float64 = npt.NDArray[np.float64]

LARGEST_BET = 0.75  # of what would lose everything
STEPS = 100
PRECISION = 1e-9  # of the range
ROUNDING = 1e-9


class ConfidenceSequence:
    """An interval of a mean that holds at all times at once, so that you can stop at any time.

    If you look at an ordinary interval repeatedly, it errs more and more often. Here, the
    probability that the mean ever lies outside is at most 1 - confidence. For each candidate m, one
    player bets on values above m and another on values below, with stakes that depend only on
    earlier values; m is excluded once one of them has multiplied the capital by
    2 / (1 - confidence). Waudby-Smith &
    Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
    Statistical Society B 86, 2024 (the hedged capital process with predictable stakes).

    The users must come in random order. The interval depends on this order, but not on when you
    look at it.

    Parameters
    ----------
    bounds
        The lowest and the highest value; for differences of two models, lo - hi and hi - lo.
    confidence
        Coverage, in (0, 1).
    population
        The total number of users, if the interval is for the mean of these users, from which the
        users seen are drawn without replacement. None means that they are a sample of infinitely
        many users.

    Examples
    --------
    >>> import numpy as np
    >>> from recometer.stats import ConfidenceSequence
    >>> sequence = ConfidenceSequence((0, 1))
    >>> generator = np.random.default_rng(0)
    >>> for _ in range(10):
    ...     found = sequence.update(generator.random(200) < 0.3)
    >>> print(f"{found.low:.2f} {found.high:.2f} {found.n}")
    0.25 0.34 2000
    """

    def __init__(
        self,
        bounds: tuple[float, float],
        confidence: float = 0.95,
        population: int | None = None,
    ) -> None:
        try:
            low, high = map(float, bounds)
        except (TypeError, ValueError):
            raise InputTypeError(
                f"bounds={brief(bounds)} must be a pair of numbers, the lowest value and the "
                "highest. Hint: (0, 1)."
            ) from None
        if not -np.inf < low < high < np.inf:
            raise InputError(
                f"bounds={bounds!r} are not a range: bets need a finite lowest and highest value."
            )
        self.bounds = float(low), float(high)
        self.confidence = check_confidence(confidence)
        self.population = population
        self._x = np.empty(0)
        self._stakes = np.empty(0)
        self._sum, self._squares = 0.0, 0.0
        self._seen = np.empty(0)  # sum of the values before each
        self._sides = _Side(0.0, 1.0), _Side(1.0, -1.0)
        self._enough = float(np.log(2 / (1 - self.confidence)))

    @property
    def interval(self) -> Interval:
        """Return the interval after all users so far."""
        low, high = self.bounds
        ends = [low + (high - low) * side.end for side in self._sides]
        n, note = len(self._x), ""
        if n == 0:
            note = "No user has been seen yet."
        return Interval(ends[0], ends[1], "betting", self.confidence, n, note)

    def update(self, values: npt.ArrayLike) -> Interval:
        """Add the next users, and return the interval.

        Parameters
        ----------
        values : [n_users]
            NaN leaves a user out.

        Raises
        ------
        InputError
            If a value is outside of the bounds, or there are more users than in the population.
        """
        given = column(values)
        given = given[~np.isnan(given)]
        low, high = self.bounds
        x = (given - low) / (high - low)
        outside = (x < -ROUNDING) | (x > 1 + ROUNDING)
        if outside.any():
            raise InputError(
                f"The value {given[outside][0]:g} lies outside the range from {low:g} to {high:g}."
            )
        if self.population is not None and len(self._x) + len(x) > self.population:
            raise InputError(
                f"{len(self._x) + len(x):,} users have been seen, more than the population of "
                f"{self.population:,}."
            )
        self._add(np.clip(x, 0.0, 1.0))
        if len(x):
            self._narrow()
        return self.interval

    def _add(self, x: Float64) -> None:
        """Stake on each value by what was known before it."""
        n = len(self._x)
        t = np.arange(n + 1, n + len(x) + 1)
        means = (0.5 + self._sum + np.cumsum(x)) / (t + 1)
        squares = self._squares + np.cumsum((x - means) ** 2)
        before = np.append(self._squares, squares)[:-1]
        variances = (0.25 + before) / t
        level = 2 * np.log(2 / (1 - self.confidence))
        self._stakes = np.append(self._stakes, np.sqrt(level / (variances * t * np.log(t + 1))))
        self._x = np.append(self._x, x)
        self._seen = np.append(self._seen, self._sum + np.cumsum(x) - x)
        self._sum += float(x.sum())
        self._squares = float(squares[-1]) if len(x) else self._squares

    def _narrow(self) -> None:
        """Move the ends inwards, to candidates that are not excluded yet."""
        mean = float(np.clip(self._sum / len(self._x), self._sides[0].end, self._sides[1].end))
        for side in self._sides:
            side.capital, most = self._bet(side.inside, side.sign, side.n, side.capital)
            side.n = len(self._x)
            if most >= self._enough:
                self._move(side, mean)

    def _move(self, side: _Side, mean: float) -> None:
        """Search for the last candidate of a side that is excluded by now.

        By secants in a bracket, halved where they make no way (the Illinois method).
        """
        out, inside = side.inside, mean
        (_, more), (side.capital, less) = (self._bet(m, side.sign) for m in (out, inside))
        if less >= self._enough:  # the mean itself: users drawn without replacement, all but seen
            side.end = side.inside = mean
            return
        more, less, last = more - self._enough, less - self._enough, 0
        for _ in range(STEPS):
            if abs(inside - out) <= PRECISION:
                break
            share = more / (more - less) if np.isfinite(more - less) else 0.5
            margin = min(0.5, PRECISION / 2 / abs(inside - out))
            m = out + (inside - out) * float(np.clip(share, margin, 1 - margin))
            capital, most = self._bet(m, side.sign)
            if most >= self._enough:
                out, more = m, most - self._enough
                less = less / 2 if last > 0 else less
                last = 1
            else:
                inside, less, side.capital = m, most - self._enough, capital
                more = more / 2 if last < 0 else more
                last = -1
        side.end, side.inside = out, inside

    def _bet(
        self, m: float, sign: float, first: int = 0, capital: float = 0.0
    ) -> tuple[float, float]:
        """Return the logarithm of a player's capital at the end, and its maximum from a user on.

        The player bets on values above m (sign 1) or below (-1), and has `capital` before the user
        `first`.
        """
        x = self._x[first:]
        # The mean of the users who are still to come, if m is that of all.
        rest = np.full(len(x), m)
        if self.population is not None:
            left = self.population - np.arange(first, first + len(x))
            rest = (self.population * m - self._seen[first:]) / left
        rest = rest if sign > 0 else 1 - rest
        if (rest < -ROUNDING).any():
            return np.inf, np.inf
        ends = bool((rest > 1).any())
        if ends:
            # Not possible either, which the other side finds; the bets end here.
            x = x[: int(np.argmax(rest > 1))]
        rest = np.maximum(rest[: len(x)], 0.0)
        values = x if sign > 0 else 1 - x
        with np.errstate(divide="ignore"):
            stakes = np.minimum(self._stakes[first : first + len(x)], LARGEST_BET / rest)
        found = capital + np.cumsum(np.log1p(stakes * (values - rest)))
        most = float(found.max(initial=-np.inf))
        return -np.inf if ends else float(found[-1]) if len(found) else capital, most


class _Side:
    """One end of the interval: what is excluded, and the candidate beside it that is not.

    The capital at the latter grows with each user, so that the end is searched for anew only when
    that is enough.
    """

    def __init__(self, end: float, sign: float) -> None:
        self.end, self.inside, self.sign = end, end, sign
        self.capital, self.n = 0.0, 0
