"""A report to look at: from a comparison or an evaluation to a model of what is shown, to a page.

`build` makes the `ReportModel`, frozen and without anything that belongs to a format; `page`,
`markdown` and `charts` are functions of it.
"""

from recometer.report.result import Report, report

__all__ = ["Report", "report"]
