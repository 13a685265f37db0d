"""Drop-in for the link prediction metrics of PyTorch Geometric (torch_geometric.metrics).

No class here is a subclass of a PyTorch Geometric or TorchMetrics class.

`pred_index_mat` (an integer tensor [batch_size, k]) contains the predictions for each source node,
best first; short rows are padded with -1. `edge_label_index` (an integer tensor [2, n_edges], or
two tensors [n_edges]) contains, for each true edge, the row of its source node and the index of its
destination. Only weighted metrics read `edge_label_weight` (a tensor [n_edges]); they ignore edges
without a positive weight. ``compute()`` returns a zero-dimensional float32 tensor. Invalid
arguments raise an InputError or InputTypeError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64, all_of, steps
from recometer.compat import _shared
from recometer.compat._shared import counted_ranks, evaluated, tensor, values_of
from recometer.data.interactions import Interactions, check_count
from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError
from recometer.ranks import Ranks
from recometer.remembered import cached_property
from recometer.sources.lists import Lists

__all__ = [
    "LinkPredAveragePopularity",
    "LinkPredCoverage",
    "LinkPredDiversity",
    "LinkPredF1",
    "LinkPredHitRatio",
    "LinkPredMAP",
    "LinkPredMRR",
    "LinkPredMetricCollection",
    "LinkPredNDCG",
    "LinkPredPersonalization",
    "LinkPredPrecision",
    "LinkPredRecall",
]


class _Metric:
    """The base class of all metrics, which adds up and counts the values of all batches."""

    higher_is_better = True
    weighted = False

    def __init__(self, k: int) -> None:
        self.k = _shared.whole_number("k", k)
        self.reset()

    def reset(self) -> None:
        """Discard all batches."""
        self.accum, self.total = 0.0, 0

    def update(
        self, pred_index_mat: Any, edge_label_index: Any, edge_label_weight: Any = None
    ) -> None:
        """Add a batch."""
        raise NotImplementedError

    def compute(self) -> Any:
        """Return the metric over all batches."""
        return tensor(self.accum / self.total if self.total else 0.0)

    def __call__(
        self, pred_index_mat: Any, edge_label_index: Any, edge_label_weight: Any = None
    ) -> None:
        """Add a batch, and return nothing; `compute` returns the metric over all batches."""
        self.update(pred_index_mat, edge_label_index, edge_label_weight)

    def __repr__(self) -> str:
        weighted = ", weighted=True" if self.weighted else ""
        return f"{type(self).__name__}(k={self.k}{weighted})"


class LinkPredMetric(_Metric):
    """A metric that is averaged over the source nodes with a true edge.

    Examples
    --------
    >>> import numpy as np
    >>> from recometer.compat.pyg import LinkPredMRR
    >>> metric = LinkPredMRR(k=2)
    >>> metric.update(np.array([[4, 2], [1, 0]]), np.array([[0, 1], [2, 3]]))
    >>> float(metric.compute())
    0.25
    """

    def update(
        self, pred_index_mat: Any, edge_label_index: Any, edge_label_weight: Any = None
    ) -> None:
        """Add a batch."""
        if self.weighted:
            _check_weight(self, edge_label_weight)
        weight = edge_label_weight if self.weighted else None
        _update([self], _Batch.of(pred_index_mat, edge_label_index, weight))

    @property
    def name(self) -> str:
        """The name of the metric in the convention."""
        brackets = "(weighted=True)" if self.weighted else ""
        return f"{type(self).__name__}{brackets}@{self.k}"


class LinkPredPrecision(LinkPredMetric):
    """Precision."""


class LinkPredF1(LinkPredMetric):
    """The harmonic mean of precision and recall."""


class LinkPredMAP(LinkPredMetric):
    """Mean average precision."""


class LinkPredMRR(LinkPredMetric):
    """Mean reciprocal rank."""


class LinkPredHitRatio(LinkPredMetric):
    """The share of source nodes whose list contains the destination of a true edge."""


class _WeightedMetric(LinkPredMetric):
    def __init__(self, k: int, weighted: bool = False) -> None:
        super().__init__(k)
        self.weighted = weighted


class LinkPredRecall(_WeightedMetric):
    """Recall, optionally weighted."""


class LinkPredNDCG(_WeightedMetric):
    """NDCG, optionally weighted."""


class _ListMetric(_Metric):
    """The base class of list metrics, which do not read edges."""

    def update(
        self, pred_index_mat: Any, edge_label_index: Any = None, edge_label_weight: Any = None
    ) -> None:
        """Add the lists of a batch, without reading its edges."""
        self._add(lists_of(pred_index_mat)[:, : self.k])

    def _add(self, lists: Array) -> None:
        raise NotImplementedError

    def _add_values(self, values: Float64) -> None:
        self.accum += float(values.sum())
        self.total += len(values)


class LinkPredCoverage(_ListMetric):
    """The share of the `num_dst_nodes` destinations that appear in at least one list."""

    def __init__(self, k: int, num_dst_nodes: int) -> None:
        self.num_dst_nodes = _shared.whole_number("num_dst_nodes", num_dst_nodes)
        super().__init__(k)

    def reset(self) -> None:
        """Discard all batches."""
        self.mask = np.zeros(self.num_dst_nodes, dtype=bool)

    def _add(self, lists: Array) -> None:
        check_below(lists, self.num_dst_nodes)
        self.mask[lists] = True

    def compute(self) -> Any:
        """Return the share over all batches."""
        return tensor(self.mask.mean())


class LinkPredDiversity(_ListMetric):
    """The share of pairs of listed items whose `category` (a tensor [n_destinations]) differs."""

    def __init__(self, k: int, category: Any) -> None:
        self.category = column_of("category", category)
        super().__init__(k)

    def _add(self, lists: Array) -> None:
        check_below(lists, len(self.category))
        category = self.category[lists]
        same = np.zeros(len(lists))
        for shift in range(1, category.shape[1]):
            same += (category == np.roll(category, shift, axis=1)).sum(axis=1)
        self._add_values(1 - same / (self.k * (self.k - 1)))


class LinkPredAveragePopularity(_ListMetric):
    """The mean `popularity` (a tensor [n_destinations]) of listed items."""

    higher_is_better = False

    def __init__(self, k: int, popularity: Any) -> None:
        self.popularity = column_of("popularity", popularity).astype(np.float64)
        super().__init__(k)

    def _add(self, lists: Array) -> None:
        check_below(lists, len(self.popularity))
        self._add_values(self.popularity[lists].mean(axis=1))


class LinkPredPersonalization(_ListMetric):
    """The mean difference between two lists, over all pairs of source nodes.

    Only the first `max_src_nodes` source nodes count, and `batch_size` has no effect.
    """

    def __init__(self, k: int, max_src_nodes: int | None = 2**12, batch_size: int = 2**16) -> None:
        if max_src_nodes is not None:
            max_src_nodes = _shared.whole_number("max_src_nodes", max_src_nodes)
        self.max_src_nodes, self.batch_size = max_src_nodes, batch_size
        super().__init__(k)

    def reset(self) -> None:
        """Discard all batches."""
        self.preds: list[Array] = []
        self.total = 0

    def _add(self, lists: Array) -> None:
        if self.max_src_nodes is not None:
            lists = lists[: max(self.max_src_nodes - self.total, 0)]
        self.preds.append(lists)
        self.total += len(lists)

    def compute(self) -> Any:
        """Return the mean over pairs of source nodes from all batches."""
        if self.total == 0:
            return tensor(0.0)
        lists = np.concatenate(self.preds)
        if len(lists) < 2:
            return tensor(np.nan)
        name = f"LinkPredPersonalization@{lists.shape[1]}"
        from scipy.sparse import csr_array

        # Test data must not be empty, even though this metric does not read them.
        test: Any = csr_array(([1.0], ([0], [0])), shape=(len(lists), int(lists.max()) + 1))
        return tensor(evaluated("pyg", Lists(lists), test, [name]).mean()[name])


class LinkPredMetricCollection(dict[str, _Metric]):
    """A dict of metrics that evaluates each batch only once.

    Metrics that are passed as a sequence get names such as ``"LinkPredMAP@10"``, or
    ``"WeightedLinkPredNDCG@10"`` if they are weighted.
    """

    def __init__(self, metrics: Sequence[_Metric] | Mapping[str, _Metric]) -> None:
        if not isinstance(metrics, Mapping):
            metrics = {_label(metric): metric for metric in _shared.members_of("metrics", metrics)}
        if not metrics:
            raise InputError("The collection contains no metrics.")
        super().__init__(metrics)

    @property
    def max_k(self) -> int:
        """The largest k of the metrics."""
        return max(metric.k for metric in self.values())

    @property
    def weighted(self) -> bool:
        """Whether any metric reads weights."""
        return any(metric.weighted for metric in self.values())

    # `dict.update` adds entries, but this method adds a batch, as in PyTorch Geometric.
    def update(  # type: ignore[override]
        self, pred_index_mat: Any, edge_label_index: Any, edge_label_weight: Any = None
    ) -> None:
        """Add a batch."""
        if self.weighted:
            _check_weight(self, edge_label_weight)
        batch = _Batch.of(pred_index_mat, edge_label_index, edge_label_weight)
        means = [metric for metric in self.values() if isinstance(metric, LinkPredMetric)]
        _update([metric for metric in means if metric.weighted], batch)
        _update([metric for metric in means if not metric.weighted], batch.without_weights())
        for metric in self.values():
            if not isinstance(metric, LinkPredMetric):
                metric.update(pred_index_mat, edge_label_index, edge_label_weight)

    def compute(self) -> dict[str, Any]:
        """Return the metrics over all batches, keyed by name."""
        return {name: metric.compute() for name, metric in self.items()}

    def reset(self) -> None:
        """Discard all batches."""
        for metric in self.values():
            metric.reset()

    def __repr__(self) -> str:
        lines = "".join(f"  {name}: {metric},\n" for name, metric in self.items())
        return f"{type(self).__name__}([\n{lines}])"


@dataclasses.dataclass(frozen=True, eq=False)
class _Batch:
    """A batch of lists and true edges, with or without weights."""

    lists: Array
    source: Array
    item: Array
    weight: Array | None

    @classmethod
    def of(cls, pred_index_mat: Any, edge_label_index: Any, edge_label_weight: Any) -> _Batch:
        lists = lists_of(pred_index_mat)
        source, item = edges_of(edge_label_index, len(lists))
        if edge_label_weight is None:
            return cls(lists, source, item, None)
        weight = _shared.array_of_numbers("edge_label_weight", edge_label_weight)
        if weight.shape != source.shape:
            raise InputError(f"edge_label_weight is {weight.shape}, but must be {source.shape}.")
        positive = weight > 0
        return cls(lists, source[positive], item[positive], weight[positive])

    def without_weights(self) -> _Batch:
        return dataclasses.replace(self, weight=None)

    @cached_property
    def n_items(self) -> int:
        """The number of items: one more than the largest index in the batch."""
        return max(int(self.lists.max(initial=0)), int(self.item.max(initial=0))) + 1

    def ranks(self, k: int) -> Ranks:
        """Return the ranks of the true edges in the first k places of the lists.

        As in PyTorch Geometric, -1 counts as the last item of the previous source node.
        """
        filler = np.zeros(len(self.lists) + 1)
        last = self.item == self.n_items - 1
        filler[self.source[last] + 1] = 1.0 if self.weight is None else self.weight[last]
        return counted_ranks(self.test, self.lists[:, :k], self.n_items, filler[:-1])

    @cached_property
    def test(self) -> Interactions:
        """The true edges as interactions of source nodes; a repeated edge keeps a single weight."""
        weight = np.ones(len(self.source)) if self.weight is None else self.weight
        check_count(self.n_items, "items")
        pairs = ragged.pairs(self.source.astype(np.int64), self.item, self.n_items)
        edges: Any = slice(None)
        copies = None
        # Usually, edges are distinct and already sorted by source and destination.
        if not all_of(steps(pairs) > 0):
            _, edges, numbers, copies = np.unique(
                pairs, return_index=True, return_inverse=True, return_counts=True
            )
            if (weight != weight[edges][numbers]).any():
                raise InputError(
                    "edge_label_index repeats an edge with different weights, and PyTorch "
                    "Geometric does not define which one counts. Hint: pass each edge once."
                )
        return Interactions(
            indptr=ragged.indptr_of(np.bincount(self.source[edges], minlength=len(self.lists))),
            items=self.item[edges].astype(np.int32),
            n_items=self.n_items,
            values=weight[edges].astype(np.float64),
            copies=copies,
        )


def _update(metrics: Sequence[LinkPredMetric], batch: _Batch) -> None:
    """Add a batch to several metrics; either all of them use weights, or none does."""
    if not metrics or not len(batch.source):
        return
    ranks = batch.ranks(max(metric.k for metric in metrics))
    values = values_of("pyg", ranks, {metric.name for metric in metrics})
    has_items = np.zeros(len(batch.lists), bool)
    has_items[batch.source] = True
    total, everybody = int(np.count_nonzero(has_items)), all_of(has_items)
    for metric in metrics:
        of_sources = values[metric.name]
        metric.accum += float((of_sources if everybody else of_sources[has_items]).sum())
        metric.total += total


def _label(metric: _Metric) -> str:
    if not isinstance(metric, _Metric):
        raise InputTypeError(
            f"metrics contains a {type(metric).__name__}, expected metrics of this module."
        )
    return f"{'Weighted' if metric.weighted else ''}{type(metric).__name__}@{metric.k}"


def _check_weight(whose: object, weight: Any) -> None:
    if weight is None:
        raise InputError(
            f"{type(whose).__name__} is weighted, but edge_label_weight is missing. Hint: "
            "update(pred_index_mat, edge_label_index, edge_label_weight)."
        )


def lists_of(tensor: Any) -> Array:
    lists = as_array(tensor, "pred_index_mat")
    _shared.shape_of("pred_index_mat", lists, "batch_size, k")
    check_whole("pred_index_mat", lists, -1)
    return lists.astype(np.int64, copy=False)  # NumPy reads an empty list as floats


def edges_of(index: Any, n_sources: int) -> tuple[Array, Array]:
    try:
        source, item = index
    except Exception:  # the exception depends on the type of the argument
        raise InputTypeError("edge_label_index must be [2, n_edges], or two arrays.") from None
    source, item = (as_array(column, "edge_label_index") for column in (source, item))
    for column in (source, item):
        check_whole("edge_label_index", column, 0)
    if source.shape != item.shape or source.ndim != 1:
        raise InputError(
            f"edge_label_index has {source.shape} sources and {item.shape} destinations, but must "
            "be [2, n_edges]."
        )
    if source.max(initial=-1) >= n_sources:
        raise InputError(
            f"edge_label_index has the source {source.max()}, but pred_index_mat has "
            f"{n_sources:,} rows, which are counted from 0."
        )
    return source, item


def check_whole(name: str, array: Array, least: int) -> None:
    if array.size and array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} is of dtype {array.dtype}, expected whole numbers.")
    if array.min(initial=least) < least:
        raise InputError(f"{name} has {array.min()}, but must not be below {least}.")


def check_below(lists: Array, n: int) -> None:
    if lists.max(initial=-1) >= n:
        raise InputError(
            f"A list has the destination {lists.max()}, but there are only {n:,}, counted from 0."
        )
    if lists.min(initial=0) < 0:
        raise InputError(
            "A list has the destination -1, which this metric would count as the last one. Hint: "
            "each list needs a destination for every column."
        )


def column_of(name: str, tensor: Any) -> Array:
    column = _shared.array_of_numbers(name, tensor)
    _shared.shape_of(name, column, "n_destinations")
    return column
