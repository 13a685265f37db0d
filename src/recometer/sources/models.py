"""Wraps fitted models from other libraries, recognised by the modules of their classes."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data.frames import in_numpy, is_frame
from recometer.data.ids import as_ids
from recometer.data.interactions import Interactions
from recometer.errors import InputError, InputTypeError, ModelError
from recometer.sources.base import Source
from recometer.sources.factors import Factors
from recometer.sources.lists import Lists
from recometer.sources.scores import Scores

# Parameter names of recommend(...) for many users or one user, in lower case without underscores.
USERS = {"users", "userids", "uids", "useridxs", "userindices", "useridx", "userindex", "userslist"}
USER = {"user", "userid", "uid", "u"}
LENGTHS = {
    *("k", "n", "topk", "topn", "num", "size", "limit", "cutoff", "length", "numitems", "nitems"),
    *("nrecommendations", "numrecommendations", "nrecs", "numrecs", "maxitems", "howmany"),
    "number",
}
IMPLICIT = {"userid", "user_items", "N"}
FILTER = "filter_already_liked_items"  # the parameter of implicit that removes past items
LEFT_OUT = -1e38  # removed items get an even lower score from implicit (the lowest float32)
NOUN = "What the model recommends"


class Call(NamedTuple):
    """The parameters of a model's recommend(...), unless they are the same as in implicit."""

    users: str
    length: str
    one_user: bool  # whether recommend(...) takes one user at a time


def recommends(model: object) -> bool:
    """Return whether an object has a method recommend(...)."""
    return not isinstance(model, type) and callable(getattr(model, "recommend", None))


def _signature(model: Any) -> str:
    """Return a model's class and the signature of its recommend(...), without annotations."""
    plain = (
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in _parameters(model) or ()
    )
    text = "..." if _parameters(model) is None else ", ".join(map(str, plain))
    return f"{type(model).__name__}.recommend({text})"


def _parameters(model: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(model.recommend).parameters.values())
    except (TypeError, ValueError):  # compiled code may have no signature
        return None


def _call_of(model: Any) -> Call | None:
    """Find out from the signature how to call recommend(...); None means as in implicit."""
    parameters = _parameters(model) or []
    if {parameter.name for parameter in parameters} >= IMPLICIT:
        return None
    words = {parameter.name: parameter.name.lower().replace("_", "") for parameter in parameters}
    users = [name for name, word in words.items() if word in USERS | USER]
    lengths = [name for name, word in words.items() if word in LENGTHS]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in kinds
        and parameter.name not in (*users[:1], *lengths[:1])
    ]
    if len(users) == len(lengths) == 1 and not required:
        return Call(users[0], lengths[0], words[users[0]] in USER)
    reason = ""
    if users and lengths and required:
        reason = f": it is unclear what {', '.join(required)} should be"
    if reason and "dataset" in required:  # the model is from RecTools
        reason += " (rm.Lists(model.recommend(users=users, dataset=dataset, k=100, ...)))"
    raise InputTypeError(
        f"{_signature(model)} has unsupported parameters{reason}. Hint: supported are "
        "recommend(userid, user_items, N), as in implicit, and recommend(users, k), where users "
        "are several users or one, and k is the length of the lists; or call it yourself and pass "
        "what it returns to rm.Lists, as a dict from user to items, a data frame, or an array "
        "[n_users, k]."
    )


def _lists_of(
    model: Any,
    n: int,
    users: Array,
    *,
    by_ids: bool,
    item_ids: object = None,
    user_items: Any = None,
    keep_seen: bool = False,
) -> Lists:
    """Call a model's recommend(...), and return its lists of n items.

    `by_ids` says whether `users` are ids rather than positions, and `item_ids` are the ids of the
    items if the model returns positions. For implicit, `user_items` are the users' past
    interactions, and `keep_seen` says whether their items may be recommended again.
    """
    returned: Any
    call = _call_of(model)
    try:
        if call is None:
            returned = _of_implicit(model, n, user_items, keep_seen)
        elif call.one_user:
            returned = [
                _one_list(model.recommend(**{call.users: user, call.length: n}))
                for user in users.tolist()
            ]
        else:
            user_list = users.tolist() if users.dtype == object else users
            returned = model.recommend(**{call.users: user_list, call.length: n})
    except (InputError, InputTypeError):
        raise
    except Exception as error:
        raise ModelError(
            f"{_signature(model)} raised {type(error).__name__}: {error}. Hint: call it yourself, "
            "and pass what it returns to rm.Lists."
        ) from error
    if isinstance(returned, Mapping) or is_frame(returned):
        return Lists(returned)
    user_ids = users if by_ids else None
    if call is None:
        return Lists(returned, user_ids=user_ids, item_ids=item_ids)
    returned = returned if call.one_user else _items(returned)
    if not isinstance(returned, np.ndarray | Sequence) or isinstance(returned, str):
        raise InputTypeError(
            f"{_signature(model)} returned {type(returned).__name__}. Hint: expected a list of "
            "items per user: an array [n_users, k], a list of lists, a dict, or a data frame."
        )
    if len(returned) != len(users):
        raise InputError(
            f"{_signature(model)} returned {len(returned):,} lists for {len(users):,} users. Hint: "
            "it must return one list for each user, in the order of the users."
        )
    rows = [_one_list(row) for row in returned]
    if by_ids and item_ids is None:
        padded = isinstance(returned, np.ndarray) and returned.dtype.kind == "i"
        if padded:
            rows = [[item for item in row if item != -1] for row in rows]
        return Lists(dict(zip(users.tolist(), rows, strict=True)))
    array = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for number, row in enumerate(rows):
        positions = as_ids(row, f"items that {_signature(model)} returned")
        if positions.dtype == object:
            raise InputTypeError(
                f"{_signature(model)} returned {row[0]!r} for an item, but items are positions. "
                "Hint: rm.from_model(model, n=..., user_ids=...) takes users and items as ids."
            )
        array[number, : len(row)] = positions
    return Lists(array, user_ids=user_ids, item_ids=item_ids)


def _of_implicit(model: Any, n: int, user_items: Any, keep_seen: bool) -> Array:
    if user_items is None:
        raise InputError(
            f"{type(model).__name__} recommends based on what users already have. Hint: "
            "rm.from_model(model, n=100, user_items=train), with the sparse matrix that it was "
            "fitted to."
        )
    import scipy.sparse

    past_items = scipy.sparse.csr_matrix(user_items)  # implicit does not take sparse arrays
    options = {}
    if FILTER in inspect.signature(model.recommend).parameters:
        options[FILTER] = not keep_seen
    items, scores = model.recommend(np.arange(past_items.shape[0]), past_items, N=n, **options)
    return np.where(np.asarray(scores) > LEFT_OUT, np.asarray(items), -1).astype(np.int64)


def _one_list(returned: Any) -> list[Any]:
    """Return the items of one user, without scores."""
    items = _items(returned)
    items = items.tolist() if hasattr(items, "tolist") else list(items)
    if items and all(isinstance(entry, tuple) and len(entry) == 2 for entry in items):
        return [item for item, _ in items]  # each item has a score
    return items


def _items(returned: Any) -> Any:
    """Return the items of a pair (items, scores); return anything else unchanged."""
    if isinstance(returned, tuple) and len(returned) == 2:
        items, scores = (in_numpy(array, NOUN) for array in returned)
        try:
            scored = np.shape(items) == np.shape(scores) and np.asarray(scores).dtype.kind == "f"
        except ValueError:  # rows have unequal lengths, so this is a pair of items and scores
            scored = True
        if scored:
            return items
    return in_numpy(returned, NOUN)


METHOD = "score_users"
BY_HAND = (
    "wrap it by hand: rm.Factors(user_factors, item_factors) if its scores are dot products, else "
    "rm.Scores(function, n_users=..., n_items=...) with a function that takes an int64 array of "
    "user rows and returns their scores of all items, [len(rows), n_items]."
)


class Recommender(Protocol):
    """Any model with a method ``recommend(...)``."""

    @property
    def recommend(self) -> Callable[..., Any]:
        """Return the lists for the given users."""


class Options(NamedTuple):
    """The options of `from_model`."""

    n_users: int | None = None
    n_items: int | None = None
    user_ids: object = None
    item_ids: object = None
    user_features: object = None
    item_features: object = None
    n: int | None = None
    user_items: Any = None

    def check(self, noun: str, *names: str) -> None:
        """Raise an error if an option does not apply to this kind of model."""
        for name, value in self._asdict().items():
            if value is not None and name not in names:
                raise InputError(f"{name}= does not apply to {noun}. Hint: leave it out.")

    @property
    def ids(self) -> dict[str, Any]:
        """The ids, as keyword arguments of sources."""
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
    n: int | None = None,
    user_items: object = None,
) -> Factors | Scores | Lists:
    """Wrap a fitted model from another library; the library itself is not imported.

    Parameters
    ----------
    model
        * a model from implicit (ALS, BPR, logistic; for the CPU or the GPU) or from LightFM becomes
          `Factors`, with its factors (representations) and biases. Pass the ids of its rows if
          test has ids.
        * a Surprise algorithm becomes `Scores`, with its estimates for all items of its trainset
          before they are clipped to the rating scale (clipping causes ties). The ids are
          the raw ids of the trainset. If a prediction is impossible, the score is the
          algorithm's default prediction, as in `predict`.
        * a torch module with a method ``score_users(users)`` becomes `Scores`. The method takes an
          int64 tensor of user rows on the device of the module, and returns their scores
          [len(users), n_items]. It is called in evaluation mode and without gradients. `n_users`
          and `n_items` are required, unless the ids imply them.
        * any other object with a method ``recommend(...)`` becomes `Lists`, with the first `n`
          places. The method is called immediately. If its parameters are
          ``(userid, user_items, N)``, it is called as in implicit, and you must pass `user_items`.
          If they are ``(users, k)`` or have similar names (such as ``user_id`` for one user at a
          time), you must pass `user_ids` if it returns ids of items, or `n_users` if it returns
          positions. The method may return arrays, lists, a dict or a data frame, with or without
          the scores of the items.
    n_users
        The number of users, for a torch module or a model with ``recommend(...)``.
    n_items
        The number of items, for a torch module.
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        The id of each row and column.
    user_features, item_features
        The features with which LightFM was fitted, if any.
    n
        The length of the lists that ``recommend(...)`` returns. Use the largest cut-off; if the
        model recommends training items again, add the largest number of training items of any user.
    user_items : sparse [n_users, n_items]
        The interactions that a model from implicit was fitted to.

    Returns
    -------
    Factors, Scores or Lists

    Raises
    ------
    InputError
        If the model is not fitted, or options do not apply to it or are missing.
    InputTypeError
        If the model is not recognised. The message lists the supported models.

    Examples
    --------
    Any class of a known package works; the class below stands in for one from implicit:

    >>> import recometer as rm
    >>> class AlternatingLeastSquares:
    ...     __module__ = "implicit.als"
    ...     user_factors, item_factors = [[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0]]
    >>> rm.from_model(AlternatingLeastSquares(), item_ids=["book", "film"]).describe()
    'Factors: 1 user x 2 items, 2 factors, float64'
    """
    ids = user_ids, item_ids
    options = Options(n_users, n_items, *ids, user_features, item_features, n, user_items)
    for recognises, _, wrap in KINDS:
        if recognises(model):
            return wrap(model, options)
    if isinstance(model, type):
        raise InputTypeError(
            f"{model.__name__} is a class. Hint: pass a fitted model, an instance of it."
        )
    supported = "; ".join(description for _, description, _ in KINDS)
    raise InputTypeError(
        f"A model of type {type(model).__module__}.{type(model).__qualname__} is not recognised. "
        f"Supported models: {supported}. Hint: {BY_HAND}"
    )


def is_model(model: object) -> bool:
    """Return whether `from_model` recognises a model."""
    return not isinstance(model, type) and any(recognises(model) for recognises, _, _ in KINDS)


def for_test(
    model: object,
    test: Interactions,
    train: Interactions | None,
    n: int | None,
    *,
    keep_seen: bool,
) -> Source:
    """Wrap a model for the test users.

    `n` is the largest cut-off, or None if any metric reads the whole ranking. `keep_seen` says
    whether training items may be recommended again.
    """
    wrap = next(wrap for recognises, _, wrap in KINDS if recognises(model))
    factorless = wrap is _implicit and not _has_factors(model) and recommends(model)
    if wrap is not _recommender and not factorless:
        return from_model(model)
    if n is None:
        raise InputError(
            f"{_signature(model)} returns lists of limited length, but a metric without a cut-off "
            "reads the whole ranking. Hint: use cut-offs, such as ndcg@10, or set the length of "
            "the lists: rm.from_model(model, n=100, ...)."
        )
    user_items = None
    if _call_of(model) is None:
        if train is None or train.user_ids is not None:
            raise InputError(
                f"{type(model).__name__} identifies users and items by their rows and columns. "
                "Hint: rm.from_model(model, n=100, user_items=train, user_ids=..., item_ids=...), "
                "with the sparse matrix that it was fitted to and the ids of its rows and columns."
            )
        user_items = train.to_csr()
    elif train is not None and not keep_seen:
        n += int(np.diff(train.indptr).max(initial=0))
    by_ids = test.user_ids is not None
    users = test.user_ids if test.user_ids is not None else np.arange(test.n_users)
    return _lists_of(model, n, users, by_ids=by_ids, user_items=user_items, keep_seen=keep_seen)


def _has_factors(model: Any) -> bool:
    return hasattr(model, "user_factors") and hasattr(model, "item_factors")


def _is_instance_of(package: str, name: str = "") -> Callable[[Any], bool]:
    """Return a predicate for instances of a package's classes and their subclasses."""

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


def _implicit(model: Any, options: Options) -> Factors | Scores | Lists:
    if not _has_factors(model):
        if recommends(model) and (options.n is not None or options.user_items is not None):
            return _recommender(model, options)
        options.check(_name(model), "user_ids", "item_ids")
        raise InputTypeError(
            f"The model ({_name(model)}) has no user_factors and item_factors. Hint: if it has a "
            "method recommend(...), evaluate its lists: rm.from_model(model, n=100, "
            f"user_items=train), with user_ids= and item_ids= if test has ids. Or {BY_HAND} For "
            "item neighbours: lambda rows: (user_items[rows] @ model.similarity).toarray()"
        )
    options.check(_name(model), "user_ids", "item_ids")
    if model.user_factors is None or model.item_factors is None:
        raise _not_fitted(model)
    users, items = (
        # implicit's GPU models store their factors in a matrix type of its own.
        factors.to_numpy() if hasattr(factors, "to_numpy") else factors
        for factors in (model.user_factors, model.item_factors)
    )
    return Factors(users, items, **options.ids)


def _lightfm(model: Any, options: Options) -> Factors | Scores:
    options.check(_name(model), "user_ids", "item_ids", "user_features", "item_features")
    if getattr(model, "item_embeddings", None) is None:
        raise _not_fitted(model)
    user_bias, users = model.get_user_representations(options.user_features)
    item_bias, items = model.get_item_representations(options.item_features)
    return Factors(users, items, user_bias=user_bias, item_bias=item_bias, **options.ids)


@dataclasses.dataclass(frozen=True)
class _Surprise:
    """The scores of a Surprise algorithm: its estimates before clipping."""

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
        # Some algorithms return details after the estimate.
        return float(estimate[0] if isinstance(estimate, tuple) else estimate)

    def __repr__(self) -> str:
        return _name(self.model)


def _surprise(model: Any, options: Options) -> Factors | Scores:
    options.check(_name(model), "user_ids", "item_ids")
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


@dataclasses.dataclass(frozen=True)
class _Module:
    """The scores of a torch module."""

    module: Any

    def __call__(self, rows: Int64) -> Any:
        torch, module = sys.modules["torch"], self.module
        tensors = (*module.parameters(), *module.buffers())
        device = tensors[0].device if tensors else "cpu"
        # Switch off dropout and gradients for the prediction, and restore them afterwards.
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                return getattr(module, METHOD)(torch.as_tensor(rows, device=device))
        finally:
            for part, training in modes:
                part.training = training

    def __repr__(self) -> str:
        return f"{type(self.module).__name__}.{METHOD}"


def _module(model: Any, options: Options) -> Factors | Scores:
    options.check(f"a torch module with {METHOD}", "n_users", "n_items", "user_ids", "item_ids")
    return Scores(_Module(model), n_users=options.n_users, n_items=options.n_items, **options.ids)


def _recommender(model: Any, options: Options) -> Lists:
    name, call = _signature(model), _call_of(model)
    options.check(name, "n", "n_users", "user_ids", "item_ids", *([] if call else ["user_items"]))
    if options.n is None or isinstance(options.n, bool) or options.n < 1:
        raise InputError(
            f"n={options.n} must be the length of the lists of {name}. Hint: use n=100, or the "
            "largest cut-off."
        )
    by_ids = options.user_ids is not None
    if call and not by_ids and options.n_users is None:
        raise InputError(
            f"For which users should {name} return lists? Hint: pass user_ids=..., the user ids "
            "that the model uses, or n_users=... if it identifies users by position."
        )
    users = as_ids(options.user_ids, "user_ids") if by_ids else np.arange(options.n_users or 0)
    own = {"item_ids": options.item_ids, "user_items": options.user_items}
    return _lists_of(model, options.n, users, by_ids=by_ids, **own)


# For each kind of model: a predicate, the name of the kind, and a function that makes a source. The
# first predicate that is true for a model decides.
Wrap = Callable[[Any, Options], Factors | Scores | Lists]
KINDS: tuple[tuple[Callable[[Any], bool], str, Wrap], ...] = (
    (_is_instance_of("implicit"), "implicit (user_factors, item_factors)", _implicit),
    (_is_instance_of("lightfm", "LightFM"), "LightFM", _lightfm),
    (_is_instance_of("surprise", "AlgoBase"), "the algorithms of Surprise", _surprise),
    (
        _is_module,
        f"a torch module with a method {METHOD}(users) that takes an int64 tensor of user rows "
        "and returns their scores of all items, [len(users), n_items]",
        _module,
    ),
    (recommends, "any model with recommend(...)", _recommender),
)
