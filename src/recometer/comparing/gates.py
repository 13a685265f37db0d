"""Gates: bounds for how much worse than the baseline a model may be."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from recometer import stats
from recometer.comparing.changes import PROFILES, Changes, Segment
from recometer.comparing.compared import Compared
from recometer.comparing.pairs import bounds_of
from recometer.comparing.rows import PairRow, p_text
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.rendering import Column, Printed, Table

Mode = Literal["point", "interval", "test", "strict", "sequential"]
Verdict = Literal["passed", "failed", "undecided"]
MODES: dict[Mode, str] = {
    "point": "passed if the difference itself respects the bound, without regard to chance",
    "interval": "passed if the whole interval keeps the bound",
    "test": "failed if the bound is broken significantly (p adjusted over all gates, Holm)",
    "strict": "passed or failed if the whole interval is on one side of the bound, else undecided",
    "sequential": "as strict, by a confidence sequence: it may be looked at after every batch of "
    "users",
}
WRITTEN = re.compile(
    r"\s*(\S.*?)\s*(>=|<=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*"
)
SHOWN = 3  # of the most harmed users


@dataclasses.dataclass(frozen=True)
class Gate:
    """A bound for a difference to the baseline: ``"ndcg@10 >= -0.5%"``, ``"rmse <= 0.01"``.

    Attributes
    ----------
    metric
    bound
        Bound for the difference, or with `relative` for the relative one (0.005 is 0.5 %).
    relative
    higher_is_better
        Whether the difference must be at least the bound; otherwise it must be at most the bound.
    """

    metric: str
    bound: float
    relative: bool
    higher_is_better: bool = True

    def __str__(self) -> str:
        sign = ">=" if self.higher_is_better else "<="
        bound = f"{100 * self.bound:g}%" if self.relative else f"{self.bound:g}"
        return f"{self.metric} {sign} {bound}"


@dataclasses.dataclass(frozen=True)
class GateRow:
    """The verdict of a gate on a model.

    Attributes
    ----------
    gate, model
    verdict
        ``"passed"``, ``"failed"`` or ``"undecided"``.
    found, low, high
        The difference with its interval, relative if the gate is.
    method
        How the interval was computed.
    p_value
        In the mode ``"test"``, the adjusted p-value of a difference that equals the bound.
    n
        The number of users compared.
    changes
        The most harmed and helped users; None for a metric with one value for all users.
    segment
        The most harmed quarter of the users by activity or popularity; None if there was no
        train.
    note
        A remark that readers should know, or an empty text.
    """

    gate: Gate
    model: str
    verdict: Verdict
    found: float
    low: float
    high: float
    method: str
    p_value: float
    n: int
    changes: Changes | None
    segment: Segment | None
    note: str = ""

    def sentences(self) -> list[str]:
        """Return sentences on the findings, and on the users who are harmed most."""
        shown = "{:+.2%}" if self.gate.relative else "{:+.4f}"
        found = shown.format(self.found) if math.isfinite(self.found) else "not known"
        text = f"{self.model}: {self.gate}: {self.verdict}: {found}"
        if math.isfinite(self.low):
            text += f" ({shown.format(self.low)} to {shown.format(self.high)}, {self.method})"
        said = [f"{text}.", *([self.note] if self.note else [])]
        if self.segment is not None and math.isfinite(self.segment.difference):
            of = self.segment
            said.append(
                f"Most harmed segment: {of.group} ({of.users:,} users, {of.difference:+.4f})."
            )
        if self.changes is not None and self.changes.harmed:
            users = ", ".join(
                f"{one.user!r} ({one.difference:+.4f})" for one in self.changes.harmed[:SHOWN]
            )
            said.append(f"Most harmed users: {users}.")
        return said


@dataclasses.dataclass(frozen=True)
class GateReport(Printed):
    """The verdicts of gates on all models that are compared with the baseline.

    Attributes
    ----------
    rows : tuple of GateRow
    baseline
    mode
        One of `MODES`.
    confidence
    """

    rows: tuple[GateRow, ...]
    baseline: str
    mode: Mode
    confidence: float

    @property
    def verdict(self) -> Verdict:
        """Return the worst of all verdicts."""
        found = {row.verdict for row in self.rows}
        order: tuple[Verdict, ...] = ("failed", "undecided")
        return next((one for one in order if one in found), "passed")

    @property
    def passed(self) -> bool:
        """Return whether every model passes every gate."""
        return self.verdict == "passed"

    def table(self) -> Table:
        """Return a row per gate and model, and below who is harmed by what did not pass."""
        rows = [{"text": row, **_fields(row)} for row in self.rows]
        notes = [f"Gates against {self.baseline}, mode {self.mode}: {MODES[self.mode]}."]
        notes += [
            sentence for row in self.rows if row.verdict != "passed" for sentence in row.sentences()
        ]
        columns = [
            Column("gate", ("gate",), str),
            Column("model"),
            Column("verdict"),
            Column("difference", ("text",), _difference, number=True),
            Column(f"{self.confidence:.0%} interval", ("text",), _ends, number=True),
            *([Column("p", ("p_value",), p_text, number=True)] if self.mode == "test" else []),
            Column("users", ("n",), "{:,}".format, number=True),
        ]
        return Table(columns, rows, notes)

    def data(self) -> Table:
        """Return a row per gate and model, with the values themselves."""
        rows = [_fields(row) for row in self.rows]
        return Table([Column(name) for name in rows[0]], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        rows = [
            _fields(row)
            | {
                "harmed": [vars(one) for one in row.changes.harmed] if row.changes else [],
                "segment": vars(row.segment) if row.segment else None,
            }
            for row in self.rows
        ]
        return {
            "verdict": self.verdict,
            "mode": self.mode,
            "baseline": self.baseline,
            "confidence": self.confidence,
            "gates": rows,
        }


def _fields(row: GateRow) -> dict[str, Any]:
    return {
        "gate": str(row.gate),
        "model": row.model,
        "verdict": row.verdict,
        "found": row.found,
        "low": row.low,
        "high": row.high,
        "relative": row.gate.relative,
        "bound": row.gate.bound,
        "method": row.method,
        "p_value": row.p_value,
        "n": row.n,
        "note": row.note,
    }


def _difference(row: GateRow) -> str:
    if math.isnan(row.found):
        return "not known"
    return f"{row.found:+.2%}" if row.gate.relative else f"{row.found:+.4f}"


def _ends(row: GateRow) -> str:
    if math.isnan(row.low):
        return ""
    return (
        f"{row.low:+.2%} to {row.high:+.2%}"
        if row.gate.relative
        else f"{row.low:+.4f} to {row.high:+.4f}"
    )


def read_gate(text: str, comparison: Compared) -> Gate:
    """Read a gate as it is written.

    Raises
    ------
    InputError
        If it cannot be read, or its sign contradicts the direction of the metric.
    UnknownNameError
        If the comparison does not have the metric.
    """
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(
            f"The gate {text!r} cannot be read. Hint: a metric, a sign and a bound of the "
            "difference to the baseline, such as 'ndcg@10 >= -0.5%' or 'rmse <= 0.01'."
        )
    metric = comparison.known(match[1])
    higher = comparison.higher_is_better(metric)
    sign = ">=" if higher else "<="
    if match[2] != sign:
        better = "Higher" if higher else "Lower"
        raise InputError(
            f"{better} is better for {metric}, so its gate is written with {sign}, but {text!r} "
            f"was given. Hint: '{metric} {sign} {'-' if higher else ''}0.5%'."
        )
    relative = bool(match[4])
    return Gate(metric, float(match[3]) / (100 if relative else 1), relative, higher)


def check_gates(
    comparison: Compared, given: str | Gate | Sequence[str | Gate], mode: Mode
) -> GateReport:
    """Check gates for all models; see `Comparison.gate`."""
    if mode not in get_args(Mode):
        raise UnknownNameError(f"There is no mode {mode!r}. {did_you_mean(str(mode), MODES)}")
    if comparison.baseline is None:
        raise InputError(
            "A gate bounds the difference to a baseline, but there is no baseline. Hint: baseline= "
            "names one of the models."
        )
    if comparison.options.sequences is not None and mode in ("test", "sequential"):
        raise InputError(
            f"mode={mode!r} does not go with a comparison that read users until enough was known. "
            "Hint: mode='interval' or 'strict', whose intervals hold at all numbers of users."
        )
    texts = [given] if isinstance(given, str | Gate) else list(given)
    if not texts:
        raise InputError("No gate was given. Hint: 'ndcg@10 >= -0.5%'.")
    gates = [one if isinstance(one, Gate) else read_gate(one, comparison) for one in texts]
    rows = [
        _check(comparison, gate, row, mode) for gate in gates for row in _rows(comparison, gate)
    ]
    if mode == "test":
        rows = _by_test(rows, 1 - comparison.confidence)
    return GateReport(tuple(rows), comparison.baseline, mode, comparison.confidence)


def _rows(comparison: Compared, gate: Gate) -> list[PairRow]:
    return [
        row
        for row in comparison.rows
        if row.metric == gate.metric and not comparison.model(row.model).by_chance
    ]


def _check(comparison: Compared, gate: Gate, row: PairRow, mode: Mode) -> GateRow:
    sign = 1.0 if gate.higher_is_better else -1.0
    found = row.relative if gate.relative else row.difference
    interval = row.relative_interval if gate.relative else row.interval
    low, high, method, note, p = (
        interval.low,
        interval.high,
        interval.method,
        interval.note,
        math.nan,
    )
    n = row.n
    if mode == "test":
        p = _p_of_bound(comparison, gate, row)
    if mode == "sequential":
        low, high, n = _sequence(comparison, gate, row)
        method, note = "betting", "The interval holds at all numbers of users at once."
    # How far the interval's ends and the difference are on the good side of the bound.
    ends = sorted((sign * (low - gate.bound), sign * (high - gate.bound)))
    verdict = _verdict(mode, sign * (found - gate.bound), ends[0], ends[1])
    if math.isnan(found):
        note = note or "The difference is not known."
    elif math.isnan(low) and mode in ("interval", "strict"):
        note = f"Its interval is not known. {note}".strip()
    changes = segment = None
    if not row.for_all_users:
        changes = comparison.changes(row.metric, row.model)
        segment = _most_harmed(comparison, row)
    return GateRow(gate, row.model, verdict, found, low, high, method, p, n, changes, segment, note)


def _verdict(mode: Mode, found: float, low: float, high: float) -> Verdict:
    if mode == "point":
        return "passed" if found >= 0 else "failed"
    if mode == "interval":
        return "passed" if low >= 0 else "failed"
    if mode == "test":
        return "undecided" if math.isnan(found) else "passed"  # until p is adjusted
    if low >= 0:
        return "passed"
    return "failed" if high < 0 else "undecided"


def _p_of_bound(comparison: Compared, gate: Gate, row: PairRow) -> float:
    """Return p of a difference that is just the bound."""
    if row.for_all_users:
        from scipy.special import ndtr, ndtri

        interval = row.relative_interval if gate.relative else row.interval
        found = row.relative if gate.relative else row.difference
        error = interval.width / 2 / float(ndtri((1 + comparison.confidence) / 2))
        return 2 * float(ndtr(-abs(found - gate.bound) / error)) if error > 0 else math.nan
    users, options = comparison.users, comparison.options
    columns = [
        np.column_stack(users.runs(comparison.model(name), gate.metric))
        for name in (row.model, row.other)
    ]
    # With a relative bound b, x - (1 + b) y is held against 0.
    if gate.relative:
        columns[1] = (1 + gate.bound) * columns[1]
    else:
        columns[0] = columns[0] - gate.bound
    if max(column.shape[1] for column in columns) > 1:
        return stats.over_runs(columns[0], columns[1]).p_value
    return stats.compare(
        columns[0][:, 0],
        columns[1][:, 0],
        test=options.test,
        clusters=options.clusters,
        interval="t",
    ).test.p_value


def _by_test(rows: Sequence[GateRow], alpha: float) -> list[GateRow]:
    """Return the verdicts after p was adjusted over all gates and models."""
    adjusted = stats.adjust([row.p_value for row in rows], "holm")
    found = []
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        beyond = (row.found - row.gate.bound) * (1 if row.gate.higher_is_better else -1) < 0
        verdict: Verdict = "failed" if beyond and p <= alpha else row.verdict
        verdict = "undecided" if math.isnan(p) else verdict
        found.append(dataclasses.replace(row, p_value=p, verdict=verdict))
    return found


def _sequence(comparison: Compared, gate: Gate, row: PairRow) -> tuple[float, float, int]:
    """Return the interval that may be looked at after every batch, and the users seen."""
    if row.for_all_users:
        raise InputError(
            f"{gate.metric} is one value for all users, which cannot be followed user by user. "
            "Hint: another gate mode."
        )
    if comparison.options.clusters is not None:
        raise InputError(
            "A confidence sequence follows users one by one, who have to be independent of each "
            "other, but there are clusters. Hint: another gate mode, or cluster=False."
        )
    model, other = (comparison.model(name) for name in (row.model, row.other))
    if max(model.n_seeds, other.n_seeds) > 1:
        raise InputError(
            "A confidence sequence is over users and does not hold for several seeds of a model. "
            "Hint: one seed of each model, or another gate mode."
        )
    users = comparison.users
    order = users.order(model)
    x, y = (users.values(one, gate.metric)[order] for one in (model, other))
    (low, high), note = bounds_of(gate.metric, [model, other], (x, y))
    if not -math.inf < low < high < math.inf:
        raise InputError(
            f"{note or f'{gate.metric} has no known range.'} A confidence sequence needs a range. "
            "Hint: another gate mode, or a metric such as ndcg@10."
        )
    if not gate.relative:
        found = stats.ConfidenceSequence((low - high, high - low), comparison.confidence).update(
            x - y
        )
        return found.low, found.high, found.n
    # x / y - 1 is on the side of the bound b that the mean of x - (1 + b) y is of 0. The sign of
    # an end decides; its distance is shown in units of the baseline's mean.
    factor = 1 + gate.bound
    ends = sorted((factor * low, factor * high))
    found = stats.ConfidenceSequence((low - ends[1], high - ends[0]), comparison.confidence).update(
        x - factor * y
    )
    if not row.mean_other > 0:
        return math.nan, math.nan, found.n
    return (
        gate.bound + found.low / row.mean_other,
        gate.bound + found.high / row.mean_other,
        found.n,
    )


def _most_harmed(comparison: Compared, row: PairRow) -> Segment | None:
    """Return the quarter of the users, by activity or popularity, that is harmed most."""
    found = []
    for profile in PROFILES:
        try:
            found.append(comparison.by(profile, row.metric, row.model).rows[0])
        except InputError:  # there is no train
            continue
    if not found:
        return None
    sign = 1 if row.higher_is_better else -1
    return min(found, key=lambda one: sign * one.difference)
