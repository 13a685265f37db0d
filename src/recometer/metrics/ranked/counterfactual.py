"""Metrics that weight hits by 1 / propensity (an item's chance of being in the test data).

The module `recometer.metrics.ranked.binary` explains the symbols in the formulas.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64, largest
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.facts import all_gains
from recometer.metrics.registry import metric
from recometer.metrics.sums import discounts, means_of_members, ratio, totals
from recometer.ranks import Ranks
from recometer.ties import Groups, shared

SOURCE = "Yang et al. 2018; propensities: Saito et al. 2020"
PARAMETERS = {
    "propensity": Parameter(
        "The propensity of an item, which is the probability that the item is observed; w(j) is "
        "1 / propensity for the item at rank j.",
        choices={
            "popularity": "(n / the largest n)^power, where n is the item's number of training "
            "users, or 1 if it has none",
            "given": "p^power, where p is the item's propensity in the catalogue",
        },
    ),
    "power": Parameter(
        "The exponent. By default, it is 0.5 with propensity=popularity, and 1 with "
        "propensity=given.",
        above=0,
        examples=(0.5, 2),
    ),
}
WHEN: dict[str, Any] = {
    "propensity": {
        "popularity": {"reads": "inverse_popularity", "side": ("train",)},
        "given": {"reads": "inverse_propensity", "side": ("propensity",)},
    }
}
weighted_metric = functools.partial(
    metric, reads="inverse_popularity", parameters=PARAMETERS, when=WHEN
)


@weighted_metric(
    title="Recall by inverse propensity scores",
    formula="sum over j <= k of rel(j) w(j) / R",
    source=SOURCE,
    upper=np.inf,
    order_free=True,
)
def ips_recall(
    groups: Groups, cutoffs: Int64, *, propensity: str = "popularity", power: float | None = None
) -> Float64:
    """Recall in which a hit counts more if it was less likely to be observed; 0 or more.

    ``(1/R) * sum over j <= k of rel(j) / propensity(j)``. At each place in a tied group,
    ``rel(j) / propensity(j)`` is replaced by the group's mean.

    References
    ----------
    Yang, Cui, Xuan, Wang, Belongie & Estrin 2018, Unbiased offline recommender evaluation for
    missing-not-at-random implicit feedback. Saito, Yaginuma, Nishino, Sakata & Nakata 2020,
    Unbiased recommender learning from missing-not-at-random implicit feedback (propensity
    (n_i / max n)^0.5).
    """
    weighted_hits = _weighted_hits(groups, cutoffs, _exponent(propensity, power))
    return ratio(weighted_hits, groups.n_relevant[:, np.newaxis])


@weighted_metric(
    title="DCG by inverse propensity scores",
    formula="sum over j <= k of rel(j) w(j) / log2(j + 1)",
    source=SOURCE,
    upper=np.inf,
)
def ips_dcg(
    groups: Groups, cutoffs: Int64, *, propensity: str = "popularity", power: float | None = None
) -> Float64:
    """Discounted gain in which a hit counts more if it was less likely to be observed.

    ``sum over j <= k of rel(j) / (propensity(j) log2(j + 1))``, 0 or more. Yang et al. divide it by
    R. Ties are treated as in `ips_recall`.

    References
    ----------
    Yang et al. 2018; Saito et al. 2020.
    """
    return _weighted_dcg(groups, cutoffs, _exponent(propensity, power))


@weighted_metric(
    title="Recall by self-normalised inverse propensity scores",
    formula="sum over j <= k of rel(j) w(j) / sum of w over the user's relevant items",
    source="Swaminathan & Joachims 2015; Yang et al. 2018",
    order_free=True,
)
def snips_recall(
    groups: Groups, cutoffs: Int64, *, propensity: str = "popularity", power: float | None = None
) -> Float64:
    """Recall in which an item counts more if it was less likely to be observed; in [0, 1].

    ``sum over j <= k of rel(j) w(j) / sum over T of w``, where w is 1 / propensity and T is the set
    of the user's relevant items. Ties are treated as in `ips_recall`.

    References
    ----------
    Swaminathan & Joachims 2015, The self-normalized estimator for counterfactual learning. Yang
    et al. 2018.
    """
    exponent = _exponent(propensity, power)
    return ratio(_weighted_hits(groups, cutoffs, exponent), _all_weights(groups, exponent))


@weighted_metric(
    title="DCG by self-normalised inverse propensity scores",
    formula="sum over j <= k of rel(j) w(j) / log2(j + 1) / sum of w over the user's relevant "
    "items",
    source="Swaminathan & Joachims 2015; Yang et al. 2018",
)
def snips_dcg(
    groups: Groups, cutoffs: Int64, *, propensity: str = "popularity", power: float | None = None
) -> Float64:
    """Weighted mean of 1 / log2(rank + 1) over the relevant items, with 0 beyond k; in [0, 1].

    The weights are ``w = 1 / propensity``. Ties are treated as in `ips_recall`.

    References
    ----------
    Swaminathan & Joachims 2015; Yang et al. 2018.
    """
    exponent = _exponent(propensity, power)
    return ratio(_weighted_dcg(groups, cutoffs, exponent), _all_weights(groups, exponent))


def with_propensities(
    ranks: Ranks, item_users: Int64 | None = None, propensity: Float64 | None = None
) -> Ranks:
    """Return `ranks` with the popularity and the propensity of each judged item.

    `item_users` gives the number of training users who interacted with each item, and `propensity`
    the probability that each item is observed (NaN if unknown). `Ranks.item` indexes both.
    """
    popularity = item_propensity = None
    if item_users is not None:
        count = np.maximum(item_users, 1)
        popularity = count[ranks.item] / largest(count)
    if propensity is not None:
        item_propensity = propensity[ranks.item]
    return dataclasses.replace(ranks, popularity=popularity, propensity=item_propensity)


def _exponent(propensity: str, power: float | None) -> float:
    if power is None:
        return 0.5 if propensity == "popularity" else 1.0
    return power


@shared
def _weights(groups: Groups, exponent: float) -> Float64:
    """Return the mean weight per place of each tied group."""
    return means_of_members(groups, _powers(groups.member_gain, exponent))


@shared
def _weighted_hits(groups: Groups, cutoffs: Int64, exponent: float) -> Float64:
    weight = _weights(groups, exponent)
    return totals(lambda rows, places: places * weight[rows], groups, cutoffs)


@shared
def _weighted_dcg(groups: Groups, cutoffs: Int64, exponent: float) -> Float64:
    weight = _weights(groups, exponent)

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        return weight[rows] * discounts(groups.start[rows], places)

    return totals(value, groups, cutoffs)


@shared
def _all_weights(groups: Groups, exponent: float) -> Float64:
    ideal = dataclasses.replace(groups, ideal_gain=_powers(groups.ideal_gain, exponent), cache={})
    return all_gains(ideal)[:, np.newaxis]


def _powers(values: Float64, exponent: float) -> Float64:
    if exponent == 1:
        return values
    if exponent == 0.5:
        return np.sqrt(values)
    # Use math.pow, because the last bit of np.power's result depends on the instruction set. The
    # loop is fast enough, because there are few distinct values.
    distinct, index = np.unique(values, return_inverse=True)
    powers = (math.pow(value, exponent) for value in distinct.tolist())
    return np.fromiter(powers, np.float64, len(distinct))[index]
