"""How much of the users' attention goes to groups of items, and to single items."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.listed.data import ListData, exposures, log2, needed, placed, places_discount
from recometer.metrics.sums import ratio
from recometer.ragged import sums_of, users_of

if TYPE_CHECKING:
    import scipy.sparse


@dataclasses.dataclass(frozen=True, eq=False)
class GroupExposure:
    """The exposure and the share of each group; the last entry is for items without a group.

    Attributes
    ----------
    listed : float64 [n_groups + 1]
        The number of places in lists that the group's items take.
    exposure : float64 [n_groups + 1]
        The group's share of the exposure, the sum of the discounts of these places.
    relevant : float64 [n_groups + 1] or None
        The group's share of the relevant items of all users.
    """

    listed: Float64
    exposure: Float64
    relevant: Float64 | None


def exposure_of_groups(
    data: ListData, cutoff: int, discount: str, patience: float
) -> GroupExposure:
    """Add up the exposure of the items of each group.

    The exposure of an item is the sum of ``d(its place)`` over the lists that contain it in the
    first k places. An item in n groups counts 1 / n for each.

    Parameters
    ----------
    data
        Its `categories` are the groups. With `test`, the groups' shares of the relevant items are
        also computed.
    cutoff
        The cut-off k.
    discount, patience
        The weight d(j) of place j: 1 / log2(j + 1) for ``"log"``, patience^(j - 1) for
        ``"geometric"``, and 1 for ``"none"``.

    References
    ----------
    Singh & Joachims 2018, Fairness of exposure in rankings. Raj & Ekstrand 2022, Measuring
    fairness in ranked results.
    """
    width = data.first(cutoff).shape[1]
    d = places_discount(width, discount, patience)
    relevant = None
    if data.test is not None:
        items = data.test.items[needed(data.relevant)]
        relevant = _shares(data, np.bincount(items, minlength=data.lists.n_items))
    return GroupExposure(
        listed=_sums(data, exposures(data, cutoff)),
        exposure=_shares(data, exposures(data, cutoff, discount=d)),
        relevant=relevant,
    )


def _shares(data: ListData, values: Float64 | Int64) -> Float64:
    sums = _sums(data, values)
    total = sums.sum()
    return sums / total if total else np.full(len(sums), np.nan)


def _sums(data: ListData, values: Float64 | Int64) -> Float64:
    """Add up the values of each group's items; the last entry is for items without a group."""
    groups = needed(data.categories)
    width = np.diff(groups.indptr)
    part = np.repeat(values / np.maximum(width, 1), width)
    sums = sums_of(groups.indices, part, groups.shape[1])
    return np.append(sums, values[width == 0].sum())


def attention_of_items(
    data: ListData, cutoff: int, discount: str, patience: float
) -> scipy.sparse.csr_array:
    """Return the attention that each item gets from each user's list: sparse [n_users, n_items]."""
    d = places_discount(data.first(cutoff).shape[1], discount, patience)
    attention: scipy.sparse.csr_array = placed(data, cutoff, d).T
    return attention


def shares_of_groups(attention: scipy.sparse.csr_array, data: ListData) -> Float64:
    """Return the groups' shares of the attention of each list: float64 [n_users, n_groups].

    Items without a group do not count. The shares are NaN if no item of the list has a group.
    """
    groups = needed(data.categories).astype(np.float64)
    width = np.maximum(np.diff(groups.indptr), 1)
    by_group = attention @ (groups / width[:, np.newaxis]).tocsr()
    sums: Float64 = by_group.toarray()
    total = sums.sum(axis=1, keepdims=True)
    shares: Float64 = np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0)
    return shares


def rank_fairness(shares: Float64, target: Float64) -> Float64:
    """Return 1 minus the Jensen-Shannon divergence from a target: float64 [n_users].

    Parameters
    ----------
    shares : float64 [n_users, n_groups]
    target : float64 [n_groups]
        The target and each user's shares add up to 1.

    Notes
    -----
    ``1 - (KL(p, m) + KL(q, m)) / 2`` in bits with ``m = (p + q) / 2``. It is 1 if the shares equal
    the target, and 0 if the list only has groups with a target share of 0.

    References
    ----------
    Sapiezynski et al. 2019, Quantifying the impact of user attention on fair group representation
    in ranked lists. Ekstrand et al. 2023, Overview of the TREC 2022 fair ranking track (for the
    divergence).
    """
    middle = (shares + target) / 2
    divergence = (_divergence(shares, middle) + _divergence(target, middle)) / 2
    return np.where(np.isnan(shares).any(axis=1), np.nan, 1 - divergence)


def _divergence(shares: Float64, middle: Float64) -> Float64:
    parts = np.broadcast_to(shares, middle.shape)
    positive = parts > 0
    terms = np.zeros(middle.shape)
    terms[positive] = parts[positive] * log2(parts[positive] / middle[positive])
    divergence: Float64 = terms.sum(axis=1)
    return divergence


@dataclasses.dataclass(frozen=True, eq=False)
class ExpectedExposure:
    """Expected exposure of single items: float64 [n_users] each, NaN without a relevant item."""

    disparity: Float64
    relevance: Float64
    loss: Float64


def expected_exposure(
    attention: scipy.sparse.csr_array, data: ListData, worth: Float64
) -> ExpectedExposure:
    """Compare the attention that each item gets with an ideal, randomised ranking.

    Parameters
    ----------
    attention : sparse [n_users, n_items]
        The mean attention over all lists that a user is shown.
    data
        The lists and their side data, which must include `test`. Items of `train` are not
        candidates. Listed items that are not in the catalogue are not candidates either, unless
        they are in test.
    worth : float64 [k]
        The attention for each place.

    Notes
    -----
    Let e be the attention that an item gets, and t the attention that it would get if the user's R
    relevant items took the first R places in random order, and the other n - R items the following
    places. The disparity is ``sum of e^2``, the relevance is ``sum of e t``, and the loss is
    ``sum of (e - t)^2``.

    References
    ----------
    Diaz et al. 2020, Evaluating stochastic rankings with expected exposure.
    """
    test, relevant = needed(data.test), needed(data.relevant)
    users, items = users_of(test.indptr)[relevant], test.items[relevant]
    n_relevant = np.bincount(users, minlength=data.n_users)
    lacking = data.lists.uncatalogued
    invented = np.setdiff1d(np.zeros(0, np.int64) if lacking is None else lacking, test.items)
    candidates = np.full(data.n_users, data.n_items - len(invented))
    if data.train is not None:
        candidates -= np.diff(data.train.indptr)
    above = np.cumsum(worth)
    until = above[np.minimum(n_relevant, len(worth)) - 1]
    n_others = candidates - n_relevant
    remaining = above[np.minimum(candidates, len(worth)) - 1] - until
    of_relevant, of_others = ratio(until, n_relevant), ratio(remaining, n_others)

    attention_to_relevant = np.bincount(
        users, np.asarray(attention[users, items]).ravel(), data.n_users
    )
    total = np.asarray(attention.sum(axis=1)).ravel()
    if len(invented):
        total = total - np.asarray(attention[:, invented].sum(axis=1)).ravel()
    disparity = np.asarray(attention.multiply(attention).sum(axis=1)).ravel()
    relevance = attention_to_relevant * of_relevant + (total - attention_to_relevant) * of_others
    ideal = n_relevant * of_relevant**2 + n_others * of_others**2
    sums = disparity, relevance, disparity - 2 * relevance + ideal
    return ExpectedExposure(*(np.where(n_relevant > 0, values, np.nan) for values in sums))
