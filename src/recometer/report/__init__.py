"""Reports: from a comparison or an evaluation to a model of the content, and to a page.

`build` makes the `ReportModel`, which is frozen and independent of any format; `page`,
`markdown` and `charts` are functions of it.
"""

from recometer.report.result import Report, report

__all__ = ["Report", "report"]
