"""Call the kernel for one user, with the items' biases as scores."""

import numpy as np
from orders_of_items import OWN_ORDER

from recometer import _kernel

NOTHING = np.zeros(2, np.int64), np.zeros(0, np.int32)


def zero_counts(n):
    return {name: np.zeros(n, np.int64) for name in ("above", "tied", "before")}


def tables(excluded, judged, judged_scores):
    """Return the kernel's arguments for excluded and judged items."""
    return {
        "excluded_indptr": excluded[0],
        "excluded": excluded[1],
        "judged_indptr": judged[0],
        "judged": judged[1],
        "judged_scores": judged_scores,
    }


def rank_biases(instruction_set, scores, judged, judged_scores, counts, *, check=False, limit=None):
    """Rank one user's items without factors, so that the biases are the scores."""
    no_factors = np.zeros((len(scores), 0), scores.dtype)
    return _kernel.rank_factors(
        instruction_set=instruction_set,
        users=no_factors[:1],
        items=no_factors,
        bias=scores,
        rows=None,
        **OWN_ORDER,
        first=0,
        last=len(scores),
        **tables(NOTHING, (np.array([0, len(judged_scores)]), judged), judged_scores),
        **counts,
        limit=limit,
        check=check,
        nan_rule=_kernel.NanRule.UNDEFINED,
        flags=np.zeros(1, np.uint32),
        finished=np.zeros(1, np.uint8),
    )
