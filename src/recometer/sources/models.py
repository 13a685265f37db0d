"""Fitted models of other libraries, recognised by the modules of their classes."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Array, Int64
from recometer.errors import InputError, InputTypeError
from recometer.sources.factors import Factors
from recometer.sources.scores import Scores

METHOD = "score_users"
BY_HAND = (
    "wrap it by hand: rm.Factors(user_factors, item_factors) if its scores are dot products, else "
    "rm.Scores(function, n_users=..., n_items=...) with a function that takes an int64 array of "
    "user rows and returns their scores of all items, [len(rows), n_items]."
)


OF_IMPLICIT = (
    "items, _ = model.recommend(np.arange(n_users), user_items, N=100), then rm.Lists(items), with "
    "user_ids= and item_ids= if test has ids"
)
# What a method recommend(...) is called with, by the parameters that tell whose it is.
RECOMMEND = {
    ("userid", "user_items"): OF_IMPLICIT,
    ("edge_index", "src_index", "dst_index"): (
        "nodes = model.recommend(edge_index, src_index, dst_index, k=100), then "
        "rm.Lists(nodes, item_offset=n_users)"
    ),
    ("users", "dataset", "k"): (
        "rm.Lists(model.recommend(users=users, dataset=dataset, k=100, filter_viewed=True))"
    ),
}


class Options(NamedTuple):
    """The options of `from_model`."""

    n_users: int | None = None
    n_items: int | None = None
    user_ids: object = None
    item_ids: object = None
    user_features: object = None
    item_features: object = None
    edge_index: object = None
    edge_weight: object = None

    def only(self, what: str, *names: str) -> None:
        """Raise if an option was given that does not apply to such a model."""
        for name, value in self._asdict().items():
            if value is not None and name not in names:
                raise InputError(f"{name}= does not apply to {what}. Hint: leave it out.")

    @property
    def ids(self) -> dict[str, Any]:
        """The ids, as sources take them."""
        return {"user_ids": self.user_ids, "item_ids": self.item_ids}


def from_model(
    model: object,
    *,
    n_users: int | None = None,
    n_items: int | None = None,
    user_ids: object = None,
    item_ids: object = None,
    user_features: object = None,
    item_features: object = None,
    edge_index: object = None,
    edge_weight: object = None,
) -> Factors | Scores:
    """Wrap a fitted model of another library, which is recognised without importing it.

    Parameters
    ----------
    model
        * of implicit (ALS, BPR, logistic; of the CPU or the GPU), or LightFM: `Factors` of
          its factors (representations) and biases. Give the ids of its rows, if test has
          ids.
        * an algorithm of Surprise: `Scores` of its estimates for all items of its trainset,
          before they are clipped to the rating scale (clipping makes ties); the raw ids of
          the trainset are the ids. Where a prediction is impossible, its default
          prediction is the score, as in `predict`.
        * LightGCN of PyTorch Geometric, with `edge_index` and `n_users`: `Factors` of its
          embeddings; the first `n_users` nodes are the users, then the items follow.
        * a torch module with a method ``score_users(users)`` that takes an int64 tensor of
          user rows, on the device of the module, and returns their scores
          [len(users), n_items]: `Scores` of that method, in evaluation mode and without
          gradients. `n_users` and `n_items` are needed, unless the ids tell.
    n_users, n_items
        For a torch module and LightGCN only (n_items of it: by default the other nodes).
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        Whose row and column it is.
    user_features, item_features
        What LightFM was fitted with, if it was.
    edge_index, edge_weight
        What LightGCN was trained on, as its forward takes it.

    Returns
    -------
    Factors or Scores

    Raises
    ------
    InputError
        A model that is not fitted, or options that do not apply to it or are missing.
    InputTypeError
        A model that is not recognised: the message lists those that are.

    Examples
    --------
    Any class of a package that is known will do; here one that stands for implicit's:

    >>> import recometer as rm
    >>> class AlternatingLeastSquares:
    ...     __module__ = "implicit.als"
    ...     user_factors, item_factors = [[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0]]
    >>> rm.from_model(AlternatingLeastSquares(), item_ids=["book", "film"]).describe()
    'Factors: 1 user x 2 items, 2 factors, float64'
    """
    options = Options(
        n_users, n_items, user_ids, item_ids, user_features, item_features, edge_index, edge_weight
    )
    for recognises, _, wrap in KINDS:
        if recognises(model):
            return wrap(model, options)
    if isinstance(model, type):
        raise InputTypeError(
            f"{model.__name__} is a class. Hint: pass a fitted model, an instance of it."
        )
    if callable(getattr(model, "recommend", None)):
        raise InputTypeError(
            f"A model of type {type(model).__module__}.{type(model).__qualname__} is not "
            f"recognised. Hint: {how_to_wrap(model)}"
        )
    known = "; ".join(description for _, description, _ in KINDS)
    raise InputTypeError(
        f"A model of type {type(model).__module__}.{type(model).__qualname__} is not recognised. "
        f"Those that are: {known}. Hint: {BY_HAND}"
    )


def how_to_wrap(model: Any) -> str:
    """Return the call that makes a source of a model: empty for what is no model that is known."""
    if isinstance(model, type):
        return ""
    if any(recognises(model) for recognises, _, _ in KINDS):
        return "rm.from_model(model) makes a source of it."
    if not callable(getattr(model, "recommend", None)):
        return ""
    try:
        parameters = [*inspect.signature(model.recommend).parameters]
    except (TypeError, ValueError):  # of compiled code, it may not be known
        parameters = ["..."]
    for names, call in RECOMMEND.items():
        if set(names) <= set(parameters):
            return f"its lists are evaluated: {call}."
    return (
        "its lists are evaluated: rm.Lists(lists) takes what "
        f"model.recommend({', '.join(parameters)}) returns for the users of test, as a dict from "
        "user to items, a data frame, or an array [n_users, k]."
    )


def _of(package: str, name: str = "") -> Callable[[Any], bool]:
    """Return what recognises instances of classes from a package, and of classes derived."""

    def recognises(model: Any) -> bool:
        return any(
            cls.__module__.split(".")[0] == package and (not name or cls.__name__ == name)
            for cls in type(model).__mro__
        )

    return recognises


def _is_module(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module) and hasattr(model, METHOD)


def _name(model: Any) -> str:
    return f"{type(model).__name__} of {type(model).__module__.split('.')[0]}"


def _not_fitted(model: Any) -> InputError:
    return InputError(f"The model ({_name(model)}) is not fitted. Hint: call its fit(...) first.")


def _implicit(model: Any, options: Options) -> Factors | Scores:
    options.only(_name(model), "user_ids", "item_ids")
    if not hasattr(model, "user_factors") or not hasattr(model, "item_factors"):
        lists = callable(getattr(model, "recommend", None))
        raise InputTypeError(
            f"The model ({_name(model)}) has no user_factors and item_factors. Hint: "
            + (f"its lists are evaluated: {OF_IMPLICIT}. Or {BY_HAND} " if lists else f"{BY_HAND} ")
            + "For the neighbours of items: lambda rows: (user_items[rows] @ model.similarity)"
            ".toarray()"
        )
    if model.user_factors is None or model.item_factors is None:
        raise _not_fitted(model)
    users, items = (
        # Those of a GPU are matrices of implicit's own.
        factors.to_numpy() if hasattr(factors, "to_numpy") else factors
        for factors in (model.user_factors, model.item_factors)
    )
    return Factors(users, items, **options.ids)


def _lightfm(model: Any, options: Options) -> Factors | Scores:
    options.only(_name(model), "user_ids", "item_ids", "user_features", "item_features")
    if getattr(model, "item_embeddings", None) is None:
        raise _not_fitted(model)
    user_bias, users = model.get_user_representations(options.user_features)
    item_bias, items = model.get_item_representations(options.item_features)
    return Factors(users, items, user_bias=user_bias, item_bias=item_bias, **options.ids)


@dataclasses.dataclass(frozen=True)
class _Surprise:
    """The scores of an algorithm of Surprise: its estimates, as they are before clipping."""

    model: Any

    def __call__(self, rows: Int64) -> Array:
        n_items = self.model.trainset.n_items
        estimates = (
            self._estimate(user, item) for user in rows.tolist() for item in range(n_items)
        )
        scores = np.fromiter(estimates, np.float64, len(rows) * n_items)
        return scores.reshape(len(rows), n_items)

    def _estimate(self, user: int, item: int) -> float:
        try:
            estimate = self.model.estimate(user, item)
        except Exception as error:
            if type(error).__name__ != "PredictionImpossible":
                raise
            estimate = self.model.default_prediction()
        # Some algorithms add details.
        return float(estimate[0] if isinstance(estimate, tuple) else estimate)

    def __repr__(self) -> str:
        return _name(self.model)


def _surprise(model: Any, options: Options) -> Factors | Scores:
    options.only(_name(model), "user_ids", "item_ids")
    trainset = getattr(model, "trainset", None)
    if trainset is None:
        raise _not_fitted(model)
    users = [trainset.to_raw_uid(user) for user in range(trainset.n_users)]
    items = [trainset.to_raw_iid(item) for item in range(trainset.n_items)]
    return Scores(
        _Surprise(model),
        user_ids=users if options.user_ids is None else options.user_ids,
        item_ids=items if options.item_ids is None else options.item_ids,
        n_users=len(users),
        n_items=len(items),
    )


@contextmanager
def _evaluating(module: Any) -> Iterator[Any]:
    """Switch dropout and gradients off, as for a prediction; and back to how it was."""
    torch = sys.modules["torch"]
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield torch
    finally:
        for part, training in modes:
            part.training = training


@dataclasses.dataclass(frozen=True)
class _Module:
    """The scores of a torch module."""

    module: Any

    def __call__(self, rows: Int64) -> Any:
        with _evaluating(self.module) as torch:
            tensors = (*self.module.parameters(), *self.module.buffers())
            device = tensors[0].device if tensors else "cpu"
            return getattr(self.module, METHOD)(torch.as_tensor(rows, device=device))

    def __repr__(self) -> str:
        return f"{type(self.module).__name__}.{METHOD}"


def _module(model: Any, options: Options) -> Factors | Scores:
    options.only(f"a torch module with {METHOD}", "n_users", "n_items", "user_ids", "item_ids")
    return Scores(_Module(model), n_users=options.n_users, n_items=options.n_items, **options.ids)


def _lightgcn(model: Any, options: Options) -> Factors | Scores:
    options.only(
        _name(model), "n_users", "n_items", "user_ids", "item_ids", "edge_index", "edge_weight"
    )
    if options.edge_index is None or options.n_users is None:
        raise InputError(
            "LightGCN needs edge_index=..., the graph that it was trained on (both directions, as "
            "its forward takes it), and n_users=...: the first n_users nodes are the users, the "
            "others the items."
        )
    n_users = options.n_users
    n_items = model.num_nodes - n_users if options.n_items is None else options.n_items
    if not 0 < n_users < n_users + n_items <= model.num_nodes:
        raise InputError(
            f"n_users={n_users} and n_items={n_items} do not fit: the graph of this LightGCN has "
            f"{model.num_nodes:,} nodes, first the users, then the items."
        )
    with _evaluating(model):
        embedding = model.get_embedding(options.edge_index, options.edge_weight)
    return Factors(embedding[:n_users], embedding[n_users : n_users + n_items], **options.ids)


# What recognises a kind of model, what it is called, and what makes it a source. The first that
# recognises a model has it.
KINDS: tuple[tuple[Callable[[Any], bool], str, Callable[[Any, Options], Factors | Scores]], ...] = (
    (_of("implicit"), "implicit (user_factors, item_factors)", _implicit),
    (_of("lightfm", "LightFM"), "LightFM", _lightfm),
    (_of("surprise", "AlgoBase"), "the algorithms of Surprise", _surprise),
    (_of("torch_geometric", "LightGCN"), "LightGCN of PyTorch Geometric", _lightgcn),
    (
        _is_module,
        f"a torch module with a method {METHOD}(users) that takes an int64 tensor of user rows "
        "and returns their scores of all items, [len(users), n_items]",
        _module,
    ),
)
