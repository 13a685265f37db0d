"""The registry of metrics, and a metric at a cut-off: ``recall@5``, ``f@10(beta=2)``."""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from recometer.arrays import Float64, Int64
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    python_or_command,
)
from recometer.metrics.adding_up import AddsUp
from recometer.metrics.cutoffs import bad_cutoff, misplaced_cutoff
from recometer.metrics.parameters import Parameter, Value
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.ties import WHOLE, Property

# The signature of a metric's function is (groups, cutoffs, **parameters); `metric.record`
# determines the type of the first argument.
Function = Callable[..., Float64]
# The signature of a function for `metric.over_rows` is (predictions, weights, **parameters).
OverRows = Callable[..., float]
Pooled = Literal["cutoff", "relevant", "possible", "candidates"]
Record = Literal["ranks", "ratings", "lists"]
SideData = Literal[
    "train",
    "test",
    "baseline",
    "categories",
    "features",
    "propensity",
    "catalogue",
    "catalogue_items",
]
SIDE_DATA: dict[SideData, tuple[str, str, str]] = {
    "train": ("training data", "train=", "--train"),
    "test": ("test data", "test", "test"),
    "baseline": (
        "other lists to compare with",
        "baseline= (another source, or an evaluation)",
        "--baseline (a model's name, or a file)",
    ),
    "catalogue": (
        "the number of items that could have been recommended",
        "catalogue= (their number, or ids)",
        "--catalogue (their number, or ids)",
    ),
    "catalogue_items": (
        "the items that could have been recommended",
        "catalogue= (their ids)",
        "--catalogue (their ids)",
    ),
    "categories": (
        "item categories",
        "catalogue= with a column of categories, or rm.Catalogue(frame, categories=...)",
        "--catalogue FILE --categories COLUMN",
    ),
    "features": (
        "item features",
        "rm.Catalogue(frame, features=...) as catalogue=",
        "--catalogue FILE --features COLUMN",
    ),
    "propensity": (
        "item propensities",
        "rm.Catalogue(frame, propensity=...) as catalogue=",
        "--catalogue FILE --propensity COLUMN",
    ),
}
"""The side data that metrics read: what they are, and the argument and option that supply them."""
Without = Literal[
    "relevant", "hits", "pairs", "seen", "history", "baseline", "categories", "history_categories",
    "relevant_categories", "features",
]  # fmt: skip
Needs = Literal[
    "rows", "relevant", "recommended", "variance", "pairs", "kinds", "probabilities"
]  # fmt: skip
AnyFunction = TypeVar("AnyFunction", bound=Function)


@dataclasses.dataclass(frozen=True, kw_only=True)
class metric:
    """The declaration of a metric; used as a decorator, it registers the decorated function.

    The metric is named after the function, which is called as
    ``function(groups, cutoffs, **parameters)``. For the record ``"ratings"``, the call is
    ``function(predictions, cutoffs)``. The function evaluates the formula for every user, as
    float64 [n_users, n_cutoffs]; a ratio with a denominator of 0 is 0. The cut-offs are an int64
    array, in which `recometer.ties.WHOLE` means the whole ranking. `recometer.measuring.compute`
    decides when the metric is undefined.

    For the record ``"lists"``, the call is ``function(data, cutoffs)``. A metric with one value for
    all users also takes ``weights``, and returns float64 [n_cutoffs]; see `over_users`.

    Attributes
    ----------
    formula, title, source
        The formula, the full name of the metric (by default, its short name) and its source in the
        literature, as strings.
    other_names
        Synonyms that users may write instead of the name; see `canonical`.
    unclear_names
        Ambiguous names, which some people use for this metric and others for a different one, each
        with the name to use instead. Ambiguous names are refused.
    parameters
        Parameters by name. They are keyword-only arguments of the function, which also sets their
        defaults.
    when
        How the value of a parameter changes the attributes below:
        ``{"gain": {"binary": {"reads": "relevance"}}}``. Entries for default values apply as well.
        `side` and `without` are added to those of the metric; other attributes are replaced.
    lower, upper
        Bounds of the value.
    lower_of_gains
        The lower bound if no test value is below 0. None means `lower`.
    upper_at
        The upper bound with a cut-off k: ``upper_at(k, binary, **parameters)``, where `binary` says
        whether every test value is 0 or 1. None means `upper`.
    higher_is_better
        Whether higher values are better.
    monotone
        Whether the value never falls if an item swaps places with a worse item above it.
    order_free
        Whether the order within the first k places does not matter.
    cutoff
        Whether ``@k`` is ``"required"``, ``"optional"`` or not possible (``"none"``).
    reads
        The property of an item that the metric reads; see `recometer.ties.worth_of`.
    defined_when_all_relevant
        Whether the metric is meaningful if every candidate is relevant.
    beyond_cutoff
        Whether places beyond a cut-off are read as well.
    needs_candidates
        Whether the value is undefined if the number of candidates is 0 or unknown.
    averages_ties
        Whether the tie rule ``"expected"`` gives the mean over all orders. If not, a tie group is
        treated as a single step.
    needs_whole_ranking
        Whether the metric cannot be computed for a list that ends before the last candidate.
    record
        The record that the metric reads: ``"ranks"`` (`recometer.ties.Groups`), ``"ratings"``
        (`recometer.metrics.rated.Predictions`) or ``"lists"`` (`recometer.metrics.ListData`).
    needs
        What a rating metric needs to be defined: ``"rows"``, ``"relevant"`` or ``"recommended"``
        rows, a nonzero ``"variance"`` of the true ratings, ``"pairs"`` of rows with different true
        ratings, rows of both ``"kinds"`` (relevant and not), or predictions that are
        ``"probabilities"``.
    over_rows
        A function that computes the value over the rows of all users, which is the metric's usual
        mean. Its arguments are the predictions, the number of times that each user counts
        (float64 [n_users]), and the parameters. None if the mean is over users.
    may_be_nan
        Whether the formula itself may be undefined. The function then returns NaN.
    pooled
        The denominator of a user's value, if the value is a ratio: the ``"cutoff"`` k, the number R
        of ``"relevant"`` items, the ``"possible"`` hits min(k, R), or the number of
        ``"candidates"``. None if there is no pooled mean (see `recometer.results.means`).
    side
        The data that a metric reads in addition to its record: keys of `SIDE_DATA`.
    without
        What a list metric needs to be defined, in addition to the list itself; see
        `recometer.measuring.listed`.
    over_users
        Whether a list metric has one value for all users. Its function then takes ``weights`` as
        the third argument: the number of times that each user counts (int64 [n_users]), or None.
    adds_up
        How to compute the value from sums over subsets of the users. None if the metric needs all
        lists.
    takes_group
        Whether the metric can be restricted to a group of items, as in ``recall@10[new]``.
    of_empty_lists
        Whether a list metric has a value for a user with an empty list.
    """

    formula: str
    title: str = ""
    source: str = ""
    other_names: tuple[str, ...] = ()
    unclear_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Parameter] = dataclasses.field(default_factory=dict)
    when: Mapping[str, Mapping[Value, Mapping[str, Any]]] = dataclasses.field(default_factory=dict)
    lower: float = 0.0
    upper: float = 1.0
    lower_of_gains: float | None = None
    upper_at: Callable[..., float] | None = None
    higher_is_better: bool = True
    monotone: bool = True
    order_free: bool = False
    cutoff: Literal["required", "optional", "none"] = "required"
    reads: Property = "relevance"
    defined_when_all_relevant: bool = False
    beyond_cutoff: bool = False
    needs_candidates: bool = False
    averages_ties: bool = True
    needs_whole_ranking: bool = False
    record: Record = "ranks"
    needs: Needs = "rows"
    over_rows: OverRows | None = None
    may_be_nan: bool = False
    pooled: Pooled | None = None
    side: tuple[SideData, ...] = ()
    without: tuple[Without, ...] = ()
    over_users: bool = False
    adds_up: AddsUp | None = None
    takes_group: bool = False
    of_empty_lists: bool = False

    def __call__(self, function: AnyFunction) -> AnyFunction:
        """Register a function.

        Raises
        ------
        InputError
            If a metric in another module has the same name, or the function's arguments differ from
            `parameters`.
        """
        name = function.__name__
        existing = METRICS.get(name)
        if existing is not None and existing.function.__module__ != function.__module__:
            raise InputError(
                f"The metric {name!r} already exists ({existing.title}). "
                f"Hint: rename the function, for instance to my_{name}."
            )
        stated = vars(self) | {
            "title": self.title or name,
            "parameters": _with_defaults(function, self.parameters),
        }
        METRICS[name] = MetricDefinition(name=name, function=function, **stated)
        return function


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetricDefinition(metric):
    """A metric in the registry: its declaration, its name and its function."""

    name: str
    function: Function

    def with_parameters(self, parameters: Iterable[tuple[str, Value]]) -> MetricDefinition:
        """Return the definition with the given parameters set."""
        values = {name: parameter.default for name, parameter in self.parameters.items()}
        changes: dict[str, Any] = {}
        for name, value in (values | dict(parameters)).items():
            change = dict(self.when.get(name, {}).get(value, {}))
            for adding in ("side", "without"):
                if adding in change:
                    so_far = changes.get(adding, getattr(self, adding))
                    change[adding] = tuple(dict.fromkeys((*so_far, *change[adding])))
            changes |= change
        return dataclasses.replace(self, **changes) if changes else self

    def settled(self, parameters: object) -> tuple[tuple[str, Value], ...]:
        """Check parameters (a mapping or pairs), and return them in canonical form."""
        name, declared = self.name, self.parameters
        pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
        if not isinstance(pairs, Iterable):
            raise InputTypeError(f"The parameters {parameters!r} of {name!r} must be a mapping.")
        checked: dict[str, Value] = {}
        for parameter, value in pairs:
            if not declared:
                raise UnknownNameError(
                    f"The metric {name!r} takes no parameters, but was given {parameter!r}."
                )
            if parameter not in declared:
                listed = "; ".join(declaration.describe() for declaration in declared.values())
                raise UnknownNameError(
                    f"The metric {name!r} has no parameter {parameter!r}. "
                    f"{did_you_mean(str(parameter), declared)} {name!r} takes: {listed}."
                )
            if parameter in checked:
                raise InputError(
                    f"The parameter {parameter!r} of the metric {name!r} is given twice."
                )
            checked[parameter] = (
                None
                if value is None and declared[parameter].default is None
                else declared[parameter].settle(value, name)
            )
        return tuple(
            (parameter, checked[parameter])
            for parameter in declared
            if parameter in checked and checked[parameter] != declared[parameter].default
        )


METRICS: dict[str, MetricDefinition] = {}
"""Every metric, keyed by name."""


def listed_hint() -> str:
    """Return a hint on how to list the names of all metrics."""
    also = python_or_command("; in Python they are in recometer.metrics.METRICS", "")
    return f"The command recometer metrics lists all{also}."


def reading(record: Record, *, side: bool = True) -> dict[str, MetricDefinition]:
    """Return the metrics that read a record, keyed by name.

    ``side=False`` leaves out the metrics that need side data.
    """
    return {
        name: definition
        for name, definition in METRICS.items()
        if definition.record == record and (side or not definition.with_parameters(()).side)
    }


def _with_defaults(function: Function, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters with their names and the function's defaults."""
    defaults = {
        argument.name: argument.default
        for argument in inspect.signature(function).parameters.values()
        if argument.kind is argument.KEYWORD_ONLY
    }
    if list(defaults) != list(parameters) or inspect.Parameter.empty in defaults.values():
        raise InputError(
            f"The metric {function.__name__!r} declares the parameters {list(parameters)}, but its "
            f"function takes {list(defaults)}. Hint: declare each as a keyword-only argument "
            "with a default."
        )
    settled = {}
    for name, parameter in parameters.items():
        default = float(defaults[name]) if type(defaults[name]) is int else defaults[name]
        settled[name] = dataclasses.replace(parameter, name=name, default=default)
    return settled


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric at one cut-off; ``str(Metric("ndcg", 10))`` is ``"ndcg@10"``.

    Parameters
    ----------
    name
        A name in `METRICS`, or a variant that `canonical` understands. The attribute holds the name
        in `METRICS`.
    cutoff
        The number of places to read, from the top of the ranking. None means the whole ranking.
    parameters
        A mapping or pairs: ``Metric("f", 10, {"beta": 0.5})`` is ``f@10(beta=0.5)``. The attribute
        holds pairs in the order of the registry, and omits parameters that have their default
        value.
    label
        The requested name, if it differs from recometer's: the name in a convention, or a name to
        which a convention gives other parameters (see `recometer.metrics.conventions`).
    rules
        The rules of the protocol that this name changes, as a mapping or pairs.
    group
        A category in the catalogue: only its items count as relevant, and
        ``str(Metric("recall", 10, group="new"))`` is ``"recall@10[new]"``. By default, all items
        count.

    Raises
    ------
    UnknownNameError
        If there is no such metric, or no such parameter.
    InputError
        If the cut-off is missing, not allowed or not a whole number of at least 1, if a parameter
        does not accept its value, or if the metric takes no group.
    """

    name: str
    cutoff: int | None = None
    parameters: tuple[tuple[str, Value], ...] = ()
    label: str = ""
    rules: tuple[tuple[str, Value], ...] = ()
    group: str = ""

    def __post_init__(self) -> None:
        rules = self.rules.items() if isinstance(self.rules, Mapping) else self.rules
        object.__setattr__(self, "rules", tuple((rule, value) for rule, value in rules))
        object.__setattr__(self, "name", canonical(self.name))
        object.__setattr__(self, "parameters", METRICS[self.name].settled(self.parameters))
        self._check_cutoff()
        if self.group and not self.definition.takes_group:
            names = ", ".join(
                name for name, declaration in METRICS.items() if declaration.takes_group
            )
            raise InputError(
                f"The metric {self.name!r} cannot be restricted to the group of items "
                f"{self.group!r}. Hint: these can: {names}."
            )
        if self.label == self.ours:
            object.__setattr__(self, "label", "")

    def _check_cutoff(self) -> None:
        takes = self.definition.cutoff
        if self.cutoff is None:
            if takes == "required":
                raise InputError(
                    f"The metric {self.name!r} needs a cut-off. "
                    f"Hint: write {self.name}@10 for the first 10 places."
                )
            return
        if takes == "none":
            raise InputError(
                f"The metric {self.name!r} reads the whole ranking and takes no cut-off. "
                f"Hint: write {self.name} alone."
            )
        try:
            cutoff = operator.index(self.cutoff)
        except TypeError:
            raise bad_cutoff(self.name, self.cutoff) from None
        if isinstance(self.cutoff, bool) or not 1 <= cutoff < WHOLE:
            raise bad_cutoff(self.name, self.cutoff)
        object.__setattr__(self, "cutoff", cutoff)

    def __str__(self) -> str:
        return self.label or self.ours

    @cached_property
    def ours(self) -> str:
        """The metric's name in recometer, even if the request used another name."""
        head = self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"
        return head + self._written

    @property
    def variant(self) -> str:
        """The name without the cut-off, for instance ``"f(beta=0.5)"``."""
        return self.name + self._written

    @cached_property
    def _written(self) -> str:
        declared = METRICS[self.name].parameters
        parts = ",".join(declared[name].write(value) for name, value in self.parameters)
        return (f"({parts})" if parts else "") + (f"[{self.group}]" if self.group else "")

    @property
    def meanings(self) -> dict[str, str]:
        """The meaning of each parameter, keyed by its notation: ``{"beta=2": "..."}``."""
        declared = METRICS[self.name].parameters
        sentences = {
            declared[name].write(value): declared[name].choices.get(
                str(value), declared[name].sentence
            )
            for name, value in self.parameters
        }
        if self.group:
            sentences[f"[{self.group}]"] = f"Only items of the group {self.group!r} count."
        return sentences

    @cached_property
    def definition(self) -> MetricDefinition:
        """The definition in the registry, with the parameters set."""
        return METRICS[self.name].with_parameters(self.parameters)

    def bounds(self, *, negative: bool, binary: bool) -> tuple[float, float]:
        """Return the lowest and the highest possible value for one user; they may be infinite.

        Parameters
        ----------
        negative, binary
            Whether any test value may be below 0, and whether all test values are 0 or 1.
        """
        definition = self.definition
        low, high = definition.lower, definition.upper
        if not negative and definition.lower_of_gains is not None:
            low = definition.lower_of_gains
        if definition.upper_at is not None and self.cutoff is not None:
            high = definition.upper_at(self.cutoff, binary, **dict(self.parameters))
        return low, high

    @property
    def depth(self) -> int | None:
        """The number of places that the metric reads, from the top; None for the whole ranking."""
        return None if self.definition.beyond_cutoff else self.cutoff

    def compute_over_rows(self, record: Any, weights: Float64) -> float:
        """Compute the value over the rows of all users; NaN if it is undefined."""
        function = METRICS[self.name].over_rows
        assert function is not None
        return function(record, weights, **dict(self.parameters))

    def compute_over_users(self, record: Any, cutoffs: Int64, weights: Int64 | None) -> Float64:
        """Compute the value for all users together: float64 [n_cutoffs]."""
        return METRICS[self.name].function(record, cutoffs, weights, **dict(self.parameters))


def canonical(name: str) -> str:
    """Return the metric in `METRICS` that a name refers to.

    Parameters
    ----------
    name
        The name without a cut-off. Case, hyphens and underscores do not matter, and synonyms
        (`metric.other_names`) work as well.

    Raises
    ------
    UnknownNameError
        If there is no such metric, or the name is ambiguous.

    Examples
    --------
    >>> canonical("NDCG"), canonical("mrr"), canonical("Hit-Rate")
    ('ndcg', 'rr', 'hit')
    """
    registered_name = meaning(name)
    if registered_name is None:
        hint = misplaced_cutoff(str(name), meaning) or did_you_mean(
            str(name), METRICS, listed_hint()
        )
        if not name:
            hint = "Hint: write the cut-off without a space: ndcg@10."
        raise UnknownNameError(f"There is no metric {name!r}. {hint}")
    return registered_name


def meaning(name: str) -> str | None:
    """Do the same as `canonical`, but return None if there is no such metric.

    Raises
    ------
    UnknownNameError
        If the name is ambiguous.
    """
    if name in METRICS:
        return name
    plain = _plain(str(name))
    for definition in METRICS.values():
        for unclear, instead in definition.unclear_names.items():
            if _plain(unclear) == plain:
                raise UnknownNameError(f"The metric {name!r} is ambiguous. Hint: {instead}.")
    names = [
        definition.name
        for definition in METRICS.values()
        if plain in map(_plain, (definition.name, *definition.other_names))
    ]
    if len(names) > 1:
        raise UnknownNameError(
            f"The metric {name!r} is ambiguous: it may be {' or '.join(names)}. Hint: write one of "
            "these."
        )
    return names[0] if names else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def rules_of(metric: Metric, protocol: Protocol) -> Protocol:
    """Return the protocol with the changes that the metric's name makes to its rules."""
    if not metric.rules:
        return protocol
    cached: tuple[Protocol, Protocol] | None = vars(metric).get("_ruled")
    if cached is None or cached[0] is not protocol:  # cached, because evaluations call this often
        cached = protocol, protocol.replace(**dict(metric.rules))
        vars(metric)["_ruled"] = cached
    return cached[1]


def parameters_from_test(metric: Metric) -> list[str]:
    """Return the parameters that are not set, and are therefore derived from the test data."""
    already_set, declared = dict(metric.parameters), METRICS[metric.name].parameters
    return [
        name
        for name, parameter in declared.items()
        if parameter.from_test and name not in already_set
    ]


def with_largest_gain(metrics: Iterable[Metric], largest: float) -> list[Metric]:
    """Set each parameter that is derived from the test data, and not set yet, to `largest`."""
    settled = []
    for metric in metrics:
        missing = dict.fromkeys(parameters_from_test(metric), largest)
        pairs = (*metric.parameters, *missing.items())
        settled.append(dataclasses.replace(metric, parameters=pairs) if missing else metric)
    return list(dict.fromkeys(settled))


def without_test_parameters(metric: Metric, requested: Metric) -> Metric:
    """Return a metric without the parameters that `requested` derives from the test data."""
    if metric.name != requested.name:
        return metric
    names = parameters_from_test(requested)
    parameters = tuple((name, value) for name, value in metric.parameters if name not in names)
    return dataclasses.replace(metric, parameters=parameters)
