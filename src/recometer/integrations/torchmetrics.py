"""Recometer's metrics as a ``torchmetrics.Metric``."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.data.tensors import is_tensor, to_numpy
from recometer.errors import InputError, InputTypeError, brief, need
from recometer.evaluation import Evaluation
from recometer.evaluator import Evaluator, Repeated, Stream
from recometer.integrations import _plain
from recometer.integrations._shared import logged

Metric: Any = need("torchmetrics", "RankingMetrics", "torchmetrics").Metric
torch: Any = need("torch", "RankingMetrics", "torchmetrics")

Tensor = Any
LENGTH = 8  # the first 8 bytes of a message store the length of the rest
OF_TORCHMETRICS = {
    "compute_on_cpu", "compute_with_cache", "dist_sync_fn", "dist_sync_on_step",
    "distributed_available_fn", "process_group", "sync_on_compute",
}  # fmt: skip


class RankingMetrics(Metric):  # type: ignore[misc]
    """All metrics of an `Evaluator` as one ``torchmetrics.Metric``.

    You update it like a `Stream`, and it stores the same data. It returns the means over the users
    of all processes, as a single call to ``rm.evaluate`` would. Like other metrics, it can be
    logged by Lightning, added to a ``MetricCollection``, pickled, cloned, moved to a device and
    synchronised.

    Parameters
    ----------
    evaluator
        An evaluator with the metrics, and optionally test data. With test data, `update` takes
        either the scores of all items or lists; without test data, it takes candidates with their
        labels. By default, an evaluator without test data is created from ``metrics=`` and the
        other `options`.
    item_ids, repeated
        As in `Evaluator.stream`. By default, only the first occurrence of a user counts, because
        distributed samplers repeat some users.
    **options
        Options of ``torchmetrics.Metric``, such as ``process_group``, and, if you do not pass an
        evaluator, options of `Evaluator`.

    Raises
    ------
    InputError
        If you pass both an evaluator and options of `Evaluator`, or if ``torchmetrics.Metric``
        rejects one of its options.
    InputTypeError
        If `evaluator` is not an `Evaluator`.
    MissingExtraError
        On import, if TorchMetrics or torch is not installed.

    Examples
    --------
    With candidates and their labels::

        metric = RankingMetrics(metrics="ndcg@2 rr")
        metric.update(torch.tensor([[0.2, 0.9, 0.5]]), torch.tensor([[1, 0, 1]]))
        metric.compute()  # {'ndcg_at_2': tensor(0.3869), 'rr': tensor(0.5000)}
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    def __init__(
        self,
        evaluator: Evaluator | None = None,
        *,
        item_ids: object = None,
        repeated: Repeated = "first",
        **options: Any,
    ) -> None:
        torch_options = {name: options.pop(name) for name in OF_TORCHMETRICS & options.keys()}
        try:
            super().__init__(**torch_options)
        except ValueError as error:
            raise InputError(f"{error}. Hint: it is an option of torchmetrics.Metric.") from error
        if evaluator is None:
            evaluator = Evaluator(**options)
        elif not isinstance(evaluator, Evaluator):
            raise InputTypeError(
                f"RankingMetrics takes an Evaluator, found {type(evaluator).__name__}. Hint: "
                "RankingMetrics(rm.Evaluator(test, ...)), or RankingMetrics(metrics=...)."
            )
        elif options:
            raise InputError(
                f"{next(iter(options))}= does not apply if you pass an evaluator. Hint: pass it to "
                "rm.Evaluator."
            )
        self._evaluator = evaluator
        # `forward` returns means over the users in the batch only.
        self._of_batch = evaluator if evaluator.sides is None else evaluator.of_known_users()
        self._names: dict[str, Any] = {"item_ids": item_ids, "repeated": repeated}
        self._stream = self._evaluator.stream(**self._names)
        self._all_batches: Stream | None = None  # the batches of all processes, while synchronised
        # A MetricCollection updates only one of several metrics with equal states.
        self._identity = uuid.uuid4().bytes
        self.add_state("counted", [], dist_reduce_fx="cat", persistent=False)

    def update(
        self,
        scores: Any = None,
        relevance: Any = None,
        indexes: Any = None,
        *,
        users: Any = None,
        items: Any = None,
        padding: Any = None,
    ) -> None:
        """Add a batch; see `Stream.update`.

        `indexes` is another name for `users`, as in TorchMetrics' retrieval metrics.
        """
        if indexes is not None and users is not None:
            raise InputError("users= and indexes= are the same. Hint: pass only one.")
        self._absorb()
        users = indexes if users is None else users
        self._stream.update(scores, relevance, users=users, items=items, padding=padding)
        self.counted = [self._tensor(self._identity)]

    def compute(self) -> dict[str, Tensor]:
        """Return the mean of each metric, keyed by its name in `Evaluation.flat`."""
        self._absorb()
        return self._as_tensors((self._all_batches or self._stream).mean())

    def evaluation(self) -> Evaluation:
        """Return the evaluation of all processes' batches."""
        self._absorb()
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=self._to_sync,
            should_unsync=self._should_unsync,
        ):
            return (self._all_batches or self._stream).compute()

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Add a batch, and return the means for this batch alone."""
        self.update(*args, **kwargs)
        if kwargs.get("indexes") is not None:
            kwargs["users"] = kwargs.pop("indexes")
        if len(args) > 2:
            args, kwargs = args[:2], {**kwargs, "users": args[2]}
        batch = self._of_batch.stream(**self._names)
        batch.update(*args, **kwargs)
        self._computed = None
        self._forward_cache = self._as_tensors(batch.mean())
        return self._forward_cache

    def _as_tensors(self, means: Mapping[str, float]) -> dict[str, Tensor]:
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        return {
            name: torch.tensor(mean, dtype=dtype, device=self.device)
            for name, mean in logged(means).items()
        }

    def reset(self) -> None:
        """Discard all batches."""
        super().reset()
        self.counted = []
        self._stream.reset()
        self._all_batches = None

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Gather the batches of all processes with TorchMetrics' gathering function."""
        self._absorb()
        before, self.counted = self.counted, [self._message()]
        super().sync(*args, **kwargs)
        if self._is_synced:
            self._all_batches = self._evaluator.stream(**self._names)
            for state in _messages(self.counted):
                self._all_batches.merge(state)
        else:
            self.counted = before

    def unsync(self, should_unsync: bool = True) -> None:
        """Continue with the batches of this process."""
        super().unsync(should_unsync)
        if should_unsync:
            self._all_batches, self.counted = None, [self._tensor(self._identity)]

    def merge_state(self, incoming_state: Any) -> None:
        """Add the batches of another `RankingMetrics` with an equal evaluator.

        Raises
        ------
        InputError
            If the evaluators differ in test data, training data, metrics, rules or seed. Loading or
            gathering a state can also raise this error.
        InputTypeError
            If `incoming_state` is not a `RankingMetrics`.
        """
        if not isinstance(incoming_state, RankingMetrics):
            raise InputTypeError(
                f"merge_state takes another RankingMetrics, found {type(incoming_state).__name__}."
            )
        incoming_state._absorb()
        self._absorb()
        self._stream.merge(incoming_state._stream)
        self._computed = None

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot the means, or the values that `forward` or `compute` returned, with Matplotlib."""
        return self._plot(val, ax)

    def _reduce_states(self, incoming_state: Any) -> None:
        """Raise an error, because wrappers that merge states would lose the batches."""
        raise InputError(
            "RankingMetrics keeps its batches in a stream, so wrappers that merge states, such as "
            "Running, do not work with it. Hint: use a RankingMetrics for each window; merge_state "
            "adds one to another."
        )

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state; it includes all batches if ``persistent(True)`` was called before."""
        self._absorb()
        before, self.counted = self.counted, [self._message()]
        try:
            return super().state_dict(*args, **kwargs)
        finally:
            self.counted = before

    def _absorb(self) -> None:
        """Replace the stream's batches with those of a loaded state, if there is one."""
        if self._is_synced:
            return
        loaded = [part for part in _tensors(self.counted) if len(part) > len(self._identity)]
        if loaded:
            self.counted = [self._tensor(self._identity)]
            self._stream.reset()
            for state in _messages(loaded):
                self._stream.merge(state)

    def _message(self) -> Tensor:
        """Return the pickled state of the stream as bytes, preceded by the number of bytes."""
        text = pickle.dumps(self._stream.state())
        return self._tensor(len(text).to_bytes(LENGTH, "little") + text)

    def _tensor(self, text: bytes) -> Tensor:
        return torch.from_numpy(np.frombuffer(text, np.uint8).copy()).to(self.device)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._identity = uuid.uuid4().bytes
        if self.counted and len(self.counted[0]) == len(self._identity):
            self.counted = [self._tensor(self._identity)]


def _tensors(state: Any) -> list[Tensor]:
    """Check that a state has the form of `RankingMetrics.state_dict`, and return its tensors."""
    if not isinstance(state, list) or not all(is_tensor(part) and part.ndim == 1 for part in state):
        raise InputError(
            f"The state counted is {brief(state)}, which no RankingMetrics wrote. Hint: load what "
            "state_dict() of such a metric returned, after persistent(True)."
        )
    return state


def _messages(gathered: Any) -> list[dict[str, Any]]:
    """Unpickle the states of all processes from their gathered messages."""
    parts = _tensors(gathered if isinstance(gathered, list) else [gathered])
    text = b"".join(to_numpy(part).astype(np.uint8).tobytes() for part in parts)
    states = []
    while text:
        end = LENGTH + int.from_bytes(text[:LENGTH], "little")
        states.append(_plain.loads(text[LENGTH:end]))
        text = text[end:]
    return states
