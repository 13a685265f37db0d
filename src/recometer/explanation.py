"""`explain` shows, step by step on the user's data, why two conventions give different numbers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data import ids
from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.evaluating.arguments import protocol_of
from recometer.evaluation import Evaluation, evaluate_again
from recometer.metrics.conventions import find_convention, parse_under
from recometer.metrics.registry import METRICS, Metric, rules_of
from recometer.protocol import STEPS, Protocol
from recometer.rendering import Column, Printed, Table, plain
from recometer.results.means import is_over_rows

Evaluate = Callable[[Metric, Protocol], Evaluation]

N_USERS = 5  # the default of `n_shown`


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two definitions that are compared.

    Attributes
    ----------
    protocol
        The name of the set of rules.
    metric
        The name of the metric under these rules.
    formula
        The formula as text, with its parameters.
    rules
        Sentences about the rules that differ from recometer's defaults.
    mean
        The mean on these data.
    counted
        The number of users who are included in the mean.
    """

    protocol: str
    metric: str
    formula: str
    rules: tuple[str, ...]
    mean: float
    counted: int


@dataclasses.dataclass(frozen=True)
class Step:
    """A change that brings one definition closer to the other, made on top of all earlier steps.

    Attributes
    ----------
    name
        The name of the step, for instance ``"ties"``, ``"population"`` or the name of a parameter.
    change
        The change, in words.
    mean
        The mean after this step.
    users
        The number of users whose value changes, or who enter or leave the mean. It is 0 for a
        metric with one value for all users.
    """

    name: str
    change: str
    mean: float
    users: int


COLUMNS = (
    Column("step", ("name",)),
    Column("mean", show="{:.4f}".format, number=True),
    Column("users changed", ("users",), lambda users: f"{users:,}" if users else "", number=True),
    Column("change", wraps=True),
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Explanation(Printed):
    """An explanation of why two definitions of a metric give different numbers; see `explain`.

    Attributes
    ----------
    left, right : Side
    steps : tuple of Step
        The steps from left to right. The mean after the last step is the mean of the right side.
    user_ids : [n_users] or None
        The ids of the users. None if positions identify the users.
    values : float64 [n_users, n_steps + 1]
        Each user's value before the first step and after each step. It is NaN where the user does
        not count, and for a metric with one value for all users.
    n_shown : int or None
        The number of users to show, among those whose values differ. None shows all of them, and
        the CSV output then contains only these users.
    notes : tuple of str
        Defects of the other library that affect these data, but are not shown by any step.
    """

    left: Side
    right: Side
    steps: tuple[Step, ...]
    user_ids: Array | None
    values: Float64
    n_shown: int | None = N_USERS
    notes: tuple[str, ...] = ()

    @property
    def _decisive_steps(self) -> Int64:
        """The step that changes each user's value most, or -1 if none does."""
        if not self.steps:
            return np.full(len(self.values), -1)
        changes = np.column_stack(
            [_difference(*self.values[:, step : step + 2].T) for step in range(len(self.steps))]
        )
        return np.where(changes.max(axis=1) > 0, changes.argmax(axis=1), -1)

    def table(self) -> Table:
        """Return the table of the steps, printed below both means and written as CSV."""
        effective: list[Step] = []
        idle: list[Step] = []
        before = self.left.mean
        for step in self.steps:
            same = np.array_equal(before, step.mean, equal_nan=True)
            (idle if same and not step.users else effective).append(step)
            before = step.mean
        first = Step(self.left.protocol, self.left.metric, self.left.mean, 0)
        ineffective = " ".join(step.change for step in idle)
        notes = [f"Without effect on these data: {ineffective}"] if idle else []
        if not effective:
            notes.insert(0, "Every user has the same value under both.")
        return Table(COLUMNS, [first, *effective], [*notes, *self.notes], list(self.head()))

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the tables that ``print`` shows: the steps, and the users who differ most."""
        users = self._users()
        return [self.table(), users] if users.rows else [self.table()]

    def data(self) -> Table:
        """Return a table of the steps, or of the users if all of them are shown."""
        return self.table() if self.n_shown is not None else self._users()

    def _users(self) -> Table:
        decisive, size = self._decisive_steps, _difference(self.values[:, 0], self.values[:, -1])
        order = np.argsort(-size, kind="stable")[: self.n_shown]
        rows = [
            {
                "user": user if self.user_ids is None else self.user_ids[user],
                "left": float(self.values[user, 0]),
                "right": float(self.values[user, -1]),
                "step": self.steps[decisive[user]].name if decisive[user] >= 0 else "",
            }
            for user in order[size[order] > 0].tolist()
        ]
        names = [self.left.protocol, self.right.protocol]
        names = ["before", "after"] if names[0] == names[1] else names
        left, right = (
            Column(name, (side,), _text, number=True)
            for name, side in zip(names, ("left", "right"), strict=True)
        )
        return Table([Column("user"), left, right, Column("differ at", ("step",))], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return both sides, the steps and the users who differ most, as Python objects."""
        return {
            "left": plain(vars(self.left)),
            "right": plain(vars(self.right)),
            "steps": [plain(vars(step)) for step in self.steps],
            "notes": list(self.notes),
            "users": self._users().records(),
        }

    def __repr__(self) -> str:
        left, right = (f"{side.protocol} {side.metric}" for side in (self.left, self.right))
        return f"<Explanation: {left}, {right}, {len(self.steps)} steps>"

    def head(self) -> Iterator[str]:
        """Yield the lines above the tables, which show both means and formulas."""
        for side in (self.left, self.right):
            users = f"{side.counted:,} user{'' if side.counted == 1 else 's'}"
            yield f"{side.protocol}: {side.metric} = {side.mean:.4f} over {users}"
            yield f"  {side.formula}"


def explain(
    result: Evaluation,
    metric: str | Metric,
    *,
    protocol: str | Protocol,
    source: Any = None,
    test: Any = None,
    **options: Any,
) -> Explanation:
    """Explain why a number differs from another library's number for the same data.

    One definition is changed into the other, one rule or parameter at a time. Every step recomputes
    everything, so the changes in the mean add up to the difference. Neither the number of threads
    nor the instruction set is ever a step, because they do not change a value, not even in the last
    bit. The same is true of skipping scores that a cut-off does not need.

    Parameters
    ----------
    result
        An evaluation.
    metric
        One of the metrics of the evaluation, for instance ``"ndcg@10"``.
    protocol
        The other rules: the name of a convention (see `recometer.conventions`), or a `Protocol`.
        The metric's name is looked up in this convention first, and then in recometer.
    source, test, options
        The arguments of `evaluate` (``train=...``, ``catalogue=...``). Pass them if the result does
        not contain its inputs, because it was loaded from a file or because they take more than 256
        MB.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If the result does not contain its inputs and you do not pass them, or if the other rules
        have ``defects=True`` and reject the data.
    InputTypeError
        If the result is not an evaluation.
    UnknownNameError
        If the metric is not part of the evaluation, or the protocol does not exist.

    Examples
    --------
    >>> import recometer as rm
    >>> lists = rm.Lists({"ann": ["song", "film"], "bob": ["film", "book", "game"]})
    >>> test = {"ann": ["film"], "bob": ["game", "song"]}
    >>> result = rm.evaluate(lists, test, metrics="ndcg@3")
    >>> print(rm.explain(result, "ndcg@3", protocol="lenskit"))  # doctest: +ELLIPSIS
    recometer: ndcg@3 = 0.4688 over 2 users
    ...
    """
    if not isinstance(result, Evaluation):
        raise InputTypeError(
            f"explain takes an evaluation, found {type(result).__name__}. Hint: "
            "rm.explain(rm.evaluate(...), metric, protocol=...)."
        )
    own_metric = result.known_metric(metric)
    inputs = result.inputs_kept
    if source is not None:
        inputs = {"source": source, "test": test, **options}
    elif inputs is None:
        raise InputError(
            "This result does not contain its inputs: it was loaded from a file, or "
            "the inputs are large. Hint: rm.explain(result, metric, protocol=..., source=source, "
            "test=test, train=train) passes them again."
        )
    other_rules = protocol_of(protocol, {}, []).replace(shifted_ids=result.protocol.shifted_ids)
    other_metric = _counterpart(own_metric, other_rules)

    def reevaluate(requested: Metric, rules: Protocol) -> Evaluation:
        return evaluate_again(inputs, metrics=[requested], protocol=rules, seed=result.seed)

    notes = _defects_shown(reevaluate, other_metric, other_rules)
    explanation = walk(reevaluate, (own_metric, result.protocol), (other_metric, other_rules))
    return dataclasses.replace(explanation, notes=notes)


def _defects_shown(reevaluate: Evaluate, metric: Metric, protocol: Protocol) -> tuple[str, ...]:
    """Describe a library's defects that affect these data, but are not shown by any step."""
    convention = find_convention(protocol.name)
    refused = None if convention is None else convention.refused_for(metric)
    if convention is None or refused is None:
        return ()
    try:
        reevaluate(metric, protocol.replace(defects=True))
    except InputError:
        if protocol.defects:
            raise
        number = f"{convention.library} prints a different number for users {refused.users}"
        return (f"{number}, which is not computed. {refused.says}",)
    return ()


def walk(
    reevaluate: Evaluate, left: tuple[Metric, Protocol], right: tuple[Metric, Protocol]
) -> Explanation:
    """Change one definition into another; `reevaluate` evaluates one metric under a protocol."""
    metric, rules = _plain(left[0]), _own_rules(*left)
    last_metric, last_rules = _plain(right[0]), _own_rules(*right)
    results = [reevaluate(metric, rules)]
    texts: list[tuple[str, str]] = []

    def add_step(name: str, change: str, to_metric: Metric, to_rules: Protocol) -> None:
        nonlocal metric, rules
        metric, rules = to_metric, to_rules
        results.append(reevaluate(metric, rules))
        texts.append((name, change))

    for step in STEPS:
        changed = {
            rule: getattr(last_rules, rule)
            for rule in last_rules.differing(rules)
            if last_rules.declared[rule].step == step
        }
        if changed:
            after = rules.replace(**changed)
            add_step(step, " ".join(map(after.sentence, changed)), metric, after)
        if step == "formula":
            for name, change, next_metric in list(_metric_steps(metric, last_metric)):
                add_step(name, change, next_metric, rules)
    user_ids, values = _values_of_all(results)
    means = [result.mean()[str(result.metrics[0])] for result in results]
    explained = tuple(
        Step(*text, mean, int(np.count_nonzero(_difference(before, after))))
        for text, mean, before, after in zip(
            texts, means[1:], values.T[:-1], values.T[1:], strict=True
        )
    )
    first, last = _side(*left, means[0], results[0]), _side(*right, means[-1], results[-1])
    return Explanation(first, last, explained, user_ids, values)


def _side(metric: Metric, protocol: Protocol, mean: float, result: Evaluation) -> Side:
    rules, own = tuple(_own_rules(metric, protocol).sentences()), _plain(metric)
    meanings = [f"{text}: {meaning}" for text, meaning in own.meanings.items()]
    formula = "; ".join([f"{own}: {METRICS[own.name].formula}", *meanings])
    formula += "; over the rows of all users" if is_over_rows(metric, protocol, None) else ""
    return Side(protocol.name, str(metric), formula, rules, mean, _counted(result))


def _metric_steps(metric: Metric, last: Metric) -> Iterator[tuple[str, str, Metric]]:
    """Yield steps that change the metric, or its parameters one at a time."""
    if metric.name != last.name or metric.cutoff != last.cutoff:
        yield "formula", f"{metric} becomes {last}.", last
        return
    current, goal = dict(metric.parameters), dict(last.parameters)
    for name, parameter in METRICS[metric.name].parameters.items():
        before = current.get(name, parameter.default)
        after = goal.get(name, parameter.default)
        if before == after:
            continue
        current[name] = after
        changed = dataclasses.replace(metric, parameters=tuple(current.items()))
        meaning = parameter.choices.get(str(after), "")
        meaning = f" ({meaning})" if meaning else ""
        yield name, f"{name}={before} becomes {name}={after}{meaning}.", changed


def _counterpart(metric: Metric, protocol: Protocol) -> Metric:
    """Return the metric of this name under the other rules, or recometer's if they have none."""
    if find_convention(protocol.name) is None and not metric.label:
        return metric
    plain = metric.name if metric.cutoff is None else f"{metric.name}@{metric.cutoff}"
    plain += f"[{metric.group}]" if metric.group else ""
    for name in (metric.label, plain):
        with contextlib.suppress(UnknownNameError, InputError):
            return parse_under(name, protocol)[0]
    return parse_under(plain, protocol)[0]  # raises the error for the user


def _plain(metric: Metric) -> Metric:
    """Return the metric under recometer's name, without rules of its own."""
    return dataclasses.replace(metric, label="", rules=())


def _own_rules(metric: Metric, protocol: Protocol) -> Protocol:
    """Return the protocol with the metric's own rules, but without the name of the convention."""
    # If `version` is set, `evaluate` treats the rules as those of another library: it replaces
    # ties="input" for a source without an input order.
    own = rules_of(metric, protocol)
    return dataclasses.replace(own, name="", version="explained", defects=False)


def _values_of_all(results: list[Evaluation]) -> tuple[Array | None, Float64]:
    """Return user ids, and a row per user with the value that counts in each result's mean."""
    # Some rules add users who are not in the test data, so the results may have different users.
    largest = max(results, key=len)
    columns = []
    for result in results:
        column = _counted_values(result)
        if len(result) < len(largest) and largest.user_ids is not None:
            assert result.user_ids is not None
            rows = ids.match(result.user_ids, largest.user_ids, "user ids", "user ids")
            wide = np.full(len(largest), np.nan)
            wide[rows] = column
            column = wide
        columns.append(column)
    return largest.user_ids, np.column_stack(columns)


def _counted_values(result: Evaluation) -> Float64:
    """Return the values that count in the mean of the result's only metric."""
    if result.together:
        return np.full(len(result), np.nan)
    return result.counted_values(result.metrics[0])


def _counted(result: Evaluation) -> int:
    """Count the users in the mean of the result's only metric."""
    if result.together:
        return int(np.count_nonzero(result.reasons[str(result.metrics[0])] == 0))
    return int(np.count_nonzero(~np.isnan(_counted_values(result))))


def _difference(before: Float64, after: Float64) -> Float64:
    """Return absolute differences; infinity if only one of the two values is NaN."""
    one_missing = np.isnan(before) != np.isnan(after)
    return np.where(one_missing, np.inf, np.nan_to_num(np.abs(after - before)))


def _text(value: float) -> str:
    return "not counted" if np.isnan(value) else f"{value:.4f}"
