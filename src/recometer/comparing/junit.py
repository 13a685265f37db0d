"""Gates as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

import os
from xml.etree import ElementTree

from recometer.comparing.gates import GateReport
from recometer.rendering import write_text


def junit(report: GateReport, path: str | os.PathLike[str] | None = None) -> str:
    """Return a test suite per model with a test case per gate; also write it to a path.

    A gate that fails, or is undecided, is a failure whose message says what was found.
    """
    failures = sum(row.verdict != "passed" for row in report.rows)
    root = ElementTree.Element(
        "testsuites", name="recometer", tests=str(len(report.rows)), failures=str(failures)
    )
    for model in dict.fromkeys(row.model for row in report.rows):
        rows = [row for row in report.rows if row.model == model]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"{model} against {report.baseline}",
            tests=str(len(rows)),
            failures=str(sum(row.verdict != "passed" for row in rows)),
        )
        for row in rows:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"recometer.{model}", name=str(row.gate)
            )
            first, *others = row.sentences()
            if row.verdict == "passed":
                ElementTree.SubElement(case, "system-out").text = first
            else:
                failure = ElementTree.SubElement(case, "failure", type=row.verdict, message=first)
                failure.text = "\n".join([first, *others])
    ElementTree.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode")
    if path is not None:
        write_text(path, text + "\n")
    return text
