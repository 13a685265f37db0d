"""Gates: limits on how much worse than the baseline a model may be."""

from __future__ import annotations

import collections
import dataclasses
import math
import os
import re
from collections.abc import Sequence
from typing import Any, Literal
from xml.etree import ElementTree

from recometer.comparing.compared import Compared
from recometer.comparing.rows import PairRow
from recometer.errors import (
    InputError,
    InputTypeError,
    UnknownNameError,
    argument_text,
    brief,
    visible,
)
from recometer.rendering import Column, Printed, Table, write_text
from recometer.stats import Interval

Verdict = Literal["passed", "failed", "undecided"]
Undecided = Literal["pass", "fail"]
COUNTED: dict[Undecided | None, Verdict] = {"pass": "passed", "fail": "failed", None: "undecided"}
RULE = (
    "A gate is passed if the whole interval meets the bound, failed if no part of it does, and "
    "undecided otherwise."
)
WRITTEN = re.compile(
    r"\s*(\S.*?)\s*(>=|<=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*"
)
FEW = "Too few users differ for a decision: the interval may be too short."


@dataclasses.dataclass(frozen=True)
class Gate:
    """A bound on the difference from the baseline, such as ``"ndcg@10 >= -5%"``."""

    metric: str
    bound: float  # on the difference, or on the relative difference (where 0.05 is 5 %)
    relative: bool
    higher_is_better: bool  # if true, the bound is a minimum, otherwise a maximum

    def __str__(self) -> str:
        sign = ">=" if self.higher_is_better else "<="
        bound = f"{100 * self.bound:g}%" if self.relative else f"{self.bound:g}"
        return f"{self.metric} {sign} {bound}"

    def decide(self, interval: Interval) -> Verdict:
        """Return the verdict on a difference, given its interval (``"undecided"`` if NaN)."""
        low, high, bound = interval.low, interval.high, self.bound
        if not self.higher_is_better:
            low, high, bound = -high, -low, -bound
        return "passed" if low >= bound else "failed" if high < bound else "undecided"


@dataclasses.dataclass(frozen=True)
class GateRow:
    """The verdict of a gate on a model."""

    gate: Gate
    model: str
    verdict: Verdict
    # The difference from the baseline and the ends of its interval, all relative if the gate is.
    found: float
    low: float
    high: float
    method: str  # how the interval was computed
    n: int  # the number of users compared
    note: str = ""

    def sentences(self) -> list[str]:
        """Return the verdict as a sentence, followed by the note."""
        size = _difference(self.gate.relative, self.found)
        ends = _shown(self.gate.relative, self.low, self.high)
        text = f"{self.model}: {self.gate}: {self.verdict}: {size}"
        text += f" ({ends}, {self.method})" if ends else ""
        return [visible(text) for text in (f"{text}.", self.note) if text]


@dataclasses.dataclass(frozen=True)
class GateReport(Printed):
    """The verdicts of gates on all models that are compared with the baseline.

    Attributes
    ----------
    rows : tuple of GateRow
        A verdict for each gate and model.
    baseline
        The name of the baseline.
    confidence
        The confidence level of the intervals.
    undecided : "pass", "fail" or None
        Whether undecided gates count as passed or failed in `passed` and in JUnit XML. With None,
        they count as neither.
    said : tuple of str
        Sentences that apply to every verdict. They concern users unknown to some models, and groups
        that do not have their planned sizes.
    """

    rows: tuple[GateRow, ...]
    baseline: str
    confidence: float
    undecided: Undecided | None = None
    said: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the worst of all verdicts: ``"failed"``, ``"undecided"`` or ``"passed"``."""
        order: tuple[Verdict, ...] = ("failed", "undecided")
        verdicts = {row.verdict for row in self.rows}
        return next((verdict for verdict in order if verdict in verdicts), "passed")

    @property
    def passed(self) -> bool:
        """Return whether every model passes every gate, after applying `undecided`."""
        return self.counted(self.verdict) == "passed"

    def counted(self, verdict: Verdict) -> Verdict:
        """Return the verdict that a pipeline should act on, after applying `undecided`."""
        return COUNTED[self.undecided] if verdict == "undecided" else verdict

    def summary(self) -> str:
        """Return a sentence with the overall verdict and the number of gates with each verdict."""
        counts = collections.Counter(row.verdict for row in self.rows)
        numbers = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
        return visible(f"Gates against {self.baseline}: {self.verdict} ({numbers}).")

    def table(self) -> Table:
        """Return a table with a row per gate and model, and notes on gates that are not passed."""
        rows = [{**vars(row), **vars(row.gate), "gate": str(row.gate)} for row in self.rows]
        notes = [RULE]
        if self.undecided is not None:
            notes.append(f"Undecided gates count as {COUNTED[self.undecided]}.")
        notes += [text for row in self.rows if row.verdict != "passed" for text in row.sentences()]
        columns = [
            *map(Column, ("gate", "model", "verdict")),
            Column("difference", ("relative", "found"), _difference, number=True),
            Column(
                f"{self.confidence:.0%} interval", ("relative", "low", "high"), _shown, number=True
            ),
            Column("users", ("n",), "{:,}".format, number=True, spare=True),
            *(Column(name, hidden=True) for name in ("bound", "method", "note")),
        ]
        return Table(columns, rows, notes, [self.summary(), *self.said])

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as JSON-compatible Python objects."""
        return {
            "verdict": self.verdict,
            "undecided": self.undecided,
            "passed": self.passed,
            "baseline": self.baseline,
            "confidence": self.confidence,
            "said": list(self.said),
            "gates": self.table().records(),
        }


def _difference(relative: bool, difference: float) -> str:
    return _shown(relative, difference) or "unknown"


def _shown(relative: bool, *values: float) -> str:
    """Return differences as text in the unit of the bound, or "" if any of them is unknown."""
    form = "{:+.2%}" if relative else "{:+.4f}"
    if any(map(math.isnan, values)):
        return ""
    return " to ".join(form.format(value) if math.isfinite(value) else "no end" for value in values)


def read_gate(text: str, comparison: Compared) -> Gate:
    """Read a gate from text; its metric must be one that was compared."""
    if not isinstance(text, str):
        raise InputTypeError(
            f"A gate must be a string, found {brief(text)}. Hint: 'ndcg@10 >= -5%', or a list of "
            "such strings."
        )
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(
            f"The gate {text!r} cannot be read. Hint: write a metric, a sign and a bound of the "
            "difference from the baseline, such as 'ndcg@10 >= -5%' or 'rmse <= 0.01'."
        )
    metric, sign, relative = comparison.known(match[1]), match[2], bool(match[4])
    higher = comparison.higher_is_better(metric)
    right = ">=" if higher else "<="
    if sign != right:
        better = "Higher" if higher else "Lower"
        raise InputError(
            f"{better} is better for {metric}, so its gate is written with {right}, but {text!r} "
            f"was given. Hint: '{metric} {right} {'-' if higher else ''}5%'."
        )
    if not math.isfinite(float(match[3])):
        raise InputError(f"The bound of the gate {text!r} must be a finite number.")
    return Gate(metric, float(match[3]) / (100 if relative else 1), relative, higher)


def check_gates(
    comparison: Compared, gate: str | Sequence[str], undecided: Undecided | None = None
) -> GateReport:
    """Check gates for all models; see `Comparison.gate`."""
    if undecided not in tuple(COUNTED):
        raise UnknownNameError(
            f"undecided={undecided!r} must be 'pass', 'fail' or None. Hint: None leaves "
            "undecided gates undecided; 'pass' and 'fail' count them as passed or failed."
        )
    if comparison.baseline is None:
        raise InputError(
            "A gate bounds the difference from a baseline, but there is no baseline. Hint: "
            f"{argument_text('baseline')} names one of the models."
        )
    texts: Any = gate if isinstance(gate, Sequence) and not isinstance(gate, str) else [gate]
    if not texts:
        raise InputError("No gate was given. Hint: for instance 'ndcg@10 >= -5%'.")
    gates = [read_gate(text, comparison) for text in texts]
    chance = [model.name for model in comparison.models if model.by_chance]
    rows = [
        _check(gate, row)
        for gate in gates
        for row in comparison.rows
        if row.metric == gate.metric and row.model not in chance
    ]
    sentences = comparison.known_users
    if comparison.sample_ratio is not None and comparison.sample_ratio.mismatch:
        sentences = (str(comparison.sample_ratio), *sentences)
    return GateReport(tuple(rows), comparison.baseline, comparison.confidence, undecided, sentences)


def _check(gate: Gate, row: PairRow) -> GateRow:
    interval = row.relative_interval if gate.relative else row.interval
    notes = dict.fromkeys(filter(None, (interval.note, row.interval.note)))
    verdict = gate.decide(interval)
    if not row.decides_gates:
        verdict, notes = "undecided", {FEW: None, **notes}
    return GateRow(
        gate=gate,
        model=row.model,
        verdict=verdict,
        found=row.relative if gate.relative else row.difference,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        n=row.n,
        note=" ".join(notes),
    )


def junit(report: GateReport, path: str | os.PathLike[str] | None = None) -> str:
    """Return JUnit XML with a suite per model and a case per gate; also write it to a given path.

    The message of a failure contains the difference and its interval. An undecided gate is a
    skipped test, unless `Comparison.gate` was called with ``undecided="pass"`` or ``"fail"``.
    """
    root = ElementTree.Element("testsuites", name="recometer")
    baseline = visible(report.baseline)
    _count(root, report, report.rows)
    for name in dict.fromkeys(row.model for row in report.rows):
        rows, model = [row for row in report.rows if row.model == name], visible(name)
        suite = ElementTree.SubElement(root, "testsuite", name=f"{model} against {baseline}")
        _count(suite, report, rows)
        for row in rows:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"recometer.{model}", name=str(row.gate)
            )
            sentences = [visible(text) for text in report.said]
            first, *details = *row.sentences(), *sentences
            counted = report.counted(row.verdict)
            if counted == "passed":
                ElementTree.SubElement(case, "system-out").text = "\n".join([first, *sentences])
            elif counted == "failed":
                failure = ElementTree.SubElement(case, "failure", type=row.verdict, message=first)
                failure.text = "\n".join([first, *details])
            else:
                ElementTree.SubElement(case, "skipped", message=" ".join([first, *details]))
    ElementTree.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode")
    if path is not None:
        write_text(path, text + "\n")
    return text


def _count(element: ElementTree.Element, report: GateReport, rows: Sequence[GateRow]) -> None:
    counted = [report.counted(row.verdict) for row in rows]
    element.set("tests", str(len(rows)))
    element.set("failures", str(counted.count("failed")))
    element.set("skipped", str(counted.count("undecided")))
