"""Drop-in replacements for the classes in torchmetrics.retrieval, which accumulate batches.

No class here is a subclass of a TorchMetrics class. `preds` are scores (a float tensor [n]). Items
count as retrieved only if their score is above 0, except for NDCG, the hit rate and the area under
the ROC curve. `target` (a bool or integer tensor [n]) marks the relevant items. Invalid arguments
raise an InputError or InputTypeError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from recometer.arrays import Array, Float64
from recometer.compat import _shared
from recometer.compat._shared import evaluated, tensor
from recometer.data.interactions import Interactions
from recometer.data.numbers import as_array, flag
from recometer.errors import InputError, InputTypeError, ModelError
from recometer.sources.pairs import Pairs
from recometer.sources.scores import Scores
from recometer.stats.checks import check_whole

Aggregation = Literal["mean", "median", "min", "max"] | Callable[[Any], Any]
ABOVE_ZERO = 1e-300  # items are relevant if their gain is at least this large
DENSE = 4  # `_table` pads a table only if it has at most this many cells per pair
AVERAGED = ("RetrievalNormalizedDCG", "RetrievalAUROC")  # averaged over all orders of tied items
ACTIONS = ("neg", "pos", "skip", "error")
# In torch, the median of an even number of values is the lower of the two middle values.
SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "median": lambda values: np.sort(values)[(len(values) - 1) // 2],
    "min": np.min,
    "max": np.max,
}


class RetrievalMetric:
    """The base class of all metrics, which collects scored pairs of queries and items.

    Only the first `top_k` places count, or all places if it is None. `empty_target_action` sets
    how queries without a relevant item (for `RetrievalFallOut`, without an irrelevant item) are
    treated. Pairs whose target is `ignore_index` are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from recometer.compat.torchmetrics import RetrievalMRR
    >>> metric = RetrievalMRR()
    >>> metric.update(np.array([0.2, 0.3, 0.5]), np.array([1, 0, 0]), indexes=np.array([0, 0, 0]))
    >>> round(float(metric.compute()), 4)
    0.3333
    """

    higher_is_better = True
    brackets = ""  # parameters in brackets that follow the metric's name in the convention

    def __init__(
        self,
        empty_target_action: str = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        _shared.check_choice("empty_target_action", empty_target_action, ACTIONS)
        if not callable(aggregation):
            _shared.check_choice("aggregation", aggregation, SUMMARIES)
        if ignore_index is not None:
            check_whole("ignore_index", ignore_index, -(2**63))
        self.empty_target_action = empty_target_action
        self.ignore_index = ignore_index
        self.top_k = None if top_k is None else _shared.whole_number("top_k", top_k)
        self.aggregation = aggregation
        self.reset()

    def reset(self) -> None:
        """Discard all pairs."""
        self._parts: list[tuple[Array, Array, Array]] = []

    def update(self, preds: Any, target: Any, indexes: Any) -> None:
        """Add pairs, as tensors of equal shape; `indexes` contains each pair's query number."""
        if indexes is None:
            raise InputError("indexes=None: every pair needs the index of its query.")
        columns = {"preds": preds, "target": target, "indexes": indexes}
        arrays = [np.ravel(as_array(values, name)) for name, values in columns.items()]
        if len({len(array) for array in arrays}) > 1:
            raise InputError(
                f"preds, target and indexes have {[*map(len, arrays)]} entries, but must have the "
                "same number."
            )
        if self.ignore_index is not None:
            counted = arrays[1] != self.ignore_index
            arrays = [array[counted] for array in arrays]
        if not len(arrays[0]):
            raise InputError("There are no pairs, or all have the ignored target.")
        self._parts.append((arrays[0], arrays[1], arrays[2]))

    def compute(self) -> Any:
        """Return the metric over all pairs added so far, as a zero-dimensional float32 tensor."""
        if not self._parts:
            return tensor(0.0)
        preds, target, indexes = (
            np.concatenate(column) for column in zip(*self._parts, strict=True)
        )
        values = self._values(preds, target, indexes)
        if not len(values):
            return tensor(0.0)
        if isinstance(self.aggregation, str):
            return tensor(float(SUMMARIES[self.aggregation](values)))
        try:
            return self.aggregation(tensor(values))
        except Exception as error:
            raise ModelError(
                f"The function aggregation= raised {type(error).__name__}: {error}. Hint: it is "
                "called with a tensor of the values of queries."
            ) from error

    def __call__(self, preds: Any, target: Any, indexes: Any) -> Any:
        """Add pairs, and return the metric over these pairs alone."""
        before = self._parts
        self.reset()
        self.update(preds, target, indexes)
        value = self.compute()
        self._parts = before + self._parts
        return value

    forward = __call__

    def _values(self, preds: Array, target: Array, indexes: Array) -> Float64:
        """Return the values of the queries that count, in ascending order of their indexes."""
        _, query = np.unique(indexes, return_inverse=True)
        values = self._measured(preds, target, query)
        relevant = target if self.higher_is_better else 1 - target.astype(np.float64)
        empty = np.bincount(query, weights=relevant) == 0
        if empty.any() and self.empty_target_action == "error":
            raise InputError("A query has no relevant item, or, for fall-out, no other item.")
        if self.empty_target_action == "skip":
            selected: Float64 = values[~empty]
            return selected
        return np.where(empty, float(self.empty_target_action == "pos"), values)

    def _measured(self, preds: Array, target: Array, query: Array) -> Float64:
        """Return the values of all queries, which are numbered from 0."""
        name, cutoff = type(self).__name__, self.top_k
        if not np.issubdtype(preds.dtype, np.floating):
            raise InputTypeError(f"preds has the dtype {preds.dtype}, but must be of floats.")
        if name != "RetrievalNormalizedDCG" and not np.isin(target, (0, 1)).all():
            raise InputError("target has values other than 0 and 1, but must be binary.")
        if (target < 0).any():
            raise InputError("target has gains below 0.")
        # TorchMetrics also rounds to float32, so distinct scores may become equal.
        preds = preds.astype(np.float32, copy=False)
        if name == "RetrievalAUROC":
            preds, target, query = _as_probabilities(*_first(preds, target, query, cutoff))
            cutoff = None
        if not target.any() and name != "RetrievalFallOut":
            return np.zeros(int(query.max()) + 1)
        places = None if cutoff is None else min(cutoff, int(np.bincount(query).max()))
        metric = name + self.brackets + ("" if places is None else f"@{places}")
        table = None if name == "RetrievalFallOut" else _table(preds, target, query)
        if table is None:
            pairs = Pairs.of(target.astype(np.float64), preds, query, threshold=ABOVE_ZERO)
            values = evaluated("torchmetrics", pairs, None, [metric])[metric]
        else:
            # Columns are in input order, so `ties="item"` ranks tied items in this order.
            how: dict[str, Any] = {} if name in AVERAGED else {"ties": "item"}
            how["relevant_from"] = ABOVE_ZERO
            values = evaluated("torchmetrics", *table, [metric], **how)[metric]
        if cutoff is not None and places is not None and metric.startswith("RetrievalPrecision@"):
            values = values * (places / cutoff)
        return values

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RetrievalMAP(RetrievalMetric):
    """Mean average precision."""


class RetrievalMRR(RetrievalMetric):
    """Mean reciprocal rank."""


class RetrievalRecall(RetrievalMetric):
    """Recall."""


class RetrievalHitRate(RetrievalMetric):
    """The share of queries whose list contains a relevant item."""


class RetrievalNormalizedDCG(RetrievalMetric):
    """NDCG, for gains of at least 0."""


class RetrievalPrecision(RetrievalMetric):
    """Precision: hits divided by `top_k`, or by the number of the query's items.

    The divisor is the number of items if `top_k` is None, or if `adaptive_k` is set and the query
    has fewer items than `top_k`.
    """

    def __init__(
        self,
        empty_target_action: str = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        adaptive_k: bool = False,
        aggregation: Aggregation = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)
        self.adaptive_k = flag("adaptive_k", adaptive_k)
        self.brackets = "(adaptive_k=True)" if self.adaptive_k else ""


class RetrievalFallOut(RetrievalMetric):
    """The share of the irrelevant items that are listed."""

    higher_is_better = False

    def __init__(
        self,
        empty_target_action: str = "pos",
        ignore_index: int | None = None,
        top_k: int | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)


class RetrievalRPrecision(RetrievalMetric):
    """Precision at R, the number of relevant items."""

    def __init__(
        self,
        empty_target_action: str = "neg",
        ignore_index: int | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, None, aggregation)


class RetrievalAUROC(RetrievalMetric):
    """Area under the ROC curve; `max_fpr` must be None."""

    def __init__(
        self,
        empty_target_action: str = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        max_fpr: float | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        if max_fpr is not None:
            raise InputError(
                f"max_fpr={max_fpr} is not supported. Hint: partial_auc@k of recometer, or "
                "TorchMetrics."
            )
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)


def _first(
    preds: Array, target: Array, query: Array, cutoff: int | None
) -> tuple[Array, Array, Array]:
    """Return the first `cutoff` pairs of each query, with ties in input order and NaN first."""
    if cutoff is None:
        return preds, target, query
    order = np.lexsort((-preds, ~np.isnan(preds), query))
    length = np.bincount(query)
    place = np.arange(len(query)) - (np.cumsum(length) - length)[query[order]]
    best = np.sort(order[place < cutoff])
    return preds[best], target[best], query[best]


def _as_probabilities(preds: Array, target: Array, query: Array) -> tuple[Array, Array, Array]:
    """Apply a sigmoid to all scores of each query that has a score outside [0, 1]."""
    odd = np.bincount(query, weights=(preds < 0) | (preds > 1)) > 0
    if not odd.any():
        return preds, target, query
    torch, rows = sys.modules.get("torch"), odd[query]
    preds = preds.copy()
    if torch is not None:  # use torch's sigmoid, because the last bits decide which values are tied
        preds[rows] = torch.sigmoid(torch.as_tensor(preds[rows])).numpy()
    else:
        with np.errstate(over="ignore"):
            preds[rows] = 1 / (1 + np.exp(-preds[rows]))
    return preds, target, query


def _table(preds: Array, target: Array, query: Array) -> tuple[Scores, Interactions] | None:
    """Return a table of scores with a row per query, and its targets; None if it is too large.

    Padding has a score of -inf, so it is not a candidate.
    """
    from scipy.sparse import coo_array

    length = np.bincount(query)
    n_queries, longest = len(length), int(length.max())
    if n_queries * longest > DENSE * len(query) or not np.isfinite(preds).all():
        return None
    if (np.diff(query) < 0).any():
        order = np.argsort(query, kind="stable")
        preds, target, query = preds[order], target[order], query[order]
    place = np.arange(len(query)) - (np.cumsum(length) - length)[query]
    scores = np.full((n_queries, longest), -np.inf, preds.dtype)
    scores[query, place] = preds
    relevant = np.flatnonzero(target)
    entries: Any = (target[relevant].astype(np.float64), (query[relevant], place[relevant]))
    return Scores(scores), Interactions.of(coo_array(entries, shape=scores.shape))
