"""Logs of impressions, in which each row has a user, an item, a reward and a propensity."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64
from recometer.data.catalogue import NamedColumns
from recometer.data.columns import check_column
from recometer.data.frames import is_array, is_column
from recometer.data.ids import encode, match, missing, show
from recometer.data.numbers import all_numbers
from recometer.errors import (
    ColumnError,
    InputError,
    InputTypeError,
    UnknownNameError,
    argument_text,
    brief,
    did_you_mean,
)
from recometer.logs.values import LARGEST, LOGGED, TERMS, Policy, PolicyValues, UserSums, check_name
from recometer.stats.checks import check_number
from recometer.tasks import on_all_threads

Slates = Literal["independent", "cascade"]
Sums = dict[tuple[str, str], Float64]  # see `UserSums.sums`
SUM_OF_PROBABILITIES = 1e-3  # sums may differ from 1 by this much, because columns may be rounded
TARGET, PREDICTED, VALUE = "target_probability", "predicted_reward", "policy_value"
CANDIDATES = ("impression", "item", TARGET, PREDICTED, "logging_probability")


class Impressions:
    """A log of impressions, each with the item shown to a user, its propensity and the reward.

    Parameters
    ----------
    frame
        A table with a row for each impression: a data frame from any library, a dict of columns, or
        the path of a file (Parquet, CSV or TSV).
    user, item
        The columns of user ids and of item ids. Intervals and tests treat each user as one sample,
        so the impressions of a user need not be independent of each other.
    reward
        The column of rewards (such as clicks, 0 or 1) or of costs, which must be finite numbers.
    propensity
        The column of propensities. A propensity is the probability, above 0 and at most 1, with
        which the logging policy showed the item.
    position
        The column with each item's position in its slate. A position may occur only once in a
        slate.
    slate
        The column of slate ids, if several items were shown together. Ids need only be
        unique within each user, so each user's slates may be numbered from 0.

    Attributes
    ----------
    n, n_users : int
        The numbers of impressions and users.

    Raises
    ------
    ColumnError
        If a named column does not exist.
    InputError
        If a value is missing or not finite, a propensity is outside (0, 1], there are no rows, or
        a position occurs twice in a slate.
    InputTypeError
        If `frame` is not a table, or a column does not contain numbers.

    Examples
    --------
    >>> import numpy as np, recometer as rm
    >>> users = np.arange(400) // 2
    >>> log = rm.Impressions(
    ...     {"user": users, "item": users % 2, "click": users % 2, "shown": [0.5] * 400},
    ...     user="user", item="item", reward="click", propensity="shown",
    ... )
    >>> log
    Impressions(400 impressions, 200 users, mean reward 0.5000)
    >>> values = log.evaluate({"new": np.where(users % 2, 0.8, 0.2)}, estimators="snips")
    >>> round(values["new", "snips"].value, 3)
    0.8
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
                "or neither."
            )
        table = NamedColumns.of(frame)
        if table is None:
            raise InputTypeError(
                "The log must be a data frame, a dict of columns or the path of a file, found "
                f"{type(frame).__name__}. Hint: pass one row per impression."
            )
        columns = {"user": user, "item": item, "reward": reward, "propensity": propensity}
        for option, name in columns.items():
            check_column(option, name, table.names)
        self._table, self._item = table, item
        self._users, self.user_ids = encode(table.ids(user), f"user ids (column {user!r})")
        self.n, self.n_users = len(self._users), len(self.user_ids)
        if not self.n:
            raise InputError("The log has no rows. Hint: there must be a row for each impression.")
        self.reward = _numbers(table, reward, "rewards", self.n)
        self.propensity = _numbers(table, propensity, "propensities", self.n)
        _check(self.propensity, f"propensity of column {propensity!r}", above_0=True)
        self._cells = self._users  # a cell is a user at a position: position * n_users + user
        self._positions = np.zeros(1)
        self._slates_of_users: Float64 | None = None
        if slate is not None and position is not None:
            self._read_slates(slate, position)

    def __repr__(self) -> str:
        slates = self._slates_of_users
        return (
            f"Impressions({self.n:,} impressions, "
            f"{'' if slates is None else f'{slates.sum():,.0f} slates, '}{self.n_users:,} users, "
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
        """Estimate how good policies would have been, from the impressions of the logging policy.

        Parameters
        ----------
        policies
            The policies, keyed by name. A policy is one of the following:

            * the target probabilities, that is, the probability with which the policy shows each
              logged item, as an array with an entry for each row or as the name of a column of the
              log;
            * a frame, dict or `pathlib.Path` with a row for each row of the log and a column
              ``target_probability``. Direct and doubly robust estimates also need
              ``predicted_reward`` (of the logged item) and ``policy_value`` (the sum over items of
              probability times predicted reward). The values of a dict may name columns of the log;
            * a long table of candidates with ``impression`` (the row of the log, counted from 0),
              ``item``, ``target_probability``, and optionally ``predicted_reward`` and
              ``logging_probability``. The probabilities of an impression must add up to 1.
        estimators
            Any of ``"ips"``, ``"clipped_ips"``, ``"snips"``, ``"direct"`` and ``"dr"``, as a list
            or as a string of names. p-values are adjusted over the comparisons that use the
            first estimator. None means all estimators that the data permit, the most robust one
            first: dr, snips, clipped_ips (if `clip` is set), ips, direct.
        slates
            The meaning of the propensities, which you must state if the log has slates. With
            ``"independent"``, the propensities and target probabilities are marginal: each is the
            probability of the item at its position. With ``"cascade"``, they are cumulative: each
            is the probability of the item and all items above it.
        clip
            The weight to which ``"clipped_ips"`` clips larger weights. Clipping lowers the
            variance; if rewards are not negative, it also lowers the estimate.
        maximise
            Whether a higher value is better. Pass False for costs.
        min_effective
            The minimum effective number of users, (Σ W)² / Σ W², where W is the sum of a user's
            weights. Policies with fewer effective users are refused.
        confidence
            The coverage of intervals, in (0, 1).
        reward_range
            The lowest and the highest possible reward. Given this range, ``"clipped_ips"`` has an
            empirical Bernstein interval for the clipped value, valid for any number of users.

        Returns
        -------
        PolicyValues
            The value of each policy according to each estimator, per impression (or slate), and the
            mean reward of the log, named ``"logged"``.

        Raises
        ------
        InputError
            If probabilities or predictions are invalid, there are fewer than two users, or a
            policy has too few effective users.
        ColumnError
            If a column does not exist, or a policy has an unknown column.
        InputTypeError
            If an argument has the wrong type.
        UnknownNameError
            If an estimator or the value of `slates` is unknown.

        References
        ----------
        Horvitz & Thompson 1952 (IPS); Swaminathan & Joachims 2015 (self-normalised); Ionides 2008
        (clipping); Dudík, Langford & Li 2011 (doubly robust); Li et al. 2018 (independent slates);
        McInerney et al. 2020 (cascade).
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
        """Return the sums over each user's impressions, from which all estimates follow.

        You can add the sums of several blocks of a log: ``(first + second).values()`` is what
        `evaluate` returns for the whole log. A user may be in several blocks, but a slate must be
        in only one. The parameters are the same as for `evaluate`.
        """
        if not isinstance(policies, Mapping):
            raise InputTypeError(
                f"policies must be a dict from name to policy, found {type(policies).__name__}. "
                'Hint: {"new": "column of its probabilities"}.'
            )
        if not policies or LOGGED in policies or not all(isinstance(p, str) for p in policies):
            raise InputError(
                f"Policies need names other than {LOGGED!r}, the logging policy, found "
                f'{brief(list(policies))}. Hint: {{"new": ...}}.'
            )
        has_slates, cascade = self._slates_of_users is not None, slates == "cascade"
        if has_slates and slates not in get_args(Slates):
            raise UnknownNameError(
                f"The log has slates, so {argument_text('slates')} must be 'independent' "
                "(propensities are of an item at its position) or 'cascade' (of an item and all "
                f"items above it), found {brief(slates)}. Hint: a product of marginal propensities "
                "is not the probability of a slate, whose items depend on each other."
            )
        if slates is not None and not has_slates:
            raise InputError(
                f"{argument_text('slates', slates)} has no effect. Hint: {argument_text('slate')} "
                "names the column of slates."
            )
        policies_read = {
            name: _read_policy(self, name, policy, cascade=cascade)
            for name, policy in policies.items()
        }
        if cascade:
            self._check_cumulative(self.propensity, "propensities")
            for name, policy in policies_read.items():
                self._check_cumulative(policy.probability, f"target probabilities of {name}")
        names = _estimators_of(estimators, policies_read, clip, has_slates)
        clip = None if clip is None else float(clip)
        results = on_all_threads(
            lambda item: self._sums_of_policy(*item, names, clip), [*policies_read.items()]
        )
        sums, largest = zip(*results, strict=True)
        return UserSums(
            user_ids=self.user_ids,
            positions=self._positions,
            sums=functools.reduce(operator.or_, sums, self._sums_of_log()),
            largest=dict(zip(policies_read, largest, strict=True)),
            reward_ends=(float(self.reward.min()), float(self.reward.max())),
            estimators=names,
            clip=clip,
            unit="slate" if has_slates else "impression",
        )

    def _sums_of_log(self) -> Sums:
        counts = np.bincount(self._cells, minlength=len(self._positions) * self.n_users)
        rows = units = counts.astype(np.float64).reshape(-1, self.n_users)
        if self._slates_of_users is not None:
            units = np.pad(self._slates_of_users[np.newaxis], ((0, len(rows) - 1), (0, 0)))
        sums = {"rows": rows, "units": units, "reward": self._add_up(self.reward)}
        return {(LOGGED, kind): values for kind, values in sums.items()}

    def _sums_of_policy(
        self, name: str, policy: Policy, estimators: Sequence[str], clip: float | None
    ) -> tuple[Sums, tuple[float, ...]]:
        """Return the sums that the estimators need, and the largest weights."""
        weight = policy.probability / self.propensity
        terms = {TERMS[estimator] for estimator in estimators}
        totals = {term: self._add_up(term(policy, weight, self.reward, clip)) for term in terms}
        sums = {(name, estimator): totals[TERMS[estimator]] for estimator in estimators}
        sums[name, "weight"] = self._add_up(weight)
        if policy.unsupported is not None:
            sums[name, "unsupported"] = self._add_up(policy.unsupported)
        largest = []
        # `np.partition` takes seconds for 10 million weights if most are equal.
        for _ in range(min(LARGEST, self.n)):
            row = weight.argmax()
            largest.append(float(weight[row]))
            weight[row] = 0.0
        return sums, tuple(largest)

    def _add_up(self, values: Float64) -> Float64:
        """Add up each user's values at each position, as float64 [n_positions, n_users]."""
        cells = self._cells
        if 2 * np.count_nonzero(values) < self.n:  # most values are 0, as with clicks
            rows = np.flatnonzero(values)
            cells, values = cells[rows], values[rows]
        sums = ragged.sums_of(cells, values, len(self._positions) * self.n_users)
        return sums.reshape(-1, self.n_users)

    def _read_slates(self, slate: str, position: str) -> None:
        check_column("slate", slate, self._table.names)
        codes, ids = encode(self._table.ids(slate), f"slates (column {slate!r})")
        slates, distinct = encode(self._users * len(ids) + codes, "slates")
        of_users = np.bincount(distinct // len(ids), minlength=self.n_users)
        self._slates_of_users = of_users.astype(np.float64)
        values = _numbers(self._table, position, "positions", self.n)
        self._positions, places = np.unique(values, return_inverse=True)
        self._cells = places * self.n_users + self._users
        self._order = np.argsort(slates * len(self._positions) + places, kind="stable")
        self._below = np.diff(slates[self._order]) == 0
        twice = self._below & (np.diff(places[self._order]) == 0)
        if twice.any():
            row = self._order[1:][twice][0]
            raise InputError(
                f"The position {values[row]:g} occurs twice in the slate {show(ids, codes[row])} "
                f"of user {show(self.user_ids, self._users[row])}. Hint: each position of a slate "
                "must be in one row; number each user's slates."
            )

    def _check_cumulative(self, probability: Float64, noun: str) -> None:
        """Raise an error if the probabilities of a cascade rise from one position to the next."""
        ordered = probability[self._order]
        rises = self._below & (ordered[1:] > ordered[:-1] * (1 + 1e-9))
        if rises.any():
            row = int(self._order[1:][rises][0])
            raise InputError(
                f"The {noun} rise within a slate (row {row}, counted from 0), but a cascade needs "
                "the probability of an item and all items above it, which cannot rise. Hint: "
                "multiply the conditional probabilities from the top; "
                f"{argument_text('slates', 'independent')} takes marginal ones, whose products are "
                "not the probability of a slate."
            )


def _estimators_of(
    estimators: str | Sequence[str] | None,
    policies: Mapping[str, Policy],
    clip: float | None,
    has_slates: bool,
) -> tuple[str, ...]:
    """Return the estimators to compute, with the primary one first."""
    reason = ""  # why the data do not permit estimators that read predictions
    without = [name for name, policy in policies.items() if policy.predicted is None]
    if has_slates:
        reason = "does not support slates. Hint: use snips or ips."
    elif without:
        reason = (
            f"needs {PREDICTED} and {VALUE}, which {without[0]!r} does not have. Hint: pass a "
            f"frame with both, or a table of candidates with {PREDICTED}."
        )
    refused = dict.fromkeys(("dr", "direct"), reason) if reason else {}
    if clip is None:
        refused["clipped_ips"] = (
            f"needs {argument_text('clip')}, the largest weight. Hint: {argument_text('clip', 10)}."
        )
    else:
        check_number("clip", clip)
        if not clip > 0:
            raise InputError(
                f"{argument_text('clip', clip)} must be above 0. Hint: it is the largest weight."
            )
    if estimators is None:
        return tuple(name for name in TERMS if name not in refused)
    names = estimators.replace(",", " ").split() if isinstance(estimators, str) else estimators
    if not names:
        raise InputError(f"No estimators were given. Hint: choose from {', '.join(TERMS)}.")
    for name in names:
        check_name("There is no estimator", name, TERMS)
        if name in refused:
            raise InputError(f"{name} {refused[name]}")
    if clip is not None and "clipped_ips" not in names:
        raise InputError(
            f"{argument_text('clip', clip)} applies only to clipped_ips. Hint: add clipped_ips to "
            f"{argument_text('estimators')}, or leave it out."
        )
    return tuple(dict.fromkeys(names))


def _read_policy(log: Impressions, name: str, policy: Any, *, cascade: bool) -> Policy:
    """Read a policy in any form that `Impressions.evaluate` accepts."""
    if isinstance(policy, str | list) or is_column(policy) or is_array(policy):
        policy = {TARGET: policy}
    table = NamedColumns.of(policy)
    if table is None:
        raise InputTypeError(
            f"The policy {name!r} is of type {type(policy).__name__}. Hint: pass the name of a "
            f"column, an array of probabilities, or a frame with {TARGET}."
        )
    long = "impression" in table.names
    meaningful = CANDIDATES if long else (TARGET, PREDICTED, VALUE, "impression")
    for column in table.names:
        if column not in meaningful:
            raise ColumnError(
                f"The policy {name!r} has an unknown column {column!r}. "
                f"{did_you_mean(column, meaningful)}"
            )
    check_column("column", TARGET, table.names)
    if long and cascade:
        raise InputError(
            f"{name}: a table of candidates contains the probability of each item at its position, "
            "but a cascade needs the probability of the item together with all items above it. "
            f"Hint: pass a frame with {TARGET}, one row per impression."
        )
    if long:
        return _from_candidates(log, name, table)
    if (PREDICTED in table.names) != (VALUE in table.names):
        raise ColumnError(
            f"The policy {name!r} has only one of {PREDICTED} and {VALUE}. Hint: direct and doubly "
            "robust estimates need both; a table of candidates gives both."
        )
    # The values of a dict may name columns of the log.
    in_log = isinstance(policy, Mapping)
    columns = {
        column: _numbers(
            log._table if in_log else table,
            policy[column] if in_log else column,
            f"{column} of {name}",
            log.n,
        )
        for column in table.names
    }
    _check(columns[TARGET], f"{TARGET} of {name}")
    return Policy(columns[TARGET], columns.get(PREDICTED), columns.get(VALUE))


def _from_candidates(log: Impressions, name: str, table: NamedColumns) -> Policy:
    """Make a policy from a table with the probabilities (and predictions) for all candidates."""
    check_column("column", "item", table.names)
    n, suffix = log.n, f"of the candidates of {name}"
    codes, ids = encode(table.ids("item"), f"items {suffix}")
    rows = _numbers(table, "impression", f"impressions {suffix}", len(codes))
    wrong = (rows < 0) | (rows >= n) | (rows % 1 != 0)
    if wrong.any():
        raise InputError(
            f"The candidates of {name} refer to impression {_first(wrong, rows)[1]:g}, but the "
            f"log has rows 0 to {n - 1:,}. Hint: impression must be the number of a row of the log."
        )
    impression = rows.astype(np.int64)
    items = log._table.ids(log._item)
    logged = match(items, ids, f"items of the log ({log._item!r})", f"items {suffix}")
    keys = ragged.pairs(impression, codes, len(ids))
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        row = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise InputError(
            f"The candidates of {name} contain the item {show(ids, codes[row])} twice "
            f"in impression {impression[row]}. Hint: each item must be in one row of an impression."
        )
    is_logged = codes == logged[impression]

    def column(title: str, *, sums_to_1: bool = True) -> tuple[Float64, Float64]:
        """Return a column, and its values for the logged items."""
        values = _numbers(table, title, f"{title} {suffix}", len(rows))
        if sums_to_1:
            _check(values, f"{title} {suffix}")
            sums = ragged.sums_of(impression, values, n)
            if (off := np.abs(sums - 1) > SUM_OF_PROBABILITIES).any():
                row, sum_of_row = _first(off, sums)
                raise InputError(
                    f"The {title} {suffix} in impression {row} add up to {sum_of_row:g}, but must "
                    "add up to 1. Hint: every item with a probability above 0 needs a row, and "
                    "scores need a softmax."
                )
        of_logged = np.zeros(n)
        of_logged[impression[is_logged]] = values[is_logged]
        return values, of_logged

    target, probability = column(TARGET)
    predicted = value = unsupported = None
    if PREDICTED in table.names:
        predictions, predicted = column(PREDICTED, sums_to_1=False)
        value = ragged.sums_of(impression, target * predictions, n)
    if "logging_probability" in table.names:
        logging, stated = column("logging_probability")
        off = np.abs(stated - log.propensity) > SUM_OF_PROBABILITIES * np.maximum(stated, 1e-3)
        if off.any():
            row, of_row = _first(off, stated)
            raise InputError(
                f"The candidates of {name} give the logged item of row {row} the "
                f"logging_probability {of_row:g}, but its propensity in the log is "
                f"{log.propensity[row]:g}. Hint: they must be equal."
            )
        unsupported = ragged.sums_of(impression, np.where(logging > 0, 0.0, target), n)
    return Policy(probability, predicted, value, unsupported)


def _numbers(table: NamedColumns, column: Any, noun: str, n: int) -> Float64:
    """Return a column of n finite numbers, given as an array or as the name of a column."""
    if isinstance(column, str):
        check_column("column", column, table.names)
        values = table.numbers(column, noun)
        noun += f" (column {column!r})"
    else:
        values = all_numbers(column, noun)
    if values.shape != (n,):
        raise InputError(
            f"The {noun} must have a value for each of the {n:,} rows, found the shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        row, value = _first(~np.isfinite(values), values)
        if np.isnan(value):
            missing(noun, row)
        raise InputError(f"The {noun} must be finite, found {value} in row {row}.")
    return values


def _check(probabilities: Float64, noun: str, *, above_0: bool = False) -> None:
    """Raise an error unless all probabilities are in [0, 1], or in (0, 1] if `above_0`."""
    wrong = (probabilities <= 0 if above_0 else probabilities < 0) | (probabilities > 1)
    if not wrong.any():
        return
    row, value = _first(wrong, probabilities)
    hint = "Scores, counts, logarithms and inverse weights are not probabilities."
    if value == 0:
        hint = (
            "An item that was shown must have had a probability above 0: this one was rounded "
            "to 0 or belongs to another item, and nothing can be estimated with it."
        )
    elif value > 0 and probabilities.max() <= 100:
        hint = "Percentages are divided by 100."
    raise InputError(
        f"The {noun} in row {row} (counted from 0) is {value:g}; it must be "
        f"{'above 0 and at most 1' if above_0 else 'from 0 to 1'}. Hint: {hint}"
    )


def _first(wrong: Bool, values: Float64) -> tuple[int, float]:
    """Return the first row that is marked as wrong, and its value."""
    row = int(np.argmax(wrong))
    return row, float(values[row])
