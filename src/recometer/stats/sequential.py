"""Confidence sequences: intervals that you may look at after every batch of users."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.removed import without
from recometer.stats.checks import check_bounds, check_number, check_whole
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import column
from recometer.stats.saddlepoint import increasing_root

LARGEST_BET = 0.75  # as a share of the largest possible stake, which could lose all capital
PRECISION = 1e-9  # relative to the distance from the mean to the previous end
ROUNDING = 1e-9
EXACT = 1e-12  # allowed error of a mean of all users
LARGEST_POPULATION = 2**53  # users; float64 cannot hold all larger integers
CUT = 2.0**-26  # sums of its multiples are exact
SLACK = 1e-15  # allowed error of a sum, per user
# The players of a side have stakes that are best for 16, 64, 256, ... users.
FIRST_AIM, NEXT_AIM, LAST_AIM = 16, 4, 10**8


class ConfidenceSequence:
    """An interval of a mean that holds at all times at once, so you can stop whenever you like.

    If you look at an ordinary interval repeatedly, it will be wrong more and more often. Here, the
    probability that the mean is ever outside is at most 1 - confidence. For each candidate m, one
    side bets on values above m and the other on values below, with stakes that only depend on
    earlier values. A candidate is excluded once a side has multiplied its capital by
    2 / (1 - confidence). Each side has several players, whose stakes are best for 16, 64, 256, ...
    users. The interval is therefore narrow for any number of users. Waudby-Smith &
    Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
    Statistical Society B 86, 2024 (the hedged capital process with predictable stakes); without
    replacement as in "Confidence sequences for sampling without replacement", NeurIPS 2020.

    The users must come in random order. The interval depends on this order, but not on when you
    look at it.

    Parameters
    ----------
    bounds
        The lowest and the highest value; for differences of two models, lo - hi and hi - lo.
    confidence
        Coverage, in (0, 1).
    population
        The total number of users, if the interval is for the mean of a finite population that users
        are drawn from without replacement. Once all users have been seen, the interval is their
        mean. None means that users are a sample of infinitely many users.
    some_undefined
        Whether the population has users without a value (NaN). The interval is then for the mean
        of all users with a value, whatever their number.

    Examples
    --------
    >>> import numpy as np
    >>> from recometer.stats import ConfidenceSequence
    >>> sequence = ConfidenceSequence((0, 1))
    >>> generator = np.random.default_rng(0)
    >>> for _ in range(10):
    ...     found = sequence.update(generator.random(200) < 0.3)
    >>> print(f"{found.low:.2f} {found.high:.2f} {found.n}")
    0.27 0.33 2000
    """

    @without("aim", "relative")
    def __init__(
        self,
        bounds: tuple[float, float],
        confidence: float = 0.95,
        population: int | None = None,
        *,
        some_undefined: bool = False,
    ) -> None:
        low, high = check_bounds(bounds)
        if population is not None:
            check_whole("population", population, 0, LARGEST_POPULATION)
        if not -np.inf < low < high < np.inf:
            raise InputError(
                f"bounds={bounds!r} are not a range: bets need a finite lowest and highest value."
            )
        self.bounds = low, high
        self.confidence = check_confidence(confidence)
        self.population = population
        self.some_undefined = flag("some_undefined", some_undefined)
        self._x = np.empty(0)  # NaN if the user has no value
        self._blanks = np.empty(0)  # users without a value before each value
        self._aims = _aims(population)
        self._stakes = np.empty((len(self._aims), 0))
        self._sum, self._squares, self._n_blank = 0.0, 0.0, 0
        # Sums over the values before each value: of the values cut to multiples of a power of two,
        # which are exact, and of the remainders.
        self._seen = np.empty((2, 0))
        self._sums = np.zeros(2)
        self._sides = tuple(_Side(lower, len(self._aims)) for lower in (True, False))
        self._tracks: dict[float, list[_Capital]] = {}  # for single candidates
        self._enough = float(np.log(2 / (1 - self.confidence)))

    @property
    def interval(self) -> Interval:
        """Return the interval after all users so far; its `n` counts those with a value."""
        low, high = self.bounds
        self._narrow()
        found = [side.end for side in self._sides]
        if found[0] > found[1]:  # even the mean is excluded, so only the possible values remain
            found = [*self._possible()]
        ends = [low + (high - low) * end for end in found]
        n, note = len(self._x) - self._n_blank, ""
        if n == 0:
            note = "No user has been seen yet."
            if self._all_seen:
                return Interval.unknown(self.confidence, n, "No user has a value.")
        return Interval(ends[0], ends[1], "betting", self.confidence, n, note)

    def update(self, values: npt.ArrayLike) -> Interval:
        """Add the next users, and return the interval; see `add`."""
        self.add(values)
        return self.interval

    def add(self, values: npt.ArrayLike) -> None:
        """Add the next users. The interval takes longer, so it is only computed when it is read.

        Parameters
        ----------
        values : [n_users]
            NaN leaves a user out. With `some_undefined`, the population includes such users.

        Raises
        ------
        InputError
            If a value is outside of the bounds, or there are more users than in the population.
        """
        given = column(values)
        if not self.some_undefined:
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

    def p_value(self, mean: float = 0.0) -> float:
        """Return the p-value of a mean, which you may also inspect at any time.

        It is at most 1 - confidence once the interval has excluded that mean. It is 0 if that mean
        is impossible whatever the values of the remaining users.
        """
        check_number("mean", mean)
        low, high = self.bounds
        m = (float(mean) - low) / (high - low) + 0.0  # -0.0 is 0
        if not 0 <= m <= 1:
            return 0.0
        least, most = self._possible()
        if m < least - EXACT or m > most + EXACT:
            return 0.0
        if self._all_seen:
            return 1.0
        tracks = self._tracks.setdefault(m, [_Capital.of(len(self._aims)) for _ in self._sides])
        for at, side in enumerate(self._sides):
            tracks[at] = self._bet(m, side.lower, tracks[at])
        return float(min(1.0, 2 * np.exp(-max(track.most for track in tracks))))

    @property
    def n_read(self) -> int:
        """The number of users so far, including users without a value if `some_undefined`."""
        return len(self._x)

    @property
    def mean(self) -> float:
        """The mean of the values so far; NaN if there are none."""
        low, high = self.bounds
        n = len(self._x) - self._n_blank
        return low + (high - low) * self._sum / n if n else np.nan

    @property
    def _all_seen(self) -> bool:
        return self.population is not None and len(self._x) == self.population

    def _add(self, x: Float64) -> None:
        """Let the players bet on each value, with stakes that depend on the values before it."""
        known = ~np.isnan(x)
        values = np.where(known, x, 0.0)
        before = len(self._x) - self._n_blank
        t = before + np.cumsum(known) - known + 1.0  # t is the number of the next value
        sums = self._sum + np.cumsum(values)
        means = (0.5 + sums) / (t + known)
        squares = self._squares + np.cumsum(np.where(known, (x - means) ** 2, 0.0))
        variances = (0.25 + np.append(self._squares, squares)[:-1]) / t
        stakes = self._stakes_on(variances)
        blanks = self._n_blank + np.cumsum(~known) - ~known
        self._stakes = np.concatenate([self._stakes, stakes], axis=1)
        self._x = np.append(self._x, x)
        self._blanks = np.append(self._blanks, blanks)
        multiples = np.rint(values / CUT) * CUT
        parts = np.stack([multiples, values - multiples])
        seen = self._sums[:, np.newaxis] + np.cumsum(parts, axis=1)
        self._seen = np.concatenate([self._seen, seen - parts], axis=1)
        self._sums = seen[:, -1] if len(x) else self._sums
        self._sum += float(values.sum())
        self._n_blank += int(np.count_nonzero(~known))
        self._squares = float(squares[-1]) if len(x) else self._squares

    def _stakes_on(self, variances: Float64) -> Float64:
        """Return the stakes of each player for the next users: float64 [n_players, n]."""
        place = len(self._x) + np.arange(len(variances))
        # Without replacement, the mean of the remaining users moves away from a wrong candidate,
        # and so do the stakes with the fastest growth of capital.
        drift = 1.0 if self.population is None else self.population / (self.population - place)
        level = 2 * np.log(2 / (1 - self.confidence))
        each: Float64 = level / (variances * self._aims[:, np.newaxis])
        return drift * np.sqrt(each)

    def _possible(self) -> tuple[float, float]:
        """Return the lowest and the highest mean that are possible with the remaining users."""
        if self.population is None:
            return 0.0, 1.0
        left = self.population - len(self._x)
        most = max(len(self._x) - self._n_blank + left, 1)
        return self._sum / most, (self._sum + left) / most

    def _narrow(self) -> None:
        """Move the ends inwards to candidates that are not excluded yet."""
        possible = self._possible()
        if self._all_seen:
            self._sides[0].end, self._sides[1].end = possible
            return
        n_known = len(self._x) - self._n_blank
        if not n_known or len(self._x) == self._sides[0].capital.n:
            return
        mean = float(np.clip(self._sum / n_known, self._sides[0].end, self._sides[1].end))
        for side, limit in zip(self._sides, possible, strict=True):
            side.capital = self._bet(side.inside, side.lower, side.capital)
            if side.capital.most >= self._enough:
                self._move(side, mean)
            side.narrow(limit)

    def _move(self, side: _Side, mean: float) -> None:
        """Search for the innermost candidate of a side that is already excluded."""
        start, away = _Capital.of(len(self._aims)), side.inside - mean

        def capital_at(share: float) -> _Capital:
            return self._bet(mean + share * away, side.lower, start)

        nearest, share = capital_at(0.0), None
        if nearest.most < self._enough:
            share = increasing_root(
                lambda x: capital_at(x).most - nearest.most, self._enough - nearest.most, 1.0
            )
        if share is None:  # after nearly all users, the end is the mean
            side.end = side.inside = mean
            side.capital = nearest
            return
        inside = max(share - PRECISION, 0.0)
        side.inside, side.capital = mean + inside * away, capital_at(inside)
        side.narrow(mean + (share + PRECISION) * away)

    def _bet(self, m: float, above: bool, capital: _Capital) -> _Capital:
        """Return the capital after all users, from bets on values above m, or below it.

        `capital` is the capital after the first users.
        """
        x, first = self._x[capital.n :], capital.n
        if not len(x):
            return capital
        # The mean of the remaining users if m is the mean of all. A user without a value counts as
        # m, which does not change the mean.
        rest = np.full(len(x), m)
        if self.population is not None:
            left = self.population - np.arange(first, len(self._x))
            counted = self.population - self._blanks[first:]
            multiples, rests = self._seen[:, first:]
            total = counted * m - multiples - rests
            # Rounding errors must not make a candidate impossible.
            slack = SLACK * self.population
            total = np.where(np.abs(total) <= slack, 0.0, total)
            rest = np.where(np.abs(total - left) <= slack, 1.0, total / left)
        values = np.where(np.isnan(x), m, x) if self._n_blank else x
        if not above:
            rest, values = 1 - rest, 1 - values
        if (rest < 0).any():
            return _Capital(len(self._x), np.full(len(self._aims), np.inf), np.inf)
        stakes = self._stakes[:, first:]
        with np.errstate(divide="ignore"):
            stakes = np.minimum(stakes, LARGEST_BET / rest)
        each = capital.each[:, np.newaxis] + np.cumsum(np.log1p(stakes * (values - rest)), axis=1)
        highest = each.max(axis=0)
        of_all = highest + np.log(np.exp(each - highest).mean(axis=0))  # of the players' mean
        most = float(of_all.max(initial=-np.inf))
        return _Capital(len(self._x), each[:, -1], max(most, capital.most))


def _aims(population: int | None) -> Float64:
    """Return the numbers of users for which the stakes of the players are best."""
    last = LAST_AIM if population is None else population
    steps = np.log(max(last, FIRST_AIM) / FIRST_AIM) / np.log(NEXT_AIM)
    return FIRST_AIM * np.power(float(NEXT_AIM), np.arange(int(steps) + 1, dtype=np.float64))


class _Capital(NamedTuple):
    """The logarithms of the capital of one side's players, for a candidate after n users."""

    n: int
    each: Float64  # per player
    most: float  # the largest total so far

    @classmethod
    def of(cls, n_players: int) -> _Capital:
        """Return the initial capital."""
        return cls(0, np.zeros(n_players), -np.inf)


class _Side:
    """One end of the interval, and the candidate next to it that is not excluded yet.

    The capital at that candidate grows with each user. A search for a new end only starts when the
    capital suffices to exclude the candidate.
    """

    def __init__(self, lower: bool, n_players: int) -> None:
        self.lower = lower
        self.end = self.inside = 0.0 if lower else 1.0
        self.capital = _Capital.of(n_players)

    def narrow(self, end: float) -> None:
        """Move the end to `end`, if that is further inwards."""
        self.end = max(self.end, end) if self.lower else min(self.end, end)
