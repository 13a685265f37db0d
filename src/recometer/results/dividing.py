"""An evaluation divided into groups of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recometer.arrays import Int64
from recometer.results.clusters import read_clusters
from recometer.results.groups import Segments, quantiles, read_groups, segments_of
from recometer.results.means import Weights
from recometer.results.saved import PROFILE
from recometer.results.summary import SummaryRow

if TYPE_CHECKING:
    from recometer.results.evaluation import Evaluation


def divided(
    result: Evaluation,
    groups: object,
    column: str | None,
    user: str | None,
    n_quantiles: int,
    weights: Weights,
    interval: str | None,
    cluster: object,
) -> Segments:
    """Return every metric for each group of users; see `Evaluation.by`."""
    if isinstance(groups, str) and groups in PROFILE:
        codes, names = quantiles(groups, getattr(result, groups), n_quantiles)
    else:
        codes, names = read_groups(groups, result.user_ids, result.n_users, column, user)
    of_ids = cluster is None or cluster is False  # which some users still have
    clusters = None if of_ids else read_clusters(cluster, result.user_ids, result.n_users)

    def summed_up(chosen: Int64) -> list[SummaryRow]:
        weight = result._averaging.weights_of(weights, chosen)
        own = cluster if clusters is None else clusters[chosen]
        return result.of_users(chosen).summary(weight, interval, cluster=own)

    kept = weights is not None or result.list_data is not None
    not_kept = () if kept else tuple(result.over_users)
    return segments_of(summed_up, codes, names, result.protocol.confidence, not_kept)
