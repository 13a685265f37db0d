"""The record of logged impressions: rows with a user, an item, a reward and a propensity."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from recometer import ragged
from recometer.arrays import Float64
from recometer.data.catalogue import NamedColumns
from recometer.data.columns import check_column
from recometer.data.ids import encode, show
from recometer.errors import InputError, InputTypeError, UnknownNameError, argument_text
from recometer.logs.policies import LOGGED, LogColumns, Policy, probabilities, read_policy
from recometer.logs.sums import ESTIMATORS, LARGEST, UserSums
from recometer.logs.values import PolicyValues, known
from recometer.stats.checks import check_number
from recometer.tasks import on_all_threads

Slates = Literal["independent", "cascade"]
BLOCK = 1_024
Sums = dict[tuple[str, str], Float64]  # see `UserSums.sums`


class Impressions:
    """A log of impressions: which item each user saw, with which probability, and the reward.

    Parameters
    ----------
    frame
        A row for each impression: a data frame of any library, a dict of columns, or the path of
        a file (Parquet, CSV or TSV).
    user, item
        The columns of users and items. Intervals and tests are over users: the impressions of one
        user need not be independent of each other.
    reward
        The column of rewards (such as clicks, 0 and 1), or of costs. Finite numbers.
    propensity
        The column of propensities: how likely the system that wrote the log was to show this item
        here, above 0 and at most 1.
    position
        For slates: the column of the positions within a slate, each once.
    slate
        The column of slates, if several items were shown together. A user and a slate together
        identify a slate, so that users may number their slates from 0.

    Attributes
    ----------
    n, n_users, n_slates : int
        The numbers of impressions, users and slates (an impression of its own without slates).

    Raises
    ------
    ColumnError
        If there is no such column.
    InputError
        If a value is missing or not finite, a propensity is not above 0 and at most 1, there are
        no rows, or a position occurs twice in a slate.
    InputTypeError
        If the frame is not a table, or a column does not hold numbers.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.Impressions(
    ...     {"user": [1, 1, 2], "item": [7, 8, 7], "click": [0, 1, 0], "shown": [0.5, 0.25, 0.5]},
    ...     user="user", item="item", reward="click", propensity="shown",
    ... )
    Impressions(3 impressions, 2 users, mean reward 0.3333)
    """

    def __init__(
        self,
        frame: Any,
        *,
        user: str,
        item: str,
        reward: str,
        propensity: str,
        position: str | None = None,
        slate: str | None = None,
    ) -> None:
        if (position is None) != (slate is None):
            raise InputError(
                f"{argument_text('slate')} and {argument_text('position')} go together: items that "
                "were shown together have a slate, and a position in it. Hint: name both columns, "
                "or none."
            )
        table = NamedColumns.of(frame)
        if table is None:
            raise InputTypeError(
                "The log must be a data frame, a dict of columns or the path of a file, found "
                f"{type(frame).__name__}. Hint: a row for each impression."
            )
        options = {"user": user, "item": item, "reward": reward, "propensity": propensity}
        for option, name in (options | ({"slate": slate} if slate is not None else {})).items():
            check_column(option, name, table.names)
        self._users, self.user_ids = encode(table.ids(user), f"user ids (column {user!r})")
        self.n, self.n_users = len(self._users), len(self.user_ids)
        if not self.n:
            raise InputError("The log has no rows. Hint: there must be a row for each impression.")
        self._columns = LogColumns(table, self.n, item)
        self.reward = self._columns.numbers(reward, "rewards")
        what = f"propensity of column {propensity!r}"
        self.propensity = self._columns.numbers(propensity, "propensities")
        probabilities(self.propensity, what, above_0=True)
        self.n_slates, self._cells = self.n, self._users
        self._positions = np.zeros(1)  # the sums of a position lie behind each other in the cells
        self._slates_of_users: Float64 | None = None
        if slate is not None and position is not None:
            self._read_slates(slate, position)

    def __repr__(self) -> str:
        slates = "" if self._slates_of_users is None else f"{self.n_slates:,} slates, "
        return (
            f"Impressions({self.n:,} impressions, {slates}{self.n_users:,} users, "
            f"mean reward {self.reward.mean():.4f})"
        )

    def evaluate(
        self,
        policies: Mapping[str, Any],
        *,
        estimators: str | Sequence[str] | None = None,
        slates: Slates | None = None,
        clip: float | None = None,
        maximise: bool = True,
        min_effective: float = 50,
        confidence: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> PolicyValues:
        """Estimate how good policies would have been, from the impressions of the logged one.

        Parameters
        ----------
        policies
            The policies by name. A policy is one of these, with a row for each row of the log
            unless it is a table of candidates:

            * the name of a column of the log, or an array: the probability with which the policy
              shows the logged item here (the target probability);
            * a frame, dict or `pathlib.Path` with ``target_probability``, and for direct and
              doubly robust estimates ``predicted_reward`` (of the logged item) and
              ``policy_value`` (the sum over items of probability times predicted reward). Values
              of a dict may name columns of the log;
            * a long table of candidates with ``impression`` (the row of the log, from 0),
              ``item``, ``target_probability``, and optionally ``predicted_reward`` and
              ``logging_probability``. The probabilities of an impression must add up to 1.
        estimators
            Any of ``"ips"``, ``"clipped_ips"``, ``"snips"``, ``"direct"`` and ``"dr"``, as names
            or one text. p-values are adjusted over the comparisons by the first of them. None
            stands for those that the data permit, the most robust first: dr, snips, ips, direct.
        slates
            What the propensities of a log with slates mean; it has to be stated. With
            ``"independent"``, those of the log and of the policies are marginal: the probability
            of the item at its position. With ``"cascade"`` they are cumulative: the probability of
            the item and all items above it, the product of conditional probabilities.
        clip
            The largest weight of ``"clipped_ips"``. Clipping lowers the variance, and the estimate
            if rewards are not negative.
        maximise
            Whether a higher value is better. False for costs.
        min_effective
            The minimum effective number of users, (Σ W)² / Σ W², with W the summed weights of a
            user. Policies below it are refused.
        confidence
            The coverage of intervals, in (0, 1).
        reward_range
            The lowest and highest possible reward: the interval of ``"clipped_ips"`` is then the
            empirical Bernstein interval, which holds at any number of users, for the clipped value.

        Returns
        -------
        PolicyValues
            The value of each policy by each estimator, per impression (or slate), and ``"logged"``,
            the mean reward of the log.

        Raises
        ------
        InputError
            If probabilities or predictions do not fit, there are fewer than two users, or the
            effective number of users of a policy is too small.
        ColumnError, InputTypeError, UnknownNameError
            If a column, a type or a name is wrong.

        References
        ----------
        Horvitz & Thompson 1952 (IPS); Swaminathan & Joachims 2015 (self-normalised); Ionides 2008
        (clipping); Dudík, Langford & Li 2011 (doubly robust); Li et al. 2018 (independent slates);
        McInerney et al. 2020 (cascade).

        Examples
        --------
        >>> import numpy as np, recometer as rm
        >>> users = np.arange(400) // 2
        >>> log = rm.Impressions(
        ...     {"user": users, "item": users % 2, "click": users % 2, "shown": [0.5] * 400},
        ...     user="user", item="item", reward="click", propensity="shown",
        ... )
        >>> values = log.evaluate({"new": np.where(users % 2, 0.8, 0.2)}, estimators="snips")
        >>> round(values["new", "snips"].value, 3), round(values["logged", "snips"].value, 3)
        (0.8, 0.5)
        """
        sums = self.sums(policies, estimators=estimators, slates=slates, clip=clip)
        return sums.values(
            maximise=maximise,
            min_effective=min_effective,
            confidence=confidence,
            reward_range=reward_range,
        )

    def sums(
        self,
        policies: Mapping[str, Any],
        *,
        estimators: str | Sequence[str] | None = None,
        slates: Slates | None = None,
        clip: float | None = None,
    ) -> UserSums:
        """Return the sums of each user, from which all estimates follow.

        Sums of several blocks of a log add up: ``(one + other).values()`` is what `evaluate`
        returns for the whole log. Users may be in several blocks, but a slate must be in only one.
        The parameters are those of `evaluate`.
        """
        if not isinstance(policies, Mapping):
            raise InputTypeError(
                f"policies must be a dict from name to policy, found {type(policies).__name__}. "
                'Hint: {"new": "column of its probabilities"}.'
            )
        if not policies or not all(isinstance(name, str) for name in policies):
            raise InputError('There must be policies with names. Hint: {"new": ...}.')
        if LOGGED in policies:
            raise InputError(
                f"A policy cannot be called {LOGGED!r}, the name of the policy that wrote the log. "
                "Hint: another name."
            )
        has_slates = self._slates_of_users is not None
        check_slates(slates, has_slates)
        read = {
            name: read_policy(self._columns, self.propensity, name, given)
            for name, given in policies.items()
        }
        if slates == "cascade":
            self._check_cumulative(self.propensity, "propensities")
            for name, policy in read.items():
                if policy.from_candidates:
                    raise InputError(
                        f"{name}: candidates have the probability of an item at a position, but a "
                        "cascade needs that of the item and all items above it. Hint: a frame with "
                        "target_probability, a row for each impression."
                    )
                self._check_cumulative(policy.probability, f"target probabilities of {name}")
        names = estimators_of(estimators, read, clip, has_slates)
        given_clip = None if clip is None else float(clip)
        each = on_all_threads(
            lambda one: self._sums_of_policy(*one, names, given_clip), [*read.items()]
        )
        return UserSums(
            user_ids=self.user_ids,
            positions=self._positions,
            sums=functools.reduce(operator.or_, (sums for sums, _, _ in each), self._sums_of_log()),
            squares={name: squares for name, (_, squares, _) in zip(read, each, strict=True)},
            largest={name: largest for name, (_, _, largest) in zip(read, each, strict=True)},
            reward_ends=(float(self.reward.min()), float(self.reward.max())),
            estimators=names,
            clip=given_clip,
            has_slates=has_slates,
        )

    def _sums_of_log(self) -> Sums:
        counts = np.bincount(self._cells, minlength=len(self._positions) * self.n_users)
        rows: Float64 = counts.astype(np.float64).reshape(-1, self.n_users)
        units = rows
        if self._slates_of_users is not None:
            units = np.zeros_like(rows)
            units[0] = self._slates_of_users
        reward = self._of_users(self.reward)
        return {(LOGGED, "rows"): rows, (LOGGED, "units"): units, (LOGGED, "reward"): reward}

    def _sums_of_policy(
        self, name: str, policy: Policy, estimators: Sequence[str], clip: float | None
    ) -> tuple[Sums, float, tuple[float, ...]]:
        """Return the sums that the estimators need, and the squares and largest of the weights."""
        weight = policy.probability / self.propensity
        terms = {ESTIMATORS[one].term for one in estimators}
        of = {term: self._of_users(term(policy, weight, self.reward, clip)) for term in terms}
        sums = {(name, one): of[ESTIMATORS[one].term] for one in estimators}
        sums[name, "weight"] = self._of_users(weight)
        if policy.unsupported is not None:
            sums[name, "unsupported"] = self._of_users(policy.unsupported)
        return sums, float(weight @ weight), largest_of(weight)

    def _of_users(self, values: Float64) -> Float64:
        """Return the sums of users: float64 [n_positions, n_users]."""
        cells = self._cells
        if 2 * np.count_nonzero(values) < self.n:  # few rewards, such as clicks
            rows = np.flatnonzero(values)
            cells, values = cells[rows], values[rows]
        sums = ragged.sums_of(cells, values, len(self._positions) * self.n_users)
        return sums.reshape(-1, self.n_users)

    def _read_slates(self, slate: str, position: str) -> None:
        codes, ids = encode(self._columns.columns.ids(slate), f"slates (column {slate!r})")
        slates, distinct = encode(self._users * len(ids) + codes, "slates")
        self.n_slates = len(distinct)
        of_users = np.bincount(distinct // len(ids), minlength=self.n_users)
        self._slates_of_users = of_users.astype(np.float64)
        values = self._columns.numbers(position, "positions")
        self._positions, places = np.unique(values, return_inverse=True)
        self._cells = places * self.n_users + self._users
        self._order = np.argsort(slates * len(self._positions) + places, kind="stable")
        self._below = np.diff(slates[self._order]) == 0
        twice = self._below & (np.diff(places[self._order]) == 0)
        if twice.any():
            at = self._order[1:][twice][0]
            raise InputError(
                f"The position {values[at]:g} occurs twice in the slate {show(ids, codes[at])} of "
                f"user {show(self.user_ids, self._users[at])}. Hint: each position of a slate must "
                "be in one row; number the slates of a user."
            )

    def _check_cumulative(self, probability: Float64, what: str) -> None:
        """Raise if probabilities of a cascade increase from a position to the next."""
        ordered = probability[self._order]
        rises = self._below & (ordered[1:] > ordered[:-1] * (1 + 1e-9))
        if rises.any():
            at = int(self._order[1:][rises][0])
            raise InputError(
                f"The {what} rise within a slate (row {at}, counted from 0), but a cascade needs "
                "the probability of an item and all items above it, which cannot rise. Hint: "
                "multiply the conditional probabilities from the top; "
                f"{argument_text('slates', 'independent')} takes marginal ones, whose products are "
                "not the probability of a slate."
            )


def check_slates(slates: object, has_slates: bool) -> None:
    """Raise unless `slates` is passed for a log with slates, and only for such a log."""
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


def estimators_of(
    asked: str | Sequence[str] | None,
    policies: Mapping[str, Policy],
    clip: float | None,
    has_slates: bool,
) -> tuple[str, ...]:
    """Return the estimators to compute, the first of which is the primary one."""
    if clip is not None:
        check_number("clip", clip)
        if not clip > 0:
            raise InputError(
                f"{argument_text('clip', clip)} must be above 0. Hint: it is the largest weight."
            )
    without = [name for name, policy in policies.items() if policy.predicted is None]
    if asked is None:
        predicted = not without and not has_slates
        return tuple(
            name
            for name, estimator in ESTIMATORS.items()
            if (predicted or not estimator.predicts) and (clip or name != "clipped_ips")
        )
    names = asked.replace(",", " ").split() if isinstance(asked, str) else asked
    if not names:
        raise InputError(f"There are no estimators. Hint: {', '.join(ESTIMATORS)}.")
    for name in names:
        known("There is no estimator", name, ESTIMATORS)
        if ESTIMATORS[name].predicts and has_slates:
            raise InputError(f"{name} is not for slates. Hint: snips or ips.")
        if ESTIMATORS[name].predicts and without:
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
    return tuple(dict.fromkeys(names))


def largest_of(values: Float64) -> tuple[float, ...]:
    """Return the largest values, decreasing; they lie in the blocks with the largest maxima."""
    starts = np.arange(0, len(values), BLOCK)
    first = np.argsort(np.maximum.reduceat(values, starts))[-LARGEST:]
    near = np.concatenate([values[start : start + BLOCK] for start in starts[first]])
    return tuple(np.sort(near)[: -LARGEST - 1 : -1].tolist())
