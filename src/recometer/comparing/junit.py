"""Gates as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from xml.etree import ElementTree

from recometer.comparing.gates import GateReport, GateRow
from recometer.errors import visible
from recometer.rendering import write_text


def junit(report: GateReport, path: str | os.PathLike[str] | None = None) -> str:
    """Return a test suite per model with a test case per gate; also write it to a path.

    The message of a failure says what was found. An undecided gate is a skipped test, unless
    ``undecided="pass"`` or ``"fail"`` of `Comparison.gate` says how it counts.
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
            said = [visible(text) for text in report.said]
            first, *others = *row.sentences(), *said
            found = report.counted(row.verdict)
            if found == "passed":
                ElementTree.SubElement(case, "system-out").text = "\n".join([first, *said])
            elif found == "failed":
                failure = ElementTree.SubElement(case, "failure", type=row.verdict, message=first)
                failure.text = "\n".join([first, *others])
            else:
                ElementTree.SubElement(case, "skipped", message=" ".join([first, *others]))
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
