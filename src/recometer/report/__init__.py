"""Reports on a comparison or an evaluation.

The module `build` makes a `ReportModel`, which does not depend on the format of the report. `page`
turns it into HTML, `result` into Markdown, and `charts` draws its charts.
"""

from recometer.report.result import Report

__all__ = ["Report"]
