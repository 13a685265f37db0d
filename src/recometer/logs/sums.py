"""The sums of each user, and the estimates that follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64, Int64
from recometer.data.ids import as_ids, encode
from recometer.errors import InputError, UnknownNameError, argument_text, brief, did_you_mean
from recometer.logs.policies import Policy
from recometer.logs.values import (
    ESTIMATORS,
    LOGGED,
    Estimate,
    PolicyValues,
    Weights,
    bernstein,
    effective,
    student_of,
)
from recometer.stats.checks import check_bounds, check_number
from recometer.stats.ends import check_confidence

Slates = Literal["independent", "cascade"]
BY_DEFAULT = ("dr", "snips", "clipped_ips", "ips", "direct")
NEED_PREDICTIONS = ("direct", "dr")
LARGEST = 3  # the number of largest weights to keep
BLOCK = 1_024


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
        """Return the sums of both blocks; a user may be in both, a slate in one.

        Raises
        ------
        InputError
            If policies, estimators, clip or slates differ.
        """
        for what in ("policies", "estimators", "clip", "has_slates"):
            mine, theirs = (
                [*value] if isinstance(value := getattr(one, what), dict) else value
                for one in (self, other)
            )
            if mine != theirs:
                raise InputError(
                    f"The blocks must have the same {what}, found {mine} and {theirs}. Hint: pass "
                    "the same arguments for each block."
                )
        codes, ids = encode(
            np.concatenate([as_ids(self.user_ids, "users"), as_ids(other.user_ids, "users")]),
            "users",
        )

        positions = np.union1d(self.positions, other.positions)
        n = len(self.user_ids)

        def added(mine: Float64, theirs: Float64) -> Float64:
            found = np.zeros((len(positions), len(ids)))
            for one, sums, users in ((self, mine, codes[:n]), (other, theirs, codes[n:])):
                found[np.searchsorted(positions, one.positions)[:, None], users] += sums
            return found

        policies = {}
        for name, mine in self.policies.items():
            theirs = other.policies[name]
            policies[name] = PolicySums(
                {
                    what: added(column, theirs.columns[what])
                    for what, column in mine.columns.items()
                    if what in theirs.columns  # unsupported mass may be known of one block only
                },
                mine.squares + theirs.squares,
                tuple(sorted((*mine.largest, *theirs.largest), reverse=True)[:LARGEST]),
            )
        return UserSums(
            ids,
            positions,
            added(self.impressions, other.impressions),
            added(self.rewards, other.rewards),
            ragged.sums_of(codes, np.concatenate([self.units, other.units]), len(ids)),
            (
                min(self.reward_ends[0], other.reward_ends[0]),
                max(self.reward_ends[1], other.reward_ends[1]),
            ),
            policies,
            self.estimators,
            self.clip,
            self.has_slates,
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
        ends = self._clipped_ends(reward_range)
        weights, estimates = {}, {}
        for name, policy in self.policies.items():
            weights[name] = self._weights(policy, confidence)
            if weights[name].effective_users < min_effective and self.estimators != ("direct",):
                raise InputError(
                    f"The policy {name!r} has an effective sample of "
                    f"{weights[name].effective_users:.1f} of {n_users:,} users, fewer than "
                    f"{argument_text('min_effective', min_effective)}: a few impressions would "
                    "decide its value. Hint: a policy closer to the logged one, or a longer log."
                )
        for estimator in self.estimators:
            for name in (LOGGED, *self.policies):
                per_user = self._per_user(name, estimator)
                interval = student_of(per_user, confidence)
                if ends is not None and estimator == "clipped_ips" and name != LOGGED:
                    interval = bernstein(
                        self.policies[name].columns["clipped_ips"][0],
                        self.impressions[0],
                        ends,
                        confidence,
                    )
                estimates[name, estimator] = Estimate(
                    name, estimator, float(per_user.mean()), interval, per_user
                )
        return PolicyValues(
            estimates=estimates,
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
        """Return linearised values of users, whose mean is the estimate.

        An estimate is a ratio of sums over users, f = A / B, and its delta method is that of the
        mean of f + U (a - f b) / B over the U users.
        """
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
        weight = policy.columns["weight"].sum(axis=0)
        total = float(weight.sum())
        unsupported = policy.columns.get("unsupported")
        n = float(self.impressions.sum())
        return Weights(
            effective_users=effective(weight),
            effective_impressions=total**2 / policy.squares if policy.squares > 0 else 0.0,
            largest=policy.largest,
            largest_share=policy.largest[0] / total if total > 0 else np.nan,
            mean=total / n,
            mean_interval=student_of(_linear(weight, self.impressions.sum(axis=0)), confidence),
            unsupported=np.nan if unsupported is None else float(unsupported.sum()) / n,
        )

    def _clipped_ends(self, reward_range: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return the lowest and highest value of clipped weight x reward."""
        if reward_range is None:
            return None
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
    total = sizes.sum()
    ratio = values.sum() / total
    return np.asarray(ratio + len(values) * (values - ratio * sizes) / total)


def check_slates(slates: object, has_slates: bool) -> None:
    """Raise unless slates are stated exactly for a log that has some."""
    known = get_args(Slates)
    if slates is not None and slates not in known:
        raise UnknownNameError(
            f"{argument_text('slates', slates)} must be independent or cascade. Hint: a product "
            "of marginal propensities is not the probability of a slate, whose items depend on "
            "each other; independent takes marginal propensities one by one."
        )
    if has_slates and slates is None:
        raise InputError(
            "The log has slates, and its propensities may be marginal or cumulative. Hint: state "
            f"{argument_text('slates', 'independent')} (the probability of an item at its "
            f"position) or {argument_text('slates', 'cascade')} (that of an item and all items "
            "above it)."
        )
    if slates is not None and not has_slates:
        raise InputError(
            f"{argument_text('slates', slates)} has no effect. Hint: {argument_text('slate')} "
            "names the column of slates."
        )


def estimators_of(given: str | Sequence[str] | None, policies: Mapping[str, Policy],
                  clip: float | None, has_slates: bool) -> tuple[str, ...]:  # fmt: skip
    """Return the estimators to compute, the first of which is the primary one."""
    without = [name for name, policy in policies.items() if policy.predicted is None]
    if given is None:
        predicted = not without and not has_slates
        left_out = {*(() if predicted else NEED_PREDICTIONS), *(() if clip else ("clipped_ips",))}
        return tuple(name for name in BY_DEFAULT if name not in left_out)
    names = tuple(
        dict.fromkeys(given.replace(",", " ").split() if isinstance(given, str) else given)
    )
    if not names:
        raise InputError(f"There are no estimators. Hint: {', '.join(ESTIMATORS)}.")
    for name in names:
        if name not in ESTIMATORS:
            raise UnknownNameError(
                f"There is no estimator {brief(name)}. {did_you_mean(str(name), ESTIMATORS)}"
            )
        if name in NEED_PREDICTIONS and has_slates:
            raise InputError(f"{name} is not for slates. Hint: snips or ips.")
        if name in NEED_PREDICTIONS and without:
            raise InputError(
                f"{name} needs predicted_reward and policy_value, which {without[0]!r} does not "
                "have. Hint: pass a frame with both, or a table of candidates with "
                "predicted_reward."
            )
    if ("clipped_ips" in names) != (clip is not None):
        raise InputError(
            f"clipped_ips needs {argument_text('clip')}, the largest weight, and only it does. "
            f"Hint: {argument_text('clip', 10)}."
        )
    return names


def sums_of(
    users: Int64,
    user_ids: Array,
    reward: Float64,
    propensity: Float64,
    policies: Mapping[str, Policy],
    slates: tuple[Float64, Int64, Float64] | None,
    estimators: str | Sequence[str] | None,
    clip: float | None,
) -> UserSums:
    """Return the sums of the users of a block of impressions.

    `slates` are the positions, the number of the position of each impression, and the number of
    slates of each user; None without slates.
    """
    if clip is not None:
        check_number("clip", clip)
        if not clip > 0:
            raise InputError(
                f"{argument_text('clip', clip)} must be above 0. Hint: it is the largest weight."
            )
    names = estimators_of(estimators, policies, clip, slates is not None)

    positions, n_users = np.zeros(1) if slates is None else slates[0], len(user_ids)
    cells = users if slates is None else slates[1] * n_users + users

    def of_users(values: Float64 | None = None) -> Float64:
        n_cells = len(positions) * n_users
        sums = (
            np.bincount(cells, minlength=n_cells)
            if values is None
            else (ragged.sums_of(cells, values, n_cells))
        )
        return sums.astype(np.float64, copy=False).reshape(len(positions), n_users)

    found = {}
    for name, policy in policies.items():
        weight = policy.probability / propensity
        columns = {"weight": of_users(weight)}
        largest = largest_of(weight)
        squares = float(weight @ weight)
        if "ips" in names or "snips" in names:
            columns["ips"] = of_users(weight * reward)
        if "clipped_ips" in names and clip is not None:
            columns["clipped_ips"] = of_users(np.minimum(weight, clip) * reward)
        if policy.value is not None and policy.predicted is not None:
            if "direct" in names:
                columns["direct"] = of_users(policy.value)
            if "dr" in names:
                weight *= reward - policy.predicted
                weight += policy.value
                columns["dr"] = of_users(weight)
        if policy.unsupported is not None:
            columns["unsupported"] = of_users(policy.unsupported)
        found[name] = PolicySums(columns, squares, largest)
    impressions = of_users()
    return UserSums(
        user_ids,
        positions,
        impressions,
        of_users(reward),
        impressions[0] if slates is None else slates[2],
        (float(reward.min()), float(reward.max())),
        found,
        names,
        None if clip is None else float(clip),
        slates is not None,
    )


def largest_of(values: Float64) -> tuple[float, ...]:
    """Return the largest values, decreasing; they lie in the blocks with the largest maxima."""
    starts = np.arange(0, len(values), BLOCK)
    first = np.argsort(np.maximum.reduceat(values, starts))[-LARGEST:]
    near = np.concatenate([values[starts[one] : starts[one] + BLOCK] for one in first])
    return tuple(np.sort(near)[: -LARGEST - 1 : -1].tolist())
