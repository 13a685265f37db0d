"""The sums of each user, and the estimates that follow from them."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64
from recometer.data.ids import as_ids, encode
from recometer.errors import InputError, argument_text, brief
from recometer.logs.policies import LOGGED
from recometer.logs.values import Estimate, PolicyValues, Weights
from recometer.stats import Interval
from recometer.stats.checks import check_bounds, check_number
from recometer.stats.ends import check_confidence
from recometer.stats.grouping import group
from recometer.stats.means import student
from recometer.tasks import on_all_threads

LARGEST = 3  # the number of largest weights to keep


@dataclasses.dataclass(frozen=True, eq=False)
class PolicySums:
    """The sums over the impressions of each user, for one policy.

    Attributes
    ----------
    columns : dict of float64 [n_positions, n_users]
        Sums of the weights (``weight``) and of the terms of each estimator: weight x reward
        (``ips``), the clipped weight x reward (``clipped_ips``), the expected prediction
        (``direct``), and the doubly robust term (``dr``); ``unsupported`` probabilities.
    squares
        The sum of the squared weights.
    largest : tuple of float
        The largest weights, decreasing.
    """

    columns: dict[str, Float64]
    squares: float
    largest: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class UserSums:
    """What a block of impressions adds to all estimates: sums of each user. They add up with +.

    Attributes
    ----------
    user_ids : array [n_users]
    positions : float64 [n_positions]
        The positions in slates; a single 0 without slates.
    impressions, rewards : float64 [n_positions, n_users]
        The number of impressions of each user, and the sum of their rewards.
    units : float64 [n_users]
        The number of slates of each user, or of impressions without slates.
    reward_ends : (float, float)
        The lowest and the highest reward.
    policies : dict of PolicySums
    estimators : tuple of str
    clip : float or None
    has_slates : bool
    """

    user_ids: Array
    positions: Float64
    impressions: Float64
    rewards: Float64
    units: Float64
    reward_ends: tuple[float, float]
    policies: dict[str, PolicySums]
    estimators: tuple[str, ...]
    clip: float | None
    has_slates: bool

    def __add__(self, other: UserSums) -> UserSums:
        """Return the sums of both blocks; a user may be in both, but a slate must be in only one.

        Raises
        ------
        InputError
            If policies, estimators, clip or slates differ.
        """
        for what in ("policies", "estimators", "clip", "has_slates"):
            mine, theirs = (getattr(one, what) for one in (self, other))
            if what == "policies":
                mine, theirs = [*mine], [*theirs]
            if mine != theirs:
                raise InputError(
                    f"The blocks must have the same {what}, found {mine} and {theirs}. Hint: pass "
                    "the same arguments for each block."
                )
        both = [as_ids(one.user_ids, "users") for one in (self, other)]
        codes, ids = encode(np.concatenate(both), "users")
        positions = np.union1d(self.positions, other.positions)
        n = len(self.user_ids)

        def added(mine: Float64, theirs: Float64) -> Float64:
            found = np.zeros((len(positions), len(ids)))
            for one, sums, users in ((self, mine, codes[:n]), (other, theirs, codes[n:])):
                found[np.searchsorted(positions, one.positions)[:, None], users] += sums
            return found

        policies = {}
        for name, one in self.policies.items():
            two = other.policies[name]
            # The unsupported probability may be known for only one block.
            names = [what for what in one.columns if what in two.columns]
            policies[name] = PolicySums(
                {what: added(one.columns[what], two.columns[what]) for what in names},
                one.squares + two.squares,
                tuple(sorted((*one.largest, *two.largest), reverse=True)[:LARGEST]),
            )
        lows, highs = zip(self.reward_ends, other.reward_ends, strict=True)
        return dataclasses.replace(
            self,
            user_ids=ids,
            positions=positions,
            impressions=added(self.impressions, other.impressions),
            rewards=added(self.rewards, other.rewards),
            units=ragged.sums_of(codes, np.concatenate([self.units, other.units]), len(ids)),
            reward_ends=(min(lows), max(highs)),
            policies=policies,
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
        each = on_all_threads(lambda one: self._weights(one, confidence), [*self.policies.values()])
        weights = dict(zip(self.policies, each, strict=True))
        for name, of in weights.items():
            if of.effective_users < min_effective and self.estimators != ("direct",):
                raise InputError(
                    f"The policy {name!r} has an effective sample of {of.effective_users:.1f} of "
                    f"{n_users:,} users, fewer than "
                    f"{argument_text('min_effective', min_effective)}: a few impressions would "
                    "decide its value. Hint: a policy closer to the logged one, or a longer log."
                )

        def estimate(of: tuple[str, str]) -> Estimate:
            per_user = self._per_user(*of)
            if ends is not None and of[1] == "clipped_ips" and of[0] != LOGGED:
                sums = self.policies[of[0]].columns["clipped_ips"][0]
                interval = bernstein(sums, self.impressions[0], ends, confidence)
            else:
                interval = student(group(per_user), confidence)
            return Estimate(*of, float(per_user.mean()), interval, per_user)

        keys = [(name, one) for one in self.estimators for name in (LOGGED, *self.policies)]
        return PolicyValues(
            estimates=dict(zip(keys, on_all_threads(estimate, keys), strict=True)),
            weights=weights,
            n_impressions=int(self.impressions.sum()),
            n_users=n_users,
            n_units=int(self.units.sum()),
            unit="slate" if self.has_slates else "impression",
            maximise=bool(maximise),
            confidence=confidence,
            clip=self.clip,
            negative=self.reward_ends[0] < 0,
        )

    def _per_user(self, name: str, estimator: str) -> Float64:
        """Return linearised values of users, whose mean is the estimate."""
        if name == LOGGED:
            return _linear(self.rewards.sum(axis=0), self.units)
        columns = self.policies[name].columns
        if estimator != "snips":
            return _linear(columns[estimator].sum(axis=0), self.units)
        found = np.zeros(len(self.units))
        for reward, weight, rows in zip(
            columns["ips"], columns["weight"], self.impressions, strict=True
        ):
            if not weight.sum() > 0:
                return np.full(len(self.units), np.nan)
            per_row, share = _linear(reward, weight), _linear(rows, self.units)
            # Their product. Without slates, every share is 1.
            found += per_row * share.mean() + per_row.mean() * (share - share.mean())
        return found

    def _weights(self, policy: PolicySums, confidence: float) -> Weights:
        weight, rows = (one.sum(axis=0) for one in (policy.columns["weight"], self.impressions))
        total, n = float(weight.sum()), float(rows.sum())
        unsupported = policy.columns.get("unsupported")

        def effective(squares: float) -> float:
            return total**2 / squares if squares > 0 else 0.0

        return Weights(
            effective_users=effective(float(weight @ weight)),
            effective_impressions=effective(policy.squares),
            largest=policy.largest,
            largest_share=policy.largest[0] / total if total > 0 else np.nan,
            mean=total / n,
            mean_interval=student(group(_linear(weight, rows)), confidence),
            unsupported=np.nan if unsupported is None else float(unsupported.sum()) / n,
        )

    def _clipped_ends(self, reward_range: tuple[float, float]) -> tuple[float, float]:
        """Return the lowest and highest value of clipped weight x reward."""
        if "clipped_ips" not in self.estimators or self.clip is None or self.has_slates:
            raise InputError(
                "reward_range= gives the empirical Bernstein interval of clipped_ips, without "
                "slates. Hint: clip= and no slates, or leave reward_range out."
            )
        low, high = check_bounds(reward_range)
        if self.reward_ends[0] < low or self.reward_ends[1] > high:
            raise InputError(
                f"The rewards reach from {self.reward_ends[0]:g} to {self.reward_ends[1]:g}, "
                f"outside of reward_range={brief(reward_range)}. Hint: it must be the range of all "
                "possible rewards."
            )
        if not np.isfinite([low, high]).all():
            raise InputError("reward_range must be two finite numbers. Hint: (0, 1) for clicks.")
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

    found = Interval(end(-1), end(1), "bernstein", confidence, n)
    return found.within(ends)
