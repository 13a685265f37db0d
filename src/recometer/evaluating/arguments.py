"""Reads and checks the arguments of `evaluate`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from recometer.data.catalogue import Catalogue
from recometer.data.columns import common_names
from recometer.data.interactions import Interactions, read_interactions
from recometer.errors import (
    InputError,
    InputTypeError,
    ModelError,
    RecometerError,
    UnknownNameError,
    argument_text,
    did_you_mean,
    rule_text,
)
from recometer.measuring.side_data import Popularity
from recometer.metrics.conventions import named_protocol
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.sources.base import Source
from recometer.sources.candidates import Items

if TYPE_CHECKING:
    from recometer.split.result import Folds, Split

# Parameter names from other libraries that `evaluate` does not accept.
THRESHOLDS = (
    "threshold",
    "relevance_threshold",
    "rating_threshold",
    "min_rating",
    "relevance_level",
)
CUTOFFS = ("k", "top_k", "topk", "n", "cutoff", "cutoffs", "at")
COLUMNS = ("user", "item", "value", "time", "rank", "score")
IDS = ("user_ids", "item_ids", "n_users", "n_items", "item_offset")


def check_source(source: object, test: object) -> Source:
    """Return the argument if it is a source; otherwise raise an error with a hint."""
    if isinstance(source, Source):
        return source
    if isinstance(test, Source):
        raise InputTypeError(
            "The second argument is a source, but the first is not. Hint: "
            "rm.evaluate(source, test)."
        )
    if isinstance(source, type) and issubclass(source, Source):
        hint = f"call it with your model's output: rm.{source.__name__}(...)."
    elif isinstance(source, tuple | list):
        hint = (
            "rm.Factors(user_factors, item_factors) takes factor matrices, "
            "rm.Lists(recommendations) lists, and rm.Pairs(frame) scored pairs with labels."
        )
    elif isinstance(source, dict | str) or hasattr(source, "columns"):
        hint = (
            "rm.Lists(recommendations) takes lists of recommended items, rm.Pairs(frame) takes "
            "scored pairs with labels. To evaluate several models, pass a dict of these."
        )
    elif isinstance(source, Callable):  # type: ignore[arg-type]
        hint = "rm.Scores(function, n_users=..., n_items=...) takes a function of user rows."
    elif getattr(source, "ndim", None) == 2:
        hint = (
            "rm.Scores(matrix) takes scores of all users and items, "
            "rm.Factors(user_factors, item_factors) factor matrices."
        )
    else:
        hint = (
            "wrap your model's output: rm.Factors(user_factors, item_factors) or rm.Scores(...); "
            "rm.from_model(model) supports fitted models of several libraries and any model "
            "with a recommend(...) method."
        )
    raise InputTypeError(
        f"The first argument must be a source, found {type(source).__name__}. Hint: {hint}"
    )


def test_of(source: Source, test: object) -> Interactions:
    """Return the test data, which must come either from the source or from the argument."""
    included = included_test(source, test_passed=test is not None)
    return read_interactions(test, "test") if included is None else included


def included_test(source: Source, *, test_passed: bool) -> Interactions | None:
    """Return the test data in the source, or None if test was passed separately."""
    included = source.facts.truth
    if not test_passed and included is None:
        raise InputError(
            f"test is missing, and the source ({source.describe()}) contains no labels. "
            "Hint: rm.evaluate(source, test); rm.Pairs(frame, relevance=...) contains them."
        )
    if test_passed and included is not None:
        raise InputError(
            f"test was passed, but the source ({source.describe()}) contains the labels. Hint: "
            "leave out test, or pass relevance=False, rating=False to Pairs."
        )
    return included


def protocol_of(
    protocol: str | Protocol, rules: Mapping[str, Any], parameters: Sequence[str]
) -> Protocol:
    """Return the protocol with some rules replaced.

    The error for an unknown rule may suggest a name from `parameters`.
    """
    if isinstance(protocol, str):
        protocol = named_protocol(protocol)
    elif not isinstance(protocol, Protocol):
        raise InputTypeError(
            f"protocol={protocol!r} must be a name or a Protocol. Hint: pass individual rules by "
            f"name, for instance {rule_text('ties', 'random')}."
        )
    for rule in rules:
        if rule not in protocol.declared:
            hint = _hint_for_name(rule) or did_you_mean(rule, [*parameters, *protocol.declared])
            raise UnknownNameError(f"evaluate has no parameter or rule {rule!r}. {hint}")
    return protocol.replace(**rules) if rules else protocol


def _hint_for_name(name: str) -> str:
    """Return a hint for a name that belongs to another function, or an empty string."""
    if name == "label_gain":
        return (
            "Hint: np.take(label_gain, label) are the gains to pass as relevance; "
            "ndcg(label_gain=label)@k of protocol='lightgbm' reads them unchanged."
        )
    if name.lower() in THRESHOLDS:
        return "Hint: relevant_from=4 sets the smallest test value of a relevant item."
    if name.lower() in CUTOFFS:
        return (
            "Hint: cut-offs are part of metric names, as in "
            f"{argument_text('metrics', 'ndcg@5,10')}."
        )
    # Common column names count as well: user_id="uid" means user="uid".
    column = next((kind for kind in COLUMNS if kind == name or common_names(kind, [name])), None)
    if column is not None:
        calls = {
            f"rm.Interactions.of(test, {column}=...)": column not in ("rank", "score"),
            f"rm.Lists(frame, {column}=...)": column not in ("value", "time"),
        }
        readers = [call for call, reads in calls.items() if reads]
        return f"Hint: name the columns where the table is read: {' or '.join(readers)}."
    if name in IDS:
        return (
            f"Hint: pass ids and positions with the data: rm.Interactions.of(test, {name}=...), "
            "and user_ids= and item_ids= of rm.Factors and rm.Scores."
        )
    return ""


def adapt_protocol(source: Source, protocol: Protocol, *, trained: bool) -> Protocol:
    """Adapt the rules to a source; refuse ``ties="input"`` if the source has no input order.

    Under a convention, ties in a source without an input order are broken by item id. Without
    training data, `cold_start` leaves nobody out. ``nan_scores="undefined_for_all"`` becomes
    "undefined", because sources treat both values alike.
    """
    if protocol.nan_scores == "undefined_for_all":
        protocol = protocol.replace(nan_scores="undefined")
    if not trained and not protocol.cold_start:
        protocol = protocol.replace(cold_start=True)
    if protocol.ties not in ("input", "as_ranked") or source.facts.input_order:
        return protocol
    if protocol.version:
        return protocol.replace(ties="item")
    raise InputError(
        f"{rule_text('ties', protocol.ties)} keeps the order of the input, but "
        f"{type(source).__name__} has no such order. Hint: {rule_text('ties', 'item')} orders "
        "equal scores by item id."
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of `evaluate`, except the source and the test data."""

    metrics: tuple[Metric, ...]
    protocol: Protocol  # the rules as the user set them; `adapt_protocol` adapts them to a source
    train: Interactions | None
    exclude: Items | None
    catalogue: Catalogue | None
    baseline: Source | None
    seed: int
    threads: int
    progress: bool | None
    chance: bool
    as_passed: Mapping[str, Any]  # candidates and exclude as passed, for repeating the evaluation
    user_rules: Sequence[str] = ()  # the rules set by the user; a warning names unused ones
    # Computed from all training data, if `train` contains only some of the users.
    popularity: Popularity | None = None
    expects_unknown: bool = False  # whether to skip the warnings about unknown ids
    some_users: bool = False  # whether test is one of several blocks of users


def is_split(test: object) -> TypeGuard[Split | Folds | Sequence[Split]]:
    """Return whether test is a `Split`, a `Folds` object or a list of `Split` objects."""
    # Importing the module takes time, and before it is imported, no `Split` can exist.
    module = sys.modules.get("recometer.split.result")
    if module is None:
        return False
    if isinstance(test, list | tuple):
        return bool(test) and all(isinstance(split, module.Split) for split in test)
    return isinstance(test, module.Split | module.Folds)


def are_folds(test: object) -> TypeGuard[Folds | Sequence[Split]]:
    """Return whether test consists of several splits (a `Folds` object or a list of splits)."""
    return is_split(test) and not hasattr(test, "interactions")


def check_no_train(split: object, train: object) -> None:
    """Refuse train if test is a split, which contains its own training data."""
    if train is not None:
        raise InputError(
            f"train was passed, but {type(split).__name__} contains its own. Hint: leave train out."
        )


def parts_of(
    split: Split | Folds | Sequence[Split], train: object
) -> tuple[Interactions, Interactions]:
    """Return the test and training data of a split."""
    check_no_train(split, train)
    if not hasattr(split, "interactions"):
        raise InputTypeError(
            f"An Evaluator needs a single split, but {type(split).__name__} has several. Hint: "
            "make one for each, [rm.Evaluator(split) for split in folds]; or "
            "rm.evaluate(function, folds)."
        )
    plain = split.interactions()
    return plain.test, plain.train


def each_fold(source: object, splits: Any) -> Iterator[tuple[object, Any]]:
    """Yield the source and the split of each fold; splits are made one at a time.

    `source` is either a list with one source per fold or a function that returns the source for a
    split.
    """
    if callable(source):
        for number, split in enumerate(splits):
            try:
                fold_source = source(split)
            except RecometerError:
                raise  # the error already has a good message
            except Exception as error:
                raise ModelError(
                    f"The function that returns a source raised {type(error).__name__} for fold "
                    f"{number} (counted from 0): {error}. Hint: calling it with next(iter(folds)) "
                    "shows where."
                ) from error
            yield fold_source, split
        return
    if not isinstance(source, list | tuple):
        raise InputTypeError(
            "Each fold needs its own model output, found one of type "
            f"{type(source).__name__}. Hint: pass a list, or a function that is called with "
            "each split and returns a source."
        )
    if len(source) != len(splits):
        raise InputError(
            f"There are {len(source)} sources for {len(splits)} folds. Hint: pass one per "
            "fold, or a function that is called with each split and returns a source."
        )
    yield from zip(source, splits, strict=True)
