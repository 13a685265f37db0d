"""The sums of each user, and the estimates that follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64
from recometer.data.ids import as_ids, encode
from recometer.errors import InputError, argument_text, brief
from recometer.logs.policies import LOGGED, Policy
from recometer.logs.values import Estimate, PolicyValues, Weights
from recometer.stats import Interval
from recometer.stats.checks import check_bounds, check_number
from recometer.stats.ends import check_confidence
from recometer.stats.grouping import group
from recometer.stats.means import student
from recometer.tasks import on_all_threads

LARGEST = 3  # the number of largest weights to keep


def _weighted(_: Policy, weight: Float64, reward: Float64, __: object) -> Float64:
    return weight * reward


# Each estimate is the mean of its term over impressions, given the policy, the weights, the rewards
# and the largest weight; snips divides by the sum of the weights. The most robust come first.
TERMS: dict[str, Callable[[Any, Float64, Float64, Any], Float64]] = {
    "dr": lambda policy, w, r, _: w * (r - policy.predicted) + policy.value,
    "snips": _weighted,
    "clipped_ips": lambda _, w, r, clip: np.minimum(w, clip) * r,
    "ips": _weighted,
    "direct": lambda policy, *_: policy.value,
}
PREDICTING = ("dr", "direct")  # estimators that need predicted rewards


@dataclasses.dataclass(frozen=True, eq=False)
class UserSums:
    """What a block of impressions adds to all estimates: sums of each user. They add up with +."""

    user_ids: Array
    positions: Float64  # in slates; a single 0 without slates
    # float64 [n_positions, n_users] by policy and term: "weight", the terms of `estimators`, and
    # "unsupported" probabilities. The policy "logged" has the numbers of "rows" and "units"
    # (slates, or rows without slates) and the "reward".
    sums: dict[tuple[str, str], Float64]
    squares: dict[str, float]  # the sum of the squared weights of each policy
    largest: dict[str, tuple[float, ...]]  # the largest weights of each policy, decreasing
    reward_ends: tuple[float, float]
    estimators: tuple[str, ...]
    clip: float | None
    has_slates: bool

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return list(self.largest)

    def __add__(self, other: UserSums) -> UserSums:
        """Return the sums of both blocks; a user may be in both, but a slate must be in only one.

        Raises
        ------
        InputError
            If policies, estimators, clip or slates differ.
        """
        for what in ("policies", "estimators", "clip", "has_slates"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                raise InputError(
                    f"The blocks must have the same {what}, found {mine} and {theirs}. Hint: pass "
                    "the same arguments for each block."
                )
        blocks = (self, other)
        both = np.concatenate([as_ids(block.user_ids, "users") for block in blocks])
        codes, ids = encode(both, "users")
        positions = np.union1d(self.positions, other.positions)
        # The unsupported probability may be known for only one block.
        shared = [key for key in self.sums if key in other.sums]
        sums = {key: np.zeros((len(positions), len(ids))) for key in shared}
        for block, users in zip(blocks, np.split(codes, [len(self.user_ids)]), strict=True):
            cells = np.ix_(np.searchsorted(positions, block.positions), users)
            for key, total in sums.items():
                total[cells] += block.sums[key]
        lows, highs = zip(self.reward_ends, other.reward_ends, strict=True)
        return dataclasses.replace(
            self,
            user_ids=ids,
            positions=positions,
            sums=sums,
            squares={name: of + other.squares[name] for name, of in self.squares.items()},
            largest={
                name: tuple(sorted((*of, *other.largest[name]), reverse=True)[:LARGEST])
                for name, of in self.largest.items()
            },
            reward_ends=(min(lows), max(highs)),
        )

    def values(
        self,
        *,
        maximise: bool = True,
        min_effective: float = 50,
        confidence: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> PolicyValues:
        """Return the estimates; the parameters are those of `Impressions.evaluate`."""
        check_confidence(confidence)
        check_number("min_effective", min_effective)
        n_users = len(self.user_ids)
        if n_users < 2:
            raise InputError(
                f"The log has {n_users} user, but intervals are over users, whose impressions are "
                "not independent. Hint: there must be at least two users; if sessions or days are "
                f"independent, {argument_text('user')} may name their column."
            )
        ends = None if reward_range is None else self._clipped_ends(reward_range)
        weights = on_all_threads(lambda name: self._weights(name, confidence), self.policies)
        for of in weights:
            if of.effective_users < min_effective and self.estimators != ("direct",):
                raise InputError(
                    f"The policy {of.policy!r} has an effective sample of {of.effective_users:.1f} "
                    f"of {n_users:,} users, fewer than "
                    f"{argument_text('min_effective', min_effective)}: a few impressions would "
                    "decide its value. Hint: a policy closer to the logged one, or a longer log."
                )

        def estimate(key: tuple[str, str]) -> Estimate:
            per_user = self._per_user(*key)
            if ends is not None and key[1] == "clipped_ips" and key[0] != LOGGED:
                sums, rows = self.sums[key][0], self.sums[LOGGED, "rows"][0]
                interval = bernstein(sums, rows, ends, confidence)
            else:
                interval = student(group(per_user), confidence)
            return Estimate(*key, float(per_user.mean()), interval, per_user)

        keys = [(name, one) for one in self.estimators for name in (LOGGED, *self.policies)]
        return PolicyValues(
            estimates=dict(zip(keys, on_all_threads(estimate, keys), strict=True)),
            weights={of.policy: of for of in weights},
            n_impressions=int(self.sums[LOGGED, "rows"].sum()),
            n_users=n_users,
            n_units=int(self.sums[LOGGED, "units"].sum()),
            unit="slate" if self.has_slates else "impression",
            maximise=bool(maximise),
            confidence=confidence,
            clip=self.clip,
            negative=self.reward_ends[0] < 0,
        )

    def _of_user(self, name: str, what: str) -> Float64:
        """Return the sums of users over all positions."""
        return np.asarray(self.sums[name, what].sum(axis=0))

    def _per_user(self, name: str, estimator: str) -> Float64:
        """Return linearised values of users, whose mean is the estimate."""
        units = self._of_user(LOGGED, "units")
        if name == LOGGED:
            return _linear(self._of_user(LOGGED, "reward"), units)
        if estimator != "snips":
            return _linear(self._of_user(name, estimator), units)
        total = np.zeros(len(units))
        columns = (self.sums[name, "snips"], self.sums[name, "weight"], self.sums[LOGGED, "rows"])
        for reward, weight, rows in zip(*columns, strict=True):
            if not weight.sum() > 0:
                return np.full(len(units), np.nan)
            per_row, share = _linear(reward, weight), _linear(rows, units)
            # Their product. Without slates, every share is 1.
            total += per_row * share.mean() + per_row.mean() * (share - share.mean())
        return total

    def _weights(self, name: str, confidence: float) -> Weights:
        weight, rows = self._of_user(name, "weight"), self._of_user(LOGGED, "rows")
        total, n = float(weight.sum()), float(rows.sum())
        of_users, of_rows = (
            total**2 / squares if squares > 0 else 0.0
            for squares in (float(weight @ weight), self.squares[name])
        )
        unsupported = self.sums.get((name, "unsupported"), np.array(np.nan)).sum() / n
        interval = student(group(_linear(weight, rows)), confidence)
        largest = self.largest[name]
        return Weights(name, of_users, of_rows, largest, total / n, interval, float(unsupported))

    def _clipped_ends(self, reward_range: tuple[float, float]) -> tuple[float, float]:
        """Return the lowest and highest value of clipped weight x reward."""
        if "clipped_ips" not in self.estimators or self.clip is None or self.has_slates:
            raise InputError(
                "reward_range= gives the empirical Bernstein interval of clipped_ips, without "
                "slates. Hint: clip= and no slates, or leave reward_range out."
            )
        low, high = check_bounds(reward_range)
        if not -np.inf < low <= self.reward_ends[0] <= self.reward_ends[1] <= high < np.inf:
            raise InputError(
                f"The rewards reach from {self.reward_ends[0]:g} to {self.reward_ends[1]:g}, but "
                f"reward_range={brief(reward_range)}. Hint: the lowest and the highest possible "
                "reward, two finite numbers."
            )
        return min(0.0, self.clip * low), max(0.0, self.clip * high)


def _linear(values: Float64, sizes: Float64) -> Float64:
    """Return values of users with the mean A / B, the ratio of the sums of values and sizes.

    By the delta method, they are A / B + U (a - b A / B) / B over the U users.
    """
    total = sizes.sum()
    ratio = values.sum() / total
    return np.asarray(ratio + len(values) * (values - ratio * sizes) / total)


def bernstein(
    sums: Float64, sizes: Float64, ends: tuple[float, float], confidence: float
) -> Interval:
    """Return the empirical Bernstein interval of a mean of rows, over users.

    All θ for which the mean of z = sums - θ sizes is at most √(2 V L / U) + 7 B L / (3 (U - 1))
    from 0, with L = log(4 / (1 - confidence)). V is the variance of z over U users, and B the
    largest size times the range of a row. Maurer & Pontil 2009, theorem 4, for both sides.
    """
    n = len(sums)
    scale = np.log(4 / (1 - confidence))
    add = 7 * float(sizes.max()) * (ends[1] - ends[0]) * scale / (3 * (n - 1))
    x, y = float(sums.mean()), float(sizes.mean())
    (xx, xy), (_, yy) = np.cov(sums, sizes) * (2 * scale / n)

    def end(side: int) -> float:
        # side (θ y - x) - add = √(xx - 2 θ xy + θ² yy), squared; the root beyond (x ± add) / y.
        shift = x + side * add
        a, b, c = y**2 - yy, -2 * (y * shift - xy), shift**2 - xx
        if a <= 0:
            return side * np.inf
        root = np.sqrt(max(0.0, b**2 - 4 * a * c))
        return float((-b + side * root) / (2 * a))

    return Interval(end(-1), end(1), "bernstein", confidence, n).within(ends)
